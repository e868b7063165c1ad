//! Finds the blocks of a lane of a run by the postings that they contain: in memory, else at a
//! known place in the file, else through the engine.

use std::ops::Bound;
use std::sync::Arc;

use crate::engine::{AccessGuard, Cursor, EngineResult, ReadableTable, RowInPage};
use crate::error::Result;
use crate::format::{
    Block, BlockKey, Posting, VerifiedHeader, block_key, checksum, split_block_key,
};
use crate::index::block_cache::{BlockAccess, CachedBlock};
use crate::index::page_places::RunRow;
use crate::index::run::{Key, LaneRef, ProbeCost, Value, is_of, missing};
use crate::index::run_cache::{BlockSources, RowCheck, RowRead};
use crate::invariant::OrBug;

/// A verified block of a lane.
#[allow(
    clippy::large_enum_variant,
    reason = "there is one at a time, and a box would cost more than the room"
)]
pub(super) enum LaneBlock<'t> {
    Cached(Arc<CachedBlock>),
    /// A block in a page of the engine.
    Page(AccessGuard<'t, Value>, VerifiedHeader),
    /// A block in a page that was read without the engine.
    Row(RowInPage, VerifiedHeader),
}

impl LaneBlock<'_> {
    #[inline]
    pub(super) fn block(&self) -> Result<Block<'_>> {
        match self {
            Self::Cached(block) => block.block(),
            Self::Page(value, header) => header.block(value.value()),
            Self::Row(row, header) => header.block(row.value().or_bug("a row in its page")?),
        }
    }
}

