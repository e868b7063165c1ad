//! Putting a schema together.

use crate::error::{Error, Result};
use crate::lanes::{Banding, choose_design};
use crate::schema::{MinHashSchema, Near, Schema, SimHashSchema};
use crate::sketch::{EmptyDocuments, Recipe};
use crate::text::{Text, UNICODE_VERSION};

/// The widths of band codes that a schema accepts, in bits.
const CODE_BITS: std::ops::RangeInclusive<u8> = 32..=64;

/// How a schema files and compares MinHash signatures (Broder 1997).
///
/// ```
/// use resemblance::{MinHash, Schema};
/// let schema = Schema::builder().minhash(MinHash::new(128).threshold(0.8)).build()?;
/// let minhash = schema.minhash().unwrap();
/// assert_eq!((minhash.bands(), minhash.rows()), (13, 7));
/// assert!(minhash.recall_at_threshold() >= 0.95);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinHash {
    values: u16,
    threshold: f64,
    recall: f64,
    banding: Option<(u16, u16)>,
    code_bits: u8,
}

impl MinHash {
    /// Signatures of `values` 32-bit values, 16 to 1,024. The usual choice is 128: the estimate
    /// then has a standard deviation of at most 1 / (2 · √128) = 0.044.
    #[must_use]
    pub fn new(values: u16) -> Self {
        Self {
            values,
            threshold: 0.8,
            recall: 0.95,
            banding: None,
            code_bits: 40,
        }
    }

    /// The Jaccard similarity from which on two documents are near-duplicates: above 0, at most 1;
    /// inclusive; 0.8 if not given.
    #[must_use]
    pub fn threshold(mut self, threshold: f64) -> Self {
        self.threshold = threshold;
        self
    }

    /// The share of pairs right at the threshold that must meet in a band, between 0 and 1; 0.95
    /// if not given. Pairs above the threshold are found more often.
    #[must_use]
    pub fn recall(mut self, recall: f64) -> Self {
        self.recall = recall;
        self
    }

    /// Sets bands and rows directly instead of having them chosen by recall.
    #[must_use]
    pub fn banding(mut self, bands: u16, rows: u16) -> Self {
        self.banding = Some((bands, rows));
        self
    }

    /// How many bits of a band's hash are stored, 32 to 64; 40 if not given. Fewer bits make
    /// smaller files and more false candidates (which are never returned).
    #[must_use]
    pub fn code_bits(mut self, bits: u8) -> Self {
        self.code_bits = bits;
        self
    }

    pub(super) fn build(self) -> Result<MinHashSchema> {
        if !(self.threshold > 0.0 && self.threshold <= 1.0) {
            let expected = "a similarity above 0 and at most 1";
            return Err(Error::invalid("threshold", self.threshold, expected));
        }
        if !(self.recall > 0.0 && self.recall < 1.0) {
            let expected = "a probability above 0 and below 1";
            return Err(Error::invalid("recall", self.recall, expected));
        }
        if !CODE_BITS.contains(&self.code_bits) {
            return Err(Error::invalid("code_bits", self.code_bits, "32 to 64"));
        }
        let banding = match self.banding {
            Some((bands, rows)) => Banding::explicit(bands, rows, self.values)?,
            None => Banding::by_recall(self.values, self.threshold, self.recall)?,
        };
        Ok(MinHashSchema {
            values: self.values,
            threshold: self.threshold,
            banding,
            code_bits: self.code_bits,
        })
    }
}

/// How a schema files and compares SimHash fingerprints (Charikar 2002; Manku, Jain and Das Sarma
/// 2007).
///
/// ```
/// use resemblance::{Schema, SimHash};
/// let schema = Schema::builder()
///     .simhash(SimHash::bits64().max_distance(3))
///     .expected_documents(1_000_000)
///     .build()?;
/// assert_eq!(schema.simhash().unwrap().max_distance(), 3);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimHash {
    bits: u8,
    max_distance: u8,
}

impl SimHash {
    /// Fingerprints of 64 bits.
    #[must_use]
    pub fn bits64() -> Self {
        Self {
            bits: 64,
            max_distance: 3,
        }
    }

    /// The greatest number of differing bits between near-duplicates, 1 to 8; inclusive; 3 if not
    /// given. The store finds *every* fingerprint within it, and refuses to be asked for more.
    #[must_use]
    pub fn max_distance(mut self, distance: u8) -> Self {
        self.max_distance = distance;
        self
    }
}

/// Collects the parts of a [`Schema`].
#[derive(Clone, Debug)]
pub struct SchemaBuilder {
    text: Option<Text>,
    minhash: Option<MinHash>,
    simhash: Option<SimHash>,
    near: Near,
    seed: u64,
    expected_documents: u64,
    empty: EmptyDocuments,
}

impl Default for SchemaBuilder {
    fn default() -> Self {
        Self {
            text: None,
            minhash: None,
            simhash: None,
            near: Near::Any,
            seed: 1,
            expected_documents: 1_000_000,
            empty: EmptyDocuments::Distinct,
        }
    }
}

impl SchemaBuilder {
    /// How texts are cut into shingles. Without it the store takes features and signatures only.
    #[must_use]
    pub fn text(mut self, text: Text) -> Self {
        self.text = Some(text);
        self
    }

    /// Adds MinHash signatures.
    #[must_use]
    pub fn minhash(mut self, minhash: MinHash) -> Self {
        self.minhash = Some(minhash);
        self
    }

    /// Adds SimHash fingerprints.
    #[must_use]
    pub fn simhash(mut self, simhash: SimHash) -> Self {
        self.simhash = Some(simhash);
        self
    }

    /// What *near* means where both families are given; [`Near::Any`] if not said.
    #[must_use]
    pub fn near(mut self, near: Near) -> Self {
        self.near = near;
        self
    }

    /// The seed of all hash functions; 1 if not given. Signatures made with different seeds cannot
    /// be compared.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How many documents the store is expected to grow to; 1,000,000 if not given. It decides
    /// only how many permuted tables SimHash gets: more documents than expected make probes
    /// slower, never wrong.
    #[must_use]
    pub fn expected_documents(mut self, documents: u64) -> Self {
        self.expected_documents = documents;
        self
    }

    /// What documents without features are to each other; [`EmptyDocuments::Distinct`] if not said.
    #[must_use]
    pub fn empty_documents(mut self, empty: EmptyDocuments) -> Self {
        self.empty = empty;
        self
    }

    /// Checks the parts and chooses bands and tables.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] names the part that is out of range or missing.
    pub fn build(self) -> Result<Schema> {
        let recipe = Recipe {
            text: self.text,
            seed: self.seed,
            empty: self.empty,
            minhash_values: self.minhash.map(|minhash| minhash.values),
            simhash_bits: self.simhash.map(|simhash| simhash.bits.into()),
        };
        recipe.validate()?;
        let expected_documents = self.expected_documents;
        let simhash = self
            .simhash
            .map(|simhash| choose_design(simhash.bits, simhash.max_distance, expected_documents))
            .transpose()?;
        Ok(Schema {
            recipe,
            unicode_version: UNICODE_VERSION,
            minhash: self.minhash.map(MinHash::build).transpose()?,
            simhash: simhash.map(|design| SimHashSchema { design }),
            near: self.near,
            expected_documents,
        })
    }
}
