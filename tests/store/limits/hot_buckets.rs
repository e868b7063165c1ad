//! Probes with a budget: 60,000 documents in a bucket, or a million with `RESEMBLANCE_LONG`.

use std::time::Instant;

use resemblance::search::BudgetExceeded;
use resemblance::{Document, MinHash, Novelty, Schema, Signature, SimHash, Store, StoreOptions};

use crate::common::{Place, stats};
use crate::limits::{is_long, note};

const BUDGET: u64 = 100;
/// The number of postings of a bucket that this budget allows; one more is read.
const POSTINGS: u64 = 1_024;

fn documents() -> u64 {
    if is_long() { 1_000_000 } else { 60_000 }
}

/// Four bands of two rows, three of which are the same in all: two have 14 of 16 values in common.
fn bands() -> Schema {
    let minhash = MinHash::new(16).value_bits(32);
    let minhash = minhash.banding(4, 2).threshold(0.8);
    Schema::builder().minhash(minhash).build().unwrap()
}

fn near(number: u64) -> Signature {
    let own = |place| {
        if place == 6 || place == 7 {
            number as u32
        } else {
            7
        }
    };
    Signature::from_minhash((0..16).map(own).collect())
}

/// Shares the first band alone, and is near to none.
fn far(number: u64) -> Signature {
    let own = |place| {
        if place < 2 {
            7
        } else {
            (1 << 30) + number as u32
        }
    };
    Signature::from_minhash((0..16).map(own).collect())
}

/// The top 16 bits are the same in all, the bits below a number: many are near.
fn fingerprint(number: u64) -> Signature {
    Signature::from_simhash(0xabcd << 48 | number << 20)
}

fn load(place: &Place, schema: &Schema, signature: fn(u64) -> Signature, budget: u64) -> Store {
    let options = StoreOptions::new().flush_after(documents() / 2);
    let store = options.create(place.store(), schema.clone()).unwrap();
    for batch in 0..10 {
        let numbers = batch * documents() / 10..(batch + 1) * documents() / 10;
        let signatures: Vec<Signature> = numbers.map(signature).collect();
        let batch = signatures.iter().map(|s| (Document::without_key(), s));
        let mut transaction = store.begin_write().unwrap();
        transaction
            .insert_many(&batch.collect::<Vec<_>>())
            .run()
            .unwrap();
        transaction.commit().unwrap();
    }
    drop(store);
    options.probe_budget(budget).open(place.store()).unwrap()
}

/// Returns the maximum number of blocks that the budget allows to read: in each lane of a run, the
/// allowed postings in blocks of average size, and the blocks before, between and after them.
fn most_blocks(store: &Store) -> u64 {
    let stats = stats(store);
    assert_eq!(stats.memtable_documents, 0);
    let lanes = stats.lanes.iter().skip(1);
    let of_lanes: u64 = lanes
        .map(|lane| POSTINGS * lane.blocks / lane.postings + 5)
        .sum();
    of_lanes * stats.runs.len() as u64
}

/// Checks that `run` reads no more blocks than that, and no more signatures than `signatures`.
fn reads_little<T>(store: &Store, signatures: u64, run: impl FnOnce() -> T) -> T {
    let most_blocks = most_blocks(store);
    let before = store.metrics();
    let done = run();
    let after = store.metrics();
    let blocks = after.blocks_read - before.blocks_read;
    assert!(blocks <= most_blocks, "{blocks}, at most {most_blocks}");
    let read = after.signatures_read - before.signatures_read;
    assert!(read <= signatures, "{read}, at most {signatures}");
    done
}

/// Without a budget everything is read.
fn reads_much<T>(store: &Store, run: impl FnOnce() -> T) -> T {
    let (most_blocks, before) = (most_blocks(store), store.metrics().blocks_read);
    let done = run();
    assert!(store.metrics().blocks_read - before > most_blocks);
    done
}

