//! The metrics of a store report exactly what was done.

use std::io::{Error, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::memory::{Call, MemoryFiles, Watch, WatchedFiles};
use crate::common::small::{filled, schema, signature};
use crate::common::{Place, Random, append_all, sealing_after, stats};
use resemblance::metrics::Metrics;
use resemblance::{Document, EvictPolicy, Novelty, Signature, Store};

/// The numbers of calls and documents: what is read to answer, and from the file, follows from the layout.
fn numbers(store: &Store) -> Vec<(&'static str, u64)> {
    let metrics = store.metrics();
    let of_layout = [
        "lanes_",
        "blocks_",
        "cached_",
        "signatures_",
        "documents_",
        "file_",
    ];
    let is_ours = |(name, value): &(&str, u64)| {
        *value > 0 && !of_layout.iter().any(|start| name.starts_with(start))
    };
    metrics.numbers().filter(is_ours).collect()
}

#[test]
fn metrics_count_a_history_call_by_call() {
    let place = Place::new();
    let store = Store::create(place.store(), schema()).unwrap();
    assert_eq!(numbers(&store), []);
    store.insert("a", &signature(1)).unwrap();
    store.insert("b", &signature(2)).unwrap();
    store.insert("a", &signature(3)).unwrap_err();
    store.upsert("b", &signature(4)).unwrap();
    store.upsert("c", &signature(5)).unwrap();
    let novelties = [("a", 6), ("d", 1), ("e", 7)].map(|(key, number)| {
        let novelty = store.insert_if_new(key, &signature(number)).unwrap();
        matches!(novelty, Novelty::New { .. })
    });
    assert_eq!(novelties, [false, false, true]);
    assert!(store.remove("a").unwrap().is_some());
    assert!(store.remove("nothing").unwrap().is_none());
    store
        .insert(Document::without_key(), &signature(8))
        .unwrap();

    let mut transaction = store.begin_write().unwrap();
    transaction.insert("rolled back", &signature(9)).unwrap();
    transaction.remove("b").unwrap();
    transaction
        .insert_if_new("rolled back too", &signature(9))
        .unwrap();
    drop(transaction);

    let signatures: Vec<Signature> = [10, 10, 7, 11].map(signature).into();
    let mut documents: Vec<_> = signatures
        .iter()
        .map(|s| (Document::without_key(), s))
        .collect();
    documents[3].0 = Document::new(b"e");
    let mut transaction = store.begin_write().unwrap();
    transaction.insert_many(&documents).if_new().run().unwrap();
    let open = store.metrics();
    assert_eq!((open.transactions_begun, open.inserted), (13, 6));
    transaction.commit().unwrap();

    assert_eq!(
        numbers(&store),
        [
            // b, c, e, and two without keys
            ("documents", 5),
            // a, b, b again, c, e, two without keys
            ("inserted", 7),
            ("replaced", 1),
            ("removed", 1),
            // a, e
            ("known", 2),
            // d, the second 10, 7
            ("near_duplicates", 3),
            ("transactions_begun", 13),
            // six calls that inserted, one that removed, and the batch
            ("transactions_committed", 8),
            // a key that was there, two that were not new, one that was not there
            ("transactions_unchanged", 4),
            ("transactions_rolled_back", 1),
            ("groups", 11),
            ("largest_group", 1),
            ("most_calls_waiting", 1),
            // the same number is near one: two of these, and one in the rolled-back transaction
            ("candidates", 3),
        ]
    );
    let metrics = store.metrics();
    assert_eq!(metrics.commit_latencies.count, 8);
    assert_eq!(metrics.call_latencies.count, 11);
    assert!(metrics.call_latencies.total >= metrics.commit_latencies.longest);
    assert!(metrics.lanes_probed > 0);

    drop(store);
    let store = Store::open(place.store()).unwrap();
    assert_eq!(numbers(&store), [("documents", 5)]);
    assert_eq!(store.metrics().commit_latencies, Default::default());
}

#[test]
fn metrics_count_evicted_kept_and_queued_documents() {
    let store = Store::in_memory(schema()).unwrap();
    for _ in 0..3 {
        store.upsert("a", &signature(1)).unwrap();
    }
    assert_eq!(store.metrics().unchanged, 2);
    let queue = store.queue();
    let tickets: Vec<_> = (2..5_u32)
        .map(|number| {
            queue
                .insert(number.to_le_bytes(), &signature(number))
                .unwrap()
        })
        .collect();
    for ticket in tickets {
        ticket.wait().unwrap();
    }
    let queued = store.metrics();
    assert_eq!((queued.calls_waiting, queued.call_latencies.count), (0, 6));
    let report = store.evict(EvictPolicy::KeepNewest(1)).run().unwrap();
    let metrics = store.metrics();
    assert_eq!((report.evicted, metrics.evicted), (3, 3));
    assert_eq!((metrics.documents, metrics.removed), (1, 0));
}

#[test]
fn metrics_count_queries_and_comparisons() {
    let store = sealing_after(8).create_in_memory(schema()).unwrap();
    append_all(&store, (0..60).map(|number| signature(number % 20)));
    let before = store.metrics();
    assert_eq!((before.queries, before.candidates), (0, 0));
    let snapshot = store.snapshot().unwrap();
    let signatures: Vec<Signature> = (15..25).map(signature).collect();
    let mut compared = 0;
    for signature in &signatures {
        compared += snapshot.query(signature).run().unwrap().candidates();
        compared += snapshot.query(signature).scan().run().unwrap().candidates();
        compared += snapshot.nearest(signature, 3).run().unwrap().candidates();
        compared += snapshot.query(signature).candidates().unwrap().len();
    }
    let many = snapshot.query(&signatures).run().unwrap();
    compared += many
        .iter()
        .map(|matches| matches.candidates())
        .sum::<usize>();
    let many = snapshot.query(&signatures).candidates().unwrap();
    compared += many.iter().map(Vec::len).sum::<usize>();
    // A refused query does not count as answered.
    snapshot
        .query(&signatures[0])
        .min_similarity(2.0)
        .run()
        .unwrap_err();
    let metrics = store.metrics();
    assert_eq!(metrics.queries, 6 * signatures.len() as u64);
    assert_eq!(metrics.candidates, compared as u64);
    // Three equal ones of each of five, in five ways, and the scans.
    assert!(compared >= 5 * 5 * 3 + 10 * 60, "{compared}");
}

#[test]
fn flushes_and_merges_add_up_to_the_runs() {
    // A merge is done as a whole, once it is behind by all of it.
    let options = sealing_after(8).merge_slice(1 << 30);
    let store = options.create_in_memory(schema()).unwrap();
    let stats = || stats(&store);
    let mut ended = 0;
    for number in 0..400u32 {
        store
            .insert(number.to_le_bytes(), &signature(number))
            .unwrap();
        let (metrics, stats) = (store.metrics(), stats());
        let lanes = stats.lanes.len() as u64;
        assert_eq!(metrics.flushes, u64::from(number + 1) / 8);
        assert_eq!(metrics.flushed_postings, metrics.flushes * 8 * lanes);
        let under_way = metrics.merges_begun - metrics.merges_ended;
        assert_eq!(under_way, stats.merges.len() as u64);
        // A block takes hundreds of postings, so each lane of a merge is one.
        assert_eq!(metrics.merged_blocks, metrics.merges_ended * lanes);
        let least = metrics.merges_ended * 32 * lanes;
        assert!(metrics.merged_postings >= least && metrics.merged_postings % (32 * lanes) == 0);
        // Each makes one of four flushes, or of six such runs.
        let of_six = (metrics.merged_postings - least) / (5 * 32 * lanes);
        let runs = metrics.flushes - 3 * metrics.merges_ended - 2 * of_six;
        assert_eq!(runs, stats.runs.len() as u64);
        ended = metrics.merges_ended;
    }
    // With 50 flushes: 12 merges of the first level, and 2 of those.
    assert!(ended >= 12, "{ended}");
}

#[test]
fn metrics_count_living_snapshots() {
    let place = Place::new();
    filled(&place.store(), 3);
    let store = Store::open_read_only(place.store()).unwrap();
    assert_eq!(store.metrics().oldest_snapshot, None);
    let first = store.snapshot().unwrap();
    let second = store.snapshot().unwrap();
    let records = first.clone().iter();
    let two = store.metrics();
    assert_eq!(two.snapshots, 2);
    let age = two.oldest_snapshot.unwrap();
    drop(first);
    // The iterator keeps the snapshot open.
    let still = store.metrics();
    assert_eq!(still.snapshots, 2);
    assert!(still.oldest_snapshot.unwrap() >= age);
    drop(second);
    drop(records);
    let none = store.metrics();
    assert_eq!((none.snapshots, none.oldest_snapshot), (0, None));
}

/// Counts calls, and makes syncs fail on request.
#[derive(Debug, Default)]
struct Seen {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    syncs: AtomicU64,
    fails: AtomicBool,
}

fn count(counter: &AtomicU64, value: usize) {
    counter.fetch_add(value as u64, Ordering::SeqCst);
}

impl Watch for Seen {
    fn before(&self, call: &Call<'_>) -> Result<()> {
        match *call {
            Call::Read(_, bytes) => {
                count(&self.reads, 1);
                count(&self.read_bytes, bytes);
            }
            Call::Write(_, data) => {
                count(&self.writes, 1);
                count(&self.written_bytes, data.len());
            }
            Call::Sync if self.fails.load(Ordering::SeqCst) => {
                return Err(Error::other("told to fail"));
            }
            Call::Sync => count(&self.syncs, 1),
            _ => {}
        }
        Ok(())
    }
}

impl Seen {
    fn check(&self, metrics: &Metrics) {
        let expected = [
            &self.reads,
            &self.read_bytes,
            &self.writes,
            &self.written_bytes,
            &self.syncs,
        ];
        let found = [
            metrics.file_reads,
            metrics.file_read_bytes,
            metrics.file_writes,
            metrics.file_written_bytes,
            metrics.sync_latencies.count,
        ];
        let expected = expected.map(|counter| counter.load(Ordering::SeqCst));
        assert_eq!(found, expected);
    }
}

fn watched() -> WatchedFiles<Seen> {
    WatchedFiles::new(MemoryFiles::default(), Seen::default())
}

#[test]
fn counted_bytes_agree_with_the_file() {
    let files = watched();
    let store = files
        .options(&sealing_after(8))
        .cache_bytes(0)
        .create("a", schema())
        .unwrap();
    files.watch.check(&store.metrics());
    for number in 0..100u32 {
        store
            .insert(number.to_le_bytes(), &signature(number))
            .unwrap();
        files.watch.check(&store.metrics());
    }
    // More than the least cache holds, so that something is read.
    let payload = vec![7; 1 << 20];
    for number in 0..8u32 {
        let key = number.to_le_bytes();
        let mut transaction = store.begin_write().unwrap();
        let document = Document::new(&key).payload(&payload);
        transaction.upsert(document, &signature(number)).unwrap();
        transaction.commit().unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.iter().count(), 100);
    let metrics = store.metrics();
    files.watch.check(&metrics);
    assert!(metrics.file_reads > 0 && metrics.file_written_bytes > 8 << 20);
    assert!(metrics.sync_latencies.count >= metrics.transactions_committed);
}

#[test]
fn metrics_count_failed_commits() {
    let files = watched();
    let store = files
        .options(&sealing_after(8))
        .create("a", schema())
        .unwrap();
    store
        .insert(Document::without_key(), &signature(1))
        .unwrap();
    let syncs = store.metrics().sync_latencies.count;
    files.watch.fails.store(true, Ordering::SeqCst);
    store
        .insert(Document::without_key(), &signature(2))
        .unwrap_err();
    store
        .insert(Document::without_key(), &signature(3))
        .unwrap_err();
    let metrics = store.metrics();
    // The second was not let in any more.
    assert_eq!(
        (metrics.transactions_begun, metrics.transactions_failed),
        (2, 1)
    );
    assert_eq!(
        (
            metrics.transactions_committed,
            metrics.transactions_rolled_back
        ),
        (1, 0)
    );
    assert_eq!((metrics.inserted, metrics.documents), (1, 1));
    assert_eq!(
        (metrics.calls_waiting, metrics.call_latencies.count),
        (0, 3)
    );
    assert_eq!(metrics.sync_latencies.count, syncs);
    files.watch.fails.store(false, Ordering::SeqCst);
}

#[test]
fn every_call_of_a_group_gets_the_cause_of_a_failed_commit() {
    let files = watched();
    let options = files.options(&sealing_after(8));
    let store = options.create("a", schema()).unwrap();
    let queue = store.queue();
    let transaction = store.begin_write().unwrap();
    // It occupies the leader, which waits for this transaction while the others arrive.
    let first = queue.flush().unwrap();
    thread::sleep(Duration::from_millis(50));
    let tickets = [1, 2, 3].map(|number| {
        let document = Document::without_key();
        queue.insert(document, &signature(number)).unwrap()
    });
    files.watch.fails.store(true, Ordering::SeqCst);
    drop(transaction);
    drop(first.wait());
    for ticket in tickets {
        let error = ticket.wait().unwrap_err().to_string();
        assert!(error.contains("told to fail"), "{error}");
    }
    files.watch.fails.store(false, Ordering::SeqCst);
}

#[test]
fn metrics_add_up_over_threads() {
    const THREADS: u64 = 6;
    const CALLS: u64 = 60;
    let place = Place::new();
    filled(&place.store(), 20);
    let store = sealing_after(16).open(place.store()).unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = store.clone();
            scope.spawn(move || {
                let mut random = Random(thread);
                for _ in 0..CALLS {
                    let number = random.below(80) as u32;
                    let content = number + 100 * random.below(2) as u32;
                    let (key, signature) = (number.to_le_bytes(), signature(content));
                    match random.below(5) {
                        0 => drop(store.insert(key, &signature)),
                        1 => drop(store.remove(key).unwrap()),
                        2 => drop(store.upsert(key, &signature).unwrap()),
                        3 => drop(store.insert_if_new(key, &signature).unwrap()),
                        _ => {
                            let mut transaction = store.begin_write().unwrap();
                            transaction.upsert(key, &signature).unwrap();
                            transaction
                                .insert(Document::without_key(), &signature)
                                .unwrap();
                            if random.below(2) == 0 {
                                transaction.commit().unwrap();
                            }
                        }
                    }
                    let metrics = store.metrics();
                    assert!(metrics.calls_waiting < THREADS);
                    assert!(metrics.most_calls_waiting <= THREADS);
                }
            });
        }
    });
    // Groups of calls that all change nothing are rare.
    assert_eq!(store.remove(b"no such key").unwrap(), None);
    let metrics = store.metrics();
    let gone = metrics.replaced + metrics.removed + metrics.evicted;
    assert_eq!(20 + metrics.inserted - gone, metrics.documents);
    assert_eq!(metrics.documents, store.snapshot().unwrap().len());
    let ended = [
        metrics.transactions_committed,
        metrics.transactions_unchanged,
        metrics.transactions_rolled_back,
        metrics.transactions_failed,
    ];
    assert_eq!(metrics.transactions_begun, ended.iter().sum::<u64>());
    assert_eq!(
        metrics.commit_latencies.count,
        metrics.transactions_committed
    );
    assert_eq!(metrics.calls_waiting, 0);
    assert_eq!(metrics.transactions_failed, 0);
    let all_kinds = [
        metrics.replaced,
        metrics.removed,
        metrics.known,
        metrics.unchanged,
        ended[1],
        ended[2],
    ];
    assert!(all_kinds.iter().all(|count| *count > 0), "{metrics}");
}
