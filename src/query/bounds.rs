//! The options of searches, and their bounds, checked against the schema.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::threads::MAX_THREADS;
use crate::types::{Certainty, CertaintyBasis, DocumentId};
use resemblance_sketch::lanes::LaneSet;
use resemblance_sketch::schema::{Combine, MinHashSchema, Schema};

/// The family of signatures that a query compares.
///
/// ```
/// # use resemblance::{Bounds, Family, MinHash, Schema, SimHash, Store, Text};
/// # let (minhash, simhash) = (MinHash::new(64), SimHash::bits64());
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(minhash).simhash(simhash).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # store.insert("a", &page)?;
/// let snapshot = store.snapshot()?;
/// let either = snapshot.query(&page).bounds(Bounds::new().by(Family::Any)).run()?;
/// let both = Bounds::new().by(Family::Both).min_similarity(0.9).max_distance(1);
/// let both = snapshot.query(&page).bounds(both).run()?;
/// assert_eq!((either.len(), both.len()), (1, 1));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// Find documents by similarity only: that of features, or of [vectors](crate::Vector).
    MinHash,
    /// Find documents by distance only.
    SimHash,
    /// Find documents that meet either bound. No document within the distance is missing. A
    /// document that is near only by similarity is found with the probability of the bands,
    /// [`Matches::recall`](crate::Matches::recall).
    Any,
    /// Find documents that meet both bounds. The tables provide the candidates and miss none within
    /// the distance, so no document within both bounds is missing, and
    /// [`Matches::recall`](crate::Matches::recall) is `None`. How many pairs of a given exact
    /// similarity are within both bounds is another question. The families hash independently of
    /// each other, so that share is the share within the distance, multiplied by the share whose
    /// estimate is within its bound.
    Both,
}

/// The options of searches, for callers who store them as data. The builder methods set the same
/// fields.
///
/// Each search reads only some of the options. [`Nearest`](crate::Nearest) reads `bounds.by`,
/// `scan`, `exclude`, `with_payloads` and `min_recall`.
/// [`ContainmentQuery`](crate::ContainmentQuery) reads `limit` and `threads`. [`Join`](crate::Join)
/// reads `bounds`, `threads`, `memory_bytes` and `max_bucket`. [`Query`](crate::Query) reads all
/// except `min_recall`, `memory_bytes` and `max_bucket`.
///
/// ```
/// # use resemblance::{MinHash, Schema, SearchOptions, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # let ids = [store.insert("a", &page)?, store.insert("b", &page)?];
/// let mut options = SearchOptions::default();
/// options.limit = Some(1);
/// options.exclude = Some(ids[0]);
/// let snapshot = store.snapshot()?;
/// let matches = snapshot.query(&page).options(options).run()?;
/// assert_eq!((matches.len(), matches[0].id()), (1, ids[1]));
/// let answers = snapshot.query(&[page.clone(), page]).options(options).run()?;
/// assert_eq!(answers, [matches.clone(), matches]);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SearchOptions {
    /// The bounds that documents must meet.
    pub bounds: Bounds,
    /// The maximum number of documents in an answer, which contains the best ones. `None` returns
    /// all.
    pub limit: Option<usize>,
    /// See [`Query::probe_budget`](crate::Query::probe_budget).
    pub probe_budget: Option<u64>,
    /// `Some(true)` compares with every document, and `Some(false)` never does. `None` compares
    /// with every document if that costs less, or if [`Nearest`](crate::Nearest) needs it. For
    /// [`Nearest`](crate::Nearest), `Some(true)` means the same as `None`.
    pub scan: Option<bool>,
    /// A document to leave out.
    pub exclude: Option<DocumentId>,
    /// True to return the payloads of documents as well.
    pub with_payloads: bool,
    /// The number of threads, 1 to 1,024. `None` uses as many threads as the machine runs at once,
    /// and one for joins.
    pub threads: Option<usize>,
    /// See [`Nearest::min_recall`](crate::Nearest::min_recall); `None` means 0.9.
    pub min_recall: Option<f64>,
    /// See [`Join::memory_bytes`](crate::Join::memory_bytes); `None` means 64 MiB.
    pub memory_bytes: Option<u64>,
    /// See [`Join::max_bucket`](crate::Join::max_bucket); `None` compares all.
    pub max_bucket: Option<usize>,
}

