//! Copies of stores that are in use: each is its snapshot, whatever is written meanwhile.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Result as IoResult};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use redb::{ReadableDatabase, ReadableTable, TableDefinition, TableHandle};

use crate::common::memory::{Call, MemoryFiles, Watch, WatchedFiles};
use crate::common::sample::trials;
use crate::common::{Ending, Place, Random, check_clean, sealing_after, stats};
use resemblance::stats::Stats;
use resemblance::{
    Document, Error, MinHash, Pair, Record, Schema, Signature, SimHash, Snapshot, Store,
    StoreOptions, WriteTransaction,
};

fn schema() -> Schema {
    let builder = Schema::builder().minhash(MinHash::new(16).banding(4, 3).threshold(0.5));
    builder.simhash(SimHash::bits64()).build().unwrap()
}

/// One of 60 families, in which most are near to each other.
fn signature(random: &mut Random) -> Signature {
    let family = random.below(60);
    let mut of_family = Random(family);
    let mut values: Vec<u32> = (0..16).map(|_| of_family.next() as u32).collect();
    values[random.below(16) as usize] = random.next() as u32;
    Signature::from_parts(Some(values), Some(of_family.next() ^ random.bits(2)))
}

/// Small runs and small slices: merges are under way most of the time.
fn options() -> StoreOptions {
    sealing_after(24)
}

fn key(random: &mut Random) -> Vec<u8> {
    random.below(300).to_le_bytes().to_vec()
}

fn some_change(transaction: &mut WriteTransaction, random: &mut Random) {
    let (key, signature) = (key(random), signature(random));
    let payload = vec![random.next() as u8; random.below(300) as usize];
    let document = Document::new(&key).stamp(random.next()).payload(&payload);
    match random.below(8) {
        0..=3 => drop(transaction.upsert(document, &signature).unwrap()),
        4 => drop(transaction.insert(document, &signature)),
        5 => drop(
            transaction
                .insert(Document::without_key(), &signature)
                .unwrap(),
        ),
        _ => drop(transaction.remove(&key).unwrap()),
    }
}

fn commit_some(store: &Store, random: &mut Random, most: u64) {
    let mut transaction = store.begin_write().unwrap();
    for _ in 0..1 + random.below(most) {
        some_change(&mut transaction, random);
    }
    transaction.commit().unwrap();
}

fn records(snapshot: &Snapshot) -> Vec<Record> {
    snapshot.iter().map(Result::unwrap).collect()
}

fn pairs(snapshot: &Snapshot) -> Vec<Pair> {
    let pairs = snapshot.pairs().run().unwrap();
    pairs.map(Result::unwrap).collect()
}

/// Removes statistics that depend on pages or on how long the store has been open.
fn of_rows(mut stats: Stats) -> Stats {
    for lane in &mut stats.lanes {
        // Until the next flush, the postings of removed documents that were not flushed are in
        // memory.
        lane.postings = 0;
    }
    for table in &mut stats.tables {
        (table.metadata_bytes, table.fragmented_bytes) = (0, 0);
    }
    stats.file_bytes = 0;
    stats.allocated_bytes = 0;
    stats.compact_gain_bytes = 0;
    stats.compact_length_gain_bytes = 0;
    stats.bytes_per_document = 0.0;
    stats.filter_cache_bytes = 0;
    stats.block_cache_bytes = 0;
    stats.memtable_bytes = 0;
    stats
}

/// That a copy is what the snapshot sees.
fn assert_same(copy: &Snapshot, expected: &Snapshot, random: &mut Random) {
    assert!(records(copy) == records(expected));
    let (found, stats) = (copy.stats().run().unwrap(), expected.stats().run().unwrap());
    assert_eq!(of_rows(found), of_rows(stats));
    assert_eq!(pairs(copy), pairs(expected));
    let mut answers = 0;
    for _ in 0..40 {
        let signature = signature(random);
        let found = copy.query(&signature).run().unwrap();
        answers += found.len();
        assert_eq!(found, expected.query(&signature).run().unwrap());
        assert_eq!(
            copy.nearest(&signature, 5).run().unwrap(),
            expected.nearest(&signature, 5).run().unwrap()
        );
        let key = key(random);
        assert_eq!(copy.get(&key).unwrap(), expected.get(&key).unwrap());
    }
    assert!(answers > 40 || expected.len() < 60, "{answers}");
}

/// That a copy can be written to as the store itself could.
fn assert_writable(path: &Path, random: &mut Random) {
    let store = options().open(path).unwrap();
    let mut expected: BTreeMap<u64, Record> = BTreeMap::new();
    for record in records(&store.snapshot().unwrap()) {
        expected.insert(record.id().get(), record);
    }
    for round in 0..40u64 {
        let (key, signature) = ((round % 20).to_le_bytes(), signature(random));
        let done = store.upsert(key, &signature).unwrap();
        if let Some(replaced) = done.replaced {
            assert!(expected.remove(&replaced.get()).is_some());
        }
        let record = store.snapshot().unwrap().get(key).unwrap().unwrap();
        assert!(expected.insert(done.id.get(), record).is_none());
    }
    let found = records(&store.snapshot().unwrap());
    assert!(found.iter().eq(expected.values()));
    drop(store);
    check_clean(path);
}

