//! Bottom-k: the k least values of one function (Broder, *On the resemblance and containment of
//! documents*, 1997; the name is Cohen and Kaplan's, *Summarizing data using bottom-k sketches*,
//! PODC 2007).
//!
//! The k least values of a union are k elements drawn from it without replacement, and two sketches
//! determine which of them both sets have: the share of these is an unbiased estimate of J
//! (Broder's theorem 1). Its variance is J (1 - J) / k × (N - k) / (N - 1) for N features in the
//! union, that of such a draw. With fewer than k features in the union, all of it is known exactly.
//! Values have 64 bits and result from a bijection, except for the greatest, which counts as one
//! less: none are equal by chance.

use super::hash::{GOLDEN_GAMMA, derive, mix64, stream};

/// The function of one seed.
#[derive(Debug)]
pub(super) struct BottomK {
    key: u64,
    size: usize,
}

/// The least values so far, and some more: at most 16 bytes for each of the k values.
#[derive(Clone, Debug)]
pub(super) struct BottomKState {
    /// Kept values in any order and with repeats. The k least distinct values so far are among
    /// them.
    kept: Vec<u64>,
    /// No greater value can be among the k least.
    threshold: u64,
}

impl BottomK {
    /// The function of a seed, for sketches of up to `values` values.
    pub(crate) fn new(seed: u64, values: u16) -> Self {
        Self {
            key: derive(seed, stream::BOTTOM_K_KEY),
            size: usize::from(values),
        }
    }

    /// The state of a document without features.
    pub(super) fn state(&self) -> BottomKState {
        BottomKState {
            kept: Vec::with_capacity(2 * self.size),
            threshold: u64::MAX,
        }
    }

    /// Takes features in. Neither order nor repeats change the result.
    pub(super) fn update(&self, state: &mut BottomKState, hashes: impl IntoIterator<Item = u64>) {
        for hash in hashes {
            // Sketches that are kept side by side in memory are padded with `u64::MAX`.
            let value = mix64(hash ^ self.key).min(u64::MAX - 1);
            if value <= state.threshold {
                state.kept.push(value);
                if state.kept.len() >= 2 * self.size {
                    self.shrink(state);
                }
            }
        }
    }

    /// The sketch: the k least values, ascending and distinct; all of them where there are fewer.
    pub(crate) fn values(&self, state: &BottomKState) -> Vec<u64> {
        let mut values = state.kept.clone();
        keep_least(&mut values, self.size);
        values
    }

    fn shrink(&self, state: &mut BottomKState) {
        keep_least(&mut state.kept, self.size);
        if state.kept.len() == self.size
            && let Some(&greatest) = state.kept.last()
        {
            state.threshold = greatest;
        }
    }
}

/// Keeps the `size` least distinct values, ascending.
fn keep_least(values: &mut Vec<u64>, size: usize) {
    values.sort_unstable();
    values.dedup();
    values.truncate(size);
}

/// The sketch of the union of two sets from their sketches.
pub(super) fn merge(a: &[u64], b: &[u64], size: usize) -> Vec<u64> {
    union(a, b).take(size).map(|(value, _)| value).collect()
}

/// Looks at the `size` least values of two sketches together, or at all if there are fewer. Returns how
/// many of them are in both sketches, and how many there are.
pub(super) fn shared(a: &[u64], b: &[u64], size: usize) -> (usize, usize) {
    let (mut all, mut shared) = (0_usize, 0_usize);
    for (_, in_both) in union(a, b).take(size) {
        all += 1;
        shared += usize::from(in_both);
    }
    (shared, all)
}

/// The estimate of J from two sketches of up to `size` values: 0 to 1, and 1 for two empty ones.
pub(super) fn bottom_k_jaccard(a: &[u64], b: &[u64], size: usize) -> f64 {
    match shared(a, b, size) {
        (_, 0) => 1.0,
        (shared, all) => shared as f64 / all as f64,
    }
}

/// The values of two ascending slices, ascending, each with whether both slices have it.
fn union<'a>(mut a: &'a [u64], mut b: &'a [u64]) -> impl Iterator<Item = (u64, bool)> + 'a {
    std::iter::from_fn(move || {
        let next = match (a.first(), b.first()) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        let rest_of_a = a.strip_prefix(std::slice::from_ref(next));
        let rest_of_b = b.strip_prefix(std::slice::from_ref(next));
        let found = (*next, rest_of_a.is_some() && rest_of_b.is_some());
        a = rest_of_a.unwrap_or(a);
        b = rest_of_b.unwrap_or(b);
        Some(found)
    })
}

/// The number of rows that [`rows`] makes of a sketch of up to `values` values.
pub(crate) const fn row_count(values: u16) -> u16 {
    values / 8
}

/// The rows by which a sketch is indexed in bands: `count` values, of which those of two sets agree
/// with a probability near J, as MinHash values do.
///
/// An independent mix sends every value to one of `count` bins. Row j is a hash of the least value
/// of the sketch in bin j, `u32::MAX` if the bin is empty. For two sets let m be the least value in
/// bin j that is among the k least of their union. If it exists, a set that has m has it in its
/// sketch, as the least of its bin; the rows agree exactly if both have m, which has probability J.
/// So
///
///   J (1 - q) ≤ P(rows agree) ≤ J (1 - q) + q,   q = (1 - 1 / count)^min(k, N),
///
/// for N features in the union, and 2^-32 for equal hashes. With count = k / 8 and N ≥ k this is
/// within q ≤ e^-8 = 0.0004 of J. Where N < k, a bin without a value of the union is empty in both
/// sketches, and the rows agree: P = J (1 - q) + q, never less than J. Small sets are compared
/// more often than they need be, and found no less.
pub(crate) fn rows(values: &[u64], count: usize) -> Vec<u32> {
    let mut rows = vec![u32::MAX; count];
    // In descending order, so that the least value of a bin is the one that is kept.
    for &value in values.iter().rev() {
        let mixed = mix64(value.wrapping_add(GOLDEN_GAMMA));
        // The high half of a number of 32 bits × `count` is below `count`.
        let bin = (u128::from(mixed >> 32) * count as u128) >> 32;
        if let Some(row) = rows.get_mut(bin as usize) {
            *row = (mixed as u32).min(u32::MAX - 1);
        }
    }
    rows
}
