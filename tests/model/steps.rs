//! What a sequence consists of: plain data, so that it can be made shorter and printed.

use proptest::prelude::*;
use resemblance::{MinHashKind, Schema, Signature};

use crate::common::Random;

/// How a signature is drawn: few families, so that near and equal ones are frequent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Drawn {
    /// A member of a family with some MinHash values and some bits changed, at places that `at`
    /// decides.
    Near {
        family: u8,
        values: u8,
        bits: u8,
        at: u8,
    },
    /// Shares the first band and the top of the fingerprint with all others of its kind.
    Hot(u16),
    Text(u8),
    Weighted(u8),
    Empty,
    /// The values of an empty signature, but not from an empty document.
    LikeEmpty,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub(crate) stamp: u64,
    payload_bytes: u16,
}

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Insert(u8, Drawn),
    Upsert(u8, Drawn),
    InsertIfNew(u8, Drawn),
    Append(Drawn),
    InsertDocument(Option<u8>, Drawn, Stored),
    UpsertDocument(Option<u8>, Drawn, Stored),
    InsertDocumentIfNew(Option<u8>, Drawn, Stored),
    Remove(u8),
    RemoveId(u8),
    /// Reads in the middle of a transaction.
    Read,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Transaction {
        changes: Vec<Change>,
        commit: bool,
    },
    One(Change),
    /// More documents than a seal takes, some of them removed again at once.
    Bulk {
        documents: u8,
        remove_every: u8,
    },
    RemoveEvery(u8),
    Hold,
    Release(u8),
    Reopen(u8),
    ReadOnly,
    Check,
    Compact,
}

pub(crate) fn drawn() -> impl Strategy<Value = Drawn> {
    prop_oneof![
        8 => (0..3u8, 0..7u8, 0..6u8, 0..4u8).prop_map(|(family, values, bits, at)| Drawn::Near {
            family, values, bits, at
        }),
        3 => (0..50u16).prop_map(Drawn::Hot),
        2 => (0..8u8).prop_map(Drawn::Text),
        1 => (0..4u8).prop_map(Drawn::Weighted),
        2 => Just(Drawn::Empty),
        1 => Just(Drawn::LikeEmpty),
    ]
}

pub(crate) fn stored() -> impl Strategy<Value = Stored> {
    let payload = prop_oneof![3 => 0..40u16, 1 => 3_000..9_000u16];
    (any::<u64>(), payload).prop_map(|(stamp, payload_bytes)| Stored {
        stamp,
        payload_bytes,
    })
}

pub(crate) const KEYS: u8 = 16;

pub(crate) fn change() -> impl Strategy<Value = Change> {
    let key = || 0..KEYS;
    let optional = || proptest::option::weighted(0.7, 0..KEYS);
    prop_oneof![
        2 => (key(), drawn()).prop_map(|(key, drawn)| Change::Insert(key, drawn)),
        3 => (key(), drawn()).prop_map(|(key, drawn)| Change::Upsert(key, drawn)),
        3 => (key(), drawn()).prop_map(|(key, drawn)| Change::InsertIfNew(key, drawn)),
        3 => drawn().prop_map(Change::Append),
        1 => (optional(), drawn(), stored()).prop_map(|(k, d, s)| Change::InsertDocument(k, d, s)),
        2 => (optional(), drawn(), stored()).prop_map(|(k, d, s)| Change::UpsertDocument(k, d, s)),
        2 => (optional(), drawn(), stored())
            .prop_map(|(k, d, s)| Change::InsertDocumentIfNew(k, d, s)),
        3 => key().prop_map(Change::Remove),
        2 => any::<u8>().prop_map(Change::RemoveId),
        1 => Just(Change::Read),
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (proptest::collection::vec(change(), 0..20), proptest::bool::weighted(0.8))
            .prop_map(|(changes, commit)| Step::Transaction { changes, commit }),
        4 => change().prop_map(Step::One),
        1 => (20..120u8, 1..8u8)
            .prop_map(|(documents, remove_every)| Step::Bulk { documents, remove_every }),
        1 => (1..4u8).prop_map(Step::RemoveEvery),
        1 => Just(Step::Hold),
        1 => any::<u8>().prop_map(Step::Release),
        2 => any::<u8>().prop_map(Step::Reopen),
        1 => Just(Step::ReadOnly),
        1 => Just(Step::Check),
        1 => Just(Step::Compact),
    ]
}

pub(crate) fn key_bytes(key: u8) -> Vec<u8> {
    match key {
        0 => Vec::new(),
        1 => vec![b'k'; 4_096],
        2 => vec![0xff, 0xfe, 0, 0xc3, 0x28],
        3 => vec![0],
        _ => format!("https://example.org/{key}").into_bytes(),
    }
}

pub(crate) fn all_keys() -> Vec<Vec<u8>> {
    (0..KEYS + 1).map(key_bytes).collect()
}

pub(crate) fn payload(stored: Stored) -> Vec<u8> {
    let bytes = (0..stored.payload_bytes).map(|i| (i ^ stored.stamp as u16) as u8);
    bytes.collect()
}

