//! The version that a commit makes: the part of a store that is kept in memory.

use std::sync::Arc;

use crate::format::{RunDescriptor, State};
use crate::index::Memtable;
use crate::state::run_set::RunSet;
use crate::state::tombstones::Tombstones;

/// State, runs, memtable and tombstones of one commit.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) state: State,
    pub(crate) runs: RunSet,
    pub(crate) memtable: Memtable,
    pub(crate) dead: Tombstones,
}

impl Version {
    /// Returns the number of documents whose rows a merge under way has still to drop.
    pub(crate) fn rows_left(&self, output: &RunDescriptor) -> u64 {
        let dropped = self.dead.dropped(&(output.first_id..=output.last_id));
        let after = |id: u64| id.checked_add(1).and_then(|next| dropped.first_from(next));
        let first = output.rows_from.and_then(|from| dropped.first_from(from));
        let left = std::iter::successors(first, |id| after(*id));
        left.take_while(|id| *id <= output.last_id).count() as u64
    }

    /// Returns true if a merge under way has dropped the rows of this deleted document.
    pub(crate) fn has_lost_rows(&self, id: u64) -> bool {
        let mut outputs = self.runs.outputs.iter();
        let output = outputs.find(|output| (output.first_id..=output.last_id).contains(&id));
        // From `rows_from` on the rows are still there; without it the phase is over.
        let is_before = |output: &Arc<RunDescriptor>| output.rows_from.is_none_or(|from| id < from);
        output.is_some_and(|output| is_before(output) && self.dead.is_dropped(id))
    }
}
