//! Packs a stream of postings into the blocks of a lane.

use crate::format::block::{BLOCK_POSTINGS, encode};
use crate::format::engine::engine_error;
use crate::format::posting::Posting;
use crate::{Error, Result};

use super::filter_writer::{FilterPlan, FilterWriter};
use super::run::{LaneSummary, RunTables, place, probe_lane};

/// Writes the blocks of one lane of one run, holding back at most two blocks' postings, and its
/// filter.
pub(crate) struct LaneWriter {
    table_name: &'static str,
    run: u32,
    filter: Option<FilterWriter>,
    /// Pushed, but in no block yet.
    pending: Vec<Posting>,
    /// The last posting pushed.
    newest: Option<Posting>,
    /// Of what has been written.
    summary: LaneSummary,
    /// The blocks that were there when it began.
    blocks_before: u64,
    value: Vec<u8>,
}

impl LaneWriter {
    pub(crate) fn new(
        table_name: &'static str,
        run: u32,
        lane: u16,
        filter: Option<FilterPlan>,
    ) -> Self {
        let summary = LaneSummary {
            filter: filter.map(|filter| filter.shape),
            ..LaneSummary::empty(lane)
        };
        Self {
            table_name,
            run,
            filter: filter.map(|filter| FilterWriter::new(run, lane, filter)),
            pending: Vec::new(),
            newest: None,
            summary,
            blocks_before: 0,
            value: Vec::new(),
        }
    }

    /// Goes on with a lane that has been written up to what its summary says.
    ///
    /// # Errors
    /// Those of reading what has been written.
    pub(crate) fn resume(
        tables: &RunTables<'_>,
        run: u32,
        written: LaneSummary,
        filter: Option<FilterPlan>,
    ) -> Result<Self> {
        let table_name = tables.name;
        let mut writer = Self::new(table_name, run, written.lane, filter);
        writer.summary = written;
        writer.blocks_before = written.blocks;
        writer.newest = written.last;
        if let (Some(filter), Some(last)) = (writer.filter.as_mut(), written.last) {
            filter.resume(last);
            let mut codes = Vec::new();
            let first = filter.first_code(last.code);
            let blocks = &tables.blocks;
            let mut visit = |posting: Posting| {
                codes.push(posting.code);
                Ok(())
            };
            let (low, high) = (first, last.code);
            probe_lane(blocks, table_name, run, &written, low, high, &mut visit)?;
            filter.restore(codes);
        }
        Ok(writer)
    }

    /// Takes the next posting, which must come after those before.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it does not, and those of writing.
    #[inline]
    pub(crate) fn push(&mut self, tables: &mut RunTables<'_>, posting: Posting) -> Result<()> {
        if self.newest.is_some_and(|newest| newest >= posting) {
            return Err(self.unordered(posting));
        }
        self.newest = Some(posting);
        if let Some(filter) = &mut self.filter {
            filter.push(&mut tables.filters, posting.code)?;
        }
        self.pending.push(posting);
        if self.pending.len() >= 2 * BLOCK_POSTINGS {
            self.write_blocks(tables, |left, _| left >= BLOCK_POSTINGS)?;
        }
        Ok(())
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn finish(mut self, tables: &mut RunTables<'_>) -> Result<LaneSummary> {
        self.write_blocks(tables, |_, _| true)?;
        match &mut self.filter {
            Some(filter) if self.summary.postings > 0 => filter.finish(&mut tables.filters)?,
            // What has no postings needs no filter, and none has been begun.
            _ => self.summary.filter = None,
        }
        Ok(self.summary)
    }

    /// Writes the blocks that are full.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn write_full_blocks(&mut self, tables: &mut RunTables<'_>) -> Result<()> {
        self.write_blocks(tables, |left, taken| taken < left)
    }

    /// What has been written.
    pub(crate) fn written(&self) -> LaneSummary {
        self.summary
    }

    /// Whether it has written a block.
    pub(crate) fn has_written(&self) -> bool {
        self.summary.blocks > self.blocks_before
    }

    /// The first posting that is in no block yet.
    pub(crate) fn first_unwritten(&self) -> Option<Posting> {
        self.pending.first().copied()
    }

    /// The last posting that is in a block.
    pub(crate) fn last_written(&self) -> Option<Posting> {
        self.summary.last
    }

    /// Writes blocks while the next one is wanted, given how many postings are left and how many of
    /// these it takes.
    fn write_blocks(
        &mut self,
        tables: &mut RunTables<'_>,
        is_wanted: impl Fn(usize, usize) -> bool,
    ) -> Result<()> {
        let mut start = 0;
        while let Some(rest) = self.pending.get(start..)
            && is_wanted(rest.len(), 0)
        {
            let (run, lane) = (self.run, self.summary.lane);
            let previous = self.summary.last;
            let encoded = encode(self.table_name, run, lane, previous, rest, &mut self.value);
            let Some(encoded) = encoded.filter(|block| is_wanted(rest.len(), block.count)) else {
                break;
            };
            tables
                .blocks
                .insert(&encoded.key, self.value.as_slice())
                .map_err(engine_error)?;
            start += encoded.count;
            self.summary.postings += encoded.count as u64;
            self.summary.blocks += 1;
            self.summary.bytes += self.value.len() as u64;
            self.summary.last = Some(encoded.last);
        }
        self.pending.drain(..start);
        Ok(())
    }

    #[cold]
    fn unordered(&self, posting: Posting) -> Error {
        Error::corrupt(
            place(self.table_name, self.run, self.summary.lane),
            format!("found {posting:?} after {:?}", self.newest),
        )
    }
}
