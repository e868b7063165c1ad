//! Minima with NEON: a row of lanes is four registers.
#![expect(unsafe_code, reason = "vector instructions")]

use std::arch::aarch64::{
    uint32x4_t, vaddq_u32, vdupq_n_u32, vld1q_u32, vminq_u32, vmulq_u32, vst1q_u32,
};

use super::batch::{FeatureBatch, sum_at};
use super::families::FunctionFamily;
use super::pair_multiply::{PairMultiply, RowTerm};
use super::rows::LANES;

/// Lanes in a register, and also registers in a row.
const QUARTER: usize = LANES / 4;

pub(super) fn update(
    family: &FunctionFamily,
    key: u64,
    minima: &mut [[u32; LANES]],
    batch: &mut FeatureBatch,
) {
    // SAFETY: this module is compiled only for targets whose processors all have the instructions.
    unsafe { update_features(family, key, minima, batch) }
}

#[target_feature(enable = "neon")]
fn update_features(
    family: &FunctionFamily,
    key: u64,
    minima: &mut [[u32; LANES]],
    batch: &mut FeatureBatch,
) {
    batch.mix(key);
    match family {
        FunctionFamily::PairMultiply(functions) => pair_multiply(functions, minima, batch),
        other => other.update(minima, batch.features()),
    }
}

#[target_feature(enable = "neon")]
fn pair_multiply(functions: &PairMultiply, minima: &mut [[u32; LANES]], batch: &mut FeatureBatch) {
    let columns = load(&functions.columns);
    let rest = (functions.rows.as_slice(), minima);
    let rest = blocks::<4>(columns, rest, batch);
    blocks::<1>(columns, rest, batch);
}

/// Updates the minima of as many whole blocks of `ROWS` rows as there are, and returns the other rows.
#[inline]
#[target_feature(enable = "neon")]
fn blocks<'a, const ROWS: usize>(
    columns: [uint32x4_t; QUARTER],
    (rows, minima): (&'a [RowTerm], &'a mut [[u32; LANES]]),
    batch: &mut FeatureBatch,
) -> (&'a [RowTerm], &'a mut [[u32; LANES]]) {
    let (rows, other_rows) = rows.as_chunks::<ROWS>();
    let (minima, other_minima) = minima.as_chunks_mut::<ROWS>();
    for (rows, minima) in rows.iter().zip(minima) {
        block(columns, rows, minima, batch);
    }
    (other_rows, other_minima)
}

/// Updates the minima of `ROWS` rows, which stay in registers from the first feature to the last.
#[inline]
#[target_feature(enable = "neon")]
fn block<const ROWS: usize>(
    columns: [uint32x4_t; QUARTER],
    rows: &[RowTerm; ROWS],
    minima: &mut [[u32; LANES]; ROWS],
    batch: &mut FeatureBatch,
) {
    batch.add_up(rows);
    let mut least = minima.each_ref().map(|lanes| load(lanes));
    for (position, mixed) in batch.numbered_features() {
        let low = vdupq_n_u32(mixed as u32);
        let products = columns.map(|columns| vmulq_u32(columns, low));
        for (least, sums) in least.iter_mut().zip(batch.sums()) {
            let sum = vdupq_n_u32(sum_at(sums, position));
            for (least, product) in least.iter_mut().zip(products) {
                *least = vminq_u32(*least, vaddq_u32(product, sum));
            }
        }
    }
    for (minima, least) in minima.iter_mut().zip(least) {
        store(minima, least);
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn load(lanes: &[u32; LANES]) -> [uint32x4_t; QUARTER] {
    let first = lanes.as_ptr();
    // SAFETY: register i reads the four words from 4 i on, and i is less than 4, so all of them are
    // words of `lanes`.
    std::array::from_fn(|i| unsafe { vld1q_u32(first.add(i * QUARTER)) })
}

#[inline]
#[target_feature(enable = "neon")]
fn store(lanes: &mut [u32; LANES], registers: [uint32x4_t; QUARTER]) {
    let (quarters, _) = lanes.as_chunks_mut::<QUARTER>();
    for (quarter, register) in quarters.iter_mut().zip(registers) {
        // SAFETY: the four words that are written are those of `quarter`.
        unsafe { vst1q_u32(quarter.as_mut_ptr(), register) }
    }
}
