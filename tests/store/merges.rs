//! Merges of runs that take many commits. Runs and commits have three tenths of the documents that they have with
//! `RESEMBLANCE_TESTS=all`.

use std::collections::BTreeMap;

use crate::common::sample::{one_in, trials};
use crate::common::{Place, check_clean, insert_all, stats};
use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use resemblance::stats::MergeStats;
use resemblance::{
    Document, DocumentId, Error, EvictPolicy, MinHash, Schema, Signature, Store, StoreOptions,
};

const LANES: u64 = 21;

fn seal_after() -> u64 {
    trials(600, 2_000)
}

fn documents_a_commit() -> u64 {
    trials(30, 100)
}

fn schema() -> Schema {
    let minhash = MinHash::new(20).banding(20, 1).value_bits(32);
    Schema::builder().minhash(minhash).build().unwrap()
}

fn options() -> StoreOptions {
    StoreOptions::new()
        .flush_after(seal_after())
        .cache_bytes(4 << 20)
        .merge_slice(1)
}

fn signature(number: u64) -> Signature {
    let value =
        |lane: u64| ((number * LANES + lane + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
    Signature::from_minhash((0..20).map(value).collect())
}

fn insert(store: &Store, numbers: std::ops::Range<u64>) {
    insert_all(
        store,
        numbers.map(|number| (number.to_le_bytes(), signature(number))),
    );
}

fn merges(store: &Store) -> BTreeMap<u32, MergeStats> {
    let stats = stats(store);
    stats
        .merges
        .into_iter()
        .map(|merge| (merge.run, merge))
        .collect()
}

/// Every document is found by key and by content, once.
fn holds(store: &Store, documents: u64) {
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.len(), documents);
    for number in (0..documents).step_by(17) {
        assert!(snapshot.contains(number.to_le_bytes()).unwrap());
        let found = snapshot.query(&signature(number)).run().unwrap();
        assert_eq!(found.len(), 1, "{number}");
        assert_eq!(found[0].key(), Some(&number.to_le_bytes()[..]));
    }
}

/// With `RESEMBLANCE_TESTS=all`, a merge of four runs has 4 x 2,000 x 21 postings, and a commit
/// adds 100 x 21. A commit that flushes leaves its share of the merge to the next. A merge advances
/// by at least one lane if the lane is smaller than one read.
#[test]
fn commit_merges_in_proportion_to_its_size() {
    let place = Place::new();
    let store = options().create(place.store(), schema()).unwrap();
    let most = 2 * 2 * documents_a_commit() * LANES + 4 * seal_after();
    let (mut before, mut under_way, mut left) = (BTreeMap::new(), 0, 0);
    for commit in 0..170 {
        let first = commit * documents_a_commit();
        let flushes = store.metrics().flushes;
        insert(&store, first..first + documents_a_commit());
        let now = merges(&store);
        if store.metrics().flushes > flushes {
            let are_same = before.iter().all(|(run, merge): (&u32, &MergeStats)| {
                now.get(run).map(|now| now.postings) == Some(merge.postings)
            });
            assert!(are_same, "commit {commit}: {before:?}, then {now:?}");
            left += before.len();
        }
        for (run, merge) in &now {
            let done = before
                .get(run)
                .map_or(0, |merge: &MergeStats| merge.postings);
            assert!(merge.postings - done <= most, "{merge:?} after {done}");
            under_way += usize::from(merge.postings > 0);
        }
        for (run, merge) in &before {
            assert!(
                now.contains_key(run) || merge.postings_left <= most,
                "{merge:?} ended"
            );
        }
        before = now;
    }
    assert!(under_way > 25 && left > 0, "{under_way}, {left}");
    holds(&store, 170 * documents_a_commit());
    drop(store);
    check_clean(&place.store());
}

/// Where each commit flushes, or every other one that is too small to merge then, merges go on all the same.
#[test]
fn large_commits_leave_few_runs() {
    for a_commit in [documents_a_commit() / 2 - 1, documents_a_commit()] {
        let options = options().flush_after(documents_a_commit());
        let store = options.create_in_memory(schema()).unwrap();
        for commit in 0..80 {
            insert(&store, commit * a_commit..(commit + 1) * a_commit);
            // Three of level 0, five of level 1, and the inputs of a merge into each.
            let runs = stats(&store).runs.len();
            assert!(runs <= 3 + 5 + 4 + 6, "{runs} runs after commit {commit}");
        }
        holds(&store, 80 * a_commit);
    }
}

#[test]
fn merges_continue_after_reopening() {
    let place = Place::new();
    drop(options().create(place.store(), schema()).unwrap());
    let (mut left, mut shrunk) = (None, 0);
    for commit in 0..110 {
        let store = options().open(place.store()).unwrap();
        let first = commit * documents_a_commit();
        insert(&store, first..first + documents_a_commit());
        if let Some((run, merge)) = merges(&store).pop_first() {
            let before = left.replace((run, merge.postings_left));
            shrunk +=
                usize::from(before.is_some_and(|(r, left)| r == run && merge.postings_left < left));
        }
    }
    assert!(shrunk > 10, "{shrunk}");
    let store = Store::open(place.store()).unwrap();
    holds(&store, 110 * documents_a_commit());
    let before = stats(&store);
    assert!(before.runs.len() > 1);
    drop(store);
    // Compaction ends what is under way.
    Store::compact(place.store()).run().unwrap();
    let store = Store::open(place.store()).unwrap();
    let after = stats(&store);
    assert_eq!((after.runs.len(), after.merges.len()), (1, 0));
    holds(&store, 110 * documents_a_commit());
    drop(store);
    check_clean(&place.store());
}

const BANDS: TableDefinition<'static, &[u8; 22], &[u8]> = TableDefinition::new("bands");
const FILTERS: TableDefinition<'static, &[u8; 10], &[u8]> = TableDefinition::new("filters");
const RUNS: TableDefinition<'static, u32, &[u8]> = TableDefinition::new("runs");

/// The blocks of bands, the filters and the runs.
fn content(path: &std::path::Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let database = crate::common::engine::database(path);
    let read = database.begin_read().unwrap();
    let (bands, filters, runs) = (
        read.open_table(BANDS).unwrap(),
        read.open_table(FILTERS).unwrap(),
        read.open_table(RUNS).unwrap(),
    );
    let bands = bands.iter().unwrap().map(Result::unwrap);
    let bands = bands.map(|(key, value)| (key.value().to_vec(), value.value().to_vec()));
    let filters = filters.iter().unwrap().map(Result::unwrap);
    let filters = filters.map(|(key, value)| (key.value().to_vec(), value.value().to_vec()));
    let runs = runs.iter().unwrap().map(Result::unwrap);
    let runs =
        runs.map(|(key, value)| (key.value().to_le_bytes().to_vec(), value.value().to_vec()));
    bands.chain(filters).chain(runs).collect()
}

#[test]
fn merge_with_two_threads_writes_the_file_of_one() {
    let (one, two) = (Place::new(), Place::new());
    let stores = [(&one, false), (&two, true)].map(|(place, on)| {
        let options = options().merge_in_parallel(on);
        options.create(place.store(), schema()).unwrap()
    });
    let (mut stores, mut under_way) = (Some(stores), 0);
    for commit in 0..60 {
        let first = commit * 4 * documents_a_commit();
        let open = stores.take().unwrap();
        for store in &open {
            insert(store, first..first + 4 * documents_a_commit());
            let mut transaction = store.begin_write().unwrap();
            for number in (0..first).step_by(97) {
                transaction.remove((number + commit).to_le_bytes()).unwrap();
            }
            transaction.commit().unwrap();
        }
        under_way += merges(&open[0]).len();
        if commit % 15 < 14 {
            stores = Some(open);
            continue;
        }
        drop(open);
        assert!(content(&one.store()) == content(&two.store()), "{commit}");
        stores = Some([(&one, false), (&two, true)].map(|(place, on)| {
            let options = options().merge_in_parallel(on);
            options.open(place.store()).unwrap()
        }));
    }
    assert!(under_way > 10, "{under_way}");
    drop(stores);
    check_clean(&two.store());
}

#[test]
fn a_damaged_block_stops_a_merge_and_loses_nothing() {
    let place = Place::new();
    let store = options().create(place.store(), schema()).unwrap();
    insert(&store, 0..3 * seal_after());
    drop(store);
    let database = crate::common::engine::database(place.store());
    let write = database.begin_write().unwrap();
    {
        let mut bands = write.open_table(BANDS).unwrap();
        let (key, mut value) = {
            let (key, value) = bands.last().unwrap().unwrap();
            (*key.value(), value.value().to_vec())
        };
        value[100] ^= 1;
        bands.insert(&key, value.as_slice()).unwrap();
    }
    write.commit().unwrap();
    drop(database);
    for on in [true, false] {
        let options = options().merge_in_parallel(on);
        let store = options.open(place.store()).unwrap();
        let mut transaction = store.begin_write().unwrap();
        let mut outcome = Ok(());
        for number in 3 * seal_after()..9 * seal_after() {
            outcome = transaction
                .insert(Document::without_key(), &signature(number))
                .map(|_| ());
            if outcome.is_err() {
                break;
            }
        }
        let outcome = outcome.and_then(|()| transaction.commit());
        assert!(matches!(outcome, Err(Error::Corrupt { .. })), "{outcome:?}");
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.len(), 3 * seal_after());
        for number in (0..3 * seal_after()).step_by(17) {
            assert!(snapshot.contains(number.to_le_bytes()).unwrap());
        }
    }
}

