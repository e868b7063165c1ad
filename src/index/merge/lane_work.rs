//! What a merge computes: blocks in, blocks out, no table touched. It may be on another thread than
//! what reads and writes.

use crate::error::Result;
use crate::format::{BlockKey, LaneSummary, Posting};
use crate::index::k_way::SliceMerger;
use crate::index::lane_iter::{read_block, unexpected_end};
use crate::index::lane_writer::LanePacker;
use crate::index::merge::lane_source::{Kept, Portion};

/// The merge of a lane between tables and tables.
pub(crate) struct LaneWork {
    table_name: &'static str,
    inputs: Vec<Input>,
    merger: SliceMerger,
    pub(crate) packer: LanePacker,
}

impl LaneWork {
    pub(crate) fn new(
        table_name: &'static str,
        inputs: impl IntoIterator<Item = (u32, LaneSummary)>,
        packer: LanePacker,
    ) -> Self {
        let inputs = inputs.into_iter();
        let inputs = inputs.map(|(run, expected)| Input::new(run, expected));
        Self {
            table_name,
            inputs: inputs.collect(),
            merger: SliceMerger::default(),
            packer,
        }
    }

    /// Postings of the inputs in memory.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.inputs.iter().map(|input| input.postings.len()).sum()
    }

    /// Unpacks what was read, merges what can be merged, and packs what fills blocks. Postings of ids
    /// for which `is_dropped` holds are left out.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] if a block is damaged or missing.
    pub(crate) fn step(
        &mut self,
        portion: &mut Portion,
        is_dropped: impl Fn(u64) -> bool,
    ) -> Result<()> {
        let Portion {
            blocks, outcome, ..
        } = portion;
        outcome.read.clear();
        let mut unpacking = None;
        for ((place, key), value) in blocks.iter() {
            let Some(input) = self.inputs.get_mut(*place) else {
                continue;
            };
            if unpacking.replace(*place) != Some(*place) {
                input.postings.clear();
            }
            let kept = input.unpack(self.table_name, key, value)?;
            outcome.read.extend(kept.map(|kept| (*place, kept)));
        }
        let bound = portion.bound.unwrap_or(Posting::MAX);
        let slices: Vec<&[Posting]> = self
            .inputs
            .iter_mut()
            .map(|input| input.take_until(bound))
            .filter(|slice| !slice.is_empty())
            .collect();
        let merger = &mut self.merger;
        let append = |merged: &mut Vec<Posting>| merger.append(&slices, merged);
        self.packer
            .extend(append, is_dropped, &mut outcome.packed)?;
        let summary = self.packer.packed();
        outcome.last = summary.last;
        outcome.blocks = summary.blocks;
        outcome.first_pending = self.packer.first_pending();
        Ok(())
    }
}

/// The postings of one run.
struct Input {
    run: u32,
    expected: LaneSummary,
    /// Of the blocks read.
    seen: LaneSummary,
    /// Read, but not all taken.
    postings: Vec<Posting>,
    position: usize,
}

impl Input {
    fn new(run: u32, expected: LaneSummary) -> Self {
        let seen = LaneSummary {
            filter: expected.filter,
            after: expected.after,
            ..LaneSummary::empty(expected.lane)
        };
        Self {
            run,
            expected,
            seen,
            postings: Vec::new(),
            position: 0,
        }
    }

    /// Unpacks the next block.
    fn unpack(&mut self, table_name: &str, key: &BlockKey, value: &[u8]) -> Result<Option<Kept>> {
        let before = self.postings.len();
        let (last, after) = (self.seen.last, self.expected.after);
        read_block(table_name, key, value, last, after, &mut self.postings)?;
        let (postings, bytes) = ((self.postings.len() - before) as u64, value.len() as u64);
        self.seen.postings += postings;
        self.seen.blocks += 1;
        self.seen.bytes += bytes;
        self.seen.last = self.postings.last().copied();
        let first = self.expected.first_possible();
        self.position = self.postings.partition_point(|posting| *posting < first);
        if self.seen.blocks >= self.expected.blocks && self.seen != self.expected {
            let (seen, expected) = (&self.seen, &self.expected);
            return Err(unexpected_end(table_name, self.run, seen, expected));
        }
        let kept = |last| Kept {
            last,
            postings,
            bytes,
        };
        Ok(self.seen.last.map(kept))
    }

    /// Takes the postings up to `bound`, inclusive.
    fn take_until(&mut self, bound: Posting) -> &[Posting] {
        let rest = self.postings.get(self.position..).unwrap_or_default();
        let count = rest.partition_point(|posting| *posting <= bound);
        self.position += count;
        rest.get(..count).unwrap_or_default()
    }
}