impl SearchOptions {
    pub(crate) fn check_threads(&self) -> Result<()> {
        match self.threads {
            Some(threads) if !(1..=MAX_THREADS).contains(&threads) => {
                Err(Error::invalid("threads", threads, "1 to 1,024"))
            }
            _ => Ok(()),
        }
    }
}

/// Bounds on the results of a query or a join. All are inclusive.
///
/// A bound that is not set comes from the schema: its threshold, its maximum distance, and its
/// [`Combine`] rule. If a schema has both families and only one bound is set, only the family of
/// that bound counts.
///
/// ```
/// use resemblance::Bounds;
/// let bounds = Bounds::new().min_similarity(0.9);
/// # let _ = bounds;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Bounds {
    /// See the [method](Self::min_similarity); `None` takes the schema's threshold.
    pub min_similarity: Option<f64>,
    /// See the [method](Self::max_distance); `None` takes the schema's maximum distance.
    pub max_distance: Option<u32>,
    /// The family to compare. `None` leaves the choice to the bounds and the schema.
    pub by: Option<Family>,
    /// See the [method](Self::accept_lower_recall).
    pub accept_lower_recall: bool,
    /// See the [method](Self::margin); 0 accepts estimates at or above the bound.
    pub margin: f64,
}

impl Bounds {
    /// Creates bounds that are all taken from the schema.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the minimum similarity, 0 to 1. It is compared with the estimate, or with the exact
    /// similarity if it is verified. A value below the schema's threshold is an error, unless
    /// [`accept_lower_recall`](Self::accept_lower_recall) is set or a scan is requested.
    #[must_use]
    pub fn min_similarity(mut self, similarity: f64) -> Self {
        self.min_similarity = Some(similarity);
        self
    }

