//! Joins whose candidates are verified by a closure.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use super::*;
use crate::error::{Error, Result};
use crate::query::Bounds;
use crate::snapshot::Snapshot;
use crate::types::DocumentId;

/// What a closure that knows nothing of texts says: any similarity, sometimes none.
fn reported(a: u64, b: u64) -> Option<f64> {
    let number = Random(a << 32 | b).below(9);
    number.checked_sub(1).map(|number| number as f64 / 7.0)
}

type Calls = Arc<Mutex<BTreeMap<(u64, u64), u32>>>;

fn counting(calls: &Calls) -> impl Fn(DocumentId, DocumentId) -> Result<Option<f64>> + use<> {
    let calls = Arc::clone(calls);
    move |a, b| {
        let ids = (a.get(), b.get());
        *calls.lock().unwrap().entry(ids).or_default() += 1;
        Ok(reported(ids.0, ids.1))
    }
}

/// What the closure says of the candidates, within the bounds.
fn settled(candidates: &PairMap, bounds: &crate::query::ResolvedBounds) -> PairMap {
    let settled = candidates.iter().map(|(ids, (estimate, distance))| {
        (*ids, (reported(ids.0, ids.1).or(*estimate), *distance))
    });
    let is_within = |(ids, (similarity, distance)): &((u64, u64), Measures)| {
        let is_exact = reported(ids.0, ids.1).is_some();
        bounds.accepts_similarity(similarity.unwrap_or(0.0), is_exact, distance.unwrap_or(0))
    };
    settled.filter(is_within).collect()
}

fn compare_with_plain_form(snapshot: &Snapshot, bounds: Bounds, most: Option<usize>) {
    let (candidates, left_out) = candidates(snapshot, bounds, most.unwrap_or(usize::MAX));
    let resolved = bounds.resolve(snapshot.schema(), false).unwrap();
    let expected = settled(&candidates, &resolved);
    let clusters = components(&expected);
    let mut orders = BTreeSet::new();
    for (threads, batch_documents) in [(1, None), (5, None), (1, Some(7)), (3, Some(7))] {
        let options = SearchOptions {
            max_bucket: most,
            ..in_threads(threads)
        };
        let calls = Calls::default();
        let pairs = join(snapshot, bounds, options, false, batch_documents);
        let mut pairs = pairs.verified(Arc::new(counting(&calls)));
        let mut order = Vec::new();
        for pair in pairs.by_ref() {
            let pair = pair.unwrap();
            let ids = (pair.a.get(), pair.b.get());
            assert_eq!(pair.is_exact, reported(ids.0, ids.1).is_some());
            assert_eq!((pair.similarity, pair.distance), expected[&ids], "{pair:?}");
            order.push(ids);
        }
        assert_eq!(order.len(), expected.len(), "{bounds:?} {most:?}");
        assert_eq!(pairs.left_out(), left_out);
        let called = std::mem::take(&mut *calls.lock().unwrap());
        let once: BTreeMap<_, u32> = candidates.keys().map(|ids| (*ids, 1)).collect();
        assert_eq!(called, once, "every candidate exactly once");
        orders.insert((batch_documents, order));
        if threads == 1 && !is_all() {
            continue;
        }

        let pairs = join(snapshot, bounds, options, false, batch_documents).unverified();
        let verify = Arc::new(counting(&calls));
        let found =
            Clusters::from_verified(pairs, verify, snapshot.len(), &mut Watch::new("")).unwrap();
        assert_eq!(found.left_out(), left_out);
        let found = found.map(|cluster| cluster.into_iter().map(|id| id.get()).collect());
        assert_eq!(found.collect::<BTreeSet<Vec<u64>>>(), clusters);
        for (ids, times) in std::mem::take(&mut *calls.lock().unwrap()) {
            assert!(
                times == 1 && candidates.contains_key(&ids),
                "{ids:?} {times}"
            );
        }
    }
    assert_eq!(orders.len(), 2, "the order depends on threads");
}

