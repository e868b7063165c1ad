//! Probes: the access method of a search for one signature, which reads bucket by bucket.

use crate::error::Result;
use crate::format::Posting;
use crate::invariant::OrBug;
use crate::query::buckets::{Begin, Bucket, LaneProbe, read_first, read_whole};
use crate::query::budget::Budget;
use crate::query::candidates::{Candidate, CandidateSource, Candidates, MAX_IDENTICAL_TRIES};
use crate::query::choice::{BudgetedCandidates, choose};
use crate::query::equal_classes::{EqualClasses, EqualMembers};
use crate::query::gathered::Gathered;
use crate::query::plan::ProbePlan;
use crate::read::ReadView;

/// A bucket with more postings than this is left before its end when an identical document is looked
/// for.
pub(super) const FIRST_POSTINGS: usize = if cfg!(test) { 40 } else { 1_024 };

/// The candidates of the one signature of a plan, bucket by bucket.
pub(super) struct Probe<'p> {
    view: &'p dyn ReadView,
    plan: &'p ProbePlan,
    budget: Option<Budget>,
    exclude: Option<u64>,
    /// True if of equal documents one stands for all.
    folds_equal: bool,
    probes: Vec<LaneProbe>,
    /// What has been read of the first bucket: the whole, or with a budget what may be read of it.
    first: Option<Bucket>,
}

impl<'p> Probe<'p> {
    /// Candidates but for the document `exclude`, which the budget does not count.
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
            folds_equal: false,
            probes: LaneProbe::of_plan(view, plan),
            first: None,
        }
    }

    /// Gives the members of classes of equal documents apart from the other candidates, unless there is a
    /// budget.
    pub(super) fn folding_equal(self, folds_equal: bool) -> Self {
        Self {
            folds_equal,
            ..self
        }
    }

    fn read_one(&self, probe: &LaneProbe, most: usize, begin: Begin) -> Result<Bucket> {
        let mut buckets = read_first(self.view, std::slice::from_ref(probe), most, begin)?;
        buckets.pop().or_bug("a bucket")
    }

    /// Reads the buckets as far as the budget allows, and chooses of their documents.
    fn within(self, budget: Budget) -> Result<BudgetedCandidates> {
        let unread = self.probes.get(usize::from(self.first.is_some())..);
        let unread = unread.or_bug("buckets that were not read")?;
        let mut buckets: Vec<Bucket> = self.first.into_iter().collect();
        let most = budget.postings();
        buckets.extend(read_first(self.view, unread, most, Begin::ExactCode)?);
        choose(
            budget,
            self.view,
            self.plan,
            &self.probes,
            &buckets,
            self.exclude,
        )
    }

    /// Returns the first documents with the signature's exact code, ascending.
    fn exact_candidates(&self, probe: &LaneProbe, bucket: &Bucket) -> Vec<Candidate> {
        let exact = bucket.postings.iter().filter(|p| p.code == probe.code);
        let candidate = |posting: &Posting| probe.candidate(self.plan, *posting);
        exact.take(MAX_IDENTICAL_TRIES).map(candidate).collect()
    }

    fn whole(self) -> Result<(Vec<Candidate>, EqualMembers)> {
        let mut equal = self.folds_equal.then(|| EqualClasses::new(self.view));
        let mut found = Gathered::new();
        let read = usize::from(self.first.is_some());
        for (probe, bucket) in self.probes.iter().zip(self.first) {
            let accepted = bucket.postings.iter();
            let accepted = accepted.filter(|posting| probe.accepts(self.plan, **posting));
            accepted.for_each(|posting| found.push(probe.candidate(self.plan, *posting)));
        }
        let unread = self.probes.get(read..);
        let unread = unread.or_bug("buckets that were not read")?;
        read_whole(self.view, self.plan, unread, &mut found, equal.as_mut())?;
        let mut list = found.into_ascending();
        let members = match equal {
            Some(equal) => equal.into_members()?,
            None => EqualMembers::default(),
        };
        list.retain(|&Candidate { id, .. }| Some(id) != self.exclude && !members.have(id));
        Ok((list, members))
    }
}

impl CandidateSource for Probe<'_> {
    fn exact(&mut self, column: usize) -> Result<Option<Vec<Candidate>>> {
        let Some(&probe) = self.probes.get(column) else {
            return Ok(Some(Vec::new()));
        };
        // The bucket that is read first moves to the front, where the other methods expect it. It is the
        // first of its table, so the buckets of each table stay together and are read in one go.
        self.probes.rotate_left(column);
        let (most, begin) = match self.budget {
            Some(budget) => (budget.postings(), Begin::ExactCode),
            None => (FIRST_POSTINGS, Begin::Start),
        };
        let bucket = self.read_one(&probe, most, begin)?;
        let is_in_part = self.budget.is_none() && bucket.is_cut;
        let exact = if is_in_part && !probe.has_one_code() {
            // The reading began at the least code of the bucket, and may have been cut before the exact code.
            let part = probe.of_exact_code();
            self.exact_candidates(&probe, &self.read_one(&part, MAX_IDENTICAL_TRIES, begin)?)
        } else {
            self.exact_candidates(&probe, &bucket)
        };
        // Without a budget the whole bucket counts, so `all` reads again one that was read in part.
        self.first = (!is_in_part).then_some(bucket);
        Ok(Some(exact))
    }

    fn leave_out(&mut self, _: usize) -> Result<()> {
        self.probes.clear();
        self.first = None;
        Ok(())
    }

    fn all(self) -> Result<Option<Candidates>> {
        let (list, equal, beyond) = match self.budget {
            None => {
                let (list, equal) = self.whole()?;
                (list, equal, None)
            }
            Some(budget) => {
                let BudgetedCandidates { list, beyond } = self.within(budget)?;
                (list, EqualMembers::default(), beyond)
            }
        };
        Ok(Some(Candidates {
            list,
            equal,
            counts_per_query: Vec::new(),
            beyond,
        }))
    }
}