    /// Sets the maximum distance in bits. Default: the distance of the schema. No document within it
    /// is missed. Beyond the distance that the buckets of the tables cover, a query also reads
    /// neighbouring buckets, or compares with every document if that costs less:
    /// [`Matches::scope`](crate::Matches::scope) reports which. A join then sorts the fingerprints
    /// into special tables. A query accepts any value. A join accepts at most 63 bits, and 31 for
    /// fingerprints of 32 bits.
    ///
    /// ```
    /// # use resemblance::{Bounds, MinHash, Schema, SimHash, Store, Text};
    /// # let (minhash, simhash) = (MinHash::new(64), SimHash::bits64());
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(minhash).simhash(simhash).build()?;
    /// # let store = Store::in_memory(schema)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # store.insert("a", &page)?;
    /// let bounds = Bounds::new().max_distance(2);
    /// let matches = store.snapshot()?.query(&page).bounds(bounds).run()?;
    /// assert_eq!(matches[0].distance(), Some(0));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn max_distance(mut self, distance: u32) -> Self {
        self.max_distance = Some(distance);
        self
    }

    /// Sets the family to compare.
    ///
    /// ```
    /// # use resemblance::{Bounds, Family, MinHash, Schema, SimHash, Store, Text};
    /// # let (minhash, simhash) = (MinHash::new(64), SimHash::bits64());
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(minhash).simhash(simhash).build()?;
    /// # let store = Store::in_memory(schema)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # store.insert("a", &page)?;
    /// let bounds = Bounds::new().by(Family::SimHash);
    /// let matches = store.snapshot()?.query(&page).bounds(bounds).run()?;
    /// assert_eq!(matches.recall(), None); // by distance nothing is missed
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn by(mut self, by: Family) -> Self {
        self.by = Some(by);
        self
    }

    /// Accepts that pairs below the schema's threshold are found with a lower probability than the
    /// schema's recall.
    ///
    /// ```
    /// # use resemblance::{Bounds, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # store.insert("a", &page)?;
    /// let snapshot = store.snapshot()?;
    /// let loose = Bounds::new().min_similarity(0.5); // the bands were made for 0.8
    /// assert!(snapshot.query(&page).bounds(loose).run().is_err());
    /// let matches = snapshot.query(&page).bounds(loose.accept_lower_recall()).run()?;
    /// assert!(matches.recall() < Some(0.95));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn accept_lower_recall(mut self) -> Self {
        self.accept_lower_recall = true;
        self
    }

    /// Accepts estimates of the similarity from `deviations` standard deviations below the bound, 0
    /// to 10: from t − z √(t (1 − t) / k) for k whole values. About half of the documents whose true
    /// similarity is right at the bound have an estimate below it; with a margin of 2, one in 44
    /// has. The answer then also holds documents that are truly below the bound: about half of those
    /// whose true similarity is [where estimates are
    /// accepted](crate::schema::MinHashSchema::accepted_from) and that share a band. Exact
    /// similarities are compared with the bound itself.
    ///
    /// ```
    /// # use resemblance::{Bounds, MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(128).threshold(0.8).recall(0.99)).build()?;
    /// let certainty = Bounds::new().margin(3.0).certainty(&schema, false)?;
    /// assert_eq!(certainty.about(), Some("truth"));
    /// assert!(certainty.missed_at_most() < Some(0.011));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn margin(mut self, deviations: f64) -> Self {
        self.margin = deviations;
        self
    }

    /// Returns how sure a search within these bounds is that it misses no document, in a store with
    /// this schema, unless something ends the search early. Exact similarities decide if the search
    /// `verifies` each candidate, or if the schema is exact. Otherwise estimates decide.
    ///
    /// ```
    /// # use resemblance::{Bounds, MinHash, Schema, search::Certainty};
    /// let schema = Schema::builder().minhash(MinHash::new(128).threshold(0.8)).build()?;
    /// let certainty = Bounds::new().certainty(&schema, false)?;
    /// assert!(matches!(certainty, Certainty::Estimate { missed_at_most } if missed_at_most < 0.05));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for bounds outside the schema.
    pub fn certainty(&self, schema: &Schema, verifies: bool) -> Result<Certainty> {
        let is_exact = verifies || schema.is_exact();
        let basis = self.resolve(schema, false)?.basis(schema, is_exact);
        Ok(basis.certainty())
    }

    /// Returns the family by whose bound two documents of a schema are near each other: the
    /// similarity if both bounds are met and one suffices, and [`Family::Both`] if both are met and
    /// must be. `None` if the documents are not near.
    ///
    /// ```
    /// # use resemblance::{Bounds, Family, MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(128).threshold(0.8)).build()?;
    /// let met_by = |similarity| Bounds::new().met_by(&schema, Some(similarity), true, None);
    /// assert_eq!((met_by(0.8)?, met_by(0.79)?), (Some(Family::MinHash), None));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for bounds outside the schema.
    pub fn met_by(
        &self,
        schema: &Schema,
        similarity: Option<f64>,
        is_exact: bool,
        distance: Option<u32>,
    ) -> Result<Option<Family>> {
        let bounds = self.resolve(schema, false)?;
        let least = match is_exact {
            true => bounds.min_similarity,
            false => bounds.least_estimate,
        };
        let is_similar = least.is_some_and(|least| similarity >= Some(least));
        let most = bounds.max_distance;
        let is_close = most.is_some_and(|most| distance.is_some_and(|bits| bits <= most));
        Ok(match (is_similar, is_close, bounds.both) {
            (true, true, true) => Some(Family::Both),
            (_, _, true) | (false, false, _) => None,
            (true, _, false) => Some(Family::MinHash),
            (false, true, false) => Some(Family::SimHash),
        })
    }

    /// Returns the minimum similarity of two documents of a schema that are near, whatever their
    /// distance; 0 if a bound on the distance suffices.
    ///
    /// ```
    /// # use resemblance::{Bounds, MinHash, Schema, SimHash};
    /// let minhash = Schema::builder().minhash(MinHash::new(128).threshold(0.8)).build()?;
    /// let simhash = Schema::builder().simhash(SimHash::bits64()).build()?;
    /// let floor = |schema| Bounds::new().similarity_floor(schema);
    /// assert_eq!((floor(&minhash)?, floor(&simhash)?), (0.8, 0.0));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for bounds outside the schema.
    pub fn similarity_floor(&self, schema: &Schema) -> Result<f64> {
        Ok(self.resolve(schema, false)?.similarity_floor())
    }

    /// Checks the bounds against a schema. A scan examines every document and so accepts any
    /// bounds.
    pub(crate) fn resolve(&self, schema: &Schema, scan: bool) -> Result<ResolvedBounds> {
        let by = self.family(schema)?;
        let min_similarity = match (schema.minhash(), by) {
            (Some(minhash), Family::MinHash | Family::Any | Family::Both) => {
                let similarity = self.min_similarity.unwrap_or(minhash.threshold());
                self.check_similarity(similarity, minhash.threshold(), scan)?;
                Some(similarity)
            }
            _ => unused("min_similarity", self.min_similarity.is_some())?,
        };
        let max_distance = match (schema.simhash(), by) {
            (Some(simhash), Family::SimHash | Family::Any | Family::Both) => {
                let design = u32::from(simhash.max_distance());
                Some(self.max_distance.unwrap_or(design))
            }
            _ => unused("max_distance", self.max_distance.is_some())?,
        };
        // Only bands can miss a document: tables miss none within the distance, which by both decides.
        // A scan that merely saves time drops the documents that the bands would miss.
        let recall = match (schema.minhash(), by) {
            (Some(minhash), Family::MinHash | Family::Any) if !scan => {
                Some(minhash.probability(self.min_similarity.unwrap_or(minhash.threshold())))
            }
            _ => None,
        };
        let both = by == Family::Both;
        let accepted_from = self.accepted_from(schema.minhash().zip(min_similarity))?;
        let layout = schema.minhash().map(|minhash| minhash.layout());
        // Estimates are multiples of a step. The bound is rounded to one of them once, so that
        // pairs and queries agree at the bound.
        let least = accepted_from
            .or(min_similarity)
            .zip(layout)
            .map(|(similarity, layout)| {
                let equal = layout.min_agreement(similarity);
                (equal, layout.similarity(equal))
            });
        let (least_equal, least_estimate) = least.unzip();
        let vectors = schema
            .minhash()
            .filter(|it| it.kind().vector().is_some() && !scan);
        let plausible = vectors.zip(min_similarity).map(|(minhash, similarity)| {
            let layout = minhash.layout();
            // Projections and similarities are rounded.
            let least = similarity * (1.0 - SIMILARITY_ROUNDING);
            let equal = layout.plausible_agreement(least, MISSED_BY_VALUES);
            (equal, layout.similarity(equal))
        });
        Ok(ResolvedBounds {
            min_similarity,
            least_equal,
            least_estimate,
            max_distance,
            both,
            recall,
            accepted_from,
            plausible,
        })
    }

    /// Returns the least estimate that is accepted, if there is a margin.
    fn accepted_from(&self, bound: Option<(MinHashSchema, f64)>) -> Result<Option<f64>> {
        if !(0.0..=MAX_MARGIN).contains(&self.margin) {
            return Err(Error::invalid("margin", self.margin, "0 to 10"));
        }
        match bound.filter(|_| self.margin > 0.0) {
            Some((minhash, similarity)) => Ok(Some(minhash.accepted_from(similarity, self.margin))),
            None => unused("margin", self.margin > 0.0),
        }
    }

    fn family(&self, schema: &Schema) -> Result<Family> {
        let has = (schema.minhash().is_some(), schema.simhash().is_some());
        schema.check_families()?;
        let by = match (self.by, has) {
            (Some(by), _) => by,
            (None, (true, false)) => Family::MinHash,
            (None, (false, _)) => Family::SimHash,
            (None, (true, true)) => match (self.min_similarity, self.max_distance) {
                // One bound that is given means its family alone.
                (Some(_), None) => Family::MinHash,
                (None, Some(_)) => Family::SimHash,
                _ if schema.near() == Combine::Both => Family::Both,
                _ => Family::Any,
            },
        };
        let available = match by {
            Family::MinHash => has.0,
            Family::SimHash => has.1,
            Family::Any | Family::Both => has.0 && has.1,
        };
        if available {
            Ok(by)
        } else {
            Err(Error::invalid(
                "by",
                format!("{by:?}"),
                "a family that the schema has",
            ))
        }
    }

    fn check_similarity(&self, similarity: f64, threshold: f64, scan: bool) -> Result<()> {
        if !(0.0..=1.0).contains(&similarity) {
            return Err(Error::invalid("min_similarity", similarity, "0 to 1"));
        }
        if similarity < threshold && !scan && !self.accept_lower_recall {
            let expected = format!(
                "at least {threshold}, the schema's threshold, or accept_lower_recall, or a scan"
            );
            return Err(Error::invalid("min_similarity", similarity, expected));
        }
        Ok(())
    }
}

