//! Bottom-k: the k smallest values of one hash function (Broder, *On the resemblance and
//! containment of documents*, 1997; Cohen and Kaplan named it in *Summarizing data using bottom-k
//! sketches*, PODC 2007).
//!
//! The k smallest values of a union are a sample of k elements, drawn without replacement. Two
//! sketches determine which elements of the sample are in both sets, and the share of these is an
//! unbiased estimate of J (Broder's theorem 1). Its variance is that of such a draw, J (1 - J) / k
//! × (N - k) / (N - 1) for N features in the union. If the union has fewer than k features, the
//! sketches contain all of them and the result is exact. Values have 64 bits and result from a
//! bijection, so none are equal by chance. The one exception is the greatest number, which is
//! replaced by the next smaller one.

use super::hash::{GOLDEN_GAMMA, derive, mix64, stream};

/// The hash function of one seed.
#[derive(Debug)]
pub(super) struct BottomK {
    key: u64,
    size: usize,
}

/// The smallest values so far, and some others. Takes at most 16 bytes for each of the k values.
#[derive(Clone, Debug)]
pub(super) struct BottomKState {
    /// Values in any order, with repeats. They include the k smallest distinct values so far.
    kept: Vec<u64>,
    /// An upper bound of the k smallest values.
    threshold: u64,
}

impl BottomK {
    /// Creates the function of a seed, for sketches of up to `values` values.
    pub(crate) fn new(seed: u64, values: u16) -> Self {
        Self {
            key: derive(seed, stream::BOTTOM_K_KEY),
            size: usize::from(values),
        }
    }

    /// Returns the state of a document without features.
    pub(super) fn state(&self) -> BottomKState {
        BottomKState {
            kept: Vec::with_capacity(2 * self.size),
            threshold: u64::MAX,
        }
    }

    /// Adds features. Neither order nor repeats change the result.
    pub(super) fn update(&self, state: &mut BottomKState, hashes: impl IntoIterator<Item = u64>) {
        for hash in hashes {
            // `u64::MAX` is reserved: it pads sketches that are stored side by side in memory.
            let value = mix64(hash ^ self.key).min(u64::MAX - 1);
            if value <= state.threshold {
                state.kept.push(value);
                if state.kept.len() >= 2 * self.size {
                    self.shrink(state);
                }
            }
        }
    }

    /// Returns the sketch: the k smallest values, ascending and distinct, or all values if there
    /// are fewer.
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

/// Keeps the `size` smallest distinct values, ascending.
fn keep_least(values: &mut Vec<u64>, size: usize) {
    values.sort_unstable();
    values.dedup();
    values.truncate(size);
}

/// Returns the sketch of the union of two sets, from their sketches.
pub(super) fn merge(a: &[u64], b: &[u64], size: usize) -> Vec<u64> {
    union(a, b).take(size).map(|(value, _)| value).collect()
}

/// Examines the `size` smallest values of the union of two sketches, or all if there are fewer.
/// Returns how many of them are in both sketches, and how many were examined.
pub(super) fn shared(a: &[u64], b: &[u64], size: usize) -> (usize, usize) {
    let (mut all, mut shared) = (0_usize, 0_usize);
    for (_, in_both) in union(a, b).take(size) {
        all += 1;
        shared += usize::from(in_both);
    }
    (shared, all)
}

/// Estimates J from two sketches of up to `size` values. The result is in [0, 1], and 1 for two
/// empty sketches.
pub(super) fn bottom_k_jaccard(a: &[u64], b: &[u64], size: usize) -> f64 {
    match shared(a, b, size) {
        (_, 0) => 1.0,
        (shared, all) => shared as f64 / all as f64,
    }
}

/// Merges two ascending slices. Each value comes with whether both slices contain it.
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

/// Returns the rows that index a sketch in bands: `count` values that agree between two sets with a
/// probability near J, as MinHash values do.
///
/// An independent mix assigns every value to one of `count` bins. Row j is a hash of the smallest
/// value of the sketch in bin j, or `u32::MAX` if the bin is empty. For two sets, let m be the
/// smallest value in bin j among the k smallest of their union. If m exists, a set that contains m
/// has it in its sketch, as the smallest value of its bin. The rows then agree exactly if both sets
/// contain m, which has probability J. So
///
///   J (1 - q) ≤ P(rows agree) ≤ J (1 - q) + q,   q = (1 - 1 / count)^min(k, N),
///
/// for N features in the union, up to 2^-32 for colliding hashes. With count = k / 8 and N ≥ k this
/// differs from J by at most q ≤ e^-8 = 0.0004. If N < k, a bin without a value of the union is
/// empty in both sketches, and the rows agree: P = J (1 - q) + q, never less than J. Small sets are
/// therefore compared more often than necessary, and never found less often.
pub(crate) fn rows(values: &[u64], count: usize) -> Vec<u32> {
    let mut rows = vec![u32::MAX; count];
    // In descending order, so that the smallest value of a bin is written last and remains.
    for &value in values.iter().rev() {
        let mixed = mix64(value.wrapping_add(GOLDEN_GAMMA));
        // The high half of the product of a 32-bit number and `count` is below `count`.
        let bin = (u128::from(mixed >> 32) * count as u128) >> 32;
        if let Some(row) = rows.get_mut(bin as usize) {
            *row = (mixed as u32).min(u32::MAX - 1);
        }
    }
    rows
}
