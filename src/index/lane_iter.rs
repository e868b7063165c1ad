//! Reads all postings of a lane of a run.

#[cfg(test)]
use crate::engine::{AccessGuard, Range, ReadableTable};
use crate::engine::{EngineResult, OwnedAccessGuard, OwnedRange, ReadOnlyBlocks, StorageError};
use crate::error::{Error, Result};
use crate::format::{Block, BlockKey, LaneSummary, Posting, checksum, split_block_key};
#[cfg(test)]
use crate::index::k_way::ChunkIter;
use crate::index::k_way::PostingChunks;
use crate::index::run::{Key, Value, lane_bounds, missing, place};

/// A row of a block table that a range yields.
pub(crate) trait BlockRow {
    fn key(&self) -> &BlockKey;
    fn value(&self) -> &[u8];
}

#[cfg(test)]
impl BlockRow for (AccessGuard<'_, Key>, AccessGuard<'_, Value>) {
    fn key(&self) -> &BlockKey {
        self.0.value()
    }
    fn value(&self) -> &[u8] {
        self.1.value()
    }
}

impl BlockRow for (OwnedAccessGuard<Key>, OwnedAccessGuard<Value>) {
    fn key(&self) -> &BlockKey {
        self.0.value()
    }
    fn value(&self) -> &[u8] {
        self.1.value()
    }
}

/// Reads all postings of a lane in order, block by block. Checks continuity, order and the final count.
pub(crate) struct LaneReader<S> {
    rows: S,
    table_name: &'static str,
    run: u32,
    expected: LaneSummary,
    /// What the blocks read so far have.
    seen: LaneSummary,
}

/// A lane of a run that keeps its read transaction alive.
pub(crate) type OwnedLane = LaneReader<OwnedRange<Key, Value>>;

/// Iterates over a lane while the table is borrowed.
#[cfg(test)]
pub(super) fn lane_iter<'t, T: ReadableTable<Key, Value>>(
    table: &'t T,
    table_name: &'static str,
    run: u32,
    lane: &LaneSummary,
) -> Result<ChunkIter<LaneReader<Range<'t, Key, Value>>>> {
    let (low, high) = lane_bounds(run, lane);
    let rows = table.range::<&BlockKey>(&low..=&high).engine()?;
    Ok(ChunkIter::new(LaneReader::new(
        rows, table_name, run, *lane,
    )))
}

/// Reads a lane, and keeps the read transaction alive.
///
/// # Errors
/// Returns what reading fails with.
pub(crate) fn read_lane(
    table: &ReadOnlyBlocks,
    table_name: &'static str,
    run: u32,
    lane: &LaneSummary,
) -> Result<OwnedLane> {
    let (low, high) = lane_bounds(run, lane);
    let rows = table.range_owned::<&BlockKey>(&low..=&high).engine()?;
    Ok(LaneReader::new(rows, table_name, run, *lane))
}

impl<S> LaneReader<S> {
    fn new(rows: S, table_name: &'static str, run: u32, expected: LaneSummary) -> Self {
        Self {
            rows,
            table_name,
            run,
            expected,
            seen: LaneSummary {
                filter: expected.filter,
                after: expected.after,
                ..LaneSummary::empty(expected.lane)
            },
        }
    }
}

impl<S, R> PostingChunks for LaneReader<S>
where
    S: Iterator<Item = Result<R, StorageError>>,
    R: BlockRow,
{
    fn read(&mut self, postings: &mut Vec<Posting>) -> Result<()> {
        let start = postings.len();
        while postings.len() == start {
            let Some(next) = self.rows.next() else {
                // Lost blocks at the end leave no gap in the chain: only the descriptor knows of them.
                if self.seen == self.expected {
                    return Ok(());
                }
                let (seen, expected) = (&self.seen, &self.expected);
                return Err(unexpected_end(self.table_name, self.run, seen, expected));
            };
            let row = next.engine()?;
            let (name, after) = (self.table_name, self.expected.after);
            read_block(
                name,
                row.key(),
                row.value(),
                self.seen.last,
                after,
                postings,
            )?;
            self.seen.postings += (postings.len() - start) as u64;
            self.seen.blocks += 1;
            self.seen.bytes += row.value().len() as u64;
            self.seen.last = postings.last().copied();
            if self.seen.blocks == 1 {
                // A merge has moved what is before its cursor.
                let first = self.expected.first_possible();
                let is_moved = |posting: &&Posting| **posting < first;
                let moved = postings.iter().skip(start).take_while(is_moved).count();
                postings.drain(start..start + moved);
            }
        }
        Ok(())
    }
}

/// Appends the postings of a block that must follow `before`, or if it is the first that is left,
/// something up to `after`.
pub(super) fn read_block(
    table_name: &str,
    key: &BlockKey,
    value: &[u8],
    before: Option<Posting>,
    after: Option<Posting>,
    postings: &mut Vec<Posting>,
) -> Result<()> {
    let block = Block::parse(table_name, key, value)?;
    let is_first = before.is_none() && after.is_some();
    if block.previous() != before && !(is_first && block.previous() <= after) {
        let (run, lane, _) = split_block_key(key);
        return Err(missing(table_name, run, lane, before, block.previous()));
    }
    block.decode(postings, || checksum::place(table_name, key))
}

/// A lane ended with other counts than its descriptor's.
pub(super) fn unexpected_end(
    table_name: &str,
    run: u32,
    found: &LaneSummary,
    expected: &LaneSummary,
) -> Error {
    Error::corrupt(
        place(table_name, run, expected.lane),
        format!("found {found:?}, expected {expected:?}"),
    )
}
