//! Signatures.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use xxhash_rust::xxh3::xxh3_128;

use super::bottom_k;
use super::containment::{KeptHashes, KeptShingle};
use super::hash::mix64;
use super::recipe::RecipeMark;
use super::values::{MinHashValues, ValueLayout};
use crate::error::{Result, SketchError};
use crate::fingerprint::Fingerprint;

/// The compact form of a document by which it is compared: MinHash values, a SimHash fingerprint, or
/// both, and the kept hashes by which shared passages are found.
///
/// A [`Sketcher`](crate::Sketcher) makes signatures and marks them with its recipe, so that
/// signatures of different recipes are not compared by mistake. Signatures that another program
/// made are created with [`from_minhash`](Self::from_minhash),
/// [`from_bottom_k`](Self::from_bottom_k), [`from_simhash`](Self::from_simhash),
/// [`from_fingerprint`](Self::from_fingerprint) and [`from_parts`](Self::from_parts). They are
/// unmarked: the caller must ensure that they fit together.
///
/// A document without features has an *empty* signature: all MinHash values are `u32::MAX`
/// (bottom-k has no values), and the fingerprint is 0. [`is_empty`](Self::is_empty) distinguishes
/// it from a document that has these by chance.
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
    /// The recipe that made it; `None` for ready-made parts.
    recipe: Option<RecipeMark>,
}

/// The kind and the number of the values, the first of them, and the fingerprint.
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
        shown.field("is_empty", &self.is_empty).finish()
    }
}

/// Signatures are equal if their values, kept hashes and kept positions are: one that a sketcher made equals the same one
/// made of parts.
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

