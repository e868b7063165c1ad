//! Streams all postings of a lane of a run.

#[cfg(test)]
use crate::engine::{AccessGuard, Range, ReadableTable};
use crate::engine::{EngineResult, OwnedAccessGuard, OwnedRange, ReadOnlyBlocks, StorageError};
use crate::error::{Error, Result};
use crate::format::{Block, BlockKey, LaneSummary, Posting, checksum, split_block_key};
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

/// All postings of a lane in order, a block at a time. Continuity, order and the final count are
/// checked; the first error ends it.
pub(crate) struct LaneIter<S> {
    rows: S,
    table_name: &'static str,
    run: u32,
    expected: LaneSummary,
    /// The postings of the current block.
    postings: Vec<Posting>,
    position: usize,
    /// Of the blocks read.
    seen: LaneSummary,
    finished: bool,
}

/// Streams a lane while the table is borrowed.
///
/// # Errors
/// Those of reading.
#[cfg(test)]
pub(super) fn lane_iter<'t, T: ReadableTable<Key, Value>>(
    table: &'t T,
    table_name: &'static str,
    run: u32,
    lane: &LaneSummary,
) -> Result<LaneIter<Range<'t, Key, Value>>> {
    let (low, high) = lane_bounds(run, lane);
    let rows = table.range::<&BlockKey>(&low..=&high).engine()?;
    Ok(LaneIter::new(rows, table_name, run, *lane))
}

/// Streams a lane and keeps the read transaction alive.
///
/// # Errors
/// Those of reading.
pub(crate) fn lane_iter_owned(
    table: &ReadOnlyBlocks,
    table_name: &'static str,
    run: u32,
    lane: &LaneSummary,
) -> Result<LaneIter<OwnedRange<Key, Value>>> {
    let (low, high) = lane_bounds(run, lane);
    let rows = table.range_owned::<&BlockKey>(&low..=&high).engine()?;
    Ok(LaneIter::new(rows, table_name, run, *lane))
}

impl<S, R> LaneIter<S>
where
    S: Iterator<Item = Result<R, StorageError>>,
    R: BlockRow,
{
    fn new(rows: S, table_name: &'static str, run: u32, expected: LaneSummary) -> Self {
        Self {
            rows,
            table_name,
            run,
            expected,
            postings: Vec::new(),
            position: 0,
            seen: LaneSummary {
                filter: expected.filter,
                after: expected.after,
                ..LaneSummary::empty(expected.lane)
            },
            finished: false,
        }
    }

    /// Reads the next block. `false`: there is none, and all is as expected.
    fn load(&mut self) -> Result<bool> {
        self.postings.clear();
        self.position = 0;
        let Some(row) = self.rows.next() else {
            return self.check_end().map(|()| false);
        };
        let row = row.engine()?;
        let (key, value) = (row.key(), row.value());
        let (name, after) = (self.table_name, self.expected.after);
        read_block(name, key, value, self.seen.last, after, &mut self.postings)?;
        self.seen.postings += self.postings.len() as u64;
        self.seen.blocks += 1;
        self.seen.bytes += value.len() as u64;
        self.seen.last = self.postings.last().copied();
        if self.seen.blocks == 1 {
            let first = self.expected.first_possible();
            self.position = self.postings.partition_point(|posting| *posting < first);
        }
        Ok(true)
    }

    fn check_end(&self) -> Result<()> {
        if self.seen == self.expected {
            return Ok(());
        }
        Err(unexpected_end(
            self.table_name,
            self.run,
            &self.seen,
            &self.expected,
        ))
    }
}

impl<S, R> Iterator for LaneIter<S>
where
    S: Iterator<Item = Result<R, StorageError>>,
    R: BlockRow,
{
    type Item = Result<Posting>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(posting) = self.postings.get(self.position) {
                self.position += 1;
                return Some(Ok(*posting));
            }
            if self.finished {
                return None;
            }
            match self.load() {
                Ok(more) => self.finished = !more,
                Err(error) => {
                    self.finished = true;
                    self.postings.clear();
                    return Some(Err(error));
                }
            }
        }
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
    block
        .decode(postings)
        .map_err(|detail| Error::corrupt(checksum::place(table_name, key), detail))
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
