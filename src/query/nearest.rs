//! The nearest documents, however far: buckets, then buckets of fewer rows, then all signatures.

use std::cell::Cell;
use std::fmt;

use crate::error::{Error, Result};
use crate::format::Posting;
use crate::index::{CodeRange, ProbeControl};
use crate::query::bounds::By;
use crate::query::candidates::Candidate;
use crate::query::collect::{Collector, Found};
use crate::query::found_ids::FoundIds;
use crate::query::plan::{Families, ProbePlan, ProbedLane};
use crate::query::scored::{Order, Scored};
use crate::query::search::Search;
use crate::query::subject::Subject;
use crate::read::{PostingTable, ReadView};
use crate::sketch::Signature;
use crate::types::{DocumentId, Matches, Scope};

/// A document in this many costs less to look up by itself than to pass by in a scan of all.
const SCANNED_PER_LOOKUP: u64 = 16;

/// So many postings of short buckets are read in any case.
const MIN_POSTINGS: u64 = 1_024;

/// A question for the documents that are nearest to a signature, put together and then run. Made by
/// [`Snapshot::nearest`](crate::Snapshot::nearest) and its kin.
///
/// The search goes from stage to stage until documents as near as the last one that it returns are found
/// with the probability [`min_recall`](Self::min_recall):
///
/// 1. the buckets of a [query](crate::Snapshot::query);
/// 2. [short buckets](Scope::ShortBuckets): the documents that share the first two rows of a band, or the
///    first blocks of a table's prefix. The lanes are the same, so the stage takes no space. It is passed
///    over where more than a sixteenth of the store would have to be looked up;
/// 3. a [scan](Scope::Scan) of all signatures, which finds the `n` nearest with certainty.
///
/// ```
/// # use resemblance::{By, MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(128)).build()?;
/// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// for text in ["a b c d e f g h", "a b c d w x y z", "s t u v w x y z"] {
///     store.insert(text, &store.sketch_text(text)?)?;
/// }
/// let page = store.sketch_text("a b c d e f g i")?;
/// let nearest = store.snapshot()?.nearest(&page, 2).run()?;
/// let keys: Vec<_> = nearest.iter().filter_map(|found| found.key_str()).collect();
/// assert_eq!(keys, ["a b c d e f g h", "a b c d w x y z"]);
/// assert!(nearest.recall() >= Some(0.9));
///
/// // Of MinHash values, and certainly the nearest.
/// let snapshot = store.snapshot()?;
/// let nearest = snapshot.nearest(&page, 2).by(By::MinHash).min_recall(1.0).run()?;
/// assert_eq!(nearest.recall(), Some(1.0));
/// // As many as buckets hold, and their payloads.
/// let nearest = snapshot.nearest(&page, 3).without_scan().with_payloads().run()?;
/// assert_eq!(nearest[0].payload(), Some(&[][..]));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "a question does nothing until it is run"]
pub struct Nearest<'a> {
    view: &'a dyn ReadView,
    documents: u64,
    signature: &'a Signature,
    n: usize,
    by: Option<By>,
    min_recall: f64,
    scans: bool,
    exclude: Option<u64>,
    with_payloads: bool,
}

impl fmt::Debug for Nearest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nearest")
            .field("n", &self.n)
            .field("by", &self.by)
            .field("min_recall", &self.min_recall)
            .field("scans", &self.scans)
            .finish_non_exhaustive()
    }
}

/// How a stage looks for documents.
#[derive(Clone, Copy)]
enum Stage {
    /// In buckets without their last rows or blocks; 0 leaves them whole.
    Buckets {
        dropped: u8,
    },
    Scan,
}

impl Stage {
    fn scope(self) -> Scope {
        match self {
            Self::Buckets { dropped: 0 } => Scope::Candidates,
            Self::Buckets { .. } => Scope::ShortBuckets,
            Self::Scan => Scope::Scan,
        }
    }
}

