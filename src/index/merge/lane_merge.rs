//! Merges a lane of several runs into that of a new run, in slices.

use crate::error::{Error, Result};
use crate::format::{LaneSummary, Posting};
use crate::index::filter_writer::FilterPlan;
use crate::index::lane_writer::{LanePacker, Packed};
use crate::index::merge::lane_source::{LaneSource, MergeChunk};
use crate::index::merge::lane_work::LaneWork;
use crate::index::run::{RunTables, place};
use resemblance_sketch::lanes::BucketBits;

/// The merge of one lane, as far as one transaction takes it: a slice.
///
/// After every slice each posting is either in the inputs or in the output. Whole blocks move, and
/// a cursor (`after` of the inputs' summaries) marks the postings of the inputs' first blocks that
/// are in the output too. So a reader sees each posting once, and a crash between two slices loses
/// nothing.
///
/// Reading and writing are apart from computing, so that a [`pipeline`](super::pipeline) can have them on
/// two threads.
pub(crate) struct LaneMerge {
    pub(super) work: LaneWork,
    pub(super) progress: MergeProgress,
    chunk: MergeChunk,
}

/// The tables' progress.
pub(super) struct MergeProgress {
    pub(super) source: LaneSource,
    /// All postings of the inputs up to this one have been merged.
    merged_up_to: Option<Posting>,
    first_pending: Option<Posting>,
    has_written: bool,
    /// Number of blocks that the output had when the slice began.
    blocks_before: u64,
}

/// The progress of a merge after one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MergeStep {
    /// Number of postings read.
    pub(crate) postings: u64,
    /// True if there are no more: the merge of the lane can be finished.
    pub(crate) is_last: bool,
}

impl LaneMerge {
    /// Begins or continues the merge of a lane: `inputs` and `output` are the lane's summaries in
    /// the runs' descriptors. The inputs are neighbours, so that no posting is in two of them.
    ///
    /// # Errors
    /// Returns the errors of reading the output, and [`Error::Corrupt`] if it ends after the rest
    /// of the inputs begins.
    pub(crate) fn new(
        tables: &RunTables<'_>,
        buckets: BucketBits,
        inputs: impl IntoIterator<Item = (u32, LaneSummary)>,
        output_run: u32,
        output: LaneSummary,
    ) -> Result<Self> {
        let filter = output.filter.map(|shape| FilterPlan { shape, buckets });
        let inputs: Vec<(u32, LaneSummary)> = inputs.into_iter().collect();
        for (run, input) in &inputs {
            // Postings in between would be in the input and in the output, and readers would see them twice.
            if input.blocks > 0 && input.after < output.last {
                let place = place(tables.name, *run, input.lane);
                let (after, last) = (input.after, output.last);
                let detail = format!(
                    "its postings after {after:?} are left, run {output_run} ends at {last:?}"
                );
                return Err(Error::corrupt(place, detail));
            }
        }
        let packer = LanePacker::resume(tables, output_run, output, filter)?;
        Ok(Self {
            work: LaneWork::new(tables.name, inputs.iter().copied(), packer),
            progress: MergeProgress {
                source: LaneSource::new(buckets, inputs),
                merged_up_to: output.last,
                first_pending: None,
                has_written: false,
                blocks_before: output.blocks,
            },
            chunk: MergeChunk::default(),
        })
    }

    /// Reads about `blocks` blocks (at least one of each input), writes the blocks that they fill, and
    /// deletes those blocks of the inputs that are in the output as a whole. Postings of ids for which
    /// `is_dropped` holds are left out.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a block is damaged or missing, [`Error::Bug`] if postings get lost, and those
    /// of writing. The table is then half merged: abort the transaction.
    pub(super) fn step(
        &mut self,
        tables: &mut RunTables<'_>,
        blocks: usize,
        is_dropped: &impl Fn(u64) -> bool,
    ) -> Result<MergeStep> {
        let chunk = &mut self.chunk;
        self.progress.source.read(tables, blocks, chunk)?;
        self.work.step(chunk, is_dropped)?;
        self.progress.write(tables, chunk)?;
        Ok(MergeStep {
            postings: chunk.postings,
            is_last: chunk.is_last,
        })
    }

    /// Number of postings of the inputs that have not been read.
    pub(crate) fn unread(&self) -> u64 {
        self.progress.source.unread()
    }

    /// Writes the rest, and deletes the remains of the inputs. Returns a summary of the output's
    /// lane.
    ///
    /// # Errors
    /// Returns the errors of writing, and [`Error::Bug`] unless the inputs have been merged as a whole.
    pub(crate) fn finish(self, tables: &mut RunTables<'_>) -> Result<LaneSummary> {
        let mut packed = Packed::default();
        let summary = self.work.finish(&mut packed)?;
        packed.write(tables)?;
        self.progress.source.finish(tables)?;
        Ok(summary)
    }

    /// Leaves the rest to a later transaction. Returns summaries of the output's lane, and of the
    /// rest of the inputs.
    ///
    /// # Errors
    /// Returns the errors of writing, and [`Error::Bug`] if postings would be neither in the output nor left.
    pub(crate) fn pause(
        self,
        tables: &mut RunTables<'_>,
    ) -> Result<(LaneSummary, Vec<LaneSummary>)> {
        let Self { work, progress, .. } = self;
        // Pending postings do not fill a block: they remain in the inputs and are merged again. If
        // all merged postings were dropped, nothing has been written, and the inputs still advance
        // past them.
        let cursor = match progress.first_pending {
            Some(first) => first.previous(),
            None => progress.merged_up_to,
        };
        let written = work.pause(cursor)?;
        let left = progress.source.pause(tables, cursor)?;
        Ok((written, left))
    }
}

impl MergeProgress {
    /// Writes the result of a chunk, and deletes the blocks that are in the output as a whole.
    ///
    /// # Errors
    /// Returns the errors of writing.
    pub(super) fn write(
        &mut self,
        tables: &mut RunTables<'_>,
        chunk: &mut MergeChunk,
    ) -> Result<()> {
        let merged = &mut chunk.merged;
        merged.packed.write(tables)?;
        self.source.keep(merged.read.drain(..))?;
        // Not up to the bound: postings that are merged but pending are still in the inputs alone.
        self.source.free(tables, merged.last)?;
        self.merged_up_to = chunk.bound;
        self.first_pending = merged.first_pending;
        self.has_written = merged.blocks > self.blocks_before;
        Ok(())
    }

    /// Returns true if a pause now leaves less to do than there was: a block has been written, or there
    /// is nothing to write.
    pub(super) fn has_progress(&self) -> bool {
        // A pause forgets pending postings. A slice that wrote no block would leave the next one
        // the same work, and the merge would never end.
        self.first_pending.is_none() || self.has_written
    }
}

#[cfg(test)]
#[path = "lane_merge_tests.rs"]
mod tests;
