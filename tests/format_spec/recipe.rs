//! From text to codes, written from `format-spec.md` alone: nothing here calls the library.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

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
pub(crate) enum Shingles {
    Words(u16),
    Characters(u16),
}

impl Shingles {
    pub(crate) fn of(self, text: &str) -> Vec<String> {
        let lower: Vec<char> = text.chars().flat_map(char::to_lowercase).collect();
        match self {
            Self::Words(n) => {
                let words = lower.split(|c| !c.is_alphanumeric());
                let words = words.filter(|word| !word.is_empty());
                join(words.map(String::from_iter).collect(), n, " ")
            }
            Self::Characters(n) => {
                let pieces = lower.split(|c| c.is_whitespace());
                let pieces = pieces.filter(|piece| !piece.is_empty());
                let text = pieces.map(String::from_iter).collect::<Vec<_>>().join(" ");
                join(text.chars().map(String::from).collect(), n, "")
            }
        }
    }
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

/// What the row `schema` says of how signatures are made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recipe {
    pub(crate) text: Option<Shingles>,
    pub(crate) seed: u64,
    pub(crate) alike: bool,
    pub(crate) minhash_values: u16,
    pub(crate) simhash_bits: u16,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Signature {
    pub(crate) values: Vec<u32>,
    pub(crate) fingerprint: Option<u64>,
    pub(crate) empty: bool,
}

impl Recipe {
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut bytes = b"resemblance recipe 1".to_vec();
        let (kind, length) = match self.text {
            None => (0, 0),
            Some(Shingles::Words(n)) => (1, n),
            Some(Shingles::Characters(n)) => (2, n),
        };
        bytes.push(kind);
        bytes.extend(length.to_le_bytes());
        if self.text.is_some() {
            bytes.extend([17, 0, 0]);
        }
        bytes.extend(self.seed.to_le_bytes());
        bytes.push(self.alike.into());
        bytes.extend(self.minhash_values.to_le_bytes());
        bytes.extend(self.simhash_bits.to_le_bytes());
        xxh3_64(&bytes)
    }

    pub(crate) fn text(&self, text: &str) -> Signature {
        let shingles = self.text.map(|s| s.of(text)).unwrap_or_default();
        self.features(shingles.iter().map(String::as_bytes))
    }

    pub(crate) fn features<'a>(&self, features: impl IntoIterator<Item = &'a [u8]>) -> Signature {
        self.hashes(features.into_iter().map(xxh3_64))
    }

    pub(crate) fn hashes(&self, hashes: impl IntoIterator<Item = u64>) -> Signature {
        let mut distinct: Vec<u64> = hashes.into_iter().collect();
        distinct.sort_unstable();
        distinct.dedup();
        self.sketch(
            &distinct
                .into_iter()
                .map(|hash| (hash, 1))
                .collect::<Vec<_>>(),
        )
    }

    pub(crate) fn weighted(&self, features: impl IntoIterator<Item = (u64, f64)>) -> Signature {
        let mut summed = std::collections::BTreeMap::<u64, u64>::new();
        for (hash, weight) in features {
            let steps = (weight * 65_536.0).round_ties_even() as u64;
            if steps > 0 {
                *summed.entry(hash).or_default() += steps;
            }
        }
        self.sketch(&summed.into_iter().collect::<Vec<_>>())
    }

    fn sketch(&self, features: &[(u64, u64)]) -> Signature {
        let key = derive(self.seed, 0);
        let value = |i: u64| {
            let (a, b) = (
                derive(self.seed, 16 + 2 * i) | 1,
                derive(self.seed, 17 + 2 * i),
            );
            let image = |&(hash, _): &(u64, u64)| {
                (a.wrapping_mul(mix64(hash ^ key)).wrapping_add(b) >> 32) as u32
            };
            features.iter().map(image).min().unwrap_or(u32::MAX)
        };
        Signature {
            values: (0..self.minhash_values.into()).map(value).collect(),
            fingerprint: (self.simhash_bits == 64).then(|| self.simhash(features)),
            empty: features.is_empty(),
        }
    }

    fn simhash(&self, features: &[(u64, u64)]) -> u64 {
        let (key, projection) = (derive(self.seed, 0), derive(self.seed, 1));
        let word = |hash: u64| mix64(hash ^ projection);
        let decider = |bit: u64| {
            let turn = (bit + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = |hash: u64| mix64(mix64(hash ^ key).wrapping_add(turn));
            features.iter().map(|&(hash, _)| (mixed(hash), hash)).min()
        };
        let mut fingerprint = 0;
        for bit in 0..64 {
            let sum: i128 = features
                .iter()
                .map(|&(hash, weight)| match word(hash) >> bit & 1 {
                    1 => i128::from(weight),
                    _ => -i128::from(weight),
                })
                .sum();
            let set = match (sum, decider(bit)) {
                (0, Some((_, hash))) => word(hash) >> bit & 1 == 1,
                (sum, _) => sum > 0,
            };
            fingerprint |= u64::from(set) << bit;
        }
        fingerprint
    }

    /// `texts` are the lines of the specification.
    pub(crate) fn self_test(&self, texts: &[String]) -> u64 {
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
            bytes.push(signature.empty.into());
            bytes.extend(
                signature
                    .values
                    .iter()
                    .flat_map(|value| value.to_le_bytes()),
            );
            bytes.extend(signature.fingerprint.unwrap_or(0).to_le_bytes());
        }
        xxh3_64(&bytes)
    }
}

pub(crate) fn key_code(key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, 0x6b65_7920_6c61_6e65)
}

pub(crate) fn band_code(rows: &[u32], code_bits: u8) -> u64 {
    let bytes: Vec<u8> = rows.iter().flat_map(|row| row.to_le_bytes()).collect();
    xxh3_64(&bytes) >> (64 - code_bits)
}

/// For each table the bits of a fingerprint in the order of its code, 0 the most significant, and
/// how many of them are the prefix.
pub(crate) fn tables(groups: &[(u8, u8)]) -> Vec<(Vec<u32>, u32)> {
    let count: u32 = groups.iter().map(|&(s, _)| u32::from(s)).sum();
    let block = |i: u32| (i * 64).div_ceil(count)..((i + 1) * 64).div_ceil(count);
    let mut tables = Vec::new();
    let mut first = 0;
    for &(s, r) in groups {
        let group = first..first + u32::from(s);
        for chosen in choices(group.clone().collect(), r.into()) {
            let others = (0..count).filter(|i| !chosen.contains(i));
            let prefix_bits = chosen.iter().map(|&i| block(i).len() as u32).sum();
            let order = chosen.iter().copied().chain(others).flat_map(block);
            tables.push((order.collect(), prefix_bits));
        }
        first = group.end;
    }
    tables
}

/// Every choice of `r` of `from`, in lexicographic order.
fn choices(from: Vec<u32>, r: usize) -> Vec<Vec<u32>> {
    if r == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (i, &first) in from.iter().enumerate() {
        for mut rest in choices(from[i + 1..].to_vec(), r - 1) {
            rest.insert(0, first);
            all.push(rest);
        }
    }
    all
}

pub(crate) fn permute(order: &[u32], fingerprint: u64) -> u64 {
    let bits = order.iter().map(|bit| fingerprint >> (63 - bit) & 1);
    bits.fold(0, |code, bit| code << 1 | bit)
}
