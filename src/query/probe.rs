//! Probes: the access method of a search for one signature, which reads bucket by bucket.

use std::cmp::Reverse;

use crate::error::Result;
use crate::format::Posting;
use crate::index::{CodeRange, ProbeControl, TOMBSTONE_LANE};
use crate::invariant::{OrBug, invariant};
use crate::query::buckets::{Begin, LaneProbe, ReadBucket, read_first, read_whole};
use crate::query::candidates::{
    Budget, Candidate, CandidateSource, Candidates, Gathered, MAX_IDENTICAL_TRIES,
};
use crate::query::equal_classes::{EqualClasses, EqualMembers};
use crate::query::gate::Gate;
use crate::query::plan::ProbePlan;
use crate::read::{PostingTable, ReadView};
use crate::types::BudgetExceeded;

/// A bucket with more postings than this is left before its end when an identical document is looked
/// for.
pub(super) const FIRST_POSTINGS: usize = if cfg!(test) { 40 } else { 1_024 };

/// The candidates of the one signature of a plan, bucket by bucket.
pub(super) struct Probe<'p> {
    view: &'p dyn ReadView,
    plan: &'p ProbePlan,
    budget: Option<Budget>,
    exclude: Option<u64>,
    /// Keeps documents that do not pass from taking room in a bucket that is read in part.
    pub(super) gate: Option<&'p Gate<'p>>,
    /// True if one of several equal documents represents all: without a budget, members of classes
    /// of equal documents are then returned separately from the other candidates.
    pub(super) folds_equal: bool,
    probes: Vec<LaneProbe>,
    /// The first bucket as far as it has been read: all of it, or the part that a budget allows.
    first: Option<ReadBucket>,
}

impl<'p> Probe<'p> {
    /// Creates candidates without the document `exclude`, which the budget does not count.
    pub(super) fn new(
        view: &'p dyn ReadView,
        plan: &'p ProbePlan,
        budget: Option<Budget>,
        exclude: Option<u64>,
    ) -> Self {
        Self {
            view,
            plan,
            budget,
            exclude,
            gate: None,
            folds_equal: false,
            probes: LaneProbe::of_plan(view, plan),
            first: None,
        }
    }

    fn read_one(&self, probe: &LaneProbe, most: usize, begin: Begin) -> Result<ReadBucket> {
        let mut buckets = read_first(
            self.view,
            self.gate,
            std::slice::from_ref(probe),
            most,
            begin,
        )?;
        buckets.pop().or_bug("a bucket")
    }

    /// Reads the buckets as far as the budget allows, and chooses the candidates that share the most of
    /// them with the signature; of those that share equally many, the first by id. Buckets that were cut
    /// count less than all others: of a cut bucket, only its id decides whether a document was read.
    fn within(mut self, budget: Budget) -> Result<Candidates> {
        let mut buckets: Vec<ReadBucket> = self.first.take().into_iter().collect();
        let unread = self.unread(buckets.len())?;
        let most = budget.postings();
        buckets.extend(read_first(
            self.view,
            self.gate,
            unread,
            most,
            Begin::ExactCode,
        )?);
        let (read, expected) = (buckets.len(), self.probes.len());
        invariant!(read == expected, "read {read} of {expected} buckets");
        let mut weighed = self.weigh(&buckets);
        weighed.retain(|weighed| Some(weighed.candidate.id) != self.exclude);
        // Deleted documents are counted only where they would displace others.
        if weighed.len() > budget.documents() {
            leave_out_deleted(self.view, &mut weighed)?;
        }
        let left_out = weighed.len().saturating_sub(budget.documents());
        if left_out > 0 {
            weighed.sort_unstable_by_key(|weighed| {
                let shared = (weighed.whole_buckets, weighed.cut_buckets);
                (Reverse(shared), weighed.candidate.id)
            });
            weighed.truncate(budget.documents());
        }
        let mut list: Vec<Candidate> = weighed.iter().map(|weighed| weighed.candidate).collect();
        list.sort_unstable();
        let is_least = buckets.iter().any(|bucket| bucket.is_cut);
        let beyond = BudgetExceeded {
            documents: left_out as u64,
            is_least,
        };
        Ok(Candidates {
            list,
            beyond: (left_out > 0 || is_least).then_some(beyond),
            ..Candidates::default()
        })
    }

    /// Returns the candidates in these buckets, ascending by id.
    fn weigh(&self, buckets: &[ReadBucket]) -> Vec<WeighedCandidate> {
        let mut found: Vec<(Candidate, bool)> = Vec::new();
        for (probe, bucket) in self.probes.iter().zip(buckets) {
            let candidates = self.candidates_in(probe, bucket);
            found.extend(candidates.map(|candidate| (candidate, bucket.is_cut)));
        }
        // This brings equal candidates together, whole buckets (`false`) first.
        found.sort_unstable();
        let candidates = found.chunk_by(|(a, _), (b, _)| a == b).filter_map(|same| {
            let whole_buckets = same.partition_point(|(_, is_cut)| !is_cut);
            Some(WeighedCandidate {
                candidate: same.first()?.0,
                whole_buckets,
                cut_buckets: same.len() - whole_buckets,
            })
        });
        candidates.collect()
    }

