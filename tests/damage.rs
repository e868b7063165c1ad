//! Damaged files: whatever bit flips, the answer is an error or right, and nothing panics.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use common::{Place, Random, sealing_after};
use resemblance::{Bounds, Document, MinHash, Schema, Signature, SimHash, Snapshot, Store};

const DOCUMENTS: u64 = 150;

fn signature(group: u64, number: u64) -> Signature {
    let mut random = Random(group);
    let mut values: Vec<u32> = (0..16).map(|_| random.next() as u32).collect();
    values[15] = number as u32;
    let fingerprint = random.next() ^ (1 << (number % 64));
    Signature::from_parts(Some(values), Some(fingerprint))
}

type Documents = BTreeMap<Vec<u8>, (Signature, Vec<u8>)>;

/// A store with runs of two levels, dead documents, and documents in memory.
fn filled(path: &Path) -> Documents {
    let schema = Schema::builder()
        .minhash(MinHash::new(16).banding(4, 4))
        .simhash(SimHash::bits64())
        .build()
        .unwrap();
    let store = Store::create_with(path, schema, &sealing_after(8)).unwrap();
    let mut documents = Documents::new();
    for first in (0..DOCUMENTS).step_by(10) {
        let mut transaction = store.begin_write().unwrap();
        for number in first..first + 10 {
            let key = number.to_le_bytes().to_vec();
            let (signature, payload) = (signature(number / 3, number), vec![7; number as usize]);
            let document = Document::new(&key).payload(&payload);
            transaction.insert_document(document, &signature).unwrap();
            documents.insert(key, (signature, payload));
        }
        if first > 0 {
            let key = (first - 7).to_le_bytes();
            transaction.remove(key).unwrap();
            documents.remove(&key[..]);
        }
        transaction.commit().unwrap();
    }
    documents
}

/// Everything that is read from a snapshot; how many documents it misses without an error.
fn read(snapshot: &Snapshot, expected: &Documents) -> u32 {
    let mut missing = 0;
    for (key, (signature, payload)) in expected {
        match snapshot.get(key) {
            Ok(Some(record)) => {
                assert_eq!(record.signature(), signature);
                assert_eq!(record.payload(), payload);
            }
            Ok(None) => missing += 1,
            Err(_) => {}
        }
        if let Ok(matches) = snapshot.query(signature).run() {
            let found = matches.iter().any(|found| found.key() == Some(key));
            missing += u32::from(!found);
        }
    }
    if let Ok(records) = snapshot.iter() {
        let mut seen = 0;
        let mut whole = true;
        for record in records.take(1_000) {
            match record {
                Ok(record) => {
                    let (signature, payload) = &expected[record.key().unwrap()];
                    assert_eq!(record.signature(), signature);
                    assert_eq!(record.payload(), payload);
                    seen += 1;
                }
                Err(_) => whole = false,
            }
        }
        if whole && seen != expected.len() {
            missing += 1;
        }
    }
    let _ = snapshot
        .pairs(Bounds::new())
        .map(|pairs| pairs.take(10_000).count());
    let _ = snapshot.clusters(Bounds::new()).map(Iterator::count);
    let _ = snapshot.stats();
    missing
}

/// Opens, reads and writes a damaged file in all ways. How many documents were missing without an
/// error, and whether `check` found nothing.
fn try_all(path: &Path, bytes: &[u8], expected: &Documents) -> (u32, bool) {
    let mut missing = 0;
    fs::write(path, bytes).unwrap();
    if let Ok(store) = Store::open_read_only(path)
        && let Ok(snapshot) = store.snapshot()
    {
        missing += read(&snapshot, expected);
        let _ = snapshot.check();
    }
    if let Ok(store) = Store::open_with(path, &sealing_after(8)) {
        if let Ok(snapshot) = store.snapshot() {
            missing += read(&snapshot, expected);
            let _ = snapshot.check();
        }
        if let Ok(mut transaction) = store.begin_write() {
            for number in 0..12u64 {
                let new = signature(number + 900, 0);
                let _ = transaction.insert_if_new([b'n', number as u8], &new);
                let _ = transaction.remove((number * 13).to_le_bytes());
            }
            let _ = transaction.commit();
        }
        if let Ok(snapshot) = store.snapshot() {
            let _ = snapshot.stats();
        }
    }
    fs::write(path, bytes).unwrap();
    let clean = Store::check(path).is_ok_and(|report| report.is_clean());
    missing += read_again(path, expected);
    fs::write(path, bytes).unwrap();
    if Store::compact(path).is_ok() {
        common::check_clean(path);
        missing += read_again(path, expected);
    }
    (missing, clean)
}

