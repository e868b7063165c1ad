//! Signatures.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use xxhash_rust::xxh3::xxh3_128;

use super::bottom_k;
use super::containment::{KeptHashes, KeptShingle};
use super::exact::ExactSet;
use super::hash::mix64;
use super::recipe::RecipeMark;
use super::values::{MinHashValues, ValueLayout};
use crate::error::{Result, SketchError};
use crate::fingerprint::Fingerprint;

/// A compact representation of a document for comparison: MinHash values, a SimHash fingerprint, or
/// both, and the kept hashes that find shared passages.
///
/// A [`Sketcher`](crate::Sketcher) makes signatures and marks them with its recipe, which prevents
/// comparing signatures of different recipes. To create a signature from the values of another
/// program, use [`from_minhash`](Self::from_minhash), [`from_bottom_k`](Self::from_bottom_k),
/// [`from_simhash`](Self::from_simhash), [`from_fingerprint`](Self::from_fingerprint) and
/// [`from_parts`](Self::from_parts). Such signatures are unmarked, and the caller must ensure that
/// they can be compared.
///
/// A document without features has an *empty* signature: all MinHash values are `u32::MAX`
/// (bottom-k has no values), and the fingerprint is 0. [`is_empty`](Self::is_empty) distinguishes
/// it from a document that has these values by chance.
///
/// ```
/// use resemblance_sketch::Signature;
///
/// let a = Signature::from_parts(Some(vec![1, 2, 3, 4]), Some(0b1011));
/// let b = Signature::from_parts(Some(vec![1, 2, 3, 9]), Some(0b0001));
/// assert_eq!(a.jaccard(&b)?, 0.75);
/// assert_eq!(a.hamming(&b)?, 2);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[doc(alias("sketch"))]
#[derive(Clone)]
pub struct Signature {
    values: Option<MinHashValues>,
    simhash: Option<Fingerprint>,
    is_empty: bool,
    /// The kept hashes; `None` without containment.
    kept: Option<KeptHashes>,
    /// The set of all features. `None` if the schema is not exact, or if the kept hashes are the
    /// set.
    set: Option<Box<ExactSet>>,
    /// The recipe that made the signature; `None` if the caller provided its parts.
    recipe: Option<RecipeMark>,
}

/// Prints the kind and the number of the values, the first values, and the fingerprint.
impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Signature");
        if let Some(values) = &self.values {
            let (kind, first) = values.first_values();
            let text = format_args!("{} {kind}, {first:x?}…", values.count());
            shown.field("values", &text);
        }
        if let Some(fingerprint) = &self.simhash {
            shown.field("fingerprint", &format_args!("{fingerprint}"));
        }
        if let Some(kept) = &self.kept {
            shown.field("kept_hashes", &kept.hashes.len());
        }
        if let Some(set) = &self.set {
            shown.field("exact_set", &set.hashes().len());
        }
        shown.field("is_empty", &self.is_empty).finish()
    }
}

/// Signatures are equal if their values, kept hashes, kept positions and exact sets are equal. Their recipes do
/// not count: a signature of a sketcher equals one made from the same parts.
impl PartialEq for Signature {
    fn eq(&self, other: &Self) -> bool {
        self.compared() == other.compared()
    }
}

impl Eq for Signature {}

impl Hash for Signature {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.compared().hash(state);
    }
}

