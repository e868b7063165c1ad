//! Changes of a schema that keep the stored signatures valid.

use super::builder::{MinHash, SimHash};
use super::definition::{MinHashSchema, Schema};
use crate::error::{Result, SketchError};
use crate::lanes::TableDesign;
use crate::sketch::KEPT_HASH_BITS;

/// The parameter that errors about a change of bands name.
const REBANDING: &str = "rebanding";

/// A change of how the documents of a store are indexed, for `Store::reband`. Settings that you do
/// not set keep their values.
///
/// The computation of signatures cannot change. It comprises the texts, the seed, the number of
/// values, the width of fingerprints, and whether empty documents are near-duplicates of each
/// other. Only sets of features can be [added](Self::exact).
///
/// ```
/// use resemblance_sketch::{MinHash, Rebanding, Schema};
/// let schema = Schema::builder().minhash(MinHash::new(128).threshold(0.8)).build()?;
/// let looser = schema.rebanded(&Rebanding::new().threshold(0.6))?;
/// assert_eq!(looser, Schema::builder().minhash(MinHash::new(128).threshold(0.6)).build()?);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Rebanding {
    threshold: Option<f64>,
    recall: Option<f64>,
    banding: Option<(u16, u16)>,
    code_bits: Option<u8>,
    max_distance: Option<u8>,
    tables: Option<Vec<(u8, u8)>>,
    expected_documents: Option<u64>,
    exact_bits: Option<u8>,
}

impl Rebanding {
    /// Creates a change without any setting.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the minimum Jaccard similarity of near-duplicates, above 0 and at most 1. New bands are
    /// chosen for it, unless [`banding`](Self::banding) sets them.
    pub fn threshold(mut self, threshold: f64) -> Self {
        self.threshold = Some(threshold);
        self
    }

