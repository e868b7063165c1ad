//! The probe budget: a limit on the cost of hot buckets.

use crate::error::{Error, Result};
use crate::options::StoreOptions;

/// Number of postings of a bucket that are read at least: about a block.
const MIN_POSTINGS: usize = 1_024;

/// How many documents a probe compares at most.
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

    /// Returns how many postings of a bucket are read at most: at least as many as documents, so that a
    /// bucket within the budget is read whole.
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
    /// True if the candidates go beyond the budget; not all of them were gathered then.
    pub(super) is_over: bool,
}

impl ProbeCounts {
    /// Returns true if a budget allows for these and so many more.
    pub(crate) fn is_within(self, budget: Budget, documents: usize, postings: usize) -> bool {
        !self.is_over
            && self.documents.saturating_add(documents) <= budget.documents()
            && self.postings.saturating_add(postings) <= budget.postings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_within_the_budget_is_read_whole() {
        assert!(Budget::new(0).is_err());
        for documents in [1, 1_000, 5_000, u64::MAX] {
            let budget = Budget::new(documents).unwrap();
            assert!(budget.postings() >= budget.documents());
        }
    }
}
