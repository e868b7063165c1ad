//! Sorted sweeps: many code ranges are probed in one pass over a lane, and no block is read twice.

use crate::engine::ReadableTable;
use crate::error::Result;
use crate::format::{Block, NearCodes, Posting};
use crate::index::block_cache::BlockAccess;
use crate::index::code_search::{CodeSearch, SortedPostings};
use crate::index::lane_blocks::LaneBlocks;
use crate::index::run::{Key, LaneRef, ProbeCost, Value};
use crate::index::run_cache::BlockSources;
use crate::invariant::OrBug;

/// The codes `low_code..=high_code` of a lane, and the index of the query that probes for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProbeRange {
    pub(crate) low_code: u64,
    pub(crate) high_code: u64,
    pub(crate) query_index: u32,
    /// Postings of other codes than these need not be visited.
    pub(crate) near: Option<NearCodes>,
}

impl ProbeRange {
    pub(crate) const fn new(query_index: u32, low_code: u64, high_code: u64) -> Self {
        Self {
            low_code,
            high_code,
            query_index,
            near: None,
        }
    }
}

/// Directs a sweep after a posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SweepControl {
    GoOn,
    /// Skip the rest of this range, in the current slice or run.
    SkipRange,
    /// Stop.
    End,
}

/// Called with the index of a query and a posting in one of its ranges.
pub(crate) type VisitProbe<'v> = dyn FnMut(u32, Posting) -> Result<SweepControl> + 'v;

/// The number of searches among the postings of a segment that advance in step, where the codes are
/// not near each other.
const SEARCHED_TOGETHER: usize = 32;

/// Codes that are fewer postings apart are near: the next one is found from the one before.
const NEAR_POSTINGS: usize = 16;

/// A block of this many postings is decoded as fast as one code is found in it.
const POSTINGS_PER_SEARCH: u64 = 40;

/// Visits the sorted postings within `wanted`, which is sorted by low code, except for those that
/// need not be visited: range by range, each in order. Returns false if `visit` ended the sweep.
///
/// # Errors
/// Returns the errors of `visit`.
pub(super) fn sweep_slice(
    postings: SortedPostings<'_>,
    wanted: &[ProbeRange],
    visit: &mut VisitProbe<'_>,
) -> Result<bool> {
    let mut rest = postings.all()?;
    if rest.len() / NEAR_POSTINGS >= wanted.len() {
        return sweep_far(postings, wanted, visit);
    }
    for wanted in wanted {
        // Several queries may ask for one bucket. So `rest` moves up to the start of a range only, and
        // the next range can visit the same postings again.
        rest = postings_from(rest, wanted.low_code)?;
        if !visit_range(rest, wanted, visit)? {
            return Ok(false);
        }
        if rest.is_empty() {
            break;
        }
    }
    Ok(true)
}

