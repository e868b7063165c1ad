//! Probes of runs: the postings of a few codes.

use crate::engine::ReadableTable;
use crate::error::Result;
use crate::format::Posting;
use crate::index::block_cache::{BlockAccess, BlockCache};
use crate::index::lane_blocks::LaneBlocks;
use crate::index::run::{Key, LaneRef, ProbeCost, Value};
use crate::index::segment::ProbeControl;

/// Visits the postings of a lane whose codes are in `low_code..=high_code`, in order. All blocks are read from
/// the table.
///
/// # Errors
/// Those of `visit` and of reading, and [`Error::Corrupt`] if a block is damaged or missing.
pub(super) fn probe_lane<T: ReadableTable<Key, Value>>(
    table: &T,
    lane: LaneRef<'_>,
    low_code: u64,
    high_code: u64,
    visit: &mut dyn FnMut(Posting) -> Result<()>,
) -> Result<ProbeCost> {
    let visit = &mut |posting| visit(posting).map(|()| ProbeControl::GoOn);
    let blocks = LaneBlocks::new(lane, || Ok(table), None);
    probe_blocks(blocks, low_code, high_code, visit)
}

/// Visits the postings of a lane whose codes are in `low_code..=high_code`, in order, as far as `visit` says.
/// Blocks that `cache` does not have are read from the table that `open` gives.
///
/// # Errors
/// As [`probe_lane`], and those of `open`.
#[inline]
pub(crate) fn probe_lane_while<'t, T: ReadableTable<Key, Value> + 't>(
    lane: LaneRef<'_>,
    open: impl Fn() -> Result<&'t T>,
    cache: &BlockCache,
    (low_code, high_code): (u64, u64),
    visit: &mut dyn FnMut(Posting) -> Result<ProbeControl>,
) -> Result<ProbeCost> {
    let blocks = LaneBlocks::new(lane, open, Some((cache, BlockAccess::Probe)));
    probe_blocks(blocks, low_code, high_code, visit)
}

#[inline]
fn probe_blocks<'t, T, O>(
    mut blocks: LaneBlocks<'_, 't, T, O>,
    low_code: u64,
    high_code: u64,
    visit: &mut dyn FnMut(Posting) -> Result<ProbeControl>,
) -> Result<ProbeCost>
where
    T: ReadableTable<Key, Value> + 't,
    O: Fn() -> Result<&'t T>,
{
    let summary = blocks.lane.summary;
    // The first block that is left of an input may hold postings that its merge has moved already.
    let mut target = Posting::lowest_of(low_code).max(summary.first_possible());
    let Some(end) = summary.last.filter(|end| *end >= target) else {
        return Ok(blocks.cost);
    };
    loop {
        let held = blocks.covering(target)?;
        let block = held.block()?;
        for posting in block.find_range(low_code, high_code) {
            if posting < target {
                continue;
            }
            match visit(posting)? {
                ProbeControl::GoOn => {}
                ProbeControl::SkipTo(next) => target = target.max(next),
                ProbeControl::End => return Ok(blocks.cost),
            }
        }
        let last = block.last();
        if last.code > high_code || last == end || target > end || target.code > high_code {
            return Ok(blocks.cost);
        }
        target = target.max(last.next());
    }
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
