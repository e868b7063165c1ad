//! Flushes the memtable into a run.

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::Result;
use crate::format::{LaneSummary, RunDescriptor};
use crate::index::{FilterPlan, Memtable, PackedLane, TOMBSTONE_LANE};
use crate::invariant::{OrBug, at, invariant};
use crate::read::PostingTable;
use crate::state::SharedContext;
use crate::threads::make_ahead;
use crate::write::equal_notes::EqualCollector;
use crate::write::filter_policy::filter_shape;
use crate::write::writer::Writer;
use resemblance_sketch::lanes::{LaneRole, LaneSet};

impl Writer {
    /// Writes all postings that are in no run to a run of level 0, except those of deleted documents.
    pub(super) fn flush(&mut self) -> Result<()> {
        // A merge reads the rows of the documents of its runs from the tables.
        self.flush_pending()?;
        let (first, end) = (self.state.flushed_below, self.state.next_id);
        invariant!(first < end, "a flush of no ids, from {first} to {end}");
        self.has_flushed = true;
        let memtable = self.buffer.get_mut().drain_behind(&self.memtable)?;
        self.memtable = Memtable::default();
        self.unflushed_kept = 0;
        self.state.flushed_below = end;
        let documents = std::mem::take(&mut self.state.unflushed_documents);
        self.write_run(&memtable, first, documents)?;
        // A transaction that flushes many times must not pile runs up until it commits.
        self.merge()
    }

    /// Returns true if the transaction leaves work on merges to the next one, because it has
    /// flushed what earlier ones inserted, and would take much longer than they did. Of two
    /// transactions in a row, at least one does not.
    pub(super) fn leaves_merges(&self) -> Result<bool> {
        let options = &self.store.context.options;
        let lanes = self.store.context.lanes.single_count();
        let flushed = options
            .flush_after_documents(lanes)
            .saturating_mul(lanes.into())
            .min(options.flush_after_kept_hashes());
        let (before, now) = (self.base.postings_moved, self.state.postings_moved);
        let moved = now
            .checked_sub(before)
            .or_bug("a count of moved postings that only rises")?;
        Ok(self.has_flushed && moved < flushed / 2)
    }

    /// Writes the postings of documents from `first_id` on, below the next ones, to a run.
    fn write_run(&mut self, memtable: &Memtable, first_id: u64, documents: u64) -> Result<()> {
        let store = Arc::clone(&self.store);
        let context = &store.context;
        let run = self.state.take_run_number()?;
        let last_id = self.state.flushed_below - 1;
        self.has_written_runs = true;
        let deleted = memtable.lane(TOMBSTONE_LANE)?;
        let mut flush = Flush {
            context,
            memtable,
            deleted: deleted.iter().map(|posting| posting.id).collect(),
            run,
            documents,
            all_documents: self.state.documents,
            equal: EqualCollector::new(&context.lanes),
        };
        let mut lanes: Vec<LaneSummary> = Vec::new();
        let write = |flushed: FlushedLane| {
            let mut tables = self.run_tables(PostingTable::of(flushed.role))?;
            lanes.push(flushed.lane.write(&mut tables)?);
            Ok(())
        };
        flush.pack(write)?;
        check_lanes_agree(&context.lanes, run, &lanes)?;
        flush.equal.write(context, self.write()?)?;
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
        let postings = descriptor.postings();
        self.counters.count.flushes.add(1);
        self.counters.count.flushed_postings.add(postings);
        self.log_merge(format_args!(
            "run {run} flushed: documents {first_id} to {last_id}, {postings} postings"
        ));
        self.add_run_unless_empty(descriptor, 0)
    }
}

/// The lanes of a memtable that are being written to a run.
struct Flush<'m> {
    context: &'m SharedContext,
    memtable: &'m Memtable,
    /// The documents whose rows were removed. Their postings are still in segments, which are
    /// immutable.
    deleted: HashSet<u64>,
    run: u32,
    /// Number of documents of the run.
    documents: u64,
    /// Number of documents of the store.
    all_documents: u64,
    equal: EqualCollector,
}

struct FlushedLane {
    role: LaneRole,
    lane: PackedLane,
}

impl Flush<'_> {
    /// Hands on all lanes, packed. A second thread is needed to write one lane while the next is
    /// packed.
    fn pack(&mut self, mut write: impl FnMut(FlushedLane) -> Result<()>) -> Result<()> {
        let context = self.context;
        let single = u64::from(context.lanes.single_count());
        let is_parallel = context
            .options
            .is_in_parallel(self.documents.saturating_mul(single));
        let lanes = context.lanes.roles().zip(0..);
        let mut packed = lanes.map(|(role, lane)| self.lane(role, lane));
        if !is_parallel || !make_ahead("flush", &mut packed, &mut write)? {
            packed.try_for_each(|lane| write(lane?))?;
        }
        Ok(())
    }

    fn lane(&mut self, role: LaneRole, lane: u16) -> Result<FlushedLane> {
        let (run, documents) = (self.run, self.documents);
        let mut postings = self.memtable.lane(lane)?;
        let read = postings.len() as u64;
        let expected = self.memtable.lane_postings(lane);
        invariant!(
            read == expected,
            "lane {lane}: {read} postings of {expected} in the memtable"
        );
        let deleted = &self.deleted;
        if !deleted.is_empty() {
            postings.retain(|posting| !deleted.contains(&posting.id));
        }
        let kept = postings.len() as u64;
        // No document has two postings in a lane but that of kept hashes, and none has one after it was
        // deleted.
        let fits = kept <= documents && read - kept <= deleted.len() as u64;
        invariant!(
            fits || role == LaneRole::Kept,
            "run {run}, lane {lane}: {read} postings read, {} deleted documents, {kept} postings \
             kept of {documents} documents",
            deleted.len()
        );
        let equal = &mut self.equal;
        postings
            .iter()
            .for_each(|posting| equal.push(lane, *posting));
        let shape = filter_shape(self.context, lane, kept, documents, self.all_documents)?;
        let buckets = self.context.lanes.bucket_bits(lane);
        let filter = shape.map(|shape| FilterPlan { shape, buckets });
        let table_name = PostingTable::of(role).name();
        let lane = PackedLane::new(table_name, run, lane, filter, postings)?;
        let written = lane.postings();
        invariant!(
            written == kept,
            "run {run}: {kept} postings of a lane became {written}"
        );
        Ok(FlushedLane { role, lane })
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
