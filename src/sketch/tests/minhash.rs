//! That values are those of their definition, with all instructions.

use super::*;
use crate::sketch::hash::{derive, mix64, stream};
use crate::sketch::minhash::{Kernel, MinHasher};

pub(crate) const FAMILIES: [Permutations; 5] = [
    Permutations::PairMultiply,
    Permutations::MultiplyShift,
    Permutations::Modular,
    Permutations::Tabulation,
    Permutations::Jenkins,
];

/// The definition of a value, by one feature.
fn function(family: Permutations, seed: u64, i: u64, mixed: u64) -> u32 {
    let place = |offset| derive(seed, stream::MINHASH + offset);
    let [x, y] = [mixed & u64::from(u32::MAX), mixed >> 32];
    match family {
        Permutations::PairMultiply => {
            let (column, row) = (i % 16, i / 16);
            let a = (place(column) >> 32) / 32 * 32 + 2 * column + 1;
            let c = (place(16 + 2 * row) >> 32) / 128 * 128 + (2 * row + 1) % 128;
            let b = place(17 + 2 * row) >> 32;
            (u128::from(a * x) + u128::from(c * y) + u128::from(b)) as u32
        }
        Permutations::MultiplyShift => {
            let (a, b) = (place(2 * i) | 1, place(2 * i + 1));
            (a.wrapping_mul(mixed).wrapping_add(b) >> 32) as u32
        }
        Permutations::Modular => {
            let prime = (1 << 61) - 1;
            let (a, b) = (place(2 * i) % (prime - 1) + 1, place(2 * i + 1) % prime);
            let residue = (u128::from(a) * u128::from(mixed) + u128::from(b)) % u128::from(prime);
            (residue >> 29) as u32
        }
        Permutations::Tabulation => (0..8)
            .map(|byte| (byte, (mixed >> (8 * byte)) % 256))
            .map(|(byte, value)| (place(2_048 * i + 256 * byte + value) >> 32) as u32)
            .fold(0, |sum, word| sum ^ word),
        Permutations::Jenkins => {
            let key = (place(i) >> 32) / 1024 * 1024 + i;
            jenkins(key as u32, x as u32, y as u32)
        }
    }
}

/// The mix as its author wrote it, line by line.
fn jenkins(mut a: u32, mut b: u32, mut c: u32) -> u32 {
    let minus = |to: &mut u32, what: u32| *to = to.wrapping_sub(what);
    minus(&mut a, b);
    minus(&mut a, c);
    a ^= c >> 13;
    minus(&mut b, c);
    minus(&mut b, a);
    b ^= a << 8;
    minus(&mut c, a);
    minus(&mut c, b);
    c ^= b >> 13;
    minus(&mut a, b);
    minus(&mut a, c);
    a ^= c >> 12;
    minus(&mut b, c);
    minus(&mut b, a);
    b ^= a << 16;
    minus(&mut c, a);
    minus(&mut c, b);
    c ^= b >> 5;
    minus(&mut a, b);
    minus(&mut a, c);
    a ^= c >> 3;
    minus(&mut b, c);
    minus(&mut b, a);
    b ^= a << 10;
    minus(&mut c, a);
    minus(&mut c, b);
    c ^= b >> 15;
    c
}

fn naive(family: Permutations, seed: u64, values: u64, features: &[u64]) -> Vec<u32> {
    let mixed = |&x: &u64| mix64(x ^ derive(seed, stream::FEATURE_KEY));
    let value = |i| {
        let hashes = features.iter().map(|x| function(family, seed, i, mixed(x)));
        hashes.min().unwrap_or(u32::MAX)
    };
    (0..values).map(value).collect()
}

/// The values of some features.
fn values(hasher: &MinHasher, features: impl IntoIterator<Item = u64>) -> Vec<u32> {
    let mut minima = hasher.minima();
    hasher.update(&mut minima, features);
    minima.values()
}

#[test]
fn values_are_those_of_the_definition() {
    for family in FAMILIES {
        for count in [0, 1, 2, 7, 63, 64, 65, 130] {
            for (seed, k) in [(0, 16), (9, 117), (u64::MAX, 1024)] {
                let features: Vec<u64> = (0..count).map(|i: u64| i.wrapping_mul(seed)).collect();
                let expected = naive(family, seed, u64::from(k), &features);
                for (name, kernel) in Kernel::available() {
                    let hasher = MinHasher::with_kernel(seed, k, family, kernel);
                    let found = values(&hasher, features.iter().copied());
                    assert_eq!(found, expected, "{family} {name} k {k}, {count} features");
                }
            }
        }
    }
}

