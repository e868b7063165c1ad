//! How similar documents are that are not alike, which decides how many candidates there are.

use std::fmt;
use std::path::PathBuf;

use resemblance::{Banding, Text};

use super::Context;
use super::arguments::CorpusOptions;
use super::exact_join::ExactJoin;
use super::failure::{Failure, Result};
use super::sample::{Sample, SampleOptions};

/// Similarities are counted in steps of 1 / 10,000.
const STEPS: usize = 10_000;

/// The similarities of pairs.
pub(crate) enum Background {
    /// The same for all.
    Assumed(f64),
    /// Those of all pairs of a sample, exactly.
    Measured(Histogram),
}

/// How many pairs have each similarity, rounded to a step.
pub(crate) struct Histogram {
    documents: usize,
    counts: Vec<u64>,
}

impl Background {
    pub(crate) fn assumed(similarity: f64) -> Result<Self> {
        if (0.0..=1.0).contains(&similarity) {
            return Ok(Self::Assumed(similarity));
        }
        Err(Failure::usage(format!(
            "--background {similarity}: expected a similarity of 0 to 1"
        )))
    }

    /// Compares all documents of a corpus, or of a sample of it.
    pub(crate) fn measured(
        context: &Context,
        inputs: &[PathBuf],
        corpus: &CorpusOptions,
        text: Text,
        size: Option<usize>,
    ) -> Result<Self> {
        let sample = Sample::read(
            context,
            SampleOptions {
                inputs,
                corpus,
                text,
                sketcher: None,
                signature_bytes: 0,
                size,
            },
        )?;
        if sample.len() < 2 {
            return Err(Failure::bad_input(
                "--corpus: two documents at least are needed to compare",
            ));
        }
        let mut counts = vec![0; STEPS + 1];
        let mut join = ExactJoin::new(&sample.features, 0.0);
        while let Some(partners) = join.advance() {
            context.interrupt.check()?;
            for partner in partners {
                let step = (partner.similarity * STEPS as f64).round() as usize;
                if let Some(count) = counts.get_mut(step) {
                    *count += 1;
                }
            }
        }
        Ok(Self::Measured(Histogram {
            documents: sample.len(),
            counts,
        }))
    }

    /// The mean similarity.
    pub(crate) fn mean(&self) -> f64 {
        match self {
            Self::Assumed(similarity) => *similarity,
            Self::Measured(histogram) => histogram.mean(|similarity| similarity),
        }
    }

    /// What a query is expected to look at.
    pub(crate) fn candidates(&self, banding: Banding, documents: u64) -> f64 {
        match self {
            Self::Assumed(similarity) => banding.candidates(documents, *similarity),
            Self::Measured(histogram) => {
                documents as f64 * histogram.mean(|similarity| banding.probability(similarity))
            }
        }
    }
}

impl Histogram {
    /// The mean of something over all pairs that is 0 where documents share nothing.
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

impl fmt::Display for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Assumed(similarity) => write!(
                f,
                "each of similarity {similarity} to it: an assumption, see --background"
            ),
            Self::Measured(histogram) => write!(
                f,
                "as similar as the pairs of {} documents of the corpus (mean {:.4}; its \
                 near-duplicates are among them)",
                histogram.documents,
                self.mean()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_gives_the_mean_over_all_pairs() {
        let mut counts = vec![0; STEPS + 1];
        (counts[5_000], counts[10_000]) = (2, 1);
        // Four documents have six pairs; three of them share nothing.
        let background = Background::Measured(Histogram {
            documents: 4,
            counts,
        });
        assert!((background.mean() - 2.0 / 6.0).abs() < 1e-12);
        let banding = Banding::explicit(1, 2, 2).unwrap();
        let candidates = background.candidates(banding, 600);
        assert!((candidates - 150.0).abs() < 1e-9, "{candidates}");
        assert!(Background::assumed(1.5).is_err());
        assert!(Background::assumed(f64::NAN).is_err());
    }
}
