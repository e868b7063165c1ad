use crate::error::Error;
use crate::query::bounds::SearchOptions;
use crate::sample::one_in;
use crate::store::Store;
use crate::testing::{Random, change, kinds, records, signatures, store, store_of};
use crate::types::{Document, Match, Matches, Scope};
use resemblance_sketch::schema::{MinHash, Schema};

use super::*;

/// A scan, a document that is left out, a budget and a limit: one in seven signatures is asked alone, each with
/// `RESEMBLANCE_TESTS=all`.
#[test]
fn query_batch_applies_options_to_each() {
    let mut random = Random(2);
    let mut excluded = 0;
    for schema in kinds() {
        let store = store(&schema, 60);
        for _ in 0..5 {
            let mut transaction = store.begin_write().unwrap();
            change(&mut transaction, &mut random, &schema, 60);
            transaction.commit().unwrap();
        }
        let snapshot = store.snapshot().unwrap();
        // More than one thread's share.
        let signatures = signatures(&schema, &mut random, 70);
        let all = snapshot.query(&signatures).run().unwrap();
        let exclude = all.iter().flatten().next().map(Match::id);
        let base = SearchOptions::default();
        for options in [
            base,
            SearchOptions { exclude, ..base },
            SearchOptions {
                exclude,
                probe_budget: Some(3),
                ..base
            },
            SearchOptions {
                exclude,
                scan: Some(true),
                limit: Some(2),
                ..base
            },
            SearchOptions {
                scan: Some(false),
                limit: Some(1),
                ..base
            },
            SearchOptions {
                scan: Some(false),
                limit: Some(0),
                ..base
            },
        ] {
            let many = snapshot.query(&signatures).options(options).run().unwrap();
            let found = |matches: &Matches| matches.iter().any(|found| Some(found.id()) == exclude);
            let is_excluded = !many.iter().any(found);
            assert!(is_excluded || options.exclude.is_none(), "{options:?}");
            excluded += usize::from(options.exclude.is_some());
            for (signature, together) in signatures.iter().zip(many).step_by(one_in(7)) {
                let alone = snapshot.query(signature).options(options).run().unwrap();
                assert_eq!(together, alone, "{options:?}");
                let is_scan = alone.scope() == Scope::Scan;
                assert!(is_scan || options.scan != Some(true), "{options:?}");
            }
        }
        let many = snapshot.query(&signatures).candidates().unwrap();
        let apart = signatures.iter().step_by(one_in(7));
        let apart = apart.map(|s| snapshot.query(s).candidates().unwrap());
        assert!(many.into_iter().step_by(one_in(7)).eq(apart));
    }
    assert_eq!(excluded, 3 * kinds().len());
}

/// The error for a bound below the schema's threshold names the method that allows it.
#[test]
fn bounds_outside_the_schema_can_be_accepted() {
    let minhash = MinHash::new(32).threshold(0.7);
    let schema = Schema::builder().minhash(minhash).build().unwrap();
    let half = [vec![1; 16], vec![2; 16]].concat();
    let signatures = [vec![1; 32], half].map(Signature::from_minhash);
    let store = store_of(&schema, 60, signatures.clone());
    let snapshot = store.snapshot().unwrap();
    let one = || snapshot.query(&signatures[0]).min_similarity(0.4);
    let refused = one().run().unwrap_err().to_string();
    assert!(refused.contains("accept_lower_recall"), "{refused}");
    let found = one().accept_lower_recall().run().unwrap();
    let scanned = one().scan().run().unwrap();
    assert_eq!((found.len(), &found[..]), (2, &scanned[..]));
    let probability = schema.minhash().unwrap().probability(0.4);
    assert_eq!(
        (found.recall(), scanned.recall()),
        (Some(probability), None)
    );
    let many = snapshot.query(&signatures).min_similarity(0.4);
    assert_eq!(many.accept_lower_recall().run().unwrap()[0], found);
    let pairs = || snapshot.pairs().min_similarity(0.4);
    assert!(pairs().run().is_err());
    assert_eq!(pairs().accept_lower_recall().run().unwrap().count(), 1);
}

#[test]
fn query_reads_a_bucket_of_many_blocks_whole() {
    let schema = Schema::builder().minhash(MinHash::new(16)).build().unwrap();
    let hot = Signature::from_minhash(vec![5; 16]);
    let of = |number: u32| match number % 10 {
        0 => Signature::from_minhash(vec![number; 16]),
        _ => hot.clone(),
    };
    let store = store_of(&schema, 9_000, (0..20_000).map(of));
    let snapshot = store.snapshot().unwrap();
    let stats = snapshot.stats().run().unwrap();
    assert!(stats.runs.len() > 1);
    let signatures = [hot.clone(), of(10), hot];
    for limit in [usize::MAX, 2, 0] {
        let many = snapshot.query(&signatures).limit(limit).run().unwrap();
        let compared = many.iter().map(|answer| answer.candidates());
        assert!(compared.eq([18_000, 1, 18_000]));
        for (signature, together) in signatures.iter().zip(many).step_by(one_in(7)) {
            let alone = snapshot.query(signature).limit(limit).run().unwrap();
            assert_eq!(together, alone);
        }
    }
}

#[test]
fn query_refuses_impossible_bounds() {
    let snapshot = store(&kinds()[0], 10).snapshot().unwrap();
    assert_eq!(snapshot.query(&[]).run().unwrap(), []);
    let signatures = [
        Signature::from_minhash(vec![1; 32]),
        Signature::from_simhash(1),
    ];
    for refused in [
        snapshot.query(&signatures).run().err(),
        snapshot.query(&signatures).candidates().err(),
    ] {
        let refused = refused.unwrap();
        assert!(matches!(refused, Error::SignatureMismatch { .. }));
        assert!(refused.to_string().contains("at index 1 of the batch"));
    }
    let low = snapshot.query(&signatures[..1]).min_similarity(0.1);
    assert!(matches!(low.run(), Err(Error::InvalidParameter { .. })));
}

#[test]
fn bad_input_in_a_batch_names_its_index_and_changes_nothing() {
    let store: Store = store(&kinds()[5], 10);
    let mut transaction = store.begin_write().unwrap();
    let good = Signature::from_simhash(1);
    let wrong = Signature::from_minhash(vec![1; 16]);
    let long = [0; 5_000];
    for bad in [(Document::new("b"), &wrong), (Document::new(&long), &good)] {
        let batch = [(Document::new("a"), &good), bad];
        for error in [
            transaction.insert_many(&batch).run().err(),
            transaction.insert_many(&batch).if_new().run().err(),
        ] {
            let error = error.unwrap();
            assert!(error.to_string().contains("at index 1 of the batch"));
        }
    }
    assert!(transaction.is_empty());
    let batch = [(Document::new("a"), &good)];
    transaction.insert_many(&batch).run().unwrap();
    transaction.commit().unwrap();
    assert_eq!(records(&store).len(), 1);
}
