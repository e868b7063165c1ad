//! From a document to its signature, written from `format-spec.md` alone: nothing here calls the
//! library.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use unicode_normalization::UnicodeNormalization;
use xxhash_rust::xxh3::xxh3_64;

use crate::spec::minhash::{self, Features, Kind};

pub(crate) const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

pub(crate) fn mix64(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

pub(crate) fn derive(seed: u64, index: u64) -> u64 {
    let start = mix64(seed.wrapping_add(GAMMA));
    mix64(start.wrapping_add((index + 1).wrapping_mul(GAMMA)))
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    Auto = 0,
    Words = 1,
    Characters = 2,
    Code = 3,
}

impl Unit {
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "auto" => Self::Auto,
            "words" => Self::Words,
            "characters" => Self::Characters,
            "code" => Self::Code,
            other => panic!("no unit {other}"),
        }
    }
}

/// Two letters, and the checksum of the language's data.
pub(crate) type Language = ([u8; 2], u64);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shingles {
    pub(crate) unit: Unit,
    pub(crate) n: u16,
    /// 4 case kept, 8 spaces removed or order ignored, 16 NFKC, 32 accents, 64 stop words, 128 stems.
    pub(crate) steps: u8,
    pub(crate) stop_words: Option<Language>,
    pub(crate) stem: Option<Language>,
}

impl Shingles {
    pub(crate) fn new(unit: Unit, n: u16) -> Self {
        Self {
            unit,
            n,
            steps: 0,
            stop_words: None,
            stem: None,
        }
    }

    /// Returns the shingles of a text without further steps.
    pub(crate) fn of(self, text: &str) -> Vec<String> {
        assert_eq!(self.steps, 0);
        let text = &text.nfc().collect::<String>();
        let lower: Vec<char> = text.chars().flat_map(char::to_lowercase).collect();
        match self.unit {
            Unit::Auto => {
                let alone = |c: &char| {
                    WITHOUT_SPACES
                        .iter()
                        .any(|range| range.contains(&u32::from(*c)))
                };
                let words = lower.split(|c| !c.is_alphanumeric());
                let units = words.flat_map(|word| word.chunk_by(|a, b| !alone(a) && !alone(b)));
                join(units.map(String::from_iter).collect(), self.n, " ")
            }
            Unit::Words => {
                let words = lower.split(|c| !c.is_alphanumeric());
                let words = words.filter(|word| !word.is_empty());
                join(words.map(String::from_iter).collect(), self.n, " ")
            }
            Unit::Characters => {
                let pieces = lower.split(|c| c.is_whitespace());
                let pieces = pieces.filter(|piece| !piece.is_empty());
                let text = pieces.map(String::from_iter).collect::<Vec<_>>().join(" ");
                join(text.chars().map(String::from).collect(), self.n, "")
            }
            Unit::Code => join(tokens(text), self.n, " "),
        }
    }

    fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.unit as u8 + self.steps);
        bytes.extend(self.n.to_le_bytes());
        bytes.extend([17, 0, 0, 2]);
        for (letters, checksum) in [self.stop_words, self.stem].into_iter().flatten() {
            bytes.extend(letters);
            bytes.extend(checksum.to_le_bytes());
        }
    }
}

/// The ranges of section 5.1.
#[rustfmt::skip]
const WITHOUT_SPACES: [RangeInclusive<u32>; 18] = [
    0xe00..=0xeff, 0x1000..=0x109f, 0x1780..=0x17ff, 0x1950..=0x19df, 0x1a20..=0x1aaf, 0x2e80..=0x312f,
    0x31a0..=0x31bf, 0x31f0..=0x31ff, 0x3400..=0x4dbf, 0x4e00..=0xa4cf, 0xa9e0..=0xa9ff, 0xaa60..=0xaadf,
    0xf900..=0xfaff, 0xff66..=0xff9f, 0x116d0..=0x116ff, 0x16fe0..=0x18dff, 0x1aff0..=0x1b2ff,
    0x20000..=0x3ffff,
];

fn tokens(text: &str) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens: Vec<String> = Vec::new();
    let mut in_name = false;
    for c in text.chars() {
        match tokens.last_mut() {
            Some(token) if in_name && is_name(c) => token.push(c),
            _ if !c.is_whitespace() => tokens.push(c.into()),
            _ => {}
        }
        in_name = is_name(c);
    }
    tokens
}

fn join(units: Vec<String>, n: u16, between: &str) -> Vec<String> {
    match units.len() {
        0 => Vec::new(),
        length => units
            .windows(length.min(n.into()))
            .map(|shingle| shingle.join(between))
            .collect(),
    }
}

