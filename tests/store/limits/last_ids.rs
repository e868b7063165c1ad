//! Ids near the end of their range, with and without small ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use resemblance::schema::Rebanding;
use resemblance::{
    BulkOptions, Document, Error, MinHash, Schema, Signature, SimHash, Snapshot, Store,
    StoreOptions,
};

use crate::common::sample::trials;
use crate::common::{Place, Random, check_clean, refused, stats};
use crate::limits::state;

const SEAL_AFTER: u64 = 150;
const FAMILY: u64 = 4;
/// The first id of the last chunk of 16,000 whose removal is noted together; it is cut short.
const LAST_CHUNK: u64 = u64::MAX / 16_000 * 16_000;

fn schema() -> Schema {
    let minhash = MinHash::new(16).banding(3, 2).threshold(0.5);
    let simhash = SimHash::bits64().max_distance(3);
    let builder = Schema::builder().minhash(minhash).simhash(simhash);
    builder.build().unwrap()
}

fn options() -> StoreOptions {
    let options = StoreOptions::new().flush_after(SEAL_AFTER);
    options.cache_bytes(4 << 20).merge_slice(500)
}

/// All share the first band, and families of four are near to each other.
fn signature(number: u64) -> Signature {
    let mut random = Random(number / FAMILY);
    let mut values: Vec<u32> = (0..16).map(|_| random.next() as u32).collect();
    (values[0], values[1], values[15]) = (7, 7, number as u32);
    Signature::from_parts(Some(values), Some(random.next() ^ 1 << (number % FAMILY)))
}

/// Which document has which id.
type Ids = BTreeMap<u64, u64>;

fn insert(store: &Store, ids: &mut Ids, numbers: std::ops::Range<u64>) {
    let mut transaction = store.begin_write().unwrap();
    for number in numbers {
        let id = transaction.insert(number.to_le_bytes(), &signature(number));
        ids.insert(number, id.unwrap().get());
    }
    transaction.commit().unwrap();
}

fn family(ids: &Ids, number: u64) -> BTreeSet<u64> {
    let first = number / FAMILY * FAMILY;
    ids.range(first..first + FAMILY)
        .map(|(_, id)| *id)
        .collect()
}

/// Queries about four documents beside the first and the last, or 15 with `RESEMBLANCE_TESTS=all`.
fn holds(snapshot: &Snapshot, ids: &Ids) {
    assert_eq!(snapshot.len(), ids.len() as u64);
    let stored = snapshot.iter().map(|record| record.unwrap().id().get());
    let expected: BTreeSet<u64> = ids.values().copied().collect();
    assert!(stored.eq(expected.iter().copied()));
    let (first, last) = (
        ids.first_key_value().unwrap(),
        ids.last_key_value().unwrap(),
    );
    let sample = ids
        .iter()
        .step_by(ids.len() / trials(4, 15) + 1)
        .chain([first, last]);
    for (&number, &id) in sample {
        let record = snapshot.get(number.to_le_bytes()).unwrap().unwrap();
        assert_eq!(record.id().get(), id);
        assert_eq!(snapshot.get_id(record.id()).unwrap(), Some(record));
        let asked = signature(number);
        let found = snapshot.query(&asked).run().unwrap();
        let found: BTreeSet<u64> = found.iter().map(|found| found.id().get()).collect();
        assert_eq!(found, family(ids, number));
        let asked = [asked, signature(number + 1)];
        for (answer, signature) in snapshot.query(&asked).run().unwrap().iter().zip(&asked) {
            let one = snapshot.query(signature).run().unwrap();
            assert!(answer.iter().eq(one.iter()));
        }
    }
    let all = snapshot.query(&signature(0)).candidates().unwrap();
    assert!(all.iter().map(|id| id.get()).eq(expected));
}

/// Families are what is joined; the bucket of all is cut short.
fn joins(snapshot: &Snapshot, ids: &Ids) {
    let max_bucket = 2 * FAMILY as usize;
    let families: BTreeSet<BTreeSet<u64>> = ids.keys().map(|number| family(ids, *number)).collect();
    let several = families.iter().filter(|family| family.len() > 1);
    let clusters = snapshot.clusters().max_bucket(max_bucket).run().unwrap();
    let clusters: BTreeSet<BTreeSet<u64>> = clusters
        .map(|cluster| cluster.into_iter().map(|id| id.get()).collect())
        .collect();
    assert!(clusters.iter().eq(several.clone()));
    let pairs = snapshot.pairs().max_bucket(max_bucket).run().unwrap();
    let pairs = pairs.map(Result::unwrap).count();
    assert_eq!(
        pairs,
        several
            .map(|family| family.len() * (family.len() - 1) / 2)
            .sum()
    );
}

/// Where the ids of a store make their leap.
#[derive(Clone, Copy, Debug)]
enum Leap {
    /// There are no small ones.
    Alone,
    /// Within the memtable, and so within a run.
    InMemtable,
    /// Behind a run: ids that no run covers.
    BehindRun,
}

fn set_next_id(path: &Path, next_id: u64, is_sealed: bool) -> Store {
    state::change(path, |state| {
        if is_sealed {
            assert_eq!(state.unflushed_documents, 0);
            state.flushed_below = next_id;
        }
        state.next_id = next_id;
    });
    options().open(path).unwrap()
}