/// Four copies, twelve with `RESEMBLANCE_TESTS=all`.
#[test]
fn backup_of_a_busy_store_equals_its_snapshot() {
    let place = Place::new();
    let store = options().create(place.store(), schema()).unwrap();
    let (done, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut merging, mut dead, mut unflushed) = (0, 0, 0);
    thread::scope(|scope| {
        for writer in 0..2 {
            let (store, done, commits) = (&store, &done, &commits);
            scope.spawn(move || {
                let mut random = Random(writer);
                while !done.load(Ordering::Acquire) {
                    commit_some(store, &mut random, 20);
                    commits.fetch_add(1, Ordering::Release);
                }
            });
        }
        let wait_for = |more: u64| {
            let wanted = commits.load(Ordering::Acquire) + more;
            while commits.load(Ordering::Acquire) < wanted {
                thread::yield_now();
            }
        };
        let _ending = Ending(&done);
        let mut random = Random(99);
        for number in 0..trials(4, 12) {
            wait_for(15);
            let snapshot = store.snapshot().unwrap();
            let path = place.file(&format!("copy-{number}.rsm"));
            let mut events = 0;
            let report = snapshot.backup(&path).store(options()).on_progress(|_| {
                // Commits happen in between, and reuse free pages.
                wait_for(1);
                events += 1;
                ControlFlow::Continue(())
            });
            let report = report.run().unwrap();
            assert!(events > 4, "{events}");
            assert_eq!(report.documents, snapshot.len());
            let copy = options().open(&path).unwrap();
            assert_same(&copy.snapshot().unwrap(), &snapshot, &mut random);
            let stats = snapshot.stats().run().unwrap();
            assert_eq!(
                report.rows,
                stats.tables.iter().map(|table| table.rows).sum::<u64>()
            );
            merging += usize::from(!stats.merges.is_empty());
            dead += usize::from(stats.dead_rows > 0);
            unflushed += usize::from(stats.memtable_documents > 0);
            drop(copy);
            check_clean(&path);
            assert_writable(&path, &mut random);
        }
    });
    assert!(dead > 0 && unflushed > 0, "{merging} {dead} {unflushed}");
    drop(store);
    check_clean(&place.store());
}

/// A closed store with a merge under way, in whose first phase rows of removed documents go.
fn merging_store(path: &Path) {
    let store = options().create(path, schema()).unwrap();
    let mut random = Random(7);
    for commits in 0.. {
        assert!(commits < 5_000, "no merge was seen under way");
        commit_some(&store, &mut random, 20);
        let stats = stats(&store);
        if commits > 100 && stats.dead_rows > 0 && stats.memtable_documents > 0 {
            let mut merges = stats.merges.iter();
            if merges.any(|merge| merge.postings > 0 && merge.postings_left > 0) {
                return;
            }
        }
    }
}

type Rows = Vec<(String, Vec<u8>, Vec<u8>)>;

fn rows_of<K: redb::Key + 'static>(
    read: &redb::ReadTransaction,
    table: TableDefinition<'static, K, &'static [u8]>,
    rows: &mut Rows,
) {
    let opened = read.open_table(table).unwrap();
    for row in opened.iter().unwrap() {
        let (key, value) = row.unwrap();
        let key = K::as_bytes(&key.value()).as_ref().to_vec();
        rows.push((table.name().to_owned(), key, value.value().to_vec()));
    }
}

/// Everything that the engine has in a file.
fn all_rows(path: &Path) -> Rows {
    let database = crate::common::engine::database(path);
    let read = database.begin_read().unwrap();
    let mut rows = Rows::new();
    rows_of::<&str>(&read, TableDefinition::new("meta"), &mut rows);
    rows_of::<u16>(&read, TableDefinition::new("lanes"), &mut rows);
    rows_of::<u32>(&read, TableDefinition::new("runs"), &mut rows);
    for table in ["documents", "payloads", "dead", "equal"] {
        rows_of::<u64>(&read, TableDefinition::new(table), &mut rows);
    }
    for table in ["keys", "bands", "permuted"] {
        rows_of::<&[u8; 22]>(&read, TableDefinition::new(table), &mut rows);
    }
    rows_of::<&[u8; 10]>(&read, TableDefinition::new("filters"), &mut rows);
    assert_eq!(read.list_tables().unwrap().count(), 11);
    rows
}

#[test]
fn backup_copies_rows_byte_for_byte() {
    let place = Place::new();
    merging_store(&place.store());
    let copy = place.file("copy.rsm");
    let store = Store::open_read_only(place.store()).unwrap();
    let other_reader = Store::open_read_only(place.store()).unwrap();
    store.snapshot().unwrap().backup(&copy).run().unwrap();
    drop((store, other_reader));
    let rows = all_rows(&place.store());
    for table in ["meta", "lanes", "runs", "documents", "payloads", "dead"] {
        assert!(rows.iter().any(|(name, ..)| name == table), "{table}");
    }
    assert!(rows == all_rows(&copy));
    check_clean(&copy);
}

