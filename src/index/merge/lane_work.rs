//! The computing side of a merge: blocks in, blocks out, without access to tables. It may run on a
//! different thread than the side that reads and writes.
//!
//! It also checks the merge. A bug (a block that is left out, or is attributed to the wrong input)
//! would otherwise commit without an error and lose documents permanently, because blocks of the
//! inputs are deleted as soon as the output is believed to contain them. Every count is therefore
//! compared with an independent one: the blocks received with the descriptors, the merged postings
//! with the decoded ones, and the sum of packed, pending and dropped postings with the merged ones.
//!
//! A mismatch has one of two causes. The blocks of a lane form a chain (each contains the last
//! posting before it), and the lane's descriptor states the number of blocks, postings and bytes.
//! If that number of blocks was read in order, and they contradict the descriptor, the file
//! contradicts itself: [`Error::Corrupt`](crate::Error::Corrupt). If fewer blocks, other blocks or
//! blocks in another order arrive here, the cause is not the file:
//! [`Error::Bug`](crate::Error::Bug).
//!
//! The counts are compared at each step and at the end of each slice. They need not survive a
//! commit: the next slice starts from the descriptors that this one wrote in the same transaction.
//! If the counts of all slices match, those of the whole lane match.

use crate::error::{Error, Result};
use crate::format::{LaneSummary, Posting, split_block_key};
use crate::index::k_way::SliceMerger;
use crate::index::lane_iter::CountedBlocks;
use crate::index::lane_writer::{LanePacker, Packed};
use crate::index::merge::lane_source::{InputBlock, MergeChunk, ReadBlock};
use crate::invariant::{OrBug, at_mut, bug, invariant};

/// The merge of a lane between tables and tables.
pub(super) struct LaneWork {
    table_name: &'static str,
    inputs: Vec<InputPostings>,
    merger: SliceMerger,
    packer: LanePacker,
    books: Books,
}

/// Counts of postings since the slice began.
struct Books {
    /// Postings that the output's blocks held when the slice began.
    packed_before: u64,
    /// Postings of the inputs that were merged.
    merged: u64,
    /// The number of these that were left out, because their documents are deleted.
    dropped: u64,
}

impl Books {
    /// Checks that each merged posting is packed, pending, or dropped.
    fn balance(&self, packed: u64, pending: u64) -> Result<()> {
        let (merged, dropped) = (self.merged, self.dropped);
        // Wraps in the output of a forged descriptor only.
        let new = packed.wrapping_sub(self.packed_before);
        invariant!(
            merged == new + pending + dropped,
            "of {merged} postings a merge packed {new}, dropped {dropped} and has {pending} pending"
        );
        Ok(())
    }
}

impl LaneWork {
    pub(super) fn new(
        table_name: &'static str,
        inputs: impl IntoIterator<Item = (u32, LaneSummary)>,
        packer: LanePacker,
    ) -> Self {
        let input = |(run, expected)| InputPostings::new(run, expected);
        Self {
            table_name,
            inputs: inputs.into_iter().map(input).collect(),
            merger: SliceMerger::default(),
            books: Books {
                packed_before: packer.packed().postings,
                merged: 0,
                dropped: 0,
            },
            packer,
        }
    }