pub(crate) fn raw(schema: &Schema, values: impl FnMut(u16) -> u32, fingerprint: u64) -> Signature {
    let minhash: Option<Vec<u32>> = schema
        .minhash()
        .map(|m| (0..m.values()).map(values).collect());
    if let (Some(values), Some(MinHashKind::BottomK)) = (&minhash, kind(schema)) {
        assert!(schema.simhash().is_none(), "no such schema is tried");
        return smallest(values);
    }
    match schema.simhash().map(|simhash| simhash.bits()) {
        // The high half is the low one turned, so that every flip comes twice.
        Some(128) => {
            let high = u128::from(fingerprint.rotate_left(20)) << 64;
            let wide = Signature::from_simhash128(high | u128::from(fingerprint));
            Signature::from_parts(minhash, None).with_simhash_of(&wide)
        }
        bits => Signature::from_parts(minhash, bits.map(|_| fingerprint)),
    }
}

fn kind(schema: &Schema) -> Option<MinHashKind> {
    schema.minhash().map(|minhash| minhash.kind())
}

/// Hashes that are as many as there are different values, but for those that say that there is
/// none. Half of the documents have fewer than there could be.
fn smallest(values: &[u32]) -> Signature {
    let most = values.len() as u16;
    let count = if values[0].is_multiple_of(2) {
        40
    } else {
        values.len()
    };
    let present = values.iter().take(count).filter(|v| **v != u32::MAX);
    // What is shared on purpose is small, so that it is the least of its bin.
    let hash = |value: &u32| match value {
        0..1_000 => u64::from(*value),
        _ => Random((*value).into()).next(),
    };
    Signature::from_bottom_k(most, present.map(hash).collect())
}

/// Those of a schema of external values with features, which cannot be made of documents.
fn external(schema: &Schema, drawn: Drawn) -> Signature {
    let bits = schema.minhash().unwrap().value_bits();
    let most = u32::MAX >> (32 - bits);
    let narrow = |signature: Signature| {
        let values = signature.minhash().unwrap().iter().map(|v| v & most);
        Signature::from_minhash(values.collect())
    };
    match drawn {
        Drawn::Text(number) | Drawn::Weighted(number) => {
            let mut random = Random(500 + u64::from(number));
            narrow(raw(schema, |_| random.next() as u32, 0))
        }
        Drawn::Empty | Drawn::LikeEmpty => raw(schema, |_| u32::MAX, 0),
        other => narrow(made(schema, other)),
    }
}

pub(crate) fn signature(schema: &Schema, drawn: Drawn) -> Signature {
    match kind(schema) {
        Some(MinHashKind::External) => external(schema, drawn),
        _ => made(schema, drawn),
    }
}

fn made(schema: &Schema, drawn: Drawn) -> Signature {
    let sketcher = schema.sketcher();
    match drawn {
        Drawn::Near {
            family,
            values,
            bits,
            at,
        } => {
            let mut base = Random(family.into());
            let fingerprint = base.next();
            let mut places = Random(at.into());
            let width = schema.minhash().map_or(1, |m| u64::from(m.values()));
            // A share of the values, however many there are.
            let count = u64::from(values) * width.div_ceil(64);
            let changed: Vec<u64> = (0..count).map(|_| places.below(width)).collect();
            let change = |i| u32::from(changed.contains(&u64::from(i))) << (at + 3);
            let flips = places.bits(bits.into());
            raw(
                schema,
                |i| base.next() as u32 ^ change(i),
                fingerprint ^ flips,
            )
        }
        Drawn::Hot(number) => {
            let mut random = Random(u64::from(number) + 1_000);
            let rows = schema.minhash().map_or(0, |m| m.rows());
            let is_bottom_k = kind(schema) == Some(MinHashKind::BottomK);
            let value = |i: u16| match i {
                // A third of the hashes: enough for some bins to be theirs.
                0..40 if is_bottom_k => 2 * u32::from(i) + 1,
                _ if i < rows => 7,
                _ => random.next() as u32,
            };
            let mut low = Random(u64::from(number) + 2_000);
            raw(schema, value, low.next() >> 30 | 0xabcd << 48)
        }
        Drawn::Text(number) => {
            let words = (0..40u8).map(|i| {
                if i == number * 5 {
                    "other"
                } else {
                    WORDS[i as usize % 7]
                }
            });
            let text: Vec<&str> = words.collect();
            sketcher.text(&text.join(" ")).unwrap()
        }
        Drawn::Weighted(number) => {
            let weighted = (0..10u64).map(|i| (i, if i == u64::from(number) { 0.0 } else { 1.5 }));
            sketcher.weighted_hashes(weighted).unwrap()
        }
        Drawn::Empty => sketcher.features([""; 0]).unwrap(),
        Drawn::LikeEmpty => raw(schema, |_| u32::MAX, 0),
    }
}

pub(crate) const WORDS: [&str; 7] = ["the", "rose", "is", "red", "and", "a", "violet"];
