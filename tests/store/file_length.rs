//! A file is as long as what it holds: after a build, after `compact`, and after closing.

use std::fs;
use std::path::Path;

use crate::common::sample::trials;
use crate::common::small::{schema, signature};
use crate::common::{Place, check_clean, insert_all, stats};
use resemblance::schema::Rebanding;
use resemblance::{BulkOptions, Closed, Document, MinHash, Schema, Signature, Store, StoreOptions};

/// The length of a file, its blocks on the disk, and the pages of tables that `stats` counts, in bytes.
fn sizes(path: &Path) -> (u64, u64, u64) {
    let store = Store::open_read_only(path).unwrap();
    let stats = stats(&store);
    let tables = stats.tables.iter();
    let used = tables
        .map(|table| table.stored_bytes + table.metadata_bytes + table.fragmented_bytes)
        .sum();
    assert_eq!(stats.file_bytes, fs::metadata(path).unwrap().len());
    (stats.file_bytes, stats.allocated_bytes, used)
}

/// That the file is as long as what it holds.
#[track_caller]
fn is_as_long_as_its_content(path: &Path) {
    let (length, allocated, used) = sizes(path);
    let sizes = format!("length {length}, allocated {allocated}, used {used}");
    println!("{sizes}");
    assert!(
        length as f64 <= 1.05 * allocated as f64 + 65_536.0,
        "{sizes}"
    );
    assert!(
        allocated as f64 <= 1.05 * used as f64 + (1 << 20) as f64,
        "{sizes}"
    );
}

fn bands() -> Schema {
    let minhash = MinHash::new(64).threshold(0.7);
    Schema::builder().minhash(minhash).build().unwrap()
}

fn row(number: u32) -> Signature {
    let value = |at: u32| {
        number
            .wrapping_mul(0x9e37_79b9)
            .wrapping_add(at.wrapping_mul(0x85eb_ca6b))
    };
    Signature::from_minhash((0..64).map(value).collect::<Vec<_>>())
}

fn build(path: &Path, documents: u32, payload_bytes: usize) {
    let options = BulkOptions::new().memory_bytes(16 << 20);
    let mut build = Store::bulk_build(path, bands(), &options).unwrap();
    let payload = vec![7; payload_bytes];
    for number in 0..documents {
        let key = number.to_string();
        let document = Document::new(&key).payload(&payload);
        build.insert(document, &row(number)).unwrap();
    }
    build.finish().unwrap();
}

/// The most documents are 15,000, and 40,000 with `RESEMBLANCE_TESTS=all`.
#[test]
fn file_length_after_a_build_is_its_content() {
    let many = trials(15_000, 40_000);
    for (documents, payload_bytes) in [(0, 0), (1, 10), (3_000, 100), (many, 0), (700, 50_000)] {
        let place = Place::new();
        build(&place.store(), documents, payload_bytes);
        is_as_long_as_its_content(&place.store());
        check_clean(&place.store());
    }
}

#[test]
fn file_length_after_compact_and_reband_is_its_content() {
    let place = Place::new();
    let path = place.store();
    let options = StoreOptions::new().flush_after(1_000);
    let store = options.create(&path, bands()).unwrap();
    for batch in 0..10 {
        insert_all(
            &store,
            (batch * 1_000..(batch + 1) * 1_000_u32)
                .map(|number| (number.to_string(), row(number))),
        );
    }
    let mut transaction = store.begin_write().unwrap();
    for number in (0..10_000_u32).filter(|number| number % 3 != 0) {
        transaction.remove(number.to_string()).unwrap();
    }
    transaction.commit().unwrap();
    assert_eq!(store.close().unwrap(), Closed::File);
    println!("before: {:?}", sizes(&path));
    Store::compact(&path).run().unwrap();
    is_as_long_as_its_content(&path);
    check_clean(&path);
    let rebanding = Rebanding::new().threshold(0.5);
    Store::reband(&path, &rebanding).run().unwrap();
    Store::compact(&path).run().unwrap();
    is_as_long_as_its_content(&path);
    check_clean(&path);
}

/// Documents with large payloads that were deleted leave a free tail, and closing cuts it.
#[test]
fn close_truncates_the_free_tail() {
    let place = Place::new();
    let path = place.store();
    let store = Store::create(&path, schema()).unwrap();
    let payload = vec![7; 100_000];
    let mut transaction = store.begin_write().unwrap();
    for number in 0..700_u32 {
        let key = number.to_le_bytes();
        let document = Document::new(&key).payload(&payload);
        transaction.insert(document, &signature(number)).unwrap();
    }
    transaction.commit().unwrap();
    for number in 0..700_u32 {
        store.remove(number.to_le_bytes()).unwrap();
    }
    let before = fs::metadata(&path).unwrap().len();
    assert_eq!(store.close().unwrap(), Closed::File);
    let bytes = fs::read(&path).unwrap();
    let after = bytes.len() as u64;
    println!("{before} bytes before closing, {after} after");
    assert!(after < before / 10, "{after} of {before} bytes");
    // Behind the last page in use there is nothing.
    assert!(bytes[bytes.len() - 4_096..].iter().any(|byte| *byte != 0));
    check_clean(&path);
}

/// The engine doubles a file to have room; a load by commits leaves no such room behind it.
#[test]
fn closed_file_after_a_load_is_as_long_as_its_content() {
    let place = Place::new();
    let path = place.store();
    let store = Store::create(&path, bands()).unwrap();
    for batch in 0..13 {
        let mut transaction = store.begin_write().unwrap();
        for number in batch * 2_000..(batch + 1) * 2_000_u32 {
            let key = number.to_string();
            transaction.insert(&key, &row(number)).unwrap();
        }
        transaction.commit().unwrap();
    }
    let before = fs::metadata(&path).unwrap().len();
    assert_eq!(store.close().unwrap(), Closed::File);
    let (length, _, used) = sizes(&path);
    println!("{before} bytes before closing, {length} after, {used} used");
    assert!(before as f64 > 1.2 * used as f64, "{before} of {used}");
    assert!(length as f64 <= 1.1 * used as f64, "{length} of {used}");
    check_clean(&path);
}
