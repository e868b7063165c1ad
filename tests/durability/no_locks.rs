//! File systems without locks, on which two writers at once would damage a store.

use std::io::{self, Result};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::memory::MemoryFiles;
use crate::common::small::{schema, signature};
use redb::{BackendError, StorageBackend};
use resemblance::{Access, BulkOptions, Closed, Error, Files, Store, StoreOptions};

/// Files that other processes can open, on a system that answers with an error to every lock.
#[derive(Clone, Debug)]
struct Lockless {
    files: MemoryFiles,
    /// The number of the error.
    answer: i32,
    /// Every other answer is that a signal came.
    asked: Arc<AtomicU32>,
}

impl Files for Lockless {
    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn StorageBackend>> {
        let file = self.files.open(path, access)?;
        let (answer, asked) = (self.answer, Arc::clone(&self.asked));
        Ok(Box::new(LocklessFile {
            file,
            answer,
            asked,
        }))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.files.remove(path)
    }

    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        self.files.publish(from, to)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.files.exists(path)
    }

    fn size_bytes(&self, path: &Path) -> Result<(u64, u64)> {
        self.files.size_bytes(path)
    }

    fn are_shared(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct LocklessFile {
    file: Box<dyn StorageBackend>,
    answer: i32,
    asked: Arc<AtomicU32>,
}

type Locked = std::result::Result<bool, BackendError>;

impl LocklessFile {
    fn refuse(&self) -> Locked {
        let is_interrupted = self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        let number = if is_interrupted {
            libc::EINTR
        } else {
            self.answer
        };
        Err(io::Error::from_raw_os_error(number).into())
    }
}

impl StorageBackend for LocklessFile {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.file.write(offset, data)
    }

    fn try_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Locked {
        self.refuse()
    }

    fn try_lock_shared_range(&self, _: Bound<u64>, _: Bound<u64>) -> Locked {
        self.refuse()
    }

    fn query_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Locked {
        self.refuse()
    }
}

#[track_caller]
fn unsupported<T>(result: std::result::Result<T, Error>) {
    match result {
        Err(Error::LocksUnsupported { path }) => assert!(path.file_name().is_some()),
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("no error"),
    }
}

#[test]
fn an_unlockable_store_is_refused_by_default() {
    for answer in [libc::EOPNOTSUPP, libc::ENOSYS, libc::ENOLCK, libc::EBADF] {
        let files = MemoryFiles::default();
        let lockless = Lockless {
            files: files.clone(),
            answer,
            asked: Arc::default(),
        };
        let options = StoreOptions::new().files(Arc::new(lockless));
        let path = Path::new("store.rsm");
        unsupported(options.create(path, schema()));
        let bulk = BulkOptions::new().store(options.clone());
        unsupported(Store::bulk_build(path, schema(), &bulk));
        assert_eq!(files.names(), Vec::<std::path::PathBuf>::new());

        let allowed = options.clone().without_lock();
        let store = allowed.create(path, schema()).unwrap();
        store.insert("a", &signature(1)).unwrap();
        assert_eq!(store.close().unwrap(), Closed::File);
        let bytes = files.read(path);
        unsupported(options.open(path));
        unsupported(options.open_read_only(path));
        unsupported(options.check(path).run());
        unsupported(options.compact(path).run());
        let other = Path::new("other.rsm");
        unsupported(Store::repair(path, other).bulk(bulk).run());
        assert_eq!(files.read(path), bytes);

        let store = allowed.open(path).unwrap();
        assert!(store.snapshot().unwrap().contains("a").unwrap());
        drop(store);
        assert!(allowed.check(path).run().unwrap().is_clean());
    }
}

#[test]
fn where_there_are_locks_they_are_used() {
    let place = crate::common::Place::new();
    let path = place.store();
    let options = StoreOptions::new().without_lock();
    let store = options.create(&path, schema()).unwrap();
    let refused = options.open(&path);
    assert!(matches!(refused, Err(Error::Locked { .. })));
    drop(store);
}
