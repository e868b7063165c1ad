//! Batches of features for the kernels.

use super::super::hash::mix64;
use super::rows::RowTerm;
use super::rows::high;

/// The number of features in a batch. It is small enough that everything but the minima fits the
/// nearest cache, and large enough that loading and storing the minima once a batch costs nothing.
pub(super) const FEATURES: usize = 64;

/// The maximum number of rows that a kernel evaluates together.
pub(super) const MAX_ROWS: usize = 16;

/// Up to [`FEATURES`] features that a kernel processes together. Its alignment keeps 512-bit
/// registers from crossing the end of a cache line.
#[repr(align(64))]
pub(super) struct FeatureBatch {
    hashes: [u64; FEATURES],
    /// The number of valid hashes. Those after them are left from earlier batches.
    filled: usize,
    highs: [u32; FEATURES],
    /// The sums of each row's functions, by feature.
    sums: [[u32; FEATURES]; MAX_ROWS],
}

impl FeatureBatch {
    pub(super) const fn new() -> Self {
        Self {
            hashes: [0; FEATURES],
            filled: 0,
            highs: [0; FEATURES],
            sums: [[0; FEATURES]; MAX_ROWS],
        }
    }

    /// Replaces the features of the batch by others, at most [`FEATURES`].
    #[inline]
    pub(super) fn fill(&mut self, hashes: &[u64]) {
        debug_assert!(hashes.len() <= FEATURES);
        for (slot, &hash) in self.hashes.iter_mut().zip(hashes) {
            *slot = hash;
        }
        self.filled = hashes.len();
    }

    /// Mixes the hashes with the key of the schema.
    ///
    /// Kernels inline this and [`add_up`](Self::add_up), so that they are compiled for the kernel's
    /// instructions. Both work on whole batches: loops of fixed length need no remainder.
    #[inline(always)]
    pub(super) fn mix(&mut self, key: u64) {
        for (hash, slot) in self.hashes.iter_mut().zip(&mut self.highs) {
            *hash = mix64(*hash ^ key);
            *slot = high(*hash);
        }
    }

    /// The hashes of the features. They are mixed after a call of [`mix`](Self::mix).
    #[inline(always)]
    pub(super) fn features(&self) -> &[u64] {
        // At most FEATURES are filled.
        let (features, _) = self.hashes.split_at(self.filled);
        features
    }

    /// Computes the addends of some rows for each feature. `ROWS` is at most [`MAX_ROWS`].
    ///
    /// The sums pass through memory. Whole registers compute them, one lane for each feature;
    /// kernels then read them one by one to fill a register with each.
    #[inline(always)]
    pub(super) fn add_up<const ROWS: usize>(&mut self, rows: &[RowTerm; ROWS]) {
        const { assert!(ROWS <= MAX_ROWS) };
        for (sums, row) in self.sums.iter_mut().zip(rows) {
            for (sum, &high) in sums.iter_mut().zip(&self.highs) {
                *sum = row.sum(high);
            }
        }
    }

    /// Returns the features with their positions in [`sums`](Self::sums).
    #[inline(always)]
    pub(super) fn numbered_features(&self) -> impl Iterator<Item = (usize, u64)> {
        self.features().iter().copied().enumerate()
    }

    /// Returns the sums by feature, for each row that was passed to [`add_up`](Self::add_up).
    #[inline(always)]
    pub(super) fn sums(&self) -> &[[u32; FEATURES]; MAX_ROWS] {
        &self.sums
    }
}

/// Returns the sum at the position of a feature.
#[inline(always)]
#[expect(
    clippy::indexing_slicing,
    reason = "the remainder, which changes no position, is below the length"
)]
pub(super) fn sum_at(sums: &[u32; FEATURES], position: usize) -> u32 {
    debug_assert!(position < FEATURES);
    sums[position % FEATURES]
}
