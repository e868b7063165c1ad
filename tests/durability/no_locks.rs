//! File systems without locks, on which two simultaneous writers would damage a store, and locks that
//! fail once.

use std::collections::BTreeSet;
use std::io::{self, Result};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

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
    let options = StoreOptions::new().without_lock().wait(Duration::ZERO);
    let store = options.create(&path, schema()).unwrap();
    let refused = options.open(&path);
    assert!(matches!(refused, Err(Error::Locked { .. })));
    drop(store);
}

/// Answers one request for a lock with an error, after a number of other requests.
#[derive(Debug)]
struct FailingOnce {
    number: i32,
    /// The requests before it. While it is `u32::MAX`, all requests succeed.
    before: AtomicU32,
}

impl Watch for FailingOnce {
    fn before(&self, call: &Call<'_>) -> Result<()> {
        let before = self.before.load(Ordering::Relaxed);
        if !matches!(call, Call::Lock) || before == u32::MAX {
            return Ok(());
        }
        self.before.store(before.wrapping_sub(1), Ordering::Relaxed);
        match before {
            0 => Err(io::Error::from_raw_os_error(self.number)),
            _ => Ok(()),
        }
    }
}

/// Inserts through handles for which one request for a lock fails. Returns the documents that were
/// refused, or `None` if there were no more requests than `before`.
fn refused_by_a_failing_lock(
    number: i32,
    before: u32,
    shared_writers: bool,
) -> Option<BTreeSet<u32>> {
    let (files, path) = (MemoryFiles::default(), Path::new("store.rsm"));
    let sound = StoreOptions::new().files(std::sync::Arc::new(files.clone()));
    let sound = sound.shared_writers(shared_writers);
    drop(sound.create(path, schema()).unwrap());
    let failing = FailingOnce {
        number,
        before: AtomicU32::new(u32::MAX),
    };
    let watched = WatchedFiles::new(files, failing);
    let options = watched.options(&sound);
    let (mut inserted, mut refused) = (BTreeSet::new(), BTreeSet::new());
    // The locks of files in memory keep nobody away, so there is a second writer only where writers
    // share the store. The two write one after the other.
    let writers: Vec<_> = [&options, &sound]
        .into_iter()
        .take(if shared_writers { 2 } else { 1 })
        .map(|options| options.open(path).unwrap())
        .collect();
    watched.watch.before.store(before, Ordering::Relaxed);
    for key in 0..8u32 {
        let writer = &writers[key as usize % writers.len()];
        match writer.insert(key.to_le_bytes(), &signature(key)) {
            Ok(_) => inserted.insert(key),
            Err(_) => refused.insert(key),
        };
    }
    drop(writers);
    let has_failed = watched.watch.before.load(Ordering::Relaxed) == u32::MAX;
    let snapshot = sound.open(path).unwrap().snapshot().unwrap();
    for key in 0..8u32 {
        let is_there = snapshot.contains(key.to_le_bytes()).unwrap();
        assert!(
            is_there || !inserted.contains(&key),
            "{key} is lost after error {number} for request {before}"
        );
        assert!(!is_there || inserted.contains(&key) || refused.contains(&key));
    }
    drop(snapshot);
    assert!(sound.check(path).run().unwrap().is_clean());
    has_failed.then_some(refused)
}

#[test]
fn a_failing_lock_loses_nothing_that_was_inserted() {
    for shared_writers in [false, true] {
        for number in [
            libc::EIO,
            libc::ENOLCK,
            libc::EBADF,
            libc::EDEADLK,
            libc::EINTR,
        ] {
            let refused =
                (0..).map_while(|before| refused_by_a_failing_lock(number, before, shared_writers));
            let (mut requests, mut refusals) = (0, 0);
            for refused in refused {
                requests += 1;
                refusals += refused.len();
            }
            // An interrupted request is repeated.
            assert_eq!(refusals == 0, number == libc::EINTR, "error {number}");
            assert!(requests > 20, "only {requests} requests were made");
        }
    }
}
