//! Tests in which every read counts as slow, as if it came from disk.

use crate::build::BulkOptions;

use crate::store::Store;
use crate::types::Document;
use resemblance_sketch::schema::{MinHash, Schema, SimHash};
use resemblance_sketch::sketch::{Signature, mix64};

const BANDS: u64 = 16;

const DOCUMENTS: u64 = 40_000;

/// Signatures of different numbers share no band.
fn minhash(number: u64) -> Signature {
    let value = |band| (number * BANDS + band) as u32;
    let value = |band| value(band).wrapping_mul(0x9e37_79b1);
    Signature::from_minhash((0..BANDS).map(value).collect())
}

/// Fingerprints of different numbers are far from each other, and hardly ever share 32 bits.
fn simhash(number: u64) -> Signature {
    Signature::from_simhash(mix64(number))
}

/// Each lane has a filter of 13 pieces of some 4 KB. While filters let all questions pass they are not read, but for the one of the
/// lane by which a slow read is noticed.
fn assert_filters_that_rule_out_nothing_are_not_read(
    schema: Schema,
    signature: impl Fn(u64) -> Signature,
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
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
            let found = snapshot.query(&signature(number)).run().unwrap();
            let found: Vec<u64> = found.iter().map(|found| found.id().get()).collect();
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

#[test]
fn useless_band_filters_are_not_read_from_disk() {
    let family = MinHash::new(16).banding(16, 1).value_bits(32);
    let schema = Schema::builder().minhash(family).build().unwrap();
    assert_filters_that_rule_out_nothing_are_not_read(schema, minhash);
}

/// Postings that a search skips in a bucket count like those that the filter would have excluded.
#[test]
fn useless_table_filters_are_not_read_from_disk() {
    let family = SimHash::bits64().max_distance(3).tables(&[(6, 3)]);
    let schema = Schema::builder().simhash(family).build().unwrap();
    assert_filters_that_rule_out_nothing_are_not_read(schema, simhash);
}
