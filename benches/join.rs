//! How long it takes to find all near-duplicates in a store of 20,000 documents.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at an error")]

mod support;

use std::sync::LazyLock;

use divan::Bencher;
use divan::counter::ItemsCount;
use resemblance::{Bounds, Snapshot};

const DOCUMENTS: u64 = 20_000;

static SNAPSHOT: LazyLock<Snapshot> = LazyLock::new(|| {
    support::store("join.rsm", DOCUMENTS)
        .unwrap()
        .snapshot()
        .unwrap()
});

fn main() {
    support::run();
}

/// Finds all pairs with this number of threads.
#[divan::bench(args = [1, 2], max_time = 4)]
fn pairs(bencher: Bencher<'_, '_>, threads: usize) {
    // Here, so that the first sample does not wait for the store.
    LazyLock::force(&SNAPSHOT);
    let bounds = Bounds::new().min_similarity(0.7);
    bencher.counter(ItemsCount::new(DOCUMENTS)).bench_local(|| {
        let pairs = SNAPSHOT.pairs().bounds(bounds).threads(threads);
        pairs.run().unwrap().map(Result::unwrap).count()
    });
}

/// Clusters of documents that are connected by pairs.
#[divan::bench(max_time = 4)]
fn clusters(bencher: Bencher<'_, '_>) {
    LazyLock::force(&SNAPSHOT);
    let bounds = Bounds::new().min_similarity(0.7);
    bencher
        .counter(ItemsCount::new(DOCUMENTS))
        .bench_local(|| SNAPSHOT.clusters().bounds(bounds).run().unwrap());
}
