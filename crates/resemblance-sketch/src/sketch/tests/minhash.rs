//! Tests that values are those of their definition, with all instructions.

use super::*;
use crate::sketch::minhash::{Kernel, MinHasher};

pub(crate) const FAMILIES: [Permutations; 5] = [
    Permutations::PairMultiply,
    Permutations::MultiplyShift,
    Permutations::Modular,
    Permutations::Tabulation,
    Permutations::Jenkins,
];

/// The values of some features.
fn values(hasher: &MinHasher, features: impl IntoIterator<Item = u64>) -> Vec<u32> {
    let mut minima = hasher.minima();
    let features: Vec<u64> = features.into_iter().collect();
    hasher.update(&mut minima, &features);
    minima.values()
}

/// The portable kernel is what the others are compared with, as it is with the definition above.
#[test]
fn simd_variants_compute_the_same_minhash() {
    let features: Vec<u64> = (0..1_100_u64).map(|i| i << 40).collect();
    for family in FAMILIES {
        for k in (16..=80).chain([127, 128, 200, 255, 256, 257, 400, 511, 777, 1023, 1024]) {
            let hashers: Vec<MinHasher> = Kernel::available()
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
fn minhash_ignores_repeats_and_update_boundaries() {
    for family in FAMILIES {
        let hasher = MinHasher::new(3, 100, family);
        let whole = values(&hasher, 0..500);
        let mut minima = hasher.minima();
        for part in [0..1, 400..500, 1..130, 90..401, 7..7] {
            hasher.update(&mut minima, &part.collect::<Vec<u64>>());
        }
        assert_eq!(minima.values(), whole, "{family}");
        let more = values(&MinHasher::new(3, 1_000, family), 0..500);
        assert_eq!(more[..100], whole, "fewer values are the first of more");
        assert_ne!(values(&MinHasher::new(4, 100, family), 0..500), whole);
    }
}

/// A sketcher holds features back and hands them on in parts.
#[test]
fn sketcher_uses_the_minhash_functions_of_its_seed() {
    for count in [0, 1, 255, 256, 257, 1_000] {
        let hasher = MinHasher::new(9, 117, Permutations::default());
        let expected = values(&hasher, 0..count);
        for simhash in [None, Some(64)] {
            let signature = sketcher(9, Some(117), simhash).hashes(0..count).unwrap();
            assert_eq!(signature.minhash(), Some(&expected[..]));
        }
    }
}
