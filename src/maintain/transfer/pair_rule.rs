//! Which two signatures are a pair, for programs that find candidates elsewhere.

use std::ops::Range;
use std::sync::Arc;

use crate::query::{ResolvedBounds, Scored};
use crate::sketch::Signature;
use crate::state::SharedContext;

/// Decides which candidates are near-duplicates as a join of a store or a corpus does, for programs that
/// sort signatures into buckets on many machines: made by
/// [`Codec::pair_rule`](crate::Codec::pair_rule). A clone is cheap, and all threads may use it.
///
/// The pairs of a corpus are those that [`score`](Self::score) returns, of all that agree in one of the
/// [`lanes`](Self::lanes) of their bucket codes.
///
/// ```
/// use resemblance::{Bounds, Codec, MinHash, Schema, Text};
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
/// assert_eq!(rule.score(&a, &b, None, shares_band), Some((Some(1.0), None)));
/// // The texts themselves may tell that two are less alike than they seem.
/// assert_eq!(rule.score(&a, &b, Some(0.5), shares_band), None);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone)]
pub struct PairRule {
    context: Arc<SharedContext>,
    bounds: ResolvedBounds,
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

    /// Returns the positions in [`Codec::bucket_codes`](crate::Codec::bucket_codes) that give the
    /// candidates. Those below [`bands`](Self::bands) are bands, the others permuted tables.
    #[must_use]
    pub fn lanes(&self) -> Range<usize> {
        let bands = self.bands();
        let start = if self.bounds.probes_bands() { 0 } else { bands };
        let tables = usize::from(self.context.lanes.table_count());
        let end = bands
            + if self.bounds.probes_tables() {
                tables
            } else {
                0
            };
        start..end
    }

    /// Returns the number of bands of the schema.
    ///
    /// ```
    /// # use resemblance::{Bounds, Codec, MinHash, Schema, SimHash};
    /// let schema = Schema::builder().minhash(MinHash::new(64).banding(16, 4)).simhash(SimHash::bits64());
    /// let rule = Codec::new(&schema.build()?)?.pair_rule(Bounds::new().max_distance(3))?;
    /// assert_eq!((rule.bands(), rule.lanes().start), (16, 16)); // tables alone
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn bands(&self) -> usize {
        self.context.lanes.band_count().into()
    }

    /// Returns the similarity, if the schema has MinHash or `exact` is given, and the distance, if it has
    /// SimHash, of two candidates; `None` if they are not within the bounds. `exact` is their exact
    /// similarity, 0 to 1, which then decides in place of the estimate. `shares_band` says that one of the
    /// buckets that they share is a band's: two that only tables bring together are no pair beyond the
    /// distance.
    ///
    /// Both must be signatures of the schema, as [`Codec::decode`](crate::Codec::decode) returns them.
    #[must_use]
    pub fn score(
        &self,
        a: &Signature,
        b: &Signature,
        exact: Option<f64>,
        shares_band: bool,
    ) -> Option<(Option<f64>, Option<u32>)> {
        let is_filed = self.context.is_filed(a) && a.is_empty() == b.is_empty();
        let nearness = self.nearness(a, b, exact);
        let distance = nearness.1.map_or(0, |distance| distance);
        let is_far = self.bounds.max_distance.is_some_and(|max| distance > max);
        if !is_filed || is_far && !shares_band {
            return None;
        }
        let scored = Scored {
            id: 0,
            similarity: nearness.0.map_or(0.0, |similarity| similarity),
            is_exact: exact.is_some(),
            distance,
        };
        scored.is_within(&self.bounds).then_some(nearness)
    }

    /// Returns what [`score`](Self::score) does, whatever the bounds are.
    ///
    /// ```
    /// # use resemblance::{Bounds, Codec, MinHash, Schema, Text};
    /// # let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
    /// let rule = Codec::new(&schema)?.pair_rule(Bounds::new())?;
    /// let (a, b) = (schema.sketcher().text("a b c")?, schema.sketcher().text("x y z")?);
    /// assert_eq!(rule.nearness(&a, &b, None), (Some(0.0), None));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn nearness(
        &self,
        a: &Signature,
        b: &Signature,
        exact: Option<f64>,
    ) -> (Option<f64>, Option<u32>) {
        let layout = self.context.shape().values;
        let estimate = layout.map(|layout| layout.similarity(a.agreement(layout, b)));
        let fingerprints = a.simhash().zip(b.simhash());
        let distance = fingerprints.map(|(a, b)| (a ^ b).count_ones());
        (exact.or(estimate), distance)
    }
}