/// A store whose next id is a little before the last chunk.
fn near_the_end(path: &Path, leap: Leap, ids: &mut Ids) -> Store {
    let store = options().create(path, schema()).unwrap();
    match leap {
        Leap::Alone => {}
        Leap::InMemtable => insert(&store, ids, 0..2 * SEAL_AFTER + 50),
        Leap::BehindRun => insert(&store, ids, 0..2 * SEAL_AFTER),
    }
    drop(store);
    let is_sealed = !matches!(leap, Leap::InMemtable);
    set_next_id(path, LAST_CHUNK - 500, is_sealed)
}

/// Removes and replaces, so that ids in all places die.
fn change(store: &Store, ids: &mut Ids, step: u64) {
    let numbers: Vec<u64> = ids.keys().copied().collect();
    let mut transaction = store.begin_write().unwrap();
    for number in numbers.into_iter().filter(|number| number % step == 3) {
        let key = number.to_le_bytes();
        if number % 2 == 0 {
            let removed = transaction.remove(key).unwrap();
            assert_eq!(removed.map(|id| id.get()), ids.remove(&number));
        } else {
            let removed = transaction.remove(key).unwrap();
            let id = transaction.insert(key, &signature(number)).unwrap();
            let before = ids.insert(number, id.get());
            assert_eq!(removed.map(|id| id.get()), before);
        }
    }
    transaction.commit().unwrap();
}

/// Returns the maximum number of bits of an id in a block of bands, in addition to the block's
/// smallest id.
fn widest_ids(path: &Path) -> u8 {
    const BANDS: TableDefinition<'static, &[u8; 22], &[u8]> = TableDefinition::new("bands");
    let database = crate::common::engine::database(path);
    let bands = database.begin_read().unwrap().open_table(BANDS).unwrap();
    let blocks = bands.iter().unwrap().map(Result::unwrap);
    blocks.map(|(_, block)| block.value()[3]).max().unwrap()
}

fn last_ids_are_as_good_as_others(leap: Leap) {
    let place = Place::new();
    let path = place.store();
    let mut ids = Ids::new();
    let store = near_the_end(&path, leap, &mut ids);
    let first = ids.len() as u64;
    insert(&store, &mut ids, first..first + 1_000);
    change(&store, &mut ids, 13);
    holds(&store.snapshot().unwrap(), &ids);
    drop(store);
    // A second leap, within the chunk.
    let store = set_next_id(&path, u64::MAX - 2_000, false);
    insert(&store, &mut ids, first + 1_000..first + 2_200);
    change(&store, &mut ids, 7);
    holds(&store.snapshot().unwrap(), &ids);
    joins(&store.snapshot().unwrap(), &ids);
    // The rest, to the very last one.
    let used = stats(&store).next_id;
    let number = first + 2_200 + (u64::MAX - 1 - used);
    insert(&store, &mut ids, first + 2_200..number);
    refused(store.insert("one more", &signature(number)), "documents");
    let mut transaction = store.begin_write().unwrap();
    let upserted = transaction.upsert((number - 1).to_le_bytes(), &signature(number));
    assert!(upserted.is_err());
    // The upsert had removed the old document: this must not be committed.
    assert!(matches!(transaction.commit(), Err(Error::Closed { .. })));
    assert_eq!(ids.values().max(), Some(&(u64::MAX - 2)));
    holds(&store.snapshot().unwrap(), &ids);
    // Removal still works, also for the last id, and ids are not reused.
    for number in [number - 1, number - 2, first + 500] {
        let removed = store.remove(number.to_le_bytes()).unwrap();
        assert_eq!(removed.map(|id| id.get()), ids.remove(&number));
    }
    assert!(
        store
            .insert(Document::without_key(), &signature(1))
            .is_err()
    );
    holds(&store.snapshot().unwrap(), &ids);
    drop(store);
    check_clean(&path);
    options().compact(&path).run().unwrap();
    check_clean(&path);
    let store = options().open(&path).unwrap();
    holds(&store.snapshot().unwrap(), &ids);
    joins(&store.snapshot().unwrap(), &ids);
    drop(store);
    // All are in one run, and some of the first and of the last in one block.
    assert_eq!(widest_ids(&path) == 64, !matches!(leap, Leap::Alone));

    let rebanding = Rebanding::new().banding(4, 2).max_distance(2);
    let small_memory = BulkOptions::new().memory_bytes(1 << 20);
    Store::reband(&path, &rebanding)
        .bulk(small_memory)
        .run()
        .unwrap();
    check_clean(&path);
    let store = options().open(&path).unwrap();
    holds(&store.snapshot().unwrap(), &ids);
    joins(&store.snapshot().unwrap(), &ids);
}

#[test]
fn last_ids_work_in_a_separate_run() {
    last_ids_are_as_good_as_others(Leap::Alone);
}

#[test]
fn last_ids_work_in_a_run_with_the_first() {
    last_ids_are_as_good_as_others(Leap::InMemtable);
}

#[test]
fn last_ids_work_after_the_run_of_the_first() {
    last_ids_are_as_good_as_others(Leap::BehindRun);
}
