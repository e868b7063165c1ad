//! Rows of the tables `documents`, `payloads`, `sets`, `dead`, `equal` and `filters`.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::format::{
    CHUNK_DOCUMENTS, ChunkSets, DEAD, DOCUMENTS, DeletedChunk, DocumentRow, EQUAL, EqualChunk,
    FILTERS, FilterPiece, FilterShape, PAYLOADS, SETS, SetChunk, Shape, VectorForm, decode_payload,
    decode_set, encode_document, encode_payload, encode_set, filter_key, set_count,
};
use crate::fuzzing::Input;
use resemblance_sketch::KeptVector;
use resemblance_sketch::lanes::AgreementCurve;
use resemblance_sketch::sketch::{RecipeMark, ValueLayout, mix64};

/// Reads bytes as rows of documents, payloads, removed documents, equal documents and filters.
pub fn rows(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 5 {
        0 => payload(&mut input),
        1 => document(&mut input),
        2 => deleted(&mut input),
        3 => equal(&mut input),
        _ => filter(&mut input),
    }
}

fn payload(input: &mut Input<'_>) {
    let id = input.number(8);
    if id % 4 == 3 {
        return set(id, input);
    }
    for value in input.values(PAYLOADS, &id.to_be_bytes()) {
        if let Ok(payload) = decode_payload(id, &value) {
            assert_eq!(encode_payload(id, payload).unwrap(), value);
        }
    }
}

/// Each set has only one encoded form, and so has a chunk of sets.
fn set(id: u64, input: &mut Input<'_>) {
    let value = input.rest;
    let sets: Result<Vec<(u64, &[u8])>> = ChunkSets::new(id, value).collect();
    if let Ok(sets) = sets {
        let mut chunk = SetChunk::default();
        for (id, set) in &sets {
            chunk.push(*id, set).unwrap();
            let found = ChunkSets::new(sets[0].0, value).find(*id).unwrap();
            assert_eq!(found, Some(*set));
        }
        assert_eq!((chunk.first_id, &*chunk.bytes), (id, value));
    }
    for (are_samples, set_bits) in [(false, 44), (true, 44), (false, 32), (true, 64)] {
        let shape = Shape {
            are_samples,
            set_bits,
            ..Shape::default()
        };
        for value in input.values(SETS, &id.to_be_bytes()) {
            if let Ok(set) = decode_set(id, &value, &shape) {
                assert_eq!(encode_set(id, &set, &shape).unwrap(), value);
                assert_eq!(set_count(id, &value).unwrap(), set.hashes().len());
            }
        }
    }
    for kept in [KeptVector::F32, KeptVector::F16, KeptVector::I8] {
        let vector = Some(VectorForm {
            dimensions: 5,
            kept,
        });
        let shape = Shape {
            vector,
            ..Shape::default()
        };
        for value in input.values(SETS, &id.to_be_bytes()) {
            if let Ok(set) = decode_set(id, &value, &shape) {
                assert_eq!(encode_set(id, &set, &shape).unwrap(), value);
            }
        }
    }
}

/// The contents of a row: all kinds of values, with or without fingerprints.
fn shape(input: &mut Input<'_>) -> Shape {
    let kind = input.byte() % 8;
    let count = input.pick(&[16, 17, 64, 100, 128, 1_024]);
    let bits = input.pick(&[1, 2, 4, 8, 16]);
    let places = |bits, is_mixed| {
        Some(ValueLayout::Packed {
            count,
            bits,
            is_mixed,
            curve: AgreementCurve::Identity,
        })
    };
    let values = match kind {
        0 => None,
        1 | 2 => places(32, true),
        3 => places(bits, true),
        4 => places(bits, false),
        _ => Some(ValueLayout::Smallest { max_count: count }),
    };
    let fingerprint_bits = input.pick(&[64, 128, 256, 0]);
    Shape {
        values,
        are_samples: kind == 2,
        fingerprint_bits,
        has_kept_hashes: kind > 5,
        has_positions: kind > 6,
        has_set: false,
        set_bits: 44,
        vector: None,
    }
}