// Hidden methods serve the crates that store signatures. Their callers have checked that the layout
// fits, or that the parts belong together.
impl Signature {
    /// Returns a hash of the whole signature, to use as a key among signatures of one schema. Equal
    /// signatures have equal digests. Among a hundred million different signatures, the probability
    /// that any two digests agree is 10⁻²³. Section 14 of `format-spec.md` specifies it.
    ///
    /// ```
    /// use resemblance_sketch::{MinHash, Schema, Text};
    /// let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
    /// let sketcher = schema.sketcher();
    /// let digests = [sketcher.text("a b c")?.digest(), sketcher.text("c b a")?.digest()];
    /// assert_eq!(digests[0], digests[1]);
    /// assert_ne!(digests[0], sketcher.text("a b d")?.digest());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn digest(&self) -> u128 {
        let value_bits = self.value_bits().map_or(0, u8::from);
        // The number of bytes distinguishes a width of 256 bits from no fingerprint.
        let simhash_bits = self.simhash_bits().map_or(0, |bits| bits as u8);
        let mut bytes = vec![value_bits, simhash_bits, u8::from(self.is_empty())];
        self.append_values(&mut bytes);
        if let Some(fingerprint) = self.fingerprint() {
            fingerprint.append_le_bytes(&mut bytes);
            let width = bytes.len() + 16_usize.saturating_sub(usize::from(fingerprint.bits() / 8));
            bytes.resize(width, 0);
        }
        for hash in self.kept_hashes().into_iter().flatten() {
            bytes.extend(hash.to_le_bytes());
        }
        for (position, hash) in self.placed_shingles().into_iter().flatten() {
            bytes.extend(position.to_le_bytes());
            bytes.extend(hash.to_le_bytes());
        }
        for number in self
            .set
            .iter()
            .flat_map(|set| set.hashes().iter().chain(set.weights()))
        {
            bytes.extend(number.to_le_bytes());
        }
        for component in self.vector().into_iter().flatten() {
            bytes.extend(component.to_le_bytes());
        }
        xxh3_128(&bytes)
    }

    /// Creates a signature from MinHash values of another program, which are minima of hash
    /// functions.
    ///
    /// Pass all 32 bits of each value. The values of a signature that a schema made are usually
    /// cut; use [`Schema::signature_of_values`](crate::Schema::signature_of_values) for them.
    ///
    /// ```
    /// let signature = resemblance_sketch::Signature::from_minhash(vec![7; 128]);
    /// assert_eq!(signature.minhash().map(<[u32]>::len), Some(128));
    /// ```
    #[must_use]
    #[inline]
    pub fn from_minhash(values: Vec<u32>) -> Self {
        Self::from_parts(Some(values), None)
    }

    /// Creates a signature from values that have the bits of a layout, or more, which are then cut.
    /// If all values fit the bits of the layout, they count as cut already. Whole values fit by
    /// chance with a probability of 2⁻¹⁶ for each value, or less.
    pub(crate) fn of_values(
        layout: ValueLayout,
        values: Vec<u32>,
        are_samples: bool,
        recipe: RecipeMark,
    ) -> Self {
        let values = MinHashValues::of_layout(layout, values, are_samples);
        let is_empty = values.are_of_no_features(layout);
        Self::new(Some(values), None, is_empty, Some(recipe))
    }

    /// Creates a signature from 64-bit MinHash values of another program. A hash reduces each value
    /// to 32 bits. Equal values remain equal, and different values become equal with probability
    /// 2⁻³². The results are not minima, so such signatures cannot be [merged](Self::merge).
    ///
    /// ```
    /// use resemblance_sketch::Signature;
    /// let a = Signature::from_minhash64(&[1, 2, 3, u64::MAX]);
    /// let b = Signature::from_minhash64(&[1, 2, 4, u64::MAX]);
    /// assert_eq!(a.jaccard(&b)?, 0.75);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn from_minhash64(values: &[u64]) -> Self {
        let cut = |value: &u64| (mix64(*value) >> 32) as u32;
        let values = MinHashValues::Samples(values.iter().map(cut).collect());
        Self::new(Some(values), None, false, None)
    }

    /// Creates a bottom-k signature from the smallest hashes of a set. It keeps the `max_count`
    /// smallest, sorted and without repeats. If there are fewer hashes than `max_count`, they count
    /// as all hashes of the set. `u64::MAX` counts as `u64::MAX − 1`.
    ///
    /// ```
    /// use resemblance_sketch::Signature;
    /// let a = Signature::from_bottom_k(4, vec![1, 3, 5, 7]);
    /// let b = Signature::from_bottom_k(4, vec![1, 2, 5, 9]);
    /// // Of the union's smallest four, 1 2 3 5, both have two.
    /// assert_eq!(a.jaccard(&b)?, 0.5);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn from_bottom_k(max_count: u16, mut hashes: Vec<u64>) -> Self {
        for hash in &mut hashes {
            *hash = (*hash).min(u64::MAX - 1);
        }
        hashes.sort_unstable();
        hashes.dedup();
        hashes.truncate(max_count.into());
        let is_empty = hashes.is_empty();
        Self::new(
            Some(MinHashValues::Smallest { max_count, hashes }),
            None,
            is_empty,
            None,
        )
    }

    /// Creates a signature from a 64-bit SimHash fingerprint of another program.
    ///
    /// ```
    /// let signature = resemblance_sketch::Signature::from_simhash(0xdead_beef);
    /// assert_eq!(signature.simhash(), Some(0xdead_beef));
    /// ```
    #[must_use]
    #[inline]
    pub fn from_simhash(fingerprint: u64) -> Self {
        Self::from_parts(None, Some(fingerprint))
    }

    /// Creates a signature from a fingerprint of any width that another program computed, such as a
    /// perceptual hash of an image.
    ///
    /// ```
    /// use resemblance_sketch::{Fingerprint, Signature};
    /// let a = Signature::from_fingerprint([0x0f; 32]);
    /// let b = Signature::from_fingerprint("0e".repeat(32).parse::<Fingerprint>()?);
    /// assert_eq!((a.fingerprint().unwrap().bits(), a.hamming(&b)?), (256, 32));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn from_fingerprint(fingerprint: impl Into<Fingerprint>) -> Self {
        Self::new(None, Some(fingerprint.into()), false, None)
    }

    /// Creates a signature from MinHash values, a SimHash fingerprint, or both.
    ///
    /// If all MinHash values are `u32::MAX`, as other libraries represent a document without
    /// features, the signature is [empty](Self::is_empty). An empty list of values is the same as
    /// `None`.
    #[must_use]
    #[inline]
    pub fn from_parts(minhash: Option<Vec<u32>>, simhash: Option<u64>) -> Self {
        let values = minhash.filter(|values| !values.is_empty());
        let has_no_features = |values: &Vec<u32>| values.iter().all(|value| *value == u32::MAX);
        let is_empty = values.as_ref().is_some_and(has_no_features);
        let minima = values.map(MinHashValues::Minima);
        Self::new(minima, simhash.map(Fingerprint::from), is_empty, None)
    }

    /// Returns this signature with the fingerprint of another one.
    ///
    /// ```
    /// use resemblance_sketch::Signature;
    /// let fingerprint = Signature::from_fingerprint(7_u128);
    /// let both = Signature::from_bottom_k(4, vec![1, 2]).with_simhash_of(&fingerprint);
    /// assert_eq!(both.simhash(), Some(7));
    /// ```
    #[must_use]
    #[inline]
    pub fn with_simhash_of(mut self, other: &Self) -> Self {
        self.simhash = other.simhash;
        self
    }

    /// Creates a signature from its parts, marked with the recipe that made them.
    #[inline]
    pub(crate) fn new(
        values: Option<MinHashValues>,
        simhash: Option<Fingerprint>,
        is_empty: bool,
        recipe: Option<RecipeMark>,
    ) -> Self {
        Self {
            values: values.filter(|values| values.shape().0 > 0),
            simhash,
            is_empty,
            kept: None,
            set: None,
            recipe,
        }
    }

    /// Returns this signature with this exact set.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn with_set(self, set: Option<ExactSet>) -> Self {
        Self {
            set: set.map(Box::new),
            ..self
        }
    }

    /// Returns the set of all features, if the schema is [exact](crate::SchemaBuilder::exact). Also
    /// returns `None` if the [kept hashes](Self::kept_hashes) are this set: it is kept only once.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(64)).exact().build()?;
    /// let signature = schema.sketcher().hashes([1, 2, 3])?;
    /// assert_eq!(signature.exact_set().map(|set| set.hashes().len()), Some(3));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn exact_set(&self) -> Option<&ExactSet> {
        self.set.as_deref()
    }

    /// Returns the vector that a schema with [vectors](crate::Vector) keeps: scaled to length 1 if
    /// the measure is the cosine, and rounded to the form that is kept.
    #[must_use]
    pub fn vector(&self) -> Option<&[f32]> {
        let vector = self.set.as_ref().and_then(|set| set.vector());
        vector.map(|vector| vector.components())
    }

    /// Returns this signature with the fingerprint and the kept hashes of another one.
    pub(super) fn with_rest_of(self, rest: Self) -> Self {
        Self {
            simhash: rest.simhash,
            kept: rest.kept,
            ..self
        }
    }

    /// Returns this signature with these kept hashes.
    #[doc(hidden)]
    #[inline]
    pub fn with_kept(self, kept: Option<KeptHashes>) -> Self {
        Self { kept, ..self }
    }

    /// Returns the distinct hashes of the kept shingles, which find shared passages. They are
    /// ascending, and each is below 2⁴⁴. Returns `None` if the schema has no
    /// [`Containment`](crate::Containment).
    ///
    /// ```
    /// # use resemblance_sketch::{Containment, Schema, Text};
    /// let containment = Containment::new(2).window(1); // keeps all shingles
    /// let schema = Schema::builder().text(Text::words(2)).containment(containment).build()?;
    /// let signature = schema.sketcher().text("to be or not to be")?;
    /// assert_eq!(signature.kept_hashes().map(<[u64]>::len), Some(4)); // "to be" comes twice
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn kept_hashes(&self) -> Option<&[u64]> {
        self.kept.as_ref().map(|kept| &*kept.hashes)
    }

    /// Returns the kept shingles in the order of the document. The result is empty if their
    /// positions are unknown.
    #[doc(hidden)]
    #[inline]
    pub fn kept_shingles(&self) -> &[KeptShingle] {
        self.kept.as_ref().map_or(&[], |kept| &kept.shingles)
    }

    /// Returns the kept shingles if their positions are part of the signature.
    #[inline]
    pub fn placed_shingles(&self) -> Option<&[KeptShingle]> {
        let placed = self.kept.as_ref().filter(|kept| kept.are_placed);
        placed.map(|kept| &*kept.shingles)
    }

    /// Creates a signature from parts that may contradict each other, for tests.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn with_all(
        minhash: Option<Vec<u32>>,
        simhash: Option<u64>,
        is_empty: bool,
        recipe: Option<RecipeMark>,
    ) -> Self {
        Self {
            is_empty,
            recipe,
            ..Self::from_parts(minhash, simhash)
        }
    }

    /// Decodes a stored signature. `minhash` holds the layout and the bytes of its MinHash values,
    /// and whether they are samples rather than minima.
    #[doc(hidden)]
    #[inline]
    pub fn decode(
        values: Option<(ValueLayout, &[u8], bool)>,
        simhash: Option<Fingerprint>,
        is_empty: bool,
        recipe: Option<RecipeMark>,
    ) -> Self {
        let values = values
            .map(|(layout, bytes, are_samples)| MinHashValues::decode(layout, bytes, are_samples));
        Self::new(values, simhash, is_empty, recipe)
    }

    /// Returns the MinHash values, or `None` if there are none or they are bottom-k. Values of b
    /// [bits](Self::value_bits) are below 2ᵇ.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// let sketcher = Schema::builder().minhash(MinHash::new(64)).build()?.sketcher();
    /// let signature = sketcher.hashes([1, 2, 3])?;
    /// let values = signature.minhash().expect("it has MinHash values");
    /// assert!(values.len() == 64 && values.iter().all(|&value| value < 1 << 16));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn minhash(&self) -> Option<&[u32]> {
        self.values.as_ref().and_then(MinHashValues::words)
    }

    /// Returns the hashes of a bottom-k signature in ascending order.
    ///
    /// ```
    /// # use resemblance_sketch::Signature;
    /// let signature = Signature::from_bottom_k(64, vec![9, 3, 3]);
    /// assert_eq!(signature.bottom_k(), Some(&[3, 9][..]));
    /// ```
    #[must_use]
    #[inline]
    pub fn bottom_k(&self) -> Option<&[u64]> {
        self.values.as_ref().and_then(MinHashValues::hashes)
    }

    /// Returns the number of bits of a MinHash value: 32, fewer if values were cut, or 64 for
    /// bottom-k.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema, Signature};
    /// let sketcher = Schema::builder().minhash(MinHash::new(64)).build()?.sketcher();
    /// assert_eq!(sketcher.hashes([1, 2, 3])?.value_bits(), Some(16));
    /// assert_eq!(Signature::from_minhash(vec![7; 64]).value_bits(), Some(32));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn value_bits(&self) -> Option<u8> {
        self.values.as_ref().map(|values| values.shape().1)
    }

    /// Returns the SimHash fingerprint as a number, which is below 2⁶⁴ for 64 bits. Returns `None`
    /// without a fingerprint, and for 256 bits; [`fingerprint`](Self::fingerprint) returns
    /// fingerprints of every width.
    ///
    /// ```
    /// # use resemblance_sketch::{Schema, SimHash};
    /// let sketcher = Schema::builder().simhash(SimHash::bits64()).build()?.sketcher();
    /// let fingerprint = sketcher.hashes([1, 2, 3])?.simhash().expect("it has a fingerprint");
    /// assert!(fingerprint < 1 << 64);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn simhash(&self) -> Option<u128> {
        self.simhash.and_then(|fingerprint| fingerprint.number())
    }

    /// The fingerprint, if there is one.
    ///
    /// ```
    /// # use resemblance_sketch::Signature;
    /// let signature = Signature::from_fingerprint([0xab; 32]);
    /// assert_eq!(signature.fingerprint().map(|one| one.to_string()), Some("ab".repeat(32)));
    /// ```
    #[must_use]
    #[inline]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.simhash
    }

    /// The width of the fingerprint in bits, if there is one.
    #[inline]
    pub fn simhash_bits(&self) -> Option<u16> {
        self.simhash.map(|fingerprint| fingerprint.bits())
    }

    /// Returns true for the signature of a document without features.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema, Text};
    /// let schema = Schema::builder().text(Text::words(3)).minhash(MinHash::new(64)).build()?;
    /// assert!(schema.sketcher().text("...")?.is_empty()); // not a single word
    /// assert!(!schema.sketcher().text("word")?.is_empty());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// The recipe that made the signature; `None` if the caller provided its parts.
    #[doc(hidden)]
    #[inline]
    pub fn recipe_mark(&self) -> Option<RecipeMark> {
        self.recipe
    }

    /// Returns the rows from which codes of bands are computed, for values in this layout. Returns
    /// none without MinHash values.
    #[doc(hidden)]
    #[inline]
    pub fn rows(&self, layout: Option<ValueLayout>) -> Cow<'_, [u32]> {
        let kept = |values| layout.and_then(|layout| MinHashValues::kept(values, layout));
        match &self.values {
            Some(MinHashValues::Smallest { max_count, hashes }) => {
                let count = usize::from(bottom_k::row_count(*max_count));
                Cow::Owned(bottom_k::rows(hashes, count))
            }
            Some(values) => kept(values).unwrap_or(Cow::Borrowed(&[])),
            None => Cow::Borrowed(&[]),
        }
    }

    /// The number of MinHash values (or the maximum number of hashes), and the bits of each.
    #[doc(hidden)]
    #[inline]
    pub fn value_shape(&self) -> Option<(usize, u8)> {
        self.values.as_ref().map(MinHashValues::shape)
    }

    /// The number of MinHash values or hashes.
    #[doc(hidden)]
    #[inline]
    pub fn value_count(&self) -> usize {
        self.values.as_ref().map_or(0, MinHashValues::count)
    }

    /// Appends the bytes of the MinHash values, which must fit the layout.
    #[doc(hidden)]
    #[inline]
    pub fn encode_values(&self, layout: ValueLayout, bytes: &mut Vec<u8>) {
        if let Some(values) = &self.values {
            values.encode(layout, bytes);
        }
    }

    /// Returns the agreement of the MinHash values with stored ones of the same layout; see
    /// [`ValueLayout::agreement`]. Returns 0 without values.
    #[doc(hidden)]
    #[inline]
    pub fn agreement_with(&self, layout: ValueLayout, stored: &[u8]) -> usize {
        let values = self.values.as_ref();
        values.map_or(0, |values| values.agreement_with(layout, stored))
    }

    /// Returns the agreement of the MinHash values with those of another signature of the same
    /// layout. Returns 0 without values of this kind in both.
    #[inline]
    pub fn agreement(&self, layout: ValueLayout, other: &Self) -> usize {
        let values = self.values.as_ref().zip(other.values.as_ref());
        values.map_or(0, |(own, other)| own.agreement(layout, other))
    }

    /// Estimates the Jaccard similarity of the two documents' sets of features, 0 to 1. The
    /// estimate is the share of equal MinHash values (Broder 1997), corrected for values that are
    /// equal by chance if they were cut to b bits (Li and König 2010). For bottom-k it is the share
    /// of the union's smallest hashes that both signatures have.
    ///
    /// The standard deviation is √(J (1 − J) / k) for k values: 0.035 at J = 0.8 and k = 128.
    /// Values have 32 bits, so the estimate is too high by at most about (1 − J) n / 2³³ for n
    /// distinct features in both documents (0.0001 at a million). Two empty signatures have
    /// similarity 1; an empty one and a nonempty one have 0.
    ///
    /// # Errors
    ///
    /// [`SketchError::SignatureMismatch`] if a signature has no MinHash values; if the numbers of
    /// values differ; if the signatures are marked with different recipes; or if one was made
    /// without a schema and a schema cut the other. If one signature has more bits for each value,
    /// its values are cut for the comparison.
    #[inline]
    pub fn jaccard(&self, other: &Self) -> Result<f64> {
        Ok(self.jaccard_unclamped(other)?.clamp(0.0, 1.0))
    }

    /// Returns the estimate before it is clamped to [0, 1]. It is unbiased, so sums and means of
    /// many estimates are right. With cut values it may be negative.
    ///
    /// # Errors
    ///
    /// The same as [`jaccard`](Self::jaccard).
    ///
    /// ```
    /// use resemblance_sketch::Signature;
    /// let (a, b) = (Signature::from_minhash(vec![1; 16]), Signature::from_minhash(vec![2; 16]));
    /// assert_eq!(a.jaccard_unclamped(&b)?, 0.0);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[inline]
    pub fn jaccard_unclamped(&self, other: &Self) -> Result<f64> {
        self.check_recipe(other)?;
        self.check_unmixed(other)?;
        let estimate = self.values()?.estimate(other.values()?)?;
        Ok(match (self.is_empty, other.is_empty) {
            (true, true) => 1.0,
            (true, false) | (false, true) => 0.0,
            (false, false) => estimate,
        })
    }

    /// Returns the signature of the union of both documents' features, computed from the signatures
    /// alone: the smaller value at each position, or the smallest hashes of both for bottom-k.
    ///
    /// # Errors
    ///
    /// [`SketchError::SignatureMismatch`] if the signature of the union does not follow from the
    /// two signatures. That is the case for kept hashes and exact sets, for SimHash fingerprints, without MinHash
    /// values, and for values that cannot be ordered: weighted or cut ones (a schema keeps 16 bits
    /// unless its [value bits](crate::MinHash::value_bits) are 32). Also if the signatures are
    /// marked with different recipes.
    ///
    /// ```
    /// use resemblance_sketch::{MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(64).value_bits(32)).build()?;
    /// let sketcher = schema.sketcher();
    /// let union = sketcher.features(["a", "b"])?.merge(&sketcher.features(["b", "c"])?)?;
    /// assert_eq!(union, sketcher.features(["a", "b", "c"])?);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[inline]
    pub fn merge(&self, other: &Self) -> Result<Self> {
        self.check_recipe(other)?;
        if self.simhash.is_some() || other.simhash.is_some() {
            let (part, expected) = ("SimHash fingerprint", "none: fingerprints cannot be merged");
            return Err(SketchError::signature(part, "one", expected));
        }
        if self.kept.is_some() || other.kept.is_some() {
            let expected = "none: those of a union do not follow from those of its parts";
            return Err(SketchError::signature("kept hashes", "some", expected));
        }
        if self.set.is_some() || other.set.is_some() {
            let expected = "none: make the signature of the union of the features";
            return Err(SketchError::signature("exact set", "one", expected));
        }
        let merged = self.values()?.merge(other.values()?)?;
        let is_empty = self.is_empty && other.is_empty;
        let recipe = self.recipe.or(other.recipe);
        Ok(Self::new(Some(merged), None, is_empty, recipe))
    }

    /// Returns this signature with its MinHash values cut to `bits` bits: 1, 2, 4, 8 or 16. A
    /// schema with that number of [value bits](crate::MinHash::value_bits) makes the same
    /// signature.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] for another number of bits.
    /// [`SketchError::SignatureMismatch`] if there are no MinHash values with more bits: there are
    /// no values, they are bottom-k, or they were cut to `bits` or fewer.
    ///
    /// ```
    /// use resemblance_sketch::{MinHash, Schema};
    /// let sketcher = Schema::builder().minhash(MinHash::new(64)).build()?.sketcher();
    /// let (a, b) = (sketcher.features(["a", "b"])?, sketcher.features(["b", "c"])?);
    /// assert_eq!(a.cut(1)?.value_bits(), Some(1));
    /// assert_eq!(a.cut(1)?.jaccard(&b.cut(1)?)?, a.cut(1)?.jaccard(&b)?);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[inline]
    pub fn cut(&self, bits: u8) -> Result<Self> {
        let expected = "1, 2, 4, 8 or 16";
        SketchError::require([1, 2, 4, 8, 16].contains(&bits), "bits", bits, expected)?;
        let is_wider = |values: &MinHashValues| values.is_wider_than(bits);
        if !self.values.as_ref().is_some_and(is_wider) {
            let found = format!("none of more than {bits} bits");
            let expected = format!("MinHash values of more than {bits} bits");
            return Err(SketchError::signature("MinHash values", found, expected));
        }
        Ok(self.clone().into_cut(bits))
    }

    /// Returns the document as a sparse vector for linear models (Li, Shrivastava, Moore and König,
    /// *Hashing algorithms for large-scale learning*, 2011). For k values of b
    /// [bits](Self::value_bits), the vector has 2ᵇ · k entries, of which k are 1 and the others 0.
    /// The result lists the positions of the ones in ascending order: position i is 2ᵇ · i + value
    /// i. The inner product of two such vectors is the number of equal values, so a linear model
    /// learns with the similarity as its kernel. [`cut`](Self::cut) makes shorter vectors. A
    /// document without features has no ones.
    ///
    /// # Errors
    ///
    /// [`SketchError::SignatureMismatch`] if there are no MinHash values, or they are bottom-k.
    ///
    /// ```
    /// use resemblance_sketch::Signature;
    /// let signature = Signature::from_minhash(vec![7, 0, 9]).cut(4)?;
    /// let values = signature.minhash().unwrap().to_vec();
    /// let expected = (0..).zip(&values).map(|(i, value)| 16 * i + u64::from(*value));
    /// assert_eq!(signature.one_hot()?, expected.collect::<Vec<_>>());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[inline]
    pub fn one_hot(&self) -> Result<Vec<u64>> {
        let (Some(values), Some(bits)) = (self.minhash(), self.value_bits()) else {
            let expected = "MinHash values other than the hashes of bottom-k";
            return Err(SketchError::signature("MinHash values", "none", expected));
        };
        if self.is_empty {
            return Ok(Vec::new());
        }
        let positions = (0_u64..).zip(values);
        Ok(positions
            .map(|(i, value)| (i << bits) + u64::from(*value))
            .collect())
    }

    /// Returns this signature with its MinHash values cut to `bits` bits, if they have more.
    /// Bottom-k values do not change.
    #[inline]
    pub(super) fn into_cut(self, bits: u8) -> Self {
        Self {
            values: self.values.map(|values| values.into_cut(bits, true)),
            ..self
        }
    }

    /// Returns the Hamming distance of the two SimHash fingerprints: 0 to their width in bits.
    ///
    /// The distance divided by the number of bits estimates θ / π, where θ is the angle between the
    /// two documents' weighted feature vectors (Charikar 2002). An empty signature has the
    /// fingerprint 0, which is compared as any other; check [`is_empty`](Self::is_empty) first if
    /// that matters.
    ///
    /// # Errors
    ///
    /// [`SketchError::SignatureMismatch`] if a signature has no fingerprint, if the widths differ,
    /// or if the signatures are marked with different recipes.
    #[inline]
    pub fn hamming(&self, other: &Self) -> Result<u32> {
        self.check_recipe(other)?;
        match (self.simhash, other.simhash) {
            (Some(a), Some(b)) if a.bits() == b.bits() => Ok(a.distance(&b)),
            _ => Err(SketchError::signature(
                "SimHash fingerprint",
                "none, or one of another width",
                "one of as many bits in both signatures",
            )),
        }
    }

    /// The parts that decide whether signatures are equal.
    fn compared(&self) -> impl Hash + PartialEq {
        let (kept, placed) = (self.kept_hashes(), self.placed_shingles());
        (
            &self.values,
            self.simhash,
            self.is_empty,
            kept,
            placed,
            &self.set,
        )
    }

    /// Appends the MinHash values, 32 bits each, or the hashes of bottom-k.
    #[inline]
    pub(super) fn append_values(&self, bytes: &mut Vec<u8>) {
        let values = self.minhash().into_iter().flatten();
        let hashes = self.bottom_k().into_iter().flatten();
        bytes.extend(values.flat_map(|value| value.to_le_bytes()));
        bytes.extend(hashes.flat_map(|hash| hash.to_le_bytes()));
    }

    /// Returns the MinHash values for a comparison, or an error without any.
    fn values(&self) -> Result<&MinHashValues> {
        let expected = "MinHash values in both signatures";
        let missing = || SketchError::signature("MinHash values", "none", expected);
        self.values.as_ref().ok_or_else(missing)
    }

    /// Checks that values made without a schema are not compared with values that a schema mixed
    /// and cut: it is unknown whether the former have been cut as well.
    fn check_unmixed(&self, other: &Self) -> Result<()> {
        for (bare, made) in [(self, other), (other, self)] {
            if bare.recipe.is_none()
                && bare.values()?.is_wider_than(16)
                && made.values()?.was_mixed()
            {
                let expected = "those of one schema: its `signature_of_values` takes values of it";
                let found = "values without a schema";
                return Err(SketchError::signature("MinHash values", found, expected));
            }
        }
        Ok(())
    }

    fn check_recipe(&self, other: &Self) -> Result<()> {
        match (self.recipe, other.recipe) {
            (Some(a), Some(b)) if a != b => Err(SketchError::signature(
                a.differing_part(&b),
                "two that differ",
                "the same in both signatures",
            )),
            _ => Ok(()),
        }
    }
}