/// The greatest margin, in standard deviations.
const MAX_MARGIN: f64 = 10.0;

/// A bound of a family that is not searched is a mistake that would go unnoticed.
fn unused<T>(parameter: &'static str, given: bool) -> Result<Option<T>> {
    if given {
        Err(Error::invalid(
            parameter,
            "a bound",
            "none: the query does not use that family",
        ))
    } else {
        Ok(None)
    }
}

/// Bounds as the verifier uses them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ResolvedBounds {
    /// The minimum similarity that matters if the caller verifies and MinHash is searched.
    pub(super) min_similarity: Option<f64>,
    /// The minimum agreement of MinHash values (for most kinds, the number of equal values), if
    /// MinHash is searched.
    pub(super) least_equal: Option<usize>,
    /// The estimate for this agreement. Estimates of bottom-k are rounded. An estimate that equals
    /// the bound may be less than it after rounding, and still counts as within it.
    pub(super) least_estimate: Option<f64>,
    /// The greatest distance, if SimHash is asked.
    pub(crate) max_distance: Option<u32>,
    /// True if both must hold.
    pub(super) both: bool,
    /// The probability of looking at a pair right at the bound; `None` means certainty.
    pub(super) recall: Option<f64>,
    /// The least estimate that is accepted, if there is a margin.
    accepted_from: Option<f64>,
    /// The agreement, and its estimate, below which vectors cannot plausibly be within the bound, so
    /// that the vectors themselves need not be read. `None` for sets and for scans.
    plausible: Option<(usize, f64)>,
}

