//! Reads schemas, from a file or from other bytes, and checks them.

use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use super::builder::MinHash;
use super::definition::{MinHashSchema, Schema};
use super::near::NearRule;
use crate::error::{Result, SketchError};
use crate::lanes::TableDesign;
use crate::sketch::{DocumentFrequencies, Recipe};
use crate::text::{UNICODE_VERSION, UnicodeVersion};

impl MinHashSchema {
    /// Returns the builder that builds this part.
    pub(super) fn to_builder(self) -> MinHash {
        MinHash::new_of_kind(self.kind, self.values)
            .value_bits(self.value_bits)
            .threshold(self.threshold)
            .banding(self.bands(), self.rows())
            .code_bits(self.code_bits)
    }
}

impl Schema {
    /// Checks that signatures of this schema are not void: it has MinHash, SimHash or containment.
    pub(super) fn check_has_family(&self) -> Result<()> {
        let has_any = self.has_families() || self.containment().is_some();
        let found = "no MinHash, SimHash, vectors or containment";
        SketchError::require(has_any, "signature", found, "at least one")
    }

    /// Checks that a schema that was read from a file could have been built by this release.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] names the part that is out of range.
    /// [`SketchError::SelfTest`] if the schema normalises texts by another version of Unicode.
    pub fn validate(&self) -> Result<()> {
        self.recipe.validate()?;
        if self.unicode_version != UNICODE_VERSION {
            let detail = format!(
                "found Unicode {:?}, this release has {UNICODE_VERSION:?}",
                self.unicode_version
            );
            return Err(SketchError::SelfTest { detail });
        }
        if let Some(minhash) = self.minhash {
            minhash.to_builder().build()?;
        }
        // A table design checks itself when it is read. What remains is to check that the recipe
        // and the two parts agree.
        let recipe = self.recipe.minhash;
        let of_recipe = recipe.map(|minhash| (minhash.kind, minhash.values));
        let of_schema = self.minhash.map(|minhash| (minhash.kind, minhash.values));
        let simhash_bits = self.simhash.as_ref().map(TableDesign::bits);
        let is_external = self.recipe.simhash_bits.is_none();
        self.check_has_family()?;
        self.check_clusters()?;
        let is_same =
            of_recipe == of_schema && (is_external || self.recipe.simhash_bits == simhash_bits);
        let expected = "the families of the schema";
        SketchError::require(is_same, "recipe", "other families", expected)
    }
}

/// The fields of an encoded schema. Each has been checked by itself only.
#[derive(Deserialize)]
#[serde(remote = "Schema")]
struct StoredSchema {
    recipe: Recipe,
    unicode_version: UnicodeVersion,
    minhash: Option<MinHashSchema>,
    simhash: Option<TableDesign>,
    near: NearRule,
    expected_documents: u64,
    #[serde(skip)]
    weights: Option<Arc<DocumentFrequencies>>,
}

/// A schema that has been read but not checked. It has the same encoding as a [`Schema`].
#[derive(Deserialize)]
pub struct UncheckedSchema(#[serde(with = "StoredSchema")] Schema);

impl UncheckedSchema {
    /// Returns the unchecked schema. The caller checks it with [`Schema::validate`], which returns
    /// more precise errors than deserialising does.
    pub fn into_unchecked(self) -> Schema {
        self.0
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let schema = StoredSchema::deserialize(deserializer)?;
        schema.validate().map_err(serde::de::Error::custom)?;
        Ok(schema)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::schema::SimHash;
    use crate::text::Text;

    fn schema() -> Schema {
        let builder = Schema::builder().text(Text::words(2));
        let minhash = MinHash::new(64).threshold(0.7);
        builder
            .minhash(minhash)
            .simhash(SimHash::bits64())
            .build()
            .unwrap()
    }

    #[test]
    fn stored_schema_round_trips() {
        let text = serde_json::to_string(&schema()).unwrap();
        assert_eq!(serde_json::from_str::<Schema>(&text).unwrap(), schema());
    }

    #[test]
    fn stored_schema_is_validated_when_read() {
        let written = serde_json::to_value(schema()).unwrap();
        let changes: [(&str, Value); 7] = [
            ("/minhash/threshold", json!(7.5)),
            ("/minhash/value_bits", json!(3)),
            ("/minhash/values", json!(128)),
            ("/minhash/code_bits", json!(8)),
            ("/recipe/minhash", Value::Null),
            ("/recipe/simhash_bits", json!(128)),
            ("/unicode_version", json!([18, 0, 0])),
        ];
        for (place, value) in changes {
            let mut changed = written.clone();
            *changed.pointer_mut(place).unwrap() = value;
            assert!(
                serde_json::from_value::<Schema>(changed).is_err(),
                "{place}"
            );
        }
    }
}
