//! Many readers and one writer at a time. No reader sees half a commit.

use std::fmt::Debug;
use std::hash::Hash;
use std::iter::FusedIterator;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::common::{Place, Random, check_clean, sealing_after};
use resemblance::{
    Closed, Clusters, Document, DocumentId, Error, MinHash, Pairs, Query, Records, Schema,
    Signature, SimHash, Sketcher, Snapshot, Store, WriteTransaction,
};

/// Compiles only for types that any thread may have.
const fn shared_by_threads<T: Clone + Send + Sync + 'static>() {}
const fn sent_to_threads<T: Send + 'static>() {}

const _: () = {
    shared_by_threads::<Store>();
    shared_by_threads::<Snapshot>();
    shared_by_threads::<Sketcher>();
    shared_by_threads::<Schema>();
    shared_by_threads::<Signature>();
    sent_to_threads::<Error>();
    sent_to_threads::<Records>();
    sent_to_threads::<WriteTransaction>();
    const fn shown<T: Debug>() {}
    shown::<Store>();
    shown::<WriteTransaction>();
    shown::<Snapshot>();
    shown::<Query<'_>>();
    const fn iterator<T: Debug + FusedIterator>() {}
    iterator::<Records>();
    iterator::<Pairs>();
    iterator::<Clusters>();
    const fn key<T: Eq + Hash>() {}
    key::<Signature>();
    const fn sync<T: Sync>() {}
    sync::<Error>();
};

fn schema() -> Schema {
    let builder = Schema::builder().minhash(MinHash::new(16).banding(4, 3).threshold(0.5));
    builder.simhash(SimHash::bits64()).build().unwrap()
}

/// Near to all others of the same family.
fn member(family: u64, number: u64) -> Signature {
    let mut random = Random(family);
    let mut values: Vec<u32> = (0..16).map(|_| random.next() as u32).collect();
    values[15] = number as u32;
    Signature::from_parts(Some(values), Some(random.next()))
}

fn store(place: &Place, flush_after: u64) -> Store {
    sealing_after(flush_after)
        .create(place.store(), schema())
        .unwrap()
}

#[test]
fn transaction_belongs_to_the_thread_that_used_it_last() {
    let place = Place::new();
    let store = store(&place, 100);
    let mut transaction = store.begin_write().unwrap();
    transaction.insert("a", &member(1, 1)).unwrap();
    assert!(matches!(store.insert("b", &member(2, 1)), Err(Error::Busy)));
    let (changed, is_changed) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let other = store.clone();
    let second = thread::spawn(move || {
        transaction.insert("c", &member(3, 1)).unwrap();
        let refused = other.insert("d", &member(4, 1));
        assert!(matches!(refused, Err(Error::Busy)));
        changed.send(()).unwrap();
        ended.recv().unwrap();
        transaction.commit().unwrap();
    });
    is_changed.recv().unwrap();
    assert!(matches!(store.try_begin_write(), Err(Error::Busy)));
    // This thread holds nothing any more, and waits.
    let queued = store.queue().insert("e", &member(5, 1)).unwrap();
    end.send(()).unwrap();
    queued.wait().unwrap();
    second.join().unwrap();
    assert_eq!(store.snapshot().unwrap().len(), 3);
    assert_eq!(store.close().unwrap(), Closed::File);
    check_clean(&place.store());
}

