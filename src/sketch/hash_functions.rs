//! All hash functions of one recipe.

use std::sync::Arc;

use super::frequencies::DocumentFrequencies;
use super::hash::feature_hash;
use super::min_hash::AnyMinHasher;
use super::recipe::{MinHashKind, Recipe};
use super::signature::{Fingerprint, Signature};
use super::simhash::SimHasher;
use super::values::MinHashValues;
use crate::error::{Error, Result};

/// A recipe with its hash functions, ready to make signatures.
#[derive(Debug)]
pub(super) struct HashFunctions {
    pub(super) recipe: Recipe,
    /// The weights of features, where the schema has any.
    pub(super) weights: Option<Arc<DocumentFrequencies>>,
    /// [`Recipe::fingerprint`], with that of the weights, computed once.
    pub(super) recipe_fingerprint: u64,
    pub(super) minhash: Option<AnyMinHasher>,
    pub(super) simhash: Option<SimHasher>,
}

impl HashFunctions {
    /// The functions of a recipe that has been validated. Takes about a microsecond.
    pub(super) fn new(recipe: Recipe, weights: Option<Arc<DocumentFrequencies>>) -> Self {
        let plain = recipe.fingerprint();
        let weighted = weights.as_ref().map(|weights| {
            let parts = [plain.to_le_bytes(), weights.fingerprint().to_le_bytes()];
            feature_hash(&parts.concat())
        });
        Self {
            recipe_fingerprint: weighted.unwrap_or(plain),
            weights,
            minhash: recipe
                .minhash
                .map(|minhash| AnyMinHasher::new(recipe.seed, minhash)),
            simhash: recipe
                .simhash_bits
                .map(|bits| SimHasher::new(recipe.seed, bits)),
            recipe,
        }
    }

    /// Returns an error if signatures of this recipe are made elsewhere.
    pub(super) fn check_makes_signatures(&self) -> Result<()> {
        let kind = self.recipe.minhash.map(|minhash| minhash.kind);
        if kind == Some(MinHashKind::External) {
            let expected = "a ready-made signature: the schema's MinHash values are external";
            return Err(Error::invalid("document", "features", expected));
        }
        Ok(())
    }

    /// A signature of these parts, marked with the recipe.
    pub(super) fn signature(
        &self,
        values: Option<MinHashValues>,
        simhash: Option<Fingerprint>,
        is_empty: bool,
    ) -> Signature {
        Signature::new(values, simhash, is_empty, Some(self.recipe_fingerprint))
    }
}
