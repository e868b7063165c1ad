//! The recipe: everything that decides which signature a document has.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::bottom_k;
use super::containment::{Containment, KEPT_HASH_BITS};
use super::hash::feature_hash;
use super::minhash::Permutations;
use super::vector::{KeptVector, VectorKind, VectorMetric};
use crate::error::{Result, SketchError};
use crate::lanes::AgreementCurve;
use crate::text::Text;

/// The widths of a SimHash fingerprint, in bits.
const SIMHASH_BITS: [u16; 3] = [32, 64, 128];

/// The numbers of MinHash values in a signature.
const VALUES: std::ops::RangeInclusive<u16> = 16..=1024;

/// The widths of the hashes of exact sets, in bits.
const SET_HASH_BITS: std::ops::RangeInclusive<u8> = 32..=64;

/// The minimum size of a bottom-k signature. Each row of a band needs eight hashes: see
/// `bottom_k::rows`.
const MIN_BOTTOM_K: u16 = 64;

/// The method that makes MinHash values. All methods estimate the Jaccard similarity without bias,
/// weighted or not.
///
/// ```
/// use resemblance_sketch::{MinHash, MinHashKind, Schema};
/// let schema = Schema::builder().minhash(MinHash::one_pass(1_024)).build()?;
/// assert_eq!(schema.minhash().unwrap().kind(), MinHashKind::OnePass);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MinHashKind {
    /// The minimum of one hash function for each value (Broder 1997). A feature costs one step for
    /// each value.
    Functions(Permutations),
    /// Fast similarity sketching (Dahlgaard, Knudsen and Thorup 2017). A feature costs one step,
    /// whatever the number of values.
    OnePass,
    /// The smallest values of one 64-bit hash function (Broder 1997; Thorup 2013).
    BottomK,
    /// Samples of weighted features. Two samples are equal with a probability equal to the weighted
    /// Jaccard similarity Σ min / Σ max (Ioffe 2010). A feature without a weight weighs 1 each time
    /// it occurs.
    Weighted,
    /// Values from another program. The caller passes signatures, not texts or features.
    External,
    /// Samples of weighted features, for the similarity of distributions. Two samples are equal
    /// with a probability equal to the probability Jaccard similarity (Moulton and Jiang 2018): see
    /// [`probability_jaccard`](crate::exact::probability_jaccard). Only the shares of a document's
    /// features matter, not its length. A feature without a weight weighs 1 each time it occurs.
    Probability,
    /// Hash values of a dense vector: see [`Vector`](crate::Vector).
    Vector(VectorKind),
}

impl MinHashKind {
    /// Returns true if the values depend on the weights of features: for
    /// [`Weighted`](Self::Weighted) and [`Probability`](Self::Probability).
    ///
    /// ```
    /// use resemblance_sketch::MinHashKind;
    /// assert!(MinHashKind::Weighted.is_weighted() && !MinHashKind::OnePass.is_weighted());
    /// ```
    #[must_use]
    pub fn is_weighted(self) -> bool {
        matches!(self, Self::Weighted | Self::Probability)
    }

    /// Returns the number of rows that bands can use in a signature of `values` values.
    pub(crate) fn row_count(self, values: u16) -> u16 {
        match self {
            Self::BottomK => bottom_k::row_count(values),
            _ => values,
        }
    }

    /// Returns the agreement curve of the values, before they are cut.
    pub(crate) fn curve(self) -> AgreementCurve {
        self.vector()
            .map_or(AgreementCurve::Identity, VectorKind::curve)
    }

    /// Returns the kind of vectors that the values are of, or `None` if they are of features.
    #[must_use]
    pub fn vector(self) -> Option<VectorKind> {
        match self {
            Self::Vector(kind) => Some(kind),
            _ => None,
        }
    }

    /// The number of the kind in a recipe's fingerprint. Frozen.
    fn code(self) -> u8 {
        match self {
            Self::Functions(permutations) => match permutations {
                Permutations::PairMultiply => 0,
                Permutations::MultiplyShift => 1,
                Permutations::Modular => 2,
                Permutations::Tabulation => 3,
                Permutations::Jenkins => 4,
            },
            Self::OnePass => 16,
            Self::BottomK => 17,
            Self::Weighted => 18,
            Self::External => 19,
            Self::Probability => 20,
            Self::Vector(VectorKind {
                metric: VectorMetric::Cosine,
                ..
            }) => 21,
            Self::Vector(_) => 22,
        }
    }
}

impl MinHashKind {
    /// Appends the kind as a recipe's fingerprint has it. Frozen.
    fn append_to(self, bytes: &mut Vec<u8>) {
        bytes.push(self.code());
        if let Self::Vector(kind) = self {
            kind.append_to(bytes);
        }
    }
}

