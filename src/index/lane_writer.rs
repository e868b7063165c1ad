//! Packs the postings of a lane into blocks, and writes them.

use std::ops::Bound;

use crate::engine::EngineResult;
use crate::error::{Error, Result};
use crate::format::{BLOCK_POSTINGS, BlockKey, FilterKey, LaneSummary, Posting, encode_if};
use crate::index::filter_writer::{FilterPacker, FilterPlan};
use crate::index::k_way::SliceMerger;
use crate::index::lane_probe::probe_lane;
use crate::index::row_buffer::RowBuffer;
use crate::index::run::{LaneRef, RunTables, place};
use crate::invariant::{OrBug, invariant};
use crate::threads::take_behind;

/// Bytes of blocks that are written together: through one gap of the tree.
const WRITTEN_BYTES: usize = 256 << 10;

/// The number of postings that [`LanePacker::extend`] was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Appended {
    pub(super) postings: u64,
    /// The number of these that were left out.
    pub(super) dropped: u64,
}

/// Rows that are packed, but not yet written.
#[derive(Default)]
pub(super) struct Packed {
    blocks: RowBuffer<BlockKey>,
    pieces: RowBuffer<FilterKey>,
}

impl Packed {
    /// Writes the rows, and forgets them.
    ///
    /// # Errors
    /// Returns the errors of writing.
    pub(super) fn write(&mut self, tables: &mut RunTables<'_>) -> Result<()> {
        self.write_blocks(tables)?;
        for row in self.pieces.iter() {
            let (key, value) = row?;
            tables.filters.insert(key, value).engine()?;
        }
        self.blocks.clear();
        self.pieces.clear();
        Ok(())
    }

    /// They are neighbours: through one gap of the tree they are inserted faster than one by one.
    fn write_blocks(&self, tables: &mut RunTables<'_>) -> Result<()> {
        let Some((first, _)) = self.blocks.iter().next().transpose()? else {
            return Ok(());
        };
        let upper_bound = tables.blocks.upper_bound_mut(Bound::Excluded(first));
        let mut gap = upper_bound.engine()?;
        for row in self.blocks.iter() {
            let (key, value) = row?;
            gap.insert_before(key, value).engine()?;
        }
        gap.close().engine()
    }
}

/// Packs the blocks of one lane of one run, and its filter. Touches no table: it may be on another
/// thread than what writes.
pub(super) struct LanePacker {
    table_name: &'static str,
    run: u32,
    filter: Option<FilterPacker>,
    /// Postings that are in no block yet.
    pending: Vec<Posting>,
    /// The number of these that are known to be in order, and are in the filter.
    checked: usize,
    /// The last posting that is known to be in order.
    newest: Option<Posting>,
    /// Summary of the postings packed so far.
    summary: LaneSummary,
    /// The block that is being packed.
    value: Vec<u8>,
}