#[test]
fn second_transaction_of_a_thread_is_refused_as_busy() {
    let place = Place::new();
    let store = store(&place, 10);
    let signature = member(1, 1);
    let mut transaction = store.begin_write().unwrap();
    transaction.insert("a", &signature).unwrap();
    // On this thread waiting would never end.
    let other_handle = store.clone();
    let busy =
        |result: Result<(), Error>| assert!(matches!(result, Err(Error::Busy)), "{result:?}");
    busy(other_handle.begin_write().map(drop));
    busy(store.try_begin_write().map(drop));
    busy(store.insert("b", &signature).map(drop));
    busy(store.upsert("b", &signature).map(drop));
    busy(store.insert_if_new("b", &signature).map(drop));
    busy(store.insert(Document::without_key(), &signature).map(drop));
    busy(store.remove("a").map(drop));
    thread::scope(|scope| {
        let tried = scope.spawn(|| store.try_begin_write().map(drop));
        busy(tried.join().unwrap());
        // Another thread waits for its turn, and gets it.
        let (sender, receiver) = mpsc::channel();
        let waiter = store.clone();
        scope.spawn(move || {
            let result = waiter.insert("c", &member(2, 2));
            sender.send(result).unwrap();
        });
        let early = receiver.recv_timeout(Duration::from_millis(100));
        assert!(early.is_err(), "two wrote at a time");
        transaction.commit().unwrap();
        assert_eq!(receiver.recv().unwrap().unwrap(), DocumentId::new(1));
    });
    drop(store.try_begin_write().unwrap());
    assert_eq!(store.snapshot().unwrap().len(), 2);
}

/// A panic in the middle drops a transaction, and the next one may begin.
#[test]
fn panicked_transaction_changes_nothing() {
    let place = Place::new();
    let store = store(&place, 4);
    let panicked = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut transaction = store.begin_write().unwrap();
            for number in 0..10_u64 {
                let key = number.to_le_bytes();
                transaction.insert(key, &member(1, number)).unwrap();
            }
            std::panic::resume_unwind(Box::new("stop"));
        });
        writer.join().is_err()
    });
    assert!(panicked && store.snapshot().unwrap().is_empty());
    let id = store.insert(Document::without_key(), &member(1, 11));
    assert_eq!(id.unwrap(), DocumentId::new(0));
    drop(store);
    check_clean(&place.store());
}

#[test]
fn snapshots_do_not_stop_the_writer_and_outlive_the_handle() {
    let place = Place::new();
    let store = store(&place, 4);
    let mut held = Vec::new();
    for number in 0..60u64 {
        held.push(store.snapshot().unwrap());
        let mut transaction = store.begin_write().unwrap();
        transaction
            .insert(number.to_le_bytes(), &member(1, number))
            .unwrap();
        if number % 3 == 2 {
            transaction.remove((number - 1).to_le_bytes()).unwrap();
        }
        transaction.commit().unwrap();
    }
    drop(store);
    assert!(matches!(
        crate::common::impatient().open(place.store()),
        Err(Error::Locked { .. })
    ));
    let threads: Vec<_> = (0u64..)
        .zip(held)
        .map(|(commits, snapshot)| {
            thread::spawn(move || {
                let live: Vec<u64> = (0..commits)
                    .filter(|number| number % 3 != 1 || *number == commits - 1)
                    .collect();
                let found = snapshot.query(&member(1, 0)).run().unwrap();
                let mut ids: Vec<u64> = found.iter().map(|found| found.id().get()).collect();
                ids.sort_unstable();
                assert_eq!(ids, live);
                assert_eq!(snapshot.len(), live.len() as u64);
                let stats = snapshot.stats().run().unwrap();
                let documents = stats.tables.iter().find(|table| table.name == "documents");
                let rows = documents.unwrap().rows - stats.dead_rows;
                assert_eq!(rows, live.len() as u64);
                let records = snapshot.iter();
                // The iterator keeps the snapshot that it reads.
                drop(snapshot);
                let ids: Vec<u64> = records.map(|record| record.unwrap().id().get()).collect();
                assert_eq!(ids, live);
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    // The last snapshot closed the file, and properly.
    let store = Store::open_read_only(place.store()).unwrap();
    assert_eq!(store.snapshot().unwrap().len(), 40);
    drop(store);
    check_clean(&place.store());
}

#[test]
fn a_transaction_outlives_the_handle() {
    let place = Place::new();
    let store = store(&place, 4);
    let mut transaction = store.begin_write().unwrap();
    drop(store);
    transaction
        .insert(Document::without_key(), &member(1, 1))
        .unwrap();
    transaction.commit().unwrap();
    let store = Store::open_read_only(place.store()).unwrap();
    assert_eq!(store.snapshot().unwrap().len(), 1);
}