/// A row may have meaningless bits set, so it may have several encodings. But what is read from it
/// is written in one encoding, and read back the same.
fn document(input: &mut Input<'_>) {
    let shape = shape(input);
    let id = input.number(8);
    for value in input.values(DOCUMENTS, &id.to_be_bytes()) {
        let Ok(row) = DocumentRow::decode(id, &value, &shape) else {
            continue;
        };
        let read = row.to_signature(RecipeMark::default());
        let payload: &[u8] = if row.head.has_payload { b"any" } else { b"" };
        let document = row.head.to_document(payload);
        let written = encode_document(id, &document, &read, &shape).unwrap();
        let again = DocumentRow::decode(id, &written, &shape).unwrap();
        assert_eq!(again.head, row.head);
        assert_eq!(row.with_head(id, &row.head).unwrap(), value);
        assert_eq!(again.fingerprint(), row.fingerprint());
        let read_again = again.to_signature(RecipeMark::default());
        assert_eq!(read_again, read);
        compared(&row, &read);
    }
}

fn compared(row: &DocumentRow<'_>, read: &resemblance_sketch::sketch::Signature) {
    let agreement = row.agreement(read);
    let ascending = |hashes: &[u64]| hashes.is_sorted_by(|a, b| a < b);
    if row.is_empty() || !read.bottom_k().is_none_or(ascending) {
        return;
    }
    if read.value_bits().is_some() {
        assert!(agreement > 0);
        assert_eq!(read.jaccard(read).unwrap(), 1.0);
        assert_eq!(agreement, row.agreement(&read.clone()));
    }
    if read.simhash_bits().is_some() {
        assert_eq!(read.hamming(read).unwrap(), 0);
    }
}

/// A bitmap of 2,000 bytes takes a fuzzer too long. The input is its beginning or its end, and the
/// rest is zeros.
fn deleted(input: &mut Input<'_>) {
    let last = u64::MAX / CHUNK_DOCUMENTS;
    let chunk = input.pick(&[0, 1, 77, last - 1, last, last + 1, u64::MAX]);
    let offset = input.number(2) % CHUNK_DOCUMENTS;
    let length = input.number(2) % CHUNK_DOCUMENTS;
    let first = chunk.saturating_mul(CHUNK_DOCUMENTS).saturating_add(offset);
    let ids = first..=first.saturating_add(length);
    let values = input.values(DEAD, &chunk.to_be_bytes());
    let is_two = input.byte() % 2 == 1;
    let mut padded = vec![0; if is_two { 4_001 } else { 2_001 }];
    padded[0] = 1 + u8::from(is_two);
    let at = if input.byte().is_multiple_of(2) {
        1
    } else {
        1_990
    };
    for (to, from) in padded[at..].iter_mut().zip(input.rest) {
        *to = *from;
    }
    let padded = Input::new(&padded).values(DEAD, &chunk.to_be_bytes());
    for value in values.into_iter().chain(padded) {
        if let Ok(row) = DeletedChunk::decode(chunk, &value) {
            assert_eq!(row.encode(chunk), value);
            any_chunk(row, chunk, ids.clone());
        }
    }
}

/// The input is a part of the bitmap of removed documents.
fn equal(input: &mut Input<'_>) {
    let last = u64::MAX / CHUNK_DOCUMENTS;
    let chunk = input.pick(&[0, 1, last, u64::MAX]);
    let values = input.values(EQUAL, &chunk.to_be_bytes());
    let classes = 1 + input.byte() % 4;
    let mut padded = vec![1, classes, 0];
    for class in 0..classes {
        padded.extend(u128::from(class).to_le_bytes());
    }
    let bitmap = padded.len();
    padded.resize(bitmap + 2_000, 0);
    let (bits, rest) = input.rest.split_at(input.rest.len().min(2));
    for (to, from) in padded[bitmap..].iter_mut().zip(bits) {
        *to = *from;
    }
    padded.extend(rest);
    let padded = Input::new(&padded).values(EQUAL, &chunk.to_be_bytes());
    for value in values.into_iter().chain(padded) {
        let Ok(row) = EqualChunk::decode(chunk, &value) else {
            continue;
        };
        assert_eq!(row.encode(chunk), value);
        if chunk < last {
            let members: Vec<(u64, u128)> = row.members(chunk).collect();
            assert!(
                members
                    .iter()
                    .all(|(id, digest)| row.digest(*id) == Some(*digest))
            );
            assert_eq!(EqualChunk::new(&members), Some(row));
        }
    }
}

