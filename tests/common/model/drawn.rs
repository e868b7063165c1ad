//! Signatures of few families, so that near and equal ones are frequent.

use std::collections::BTreeSet;

use resemblance::exact::ExactSet;
use resemblance::schema::MinHashKind;
use resemblance::{Schema, Signature};

use crate::common::Random;

/// How a signature is drawn.
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

/// Signatures that are asked about though no document need have them.
pub(crate) fn strangers(schema: &Schema) -> Vec<Signature> {
    let near = |family, values, bits, at| Drawn::Near {
        family,
        values,
        bits,
        at,
    };
    let strangers = [
        Drawn::Empty,
        Drawn::LikeEmpty,
        Drawn::Hot(999),
        near(0, 1, 1, 9),
        near(77, 0, 0, 0),
    ];
    strangers.map(|drawn| signature(schema, drawn)).into()
}

fn raw(schema: &Schema, values: impl FnMut(u16) -> u32, fingerprint: u64) -> Signature {
    let minhash: Option<Vec<u32>> = schema
        .minhash()
        .map(|m| (0..m.values()).map(values).collect());
    let signature = match (&minhash, kind(schema)) {
        (Some(values), Some(MinHashKind::BottomK)) => smallest(values),
        _ => Signature::from_parts(minhash, None),
    };
    match schema.simhash().map(|simhash| simhash.bits()) {
        // The high half is the rotated low half, so every flip occurs twice.
        Some(128) => {
            let high = u128::from(fingerprint.rotate_left(20)) << 64;
            let wide = Signature::from_fingerprint(high | u128::from(fingerprint));
            signature.with_simhash_of(&wide)
        }
        Some(32) => signature.with_simhash_of(&Signature::from_fingerprint(fingerprint as u32)),
        Some(_) => signature.with_simhash_of(&Signature::from_simhash(fingerprint)),
        None => signature,
    }
}

fn kind(schema: &Schema) -> Option<MinHashKind> {
    schema.minhash().map(|minhash| minhash.kind())
}

/// One hash for each different value, except values that mean absence. Half of the documents have
/// fewer hashes than the maximum.
fn smallest(values: &[u32]) -> Signature {
    let most = values.len() as u16;
    let count = if values[0].is_multiple_of(2) {
        40
    } else {
        values.len()
    };
    let present = values.iter().take(count).filter(|v| **v != u32::MAX);
    // Deliberately shared hashes are small, so that each is the minimum of its bin.
    let hash = |value: &u32| match value {
        0..1_000 => u64::from(*value),
        _ => Random((*value).into()).next(),
    };
    Signature::from_bottom_k(most, present.map(hash).collect())
}

/// Creates a signature for a schema of external values with features, which cannot come from
/// documents.
fn external(schema: &Schema, drawn: Drawn) -> Signature {
    let bits = schema.minhash().unwrap().value_bits();
    let most = u32::MAX >> (32 - bits);
    let narrow = |signature: Signature| {
        let values = signature.minhash().unwrap().iter().map(|v| v & most);
        Signature::from_minhash(values.collect()).with_simhash_of(&signature)
    };
    match drawn {
        Drawn::Text(number) | Drawn::Weighted(number) => {
            let mut random = Random(500 + u64::from(number));
            narrow(raw(schema, |_| random.next() as u32, number.into()))
        }
        Drawn::Empty | Drawn::LikeEmpty => raw(schema, |_| u32::MAX, 0),
        other => narrow(made(schema, other)),
    }
}

/// Returns the signature of a vector near those of its family. No vector is empty.
fn of_vector(schema: &Schema, drawn: Drawn) -> Signature {
    let (family, changed, moved, at) = match drawn {
        Drawn::Near {
            family,
            values,
            bits,
            at,
        } => (u64::from(family), values, bits, at),
        Drawn::Hot(number) => (1_000, 1, 0, number as u8),
        Drawn::Text(number) | Drawn::Weighted(number) => (2_000 + u64::from(number), 0, 0, 0),
        Drawn::Empty | Drawn::LikeEmpty => (3_000, 0, 0, 0),
    };
    let component = |random: &mut Random| random.below(2_001) as f32 / 1_000.0 - 1.0;
    let mut base = Random(family);
    let dimensions = schema.vector().unwrap().dimensions();
    let mut vector: Vec<f32> = (0..dimensions).map(|_| component(&mut base)).collect();
    let mut other = Random(at.into());
    for _ in 0..changed {
        let place = other.below(dimensions.into()) as usize;
        vector[place] += component(&mut other) / 4.0;
    }
    // So little that all hash values are usually the same, and the vectors are not.
    vector[0] += f32::from(moved) * 1e-5;
    schema.sketcher().vector(&vector).unwrap()
}

pub(crate) fn signature(schema: &Schema, drawn: Drawn) -> Signature {
    let signature = match kind(schema) {
        Some(MinHashKind::External) => external(schema, drawn),
        Some(MinHashKind::Vector(_)) => of_vector(schema, drawn),
        _ => made(schema, drawn),
    };
    let lacks_set = schema.has_sets() && signature.exact_set().is_none();
    match lacks_set {
        true => with_set_like(schema, signature),
        false => signature,
    }
}

/// Returns a signature with a set. The set is about as near to other sets as the values are to
/// theirs, but rarely has the estimated similarity: some of its features depend on a value, and the
/// others are in every set.
fn with_set_like(schema: &Schema, signature: Signature) -> Signature {
    let values = signature
        .minhash()
        .into_iter()
        .flatten()
        .map(|value| u64::from(*value));
    let values = values.chain(signature.bottom_k().into_iter().flatten().copied());
    let numbered = (0_u64..).zip(values);
    let hash = |(place, value): (u64, u64)| match place % 3 {
        0 => place,
        _ => Random(value ^ place << 32).next() >> 20,
    };
    let is_there = |_: &(u64, u64)| !signature.is_empty();
    let hashes: BTreeSet<u64> = numbered.filter(is_there).map(hash).collect();
    let weights = hashes.iter().map(|hash| (hash % 5 + 1) << 15).collect();
    let is_weighted = kind(schema).is_some_and(MinHashKind::is_weighted);
    let weights = if is_weighted { weights } else { Vec::new() };
    signature.with_set(Some(ExactSet::from_sorted(
        hashes.into_iter().collect(),
        weights,
    )))
}

fn made(schema: &Schema, drawn: Drawn) -> Signature {
    let sketcher = schema.sketcher();
    if schema.text().is_none() && matches!(drawn, Drawn::Text(_)) {
        return made(schema, Drawn::Hot(3));
    }
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

const WORDS: [&str; 7] = ["the", "rose", "is", "red", "and", "a", "violet"];
