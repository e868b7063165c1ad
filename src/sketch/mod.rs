//! Features to signatures. All that is hashed here is frozen.

mod features;
mod hash;
mod minhash;
mod recipe;
mod self_test;
mod signature;
mod simhash;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use minhash::{MinHasher, Minima};
use simhash::SimHasher;

use crate::error::{Error, Result};

pub(crate) use hash::{feature_hash, mix64};
pub(crate) use minhash::estimate_equal;
pub use recipe::EmptyDocuments;
pub(crate) use recipe::Recipe;
pub use signature::Signature;

/// Features that are held back before they are sketched, where they need not all be kept.
const PENDING_FEATURES: usize = 256;

/// Makes the signatures of one schema. Cheap to clone, safe to share between threads.
///
/// A document is a text, a set of features (any bytes, or ready-made 64-bit hashes), or a set of
/// weighted features. A feature's hash is XXH3-64 of its bytes, so a text and its shingles given as
/// features have the same signature. MinHash sees the set of the features; so does SimHash, unless
/// they are weighted. Neither depends on their order.
///
/// ```
/// use resemblance::{MinHash, Schema, Text};
///
/// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(128)).build()?;
/// let sketcher = schema.sketcher();
/// let a = sketcher.text("The cat sat.")?;
/// assert_eq!(a, sketcher.features(["cat sat", "the cat"])?);
/// assert_eq!(a.jaccard(&sketcher.text("the CAT -- sat")?)?, 1.0);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sketcher {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    recipe: Recipe,
    fingerprint: u64,
    minhash: Option<MinHasher>,
    simhash: Option<SimHasher>,
}

impl Sketcher {
    /// The sketcher of a recipe. Costs about a microsecond.
    #[cfg(test)]
    pub(crate) fn new(recipe: Recipe) -> Result<Self> {
        recipe.validate()?;
        Ok(Self::of_valid(recipe))
    }

