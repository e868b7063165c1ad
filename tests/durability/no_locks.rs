//! File systems without locks, on which two simultaneous writers would damage a store.

use std::io::{self, Result};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::memory::{Call, MemoryFiles, Watch, WatchedFiles};
use crate::common::small::{schema, signature};
use resemblance::{BulkOptions, Closed, Error, Store, StoreOptions};

/// The error number with which files answer every lock request, and the number of requests. Every
/// other answer is an interruption by a signal.
#[derive(Debug)]
struct Lockless(i32, AtomicU32);

impl Watch for Lockless {
    fn before(&self, call: &Call<'_>) -> Result<()> {
        if !matches!(call, Call::Lock) {
            return Ok(());
        }
        let is_interrupted = self.1.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        let number = if is_interrupted { libc::EINTR } else { self.0 };
        Err(io::Error::from_raw_os_error(number))
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
        let lockless = Lockless(answer, AtomicU32::new(0));
        let options = WatchedFiles::new(files.clone(), lockless).options(&StoreOptions::new());
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
fn available_locks_are_used() {
    let place = crate::common::Place::new();
    let path = place.store();
    let options = StoreOptions::new().without_lock();
    let store = options.create(&path, schema()).unwrap();
    let refused = options.open(&path);
    assert!(matches!(refused, Err(Error::Locked { .. })));
    drop(store);
}
