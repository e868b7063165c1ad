//! Sealing the memtable into a run.

use std::collections::HashSet;

use crate::error::Result;
use crate::format::{LaneSummary, RunDescriptor};
use crate::index::TOMBSTONE_LANE;
use crate::index::{FilterPlan, Memtable, write_sorted};
use crate::read::PostingTable;
use crate::write::writer::Writer;

impl Writer {
    /// Turns everything that is not in a run into a run of level 0. Postings of documents that
    /// are gone are left out.
    pub(crate) fn seal(&mut self) -> Result<()> {
        // Merges find the rows of whatever is in a run.
        self.flush_pending()?;
        let (first, end) = (self.state.sealed_below, self.state.next_id);
        let memtable = self.recent.get_mut().drain_into(&self.memtable);
        self.memtable = Memtable::default();
        self.state.sealed_below = end;
        let documents = std::mem::take(&mut self.state.unsealed_documents);
        self.write_run(&memtable, (first, end - 1), documents)?;
        // A transaction that seals many times must not pile runs up until it commits.
        self.merge()
    }

    fn write_run(
        &mut self,
        memtable: &Memtable,
        (first_id, last_id): (u64, u64),
        documents: u64,
    ) -> Result<()> {
        let buried: HashSet<u64> = memtable
            .lane(TOMBSTONE_LANE)
            .iter()
            .map(|gone| gone.id)
            .collect();
        let run = self.state.take_run_number()?;
        self.has_written_runs = true;
        let mut lanes: Vec<LaneSummary> = Vec::new();
        for (role, lane) in self.store.context.lanes.roles().zip(0u16..) {
            let mut postings = memtable.lane(lane);
            if !buried.is_empty() {
                postings.retain(|posting| !buried.contains(&posting.id));
            }
            let shape = self.filter_shape(lane, postings.len() as u64, documents);
            let buckets = self.store.context.lanes.bucket_bits(lane);
            let filter = shape.map(|shape| FilterPlan { shape, buckets });
            let mut tables = self.run_tables(PostingTable::of(role))?;
            lanes.push(write_sorted(&mut tables, run, lane, filter, postings)?);
        }
        let descriptor = RunDescriptor {
            run,
            level: 0,
            first_id,
            last_id,
            documents,
            inputs: Vec::new(),
            kept_up_to: 0,
            rows_from: None,
            lanes,
        };
        self.note_seal(&descriptor);
        self.add_run_unless_empty(descriptor, 0)
    }
}
