//! Weights by the rarity of features: tf-idf.

use std::collections::HashMap;

use super::features::sort_distinct;
use super::hash::feature_hash;
use super::signature::Signature;
use super::sketcher::Sketcher;
use super::weighted::negative_ln;
use crate::error::{Error, Result};

/// The number of documents of a corpus that have each feature, from which weights follow (tf-idf, Salton
/// and Buckley 1988): a feature that nearly all documents have says little about one of them.
///
/// A feature that occurs t times in a document weighs t · (ln((1 + N) / (1 + n)) + 1) if n of N documents
/// have it. A feature that no document has weighs most, and every feature weighs something. The logarithm
/// is this crate's own and the same on every platform, as signatures of the same document must be.
///
/// Takes about 20 bytes of memory for each different feature of the corpus.
///
/// ```
/// use resemblance::{DocumentFrequencies, Schema, SimHash, Text};
/// let schema = Schema::builder().text(Text::words(1)).simhash(SimHash::bits64()).build()?;
/// let sketcher = schema.sketcher();
/// let corpus = ["the cat", "the dog", "the bird and the bee"];
/// let mut frequencies = DocumentFrequencies::new();
/// for text in corpus {
///     frequencies.add_text(&sketcher, text)?;
/// }
/// assert_eq!(frequencies.documents(), 3);
/// let the = frequencies.weight_of(b"the");
/// assert_eq!(the, 1.0);
/// assert!(frequencies.weight_of(b"cat") > 1.6);
/// let signature = sketcher.weighted_text("the cat and the dog", &frequencies)?;
/// # let _ = signature;
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentFrequencies {
    documents: u64,
    /// Numbers of documents, by the hashes of the features.
    counts: HashMap<u64, u64>,
}

impl DocumentFrequencies {
    /// The frequencies of an empty corpus.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Frequencies that were counted elsewhere: the number of documents, and for each feature, by its
    /// hash (XXH3-64 of its bytes, as for [`Sketcher::hashes`]), the number of documents that have it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if a feature is in more documents than there are.
    ///
    /// ```
    /// use resemblance::DocumentFrequencies;
    /// assert!(DocumentFrequencies::from_counts(10, [(7, 10), (8, 1)]).is_ok());
    /// assert!(DocumentFrequencies::from_counts(10, [(7, 11)]).is_err());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn from_counts(
        documents: u64,
        counts: impl IntoIterator<Item = (u64, u64)>,
    ) -> Result<Self> {
        let counts: HashMap<u64, u64> = counts.into_iter().collect();
        if let Some(excessive) = counts.values().find(|count| **count > documents) {
            let expected = format!("at most {documents}, the number of documents");
            return Err(Error::invalid("document frequency", excessive, expected));
        }
        Ok(Self { documents, counts })
    }

    /// Counts a document, given by the hashes of its features. Repeats count once.
    pub fn add(&mut self, hashes: impl IntoIterator<Item = u64>) {
        let mut distinct: Vec<u64> = hashes.into_iter().collect();
        sort_distinct(&mut distinct);
        for hash in distinct {
            *self.counts.entry(hash).or_default() += 1;
        }
        self.documents += 1;
    }

    /// Counts a text, cut into shingles as the sketcher does.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the sketcher's schema says nothing about texts.
    pub fn add_text(&mut self, sketcher: &Sketcher, text: &str) -> Result<()> {
        self.add(sketcher.shingle_hashes(text)?);
        Ok(())
    }

    /// The number of documents that were counted.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// The number of documents that have the feature with this hash.
    #[must_use]
    pub fn count(&self, hash: u64) -> u64 {
        self.counts.get(&hash).copied().unwrap_or(0)
    }

    /// The weight of one occurrence of the feature with this hash, at least 1.
    #[must_use]
    pub fn weight(&self, hash: u64) -> f64 {
        // At most 1: no feature is in more documents than there are.
        let share = (1.0 + self.count(hash) as f64) / (1.0 + self.documents as f64);
        negative_ln(share) + 1.0
    }

    /// [`weight`](Self::weight) of a feature by its bytes.
    #[must_use]
    pub fn weight_of(&self, feature: &[u8]) -> f64 {
        self.weight(feature_hash(feature))
    }
}

impl Sketcher {
    /// The signature of a text whose shingles weigh more the rarer they are. SimHash, and
    /// [weighted](crate::MinHash::weighted) MinHash, use the weights; other MinHash sees the set.
    ///
    /// # Errors
    ///
    /// As [`text`](Self::text) and [`weighted_features`](Self::weighted_features).
    pub fn weighted_text(
        &self,
        text: &str,
        frequencies: &DocumentFrequencies,
    ) -> Result<Signature> {
        let mut hashes = self.shingle_hashes(text)?;
        hashes.sort_unstable();
        // The sketcher rounds weights before it adds them up, so each feature is given once.
        let runs = hashes.chunk_by(|a, b| a == b);
        let weighted = runs.filter_map(|run| {
            let hash = *run.first()?;
            Some((hash, run.len() as f64 * frequencies.weight(hash)))
        });
        self.weighted_hashes(weighted)
    }

    /// The hash of each shingle of a text, in order and with repeats.
    fn shingle_hashes(&self, text: &str) -> Result<Vec<u64>> {
        let mut hashes = Vec::new();
        self.each_shingle(text, |shingle| hashes.push(feature_hash(shingle)))?;
        Ok(hashes)
    }
}
