//! Runs: lanes of postings in blocks, which are written once.

use crate::engine::Table;
use crate::error::Error;
use crate::format::{BlockKey, LaneSummary, Posting, block_key, split_block_key};
use crate::index::filter_writer::FilterPieces;

/// The key type of a table of blocks.
pub(super) type Key = &'static BlockKey;
/// The value type of a table of blocks.
pub(super) type Value = &'static [u8];

/// A table of blocks, open for writing.
pub(crate) type RunBlocks<'t> = Table<'t, Key, Value>;

/// The tables that a run is written to: the blocks and the filters of its lanes.
pub(crate) struct RunTables<'t> {
    /// The name of the table of blocks.
    pub(crate) name: &'static str,
    pub(crate) blocks: RunBlocks<'t>,
    pub(crate) filters: FilterPieces<'t>,
}

/// A lane of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneRef<'r> {
    /// The name of its table.
    pub(crate) table_name: &'static str,
    pub(crate) run: u32,
    pub(crate) summary: &'r LaneSummary,
}

/// The amount of data that a probe read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProbeCost {
    pub(crate) blocks: u64,
    /// The number of these that were found in the cache of blocks.
    pub(crate) cached_blocks: u64,
    /// Lanes of runs that a filter ruled out.
    pub(crate) ruled_out: u64,
}

impl ProbeCost {
    pub(crate) fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.cached_blocks += other.cached_blocks;
        self.ruled_out += other.ruled_out;
    }
}

/// Returns the smallest and the greatest key that a block of a lane can have.
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
