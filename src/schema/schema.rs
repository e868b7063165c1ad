//! What a store holds and how documents are compared: the part of the configuration that is kept in
//! the store.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::lanes::{Banding, Lanes, TableDesign};
use crate::schema::builder::{MinHash, SchemaBuilder};
use crate::sketch::{EmptyDocuments, MinHashKind, Recipe, Sketcher, ValueLayout};
use crate::text::{Text, UNICODE_VERSION};

/// Which family decides that two documents are near, where a schema has both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Near {
    /// Either similarity or distance is within its bound.
    #[default]
    Any,
    /// Both are.
    Both,
}

/// The MinHash part of a [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MinHashSchema {
    pub(crate) kind: MinHashKind,
    pub(crate) values: u16,
    pub(crate) value_bits: u8,
    pub(crate) threshold: f64,
    pub(crate) banding: Banding,
    pub(crate) code_bits: u8,
}

impl MinHashSchema {
    /// How the values come about.
    #[must_use]
    pub fn kind(&self) -> MinHashKind {
        self.kind
    }

    /// Values in a signature; of bottom-k the most that there can be.
    #[must_use]
    pub fn values(&self) -> u16 {
        self.values
    }

    /// Bits that are stored of each value: 1 to 32, and 64 for bottom-k.
    #[must_use]
    pub fn value_bits(&self) -> u8 {
        self.layout().bits()
    }

    /// The variance of the estimate of a pair of this similarity, by the theory of the kind:
    /// J (1 − J) / k for k whole values (Broder 1997), (1 − J) (J + 1 / (2ᵇ − 1)) / k for values of
    /// b bits (Li and König 2010). For bottom-k and one-pass it is a bound.
    ///
    /// ```
    /// use resemblance::{MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(400)).build()?;
    /// assert!((schema.minhash().unwrap().variance(0.5).sqrt() - 0.025).abs() < 1e-9);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn variance(&self, similarity: f64) -> f64 {
        self.layout().variance(similarity)
    }

    /// What would build it again.
    pub(crate) fn to_builder(self) -> MinHash {
        MinHash::of(self.kind, self.values)
            .value_bits(self.value_bits)
            .threshold(self.threshold)
            .banding(self.bands(), self.rows())
            .code_bits(self.code_bits)
    }

    pub(crate) fn layout(&self) -> ValueLayout {
        match self.kind {
            MinHashKind::BottomK => ValueLayout::Smallest { most: self.values },
            kind => ValueLayout::Places {
                count: self.values,
                bits: self.value_bits,
                is_cut: self.value_bits < 32 && kind != MinHashKind::External,
            },
        }
    }

    /// The similarity from which on documents are near-duplicates.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// The number of bands: each is a lane of the store.
    #[must_use]
    pub fn bands(&self) -> u16 {
        self.banding.bands()
    }

    /// The number of signature values in a band.
    #[must_use]
    pub fn rows(&self) -> u16 {
        self.banding.rows()
    }

    /// Bits stored of a band's hash.
    #[must_use]
    pub fn code_bits(&self) -> u8 {
        self.code_bits
    }

    /// The probability 1 − (1 − sʳ)ᵇ that a pair of this similarity meets in a band and so is
    /// looked at.
    #[must_use]
    pub fn probability(&self, similarity: f64) -> f64 {
        self.banding.probability(similarity)
    }

    /// [`probability`](Self::probability) right at the threshold.
    #[must_use]
    pub fn recall_at_threshold(&self) -> f64 {
        self.probability(self.threshold)
    }
}

/// The SimHash part of a [`Schema`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimHashSchema {
    pub(crate) design: TableDesign,
}

impl SimHashSchema {
    /// Bits in a fingerprint.
    #[must_use]
    pub fn bits(&self) -> u16 {
        self.design.bits().into()
    }

    /// The greatest distance that the store finds without a miss.
    #[must_use]
    pub fn max_distance(&self) -> u8 {
        self.design.max_distance()
    }

