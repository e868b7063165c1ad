//! MinHash (Broder 1997): k minima of k functions; the share of equal ones estimates Jaccard.
//!
//! Value i is the minimum over the features of the high 32 bits of (a_i u + b_i) mod 2^64, where u
//! is the feature's mixed hash and a_i is odd. Each function is a bijection of u before it is cut,
//! and u is random, so each value alone is exactly fair over seeds but for the cut; two functions
//! are related only where a_j / a_i is near a ratio of small numbers, which for random a is rarer
//! than n² / 2^62 a pair of functions and n features. The tests measure both.
//!
//! The cut to 32 bits makes unequal minima collide: two disjoint sets of n features each agree in
//! a value with probability about n / 2^33, so similarity is over-estimated by at most about
//! (1 - J) n / 2^33 for n features in the union: 0.0001 at a million, 0.01 at 100 million.

use super::hash::{derive, mix64, stream};

/// Features that are taken together, so that a minimum stays in a register.
const LANES: usize = 8;

/// The k functions of one seed.
#[derive(Debug)]
pub(super) struct MinHasher {
    key: u64,
    multipliers: Vec<u64>,
    addends: Vec<u64>,
}

impl MinHasher {
    pub(super) fn new(seed: u64, values: u16) -> Self {
        let at = |offset| {
            let places = (0..u64::from(values)).map(move |i| stream::MINHASH + 2 * i + offset);
            places.map(|place| derive(seed, place))
        };
        Self {
            key: derive(seed, stream::FEATURE_KEY),
            multipliers: at(0).map(|multiplier| multiplier | 1).collect(),
            addends: at(1).collect(),
        }
    }

    /// The minima of no feature.
    pub(super) fn minima(&self) -> Minima {
        Minima(vec![u64::MAX; self.multipliers.len()])
    }

    /// Takes features in. Repeats change nothing, nor does the order.
    pub(super) fn update(&self, minima: &mut Minima, hashes: impl IntoIterator<Item = u64>) {
        let mut mixed = hashes.into_iter().map(|hash| mix64(hash ^ self.key));
        while let Some(first) = mixed.next() {
            let mut lanes = [first; LANES];
            for (lane, next) in lanes.iter_mut().skip(1).zip(&mut mixed) {
                *lane = next;
            }
            self.update_lanes(minima, &lanes);
        }
    }

    #[inline]
    fn update_lanes(&self, minima: &mut Minima, lanes: &[u64; LANES]) {
        let functions = self.multipliers.iter().zip(&self.addends);
        for (minimum, (&multiplier, &addend)) in minima.0.iter_mut().zip(functions) {
            let mut least = *minimum;
            for &mixed in lanes {
                least = least.min(multiplier.wrapping_mul(mixed).wrapping_add(addend));
            }
            *minimum = least;
        }
    }
}

/// The minima before the cut to 32 bits, which commutes with the minimum and is quicker made once.
pub(super) struct Minima(Vec<u64>);

impl Minima {
    pub(super) fn values(&self) -> Vec<u32> {
        self.0
            .iter()
            .map(|minimum| (minimum >> 32) as u32)
            .collect()
    }
}

/// How many values are equal, place by place; the longer slice's rest is not looked at.
#[inline]
pub(crate) fn estimate_equal(a: &[u32], b: &[u32]) -> usize {
    // A narrow count fills vector registers; it is emptied before it can overflow.
    let pieces = a.chunks(1 << 15).zip(b.chunks(1 << 15));
    pieces
        .map(|(a, b)| a.iter().zip(b).map(|(a, b)| u32::from(a == b)).sum::<u32>() as usize)
        .sum()
}
