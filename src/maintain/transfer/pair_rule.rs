//! The rule that decides whether two signatures are a pair, for programs that find candidates
//! themselves.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::query::{ResolvedBounds, Scored};
use crate::state::SharedContext;
use resemblance_sketch::sketch::Signature;

/// Decides which candidates are near-duplicates, as a join of a store or a corpus does. It serves
/// programs that sort signatures into buckets on many machines.
/// [`Codec::pair_rule`](crate::distributed::Codec::pair_rule) creates it. A clone is cheap, and all
/// threads may use it.
///
/// The pairs of a corpus are those candidates for which [`compare`](Self::compare) reports a pair.
/// Candidates are all documents that agree in one of the [`lanes`](Self::lanes) of their bucket
/// codes.
///
/// ```
/// use resemblance::{Bounds, MinHash, Schema, Text, distributed::Codec};
/// let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
/// let codec = Codec::new(&schema)?;
/// let rule = codec.pair_rule(Bounds::new())?;
///
/// let texts = ["one two three four five six seven eight", "eight seven six five four three two one"];
/// let [a, b] = texts.map(|text| schema.sketcher().text(text));
/// let (a, b) = (a?, b?);
/// let codes = [codec.bucket_codes(&a)?, codec.bucket_codes(&b)?];
/// let shares_band = rule.lanes().any(|lane| codes[0][lane] == codes[1][lane]);
/// assert!(shares_band);
/// let score = rule.compare(&a, &b, None, shares_band)?;
/// assert_eq!((score.is_pair, score.similarity, score.distance), (true, Some(1.0), None));
/// // The texts themselves may show that two are less alike than they seem.
/// assert!(!rule.compare(&a, &b, Some(0.5), shares_band)?.is_pair);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone)]
pub struct PairRule {
    context: Arc<SharedContext>,
    bounds: ResolvedBounds,
}

/// The similarity and distance of two documents, computed by a [`PairRule`].
///
/// ```
/// # use resemblance::{Bounds, Fingerprint, Schema, Signature, SimHash, distributed::Codec};
/// let schema = Schema::builder().simhash(SimHash::external(256)).build()?;
/// let rule = Codec::new(&schema)?.pair_rule(Bounds::new().max_distance(1))?;
/// let [a, b] = [[0_u8; 32], [1; 32]].map(Signature::from_fingerprint);
/// let score = rule.compare(&a, &b, None, false)?;
/// assert_eq!((score.is_pair, score.distance), (false, Some(32)));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PairScore {
    /// True if the documents are within the bounds.
    pub is_pair: bool,
    /// The similarity, 0 to 1: the exact one if it was passed, otherwise the estimate. `None` if
    /// there is neither.
    pub similarity: Option<f64>,
    /// The Hamming distance in bits, if the schema has SimHash.
    pub distance: Option<u32>,
}

impl std::fmt::Debug for PairRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PairRule")
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}

impl PairRule {
    pub(super) fn new(context: &Arc<SharedContext>, bounds: ResolvedBounds) -> Self {
        Self {
            context: Arc::clone(context),
            bounds,
        }
    }

    /// Returns the positions in [`Codec::bucket_codes`](crate::distributed::Codec::bucket_codes) in
    /// which candidates agree. Those below [`bands`](Self::bands) are bands, the others permuted
    /// tables.
    #[must_use]
    pub fn lanes(&self) -> Range<usize> {
        // Codes of keys are not among them.
        let lanes = self.bounds.lanes(&self.context.lanes);
        usize::from(lanes.start - 1)..usize::from(lanes.end - 1)
    }

    /// Returns the number of bands of the schema.
    ///
    /// ```
    /// # use resemblance::{Bounds, MinHash, Schema, SimHash, distributed::Codec};
    /// let schema = Schema::builder().minhash(MinHash::new(64).banding(16, 4)).simhash(SimHash::bits64());
    /// let rule = Codec::new(&schema.build()?)?.pair_rule(Bounds::new().max_distance(3))?;
    /// assert_eq!((rule.bands(), rule.lanes().start), (16, 16)); // tables alone
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn bands(&self) -> usize {
        self.context.lanes.band_count().into()
    }

    /// Computes the similarity and distance of two candidates, and whether they are a pair. If
    /// `exact` is set, this exact similarity, 0 to 1, replaces the estimate. `shares_band` is true
    /// if they share the bucket of a band. Two documents that share only buckets of tables are not
    /// a pair beyond the distance.
    ///
    /// Without `exact`, the sets of an [exact](crate::SchemaBuilder::exact) schema decide.
    ///
    /// # Errors
    ///
    /// [`Error::SignatureMismatch`] if a signature does not fit the schema, and
    /// [`Error::InvalidParameter`] for an exact similarity outside 0 to 1.
    pub fn compare(
        &self,
        a: &Signature,
        b: &Signature,
        exact: Option<f64>,
        shares_band: bool,
    ) -> Result<PairScore> {
        self.context.check_signature(a)?;
        self.context.check_signature(b)?;
        if let Some(similarity) = exact
            && !(0.0..=1.0).contains(&similarity)
        {
            let expected = "a similarity of 0 to 1";
            return Err(Error::invalid("exact", similarity, expected));
        }
        let layout = self.context.shape().values;
        let estimate = layout.map(|layout| layout.similarity(a.agreement(layout, b)));
        let exact = match exact {
            Some(similarity) => Some(similarity),
            None => self.context.set_similarity(a, b, 0.0)?,
        };
        let similarity = exact.or(estimate);
        let fingerprints = a.fingerprint().zip(b.fingerprint());
        let distance = fingerprints.map(|(a, b)| a.distance(&b));
        let is_filed = self.context.is_filed(a) && a.is_empty() == b.is_empty();
        let bounded = distance.zip(self.bounds.max_distance);
        let is_near = bounded.is_none_or(|(distance, max)| distance <= max);
        // No bound concerns a family that the schema does not have.
        let scored = Scored {
            id: 0,
            similarity: similarity.unwrap_or(0.0),
            is_exact: exact.is_some(),
            distance: distance.unwrap_or(0),
        };
        Ok(PairScore {
            is_pair: is_filed && (is_near || shares_band) && scored.is_within(&self.bounds),
            similarity,
            distance,
        })
    }
}