/// The part of the row `schema` that determines how signatures are made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recipe {
    pub(crate) text: Option<Shingles>,
    pub(crate) seed: u64,
    pub(crate) alike: bool,
    pub(crate) minhash: Option<(Kind, u16)>,
    /// 0 without SimHash.
    pub(crate) simhash_bits: u16,
    pub(crate) counts: bool,
    pub(crate) containment: Option<Containment>,
    /// The width of the hashes of an exact store, 0 of others.
    pub(crate) set_bits: u8,
}

/// Which shingles are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Containment {
    pub(crate) units: u16,
    /// True if one in a number of shingles is kept; false for windows.
    pub(crate) is_scaled: bool,
    pub(crate) number: u32,
    pub(crate) has_positions: bool,
}

/// The signature of a document, computed or stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Signature {
    /// Empty for bottom-k.
    pub(crate) values: Vec<u32>,
    /// The hashes of bottom-k.
    pub(crate) hashes: Vec<u64>,
    pub(crate) fingerprint: Option<u128>,
    /// The high 128 of 256 bits; 0 for a shorter fingerprint.
    pub(crate) high_fingerprint: u128,
    pub(crate) empty: bool,
    pub(crate) kept: Option<Vec<u64>>,
    /// The kept shingles in their order: position and hash; none where positions are not kept.
    pub(crate) placed: Vec<(u64, u64)>,
    /// The exact set: hashes, and their weights if the kind has any.
    pub(crate) set: Option<ExactSet>,
    /// The vector, if it is kept.
    pub(crate) vector: Option<Vec<f32>>,
}

pub(crate) type ExactSet = (Vec<u64>, Vec<u64>);

impl Signature {
    /// Section 5.8, with a fingerprint of 16 bytes.
    fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.empty.into());
        bytes.extend(self.values.iter().flat_map(|value| value.to_le_bytes()));
        let (hashes, weights) = self.set.clone().unwrap_or_default();
        let kept = self.kept.iter().flatten();
        let numbers = self
            .hashes
            .iter()
            .chain(kept)
            .chain(&hashes)
            .chain(&weights);
        bytes.extend(numbers.flat_map(|number| number.to_le_bytes()));
        let components = self.vector.iter().flatten();
        bytes.extend(components.flat_map(|component| component.to_le_bytes()));
        match self.fingerprint {
            Some(fingerprint) => bytes.extend(fingerprint.to_le_bytes()),
            None => bytes.extend([0; 8]),
        }
    }
}