    /// Sets the share of the pairs at the threshold that must share a band, between 0 and 1. If new
    /// bands are chosen and you do not set it, it is 0.95: a store does not keep the recall for
    /// which its bands were chosen.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Rebanding, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(128)).build()?;
    /// let surer = schema.rebanded(&Rebanding::new().recall(0.99))?;
    /// assert!(surer.minhash().unwrap().recall_at_threshold() >= 0.99);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn recall(mut self, recall: f64) -> Self {
        self.recall = Some(recall);
        self
    }

    /// Sets bands and rows directly.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Rebanding, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(128)).build()?;
    /// let rebanded = schema.rebanded(&Rebanding::new().banding(32, 4))?;
    /// assert_eq!(rebanded.minhash().unwrap().bands(), 32);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn banding(mut self, bands: u16, rows: u16) -> Self {
        self.banding = Some((bands, rows));
        self
    }

    /// Sets how many bits of a band's hash are stored, 32 to 64.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Rebanding, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(128)).build()?;
    /// let rebanded = schema.rebanded(&Rebanding::new().code_bits(48))?;
    /// assert_eq!(rebanded.minhash().unwrap().code_bits(), 48);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn code_bits(mut self, bits: u8) -> Self {
        self.code_bits = Some(bits);
        self
    }

    /// Sets the maximum number of differing bits between near-duplicates by SimHash, as
    /// [`SimHash::max_distance`](crate::SimHash::max_distance) does. New tables are chosen for it.
    ///
    /// ```
    /// # use resemblance_sketch::{Rebanding, Schema, SimHash};
    /// let schema = Schema::builder().simhash(SimHash::bits64().max_distance(3)).build()?;
    /// let rebanded = schema.rebanded(&Rebanding::new().max_distance(5))?;
    /// assert_eq!(rebanded.simhash().unwrap().max_distance(), 5);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn max_distance(mut self, distance: u8) -> Self {
        self.max_distance = Some(distance);
        self
    }

    /// Sets the tables directly, as [`SimHash::tables`](crate::SimHash::tables) does. The maximum
    /// distance becomes the one at which whole buckets find every fingerprint, unless
    /// [`max_distance`](Self::max_distance) sets it.
    ///
    /// ```
    /// # use resemblance_sketch::{Rebanding, Schema, SimHash};
    /// let schema = Schema::builder().simhash(SimHash::bits64()).build()?;
    /// let rebanded = schema.rebanded(&Rebanding::new().tables(&[(5, 2)]))?;
    /// assert_eq!(rebanded.simhash().unwrap().table_count(), 10);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn tables(mut self, groups: &[(u8, u8)]) -> Self {
        self.tables = Some(groups.to_vec());
        self
    }

    /// Sets the number of documents that the store is expected to contain. New SimHash tables are
    /// chosen for it. Without SimHash, the number only determines when the
    /// [design](crate::DesignReport) counts as outgrown.
    ///
    /// ```
    /// # use resemblance_sketch::{Rebanding, Schema, SimHash};
    /// let schema = Schema::builder().simhash(SimHash::bits64()).build()?;
    /// let grown = schema.rebanded(&Rebanding::new().expected_documents(500_000_000))?;
    /// let design = |schema: &Schema| schema.simhash().unwrap().clone();
    /// assert_ne!(design(&grown), design(&schema));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn expected_documents(mut self, documents: u64) -> Self {
        self.expected_documents = Some(documents);
        self
    }

    /// Makes the schema exact, as [`SchemaBuilder::exact`](crate::SchemaBuilder::exact) does.
    /// Unless the kept hashes of containment are the sets, the rebanding needs the sets of all
    /// documents.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Rebanding, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(128)).build()?;
    /// let exact = schema.rebanded(&Rebanding::new().exact())?;
    /// assert_eq!(exact, Schema::builder().minhash(MinHash::new(128)).exact().build()?);
    /// assert!(exact.rebanded(&Rebanding::new().exact()).is_err()); // it is exact already
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn exact(mut self) -> Self {
        self.exact_bits = Some(KEPT_HASH_BITS);
        self
    }

    /// Like [`exact`](Self::exact), with hashes of 32 to 64 bits, as
    /// [`SchemaBuilder::exact_bits`](crate::SchemaBuilder::exact_bits) has them.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Rebanding, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(128)).build()?;
    /// let narrow = schema.rebanded(&Rebanding::new().exact_bits(32))?;
    /// assert_eq!(narrow.exact_bits(), Some(32));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn exact_bits(mut self, bits: u8) -> Self {
        self.exact_bits = Some(bits);
        self
    }

    fn validate(&self, schema: &Schema) -> Result<()> {
        let expected = "at least one of threshold, recall, banding, code_bits, max_distance, \
                        tables, expected_documents, exact and exact_bits";
        let becomes_exact = !(self.exact_bits.is_some() && schema.is_exact());
        SketchError::require(becomes_exact, "exact", "true", "none: the schema is exact")?;
        SketchError::require(*self != Self::default(), REBANDING, "no change", expected)?;
        let banding = |(bands, rows)| format!("{bands} x {rows}");
        let tables = self.tables.as_ref().map(|groups| format!("{groups:?}"));
        let distance = self.max_distance.map(|value| value.to_string());
        let code_bits = self.code_bits.map(|value| value.to_string());
        let shown = |value: f64| value.to_string();
        let minhash = ("MinHash", schema.minhash.is_some());
        let simhash = ("SimHash", schema.simhash.is_some());
        let parts = [
            (minhash, "threshold", self.threshold.map(shown)),
            (minhash, "recall", self.recall.map(shown)),
            (minhash, "banding", self.banding.map(banding)),
            (minhash, "code_bits", code_bits),
            (simhash, "max_distance", distance),
            (simhash, "tables", tables),
        ];
        for ((family, is_present), name, value) in parts {
            if let Some(found) = value {
                let expected = format_args!("none: the schema has no {family}");
                SketchError::require(is_present, name, found, expected)?;
            }
        }
        if let (Some(recall), Some(_)) = (self.recall, self.banding) {
            let expected = "none where bands and rows are given";
            return Err(SketchError::invalid("recall", recall, expected));
        }
        Ok(())
    }

    fn minhash(&self, old: MinHashSchema) -> Result<MinHashSchema> {
        let builder = old.to_builder();
        let is_chosen_again = self.threshold.is_some() || self.recall.is_some();
        let kept = builder.banding.filter(|_| !is_chosen_again);
        let rebanded = MinHash {
            threshold: self.threshold.unwrap_or(old.threshold),
            recall: self.recall.unwrap_or(builder.recall),
            banding: self.banding.or(kept),
            code_bits: self.code_bits.unwrap_or(old.code_bits),
            ..builder
        };
        rebanded.build()
    }

    fn simhash(&self, old: &TableDesign, documents: u64) -> Result<TableDesign> {
        if (self.max_distance, self.expected_documents, &self.tables) == (None, None, &None) {
            return Ok(old.clone());
        }
        let kept = self.tables.is_none().then(|| old.max_distance());
        let rebanded = SimHash {
            max_distance: self.max_distance.or(kept),
            groups: self.tables.clone(),
            ..SimHash::of_bits(old.bits())
        };
        rebanded.build(documents)
    }
}

