//! Computes minima with AVX-512. A row of lanes is one register.
#![expect(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_loadu_si512, _mm512_min_epu32, _mm512_mullo_epi32,
    _mm512_set1_epi32, _mm512_storeu_si512,
};

use super::batch::{FeatureBatch, sum_at};
use super::families::FunctionFamily;
use super::rows::{LANES, RestOfRows, RowTerm, detected_kernel, vector_kernel};

detected_kernel!(Avx512, "avx512f", "avx512dq", "avx512vl");
vector_kernel!("avx512f,avx512dq,avx512vl", __m512i, 16, 8, 4, 1);

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn multiply(columns: __m512i, number: u32) -> __m512i {
    _mm512_mullo_epi32(columns, _mm512_set1_epi32(number as i32))
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn lower(least: __m512i, products: __m512i, sum: u32) -> __m512i {
    let values = _mm512_add_epi32(products, _mm512_set1_epi32(sum as i32));
    _mm512_min_epu32(least, values)
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
