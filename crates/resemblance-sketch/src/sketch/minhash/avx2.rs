//! Minima with AVX2: a row of lanes is two registers.
#![expect(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_loadu_si256, _mm256_min_epu32, _mm256_mullo_epi32,
    _mm256_set1_epi32, _mm256_storeu_si256,
};

use super::batch::{FeatureBatch, sum_at};
use super::families::FunctionFamily;
use super::pair_multiply::{PairMultiply, RowTerm};
use super::rows::LANES;

/// Proof that the processor has the instructions: only `detect` makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Avx2(());

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        let is_found = is_x86_feature_detected!("avx2");
        is_found.then_some(Self(()))
    }

    pub(super) fn update(
        self,
        family: &FunctionFamily,
        key: u64,
        minima: &mut [[u32; LANES]],
        batch: &mut FeatureBatch,
    ) {
        // SAFETY: `self` exists only if `detect` found that the processor has the instructions that
        // `update` is compiled for.
        unsafe { update(family, key, minima, batch) }
    }
}

#[target_feature(enable = "avx2")]
fn update(
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

#[target_feature(enable = "avx2")]
fn pair_multiply(functions: &PairMultiply, minima: &mut [[u32; LANES]], batch: &mut FeatureBatch) {
    let columns = load(&functions.columns);
    let rest = (functions.rows.as_slice(), minima);
    let rest = blocks::<4>(columns, rest, batch);
    blocks::<1>(columns, rest, batch);
}

/// Updates the minima of as many whole blocks of `ROWS` rows as there are, and returns the other rows.
#[inline]
#[target_feature(enable = "avx2")]
fn blocks<'a, const ROWS: usize>(
    columns: [__m256i; 2],
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
#[target_feature(enable = "avx2")]
fn block<const ROWS: usize>(
    columns: [__m256i; 2],
    rows: &[RowTerm; ROWS],
    minima: &mut [[u32; LANES]; ROWS],
    batch: &mut FeatureBatch,
) {
    batch.add_up(rows);
    let mut least = minima.each_ref().map(|lanes| load(lanes));
    for (position, mixed) in batch.numbered_features() {
        let low = _mm256_set1_epi32(mixed as i32);
        let [left, right] = columns;
        let (left, right) = (
            _mm256_mullo_epi32(left, low),
            _mm256_mullo_epi32(right, low),
        );
        for ([least_left, least_right], sums) in least.iter_mut().zip(batch.sums()) {
            let sum = sum_at(sums, position);
            let sum = _mm256_set1_epi32(sum as i32);
            *least_left = _mm256_min_epu32(*least_left, _mm256_add_epi32(left, sum));
            *least_right = _mm256_min_epu32(*least_right, _mm256_add_epi32(right, sum));
        }
    }
    for (minima, least) in minima.iter_mut().zip(least) {
        store(minima, least);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(lanes: &[u32; LANES]) -> [__m256i; 2] {
    let first = lanes.as_ptr().cast::<__m256i>();
    // SAFETY: the two registers of 32 bytes that are read are the 64 bytes of `lanes`; they need no
    // alignment.
    unsafe { [_mm256_loadu_si256(first), _mm256_loadu_si256(first.add(1))] }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(lanes: &mut [u32; LANES], [left, right]: [__m256i; 2]) {
    let first = lanes.as_mut_ptr().cast::<__m256i>();
    // SAFETY: the two registers of 32 bytes that are written are the 64 bytes of `lanes`; they need
    // no alignment.
    unsafe {
        _mm256_storeu_si256(first, left);
        _mm256_storeu_si256(first.add(1), right);
    }
}