/// The probability with which the hash values of vectors within the bound may show that they are
/// not.
const MISSED_BY_VALUES: f64 = 1e-9;

/// The greatest relative difference that rounding makes to the similarity of two vectors.
const SIMILARITY_ROUNDING: f64 = 1e-6;

/// The candidates that a search needs, by their hash values and fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Estimates decide: candidates within the bounds.
    Accepted,
    /// The store's exact sets or vectors decide: candidates that can be within the bounds.
    Plausible,
    /// A caller decides, by any measure: all.
    All,
}

impl ResolvedBounds {
    /// Returns the minimum similarity that a match can have, whatever its distance; 0 without a
    /// bound.
    pub(crate) fn similarity_floor(&self) -> f64 {
        let decides = self.both || self.max_distance.is_none();
        self.min_similarity.filter(|_| decides).unwrap_or(0.0)
    }

    /// Returns how sure a search within the bounds is, if nothing ends it early. `is_exact` means
    /// that exact similarities decide.
    pub(crate) fn basis(&self, schema: &Schema, is_exact: bool) -> CertaintyBasis {
        let decides_alone = !(self.both && self.max_distance.is_some());
        let minhash = schema.minhash().filter(|_| decides_alone);
        match (minhash.zip(self.min_similarity), is_exact) {
            // Tables have every signature within the distance.
            (None, _) => CertaintyBasis::COMPLETE,
            (Some(_), true) => CertaintyBasis::Known(Certainty::Truth {
                missed_at_most: match self.recall {
                    // Only equal sets are certain, whatever is lost to rounding.
                    Some(recall) if self.min_similarity < Some(1.0) => {
                        let by_values = self.plausible.map_or(0.0, |_| MISSED_BY_VALUES);
                        f64::EPSILON.max(1.0 - recall + by_values)
                    }
                    _ => 0.0,
                },
            }),
            (Some((minhash, similarity)), false) => CertaintyBasis::Estimates {
                banding: self.recall.map(|_| minhash.banding()),
                layout: minhash.layout(),
                similarity,
                accepted_from: self.accepted_from,
            },
        }
    }

    /// Returns true if a pair with this many equal values and this distance meets the bounds.
    pub(crate) fn accepts(&self, equal: usize, distance: u32) -> bool {
        self.decides(self.least_equal.map(|least| equal >= least), distance)
    }

    /// Returns true if a search needs a pair with this many equal values and this distance.
    pub(crate) fn wants(&self, wanted: Wanted, equal: usize, distance: u32) -> bool {
        match (wanted, self.plausible) {
            (Wanted::Accepted, _) => self.accepts(equal, distance),
            (Wanted::Plausible, Some((least, _))) => self.decides(Some(equal >= least), distance),
            (Wanted::Plausible, None) | (Wanted::All, _) => true,
        }
    }