    /// Number of input postings held in memory.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.inputs.iter().map(|input| input.postings.len()).sum()
    }

    /// Unpacks the blocks of a chunk, merges everything up to its bound, and packs what fills blocks.
    /// Postings of ids for which `is_dropped` holds are left out.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a block is damaged or missing, and [`Error::Bug`] if the books do not
    /// balance.
    pub(super) fn step(
        &mut self,
        chunk: &mut MergeChunk,
        is_dropped: impl Fn(u64) -> bool,
    ) -> Result<()> {
        self.unpack(chunk)?;
        let bound = chunk.bound.or_bug("the bound of a merged chunk")?;
        self.check_bound(bound, chunk.is_last)?;
        let merged = &mut chunk.merged;
        let newest = self.packer.newest();
        let mut slices: Vec<&[Posting]> = Vec::with_capacity(self.inputs.len());
        for input in &mut self.inputs {
            let slice = input.take_until(bound)?;
            if !slice.is_empty() {
                slices.push(slice);
            }
        }
        let taken: usize = slices.iter().map(|slice| slice.len()).sum();
        let packed = &mut merged.packed;
        let extended = self
            .packer
            .extend(&mut self.merger, &slices, is_dropped, packed);
        let appended = extended.map_err(|error| blame(error, &slices, newest))?;
        let postings = appended.postings;
        invariant!(
            postings == taken as u64,
            "{taken} postings of inputs became {postings} in a merge"
        );
        self.books.merged += postings;
        self.books.dropped += appended.dropped;
        let summary = self.packer.packed();
        self.books
            .balance(summary.postings, self.packer.pending())?;
        merged.last = summary.last;
        merged.blocks = summary.blocks;
        merged.first_pending = self.packer.first_pending();
        Ok(())
    }

    /// Unpacks the blocks of a chunk, each into the postings of its input.
    fn unpack(&mut self, chunk: &mut MergeChunk) -> Result<()> {
        chunk.merged.read.clear();
        let mut postings = 0;
        let mut unpacking = None;
        for row in chunk.blocks.iter() {
            let (block, value) = row?;
            let input = at_mut(&mut self.inputs, block.input)?;
            // The blocks of an input are adjacent in a chunk. Before the first of them is unpacked,
            // all postings that the input had in memory must have been merged, or they would be
            // lost.
            if unpacking.replace(block.input) != Some(block.input) {
                input.clear()?;
            }
            let read = input.unpack(self.table_name, block, value)?;
            postings += read.postings;
            chunk.merged.read.push((block.input, read));
        }
        // Both numbers are from the same headers.
        invariant!(
            postings == chunk.postings,
            "a merge read {} postings and unpacked {postings}",
            chunk.postings
        );
        Ok(())
    }

    /// Checks that no input has a block left whose postings belong before the bound: the output would
    /// pass them, and they would be deleted with their block.
    fn check_bound(&self, bound: Posting, is_last: bool) -> Result<()> {
        for input in &self.inputs {
            let (found, expected) = (&input.blocks.seen, &input.blocks.expected);
            let is_read = found.blocks >= expected.blocks;
            invariant!(
                is_read || (!is_last && found.last >= Some(bound)),
                "a merge passes unread blocks of run {}, lane {}: {} of {} were read",
                input.blocks.run,
                expected.lane,
                found.blocks,
                expected.blocks
            );
        }
        Ok(())
    }

    /// Packs the rest of the lane, and returns a summary of the output's lane.
    ///
    /// # Errors
    /// [`Error::Bug`] unless all inputs have been merged as a whole, and [`Error::Corrupt`] for one whose
    /// descriptor contradicts its blocks.
    pub(super) fn finish(mut self, packed: &mut Packed) -> Result<LaneSummary> {
        for input in &mut self.inputs {
            input.clear()?;
            let (found, expected) = (&input.blocks.seen, &input.blocks.expected);
            invariant!(
                found.blocks == expected.blocks,
                "a merge ends after {} of {} blocks of run {}, lane {}",
                found.blocks,
                expected.blocks,
                input.blocks.run,
                expected.lane
            );
            // Blocks that do not add up were refused with the last one of them: this is a lane that
            // states postings and has no block.
            if found != expected {
                return Err(input.blocks.unexpected_end(self.table_name));
            }
        }
        let summary = self.packer.finish(packed)?;
        self.books.balance(summary.postings, 0)?;
        Ok(summary)
    }

    /// Leaves the rest to a later slice. Returns a summary of the output's lane; that slice unpacks
    /// everything pending again.
    ///
    /// # Errors
    /// [`Error::Bug`] unless the output ends at or before `cursor`, where the inputs continue.
    pub(super) fn pause(&self, cursor: Option<Posting>) -> Result<LaneSummary> {
        let summary = self.packer.packed();
        self.books
            .balance(summary.postings, self.packer.pending())?;
        let pending = self.packer.first_pending();
        invariant!(
            summary.last <= cursor && pending.is_none_or(|first| Some(first) > cursor),
            "the output of a merge ends at {:?}, its inputs go on after {cursor:?}, and {pending:?} is \
             pending",
            summary.last
        );
        Ok(summary)
    }
}

/// Returns the error for a merge of `slices` whose result is out of order. The file is at fault if
/// two inputs have the same posting, or if the output extends into what its inputs still have. If
/// neither is the case, the merge is at fault.
#[cold]
fn blame(error: Error, slices: &[&[Posting]], newest: Option<Posting>) -> Error {
    let Error::Corrupt { place, detail } = &error else {
        return error;
    };
    let mut all: Vec<Posting> = slices.concat();
    all.sort_unstable();
    let ascend = all.is_sorted_by(|a, b| a < b);
    if ascend && all.first().is_none_or(|first| Some(*first) > newest) {
        return bug(format!("{place}: {detail}, though the inputs ascend"));
    }
    error
}

/// The postings of one run that are being merged.
struct InputPostings {
    blocks: CountedBlocks,
    /// The postings of the blocks that were unpacked last.
    postings: Vec<Posting>,
    /// The number of these that were taken or skipped.
    position: usize,
}

impl InputPostings {
    fn new(run: u32, expected: LaneSummary) -> Self {
        Self {
            blocks: CountedBlocks::new(run, expected),
            postings: Vec::new(),
            position: 0,
        }
    }

    /// Makes room for the next blocks, all postings of the last ones having been taken.
    fn clear(&mut self) -> Result<()> {
        let (taken, held) = (self.position, self.postings.len());
        invariant!(
            taken == held,
            "a merge took {taken} of {held} postings of run {}, lane {}",
            self.blocks.run,
            self.blocks.expected.lane
        );
        self.postings.clear();
        self.position = 0;
        Ok(())
    }

    /// Unpacks the next block.
    fn unpack(&mut self, table_name: &str, block: &InputBlock, value: &[u8]) -> Result<ReadBlock> {
        let (run, lane, _) = split_block_key(&block.key);
        let blocks = &mut self.blocks;
        let expected_key = (blocks.run, blocks.expected.lane, blocks.seen.blocks);
        invariant!(
            (run, lane, block.number) == expected_key,
            "a merge takes block {} of run {run}, lane {lane} for {expected_key:?}",
            block.number
        );
        let before = self.postings.len();
        // An earlier slice has merged these already.
        self.position += blocks.read(table_name, &block.key, value, &mut self.postings)?;
        if blocks.seen.blocks >= blocks.expected.blocks && blocks.seen != blocks.expected {
            return Err(blocks.unexpected_end(table_name));
        }
        Ok(ReadBlock {
            last: blocks.seen.last.or_bug("a posting of a block")?,
            postings: (self.postings.len() - before) as u64,
            bytes: value.len() as u64,
        })
    }

    /// Takes the postings up to `bound`, inclusive.
    fn take_until(&mut self, bound: Posting) -> Result<&[Posting]> {
        let split = self.postings.split_at_checked(self.position);
        let (_, rest) = split.or_bug("the postings of an input that were not taken")?;
        let count = rest.partition_point(|posting| *posting <= bound);
        self.position += count;
        let taken = rest.split_at_checked(count).or_bug("postings to take")?;
        Ok(taken.0)
    }
}
