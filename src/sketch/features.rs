//! The features of a text, to compare documents exactly.

use super::hash::feature_hash;
use super::sketcher::Sketcher;
use crate::error::Result;

/// The smallest number of hashes at which repeats are removed before the text ends.
const MIN_HASHES: usize = 1 << 16;

impl Sketcher {
    /// The hashes of a text's distinct features, ascending: the set whose signature
    /// [`text`](Self::text) makes, one that [`hashes`](Self::hashes) takes. 8 bytes a feature.
    ///
    /// The Jaccard similarity of two such sets is that of the documents, but for collisions: two
    /// features have the same hash with a probability of 2⁻⁶⁴, so that some two of two documents of ten
    /// thousand features each do with about 10⁻¹¹.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`](crate::Error::InvalidParameter) if the schema says nothing about texts.
    ///
    /// ```
    /// use resemblance::{MinHash, Schema, Text};
    ///
    /// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(128)).build()?;
    /// let sketcher = schema.sketcher();
    /// let hashes = sketcher.feature_hashes("the cat, the cat, the dog")?;
    /// assert_eq!(hashes.len(), 3); // the cat, cat the, the dog
    /// assert_eq!(sketcher.hashes(hashes)?, sketcher.text("the cat, the cat, the dog")?);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn feature_hashes(&self, text: &str) -> Result<Vec<u64>> {
        let mut hashes = Vec::new();
        let mut max_hashes = MIN_HASHES;
        self.each_shingle(text, |shingle| {
            hashes.push(feature_hash(shingle));
            if hashes.len() >= max_hashes {
                sort_distinct(&mut hashes);
                // Twice what remains, so that sorting costs O(log n) a feature in all.
                max_hashes = MIN_HASHES.max(2 * hashes.len());
            }
        })?;
        sort_distinct(&mut hashes);
        Ok(hashes)
    }
}

/// Sorts the hashes and removes repeats.
fn sort_distinct(hashes: &mut Vec<u64>) {
    hashes.sort_unstable();
    hashes.dedup();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::sketch::hash::feature_hash;
    use crate::sketch::recipe::{EmptyDocuments, Recipe};
    use crate::sketch::sketcher::Sketcher;
    use crate::text::Text;

    fn sketcher(text: Option<Text>) -> Sketcher {
        let recipe = Recipe {
            text,
            seed: 1,
            empty: EmptyDocuments::Distinct,
            minhash: None,
            simhash_bits: Some(64),
        };
        Sketcher::new(recipe).unwrap()
    }

    fn oracle(text: Text, of: &str) -> Vec<u64> {
        let mut shingles = BTreeSet::new();
        text.for_each_shingle(of, |shingle| {
            shingles.insert(shingle.to_owned());
        });
        let hashes: BTreeSet<u64> = shingles
            .iter()
            .map(|s| feature_hash(s.as_bytes()))
            .collect();
        hashes.into_iter().collect()
    }

    #[test]
    fn hashes_are_those_of_the_distinct_shingles() {
        // Repeats within what is held, and over its end several times.
        let repeated = "a b c d e ".repeat(60_000);
        let many: String = (0..90_000).map(|n| format!("w{} ", n % 70_001)).collect();
        for text in [Text::words(3), Text::characters(9)] {
            let sketcher = sketcher(Some(text));
            for of in ["", "one", "The cat. The CAT?", &repeated, &many] {
                let hashes = sketcher.feature_hashes(of).unwrap();
                assert_eq!(hashes, oracle(text, of));
                assert_eq!(sketcher.hashes(hashes).unwrap(), sketcher.text(of).unwrap());
            }
        }
    }

    #[test]
    fn without_a_rule_for_texts_there_are_none() {
        assert!(sketcher(None).feature_hashes("a text").is_err());
    }
}
