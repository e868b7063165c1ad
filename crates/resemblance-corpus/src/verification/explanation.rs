//! Explains why two texts are similar or not.

use resemblance::exact::{
    SharedPassage, SharedSpans, WeightedSet, longest_shared_passage, probability_jaccard,
    shared_spans, weighted_cosine, weighted_jaccard,
};
use resemblance::schema::{MinHashKind, feature_hash};
use resemblance::{Error, Result, Schema, Text};

/// Compares two texts in every way that a schema supports: exactly, by their signatures, and by the
/// passages that they share.
///
/// ```
/// use resemblance_corpus::verification::Explanation;
/// use resemblance::{MinHash, Schema, SimHash, Text};
///
/// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
/// let schema = schema.simhash(SimHash::bits64()).build()?;
/// let (old, new) = ("the price is 10 euros today", "the price is 12 euros today");
/// let found = Explanation::new(&schema, old, new)?;
/// let same: Vec<&str> = found.shared.spans_b.iter().map(|span| &new[span.clone()]).collect();
/// assert_eq!(same, ["the price is", "euros today"]);
/// assert_eq!((found.shared.jaccard, found.shared.dice), (3.0 / 7.0, 6.0 / 10.0));
/// assert!(found.estimate.is_some() && found.distance.is_some());
/// assert!(found.weighted_cosine.is_none()); // these signatures see sets of shingles
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The shared shingles, their positions, and the exact similarities of the sets of shingles.
    pub shared: SharedSpans,
    /// The longest passage that both texts have, or `None` if they share no shingle.
    pub longest: Option<SharedPassage>,
    /// The similarity that the MinHash values estimate, 0 to 1, if the schema has MinHash.
    pub estimate: Option<f64>,
    /// The exact similarity that the signatures estimate, if it depends on weights: for the
    /// [kinds](MinHashKind::is_weighted) weighted and probability.
    pub weighted_similarity: Option<f64>,
    /// The exact cosine similarity of the weights of the shingles, 0 to 1. It is present if
    /// signatures use weights: with weighted MinHash, if SimHash
    /// [counts](Schema::has_term_counts) repeats, or if the schema weights shingles by
    /// [rarity](Schema::with_weights). The weight of a shingle is the number of its occurrences,
    /// times its rarity. Other SimHash uses the set of shingles, whose cosine is in `shared`.
    pub weighted_cosine: Option<f64>,
    /// The Hamming distance of the fingerprints in bits, if the schema has SimHash.
    pub distance: Option<u32>,
}

impl Explanation {
    /// Compares two texts by the text rules and the signatures of a schema.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the schema does not take texts, or the caller must provide
    /// its signatures.
    pub fn new(schema: &Schema, a: &str, b: &str) -> Result<Self> {
        let Some(text) = schema.text() else {
            let expected = "one that says how texts are cut: Schema::builder().text(...)";
            return Err(Error::invalid("schema", "one without texts", expected));
        };
        let sketcher = schema.sketcher();
        let (signature_a, signature_b) = (sketcher.text(a)?, sketcher.text(b)?);
        let kind = schema.minhash().map(|minhash| minhash.kind());
        let has_simhash = schema.simhash().is_some();
        let estimate = kind.map(|_| signature_a.jaccard(&signature_b));
        let distance = has_simhash.then(|| signature_a.hamming(&signature_b));
        let is_weighted = kind.is_some_and(MinHashKind::is_weighted);
        let has_weights = is_weighted || schema.has_term_counts() || schema.weights().is_some();
        let weights = match has_weights {
            true => Some((weights(schema, &text, a)?, weights(schema, &text, b)?)),
            false => None,
        };
        let weights = weights.as_ref();
        Ok(Self {
            shared: shared_spans(&text, a, b)?,
            longest: longest_shared_passage(&text, a, b)?,
            estimate: estimate.transpose()?,
            weighted_similarity: weights.filter(|_| is_weighted).map(|(a, b)| match kind {
                Some(MinHashKind::Probability) => probability_jaccard(a, b),
                _ => weighted_jaccard(a, b),
            }),
            weighted_cosine: weights.map(|(a, b)| weighted_cosine(a, b)),
            distance: distance.transpose()?,
        })
    }
}

/// Returns the shingles of a text, each with the number of its occurrences times its weight by
/// rarity.
fn weights(schema: &Schema, text: &Text, document: &str) -> Result<WeightedSet<u64>> {
    let mut shingles = Vec::new();
    text.for_each_shingle(document, |shingle| {
        let hash = feature_hash(shingle.as_bytes());
        let rarity = schema.weights().map_or(1.0, |weights| weights.weight(hash));
        shingles.push((hash, rarity));
    });
    Ok(WeightedSet::new(shingles)?)
}
