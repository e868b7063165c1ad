//! Features on their way into the minima.

use crate::sketch::hash::mix64;
use crate::sketch::minhash::pair_multiply::{Row, high};

/// Features that are taken together, so that minima stay in registers and all else in the nearest
/// cache.
pub(crate) const FEATURES: usize = 64;

/// Most rows that a kernel takes together.
pub(crate) const ROWS: usize = 16;

pub(crate) struct Batch {
    hashes: [u64; FEATURES],
    filled: usize,
    highs: [u32; FEATURES],
    /// What the functions of each row add, by feature.
    pub(crate) sums: [[u32; FEATURES]; ROWS],
}

impl Batch {
    pub(crate) fn new() -> Self {
        Self {
            hashes: [0; FEATURES],
            filled: 0,
            highs: [0; FEATURES],
            sums: [[0; FEATURES]; ROWS],
        }
    }

    /// Takes the next hashes instead of those that were held; whether there are any.
    #[inline]
    pub(crate) fn fill(&mut self, hashes: &mut impl Iterator<Item = u64>) -> bool {
        let mut filled = 0;
        for (place, hash) in self.hashes.iter_mut().zip(hashes) {
            *place = hash;
            filled += 1;
        }
        self.filled = filled;
        filled > 0
    }

    /// Mixes the hashes. This and [`add_up`](Self::add_up) are inlined into the kernels, to be
    /// compiled for their instructions, and work on whole batches, as loops of fixed length need no
    /// remainders.
    #[inline(always)]
    pub(crate) fn mix(&mut self, key: u64) {
        for (hash, place) in self.hashes.iter_mut().zip(&mut self.highs) {
            *hash = mix64(*hash ^ key);
            *place = high(*hash);
        }
    }

    /// The features' hashes, mixed if [`mix`](Self::mix) was called.
    #[inline(always)]
    pub(crate) fn features(&self) -> &[u64] {
        self.hashes.get(..self.filled).unwrap_or_default()
    }

    /// Makes the sums of some rows for all features, by whole registers, to be read back as what
    /// fills one.
    #[inline(always)]
    pub(crate) fn add_up<const COUNT: usize>(&mut self, rows: &[Row; COUNT]) {
        for (sums, row) in self.sums.iter_mut().zip(rows) {
            for (sum, &high) in sums.iter_mut().zip(&self.highs) {
                *sum = row.of(high);
            }
        }
    }
}
