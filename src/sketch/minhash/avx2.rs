//! Minima with AVX2: a row of lanes is two registers.
#![expect(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_loadu_si256, _mm256_min_epu32, _mm256_mullo_epi32,
    _mm256_set1_epi32, _mm256_storeu_si256,
};

use crate::sketch::minhash::batch::Batch;
use crate::sketch::minhash::families::Family;
use crate::sketch::minhash::min_hasher::LANES;
use crate::sketch::minhash::pair_multiply::{PairMultiply, Row};

/// The processor has the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx2");
        found.then_some(Self(()))
    }

    pub(crate) fn update(
        self,
        family: &Family,
        key: u64,
        minima: &mut [[u32; LANES]],
        batch: &mut Batch,
    ) {
        // SAFETY: the processor has the instructions, or there were no `self`.
        unsafe { update(family, key, minima, batch) }
    }
}

#[target_feature(enable = "avx2")]
fn update(family: &Family, key: u64, minima: &mut [[u32; LANES]], batch: &mut Batch) {
    batch.mix(key);
    match family {
        Family::PairMultiply(functions) => pair_multiply(functions, minima, batch),
        other => other.update(minima, batch.features()),
    }
}

#[target_feature(enable = "avx2")]
fn pair_multiply(functions: &PairMultiply, minima: &mut [[u32; LANES]], batch: &mut Batch) {
    let columns = load(&functions.columns);
    let rest = (functions.rows.as_slice(), minima);
    let rest = blocks::<4>(columns, rest, batch);
    blocks::<1>(columns, rest, batch);
}

/// Takes a batch into as many rows as there are blocks of; the others are left.
#[inline]
#[target_feature(enable = "avx2")]
fn blocks<'a, const ROWS: usize>(
    columns: [__m256i; 2],
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
#[target_feature(enable = "avx2")]
fn block<const ROWS: usize>(
    columns: [__m256i; 2],
    rows: &[Row; ROWS],
    minima: &mut [[u32; LANES]; ROWS],
    batch: &mut Batch,
) {
    batch.add_up(rows);
    let Batch { sums, .. } = &*batch;
    let mut least = minima.each_ref().map(|lanes| load(lanes));
    for (place, &mixed) in batch.features().iter().enumerate() {
        let low = _mm256_set1_epi32(mixed as i32);
        let [left, right] = columns;
        let (left, right) = (
            _mm256_mullo_epi32(left, low),
            _mm256_mullo_epi32(right, low),
        );
        for ([least_left, least_right], sums) in least.iter_mut().zip(sums.iter()) {
            let sum = sums.get(place).copied().unwrap_or_default();
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
