//! How long it takes to find the near-duplicates of a document in a store of 64,000 that was opened again.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at an error")]

mod support;

use std::sync::LazyLock;

use divan::Bencher;
use divan::counter::ItemsCount;
use resemblance::{Closed, Signature, Snapshot};

const DOCUMENTS: u64 = 64_000;

/// Signatures that the benchmarks of one document take in turns.
const PROBES: u64 = 1_000;

/// Signatures of one call.
const AT_ONCE: u64 = 10_000;

static SNAPSHOT: LazyLock<Snapshot> = LazyLock::new(|| {
    let store = support::store("probe.rsm", DOCUMENTS).unwrap();
    assert_eq!(store.close().unwrap(), Closed::File);
    support::reopened("probe.rsm").unwrap().snapshot().unwrap()
});

fn main() {
    support::run();
}

/// Documents that are not in the store, of which one in ten has near-duplicates there.
#[divan::bench(sample_count = 1_000, max_time = 4)]
fn new_documents(bencher: Bencher<'_, '_>) {
    one_by_one(bencher, DOCUMENTS);
}

/// Documents that are in the store.
#[divan::bench(sample_count = 1_000, max_time = 4)]
fn stored_documents(bencher: Bencher<'_, '_>) {
    one_by_one(bencher, 0);
}

/// The best match alone.
#[divan::bench(sample_count = 1_000, max_time = 4)]
fn best_match(bencher: Bencher<'_, '_>) {
    let signatures = signatures(0, PROBES);
    let mut probes = signatures.iter().cycle();
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        let query = SNAPSHOT.query(probes.next().unwrap());
        query.limit(1).run().unwrap()
    });
}

/// Many new documents in one call.
#[divan::bench(max_time = 4)]
fn new_at_once(bencher: Bencher<'_, '_>) {
    at_once(bencher, DOCUMENTS);
}

/// Many that are in the store.
#[divan::bench(max_time = 4)]
fn stored_at_once(bencher: Bencher<'_, '_>) {
    at_once(bencher, 0);
}

fn at_once(bencher: Bencher<'_, '_>, first: u64) {
    let signatures = signatures(first, AT_ONCE);
    bencher
        .counter(ItemsCount::new(signatures.len()))
        .bench_local(|| SNAPSHOT.query(&signatures).run().unwrap());
}

fn one_by_one(bencher: Bencher<'_, '_>, first: u64) {
    let signatures = signatures(first, PROBES);
    let mut probes = signatures.iter().cycle();
    bencher
        .counter(ItemsCount::new(1_usize))
        .bench_local(|| SNAPSHOT.query(probes.next().unwrap()).run().unwrap());
}

fn signatures(first: u64, count: u64) -> Vec<Signature> {
    // Here, so that the first sample does not wait for the store.
    LazyLock::force(&SNAPSHOT);
    let documents = (first..first + count).map(support::document);
    documents.map(|(_, signature)| signature).collect()
}