/// Removes every so manieth of the documents, in one transaction, whose own reads are checked.
fn remove(store: &Store, numbers: impl Iterator<Item = u64> + Clone) {
    let mut transaction = store.begin_write().unwrap();
    for number in numbers.clone() {
        let removed = transaction.remove(number.to_le_bytes()).unwrap();
        assert_eq!(removed, Some(DocumentId::new(number)));
        assert!(!transaction.remove_id(DocumentId::new(number)).unwrap());
    }
    for number in numbers.clone().step_by(50) {
        let id = DocumentId::new(number);
        assert!(transaction.get_id(id).unwrap().is_none());
        assert!(!transaction.contains(number.to_le_bytes()).unwrap());
        let found = transaction.query(&signature(number)).scan().run().unwrap();
        assert!(found.is_empty(), "{number}");
    }
    transaction.commit().unwrap();
}

/// Checks a store in which every `step`-th document among the first `of` has been removed. Queries
/// one document in 111, or one in 37 with `RESEMBLANCE_TESTS=all`.
fn holds_without(store: &Store, documents: u64, step: usize, of: u64) {
    let snapshot = store.snapshot().unwrap();
    let is_removed = |number: u64| number < of && number.is_multiple_of(step as u64);
    let live = (0..documents).filter(|number| !is_removed(*number));
    let ids = snapshot.iter().map(|record| record.unwrap().id());
    assert!(ids.eq(live.clone().map(DocumentId::new)));
    assert_eq!(snapshot.len(), live.count() as u64);
    let sample = (0..documents)
        .step_by(37 * one_in(3))
        .chain((0..of).step_by(9 * step));
    for number in sample {
        let (key, id) = (number.to_le_bytes(), DocumentId::new(number));
        let expected = usize::from(!is_removed(number));
        let record = snapshot.get_id(id).unwrap();
        assert_eq!(record.is_some(), expected == 1);
        assert_eq!(snapshot.get(key).unwrap(), record);
        assert_eq!(snapshot.key(id).unwrap().is_some(), expected == 1);
        let near = snapshot.query(&signature(number)).run().unwrap();
        let seen = snapshot.query(&signature(number)).candidates().unwrap();
        assert_eq!((near.len(), seen.len()), (expected, expected), "{number}");
    }
    let scanned = snapshot.query(&signature(0)).scan().run().unwrap();
    assert_eq!(scanned.len(), usize::from(!is_removed(0)));
}

