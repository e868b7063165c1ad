//! What is kept of a document.

use std::hash::{Hash, Hasher};

use super::minhash::estimate_equal;
use crate::error::{Error, Result};

/// What a document becomes: MinHash values, a SimHash fingerprint, or both.
///
/// A [`Sketcher`](crate::Sketcher) makes signatures and marks them with its recipe, so that those
/// of different recipes are not compared by mistake. Signatures that another program made come in
/// through [`from_minhash`](Self::from_minhash), [`from_simhash`](Self::from_simhash) and
/// [`from_parts`](Self::from_parts), unmarked: that they fit together is up to the caller.
///
/// A document without features has an *empty* signature: all MinHash values are `u32::MAX`, the
/// fingerprint is 0. [`is_empty`](Self::is_empty) tells it from a document that has these by
/// chance.
///
/// ```
/// use resemblance::Signature;
///
/// let a = Signature::from_parts(Some(vec![1, 2, 3, 4]), Some(0b1011));
/// let b = Signature::from_parts(Some(vec![1, 2, 3, 9]), Some(0b0001));
/// assert_eq!(a.jaccard(&b)?, 0.75);
/// assert_eq!(a.hamming(&b)?, 2);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Signature {
    minhash: Option<Vec<u32>>,
    simhash: Option<u64>,
    empty: bool,
    recipe: Option<u64>,
}

/// Signatures are equal if their values are: one that a sketcher made equals the same one given raw.
impl PartialEq for Signature {
    fn eq(&self, other: &Self) -> bool {
        (&self.minhash, self.simhash, self.empty) == (&other.minhash, other.simhash, other.empty)
    }
}

impl Eq for Signature {}

impl Hash for Signature {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.minhash, self.simhash, self.empty).hash(state);
    }
}

impl Signature {
    /// A signature of ready-made MinHash values.
    ///
    /// ```
    /// let signature = resemblance::Signature::from_minhash(vec![7; 128]);
    /// assert_eq!(signature.minhash().map(<[u32]>::len), Some(128));
    /// ```
    #[must_use]
    pub fn from_minhash(values: Vec<u32>) -> Self {
        Self::from_parts(Some(values), None)
    }

    /// A signature of a ready-made SimHash fingerprint of 64 bits.
    ///
    /// ```
    /// let signature = resemblance::Signature::from_simhash(0xdead_beef);
    /// assert_eq!(signature.simhash(), Some(0xdead_beef));
    /// ```
    #[must_use]
    pub fn from_simhash(fingerprint: u64) -> Self {
        Self::from_parts(None, Some(fingerprint))
    }

    /// A signature of ready-made parts.
    ///
    /// MinHash values that are all `u32::MAX`, which is what other libraries give a document
    /// without features, make the signature [empty](Self::is_empty). No values at all are the same
    /// as `None`.
    #[must_use]
    pub fn from_parts(minhash: Option<Vec<u32>>, simhash: Option<u64>) -> Self {
        let minhash = minhash.filter(|values| !values.is_empty());
        let untouched = |values: &Vec<u32>| values.iter().all(|value| *value == u32::MAX);
        let empty = minhash.as_ref().is_some_and(untouched);
        Self::decode_parts(minhash, simhash, empty, None)
    }

    /// The signature with all that it consists of.
    pub(crate) fn decode_parts(
        minhash: Option<Vec<u32>>,
        simhash: Option<u64>,
        empty: bool,
        recipe: Option<u64>,
    ) -> Self {
        Self {
            minhash,
            simhash,
            empty,
            recipe,
        }
    }

    /// The MinHash values.
    #[must_use]
    pub fn minhash(&self) -> Option<&[u32]> {
        self.minhash.as_deref()
    }

    /// The SimHash fingerprint.
    #[must_use]
    pub fn simhash(&self) -> Option<u64> {
        self.simhash
    }

    /// Whether it is that of a document without features.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.empty
    }

    /// The recipe that made it; `None` for ready-made parts.
    pub(crate) fn recipe_fingerprint(&self) -> Option<u64> {
        self.recipe
    }

    /// The estimated Jaccard similarity of the two documents' sets of features, 0 to 1: the share
    /// of equal MinHash values (Broder 1997).
    ///
    /// Its standard deviation is √(J (1 − J) / k) for k values: 0.035 at J = 0.8 and k = 128. It
    /// over-estimates by at most about (1 − J) n / 2³³ for n distinct features in the two documents
    /// together (0.0001 at a million): values have 32 bits. Two empty signatures have similarity 1,
    /// as equal sets; an empty one and another 0.
    ///
    /// # Errors
    ///
    /// [`Error::SignatureMismatch`] if one has no MinHash values, their numbers differ, or both
    /// are marked with different recipes.
    pub fn jaccard(&self, other: &Self) -> Result<f64> {
        self.same_recipe(other)?;
        let (Some(a), Some(b)) = (self.minhash(), other.minhash()) else {
            return Err(Error::signature(
                "no MinHash values",
                "MinHash values in both signatures",
            ));
        };
        if a.len() != b.len() || a.is_empty() {
            let found = format!("{} MinHash values", b.len());
            let expected = format!("{}, at least 1, as the other signature has", a.len());
            return Err(Error::signature(found, expected));
        }
        Ok(match (self.empty, other.empty) {
            (true, true) => 1.0,
            (true, false) | (false, true) => 0.0,
            (false, false) => estimate_equal(a, b) as f64 / a.len() as f64,
        })
    }

    /// The Hamming distance of the two SimHash fingerprints in bits, 0 to 64.
    ///
    /// Divided by 64 it estimates θ / π, where θ is the angle between the two documents' weighted
    /// vectors of features (Charikar 2002). The fingerprint of an empty signature is 0 and is
    /// compared as any other; ask [`is_empty`](Self::is_empty) first where that matters.
    ///
    /// # Errors
    ///
    /// [`Error::SignatureMismatch`] if one has no fingerprint, or both are marked with different
    /// recipes.
    pub fn hamming(&self, other: &Self) -> Result<u32> {
        self.same_recipe(other)?;
        let (Some(a), Some(b)) = (self.simhash, other.simhash) else {
            return Err(Error::signature(
                "no fingerprint",
                "a SimHash fingerprint in both signatures",
            ));
        };
        Ok((a ^ b).count_ones())
    }

    fn same_recipe(&self, other: &Self) -> Result<()> {
        match (self.recipe, other.recipe) {
            (Some(a), Some(b)) if a != b => Err(Error::signature(
                format!("recipe {b:016x}"),
                format!("recipe {a:016x}"),
            )),
            _ => Ok(()),
        }
    }
}
