//! What fits into a store, what does not, and what comes back.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

#[path = "limits/adversarial.rs"]
mod adversarial;
#[path = "limits/colliding_keys.rs"]
mod colliding_keys;
mod common;
#[path = "limits/counters.rs"]
mod counters;
#[path = "limits/documents.rs"]
mod documents;
#[path = "limits/hot_buckets.rs"]
mod hot_buckets;
#[path = "limits/last_ids.rs"]
mod last_ids;
#[path = "limits/one_bucket.rs"]
mod one_bucket;
#[path = "limits/options.rs"]
mod options;
#[path = "limits/schemas.rs"]
mod schemas;
#[path = "limits/state.rs"]
mod state;

use std::time::Instant;

use common::small::{schema, signature};
use common::{Place, check_clean, sealing_after};
use resemblance::{
    By, Document, DocumentId, EmptyDocuments, Error, MinHash, Novelty, Schema, Signature, SimHash,
    Store, Text,
};

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let place = Place::new();
    let store = Store::create(place.store(), schema()).unwrap();
    store.insert("present", &signature(1)).unwrap();
    let other = Schema::builder()
        .text(Text::words(3))
        .minhash(MinHash::new(16));
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
        assert!(
            matches!(error, Some(Error::SignatureMismatch { .. })),
            "{error:?}"
        );
    };
    let invalid = |error: Option<Error>, expected: &str| {
        let named = matches!(&error, Some(Error::InvalidParameter { parameter, .. })
            if *parameter == expected);
        assert!(named, "{error:?}");
    };
    for misfit in &misfits {
        mismatch(transaction.insert("new", misfit).err());
        mismatch(transaction.upsert("present", misfit).err());
        mismatch(transaction.insert_if_new("present", misfit).err());
        mismatch(transaction.append(misfit).err());
        mismatch(transaction.query(misfit).run().err());
        mismatch(transaction.query(misfit).scan().run().err());
        let snapshot = store.snapshot().unwrap();
        mismatch(snapshot.query(misfit).run().err());
        mismatch(snapshot.nearest(misfit, 1).err());
        mismatch(snapshot.candidates(misfit).err());
    }
    let good = signature(2);
    let long_key = vec![b'k'; 4_097];
    invalid(transaction.insert(&long_key, &good).err(), "key");
    invalid(transaction.upsert(&long_key, &good).err(), "key");
    invalid(transaction.insert_if_new(&long_key, &good).err(), "key");
    assert!(!transaction.contains(&long_key).unwrap());
    assert!(transaction.remove(&long_key).unwrap().is_none());
    let long_payload = vec![0; (64 << 20) + 1];
    let document = || Document::new("new").payload(&long_payload);
    invalid(transaction.insert(document(), &good).err(), "payload");
    invalid(transaction.upsert(document(), &good).err(), "payload");
    let exists = transaction.insert("present", &good).err();
    assert!(
        matches!(exists, Some(Error::KeyExists { .. })),
        "{exists:?}"
    );
    // The transaction goes on after all of these.
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
fn no_minhash_values_are_none() {
    let place = Place::new();
    let schema = Schema::builder().simhash(SimHash::bits64());
    let store = Store::create(place.store(), schema.build().unwrap()).unwrap();
    let signature = Signature::from_parts(Some(Vec::new()), Some(5));
    assert_eq!(signature, Signature::from_simhash(5));
    let new = store.insert_if_new("a", &signature).unwrap();
    assert!(matches!(new, Novelty::New(_)));
    let Novelty::NearDuplicate(found) = store.insert_if_new("b", &signature).unwrap() else {
        panic!("the second is like the first");
    };
    assert_eq!((found.similarity(), found.distance()), (None, Some(0)));
}