/// If many rows are dropped, windows of rows are rewritten; if few are, pages with gaps.
#[test]
fn rows_of_removed_documents_are_dropped_by_a_merge() {
    // So few documents that several commits happen in the middle of the rows.
    const A_COMMIT: u64 = 25;
    // Enough for runs of several windows, in a usual run too.
    const SEAL_AFTER: u64 = 2_000;
    let options = || options().flush_after(SEAL_AFTER);
    for step in [5, 70] {
        let place = Place::new();
        let mut store = options().create(place.store(), schema()).unwrap();
        let sealed = 3 * SEAL_AFTER;
        let mut documents = 4 * SEAL_AFTER - A_COMMIT;
        insert(&store, 0..documents);
        remove(&store, (0..sealed).step_by(step));
        // Too few for a run to be rewritten alone.
        let dead = (0..sealed).step_by(step).count() as u64;
        let before = stats(&store);
        assert_eq!((before.merges.len(), before.dead_rows), (0, dead));
        holds_without(&store, documents, step, sealed);

        let (image, mut dropping, mut least) = (place.file("image"), 0, dead);
        for _ in 0..160 {
            insert(&store, documents..documents + A_COMMIT);
            documents += A_COMMIT;
            let now = stats(&store);
            assert!(now.dead_rows <= least);
            least = now.dead_rows;
            let Some(merge) = now.merges.first() else {
                break;
            };
            assert!(merge.rows_left == now.dead_rows && merge.rows_left <= dead);
            assert!(merge.rows_left == 0 || merge.postings == 0, "rows go first");
            if merge.rows_left == 0 || merge.rows_left == dead {
                continue;
            }
            dropping += 1;
            if dropping % 2 == 0 {
                // More than the page cache holds, so that some of it is in the file already.
                let mut transaction = store.begin_write().unwrap();
                for number in documents..documents + SEAL_AFTER {
                    transaction
                        .insert(Document::without_key(), &signature(number))
                        .unwrap();
                }
                std::fs::copy(place.store(), &image).unwrap();
                drop(transaction);
                check_clean(&image);
                let crashed = options().open(&image).unwrap();
                assert_eq!(stats(&crashed).dead_rows, least);
                holds_without(&crashed, documents, step, sealed);
            } else {
                drop(store);
                check_clean(&place.store());
                store = options().open(place.store()).unwrap();
                holds_without(&store, documents, step, sealed);
            }
        }
        assert!(dropping >= 2, "{dropping} commits in the middle of it");
        let after = stats(&store);
        assert_eq!((after.merges.len(), after.dead_rows), (0, 0));
        let dead = after.tables.iter().find(|table| table.name == "dead");
        assert_eq!(dead.unwrap().rows, 0);
        holds_without(&store, documents, step, sealed);
        drop(store);
        check_clean(&place.store());
    }
}