/// One in seven limits of buckets, each with `RESEMBLANCE_TESTS=all`. Clusters are made by one thread too then.
#[test]
fn verified_joins_agree_with_the_plain_algorithm() {
    for (seed, schema) in (1..).zip(schemas()) {
        let cases = cases_of(&schema, seed, &[None, Some(3)]);
        let (_folder, snapshot) = filled(schema, seed);
        for (by, most) in cases {
            compare_with_plain_form(&snapshot, Bounds::new().by(by), most);
        }
    }
}

/// Documents of one signature.
fn alike(count: u32) -> (tempfile::TempDir, Snapshot) {
    let folder = tempfile::tempdir().unwrap();
    let schema = Schema::builder().minhash(MinHash::new(16)).build().unwrap();
    let store = Store::create(folder.path().join("s"), schema).unwrap();
    let mut transaction = store.begin_write().unwrap();
    for _ in 0..count {
        let signature = Signature::from_minhash(vec![7; 16]);
        transaction
            .insert(Document::without_key(), &signature)
            .unwrap();
    }
    transaction.commit().unwrap();
    let snapshot = store.snapshot().unwrap();
    (folder, snapshot)
}

#[test]
fn equal_signatures_are_still_verified() {
    // More pairs than are verified together.
    let (_folder, snapshot) = alike(300);
    let is_near = |a: DocumentId, b: DocumentId| a.get() % 3 == b.get() % 3;
    let mut found = Vec::new();
    for threads in [1, 4] {
        let exact = move |a, b| Ok(Some(if is_near(a, b) { 0.9 } else { 0.1 }));
        let pairs = snapshot.pairs().threads(threads).verify(exact).run();
        let pairs: Vec<Pair> = pairs.unwrap().map(Result::unwrap).collect();
        assert_eq!(pairs.len(), 3 * (100 * 99 / 2));
        assert!(
            pairs
                .iter()
                .all(|pair| is_near(pair.a, pair.b) && pair.is_exact)
        );
        found.push(pairs);
        let clusters = snapshot.clusters().threads(threads).verify(exact).run();
        let clusters: Vec<_> = clusters.unwrap().collect();
        assert_eq!(clusters.len(), 3);
        assert!(clusters.iter().all(|cluster| cluster.len() == 100));
    }
    assert_eq!(found[0], found[1]);
}

#[test]
fn verified_join_links_copies_by_one_call_each() {
    let (_folder, snapshot) = alike(5_000);
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let exact = move |_, _| {
        *counted.lock().unwrap() += 1;
        Ok(Some(1.0))
    };
    let clusters = snapshot.clusters().threads(3).verify(exact).run();
    assert_eq!(clusters.unwrap().count(), 1);
    assert_eq!(*calls.lock().unwrap(), 4_999);
}

#[test]
fn a_failed_verification_ends_the_join_after_earlier_pairs() {
    let (_folder, snapshot) = alike(200);
    // In the order of the later document: those before 150 are whole.
    for wrong in [f64::NAN, -0.1, 1.1] {
        let exact = move |_, b: DocumentId| Ok(Some(if b.get() < 150 { 1.0 } else { wrong }));
        let pairs = snapshot.pairs().threads(4).verify(exact);
        let mut pairs = pairs.run().unwrap();
        let before = pairs.by_ref().take_while(Result::is_ok).count();
        assert_eq!(before, 150 * 149 / 2);
        assert!(pairs.next().is_none());
        let clusters = snapshot.clusters().threads(4).verify(exact).run();
        let refused = matches!(clusters, Err(Error::InvalidParameter { .. }));
        assert!(refused);
    }
    let failing = |_, _| Err(Error::ReadOnly);
    let mut pairs = snapshot.pairs().verify(failing).run().unwrap();
    assert!(matches!(pairs.next(), Some(Err(Error::ReadOnly))));
}

#[test]
fn a_panic_of_the_closure_is_the_callers_own() {
    let (_folder, snapshot) = alike(200);
    for threads in [1, 4] {
        let panicking = |_, b: DocumentId| match b.get() {
            199 => panic!("mine"),
            _ => Ok(None),
        };
        let pairs = snapshot.pairs().threads(threads).verify(panicking).run();
        let panic = catch_unwind(AssertUnwindSafe(|| pairs.unwrap().count()));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"mine"));
        let clusters = snapshot.clusters().run();
        assert_eq!(clusters.unwrap().count(), 1, "the store goes on");
    }
}
