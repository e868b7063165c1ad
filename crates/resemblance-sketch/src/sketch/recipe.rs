//! The recipe: everything that decides which signature a document has.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::bottom_k;
use super::containment::Containment;
use super::hash::feature_hash;
use super::minhash::Permutations;
use crate::error::{Result, SketchError};
use crate::text::Text;

/// The widths that a SimHash fingerprint can have, in bits.
const SIMHASH_BITS: [u16; 3] = [32, 64, 128];

/// The numbers of MinHash values that a signature can have.
const VALUES: std::ops::RangeInclusive<u16> = 16..=1024;

/// The smallest signature of bottom-k: each row that bands are made of needs eight hashes, see
/// `bottom_k::rows`.
const MIN_BOTTOM_K: u16 = 64;

/// The method by which MinHash values are made. All estimate Jaccard similarity without bias.
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
    /// The minima of one hash function for each value (Broder 1997): a feature costs a step for
    /// each value.
    Functions(Permutations),
    /// Fast similarity sketching (Dahlgaard, Knudsen and Thorup 2017): a feature costs one step,
    /// however many values there are.
    OnePass,
    /// The smallest values of one hash function (Broder 1997; Thorup 2013), of 64 bits.
    BottomK,
    /// Samples of weighted features that are equal with the probability of the weighted Jaccard
    /// similarity Σ min / Σ max (Ioffe 2010). A feature without a weight weighs 1 each time it occurs.
    Weighted,
    /// Made elsewhere: signatures are given, never made from texts or features.
    External,
    /// Samples of weighted features that are equal with the probability Jaccard similarity of the
    /// distributions which the weights are in proportion to (Moulton and Jiang 2018): see
    /// [`probability_jaccard`](crate::exact::probability_jaccard). How long a document is does not matter,
    /// only the shares of its features. A feature without a weight weighs 1 each time it occurs.
    Probability,
}

impl MinHashKind {
    /// Returns true if the values depend on the weights of features: those of
    /// [`Weighted`](Self::Weighted) and of [`Probability`](Self::Probability).
    ///
    /// ```
    /// use resemblance_sketch::MinHashKind;
    /// assert!(MinHashKind::Weighted.is_weighted() && !MinHashKind::OnePass.is_weighted());
    /// ```
    #[must_use]
    pub fn is_weighted(self) -> bool {
        matches!(self, Self::Weighted | Self::Probability)
    }

    /// The number of rows for bands that a signature of `values` values has.
    pub(crate) fn row_count(self, values: u16) -> u16 {
        match self {
            Self::BottomK => bottom_k::row_count(values),
            _ => values,
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

/// The rule for documents without features: whether they are near-duplicates of each other.
///
/// ```
/// use resemblance_sketch::EmptyDocuments;
/// assert_eq!(EmptyDocuments::default(), EmptyDocuments::Distinct);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EmptyDocuments {
    /// Never: nothing is known about them. No two empty pages are the same page.
    #[default]
    Distinct,
    /// Always: they are equal sets.
    Alike,
}

/// The rules by which bytes become features, and features a signature. Part of a store's header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    /// The rules by which texts become features. Without them the caller brings features.
    pub(crate) text: Option<Text>,
    pub(crate) seed: u64,
    pub(crate) empty: EmptyDocuments,
    pub(crate) minhash: Option<MinHashRecipe>,
    /// Bits of the SimHash fingerprint, 32, 64 or 128; `None` without SimHash, and for fingerprints that are
    /// made elsewhere.
    pub(crate) simhash_bits: Option<u16>,
    /// The rule that selects the shingles which are kept to find shared passages.
    pub(crate) containment: Option<Containment>,
}

/// The names of the parts of a recipe, in the order of [`RecipeMark`]'s.
const PARTS: [&str; 7] = [
    "text",
    "seed",
    "MinHash",
    "SimHash",
    "empty documents",
    "weights",
    "containment",
];

/// The mark of a recipe on the signatures that it makes. Marks are equal if their recipes are.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecipeMark {
    /// A hash of the recipe and its weights. Frozen.
    pub fingerprint: u64,
    /// 8 bits of a hash of each part, which identify the part that differs and serve no other
    /// comparison: one in 256 pairs of different parts looks equal.
    parts: [u8; PARTS.len()],
}

impl PartialEq for RecipeMark {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl RecipeMark {
    /// Returns the name of the first part in which two recipes that are not equal seem to differ.
    pub fn differing_part(&self, other: &Self) -> &'static str {
        let mut parts = PARTS.iter().zip(self.parts.iter().zip(&other.parts));
        // Everything outside these parts concerns how texts are read: the version of Unicode.
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
        let is_allowed = self.text.is_none() || !self.is_made_elsewhere();
        let expected = "none: external fingerprints are computed elsewhere";
        SketchError::require(is_allowed, "text", "a text recipe", expected)
    }

    fn validate_containment(&self, containment: &Containment) -> Result<()> {
        containment.validate()?;
        let expected = "none: external signatures are computed elsewhere";
        let is_valid = !self.makes_minhash_elsewhere();
        SketchError::require(is_valid, "containment", containment, expected)?;
        self.kept_text().map_or(Ok(()), |text| text.validate())
    }

    /// Returns true if it makes no part of a signature: fingerprints are given.
    pub(super) fn is_made_elsewhere(&self) -> bool {
        let parts = (self.minhash, self.simhash_bits, self.containment);
        matches!(parts, (None, None, None))
    }

    /// Returns true if MinHash values are given, and not made here.
    pub(super) fn makes_minhash_elsewhere(&self) -> bool {
        let kind = self.minhash.map(|minhash| minhash.kind);
        kind == Some(MinHashKind::External)
    }

    /// Returns how texts become the shingles of which some are kept; `None` without containment or texts.
    pub(super) fn kept_text(&self) -> Option<Text> {
        let (text, containment) = self.text.zip(self.containment)?;
        Some(text.with_length(containment.shingle_units()))
    }

    /// Returns the mark of the signatures that this recipe makes, with the weights of features in it.
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
            [low, high, minhash.kind.code()]
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
                bits_of(self.simhash_bits.map(u64::from)),
                bits(&[u8::from(self.empty == EmptyDocuments::Alike)]),
                bits_of(weights),
                bits(&containment),
            ],
        }
    }

    /// A hash of the whole recipe, the version of the Unicode data included. Frozen.
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
        // No valid recipe has 0 values or a width of 0: 0 means absence.
        let values = self.minhash.map_or(0, |minhash| minhash.values);
        bytes.extend_from_slice(&values.to_le_bytes());
        bytes.extend_from_slice(&self.simhash_bits.unwrap_or(0).to_le_bytes());
        bytes.extend(self.minhash.map(|minhash| minhash.kind.code()));
        if let Some(containment) = self.containment {
            containment.append_to(&mut bytes);
        }
        feature_hash(&bytes)
    }
}
