//! (a_i x + c_j y + b_j) mod 2^32, where x is the low and y the high half of the mixed hash: value
//! 16 j + i belongs to column i and row j.
//!
//! Why this form? The least that a kernel can do for a function is a comparison and one more 32-bit
//! operation, because registers hold the most lanes at 32 bits. If that operation is x + b_i or x ^
//! b_i, all functions order features by the same circle or tree of x. Two functions then choose the
//! same feature about twice as often as by chance, which multiplies the variance by about 1 + k /
//! n. A product for each function (a_i x) costs twice the operations and ignores half the hash. The
//! sum of a column's product and a row's product costs the least, uses the whole hash, and is
//! independent in pairs: for random (x, y), the values of (i, j) and (i', j') are independent
//! because a_i c_j' - a_i' c_j is not 0. If that number is divisible by 2^t, only the t lowest bits
//! of the two values depend on each other. The variance of the estimate requires no more than
//! independence in pairs.
//!
//! Neither r functions of one row nor 16 consecutive functions form a cycle of columns and rows.
//! Linear relations among them therefore have random coefficients of about 2^(64 / r), too large to
//! make minima coincide. The shortest cycle has four functions (v - v' - v'' + v''' = 0). It makes
//! four minima fall on one of n features with a probability of about n^-2 rather than n^-3.

use super::super::hash::{derive, stream};
use super::rows::{LANES, RowTerm, high};

#[derive(Debug)]
pub(super) struct PairMultiply {
    /// The multipliers a.
    pub(super) columns: [u32; LANES],
    pub(super) rows: Vec<RowTerm>,
}

/// The number of low bits of a multiplier that hold its number. They keep any two columns, and any
/// two rows, from being equal or nearly equal modulo a power of two. All multipliers are odd, so
/// that each half of the hash counts in full. Frozen.
const COLUMN_BITS: u32 = 5;
const ROW_BITS: u32 = 7;

impl PairMultiply {
    pub(super) fn new(seed: u64, rows: usize) -> Self {
        let column = |i: usize| odd(seed, stream::MINHASH + i as u64, i, COLUMN_BITS);
        let row = |j: usize| {
            let index = stream::MINHASH + LANES as u64 + 2 * j as u64;
            RowTerm {
                multiplier: odd(seed, index, j, ROW_BITS),
                addend: high(derive(seed, index + 1)),
            }
        };
        Self {
            columns: std::array::from_fn(column),
            rows: (0..rows).map(row).collect(),
        }
    }

    #[inline(always)]
    pub(super) fn update(&self, minima: &mut [[u32; LANES]], mixed: &[u64]) {
        flip_highest_bits(minima);
        for &mixed in mixed {
            let products = self.columns.map(|a| a.wrapping_mul(mixed as u32));
            for (minima, row) in minima.iter_mut().zip(&self.rows) {
                let sum = row.sum(high(mixed)) ^ HIGHEST_BIT;
                for (minimum, product) in minima.iter_mut().zip(products) {
                    let value = product.wrapping_add(sum);
                    *minimum = (*minimum as i32).min(value as i32) as u32;
                }
            }
        }
        flip_highest_bits(minima);
    }
}

/// The sign bit. Flipping it makes a signed comparison order unsigned numbers. Plain code on x86-64
/// may use only SSE2, which has only signed comparisons.
const HIGHEST_BIT: u32 = 1 << 31;

#[inline(always)]
fn flip_highest_bits(minima: &mut [[u32; LANES]]) {
    for minimum in minima.as_flattened_mut() {
        *minimum ^= HIGHEST_BIT;
    }
}

/// Returns the multiplier with this number in its `bits` lowest bits, after a 1. Its other bits are
/// derived from the seed.
fn odd(seed: u64, index: u64, number: usize, bits: u32) -> u32 {
    let lowest = (1 << bits) - 1;
    high(derive(seed, index)) & !lowest | (2 * number as u32 + 1) & lowest
}
