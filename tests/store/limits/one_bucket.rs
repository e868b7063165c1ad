//! All documents in one bucket: 16,000 of them, 60,000 with `RESEMBLANCE_TESTS=all`, or a million with `RESEMBLANCE_LONG`.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use resemblance::schema::Rebanding;
use resemblance::{
    BulkOptions, Document, MinHash, Novelty, Schema, Signature, SimHash, Snapshot, Store,
    StoreOptions,
};

use crate::common::sample::trials;
use crate::common::{Place, Random, append_all, check_clean, remove_all, stats};
use crate::limits::{is_long, note};

const FAMILY: u64 = 10;

fn documents() -> u64 {
    if is_long() {
        1_000_000
    } else {
        trials(16_000, 60_000)
    }
}

fn options() -> StoreOptions {
    StoreOptions::new().flush_after(documents() / 16)
}

/// Documents that all share a bucket, in families of ten that are near to each other alone.
struct Corpus {
    schema: Schema,
    signature: fn(u64) -> Signature,
    /// A bucket of more different ones than this is that of all.
    max_bucket: usize,
    /// With these all documents share every bucket, or one at least.
    rebanding: Rebanding,
}

/// The first band is the same in all, the second in a family.
fn bands() -> Corpus {
    let minhash = MinHash::new(16).value_bits(32);
    let minhash = minhash.banding(2, 1).threshold(0.6);
    Corpus {
        schema: Schema::builder().minhash(minhash).build().unwrap(),
        signature: |number| {
            let (family, member) = ((number / FAMILY) as u32, (number % FAMILY) as u32);
            let mut values = vec![family; 12];
            values[0] = u32::MAX - 7;
            values.extend((0..4).map(|place| (1 << 31) + family * 40 + member * 4 + place));
            Signature::from_minhash(values)
        },
        max_bucket: 50,
        rebanding: Rebanding::new().banding(1, 1),
    }
}

/// Words of 48 bits, any two of which differ in six or more: those of a linear code with a random
/// basis, whose least weight the test counts.
fn code_word(number: u64) -> u64 {
    let bits = (0..17).filter(|bit| number >> bit & 1 == 1);
    bits.fold(0, |word, bit| word ^ Random(bit).next() >> 16)
}

/// The sixteen bits on top are the same in all; within a family two bits differ.
fn fingerprints() -> Corpus {
    let simhash = SimHash::bits64().max_distance(3);
    let builder = Schema::builder().simhash(simhash).expected_documents(1);
    Corpus {
        schema: builder.build().unwrap(),
        signature: |number| {
            let word = code_word(number / FAMILY) ^ 1 << (number % FAMILY);
            Signature::from_simhash(0xabcd << 48 | word)
        },
        max_bucket: 1_000,
        rebanding: Rebanding::new().max_distance(2),
    }
}

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

fn insert(store: &Store, numbers: std::ops::Range<u64>, corpus: &Corpus) {
    let keys: Vec<[u8; 8]> = numbers.clone().map(key).collect();
    let signatures: Vec<Signature> = numbers.map(corpus.signature).collect();
    let documents: Vec<_> = keys.iter().map(Document::new).zip(&signatures).collect();
    let mut transaction = store.begin_write().unwrap();
    transaction.insert_many(&documents).run().unwrap();
    transaction.commit().unwrap();
}

/// Queries see all documents, and find the family, of which `members` are left.
fn queries(snapshot: &Snapshot, corpus: &Corpus, members: usize, is_one_bucket: bool) {
    let live = snapshot.len() as usize;
    let last = documents() - 1;
    let asked = [1, last / 2, last].map(|number| (number, (corpus.signature)(number)));
    for (number, signature) in &asked {
        let answer = snapshot.query(signature).run().unwrap();
        let keys: BTreeSet<u64> = answer.iter().map(|found| number_of(found.key())).collect();
        assert!(keys.iter().all(|found| found / FAMILY == number / FAMILY));
        assert_eq!((answer.len(), keys.len()), (members, members));
        let few = snapshot.query(signature).limit(3).run().unwrap();
        assert!(few.iter().eq(answer.iter().take(3)));
        if is_one_bucket {
            let seen = snapshot.query(signature).candidates().unwrap();
            assert_eq!(seen.len(), live);
            assert!(seen.is_sorted_by(|a, b| a < b));
        }
    }
    let signatures = asked.map(|(_, signature)| signature);
    let many = snapshot.query(&signatures).limit(3).run().unwrap();
    for (answer, signature) in many.iter().zip(&signatures) {
        let one = snapshot.query(signature).limit(3).run().unwrap();
        assert!(answer.iter().eq(one.iter()));
    }
}