/// What a stage has found, and whether it is good enough.
struct Judgement {
    recall: f64,
    is_enough: bool,
}

impl<'a> Nearest<'a> {
    /// The question about a signature in a view of so many documents.
    pub(crate) fn new(
        view: &'a dyn ReadView,
        documents: u64,
        signature: &'a Signature,
        n: usize,
    ) -> Self {
        Self {
            view,
            documents,
            signature,
            n,
            by: None,
            min_recall: 0.9,
            scans: true,
            exclude: None,
            with_payloads: false,
        }
    }

    /// Leaves one document out: that of the signature, if it is stored.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// for text in ["a b c d", "a b c e"] {
    ///     store.insert(text, &store.sketch_text(text)?)?;
    /// }
    /// let snapshot = store.snapshot()?;
    /// let record = snapshot.get("a b c d")?.unwrap();
    /// let nearest = snapshot.nearest(record.signature(), 1).excluding(record.id()).run()?;
    /// assert_eq!(nearest[0].key(), Some(&b"a b c e"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn excluding(mut self, id: DocumentId) -> Self {
        self.exclude = Some(id.get());
        self
    }

    /// The family by which documents are near: [`By::MinHash`], the default where the schema has it, or
    /// [`By::SimHash`].
    pub fn by(mut self, by: By) -> Self {
        self.by = Some(by);
        self
    }

    /// The probability, 0 to 1, with which a document as near as the last one of the answer must be found; 0.9 if not
    /// given. With 1 all signatures are read unless the tables find such documents for certain.
    pub fn min_recall(mut self, probability: f64) -> Self {
        self.min_recall = probability;
        self
    }

    /// Reads no more signatures than those in buckets: for large stores. The answer may have fewer documents
    /// than asked for, and its [`recall`](Matches::recall) may be less than
    /// [`min_recall`](Self::min_recall).
    pub fn without_scan(mut self) -> Self {
        self.scans = false;
        self
    }

    /// Gives each match the payload of its document, as [`Query::with_payloads`](crate::Query::with_payloads).
    pub fn with_payloads(mut self) -> Self {
        self.with_payloads = true;
        self
    }

    /// Answers with the `n` nearest documents, the nearest first, or all if there are fewer: of those
    /// with features, if the signature has any. By SimHash, the lesser distance comes before the greater
    /// similarity.
    ///
    /// [`Matches::recall`] is the probability that a document as near as the last one was found, by the
    /// S-curve of the bands or the combinatorics of the tables, and 1 after a scan.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a family that the schema does not have or a probability outside 0
    /// to 1, [`Error::SignatureMismatch`] for a signature of another kind, [`Error::Corrupt`] and
    /// [`Error::Io`] if the file cannot be read.
    pub fn run(self) -> Result<Matches> {
        let n = self.n;
        let family = self.family()?;
        self.search(family, n, &|found, stage| {
            let last = n.checked_sub(1).map(|place| found.near.nth(place));
            let recall = match (stage, last) {
                // None are asked for, or all were looked at.
                (Stage::Scan, _) | (_, None) => 1.0,
                (Stage::Buckets { dropped }, Some(Some(last))) => {
                    self.probability(family, dropped, &last)
                }
                (_, Some(None)) => 0.0,
            };
            Judgement {
                recall,
                is_enough: recall >= self.min_recall && !matches!(last, Some(None)),
            }
        })
    }

    /// Answers the (c, r)-near-neighbour problem (Indyk and Motwani 1998): with a document within the
    /// distance `factor` · `radius`, or with none if there is none within `radius`. Then
    /// [`Matches::recall`] is the probability that one at the distance `radius` would have been found,
    /// at least [`min_recall`](Self::min_recall) unless there is [no scan](Self::without_scan).
    ///
    /// The distance is 1 − J for MinHash, where J is the estimated similarity, and the number of differing
    /// bits for SimHash. The document is the nearest of those that were looked at; how many documents the
    /// question is for does not matter.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), and [`Error::InvalidParameter`] for a radius that is negative, or above 1
    /// for MinHash, or a factor below 1.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(128)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// store.insert("a", &store.sketch_text("a b c d e f g h")?)?;
    /// let (snapshot, page) = (store.snapshot()?, store.sketch_text("a b c d w x y z")?);
    /// assert!(snapshot.nearest(&page, 1).within(0.2, 1.5)?.is_empty());
    /// assert_eq!(snapshot.nearest(&page, 1).within(0.5, 1.9)?[0].key(), Some(&b"a"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn within(self, radius: f64, factor: f64) -> Result<Matches> {
        let family = self.family()?;
        let max_radius = match family {
            By::SimHash => f64::MAX,
            _ => 1.0,
        };
        if !(0.0..=max_radius).contains(&radius) {
            let expected = "0 to 1 for MinHash, 0 bits or more for SimHash";
            return Err(Error::invalid("radius", radius, expected));
        }
        if !(1.0..=f64::MAX).contains(&factor) {
            return Err(Error::invalid("factor", factor, "1 or more"));
        }
        let at_radius = Scored {
            id: 0,
            similarity: 1.0 - radius.min(1.0),
            is_exact: true,
            distance: radius as u32,
        };
        let distance = |scored: &Scored| match family {
            By::SimHash => f64::from(scored.distance),
            _ => 1.0 - scored.similarity,
        };
        self.search(family, 1, &|found, stage| {
            // A similarity and the bound may be equal but for rounding.
            found
                .near
                .retain(|scored| distance(scored) <= radius * factor + 1e-12);
            let recall = match stage {
                Stage::Scan => 1.0,
                Stage::Buckets { dropped } => self.probability(family, dropped, &at_radius),
            };
            Judgement {
                recall,
                is_enough: recall >= self.min_recall || found.near.nth(0).is_some(),
            }
        })
    }

    /// The family that is asked, checked with all other parameters.
    fn family(&self) -> Result<By> {
        let schema = &self.view.context().schema;
        if !(0.0..=1.0).contains(&self.min_recall) {
            return Err(Error::invalid("min_recall", self.min_recall, "0 to 1"));
        }
        schema.check_families()?;
        let default = match schema.minhash() {
            Some(_) => By::MinHash,
            None => By::SimHash,
        };
        match self.by.unwrap_or(default) {
            By::MinHash if schema.minhash().is_some() => Ok(By::MinHash),
            By::SimHash if schema.simhash().is_some() => Ok(By::SimHash),
            by => {
                let expected = "MinHash or SimHash, a family that the schema has";
                Err(Error::invalid("by", format!("{by:?}"), expected))
            }
        }
    }

    /// Goes from stage to stage until one is good enough.
    fn search(
        &self,
        family: By,
        limit: usize,
        judge: &dyn Fn(&mut Found, Stage) -> Judgement,
    ) -> Result<Matches> {
        let context = self.view.context();
        context.check_signature(self.signature)?;
        let (families, order) = match family {
            By::SimHash => (Families::TABLES, Order::Distance),
            _ => (Families::BANDS, Order::Similarity),
        };
        let search = Search::new(self.view, None, Collector::Top(limit))
            .ranking(families, order)
            .exclude(self.exclude);
        let answer = context.run_checked(|| {
            if !context.is_filed(self.signature) {
                let mut none = Matches::none(Scope::Candidates);
                none.recall = Some(1.0);
                return Ok(none);
            }
            let mut compared = 0;
            let mut best = None;
            for stage in self.stages(family) {
                let Some(mut found) = self.look(&search, stage)? else {
                    continue;
                };
                compared += found.compared;
                let judgement = judge(&mut found, stage);
                let is_enough = judgement.is_enough;
                best = Some((found, stage, judgement.recall));
                if is_enough {
                    break;
                }
            }
            let (mut found, stage, recall) =
                best.unwrap_or_else(|| (search.nothing(), Stage::Buckets { dropped: 0 }, 0.0));
            found.compared = compared;
            let subject = Subject::new(self.signature);
            let mut matches =
                subject.matches(self.view, found, stage.scope(), self.with_payloads)?;
            matches.recall = Some(recall);
            Ok(matches)
        });
        answer.inspect(|_| context.note_queries(1))
    }

    fn stages(&self, family: By) -> impl Iterator<Item = Stage> + use<> {
        let lanes = &self.view.context().lanes;
        let max_dropped = match (family, lanes.design()) {
            (By::SimHash, Some(design)) => design.max_dropped(),
            _ => u8::from(lanes.leading_banding().is_some()),
        };
        let buckets = (0..=max_dropped).map(|dropped| Stage::Buckets { dropped });
        buckets.chain(self.scans.then_some(Stage::Scan))
    }

    /// What a stage finds; `None` if it would cost more than the scan.
    fn look(&self, search: &Search<'_>, stage: Stage) -> Result<Option<Found>> {
        let signature = self.signature;
        match stage {
            Stage::Buckets { dropped: 0 } => search.in_buckets(0, signature).map(Some),
            Stage::Buckets { dropped } => {
                let plan = search.plan([signature])?;
                let Some(ids) = self.in_short_buckets(&plan, dropped)? else {
                    return Ok(None);
                };
                let ids = ids.into_iter().filter(|id| Some(*id) != self.exclude);
                let candidates: Vec<Candidate> =
                    ids.map(|id| Candidate { id, query_index: 0 }).collect();
                let mut found = search.nothing();
                search.score(&[signature], &candidates, std::slice::from_mut(&mut found))?;
                Ok(Some(found))
            }
            Stage::Scan => search.everywhere(signature).map(Some),
        }
    }

    /// The documents that share a short bucket, ascending; `None` if these have so many postings that a
    /// scan costs less.
    fn in_short_buckets(&self, plan: &ProbePlan, dropped: u8) -> Result<Option<Vec<u64>>> {
        let view = self.view;
        let max_postings = (self.documents / SCANNED_PER_LOOKUP).max(MIN_POSTINGS);
        let lanes: Vec<(ProbedLane, u64)> = plan.row(0).collect();
        let table = lanes
            .first()
            .map_or(PostingTable::Bands, |(lane, _)| lane.table());
        let ranges: Vec<CodeRange> = lanes
            .iter()
            .map(|(lane, code)| lane.short_range(view.context(), *code, dropped))
            .collect();
        view.context().reads.add_lanes(ranges.len());
        let (mut found, postings) = (FoundIds::new(), Cell::new(0));
        let mut visit = |_, posting: Posting| {
            if view.is_dead(posting.id) {
                return Ok(ProbeControl::GoOn);
            }
            postings.set(postings.get() + 1);
            if postings.get() > max_postings {
                return Ok(ProbeControl::End);
            }
            found.push(posting.id);
            Ok(ProbeControl::GoOn)
        };
        let is_too_much = || postings.get() > max_postings;
        view.probe_until(table, &ranges, &mut visit, &mut || Ok(is_too_much()))?;
        Ok((!is_too_much()).then(|| found.into_ascending()))
    }

    /// The probability that a document as near as this one is in a bucket without its last rows or blocks.
    fn probability(&self, family: By, dropped: u8, scored: &Scored) -> f64 {
        let context = self.view.context();
        let lanes = &context.lanes;
        if family == By::SimHash {
            let design = lanes.design();
            return design.map_or(0.0, |design| {
                design.shortened_probability_at(scored.distance, dropped)
            });
        }
        let banding = match dropped {
            0 => context.schema.minhash().map(|minhash| minhash.banding()),
            _ => lanes.leading_banding(),
        };
        let similarity = scored.similarity;
        let agreement = context.shape().values.map_or(similarity, |layout| {
            layout.agreement_probability(similarity)
        });
        banding.map_or(0.0, |banding| banding.probability(agreement))
    }
}