fn empty_store(place: &Place) -> Store {
    options().create(place.store(), schema()).unwrap()
}

#[test]
fn backup_copies_an_empty_store() {
    let place = Place::new();
    let store = empty_store(&place);
    let copy = place.file("copy.rsm");
    let report = store.snapshot().unwrap().backup(&copy).run().unwrap();
    assert_eq!(report.documents, 0);
    check_clean(&copy);
    assert_writable(&copy, &mut Random(1));
}

fn names(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.store().parent().unwrap()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn backup_replaces_no_existing_file() {
    let place = Place::new();
    merging_store(&place.store());
    let store = Store::open(place.store()).unwrap();
    let snapshot = store.snapshot().unwrap();
    let copy = place.file("copy.rsm");
    std::fs::write(&copy, "precious").unwrap();
    for path in [&copy, &place.store()] {
        let refused = snapshot.backup(path).run();
        assert!(matches!(refused, Err(Error::AlreadyExists { path: found }) if found == *path));
    }
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), "precious");
    std::fs::remove_file(&copy).unwrap();
}

/// Flips the last bit of the value of a row of a table, and leaves its checksum.
fn spoil<K: redb::Key + 'static>(path: &Path, table: TableDefinition<'_, K, &'static [u8]>) {
    let database = crate::common::engine::database(path);
    let write = database.begin_write().unwrap();
    {
        let mut table = write.open_table(table).unwrap();
        let (key, mut value) = {
            let (key, value) = table.first().unwrap().unwrap();
            let key = K::as_bytes(&key.value()).as_ref().to_vec();
            (key, value.value().to_vec())
        };
        let middle = value.len() / 2;
        value[middle] ^= 1;
        let key = K::from_bytes(&key);
        table.insert(key, value.as_slice()).unwrap();
    }
    write.commit().unwrap();
}

type Spoil = fn(&Path, &'static str);

/// Backs up a damaged store. Checks that there is no backup, and returns the error message.
fn refused(place: &Place) -> String {
    let store = Store::open(place.store()).unwrap();
    let snapshot = store.snapshot().unwrap();
    match snapshot.backup(place.file("copy.rsm")).run() {
        Err(Error::Corrupt { place: found, .. }) => {
            assert_eq!(names(place), ["store.rsm"]);
            found
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn backup_names_a_damaged_row_and_leaves_no_copy() {
    let spoilers: [(&str, Spoil); 5] = [
        ("documents", |path, name| {
            spoil::<u64>(path, TableDefinition::new(name))
        }),
        ("payloads", |path, name| {
            spoil::<u64>(path, TableDefinition::new(name))
        }),
        ("bands", |path, name| {
            spoil::<&[u8; 22]>(path, TableDefinition::new(name))
        }),
        ("permuted", |path, name| {
            spoil::<&[u8; 22]>(path, TableDefinition::new(name))
        }),
        ("filters", |path, name| {
            spoil::<&[u8; 10]>(path, TableDefinition::new(name))
        }),
    ];
    let whole = Place::new();
    merging_store(&whole.store());
    for (name, spoil) in spoilers {
        let place = Place::new();
        std::fs::copy(whole.store(), place.store()).unwrap();
        spoil(&place.store(), name);
        let found = refused(&place);
        assert!(found.starts_with(&format!("table {name}, ")), "{found}");
    }
}

#[test]
fn backup_copies_tables_of_a_newer_release() {
    let place = Place::new();
    drop(empty_store(&place));
    let foreign: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("of_a_later_release");
    {
        let database = crate::common::engine::database(place.store());
        let write = database.begin_write().unwrap();
        write.open_table(foreign).unwrap();
        write.commit().unwrap();
    }
    assert_eq!(refused(&place), "table of_a_later_release");
}

/// Files with a maximum size in bytes.
#[derive(Debug)]
struct Full(u64);

impl Watch for Full {
    fn before(&self, call: &Call<'_>) -> IoResult<()> {
        match call {
            Call::Write(offset, data) if offset + data.len() as u64 > self.0 => {
                Err(ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn backup_on_a_full_disk_leaves_no_copy_and_a_working_store() {
    let place = Place::new();
    merging_store(&place.store());
    let store = options().open(place.store()).unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut random = Random(3);
    let mut failed = 0;
    for most_bytes in (0..).step_by(64 << 10) {
        let disk = WatchedFiles::new(MemoryFiles::default(), Full(most_bytes));
        let options = disk.options(&options());
        let result = snapshot.backup("copy.rsm").store(options.clone()).run();
        commit_some(&store, &mut random, 5);
        match result {
            Ok(_) => {
                let copy = options.open("copy.rsm").unwrap();
                assert_same(&copy.snapshot().unwrap(), &snapshot, &mut random);
                break;
            }
            Err(error @ Error::Io { .. }) => {
                assert!(error.to_string().contains("copy.rsm"), "{error}");
                assert!(disk.files.names().is_empty());
                failed += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(failed > 2, "{failed}");
}
