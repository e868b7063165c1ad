//! Merges a lane of several runs into that of a new run, in slices.

use std::collections::VecDeque;
use std::ops::Bound;

use redb::ReadableTable;

use crate::Result;
use crate::format::engine::engine_error;
use crate::format::posting::{BlockKey, Posting, block_key};
use crate::lanes::BucketBits;

use super::filter_writer::{FilterPlan, remove_pieces};
use super::k_way::merge_slices;
use super::lane_iter::{read_block, unexpected_end};
use super::lane_writer::LaneWriter;
use super::run::{LaneSummary, RunTables, lane_bounds, missing};

/// The merge of one lane, as far as one transaction takes it. Every block is in the inputs or in the
/// output, and a cursor tells which postings of the inputs' first blocks are in the output too.
pub(crate) struct LaneMerge {
    buckets: BucketBits,
    inputs: Vec<LaneInput>,
    writer: LaneWriter,
    /// All postings of the inputs up to this one have been taken.
    taken: Option<Posting>,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Postings read.
    pub(crate) postings: u64,
    /// There are no more.
    pub(crate) is_last: bool,
}

impl LaneMerge {
    /// Begins the merge of a lane, or goes on with it: `inputs` and `output` are what the runs'
    /// descriptors say of the lane. The inputs are neighbours, so that no posting is in two of them.
    ///
    /// # Errors
    /// Those of reading what the output holds.
    pub(crate) fn new(
        tables: &RunTables<'_>,
        buckets: BucketBits,
        inputs: impl IntoIterator<Item = (u32, LaneSummary)>,
        (output_run, output): (u32, LaneSummary),
    ) -> Result<Self> {
        let filter = output.filter.map(|shape| FilterPlan { shape, buckets });
        let inputs = inputs.into_iter();
        let inputs = inputs.map(|(run, expected)| LaneInput::new(run, expected));
        Ok(Self {
            buckets,
            inputs: inputs.collect(),
            writer: LaneWriter::resume(tables, output_run, output, filter)?,
            taken: None,
        })
    }

    /// Reads about `blocks` blocks (at least one an input), writes what they fill, and removes the
    /// inputs' blocks that are in the output as a whole. Postings of ids for which `is_dropped` holds
    /// are left out.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] if a block is damaged or missing, and those of writing. The table
    /// is then half merged: abort the transaction.
    pub(crate) fn step(
        &mut self,
        tables: &mut RunTables<'_>,
        blocks: usize,
        is_dropped: &impl Fn(u64) -> bool,
    ) -> Result<Step> {
        let share = (blocks / self.inputs.len().max(1)).max(1);
        let mut postings = 0;
        for input in &mut self.inputs {
            postings += input.fill(tables, share)?;
        }
        // Up to the least end of what has been read, nothing can be missing.
        let unread = self.inputs.iter().filter(|input| !input.is_read());
        let bound = unread.filter_map(LaneInput::end).min();
        let bound = bound.unwrap_or(Posting::MAX);
        let slices: Vec<&[Posting]> = self
            .inputs
            .iter_mut()
            .map(|input| input.take_until(bound))
            .collect();
        for posting in merge_slices(&slices) {
            if !is_dropped(posting.id) {
                self.writer.push(tables, posting)?;
            }
        }
        self.writer.write_full_blocks(tables)?;
        self.taken = Some(bound);
        let written = self.writer.last_written();
        for input in &mut self.inputs {
            input.free(tables, written)?;
        }
        Ok(Step {
            postings,
            is_last: self.inputs.iter().all(LaneInput::is_finished),
        })
    }

    /// Whether a pause now leaves less to do than there was: a block has been written, or there is
    /// nothing to write.
    pub(crate) fn has_progress(&self) -> bool {
        self.writer.first_unwritten().is_none() || self.writer.has_written()
    }

    /// Writes the rest, and removes what is left of the inputs. What the lane of the output holds.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn finish(self, tables: &mut RunTables<'_>) -> Result<LaneSummary> {
        let summary = self.writer.finish(tables)?;
        for mut input in self.inputs {
            input.free(tables, Some(Posting::MAX))?;
            input.free_filter(tables, self.buckets, None)?;
        }
        Ok(summary)
    }

    /// Leaves the rest to a later transaction: what the lane of the output holds, and what is left of
    /// the inputs.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn pause(
        self,
        tables: &mut RunTables<'_>,
    ) -> Result<(LaneSummary, Vec<LaneSummary>)> {
        let (summary, unwritten) = (self.writer.written(), self.writer.first_unwritten());
        // Where all that was taken was dropped, nothing has been written and all the same it is done.
        let cursor = match unwritten {
            Some(first) => first.previous(),
            None => self.taken,
        };
        let mut left = Vec::with_capacity(self.inputs.len());
        for mut input in self.inputs {
            input.free(tables, cursor)?;
            if let Some(cursor) = cursor {
                input.free_filter(tables, self.buckets, Some(cursor))?;
            }
            left.push(input.left(cursor));
        }
        Ok((summary, left))
    }
}

/// A block that has been read, but not removed.
struct Kept {
    last: Posting,
    postings: u64,
    bytes: u64,
}

