//! Computes minima with NEON. A row of lanes is four registers.
#![expect(unsafe_code, reason = "vector instructions")]

use std::arch::aarch64::{
    uint32x4_t, vaddq_u32, vdupq_n_u32, vld1q_u32, vminq_u32, vmulq_u32, vst1q_u32,
};

use super::batch::{FeatureBatch, sum_at};
use super::families::FunctionFamily;
use super::rows::{LANES, RestOfRows, RowTerm, vector_kernel};

/// The number of lanes in a register, and of registers in a row.
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

vector_kernel!("neon", [uint32x4_t; QUARTER], 4, 1);

#[inline]
#[target_feature(enable = "neon")]
fn multiply(columns: [uint32x4_t; QUARTER], number: u32) -> [uint32x4_t; QUARTER] {
    let number = vdupq_n_u32(number);
    columns.map(|columns| vmulq_u32(columns, number))
}

#[inline]
#[target_feature(enable = "neon")]
fn lower(
    mut least: [uint32x4_t; QUARTER],
    products: [uint32x4_t; QUARTER],
    sum: u32,
) -> [uint32x4_t; QUARTER] {
    let sum = vdupq_n_u32(sum);
    for (least, product) in least.iter_mut().zip(products) {
        *least = vminq_u32(*least, vaddq_u32(product, sum));
    }
    least
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
