//! Sweeps: the lanes of many signatures, or of many keys, each read once in the order of its codes; and
//! the shares of many signatures, piece by piece or thread by thread.

use std::ops::Range;

use crate::error::Result;
use crate::format::Posting;
use crate::index::{ProbeRange, SweepControl};
use crate::invariant::{OrBug, at, at_mut, invariant};
use crate::query::candidates::{
    Budget, Candidate, CandidateSource, Candidates, ProbeCounts, keep_first,
};
use crate::query::plan::ProbePlan;
use crate::read::{PostingTable, ReadView};
use crate::threads::{in_shares, processors};
use resemblance_sketch::lanes::hash_key;
use resemblance_sketch::sketch::Signature;

/// Number of signatures in a piece, which bounds the memory of their codes. Fewer under test, so that
/// small batches have several pieces.
const PIECE_SIGNATURES: usize = if cfg!(test) { 100 } else { 16_384 };

/// The number of candidates, some of them counted several times, that are held together unless a single
/// signature has more: 48 bytes each with what their verification needs.
const PIECE_CANDIDATES: usize = if cfg!(test) { 500 } else { 1 << 20 };

/// The number of buckets of a lane that are looked up together, 40 bytes each.
const PIECE_RANGES: usize = if cfg!(test) { 1_000 } else { 1 << 19 };

/// Number of candidates with an exact code beyond which all but the first of each signature are dropped.
const MAX_EXACT: usize = if cfg!(test) { 50 } else { 1 << 18 };

/// Shows a batch piece by piece, in order. A piece that `take` refuses, by returning false, has too many
/// candidates to hold: its halves are shown instead.
///
/// # Errors
/// Returns the errors of `take`, and [`Error::Bug`](crate::Error::Bug) if it refuses a piece that
/// cannot be halved.
pub(crate) fn for_each_piece<'b, T>(
    batch: &'b [T],
    mut take: impl FnMut(&'b [T]) -> Result<bool>,
) -> Result<()> {
    let mut waiting: Vec<&[T]> = batch.chunks(PIECE_SIGNATURES).rev().collect();
    while let Some(piece) = waiting.pop() {
        if !take(piece)? {
            invariant!(piece.len() > 1, "a piece of one signature cannot be halved");
            let (first, second) = piece.split_at(piece.len() / 2);
            // A stack: the first half is taken first, so that answers keep the order of the batch.
            waiting.extend([second, first]);
        }
    }
    Ok(())
}

/// The candidates of many signatures, lane by lane.
pub(super) struct Sweep<'c> {
    view: &'c dyn ReadView,
    plan: &'c mut ProbePlan,
    budget: Option<Budget>,
    exclude: Option<u64>,
    found: Vec<Candidate>,
    room: usize,
    /// Signature by signature, if there is a budget.
    counts_per_query: Vec<ProbeCounts>,
    /// The column of the lane that has been swept.
    swept: Option<usize>,
}

impl<'c> Sweep<'c> {
    pub(super) fn new(
        view: &'c dyn ReadView,
        plan: &'c mut ProbePlan,
        budget: Option<Budget>,
        exclude: Option<u64>,
    ) -> Self {
        let count = budget.map_or(0, |_| plan.signatures());
        Self {
            view,
            plan,
            budget,
            exclude,
            found: Vec::new(),
            room: PIECE_CANDIDATES,
            counts_per_query: vec![ProbeCounts::default(); count],
            swept: None,
        }
    }

    /// Returns true if a signature went beyond the budget.
    fn is_over(&self, query_index: u32) -> bool {
        let counts = self.counts_per_query.get(query_index as usize);
        counts.is_some_and(|counts| counts.is_over)
    }

    /// Counts the candidates of each signature, and drops those of signatures that went beyond the budget.
    fn count(&mut self, budget: Budget) -> Result<()> {
        for found in &self.found {
            at_mut(&mut self.counts_per_query, found.query_index as usize)?.documents += 1;
        }
        for counts in &mut self.counts_per_query {
            counts.is_over = !counts.is_within(budget, 0, 0);
        }
        // A signature over its budget is searched for separately, so its documents found here would
        // occur twice.
        let mut found = std::mem::take(&mut self.found);
        found.retain(|candidate| !self.is_over(candidate.query_index));
        self.found = found;
        Ok(())
    }