impl fmt::Display for MinHashKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Functions(permutations) => write!(f, "{permutations}"),
            Self::OnePass => f.write_str("one-pass"),
            Self::BottomK => f.write_str("bottom-k"),
            Self::Weighted => f.write_str("weighted"),
            Self::External => f.write_str("external"),
            Self::Probability => f.write_str("probability"),
            Self::Vector(kind) => write!(f, "{kind}"),
        }
    }
}

/// The MinHash part of a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinHashRecipe {
    pub(crate) kind: MinHashKind,
    /// 16 to 1,024.
    pub(crate) values: u16,
}

/// Whether documents without features are near-duplicates of each other.
///
/// ```
/// use resemblance_sketch::EmptyDocuments;
/// assert_eq!(EmptyDocuments::default(), EmptyDocuments::Distinct);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum EmptyDocuments {
    /// Never. Two documents about which nothing is known are not duplicates, just as two empty
    /// pages are not the same page.
    #[default]
    Distinct,
    /// Always, because their sets of features are equal.
    Alike,
}

/// The rules by which bytes become features, and features a signature. A store's header contains
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredRecipe", into = "StoredRecipe")]
pub struct Recipe {
    /// The rules by which texts become features. Without them the caller passes features.
    pub(crate) text: Option<Text>,
    pub(crate) seed: u64,
    pub(crate) empty: EmptyDocuments,
    pub(crate) minhash: Option<MinHashRecipe>,
    /// The width of the SimHash fingerprint: 32, 64 or 128 bits. `None` without SimHash, and if the
    /// caller provides fingerprints.
    pub(crate) simhash_bits: Option<u16>,
    /// True if a feature without a weight weighs 1 in the fingerprint each time it occurs.
    pub(crate) simhash_counts: bool,
    /// The rule that selects the shingles that find shared passages.
    pub(crate) containment: Option<Containment>,
    /// The width of the hashes of exact sets, 32 to 64 bits; `None` unless signatures have the set of
    /// all features.
    pub(crate) exact_bits: Option<u8>,
}

/// The bit beside the width of a fingerprint that means that occurrences count. Frozen.
const COUNTED: u16 = 0x8000;

/// A recipe as a schema is written. Frozen.
#[derive(Serialize, Deserialize)]
struct StoredRecipe {
    text: Option<Text>,
    seed: u64,
    empty: StoredEmpty,
    minhash: Option<MinHashRecipe>,
    simhash_bits: Option<u16>,
    containment: Option<Containment>,
}

/// The rule for empty documents, and whether sets are kept.
#[derive(Serialize, Deserialize)]
enum StoredEmpty {
    Distinct,
    Alike,
    DistinctOfExact,
    AlikeOfExact,
    /// With hashes of this width instead of 44 bits.
    DistinctOfBits(u8),
    AlikeOfBits(u8),
}

impl From<StoredRecipe> for Recipe {
    fn from(stored: StoredRecipe) -> Self {
        let (empty, exact_bits) = match stored.empty {
            StoredEmpty::Distinct => (EmptyDocuments::Distinct, None),
            StoredEmpty::Alike => (EmptyDocuments::Alike, None),
            StoredEmpty::DistinctOfExact => (EmptyDocuments::Distinct, Some(KEPT_HASH_BITS)),
            StoredEmpty::AlikeOfExact => (EmptyDocuments::Alike, Some(KEPT_HASH_BITS)),
            StoredEmpty::DistinctOfBits(bits) => (EmptyDocuments::Distinct, Some(bits)),
            StoredEmpty::AlikeOfBits(bits) => (EmptyDocuments::Alike, Some(bits)),
        };
        Self {
            text: stored.text,
            seed: stored.seed,
            empty,
            minhash: stored.minhash,
            simhash_bits: stored.simhash_bits.map(|bits| bits & !COUNTED),
            simhash_counts: stored.simhash_bits.is_some_and(|bits| bits & COUNTED != 0),
            containment: stored.containment,
            exact_bits,
        }
    }
}

impl From<Recipe> for StoredRecipe {
    fn from(recipe: Recipe) -> Self {
        Self {
            simhash_bits: recipe.recorded_bits(),
            text: recipe.text,
            seed: recipe.seed,
            empty: match (recipe.empty, recipe.exact_bits) {
                (EmptyDocuments::Distinct, None) => StoredEmpty::Distinct,
                (EmptyDocuments::Alike, None) => StoredEmpty::Alike,
                (EmptyDocuments::Distinct, Some(KEPT_HASH_BITS)) => StoredEmpty::DistinctOfExact,
                (EmptyDocuments::Alike, Some(KEPT_HASH_BITS)) => StoredEmpty::AlikeOfExact,
                (EmptyDocuments::Distinct, Some(bits)) => StoredEmpty::DistinctOfBits(bits),
                (EmptyDocuments::Alike, Some(bits)) => StoredEmpty::AlikeOfBits(bits),
            },
            minhash: recipe.minhash,
            containment: recipe.containment,
        }
    }
}