/// The blocks of a lane, as a probe or a sweep reads them. `open` gives the table once a block has to be read
/// from it: opening tables costs more than finding all blocks in memory.
pub(crate) struct LaneBlocks<'r, 't, T, O> {
    pub(super) lane: LaneRef<'r>,
    open: O,
    table: Option<&'t T>,
    sources: Option<(BlockSources<'r>, BlockAccess)>,
    /// The block to begin with, if it has been found already.
    first: Option<Arc<CachedBlock>>,
    /// Behind the block that was read last from the table, with the last posting of that.
    cursor: Option<(Cursor<'t, Key, Value>, Posting)>,
    /// Difference between the last code of the block that was found last and the code before its first.
    span: u64,
    pub(super) cost: ProbeCost,
}

impl<'r, 't, T, O> LaneBlocks<'r, 't, T, O>
where
    T: ReadableTable<Key, Value> + 't,
    O: Fn() -> Result<&'t T>,
{
    pub(super) fn new(
        lane: LaneRef<'r>,
        open: O,
        sources: Option<(BlockSources<'r>, BlockAccess)>,
    ) -> Self {
        Self {
            lane,
            open,
            table: None,
            sources,
            first: None,
            cursor: None,
            span: 0,
            cost: ProbeCost::default(),
        }
    }

    /// Begins with a block that covers the first requested posting.
    pub(super) fn beginning_with(self, first: Option<Arc<CachedBlock>>) -> Self {
        Self { first, ..self }
    }

    /// Returns the block that holds a posting, or would hold it: the first that ends at or after it. The lane
    /// must not end before it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if that block is damaged or missing, and those of reading.
    pub(super) fn covering(&mut self, target: Posting) -> Result<LaneBlock<'t>> {
        self.cost.blocks += 1;
        let (run, lane) = (self.lane.run, self.lane.summary.lane);
        let in_memory = || {
            let (sources, _) = self.sources?;
            sources.blocks.get(run, lane, target)
        };
        let cached = self.first.take().or_else(in_memory);
        let found = match cached {
            Some(block) => {
                self.cost.cached_blocks += 1;
                LaneBlock::Cached(block)
            }
            None => self.read(target)?,
        };
        let block = found.block()?;
        let before = block.previous().map_or(0, |previous| previous.code);
        // Wraps in a forged block only, and then costs a look into the next one.
        self.span = block.last().code.wrapping_sub(before);
        Ok(found)
    }

    fn read(&mut self, target: Posting) -> Result<LaneBlock<'t>> {
        let (name, run, lane) = (self.lane.table_name, self.lane.run, self.lane.summary.lane);
        let row = RunRow::block(name, (run, lane), target);
        let file = self.sources.and_then(|(sources, _)| sources.file);
        let key = block_key(run, lane, target);
        let mut read = file.map(|(memory, finder)| memory.begin_read(finder, row, &key));
        let at_place = read.as_mut().and_then(|read| {
            read.at_place(|row| match self.verified(row) {
                None => RowCheck::Wrong,
                Some(block) if block.previous().is_some_and(|it| it >= target) => RowCheck::Behind,
                Some(block) => RowCheck::Right(block),
            })
        });
        if let Some((row, header)) = at_place {
            let cached = self.keep(header, row.value().or_bug("a row in its page")?);
            return Ok(cached.map_or_else(|| LaneBlock::Row(row, header), LaneBlock::Cached));
        }
        // The descriptor states where the lane ends. If the blocks stop before that, some are lost, and a
        // search that took this for the end would miss documents without an error.
        let lost = |found| missing(name, run, lane, Some(target), found);
        let (key, value) = self.seek(target)?.ok_or_else(|| lost(None))?;
        let block = Block::parse(name, key.value(), value.value())?;
        // Each block contains the posting before its first one. Without checking it, the documents
        // of a lost block would be missed without an error.
        if block.previous().is_some_and(|previous| previous >= target) {
            return Err(lost(block.previous()));
        }
        let header = block.verified_header();
        read.into_iter().for_each(RowRead::learn);
        let cached = self.keep(header, value.value());
        Ok(cached.map_or_else(|| LaneBlock::Page(value, header), LaneBlock::Cached))
    }

    fn keep(&self, header: VerifiedHeader, value: &[u8]) -> Option<Arc<CachedBlock>> {
        let (sources, access) = self.sources?;
        let (run, lane) = (self.lane.run, self.lane.summary.lane);
        sources.blocks.keep(run, lane, header, value, access)
    }

    /// Returns the header of the block in a row if the row is a good one of this lane.
    fn verified(&self, row: &RowInPage) -> Option<VerifiedHeader> {
        let key: &BlockKey = row.key()?.try_into().ok()?;
        let is_here = is_of(key, self.lane.run, self.lane.summary.lane);
        // The engine's page shows what is wrong, if anything is.
        let block = Block::parse(self.lane.table_name, key, row.value()?);
        let header = block.ok()?.verified_header();
        is_here.then_some(header)
    }

    /// Returns the first row of the lane that reaches `target`, if there is one. A near target is likely in
    /// the next row: looking there first saves the descent from the root of the tree.
    fn seek(&mut self, target: Posting) -> Result<Option<FoundRow<'t>>> {
        let (run, lane) = (self.lane.run, self.lane.summary.lane);
        let is_near = |at: Posting| at < target && target.code - at.code <= self.span.max(1);
        if let Some((cursor, at)) = &mut self.cursor
            && is_near(*at)
        {
            let row = cursor.next().engine()?;
            let Some((key, value)) = row.filter(|(key, _)| is_of(key.value(), run, lane)) else {
                return Ok(None);
            };
            let last = split_block_key(key.value()).2;
            *at = last;
            if last >= target {
                return Ok(Some((key, value)));
            }
            // The row just read ends before the target. Reading on could take any number of rows; the
            // descent from the root takes one.
        }
        let start = block_key(run, lane, target);
        let table = match self.table {
            Some(table) => table,
            None => *self.table.insert((self.open)()?),
        };
        let mut cursor = table.lower_bound(Bound::Included(&start)).engine()?;
        let next = cursor.next().engine()?;
        let row = next.filter(|(key, _)| is_of(key.value(), run, lane));
        let last = row.as_ref().map(|(key, _)| split_block_key(key.value()).2);
        self.cursor = last.map(|last| (cursor, last));
        Ok(row)
    }

    /// Returns the name of a block in errors.
    pub(super) fn place(&self, block: &Block<'_>) -> String {
        let key = block_key(self.lane.run, self.lane.summary.lane, block.last());
        checksum::place(self.lane.table_name, &key)
    }
}

/// The key and the value of a block.
type FoundRow<'t> = (AccessGuard<'t, Key>, AccessGuard<'t, Value>);
