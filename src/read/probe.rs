//! Probes and sweeps of runs.

use std::time::{Duration, Instant};

use crate::engine::{PageFinder, ReadableTable};
use crate::error::Result;
use crate::format::{LaneSummary, Posting, RunDescriptor};
use crate::index::{
    BlockSources, CodeRange, FilterOf, FilterQuestion, FilterVerdict, FirstBlock, LaneRef,
    ProbeCost, ProbeRange, RunFilters, RunRow, VisitProbe, probe_lane_while, sweep_lane,
};
use crate::invariant::{OrBug, at};
use crate::lanes::BucketBits;
use crate::read::view::{PostingTable, Visit};
use crate::state::{RunSet, SharedContext};

/// The tables that probes read of runs, opened when something is read from them: most that probes ask for is
/// in memory.
pub(crate) struct ProbeTables<'t, B, F> {
    pub(crate) context: &'t SharedContext,
    pub(crate) table: PostingTable,
    /// Asks for pages before they are read, and reads those whose places are known.
    pub(crate) finder: Option<&'t PageFinder>,
    pub(crate) blocks: &'t dyn Fn() -> Result<&'t B>,
    pub(crate) filters: &'t dyn Fn() -> Result<&'t F>,
}

/// What takes as long to read came from a disk, and the next blocks will.
const SLOW_READ: Duration = match cfg!(test) {
    true => Duration::ZERO,
    false => Duration::from_micros(40),
};

/// The first blocks of so many lanes are looked for in memory together: what they read stays in the processor's nearest
/// cache.
const FOUND_TOGETHER: usize = if cfg!(test) { 3 } else { 32 };

/// The lanes to read, run by run, the newest first.
pub(crate) struct LaneReads<'r> {
    lanes: Vec<LaneRead<'r>>,
    cost: ProbeCost,
}

/// A lane of a run that has to be read for a range.
#[derive(Clone, Copy)]
struct LaneRead<'r> {
    run: &'r RunDescriptor,
    lane: &'r LaneSummary,
    index: usize,
    verdict: FilterVerdict,
    /// True if the filter is on the disk, as the block is, and is not asked: such filters have ruled out little lately.
    is_unasked: bool,
}

impl<'r> LaneReads<'r> {
    /// Plans the reads for these ranges. All filters in memory are asked under one lock.
    pub(crate) fn of(
        context: &SharedContext,
        runs: &'r RunSet,
        ranges: &[CodeRange],
    ) -> Result<Self> {
        let buckets = |range: &CodeRange| context.lanes.bucket_bits(range.lane);
        let buckets: Vec<BucketBits> = ranges.iter().map(buckets).collect();
        let reader = context.cache.filters();
        let count = ranges.len() * runs.descriptors().count();
        let mut asked = Vec::with_capacity(count);
        let mut questions = Vec::with_capacity(count);
        for run in runs.descriptors().rev() {
            let filters = reader.of_run(run.run);
            for (index, (range, buckets)) in ranges.iter().zip(&buckets).enumerate() {
                let Some(lane) = run.lane(range.lane).filter(|lane| lane.postings > 0) else {
                    continue;
                };
                let codes = (range.low_code, range.high_code);
                asked.push((run, lane, index));
                questions.push(question_of(filters, (run, lane), *buckets, codes));
            }
        }
        let mut plan = Self {
            lanes: Vec::new(),
            cost: ProbeCost::default(),
        };
        FilterQuestion::decide_all(&mut questions)?;
        for ((run, lane, index), question) in asked.into_iter().zip(questions) {
            match question.verdict()? {
                FilterVerdict::RuledOut => plan.cost.ruled_out += 1,
                verdict => plan.lanes.push(LaneRead {
                    run,
                    lane,
                    index,
                    verdict,
                    is_unasked: false,
                }),
            }
        }
        Ok(plan)
    }

    /// Returns true if nothing has to be read, and counts that: no table need be opened.
    pub(crate) fn is_empty(&self, context: &SharedContext) -> bool {
        if self.lanes.is_empty() {
            add_cost(context, self.cost);
        }
        self.lanes.is_empty()
    }
}

fn add_cost(context: &SharedContext, cost: ProbeCost) {
    let count = &context.counters.count;
    count.blocks_read.add(cost.blocks);
    count.cached_blocks_read.add(cost.cached_blocks);
    count.lanes_ruled_out.add(cost.ruled_out);
}

