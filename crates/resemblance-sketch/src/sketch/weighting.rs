//! Weights the features of texts and documents by their rarity.

use super::frequencies::DocumentFrequencies;
use super::hash::feature_hash;
use super::signature::Signature;
use super::simhash::count_repeats;
use super::sketcher::Sketcher;
use crate::error::{Result, SketchError};

impl DocumentFrequencies {
    /// Counts a text, which is cut into shingles as the sketcher does it.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if the sketcher's schema does not take texts.
    pub fn add_text(&mut self, sketcher: &Sketcher, text: &str) -> Result<()> {
        self.add(sketcher.shingle_hashes(text)?);
        Ok(())
    }
}

impl Sketcher {
    /// Returns the signature of a text in which rarer shingles weigh more. SimHash and
    /// [weighted](crate::MinHash::weighted) MinHash use the weights; other MinHash uses the set of
    /// shingles.
    ///
    /// # Errors
    ///
    /// The same as [`text`](Self::text) and [`weighted_features`](Self::weighted_features);
    /// [`SketchError::InvalidParameter`] if the schema [has](crate::Schema::with_weights) other
    /// frequencies.
    ///
    /// ```
    /// # use resemblance_sketch::{DocumentFrequencies, Schema, SimHash, Text};
    /// let schema = Schema::builder().text(Text::words(1)).simhash(SimHash::bits64()).build()?;
    /// let sketcher = schema.sketcher();
    /// let mut frequencies = DocumentFrequencies::new();
    /// for text in ["the cat", "the dog", "the bird"] {
    ///     frequencies.add_text(&sketcher, text)?;
    /// }
    /// let cats = ["the cat", "a cat"].map(|text| sketcher.weighted_text(text, &frequencies));
    /// let [a, b] = cats;
    /// assert!(a?.hamming(&b?)? <= 64);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn weighted_text(
        &self,
        text: &str,
        frequencies: &DocumentFrequencies,
    ) -> Result<Signature> {
        if let Some(weights) = &self.functions.weights {
            let (own, given) = (weights.fingerprint(), frequencies.fingerprint());
            let found = format_args!("frequencies {given:016x}");
            let expected = format_args!("those of the schema, {own:016x}");
            SketchError::require(own == given, "document frequencies", found, expected)?;
        }
        let signature = self.weigh(self.shingle_hashes(text)?, frequencies)?;
        Ok(signature.with_kept(self.kept_of_text(text)?))
    }

    /// Returns the signature, without kept hashes, of features that are given by their hashes, each
    /// as often as it occurs.
    pub(super) fn weigh(
        &self,
        mut hashes: Vec<u64>,
        frequencies: &DocumentFrequencies,
    ) -> Result<Signature> {
        // The sketcher rounds weights before it adds them up, so each feature must be passed once.
        let weigh = |(hash, count)| (hash, count as f64 * frequencies.weight(hash));
        let weighted = count_repeats(&mut hashes).map(weigh);
        self.weighted(self.present(weighted)?)
    }

    /// Returns the hash of each shingle of a text, in order and with repeats.
    fn shingle_hashes(&self, text: &str) -> Result<Vec<u64>> {
        let mut hashes = Vec::new();
        self.each_shingle(text, |shingle| hashes.push(feature_hash(shingle)))?;
        Ok(hashes)
    }
}
