//! Minima with NEON: a row of lanes is four registers.
#![expect(unsafe_code, reason = "vector instructions")]

use std::arch::aarch64::{
    uint32x4_t, vaddq_u32, vdupq_n_u32, vld1q_u32, vminq_u32, vmulq_u32, vst1q_u32,
};

use crate::sketch::minhash::batch::Batch;
use crate::sketch::minhash::families::Family;
use crate::sketch::minhash::min_hasher::LANES;
use crate::sketch::minhash::pair_multiply::{PairMultiply, Row};

/// Lanes of a register, and registers of a row.
const QUARTER: usize = LANES / 4;

pub(crate) fn update(family: &Family, key: u64, minima: &mut [[u32; LANES]], batch: &mut Batch) {
    // SAFETY: every processor that this is compiled for has the instructions, as `kernel` lets it
    // be compiled only where the target has them.
    unsafe { update_features(family, key, minima, batch) }
}

#[target_feature(enable = "neon")]
fn update_features(family: &Family, key: u64, minima: &mut [[u32; LANES]], batch: &mut Batch) {
    batch.mix(key);
    match family {
        Family::PairMultiply(functions) => pair_multiply(functions, minima, batch),
        other => other.update(minima, batch.features()),
    }
}

#[target_feature(enable = "neon")]
fn pair_multiply(functions: &PairMultiply, minima: &mut [[u32; LANES]], batch: &mut Batch) {
    let columns = load(&functions.columns);
    let rest = (functions.rows.as_slice(), minima);
    let rest = blocks::<4>(columns, rest, batch);
    blocks::<1>(columns, rest, batch);
}

/// Takes a batch into as many rows as there are blocks of; the others are left.
#[inline]
#[target_feature(enable = "neon")]
fn blocks<'a, const ROWS: usize>(
    columns: [uint32x4_t; QUARTER],
    (rows, minima): (&'a [Row], &'a mut [[u32; LANES]]),
    batch: &mut Batch,
) -> (&'a [Row], &'a mut [[u32; LANES]]) {
    let (rows, other_rows) = rows.as_chunks::<ROWS>();
    let (minima, other_minima) = minima.as_chunks_mut::<ROWS>();
    for (rows, minima) in rows.iter().zip(minima) {
        block(columns, rows, minima, batch);
    }
    (other_rows, other_minima)
}

/// Rows whose minima stay in registers.
#[inline]
#[target_feature(enable = "neon")]
fn block<const ROWS: usize>(
    columns: [uint32x4_t; QUARTER],
    rows: &[Row; ROWS],
    minima: &mut [[u32; LANES]; ROWS],
    batch: &mut Batch,
) {
    batch.add_up(rows);
    let Batch { sums, .. } = &*batch;
    let mut least = minima.each_ref().map(|lanes| load(lanes));
    for (place, &mixed) in batch.features().iter().enumerate() {
        let low = vdupq_n_u32(mixed as u32);
        let products = columns.map(|columns| vmulq_u32(columns, low));
        for (least, sums) in least.iter_mut().zip(sums.iter()) {
            let sum = vdupq_n_u32(sums.get(place).copied().unwrap_or_default());
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
    // SAFETY: register i takes the four words from 4 i on, and i is less than 4, so that all are
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
