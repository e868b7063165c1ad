//! Limits: values that fit into a store, values that do not, and reading them back.

mod colliding_keys;
mod counters;
mod documents;
mod hot_buckets;
mod last_ids;
mod one_bucket;
mod options;
mod schemas;
mod state;

use std::time::Instant;

use crate::common::small::{schema, signature};
use crate::common::{Place, check_clean, refused};
use resemblance::{
    Bounds, Document, DocumentId, Error, Family, MinHash, Novelty, Schema, Signature, SimHash,
    Store, Text,
};

#[test]
fn mismatched_input_is_refused_and_changes_nothing() {
    let place = Place::new();
    let store = Store::create(place.store(), schema()).unwrap();
    store.insert("present", &signature(1)).unwrap();
    let other = Schema::builder()
        .text(Text::words(3))
        .minhash(MinHash::new(16).value_bits(32));
    let other = other.simhash(SimHash::bits64()).build().unwrap();
    let misfits = [
        Signature::from_minhash(vec![1; 16]),
        Signature::from_simhash(1),
        Signature::from_parts(Some(vec![1; 15]), Some(1)),
        Signature::from_parts(Some(vec![1; 17]), Some(1)),
        Signature::from_parts(Some(Vec::new()), Some(1)),
        Signature::from_parts(None, None),
        other
            .sketcher()
            .text("a few words of another recipe")
            .unwrap(),
    ];
    let mut transaction = store.begin_write().unwrap();
    let mismatch = |error: Option<Error>| {
        let is_named = matches!(error, Some(Error::SignatureMismatch { .. }));
        assert!(is_named, "{error:?}");
    };
    for misfit in &misfits {
        mismatch(transaction.insert("new", misfit).err());
        mismatch(transaction.upsert("present", misfit).err());
        mismatch(transaction.insert_if_new("present", misfit).err());
        mismatch(transaction.insert(Document::without_key(), misfit).err());
        mismatch(transaction.query(misfit).run().err());
        mismatch(transaction.query(misfit).scan().run().err());
        let snapshot = store.snapshot().unwrap();
        mismatch(snapshot.query(misfit).run().err());
        mismatch(snapshot.nearest(misfit, 1).run().err());
        mismatch(snapshot.query(misfit).candidates().err());
    }
    let good = signature(2);
    let long_key = vec![b'k'; 4_097];
    refused(transaction.insert(&long_key, &good), "key");
    refused(transaction.upsert(&long_key, &good), "key");
    refused(transaction.insert_if_new(&long_key, &good), "key");
    assert!(!transaction.contains(&long_key).unwrap());
    assert!(transaction.remove(&long_key).unwrap().is_none());
    let long_payload = vec![0; (64 << 20) + 1];
    let document = || Document::new("new").payload(&long_payload);
    refused(transaction.insert(document(), &good), "payload");
    refused(transaction.upsert(document(), &good), "payload");
    let exists = transaction.insert("present", &good).err();
    assert!(
        matches!(exists, Some(Error::KeyExists { .. })),
        "{exists:?}"
    );
    // After all of these, the transaction continues.
    assert_eq!(transaction.len(), 1);
    assert_eq!(
        transaction.insert("new", &good).unwrap(),
        DocumentId::new(1)
    );
    transaction.commit().unwrap();
    let record = store.snapshot().unwrap().get("present").unwrap().unwrap();
    assert_eq!(record.signature().minhash(), signature(1).minhash());
    drop(store);
    check_clean(&place.store());
}

/// Other programs hand over an empty list where there are no MinHash values.
#[test]
fn minhash_without_values_is_an_error() {
    let schema = Schema::builder().simhash(SimHash::bits64());
    let store = Store::in_memory(schema.build().unwrap()).unwrap();
    let signature = Signature::from_parts(Some(Vec::new()), Some(5));
    assert_eq!(signature, Signature::from_simhash(5));
    let new = store.insert_if_new("a", &signature).unwrap();
    assert!(matches!(new, Novelty::New { .. }));
    let Novelty::NearDuplicate(found) = store.insert_if_new("b", &signature).unwrap() else {
        panic!("the second is like the first");
    };
    assert_eq!((found.similarity(), found.distance()), (None, Some(0)));
}

#[test]
fn recall_is_validated_beside_given_bands() {
    for recall in [f64::NAN, 0.0, 1.0, -1.0] {
        let minhash = MinHash::new(128).banding(8, 4).recall(recall);
        refused(Schema::builder().minhash(minhash).build(), "recall");
    }
}

/// Whether the long forms are wanted.
fn is_long() -> bool {
    std::env::var("RESEMBLANCE_LONG").is_ok_and(|long| long != "0")
}

/// How long a test has taken so far, and the most memory that this process has taken.
fn note(what: &str, begun: Instant) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    let (seconds, peak) = (begun.elapsed().as_secs_f64(), peak.unwrap_or_default());
    println!("{what}: {seconds:.1} s, {peak}");
}

#[test]
fn a_long_transaction_can_remove_its_own_documents() {
    let place = Place::new();
    let store = Store::create(place.store(), schema()).unwrap();
    let payload = vec![1; 1 << 20];
    let mut transaction = store.begin_write().unwrap();
    // Rows are written every few MiB, so that some are in the tables and some are not.
    for number in 0..14u32 {
        let key = number.to_le_bytes();
        let document = Document::new(&key).payload(&payload);
        transaction.insert(document, &signature(number)).unwrap();
        if number % 2 == 1 {
            let early = number / 2;
            assert!(
                transaction
                    .remove_id(DocumentId::new(early.into()))
                    .unwrap()
            );
            assert!(
                !transaction
                    .remove_id(DocumentId::new(early.into()))
                    .unwrap()
            );
            assert!(transaction.get(early.to_le_bytes()).unwrap().is_none());
        }
        assert!(transaction.contains(key).unwrap());
        let asked = signature(number);
        let all = Bounds::new().by(Family::SimHash).max_distance(64);
        let scanned = transaction.query(&asked).bounds(all).scan();
        let scanned = scanned.run().unwrap();
        assert_eq!(scanned.len() as u64, transaction.len());
    }
    transaction.commit().unwrap();
    let records = store.snapshot().unwrap().iter();
    let ids: Vec<u64> = records.map(|record| record.unwrap().id().get()).collect();
    assert_eq!(ids, (7..14).collect::<Vec<u64>>());
    drop(store);
    check_clean(&place.store());
}
