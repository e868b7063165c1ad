//! Merges the lanes of several runs into those of a new run.

use std::collections::VecDeque;
use std::ops::Bound;

use redb::ReadableTable;

use crate::Result;
use crate::format::engine::engine_error;
use crate::format::posting::{BlockKey, Posting, block_key};

use super::k_way::merge_slices;
use super::lane_iter::{read_block, unexpected_end};
use super::lane_writer::LaneWriter;
use super::run::{BlockTable, LaneSummary, RunDescriptor, lane_bounds, missing};

/// About how many input blocks a whole merge holds decoded.
const BLOCKS_IN_MEMORY: usize = 64;

/// Merges these lanes of `inputs` into lanes of `output_run`, which holds none yet, and removes the
/// inputs' blocks. Postings of ids for which `is_dropped` holds are left out. `inputs` are
/// neighbours, so that no posting is in two of them.
///
/// # Errors
/// [`crate::Error::Corrupt`] if a block is damaged or missing, and those of writing. The table is then half
/// merged: abort the transaction.
pub(crate) fn merge_runs(
    table: &mut BlockTable<'_>,
    table_name: &'static str,
    lanes: &[u16],
    inputs: &[&RunDescriptor],
    output_run: u32,
    is_dropped: &impl Fn(u64) -> bool,
) -> Result<Vec<LaneSummary>> {
    let mut summaries = Vec::with_capacity(lanes.len());
    for lane in lanes {
        let of_lane = inputs
            .iter()
            .filter_map(|run| Some((run.run, *run.lane(*lane)?)));
        let mut merge = LaneMerge::new(table_name, of_lane, output_run, *lane);
        while !merge.step(table, BLOCKS_IN_MEMORY, is_dropped)? {}
        summaries.push(merge.finish(table)?);
    }
    Ok(summaries)
}

/// The merge of one lane, in slices. It can stop between two slices, but not outlive the transaction:
/// postings that do not fill a block yet are in memory, though also still in their inputs' blocks.
pub(crate) struct LaneMerge {
    table_name: &'static str,
    lane: u16,
    inputs: Vec<LaneInput>,
    writer: LaneWriter,
}

impl LaneMerge {
    pub(crate) fn new(
        table_name: &'static str,
        inputs: impl IntoIterator<Item = (u32, LaneSummary)>,
        output_run: u32,
        lane: u16,
    ) -> Self {
        let inputs = inputs
            .into_iter()
            .map(|(run, expected)| LaneInput::new(run, expected));
        Self {
            table_name,
            lane,
            inputs: inputs.collect(),
            writer: LaneWriter::new(table_name, output_run, lane),
        }
    }

    /// Reads about `blocks` blocks (at least one an input), writes what they fill, and removes the
    /// inputs' blocks that are in the output as a whole. `true`: all has been read.
    ///
    /// # Errors
    /// Those of [`merge_runs`].
    pub(crate) fn step(
        &mut self,
        table: &mut BlockTable<'_>,
        blocks: usize,
        is_dropped: &impl Fn(u64) -> bool,
    ) -> Result<bool> {
        let share = (blocks / self.inputs.len().max(1)).max(1);
        for input in &mut self.inputs {
            input.fill(table, self.table_name, share)?;
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
                self.writer.push(table, posting)?;
            }
        }
        let written = self.writer.last_written();
        for input in &mut self.inputs {
            input.free(table, self.lane, written)?;
        }
        Ok(self.inputs.iter().all(LaneInput::is_finished))
    }

    /// Writes the rest, and removes the inputs' last blocks.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn finish(self, table: &mut BlockTable<'_>) -> Result<LaneSummary> {
        let summary = self.writer.finish(table)?;
        for mut input in self.inputs {
            input.free(table, self.lane, Some(Posting::MAX))?;
        }
        Ok(summary)
    }
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
    /// The last postings of the blocks that have been read, but not removed.
    kept: VecDeque<Posting>,
}

impl LaneInput {
    fn new(run: u32, expected: LaneSummary) -> Self {
        Self {
            run,
            expected,
            seen: LaneSummary::empty(expected.lane),
            postings: Vec::new(),
            position: 0,
            kept: VecDeque::new(),
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

    /// Reads up to `blocks` blocks if all those before have been taken.
    fn fill(&mut self, table: &BlockTable<'_>, table_name: &str, blocks: usize) -> Result<()> {
        if self.position < self.postings.len() || self.is_finished() {
            return Ok(());
        }
        self.postings.clear();
        self.position = 0;
        let lane = self.expected.lane;
        let (lowest, highest) = lane_bounds(self.run, lane);
        let after: Bound<BlockKey> = match self.seen.last {
            Some(last) => Bound::Excluded(block_key(self.run, lane, last)),
            None => Bound::Included(lowest),
        };
        let bounds = (after.as_ref(), Bound::Included(&highest));
        let rows = table.range::<&BlockKey>(bounds).map_err(engine_error)?;
        for row in rows.take(blocks) {
            let (key, value) = row.map_err(engine_error)?;
            let before = self.seen.last;
            read_block(
                table_name,
                key.value(),
                value.value(),
                before,
                &mut self.postings,
            )?;
            self.seen.blocks += 1;
            self.seen.bytes += value.value().len() as u64;
            self.seen.last = self.postings.last().copied();
            self.kept.extend(self.seen.last);
        }
        if self.postings.is_empty() {
            return Err(missing(table_name, self.run, lane, self.seen.last, None));
        }
        self.seen.postings += self.postings.len() as u64;
        let ended = self.seen.blocks >= self.expected.blocks;
        if ended && self.seen != self.expected {
            return Err(unexpected_end(
                table_name,
                self.run,
                &self.seen,
                &self.expected,
            ));
        }
        Ok(())
    }

    /// Removes the blocks that end at or before `written`.
    fn free(
        &mut self,
        table: &mut BlockTable<'_>,
        lane: u16,
        written: Option<Posting>,
    ) -> Result<()> {
        while let Some(last) = self.kept.front()
            && Some(*last) <= written
        {
            table
                .remove(&block_key(self.run, lane, *last))
                .map_err(engine_error)?;
            self.kept.pop_front();
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