fn number_of(key: Option<&[u8]>) -> u64 {
    u64::from_le_bytes(key.unwrap().try_into().unwrap())
}

/// The join reports exactly how many pairs of the common bucket are not compared. Families meet in
/// other buckets.
fn joins(snapshot: &Snapshot, corpus: &Corpus, members: u64) {
    let families = documents() / FAMILY;
    let pairs = snapshot.pairs().max_bucket(corpus.max_bucket);
    let mut pairs = pairs.threads(2).run().unwrap();
    let mut count = 0;
    for pair in pairs.by_ref() {
        pair.unwrap();
        count += 1;
    }
    assert_eq!(count, families * members * (members - 1) / 2);
    let left_out = pairs.left_out();
    let rest = snapshot.len() - corpus.max_bucket as u64;
    assert!(left_out.buckets >= 1);
    assert!(left_out.documents >= rest && left_out.pairs >= rest * (rest - 1) / 2);
    if corpus.schema.simhash().is_none() {
        let expected = (1, rest, rest * (rest - 1) / 2);
        assert_eq!(
            (left_out.buckets, left_out.documents, left_out.pairs),
            expected
        );
    }
    let clusters = snapshot.clusters().max_bucket(corpus.max_bucket);
    let clusters = clusters.threads(2).run().unwrap();
    let sizes = clusters.map(|cluster| cluster.len() as u64);
    assert_eq!(
        sizes.filter(|size| *size == members).count() as u64,
        families
    );
}

/// Loads the first half in bulk, with at least enough documents to spill, and the others by
/// transactions with flushes and merges.
fn load(path: &Path, corpus: &Corpus) -> Store {
    let built = (documents() / 2).max(14_000);
    let little_memory = BulkOptions::new().memory_bytes(1 << 20).store(options());
    let mut build = Store::bulk_build(path, corpus.schema.clone(), &little_memory).unwrap();
    for number in 0..built {
        let key = key(number);
        build
            .insert(Document::new(&key), &(corpus.signature)(number))
            .unwrap();
    }
    assert!(build.finish().unwrap().spilled_bytes > 0);
    let store = options().open(path).unwrap();
    for batch in 0..10 {
        let first = |batch| built + batch * (documents() - built) / 10;
        insert(&store, first(batch)..first(batch + 1), corpus);
    }
    store
}

/// One document of each family is removed, and another is inserted again under a new id.
fn change(store: &Store, corpus: &Corpus) {
    for batch in 0..4u64 {
        let mut transaction = store.begin_write().unwrap();
        for family in (0..documents() / FAMILY).filter(|family| family % 4 == batch) {
            let removed = transaction.remove(key(family * FAMILY)).unwrap();
            assert!(removed.is_some());
            let again = family * FAMILY + 1;
            let signature = (corpus.signature)(again);
            assert!(transaction.remove(key(again)).unwrap().is_some());
            transaction.insert(key(again), &signature).unwrap();
        }
        transaction.commit().unwrap();
    }
}

fn all_in_one_bucket(name: &str, corpus: &Corpus) {
    let begun = Instant::now();
    let step = |what: &str| note(&format!("{name}: {what}"), begun);
    let place = Place::new();
    let path = place.store();
    let store = load(&path, corpus);
    step("loaded");
    assert_eq!(store.snapshot().unwrap().len(), documents());
    queries(&store.snapshot().unwrap(), corpus, 10, true);
    step("queried");
    change(&store, corpus);
    step("changed");
    let snapshot = store.snapshot().unwrap();
    let live = documents() - documents() / FAMILY;
    assert_eq!(snapshot.len(), live);
    queries(&snapshot, corpus, 9, true);
    let stats = snapshot.stats().run().unwrap();
    assert_eq!(
        (stats.buckets[0].documents, stats.runs.len() > 1),
        (live, true)
    );
    joins(&snapshot, corpus, 9);
    step("joined");
    drop((snapshot, store));
    check_clean(&path);
    options().compact(&path).run().unwrap();
    step("compacted");
    check_clean(&path);
    let store = options().open(&path).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.stats().run().unwrap().runs.len(), 1);
    queries(&snapshot, corpus, 9, true);
    joins(&snapshot, corpus, 9);
    drop((snapshot, store));
    let little_memory = BulkOptions::new().memory_bytes(1 << 20);
    Store::reband(&path, &corpus.rebanding)
        .bulk(little_memory)
        .run()
        .unwrap();
    step("rebanded");
    check_clean(&path);
    let snapshot = Store::open(&path).unwrap().snapshot().unwrap();
    queries(&snapshot, corpus, 9, corpus.schema.simhash().is_none());
    step("checked");
}