/// The names of the parts of a recipe, in the order of [`RecipeMark`]'s parts.
const PARTS: [&str; 8] = [
    "text",
    "seed",
    "MinHash",
    "SimHash",
    "empty documents",
    "weights",
    "containment",
    "exact sets",
];

/// Marks a signature with the recipe that made it. Equal recipes have equal marks.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecipeMark {
    /// A hash of the recipe and its weights. Frozen.
    pub fingerprint: u64,
    /// 8 bits of a hash of each part. They only serve to name the part that differs: one in 256
    /// pairs of different parts looks equal.
    parts: [u8; PARTS.len()],
}

impl PartialEq for RecipeMark {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl RecipeMark {
    /// Returns the name of the first part in which two different recipes seem to differ.
    pub fn differing_part(&self, other: &Self) -> &'static str {
        let mut parts = PARTS.iter().zip(self.parts.iter().zip(&other.parts));
        // The only thing outside these parts is how texts are read: the version of Unicode.
        parts
            .find(|(_, (a, b))| a != b)
            .map_or("recipe", |(name, _)| name)
    }
}

impl Recipe {
    pub(crate) fn validate(&self) -> Result<()> {
        if let Some(text) = self.text {
            text.validate()?;
        }
        if let Some(MinHashRecipe { kind, values }) = self.minhash {
            let expected = "16 to 1,024";
            SketchError::require(VALUES.contains(&values), "minhash values", values, expected)?;
            let is_enough = kind != MinHashKind::BottomK || values >= MIN_BOTTOM_K;
            let expected = "64 to 1,024 for bottom-k";
            SketchError::require(is_enough, "minhash values", values, expected)?;
            kind.vector().map_or(Ok(()), VectorKind::validate)?;
            let is_allowed = kind != MinHashKind::External || self.text.is_none();
            let expected = "none: external signatures are computed elsewhere";
            SketchError::require(is_allowed, "text", "a text recipe", expected)?;
        }
        if let Some(bits) = self.simhash_bits {
            let expected = "32, 64 or 128";
            SketchError::require(SIMHASH_BITS.contains(&bits), "simhash bits", bits, expected)?;
        }
        if let Some(containment) = self.containment {
            self.validate_containment(&containment)?;
        }
        if let Some(bits) = self.exact_bits {
            let (is_valid, expected) = match self.vector() {
                Some(_) => (
                    KeptVector::of_bits(bits).is_some(),
                    "8, 16 or 32 for vectors",
                ),
                None => (SET_HASH_BITS.contains(&bits), "32 to 64"),
            };
            SketchError::require(is_valid, "exact_bits", bits, expected)?;
            self.validate_exact()?;
        }
        let is_allowed = self.text.is_none() || !self.is_made_elsewhere();
        let expected = "none: external fingerprints are computed elsewhere";
        SketchError::require(is_allowed, "text", "a text recipe", expected)?;
        let is_used =
            self.text.is_none() || self.vector().is_none() || self.beside_vector().is_some();
        let expected = "none, or SimHash or containment, which texts need beside vectors";
        SketchError::require(is_used, "text", "a text recipe", expected)
    }

    fn validate_containment(&self, containment: &Containment) -> Result<()> {
        containment.validate()?;
        let expected = "none: external signatures are computed elsewhere";
        let is_valid = !self.makes_minhash_elsewhere();
        SketchError::require(is_valid, "containment", containment, expected)?;
        self.kept_text().map_or(Ok(()), |text| text.validate())
    }

    /// Sets decide similarities. A schema of fingerprints alone has no similarities.
    fn validate_exact(&self) -> Result<()> {
        let (found, expected) = match self.minhash {
            None => (
                "a schema without MinHash",
                "MinHash, whose similarities the sets decide; the distances of SimHash are exact",
            ),
            Some(_) => (
                "external MinHash values",
                "values that the schema makes of features",
            ),
        };
        let is_valid = self.minhash.is_some() && !self.makes_minhash_elsewhere();
        SketchError::require(is_valid, "exact", found, expected)
    }

    /// Returns true if containment keeps the hashes of all features. These are then the exact set.
    pub(crate) fn keeps_all_features(&self) -> bool {
        let is_weighted = self
            .minhash
            .is_some_and(|minhash| minhash.kind.is_weighted());
        let keeps_all = self
            .containment
            .is_some_and(|it| it.window_shingles() == Some(1) || it.scale() == Some(1));
        keeps_all
            && !is_weighted
            && self.vector().is_none()
            && (self.text.is_none() || self.kept_text() == self.text)
    }

