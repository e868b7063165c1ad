//! The reading and writing side of a merge, which accesses tables.

use std::collections::VecDeque;
use std::ops::Bound;

use crate::engine::{EngineResult, ReadableTable};
use crate::error::{Error, Result};
use crate::format::{BlockKey, LaneSummary, Posting, block_key, claimed_postings, split_block_key};
use crate::index::filter_writer::remove_pieces;
use crate::index::lane_writer::Packed;
use crate::index::row_buffer::RowBuffer;
use crate::index::run::{RunTables, lane_bounds, missing, place};
use crate::invariant::{OrBug, at_mut, invariant};
use resemblance_sketch::lanes::BucketBits;

/// The blocks of one step of a merge, and the result of the step. A chunk circulates between the
/// two sides, so that its memory is reused.
#[derive(Default)]
pub(super) struct MergeChunk {
    /// The blocks that were read: those of each input together, in order.
    pub(super) blocks: RowBuffer<InputBlock>,
    /// Every posting up to this one has been read: it can be merged.
    pub(super) bound: Option<Posting>,
    /// Number of postings in these blocks, as their headers state it.
    pub(super) postings: u64,
    /// True if no input has blocks after these.
    pub(super) is_last: bool,
    pub(super) merged: MergedChunk,
}

/// The output of one merge step over the blocks of a chunk.
#[derive(Default)]
pub(super) struct MergedChunk {
    pub(super) packed: Packed,
    /// The blocks that turned out to be good, each with the index of its input.
    pub(super) read: Vec<(usize, ReadBlock)>,
    /// The last posting in a block of the output.
    pub(super) last: Option<Posting>,
    /// The first posting that was merged and is in no block yet.
    pub(super) first_pending: Option<Posting>,
    /// Number of blocks of the output.
    pub(super) blocks: u64,
}

/// Names a block on its way from the tables to the merge.
#[derive(Clone, Copy, Debug)]
pub(super) struct InputBlock {
    /// The index of its run among the inputs.
    pub(super) input: usize,
    /// The number of blocks of the input that this slice read before it.
    pub(super) number: u64,
    pub(super) key: BlockKey,
}

/// A block that has been read, but not deleted.
pub(super) struct ReadBlock {
    pub(super) last: Posting,
    pub(super) postings: u64,
    pub(super) bytes: u64,
}

/// The inputs of the merge of a lane, as they are in the tables.
pub(super) struct LaneSource {
    buckets: BucketBits,
    inputs: Vec<InputLane>,
}

impl LaneSource {
    pub(super) fn new(
        buckets: BucketBits,
        inputs: impl IntoIterator<Item = (u32, LaneSummary)>,
    ) -> Self {
        let input = |(run, expected)| InputLane::new(run, expected);
        Self {
            buckets,
            inputs: inputs.into_iter().map(input).collect(),
        }
    }

    /// Reads about `blocks` blocks into a chunk: at least one of each input whose blocks were
    /// merged as a whole. Their keys show how far the chunk can be merged.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] if a block is missing, and those of reading.
    pub(super) fn read(
        &mut self,
        tables: &RunTables<'_>,
        blocks: usize,
        chunk: &mut MergeChunk,
    ) -> Result<()> {
        let share = (blocks / self.inputs.len().max(1)).max(1);
        chunk.blocks.clear();
        chunk.postings = 0;
        for (index, input) in self.inputs.iter_mut().enumerate() {
            // An input that the last bound did not use up still has postings in memory. Reading on would only
            // hold more of them: the bound moves with the inputs that are used up.
            if input.is_exhausted && !input.is_read() {
                chunk.postings += input.read(tables, index, share, &mut chunk.blocks)?;
            }
        }
        // Inputs are sorted: up to the first end of the blocks read, no posting of any input is missing.
        let unread = self.inputs.iter().filter(|input| !input.is_read());
        let ends = unread.filter_map(|input| input.end);
        let bound = ends.min().unwrap_or(Posting::MAX);
        for input in &mut self.inputs {
            input.is_exhausted = input.end.is_none_or(|end| end <= bound);
        }
        let is_finished = |input: &InputLane| input.is_read() && input.is_exhausted;
        chunk.is_last = self.inputs.iter().all(is_finished);
        chunk.bound = Some(bound);
        Ok(())
    }

