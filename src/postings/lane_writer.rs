//! Packs a stream of postings into the blocks of a lane.

use crate::format::block::{BLOCK_POSTINGS, encode};
use crate::format::engine::engine_error;
use crate::format::posting::Posting;
use crate::{Error, Result};

use super::run::{BlockTable, LaneSummary, place};

/// Writes the blocks of one lane of one run, holding back at most two blocks' postings.
pub(crate) struct LaneWriter {
    table_name: &'static str,
    run: u32,
    /// Pushed, but in no block yet.
    pending: Vec<Posting>,
    /// The last posting pushed.
    newest: Option<Posting>,
    /// Of what has been written.
    summary: LaneSummary,
    value: Vec<u8>,
}

impl LaneWriter {
    pub(crate) fn new(table_name: &'static str, run: u32, lane: u16) -> Self {
        Self {
            table_name,
            run,
            pending: Vec::new(),
            newest: None,
            summary: LaneSummary::empty(lane),
            value: Vec::new(),
        }
    }

    /// Takes the next posting, which must come after those before.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it does not, and those of writing.
    #[inline]
    pub(crate) fn push(&mut self, table: &mut BlockTable<'_>, posting: Posting) -> Result<()> {
        if self.newest.is_some_and(|newest| newest >= posting) {
            return Err(self.unordered(posting));
        }
        self.newest = Some(posting);
        self.pending.push(posting);
        if self.pending.len() >= 2 * BLOCK_POSTINGS {
            self.write_blocks(table, BLOCK_POSTINGS)?;
        }
        Ok(())
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn finish(mut self, table: &mut BlockTable<'_>) -> Result<LaneSummary> {
        self.write_blocks(table, 1)?;
        Ok(self.summary)
    }

    /// The last posting that is in a block.
    pub(crate) fn last_written(&self) -> Option<Posting> {
        self.summary.last
    }

    /// Writes blocks while at least `least` postings are pending.
    fn write_blocks(&mut self, table: &mut BlockTable<'_>, least: usize) -> Result<()> {
        let mut start = 0;
        while let Some(rest) = self.pending.get(start..)
            && rest.len() >= least
        {
            let (run, lane) = (self.run, self.summary.lane);
            let previous = self.summary.last;
            let encoded = encode(self.table_name, run, lane, previous, rest, &mut self.value);
            let Some(encoded) = encoded else { break };
            table
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