/// [`sweep_slice`] for codes that are not near each other.
fn sweep_far(
    postings: SortedPostings<'_>,
    wanted: &[ProbeRange],
    visit: &mut VisitProbe<'_>,
) -> Result<bool> {
    for wanted in wanted.chunks(SEARCHED_TOGETHER) {
        let search = |wanted: &ProbeRange| postings.search(wanted.low_code);
        let mut searches: Vec<CodeSearch<'_>> = wanted.iter().map(search).collect();
        CodeSearch::run(&mut searches);
        for (search, wanted) in searches.iter().zip(wanted) {
            if !visit_range(search.found()?, wanted, visit)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Visits the postings of a range, with which `postings` begin. Returns false if `visit` ended the sweep.
#[inline]
fn visit_range(
    postings: &[Posting],
    wanted: &ProbeRange,
    visit: &mut VisitProbe<'_>,
) -> Result<bool> {
    let in_range = |posting: &&Posting| posting.code <= wanted.high_code;
    let is_near = |posting: &&Posting| wanted.near.is_none_or(|near| near.have(posting.code));
    for posting in postings.iter().take_while(in_range).filter(is_near) {
        match visit(wanted.query_index, *posting)? {
            SweepControl::GoOn => {}
            SweepControl::SkipRange => break,
            SweepControl::End => return Ok(false),
        }
    }
    Ok(true)
}

/// Returns the postings from a code on. It searches in doubling steps: the next code is mostly near.
fn postings_from(postings: &[Posting], code: u64) -> Result<&[Posting]> {
    let is_below = |posting: &Posting| posting.code < code;
    let mut end = 1;
    while postings.get(end - 1).is_some_and(is_below) {
        end *= 2;
    }
    let (start, end) = (end / 2, end.min(postings.len()));
    let last_step = postings
        .get(start..end)
        .or_bug("postings of the last step")?;
    let (_, rest) = postings.split_at(start + last_step.partition_point(is_below));
    Ok(rest)
}

/// Visits the postings within `wanted`, sorted by low code, in a lane of a run, except for those
/// that need not be visited: block by block, and for each range in order. It ends early if `visit`
/// directs so. Blocks that `sources` do not have are read from the table that `open` returns.
///
/// # Errors
/// Returns the errors of `visit`, of `open` and of reading, and [`Error::Corrupt`] if a block is damaged or missing.
pub(crate) fn sweep_lane<'t, T: ReadableTable<Key, Value> + 't>(
    lane: LaneRef<'_>,
    open: impl Fn() -> Result<&'t T>,
    sources: BlockSources<'_>,
    wanted: &[ProbeRange],
    visit: &mut VisitProbe<'_>,
) -> Result<ProbeCost> {
    let mut blocks = LaneBlocks::new(lane, open, Some((sources, BlockAccess::Sweep)));
    let summary = lane.summary;
    let Some(end) = summary.last else {
        return Ok(blocks.cost);
    };
    let mut asked = PendingRanges {
        rest: wanted,
        open: Vec::new(),
        decoded: Vec::new(),
        searches: summary.postings / summary.blocks.max(1) / POSTINGS_PER_SEARCH,
    };
    // The first block that is left of an input may begin before the merge cursor. The output has these
    // postings, and a visitor must see each posting once.
    let first = summary.first_possible();
    let visit = &mut |query_index, posting| match posting < first {
        true => Ok(SweepControl::GoOn),
        false => visit(query_index, posting),
    };
    let mut reached = None;
    // The blocks that end before the cursor have been dropped. A search for an earlier posting
    // would find the first block after them, and would treat the dropped blocks as lost.
    let target = |asked: &PendingRanges<'_>, reached| asked.target(reached).map(|t| t.max(first));
    while let Some(target) = target(&asked, reached).filter(|t| *t <= end) {
        let held = blocks.covering(target)?;
        let block = held.block()?;
        if !asked.answer(&block, || blocks.place(&block), visit)? {
            break;
        }
        reached = Some(block.last());
    }
    Ok(blocks.cost)
}

/// The ranges that are not yet answered.
struct PendingRanges<'w> {
    /// Ranges that no block has reached yet.
    rest: &'w [ProbeRange],
    /// Ranges that the next block may continue, ascending.
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
            // A bucket may fill many blocks: an open range continues at the very next posting, if
            // at all.
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
        block: &Block<'_>,
        place: impl FnOnce() -> String,
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
            block.decode(&mut self.decoded, place)?;
            if !sweep_slice(SortedPostings::Plain(&self.decoded), &self.open, visit)? {
                return Ok(false);
            }
        } else {
            for wanted in &self.open {
                let in_range = block.find_range(wanted.low_code, wanted.high_code);
                for posting in in_range.near(wanted.near) {
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
            // At `last_code` itself a range remains open, because the next block may continue the
            // same code.
            wanted.high_code >= last_code && passed_over.binary_search(&wanted.query_index).is_err()
        });
        Ok(true)
    }
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
