//! Turns texts and features into signatures. All hashing here is frozen.

use std::io::Read;
use std::sync::Arc;

use super::containment::KeptHashes;
use super::draft::{SignatureDraft, StreamedText};
use super::exact::ExactSet;
use super::frequencies::DocumentFrequencies;
use super::hash::feature_hash;
use super::hash_functions::HashFunctions;
use super::recipe::{Recipe, RecipeMark};
use super::signature::Signature;
use super::simhash::{self, WeightedHash};
use crate::error::{Result, SketchError};
use crate::text::{Text, for_each_piece};

/// The estimated distance, in bytes, between the beginnings of two shingles of words.
pub(super) const BYTES_PER_SHINGLE: usize = 6;

/// The number of bits of an uncut MinHash value.
const WHOLE_VALUE_BITS: u8 = 32;

/// Makes the signatures of one schema. A sketcher is cheap to clone and safe to share between
/// threads.
///
/// A document is a text, a set of features (any bytes, or ready-made 64-bit hashes), or a set of
/// weighted features. A feature's hash is XXH3-64 of its bytes, so a text and its shingles passed
/// as features have the same signature. MinHash uses the set of features, and so does SimHash
/// unless features are weighted or [counted](crate::SimHash::term_counts). The order of features matters only to the kept hashes of
/// [`Containment`](crate::Containment).
///
/// ```
/// use resemblance_sketch::{MinHash, Schema, Text};
///
/// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(128)).build()?;
/// let sketcher = schema.sketcher();
/// let a = sketcher.text("The cat sat.")?;
/// assert_eq!(a, sketcher.features(["cat sat", "the cat"])?);
/// assert_eq!(a.jaccard(&sketcher.text("the CAT -- sat")?)?, 1.0);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sketcher {
    pub(super) functions: Arc<HashFunctions>,
}

impl Sketcher {
    /// Creates the sketcher of a recipe.
    #[cfg(test)]
    pub(super) fn new(recipe: Recipe) -> Result<Self> {
        recipe.validate()?;
        Ok(Self::from_valid(recipe, None, WHOLE_VALUE_BITS))
    }

    /// Creates the sketcher of a validated recipe, with MinHash values cut to `value_bits` bits.
    pub(crate) fn from_valid(
        recipe: Recipe,
        weights: Option<Arc<DocumentFrequencies>>,
        value_bits: u8,
    ) -> Self {
        Self {
            functions: Arc::new(HashFunctions::new(recipe, weights, value_bits)),
        }
    }

    /// Returns the same sketcher without cutting MinHash values.
    pub(super) fn whole(&self) -> Self {
        let weights = self.functions.weights.clone();
        Self::from_valid(self.recipe().clone(), weights, WHOLE_VALUE_BITS)
    }

    pub(super) fn recipe(&self) -> &Recipe {
        &self.functions.recipe
    }

    /// The mark that this sketcher puts on signatures.
    pub fn recipe_mark(&self) -> RecipeMark {
        self.functions.mark
    }

    /// Returns the signature of a text, which is that of the set of its shingles.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if the schema does not take texts, or the caller must
    /// provide its MinHash values.
    pub fn text(&self, text: &str) -> Result<Signature> {
        if let Some(weights) = &self.functions.weights {
            return self.weighted_text(text, weights);
        }
        let mut draft = self.text_draft(text)?;
        let (features, kept) = self.texts()?;
        let Some(mut selector) = self.functions.selector() else {
            each_shingle_of(&features, text, |shingle| draft.feature(shingle))?;
            return Ok(draft.finish());
        };
        if let Some(kept) = kept {
            each_shingle_of(&features, text, |shingle| draft.feature(shingle))?;
            each_shingle_of(&kept, text, |shingle| selector.push(feature_hash(shingle)))?;
        } else {
            each_shingle_of(&features, text, |shingle| {
                let hash = feature_hash(shingle);
                draft.hash(hash);
                selector.push(hash);
            })?;
        }
        Ok(draft.finish().with_kept(Some(selector.finish())))
    }

