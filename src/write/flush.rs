//! Flushing the memtable into a run.

use std::collections::HashSet;

use crate::error::Result;
use crate::format::{LaneSummary, RunDescriptor};
use crate::index::{FilterPlan, Memtable, TOMBSTONE_LANE, write_sorted};
use crate::invariant::{at, invariant};
use crate::lanes::{LaneRole, LaneSet};
use crate::read::PostingTable;
use crate::write::equal_notes::EqualCollector;
use crate::write::filter_policy::filter_shape;
use crate::write::writer::Writer;

impl Writer {
    /// Writes all postings that are in no run to a run of level 0, except those of deleted documents.
    pub(super) fn flush(&mut self) -> Result<()> {
        // A merge reads the rows of the documents of its runs from the tables.
        self.flush_pending()?;
        let (first, end) = (self.state.sealed_below, self.state.next_id);
        invariant!(first < end, "a flush of no ids, from {first} to {end}");
        let memtable = self.buffer.get_mut().drain_into(&self.memtable);
        self.memtable = Memtable::default();
        self.unflushed_kept = 0;
        self.state.sealed_below = end;
        let documents = std::mem::take(&mut self.state.unsealed_documents);
        self.write_run(&memtable, (first, end - 1), documents)?;
        // A transaction that flushes many times must not pile runs up until it commits.
        self.merge()
    }

    fn write_run(
        &mut self,
        memtable: &Memtable,
        (first_id, last_id): (u64, u64),
        documents: u64,
    ) -> Result<()> {
        // The rows of these documents are gone. Their postings are still in segments, which are immutable.
        let deleted: HashSet<u64> = memtable
            .lane(TOMBSTONE_LANE)
            .iter()
            .map(|posting| posting.id)
            .collect();
        let run = self.state.take_run_number()?;
        self.has_written_runs = true;
        let mut lanes: Vec<LaneSummary> = Vec::new();
        let mut equal = EqualCollector::new(&self.store.context.lanes);
        for (role, lane) in self.store.context.lanes.roles().zip(0u16..) {
            let mut postings = memtable.lane(lane);
            let read = postings.len() as u64;
            let expected = memtable.lane_postings(lane);
            invariant!(
                read == expected,
                "lane {lane}: {read} postings of {expected} in the memtable"
            );
            if !deleted.is_empty() {
                postings.retain(|posting| !deleted.contains(&posting.id));
            }
            let kept = postings.len() as u64;
            postings
                .iter()
                .for_each(|posting| equal.push(lane, *posting));
            let context = &self.store.context;
            let shape = filter_shape(context, lane, kept, documents, self.state.documents)?;
            let buckets = context.lanes.bucket_bits(lane);
            let filter = shape.map(|shape| FilterPlan { shape, buckets });
            let mut tables = self.run_tables(PostingTable::of(role))?;
            let summary = write_sorted(&mut tables, run, lane, filter, postings)?;
            // No document has two postings in a lane but that of kept hashes, and none has one after it was
            // deleted.
            let fits = kept <= documents && read - kept <= deleted.len() as u64;
            invariant!(
                summary.postings == kept && (fits || role == LaneRole::Kept),
                "run {run}, lane {lane}: {read} postings read, {} deleted documents, {kept} postings \
                 kept of {documents} documents, {} written",
                deleted.len(),
                summary.postings
            );
            lanes.push(summary);
        }
        check_lanes_agree(&self.store.context.lanes, run, &lanes)?;
        equal.write(&self.store.context, self.write()?)?;
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
        self.note_flush(&descriptor);
        self.add_run_unless_empty(descriptor, 0)
    }
}

/// Checks that the lanes of bands and tables of a new run have equal numbers of postings: a document
/// has a code in each of them or in none.
///
/// # Errors
/// [`Error::Bug`](crate::Error::Bug).
pub(super) fn check_lanes_agree(set: &LaneSet, run: u32, lanes: &[LaneSummary]) -> Result<()> {
    // Lane 0 is that of keys, which a document may be without.
    let Some((_, others)) = lanes.split_first() else {
        return Ok(());
    };
    let is_single = |summary: &&LaneSummary| Some(summary.lane) != set.kept_lane();
    for summary in others.iter().filter(is_single) {
        let (found, expected) = (summary.postings, at(others, 0)?.postings);
        invariant!(
            found == expected,
            "run {run}: {found} postings in lane {}, {expected} in lane 1",
            summary.lane
        );
    }
    Ok(())
}
