//! Runs: lanes of postings in blocks, written once, probed and streamed.

use std::ops::Bound;

use crate::engine::{EngineResult, ReadableTable, Table};
use crate::error::{Error, Result};
use crate::format::{Block, BlockKey, LaneSummary, Posting, block_key, split_block_key};
use crate::index::filter_writer::FilterPieces;
use crate::index::segment::ProbeControl;

/// The key type of a table of blocks.
pub(super) type Key = &'static BlockKey;
/// The value type of a table of blocks.
pub(super) type Value = &'static [u8];

/// A table of blocks, open for writing.
pub(crate) type RunBlocks<'t> = Table<'t, Key, Value>;

/// Where a run is written: the blocks and the filters of its lanes.
pub(crate) struct RunTables<'t> {
    /// The name of the table of blocks.
    pub(crate) name: &'static str,
    pub(crate) blocks: RunBlocks<'t>,
    pub(crate) filters: FilterPieces<'t>,
}

/// What a probe read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProbeCost {
    pub(crate) blocks: u64,
    /// Lanes of runs that a filter ruled out.
    pub(crate) ruled_out: u64,
}

/// Visits the postings of a lane whose codes are in `low_code..=high_code`, in order.
///
/// # Errors
/// Those of `visit` and of reading, and [`Error::Corrupt`] if a block is damaged or missing.
pub(super) fn probe_lane<T: ReadableTable<Key, Value>>(
    table: &T,
    table_name: &'static str,
    run: u32,
    lane: &LaneSummary,
    low_code: u64,
    high_code: u64,
    visit: &mut dyn FnMut(Posting) -> Result<()>,
) -> Result<ProbeCost> {
    let visit = &mut |posting| visit(posting).map(|()| ProbeControl::GoOn);
    probe_lane_while(table, table_name, run, lane, low_code, high_code, visit)
}

/// [`probe_lane`] as far as `visit` says.
///
/// # Errors
/// As [`probe_lane`].
#[inline]
pub(crate) fn probe_lane_while<T: ReadableTable<Key, Value>>(
    table: &T,
    table_name: &'static str,
    run: u32,
    lane: &LaneSummary,
    low_code: u64,
    high_code: u64,
    visit: &mut dyn FnMut(Posting) -> Result<ProbeControl>,
) -> Result<ProbeCost> {
    let mut cost = ProbeCost::default();
    // The first block that is left of an input may hold postings that its merge has moved already.
    let mut target = Posting::lowest_of(low_code).max(lane.first_possible());
    let Some(end) = lane.last.filter(|end| *end >= target) else {
        return Ok(cost);
    };
    let seek = |target| {
        let start = block_key(run, lane.lane, target);
        table.lower_bound(Bound::Included(&start)).engine()
    };
    let mut cursor = seek(target)?;
    let mut before: Option<Posting> = None;
    loop {
        let row = cursor.next().engine()?;
        // The descriptor states where the lane ends. If the blocks stop before that, some are lost, and a
        // search that took this for the end would miss documents without an error.
        let Some((key, value)) = row.filter(|(key, _)| is_of(key.value(), run, lane.lane)) else {
            return Err(missing(
                table_name,
                run,
                lane.lane,
                before.or(Some(target)),
                None,
            ));
        };
        let block = Block::parse(table_name, key.value(), value.value())?;
        cost.blocks += 1;
        let follows = match before {
            Some(before) => block.previous() == Some(before),
            None => block.previous().is_none_or(|previous| previous < target),
        };
        if !follows {
            let found = block.previous();
            return Err(missing(
                table_name,
                run,
                lane.lane,
                before.or(Some(target)),
                found,
            ));
        }
        for posting in block.find_range(low_code, high_code) {
            if posting < target {
                continue;
            }
            match visit(posting)? {
                ProbeControl::GoOn => {}
                ProbeControl::SkipTo(next) => target = target.max(next),
                ProbeControl::End => return Ok(cost),
            }
        }
        let last = block.last();
        if last.code > high_code || last == end || target > end || target.code > high_code {
            return Ok(cost);
        }
        before = (target <= last).then_some(last);
        if before.is_none() {
            cursor = seek(target)?;
        }
    }
}

/// Removes all blocks of a lane of a run.
///
/// # Errors
/// Those of writing.
#[cfg(test)]
pub(super) fn delete_run(table: &mut RunBlocks<'_>, run: u32, lane: u16) -> Result<()> {
    let (low, high) = lane_bounds(run, &LaneSummary::empty(lane));
    table
        .retain_in::<&BlockKey, _>(&low..=&high, |_, _| false)
        .engine()
}

/// The least and the greatest key that a block of a lane can have.
pub(super) fn lane_bounds(run: u32, lane: &LaneSummary) -> (BlockKey, BlockKey) {
    (
        block_key(run, lane.lane, lane.first_possible()),
        block_key(run, lane.lane, Posting::MAX),
    )
}

/// Returns true if a block belongs to this lane of this run.
pub(super) fn is_of(key: &BlockKey, run: u32, lane: u16) -> bool {
    let (found_run, found_lane, _) = split_block_key(key);
    (found_run, found_lane) == (run, lane)
}

/// Returns the name of a lane in errors.
pub(crate) fn place(table_name: &str, run: u32, lane: u16) -> String {
    format!("table {table_name}, run {run}, lane {lane}")
}

/// Returns the error for a lost block: one should follow `before`, and the block that was found follows
/// `found`.
pub(super) fn missing(
    table_name: &str,
    run: u32,
    lane: u16,
    before: Option<Posting>,
    found: Option<Posting>,
) -> Error {
    let text = |posting: Option<Posting>| match posting {
        Some(Posting { code, id }) => format!("code {code:#x} id {id}"),
        None => "nothing".into(),
    };
    Error::corrupt(
        place(table_name, run, lane),
        format!(
            "found a block that follows {}, or none, expected one that follows {}",
            text(found),
            text(before)
        ),
    )
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