impl Signature {
    /// Returns a hash of the whole signature, for tables of signatures of one schema. Equal
    /// signatures have equal digests. Among a hundred million different signatures, two digests
    /// agree with a probability of 10⁻²³. Section 14 of `format-spec.md` specifies it.
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
        // The number of bytes distinguishes 256 bits from none.
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
        xxh3_128(&bytes)
    }

    /// Creates a signature from ready-made MinHash values, minima of hash functions.
    ///
    /// They have 32 bits each, as another program made them. The values that a signature of a
    /// schema returns are usually cut: use
    /// [`Schema::signature_of_values`](crate::Schema::signature_of_values) for these.
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

    /// A signature of values of a layout, or of wider ones, which are cut. Values that all have the bits of the layout
    /// were cut before: whole ones would do so with a probability of 2⁻¹⁶ each, or less.
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

    /// Creates a signature of ready-made MinHash values of 64 bits, each reduced to 32 by a hash.
    /// Equal values remain equal; different ones become equal with probability 2⁻³². They are no
    /// longer minima, so such signatures cannot be [merged](Self::merge).
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

    /// Creates a signature of the smallest hashes of a set, at most `max_count` of them (bottom-k):
    /// the smallest `max_count` are kept, sorted and without repeats. Fewer hashes mean that the
    /// set has no more. `u64::MAX` counts as `u64::MAX − 1`.
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

    /// A signature of a ready-made SimHash fingerprint of 64 bits.
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

    /// Creates a signature from a ready-made fingerprint of any width, such as a perceptual hash of
    /// an image.
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

    /// A signature of ready-made parts.
    ///
    /// MinHash values that are all `u32::MAX`, which is what other libraries give a document
    /// without features, make the signature [empty](Self::is_empty). No values at all are the same
    /// as `None`.
    #[must_use]
    #[inline]
    pub fn from_parts(minhash: Option<Vec<u32>>, simhash: Option<u64>) -> Self {
        let values = minhash.filter(|values| !values.is_empty());
        let has_no_features = |values: &Vec<u32>| values.iter().all(|value| *value == u32::MAX);
        let is_empty = values.as_ref().is_some_and(has_no_features);
        let minima = values.map(MinHashValues::Minima);
        Self::new(minima, simhash.map(Fingerprint::from), is_empty, None)
    }

    /// This signature with the fingerprint of another.
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

    /// The signature of these parts, marked with the recipe that made them.
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
            recipe,
        }
    }

    /// This signature with these kept hashes.
    #[inline]
    pub fn with_kept(self, kept: Option<KeptHashes>) -> Self {
        Self { kept, ..self }
    }

    /// Returns the distinct hashes of the shingles that are kept to find shared passages,
    /// ascending, each below 2⁴⁴; `None` without [`Containment`](crate::Containment) in the schema.
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

    /// Returns the kept shingles in the order of the document; empty if they are not known.
    #[inline]
    pub fn kept_shingles(&self) -> &[KeptShingle] {
        self.kept.as_ref().map_or(&[], |kept| &kept.shingles)
    }

    /// Returns the shingles if their positions are a part of the signature.
    #[inline]
    pub fn placed_shingles(&self) -> Option<&[KeptShingle]> {
        let placed = self.kept.as_ref().filter(|kept| kept.are_placed);
        placed.map(|kept| &*kept.shingles)
    }

    /// Makes a signature of ready-made parts that may contradict each other, for tests.
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

    /// A stored signature: the layout and the bytes of its MinHash values with whether they are samples
    /// rather than minima.
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

    /// Returns the MinHash values; `None` if there are none, and for bottom-k. Each is below 2ᵇ for
    /// values of b [bits](Self::value_bits).
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

    /// The smallest hashes of bottom-k, ascending.
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

    /// Returns the number of bits of a MinHash value: 32, fewer if values were cut, and 64 for
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

    /// Returns the SimHash fingerprint as a number; one of 64 bits is below 2⁶⁴. Returns `None`
    /// without a fingerprint, and for one of 256 bits: [`fingerprint`](Self::fingerprint) returns
    /// those, too.
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

    /// The fingerprint.
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

    /// The bits of the fingerprint.
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

    /// The recipe that made it; `None` for ready-made parts.
    #[inline]
    pub fn recipe_mark(&self) -> Option<RecipeMark> {
        self.recipe
    }

    /// The rows from which the codes of the bands are made, where values are kept in this layout. Empty
    /// without MinHash values.
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

    /// The number of MinHash values, or the greatest number of hashes, and the bits of each.
    #[inline]
    pub fn value_shape(&self) -> Option<(usize, u8)> {
        self.values.as_ref().map(MinHashValues::shape)
    }

    /// The number of MinHash values, or of hashes.
    #[inline]
    pub fn value_count(&self) -> usize {
        self.values.as_ref().map_or(0, MinHashValues::count)
    }

    /// Appends the bytes of the MinHash values, which fit the layout.
    #[inline]
    pub fn encode_values(&self, layout: ValueLayout, bytes: &mut Vec<u8>) {
        if let Some(values) = &self.values {
            values.encode(layout, bytes);
        }
    }

    /// Returns the agreement of the MinHash values with stored ones of the same layout; see
    /// [`ValueLayout::agreement`]. Returns 0 without values.
    #[inline]
    pub fn agreement_with(&self, layout: ValueLayout, stored: &[u8]) -> usize {
        let values = self.values.as_ref();
        values.map_or(0, |values| values.agreement_with(layout, stored))
    }

    /// Returns the agreement of the MinHash values with those of another signature of the same
    /// layout. Returns 0 without values.
    #[inline]
    pub fn agreement(&self, layout: ValueLayout, other: &Self) -> usize {
        let values = self.values.as_ref().zip(other.values.as_ref());
        values.map_or(0, |(own, other)| own.agreement(layout, other))
    }

    /// The estimated Jaccard similarity of the two documents' sets of features, 0 to 1: the share
    /// of equal MinHash values (Broder 1997); of values cut to b bits without those that are equal
    /// by chance (Li and König 2010); of bottom-k the share of the union's smallest hashes that
    /// both have.
    ///
    /// Its standard deviation is √(J (1 − J) / k) for k values: 0.035 at J = 0.8 and k = 128. It
    /// over-estimates by at most about (1 − J) n / 2³³ for n distinct features in the two documents
    /// together (0.0001 at a million): values have 32 bits. Two empty signatures have similarity 1,
    /// as equal sets; an empty one and another 0.
    ///
    /// # Errors
    ///
    /// [`SketchError::SignatureMismatch`] if one has no MinHash values, their numbers differ, only one was
    /// made and cut elsewhere, one was made without a schema and the other cut by one, or both are marked with
    /// different recipes. Values with more bits than those of the other are cut for the comparison.
    #[inline]
    pub fn jaccard(&self, other: &Self) -> Result<f64> {
        Ok(self.jaccard_unclamped(other)?.clamp(0.0, 1.0))
    }

    /// The estimate before it is clamped to [0, 1]. It is unbiased, so sums and means of many estimates
    /// are right. With cut values it may be below 0.
    ///
    /// # Errors
    ///
    /// As [`jaccard`](Self::jaccard).
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

    /// The signature of the union of the two documents' features, from the signatures alone: the
    /// lesser value in each place, or the smallest hashes of both.
    ///
    /// # Errors
    ///
    /// [`SketchError::SignatureMismatch`] if there are kept hashes, no values, or values that do
    /// not show which is the lesser (weighted, or cut: a schema keeps 16 bits unless its [value
    /// bits](crate::MinHash::value_bits) are 32), if there is a SimHash fingerprint (that of a
    /// union does not follow from those of the parts), or both are marked with different recipes.
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
        let merged = self.values()?.merge(other.values()?)?;
        let is_empty = self.is_empty && other.is_empty;
        let recipe = self.recipe.or(other.recipe);
        Ok(Self::new(Some(merged), None, is_empty, recipe))
    }

    /// Returns this signature with its MinHash values cut to `bits` bits, 1, 2, 4, 8 or 16, as a
    /// schema with that number of [value bits](crate::MinHash::value_bits) makes it.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] for another number of bits;
    /// [`SketchError::SignatureMismatch`] if there are no MinHash values with more bits: none at
    /// all, those of bottom-k, or ones that were cut to `bits` or fewer.
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

    /// The document as a vector for linear models (Li, Shrivastava, Moore and König, *Hashing algorithms for
    /// large-scale learning*, 2011): of k values of b [bits](Self::value_bits) the positions of the k ones in
    /// a vector of 2ᵇ · k zeros, ascending; value i is at 2ᵇ · i + the value. The inner product of two such
    /// vectors is the number of equal values, so that a linear model learns with the similarity as its
    /// kernel. [`cut`](Self::cut) makes shorter vectors. A document without features has no ones.
    ///
    /// # Errors
    ///
    /// [`SketchError::SignatureMismatch`] if there are no MinHash values, or those of bottom-k.
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

    /// Returns this signature with its MinHash values cut to `bits` bits, if they have more. Those
    /// of bottom-k do not change.
    #[inline]
    pub(super) fn into_cut(self, bits: u8) -> Self {
        Self {
            values: self.values.map(|values| values.into_cut(bits, true)),
            ..self
        }
    }

    /// The Hamming distance of the two SimHash fingerprints in bits, 0 to their width.
    ///
    /// Divided by the number of bits it estimates θ / π, where θ is the angle between the two
    /// documents' weighted vectors of features (Charikar 2002). The fingerprint of an empty
    /// signature is 0 and is compared as any other; ask [`is_empty`](Self::is_empty) first where
    /// that matters.
    ///
    /// # Errors
    ///
    /// [`SketchError::SignatureMismatch`] if one has no fingerprint, the two have different widths,
    /// or both are marked with different recipes.
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

    /// The parts by which signatures are equal.
    fn compared(&self) -> impl Hash + PartialEq {
        let (kept, placed) = (self.kept_hashes(), self.placed_shingles());
        (&self.values, self.simhash, self.is_empty, kept, placed)
    }

    /// Appends the MinHash values, each of 32 bits, and the hashes of bottom-k.
    #[inline]
    pub(super) fn append_values(&self, bytes: &mut Vec<u8>) {
        let values = self.minhash().into_iter().flatten();
        let hashes = self.bottom_k().into_iter().flatten();
        bytes.extend(values.flat_map(|value| value.to_le_bytes()));
        bytes.extend(hashes.flat_map(|hash| hash.to_le_bytes()));
    }

    /// The MinHash values, for a comparison that needs those of both signatures.
    fn values(&self) -> Result<&MinHashValues> {
        let expected = "MinHash values in both signatures";
        let missing = || SketchError::signature("MinHash values", "none", expected);
        self.values.as_ref().ok_or_else(missing)
    }

    /// Checks that values without a schema are not compared with those that a schema mixed and cut: nobody knows
    /// whether they have been cut as well.
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
