//! The row `schema`, and what follows from it, written from `format-spec.md` alone.

use crate::spec::bytes::Bytes;
use crate::spec::codes;
use crate::spec::dense::Dense;
use crate::spec::filters;
use crate::spec::minhash::{self, Kind};
use crate::spec::recipe::{Containment, ExactSet, Recipe, Shingles, Signature, Unit};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MinHash {
    pub(crate) kind: Kind,
    pub(crate) values: u16,
    pub(crate) value_bits: u8,
    pub(crate) threshold: f64,
    pub(crate) bands: u16,
    pub(crate) rows: u16,
    pub(crate) code_bits: u8,
}

impl MinHash {
    fn codes(&self, signature: &Signature) -> Vec<u64> {
        let made = minhash::rows_of_smallest(&signature.hashes, self.values);
        let rows = match self.kind {
            Kind::BottomK => &made,
            _ => &signature.values,
        };
        let bands = rows.chunks(self.rows.into()).take(self.bands.into());
        bands
            .map(|band| codes::band_code(band, self.code_bits, self.value_bits))
            .collect()
    }
}

type Groups = Vec<(u8, u8)>;

#[derive(Debug, PartialEq)]
pub(crate) struct Schema {
    pub(crate) recipe: Recipe,
    pub(crate) minhash: Option<MinHash>,
    /// Bits, greatest distance, groups.
    pub(crate) simhash: Option<(u16, u8, Groups)>,
    pub(crate) near: u32,
    /// The least similarity, if there is one, and the greatest distance, if the store keeps clusters.
    pub(crate) clusters: Option<(Option<f64>, Option<u8>)>,
    /// 1 single, 2 star, 3 complete.
    pub(crate) linkage: u32,
    pub(crate) expected_documents: u64,
}

