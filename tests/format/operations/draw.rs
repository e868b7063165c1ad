//! Schemas, signatures and documents from few bytes.

use resemblance::schema::{EmptyDocuments, MinHashKind};
use resemblance::{Combine, MinHash, Schema, Signature, SimHash};

/// Numbers from the front of an input; beyond the end there are zeros.
pub(crate) struct Input<'d> {
    rest: &'d [u8],
}

impl<'d> Input<'d> {
    pub(crate) fn new(rest: &'d [u8]) -> Self {
        Self { rest }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let (byte, rest) = self.rest.split_first().unwrap_or((&0, &[]));
        self.rest = rest;
        *byte
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }
}

/// SplitMix64 of a number.
pub(crate) fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One of every kind, small.
pub(crate) fn schema(input: &mut Input<'_>) -> Schema {
    let small = || MinHash::new(16).banding(4, 3).threshold(0.5);
    let builder = Schema::builder().expected_documents(1_000);
    let builder = match input.byte() % 9 {
        0 => builder.minhash(small()),
        1 => builder.simhash(SimHash::bits64()),
        2 => builder
            .minhash(small())
            .simhash(SimHash::bits64().max_distance(2)),
        3 => {
            let both = builder.minhash(small()).simhash(SimHash::bits64());
            both.near(Combine::Both)
        }
        4 => builder
            .minhash(small().value_bits(4))
            .simhash(SimHash::bits128().max_distance(5)),
        5 => builder.minhash(MinHash::bottom_k(64).banding(2, 3).threshold(0.7)),
        6 => builder.minhash(MinHash::weighted(16).banding(4, 3).threshold(0.5)),
        7 => builder.minhash(small().value_bits(1).code_bits(64)),
        _ => builder.minhash(
            MinHash::external(16)
                .value_bits(8)
                .banding(8, 2)
                .threshold(0.5),
        ),
    };
    let empty = input.pick(&[EmptyDocuments::Distinct, EmptyDocuments::Alike]);
    builder.empty_documents(empty).build().unwrap()
}

/// A member of one of few families: near its other members, or not so near.
pub(crate) fn signature(schema: &Schema, family: u8, variant: u8) -> Signature {
    let kind = schema.minhash().map(|minhash| minhash.kind());
    if variant == 255 {
        return match (kind, schema.minhash()) {
            (Some(MinHashKind::External), Some(minhash)) => {
                Signature::from_minhash(vec![u32::MAX; minhash.values().into()])
            }
            _ => schema.sketcher().hashes([]).unwrap(),
        };
    }
    let (family, variant) = (u64::from(family % 6), u64::from(variant));
    let base = |place: u64| mix(family << 32 | place);
    let values = schema
        .minhash()
        .map_or(0, |minhash| u64::from(minhash.values()));
    let most =
        u64::from(u32::MAX >> (32 - schema.minhash().map_or(32, |m| m.value_bits().min(32))));
    let is_external = kind == Some(MinHashKind::External);
    let changed = |place: u64| (0..variant % 8).any(|i| mix(variant * 8 + i) % values == place);
    let value = |place: u64| {
        let value = if changed(place) {
            mix(variant << 40 | place)
        } else {
            base(place)
        };
        if is_external { value & most } else { value }
    };
    let flips = (0..variant / 16 % 7).fold(0u64, |bits, i| bits | 1 << (mix(variant + i) % 64));
    let fingerprint = base(1 << 20) ^ flips;
    let minhash = match kind {
        None => Signature::from_parts(None, None),
        Some(MinHashKind::BottomK) => {
            let count = if variant.is_multiple_of(2) {
                values
            } else {
                values / 2
            };
            Signature::from_bottom_k(values as u16, (0..count).map(value).collect())
        }
        Some(_) => Signature::from_minhash((0..values).map(|place| value(place) as u32).collect()),
    };
    match schema.simhash().map(|simhash| simhash.bits()) {
        None => minhash,
        Some(64) => minhash.with_simhash_of(&Signature::from_simhash(fingerprint)),
        Some(_) => {
            let wide = u128::from(fingerprint) << 64 | u128::from(base(1 << 21));
            minhash.with_simhash_of(&Signature::from_fingerprint(wide))
        }
    }
}

pub(crate) const KEYS: u8 = 12;

pub(crate) fn key(number: u8) -> Vec<u8> {
    match number % KEYS {
        0 => Vec::new(),
        1 => vec![b'k'; 4_096],
        2 => vec![0xff, 0, 0xfe],
        n => format!("key {n}").into_bytes(),
    }
}

pub(crate) fn payload(number: u8) -> Vec<u8> {
    let length = match number % 8 {
        0..6 => usize::from(number),
        6 => 1_000,
        _ => 5_000,
    };
    vec![number; length]
}