/// One run's side of a merge.
struct LaneInput {
    run: u32,
    expected: LaneSummary,
    /// Of the blocks read.
    seen: LaneSummary,
    /// Read, but not taken.
    postings: Vec<Posting>,
    position: usize,
    kept: VecDeque<Kept>,
    /// What its lane still has.
    left: LaneSummary,
}

impl LaneInput {
    fn new(run: u32, expected: LaneSummary) -> Self {
        let seen = LaneSummary {
            filter: expected.filter,
            after: expected.after,
            ..LaneSummary::empty(expected.lane)
        };
        Self {
            run,
            expected,
            seen,
            postings: Vec::new(),
            position: 0,
            kept: VecDeque::new(),
            left: expected,
        }
    }

    /// Everything has been read.
    fn is_read(&self) -> bool {
        self.seen.blocks == self.expected.blocks
    }

    /// Everything has been read and taken.
    fn is_finished(&self) -> bool {
        self.is_read() && self.position == self.postings.len()
    }

    /// The last posting read.
    fn end(&self) -> Option<Posting> {
        self.postings.last().copied()
    }

    /// Takes the postings up to `bound`, inclusive.
    fn take_until(&mut self, bound: Posting) -> &[Posting] {
        let rest = self.postings.get(self.position..).unwrap_or_default();
        let count = rest.partition_point(|posting| *posting <= bound);
        self.position += count;
        rest.get(..count).unwrap_or_default()
    }

    /// Reads up to `blocks` blocks if all those before have been taken. How many postings.
    fn fill(&mut self, tables: &RunTables<'_>, blocks: usize) -> Result<u64> {
        if self.position < self.postings.len() || self.is_finished() {
            return Ok(0);
        }
        self.postings.clear();
        self.position = 0;
        let (name, lane) = (tables.name, self.expected.lane);
        let (lowest, highest) = lane_bounds(self.run, &self.expected);
        let after: Bound<BlockKey> = match self.seen.last {
            Some(last) => Bound::Excluded(block_key(self.run, lane, last)),
            None => Bound::Included(lowest),
        };
        let bounds = (after.as_ref(), Bound::Included(&highest));
        let rows = tables
            .blocks
            .range::<&BlockKey>(bounds)
            .map_err(engine_error)?;
        for row in rows.take(blocks) {
            let (key, value) = row.map_err(engine_error)?;
            let (key, value) = (key.value(), value.value());
            let before = self.postings.len();
            let after = self.expected.after;
            read_block(name, key, value, self.seen.last, after, &mut self.postings)?;
            self.note(self.postings.len() - before, value.len());
        }
        if self.postings.is_empty() {
            return Err(missing(name, self.run, lane, self.seen.last, None));
        }
        let read = self.postings.len() as u64;
        let first = self.expected.first_possible();
        self.position = self.postings.partition_point(|posting| *posting < first);
        let ended = self.seen.blocks >= self.expected.blocks;
        if ended && self.seen != self.expected {
            return Err(unexpected_end(name, self.run, &self.seen, &self.expected));
        }
        Ok(read)
    }

    /// Counts a block that has been read.
    fn note(&mut self, postings: usize, bytes: usize) {
        let (postings, bytes) = (postings as u64, bytes as u64);
        self.seen.postings += postings;
        self.seen.blocks += 1;
        self.seen.bytes += bytes;
        self.seen.last = self.postings.last().copied();
        self.kept.extend(self.seen.last.map(|last| Kept {
            last,
            postings,
            bytes,
        }));
    }

    /// Removes the blocks that end at or before `cursor`.
    fn free(&mut self, tables: &mut RunTables<'_>, cursor: Option<Posting>) -> Result<()> {
        while let Some(block) = self.kept.front()
            && Some(block.last) <= cursor
        {
            let key = block_key(self.run, self.expected.lane, block.last);
            tables.blocks.remove(&key).map_err(engine_error)?;
            self.left.postings = self.left.postings.saturating_sub(block.postings);
            self.left.blocks = self.left.blocks.saturating_sub(1);
            self.left.bytes = self.left.bytes.saturating_sub(block.bytes);
            self.kept.pop_front();
        }
        Ok(())
    }

    /// Removes the pieces of the filter that no probe needs once all up to `cursor` has gone; all
    /// without a cursor.
    fn free_filter(
        &self,
        tables: &mut RunTables<'_>,
        buckets: BucketBits,
        cursor: Option<Posting>,
    ) -> Result<()> {
        let Some(shape) = self.expected.filter else {
            return Ok(());
        };
        let piece = |posting: Posting| shape.piece(buckets.bucket(posting.code));
        let is_empty = cursor >= self.expected.last;
        let end = cursor.filter(|_| !is_empty).map_or(shape.pieces, piece);
        let start = self.expected.after.map_or(0, piece);
        let lane = self.expected.lane;
        remove_pieces(&mut tables.filters, self.run, lane, start..end)
    }

    /// What its lane still has behind `cursor`.
    fn left(&self, cursor: Option<Posting>) -> LaneSummary {
        if self.left.blocks == 0 {
            return LaneSummary::empty(self.expected.lane);
        }
        LaneSummary {
            after: cursor.max(self.expected.after),
            ..self.left
        }
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
