//! The choice of candidates that a budget allows for.

use std::cmp::Reverse;

use crate::error::Result;
use crate::format::Posting;
use crate::index::{CodeRange, ProbeControl, TOMBSTONE_LANE};
use crate::invariant::invariant;
use crate::query::buckets::{Bucket, LaneProbe};
use crate::query::budget::Budget;
use crate::query::candidates::Candidate;
use crate::query::plan::ProbePlan;
use crate::read::{PostingTable, ReadView};
use crate::types::BudgetExceeded;

/// The documents that are compared.
#[derive(Debug)]
pub(super) struct BudgetedCandidates {
    /// Ascending.
    pub(super) list: Vec<Candidate>,
    pub(super) beyond: Option<BudgetExceeded>,
}

/// Chooses the candidates that share the most of these buckets with the signature; of those that share
/// equally many, the first by id. Buckets that were cut count less than all others: of a cut bucket, only
/// its id decides whether a document was read.
pub(super) fn choose(
    budget: Budget,
    view: &dyn ReadView,
    plan: &ProbePlan,
    probes: &[LaneProbe],
    buckets: &[Bucket],
    exclude: Option<u64>,
) -> Result<BudgetedCandidates> {
    let (read, expected) = (buckets.len(), probes.len());
    invariant!(read == expected, "read {read} of {expected} buckets");
    let mut weighed = weigh(plan, probes, buckets);
    weighed.retain(|weighed| Some(weighed.candidate.id) != exclude);
    if weighed.len() > budget.documents() {
        leave_out_deleted(view, &mut weighed)?;
    }
    let left_out = weighed.len().saturating_sub(budget.documents());
    if left_out > 0 {
        weighed.sort_unstable_by_key(|weighed| (Reverse(weighed.shared), weighed.candidate.id));
        weighed.truncate(budget.documents());
    }
    let chosen = weighed.into_iter().map(|weighed| weighed.candidate);
    let mut list: Vec<Candidate> = chosen.collect();
    list.sort_unstable();
    let is_least = buckets.iter().any(|bucket| bucket.is_cut);
    let beyond = BudgetExceeded {
        documents: left_out as u64,
        is_least,
    };
    Ok(BudgetedCandidates {
        list,
        beyond: (left_out > 0 || is_least).then_some(beyond),
    })
}

struct WeighedCandidate {
    candidate: Candidate,
    /// How many buckets it was found in: of those that were read to their end, and of the others.
    shared: (usize, usize),
}

/// Returns the candidates in these buckets, ascending by id.
fn weigh(plan: &ProbePlan, probes: &[LaneProbe], buckets: &[Bucket]) -> Vec<WeighedCandidate> {
    let of_bucket = |(probe, bucket): (&LaneProbe, &Bucket)| {
        let accepted = bucket.postings.iter();
        let accepted = accepted.filter(|posting| probe.accepts(plan, **posting));
        let accepted = accepted.map(|posting| (probe.candidate(plan, *posting), bucket.is_cut));
        accepted.collect::<Vec<(Candidate, bool)>>()
    };
    let mut found: Vec<(Candidate, bool)> =
        probes.iter().zip(buckets).flat_map(of_bucket).collect();
    found.sort_unstable();
    let candidates = found.chunk_by(|(a, _), (b, _)| a == b).filter_map(|same| {
        let whole = same.partition_point(|(_, is_cut)| !is_cut);
        Some(WeighedCandidate {
            candidate: same.first()?.0,
            shared: (whole, same.len() - whole),
        })
    });
    candidates.collect()
}

/// Leaves out documents that were deleted before they were flushed: their postings stay in memory until
/// the next flush.
fn leave_out_deleted(view: &dyn ReadView, weighed: &mut Vec<WeighedCandidate>) -> Result<()> {
    let flushed = weighed.partition_point(|weighed| weighed.candidate.id < view.sealed_below());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_told() {
        let mut beyond = BudgetExceeded {
            documents: 12,
            is_least: false,
        };
        assert_eq!(beyond.to_string(), "12");
        beyond.is_least = true;
        assert_eq!(beyond.to_string(), "at least 12");
    }
}