#[test]
fn bucket_of_all_documents_is_probed_within_the_budget() {
    let (place, begun) = (Place::new(), Instant::now());
    let store = load(&place, &bands(), near, BUDGET);
    note("loaded", begun);
    let snapshot = store.snapshot().unwrap();
    let last = documents() - 1;
    let signature = near(last);
    let found = reads_little(&store, BUDGET, || {
        let query = snapshot.query(&signature).probe_budget(BUDGET);
        query.run().unwrap()
    });
    // It shares four buckets with itself, and three with the first ones.
    let ids: Vec<u64> = found.iter().map(|found| found.id().get()).collect();
    let expected = [last].into_iter().chain(0..BUDGET - 1);
    assert_eq!(ids, expected.collect::<Vec<u64>>());
    let beyond = found.budget_exceeded().unwrap();
    assert_eq!(beyond.documents, POSTINGS + 2 - BUDGET);
    assert!(beyond.is_least && found.candidates() as u64 == BUDGET);
    let others = [near(5), signature.clone(), far(1)];
    let many = snapshot.query(&others).probe_budget(BUDGET);
    for (answer, signature) in many.run().unwrap().iter().zip(&others) {
        let alone = snapshot.query(signature).probe_budget(BUDGET);
        assert_eq!(*answer, alone.run().unwrap());
    }
    note("queried", begun);

    // As much as there is: as without a budget.
    let generous = snapshot.query(&signature).limit(20);
    let generous = generous.probe_budget(documents()).run().unwrap();
    let query = || snapshot.query(&signature).limit(20).run().unwrap();
    let all = reads_much(&store, query);
    assert_eq!(generous, all);
    assert_eq!(
        (all.budget_exceeded(), all.candidates() as u64),
        (None, documents())
    );
    note("queried with a generous budget", begun);
    drop(snapshot);
    insertions(&store, last);
    note("inserted", begun);
}

fn insertions(store: &Store, last: u64) {
    let is_least = |beyond: Option<BudgetExceeded>| beyond.is_some_and(|b| b.is_least);
    // 15 more are looked at for an identical one.
    for (signature, expected) in [
        (near(1 << 30), Some(0)),
        (near(last), Some(last)),
        (far(0), None),
    ] {
        let mut transaction = store.begin_write().unwrap();
        let found = reads_little(store, BUDGET + 15, || {
            let document = Document::without_key();
            transaction.insert_if_new(document, &signature).unwrap()
        });
        assert!(is_least(found.budget_exceeded()), "{found:?}");
        assert_eq!(found.is_new(), expected.is_none());
        match (&found, expected) {
            (
                Novelty::New {
                    left_out: Some(_), ..
                },
                None,
            ) => {}
            (Novelty::NearDuplicate(found), Some(id)) => assert_eq!(found.id().get(), id),
            other => panic!("{other:?}"),
        }
        drop(transaction);
        let mut transaction = store.begin_write().unwrap();
        let batch = [(Document::without_key(), &signature)];
        let many = transaction.insert_many(&batch).if_new().run().unwrap();
        assert_eq!(many, [found]);
    }
    // Documents at the head of the bucket are still found.
    for number in [0, 7, 14] {
        let mut transaction = store.begin_write().unwrap();
        let document = Document::without_key();
        let found = transaction.insert_if_new(document, &near(number));
        let found = found.unwrap();
        assert_eq!((found.id().get(), found.is_new()), (number, false));
        assert_eq!(found.budget_exceeded(), None);
    }
}

#[test]
fn prefix_of_all_documents_is_probed_within_the_budget() {
    let simhash = SimHash::bits64().max_distance(3);
    let schema = Schema::builder().simhash(simhash).expected_documents(1);
    let schema = schema.build().unwrap();
    let (place, begun) = (Place::new(), Instant::now());
    let store = load(&place, &schema, fingerprint, BUDGET);
    note("loaded fingerprints", begun);
    let snapshot = store.snapshot().unwrap();
    for number in [0, documents() / 3, documents() - 1] {
        let signature = fingerprint(number);
        let query = || snapshot.query(&signature);
        let all = reads_much(&store, || query().run().unwrap());
        let run = || query().probe_budget(BUDGET).run().unwrap();
        let found = reads_little(&store, BUDGET, run);
        assert_eq!(found[0].id().get(), number, "the own code is read first");
        assert!(found.iter().all(|f| all.iter().any(|a| a.id() == f.id())));
        assert!(found.budget_exceeded().is_some() && found.candidates() as u64 <= BUDGET);
        assert_eq!(query().probe_budget(documents()).run().unwrap(), all);
        // The document is identical: its code shows it, and no signature is read.
        let mut transaction = store.begin_write().unwrap();
        let known = reads_little(&store, 0, || {
            let document = Document::without_key();
            transaction.insert_if_new(document, &signature).unwrap()
        });
        assert_eq!((known.id().get(), known.budget_exceeded()), (number, None));
    }
    note("queried fingerprints", begun);
}

#[test]
fn budget_of_zero_is_refused() {
    let place = Place::new();
    let none = StoreOptions::new().probe_budget(0);
    let refused = none.create(place.store(), bands()).unwrap_err();
    assert!(refused.to_string().contains("probe_budget"), "{refused}");
    let store = Store::create(place.store(), bands()).unwrap();
    let (snapshot, page) = (store.snapshot().unwrap(), near(1));
    for refused in [
        snapshot.query(&page).probe_budget(0).run().err(),
        snapshot.query(&page).probe_budget(5).scan().run().err(),
        snapshot.query(&[]).probe_budget(0).run().err(),
    ] {
        let refused = refused.unwrap().to_string();
        assert!(refused.contains("probe_budget"), "{refused}");
    }
}