impl<'t, B, F> ProbeTables<'t, B, F>
where
    B: ReadableTable<&'static [u8; 22], &'static [u8]>,
    F: ReadableTable<&'static [u8; 10], &'static [u8]>,
{
    /// Probes runs as planned for these ranges, until it is enough.
    pub(crate) fn probe(
        &self,
        plan: LaneReads<'_>,
        ranges: &[CodeRange],
        visit: &mut Visit<'_>,
        is_enough: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<()> {
        let LaneReads {
            mut lanes,
            mut cost,
        } = plan;
        let mut may_ask = self.finder.is_some();
        let mut found = Vec::new().into_iter();
        let mut begin = 0;
        while let Some(lane) = lanes.get(begin).copied() {
            let before = begin.checked_sub(1).and_then(|before| lanes.get(before));
            let is_next_run = before.is_some_and(|before| before.run.run != lane.run.run);
            if is_next_run && is_enough()? {
                break;
            }
            let first = match found.next() {
                Some(first) => first,
                None => {
                    let next = lanes.iter().skip(begin).take(FOUND_TOGETHER);
                    found = self.find_first_blocks(next, ranges)?.into_iter();
                    found.next().or_bug("where the next lane begins")?
                }
            };
            begin += 1;
            let range = at(ranges, lane.index)?;
            let began = (may_ask && !first.is_held()).then(Instant::now);
            let is_from_file = self.read_lane(&lane, first, range, visit, &mut cost)?;
            let is_slow = began.is_some_and(|began| began.elapsed() >= SLOW_READ);
            if is_from_file && is_slow {
                may_ask = false;
                let next = lanes.get_mut(begin..);
                self.read_ahead(next.or_bug("the lanes to read next")?, ranges)?;
            }
        }
        if begin > 0 {
            is_enough()?;
        }
        add_cost(self.context, cost);
        Ok(())
    }

    /// Finds the blocks in memory with which probes of lanes begin.
    fn find_first_blocks<'r>(
        &self,
        lanes: impl Iterator<Item = &'r LaneRead<'r>>,
        ranges: &[CodeRange],
    ) -> Result<Vec<FirstBlock>> {
        let mut probes = Vec::with_capacity(ranges.len());
        for lane in lanes {
            let low_code = at(ranges, lane.index)?.low_code;
            let may_hold = lane.verdict == FilterVerdict::MayHold;
            probes.push(may_hold.then(|| (self.lane(lane.run, lane.lane), low_code)));
        }
        FirstBlock::find_all(self.sources(), &probes)
    }

    fn sources(&self) -> BlockSources<'t> {
        self.context.cache.sources(self.finder)
    }

    /// Probes a lane of a run. Returns true if a filter or a block may have come from the file.
    fn read_lane(
        &self,
        lane: &LaneRead<'_>,
        first: FirstBlock,
        range: &CodeRange,
        visit: &mut Visit<'_>,
        cost: &mut ProbeCost,
    ) -> Result<bool> {
        let codes = (range.low_code, range.high_code);
        let (may_hold, has_asked) = match &lane.verdict {
            FilterVerdict::RuledOut => (false, false),
            FilterVerdict::MayHold => (true, false),
            FilterVerdict::NotHeld => (self.ask((lane.run, lane.lane), codes)?, true),
        };
        if !may_hold {
            cost.ruled_out += 1;
            return Ok(has_asked);
        }
        // A filter passes what is in the bucket, near or not.
        let range = &CodeRange {
            near: range.near.filter(|_| !lane.is_unasked),
            ..*range
        };
        let mut is_found = false;
        let visit = &mut |posting| {
            is_found = true;
            visit(lane.index, posting)
        };
        let of = (self.lane(lane.run, lane.lane), first);
        let read = probe_lane_while(of, self.blocks, self.sources(), range, visit)?;
        cost.add(read);
        if lane.is_unasked {
            self.context.cache.pass_rate().note(is_found);
        }
        Ok(has_asked || read.cached_blocks < read.blocks)
    }

    /// Sweeps a lane of runs, one after the other.
    pub(crate) fn sweep(
        &self,
        runs: &RunSet,
        lane: u16,
        wanted: &[ProbeRange],
        visit: &mut VisitProbe<'_>,
    ) -> Result<()> {
        let mut cost = ProbeCost::default();
        let buckets = self.context.lanes.bucket_bits(lane);
        for run in runs.descriptors() {
            let Some(summary) = run.lane(lane).filter(|lane| lane.postings > 0) else {
                continue;
            };
            let held = self.may_be_held((run, summary), buckets, wanted)?;
            cost.ruled_out += (wanted.len() - held.len()) as u64;
            let lane = self.lane(run, summary);
            cost.add(sweep_lane(lane, self.blocks, self.sources(), &held, visit)?);
        }
        add_cost(self.context, cost);
        Ok(())
    }

    /// Returns those of `wanted` that a lane of a run may hold.
    fn may_be_held(
        &self,
        (run, lane): (&RunDescriptor, &LaneSummary),
        buckets: BucketBits,
        wanted: &[ProbeRange],
    ) -> Result<Vec<ProbeRange>> {
        let codes = |wanted: &ProbeRange| (wanted.low_code, wanted.high_code);
        let verdicts = {
            let reader = self.context.cache.filters();
            let filters = reader.of_run(run.run);
            let ask = |wanted| question_of(filters, (run, lane), buckets, codes(wanted));
            let mut questions: Vec<FilterQuestion<'_>> = wanted.iter().map(ask).collect();
            FilterQuestion::decide_all(&mut questions)?;
            let verdicts = questions.into_iter().map(FilterQuestion::verdict);
            verdicts.collect::<Result<Vec<_>>>()?
        };
        let mut held = Vec::with_capacity(wanted.len());
        for (wanted, verdict) in wanted.iter().zip(verdicts) {
            let may_hold = match verdict {
                FilterVerdict::RuledOut => false,
                FilterVerdict::MayHold => true,
                FilterVerdict::NotHeld => self.ask((run, lane), codes(wanted))?,
            };
            if may_hold {
                held.push(*wanted);
            }
        }
        Ok(held)
    }

    /// Asks a filter, and reads its piece unless it is held: a neighbour may have read it just now.
    fn ask(&self, of: (&RunDescriptor, &LaneSummary), codes: (u64, u64)) -> Result<bool> {
        let cache = &self.context.cache;
        let filter = &self.filter_of(of)?;
        match cache.filters().ask(filter, codes)? {
            FilterVerdict::RuledOut => return Ok(false),
            FilterVerdict::MayHold => return Ok(true),
            FilterVerdict::NotHeld => {}
        }
        let may_hold = cache.read_filter(self.filters, self.finder, filter, codes)?;
        cache.pass_rate().note(may_hold);
        Ok(may_hold)
    }

    /// Asks for the pages of lanes that are read next. Filters come first: they tell which blocks are needed. Where
    /// they have told little lately, the blocks alone are half as many pages.
    fn read_ahead(&self, lanes: &mut [LaneRead<'_>], ranges: &[CodeRange]) -> Result<()> {
        let Some(finder) = self.finder else {
            return Ok(());
        };
        let codes = |lane: &LaneRead<'_>| -> Result<(u64, u64)> {
            let range = at(ranges, lane.index)?;
            Ok((range.low_code, range.high_code))
        };
        let cache = &self.context.cache;
        let is_filter_futile = cache.pass_rate().is_high();
        let mut pieces = Vec::new();
        for lane in &mut *lanes {
            if lane.verdict != FilterVerdict::NotHeld {
                continue;
            }
            if is_filter_futile {
                lane.verdict = FilterVerdict::MayHold;
                lane.is_unasked = true;
            } else {
                let filter = self.filter_of((lane.run, lane.lane))?;
                pieces.extend(filter.piece(codes(lane)?));
            }
        }
        cache.read_ahead(finder, &pieces);
        let mut blocks = Vec::new();
        for lane in lanes {
            let (low, high) = codes(lane)?;
            if lane.verdict == FilterVerdict::NotHeld {
                lane.verdict = match self.ask((lane.run, lane.lane), (low, high))? {
                    true => FilterVerdict::MayHold,
                    false => FilterVerdict::RuledOut,
                };
            }
            let target = Posting::lowest_of(low).max(lane.lane.first_possible());
            let (run, number) = (lane.run.run, lane.lane.lane);
            if lane.verdict != FilterVerdict::RuledOut && !cache.blocks().holds(run, number, target)
            {
                blocks.push(RunRow::block(self.table.name(), (run, number), target));
            }
        }
        cache.read_ahead(finder, &blocks);
        Ok(())
    }

    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) if there is none.
    fn filter_of(&self, (run, lane): (&RunDescriptor, &LaneSummary)) -> Result<FilterOf> {
        let buckets = self.context.lanes.bucket_bits(lane.lane);
        filter_of((run, lane), buckets).or_bug("a filter that was asked")
    }

    fn lane<'r>(&self, run: &RunDescriptor, summary: &'r LaneSummary) -> LaneRef<'r> {
        LaneRef {
            table_name: self.table.name(),
            run: run.run,
            summary,
        }
    }
}

/// Asks whether a lane of a run may hold codes, as far as that can be told without waiting for memory.
fn question_of<'r>(
    filters: RunFilters<'r>,
    (run, lane): (&RunDescriptor, &LaneSummary),
    buckets: BucketBits,
    codes: (u64, u64),
) -> FilterQuestion<'r> {
    if let Some(after) = lane.after.filter(|after| codes.0 < after.code) {
        // Postings up to here have moved into the merge's output, and the pieces of the filter with them.
        return FilterQuestion::Decided(match codes.1 >= after.code {
            true => FilterVerdict::MayHold,
            false => FilterVerdict::RuledOut,
        });
    }
    match filter_of((run, lane), buckets).filter(|_| !run.is_growing(lane.lane)) {
        Some(filter) => filters.question(&filter, codes),
        None => FilterQuestion::Decided(FilterVerdict::MayHold),
    }
}

fn filter_of((run, lane): (&RunDescriptor, &LaneSummary), buckets: BucketBits) -> Option<FilterOf> {
    Some(FilterOf {
        run: run.run,
        lane: lane.lane,
        shape: lane.filter?,
        buckets,
    })
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