impl LanePacker {
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
            filter: filter.map(|filter| FilterPacker::new(run, lane, filter)),
            pending: Vec::new(),
            checked: 0,
            newest: None,
            summary,
            value: Vec::new(),
        }
    }

    /// Continues a lane that has been written up to the end of its summary.
    ///
    /// # Errors
    /// Returns the errors of reading the written blocks.
    pub(super) fn resume(
        tables: &RunTables<'_>,
        run: u32,
        written: LaneSummary,
        filter: Option<FilterPlan>,
    ) -> Result<Self> {
        let table_name = tables.name;
        let mut packer = Self::new(table_name, run, written.lane, filter);
        packer.summary = written;
        packer.newest = written.last;
        if let (Some(filter), Some(last)) = (packer.filter.as_mut(), written.last) {
            filter.resume(last);
            let mut codes = Vec::new();
            let first = filter.first_code(last.code);
            let blocks = &tables.blocks;
            let mut visit = |posting: Posting| {
                codes.push(posting.code);
                Ok(())
            };
            let lane = LaneRef {
                table_name,
                run,
                summary: &written,
            };
            probe_lane(blocks, lane, first, last.code, &mut visit)?;
            filter.restore(codes)?;
        }
        Ok(packer)
    }

    /// Takes the merge of sorted slices, whose postings must follow those before, except those of
    /// ids for which `is_dropped` returns true. Packs the blocks that are full.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if they do not follow those before.
    pub(super) fn extend(
        &mut self,
        merger: &mut SliceMerger,
        slices: &[&[Posting]],
        is_dropped: impl Fn(u64) -> bool,
        packed: &mut Packed,
    ) -> Result<Appended> {
        let start = self.pending.len();
        merger.append(slices, &mut self.pending)?;
        let appended = self.pending.len() - start;
        let is_left_out = |posting: &mut Posting| is_dropped(posting.id);
        let dropped = self.pending.extract_if(start.., is_left_out).count();
        self.check_pending(packed)?;
        self.pack(packed, |left, taken| taken < left);
        Ok(Appended {
            postings: appended as u64,
            dropped: dropped as u64,
        })
    }

    /// Takes the next posting, which must follow those before.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if those up to now did not.
    #[inline]
    fn push(&mut self, posting: Posting, packed: &mut Packed) -> Result<()> {
        self.pending.push(posting);
        if self.pending.len() >= 2 * BLOCK_POSTINGS {
            self.check_pending(packed)?;
            self.pack(packed, |left, _| left >= BLOCK_POSTINGS);
        }
        Ok(())
    }

    /// Packs the rest.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if postings were not in order.
    pub(crate) fn finish(mut self, packed: &mut Packed) -> Result<LaneSummary> {
        self.check_pending(packed)?;
        self.pack(packed, |_, _| true);
        let pending = self.pending.len();
        invariant!(pending == 0, "{pending} postings are in no block of a lane");
        match &mut self.filter {
            Some(filter) if self.summary.postings > 0 => filter.finish(&mut packed.pieces),
            // A lane without postings needs no filter, and none has been begun.
            _ => self.summary.filter = None,
        }
        Ok(self.summary)
    }

    /// Returns a summary of the postings packed so far.
    pub(super) fn packed(&self) -> LaneSummary {
        self.summary
    }

    /// The last posting whose order was checked, packed or pending.
    pub(super) fn newest(&self) -> Option<Posting> {
        self.newest
    }

    /// Number of postings that are in no block yet.
    pub(super) fn pending(&self) -> u64 {
        self.pending.len() as u64
    }

    /// The first posting that is in no block yet.
    pub(super) fn first_pending(&self) -> Option<Posting> {
        self.pending.first().copied()
    }

    /// Checks the order of the pending postings, and puts them into the filter.
    fn check_pending(&mut self, packed: &mut Packed) -> Result<()> {
        let checked = self.pending.split_at_checked(self.checked);
        let (_, fresh) = checked.or_bug("checked postings")?;
        let Some(first) = fresh.first() else {
            return Ok(());
        };
        let follows = self.newest.is_none_or(|newest| newest < *first);
        // Without a branch for each pair: all are examined in any case, but once.
        let pairs = fresh.iter().zip(fresh.iter().skip(1));
        let is_sorted = pairs.fold(true, |sorted, (a, b)| sorted & (a.rank() < b.rank()));
        if !(follows && is_sorted) {
            return Err(self.unordered(fresh));
        }
        if let Some(filter) = &mut self.filter {
            filter.push_all(fresh, &mut packed.pieces)?;
        }
        self.newest = fresh.last().copied();
        self.checked = self.pending.len();
        Ok(())
    }

    /// Packs blocks while `is_wanted` accepts the next one, given the number of remaining postings
    /// and the number that the block takes.
    fn pack(&mut self, packed: &mut Packed, is_wanted: impl Fn(usize, usize) -> bool) {
        let mut start = 0;
        let (run, lane) = (self.run, self.summary.lane);
        while let Some(rest) = self.pending.get(start..)
            && is_wanted(rest.len(), 0)
        {
            let (previous, value) = (self.summary.last, &mut self.value);
            let is_wanted = |count| is_wanted(rest.len(), count);
            let name = self.table_name;
            let encoded = encode_if(name, run, lane, previous, rest, value, is_wanted);
            let Some(encoded) = encoded else {
                // It would take all the rest, and more may arrive to fill it.
                break;
            };
            start += encoded.count;
            self.summary.postings += encoded.count as u64;
            self.summary.blocks += 1;
            self.summary.bytes += value.len() as u64;
            self.summary.last = Some(encoded.last);
            packed.blocks.push(encoded.key, value);
        }
        // Every posting is known to be in order before it is packed.
        debug_assert_eq!(self.checked, self.pending.len());
        self.pending.drain(..start);
        self.checked = self.pending.len();
    }

    #[cold]
    fn unordered(&self, fresh: &[Posting]) -> Error {
        let before = self.newest.into_iter().chain(fresh.iter().copied());
        let mut pairs = before.clone().zip(before.skip(1));
        let wrong = pairs.find(|(a, b)| a >= b);
        Error::corrupt(
            place(self.table_name, self.run, self.summary.lane),
            match wrong {
                Some((before, found)) => format!("found {found:?} after {before:?}"),
                None => "found postings out of order".into(),
            },
        )
    }
}

/// A whole lane of a run, packed and not yet written.
pub(crate) struct PackedLane {
    rows: Packed,
    summary: LaneSummary,
}

impl PackedLane {
    /// Packs postings in strictly ascending order.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the order is broken.
    pub(crate) fn new(
        table_name: &'static str,
        run: u32,
        lane: u16,
        filter: Option<FilterPlan>,
        postings: Vec<Posting>,
    ) -> Result<Self> {
        let mut packer = LanePacker::new(table_name, run, lane, filter);
        let mut rows = Packed::default();
        packer.pending = postings;
        let summary = packer.finish(&mut rows)?;
        Ok(Self { rows, summary })
    }

    /// Number of postings of the lane.
    pub(crate) fn postings(&self) -> u64 {
        self.summary.postings
    }

    /// Writes the lane.
    ///
    /// # Errors
    /// Returns the errors of writing.
    pub(crate) fn write(mut self, tables: &mut RunTables<'_>) -> Result<LaneSummary> {
        self.rows.write(tables)?;
        Ok(self.summary)
    }
}

/// Writes a lane of a run: `postings` in strictly ascending order. A second thread writes the blocks that this one
/// packs.
///
/// # Errors
/// Returns the errors of the postings, those of writing, and [`Error::Corrupt`] if the order is broken.
pub(crate) fn write_lane(
    tables: &mut RunTables<'_>,
    run: u32,
    lane: u16,
    filter: Option<FilterPlan>,
    postings: impl Iterator<Item = Result<Posting>>,
) -> Result<LaneSummary> {
    let mut packer = LanePacker::new(tables.name, run, lane, filter);
    let pack = |send: &mut dyn FnMut(Packed) -> Result<()>| {
        let mut packed = Packed::default();
        for posting in postings {
            packer.push(posting?, &mut packed)?;
            if packed.blocks.size_bytes() >= WRITTEN_BYTES {
                send(std::mem::take(&mut packed))?;
            }
        }
        let summary = packer.finish(&mut packed)?;
        send(packed)?;
        Ok(summary)
    };
    take_behind("write", pack, |mut packed| packed.write(tables))
}