    /// Sweeps a lane, and shows whose code is that of the signature. Returns false if the signatures must be
    /// halved.
    fn sweep(&mut self, column: usize, of_exact_code: &mut dyn FnMut(Candidate)) -> Result<bool> {
        let lane = *at(self.plan.lanes(), column)?;
        // Each signature may ask for thousands of buckets.
        let buckets = lane.near_codes(self.view.context(), 0).count();
        let share = (PIECE_RANGES / buckets.max(1)) as u32;
        // At most `PIECE_SIGNATURES`.
        let end = self.plan.signatures() as u32;
        let mut start = 0;
        while start < end {
            let signatures = start..end.min(start.saturating_add(share.max(1)));
            start = signatures.end;
            if !self.sweep_for(signatures, column, of_exact_code)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sweeps a lane for some of the signatures.
    fn sweep_for(
        &mut self,
        signatures: Range<u32>,
        column: usize,
        of_exact_code: &mut dyn FnMut(Candidate),
    ) -> Result<bool> {
        let (plan, view) = (&*self.plan, self.view);
        let lane = *at(plan.lanes(), column)?;
        // One signature alone has to find room for all its documents: there is no smaller piece to
        // fall back to.
        let can_be_halved = plan.signatures() > 1;
        let mut ranges = plan.ranges(view.context(), column, signatures)?;
        ranges.retain(|range| !self.is_over(range.query_index));
        if self.budget.is_some() {
            // It counts all postings.
            ranges.iter_mut().for_each(|range| range.near = None);
        }
        // The blocks of a lane on disk are ordered by code. A hash table has no order.
        if view.sweeps_by_code() {
            ranges.sort_unstable_by_key(|range| (range.low_code, range.query_index));
        }
        view.context().counters.lanes_probed(ranges.len());
        let most = self.budget.map(Budget::postings);
        let mut counts = vec![0; self.counts_per_query.len()];
        let (mut fits, found, room) = (true, &mut self.found, &mut self.room);
        let mut visit = |query_index: u32, posting: Posting| {
            if let (Some(most), Some(count)) = (most, counts.get_mut(query_index as usize)) {
                *count += 1;
                if *count > most {
                    // The signature is over the budget and will be searched for by itself, so the rest of
                    // its bucket does not matter here.
                    return Ok(SweepControl::SkipRange);
                }
            }
            let code = plan.code(query_index, column)?;
            let candidate = plan.candidate(query_index, code, posting);
            if plan.accepts(lane, code, posting.code) {
                found.push(candidate);
            }
            if code == posting.code {
                of_exact_code(candidate);
            }
            if found.len() > *room {
                // Near documents share buckets in many lanes, so the list holds most of them several times.
                found.sort_unstable();
                found.dedup();
                // Half of the room has to be free afterwards, or the list would be sorted again too soon.
                fits = !can_be_halved || found.len() <= PIECE_CANDIDATES / 2;
                *room = found.len().saturating_mul(2).max(PIECE_CANDIDATES);
            }
            Ok(if fits {
                SweepControl::GoOn
            } else {
                SweepControl::End
            })
        };
        // Ranges of one signature do not overlap, so no posting is shown to it twice in a lane.
        view.sweep(lane.table, lane.lane, &ranges, &mut visit)?;
        for (counted, count) in self.counts_per_query.iter_mut().zip(counts) {
            counted.postings = counted.postings.max(count);
            counted.is_over |= most.is_some_and(|most| count > most);
        }
        Ok(fits)
    }
}

impl CandidateSource for Sweep<'_> {
    fn exact(&mut self, column: usize) -> Result<Option<Vec<Candidate>>> {
        let view = self.view;
        let (mut exact, mut room) = (Vec::new(), MAX_EXACT);
        let mut note = |candidate: Candidate| {
            // A deleted document must not take the place of a live one with the same code.
            if !view.is_deleted(candidate.id) {
                exact.push(candidate);
            }
            if exact.len() > room {
                keep_first(&mut exact);
                // If each signature has many first candidates, a trim frees little. The next trim
                // happens after the same number again.
                room = MAX_EXACT.max(2 * exact.len());
            }
        };
        if !self.sweep(column, &mut note)? {
            return Ok(None);
        }
        self.swept = Some(column);
        // Postings beyond the budget were skipped, and the first by id may be among them: for such
        // a signature the noted candidates are of no use.
        exact.retain(|candidate| !self.is_over(candidate.query_index));
        keep_first(&mut exact);
        Ok(Some(exact))
    }

    fn leave_out(&mut self, query_index: usize) -> Result<()> {
        self.plan.leave_out(query_index)
    }

    fn all(mut self) -> Result<Option<Candidates>> {
        for column in 0..self.plan.lanes().len() {
            // The lane that `exact` has swept has brought its candidates already.
            if Some(column) != self.swept && !self.sweep(column, &mut |_| ())? {
                return Ok(None);
            }
        }
        let plan = &*self.plan;
        // The lane that was swept first may have brought candidates for signatures that were left out later.
        self.found
            .retain(|found| plan.is_asked(found.query_index) && Some(found.id) != self.exclude);
        self.found.sort_unstable();
        self.found.dedup();
        if let Some(budget) = self.budget {
            self.count(budget)?;
        }
        Ok(Some(Candidates {
            list: self.found,
            counts_per_query: self.counts_per_query,
            ..Candidates::default()
        }))
    }
}

/// Number of signatures below which another thread costs more than it saves.
const MIN_SIGNATURES: usize = if cfg!(test) { 30 } else { 512 };

/// Answers signatures in parts, each on a thread: as many as the machine runs at once, or at most
/// `threads`. Returns the answers in the order of the signatures.
///
/// # Errors
/// Returns the error of the first part that fails, and [`crate::Error::Io`] if the system allows no
/// further thread.
pub(super) fn in_threads<T: Send>(
    signatures: &[&Signature],
    threads: Option<usize>,
    answer: impl Fn(&[&Signature]) -> Result<Vec<T>> + Sync,
) -> Result<Vec<T>> {
    if signatures.len() <= MIN_SIGNATURES {
        return answer(signatures);
    }
    // Asking the system takes longer than a short query.
    let shares = threads.unwrap_or_else(processors).max(1);
    let size = signatures.len().div_ceil(shares).max(MIN_SIGNATURES);
    let answers = in_shares("query", signatures.chunks(size), answer)?;
    Ok(answers.into_iter().flatten().collect())
}

/// Number of keys that are looked up together.
const PIECE_KEYS: usize = 1 << 19;

/// Returns the live document with each key.
pub(crate) fn find_keys(view: &dyn ReadView, keys: &[Option<&[u8]>]) -> Result<Vec<Option<u64>>> {
    let mut holders = vec![None; keys.len()];
    for (keys, holders) in keys.chunks(PIECE_KEYS).zip(holders.chunks_mut(PIECE_KEYS)) {
        let mut ranges: Vec<ProbeRange> = (0..)
            .zip(keys)
            .filter_map(|(query_index, key)| {
                let code = hash_key((*key)?);
                Some(ProbeRange::new(query_index, code, code))
            })
            .collect();
        ranges.sort_unstable_by_key(|range| (range.low_code, range.query_index));
        let mut found = Vec::new();
        view.context().counters.lanes_probed(ranges.len());
        view.sweep(
            PostingTable::Keys,
            0,
            &ranges,
            &mut |query_index, posting| {
                found.push(Candidate::new(posting.id, query_index));
                Ok(SweepControl::GoOn)
            },
        )?;
        // Newest first: a document that replaced another has the greater id.
        found.sort_unstable_by(|a, b| b.cmp(a));
        for candidate in found {
            let query_index = candidate.query_index as usize;
            let key = at(keys, query_index)?.or_bug("a key that was looked up")?;
            let holder = at_mut(holders, query_index)?;
            // Different keys may share a code, so only the row shows whose it is.
            if holder.is_none() && view.has_key(candidate.id, key)? {
                *holder = Some(candidate.id);
            }
        }
    }
    Ok(holders)
}
