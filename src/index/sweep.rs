//! Sorted sweeps: many code ranges are probed in one pass over a lane, and no block is read twice.

use std::ops::Bound;

use crate::engine::{AccessGuard, Cursor, EngineResult, ReadableTable};
use crate::error::{Error, Result};
use crate::format::{Block, BlockKey, LaneSummary, Posting, block_key, checksum, split_block_key};
use crate::index::run::{Key, ProbeCost, Value, is_of, missing};

/// The codes `low_code..=high_code` of a lane, and the index of the query that probes for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProbeRange {
    pub(crate) low_code: u64,
    pub(crate) high_code: u64,
    pub(crate) query_index: u32,
}

/// Tells a sweep how to go on after a posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SweepControl {
    GoOn,
    /// Skip the rest of this range, in the slice or the run at hand.
    SkipRange,
    /// Stop.
    End,
}

/// Called with the index of a query and a posting in one of its ranges.
pub(crate) type VisitProbe<'v> = dyn FnMut(u32, Posting) -> Result<SweepControl> + 'v;

/// A block of this many postings is decoded as fast as one code is found in it.
const POSTINGS_PER_SEARCH: u64 = 40;

/// Visits the postings that `wanted`, sorted by low code, asks for among sorted postings: range by range,
/// each in order. Returns false if `visit` ended the sweep.
///
/// # Errors
/// Those of `visit`.
pub(super) fn sweep_slice(
    postings: &[Posting],
    wanted: &[ProbeRange],
    visit: &mut VisitProbe<'_>,
) -> Result<bool> {
    let mut rest = postings;
    for wanted in wanted {
        // Several queries may ask for one bucket. So `rest` moves up to the start of a range only, and
        // the next range can visit the same postings again.
        let below = count_below(rest, wanted.low_code);
        debug_assert!(below <= rest.len());
        rest = rest.get(below..).unwrap_or_default();
        let in_range = |posting: &&Posting| posting.code <= wanted.high_code;
        for posting in rest.iter().take_while(in_range) {
            match visit(wanted.query_index, *posting)? {
                SweepControl::GoOn => {}
                SweepControl::SkipRange => break,
                SweepControl::End => return Ok(false),
            }
        }
        if rest.is_empty() {
            break;
        }
    }
    Ok(true)
}

/// Counts the postings at the start that are below a code. It searches in doubling steps: the next code is
/// mostly near.
fn count_below(postings: &[Posting], code: u64) -> usize {
    let is_below = |posting: &Posting| posting.code < code;
    let mut end = 1;
    while postings.get(end - 1).is_some_and(is_below) {
        end *= 2;
    }
    let start = end / 2;
    let end = end.min(postings.len());
    let last_step = postings.get(start..end).unwrap_or_default();
    start + last_step.partition_point(is_below)
}

/// Visits the postings that `wanted`, sorted by low code, asks for in a lane of a run: block by block, and
/// for each range in order. It ends early if `visit` says so.
///
/// # Errors
/// Those of `visit` and of reading, and [`Error::Corrupt`] if a block is damaged or missing.
pub(crate) fn sweep_lane<T: ReadableTable<Key, Value>>(
    table: &T,
    table_name: &'static str,
    run: u32,
    lane: &LaneSummary,
    wanted: &[ProbeRange],
    visit: &mut VisitProbe<'_>,
) -> Result<ProbeCost> {
    let mut blocks = Blocks {
        table,
        place: (run, lane.lane),
        cursor: None,
        reached: None,
        span: 0,
        cost: ProbeCost::default(),
    };
    let Some(end) = lane.last else {
        return Ok(blocks.cost);
    };
    let mut asked = PendingRanges {
        rest: wanted,
        open: Vec::new(),
        decoded: Vec::new(),
        searches: lane.postings / lane.blocks.max(1) / POSTINGS_PER_SEARCH,
    };
    // The first block that is left of an input may begin before the merge cursor. The output has these
    // postings, and a visitor must see each posting once.
    let first = lane.first_possible();
    let visit = &mut |query_index, posting| match posting < first {
        true => Ok(SweepControl::GoOn),
        false => visit(query_index, posting),
    };
    // The blocks that end before the cursor are gone. A search for an earlier posting would find the first
    // block behind them, and the check below would take them for lost.
    let target = |asked: &PendingRanges<'_>, reached| asked.target(reached).map(|t| t.max(first));
    while let Some(target) = target(&asked, blocks.reached).filter(|t| *t <= end) {
        let row = blocks.seek(target)?;
        // Each block names the posting before its first one. Without a look at that, the documents of a lost
        // block would be missed without an error.
        let follows = |block: &Block<'_>, is_next| match (is_next, block.previous()) {
            (true, previous) => previous == blocks.reached,
            (false, previous) => previous.is_none_or(|previous| previous < target),
        };
        let lost = |found| missing(table_name, run, lane.lane, Some(target), found);
        let (key, value, is_next) = row.ok_or_else(|| lost(None))?;
        let block = Block::parse(table_name, key.value(), value.value())?;
        if !follows(&block, is_next) {
            return Err(lost(block.previous()));
        }
        if !asked.answer(table_name, key.value(), &block, visit)? {
            break;
        }
        blocks.pass(&block);
    }
    Ok(blocks.cost)
}