impl Schema {
    /// Returns this schema with a change applied to how documents are indexed.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if a setting is out of range or concerns MinHash or
    /// SimHash and the schema does not have it, or if the change has no setting.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Rebanding, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(128).threshold(0.8)).build()?;
    /// let looser = schema.rebanded(&Rebanding::new().threshold(0.6))?;
    /// assert!(looser.minhash().unwrap().probability(0.6) >= 0.95);
    /// assert!(schema.rebanded(&Rebanding::new().max_distance(3)).is_err()); // it has no SimHash
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn rebanded(&self, rebanding: &Rebanding) -> Result<Self> {
        rebanding.validate(self)?;
        let expected_documents = rebanding
            .expected_documents
            .unwrap_or(self.expected_documents);
        let minhash = self.minhash.map(|old| rebanding.minhash(old));
        let rebuilt = |old| rebanding.simhash(old, expected_documents);
        let mut recipe = self.recipe.clone();
        if rebanding.exact_bits.is_some() {
            recipe.exact_bits = rebanding.exact_bits;
        }
        recipe.validate()?;
        let rebanded = Self {
            recipe,
            minhash: minhash.transpose()?,
            simhash: self.simhash.as_ref().map(rebuilt).transpose()?,
            expected_documents,
            ..self.clone()
        };
        rebanded.check_clusters()?;
        Ok(rebanded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Combine;
    use crate::schema::SimHash;

    fn both() -> Schema {
        let builder = Schema::builder().minhash(MinHash::new(64).threshold(0.8));
        let builder = builder
            .simhash(SimHash::bits64())
            .seed(9)
            .near(Combine::Both);
        builder.build().unwrap()
    }

    #[test]
    fn rebanded_schema_equals_one_built_afresh() {
        let built = |minhash: MinHash, distance, documents| {
            let builder = Schema::builder()
                .minhash(minhash)
                .seed(9)
                .near(Combine::Both);
            let simhash = SimHash::bits64().max_distance(distance);
            let builder = builder.simhash(simhash).expected_documents(documents);
            builder.build().unwrap()
        };
        let old = || MinHash::new(64).threshold(0.8);
        let million = 1_000_000;
        let banding = both().minhash().unwrap();
        let kept = |minhash: MinHash| minhash.banding(banding.bands(), banding.rows());
        for (rebanding, expected) in [
            (
                Rebanding::new().threshold(0.5),
                built(MinHash::new(64).threshold(0.5), 3, million),
            ),
            (
                Rebanding::new().recall(0.6),
                built(old().recall(0.6), 3, million),
            ),
            (
                Rebanding::new().banding(5, 3).threshold(0.7),
                built(old().threshold(0.7).banding(5, 3), 3, million),
            ),
            (
                Rebanding::new().code_bits(64),
                built(kept(old().code_bits(64)), 3, million),
            ),
            (
                Rebanding::new().max_distance(6),
                built(kept(old()), 6, million),
            ),
            (
                Rebanding::new().expected_documents(1 << 34),
                built(kept(old()), 3, 1 << 34),
            ),
        ] {
            assert_eq!(
                both().rebanded(&rebanding).unwrap(),
                expected,
                "{rebanding:?}"
            );
            assert_ne!(both(), expected, "{rebanding:?}");
        }
    }

    #[test]
    fn rebanding_names_impossible_values() {
        let minhash = Schema::builder().minhash(MinHash::new(64)).build().unwrap();
        let simhash = Schema::builder().simhash(SimHash::bits64());
        let simhash = simhash.build().unwrap();
        let new = Rebanding::new;
        for (schema, rebanding, name) in [
            (both(), new(), REBANDING),
            (both(), new().threshold(1.5), "threshold"),
            (both(), new().threshold(f64::NAN), "threshold"),
            (both(), new().recall(1.0), "recall"),
            (both(), new().banding(4, 4).recall(0.9), "recall"),
            (both(), new().banding(65, 1), "banding"),
            (both(), new().banding(0, 1), "bands"),
            (both(), new().code_bits(31), "code_bits"),
            (both(), new().max_distance(64), "max_distance"),
            (minhash, new().max_distance(2), "max_distance"),
            (simhash.clone(), new().threshold(0.5), "threshold"),
            (simhash.clone(), new().recall(0.5), "recall"),
            (simhash.clone(), new().banding(4, 4), "banding"),
            (simhash, new().code_bits(40), "code_bits"),
        ] {
            match schema.rebanded(&rebanding) {
                Err(SketchError::InvalidParameter { parameter, .. }) => {
                    assert_eq!(parameter, name, "{rebanding:?}");
                }
                other => panic!("{rebanding:?}: {other:?}"),
            }
        }
    }
}
