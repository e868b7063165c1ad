//! Minima with AVX-512: a row of lanes is one register.
#![expect(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_loadu_si512, _mm512_min_epu32, _mm512_mullo_epi32,
    _mm512_set1_epi32, _mm512_storeu_si512,
};

use crate::sketch::minhash::batch::Batch;
use crate::sketch::minhash::families::Family;
use crate::sketch::minhash::min_hasher::LANES;
use crate::sketch::minhash::pair_multiply::{PairMultiply, Row};

/// The processor has the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx512(());

impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
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

#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn update(family: &Family, key: u64, minima: &mut [[u32; LANES]], batch: &mut Batch) {
    batch.mix(key);
    match family {
        Family::PairMultiply(functions) => pair_multiply(functions, minima, batch),
        other => other.update(minima, batch.features()),
    }
}

#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn pair_multiply(functions: &PairMultiply, minima: &mut [[u32; LANES]], batch: &mut Batch) {
    let columns = load(&functions.columns);
    let rest = (functions.rows.as_slice(), minima);
    let rest = blocks::<16>(columns, rest, batch);
    let rest = blocks::<8>(columns, rest, batch);
    let rest = blocks::<4>(columns, rest, batch);
    blocks::<1>(columns, rest, batch);
}

/// Takes a batch into as many rows as there are blocks of; the others are left.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn blocks<'a, const ROWS: usize>(
    columns: __m512i,
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
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn block<const ROWS: usize>(
    columns: __m512i,
    rows: &[Row; ROWS],
    minima: &mut [[u32; LANES]; ROWS],
    batch: &mut Batch,
) {
    batch.add_up(rows);
    let Batch { sums, .. } = &*batch;
    let mut least = minima.each_ref().map(|lanes| load(lanes));
    for (place, &mixed) in batch.features().iter().enumerate() {
        let products = _mm512_mullo_epi32(columns, _mm512_set1_epi32(mixed as i32));
        for (least, sums) in least.iter_mut().zip(sums.iter()) {
            let sum = sums.get(place).copied().unwrap_or_default();
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
