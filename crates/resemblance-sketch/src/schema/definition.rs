//! The part of the configuration that the store keeps: the rules by which documents are compared.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::near::{ClusterBounds, Combine, NearRule};
use crate::error::{Result, SketchError};
use crate::invariant::bug;
use crate::lanes::{Banding, LaneSet, TableDesign};
use crate::sketch::{
    Containment, DocumentFrequencies, EmptyDocuments, KEPT_HASH_BITS, MinHashKind, Recipe,
    Signature, Sketcher, ValueLayout,
};
use crate::text::{Text, UnicodeVersion};

/// The MinHash part of a [`Schema`].
///
/// ```
/// # use resemblance_sketch::{MinHash, MinHashKind, Permutations, Schema};
/// let minhash = MinHash::new(128).threshold(0.8);
/// let schema = Schema::builder().minhash(minhash).build()?;
/// let minhash = schema.minhash().expect("it has MinHash");
/// assert_eq!((minhash.values(), minhash.value_bits(), minhash.code_bits()), (128, 16, 40));
/// assert_eq!(minhash.kind(), MinHashKind::Functions(Permutations::PairMultiply));
/// assert_eq!((minhash.bands(), minhash.rows(), minhash.threshold()), (13, 7, 0.8));
/// assert_eq!(minhash.probability(0.8), minhash.recall_at_threshold());
/// assert!(minhash.probability(0.4) < 0.03);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MinHashSchema {
    pub(super) kind: MinHashKind,
    pub(super) values: u16,
    pub(super) value_bits: u8,
    pub(super) threshold: f64,
    pub(super) banding: Banding,
    pub(super) code_bits: u8,
}

impl MinHashSchema {
    /// The method that makes the values.
    #[must_use]
    pub fn kind(&self) -> MinHashKind {
        self.kind
    }

    /// Returns the number of values in a signature; for bottom-k the maximum number.
    #[must_use]
    pub fn values(&self) -> u16 {
        self.values
    }

    /// The number of bits stored of each value: 1 to 32, or 64 for bottom-k.
    #[must_use]
    pub fn value_bits(&self) -> u8 {
        self.layout().bits()
    }

    /// Returns the variance of the estimate for a pair of this similarity, as theory predicts it
    /// for the kind of values. It is J (1 − J) / k for k whole values (Broder 1997), and (1 − J)
    /// (J + 1 / (2ᵇ − 1)) / k for values of b bits (Li and König 2010). For bottom-k and one-pass
    /// values it is an upper bound.
    ///
    /// ```
    /// use resemblance_sketch::{MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(400).value_bits(32)).build()?;
    /// assert!((schema.minhash().unwrap().variance(0.5).sqrt() - 0.025).abs() < 1e-9);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn variance(&self, similarity: f64) -> f64 {
        self.layout().variance(similarity)
    }

    /// Returns the estimate from which pairs are accepted with a margin of `margin` standard
    /// deviations of the estimate below a similarity, at least 0.
    ///
    /// ```
    /// use resemblance_sketch::{MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(400).value_bits(32)).build()?;
    /// let from = schema.minhash().unwrap().accepted_from(0.5, 2.0);
    /// assert!((from - 0.45).abs() < 1e-9); // √(0.5 · 0.5 / 400) = 0.025
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn accepted_from(&self, similarity: f64, margin: f64) -> f64 {
        (similarity - margin * self.variance(similarity).sqrt()).max(0.0)
    }

    /// The layout of the values in bytes.
    pub fn layout(&self) -> ValueLayout {
        value_layout(self.kind, self.values, self.value_bits)
    }

    /// The minimum similarity of near-duplicates.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// The bands and their rows.
    ///
    /// ```
    /// use resemblance_sketch::{MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(128).threshold(0.8)).build()?;
    /// assert_eq!(schema.minhash().unwrap().banding().to_string(), "13 x 7");
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn banding(&self) -> Banding {
        self.banding
    }

    /// The number of bands. Each is a lane of the store.
    #[must_use]
    pub fn bands(&self) -> u16 {
        self.banding.bands()
    }

    /// The number of signature values in a band.
    #[must_use]
    pub fn rows(&self) -> u16 {
        self.banding.rows()
    }

    /// The number of bits stored of a band's hash, 32 to 64.
    #[must_use]
    pub fn code_bits(&self) -> u8 {
        self.code_bits
    }

    /// Returns the probability 1 − (1 − sʳ)ᵇ that a pair of this similarity shares one of b bands
    /// of r values, and is therefore compared. s is the probability that two values are equal. It
    /// is the similarity J, or J + (1 − J) / 2ᵛ for values of v < 32 bits, because unequal values
    /// may become equal when they are cut.
    #[must_use]
    pub fn probability(&self, similarity: f64) -> f64 {
        let agreement = self
            .layout()
            .agreement_probability(similarity.clamp(0.0, 1.0));
        self.banding.probability(agreement)
    }

    /// The [`probability`](Self::probability) at the threshold.
    #[must_use]
    pub fn recall_at_threshold(&self) -> f64 {
        self.probability(self.threshold)
    }

    /// Returns the standard deviation, over seeds, of the recall of pairs at the threshold: √(p (1
    /// − p) / families), where p is [`recall_at_threshold`](Self::recall_at_threshold). The formula
    /// assumes `families` groups of equally many pairs, and that the pairs of a group are found or
    /// missed together. This nearly holds for pairs that share documents. If pairs are independent,
    /// pass the number of pairs. The result is infinite for 0 families.
    ///
    /// ```
    /// use resemblance_sketch::{MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(128).threshold(0.8)).build()?;
    /// let minhash = schema.minhash().unwrap();
    /// assert!((minhash.recall_deviation(1) - 0.2114).abs() < 1e-4);
    /// assert!((minhash.recall_deviation(100) - 0.02114).abs() < 1e-5);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn recall_deviation(&self, families: u64) -> f64 {
        let recall = self.recall_at_threshold();
        (recall * (1.0 - recall) / families as f64).sqrt()
    }
}

