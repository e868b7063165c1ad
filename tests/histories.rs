//! The same documents give the same answers, however they came into the store: through the
//! memtable, through runs, through merges, and after some were removed and came back.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

use std::collections::BTreeSet;
use std::path::Path;

use resemblance::{
    Bounds, By, MinHash, Schema, Signature, SimHash, Store, StoreOptions, WriteTransaction,
};

type Documents = Vec<(String, Signature)>;

fn schema() -> Schema {
    let minhash = MinHash::new(64).threshold(0.7);
    let builder = Schema::builder().minhash(minhash);
    builder.simhash(SimHash::bits64()).build().unwrap()
}

fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Families of four: of each, the members share most of 40 features.
fn documents() -> Documents {
    let sketcher = schema().sketcher();
    let document = |number: u64| {
        let (family, member) = (number / 4, number % 4);
        let feature = |place: u64| {
            let own = if place < member * 2 { number + 1 } else { 0 };
            mixed(family * 1_000 + place).wrapping_add(own)
        };
        let signature = sketcher.hashes((0..40).map(feature)).unwrap();
        (format!("document {number}"), signature)
    };
    (0..2_000).map(document).collect()
}

fn insert(transaction: &mut WriteTransaction, documents: &[(String, Signature)]) {
    for (key, signature) in documents {
        transaction.insert(key, signature).unwrap();
    }
}

/// The pairs by key, with both measures, by either family.
fn pairs(store: &Store) -> BTreeSet<(String, String, u64, u32)> {
    let snapshot = store.snapshot().unwrap();
    assert!(snapshot.check().unwrap().is_clean());
    let key = |id| String::from_utf8(snapshot.key(id).unwrap().unwrap()).unwrap();
    let bounds = Bounds::new().by(By::Any);
    let named = snapshot.pairs(bounds).unwrap().map(|pair| {
        let pair = pair.unwrap();
        let (a, b) = (key(pair.a), key(pair.b));
        let measures = (pair.similarity.unwrap().to_bits(), pair.distance.unwrap());
        (a.clone().min(b.clone()), a.max(b), measures.0, measures.1)
    });
    let found: Vec<_> = named.collect();
    let distinct: BTreeSet<_> = found.iter().cloned().collect();
    assert_eq!(distinct.len(), found.len(), "each pair comes once");
    distinct
}

fn create(path: &Path, flush_after: u64) -> Store {
    let options = StoreOptions::new().flush_after(flush_after);
    options.create(path, schema()).unwrap()
}

#[test]
fn pairs_do_not_depend_on_the_history_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let documents = documents();

    let in_memory = create(&folder.path().join("memory"), 1 << 20);
    let mut transaction = in_memory.begin_write().unwrap();
    insert(&mut transaction, &documents);
    transaction.commit().unwrap();
    let expected = pairs(&in_memory);
    assert!(expected.len() > 1_000, "{} pairs", expected.len());

    // One transaction that seals and merges many times inside.
    let sealed = create(&folder.path().join("sealed"), 64);
    let mut transaction = sealed.begin_write().unwrap();
    insert(&mut transaction, &documents);
    transaction.commit().unwrap();
    assert!(sealed.snapshot().unwrap().stats().unwrap().runs.len() > 1);
    assert_eq!(pairs(&sealed), expected);

    // Fifty pieces, the store opened for each.
    let path = folder.path().join("pieces");
    drop(create(&path, 64));
    let options = StoreOptions::new().flush_after(64);
    for piece in documents.chunks(40) {
        let store = options.open(&path).unwrap();
        let mut transaction = store.begin_write().unwrap();
        insert(&mut transaction, piece);
        transaction.commit().unwrap();
    }
    let pieces = Store::open(&path).unwrap();
    assert_eq!(pairs(&pieces), expected);

    // A tenth removed and inserted again; then half, which has runs rewritten.
    for step in [10, 2] {
        let mut transaction = sealed.begin_write().unwrap();
        for (key, _) in documents.iter().step_by(step) {
            transaction.remove(key).unwrap().unwrap();
        }
        transaction.commit().unwrap();
        let left = pairs(&sealed);
        assert!(left.len() < expected.len() && left.is_subset(&expected));
        let mut transaction = sealed.begin_write().unwrap();
        for (key, signature) in documents.iter().step_by(step) {
            transaction.insert(key, signature).unwrap();
        }
        transaction.commit().unwrap();
        assert_eq!(pairs(&sealed), expected);
    }

    drop(sealed);
    Store::compact(folder.path().join("sealed")).unwrap();
    let compacted = Store::open(folder.path().join("sealed")).unwrap();
    assert!(compacted.snapshot().unwrap().stats().unwrap().runs.len() <= 1);
    assert_eq!(pairs(&compacted), expected);
}
