//! The similarities of documents that are not alike, which decide how many candidates a query has.

use crate::corpus::verification::ExactJoin;
use crate::error::{Error, Result};
use crate::invariant::at_mut;
use crate::lanes::Banding;

/// Similarities are counted in steps of 1 / 10,000.
const STEPS: usize = 10_000;

/// The similarities of pairs of documents that are not near-duplicates.
///
/// ```
/// use resemblance::Banding;
/// use resemblance::tune::Background;
///
/// let banding = Banding::by_recall(128, 0.8, 0.95)?;
/// let (alike, varied) = (Background::Assumed(0.3), Background::Assumed(0.1));
/// assert_eq!(alike.mean(), 0.3);
/// assert!(alike.candidates(banding, 1_000_000) > varied.candidates(banding, 1_000_000));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Background {
    /// The same similarity for all pairs, 0 to 1.
    Assumed(f64),
    /// The exact similarities of all pairs of some documents.
    Measured(SimilarityHistogram),
}

/// The number of pairs of some documents at each similarity, in steps of 1 / 10,000.
///
/// ```
/// use resemblance::tune::{Background, SimilarityHistogram};
/// use resemblance::Error;
///
/// // Distinct feature hashes, ascending, as `Sketcher::feature_hashes` gives them.
/// let documents = [vec![1, 2, 3], vec![1, 2, 4], vec![7]];
/// let histogram = SimilarityHistogram::measure(&documents, || Ok::<_, Error>(()))?;
/// assert_eq!(histogram.documents(), 3);
/// // One pair of three has a similarity of 1/2.
/// assert!((Background::Measured(histogram).mean() - 0.5 / 3.0).abs() < 1e-4);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SimilarityHistogram {
    documents: usize,
    counts: Vec<u64>,
}

impl Background {
    /// Returns the mean similarity, from 0 to 1.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Assumed(similarity) => *similarity,
            Self::Measured(histogram) => histogram.mean(|similarity| similarity),
        }
    }

    /// Returns the expected number of candidates of a query among `documents`.
    #[must_use]
    pub fn candidates(&self, banding: Banding, documents: u64) -> f64 {
        match self {
            Self::Assumed(similarity) => banding.candidates(documents, *similarity),
            Self::Measured(histogram) => {
                documents as f64 * histogram.mean(|similarity| banding.probability(similarity))
            }
        }
    }
}

impl SimilarityHistogram {
    /// Joins documents, two at least, by their features: distinct hashes, ascending. `on_document` is
    /// called after each; its error ends the join.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for fewer than two documents, and what `on_document` returns.
    pub fn measure<E: From<Error>>(
        features: &[Vec<u64>],
        mut on_document: impl FnMut() -> Result<(), E>,
    ) -> Result<Self, E> {
        if features.len() < 2 {
            let found = features.len();
            return Err(Error::invalid("documents", found, "2 or more").into());
        }
        let mut counts = vec![0; STEPS + 1];
        let mut join = ExactJoin::new(features, 0.0)?;
        while let Some(partners) = join.advance()? {
            on_document()?;
            for partner in partners {
                let step = (partner.similarity * STEPS as f64).round() as usize;
                *at_mut(&mut counts, step)? += 1;
            }
        }
        Ok(Self {
            documents: features.len(),
            counts,
        })
    }

    /// Returns the number of documents whose pairs were compared.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.documents
    }

    /// Returns the mean over all pairs of a value that is 0 where documents share nothing.
    fn mean(&self, value: impl Fn(f64) -> f64) -> f64 {
        let pairs = self.documents as f64 * (self.documents as f64 - 1.0) / 2.0;
        let steps = self.counts.iter().enumerate();
        let sum: f64 = steps
            .filter(|(_, count)| **count > 0)
            .map(|(step, count)| *count as f64 * value(step as f64 / STEPS as f64))
            .sum();
        sum / pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_gives_the_mean_over_all_pairs() {
        let features = [vec![1, 2], vec![2, 3], vec![7], vec![8]];
        let histogram = SimilarityHistogram::measure::<Error>(&features, || Ok(())).unwrap();
        let measured = Background::Measured(histogram);
        // Four documents have six pairs; five of them share nothing.
        assert!((measured.mean() - 1.0 / 3.0 / 6.0).abs() < 1e-4);
        let mut counts = vec![0; STEPS + 1];
        counts[STEPS / 2] = 2;
        counts[STEPS] = 1;
        let background = Background::Measured(SimilarityHistogram {
            documents: 4,
            counts,
        });
        assert!((background.mean() - 2.0 / 6.0).abs() < 1e-12);
        let banding = Banding::explicit(1, 2, 2).unwrap();
        let candidates = background.candidates(banding, 600);
        assert!((candidates - 150.0).abs() < 1e-9, "{candidates}");
    }
}