const PAGE_BYTES: usize = 4_096;

/// Mostly one bit; now and then a page that was not written, or elsewhere.
fn damage(bytes: &mut [u8], random: &mut Random) -> String {
    let at = random.below(bytes.len() as u64) as usize;
    let page = at / PAGE_BYTES * PAGE_BYTES;
    match random.below(8) {
        0 => {
            bytes[page..page + PAGE_BYTES].fill(0);
            format!("page at {page} zeroed")
        }
        1 => {
            let from = random.below(bytes.len() as u64) as usize / PAGE_BYTES * PAGE_BYTES;
            bytes.copy_within(from..from + PAGE_BYTES, page);
            format!("page at {page} is that of {from}")
        }
        kind => {
            // The heads of pages, where what the engine goes by is, more often than the rest.
            let at = if kind < 4 { page + at % 128 } else { at };
            let bit = random.below(8);
            bytes[at] ^= 1 << bit;
            format!("byte {at}, bit {bit}")
        }
    }
}

/// What is missing once the engine has repaired or moved its pages.
fn read_again(path: &Path, expected: &Documents) -> u32 {
    let snapshot = Store::open(path).and_then(|store| store.snapshot());
    snapshot.map_or(0, |snapshot| read(&snapshot, expected))
}

/// More than these, and other ones, by `RESEMBLANCE_FLIPS` and `RESEMBLANCE_SEED`.
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |number| number.parse().unwrap())
}

/// A branch page that is its own child: the engine guards all its descents but one.
#[test]
fn a_circle_of_pages_ends() {
    let place = Place::new();
    let expected = filled(&place.store());
    let whole = fs::read(place.store()).unwrap();
    let path = place.file("damaged");
    let mut circles = 0;
    for page in (PAGE_BYTES..whole.len()).step_by(PAGE_BYTES) {
        // Kind 2 is a branch; count of keys, then 16 bytes of checksum and 8 of page a child.
        if whole[page] != 2 {
            continue;
        }
        let children = usize::from(u16::from_le_bytes([whole[page + 2], whole[page + 3]])) + 1;
        let first = page + 8 + 16 * children;
        let Some(child) = whole.get(first..first + 8) else {
            continue;
        };
        let mut bytes = whole.clone();
        // Region and order are those of the child: only the index of the page differs.
        let mut number = u64::from_le_bytes(child.try_into().unwrap());
        let data_start = 2 * PAGE_BYTES;
        for start in [PAGE_BYTES, data_start, 3 * PAGE_BYTES] {
            let Some(index) = page.checked_sub(start) else {
                continue;
            };
            number = number & !0xf_ffff | (index / PAGE_BYTES) as u64;
            bytes[first..first + 8].copy_from_slice(&number.to_le_bytes());
            try_all(&path, &bytes, &expected);
            circles += 1;
        }
    }
    assert!(circles > 0, "no tree has a branch");
}

/// The engine does not verify its pages when it reads them, so a row that its damaged tree leads
/// past may be missing; then `check` must say so. Wrong answers and panics there must not be.
#[test]
fn damage_is_an_error_or_harmless() {
    let place = Place::new();
    let expected = filled(&place.store());
    let whole = fs::read(place.store()).unwrap();
    let path = place.file("damaged");
    assert_eq!(try_all(&path, &whole, &expected), (0, true));
    let mut random = Random(number("RESEMBLANCE_SEED", 1));
    let mut failures = Vec::new();
    for _ in 0..number("RESEMBLANCE_FLIPS", 60) {
        let mut bytes = whole.clone();
        let damage = damage(&mut bytes, &mut random);
        let tried = catch_unwind(AssertUnwindSafe(|| try_all(&path, &bytes, &expected)));
        if !matches!(tried, Ok((0, _) | (_, false))) {
            failures.push((damage, tried.ok()));
        }
    }
    assert!(failures.is_empty(), "damage, missing, clean: {failures:#?}");
}
