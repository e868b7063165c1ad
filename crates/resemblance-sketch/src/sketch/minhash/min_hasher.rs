//! MinHash (Broder 1997): the minima of k functions. The share of equal minima estimates the
//! Jaccard similarity.
//!
//! Value i is the minimum of the 32-bit function i over the features' mixed hashes u. The recipe's
//! [`Permutations`] select the functions. All of them assume that u is a random number, which is
//! true if the hash is mixed well under the schema's key. Each value alone is then exactly fair,
//! and the estimate has variance J (1 - J) / k if the functions are independent in pairs.
//!
//! Minima of 32 bits can collide: two disjoint sets of n features each agree in a value with
//! probability about n / 2^33. The similarity is therefore over-estimated by at most about (1 - J)
//! n / 2^33 for n features in the union: 0.0001 at a million, 0.01 at 100 million.

use std::cell::RefCell;

use super::super::hash::{derive, stream};
use super::batch::{FEATURES, FeatureBatch};
use super::families::FunctionFamily;
use super::kernel::Kernel;
use super::permutations::Permutations;
use super::rows::LANES;

thread_local! {
    /// Kept between documents, because clearing it would cost more than sketching a short document.
    static BATCH: RefCell<FeatureBatch> = const { RefCell::new(FeatureBatch::new()) };
}

/// The k functions of one seed.
#[derive(Debug)]
pub(crate) struct MinHasher {
    key: u64,
    values: usize,
    family: FunctionFamily,
    kernel: Kernel,
}

impl MinHasher {
    pub(crate) fn new(seed: u64, values: u16, permutations: Permutations) -> Self {
        Self::with_kernel(seed, values, permutations, Kernel::detect())
    }

    pub(crate) fn with_kernel(
        seed: u64,
        values: u16,
        permutations: Permutations,
        kernel: Kernel,
    ) -> Self {
        let values = usize::from(values);
        Self {
            key: derive(seed, stream::FEATURE_KEY),
            values,
            family: FunctionFamily::new(seed, values.div_ceil(LANES), permutations),
            kernel,
        }
    }

    /// Returns the minima of a document without features.
    pub(crate) fn minima(&self) -> Minima {
        Minima {
            rows: vec![[u32::MAX; LANES]; self.values.div_ceil(LANES)],
            values: self.values,
        }
    }

    /// Lowers the minima to the values of the features with these hashes. Neither order nor repeats
    /// change the result.
    pub(crate) fn update(&self, minima: &mut Minima, hashes: &[u64]) {
        BATCH.with_borrow_mut(|batch| {
            for hashes in hashes.chunks(FEATURES) {
                batch.fill(hashes);
                self.kernel
                    .update(&self.family, self.key, &mut minima.rows, batch);
            }
        });
    }
}

/// The minima of the features so far, in whole rows. Minima beyond the last value are computed, and
/// dropped at the end.
pub(crate) struct Minima {
    rows: Vec<[u32; LANES]>,
    values: usize,
}

impl Minima {
    pub(crate) fn values(&self) -> Vec<u32> {
        let mut values: Vec<u32> = self.rows.iter().flatten().copied().collect();
        values.truncate(self.values);
        values
    }
}