impl Schema {
    pub(crate) fn decode(bytes: &mut Bytes<'_>) -> Self {
        let (text, seed, empty) = (bytes.option(decode_text), bytes.u64(), bytes.u32());
        assert!(empty < 6);
        let set_bits = match empty / 2 {
            0 => 0,
            1 => 44,
            _ => bytes.u8(),
        };
        assert_eq!(empty > 3, ![0, 44].contains(&set_bits));
        let recipe = Recipe {
            text,
            seed,
            alike: empty % 2 == 1,
            set_bits,
            minhash: bytes.option(|bytes| (decode_kind(bytes), bytes.u16())),
            simhash_bits: bytes.option(Bytes::u16).unwrap_or(0),
            counts: false,
            containment: bytes.option(decode_containment),
        };
        let recipe = Recipe {
            simhash_bits: recipe.simhash_bits % 32_768,
            counts: recipe.simhash_bits > 32_768,
            ..recipe
        };
        let is_allowed = match recipe.minhash {
            Some((Kind::Vector(_), _)) => [0, 8, 16, 32].contains(&set_bits),
            _ => set_bits == 0 || (32..=64).contains(&set_bits),
        };
        assert!(is_allowed);
        assert_eq!(bytes.take(3), [17, 0, 0]);
        let minhash = bytes.option(|bytes| MinHash {
            kind: decode_kind(bytes),
            values: bytes.u16(),
            value_bits: bytes.u8(),
            threshold: f64::from_bits(bytes.u64()),
            bands: bytes.u16(),
            rows: bytes.u16(),
            code_bits: bytes.u8(),
        });
        let simhash = bytes.option(|bytes| {
            let bits = match bytes.u8() {
                0 => 256,
                bits => u16::from(bits),
            };
            let (distance, groups) = (bytes.u8(), bytes.u64());
            let groups = (0..groups).map(|_| (bytes.u8(), bytes.u8())).collect();
            (bits, distance, groups)
        });
        let near = bytes.u32();
        assert!(near < 8);
        let bounds = |bytes: &mut Bytes<'_>| {
            let similarity = bytes.option(Bytes::u64).map(f64::from_bits);
            (similarity, bytes.option(Bytes::u8))
        };
        let schema = Self {
            recipe,
            minhash,
            simhash,
            near: near % 2,
            clusters: (near > 1).then(|| bounds(bytes)),
            linkage: near / 2,
            expected_documents: bytes.u64(),
        };
        let of_recipe = schema.minhash.map(|minhash| (minhash.kind, minhash.values));
        assert_eq!(schema.recipe.minhash, of_recipe);
        let bits = schema.simhash.as_ref().map_or(0, |simhash| simhash.0);
        let is_external = schema.recipe.simhash_bits == 0;
        assert!(is_external || schema.recipe.simhash_bits == bits);
        schema
    }

    pub(crate) fn tables(&self) -> Vec<codes::Table> {
        let tables = |(bits, _, groups): &(u16, u8, Groups)| codes::tables((*bits).into(), groups);
        self.simhash.as_ref().map_or(Vec::new(), tables)
    }

    /// Returns what a store keeps of a signature.
    pub(crate) fn stored(&self, mut signature: Signature) -> Signature {
        if let Some(minhash) = self.minhash {
            let bits = minhash.value_bits;
            for value in &mut signature.values {
                *value = match minhash.kind {
                    Kind::External | Kind::Vector(_) => minhash::low_bits(*value, bits),
                    _ => minhash::cut(*value, bits),
                };
            }
        }
        signature
    }

    /// The codes of a stored signature in each lane, none where the document is not filed.
    pub(crate) fn codes(&self, key: Option<&[u8]>, signature: &Signature) -> Vec<Vec<u64>> {
        let filed = !signature.empty || self.recipe.alike;
        let one = |code: Option<u64>| code.into_iter().collect::<Vec<u64>>();
        let mut codes = vec![one(key.map(codes::key_code))];
        if let Some(minhash) = &self.minhash {
            let bands = minhash.codes(signature).into_iter();
            codes.extend(bands.map(|code| one(filed.then_some(code))));
        }
        let tables = self.tables();
        codes.extend(tables.iter().map(|(order, _)| {
            let fingerprint = [signature.fingerprint.unwrap(), signature.high_fingerprint];
            one(filed.then(|| codes::permute(order, fingerprint)))
        }));
        codes.extend(signature.kept.clone());
        codes
    }

    /// Returns the kind of each lane.
    pub(crate) fn kinds(&self) -> Vec<filters::Kind> {
        let mut kinds = vec![filters::Kind::Key];
        if let Some(minhash) = &self.minhash {
            kinds.extend((0..minhash.bands).map(|_| filters::Kind::Band(minhash.code_bits)));
        }
        let tables = self.tables();
        kinds.extend(
            tables
                .iter()
                .map(|(_, prefix)| filters::Kind::Table(*prefix)),
        );
        kinds.extend(self.recipe.containment.map(|_| filters::Kind::Band(44)));
        kinds
    }

    /// Decodes the signature in the body of a row. The row states whether it is empty.
    pub(crate) fn decode_signature(&self, bytes: &mut Bytes<'_>, empty: bool) -> Signature {
        let mut signature = Signature {
            empty,
            ..Signature::default()
        };
        match self.minhash {
            None => {}
            Some(minhash) if minhash.kind == Kind::BottomK => {
                let count = bytes.u16();
                assert!(count <= minhash.values);
                signature.hashes = (0..count).map(|_| bytes.u64()).collect();
                assert!(signature.hashes.is_sorted_by(|a, b| a < b));
                assert!(!signature.hashes.contains(&u64::MAX));
            }
            Some(minhash) => {
                let (count, bits) = (minhash.values, minhash.value_bits);
                let packed = bytes.take((usize::from(count) * usize::from(bits)).div_ceil(8));
                signature.values = minhash::unpack(packed, count, bits);
                assert_eq!(minhash::pack(&signature.values, bits), packed);
            }
        }
        let simhash_bits = self.simhash.as_ref().map_or(0, |simhash| simhash.0);
        let fingerprint = bytes.take(usize::from(simhash_bits / 8));
        let (low, high) = fingerprint.split_at(fingerprint.len().min(16));
        let number = |bytes: &[u8]| {
            bytes
                .iter()
                .rfold(0, |number, byte| number << 8 | u128::from(*byte))
        };
        signature.fingerprint = (simhash_bits > 0).then(|| number(low));
        signature.high_fingerprint = number(high);
        signature.kept = self.recipe.containment.map(|_| decode_kept(bytes, 44));
        if self.recipe.containment.is_some_and(|it| it.has_positions) {
            signature.placed = decode_positions(bytes, signature.kept.as_deref().unwrap());
        }
        signature
    }
}

/// Decodes what an exact store keeps of a document, section 2.10.
pub(crate) fn decode_exact(bytes: &mut Bytes<'_>, recipe: &Recipe, signature: &mut Signature) {
    match recipe.minhash {
        Some((Kind::Vector(dense), _)) => {
            signature.vector = Some(dense.decode_vector(bytes, recipe.set_bits));
        }
        _ => signature.set = Some(decode_set(bytes, recipe)),
    }
}

fn decode_set(bytes: &mut Bytes<'_>, recipe: &Recipe) -> ExactSet {
    let hashes = decode_kept(bytes, recipe.set_bits.into());
    if !recipe.is_weighted() || hashes.is_empty() {
        return (hashes, Vec::new());
    }
    let (shift, width) = (bytes.u8(), usize::from(bytes.u8()));
    let fields = bytes.take((hashes.len() * width).div_ceil(8));
    let bit = |bit: usize| u64::from(fields[bit / 8] >> (bit % 8) & 1);
    let field =
        |index: usize| (0..width).fold(0, |field, at| field | bit(index * width + at) << at);
    let fields: Vec<u64> = (0..hashes.len()).map(field).collect();
    assert!(!fields.contains(&0) && fields.iter().any(|field| field % 2 == 1));
    assert_eq!(fields.iter().max().unwrap().ilog2() as usize + 1, width);
    let weights = fields.iter().map(|field| field << shift).collect();
    (hashes, weights)
}

