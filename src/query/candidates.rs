//! Candidates, and the two ways in which they come: by probes for one signature, by sweeps for many.

use std::cmp::Ordering;

use crate::error::Result;
use crate::format::DocumentRow;
use crate::query::budget::ProbeCounts;
use crate::query::equal_classes::EqualMembers;
use crate::read::ReadView;
use crate::types::BudgetExceeded;

/// How many documents are compared at most to find an identical one: 1, then 2, 4 and 8.
pub(super) const MAX_IDENTICAL_TRIES: usize = 15;

/// A document that shares a bucket with the signature at `query_index`. Ordered by id, then by signature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) id: u64,
    pub(crate) query_index: u32,
    /// Its distance, if the [plan](super::plan::ProbePlan::candidate) has it from the code.
    pub(super) told_distance: Option<u8>,
}

impl Candidate {
    pub(crate) fn new(id: u64, query_index: u32) -> Self {
        Self {
            id,
            query_index,
            told_distance: None,
        }
    }

    fn rank(&self) -> (u64, u32) {
        (self.id, self.query_index)
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// The candidates of all signatures of a plan.
#[derive(Default)]
pub(super) struct Candidates {
    /// Ascending, each once. They may be deleted.
    pub(super) list: Vec<Candidate>,
    /// Candidates of a single signature that are not in the list: many of them are equal.
    pub(super) equal: EqualMembers,
    /// Of a sweep with a budget, for each signature what was counted against it; empty otherwise. The candidates of a signature
    /// that went beyond are not in the list: it has to be searched for by itself.
    pub(super) counts_per_query: Vec<ProbeCounts>,
    /// What the budget left out of the candidates of a single signature.
    pub(super) beyond: Option<BudgetExceeded>,
}

/// One of the two access methods: [`Probe`](super::probe::Probe) and [`Sweep`](super::sweep::Sweep).
///
/// Each method returns `None` if the candidates are too many to hold: the signatures must be halved.
pub(super) trait CandidateSource {
    /// Returns the first documents with the exact code of each signature in the lane at `column`, by
    /// signature and then by id, at most [`MAX_IDENTICAL_TRIES`] of each.
    fn exact(&mut self, column: usize) -> Result<Option<Vec<Candidate>>>;

    /// Asks nothing more for a signature.
    fn leave_out(&mut self, query_index: usize) -> Result<()>;

    /// Returns the candidates of all lanes.
    fn all(self) -> Result<Option<Candidates>>;
}

/// Keeps the first candidates of each signature, ascending by signature and then by id.
pub(super) fn keep_first(exact: &mut Vec<Candidate>) {
    exact.sort_unstable_by_key(|candidate| (candidate.query_index, candidate.id));
    exact.dedup();
    let (mut query_index, mut kept) = (u32::MAX, 0);
    exact.retain(|candidate| {
        if query_index != candidate.query_index {
            (query_index, kept) = (candidate.query_index, 0);
        }
        kept += 1;
        kept <= MAX_IDENTICAL_TRIES
    });
}

/// Shows the signatures of the live ones among `candidates`, which ascend, with who asks for it. Each
/// row is read once.
pub(super) fn compare(
    view: &dyn ReadView,
    candidates: &[Candidate],
    visit: &mut dyn FnMut(Candidate, &DocumentRow<'_>) -> Result<()>,
) -> Result<()> {
    let mut ids: Vec<u64> = candidates.iter().map(|candidate| candidate.id).collect();
    ids.dedup();
    let mut compared = 0;
    let mut rest = candidates.iter().peekable();
    view.live_documents(&ids, &mut |id, row| {
        while let Some(candidate) = rest.next_if(|candidate| candidate.id <= id) {
            if candidate.id == id {
                compared += 1;
                visit(*candidate, &row)?;
            }
        }
        Ok(())
    })?;
    view.context().note_candidates(compared);
    Ok(())
}
