//! How long it takes to find the near-duplicates of a document in a store of 20,000.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at an error")]

mod support;

use std::sync::LazyLock;

use divan::Bencher;
use divan::counter::ItemsCount;
use resemblance::{Signature, Snapshot};

const DOCUMENTS: u64 = 20_000;

/// Signatures that the benchmarks of one document take in turns.
const PROBES: u64 = 1_000;

static SNAPSHOT: LazyLock<Snapshot> = LazyLock::new(|| {
    support::store("probe.rsm", DOCUMENTS)
        .unwrap()
        .snapshot()
        .unwrap()
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
    let signatures = signatures(0);
    let mut probes = signatures.iter().cycle();
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        let query = SNAPSHOT.query(probes.next().unwrap());
        query.limit(1).run().unwrap()
    });
}

/// Many documents in one call.
#[divan::bench(max_time = 4)]
fn many_at_once(bencher: Bencher<'_, '_>) {
    let signatures = signatures(DOCUMENTS);
    bencher
        .counter(ItemsCount::new(signatures.len()))
        .bench_local(|| SNAPSHOT.query(&signatures).run().unwrap());
}

fn one_by_one(bencher: Bencher<'_, '_>, first: u64) {
    let signatures = signatures(first);
    let mut probes = signatures.iter().cycle();
    bencher
        .counter(ItemsCount::new(1_usize))
        .bench_local(|| SNAPSHOT.query(probes.next().unwrap()).run().unwrap());
}

fn signatures(first: u64) -> Vec<Signature> {
    // Here, so that the first sample does not wait for the store.
    LazyLock::force(&SNAPSHOT);
    let documents = (first..first + PROBES).map(support::document);
    documents.map(|(_, signature)| signature).collect()
}