    /// Returns the signature of a text that is read piece by piece. It equals the signature of the
    /// whole text. The function never holds the whole text or all its shingles in memory;
    /// [`StreamedText`] documents the memory that it takes.
    ///
    /// # Errors
    ///
    /// The same as [`text`](Self::text); [`SketchError::Io`] if the reader fails;
    /// [`SketchError::NotUtf8`] with the position of the first invalid byte.
    ///
    /// ```
    /// use resemblance_sketch::{MinHash, Schema, Text};
    /// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(128)).build()?;
    /// let sketcher = schema.sketcher();
    /// let file: &[u8] = b"a text that is long";
    /// assert_eq!(sketcher.text_reader(file)?, sketcher.text("a text that is long")?);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn text_reader(&self, reader: impl Read) -> Result<Signature> {
        if self.functions.weights.is_some() {
            // How often each shingle occurs is known only at the end of the text.
            let mut whole = String::new();
            for_each_piece(reader, |piece| whole.push_str(piece))?;
            return self.text(&whole);
        }
        let mut text = self.streamed_text()?;
        for_each_piece(reader, |piece| text.push(piece))?;
        Ok(text.finish())
    }

    /// Begins the signature of a text that arrives in pieces.
    ///
    /// # Errors
    ///
    /// The same as [`text`](Self::text); [`SketchError::InvalidParameter`] if the schema has
    /// [weights](crate::Schema::with_weights), which require the whole text.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema, Text};
    /// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// let sketcher = schema.sketcher();
    /// let mut streamed = sketcher.streamed_text()?;
    /// for line in ["to be or not\n", "to be\n"] {
    ///     streamed.push(line);
    /// }
    /// assert_eq!(streamed.finish(), sketcher.text("to be or not to be")?);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn streamed_text(&self) -> Result<StreamedText<'_>> {
        let expected = "a whole text: the schema has weights";
        SketchError::require(self.functions.weights.is_none(), "text", "pieces", expected)?;
        let (features, kept) = self.texts()?;
        Ok(StreamedText {
            shingler: features.shingler()?,
            draft: self.draft(0)?,
            kept_shingler: kept.map(|kept| kept.shingler()).transpose()?,
            selector: self.functions.selector(),
        })
    }

    /// Returns the rules by which texts become features, and those for kept shingles if they
    /// differ.
    fn texts(&self) -> Result<(Text, Option<Text>)> {
        self.functions.texts().ok_or_else(no_text)
    }

    /// Returns the kept hashes of a text, or `None` without containment.
    pub(super) fn kept_of_text(&self, text: &str) -> Result<Option<KeptHashes>> {
        let Some(mut selector) = self.functions.selector() else {
            return Ok(None);
        };
        let (features, kept) = self.texts()?;
        let push = |shingle: &[u8]| selector.push(feature_hash(shingle));
        each_shingle_of(&kept.unwrap_or(features), text, push)?;
        Ok(Some(selector.finish()))
    }

    /// Returns the kept hashes of features in their order, or `None` without containment.
    fn kept_of_features(&self, hashes: impl Iterator<Item = u64>) -> Option<KeptHashes> {
        let mut selector = self.functions.selector()?;
        hashes.for_each(|hash| selector.push(hash));
        Some(selector.finish())
    }

    /// Calls `visit` with the bytes of each shingle of a text, in order and with repeats.
    pub(super) fn each_shingle(&self, text: &str, visit: impl FnMut(&[u8])) -> Result<()> {
        let recipe = self.functions.recipe.text.ok_or_else(no_text)?;
        each_shingle_of(&recipe, text, visit)
    }

    /// Returns the signature of a set of features; each is an arbitrary byte string. Repeats count
    /// once, unless the schema [counts](crate::SimHash::term_counts) them. With [`Containment`](crate::Containment), the features in their order are the shingles
    /// of the document.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if the caller must provide the schema's MinHash values.
    pub fn features<I, F>(&self, features: I) -> Result<Signature>
    where
        I: IntoIterator<Item = F>,
        F: AsRef<[u8]>,
    {
        let hashed = |feature: F| feature_hash(feature.as_ref());
        self.hashes(features.into_iter().map(hashed))
    }

    /// Returns the signature of a set of features that are given as hashes or other numbers. The
    /// numbers need not be random: they are mixed with the schema's seed. Repeats count once.
    ///
    /// # Errors
    ///
    /// The same as [`features`](Self::features).
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// let sketcher = Schema::builder().minhash(MinHash::new(128)).build()?.sketcher();
    /// let bought = [1_001, 7, 314]; // articles, by their numbers
    /// let signature = sketcher.hashes(bought)?;
    /// assert_eq!(signature, sketcher.hashes([7, 314, 1_001, 7])?);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn hashes(&self, hashes: impl IntoIterator<Item = u64>) -> Result<Signature> {
        let each = hashes.into_iter();
        if let Some(weights) = &self.functions.weights {
            let all: Vec<u64> = each.collect();
            let kept = self.kept_of_features(all.iter().copied());
            return Ok(self.weigh(all, weights)?.with_kept(kept));
        }
        let mut draft = self.draft(each.size_hint().0)?;
        let Some(mut selector) = self.functions.selector() else {
            each.for_each(|hash| draft.hash(hash));
            return Ok(draft.finish());
        };
        for hash in each {
            draft.hash(hash);
            selector.push(hash);
        }
        Ok(draft.finish().with_kept(Some(selector.finish())))
    }

    /// Returns the signature of weighted features. Each feature is a byte string with a weight of 0
    /// to 65,536.
    ///
    /// Weights are rounded to multiples of 2⁻¹⁶. A feature whose weight becomes 0 is absent, and
    /// the weights of a repeated feature add up. SimHash uses the weights. MinHash uses the set of
    /// features that are present, or the weights if it is weighted.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if a weight is not a number from 0 to 65,536, or if the
    /// weights of the document add up to 2⁴⁷ or more. If the schema has SimHash alone, a weight may
    /// be negative as well, from −65,536 on: fingerprints are signs of projections of any vector.
    ///
    /// ```
    /// # use resemblance_sketch::{Schema, SimHash};
    /// let sketcher = Schema::builder().simhash(SimHash::bits64()).build()?.sketcher();
    /// let page = sketcher.weighted_features([("title", 5.0), ("body", 1.0)])?;
    /// let same = sketcher.weighted_features([("body", 1.0), ("title", 5.0), ("foot", 0.0)])?;
    /// assert_eq!(page.hamming(&same)?, 0);
    /// let opposite = sketcher.weighted_features([("title", -5.0), ("body", -1.0)])?;
    /// assert_eq!(page.hamming(&opposite)?, 64);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn weighted_features<I, F>(&self, features: I) -> Result<Signature>
    where
        I: IntoIterator<Item = (F, f64)>,
        F: AsRef<[u8]>,
    {
        let hashed = |(feature, weight): (F, f64)| (feature_hash(feature.as_ref()), weight);
        self.weighted_hashes(features.into_iter().map(hashed))
    }

    /// Returns the signature of weighted features that are given as hashes or other numbers.
    /// Otherwise it does the same as [`weighted_features`](Self::weighted_features).
    ///
    /// # Errors
    ///
    /// The same as [`weighted_features`](Self::weighted_features).
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// let sketcher = Schema::builder().minhash(MinHash::weighted(128)).build()?.sketcher();
    /// let twice = sketcher.weighted_hashes([(7, 1.5), (8, 1.0), (7, 1.5)])?;
    /// assert_eq!(twice, sketcher.weighted_hashes([(7, 3.0), (8, 1.0)])?);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn weighted_hashes(
        &self,
        hashes: impl IntoIterator<Item = (u64, f64)>,
    ) -> Result<Signature> {
        if self.functions.takes_negative_weights() {
            return self.signed(hashes);
        }
        let features = self.present(hashes)?;
        let kept = self.kept_of_features(features.iter().map(|(hash, _)| *hash));
        Ok(self.weighted(features)?.with_kept(kept))
    }

    /// Returns the fingerprint of features with positive and negative weights.
    fn signed(&self, hashes: impl IntoIterator<Item = (u64, f64)>) -> Result<Signature> {
        let mut features = Vec::new();
        for (hash, weight) in hashes {
            let steps = simhash::quantise(weight.abs())? as i64;
            features.push((hash, if weight < 0.0 { -steps } else { steps }));
        }
        let total = simhash::merge_signed(&mut features)?;
        let simhash = self.functions.simhash.as_ref();
        let fingerprint = simhash.map(|simhash| simhash.signed(&features, total));
        Ok(self
            .functions
            .signature(None, fingerprint, features.is_empty()))
    }

    /// Returns the features that are present, with their weights in whole steps.
    pub(super) fn present(
        &self,
        hashes: impl IntoIterator<Item = (u64, f64)>,
    ) -> Result<Vec<WeightedHash>> {
        let mut features = Vec::new();
        for (hash, weight) in hashes {
            let weight = simhash::quantise(weight)?;
            if weight > 0 {
                features.push((hash, weight));
            }
        }
        Ok(features)
    }

    /// Returns the signature of weighted features, without kept hashes.
    pub(super) fn weighted(&self, mut features: Vec<WeightedHash>) -> Result<Signature> {
        self.functions.check_makes_signatures()?;
        let total = simhash::merge(&mut features)?;
        let minhash = self.functions.minhash.as_ref();
        let values = minhash.map(|minhash| minhash.weighted(&features));
        let simhash = self.functions.simhash.as_ref();
        let fingerprint = simhash.map(|simhash| simhash.weighted(&features, total));
        let is_empty = features.is_empty();
        let signature = self.functions.signature(values, fingerprint, is_empty);
        Ok(signature.with_set(self.functions.weighted_set(&features)))
    }

    /// Returns the signature of a dense vector, in a schema with [vectors](crate::Vector) alone.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if the schema has no vectors, or something beside them;
    /// for another number of dimensions, for numbers that are not finite, and for zeros alone if
    /// the measure is the cosine.
    ///
    /// ```
    /// use resemblance_sketch::{Schema, Vector};
    /// let sketcher = Schema::builder().vector(Vector::cosine(3)).build()?.sketcher();
    /// let signature = sketcher.vector(&[1.0, 2.0, 2.0])?;
    /// assert_eq!(signature.vector(), Some(&[1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0][..]));
    /// assert!(sketcher.vector(&[0.0; 3]).is_err() && sketcher.vector(&[f32::NAN; 3]).is_err());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn vector(&self, components: &[f32]) -> Result<Signature> {
        let expected = "a vector with what else the schema has: see Sketcher::with_vector";
        let is_alone = self.functions.beside_vector.is_none();
        SketchError::require(is_alone, "document", "a vector alone", expected)?;
        self.of_vector(components)
    }

    /// Returns the sketcher of what documents have beside vectors. Pass its signatures to
    /// [`with_vector`](Self::with_vector). Returns `None` if documents have vectors alone, or none.
    ///
    /// ```
    /// use resemblance_sketch::{Schema, SimHash, Text, Vector};
    /// let schema = Schema::builder().text(Text::words(2)).simhash(SimHash::bits64());
    /// let sketcher = schema.vector(Vector::cosine(2)).build()?.sketcher();
    /// let text = sketcher.beside_vector().expect("it has texts").text("a text with a vector")?;
    /// let both = sketcher.with_vector(text, &[3.0, 4.0])?;
    /// assert!(both.fingerprint().is_some() && both.vector().is_some());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn beside_vector(&self) -> Option<Self> {
        let functions = self.functions.beside_vector.clone()?;
        Some(Self { functions })
    }

    /// Adds a vector to a signature that the [sketcher of the rest](Self::beside_vector) made.
    ///
    /// # Errors
    ///
    /// The same as [`vector`](Self::vector); [`SketchError::SignatureMismatch`] for a signature of
    /// another recipe; [`SketchError::InvalidParameter`] for a document without features: it would
    /// be near by its vector, but no document without features is near another one.
    pub fn with_vector(&self, rest: Signature, components: &[f32]) -> Result<Signature> {
        let beside = self.functions.beside_vector.as_ref();
        if beside.map(|beside| beside.mark) != rest.recipe_mark() {
            let expected = "what beside_vector of the same schema made";
            return Err(SketchError::signature("recipe", "another one", expected));
        }
        let expected = "at least one feature beside the vector";
        SketchError::require(!rest.is_empty(), "document", "no features", expected)?;
        Ok(self.of_vector(components)?.with_rest_of(rest))
    }

    pub(super) fn of_vector(&self, components: &[f32]) -> Result<Signature> {
        let vectors = self.functions.vectors.as_ref();
        let found = "a vector";
        let expected = "a schema with vectors";
        let vectors = vectors.ok_or_else(|| SketchError::invalid("document", found, expected))?;
        let (values, kept) = vectors.hash(components)?;
        let signature = Signature::new(Some(values), None, false, Some(self.functions.mark));
        Ok(signature.with_set(kept.map(ExactSet::of_vector)))
    }

    /// Returns true if this sketcher makes signatures, and false if the caller provides them.
    pub(super) fn makes_signatures(&self) -> bool {
        self.functions.check_makes_signatures().is_ok()
    }

    /// Returns a draft of the signature of a text, to which its features will be added one by one.
    pub(super) fn text_draft(&self, text: &str) -> Result<SignatureDraft<'_>> {
        self.draft(text.len() / BYTES_PER_SHINGLE)
    }

    /// Returns a draft of a signature to which about `features` features will be added one by one.
    fn draft(&self, features: usize) -> Result<SignatureDraft<'_>> {
        self.functions.check_makes_signatures()?;
        Ok(SignatureDraft::new(&self.functions, features))
    }
}

/// Calls `visit` with the bytes of each shingle of a text, in order and with repeats.
fn each_shingle_of(recipe: &Text, text: &str, mut visit: impl FnMut(&[u8])) -> Result<()> {
    let mut shingler = recipe.shingler()?;
    shingler.push(text, &mut visit);
    shingler.finish(visit);
    Ok(())
}

fn no_text() -> SketchError {
    SketchError::invalid("text", "a text", "features, as the schema has no text")
}

/// Returns the MinHash values that each kernel of this processor computes for some features. They
/// must be equal. For tests.
#[doc(hidden)]
#[must_use]
pub fn values_by_every_kernel(
    seed: u64,
    values: u16,
    permutations: super::minhash::Permutations,
    hashes: &[u64],
) -> Vec<Vec<u32>> {
    let kernels = super::minhash::Kernel::available();
    let values = kernels.map(|(_, kernel)| {
        let hasher = super::minhash::MinHasher::with_kernel(seed, values, permutations, kernel);
        let mut minima = hasher.minima();
        hasher.update(&mut minima, hashes);
        minima.values()
    });
    values.collect()
}