/// A document that is deleted during the merge of its run keeps its rows until the next merge or
/// compaction.
#[test]
fn documents_deleted_during_a_merge_are_dropped_by_the_next() {
    let place = Place::new();
    let store = options().create(place.store(), schema()).unwrap();
    insert(&store, 0..4 * seal_after());
    assert_eq!(merges(&store).len(), 1);
    remove(&store, (0..1_000).step_by(10));
    assert_eq!(stats(&store).dead_rows, 100);
    insert(&store, 4 * seal_after()..5 * seal_after());
    let merged = stats(&store);
    assert_eq!((merged.merges.len(), merged.dead_rows), (0, 100));
    holds_without(&store, 5 * seal_after(), 10, 1_000);
    drop(store);
    check_clean(&place.store());
    Store::compact(place.store()).run().unwrap();
    check_clean(&place.store());
    let store = Store::open(place.store()).unwrap();
    assert_eq!(stats(&store).dead_rows, 0);
    holds_without(&store, 5 * seal_after(), 10, 1_000);
}

/// A merge that has to drop rows which are not there meets damage.
#[test]
fn a_deleted_document_without_rows_is_damage() {
    let place = Place::new();
    let store = options().create(place.store(), schema()).unwrap();
    insert(&store, 0..4 * seal_after() - 1);
    remove(&store, (0..1_000).step_by(10));
    drop(store);
    let database = crate::common::engine::database(place.store());
    let write = database.begin_write().unwrap();
    {
        let table = TableDefinition::<u64, &[u8]>::new("documents");
        let mut table = write.open_table(table).unwrap();
        assert!(table.remove(500).unwrap().is_some());
    }
    write.commit().unwrap();
    drop(database);
    let report = Store::check(place.store()).run().unwrap();
    let found: Vec<u8> = report.problems.iter().map(|p| p.invariant).collect();
    assert_eq!(found, [4], "{:#?}", report.problems);
    let store = options().open(place.store()).unwrap();
    // The flush begins the merge, and the first rows that the next commit drops are these.
    let insert = |number| {
        let signature = signature(4 * seal_after() + number);
        store.insert(Document::without_key(), &signature).err()
    };
    assert!(insert(0).is_none());
    let error = insert(1);
    assert!(matches!(error, Some(Error::Corrupt { .. })), "{error:?}");
}

