//! Documents and folders that the benchmarks share: the same documents in every run.

#![allow(dead_code, reason = "each benchmark uses a part of it")]

use std::path::PathBuf;
use std::sync::OnceLock;

use resemblance::{Document, MinHash, Result, Schema, Signature, Store};
use tempfile::TempDir;

/// Values in a signature.
const VALUES: u64 = 128;

/// Where the stores of this run are.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Runs the benchmarks of a binary, and removes the stores that they made.
///
/// # Panics
///
/// If no folder can be made for the stores.
pub(crate) fn run() {
    // Beside the build: folders of temporary files are often in memory, where commits cost nothing.
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    FOLDER.set(folder.path().to_owned()).unwrap();
    divan::main();
}

/// A new, empty store with MinHash of 128 permutations, banded for similarities from 0.7.
pub(crate) fn empty_store(name: &str) -> Result<Store> {
    let path = FOLDER.get().unwrap().join(name);
    let minhash = MinHash::new(VALUES as u16).threshold(0.7);
    Store::create(path, Schema::builder().minhash(minhash).build()?)
}

/// A new store of the documents 0 to `count`, inserted in four transactions.
pub(crate) fn store(name: &str, count: u64) -> Result<Store> {
    let store = empty_store(name)?;
    let documents: Vec<(String, Signature)> = (0..count).map(document).collect();
    for part in documents.chunks(documents.len().div_ceil(4)) {
        let part: Vec<(Document<'_>, &Signature)> = part
            .iter()
            .map(|(key, signature)| (Document::new(key), signature))
            .collect();
        let mut transaction = store.begin_write()?;
        transaction.insert_many(&part).run()?;
        transaction.commit()?;
    }
    Ok(store)
}

/// A store of this name that was closed.
pub(crate) fn reopened(name: &str) -> Result<Store> {
    Store::open(FOLDER.get().unwrap().join(name))
}

/// The key and the signature of document `number`. Every tenth document is similar to an earlier
/// one by about 0.88, and to the other copies of that one by about 0.77. Others have nothing in common.
pub(crate) fn document(number: u64) -> (String, Signature) {
    let is_copy = number % 10 == 9;
    // A multiple of ten, and so no copy itself.
    let original = mix(number) % (number / 10 + 1) * 10;
    let values = (0..VALUES).map(|place| {
        let is_shared = is_copy && mix(mix(number) ^ place) >> 61 != 0;
        let source = if is_shared { original } else { number };
        (mix(source * VALUES + place) >> 32) as u32
    });
    (
        number.to_string(),
        Signature::from_minhash(values.collect()),
    )
}

/// SplitMix64: numbers that look random and are the same in every run.
pub(crate) fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
