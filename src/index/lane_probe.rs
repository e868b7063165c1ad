//! Probes of runs: the postings of a few codes.

use std::sync::Arc;

use crate::engine::ReadableTable;
use crate::error::Result;
use crate::format::Posting;
use crate::index::block_cache::{BlockAccess, CachedBlock};
use crate::index::lane_blocks::LaneBlocks;
use crate::index::run::{Key, LaneRef, ProbeCost, Value};
use crate::index::run_cache::BlockSources;
use crate::index::segment::{CodeRange, ProbeControl};

/// Visits the postings of a lane whose codes are in `low_code..=high_code`, in order. All blocks are read from
/// the table.
///
/// # Errors
/// Returns the errors of `visit` and of reading, and [`Error::Corrupt`] if a block is damaged or missing.
pub(super) fn probe_lane<T: ReadableTable<Key, Value>>(
    table: &T,
    lane: LaneRef<'_>,
    low_code: u64,
    high_code: u64,
    visit: &mut dyn FnMut(Posting) -> Result<()>,
) -> Result<ProbeCost> {
    let visit = &mut |posting| visit(posting).map(|()| ProbeControl::GoOn);
    let blocks = LaneBlocks::new(lane, || Ok(table), None);
    let range = CodeRange::new(lane.summary.lane, low_code, high_code);
    probe_blocks(blocks, &range, visit)
}

/// The block that a probe of a lane begins with, if it is in memory.
#[derive(Debug, Default)]
pub(crate) struct FirstBlock(Option<Arc<CachedBlock>>);

impl FirstBlock {
    /// Finds those of probes of several lanes, which begin with these codes, and waits for the memory of all of them
    /// together; none for a probe that is `None`.
    ///
    /// # Errors
    /// Returns the errors of [`BlockCache::get_all`](crate::index::block_cache::BlockCache::get_all).
    pub(crate) fn find_all(
        sources: BlockSources<'_>,
        probes: &[Option<(LaneRef<'_>, u64)>],
    ) -> Result<Vec<Self>> {
        let place = |probe: &Option<(LaneRef<'_>, u64)>| {
            let (lane, low_code) = (*probe)?;
            let summary = lane.summary;
            let target = Posting::lowest_of(low_code).max(summary.first_possible());
            let is_within = summary.last.is_some_and(|last| target <= last);
            is_within.then_some((lane.run, summary.lane, target))
        };
        let places: Vec<_> = probes.iter().map(place).collect();
        let found = sources.blocks.get_all(&places)?;
        let held = found.iter().zip(probes);
        let touched = held.filter_map(|(block, probe)| Some(block.as_ref()?.touch((*probe)?.1)));
        std::hint::black_box(touched.fold(0, |all, byte| all ^ byte));
        Ok(found.into_iter().map(Self).collect())
    }

    pub(crate) fn is_held(&self) -> bool {
        self.0.is_some()
    }
}

/// Visits the postings of a range of its lane, in order, as `visit` directs, except for those that
/// need not be visited. `first` is the range's result of [`FirstBlock::find_all`]. Blocks that
/// `sources` do not have are read from the table that `open` returns.
///
/// # Errors
/// Returns the errors of [`probe_lane`] and of `open`.
#[inline]
pub(crate) fn probe_lane_while<'t, T: ReadableTable<Key, Value> + 't>(
    lane: LaneRef<'_>,
    first: FirstBlock,
    open: impl Fn() -> Result<&'t T>,
    sources: BlockSources<'_>,
    range: &CodeRange,
    visit: &mut dyn FnMut(Posting) -> Result<ProbeControl>,
) -> Result<ProbeCost> {
    let blocks = LaneBlocks::new(lane, open, Some((sources, BlockAccess::Probe)));
    probe_blocks(blocks.beginning_with(first.0), range, visit)
}

#[inline]
fn probe_blocks<'t, T, O>(
    mut blocks: LaneBlocks<'_, 't, T, O>,
    range: &CodeRange,
    visit: &mut dyn FnMut(Posting) -> Result<ProbeControl>,
) -> Result<ProbeCost>
where
    T: ReadableTable<Key, Value> + 't,
    O: Fn() -> Result<&'t T>,
{
    let summary = blocks.lane.summary;
    let CodeRange {
        low_code,
        high_code,
        near,
        ..
    } = *range;
    // The first block that is left of an input may hold postings that its merge has moved already.
    let mut target = Posting::lowest_of(low_code).max(summary.first_possible());
    let Some(end) = summary.last.filter(|end| *end >= target) else {
        return Ok(blocks.cost);
    };
    loop {
        let held = blocks.covering(target)?;
        let block = held.block()?;
        for posting in block.find_range(low_code, high_code).near(near) {
            if posting < target {
                continue;
            }
            match visit(posting)? {
                ProbeControl::GoOn => {}
                ProbeControl::SkipTo(next) => target = target.max(next),
                ProbeControl::End => return Ok(blocks.cost),
            }
        }
        // The descriptor records where the lane ends, so that no search looks for a block after the
        // last.
        let last = block.last();
        // The blocks with more postings of a code that is not near are not read.
        let passed_over = near.filter(|near| !near.have(last.code));
        let next = match passed_over.and(last.code.checked_add(1)) {
            Some(code) => Posting::lowest_of(code),
            None => last.next(),
        };
        target = target.max(next);
        if last.code > high_code || last == end || target > end || target.code > high_code {
            return Ok(blocks.cost);
        }
    }
}

#[cfg(test)]
#[path = "lane_probe_tests.rs"]
mod tests;
