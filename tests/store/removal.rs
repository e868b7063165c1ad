//! Removed documents stay removed, and their space is reused.

use crate::common::sample::{one_in, trials};
use crate::common::{Place, Random, append_all, check_clean, remove_all, sealing_after, stats};
use resemblance::stats::Stats;
use resemblance::{Document, DocumentId, MinHash, Schema, Signature, SimHash, Store};

fn schema() -> Schema {
    let builder = Schema::builder().minhash(MinHash::new(64).value_bits(32));
    builder.simhash(SimHash::bits64()).build().unwrap()
}

/// A document's content in one of its versions: like no other document, and like no other version.
fn content(document: u32, version: u32) -> Signature {
    let mut random = Random(u64::from(document) << 32 | u64::from(version));
    let values = (0..64).map(|_| random.next() as u32).collect();
    Signature::from_parts(Some(values), Some(random.next()))
}

/// Bytes of the tables that hold postings, and of all.
fn table_bytes(stats: &Stats) -> (u64, u64) {
    let postings = ["keys", "bands", "permuted"];
    let tables = stats.tables.iter();
    let of_postings = tables.filter(|table| postings.contains(&table.name.as_str()));
    let all: u64 = stats.tables.iter().map(|table| table.total_bytes()).sum();
    (of_postings.map(|table| table.total_bytes()).sum(), all)
}

/// Checks that deleted documents are few. Runs with more than a fifth deleted are rewritten one
/// after another, four documents for each replaced one. A rewrite drops at least a fifth of what it
/// reads. Deleted documents are therefore at most a quarter of the documents, plus another quarter
/// in the run that is being rewritten.
fn deleted_documents_are_few(stats: &Stats) {
    let dead: u64 = stats.runs.iter().map(|run| run.dead).sum();
    let documents = |run: &resemblance::stats::RunStats| run.last_id - run.first_id + 1;
    let documents: u64 = stats.runs.iter().map(documents).sum();
    assert!(dead * 2 <= documents, "{:?}", stats.runs);
}

fn documents() -> u32 {
    trials(300, 600)
}

/// Each document of version `version` and only these.
fn holds(store: &Store, version: u32) {
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.len(), documents().into());
    assert_eq!(snapshot.iter().count(), documents() as usize);
    for document in (0..documents()).step_by(7) {
        let key = document.to_le_bytes();
        let now = content(document, version);
        let record = snapshot.get(key).unwrap().unwrap();
        assert_eq!(record.signature().minhash(), now.minhash());
        let found = snapshot.query(&now).run().unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].key(), Some(&key[..]));
        if let Some(before) = version.checked_sub(1) {
            let before = content(document, before);
            assert!(snapshot.query(&before).run().unwrap().is_empty());
        }
    }
}

/// 300 documents with batches that are smaller than a run, and 600 with larger ones too with `RESEMBLANCE_TESTS=all`.
#[test]
fn store_replaced_ten_times_keeps_its_size() {
    let ways = [(64, 50), (16, 200), (200, 20)].into_iter();
    for (flush_after, batch) in ways.step_by(one_in(3)) {
        let place = Place::new();
        let options = sealing_after(flush_after);
        let mut store = options.create(place.store(), schema()).unwrap();
        let mut first = (0, 0);
        for version in 0..=10u32 {
            // A different order each time, so that deleted documents are spread over all runs.
            let step = [1, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41][version as usize];
            let order: Vec<u32> = (0..documents()).map(|i| i * step % documents()).collect();
            for documents in order.chunks(batch) {
                let mut transaction = store.begin_write().unwrap();
                for document in documents {
                    let key = document.to_le_bytes();
                    let upserted = transaction.upsert(key, &content(*document, version));
                    assert_eq!(upserted.unwrap().replaced.is_some(), version > 0);
                }
                transaction.commit().unwrap();
                deleted_documents_are_few(&stats(&store));
            }
            holds(&store, version);
            let now = table_bytes(&stats(&store));
            if version == 0 {
                first = now;
            }
            // A quarter of the documents may be deleted, and each additional run costs one block
            // for each lane.
            assert!(
                now.0 <= 2 * first.0,
                "postings: {now:?}, at first {first:?}"
            );
            assert!(now.1 <= 2 * first.1, "all: {now:?}, at first {first:?}");
            if version == 5 {
                drop(store);
                store = options.open(place.store()).unwrap();
                deleted_documents_are_few(&stats(&store));
                holds(&store, version);
            }
        }
        assert_eq!(stats(&store).next_id, u64::from(documents()) * 11);
        let length = stats(&store).file_bytes;
        // The engine doubles a small file when it is full; free pages are used again first.
        assert!(length <= 16 * first.1, "{length} bytes for {first:?}");
        drop(store);
        check_clean(&place.store());
        let report = Store::compact(place.store()).run().unwrap();
        assert!(report.size_after_bytes <= report.size_before_bytes);
        check_clean(&place.store());
        holds(&Store::open(place.store()).unwrap(), 10);
    }
}