impl Recipe {
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut bytes = b"resemblance recipe 1".to_vec();
        match self.text {
            Some(shingles) => shingles.append_to(&mut bytes),
            None => bytes.extend([0; 3]),
        }
        bytes.extend(self.seed.to_le_bytes());
        bytes.push(self.alike.into());
        let values = self.minhash.map_or(0, |(_, values)| values);
        bytes.extend(values.to_le_bytes());
        let counted = if self.counts { 32_768 } else { 0 };
        bytes.extend((self.simhash_bits + counted).to_le_bytes());
        if let Some((kind, _)) = self.minhash {
            kind.append_to(&mut bytes);
        }
        if let Some(containment) = self.containment {
            bytes.extend(b"containment");
            bytes.extend(containment.units.to_le_bytes());
            bytes.push(u8::from(containment.is_scaled) + 2 * u8::from(containment.has_positions));
            bytes.extend(containment.number.to_le_bytes());
        }
        if self.set_bits > 0 {
            bytes.extend(b"exact");
            bytes.extend(Some(self.set_bits).filter(|bits| *bits != 44));
        }
        xxh3_64(&bytes)
    }

    pub(crate) fn text(&self, text: &str) -> Signature {
        let shingles = self.text.map(|s| s.of(text)).unwrap_or_default();
        let mut signature = self.features(shingles.iter().map(String::as_bytes));
        if let Some(containment) = self.containment {
            let of_kept = Shingles {
                n: containment.units,
                ..self.text.unwrap()
            };
            let hashes = of_kept
                .of(text)
                .into_iter()
                .map(|shingle| xxh3_64(shingle.as_bytes()));
            (signature.kept, signature.placed) = self.kept(&hashes.collect::<Vec<_>>());
        }
        signature
    }

    /// Returns the kept hashes of shingles in their order, and their positions if positions are
    /// kept.
    fn kept(&self, hashes: &[u64]) -> (Option<Vec<u64>>, Vec<(u64, u64)>) {
        let Some(containment) = self.containment else {
            return (None, Vec::new());
        };
        let key = derive(self.seed, 7);
        let mixed: Vec<u64> = hashes.iter().map(|hash| mix64(hash ^ key)).collect();
        let kept: BTreeSet<usize> = if containment.is_scaled {
            let limit = u64::MAX / u64::from(containment.number);
            let all = 0..mixed.len();
            all.filter(|index| mixed[*index] <= limit).collect()
        } else {
            let window = (containment.number as usize).min(mixed.len()).max(1);
            let starts = 0..(mixed.len() + 1).saturating_sub(window);
            let least = |start: usize| {
                let all = start..start + window;
                all.rev().min_by_key(|index| mixed[*index]).unwrap()
            };
            starts.map(least).collect()
        };
        let placed = kept.into_iter().map(|index| {
            let hash = mix64(mixed[index].wrapping_add(GAMMA)) >> 20;
            (index as u64, hash)
        });
        let placed: Vec<(u64, u64)> = placed.collect();
        let stored: BTreeSet<u64> = placed.iter().map(|(_, hash)| *hash).collect();
        let placed = if containment.has_positions {
            placed
        } else {
            Vec::new()
        };
        (Some(stored.into_iter().collect()), placed)
    }

    pub(crate) fn features<'a>(&self, features: impl IntoIterator<Item = &'a [u8]>) -> Signature {
        self.hashes(features.into_iter().map(xxh3_64))
    }

    pub(crate) fn hashes(&self, hashes: impl IntoIterator<Item = u64>) -> Signature {
        let mut counted = Features::new();
        let hashes: Vec<u64> = hashes.into_iter().collect();
        for &hash in &hashes {
            *counted.entry(hash).or_default() += 65_536;
        }
        let alike = match self.counts {
            true => counted.clone(),
            false => counted.keys().map(|hash| (*hash, 1)).collect(),
        };
        let (kept, placed) = self.kept(&hashes);
        Signature {
            kept,
            placed,
            ..self.sketch(&counted, &alike)
        }
    }

    pub(crate) fn weighted(&self, features: impl IntoIterator<Item = (u64, f64)>) -> Signature {
        let (mut summed, mut present) = (Features::new(), Vec::new());
        for (hash, weight) in features {
            let steps = (weight * 65_536.0).round_ties_even() as u64;
            if steps > 0 {
                *summed.entry(hash).or_default() += steps;
                present.push(hash);
            }
        }
        let (kept, placed) = self.kept(&present);
        Signature {
            kept,
            placed,
            ..self.sketch(&summed, &summed)
        }
    }

    /// Returns the signature of features, with separate weights for MinHash and SimHash.
    fn sketch(&self, features: &Features, projected: &Features) -> Signature {
        let (values, hashes) = match self.minhash {
            Some((Kind::BottomK, most)) => {
                (Vec::new(), minhash::smallest(self.seed, most, features))
            }
            Some((kind, count)) => (kind.values(self.seed, count, features), Vec::new()),
            None => Default::default(),
        };
        Signature {
            values,
            hashes,
            fingerprint: (self.simhash_bits > 0).then(|| {
                let signed = projected
                    .iter()
                    .map(|(hash, weight)| (*hash, i128::from(*weight)));
                self.simhash(&signed.collect())
            }),
            high_fingerprint: 0,
            empty: features.is_empty(),
            kept: None,
            placed: Vec::new(),
            set: self.has_set().then(|| self.set(features)),
            vector: None,
        }
    }

    /// Returns the recipe of what documents have beside vectors.
    pub(crate) fn beside_vector(&self) -> Option<Self> {
        let beside = Self {
            minhash: None,
            set_bits: 0,
            ..self.clone()
        };
        (self.simhash_bits > 0 || self.containment.is_some()).then_some(beside)
    }

    /// Returns the signature of a document with a vector and this signature of all else.
    pub(crate) fn vector(&self, vector: &[f32], beside: Signature) -> Signature {
        let Some((Kind::Vector(dense), count)) = self.minhash else {
            panic!("no vectors: {self:?}");
        };
        let rounded = dense.rounded(vector, self.set_bits);
        Signature {
            values: dense.values(self.seed, count, &rounded),
            vector: (self.set_bits > 0).then_some(rounded),
            ..beside
        }
    }

    pub(crate) fn is_weighted(&self) -> bool {
        let kind = self.minhash.map(|(kind, _)| kind);
        matches!(kind, Some(Kind::Weighted | Kind::Probability))
    }

    /// Returns whether there is an exact set in addition to the kept hashes. Section 5.11.
    pub(crate) fn has_set(&self) -> bool {
        let keeps_all = self
            .containment
            .is_some_and(|it| it.number == 1 && self.text.is_none_or(|text| text.n == it.units));
        self.set_bits > 0 && (self.is_weighted() || !keeps_all || self.set_bits != 44)
    }

    fn set(&self, features: &Features) -> ExactSet {
        let key = derive(self.seed, 7);
        let mut set = BTreeMap::new();
        for (hash, weight) in features {
            let kept = mix64(mix64(hash ^ key).wrapping_add(GAMMA)) >> (64 - self.set_bits);
            *set.entry(kept).or_insert(0) += weight;
        }
        let (hashes, weights): ExactSet = set.into_iter().unzip();
        (
            hashes,
            if self.is_weighted() {
                weights
            } else {
                Vec::new()
            },
        )
    }

    /// Returns the fingerprint of features with weights of any sign.
    pub(crate) fn signed(&self, features: impl IntoIterator<Item = (u64, f64)>) -> u128 {
        let mut summed = BTreeMap::new();
        for (hash, weight) in features {
            *summed.entry(hash).or_default() += (weight * 65_536.0).round_ties_even() as i128;
        }
        summed.retain(|_, weight| *weight != 0);
        self.simhash(&summed)
    }

    fn simhash(&self, features: &BTreeMap<u64, i128>) -> u128 {
        let key = derive(self.seed, 0);
        let halves = [derive(self.seed, 1), derive(self.seed, 5)];
        let mut fingerprint = 0;
        for bit in 0..self.simhash_bits {
            let is_set = |hash: u64| {
                let word = mix64(hash ^ halves[usize::from(bit / 64)]);
                word >> (bit % 64) & 1 == 1
            };
            let turn = (u64::from(bit) + 1).wrapping_mul(GAMMA);
            let turned = |hash: &u64| mix64(mix64(hash ^ key).wrapping_add(turn));
            let signed = |(hash, weight): (&u64, &i128)| {
                if is_set(*hash) { *weight } else { -weight }
            };
            let set = match features.iter().map(signed).sum::<i128>() {
                0 => {
                    let decider = features.keys().min_by_key(|hash| turned(hash));
                    decider.is_some_and(|hash| is_set(*hash))
                }
                sum => sum > 0,
            };
            fingerprint |= u128::from(set) << bit;
        }
        fingerprint
    }

    fn self_test_of_vectors(&self, dimensions: u16, texts: &[String]) -> u64 {
        let mut bytes = Vec::new();
        for number in 0..4 {
            let component = |place| {
                let mixed = mix64((number << 32) + u64::from(place)) >> 40;
                (mixed as f64 / 8_388_608.0 - 1.0) as f32
            };
            let components: Vec<f32> = (0..dimensions).map(component).collect();
            let signature = self.vector(&components, Signature::default());
            signature.append_to(&mut bytes);
        }
        let beside = self.beside_vector().map(|beside| beside.self_test(texts));
        bytes.extend(beside.unwrap_or(0).to_le_bytes());
        xxh3_64(&bytes)
    }

    /// `texts` are the lines of the specification.
    pub(crate) fn self_test(&self, texts: &[String]) -> u64 {
        if let Some((Kind::Vector(dense), _)) = self.minhash {
            return self.self_test_of_vectors(dense.dimensions, texts);
        }
        if self.minhash.is_some_and(|(kind, _)| kind == Kind::External) {
            return xxh3_64(&[]);
        }
        let mut signatures = Vec::new();
        if self.text.is_some() {
            signatures.extend(texts.iter().map(|text| self.text(text)));
            let long: String = (0..600).map(|i| format!("W{i} ")).collect();
            signatures.push(self.text(&long));
        }
        let four: [&[u8]; 4] = [b"", b"a", b"feature", &[0x00, 0xc3, 0xbf]];
        signatures.push(self.features(four));
        signatures.push(self.hashes([]));
        for count in [1, 2, 8, 1_000] {
            signatures.push(self.hashes(0..count));
        }
        signatures.push(self.hashes((0..300).map(|i| i << 48)));
        signatures.push(self.weighted((0..300).map(|i| {
            let name = format!("w{}", i % 200);
            (xxh3_64(name.as_bytes()), f64::from(i) / 7.0)
        })));
        let steps = [0.0, 0.5, 1.0, 1.5, 2.5, 4_294_967_296.0];
        signatures.push(self.weighted((0..).zip(steps.map(|steps| steps / 65_536.0))));
        let mut bytes = Vec::new();
        for signature in signatures {
            signature.append_to(&mut bytes);
            if self.simhash_bits > 0 {
                bytes.truncate(bytes.len() - 16 + usize::from(self.simhash_bits / 8));
            }
        }
        xxh3_64(&bytes)
    }
}
