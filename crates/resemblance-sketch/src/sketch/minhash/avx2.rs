//! Computes minima with AVX2. A row of lanes is two registers.
#![expect(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_loadu_si256, _mm256_min_epu32, _mm256_mullo_epi32,
    _mm256_set1_epi32, _mm256_storeu_si256,
};

use super::batch::{FeatureBatch, sum_at};
use super::families::FunctionFamily;
use super::rows::{LANES, RestOfRows, RowTerm, detected_kernel, vector_kernel};

detected_kernel!(Avx2, "avx2");
vector_kernel!("avx2", [__m256i; 2], 4, 1);

#[inline]
#[target_feature(enable = "avx2")]
fn multiply([left, right]: [__m256i; 2], number: u32) -> [__m256i; 2] {
    let number = _mm256_set1_epi32(number as i32);
    [
        _mm256_mullo_epi32(left, number),
        _mm256_mullo_epi32(right, number),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn lower(
    [least_left, least_right]: [__m256i; 2],
    [left, right]: [__m256i; 2],
    sum: u32,
) -> [__m256i; 2] {
    let sum = _mm256_set1_epi32(sum as i32);
    [
        _mm256_min_epu32(least_left, _mm256_add_epi32(left, sum)),
        _mm256_min_epu32(least_right, _mm256_add_epi32(right, sum)),
    ]
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
