//! The functions of each family, as plain code.

use crate::sketch::hash::{derive, stream};
use crate::sketch::minhash::min_hasher::LANES;
use crate::sketch::minhash::pair_multiply::{PairMultiply, high};
use crate::sketch::minhash::permutations::Permutations;
use crate::sketch::minhash::tabulation::Tabulation;

#[derive(Debug)]
pub(crate) enum Family {
    PairMultiply(PairMultiply),
    MultiplyShift(MultiplyShift),
    Modular(Modular),
    Tabulation(Tabulation),
    Jenkins(Jenkins),
}

impl Family {
    /// The functions of some rows of lanes. Function i is the same however many there are.
    pub(crate) fn new(seed: u64, rows: usize, permutations: Permutations) -> Self {
        match permutations {
            Permutations::PairMultiply => Self::PairMultiply(PairMultiply::new(seed, rows)),
            Permutations::MultiplyShift => Self::MultiplyShift(MultiplyShift::new(seed, rows)),
            Permutations::Modular => Self::Modular(Modular::new(seed, rows)),
            Permutations::Tabulation => Self::Tabulation(Tabulation::new(seed, rows)),
            Permutations::Jenkins => Self::Jenkins(Jenkins::new(seed, rows)),
        }
    }

    /// Takes features in, given by their mixed hashes. Inlined into the kernels, to be compiled for
    /// their instructions.
    #[inline(always)]
    pub(crate) fn update(&self, minima: &mut [[u32; LANES]], mixed: &[u64]) {
        match self {
            Self::PairMultiply(functions) => functions.update(minima, mixed),
            Self::MultiplyShift(functions) => functions.update(minima, mixed),
            Self::Modular(functions) => functions.update(minima, mixed),
            Self::Tabulation(functions) => functions.update(minima, mixed),
            Self::Jenkins(functions) => functions.update(minima, mixed),
        }
    }
}

/// Rows of what `number` makes of a function's number.
fn rows<T>(rows: usize, number: impl Fn(u64) -> T) -> Vec<[T; LANES]> {
    let row = |row: usize| std::array::from_fn(|lane| number((row * LANES + lane) as u64));
    (0..rows).map(row).collect()
}

/// The high 32 bits of (a u + b) mod 2^64.
#[derive(Debug)]
pub(crate) struct MultiplyShift {
    multipliers: Vec<[u64; LANES]>,
    addends: Vec<[u64; LANES]>,
}

impl MultiplyShift {
    fn new(seed: u64, count: usize) -> Self {
        Self {
            multipliers: rows(count, |i| derive(seed, stream::MINHASH + 2 * i) | 1),
            addends: rows(count, |i| derive(seed, stream::MINHASH + 2 * i + 1)),
        }
    }

    #[inline(always)]
    fn update(&self, minima: &mut [[u32; LANES]], mixed: &[u64]) {
        let functions = self.multipliers.iter().zip(&self.addends);
        for (minima, (multipliers, addends)) in minima.iter_mut().zip(functions) {
            // The cut commutes with the minimum, and is quicker made once.
            let mut least = [u64::MAX; LANES];
            for &mixed in mixed {
                let functions = multipliers.iter().zip(addends);
                for (least, (a, &b)) in least.iter_mut().zip(functions) {
                    *least = (*least).min(a.wrapping_mul(mixed).wrapping_add(b));
                }
            }
            for (minimum, least) in minima.iter_mut().zip(least) {
                *minimum = (*minimum).min(high(least));
            }
        }
    }
}

/// 2^61 - 1, a prime.
const PRIME: u64 = (1 << 61) - 1;

/// Bits of a residue that are cut off to leave 32.
const MODULAR_SHIFT: u32 = 61 - 32;

/// The high 32 of the 61 bits of (a u + b) mod 2^61 - 1.
#[derive(Debug)]
pub(crate) struct Modular {
    /// Multiplier and addend of each function.
    functions: Vec<[(u64, u64); LANES]>,
}

impl Modular {
    fn new(seed: u64, count: usize) -> Self {
        let function = |i| {
            let place = stream::MINHASH + 2 * i;
            let multiplier = derive(seed, place) % (PRIME - 1) + 1;
            (multiplier, derive(seed, place + 1) % PRIME)
        };
        Self {
            functions: rows(count, function),
        }
    }

    #[inline(always)]
    fn update(&self, minima: &mut [[u32; LANES]], mixed: &[u64]) {
        for (minima, functions) in minima.iter_mut().zip(&self.functions) {
            for (minimum, &(a, b)) in minima.iter_mut().zip(functions) {
                let residue = |&u: &u64| reduce(u128::from(a) * u128::from(u) + u128::from(b));
                let least = mixed.iter().map(residue).min().unwrap_or(u64::MAX);
                *minimum = u64::from(*minimum).min(least >> MODULAR_SHIFT) as u32;
            }
        }
    }
}

/// A number below 2^125 + 2^61 modulo the prime: 2^61 is 1 there, so its upper bits are added to
/// the lower ones, which leaves less than 2^64 + 2^62 and then less than twice the prime.
#[inline(always)]
fn reduce(number: u128) -> u64 {
    let prime = u128::from(PRIME);
    let once = (number & prime) + (number >> 61);
    let twice = ((once & prime) + (once >> 61)) as u64;
    if twice >= PRIME { twice - PRIME } else { twice }
}

/// Robert Jenkins' mix of a function's key and the halves of the hash.
#[derive(Debug)]
pub(crate) struct Jenkins {
    keys: Vec<[u32; LANES]>,
}

/// Keys differ in their lowest bits, whatever is derived from the seed.
const KEY_BITS: u32 = 10;

impl Jenkins {
    fn new(seed: u64, count: usize) -> Self {
        let lowest = (1 << KEY_BITS) - 1;
        let key = |i| high(derive(seed, stream::MINHASH + i)) & !lowest | i as u32 & lowest;
        Self {
            keys: rows(count, key),
        }
    }

    #[inline(always)]
    fn update(&self, minima: &mut [[u32; LANES]], mixed: &[u64]) {
        for (minima, keys) in minima.iter_mut().zip(&self.keys) {
            for &mixed in mixed {
                for (minimum, &key) in minima.iter_mut().zip(keys) {
                    *minimum = (*minimum).min(jenkins(key, mixed as u32, high(mixed)));
                }
            }
        }
    }
}

/// The third word that the mix makes of three.
#[inline(always)]
fn jenkins(mut a: u32, mut b: u32, mut c: u32) -> u32 {
    for [first, second, third] in [[13, 8, 13], [12, 16, 5], [3, 10, 15]] {
        a = a.wrapping_sub(b).wrapping_sub(c) ^ (c >> first);
        b = b.wrapping_sub(c).wrapping_sub(a) ^ (a << second);
        c = c.wrapping_sub(a).wrapping_sub(b) ^ (b >> third);
    }
    c
}