#[test]
fn a_recall_is_looked_at_even_where_the_bands_are_given() {
    for recall in [f64::NAN, 0.0, 1.0, -1.0] {
        let minhash = MinHash::new(128).banding(8, 4).recall(recall);
        let refused = Schema::builder().minhash(minhash).build().err();
        let named = matches!(&refused, Some(Error::InvalidParameter { parameter, .. })
            if *parameter == "recall");
        assert!(named, "{recall}: {refused:?}");
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
fn ids_run_out_without_a_loss() {
    let place = Place::new();
    let open = || sealing_after(2).open(place.store()).unwrap();
    drop(Store::create(place.store(), schema()).unwrap());
    state::change(&place.store(), |state| {
        state.next_id = u64::MAX - 6;
        state.sealed_below = u64::MAX - 6;
    });
    let store = open();
    for number in 0..5 {
        store.insert([number], &signature(number.into())).unwrap();
    }
    store.remove([0]).unwrap();
    let mut transaction = store.begin_write().unwrap();
    let full = transaction.upsert([1], &signature(9)).err();
    let named = matches!(&full, Some(Error::InvalidParameter { parameter, .. })
        if *parameter == "documents");
    assert!(named, "{full:?}");
    // The upsert had removed the old document: this must not be committed.
    assert!(matches!(transaction.commit(), Err(Error::Closed { .. })));
    drop(store);
    check_clean(&place.store());
    let snapshot = open().snapshot().unwrap();
    for number in 1..5 {
        assert!(snapshot.contains([number]).unwrap());
    }
    assert_eq!(snapshot.iter().count(), 4);
}

#[test]
fn runs_run_out_without_a_loss() {
    let place = Place::new();
    drop(Store::create(place.store(), schema()).unwrap());
    state::change(&place.store(), |state| state.next_run = u32::MAX);
    let store = sealing_after(2).open(place.store()).unwrap();
    store.insert("a", &signature(1)).unwrap();
    let mut transaction = store.begin_write().unwrap();
    assert!(transaction.insert("b", &signature(2)).is_err());
    // The memtable was to be sealed and could not be.
    assert!(matches!(transaction.commit(), Err(Error::Closed { .. })));
    assert!(store.snapshot().unwrap().contains("a").unwrap());
    drop(store);
    check_clean(&place.store());
}

#[test]
fn large_payloads_come_back() {
    let place = Place::new();
    let payload = |number: u8| vec![number; 3 << 20];
    let store = sealing_after(3).create(place.store(), schema()).unwrap();
    let mut transaction = store.begin_write().unwrap();
    for number in 0..6u8 {
        let (key, payload) = ([number], payload(number));
        let document = Document::new(&key).payload(&payload).stamp(number.into());
        transaction
            .insert(document, &signature(number.into()))
            .unwrap();
    }
    let read = |record: Option<resemblance::Record>, number: u8| {
        assert!(record.unwrap().payload() == payload(number), "{number}");
    };
    (0..6).for_each(|number| read(transaction.get([number]).unwrap(), number));
    transaction.commit().unwrap();
    let limit = vec![9; 64 << 20];
    let mut transaction = store.begin_write().unwrap();
    let document = Document::new("limit").payload(&limit);
    transaction.insert(document, &signature(77)).unwrap();
    transaction.commit().unwrap();
    drop(store);
    let snapshot = Store::open(place.store()).unwrap().snapshot().unwrap();
    (0..6).for_each(|number| read(snapshot.get([number]).unwrap(), number));
    assert!(snapshot.get("limit").unwrap().unwrap().payload() == limit);
}

#[test]
fn what_a_long_transaction_has_written_can_be_removed_by_it() {
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
        let scanned = transaction.query(&asked).max_distance(64);
        let scanned = scanned.by(By::SimHash).scan().run().unwrap();
        assert_eq!(scanned.len() as u64, transaction.len());
    }
    transaction.commit().unwrap();
    let records = store.snapshot().unwrap().iter();
    let ids: Vec<u64> = records.map(|record| record.unwrap().id().get()).collect();
    assert_eq!(ids, (7..14).collect::<Vec<u64>>());
    drop(store);
    check_clean(&place.store());
}

#[test]
fn schemas_come_back_as_they_were_built() {
    let place = Place::new();
    let minhash = || MinHash::new(128).threshold(0.7).recall(0.99).code_bits(48);
    let simhash = || SimHash::bits64().max_distance(6);
    let builders = [
        Schema::builder().minhash(minhash()),
        Schema::builder()
            .simhash(simhash())
            .expected_documents(u64::MAX),
        Schema::builder()
            .minhash(minhash())
            .simhash(simhash())
            .seed(u64::MAX),
        Schema::builder()
            .text(Text::characters(256))
            .minhash(MinHash::new(1_024)),
        Schema::builder()
            .simhash(simhash())
            .empty_documents(EmptyDocuments::Alike),
    ];
    for (number, builder) in builders.into_iter().enumerate() {
        let path = place.file(&number.to_string());
        let schema = builder.build().unwrap();
        let store = Store::create(&path, schema.clone()).unwrap();
        assert_eq!(*store.schema(), schema);
        drop(store);
        let store = Store::open(&path).unwrap();
        assert_eq!(*store.schema(), schema);
        assert_eq!(store.schema().to_string(), schema.to_string());
        let sketch = |schema: &Schema| schema.sketcher().features(["a", "b", "c"]).unwrap();
        store.append(&sketch(&schema)).unwrap();
        let signature = sketch(store.snapshot().unwrap().schema());
        assert_eq!(signature, sketch(&schema));
    }
}
