//! Checks of a schema that was read from a file.

use super::builder::MinHash;
use super::definition::{MinHashSchema, Schema, SimHashSchema};
use crate::error::{Error, Result};
use crate::text::UNICODE_VERSION;

impl MinHashSchema {
    /// The builder that would build this part again.
    fn to_builder(self) -> MinHash {
        MinHash::new_of_kind(self.kind, self.values)
            .value_bits(self.value_bits)
            .threshold(self.threshold)
            .banding(self.bands(), self.rows())
            .code_bits(self.code_bits)
    }
}

impl Schema {
    /// Checks that a schema that was read from a file could have been built by this release.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] names the part that is out of range; [`Error::SelfTest`] if texts
    /// are normalised by another version of Unicode.
    pub(crate) fn validate(&self) -> Result<()> {
        self.recipe.validate()?;
        if self.unicode_version != UNICODE_VERSION {
            let detail = format!(
                "found Unicode {:?}, this release has {UNICODE_VERSION:?}",
                self.unicode_version
            );
            return Err(Error::SelfTest { detail });
        }
        if let Some(minhash) = self.minhash {
            minhash.to_builder().build()?;
        }
        // A table design checks itself when it is read. What remains: the recipe and the two parts say
        // the same.
        let recipe = self.recipe.minhash;
        let of_recipe = recipe.map(|minhash| (minhash.kind, minhash.values));
        let of_schema = self.minhash.map(|minhash| (minhash.kind, minhash.values));
        let simhash_bits = self.simhash.as_ref().map(SimHashSchema::bits);
        if of_recipe != of_schema || self.recipe.simhash_bits != simhash_bits {
            let expected = "the families of the schema";
            return Err(Error::invalid("recipe", "other families", expected));
        }
        Ok(())
    }
}
