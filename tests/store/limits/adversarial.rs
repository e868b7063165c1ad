//! What whoever wants to slow a store down may bring: answers stay right. With `RESEMBLANCE_LONG` it
//! prints how much longer things take than with ordinary documents.

use std::time::{Duration, Instant};

use resemblance::{Document, DocumentId, MinHash, Novelty, Schema, Signature, StoreOptions};

use crate::common::{Place, Random, check_clean};
use crate::limits::is_long;

const QUESTIONS: u64 = 5;

fn documents() -> u64 {
    if is_long() { 100_000 } else { 3_000 }
}

/// The default: 13 bands of 7 rows.
fn schema() -> Schema {
    Schema::builder()
        .minhash(MinHash::new(128))
        .build()
        .unwrap()
}

fn ordinary(number: u64) -> Signature {
    let mut random = Random(number << 20);
    Signature::from_minhash((0..128).map(|_| random.next() as u32).collect())
}

fn alike(_: u64) -> Signature {
    ordinary(0)
}

/// Different ones, unlike each other, that all share the first band.
fn in_one_bucket(number: u64) -> Signature {
    let mut values = ordinary(number).minhash().unwrap().to_vec();
    values[..7].fill(7);
    Signature::from_minhash(values)
}

fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    (run(), begun.elapsed())
}

/// How long it takes to load, to query, to scan, to ask whether a document is new, and to make clusters.
fn times(make: fn(u64) -> Signature, is_alike: bool) -> [Duration; 5] {
    let place = Place::new();
    let options = StoreOptions::new().flush_after(documents() / 4);
    let store = options.create(place.store(), schema()).unwrap();
    let signatures: Vec<Signature> = (0..documents()).map(make).collect();
    let ((), load) = timed(|| {
        for batch in signatures.chunks(signatures.len() / 10) {
            let mut transaction = store.begin_write().unwrap();
            for signature in batch {
                transaction
                    .insert(Document::without_key(), signature)
                    .unwrap();
            }
            transaction.commit().unwrap();
        }
    });
    let snapshot = store.snapshot().unwrap();
    let ask = |is_scan: bool| {
        for number in 0..QUESTIONS {
            let id = number * (documents() / QUESTIONS);
            let asked = make(id);
            let query = snapshot.query(&asked).limit(10);
            let query = if is_scan { query.scan() } else { query };
            let found = query.run().unwrap();
            let expected = if is_alike { 0..10 } else { id..id + 1 };
            let found = found.iter().map(|found| found.id());
            assert!(found.eq(expected.map(DocumentId::new)));
        }
    };
    let (((), query), ((), scan)) = (timed(|| ask(false)), timed(|| ask(true)));
    let mut transaction = store.begin_write().unwrap();
    let ((), insert) = timed(|| {
        for number in 0..QUESTIONS {
            let signature = make(documents() + number);
            let key = number.to_le_bytes();
            let novelty = transaction.insert_if_new(key, &signature).unwrap();
            assert_eq!(matches!(novelty, Novelty::New { .. }), !is_alike);
        }
    });
    drop(transaction);
    let (clusters, join) = timed(|| {
        let clusters = snapshot.clusters().max_bucket(100).run().unwrap();
        clusters
            .map(|cluster| cluster.len() as u64)
            .collect::<Vec<u64>>()
    });
    assert_eq!(clusters, if is_alike { vec![documents()] } else { vec![] });
    drop((snapshot, store));
    check_clean(&place.store());
    [load, query, scan, insert, join]
}

#[test]
fn answers_are_correct_for_adversarial_documents() {
    let ordinary = times(ordinary, false);
    for (name, adversarial) in [
        ("all alike", times(alike, true)),
        ("all in one bucket", times(in_one_bucket, false)),
    ] {
        let names = ["load", "query", "scan", "insert_if_new", "clusters"];
        for ((what, slow), usual) in names.iter().zip(adversarial).zip(ordinary) {
            let ratio = slow.as_secs_f64() / usual.as_secs_f64();
            println!("{name}, {what}: {slow:?} to {usual:?}, {ratio:.2} times");
        }
    }
}