/// Returns the byte layout of `values` values of this kind.
pub(super) fn value_layout(kind: MinHashKind, values: u16, value_bits: u8) -> ValueLayout {
    match kind {
        MinHashKind::BottomK => ValueLayout::Smallest { max_count: values },
        kind => ValueLayout::Packed {
            count: values,
            bits: value_bits,
            is_mixed: kind != MinHashKind::External && kind.vector().is_none(),
            curve: kind.curve(),
        },
    }
}

/// The rules by which the documents of a store become signatures, and by which signatures are
/// indexed and compared. The store's file contains them. The computation of signatures is fixed
/// when the store is created; `Store::reband` can change how they are indexed.
///
/// ```
/// use resemblance_sketch::{MinHash, Schema, SimHash, Text};
/// let schema = Schema::builder()
///     .text(Text::words(5))
///     .minhash(MinHash::new(128).threshold(0.8))
///     .simhash(SimHash::bits64().max_distance(3))
///     .build()?;
/// println!("{schema}");
/// let page = schema.sketcher().text("a text to be compared with others")?;
/// assert_eq!(page.jaccard(&page)?, 1.0);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
///
/// All settings can be read back, defaults included:
///
/// ```
/// # use resemblance_sketch::{EmptyDocuments, MinHash, Combine, Schema};
/// let schema = Schema::builder().minhash(MinHash::new(128).banding(16, 8)).seed(7).build()?;
/// assert_eq!((schema.text(), schema.seed(), schema.near()), (None, 7, Combine::Any));
/// assert_eq!(schema.empty_documents(), EmptyDocuments::Distinct);
/// assert_eq!(schema.expected_documents(), 1_000_000);
/// assert_eq!(schema.lanes(), 1 + 16); // one for keys, and the bands
/// assert_eq!(schema.containment(), None);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
///
/// Deserialising a schema checks it as building does. It fails if the schema could not be built, or
/// if it normalises texts by another version of Unicode.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Schema {
    pub(super) recipe: Recipe,
    /// The version of the Unicode data by which texts are normalised.
    pub(super) unicode_version: UnicodeVersion,
    pub(super) minhash: Option<MinHashSchema>,
    pub(super) simhash: Option<TableDesign>,
    pub(super) near: NearRule,
    pub(super) expected_documents: u64,
    /// Not part of the encoded schema: the weights can be large, and a store keeps them in a
    /// separate row.
    #[serde(skip)]
    pub(super) weights: Option<Arc<DocumentFrequencies>>,
}

