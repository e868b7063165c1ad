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
    blocks: CountedBlocks,
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
/// Returns the errors of reading.
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
            blocks: CountedBlocks::new(run, expected),
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
                if self.blocks.seen == self.blocks.expected {
                    return Ok(());
                }
                return Err(self.blocks.unexpected_end(self.table_name));
            };
            let row = next.engine()?;
            let blocks = &mut self.blocks;
            let moved = blocks.read(self.table_name, row.key(), row.value(), postings)?;
            postings.drain(start..start + moved);
        }
        Ok(())
    }
}

/// The blocks of a lane of a run as they are read, one after the other, compared with the counts of
/// its descriptor.
pub(super) struct CountedBlocks {
    pub(super) run: u32,
    pub(super) expected: LaneSummary,
    /// The counts of the blocks that were read.
    pub(super) seen: LaneSummary,
}

impl CountedBlocks {
    pub(super) fn new(run: u32, expected: LaneSummary) -> Self {
        let seen = LaneSummary {
            filter: expected.filter,
            after: expected.after,
            ..LaneSummary::empty(expected.lane)
        };
        Self {
            run,
            expected,
            seen,
        }
    }

    /// Appends the postings of the next block. Returns how many of these, the first ones, a merge has moved to another
    /// run already.
    pub(super) fn read(
        &mut self,
        table_name: &str,
        key: &BlockKey,
        value: &[u8],
        postings: &mut Vec<Posting>,
    ) -> Result<usize> {
        let start = postings.len();
        let block = Block::parse(table_name, key, value)?;
        // The chain of blocks begins with nothing, or where a merge has freed the blocks before the first that is
        // left: then that one follows any posting up to the cursor.
        let (before, after) = (self.seen.last, self.expected.after);
        let is_first = before.is_none() && after.is_some();
        if block.previous() != before && !(is_first && block.previous() <= after) {
            let (run, lane, _) = split_block_key(key);
            return Err(missing(table_name, run, lane, before, block.previous()));
        }
        block.decode(postings, || checksum::place(table_name, key))?;
        self.seen.postings += (postings.len() - start) as u64;
        self.seen.blocks += 1;
        self.seen.bytes += value.len() as u64;
        self.seen.last = postings.last().copied();
        if self.seen.blocks > 1 {
            return Ok(0);
        }
        let first = self.expected.first_possible();
        let (_, of_block) = postings.split_at(start);
        Ok(of_block.partition_point(|posting| *posting < first))
    }

    /// Returns the error of a lane that ended with other counts than its descriptor's.
    pub(super) fn unexpected_end(&self, table_name: &str) -> Error {
        let (found, expected) = (&self.seen, &self.expected);
        let detail = format!("found {found:?}, expected {expected:?}");
        Error::corrupt(place(table_name, self.run, expected.lane), detail)
    }
}
