//! Large buckets, equal documents, and the estimates and reports of a join.

use super::*;
use crate::query::Bounds;
use crate::snapshot::Snapshot;

fn of_equal(count: usize, flush_after: u64, schema: Schema) -> Snapshot {
    let signature = signature(&schema, &mut Random(3));
    let store = store_of(&schema, flush_after, std::iter::repeat_n(signature, count));
    store.snapshot().unwrap()
}

/// Tests one in three schemas, one for each kind of signature. With `RESEMBLANCE_TESTS=all`, tests
/// all of them with four times the number of documents.
#[test]
fn equal_documents_are_not_compared_with_each_other() {
    let part = one_in(4);
    let count = 10_000 / part;
    for schema in schemas().into_iter().step_by(one_in(3)) {
        let snapshot = of_equal(count, 4_000 / part as u64, schema);
        for batch_documents in [None, Some(1_000 / part)] {
            let bounds = Bounds::new();
            let options = SearchOptions::default();
            let mut links = join(&snapshot, bounds, options, true, batch_documents);
            assert_eq!(links.by_ref().count(), count - 1);
            assert_eq!(links.comparisons(), 0);
            let mut pairs = join(&snapshot, bounds, options, false, batch_documents);
            // The number of pairs is the square of the number of documents.
            let first = pairs.by_ref().take(2_000_000 / (part * part));
            let last = first.last().unwrap().unwrap();
            assert!(last.a < last.b && last.b.get() > 1_000 / part as u64);
            assert_eq!(pairs.comparisons(), 0);
        }
    }
}

/// Returns documents that are all in one bucket of the first lane; `equal` of them share each
/// signature.
fn in_one_bucket(documents: u32, equal: u32) -> Snapshot {
    let schema = Schema::builder().minhash(MinHash::new(16).banding(2, 8));
    let signature = |number| [vec![7; 8], vec![number / equal; 8]].concat();
    let signatures = (0..documents).map(signature).map(Signature::from_minhash);
    let store = store_of(&schema.build().unwrap(), 16_000, signatures);
    store.snapshot().unwrap()
}

#[test]
fn join_counts_its_comparisons() {
    // Two each of a hundred and fifty signatures.
    let snapshot = in_one_bucket(300, 2);
    // Small batches are read from the file, and once from signatures that are all in memory.
    for (batch_documents, is_in_memory) in [(None, true), (Some(16), false), (Some(16), true)] {
        let joined = |options| {
            let mut pairs = join(&snapshot, Bounds::new(), options, false, batch_documents);
            if is_in_memory {
                pairs.settings_mut().options.memory_bytes = Some(1 << 20);
            }
            pairs
        };
        let options = SearchOptions::default();
        let mut pairs = joined(options);
        assert_eq!(pairs.by_ref().count(), 150);
        assert_eq!(pairs.comparisons(), 150 * 149 / 2);
        let options = SearchOptions {
            max_bucket: Some(10),
            ..options
        };
        let mut pairs = joined(options);
        assert_eq!(pairs.by_ref().count(), 150);
        assert_eq!(pairs.comparisons(), 10 * 9 / 2 + 10 * 140);
        let left_out = pairs.left_out();
        let figures = (left_out.buckets, left_out.documents, left_out.pairs);
        assert_eq!(figures, (1, 280, 280 * 279 / 2 - 140));
    }
}

#[test]
fn join_handles_many_fingerprints_in_one_bucket() {
    // More than are searched for partners one by one, and more than a round compares.
    let schema = Schema::builder().simhash(SimHash::bits64());
    let mut random = Random(9);
    let mut fingerprints: Vec<u64> = Vec::new();
    for number in 0..1_500 {
        fingerprints.push(match number % 10 {
            3 => fingerprints[number - 3] ^ 1 << random.below(64),
            _ => random.next() >> 16,
        });
    }
    let signatures = fingerprints.iter().copied().map(Signature::from_simhash);
    let store = store_of(&schema.build().unwrap(), 16_000, signatures);
    let snapshot = store.snapshot().unwrap();
    let mut expected = Vec::new();
    for (b, second) in fingerprints.iter().enumerate() {
        let near = |(_, first): &(usize, &u64)| (*first ^ second).count_ones() <= 3;
        let earlier = fingerprints[..b].iter().enumerate().filter(near);
        expected.extend(earlier.map(|(a, _)| (a as u64, b as u64)));
    }
    expected.sort_unstable();
    assert!(expected.len() >= 150);
    let mut orders = BTreeSet::new();
    for threads in [1, 4] {
        let options = in_threads(threads);
        let mut pairs = join(&snapshot, Bounds::new(), options, false, None);
        let (order, _) = in_order(&mut pairs, false);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, expected);
        // All but the few whose flipped bit is among the first sixteen.
        assert!(pairs.comparisons() > 1_400 * 1_399 / 2);
        orders.insert(order);
    }
    assert_eq!(orders.len(), 1);
}

#[test]
fn a_cluster_with_a_large_share_is_suspicious() {
    let schema = || Schema::builder().minhash(MinHash::new(16)).build().unwrap();
    let snapshot = of_equal(1_000, 4_000, schema());
    let clusters = snapshot.clusters().run().unwrap();
    let found = clusters.suspicious()[0];
    assert_eq!((found.first.get(), found.documents), (0, 1_000));
    assert!((found.share - 1.0).abs() < 1e-12);
    assert_eq!(clusters.count(), 1);
    let snapshot = of_equal(999, 4_000, schema());
    let clusters = snapshot.clusters().run().unwrap();
    assert!(clusters.suspicious().is_empty());
}

/// With one in three schemas, with all of them with `RESEMBLANCE_TESTS=all`.
#[test]
fn join_estimate_is_near_the_actual_work() {
    let snapshot = of_equal(
        300,
        4_000,
        Schema::builder().minhash(MinHash::new(16)).build().unwrap(),
    );
    let expected = snapshot.pairs().estimate().unwrap();
    let lanes = u64::from(snapshot.view().context().lanes.band_count());
    assert_eq!((expected.documents, expected.postings), (300, 300 * lanes));
    assert_eq!(
        (expected.signatures, expected.pairs),
        (300 * lanes, 300 * 299 / 2)
    );
    // A look at some of them shows that they are equal.
    assert!(expected.comparisons <= 4 * lanes, "{expected:?}");
    assert!(expected.seconds > 0.0 && expected.memory_bytes > 300 * 136);

    for schema in schemas().into_iter().step_by(one_in(3)) {
        let snapshot = filled(schema, 77);
        let expected = snapshot.pairs().estimate().unwrap();
        let mut pairs = join(
            &snapshot,
            Bounds::new(),
            SearchOptions::default(),
            false,
            None,
        );
        let found = pairs.by_ref().count() as u64;
        assert!(
            (found / 4..=4 * found).contains(&expected.pairs),
            "{found}: {expected:?}"
        );
        assert!(expected.comparisons >= pairs.comparisons(), "{expected:?}");
    }
    // Different documents in one large bucket: few are near.
    let expected = in_one_bucket(600, 30).pairs().estimate().unwrap();
    let near = 20 * (30 * 29 / 2);
    assert!(
        (near / 2..near * 2).contains(&expected.pairs),
        "{near}: {expected:?}"
    );
    let refused = snapshot
        .pairs()
        .bounds(Bounds::new().min_similarity(2.0))
        .estimate();
    assert!(refused.is_err());
}
