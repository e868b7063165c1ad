//! Estimates the duplicates of a whole corpus from those in a sample.

use std::collections::HashMap;

/// For each survivor in a sample, the number of documents that were removed in its favour.
#[derive(Clone, Debug, Default)]
pub struct SampledClusters {
    sizes: HashMap<u64, u64>,
    /// The number of documents that another store contains.
    known: u64,
}

impl SampledClusters {
    /// Counts a document that was removed in favour of the survivor with this number.
    pub fn add(&mut self, survivor: u64) {
        *self.sizes.entry(survivor).or_insert(1) += 1;
    }

    /// Counts a document that was removed because another store contains it.
    pub fn add_known(&mut self) {
        self.known += 1;
    }

    /// Returns the share of the whole corpus's documents that would be removed. The sample has
    /// `documents` documents and is the given `share` of the corpus.
    ///
    /// A sample has at most one document of most clusters, and therefore relatively few duplicates.
    /// The number of clusters in the corpus is estimated as in Chao and Lin, *Nonparametric lower
    /// bounds for species richness and shared species richness under sampling without replacement*
    /// (2012): from the clusters with one and with two documents in the sample. The estimate is
    /// right for clusters of one or two documents, and for clusters so large that the sample
    /// contains several documents of each. In between it is too low, which makes the share too
    /// high.
    #[must_use]
    pub fn expected_drops(&self, documents: u64, share: f64) -> f64 {
        if documents == 0 {
            return 0.0;
        }
        let compared = (documents - self.known.min(documents)) as f64;
        let dropped: u64 = self.sizes.values().map(|size| size - 1).sum();
        let found = compared - dropped as f64;
        let twos = self.sizes.values().filter(|size| **size == 2).count() as f64;
        let ones = found - self.sizes.len() as f64;
        let unseen = if ones > 0.0 && share < 1.0 {
            ones * ones / (2.0 * twos + share / (1.0 - share) * ones)
        } else {
            0.0
        };
        let whole = compared / share;
        let clusters = (found + unseen).min(whole);
        let known = self.known as f64 / documents as f64;
        if whole > 0.0 {
            known + (1.0 - known) * (1.0 - clusters / whole)
        } else {
            known
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(twos: u64, known: u64) -> SampledClusters {
        SampledClusters {
            sizes: (0..twos).map(|number| (number, 2)).collect(),
            known,
        }
    }

    #[test]
    fn sampled_clusters_estimate_those_of_the_corpus() {
        let near = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        };
        // The sample is the whole corpus.
        near(sample(20, 10).expected_drops(100, 1.0), 0.3);
        // The sample has no duplicates.
        near(sample(0, 0).expected_drops(100, 0.1), 0.0);
        near(sample(0, 25).expected_drops(100, 0.1), 0.25);
        near(sample(0, 0).expected_drops(0, 0.1), 0.0);
        // 5,000 pairs: in a tenth of the documents, a tenth are with their partner.
        near(sample(50, 0).expected_drops(1_000, 0.1), 0.5);
        // Ten clusters, each of a thousand documents.
        let large = SampledClusters {
            sizes: (0..10).map(|number| (number, 100)).collect(),
            known: 0,
        };
        near(large.expected_drops(1_000, 0.1), 0.999);
    }
}
