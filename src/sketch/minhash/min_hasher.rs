//! MinHash (Broder 1997): k minima of k functions; the share of equal ones estimates Jaccard.
//!
//! Value i is the minimum of function i, of 32 bits, over the features' mixed hashes u. What the
//! functions are is the recipe's choice of [`Permutations`]; all take u as a random number, which
//! it is but for the quality of the mixing under the schema's key. Each value alone is then exactly
//! fair, and the estimate has the variance J (1 - J) / k as far as any two functions are
//! independent of each other.
//!
//! 32 bits make unequal minima collide: two disjoint sets of n features each agree in a value with
//! probability about n / 2^33, so similarity is over-estimated by at most about (1 - J) n / 2^33
//! for n features in the union: 0.0001 at a million, 0.01 at 100 million.

use crate::sketch::hash::{derive, stream};
use crate::sketch::minhash::batch::Batch;
use crate::sketch::minhash::families::Family;
use crate::sketch::minhash::kernel::Kernel;
use crate::sketch::minhash::permutations::Permutations;

/// Functions that are taken together: a vector register of 512 bits, or a few of less.
pub(crate) const LANES: usize = 16;

/// The k functions of one seed.
#[derive(Debug)]
pub(crate) struct MinHasher {
    key: u64,
    values: usize,
    family: Family,
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
            family: Family::new(seed, values.div_ceil(LANES), permutations),
            kernel,
        }
    }

    /// The minima of no feature.
    pub(crate) fn minima(&self) -> Minima {
        Minima {
            rows: vec![[u32::MAX; LANES]; self.values.div_ceil(LANES)],
            values: self.values,
        }
    }

    /// Takes features in. Repeats change nothing, nor does the order.
    pub(crate) fn update(&self, minima: &mut Minima, hashes: impl IntoIterator<Item = u64>) {
        let mut hashes = hashes.into_iter();
        let mut batch = Batch::new();
        while batch.fill(&mut hashes) {
            self.kernel
                .update(&self.family, self.key, &mut minima.rows, &mut batch);
        }
    }
}

/// The minima so far, in whole rows of lanes; those beyond the last value are not looked at.
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
