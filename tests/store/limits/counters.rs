//! Counters near their ends: they stop with an error, and what is there stays.

use std::path::Path;

use resemblance::schema::Rebanding;
use resemblance::{Error, Result, Store};

use crate::common::small::{schema, signature};
use crate::common::{Place, check_clean, sealing_after};
use crate::limits::state;

/// Whatever a commit brings, it is refused for the counter of this name.
#[track_caller]
fn refused<T>(result: Result<T>, name: &str) {
    match result.map(drop) {
        Err(error @ Error::InvalidParameter { parameter, .. }) => {
            assert_eq!(parameter, name);
            assert!(error.to_string().contains("build a new store"), "{error}");
        }
        other => panic!("{other:?}, expected an error about {name}"),
    }
}

fn open(path: &Path) -> Store {
    sealing_after(4).open(path).unwrap()
}

/// Documents with these numbers, and no others, in a file in which nothing is wrong.
#[track_caller]
fn holds(path: &Path, numbers: std::ops::Range<u32>) {
    check_clean(path);
    let snapshot = open(path).snapshot().unwrap();
    assert_eq!(snapshot.len(), numbers.len() as u64);
    for number in numbers {
        let found = snapshot.query(&signature(number)).run().unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].key(), Some(&number.to_le_bytes()[..]));
    }
}

fn insert(store: &Store, number: u32) -> Result<()> {
    let key = number.to_le_bytes();
    store.insert(key, &signature(number)).map(drop)
}

/// Inserts until that is refused; how many went in.
fn fill(path: &Path, first: u32, name: &str) -> u32 {
    let store = open(path);
    for number in first..first + 1_000 {
        if let Err(error) = insert(&store, number) {
            refused::<()>(Err(error), name);
            return number - first;
        }
    }
    panic!("{name} never ran out");
}

#[test]
fn exhausted_commit_numbers_lose_no_document() {
    let place = Place::new();
    let path = place.store();
    drop(Store::create(&path, schema()).unwrap());
    state::change(&path, |state| state.commit = u64::MAX - 11);
    assert_eq!(fill(&path, 0, "commits"), 11);
    let store = open(&path);
    refused(store.upsert(3u32.to_le_bytes(), &signature(99)), "commits");
    refused(store.remove(3u32.to_le_bytes()), "commits");
    // A transaction without changes needs no number.
    store.begin_write().unwrap().commit().unwrap();
    assert!(store.remove("nothing").unwrap().is_none());
    drop(store);
    let other_bands = Rebanding::new().threshold(0.3);
    refused(Store::reband(&path, &other_bands).run(), "commits");
    refused(Store::compact(&path).run(), "commits");
    holds(&path, 0..11);
}

#[test]
fn exhausted_run_numbers_lose_no_document() {
    for left in [0, 1, 2, 5, 6, 7] {
        let place = Place::new();
        let path = place.store();
        drop(Store::create(&path, schema()).unwrap());
        state::change(&path, |state| state.next_run = u32::MAX - left);
        // A seal every four documents, and merges between them: the last of these may be what fails.
        let inserted = fill(&path, 0, "runs");
        assert!((3..=4 * left + 3).contains(&inserted), "{left}: {inserted}");
        let store = open(&path);
        refused(insert(&store, 500), "runs");
        assert!(
            !store
                .snapshot()
                .unwrap()
                .contains(500u32.to_le_bytes())
                .unwrap()
        );
        drop(store);
        holds(&path, 0..inserted);
        let other_bands = Rebanding::new().threshold(0.3);
        if left > 1 {
            // One run or several: compaction may have nothing to merge, reband always writes one.
            refused(Store::reband(&path, &other_bands).run(), "runs");
        }
        holds(&path, 0..inserted);
    }
}

#[test]
fn exhausted_moved_postings_counter_refuses_changes() {
    let place = Place::new();
    let path = place.store();
    let lanes = schema().lanes() as u64;
    drop(Store::create(&path, schema()).unwrap());
    state::change(&path, |state| state.postings_moved = u64::MAX - 40 * lanes);
    assert_eq!(fill(&path, 0, "postings moved"), 40);
    let store = open(&path);
    refused(store.remove(3u32.to_le_bytes()), "postings moved");
    drop(store);
    holds(&path, 0..40);
    // Compaction moves nothing that counts.
    Store::compact(&path).run().unwrap();
    holds(&path, 0..40);
    // With other bands the count is another; it may not be less than what was counted.
    Store::reband(&path, &Rebanding::new().threshold(0.3))
        .run()
        .unwrap();
    holds(&path, 0..40);
    refused(insert(&open(&path), 40), "postings moved");
    holds(&path, 0..40);
}

/// Counters that no sequence of changes makes are damage, even where their checksum is right.
#[test]
fn impossible_counters_are_detected() {
    let place = Place::new();
    let path = place.store();
    let store = sealing_after(4).create(&path, schema()).unwrap();
    (0..10).for_each(|number| insert(&store, number).unwrap());
    store.remove(1u32.to_le_bytes()).unwrap();
    drop(store);
    let changes: [fn(&mut state::State); 9] = [
        |state| state.documents = u64::MAX,
        |state| state.documents = state.next_id,
        |state| state.deleted_documents = u64::MAX,
        |state| state.unflushed_documents = u64::MAX,
        |state| state.unflushed_documents = state.next_id - state.flushed_below + 1,
        |state| state.documents = state.unflushed_documents - 1,
        |state| state.next_id = 0,
        |state| state.flushed_below = state.next_id + 1,
        |state| state.next_run = 0,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let changed = place.file("changed");
        std::fs::copy(&path, &changed).unwrap();
        state::change(&changed, change);
        for opened in [Store::open(&changed), Store::open_read_only(&changed)] {
            let error = opened
                .err()
                .map(|error| matches!(error, Error::Corrupt { .. }));
            assert_eq!(error, Some(true), "{number}");
        }
    }
    holds_but(&path, 1);
}

fn holds_but(path: &Path, removed: u32) {
    check_clean(path);
    let snapshot = open(path).snapshot().unwrap();
    for number in 0..10u32 {
        let found = snapshot.contains(number.to_le_bytes()).unwrap();
        assert_eq!(found, number != removed);
    }
}