#[test]
fn removing_everything_leaves_an_empty_store() {
    for flush_after in [1, 10, 1_000] {
        let place = Place::new();
        let options = sealing_after(flush_after);
        let store = options.create(place.store(), schema()).unwrap();
        for round in 0..3u64 {
            append_all(&store, (0..120u32).map(|document| content(document, 0)));
            let first = round * 120;
            for id in first..first + 120 {
                if id % 2 == 0 {
                    let mut transaction = store.begin_write().unwrap();
                    assert!(transaction.remove_id(DocumentId::new(id)).unwrap());
                    assert!(!transaction.remove_id(DocumentId::new(id)).unwrap());
                    transaction.commit().unwrap();
                }
            }
            remove_all(&store, (first..first + 120).filter(|id| id % 2 == 1));
            let snapshot = store.snapshot().unwrap();
            assert!(snapshot.is_empty());
            assert!(snapshot.iter().next().is_none());
            for document in 0..120 {
                assert!(
                    snapshot
                        .query(&content(document, 0))
                        .candidates()
                        .unwrap()
                        .is_empty()
                );
            }
            let stats = snapshot.stats().run().unwrap();
            assert!(stats.runs.is_empty(), "{:?}", stats.runs);
            let rows = |name: &str| {
                stats
                    .tables
                    .iter()
                    .find(|table| table.name == name)
                    .unwrap()
                    .rows
            };
            for table in [
                "documents",
                "payloads",
                "runs",
                "keys",
                "bands",
                "permuted",
                "dead",
            ] {
                assert_eq!(rows(table), 0, "{table}, flush_after {flush_after}");
            }
        }
        drop(store);
        check_clean(&place.store());
        let store = Store::open(place.store()).unwrap();
        assert_eq!(
            store
                .insert(Document::without_key(), &content(0, 0))
                .unwrap(),
            DocumentId::new(360)
        );
    }
}

#[test]
fn documents_without_postings_are_removed_completely() {
    let place = Place::new();
    let options = sealing_after(4);
    let store = options.create(place.store(), schema()).unwrap();
    let empty = store.sketcher().features([""; 0]).unwrap();
    for round in 0..6u64 {
        let first = round * 20;
        for number in 0..20u32 {
            // Empty runs are between documents without any posting.
            let signature = if number % 8 < 4 {
                empty.clone()
            } else {
                content(number, 0)
            };
            store.insert(Document::without_key(), &signature).unwrap();
        }
        for residue in [1, 0] {
            remove_all(
                &store,
                (first..first + 20).filter(|id| id / 4 % 2 == residue),
            );
        }
        let stats = stats(&store);
        assert_eq!((stats.documents, stats.runs.len()), (0, 0));
        let dead = stats
            .tables
            .iter()
            .find(|table| table.name == "dead")
            .unwrap();
        assert_eq!(dead.rows, 0, "bits that no merge will ever clear");
    }
    drop(store);
    check_clean(&place.store());
}