    fn candidates_in(
        &self,
        probe: &LaneProbe,
        bucket: &ReadBucket,
    ) -> impl Iterator<Item = Candidate> {
        let postings = bucket.postings.iter();
        postings
            .filter(|posting| probe.accepts(self.plan, **posting))
            .map(|posting| probe.candidate(self.plan, *posting))
    }

    /// The buckets after the first `read` ones.
    fn unread(&self, read: usize) -> Result<&[LaneProbe]> {
        let unread = self.probes.get(read..);
        unread.or_bug("buckets that were not read")
    }

    /// Returns the first documents with the signature's exact code, ascending.
    fn exact_candidates(&self, probe: &LaneProbe, bucket: &ReadBucket) -> Vec<Candidate> {
        let exact = bucket.postings.iter();
        let exact = exact.filter(|p| p.code == probe.code && Some(p.id) != self.exclude);
        let candidate = |posting: &Posting| probe.candidate(self.plan, *posting);
        exact.take(MAX_IDENTICAL_TRIES).map(candidate).collect()
    }

    /// Reads all buckets.
    fn whole(mut self) -> Result<Candidates> {
        let mut classes = self.folds_equal.then(|| EqualClasses::new(self.view));
        let mut found = Gathered::new();
        let first = self.first.take();
        if let Some((probe, bucket)) = self.probes.first().zip(first.as_ref()) {
            self.candidates_in(probe, bucket)
                .for_each(|candidate| found.push(candidate));
        }
        let unread = self.unread(usize::from(first.is_some()))?;
        read_whole(
            self.view,
            self.plan,
            unread,
            u64::MAX,
            &mut found,
            classes.as_mut(),
        )?;
        let mut list = found.into_ascending();
        let equal = match classes {
            Some(classes) => classes.into_members()?,
            None => EqualMembers::default(),
        };
        list.retain(|candidate| Some(candidate.id) != self.exclude && !equal.have(candidate.id));
        Ok(Candidates {
            list,
            equal,
            ..Candidates::default()
        })
    }
}

impl CandidateSource for Probe<'_> {
    fn exact(&mut self, column: usize) -> Result<Option<Vec<Candidate>>> {
        let Some(&probe) = self.probes.get(column) else {
            return Ok(Some(Vec::new()));
        };
        // The bucket that is read first moves to the front, where the other methods expect it. It
        // is the first of its table, so the buckets of each table remain together and are read at
        // once.
        self.probes.rotate_left(column);
        let (most, begin) = match self.budget {
            Some(budget) => (budget.postings(), Begin::ExactCode),
            None => (FIRST_POSTINGS, Begin::Start),
        };
        let bucket = self.read_one(&probe, most, begin)?;
        let is_in_part = self.budget.is_none() && bucket.is_cut;
        let exact = if is_in_part && !probe.has_one_code() {
            // Reading began at the lowest code of the bucket, and may have stopped before the exact
            // code.
            let part = probe.of_exact_code();
            self.exact_candidates(&probe, &self.read_one(&part, MAX_IDENTICAL_TRIES, begin)?)
        } else {
            self.exact_candidates(&probe, &bucket)
        };
        // Without a budget the whole bucket counts, so `all` rereads one that was read in part.
        self.first = (!is_in_part).then_some(bucket);
        Ok(Some(exact))
    }

    fn leave_out(&mut self, _: usize) -> Result<()> {
        self.probes.clear();
        self.first = None;
        Ok(())
    }

    fn all(self) -> Result<Option<Candidates>> {
        let candidates = match self.budget {
            None => self.whole(),
            Some(budget) => self.within(budget),
        };
        candidates.map(Some)
    }
}

struct WeighedCandidate {
    candidate: Candidate,
    /// Number of buckets that have it and were read to their end.
    whole_buckets: usize,
    /// Number of the other buckets that have it.
    cut_buckets: usize,
}

/// Leaves out documents that were deleted before they were flushed: their postings remain in memory
/// until the next flush.
fn leave_out_deleted(view: &dyn ReadView, weighed: &mut Vec<WeighedCandidate>) -> Result<()> {
    let flushed = weighed.partition_point(|weighed| weighed.candidate.id < view.flushed_below());
    let of_document = |weighed: &WeighedCandidate| {
        CodeRange::new(TOMBSTONE_LANE, weighed.candidate.id, weighed.candidate.id)
    };
    let ranges: Vec<CodeRange> = weighed.iter().skip(flushed).map(of_document).collect();
    if ranges.is_empty() {
        return Ok(());
    }
    let mut deleted = Vec::new();
    let mut visit = |_, posting: Posting| {
        deleted.push(posting.code);
        Ok(ProbeControl::GoOn)
    };
    view.probe_until(PostingTable::Bands, &ranges, &mut visit, &mut || Ok(true))?;
    deleted.sort_unstable();
    weighed.retain(|weighed| deleted.binary_search(&weighed.candidate.id).is_err());
    Ok(())
}
