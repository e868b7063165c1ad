//! Minima with AVX-512: a row of lanes is one register.
#![expect(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_loadu_si512, _mm512_min_epu32, _mm512_mullo_epi32,
    _mm512_set1_epi32, _mm512_storeu_si512,
};

use super::batch::{FeatureBatch, sum_at};
use super::families::FunctionFamily;
use super::pair_multiply::{PairMultiply, RowTerm};
use super::rows::LANES;

/// Proof that the processor has the instructions: only `detect` makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Avx512(());

impl Avx512 {
    pub(super) fn detect() -> Option<Self> {
        let is_found = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
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

#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
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

#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn pair_multiply(functions: &PairMultiply, minima: &mut [[u32; LANES]], batch: &mut FeatureBatch) {
    let columns = load(&functions.columns);
    let rest = (functions.rows.as_slice(), minima);
    let rest = blocks::<16>(columns, rest, batch);
    let rest = blocks::<8>(columns, rest, batch);
    let rest = blocks::<4>(columns, rest, batch);
    blocks::<1>(columns, rest, batch);
}

/// Updates the minima of as many whole blocks of `ROWS` rows as there are, and returns the other rows.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn blocks<'a, const ROWS: usize>(
    columns: __m512i,
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
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn block<const ROWS: usize>(
    columns: __m512i,
    rows: &[RowTerm; ROWS],
    minima: &mut [[u32; LANES]; ROWS],
    batch: &mut FeatureBatch,
) {
    batch.add_up(rows);
    let mut least = minima.each_ref().map(|lanes| load(lanes));
    for (position, mixed) in batch.numbered_features() {
        let products = _mm512_mullo_epi32(columns, _mm512_set1_epi32(mixed as i32));
        for (least, sums) in least.iter_mut().zip(batch.sums()) {
            let sum = sum_at(sums, position);
            let values = _mm512_add_epi32(products, _mm512_set1_epi32(sum as i32));
            *least = _mm512_min_epu32(*least, values);
        }
    }
    for (minima, least) in minima.iter_mut().zip(least) {
        store(minima, least);
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(lanes: &[u32; LANES]) -> __m512i {
    // SAFETY: the 64 bytes that are read are those of `lanes`; they need no alignment.
    unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(lanes: &mut [u32; LANES], register: __m512i) {
    // SAFETY: the 64 bytes that are written are those of `lanes`; they need no alignment.
    unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), register) }
}
