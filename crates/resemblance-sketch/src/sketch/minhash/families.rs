//! The functions of each family, in portable code.

use super::super::hash::{derive, stream};
use super::pair_multiply::PairMultiply;
use super::permutations::Permutations;
use super::rows::{LANES, build_rows, high};
use super::tabulation::Tabulation;

/// The functions of one seed, in the family that the schema names.
#[derive(Debug)]
pub(super) enum FunctionFamily {
    PairMultiply(PairMultiply),
    MultiplyShift(MultiplyShift),
    Modular(Modular),
    Tabulation(Tabulation),
    Jenkins(Jenkins),
}

impl FunctionFamily {
    /// Creates the functions of `rows` rows. Function i does not depend on the number of rows.
    pub(super) fn new(seed: u64, rows: usize, permutations: Permutations) -> Self {
        match permutations {
            Permutations::PairMultiply => Self::PairMultiply(PairMultiply::new(seed, rows)),
            Permutations::MultiplyShift => Self::MultiplyShift(MultiplyShift::new(seed, rows)),
            Permutations::Modular => Self::Modular(Modular::new(seed, rows)),
            Permutations::Tabulation => Self::Tabulation(Tabulation::new(seed, rows)),
            Permutations::Jenkins => Self::Jenkins(Jenkins::new(seed, rows)),
        }
    }

    /// Lowers the minima to the values of the features with these mixed hashes. It is inlined into
    /// each kernel, so that it is compiled for the kernel's instructions.
    #[inline(always)]
    pub(super) fn update(&self, minima: &mut [[u32; LANES]], mixed: &[u64]) {
        match self {
            Self::PairMultiply(functions) => functions.update(minima, mixed),
            Self::MultiplyShift(functions) => functions.update(minima, mixed),
            Self::Modular(functions) => functions.update(minima, mixed),
            Self::Tabulation(functions) => functions.update(minima, mixed),
            Self::Jenkins(functions) => functions.update(minima, mixed),
        }
    }
}

/// The high 32 bits of (a u + b) mod 2^64.
#[derive(Debug)]
pub(super) struct MultiplyShift {
    /// Each multiplier is odd.
    multipliers: Vec<[u64; LANES]>,
    addends: Vec<[u64; LANES]>,
}

impl MultiplyShift {
    fn new(seed: u64, count: usize) -> Self {
        Self {
            multipliers: build_rows(count, |i| derive(seed, stream::MINHASH + 2 * i) | 1),
            addends: build_rows(count, |i| derive(seed, stream::MINHASH + 2 * i + 1)),
        }
    }

    #[inline(always)]
    fn update(&self, minima: &mut [[u32; LANES]], mixed: &[u64]) {
        let functions = self.multipliers.iter().zip(&self.addends);
        for (minima, (multipliers, addends)) in minima.iter_mut().zip(functions) {
            // The high bits of the minimum are the minimum of the high bits: one shift suffices.
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

/// The shift that leaves the high 32 of a residue's 61 bits.
const MODULAR_SHIFT: u32 = 61 - 32;

/// The high 32 of the 61 bits of (a u + b) mod 2^61 - 1.
#[derive(Debug)]
pub(super) struct Modular {
    /// Multiplier and addend of each function.
    functions: Vec<[(u64, u64); LANES]>,
}

impl Modular {
    fn new(seed: u64, count: usize) -> Self {
        let function = |i| {
            let index = stream::MINHASH + 2 * i;
            let multiplier = derive(seed, index) % (PRIME - 1) + 1;
            (multiplier, derive(seed, index + 1) % PRIME)
        };
        Self {
            functions: build_rows(count, function),
        }
    }

    #[inline(always)]
    fn update(&self, minima: &mut [[u32; LANES]], mixed: &[u64]) {
        for (minima, functions) in minima.iter_mut().zip(&self.functions) {
            for (minimum, &(a, b)) in minima.iter_mut().zip(functions) {
                let residue = |&u: &u64| reduce(u128::from(a) * u128::from(u) + u128::from(b));
                let least = mixed.iter().map(residue).fold(u64::MAX, u64::min);
                *minimum = u64::from(*minimum).min(least >> MODULAR_SHIFT) as u32;
            }
        }
    }
}

/// Reduces a number below 2^125 + 2^61 modulo the prime.
///
/// 2^61 is 1 modulo the prime, so the bits from 2^61 on are added to those below. The first sum is
/// less than 2^64 + 2^62, and the second less than twice the prime, so one subtraction completes
/// the reduction.
#[inline(always)]
fn reduce(number: u128) -> u64 {
    let prime = u128::from(PRIME);
    let once = (number & prime) + (number >> 61);
    let twice = ((once & prime) + (once >> 61)) as u64;
    if twice >= PRIME { twice - PRIME } else { twice }
}

/// Robert Jenkins' mix of a function's key and the two halves of the hash.
#[derive(Debug)]
pub(super) struct Jenkins {
    keys: Vec<[u32; LANES]>,
}

/// The number of low bits of a key that hold the number of the function. They make all keys of a
/// seed different.
const KEY_BITS: u32 = 10;

impl Jenkins {
    fn new(seed: u64, count: usize) -> Self {
        let lowest = (1 << KEY_BITS) - 1;
        let key = |i| high(derive(seed, stream::MINHASH + i)) & !lowest | i as u32 & lowest;
        Self {
            keys: build_rows(count, key),
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

/// Returns the third of the three words after the mix.
#[inline(always)]
fn jenkins(mut a: u32, mut b: u32, mut c: u32) -> u32 {
    for [first, second, third] in [[13, 8, 13], [12, 16, 5], [3, 10, 15]] {
        a = a.wrapping_sub(b).wrapping_sub(c) ^ (c >> first);
        b = b.wrapping_sub(c).wrapping_sub(a) ^ (a << second);
        c = c.wrapping_sub(a).wrapping_sub(b) ^ (b >> third);
    }
    c
}