    /// The permuted tables that were chosen. `Display` prints them.
    #[must_use]
    pub fn design(&self) -> &TableDesign {
        &self.design
    }
}

/// What a store holds and how its documents are compared. Kept in the file. How signatures are made
/// is fixed at creation; how documents are filed can be [changed](crate::Store::reband).
///
/// ```
/// use resemblance::{MinHash, Schema, SimHash, Text};
/// let schema = Schema::builder()
///     .text(Text::words(5))
///     .minhash(MinHash::new(128).threshold(0.8))
///     .simhash(SimHash::bits64().max_distance(3))
///     .build()?;
/// println!("{schema}");
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    pub(crate) recipe: Recipe,
    /// The Unicode version that texts are normalised by.
    pub(crate) unicode_version: (u8, u8, u8),
    pub(crate) minhash: Option<MinHashSchema>,
    pub(crate) simhash: Option<SimHashSchema>,
    pub(crate) near: Near,
    pub(crate) expected_documents: u64,
}

impl Schema {
    /// Starts a schema. At least one of MinHash and SimHash must be given.
    #[must_use]
    pub fn builder() -> SchemaBuilder {
        SchemaBuilder::default()
    }

    /// Makes signatures for this schema, without a store.
    #[must_use]
    pub fn sketcher(&self) -> Sketcher {
        Sketcher::of_valid(self.recipe.clone())
    }

    /// How texts are cut into shingles, if the schema takes texts.
    #[must_use]
    pub fn text(&self) -> Option<Text> {
        self.recipe.text
    }

    /// The seed of all hash functions.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.recipe.seed
    }

    /// What documents without features are to each other.
    #[must_use]
    pub fn empty_documents(&self) -> EmptyDocuments {
        self.recipe.empty
    }

    /// The number of documents that the store was laid out for, above all its SimHash tables.
    #[must_use]
    pub fn expected_documents(&self) -> u64 {
        self.expected_documents
    }

    /// Which family decides, where there are two.
    #[must_use]
    pub fn near(&self) -> Near {
        self.near
    }

    /// The MinHash part.
    #[must_use]
    pub fn minhash(&self) -> Option<MinHashSchema> {
        self.minhash
    }

    /// The SimHash part.
    #[must_use]
    pub fn simhash(&self) -> Option<&SimHashSchema> {
        self.simhash.as_ref()
    }

    /// The number of lanes: one for keys, one a band, one a permuted table.
    #[must_use]
    pub fn lanes(&self) -> usize {
        let tables = self.simhash.as_ref().map_or(0, |s| s.design.table_count());
        1 + self.minhash.map_or(0, |m| usize::from(m.bands())) + tables
    }

    pub(crate) fn lane_set(&self) -> Result<Lanes> {
        let banding = self.minhash.map(|m| (m.banding, m.code_bits));
        Lanes::new(banding, self.simhash.as_ref().map(|s| s.design.clone()))
    }

    /// Whether a schema that was read from a file could have been built here.
    pub(crate) fn validate(&self) -> Result<()> {
        self.recipe.validate()?;
        if self.unicode_version != UNICODE_VERSION {
            let detail = format!(
                "found Unicode {:?}, this release has {UNICODE_VERSION:?}",
                self.unicode_version
            );
            return Err(Error::SelfTest { detail });
        }
        if let Some(minhash) = &self.minhash {
            minhash.to_builder().build()?;
        }
        let simhash_bits = self.simhash.as_ref().map(SimHashSchema::bits);
        let minhash = self
            .recipe
            .minhash
            .map(|minhash| (minhash.kind, minhash.values));
        if (minhash, self.recipe.simhash_bits)
            == (self.minhash.map(|m| (m.kind, m.values)), simhash_bits)
        {
            Ok(())
        } else {
            let expected = "the families of the schema";
            Err(Error::invalid("recipe", "other families", expected))
        }
    }
}
