//! What a merge takes from tables and gives back to them: the side that touches the engine.

use std::collections::VecDeque;
use std::ops::Bound;

use redb::ReadableTable;

use crate::engine::engine_error;
use crate::error::Result;
use crate::format::{BlockKey, LaneSummary, Posting, block_key, claimed_postings, split_block_key};
use crate::index::filter_writer::remove_pieces;
use crate::index::lane_writer::Packed;
use crate::index::rows::Rows;
use crate::index::run::{RunTables, lane_bounds, missing};
use crate::lanes::BucketBits;

/// What one step works on, and what comes of it. It goes around, so that its memory is used again.
#[derive(Default)]
pub(crate) struct Portion {
    /// The blocks that were read, under their keys and the places of their runs among the inputs: those
    /// of each input together, in order.
    pub(crate) blocks: Rows<(usize, BlockKey)>,
    /// Everything up to this posting has been read: it can be merged.
    pub(crate) bound: Option<Posting>,
    /// Postings in these blocks, as their headers say.
    pub(crate) postings: u64,
    /// There are no more.
    pub(crate) is_last: bool,
    pub(crate) outcome: Outcome,
}

/// What has come of a portion.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) packed: Packed,
    /// The blocks that were read, each with the place of its input.
    pub(crate) read: Vec<(usize, Kept)>,
    /// The last posting that is in a block of the output.
    pub(crate) last: Option<Posting>,
    /// The first one that is in none yet.
    pub(crate) first_pending: Option<Posting>,
    /// Blocks of the output.
    pub(crate) blocks: u64,
}

/// A block that has been read, but not removed.
pub(crate) struct Kept {
    pub(crate) last: Posting,
    pub(crate) postings: u64,
    pub(crate) bytes: u64,
}

/// The inputs of the merge of a lane, as they stand in the tables.
pub(crate) struct LaneSource {
    buckets: BucketBits,
    inputs: Vec<Input>,
}

impl LaneSource {
    pub(crate) fn new(
        buckets: BucketBits,
        inputs: impl IntoIterator<Item = (u32, LaneSummary)>,
    ) -> Self {
        let inputs = inputs.into_iter();
        let inputs = inputs.map(|(run, expected)| Input::new(run, expected));
        Self {
            buckets,
            inputs: inputs.collect(),
        }
    }

    /// Reads about so many blocks, at least one an input of which all that was read before has been
    /// handed on: the keys say how far that goes.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] if a block is missing, and those of reading.
    pub(crate) fn read(
        &mut self,
        tables: &RunTables<'_>,
        blocks: usize,
        portion: &mut Portion,
    ) -> Result<()> {
        let share = (blocks / self.inputs.len().max(1)).max(1);
        portion.blocks.clear();
        portion.postings = 0;
        for (place, input) in self.inputs.iter_mut().enumerate() {
            if input.is_exhausted && !input.is_read() {
                portion.postings += input.read(tables, place, share, &mut portion.blocks)?;
            }
        }
        // Up to the least end of what has been read, nothing can be missing.
        let unread = self.inputs.iter().filter(|input| !input.is_read());
        let bound = unread.filter_map(|input| input.end).min();
        let bound = bound.unwrap_or(Posting::MAX);
        for input in &mut self.inputs {
            input.is_exhausted = input.end.is_none_or(|end| end <= bound);
        }
        let is_finished = |input: &Input| input.is_read() && input.is_exhausted;
        portion.is_last = self.inputs.iter().all(is_finished);
        portion.bound = Some(bound);
        Ok(())
    }

    /// Postings that have not been read.
    pub(crate) fn unread(&self) -> u64 {
        self.inputs.iter().map(Input::unread).sum()
    }

    /// Notes blocks that turned out to be good.
    pub(crate) fn keep(&mut self, blocks: impl Iterator<Item = (usize, Kept)>) {
        for (input, block) in blocks {
            if let Some(input) = self.inputs.get_mut(input) {
                input.kept.push_back(block);
            }
        }
    }

    /// Removes the blocks that end at or before `cursor`.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn free(
        &mut self,
        tables: &mut RunTables<'_>,
        cursor: Option<Posting>,
    ) -> Result<()> {
        for input in &mut self.inputs {
            input.free(tables, cursor)?;
        }
        Ok(())
    }

    /// Removes what is left.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn finish(mut self, tables: &mut RunTables<'_>) -> Result<()> {
        self.free(tables, Some(Posting::MAX))?;
        for input in self.inputs {
            input.free_filter(tables, self.buckets, None)?;
        }
        Ok(())
    }

    /// Removes what ends at or before `cursor`, and gives what is left behind it.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn pause(
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
            left.push(input.left(cursor));
        }
        Ok(left)
    }
}

/// One run's side of a merge.
struct Input {
    run: u32,
    expected: LaneSummary,
    blocks_read: u64,
    postings_read: u64,
    /// The last posting read.
    end: Option<Posting>,
    /// All that was read has been handed on.
    is_exhausted: bool,
    kept: VecDeque<Kept>,
    /// What its lane still has.
    left: LaneSummary,
}

impl Input {
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

    /// Everything has been read.
    fn is_read(&self) -> bool {
        self.blocks_read >= self.expected.blocks
    }

    fn unread(&self) -> u64 {
        self.expected.postings.saturating_sub(self.postings_read)
    }

    /// Reads up to `blocks` blocks, at least one; how many postings they claim to have.
    fn read(
        &mut self,
        tables: &RunTables<'_>,
        place: usize,
        blocks: usize,
        read: &mut Rows<(usize, BlockKey)>,
    ) -> Result<u64> {
        let lane = self.expected.lane;
        let (lowest, highest) = lane_bounds(self.run, &self.expected);
        let after: Bound<BlockKey> = match self.end {
            Some(last) => Bound::Excluded(block_key(self.run, lane, last)),
            None => Bound::Included(lowest),
        };
        let bounds = (after.as_ref(), Bound::Included(&highest));
        let rows = tables
            .blocks
            .range::<&BlockKey>(bounds)
            .map_err(engine_error)?;
        let (mut blocks_read, mut postings) = (0, 0);
        for row in rows.take(blocks) {
            let (key, value) = row.map_err(engine_error)?;
            let (key, value) = (key.value(), value.value());
            postings += claimed_postings(value);
            blocks_read += 1;
            self.end = Some(split_block_key(key).2);
            read.push((place, *key), value);
        }
        if blocks_read == 0 {
            return Err(missing(tables.name, self.run, lane, self.end, None));
        }
        self.blocks_read += blocks_read;
        self.postings_read += postings;
        Ok(postings)
    }

    fn free(&mut self, tables: &mut RunTables<'_>, cursor: Option<Posting>) -> Result<()> {
        let count = self
            .kept
            .partition_point(|block| Some(block.last) <= cursor);
        let mut ends = None;
        for block in self.kept.drain(..count) {
            self.left.postings = self.left.postings.saturating_sub(block.postings);
            self.left.blocks = self.left.blocks.saturating_sub(1);
            self.left.bytes = self.left.bytes.saturating_sub(block.bytes);
            let (first, _) = ends.unwrap_or((block.last, block.last));
            ends = Some((first, block.last));
        }
        let Some((first, last)) = ends else {
            return Ok(());
        };
        let [first, last] = [first, last].map(|end| block_key(self.run, self.expected.lane, end));
        // All that is between them has been read as well.
        let removed = tables
            .blocks
            .retain_in::<&BlockKey, _>(&first..=&last, |_, _| false);
        removed.map_err(engine_error)
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
