//! Options at the ends of their ranges: they change speed and memory, never answers, and wrap nowhere.

use std::num::NonZeroUsize;

use resemblance::{BulkOptions, Document, DocumentId, Store, StoreOptions};

use crate::common::sample::one_in;
use crate::common::small::{schema, signature};
use crate::common::{Place, check_clean, refused};

fn fill(store: &Store) {
    for batch in 0..5 {
        let mut transaction = store.begin_write().unwrap();
        for number in batch * 40..(batch + 1) * 40u32 {
            // Two of each.
            let signature = signature(number / 2);
            transaction
                .insert(number.to_le_bytes(), &signature)
                .unwrap();
        }
        transaction.remove((batch * 40).to_le_bytes()).unwrap();
        transaction.commit().unwrap();
    }
}

/// Queries one pair in three, or each with `RESEMBLANCE_TESTS=all`.
fn holds(store: &Store) {
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.len(), 195);
    for number in (1..200u32).step_by(2 * one_in(3)) {
        let (signature, pair) = (signature(number / 2), u64::from(number / 2 * 2));
        let expected: Vec<u64> = (pair..pair + 2).filter(|id| id % 40 != 0).collect();
        for limit in [usize::MAX, 2, 1, 0] {
            let found = snapshot.query(&signature).limit(limit).run().unwrap();
            let nearest = snapshot.nearest(&signature, limit).run().unwrap();
            let expected = expected.iter().take(limit).map(|id| DocumentId::new(*id));
            assert!(found.iter().map(|found| found.id()).eq(expected.clone()));
            let first = nearest.iter().map(|found| found.id());
            assert!(first.take(expected.len()).eq(expected));
            assert_eq!(nearest.len(), limit.min(195));
        }
    }
    for (threads, max_bucket) in [(1, usize::MAX), (1_024, 2)] {
        let pairs = snapshot.pairs().threads(threads).max_bucket(max_bucket);
        assert_eq!(pairs.run().unwrap().count(), 95);
        let clusters = snapshot.clusters().threads(threads).max_bucket(max_bucket);
        assert_eq!(clusters.run().unwrap().count(), 95);
    }
}

#[test]
fn caches_flushes_and_slices_of_any_size_work() {
    let new = StoreOptions::new;
    let options = [
        new().cache_bytes(0).flush_after(1),
        new().cache_bytes(u64::MAX).flush_after(1 << 20),
        new().merge_slice(0).flush_after(3),
        new().merge_slice(u64::MAX).flush_after(3),
        new().merge_slice(1).flush_after(2).merge_in_parallel(true),
    ];
    for options in options {
        let place = Place::new();
        let store = options.create(place.store(), schema()).unwrap();
        fill(&store);
        holds(&store);
        drop(store);
        check_clean(&place.store());
        options.compact(place.store()).run().unwrap();
        holds(&options.open(place.store()).unwrap());
        check_clean(&place.store());
    }
    for documents in [0, (1 << 20) + 1] {
        let options = new().flush_after(documents);
        let created = options.create(Place::new().store(), schema());
        refused(created, "flush_after");
    }
}

#[test]
fn builds_work_with_any_memory_and_threads() {
    let new = BulkOptions::new;
    let most = NonZeroUsize::MAX;
    let options = [
        new().memory_bytes(0),
        new().memory_bytes(1).threads(most),
        new().memory_bytes(u64::MAX).threads(most),
    ];
    for options in options {
        let place = Place::new();
        let mut build = Store::bulk_build(place.store(), schema(), &options).unwrap();
        for number in 0..300u32 {
            let key = number.to_le_bytes();
            build
                .insert(Document::new(&key), &signature(number))
                .unwrap();
        }
        assert_eq!(build.finish().unwrap().documents, 300);
        check_clean(&place.store());
        let snapshot = Store::open(place.store()).unwrap().snapshot().unwrap();
        for number in 0..300 {
            assert_eq!(snapshot.query(&signature(number)).run().unwrap().len(), 1);
        }
    }
}

#[test]
fn joins_refuse_zero_or_too_many_threads() {
    let store = Store::in_memory(schema()).unwrap();
    let snapshot = store.snapshot().unwrap();
    for (join, name) in [
        (snapshot.pairs().threads(0), "threads"),
        (snapshot.pairs().threads(1_025), "threads"),
        (snapshot.pairs().threads(usize::MAX), "threads"),
        (snapshot.pairs().max_bucket(0), "max_bucket"),
    ] {
        refused(join.run(), name);
    }
}