    /// The sketcher of a recipe that has been validated.
    pub(crate) fn of_valid(recipe: Recipe) -> Self {
        let inner = Inner {
            fingerprint: recipe.fingerprint(),
            minhash: recipe
                .minhash_values
                .map(|values| MinHasher::new(recipe.seed, values)),
            simhash: recipe.simhash_bits.map(|_| SimHasher::new(recipe.seed)),
            recipe,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    pub(crate) fn recipe(&self) -> &Recipe {
        &self.inner.recipe
    }

    /// [`Recipe::fingerprint`], computed once: the mark of this sketcher's signatures.
    pub(crate) fn recipe_fingerprint(&self) -> u64 {
        self.inner.fingerprint
    }

    /// The signature of a text: of the set of its shingles.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the schema says nothing about texts.
    pub fn text(&self, text: &str) -> Result<Signature> {
        let Some(recipe) = self.inner.recipe.text else {
            return Err(Error::invalid(
                "text",
                "a text",
                "features, as the schema has no text",
            ));
        };
        let mut draft = self.draft();
        recipe.for_each_shingle(text, |shingle| draft.feature(shingle.as_bytes()));
        Ok(draft.finish())
    }

    /// The signature of a set of features, each any bytes. Repeats count once.
    ///
    /// # Errors
    ///
    /// None at present.
    pub fn features<I, F>(&self, features: I) -> Result<Signature>
    where
        I: IntoIterator<Item = F>,
        F: AsRef<[u8]>,
    {
        self.hashes(
            features
                .into_iter()
                .map(|feature| feature_hash(feature.as_ref())),
        )
    }

    /// The signature of a set of features that are hashed already, or are numbers. They need not be
    /// random: they are mixed with the schema's seed. Repeats count once.
    ///
    /// # Errors
    ///
    /// None at present.
    pub fn hashes(&self, hashes: impl IntoIterator<Item = u64>) -> Result<Signature> {
        let mut draft = self.draft();
        hashes.into_iter().for_each(|hash| draft.hash(hash));
        Ok(draft.finish())
    }

    /// The signature of weighted features, each any bytes with a weight of 0 to 65,536.
    ///
    /// Weights are rounded to a multiple of 2⁻¹⁶; a feature whose weight becomes 0 is absent, the
    /// weights of a repeated feature add up. SimHash uses the weights, MinHash sees the set of
    /// the features that are present.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if a weight is not a finite number of 0 to 65,536, or the
    /// weights of the document sum to 2⁴⁷ or more.
    pub fn weighted_features<I, F>(&self, features: I) -> Result<Signature>
    where
        I: IntoIterator<Item = (F, f64)>,
        F: AsRef<[u8]>,
    {
        let hashed = |(feature, weight): (F, f64)| (feature_hash(feature.as_ref()), weight);
        self.weighted_hashes(features.into_iter().map(hashed))
    }

    /// The signature of weighted features that are hashed already, or are numbers; otherwise as
    /// [`weighted_features`](Self::weighted_features).
    ///
    /// # Errors
    ///
    /// As [`weighted_features`](Self::weighted_features).
    pub fn weighted_hashes(
        &self,
        hashes: impl IntoIterator<Item = (u64, f64)>,
    ) -> Result<Signature> {
        let mut features = Vec::new();
        for (hash, weight) in hashes {
            let weight = simhash::quantise(weight)?;
            if weight > 0 {
                features.push((hash, weight));
            }
        }
        let total = simhash::merge(&mut features)?;
        let minima = self.inner.minhash.as_ref().map(|minhash| {
            let mut minima = minhash.minima();
            minhash.update(&mut minima, features.iter().map(|&(hash, _)| hash));
            minima
        });
        let fingerprint = self
            .inner
            .simhash
            .as_ref()
            .map(|s| s.weighted(&features, total));
        Ok(self.signature(minima, fingerprint, features.is_empty()))
    }

    /// A signature to which features are added one by one.
    pub(crate) fn draft(&self) -> Draft<'_> {
        Draft {
            sketcher: self,
            minima: self.inner.minhash.as_ref().map(MinHasher::minima),
            pending: Vec::with_capacity(PENDING_FEATURES),
            empty: true,
        }
    }

    fn signature(&self, minima: Option<Minima>, simhash: Option<u64>, empty: bool) -> Signature {
        let minhash = minima.map(|minima| minima.values());
        Signature::decode_parts(minhash, simhash, empty, Some(self.inner.fingerprint))
    }
}

/// An unweighted signature in the making. Without SimHash its memory does not grow; with SimHash,
/// which counts distinct features, it is 8 bytes a feature.
pub(crate) struct Draft<'a> {
    sketcher: &'a Sketcher,
    minima: Option<Minima>,
    pending: Vec<u64>,
    empty: bool,
}

impl Draft<'_> {
    /// Adds a feature by its bytes.
    #[inline]
    pub(crate) fn feature(&mut self, bytes: &[u8]) {
        self.hash(feature_hash(bytes));
    }

    /// Adds a feature by its hash.
    #[inline]
    pub(crate) fn hash(&mut self, hash: u64) {
        self.empty = false;
        self.pending.push(hash);
        if self.pending.len() >= PENDING_FEATURES && self.sketcher.inner.simhash.is_none() {
            self.update();
        }
    }

    fn update(&mut self) {
        if let (Some(minhash), Some(minima)) = (&self.sketcher.inner.minhash, &mut self.minima) {
            minhash.update(minima, self.pending.iter().copied());
        }
        self.pending.clear();
    }

    /// The signature of the features added.
    pub(crate) fn finish(mut self) -> Signature {
        let fingerprint = self.sketcher.inner.simhash.as_ref().map(|simhash| {
            self.pending.sort_unstable();
            self.pending.dedup();
            simhash.unweighted(&self.pending)
        });
        self.update();
        self.sketcher
            .signature(self.minima, fingerprint, self.empty)
    }
}