    /// Number of postings that have not been read.
    pub(super) fn unread(&self) -> u64 {
        self.inputs.iter().map(InputLane::unread).sum()
    }

    /// Records blocks that proved intact. They are deleted when the output contains all of them.
    ///
    /// # Errors
    /// [`Error::Bug`] if there is no such input.
    pub(super) fn keep(&mut self, blocks: impl Iterator<Item = (usize, ReadBlock)>) -> Result<()> {
        for (input, block) in blocks {
            at_mut(&mut self.inputs, input)?.kept.push_back(block);
        }
        Ok(())
    }

    /// Deletes the blocks that end at or before `cursor`.
    ///
    /// # Errors
    /// Returns the errors of writing.
    pub(super) fn free(
        &mut self,
        tables: &mut RunTables<'_>,
        cursor: Option<Posting>,
    ) -> Result<()> {
        for input in &mut self.inputs {
            input.free(tables, cursor)?;
        }
        Ok(())
    }

    /// Deletes the rest of the inputs.
    ///
    /// # Errors
    /// Returns the errors of writing, and [`Error::Bug`] unless every block was read.
    pub(super) fn finish(mut self, tables: &mut RunTables<'_>) -> Result<()> {
        self.free(tables, Some(Posting::MAX))?;
        for input in self.inputs {
            let left = input.left(None)?;
            invariant!(
                left.blocks == 0 && left.postings == 0 && left.bytes == 0,
                "a merge ends, and run {} still has {left:?}",
                input.run
            );
            input.free_filter(tables, self.buckets, None)?;
        }
        Ok(())
    }

    /// Deletes the blocks that end at or before `cursor`, and returns what each input has after it.
    ///
    /// # Errors
    /// Returns the errors of writing, and [`Error::Bug`] unless all blocks read are either deleted or left.
    pub(super) fn pause(
        mut self,
        tables: &mut RunTables<'_>,
        cursor: Option<Posting>,
    ) -> Result<Vec<LaneSummary>> {
        self.free(tables, cursor)?;
        let mut left = Vec::with_capacity(self.inputs.len());
        for input in self.inputs {
            if let Some(cursor) = cursor {
                input.free_filter(tables, self.buckets, Some(cursor))?;
            }
            left.push(input.left(cursor)?);
        }
        Ok(left)
    }
}

/// The lane of one run that is merged.
struct InputLane {
    run: u32,
    /// The summary in its descriptor.
    expected: LaneSummary,
    blocks_read: u64,
    postings_read: u64,
    /// The last posting read.
    end: Option<Posting>,
    /// True if the last chunk's bound reached the end of its blocks.
    is_exhausted: bool,
    /// Blocks that were read and are not deleted yet: the output does not hold all of them.
    kept: VecDeque<ReadBlock>,
    /// The summary of what its table still holds.
    left: LaneSummary,
}

impl InputLane {
    fn new(run: u32, expected: LaneSummary) -> Self {
        Self {
            run,
            expected,
            blocks_read: 0,
            postings_read: 0,
            end: None,
            is_exhausted: true,
            kept: VecDeque::new(),
            left: expected,
        }
    }

    fn is_read(&self) -> bool {
        self.blocks_read >= self.expected.blocks
    }

    fn unread(&self) -> u64 {
        // A damaged lane may hold more postings than its descriptor states, until that is found out.
        self.expected.postings.saturating_sub(self.postings_read)
    }