    /// Decides as [`wants`](Self::wants) does, but from an estimate.
    pub(crate) fn wants_estimate(&self, wanted: Wanted, estimate: f64, distance: u32) -> bool {
        match (wanted, self.plausible) {
            (Wanted::Accepted, _) => self.accepts_similarity(estimate, false, distance),
            (Wanted::Plausible, Some((_, least))) => {
                self.decides(Some(estimate >= least), distance)
            }
            (Wanted::Plausible, None) | (Wanted::All, _) => true,
        }
    }

    /// Decides as [`accepts`](Self::accepts) does, but from a similarity: either one that the
    /// caller knows exactly, or an estimate.
    pub(crate) fn accepts_similarity(
        &self,
        similarity: f64,
        is_exact: bool,
        distance: u32,
    ) -> bool {
        // An exact similarity is compared with the bound as it was given, an estimate with the step that the bound was
        // rounded to: both decide as `accepts` does for the same documents.
        let least = if is_exact {
            self.min_similarity
        } else {
            self.least_estimate
        };
        self.decides(least.map(|least| similarity >= least), distance)
    }

    fn decides(&self, near: Option<bool>, distance: u32) -> bool {
        let close = self.max_distance.map(|most| distance <= most);
        match (near, close) {
            (Some(near), Some(close)) if self.both => near && close,
            // A family that is not asked accepts nothing.
            (near, close) => near.unwrap_or(false) || close.unwrap_or(false),
        }
    }

    /// Returns true if candidates come from the bands. Where both bounds must hold, the tables find
    /// all candidates.
    pub(crate) fn probes_bands(&self) -> bool {
        self.least_equal.is_some() && !(self.both && self.max_distance.is_some())
    }

