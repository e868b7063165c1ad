//! Shards that were merged are the store that all their documents make one after the other.

use std::ops::ControlFlow;

use crate::common::oracle::contents;
use crate::common::{Place, Random, check_clean};
use resemblance::{BulkOptions, Document, DuplicateKeys, Error, MinHash, Schema, SimHash, Store};

fn schema(threshold: f64) -> Schema {
    let minhash = MinHash::new(32).threshold(threshold);
    let builder = Schema::builder().minhash(minhash);
    builder.simhash(SimHash::bits64()).build().unwrap()
}

/// Inserts documents with these numbers. Some have no key, and neighbours are near each other.
fn fill(store: &Store, numbers: impl Iterator<Item = u64>) {
    let mut transaction = store.begin_write().unwrap();
    for number in numbers {
        let features = (0..40).map(|place| Random(number / 3 * 100 + place).next());
        let signature = store.sketcher().hashes(features).unwrap();
        let key = format!("document {number}");
        let document = match number % 5 {
            0 => Document::without_key(),
            _ => Document::new(&key),
        };
        let payload = vec![number as u8; (number % 7) as usize];
        let document = document.stamp(number).payload(&payload);
        transaction.insert(document, &signature).unwrap();
    }
    transaction.commit().unwrap();
}

#[test]
fn merged_shards_equal_the_store_of_all_documents() {
    let place = Place::new();
    let paths = ["a", "b", "c"].map(|name| place.file(name));
    for (start, path) in (0..).zip(&paths) {
        // Bands may differ: those of the first shard count.
        let schema = schema(0.7 - 0.05 * start as f64);
        let store = Store::create(path, schema).unwrap();
        fill(&store, start * 300..(start + 1) * 300);
        // Removed documents stay removed.
        store
            .remove(format!("document {}", start * 300 + 1))
            .unwrap();
    }
    let expected = Store::create(place.file("expected"), schema(0.7)).unwrap();
    fill(&expected, (0..900).filter(|number| number % 300 != 1));

    let target = place.file("all");
    let report = Store::merge(&target, &paths).run().unwrap();
    assert_eq!(report.documents, 897);
    let merged = Store::open(&target).unwrap();
    assert_eq!(merged.schema(), expected.schema());
    let snapshots = [&merged, &expected].map(|store| store.snapshot().unwrap());
    let [found, wanted] = &snapshots;
    assert_eq!(contents(found), contents(wanted));
    for record in wanted.iter().step_by(50) {
        let signature = record.unwrap().signature().clone();
        let find = |snapshot: &resemblance::Snapshot| snapshot.query(&signature).run().unwrap();
        assert_eq!(find(found), find(wanted));
    }
    drop((snapshots, merged));
    check_clean(&target);
}

#[test]
fn merge_names_shards_that_do_not_fit() {
    let place = Place::new();
    let (a, b, target) = (place.file("a"), place.file("b"), place.file("all"));
    fill(&Store::create(&a, schema(0.7)).unwrap(), 0..10);
    let other = Schema::builder().minhash(MinHash::new(32)).seed(9).build();
    drop(Store::create(&b, other.unwrap()).unwrap());
    let refused = Store::merge(&target, [&a, &b]).run().unwrap_err();
    let text = refused.to_string();
    assert!(
        matches!(
            refused,
            Error::InvalidParameter {
                parameter: "shards",
                ..
            }
        ),
        "{text}"
    );
    assert!(
        text.contains(&b.display().to_string()) && text.contains("seed"),
        "{text}"
    );
    let none: [&str; 0] = [];
    let refused = Store::merge(&target, none).run();
    assert!(matches!(refused, Err(Error::InvalidParameter { .. })));
    let missing = Store::merge(&target, [a.clone(), place.file("nothing")]).run();
    assert!(matches!(missing, Err(Error::NotFound { .. })));
    // The same documents again: their keys are there.
    let twice = Store::merge(&target, [&a, &a]).run();
    assert!(matches!(twice, Err(Error::KeyTwice { .. })));
    let stopped = Store::merge(&target, [&a])
        .on_progress(|_| ControlFlow::Break(()))
        .run();
    assert!(matches!(stopped, Err(Error::Stopped { .. })));
    assert!(!target.exists());
    let rule = BulkOptions::new().duplicate_keys(DuplicateKeys::KeepFirst);
    let report = Store::merge(&target, [&a, &a]).bulk(rule).run().unwrap();
    // Two documents of ten have no key, and so are there twice.
    assert_eq!((report.documents, report.duplicates), (12, 8));
}
