//! Merges a lane of several runs into that of a new run, in slices.

use crate::error::Result;
use crate::format::{LaneSummary, Posting};
use crate::index::filter_writer::FilterPlan;
use crate::index::lane_writer::{LanePacker, Packed};
use crate::index::merge::lane_source::{LaneSource, Portion};
use crate::index::merge::lane_work::LaneWork;
use crate::index::run::RunTables;
use crate::lanes::BucketBits;

/// The merge of one lane, as far as one transaction takes it. Every block is in the inputs or in the
/// output, and a cursor tells which postings of the inputs' first blocks are in the output too.
///
/// Reading and writing on the one hand, computing on the other, are apart: a [`pipeline`](super::pipeline)
/// has them on two threads.
pub(crate) struct LaneMerge {
    pub(crate) work: LaneWork,
    pub(crate) ledger: Ledger,
    portion: Portion,
}

/// What has been read and written.
pub(crate) struct Ledger {
    pub(crate) source: LaneSource,
    /// All postings of the inputs up to this one have been taken.
    taken: Option<Posting>,
    first_pending: Option<Posting>,
    has_written: bool,
    /// The blocks of the output that were there when it began.
    blocks_before: u64,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Postings read.
    pub(crate) postings: u64,
    /// There are no more.
    pub(crate) is_last: bool,
}

impl LaneMerge {
    /// Begins the merge of a lane, or goes on with it: `inputs` and `output` are what the runs'
    /// descriptors say of the lane. The inputs are neighbours, so that no posting is in two of them.
    ///
    /// # Errors
    /// Those of reading what the output holds.
    pub(crate) fn new(
        tables: &RunTables<'_>,
        buckets: BucketBits,
        inputs: impl IntoIterator<Item = (u32, LaneSummary)>,
        (output_run, output): (u32, LaneSummary),
    ) -> Result<Self> {
        let filter = output.filter.map(|shape| FilterPlan { shape, buckets });
        let inputs: Vec<(u32, LaneSummary)> = inputs.into_iter().collect();
        let packer = LanePacker::resume(tables, output_run, output, filter)?;
        Ok(Self {
            work: LaneWork::new(tables.name, inputs.iter().copied(), packer),
            ledger: Ledger {
                source: LaneSource::new(buckets, inputs),
                taken: None,
                first_pending: None,
                has_written: false,
                blocks_before: output.blocks,
            },
            portion: Portion::default(),
        })
    }

    /// Reads about `blocks` blocks (at least one an input), writes what they fill, and removes the
    /// inputs' blocks that are in the output as a whole. Postings of ids for which `is_dropped` holds
    /// are left out.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] if a block is damaged or missing, and those of writing. The table
    /// is then half merged: abort the transaction.
    pub(crate) fn step(
        &mut self,
        tables: &mut RunTables<'_>,
        blocks: usize,
        is_dropped: &impl Fn(u64) -> bool,
    ) -> Result<Step> {
        let mut portion = std::mem::take(&mut self.portion);
        self.ledger.source.read(tables, blocks, &mut portion)?;
        self.work.step(&mut portion, is_dropped)?;
        self.ledger.write(tables, &mut portion)?;
        let step = Step {
            postings: portion.postings,
            is_last: portion.is_last,
        };
        self.portion = portion;
        Ok(step)
    }

    /// Whether a pause now leaves less to do than there was: a block has been written, or there is
    /// nothing to write.
    pub(crate) fn has_progress(&self) -> bool {
        self.ledger.has_progress()
    }

    /// Postings of the inputs that have not been read.
    pub(crate) fn unread(&self) -> u64 {
        self.ledger.source.unread()
    }

    /// Writes the rest, and removes what is left of the inputs. What the lane of the output holds.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn finish(self, tables: &mut RunTables<'_>) -> Result<LaneSummary> {
        let mut packed = Packed::default();
        let summary = self.work.packer.finish(&mut packed)?;
        packed.write(tables)?;
        self.ledger.source.finish(tables)?;
        Ok(summary)
    }

    /// Leaves the rest to a later transaction: what the lane of the output holds, and what is left of
    /// the inputs.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn pause(
        self,
        tables: &mut RunTables<'_>,
    ) -> Result<(LaneSummary, Vec<LaneSummary>)> {
        let Self { work, ledger, .. } = self;
        // Where all that was taken was dropped, nothing has been written and all the same it is done.
        let cursor = match ledger.first_pending {
            Some(first) => first.previous(),
            None => ledger.taken,
        };
        let left = ledger.source.pause(tables, cursor)?;
        Ok((work.packer.packed(), left))
    }
}

impl Ledger {
    /// Writes what has come of a portion, and removes what is in the output as a whole.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn write(
        &mut self,
        tables: &mut RunTables<'_>,
        portion: &mut Portion,
    ) -> Result<()> {
        let outcome = &mut portion.outcome;
        outcome.packed.write(tables)?;
        self.source.keep(outcome.read.drain(..));
        self.source.free(tables, outcome.last)?;
        self.taken = portion.bound;
        self.first_pending = outcome.first_pending;
        self.has_written = outcome.blocks > self.blocks_before;
        Ok(())
    }

    pub(crate) fn has_progress(&self) -> bool {
        self.first_pending.is_none() || self.has_written
    }
}

#[cfg(test)]
#[path = "lane_merge_tests.rs"]
mod tests;
