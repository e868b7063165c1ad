//! The cache of runs: filters and blocks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::common::sample::{one_in, trials};
use crate::common::{Ending, Place, append_all, check_clean, stats};
use resemblance::metrics::Metrics;
use resemblance::{
    BulkOptions, Document, DocumentId, MinHash, Schema, Signature, Snapshot, Store, StoreOptions,
};

const BANDS: u64 = 20;

fn schema() -> Schema {
    let minhash = MinHash::new(20).banding(20, 1).value_bits(32);
    Schema::builder().minhash(minhash).build().unwrap()
}

/// Signatures of different numbers share no band.
fn signature(number: u64) -> Signature {
    let value = |band| (number * BANDS + band) as u32;
    let value = |band| value(band).wrapping_mul(0x9e37_79b1);
    Signature::from_minhash((0..BANDS).map(value).collect())
}

fn insert(store: &Store, numbers: std::ops::Range<u64>) {
    append_all(store, numbers.map(signature));
}

fn bulk_build(place: &Place, documents: u64) {
    let options = BulkOptions::new();
    let mut build = Store::bulk_build(place.store(), schema(), &options).unwrap();
    for number in 0..documents {
        let document = Document::without_key();
        build.insert(document, &signature(number)).unwrap();
    }
    build.finish().unwrap();
}

fn found(snapshot: &Snapshot, number: u64) -> Vec<u64> {
    let candidates = snapshot.query(&signature(number)).candidates().unwrap();
    candidates.into_iter().map(DocumentId::get).collect()
}

/// Asks for documents, each of which must be found under its number, or not at all. Returns what was read.
fn reads(store: &Store, numbers: impl Iterator<Item = u64>, are_there: bool) -> Metrics {
    let snapshot = store.snapshot().unwrap();
    let before = store.metrics();
    for number in numbers {
        let expected = if are_there { vec![number] } else { Vec::new() };
        assert_eq!(found(&snapshot, number), expected);
    }
    let mut reads = store.metrics();
    reads.blocks_read -= before.blocks_read;
    reads.cached_blocks_read -= before.cached_blocks_read;
    reads
}

/// Filters of 10 bits let about 1.3 % of the lanes pass that do not hold a code, those of smaller runs fewer.
#[test]
fn query_without_match_reads_hardly_a_block() {
    const DOCUMENTS: u64 = 6_000;
    for is_built in [false, true] {
        let place = Place::new();
        if is_built {
            bulk_build(&place, DOCUMENTS);
        }
        let options = StoreOptions::new().flush_after(500).merge_slice(1_000);
        let store = options.open_or_create(place.store(), schema()).unwrap();
        for first in (0..DOCUMENTS).step_by(200).filter(|_| !is_built) {
            insert(&store, first..first + 200);
        }
        let stats = stats(&store);
        assert_eq!(stats.runs.len() == 1, is_built);
        // The lane that a merge is writing has no filter yet: it is read at most twice for each miss.
        let growing = 2 * stats.merges.len() as u64;
        let misses = reads(&store, 1_000_000..1_000_300, false);
        assert!(misses.blocks_read < 300 * (growing + 2), "{misses:?}");
        let hits = reads(&store, 0..300, true);
        assert!(hits.blocks_read >= 300 * BANDS);
    }
}

/// A second round of queries finds its data in memory and reads no page. Each round queries 700
/// documents, or 2,000 with `RESEMBLANCE_TESTS=all`.
#[test]
fn cached_blocks_stay_within_the_limit_and_are_found() {
    const DOCUMENTS: u64 = 30_000;
    let place = Place::new();
    bulk_build(&place, DOCUMENTS);
    for cache_bytes in [1 << 20, 3 << 20, 64 << 20] {
        let options = StoreOptions::new().cache_bytes(cache_bytes);
        let store = options.open(place.store()).unwrap();
        let asked = 0..trials(700, 2_000);
        reads(&store, asked.clone(), true);
        let again = reads(&store, asked, true);
        let metrics = store.metrics();
        let held = metrics.filter_cache_bytes + metrics.block_cache_bytes;
        let stats = stats(&store);
        assert_eq!(held, stats.filter_cache_bytes + stats.block_cache_bytes);
        assert!(0 < held && held <= cache_bytes, "{held} of {cache_bytes}");
        let holds_all = cache_bytes >= 64 << 20;
        assert_eq!(
            again.blocks_read == again.cached_blocks_read,
            holds_all,
            "{again:?}"
        );
        assert!(again.cached_blocks_read > 0);
        reads(&store, 1_000_000..1_000_200, false);
    }
}