/// The portable kernel is what the others are compared with, as it is with the definition above.
#[test]
fn all_instructions_give_the_same_values() {
    let features: Vec<u64> = (0..1_100_u64).map(|i| i << 40).collect();
    for family in FAMILIES {
        for k in (16..=80).chain([127, 128, 200, 255, 256, 257, 400, 511, 777, 1023, 1024]) {
            let hashers: Vec<MinHasher> = Kernel::available()
                .into_iter()
                .map(|(_, kernel)| MinHasher::with_kernel(7, k, family, kernel))
                .collect();
            let counts = if family == Permutations::PairMultiply {
                &[0, 1, 3, 15, 16, 17, 31, 33, 64, 100, 127, 129, 1_099][..]
            } else {
                &[0, 1, 5, 65][..]
            };
            for &count in counts {
                // Not at the start, so that nothing is aligned.
                let features = &features[1..=count];
                let found = hashers
                    .iter()
                    .map(|hasher| values(hasher, features.iter().copied()));
                let found: Vec<Vec<u32>> = found.collect();
                assert_eq!(found[0].len(), usize::from(k));
                assert!(
                    found.iter().all(|other| *other == found[0]),
                    "{family} {k} {count}"
                );
            }
        }
    }
}

#[test]
fn features_may_come_in_parts_and_repeatedly() {
    for family in FAMILIES {
        let hasher = MinHasher::new(3, 100, family);
        let whole = values(&hasher, 0..500);
        let mut minima = hasher.minima();
        for part in [0..1, 400..500, 1..130, 90..401, 7..7] {
            hasher.update(&mut minima, part);
        }
        assert_eq!(minima.values(), whole, "{family}");
        let more = values(&MinHasher::new(3, 1_000, family), 0..500);
        assert_eq!(more[..100], whole, "fewer values are the first of more");
        assert_ne!(values(&MinHasher::new(4, 100, family), 0..500), whole);
    }
}

/// Frozen: made by another program from the text of the specification. Values 0 to 3, 15 to 17 and
/// 1,023 of the features 0 to 3 under the seed 42.
#[test]
fn golden_values_of_the_families() {
    let golden: [[u32; 8]; 5] = [
        [
            0x6298_7cb2,
            0x7ea9_c138,
            0x15ec_b877,
            0x63d9_335f,
            0x1051_9388,
            0x0866_2f28,
            0x7da2_5298,
            0x71bd_9232,
        ],
        [
            0x6ccc_463b,
            0x6f3c_460d,
            0x2c52_d759,
            0x34e9_089b,
            0x39a9_2ded,
            0x192c_ef68,
            0x4c08_2f9c,
            0x0888_12d1,
        ],
        [
            0x2fe0_795f,
            0x1508_f3d8,
            0x4161_ba68,
            0x5c3e_f77f,
            0xa80f_a173,
            0x0661_ba39,
            0x27a0_a686,
            0x0407_3756,
        ],
        [
            0x664c_405a,
            0x141e_babb,
            0x12b3_35cf,
            0x3e03_061c,
            0xa1dd_a3a5,
            0x3c68_93fc,
            0x802b_09d3,
            0x44dd_92b6,
        ],
        [
            0x2131_0554,
            0x00f2_69f6,
            0x77bf_3187,
            0x03f1_6184,
            0x204e_6246,
            0x5cd6_7bae,
            0x72c0_93af,
            0x1dc5_6c5c,
        ],
    ];
    for (family, golden) in FAMILIES.into_iter().zip(golden) {
        let found = values(&MinHasher::new(42, 1024, family), 0..4);
        let places = [0, 1, 2, 3, 15, 16, 17, 1023];
        assert_eq!(places.map(|place| found[place]), golden, "{family}");
    }
}

/// A sketcher holds features back and hands them on in parts.
#[test]
fn a_sketcher_has_the_values_of_its_functions() {
    for count in [0, 1, 255, 256, 257, 1_000] {
        let hasher = MinHasher::new(9, 117, Permutations::default());
        let expected = values(&hasher, 0..count);
        for simhash in [None, Some(64)] {
            let signature = sketcher(9, Some(117), simhash).hashes(0..count).unwrap();
            assert_eq!(signature.minhash(), Some(&expected[..]));
        }
    }
}
