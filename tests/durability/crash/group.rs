//! Several threads make grouped changes on a failing disk. Each receives a result, and acknowledged
//! changes exist when the store is opened again.

use std::path::Path;
use std::sync::Arc;
use std::thread;

use resemblance::{Error, Result, Store, StoreOptions};

use crate::common::memory::MemoryFiles;
use crate::common::small::{schema, signature};
use crate::crash::failing::{FailingFiles, Failure, Kind};

const THREADS: u32 = 6;
const CALLS: u32 = 8;

/// Returns the result of each thread's insert, by key.
fn insert_all(store: &Store) -> Vec<(u32, Result<()>)> {
    let insert = |thread: u32| {
        let numbers = (0..CALLS).map(move |call| thread * 100 + call);
        numbers.map(|number| {
            let (key, page) = (number.to_be_bytes(), signature(number));
            let inserted = match number % 3 {
                0 => store.insert(key, &page).map(drop),
                1 => store.insert_if_new(key, &page).map(drop),
                _ => {
                    let queued = store.queue().insert(key, &page);
                    queued.and_then(|ticket| ticket.wait().map(drop))
                }
            };
            (number, inserted)
        })
    };
    thread::scope(|scope| {
        let threads = (0..THREADS).map(|thread| scope.spawn(move || insert(thread).collect()));
        let threads: Vec<thread::ScopedJoinHandle<'_, Vec<_>>> = threads.collect();
        let reported = threads.into_iter().flat_map(|it| it.join().unwrap());
        reported.collect()
    })
}

#[test]
fn group_commit_replies_hold_on_a_failing_disk() {
    let path = Path::new("group.rsm");
    let mut failed = 0;
    for (kind, nth, for_ever) in [
        (Kind::Sync, 3, true),
        (Kind::Sync, 5, false),
        (Kind::Sync, 8, false),
        (Kind::Write, 30, true),
        (Kind::Write, 60, false),
        (Kind::Write, 61, false),
        (Kind::SetLen, 1, false),
    ] {
        let files = MemoryFiles::default();
        let good = StoreOptions::new()
            .flush_after(16)
            .files(Arc::new(files.clone()));
        drop(good.create(path, schema()).unwrap());
        let failure = Failure {
            kind: Some(kind),
            nth,
            for_ever,
            is_torn: false,
        };
        let failing = FailingFiles::failing(files, Some(failure));
        let options = StoreOptions::new()
            .flush_after(16)
            .files(Arc::new(failing.clone()));
        let store = options.open(path).unwrap();
        let reported = insert_all(&store);
        drop(store);
        let store = good.open(path).unwrap();
        let snapshot = store.snapshot().unwrap();
        for (number, reported) in reported {
            let is_there = snapshot.contains(number.to_be_bytes()).unwrap();
            match reported {
                Ok(()) => assert!(is_there, "{number} was acknowledged"),
                Err(Error::Io { .. } | Error::Closed { .. }) => failed += 1,
                Err(error) => panic!("{error:?}"),
            }
        }
        assert!(snapshot.check().run().unwrap().is_clean());
    }
    assert!(failed > 0, "nothing failed");
}