#[test]
fn different_documents_in_one_band_bucket_are_stored() {
    all_in_one_bucket("bands", &bands());
}

#[test]
fn different_fingerprints_in_one_prefix_bucket_are_stored() {
    let words = (1..1 << 17).map(code_word);
    assert!(
        words.map(u64::count_ones).min().unwrap() >= 6,
        "families are near"
    );
    all_in_one_bucket("fingerprints", &fingerprints());
}

fn alike(schema: &Schema) -> Signature {
    let sketcher = schema.sketcher();
    sketcher
        .text("the very same text as all others have")
        .unwrap()
}

fn all_alike(name: &str, schema: Schema) {
    let documents = trials(6_000, documents());
    let begun = Instant::now();
    let step = |what: &str| note(&format!("{name}: {what}"), begun);
    let place = Place::new();
    let path = place.store();
    let store = options().create(&path, schema.clone()).unwrap();
    let signature = alike(&schema);
    for _ in 0..10 {
        append_all(&store, (0..documents / 10).map(|_| signature.clone()));
    }
    step("loaded");
    let found = |snapshot: &Snapshot| {
        let answer = snapshot.query(&signature).limit(5).run().unwrap();
        assert_eq!(answer.candidates() as u64, snapshot.len());
        let ids: Vec<u64> = answer.iter().map(|found| found.id().get()).collect();
        let many = [signature.clone(), signature.clone()];
        for answer in snapshot.query(&many).limit(5).run().unwrap() {
            assert!(
                answer
                    .iter()
                    .map(|found| found.id().get())
                    .eq(ids.iter().copied())
            );
        }
        ids
    };
    assert_eq!(found(&store.snapshot().unwrap()), [0, 1, 2, 3, 4]);
    let new = store.insert_if_new("new", &signature).unwrap();
    assert!(matches!(&new, Novelty::NearDuplicate(found) if found.id().get() == 0));
    step("queried");
    remove_all(&store, (0..documents).step_by(2));
    let snapshot = store.snapshot().unwrap();
    assert_eq!(found(&snapshot), [1, 3, 5, 7, 9]);
    let clusters = snapshot.clusters().run().unwrap();
    assert_eq!(clusters.suspicious().len(), 1);
    let clusters: Vec<_> = clusters.collect();
    let ids = clusters[0].iter().map(|id| id.get());
    assert!(clusters.len() == 1 && ids.eq((1..documents).step_by(2)));
    let pairs = snapshot.pairs().run().unwrap();
    assert_eq!(
        pairs.take(100_000).filter(|pair| pair.is_ok()).count(),
        100_000
    );
    step("joined");
    drop((snapshot, store));
    check_clean(&path);
    options().compact(&path).run().unwrap();
    check_clean(&path);
    let snapshot = Store::open(&path).unwrap().snapshot().unwrap();
    assert_eq!(found(&snapshot), [1, 3, 5, 7, 9]);
    step("compacted and checked");
}

#[test]
fn documents_with_one_signature_are_stored() {
    let text = || Schema::builder().text(resemblance::Text::words(2));
    let minhash = MinHash::new(64).threshold(0.7);
    all_alike("equal signatures", text().minhash(minhash).build().unwrap());
    let simhash = text().simhash(SimHash::bits64()).build().unwrap();
    all_alike("equal fingerprints", simhash);
}

/// A key is replaced over and over. All its postings have one code, and all but one are deleted.
#[test]
fn one_key_can_be_replaced_many_times() {
    let corpus = bands();
    let place = Place::new();
    let options = StoreOptions::new().flush_after(200);
    let store = options
        .create(place.store(), corpus.schema.clone())
        .unwrap();
    let replacements = if is_long() { 200_000 } else { 10_000 };
    for batch in 0..replacements / 100 {
        let mut transaction = store.begin_write().unwrap();
        for number in batch * 100..(batch + 1) * 100 {
            let signature = (corpus.signature)(number);
            let upserted = transaction.upsert("key", &signature).unwrap();
            assert_eq!(upserted.id.get(), number);
            let before = upserted.replaced.map(|id| id.get());
            assert_eq!(before, number.checked_sub(1));
        }
        transaction.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.len(), 1);
        let seen = snapshot.query(&(corpus.signature)(0)).candidates().unwrap();
        assert_eq!(seen[0].get(), (batch + 1) * 100 - 1);
    }
    let stats = stats(&store);
    assert!(
        stats.dead_rows < replacements / 4,
        "{}: none was dropped",
        stats.dead_rows
    );
    drop(store);
    check_clean(&place.store());
}
