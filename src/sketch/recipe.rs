//! All that decides which signature a document has.

use serde::{Deserialize, Serialize};

use super::hash::feature_hash;
use crate::error::{Error, Result};
use crate::text::Text;

/// The bits that a SimHash fingerprint can have.
const SIMHASH_BITS: u16 = 64;

/// Whether documents without features are near-duplicates of each other.
///
/// ```
/// use resemblance::EmptyDocuments;
/// assert_eq!(EmptyDocuments::default(), EmptyDocuments::Distinct);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum EmptyDocuments {
    /// Never: nothing is known about them. No two empty pages are the same page.
    #[default]
    Distinct,
    /// Always: they are equal sets.
    Alike,
}

/// How bytes become features, and features a signature. Part of a store's header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recipe {
    /// How texts become features; without it the caller brings features.
    pub(crate) text: Option<Text>,
    pub(crate) seed: u64,
    pub(crate) empty: EmptyDocuments,
    /// MinHash values, 16 to 1,024.
    pub(crate) minhash_values: Option<u16>,
    /// Bits of the SimHash fingerprint, 64.
    pub(crate) simhash_bits: Option<u16>,
}

impl Recipe {
    pub(crate) fn validate(&self) -> Result<()> {
        if let Some(text) = self.text {
            text.validate()?;
        }
        if let Some(values) = self.minhash_values
            && !(16..=1024).contains(&values)
        {
            return Err(Error::invalid("minhash values", values, "16 to 1,024"));
        }
        if let Some(bits) = self.simhash_bits
            && bits != SIMHASH_BITS
        {
            return Err(Error::invalid("simhash bits", bits, SIMHASH_BITS));
        }
        if self.minhash_values.is_none() && self.simhash_bits.is_none() {
            return Err(Error::invalid(
                "signature",
                "neither MinHash nor SimHash",
                "at least one",
            ));
        }
        Ok(())
    }

    /// A hash of the whole recipe, the version of the Unicode data included. Frozen.
    pub(crate) fn fingerprint(&self) -> u64 {
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
        // A width of 0 is no valid one: it stands for absence.
        bytes.extend_from_slice(&self.minhash_values.unwrap_or(0).to_le_bytes());
        bytes.extend_from_slice(&self.simhash_bits.unwrap_or(0).to_le_bytes());
        feature_hash(&bytes)
    }
}
