//! All hash functions of one recipe.

use std::sync::Arc;

use super::containment::ShingleSelector;
use super::exact::{ExactSet, SetHash};
use super::frequencies::DocumentFrequencies;
use super::hash::{derive, stream};
use super::min_hash::AnyMinHasher;
use super::recipe::{Recipe, RecipeMark};
use super::signature::Signature;
use super::simhash::{SimHasher, WeightedHash};
use super::values::MinHashValues;
use super::vector::{KeptVector, VectorHasher};
use crate::error::{Result, SketchError};
use crate::fingerprint::Fingerprint;
use crate::text::Text;

/// A recipe with its hash functions, ready to make signatures.
#[derive(Debug)]
pub(super) struct HashFunctions {
    pub(super) recipe: Recipe,
    /// The weights of features, if the schema has any.
    pub(super) weights: Option<Arc<DocumentFrequencies>>,
    /// The bits to which MinHash values are cut; 32 leaves them whole.
    pub(super) value_bits: u8,
    /// [`Recipe::mark`], computed once.
    pub(super) mark: RecipeMark,
    pub(super) minhash: Option<AnyMinHasher>,
    pub(super) simhash: Option<SimHasher>,
    /// The hashes of exact sets, if signatures have these in addition to kept hashes.
    set_hash: Option<SetHash>,
    /// The hash functions of vectors, if documents have these.
    pub(super) vectors: Option<VectorHasher>,
    /// The functions for what documents have beside vectors.
    pub(super) beside_vector: Option<Arc<HashFunctions>>,
}

impl HashFunctions {
    /// Creates the functions of a validated recipe. Takes about a microsecond.
    pub(super) fn new(
        recipe: Recipe,
        weights: Option<Arc<DocumentFrequencies>>,
        value_bits: u8,
    ) -> Self {
        let of_weights = weights.as_ref().map(|weights| weights.fingerprint());
        Self {
            mark: recipe.mark(of_weights),
            value_bits,
            minhash: recipe
                .minhash
                .map(|minhash| AnyMinHasher::new(recipe.seed, minhash)),
            simhash: recipe
                .simhash_bits
                .map(|bits| SimHasher::new(recipe.seed, bits)),
            vectors: recipe.minhash.and_then(|minhash| {
                let kept = recipe.exact_bits.and_then(KeptVector::of_bits);
                let kind = minhash.kind.vector()?;
                Some(VectorHasher::new(recipe.seed, minhash.values, kind, kept))
            }),
            beside_vector: recipe
                .beside_vector()
                .map(|beside| Arc::new(Self::new(beside, weights.clone(), value_bits))),
            set_hash: recipe.set_bits().map(|bits| SetHash {
                key: derive(recipe.seed, stream::CONTAINMENT_KEY),
                bits,
            }),
            weights,
            recipe,
        }
    }

    /// Returns an error if another program makes the signatures of this recipe.
    pub(super) fn check_makes_signatures(&self) -> Result<()> {
        let expected = "a precomputed signature: the schema's MinHash values are external";
        let is_valid = !self.recipe.makes_minhash_elsewhere();
        SketchError::require(is_valid, "document", "features", expected)?;
        let expected = "a vector, as in the schema";
        SketchError::require(self.vectors.is_none(), "document", "features", expected)?;
        let expected = "a precomputed signature: the schema's fingerprints are external";
        let is_valid = !self.recipe.is_made_elsewhere();
        SketchError::require(is_valid, "document", "features", expected)?;
        Ok(())
    }

    /// Returns a signature of these parts, marked with the recipe.
    pub(super) fn signature(
        &self,
        values: Option<MinHashValues>,
        simhash: Option<Fingerprint>,
        is_empty: bool,
    ) -> Signature {
        Signature::new(values, simhash, is_empty, Some(self.mark)).into_cut(self.value_bits)
    }

    /// Returns true if signatures have an exact set.
    pub(super) fn makes_sets(&self) -> bool {
        self.set_hash.is_some()
    }

    /// Returns true if the values depend on the weights of features.
    pub(super) fn needs_weights(&self) -> bool {
        let minhash = self.minhash.as_ref();
        minhash.is_some_and(|minhash| minhash.needs_weights())
    }

    /// Returns true if signatures are fingerprints alone, which weights of any sign have.
    pub(super) fn takes_negative_weights(&self) -> bool {
        let parts = (&self.recipe.minhash, &self.recipe.containment);
        self.simhash.is_some() && matches!(parts, (None, None))
    }

    /// Returns true if fingerprints depend on how often features occur.
    pub(super) fn counts_occurrences(&self) -> bool {
        self.simhash.is_some() && self.recipe.simhash_counts
    }

    /// Returns the exact set of features, which may repeat, if signatures have one.
    pub(super) fn exact_set(&self, features: Vec<u64>) -> Option<ExactSet> {
        Some(ExactSet::of_hashes(self.set_hash?, features))
    }

    /// Returns the exact set of distinct features with weights, if signatures have one.
    pub(super) fn weighted_set(&self, features: &[WeightedHash]) -> Option<ExactSet> {
        let hash = self.set_hash?;
        Some(match self.needs_weights() {
            true => ExactSet::of_weights(hash, features),
            false => {
                let hashes = features.iter().map(|(hash, _)| *hash).collect();
                ExactSet::of_hashes(hash, hashes)
            }
        })
    }

    /// Returns the selector of kept shingles, or `None` without containment.
    pub(super) fn selector(&self) -> Option<ShingleSelector> {
        let containment = self.recipe.containment.as_ref()?;
        Some(ShingleSelector::new(containment, self.recipe.seed))
    }

    /// Returns the rules by which texts become features, and, if they differ, the rules by which
    /// texts become the shingles of containment.
    pub(super) fn texts(&self) -> Option<(Text, Option<Text>)> {
        let (text, kept) = (self.recipe.text?, self.recipe.kept_text());
        let Some(kept) = kept else {
            return Some((text, None));
        };
        // A schema with containment alone needs only its shingles.
        let is_alone = self.minhash.is_none() && self.simhash.is_none();
        Some(if is_alone || kept == text {
            (kept, None)
        } else {
            (text, Some(kept))
        })
    }
}
