//! Counts what two ascending slices have in common: most of the time of exact comparisons.
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "vector instructions")
)]

/// The number of values that vector registers compare at once.
const STRIDE: usize = 4;

/// Returns the number of values that two slices have in common. The slices are ascending and
/// without repeats. The function stops early when the number is certain to be below `needed`. It
/// then returns some number below `needed`.
///
/// ```
/// use resemblance_sketch::exact::shared_from;
/// assert_eq!(shared_from(2, &[1, 2, 3], &[2, 3, 4]), 2);
/// assert!(shared_from(3, &[1, 2, 3], &[2, 3, 4]) < 3);
/// ```
#[must_use]
pub fn shared_from(needed: usize, a: &[u64], b: &[u64]) -> usize {
    // Equal documents are frequent, and this comparison ends at the first difference.
    if a == b {
        return a.len();
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has the instructions that it is compiled for.
        return unsafe { avx512::shared_from(needed, a, b) };
    }
    portable(needed, a, b)
}

fn chunk_at<const N: usize>(values: &[u64], start: usize) -> Option<&[u64; N]> {
    values.get(start..)?.first_chunk()
}

fn portable(needed: usize, a: &[u64], b: &[u64]) -> usize {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    loop {
        let within_reach = shared + (a.len() - i).min(b.len() - j);
        if within_reach < needed {
            return within_reach;
        }
        if i == a.len() || j == b.len() {
            return shared;
        }
        // Similar sets have long runs in common.
        while let Some((x, y)) = chunk_at::<STRIDE>(a, i).zip(chunk_at(b, j))
            && x == y
        {
            shared += STRIDE;
            i += STRIDE;
            j += STRIDE;
        }
        // No branch depends on which value is smaller, because that cannot be predicted.
        for _ in 0..STRIDE {
            let (Some(x), Some(y)) = (a.get(i), b.get(j)) else {
                break;
            };
            shared += usize::from(x == y);
            i += usize::from(x <= y);
            j += usize::from(y <= x);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m512i, _mm512_alignr_epi64, _mm512_cmpeq_epi64_mask, _mm512_loadu_si512,
    };

    use super::{chunk_at, portable};

    /// The values of a register.
    const LANES: usize = 8;

    /// Compares blocks of eight values, each with each, and leaves the block that ends first. No branch depends on how
    /// many are equal, because that cannot be predicted either.
    #[target_feature(enable = "avx512f")]
    pub(super) fn shared_from(needed: usize, a: &[u64], b: &[u64]) -> usize {
        let (mut i, mut j, mut shared) = (0, 0, 0);
        while let Some((x, y)) = chunk_at::<LANES>(a, i).zip(chunk_at::<LANES>(b, j)) {
            let within_reach = shared + (a.len() - i).min(b.len() - j);
            if within_reach < needed {
                return within_reach;
            }
            shared += equal_values(load(x), load(y));
            let [.., last_x] = *x;
            let [.., last_y] = *y;
            i += if last_x <= last_y { LANES } else { 0 };
            j += if last_y <= last_x { LANES } else { 0 };
        }
        // A value of the block that is left has been counted only if its equal is behind us, so none counts twice.
        let [a, b] = [(a, i), (b, j)].map(|(values, start)| values.get(start..).unwrap_or(&[]));
        shared + portable(needed.saturating_sub(shared), a, b)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn equal_values(x: __m512i, y: __m512i) -> usize {
        let equal = _mm512_cmpeq_epi64_mask(x, y)
            | _mm512_cmpeq_epi64_mask(x, _mm512_alignr_epi64::<1>(y, y))
            | _mm512_cmpeq_epi64_mask(x, _mm512_alignr_epi64::<2>(y, y))
            | _mm512_cmpeq_epi64_mask(x, _mm512_alignr_epi64::<3>(y, y))
            | _mm512_cmpeq_epi64_mask(x, _mm512_alignr_epi64::<4>(y, y))
            | _mm512_cmpeq_epi64_mask(x, _mm512_alignr_epi64::<5>(y, y))
            | _mm512_cmpeq_epi64_mask(x, _mm512_alignr_epi64::<6>(y, y))
            | _mm512_cmpeq_epi64_mask(x, _mm512_alignr_epi64::<7>(y, y));
        equal.count_ones() as usize
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(values: &[u64; LANES]) -> __m512i {
        // SAFETY: the 64 bytes that are read are those of `values`; they need no alignment.
        unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sample::Random;

    /// Sets of 0 to 80 values, of which few or nearly all are shared.
    #[test]
    fn shared_values_are_counted_alike_by_all_instructions() {
        let mut random = Random(1);
        for round in 0..4_000 {
            let range = 1 + random.below(if round % 2 == 0 { 100 } else { 1_000_000 });
            let common: Vec<u64> = (0..random.below(70)).map(|_| random.below(range)).collect();
            let mut set = |more| {
                let own = (0..more).map(|_| random.below(range));
                let set: BTreeSet<u64> = own.chain(common.iter().copied()).collect();
                set.into_iter().collect::<Vec<_>>()
            };
            let (a, b) = (set(round % 10), set(round % 7));
            let exact = a.iter().filter(|value| b.contains(value)).count();
            for needed in [0, exact / 2, exact, exact + 1, 2 * exact + 9] {
                for found in [shared_from(needed, &a, &b), portable(needed, &a, &b)] {
                    let is_right = found == exact || exact < needed && found < needed;
                    assert!(
                        is_right,
                        "{found} for {exact}, needed {needed}: {a:?} {b:?}"
                    );
                }
            }
        }
    }
}