    /// Returns the kind of vectors that documents have, if they have any.
    pub(crate) fn vector(&self) -> Option<VectorKind> {
        self.minhash.and_then(|minhash| minhash.kind.vector())
    }

    /// Returns the recipe of what documents have beside vectors, if they have anything else.
    pub(super) fn beside_vector(&self) -> Option<Self> {
        self.vector()?;
        let beside = Self {
            minhash: None,
            exact_bits: None,
            ..self.clone()
        };
        (!beside.is_made_elsewhere()).then_some(beside)
    }

    /// Returns the width of the hashes of exact sets if signatures have sets in addition to kept
    /// hashes. Kept hashes of all features are the sets, but not those of another width.
    pub(crate) fn set_bits(&self) -> Option<u8> {
        let is_kept = |bits: &u8| *bits == KEPT_HASH_BITS && self.keeps_all_features();
        self.exact_bits.filter(|bits| !is_kept(bits))
    }

    /// Returns true if this recipe makes no part of a signature, because the caller provides
    /// fingerprints.
    pub(super) fn is_made_elsewhere(&self) -> bool {
        let parts = (self.minhash, self.simhash_bits, self.containment);
        matches!(parts, (None, None, None))
    }

    /// Returns the width of the fingerprint, and whether occurrences count, as one number.
    fn recorded_bits(&self) -> Option<u16> {
        let counted = if self.simhash_counts { COUNTED } else { 0 };
        Some(self.simhash_bits? | counted)
    }

    /// Returns true if the caller provides the MinHash values.
    pub(super) fn makes_minhash_elsewhere(&self) -> bool {
        let kind = self.minhash.map(|minhash| minhash.kind);
        kind == Some(MinHashKind::External)
    }

    /// Returns the rules by which texts become the shingles of containment, or `None` without
    /// containment or texts.
    pub(super) fn kept_text(&self) -> Option<Text> {
        let (text, containment) = self.text.zip(self.containment)?;
        Some(text.with_length(containment.shingle_units()))
    }

    /// Returns the mark of the signatures that this recipe makes. `weights` is the fingerprint of
    /// the features' weights.
    pub(super) fn mark(&self, weights: Option<u64>) -> RecipeMark {
        let plain = self.fingerprint();
        let weighted = weights.map(|weights| {
            let parts = [plain.to_le_bytes(), weights.to_le_bytes()];
            feature_hash(&parts.concat())
        });
        let bits = |part: &[u8]| feature_hash(part).to_le_bytes()[0];
        let bits_of = |number: Option<u64>| match number {
            Some(number) => bits(&number.to_le_bytes()),
            None => bits(&[]),
        };
        let mut text = Vec::new();
        if let Some(recipe) = self.text {
            recipe.append_to(&mut text);
        }
        let minhash = self.minhash.map(|minhash| {
            let [low, high] = minhash.values.to_le_bytes();
            let mut bytes = vec![low, high];
            minhash.kind.append_to(&mut bytes);
            bytes
        });
        let mut containment = Vec::new();
        if let Some(recipe) = self.containment {
            recipe.append_to(&mut containment);
        }
        RecipeMark {
            fingerprint: weighted.unwrap_or(plain),
            parts: [
                bits(&text),
                bits(&self.seed.to_le_bytes()),
                bits(minhash.as_ref().map_or(&[], |minhash| minhash)),
                bits_of(self.recorded_bits().map(u64::from)),
                bits(&[u8::from(self.empty == EmptyDocuments::Alike)]),
                bits_of(weights),
                bits(&containment),
                bits_of(self.exact_bits.map(u64::from)),
            ],
        }
    }

    /// Returns a hash of the whole recipe, including the version of the Unicode data. Frozen.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut bytes = b"resemblance recipe 1".to_vec();
        match self.text {
            None => bytes.extend_from_slice(&[0; 3]),
            Some(text) => text.append_to(&mut bytes),
        }
        bytes.extend_from_slice(&self.seed.to_le_bytes());
        bytes.push(match self.empty {
            EmptyDocuments::Distinct => 0,
            EmptyDocuments::Alike => 1,
        });
        // No valid recipe has 0 values or 0 bits, so 0 means that the part is absent.
        let values = self.minhash.map_or(0, |minhash| minhash.values);
        bytes.extend_from_slice(&values.to_le_bytes());
        bytes.extend_from_slice(&self.recorded_bits().unwrap_or(0).to_le_bytes());
        if let Some(minhash) = self.minhash {
            minhash.kind.append_to(&mut bytes);
        }
        if let Some(containment) = self.containment {
            containment.append_to(&mut bytes);
        }
        if let Some(bits) = self.exact_bits {
            bytes.extend_from_slice(b"exact");
            bytes.extend(Some(bits).filter(|bits| *bits != KEPT_HASH_BITS));
        }
        feature_hash(&bytes)
    }
}