fn decode_containment(bytes: &mut Bytes<'_>) -> Containment {
    let units = bytes.u16();
    let variant = bytes.u32();
    assert!(variant < 4);
    let (is_scaled, has_positions) = (variant % 2 == 1, variant > 1);
    Containment {
        units,
        is_scaled,
        number: if is_scaled {
            bytes.u32()
        } else {
            bytes.u16().into()
        },
        has_positions,
    }
}

/// The kept hashes, section 2.3.
fn decode_kept(bytes: &mut Bytes<'_>, width: usize) -> Vec<u64> {
    let count = bytes.u32() as usize;
    if count == 0 {
        return Vec::new();
    }
    let low = width - count.ilog2() as usize;
    let lower = bytes.take((count * low).div_ceil(8));
    let upper = bytes.take((count + (1 << (width - low))).div_ceil(8));
    let is_set = |bytes: &[u8], bit: usize| bytes[bit / 8] >> (bit % 8) & 1 == 1;
    let ones: Vec<usize> = (0..upper.len() * 8)
        .filter(|bit| is_set(upper, *bit))
        .collect();
    assert_eq!(ones.len(), count);
    let hash = |(index, one): (usize, &usize)| {
        let bits = (0..low).filter(|bit| is_set(lower, index * low + bit));
        let low_part = bits.fold(0, |part, bit| part | 1 << bit);
        ((one - index) as u64) << low | low_part
    };
    let hashes: Vec<u64> = ones.iter().enumerate().map(hash).collect();
    assert!(hashes.is_sorted_by(|a, b| a < b) && u128::from(hashes[count - 1]) >> width == 0);
    hashes
}

/// Decodes the positions of the kept hashes, section 2.3.
fn decode_positions(bytes: &mut Bytes<'_>, hashes: &[u64]) -> Vec<(u64, u64)> {
    if hashes.is_empty() {
        return Vec::new();
    }
    let (count, width) = (bytes.u32() as usize, usize::from(bytes.u8()));
    let fields = bytes.take((count * (width + 1)).div_ceil(8));
    let bit = |bit: usize| u64::from(fields[bit / 8] >> (bit % 8) & 1);
    let field = |index: usize| {
        let first = index * (width + 1);
        (0..=width).fold(0, |field, at| field | bit(first + at) << at)
    };
    let (mut placed, mut hash, mut before) = (Vec::new(), 0, None);
    for (position, is_last) in (0..count)
        .map(field)
        .map(|field| (field >> 1, field & 1 == 1))
    {
        assert!(before < Some(position));
        placed.push((position, hashes[hash]));
        (hash, before) = if is_last {
            (hash + 1, None)
        } else {
            (hash, Some(position))
        };
    }
    assert_eq!(hash, hashes.len());
    placed.sort();
    assert!(placed.is_sorted_by(|a, b| a.0 < b.0));
    assert_eq!(
        placed
            .last()
            .unwrap()
            .0
            .checked_ilog2()
            .map_or(0, |top| top + 1),
        width as u32
    );
    placed
}

fn decode_text(bytes: &mut Bytes<'_>) -> Shingles {
    let unit = |number| match number {
        0 => Unit::Auto,
        1 => Unit::Words,
        2 => Unit::Characters,
        3 => Unit::Code,
        other => panic!("{other}"),
    };
    let variant = bytes.u32();
    if variant < 3 {
        return Shingles::new(unit(variant + 1), bytes.u16());
    }
    if variant == 4 {
        return Shingles::new(Unit::Auto, bytes.u16());
    }
    assert_eq!(variant, 3);
    let kind = bytes.u8();
    let steps = kind & 0xfc;
    assert_ne!(steps, 0);
    let n = bytes.u16();
    assert_eq!(bytes.take(3), [17, 0, 0]);
    let mut language = |step| {
        let letters = bytes.take(2).try_into().unwrap();
        let checksum = bytes.u64();
        assert!(steps & step != 0 || (letters, checksum) == ([0, 0], 0));
        (steps & step != 0).then_some((letters, checksum))
    };
    Shingles {
        steps,
        stop_words: language(64),
        stem: language(128),
        ..Shingles::new(unit((kind & 0x03).into()), n)
    }
}

fn decode_kind(bytes: &mut Bytes<'_>) -> Kind {
    let variant = bytes.u32();
    if variant == 0 {
        let family = bytes.u32() as usize;
        assert!(family < 5);
        return Kind::ALL[family];
    }
    if variant == 6 {
        return Kind::Vector(Dense::decode(bytes));
    }
    assert!(variant < 6);
    Kind::ALL[4 + variant as usize]
}