    /// Returns the lanes that give the candidates: of the bands, if these are probed, and of the permuted
    /// tables, if there is a bound on the distance. Lane 0 has the keys.
    pub(crate) fn lanes(&self, lanes: &LaneSet) -> Range<u16> {
        let bands_end = 1 + lanes.band_count();
        let start = if self.probes_bands() { 1 } else { bands_end };
        match self.max_distance {
            Some(_) => start..lanes.single_count(),
            None => start..bands_end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use resemblance_sketch::schema::{MinHash, SimHash, Vector};

    fn both() -> Schema {
        let schema = Schema::builder()
            .minhash(MinHash::new(128).value_bits(32))
            .simhash(SimHash::bits64());
        schema.build().unwrap()
    }

    #[test]
    fn bounds_are_inclusive() {
        let resolved = Bounds::new()
            .min_similarity(0.8125)
            .resolve(&both(), false)
            .unwrap();
        assert_eq!(resolved.least_equal, Some(104), "104 / 128 = 0.8125");
        assert!(resolved.accepts(104, 60) && !resolved.accepts(103, 0));
        for equal in 0..=128 {
            for is_exact in [false, true] {
                let similarity = equal as f64 / 128.0;
                let by_similarity = resolved.accepts_similarity(similarity, is_exact, 0);
                assert_eq!(by_similarity, resolved.accepts(equal, 0), "{equal} of 128");
            }
        }
        let resolved = Bounds::new()
            .max_distance(2)
            .resolve(&both(), false)
            .unwrap();
        assert!(resolved.accepts(0, 2) && !resolved.accepts(128, 3));
    }

    /// Eight of 10 hashes are shared: 0.8, which in steps of 2^-30 is slightly less. Pairs had it
    /// and queries had not.
    #[test]
    fn rounding_keeps_an_estimate_within_its_bound() {
        let schema = Schema::builder().minhash(MinHash::bottom_k(64).threshold(0.8));
        let schema = schema.build().unwrap();
        let resolved = Bounds::new().resolve(&schema, false).unwrap();
        let layout = schema.minhash().unwrap().layout();
        let agreement = |shared: f64| (shared * f64::from(1 << 30)).round() as usize;
        for (shared, is_near) in [(0.8, true), (0.799, false), (0.801, true)] {
            let estimate = layout.similarity(agreement(shared));
            assert_eq!(resolved.accepts(agreement(shared), 0), is_near, "{shared}");
            let by_similarity = resolved.accepts_similarity(estimate, false, 0);
            assert_eq!(by_similarity, is_near, "{shared}");
        }
        assert!(layout.similarity(agreement(0.8)) < 0.8);
    }

    #[test]
    fn bounds_outside_the_schema_are_refused() {
        let schema = both();
        for bounds in [
            Bounds::new().min_similarity(0.79),
            Bounds::new().min_similarity(f64::NAN),
            Bounds::new().min_similarity(1.01).accept_lower_recall(),
            Bounds::new().by(Family::SimHash).min_similarity(0.9),
        ] {
            let refused = bounds.resolve(&schema, false);
            assert!(
                matches!(refused, Err(Error::InvalidParameter { .. })),
                "{bounds:?}"
            );
        }
        assert!(
            Bounds::new()
                .max_distance(40)
                .resolve(&schema, true)
                .is_ok()
        );
        let lower = Bounds::new().min_similarity(0.5).accept_lower_recall();
        let recall = lower.resolve(&schema, false).unwrap().recall.unwrap();
        assert!((recall - schema.minhash().unwrap().probability(0.5)).abs() < 1e-12);
    }

    #[test]
    fn single_bound_selects_its_family() {
        let by_any = Bounds::new().resolve(&both(), false).unwrap();
        assert!(by_any.accepts(128, 64) && by_any.accepts(0, 0));
        let by_both = Bounds::new()
            .by(Family::Both)
            .resolve(&both(), false)
            .unwrap();
        assert!(!by_both.accepts(128, 64) && !by_both.accepts(0, 0) && by_both.accepts(128, 0));
        let minhash = Bounds::new()
            .min_similarity(0.9)
            .resolve(&both(), false)
            .unwrap();
        assert_eq!(minhash.max_distance, None);
    }

    /// The binomial tail in plain floating point: 200 values are few enough for it.
    #[test]
    fn vectors_that_values_show_to_be_far_are_not_wanted() {
        let builder = Schema::builder().vector(Vector::cosine(16).values(200).threshold(0.9));
        let schema = builder.simhash(SimHash::bits64()).build().unwrap();
        let bounds = Bounds::new().by(Family::MinHash);
        let resolved = bounds.resolve(&schema, false).unwrap();
        let agree = 1.0 - (0.9 * (1.0 - 1e-6_f64)).acos() / std::f64::consts::PI;
        let mut term = (1.0 - agree).powi(200);
        let mut fewer = term;
        let mut least = 0;
        while fewer <= 1e-9 {
            term *= f64::from(200 - least) / f64::from(least + 1) * agree / (1.0 - agree);
            fewer += term;
            least += 1;
        }
        assert!((120..160).contains(&least), "{least}");
        let layout = schema.minhash().unwrap().layout();
        for equal in 0..=200 {
            let estimate = layout.similarity(equal as usize);
            for (wanted, is_wanted) in [
                (
                    Wanted::Accepted,
                    estimate >= resolved.least_estimate.unwrap(),
                ),
                (Wanted::Plausible, equal >= least),
                (Wanted::All, true),
            ] {
                let by_equal = resolved.wants(wanted, equal as usize, 64);
                let by_estimate = resolved.wants_estimate(wanted, estimate, 64);
                assert_eq!((by_equal, by_estimate), (is_wanted, is_wanted), "{equal}");
            }
        }
        let (far, plausible) = (least as usize - 1, Wanted::Plausible);
        let any = Bounds::new()
            .by(Family::Any)
            .resolve(&schema, false)
            .unwrap();
        assert!(any.wants(plausible, far, 0) && !any.wants(plausible, far, 64));
        let each = Bounds::new()
            .by(Family::Both)
            .resolve(&schema, false)
            .unwrap();
        assert!(!each.wants(plausible, far, 0) && !each.wants(plausible, 200, 64));
        assert!(each.wants(plausible, 200, 0));
        let missed = resolved
            .basis(&schema, true)
            .certainty()
            .missed_at_most()
            .unwrap();
        assert!((missed - (1.0 - resolved.recall.unwrap()) - 1e-9).abs() < 1e-15);
        // The bound of sets is the sets' alone.
        let sets = Bounds::new().resolve(&both(), false).unwrap();
        assert!(sets.wants(plausible, 0, 64));
    }
}