/// The number of documents of a store that is compacted.
const DOCUMENTS: u64 = 9_000;

/// A change of such a store.
type Change = fn(&Store);

fn remove_keys(store: &Store, numbers: impl Iterator<Item = u64>) {
    let mut transaction = store.begin_write().unwrap();
    for number in numbers {
        assert!(transaction.remove(number.to_le_bytes()).unwrap().is_some());
    }
    transaction.commit().unwrap();
}

/// A compaction frees what `stats` predicts, on the disk and in the length of the file, up to a
/// thirtieth of the file and 128 KiB.
#[test]
fn stats_show_what_compact_would_free() {
    let changes: [(&str, Change); 9] = [
        ("nothing", |_| ()),
        ("two thirds", |it| {
            remove_keys(it, (0..DOCUMENTS).filter(|number| number % 3 > 0))
        }),
        ("few", |it| remove_keys(it, (0..DOCUMENTS).step_by(40))),
        ("adjacent", |it| remove_keys(it, 2_000..7_000)),
        ("all", |it| remove_keys(it, 0..DOCUMENTS)),
        ("touch", |it| {
            let mut transaction = it.begin_write().unwrap();
            for number in (0..DOCUMENTS).step_by(3) {
                assert!(
                    transaction
                        .touch(number.to_le_bytes(), 5)
                        .unwrap()
                        .is_some()
                );
            }
            transaction.commit().unwrap();
        }),
        ("evict", |it| {
            let policy = EvictPolicy::KeepNewest(5_000);
            assert_eq!(it.evict(policy).run().unwrap().evicted, 4_000);
        }),
        ("upsert", |it| {
            let numbers = (0..DOCUMENTS).step_by(4);
            let mut transaction = it.begin_write().unwrap();
            for number in numbers {
                let signature = signature(number + 50_000);
                transaction
                    .upsert(number.to_le_bytes(), &signature)
                    .unwrap();
            }
            transaction.commit().unwrap();
        }),
        ("merges", |it| {
            insert(it, DOCUMENTS..DOCUMENTS + 2_000);
            while !stats(it).merges.is_empty() {
                it.touch(1u64.to_le_bytes(), 7).unwrap();
            }
        }),
    ];
    let openings = [(false, false), (false, true), (true, false)];
    for ((name, change), (shared, is_read)) in changes.into_iter().zip(openings.into_iter().cycle())
    {
        let name = format!("{name}, shared: {shared}, read: {is_read}");
        let place = Place::new();
        let options = options().shared_writers(shared);
        let store = options.create(place.store(), schema()).unwrap();
        insert(&store, 0..DOCUMENTS);
        let _ = store.close().unwrap();
        let store = options.open(place.store()).unwrap();
        change(&store);
        let reader = is_read.then(|| Store::open_read_only(place.store()).unwrap());
        let snapshot = reader.as_ref().map(|reader| reader.snapshot().unwrap());
        let _ = store.close().unwrap();
        drop((snapshot, reader));
        let before = stats(&Store::open_read_only(place.store()).unwrap());
        let report = Store::compact(place.store()).run().unwrap();
        assert_eq!(report.length_before_bytes, before.file_bytes, "{name}");
        assert_eq!(report.size_before_bytes, before.allocated_bytes, "{name}");
        let gained = |before: u64, after: u64| before.saturating_sub(after);
        let length = gained(before.file_bytes, report.length_after_bytes);
        let disk = gained(before.allocated_bytes, report.size_after_bytes);
        let bound = before.file_bytes / 30 + (128 << 10);
        let expected = (before.compact_length_gain_bytes, before.compact_gain_bytes);
        assert!(
            length.abs_diff(expected.0) <= bound,
            "{name}: {length}, {expected:?}"
        );
        assert!(
            disk.abs_diff(expected.1) <= bound,
            "{name}: {disk}, {expected:?}"
        );
        if !shared && !is_read {
            let unwritten = gained(before.file_bytes, before.allocated_bytes);
            assert!(unwritten <= (1 << 20).max(before.file_bytes / 32), "{name}");
        }
    }
}
