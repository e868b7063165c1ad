//! A schema of both families with small signatures, and documents that are unlike each other.

use std::path::Path;

use resemblance::{MinHash, Schema, Signature, SimHash, Text};

use super::sealing_after;

pub(crate) fn schema() -> Schema {
    let builder = Schema::builder().text(Text::words(2));
    builder
        .minhash(MinHash::new(16).value_bits(32))
        .simhash(SimHash::bits64())
        .build()
        .unwrap()
}

pub(crate) fn signature(number: u32) -> Signature {
    let fingerprint = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Signature::from_parts(Some(vec![number; 16]), Some(fingerprint))
}

/// A store of `documents` documents, closed.
pub(crate) fn filled(path: &Path, documents: u32) {
    let store = sealing_after(8).create(path, schema()).unwrap();
    let mut transaction = store.begin_write().unwrap();
    for number in 0..documents {
        transaction
            .insert(number.to_le_bytes(), &signature(number))
            .unwrap();
    }
    transaction.commit().unwrap();
}