/// With too little memory for the best filters of all documents, the largest runs have coarser ones.
#[test]
fn filters_are_coarser_with_little_memory() {
    const DOCUMENTS: u64 = 20_000;
    let filter_bytes = |cache_bytes: u64| {
        let options = StoreOptions::new().cache_bytes(cache_bytes);
        let options = options.flush_after(DOCUMENTS);
        let store = options.create_in_memory(schema()).unwrap();
        insert(&store, 0..DOCUMENTS);
        reads(&store, 0..100, true);
        reads(&store, 1_000_000..1_000_100, false);
        let stats = stats(&store);
        let mut tables = stats.tables.into_iter();
        let filters = tables.find(|table| table.name == "filters").unwrap();
        filters.stored_bytes
    };
    let postings = DOCUMENTS * BANDS;
    assert!(filter_bytes(64 << 20) > postings * 10 / 8);
    // 448 KiB for filters: 5 bits for each posting of one and a half times the number of documents.
    // A run of most of them gets 3.
    let few = filter_bytes(1 << 20);
    assert!((postings * 3 / 8..postings * 4 / 8).contains(&few), "{few}");
}

/// A transaction probes the runs that it writes. If it is rolled back, the next one writes other runs under
/// the same numbers.
#[test]
fn runs_of_a_rolled_back_transaction_leave_the_cache() {
    let place = Place::new();
    let options = StoreOptions::new().flush_after(1_000);
    let store = options.create(place.store(), schema()).unwrap();
    for round in 0..3 {
        let first = round * 10_000;
        let mut transaction = store.begin_write().unwrap();
        for number in first..first + 1_000 {
            let document = Document::without_key();
            transaction.insert(document, &signature(number)).unwrap();
        }
        for number in first..first + 1_000 {
            let matches = transaction.query(&signature(number)).run().unwrap();
            assert_eq!(matches.len(), 1, "{number}");
        }
        assert!(store.metrics().block_cache_bytes > 0);
        drop(transaction);
        assert_eq!(store.metrics().block_cache_bytes, 0);
    }
    insert(&store, 0..1_000);
    reads(&store, 0..1_000, true);
    reads(&store, 10_000..11_000, false);
    drop(store);
    check_clean(&place.store());
}

/// When a merge has ended, its input runs leave the cache, and an older snapshot still reads them.
/// Queries one document in nine, or each with `RESEMBLANCE_TESTS=all`.
#[test]
fn snapshots_outlive_the_runs_that_they_read() {
    let options = StoreOptions::new().flush_after(500);
    let store = options.create_in_memory(schema()).unwrap();
    insert(&store, 0..1_500);
    let old = store.snapshot().unwrap();
    let all_of_old = || {
        for number in (0..1_500).step_by(7) {
            assert_eq!(found(&old, number), [number]);
        }
        for number in (1_500..9_000).step_by(7) {
            assert!(found(&old, number).is_empty());
        }
    };
    all_of_old();
    for first in (1_500..9_000).step_by(500) {
        insert(&store, first..first + 500);
        reads(&store, (0..first + 500).step_by(one_in(9)), true);
        all_of_old();
    }
    let stats = stats(&store);
    assert!(stats.runs.iter().all(|run| run.run > 2), "{:?}", stats.runs);
}

/// Commits and merges move pages, and use their room again, while probes read blocks where they were last.
#[test]
fn readers_find_everything_while_pages_move() {
    const LOADED: u64 = 20_000;
    let place = Place::new();
    let options = StoreOptions::new().cache_bytes(1 << 20).flush_after(1_000);
    let store = options.create(place.store(), schema()).unwrap();
    insert(&store, 0..LOADED);
    let inserted = AtomicU64::new(LOADED);
    let is_over = AtomicBool::new(false);
    let read = |thread: u64| {
        let mut asked = 0;
        while !is_over.load(Ordering::Acquire) {
            let known = inserted.load(Ordering::Acquire);
            let snapshot = store.snapshot().unwrap();
            for step in 0..50 {
                let number = (asked + step * 7_919 + thread * 31) % known;
                assert_eq!(found(&snapshot, number), [number]);
            }
            asked += 50;
        }
        asked
    };
    let asked: u64 = thread::scope(|scope| {
        let read = &read;
        let readers = [0, 1].map(|thread| scope.spawn(move || read(thread)));
        let ending = Ending(&is_over);
        for first in (LOADED..LOADED + trials(4_000, 20_000)).step_by(200) {
            insert(&store, first..first + 200);
            inserted.store(first + 200, Ordering::Release);
        }
        drop(ending);
        let asked = readers.map(|reader| reader.join().unwrap());
        asked.iter().sum()
    });
    assert!(asked > 0);
    drop(store);
    check_clean(&place.store());
}
