//! Searches among equal documents, of which one is compared, against comparisons with each.

use std::path::{Path, PathBuf};

use crate::options::StoreOptions;
use crate::query::Query;
use crate::sample::one_in;
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::testing::{Random, change, kinds, signature};
use crate::types::{DocumentId, Filter, Matches};
use resemblance_sketch::schema::Rebanding;

/// Asserts that a query has the same answer if it compares with each candidate: because the caller
/// verifies them, and because there is a budget. Returns the number of signatures that it left unread.
fn assert_as_one_by_one<'q>(store: &Store, query: impl Fn() -> Query<'q, Matches>) -> u64 {
    let before = store.metrics().signatures_read;
    let found = query().run().unwrap();
    let read = store.metrics().signatures_read - before;
    let mut unknown = query().verify(|_| Ok(None)).run().unwrap();
    // Estimates decide, but nobody can say of which documents.
    unknown.certainty = found.certainty;
    assert_eq!(found, unknown);
    assert_eq!(found, query().probe_budget(1 << 40).run().unwrap());
    assert_passing(&found, &query);
    found.candidates() as u64 - read.min(found.candidates() as u64)
}

/// Asserts that a filter leaves out some of equal documents, and makes room for others.
fn assert_passing<'q>(found: &Matches, query: &impl Fn() -> Query<'q, Matches>) {
    let passes = |id: DocumentId| !id.get().is_multiple_of(3);
    let filtered = || query().filter(Filter::all().when(move |document| passes(document.id())));
    let passing = filtered().run().unwrap();
    let mut expected = query().limit(usize::MAX).run().unwrap().matches;
    expected.retain(|one| passes(one.id()));
    // If the limit is lower than the number of all, that many were found without the filter.
    expected.truncate(found.len());
    assert_eq!(*passing, expected);
    assert_eq!(*passing, *filtered().verify(|_| Ok(None)).run().unwrap());
    assert_eq!(passing, filtered().probe_budget(1 << 40).run().unwrap());
}

/// Asserts it for queries of a snapshot. Returns the number of signatures that they left unread.
fn assert_snapshot(store: &Store, snapshot: &Snapshot, random: &mut Random) -> u64 {
    let mut unread = 0;
    let report = snapshot.check().run().unwrap();
    assert!(report.is_clean(), "{report:?}");
    for limit in [0, 1, 2, 7, usize::MAX] {
        let signature = signature(snapshot.schema(), random);
        unread += assert_as_one_by_one(store, || snapshot.query(&signature).limit(limit));
        let key = random.below(40).to_string();
        if snapshot.contains(&key).unwrap() {
            let query = || snapshot.query_by_key(&key).unwrap().unwrap().limit(limit);
            unread += assert_as_one_by_one(store, query);
        }
    }
    let asked = signature(snapshot.schema(), random);
    let nearest = |n| snapshot.nearest(&asked, n).min_recall(1.0).run().unwrap();
    let (nearest, all) = (nearest(5), nearest(1_000_000));
    assert_eq!(*nearest, all[..all.len().min(5)]);
    unread
}

/// Each kind of schema with one of the ways of flushing and one of the copies in turn, and with snapshots after one commit in
/// four. With all of them with `RESEMBLANCE_TESTS=all`.
#[test]
fn equal_documents_are_found_without_comparing_each() {
    let distance = one_in(3);
    for (schema, seed) in kinds().iter().zip(1..) {
        let mut unread = 0;
        let ways = [(30, 10), (150, 100_000), (10_000, 100)].into_iter();
        for (flush_after, slice) in ways.skip(seed as usize % distance).step_by(distance) {
            let folder = tempfile::tempdir().unwrap();
            let options = StoreOptions::new()
                .flush_after(flush_after)
                .merge_slice(slice);
            let path = folder.path().join("s");
            let store = options.create(&path, schema.clone()).unwrap();
            let mut random = Random(seed << 20 | flush_after);
            let mut snapshots: Vec<Snapshot> = Vec::new();
            for round in 1..=8_usize {
                let mut transaction = store.begin_write().unwrap();
                change(&mut transaction, &mut random, schema, 80);
                for limit in [1, 3, usize::MAX] {
                    let signature = signature(schema, &mut random);
                    let query = || transaction.query(&signature).limit(limit);
                    unread += assert_as_one_by_one(&store, query);
                }
                transaction.commit().unwrap();
                snapshots.push(store.snapshot().unwrap());
                if !round.is_multiple_of(one_in(4)) {
                    continue;
                }
                for snapshot in snapshots.iter().rev().step_by(3) {
                    unread += assert_snapshot(&store, snapshot, &mut random);
                }
            }
            snapshots.clear();
            drop(store);
            unread += assert_copies(&path, &options, seed as usize, &mut random);
        }
        assert!(
            unread > 500 / (one_in(4) * distance) as u64,
            "{schema}: {unread}"
        );
    }
}

/// Makes another file of a store. The function receives the store and a path, and returns the path
/// of the file.
const COPIES: [fn(&Path, PathBuf, &StoreOptions) -> PathBuf; 4] = [
    |path, backup, options| {
        let store = options.open(path).unwrap();
        let snapshot = store.snapshot().unwrap();
        snapshot.backup(&backup).run().unwrap();
        backup
    },
    |path, repaired, _| {
        Store::repair(path, &repaired).run().unwrap();
        repaired
    },
    |path, _, options| {
        options.compact(path).run().unwrap();
        path.into()
    },
    |path, _, options| {
        let store = options.open(path).unwrap();
        let has_bands = store.schema().minhash().is_some();
        drop(store);
        if has_bands {
            let rebanding = Rebanding::new().banding(4, 2);
            Store::reband(path, &rebanding).run().unwrap();
        }
        path.into()
    },
];

/// The documents of a repaired file are in a run, for which equal ones are recorded.
const REPAIRED: usize = 1;

/// Asserts it for a repaired file and one of the copies in turn, for each with `RESEMBLANCE_TESTS=all`.
fn assert_copies(path: &Path, options: &StoreOptions, turn: usize, random: &mut Random) -> u64 {
    let mut unread = 0;
    for (number, copy) in COPIES.iter().enumerate() {
        if !(turn + number).is_multiple_of(one_in(COPIES.len())) && number != REPAIRED {
            continue;
        }
        let path = copy(path, path.with_extension(format!("{number}")), options);
        let store = options.open(path).unwrap();
        let snapshot = store.snapshot().unwrap();
        unread += assert_snapshot(&store, &snapshot, random);
    }
    unread
}