/// The pass over the blocks of a lane.
struct Blocks<'t, T> {
    table: &'t T,
    /// Run and lane.
    place: (u32, u16),
    cursor: Option<Cursor<'t, Key, Value>>,
    /// The last posting of the block that was read last.
    reached: Option<Posting>,
    /// Difference between the last code of that block and the code before its first.
    span: u64,
    cost: ProbeCost,
}

/// A block's key and value, and true if it directly follows the block that was read last.
type SweptRow<'t> = (AccessGuard<'t, Key>, AccessGuard<'t, Value>, bool);

impl<'t, T: ReadableTable<Key, Value>> Blocks<'t, T> {
    /// Returns the first block that reaches `target`, if the lane has one. A near target is likely in the
    /// next block: looking there first saves the descent from the root of the tree.
    fn seek(&mut self, target: Posting) -> Result<Option<SweptRow<'t>>> {
        let (run, lane) = self.place;
        let is_near = |reached: Posting| target.code - reached.code <= self.span.max(1);
        if self.reached.is_some_and(is_near)
            && let Some(cursor) = &mut self.cursor
        {
            let row = cursor.next().engine()?;
            self.cost.blocks += 1;
            match row.filter(|(key, _)| is_of(key.value(), run, lane)) {
                None => return Ok(None),
                Some((key, value)) if split_block_key(key.value()).2 >= target => {
                    return Ok(Some((key, value, true)));
                }
                // The block just read ends before the target. Reading on could take any number of blocks; the
                // descent from the root takes one.
                Some(_) => {}
            }
        }
        let start = block_key(run, lane, target);
        let cursor = self.table.lower_bound(Bound::Included(&start));
        let cursor = self.cursor.insert(cursor.engine()?);
        let row = cursor.next().engine()?;
        self.cost.blocks += 1;
        let row = row.filter(|(key, _)| is_of(key.value(), run, lane));
        Ok(row.map(|(key, value)| (key, value, false)))
    }

    fn pass(&mut self, block: &Block<'_>) {
        let (first, last) = (block.previous().map_or(0, |p| p.code), block.last());
        self.reached = Some(last);
        // Wraps in a forged block only, and then costs a look into the next one.
        self.span = last.code.wrapping_sub(first);
    }
}

/// The ranges that are not yet answered.
struct PendingRanges<'w> {
    /// Those that no block has reached yet.
    rest: &'w [ProbeRange],
    /// Those that the next block may continue, ascending.
    open: Vec<ProbeRange>,
    /// A block, decoded; kept to be filled again.
    decoded: Vec<Posting>,
    /// Number of searches in a block beyond which the sweep decodes it instead.
    searches: u64,
}

impl PendingRanges<'_> {
    /// Returns the posting that the next block to read must reach; `None` if all ranges are answered.
    fn target(&self, reached: Option<Posting>) -> Option<Posting> {
        match reached {
            // A bucket may fill many blocks: an open range goes on at the very next posting, if at all.
            Some(reached) if !self.open.is_empty() => {
                (reached < Posting::MAX).then(|| reached.next())
            }
            _ => self.rest.first().map(|w| Posting::lowest_of(w.low_code)),
        }
    }

    /// Visits the postings of a block that are in the ranges. Returns false to stop the sweep.
    #[inline]
    fn answer(
        &mut self,
        table_name: &str,
        key: &BlockKey,
        block: &Block<'_>,
        visit: &mut VisitProbe<'_>,
    ) -> Result<bool> {
        let last_code = block.last().code;
        let begun = self.rest.partition_point(|w| w.low_code <= last_code);
        let (begun, rest) = self.rest.split_at(begun);
        self.open.extend_from_slice(begun);
        self.rest = rest;
        // A skip ends a range in this block alone. The range has to leave `open` too, or the next block
        // would visit it again.
        let mut passed_over = Vec::new();
        let visit = &mut |query_index, posting| {
            let next = visit(query_index, posting)?;
            if next == SweepControl::SkipRange {
                passed_over.push(query_index);
            }
            Ok(next)
        };
        if self.open.len() as u64 > self.searches {
            self.decoded.clear();
            block
                .decode(&mut self.decoded)
                .map_err(|detail| Error::corrupt(checksum::place(table_name, key), detail))?;
            if !sweep_slice(&self.decoded, &self.open, visit)? {
                return Ok(false);
            }
        } else {
            for wanted in &self.open {
                for posting in block.find_range(wanted.low_code, wanted.high_code) {
                    match visit(wanted.query_index, posting)? {
                        SweepControl::GoOn => {}
                        SweepControl::SkipRange => break,
                        SweepControl::End => return Ok(false),
                    }
                }
            }
        }
        passed_over.sort_unstable();
        self.open.retain(|wanted| {
            // At `last_code` itself a range stays open, since the next block may go on with the same code.
            wanted.high_code >= last_code && passed_over.binary_search(&wanted.query_index).is_err()
        });
        Ok(true)
    }
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
