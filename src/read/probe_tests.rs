//! Here every read counts as slow, as if it came from a disk.

use crate::build::BulkOptions;
use crate::schema::{MinHash, Schema};
use crate::sketch::Signature;
use crate::store::Store;
use crate::types::Document;

const BANDS: u64 = 16;

const DOCUMENTS: u64 = 40_000;

/// Signatures of different numbers share no band.
fn signature(number: u64) -> Signature {
    let value = |band| (number * BANDS + band) as u32;
    let value = |band| value(band).wrapping_mul(0x9e37_79b1);
    Signature::from_minhash((0..BANDS).map(value).collect())
}

/// Each lane has a filter of 13 pieces of some 4 KB. While filters let all questions pass they are not read, but for the one of the
/// lane by which a slow read is noticed.
#[test]
fn filters_that_rule_out_nothing_are_not_read_from_a_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let minhash = MinHash::new(16).banding(16, 1).value_bits(32);
    let schema = Schema::builder().minhash(minhash).build().unwrap();
    let mut build = Store::bulk_build(&path, schema, &BulkOptions::new()).unwrap();
    for number in 0..DOCUMENTS {
        let document = Document::without_key();
        build.insert(document, &signature(number)).unwrap();
    }
    build.finish().unwrap();
    let store = Store::open(&path).unwrap();
    let snapshot = store.snapshot().unwrap();
    // Number of pieces that questions about documents read.
    let pieces_read = |numbers: std::ops::Range<u64>| {
        let before = store.metrics().filter_cache_bytes;
        for number in numbers {
            let number = number * 3_001 % DOCUMENTS + number / DOCUMENTS * DOCUMENTS;
            let found = snapshot.candidates(&signature(number)).unwrap();
            let found: Vec<u64> = found.into_iter().map(|id| id.get()).collect();
            assert!(found.into_iter().eq((number < DOCUMENTS).then_some(number)));
        }
        (store.metrics().filter_cache_bytes - before) / 4_000
    };
    assert!(pieces_read(0..2) > BANDS);
    pieces_read(2..5);
    assert!(pieces_read(5..15) <= 10);
    pieces_read(DOCUMENTS..DOCUMENTS + 2);
    assert!(pieces_read(DOCUMENTS + 2..DOCUMENTS + 12) > 3 * BANDS);
}
