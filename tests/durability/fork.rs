//! A process that forks with an open store, as Python's `multiprocessing` does: the child has a copy
//! of every handle, and must do nothing with it.
#![allow(unsafe_code, reason = "the standard library cannot fork")]

use std::fs;
use std::future::Future;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::common::killing::{command, store_of};
use crate::common::small::{filled, schema, signature};
use crate::common::{Ending, Place, check_clean, impatient, sealing_after};
use resemblance::{Closed, Document, Error, EvictPolicy, Signature, Store};

/// A child must end after so long, or a signal ends it: a lock of the parent's threads is never free.
const CHILD_SECONDS: u32 = 60;

/// Runs code in a forked child, waits for it, and fails if it panicked or hung.
fn in_child(run: impl FnOnce()) {
    let status = wait_for(fork(run));
    assert_eq!(status, 0, "the child ended with status {status:#x}");
}

fn fork(run: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child has this thread alone. It runs code that takes locks of the tests' own alone,
    // and ends without returning.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: both calls take plain numbers.
        unsafe { libc::alarm(CHILD_SECONDS) };
        let result = catch_unwind(AssertUnwindSafe(run));
        unsafe { libc::_exit(i32::from(result.is_err())) };
    }
    child
}

fn wait_for(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: the status is written to a variable that is there.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

#[track_caller]
fn forked<T>(result: Result<T, Error>) {
    match result {
        Err(Error::Forked) => {}
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("no error"),
    }
}

fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn documents(store: &Store) -> u64 {
    store.snapshot().unwrap().len()
}

/// Every call of a handle of the parent's in the child.
fn refuses(store: &Store, one: &Signature) {
    forked(store.snapshot());
    forked(store.insert("new", one));
    forked(store.insert_if_new("new", one));
    forked(store.upsert("new", one));
    forked(store.insert(Document::without_key(), one));
    forked(store.remove(0_u32.to_le_bytes()));
    forked(store.touch(0_u32.to_le_bytes(), 7));
    forked(store.begin_write());
    forked(store.try_begin_write());
    forked(store.kept_documents());
    forked(store.flush());
    forked(store.evict(EvictPolicy::OlderThan(u64::MAX)).run());
    forked(store.clone().close());
    forked(store.queue().insert("new", one));
    forked(store.queue().flush());
    let queue = store.queue();
    assert!(matches!(
        poll(queue.ready()),
        Poll::Ready(Err(Error::Forked))
    ));
    // Making signatures concerns no file.
    assert_eq!(store.schema(), &schema());
    store.sketch_text("a text for the child").unwrap();
}

#[test]
fn forked_child_cannot_use_the_handle_of_its_parent() {
    let place = Place::new();
    let path = place.store();
    filled(&path, 30);
    let store = sealing_after(8).open(&path).unwrap();
    let one = signature(1_000);
    let before = fs::read(&path).unwrap();
    in_child(|| {
        refuses(&store, &one);
        drop(store.clone());
        // It belongs to the parent, so no other process can open it.
        assert!(matches!(impatient().open(&path), Err(Error::Locked { .. })));
    });
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(matches!(impatient().open(&path), Err(Error::Locked { .. })));
    store.insert("parent", &one).unwrap();
    assert_eq!(documents(&store), 31);
    assert_eq!(store.close().unwrap(), Closed::File);
    check_clean(&path);
}

#[test]
fn forked_child_cannot_use_objects_of_a_handle() {
    let place = Place::new();
    let path = place.store();
    filled(&path, 30);
    let store = sealing_after(8).open(&path).unwrap();
    let ticket = store.queue().insert("queued", &signature(900)).unwrap();
    let polled = store.queue().insert("polled", &signature(901)).unwrap();
    store.flush().unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut records = snapshot.iter();
    records.next().unwrap().unwrap();
    let mut transaction = store.begin_write().unwrap();
    transaction.insert("open", &signature(1_000)).unwrap();
    let mut all = Some((store, snapshot, ticket, polled, records, transaction));
    let one = signature(1);
    in_child(|| {
        let (store, snapshot, ticket, polled, mut records, mut transaction) = all.take().unwrap();
        forked(ticket.wait());
        assert!(matches!(poll(polled), Poll::Ready(Err(Error::Forked))));
        forked(records.next().unwrap());
        drop(records);
        forked(snapshot.get(0_u32.to_le_bytes()));
        forked(snapshot.query(&one).run());
        forked(snapshot.iter().next().expect("a fork's iterator says so"));
        forked(snapshot.stats().run());
        forked(snapshot.check().run());
        forked(snapshot.backup(place.file("copy.rsm")).run());
        forked(
            snapshot
                .pairs()
                .run()
                .and_then(|mut pairs| pairs.next().unwrap()),
        );
        forked(transaction.insert("child", &one));
        forked(transaction.remove(0_u32.to_le_bytes()));
        forked(transaction.get(0_u32.to_le_bytes()));
        forked(transaction.query(&one).run());
        forked(transaction.commit());
        drop((snapshot, store));
    });
    let (store, snapshot, ticket, polled, records, transaction) = all.unwrap();
    // The child has dropped them all, which closed and unlocked nothing.
    assert!(matches!(impatient().open(&path), Err(Error::Locked { .. })));
    transaction.commit().unwrap();
    ticket.wait().unwrap();
    polled.wait().unwrap();
    assert_eq!(records.count(), 31);
    assert_eq!(snapshot.len(), 32);
    drop(snapshot);
    assert_eq!(store.close().unwrap(), Closed::File);
    assert_eq!(documents(&Store::open(&path).unwrap()), 33);
    check_clean(&path);
}

#[test]
fn inserts_of_parent_and_child_are_all_kept() {
    let place = Place::new();
    let path = place.store();
    filled(&path, 0);
    let store = sealing_after(8).open(&path).unwrap();
    let insert = |name: &str| {
        let insert = |number: u32| store.insert(format!("{name}/{number}"), &signature(number));
        (0..300)
            .map(insert)
            .filter(|inserted| inserted.is_ok())
            .count()
    };
    let child = fork(|| assert_eq!(insert("child"), 0));
    assert_eq!(insert("parent"), 300);
    assert_eq!(wait_for(child), 0);
    assert_eq!(store.close().unwrap(), Closed::File);
    assert_eq!(documents(&Store::open(&path).unwrap()), 300);
    check_clean(&path);
}

#[test]
fn forked_child_never_waits_for_threads_of_its_parent() {
    let place = Place::new();
    let path = place.store();
    filled(&path, 30);
    let store = sealing_after(64).open(&path).unwrap();
    let ended = AtomicBool::new(false);
    let inserted = AtomicU32::new(0);
    thread::scope(|scope| {
        let _ending = Ending(&ended);
        for _ in 0..3 {
            scope.spawn(|| {
                while !ended.load(Ordering::Acquire) {
                    let number = inserted.fetch_add(1, Ordering::AcqRel);
                    store
                        .insert(format!("k{number}"), &signature(100 + number))
                        .unwrap();
                    store.snapshot().unwrap().get("k0").unwrap();
                }
            });
        }
        for _ in 0..60 {
            let mut taken = Some((store.clone(), store.queue(), store.snapshot().unwrap()));
            in_child(|| {
                let (store, queue, snapshot) = taken.take().unwrap();
                forked(queue.insert("new", &signature(1)));
                forked(snapshot.get("k0"));
                drop((snapshot, queue));
                forked(store.close());
            });
        }
    });
    let expected = 30 + u64::from(inserted.into_inner());
    assert_eq!(store.close().unwrap(), Closed::File);
    assert_eq!(documents(&Store::open(&path).unwrap()), expected);
    check_clean(&path);
}

#[test]
fn child_forked_during_a_call_changes_no_file() {
    let place = Place::new();
    let path = place.store();
    filled(&path, 30);
    let store = Store::open(&path).unwrap();
    let snapshot = store.snapshot().unwrap();
    let copy = place.file("copy.rsm");
    let mut children = Vec::new();
    let parent = std::process::id();
    let report = snapshot.backup(&copy).on_progress(|_| {
        if std::process::id() == parent && children.is_empty() {
            // SAFETY: the child only returns out of the backup, and then ends.
            let child = unsafe { libc::fork() };
            children.push(child);
        }
        match std::process::id() == parent {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    let report = report.run();
    if std::process::id() != parent {
        // SAFETY: plain numbers.
        unsafe { libc::_exit(i32::from(report.is_ok())) };
    }
    report.unwrap();
    assert_eq!(wait_for(children[0]), 0);
    check_clean(&copy);
    assert_eq!(documents(&Store::open(&copy).unwrap()), 30);
}

#[test]
fn forked_child_can_open_the_store_itself() {
    let place = Place::new();
    let path = place.store();
    filled(&path, 30);
    let reader = Store::open_read_only(&path).unwrap();
    in_child(|| {
        forked(reader.snapshot());
        let own = Store::open_read_only(&path).unwrap();
        assert_eq!(documents(&own), 30);
        drop((own, reader.clone()));
    });
    assert_eq!(documents(&reader), 30);
    drop(reader);
    in_child(|| {
        let own = Store::open(&path).unwrap();
        own.insert("child", &signature(1_000)).unwrap();
        assert_eq!(own.close().unwrap(), Closed::File);
    });
    assert_eq!(documents(&Store::open(&path).unwrap()), 31);
    check_clean(&path);
}

#[test]
fn iterators_from_before_a_fork_are_refused() {
    let place = Place::new();
    let path = place.store();
    filled(&path, 5);
    let store = Store::open(&path).unwrap();
    for key in ["a", "b", "c"] {
        store.insert(key, &signature(1_000)).unwrap();
    }
    let mut pairs = store.snapshot().unwrap().pairs().run().unwrap();
    pairs.next().unwrap().unwrap();
    let mut begun = Some(pairs);
    in_child(|| forked(begun.take().unwrap().next().unwrap()));
    assert_eq!(begun.unwrap().count(), 2);
}

const FORKING: &str = "fork::hold_on_in_a_child";

/// Not a test: a process that opens a store, forks a child that does nothing, and waits to be
/// killed.
#[test]
fn hold_on_in_a_child() {
    let Some(path) = store_of(FORKING) else {
        return;
    };
    let store = Store::open(&path).unwrap();
    store.insert("kept", &signature(1)).unwrap();
    let child = fork(|| thread::sleep(Duration::from_secs(CHILD_SECONDS.into())));
    fs::write(path.with_extension("child"), child.to_string()).unwrap();
    thread::sleep(Duration::from_secs(CHILD_SECONDS.into()));
}

#[test]
fn children_of_a_killed_writer_keep_its_lock_and_are_named() {
    let place = Place::new();
    let path = place.store();
    filled(&path, 3);
    let mut running = command(FORKING, &path).spawn().unwrap();
    let noted = path.with_extension("child");
    while !fs::read_to_string(&noted).is_ok_and(|child| !child.is_empty()) {
        thread::sleep(Duration::from_millis(5));
    }
    running.kill().unwrap();
    running.wait().unwrap();
    let child = fs::read_to_string(&noted).unwrap();
    // A reader can still open it.
    let reader = Store::open_read_only(&path).unwrap();
    assert!(reader.snapshot().unwrap().contains("kept").unwrap());
    let refused = impatient().open(&path).err().unwrap();
    assert!(
        refused.to_string().contains(&format!("(process {child})")),
        "{refused}"
    );
    // SAFETY: the call takes plain numbers.
    assert_eq!(
        unsafe { libc::kill(child.parse().unwrap(), libc::SIGKILL) },
        0
    );
    let store = Store::open(&path).unwrap();
    assert!(store.snapshot().unwrap().contains("kept").unwrap());
    drop(store);
    check_clean(&path);
}