fn any_chunk(mut row: DeletedChunk, chunk: u64, ids: std::ops::RangeInclusive<u64>) {
    let all: BTreeSet<u64> = row.ids(chunk).collect();
    let dropped: BTreeSet<u64> = all
        .iter()
        .copied()
        .filter(|id| row.is_dropped(*id))
        .collect();
    assert!(all.iter().all(|id| row.contains(*id)));
    assert!(all.len() as u64 <= row.count());
    let from = *ids.start();
    let next = row.first_dropped(chunk, from);
    let is_whole = chunk < u64::MAX / CHUNK_DOCUMENTS;
    let before = row.clone();
    let ended = row.end_merge(chunk, &ids);
    if !is_whole {
        // Rows of the last chunk may have bits beyond the last id.
        return;
    }
    assert_eq!(next, dropped.range(from..).next().copied());
    let is_since = |id: &u64| !before.is_dropped(*id);
    let in_range = |id: &&u64| ids.contains(id);
    assert_eq!(ended.0, dropped.iter().filter(in_range).count() as u64);
    // For documents in both bitmaps, the dropped one is counted and the other stays.
    assert!(
        all.iter()
            .filter(in_range)
            .filter(|id| is_since(id))
            .count() as u64
            <= ended.1
    );
    let left: BTreeSet<u64> = row.ids(chunk).collect();
    let outside = |set: &BTreeSet<u64>| -> Vec<u64> {
        let outside = set.iter().filter(|id| !ids.contains(id));
        outside.copied().collect()
    };
    assert_eq!(outside(&left), outside(&all));
    assert_eq!(left.iter().filter(in_range).count() as u64, ended.1);
    assert_eq!(row.count() + ended.0, before.count());
    // All that is left in the range is what a next merge drops.
    assert!(left.iter().filter(in_range).all(|id| row.is_dropped(*id)));
    assert_eq!(row.end_merge(chunk, &ids), (ended.1, 0));
}

fn filter(input: &mut Input<'_>) {
    let shape = FilterShape {
        pieces: 1 + input.number(2) as u32,
        blocks: input.pick(&[1, 2, 3, 126]),
        set_bits: input.pick(&[4, 8]),
    };
    let key = filter_key(input.number(4) as u32, input.number(2) as u16, 3);
    let buckets: Vec<u64> = (0..u64::from(input.byte() % 50)).map(mix64).collect();
    let mut values = input.values(FILTERS, &key).to_vec();
    let mut padded = vec![0; 1 + 32 * usize::from(shape.blocks)];
    padded[0] = 1;
    for (to, from) in padded[1..].iter_mut().zip(input.rest) {
        *to = *from;
    }
    values.extend(Input::new(&padded).values(FILTERS, &key));
    for value in values {
        let Ok(piece) = FilterPiece::decode(&key, shape, &value) else {
            continue;
        };
        assert_eq!(piece.encode(&key), value);
        let held: Vec<u64> = (1_000..1_100)
            .filter(|b| piece.may_hold(*b).unwrap())
            .collect();
        let (mut at_once, mut one_by_one) = (piece.clone(), piece);
        at_once.insert_all(buckets.iter().copied()).unwrap();
        buckets
            .iter()
            .for_each(|bucket| one_by_one.insert(*bucket).unwrap());
        assert_eq!(at_once, one_by_one);
        assert!(
            buckets
                .iter()
                .chain(&held)
                .all(|b| at_once.may_hold(*b).unwrap())
        );
    }
}