impl Schema {
    /// Returns a sketcher, which makes signatures for this schema without a store.
    #[must_use]
    pub fn sketcher(&self) -> Sketcher {
        let value_bits = self.minhash.map_or(32, |minhash| minhash.value_bits);
        Sketcher::from_valid(self.recipe.clone(), self.weights.clone(), value_bits)
    }

    /// Makes a signature from MinHash values of this schema, such as those that
    /// [`Signature::minhash`] returns. If values have more bits than the schema keeps, they are
    /// cut.
    ///
    /// # Errors
    ///
    /// [`SketchError::SignatureMismatch`] if the schema has no MinHash, has bottom-k, or has
    /// another number of values.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
    /// let page = schema.sketcher().features(["a", "b"])?;
    /// let values = page.minhash().unwrap().to_vec();
    /// assert_eq!(schema.signature_of_values(values)?, page);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn signature_of_values(&self, values: Vec<u32>) -> Result<Signature> {
        let layout = self.minhash.map(|minhash| minhash.layout());
        let Some(layout @ ValueLayout::Packed { count, .. }) = layout else {
            let expected = "none: the schema keeps none, or the smallest hashes";
            return Err(SketchError::signature("MinHash values", "some", expected));
        };
        let (name, bits) = (layout.curve().value_name(), layout.bits());
        if values.len() != usize::from(count) {
            let expected = format!("{count}, as in the schema");
            return Err(SketchError::signature(name, values.len(), expected));
        }
        // The values of a vector mean nothing once they are cut.
        let is_wide = |value: &&u32| self.vector().is_some() && **value >> bits != 0;
        if let Some(found) = values.iter().find(is_wide) {
            let expected = format!("at most {bits} bits");
            return Err(SketchError::signature(name, found, expected));
        }
        let are_samples = self.minhash.is_some_and(|it| it.kind().is_weighted());
        let mark = self.sketcher().recipe_mark();
        Ok(Signature::of_values(layout, values, are_samples, mark))
    }

    /// Returns a sketcher for the MinHash values of a schema that differs from this one only in its
    /// seed.
    pub fn minhash_sketcher(&self, seed: u64) -> Result<Sketcher> {
        let minhash = self.minhash.ok_or_else(|| bug("the schema has MinHash"))?;
        let recipe = Recipe {
            seed,
            simhash_bits: None,
            simhash_counts: false,
            containment: None,
            exact_bits: None,
            ..self.recipe.clone()
        };
        Ok(Sketcher::from_valid(recipe, None, minhash.value_bits))
    }

    /// Weights each feature by its rarity in a corpus. A store that is created with this schema
    /// keeps the frequencies, and they can never change. Its sketchers weight all features by them.
    /// The store refuses signatures that were made with other frequencies or with none. A
    /// serialised schema does not contain them.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if no part of the schema uses weights: it has neither
    /// SimHash nor [weighted](crate::MinHashKind::is_weighted) MinHash.
    ///
    /// ```
    /// use resemblance_sketch::{DocumentFrequencies, Schema, SimHash, Text};
    /// let schema = Schema::builder().text(Text::words(1)).simhash(SimHash::bits64()).build()?;
    /// let plain = schema.sketcher();
    /// let mut frequencies = DocumentFrequencies::new();
    /// for text in ["the cat", "the dog", "the bird and the bee"] {
    ///     frequencies.add_text(&plain, text)?;
    /// }
    /// let weighted = schema.with_weights(frequencies.clone())?;
    /// let text = "the cat and the dog";
    /// let signature = weighted.sketcher().text(text)?;
    /// assert!(signature.hamming(&plain.text(text)?).is_err()); // of another recipe
    /// assert_eq!(weighted.weights(), Some(&frequencies));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn with_weights(mut self, frequencies: DocumentFrequencies) -> Result<Self> {
        let kind = self.minhash.map(|minhash| minhash.kind);
        let is_weighted = kind.is_some_and(MinHashKind::is_weighted);
        let are_used = kind != Some(MinHashKind::External)
            && (is_weighted || self.recipe.simhash_bits.is_some());
        let expected = "none: only SimHash and weighted MinHash use weights";
        SketchError::require(are_used, "weights", "document frequencies", expected)?;
        self.weights = Some(Arc::new(frequencies));
        Ok(self)
    }

    /// Returns true if SimHash [counts](crate::SimHash::term_counts) how often features occur.
    #[must_use]
    pub fn has_term_counts(&self) -> bool {
        self.recipe.simhash_counts
    }

    /// Returns the frequencies that determine the weights of features, if there are any.
    ///
    /// ```
    /// # use resemblance_sketch::{DocumentFrequencies, Schema, SimHash};
    /// let schema = Schema::builder().simhash(SimHash::bits64()).build()?;
    /// assert_eq!(schema.weights(), None);
    /// let frequencies = DocumentFrequencies::from_counts(10, [(7, 10), (8, 1)])?;
    /// let schema = schema.with_weights(frequencies)?;
    /// assert_eq!(schema.weights().map(|weights| weights.documents()), Some(10));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn weights(&self) -> Option<&DocumentFrequencies> {
        self.weights.as_deref()
    }

    /// Returns the rules by which texts become shingles, if the schema takes texts.
    #[must_use]
    pub fn text(&self) -> Option<Text> {
        self.recipe.text
    }

    /// The seed of all hash functions.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.recipe.seed
    }

    /// Returns whether documents without features are near-duplicates of each other.
    #[must_use]
    pub fn empty_documents(&self) -> EmptyDocuments {
        self.recipe.empty
    }

    /// Returns the number of documents that the store is expected to contain, for which its SimHash
    /// tables were chosen.
    #[must_use]
    pub fn expected_documents(&self) -> u64 {
        self.expected_documents
    }

    /// The rule by which documents count as near, if there are both MinHash and SimHash.
    #[must_use]
    pub fn near(&self) -> Combine {
        self.near.combine
    }

    /// Returns the bounds of the clusters that a store of this schema keeps, if it keeps any.
    #[must_use]
    pub fn clusters(&self) -> Option<ClusterBounds> {
        self.near.clusters
    }

    /// Returns this schema with other bounds of the clusters, or without kept clusters.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if the bands and tables are not made for the bounds.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema, schema::ClusterBounds};
    /// let plain = Schema::builder().minhash(MinHash::new(64)).build()?;
    /// let kept = plain.clone().with_clusters(Some(ClusterBounds::default()))?;
    /// assert_eq!(kept.with_clusters(None)?, plain);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn with_clusters(mut self, bounds: Option<ClusterBounds>) -> Result<Self> {
        self.near.clusters = bounds;
        self.check_clusters()?;
        Ok(self)
    }

    /// Checks that the bands and tables find the documents within the bounds of the clusters.
    pub(super) fn check_clusters(&self) -> Result<()> {
        let Some(bounds) = self.near.clusters else {
            return Ok(());
        };
        self.check_families()?;
        if let Some(found) = bounds.min_similarity {
            let expected = "none: the schema has no MinHash";
            let Some(minhash) = self.minhash else {
                return Err(SketchError::invalid("cluster_threshold", found, expected));
            };
            let least = minhash.threshold();
            let expected = format!("{least} to 1, as the bands are made for {least}");
            let is_valid = (least..=1.0).contains(&found);
            SketchError::require(is_valid, "cluster_threshold", found, expected)?;
        }
        if let Some(found) = bounds.max_distance {
            let expected = "none: the schema has no SimHash";
            let Some(simhash) = &self.simhash else {
                return Err(SketchError::invalid("cluster_distance", found, expected));
            };
            let most = simhash.max_distance();
            let expected = format!("0 to {most}, as the tables are made for {most}");
            SketchError::require(found <= most, "cluster_distance", found, expected)?;
        }
        Ok(())
    }

    /// The MinHash part.
    #[must_use]
    pub fn minhash(&self) -> Option<MinHashSchema> {
        self.minhash
    }

    /// Returns the SimHash part: the tables that index fingerprints, the number of bits, and the
    /// maximum distance, which queries, joins and inserts use by default.
    ///
    /// ```
    /// # use resemblance_sketch::{Schema, SimHash};
    /// let schema = Schema::builder().simhash(SimHash::bits64().max_distance(3)).build()?;
    /// let simhash = schema.simhash().expect("it has SimHash");
    /// assert_eq!((simhash.bits(), simhash.max_distance()), (64, 3));
    /// println!("{simhash}"); // the tables
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn simhash(&self) -> Option<&TableDesign> {
        self.simhash.as_ref()
    }

    /// Returns true if the caller provides the fingerprints: see
    /// [`SimHash::external`](crate::SimHash::external).
    ///
    /// ```
    /// # use resemblance_sketch::{Schema, SimHash};
    /// let schema = Schema::builder().simhash(SimHash::external(256)).build()?;
    /// assert!(schema.has_external_fingerprints());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn has_external_fingerprints(&self) -> bool {
        self.simhash.is_some() && self.recipe.simhash_bits.is_none()
    }

    /// The rule that selects shingles to find shared passages.
    #[must_use]
    pub fn containment(&self) -> Option<Containment> {
        self.recipe.containment
    }

    /// Returns true if sets of features decide similarities: see
    /// [`SchemaBuilder::exact`](crate::SchemaBuilder::exact).
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// assert!(!Schema::builder().minhash(MinHash::new(64)).build()?.is_exact());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.recipe.exact_bits.is_some()
    }

    /// Returns the width of the hashes of exact sets, 32 to 64 bits, or `None` unless the schema is
    /// exact. For vectors, the number of bits of a component: see [`SchemaBuilder::exact_bits`](crate::SchemaBuilder::exact_bits).
    #[must_use]
    pub fn exact_bits(&self) -> Option<u8> {
        self.recipe.exact_bits
    }

    /// Returns a bound on the probability that a comparison of two documents is wrong because
    /// hashes collide, if they have this number of different features together. `None` unless the
    /// schema is exact, and for vectors.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(64)).exact_bits(32).build()?;
    /// // 499,500 pairs of features, each of which collides with probability 2^-32.
    /// assert_eq!(schema.collision_probability(1_000), Some(499_500.0 / 2_f64.powi(32)));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn collision_probability(&self, features: u64) -> Option<f64> {
        let bits = self.recipe.exact_bits?;
        if self.recipe.vector().is_some() {
            return None;
        }
        let pairs = features as f64 * (features.saturating_sub(1)) as f64 / 2.0;
        Some((pairs / 2_f64.powi(bits.into())).min(1.0))
    }

    /// Returns true if signatures have an exact set in addition to their kept hashes. Otherwise,
    /// the kept hashes of an exact schema are the exact set.
    pub fn has_sets(&self) -> bool {
        self.recipe.set_bits().is_some()
    }

    /// Returns the rules by which texts become the shingles that find shared passages: the rules of
    /// [`text`](Self::text), with [`Containment::shingle_units`] units in a shingle. Returns `None`
    /// unless the schema has both.
    ///
    /// ```
    /// use resemblance_sketch::{Containment, Schema, Text};
    /// let schema = Schema::builder().text(Text::words(3)).containment(Containment::new(8)).build()?;
    /// assert_eq!(schema.containment_text(), Some(Text::words(8)));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn containment_text(&self) -> Option<Text> {
        let units = self.containment()?.shingle_units();
        Some(self.text()?.with_length(units))
    }

    /// Returns true if the schema has MinHash or SimHash, which find near documents.
    pub fn has_families(&self) -> bool {
        self.minhash.is_some() || self.simhash.is_some()
    }

    /// Returns an error if the schema has neither MinHash nor SimHash, without which near documents
    /// cannot be found.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] in that case.
    pub fn check_families(&self) -> Result<()> {
        let expected = "MinHash, SimHash or vectors, by which near documents are found";
        SketchError::require(self.has_families(), "schema", "containment alone", expected)
    }

    /// Returns the number of lanes: one for keys, one for each band, one for each permuted table,
    /// and one for kept hashes.
    #[must_use]
    pub fn lanes(&self) -> usize {
        let tables = self.simhash.as_ref().map_or(0, TableDesign::table_count);
        let kept = usize::from(self.recipe.containment.is_some());
        1 + self.minhash.map_or(0, |m| usize::from(m.bands())) + tables + kept
    }

    /// The lanes of a store with this schema.
    pub fn lane_set(&self) -> Result<LaneSet> {
        let banding = self.minhash.map(|m| (m.banding, m.code_bits));
        let bits = self.minhash.map_or(32, |minhash| minhash.value_bits());
        let kept_bits = self.recipe.containment.map(|_| KEPT_HASH_BITS);
        let lanes = LaneSet::new(banding, self.simhash.clone())?;
        Ok(lanes.of_value_bits(bits).with_kept_hashes(kept_bits))
    }
}
