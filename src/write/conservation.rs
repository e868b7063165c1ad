//! Sums that every commit must preserve. Each is known from two independent sources, which must
//! agree.

use crate::error::Result;
use crate::invariant::{bug, invariant};
use crate::write::writer::Writer;

impl Writer {
    /// Compares the state that a commit would write with the changes that were counted one by one.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug), and nothing may be committed then.
    pub(super) fn check_conservation(&self) -> Result<()> {
        let (base, state, counters) = (&self.base, &self.state, &self.counters);
        let (inserted, deleted) = (counters.count.inserted.get(), counters.deleted.get());
        counters.removed()?;
        // A document is replaced by removing one and inserting another, so no case is left out.
        invariant!(
            base.documents + inserted == state.documents + deleted,
            "{} documents after {inserted} inserted into {} and {deleted} deleted",
            state.documents,
            base.documents
        );
        invariant!(
            base.next_id + inserted == state.next_id,
            "next id {} after {inserted} inserted from {} on",
            state.next_id,
            base.next_id
        );
        invariant!(
            base.flushed_below <= state.flushed_below && state.flushed_below <= state.next_id,
            "flushed below {} before, below {} now, next id {}",
            base.flushed_below,
            state.flushed_below,
            state.next_id
        );
        invariant!(
            state.unflushed_documents <= state.next_id - state.flushed_below
                && state.unflushed_documents <= state.documents,
            "unflushed documents do not fit the ids: {state:?}"
        );
        self.check_runs()
    }

    /// Compares the tombstones with those that the runs count, and the runs with one another.
    fn check_runs(&self) -> Result<()> {
        let (runs, deleted) = (&self.runs, self.deleted.set.len());
        let in_runs: u64 = runs.current.iter().map(|run| run.deleted).sum();
        invariant!(
            in_runs == deleted,
            "{in_runs} deleted documents in runs, {deleted} tombstones"
        );
        match runs.contradiction(self.state.flushed_below, self.state.next_run) {
            None => Ok(()),
            Some(what) => Err(bug(format!("the runs contradict one another: {what}"))),
        }
    }
}

#[cfg(test)]
#[path = "conservation_tests.rs"]
mod tests;
