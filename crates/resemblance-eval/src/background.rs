//! The similarities of dissimilar documents, which determine how many candidates a query has.

use resemblance::invariant::at_mut;
use resemblance::schema::Banding;
use resemblance::{Error, Result};
use resemblance_corpus::verification::exact_partners;

/// The number of steps in which similarities are counted: each is 1 / 10,000.
const STEPS: usize = 10_000;

/// The similarities of pairs of documents that are not near-duplicates.
///
/// ```
/// use resemblance::schema::Banding;
/// use resemblance_eval::Background;
///
/// let banding = Banding::explicit(13, 7, 128)?;
/// let (alike, varied) = (Background::assumed(0.3), Background::assumed(0.1));
/// assert_eq!((alike.mean(), alike.documents()), (0.3, None));
/// assert!(alike.candidates(banding, 1_000_000) > varied.candidates(banding, 1_000_000));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Background(Similarities);

#[derive(Clone, Debug)]
enum Similarities {
    /// One assumed similarity for all pairs.
    Assumed(f64),
    /// The number of pairs of this number of documents at each similarity, in steps of 1 / 10,000.
    Measured { documents: usize, counts: Vec<u64> },
}

impl Background {
    /// Assumes the same similarity, 0 to 1, for all pairs.
    #[must_use]
    pub fn assumed(similarity: f64) -> Self {
        Self(Similarities::Assumed(similarity))
    }

    /// Measures the exact similarities of all pairs of two or more documents. Each document is
    /// given by the distinct hashes of its features in ascending order. Calls `on_document` after
    /// each document, and stops if that returns an error.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for fewer than two documents, and the error of `on_document`.
    ///
    /// ```
    /// use resemblance::Error;
    /// use resemblance_eval::Background;
    ///
    /// // Distinct feature hashes, ascending, as `Sketcher::feature_hashes` gives them.
    /// let documents = [vec![1, 2, 3], vec![1, 2, 4], vec![7]];
    /// let background = Background::measured(&documents, || Ok::<_, Error>(()))?;
    /// assert_eq!(background.documents(), Some(3));
    /// // One pair of three has a similarity of 1/2.
    /// assert!((background.mean() - 0.5 / 3.0).abs() < 1e-4);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn measured<E: From<Error>>(
        features: &[Vec<u64>],
        mut on_document: impl FnMut() -> Result<(), E>,
    ) -> Result<Self, E> {
        if features.len() < 2 {
            let found = features.len();
            return Err(Error::invalid("documents", found, "2 or more").into());
        }
        let mut counts = vec![0; STEPS + 1];
        for partners in exact_partners(features, 0.0)? {
            on_document()?;
            for partner in partners? {
                let step = (partner.similarity * STEPS as f64).round() as usize;
                *at_mut(&mut counts, step)? += 1;
            }
        }
        Ok(Self(Similarities::Measured {
            documents: features.len(),
            counts,
        }))
    }

    /// Returns the number of documents whose pairs were compared, or `None` if the similarity is
    /// assumed.
    #[must_use]
    pub fn documents(&self) -> Option<usize> {
        match &self.0 {
            Similarities::Assumed(_) => None,
            Similarities::Measured { documents, .. } => Some(*documents),
        }
    }

    /// Returns the mean similarity, from 0 to 1.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean_of(|similarity| similarity)
    }

    /// Returns the expected number of candidates of a query among `documents`.
    #[must_use]
    pub fn candidates(&self, banding: Banding, documents: u64) -> f64 {
        match &self.0 {
            Similarities::Assumed(similarity) => banding.candidates(documents, *similarity),
            Similarities::Measured { .. } => {
                self.expected(documents, |similarity| banding.probability(similarity))
            }
        }
    }

    /// Returns the expected number of candidates of a query among `documents`, if `probability` is that
    /// of a pair of some similarity.
    pub(crate) fn expected(&self, documents: u64, probability: impl Fn(f64) -> f64) -> f64 {
        documents as f64 * self.mean_of(probability)
    }

    /// Returns the mean over all pairs of a value that is 0 for documents that share nothing.
    fn mean_of(&self, value: impl Fn(f64) -> f64) -> f64 {
        let (documents, counts) = match &self.0 {
            Similarities::Assumed(similarity) => return value(*similarity),
            Similarities::Measured { documents, counts } => (*documents as f64, counts),
        };
        let pairs = documents * (documents - 1.0) / 2.0;
        let steps = counts.iter().enumerate();
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
    fn background_has_the_mean_similarity_of_all_pairs() {
        let features = [vec![1, 2], vec![2, 3], vec![7], vec![8]];
        let measured = Background::measured::<Error>(&features, || Ok(())).unwrap();
        // Four documents have six pairs, five of which share nothing.
        assert!((measured.mean() - 1.0 / 3.0 / 6.0).abs() < 1e-4);
        let mut counts = vec![0; STEPS + 1];
        counts[STEPS / 2] = 2;
        counts[STEPS] = 1;
        let background = Background(Similarities::Measured {
            documents: 4,
            counts,
        });
        assert!((background.mean() - 2.0 / 6.0).abs() < 1e-12);
        let banding = Banding::explicit(1, 2, 2).unwrap();
        let candidates = background.candidates(banding, 600);
        assert!((candidates - 150.0).abs() < 1e-9, "{candidates}");
    }
}