    /// Reads up to `blocks` blocks, at least one. Returns how many postings they claim to hold.
    fn read(
        &mut self,
        tables: &RunTables<'_>,
        index: usize,
        blocks: usize,
        read: &mut RowBuffer<InputBlock>,
    ) -> Result<u64> {
        let lane = self.expected.lane;
        let (lowest, highest) = lane_bounds(self.run, &self.expected);
        let after: Bound<BlockKey> = match self.end {
            Some(last) => Bound::Excluded(block_key(self.run, lane, last)),
            None => Bound::Included(lowest),
        };
        let bounds = (after.as_ref(), Bound::Included(&highest));
        let rows = tables.blocks.range::<&BlockKey>(bounds).engine()?;
        let (mut blocks_read, mut postings) = (0, 0);
        for row in rows.take(blocks) {
            let (key, value) = row.engine()?;
            let (key, value) = (key.value(), value.value());
            let block = InputBlock {
                input: index,
                number: self.blocks_read + blocks_read,
                key: *key,
            };
            read.push(block, value);
            postings += claimed_postings(value);
            blocks_read += 1;
            self.end = Some(split_block_key(key).2);
        }
        if blocks_read == 0 {
            return Err(missing(tables.name, self.run, lane, self.end, None));
        }
        self.blocks_read += blocks_read;
        self.postings_read += postings;
        Ok(postings)
    }

    fn free(&mut self, tables: &mut RunTables<'_>, cursor: Option<Posting>) -> Result<()> {
        // A block is deleted only when blocks of the output hold all of its postings. Until then it
        // has the only copy of the pending ones: a pause forgets these, and the next slice reads
        // them here.
        let count = self
            .kept
            .partition_point(|block| Some(block.last) <= cursor);
        let mut ends = None;
        for block in self.kept.drain(..count) {
            let left = &mut self.left;
            let blocks = left.blocks.checked_sub(1);
            left.blocks = blocks.or_bug("a block of the input that is deleted")?;
            // The descriptor is checked with the last block: until then, it may be wrong itself.
            let postings = left.postings.checked_sub(block.postings);
            let bytes = left.bytes.checked_sub(block.bytes);
            let Some((postings, bytes)) = postings.zip(bytes) else {
                let place = place(tables.name, self.run, self.expected.lane);
                let detail = format!("found more in its blocks than {:?}", self.expected);
                return Err(Error::corrupt(place, detail));
            };
            (left.postings, left.bytes) = (postings, bytes);
            let (first, _) = ends.unwrap_or((block.last, block.last));
            ends = Some((first, block.last));
        }
        let Some((first, last)) = ends else {
            return Ok(());
        };
        let [first, last] = [first, last].map(|end| block_key(self.run, self.expected.lane, end));
        // Blocks were read one after the other: all between these two have been read as well.
        let removed = tables
            .blocks
            .retain_in::<&BlockKey, _>(&first..=&last, |_, _| false);
        removed.engine()
    }

    /// Deletes the pieces of the filter that no probe needs once everything up to `cursor` has moved; all
    /// pieces without a cursor.
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
        // The piece of the cursor is kept, because postings of its buckets may be left beyond the
        // cursor.
        let end = cursor.filter(|_| !is_empty).map_or(shape.pieces, piece);
        let start = self.expected.after.map_or(0, piece);
        let lane = self.expected.lane;
        remove_pieces(&mut tables.filters, self.run, lane, start..end)
    }

    /// Returns what its lane still has after `cursor`.
    fn left(&self, cursor: Option<Posting>) -> Result<LaneSummary> {
        let unread = self.expected.blocks.checked_sub(self.blocks_read);
        let blocks = unread.map(|unread| unread + self.kept.len() as u64);
        invariant!(
            blocks == Some(self.left.blocks),
            "run {} has {} blocks left, of which {unread:?} are unread and {} were kept",
            self.run,
            self.left.blocks,
            self.kept.len()
        );
        if self.left.blocks == 0 {
            return Ok(LaneSummary {
                postings: self.left.postings,
                bytes: self.left.bytes,
                ..LaneSummary::empty(self.expected.lane)
            });
        }
        Ok(LaneSummary {
            // The cursor never moves back: the postings that earlier slices dropped are in no
            // block, so nothing else records that they are done.
            after: cursor.max(self.expected.after),
            ..self.left
        })
    }
}
