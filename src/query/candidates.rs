//! Candidates, the two ways to find them (by probes for one signature, by sweeps for many), and the
//! budget that limits them.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::format::DocumentRow;
use crate::options::StoreOptions;
use crate::query::equal_classes::EqualMembers;
use crate::query::gate::Gate;
use crate::read::ReadView;
use crate::types::BudgetExceeded;

/// The maximum number of documents that are compared to find an identical one: 1, then 2, 4 and 8.
pub(super) const MAX_IDENTICAL_TRIES: usize = 15;

/// A document that shares a bucket with the signature at `query_index`. Ordered by id, then by signature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) id: u64,
    pub(crate) query_index: u32,
    /// Its distance, if its code [is its signature](super::plan::ProbePlan::candidate).
    pub(super) code_distance: Option<u8>,
}

impl Candidate {
    pub(crate) fn new(id: u64, query_index: u32) -> Self {
        Self {
            id,
            query_index,
            code_distance: None,
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
    /// The counts to compare with, for each signature of a sweep with a budget; empty otherwise.
    /// The candidates of a signature that exceeded its budget are not in the list: search for it
    /// separately.
    pub(super) counts_per_query: Vec<ProbeCounts>,
    /// The number that the budget left out of the candidates of a single signature.
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

/// Shows the signatures of the live ones among `candidates` that pass, which ascend, with who asks
/// for it. Each row is read once.
pub(super) fn compare(
    view: &dyn ReadView,
    gate: Option<&Gate<'_>>,
    candidates: &[Candidate],
    visit: &mut dyn FnMut(Candidate, &DocumentRow<'_>) -> Result<()>,
) -> Result<()> {
    let mut ids: Vec<u64> = candidates.iter().map(|candidate| candidate.id).collect();
    ids.dedup();
    let mut compared = 0;
    let mut rest = candidates.iter().peekable();
    view.live_documents(&ids, &mut |id, row| {
        if let Some(gate) = gate
            && !gate.passes(view, id, &row.head)?
        {
            return Ok(());
        }
        // Only documents that live and pass are shown, so candidates without one are skipped.
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

/// Number of candidates held before repeated ones are removed.
const MIN_ROOM: usize = if cfg!(test) { 100 } else { 1 << 18 };

/// Gathers items in any order, a near-duplicate's once per lane. Holds at most twice the number of
/// different items, or [`MIN_ROOM`].
#[derive(Debug)]
pub(super) struct Gathered<T> {
    items: Vec<T>,
    room: usize,
}

impl<T: Ord> Gathered<T> {
    pub(crate) fn new() -> Self {
        Self {
            items: Vec::new(),
            room: MIN_ROOM,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        if self.items.len() >= self.room {
            self.drop_repeated();
            self.room = self.items.len().saturating_mul(2).max(MIN_ROOM);
        }
        self.items.push(item);
    }

    fn drop_repeated(&mut self) {
        self.items.sort_unstable();
        self.items.dedup();
    }

    /// Returns each item once, ascending.
    pub(super) fn into_ascending(mut self) -> Vec<T> {
        self.drop_repeated();
        self.items
    }
}

/// The minimum number of postings of a bucket to read: about a block.
const MIN_POSTINGS: usize = 1_024;

/// The maximum number of documents that a probe compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    documents: usize,
}

impl Budget {
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for 0.
    pub(crate) fn new(documents: u64) -> Result<Self> {
        if documents == 0 {
            let expected = "1 document or more, or no budget";
            return Err(Error::invalid("probe_budget", documents, expected));
        }
        Ok(Self {
            // No memory holds more candidates than a `usize` counts.
            documents: usize::try_from(documents).unwrap_or(usize::MAX),
        })
    }

    /// Returns the budget of `insert_if_new` and the other checked inserts, if the options set one.
    pub(crate) fn from_options(options: &StoreOptions) -> Result<Option<Self>> {
        options.probe_budget.map(Self::new).transpose()
    }

    pub(crate) fn documents(self) -> usize {
        self.documents
    }

    /// Returns the maximum number of postings to read from a bucket: at least the number of
    /// documents, so that a bucket within the budget is read whole.
    pub(crate) fn postings(self) -> usize {
        self.documents.max(MIN_POSTINGS)
    }
}

/// Candidate and posting counts of one query, compared with its budget.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeCounts {
    /// Number of candidates.
    pub(super) documents: usize,
    /// Number of postings in the fullest of its buckets.
    pub(super) postings: usize,
    /// True if the candidates exceed the budget; not all of them were gathered then.
    pub(super) is_over: bool,
}

impl ProbeCounts {
    /// Returns true if the budget allows for these counts and the given additional ones.
    pub(crate) fn is_within(self, budget: Budget, documents: usize, postings: usize) -> bool {
        !self.is_over
            && self.documents.saturating_add(documents) <= budget.documents()
            && self.postings.saturating_add(postings) <= budget.postings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query in a store of equal documents held every id once for each lane.
    #[test]
    fn candidates_are_held_once() {
        for different in [1, 40, 99, 100, 5_000] {
            let mut found = Gathered::new();
            for id in (0..30).flat_map(|_| (0..different).rev()) {
                found.push(id);
                assert!(found.items.len() as u64 <= (2 * different).max(100));
            }
            assert!(found.into_ascending().into_iter().eq(0..different));
        }
    }

    #[test]
    fn candidates_read_a_bucket_within_the_budget_whole() {
        assert!(Budget::new(0).is_err());
        for documents in [1, 1_000, 5_000, u64::MAX] {
            let budget = Budget::new(documents).unwrap();
            assert!(budget.postings() >= budget.documents());
        }
    }
}
