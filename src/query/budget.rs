//! What a probe of hot buckets may cost.

use std::cmp::Reverse;

use crate::error::{Error, Result};
use crate::format::Posting;
use crate::index::CodeRange;
use crate::index::TOMBSTONE_LANE;
use crate::options::StoreOptions;
use crate::query::buckets::{Bucket, LaneProbe};
use crate::read::{PostingTable, ReadView};
use crate::types::BeyondBudget;

/// A bucket is read so far at least: about a block of postings.
const LEAST_POSTINGS: usize = 1_024;

/// How many documents a probe compares at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    documents: usize,
}

/// The documents that are compared.
#[derive(Debug)]
pub(crate) struct BudgetedCandidates {
    /// Ascending.
    pub(crate) ids: Vec<u64>,
    pub(crate) beyond: Option<BeyondBudget>,
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
            documents: usize::try_from(documents).unwrap_or(usize::MAX),
        })
    }

    /// What `insert_if_new` and its kin may compare with.
    pub(crate) fn from_options(options: &StoreOptions) -> Result<Option<Self>> {
        options.probe_budget.map(Self::new).transpose()
    }

    pub(crate) fn documents(self) -> usize {
        self.documents
    }

    /// How many postings of a bucket are read at most. Never fewer than documents: what is within
    /// the budget is seen whole.
    pub(crate) fn postings(self) -> usize {
        self.documents.max(LEAST_POSTINGS)
    }

    /// Of the candidates in these buckets those that share the most of them with the signature, of
    /// such as share equally many the first by id. Buckets that were cut count less than all that were
    /// not: a document beyond the cut would else be told from those before it by nothing but its id.
    pub(crate) fn choose(
        self,
        source: &dyn ReadView,
        asked: &[LaneProbe],
        buckets: &[Bucket],
        exclude: Option<u64>,
    ) -> Result<BudgetedCandidates> {
        let mut met = weigh(asked, buckets);
        met.retain(|met| Some(met.id) != exclude);
        if met.len() > self.documents {
            leave_out_buried(source, &mut met)?;
        }
        let left_out = met.len().saturating_sub(self.documents);
        if left_out > 0 {
            met.sort_unstable_by_key(|met| (Reverse(met.shared), met.id));
            met.truncate(self.documents);
        }
        let mut ids: Vec<u64> = met.into_iter().map(|met| met.id).collect();
        ids.sort_unstable();
        let is_least = buckets.iter().any(|bucket| bucket.is_cut);
        let beyond = BeyondBudget {
            documents: left_out as u64,
            is_least,
        };
        Ok(BudgetedCandidates {
            ids,
            beyond: (left_out > 0 || is_least).then_some(beyond),
        })
    }
}

/// A candidate.
struct Met {
    id: u64,
    /// How many buckets it was found in: of those that were read to their end, and of the others.
    shared: (usize, usize),
}

/// The candidates in these buckets, ascending by id.
fn weigh(asked: &[LaneProbe], buckets: &[Bucket]) -> Vec<Met> {
    let of_bucket = |(asked, bucket): (&LaneProbe, &Bucket)| {
        let accepted = bucket.postings.iter().filter(|p| asked.accepts(**p));
        let accepted = accepted.map(|posting| (posting.id, bucket.is_cut));
        accepted.collect::<Vec<(u64, bool)>>()
    };
    let mut found: Vec<(u64, bool)> = asked.iter().zip(buckets).flat_map(of_bucket).collect();
    found.sort_unstable();
    let met = found.chunk_by(|(a, _), (b, _)| a == b).filter_map(|same| {
        let whole = same.partition_point(|(_, is_cut)| !is_cut);
        Some(Met {
            id: same.first()?.0,
            shared: (whole, same.len() - whole),
        })
    });
    met.collect()
}

/// Takes documents out that were removed before they were sealed: their postings are in memory until
/// the next seal.
fn leave_out_buried(source: &dyn ReadView, met: &mut Vec<Met>) -> Result<()> {
    let unsealed = met.partition_point(|met| met.id < source.sealed_below());
    let of_document = |met: &Met| CodeRange {
        lane: TOMBSTONE_LANE,
        low_code: met.id,
        high_code: met.id,
    };
    let ranges: Vec<CodeRange> = met.iter().skip(unsealed).map(of_document).collect();
    if ranges.is_empty() {
        return Ok(());
    }
    let mut buried = Vec::new();
    let mut visit = |_, posting: Posting| {
        buried.push(posting.code);
        Ok(true)
    };
    source.probe_until(PostingTable::Bands, &ranges, &mut visit, &mut || Ok(true))?;
    buried.sort_unstable();
    met.retain(|met| buried.binary_search(&met.id).is_err());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_told() {
        let mut beyond = BeyondBudget {
            documents: 12,
            is_least: false,
        };
        assert_eq!(beyond.to_string(), "12");
        beyond.is_least = true;
        assert_eq!(beyond.to_string(), "at least 12");
    }

    #[test]
    fn a_bucket_within_the_budget_is_read_whole() {
        assert!(Budget::new(0).is_err());
        for documents in [1, 1_000, 5_000, u64::MAX] {
            let budget = Budget::new(documents).unwrap();
            assert!(budget.postings() >= budget.documents());
        }
    }
}
