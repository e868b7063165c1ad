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
use crate::read::view::{PostingTable, Visit};
use crate::state::{RunSet, SharedContext};
use resemblance_sketch::lanes::BucketBits;

/// Reads the tables of runs for probes and sweeps. A table is opened when something is read from it: most that probes
/// ask for is in memory.
pub(crate) trait RunReader {
    type Blocks: ReadableTable<&'static [u8; 22], &'static [u8]>;
    type Filters: ReadableTable<&'static [u8; 10], &'static [u8]>;

    fn context(&self) -> &SharedContext;

    /// Returns the kind of lanes that are read.
    fn table(&self) -> PostingTable;

    /// Returns what asks for pages before they are read, and reads those whose places are known.
    fn finder(&self) -> Option<&PageFinder>;

    fn blocks(&self) -> Result<&Self::Blocks>;

    fn filters(&self) -> Result<&Self::Filters>;

    /// Probes runs for these ranges, the newest first, until it is enough.
    fn probe(
        &self,
        runs: &RunSet,
        ranges: &[CodeRange],
        visit: &mut Visit<'_>,
        is_enough: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<()> {
        let LaneReads {
            mut lanes,
            mut cost,
        } = LaneReads::of(self.context(), runs, ranges)?;
        let mut may_ask = self.finder().is_some();
        let mut found = Vec::new().into_iter();
        let mut begin = 0;
        // A copy of the current lane: reading ahead changes those that follow.
        while let Some(read) = lanes.get(begin).copied() {
            let before = begin.checked_sub(1).and_then(|before| lanes.get(before));
            let is_next_run = before.is_some_and(|before| before.lane.run.run != read.lane.run.run);
            // Between two runs alone: what one run holds of a document is seen as a whole.
            if is_next_run && is_enough()? {
                break;
            }
            let first = match found.next() {
                Some(first) => first,
                None => {
                    // Few at a time: fetched data must still be in the processor's cache when its
                    // lane is read.
                    let next = lanes.iter().skip(begin).take(FOUND_TOGETHER);
                    found = self.find_first_blocks(next, ranges)?.into_iter();
                    found.next().or_bug("where the next lane begins")?
                }
            };
            begin += 1;
            let range = at(ranges, read.index)?;
            // The clock is read only where the answer can still change something.
            let began = (may_ask && !first.is_held()).then(Instant::now);
            let is_from_file = self.read_lane(&read, first, range, visit, &mut cost)?;
            let is_slow = began.is_some_and(|began| began.elapsed() >= SLOW_READ);
            if is_from_file && is_slow {
                may_ask = false;
                let next = lanes.get_mut(begin..);
                self.read_ahead(next.or_bug("the lanes to read next")?, ranges)?;
            }
        }
        // Between runs it is asked before the next one. A caller that processes postings when it is
        // asked has not processed the last run yet.
        if begin > 0 {
            is_enough()?;
        }
        add_cost(self.context(), cost);
        Ok(())
    }

    /// Finds the blocks in memory with which probes of lanes begin.
    fn find_first_blocks<'r>(
        &self,
        reads: impl Iterator<Item = &'r LaneRead<'r>>,
        ranges: &[CodeRange],
    ) -> Result<Vec<FirstBlock>> {
        let mut probes = Vec::with_capacity(ranges.len());
        for read in reads {
            let low_code = at(ranges, read.index)?.low_code;
            // A filter that must be read first may yet rule the lane out.
            let may_hold = read.verdict == FilterVerdict::MayHold;
            probes.push(may_hold.then(|| (read.lane.in_table(self.table()), low_code)));
        }
        FirstBlock::find_all(self.sources(), &probes)
    }

    fn sources(&self) -> BlockSources<'_> {
        self.context().cache.sources(self.finder())
    }

    /// Probes a lane of a run. Returns true if a filter or a block may have come from the file.
    fn read_lane(
        &self,
        read: &LaneRead<'_>,
        first: FirstBlock,
        range: &CodeRange,
        visit: &mut Visit<'_>,
        cost: &mut ProbeCost,
    ) -> Result<bool> {
        let has_asked = read.verdict == FilterVerdict::NotHeld;
        if !self.may_hold(&read.lane, read.verdict, range.low_code, range.high_code)? {
            cost.ruled_out += 1;
            return Ok(has_asked);
        }
        // A filter passes everything in the bucket, near or not.
        let range = &CodeRange {
            near: range.near.filter(|_| !read.is_unasked),
            ..*range
        };
        let mut is_found = false;
        let visit = &mut |posting| {
            is_found = true;
            visit(read.index, posting)
        };
        let lane = read.lane.in_table(self.table());
        let of_lane =
            probe_lane_while(lane, first, || self.blocks(), self.sources(), range, visit)?;
        cost.add(of_lane);
        if read.is_unasked {
            self.context().cache.pass_rate().note(is_found);
        }
        Ok(has_asked || of_lane.cached_blocks < of_lane.blocks)
    }

    /// Sweeps a lane of runs, one after the other.
    fn sweep(
        &self,
        runs: &RunSet,
        lane: u16,
        wanted: &[ProbeRange],
        visit: &mut VisitProbe<'_>,
    ) -> Result<()> {
        let mut cost = ProbeCost::default();
        let buckets = self.context().lanes.bucket_bits(lane);
        for run in runs.descriptors() {
            let Some(lane) = RunLane::of(run, lane, buckets) else {
                continue;
            };
            let held = self.may_be_held(&lane, wanted)?;
            cost.ruled_out += (wanted.len() - held.len()) as u64;
            let of = lane.in_table(self.table());
            cost.add(sweep_lane(
                of,
                || self.blocks(),
                self.sources(),
                &held,
                visit,
            )?);
        }
        add_cost(self.context(), cost);
        Ok(())
    }

    /// Returns those of `wanted` that a lane of a run may contain.
    fn may_be_held(&self, lane: &RunLane<'_>, wanted: &[ProbeRange]) -> Result<Vec<ProbeRange>> {
        let verdicts = {
            // The lock of the filters in memory ends here: those that are not held are read without it.
            let filters = self.context().cache.filters();
            let of_run = filters.of_run(lane.run.run);
            let ask =
                |wanted: &ProbeRange| lane.question(of_run, wanted.low_code, wanted.high_code);
            let mut questions: Vec<FilterQuestion<'_>> = wanted.iter().map(ask).collect();
            FilterQuestion::decide_all(&mut questions)?;
            let verdicts = questions.into_iter().map(FilterQuestion::verdict);
            verdicts.collect::<Result<Vec<_>>>()?
        };
        let mut held = Vec::with_capacity(wanted.len());
        for (wanted, verdict) in wanted.iter().zip(verdicts) {
            if self.may_hold(lane, verdict, wanted.low_code, wanted.high_code)? {
                held.push(*wanted);
            }
        }
        Ok(held)
    }

    /// Returns the answer of a verdict, or of the filter if it must be asked.
    fn may_hold(
        &self,
        lane: &RunLane<'_>,
        verdict: FilterVerdict,
        low: u64,
        high: u64,
    ) -> Result<bool> {
        match verdict {
            FilterVerdict::RuledOut => Ok(false),
            FilterVerdict::MayHold => Ok(true),
            FilterVerdict::NotHeld => self.ask(lane, low, high),
        }
    }

    /// Asks a filter, and reads its piece unless it is held: a neighbour may have read it just now.
    fn ask(&self, lane: &RunLane<'_>, low: u64, high: u64) -> Result<bool> {
        let cache = &self.context().cache;
        let filter = &lane.filter().or_bug("a filter that was asked")?;
        match cache.filters().ask(filter, low, high)? {
            FilterVerdict::RuledOut => return Ok(false),
            FilterVerdict::MayHold => return Ok(true),
            FilterVerdict::NotHeld => {}
        }
        // The lock is free while the file is read: other threads continue with the data in memory.
        let may_hold = cache.read_filter(|| self.filters(), self.finder(), filter, low, high)?;
        cache.pass_rate().note(may_hold);
        Ok(may_hold)
    }

    /// Requests the pages of lanes that are read next. Filters are first, because they show which
    /// blocks are needed. If they have excluded little lately, the blocks alone are half as many
    /// pages.
    fn read_ahead(&self, reads: &mut [LaneRead<'_>], ranges: &[CodeRange]) -> Result<()> {
        let Some(finder) = self.finder() else {
            return Ok(());
        };
        let cache = &self.context().cache;
        let is_filter_futile = cache.pass_rate().is_high();
        let mut pieces = Vec::new();
        for read in &mut *reads {
            if read.verdict != FilterVerdict::NotHeld {
                continue;
            }
            if is_filter_futile {
                read.verdict = FilterVerdict::MayHold;
                read.is_unasked = true;
            } else {
                let range = at(ranges, read.index)?;
                let filter = read.lane.filter().or_bug("a filter that was not held")?;
                pieces.extend(filter.piece(range.low_code, range.high_code));
            }
        }
        // All pages are requested before the first is needed: a disk reads them side by side.
        cache.read_ahead(finder, &pieces);
        let mut blocks = Vec::new();
        for read in reads {
            let CodeRange {
                low_code,
                high_code,
                ..
            } = *at(ranges, read.index)?;
            if !self.may_hold(&read.lane, read.verdict, low_code, high_code)? {
                read.verdict = FilterVerdict::RuledOut;
                continue;
            }
            read.verdict = FilterVerdict::MayHold;
            let summary = read.lane.summary;
            let target = Posting::lowest_of(low_code).max(summary.first_possible());
            let (run, number) = (read.lane.run.run, summary.lane);
            if !cache.blocks().holds(run, number, target) {
                blocks.push(RunRow::block(self.table().name(), (run, number), target));
            }
        }
        cache.read_ahead(finder, &blocks);
        Ok(())
    }
}

/// A read that takes this long came from disk, and so will the next blocks.
const SLOW_READ: Duration = match cfg!(test) {
    true => Duration::ZERO,
    false => Duration::from_micros(40),
};

/// The number of lanes whose first blocks are looked for in memory together: what they read fits
/// the processor's nearest cache.
const FOUND_TOGETHER: usize = if cfg!(test) { 3 } else { 32 };

/// The lanes to read, run by run, the newest first.
struct LaneReads<'r> {
    lanes: Vec<LaneRead<'r>>,
    cost: ProbeCost,
}

/// A lane of a run, which has postings.
#[derive(Clone, Copy)]
pub(crate) struct RunLane<'r> {
    run: &'r RunDescriptor,
    summary: &'r LaneSummary,
    buckets: BucketBits,
}

impl<'r> RunLane<'r> {
    fn of(run: &'r RunDescriptor, lane: u16, buckets: BucketBits) -> Option<Self> {
        let summary = run.lane(lane).filter(|summary| summary.postings > 0)?;
        Some(Self {
            run,
            summary,
            buckets,
        })
    }

    fn filter(&self) -> Option<FilterOf> {
        Some(FilterOf {
            run: self.run.run,
            lane: self.summary.lane,
            shape: self.summary.filter?,
            buckets: self.buckets,
        })
    }

    /// Prepares the question whether the lane may contain codes, as far as it can be decided
    /// without waiting for memory.
    fn question<'f>(&self, filters: RunFilters<'f>, low: u64, high: u64) -> FilterQuestion<'f> {
        if let Some(after) = self.summary.after.filter(|after| low < after.code) {
            // Postings up to here have moved into the merge's output, and the pieces of the filter with them.
            return FilterQuestion::Decided(match high >= after.code {
                true => FilterVerdict::MayHold,
                false => FilterVerdict::RuledOut,
            });
        }
        match self
            .filter()
            .filter(|_| !self.run.is_growing(self.summary.lane))
        {
            Some(filter) => filters.question(&filter, low, high),
            None => FilterQuestion::Decided(FilterVerdict::MayHold),
        }
    }

    fn in_table(&self, table: PostingTable) -> LaneRef<'r> {
        LaneRef {
            table_name: table.name(),
            run: self.run.run,
            summary: self.summary,
        }
    }
}

/// A lane of a run that has to be read for a range.
#[derive(Clone, Copy)]
pub(crate) struct LaneRead<'r> {
    lane: RunLane<'r>,
    /// The index of the range.
    index: usize,
    verdict: FilterVerdict,
    /// True if the filter is on the disk, as the block is, and is not asked: such filters have ruled out little lately.
    is_unasked: bool,
}

impl<'r> LaneReads<'r> {
    /// Plans the reads for these ranges. All filters in memory are asked under one lock.
    fn of(context: &SharedContext, runs: &'r RunSet, ranges: &[CodeRange]) -> Result<Self> {
        let buckets = |range: &CodeRange| context.lanes.bucket_bits(range.lane);
        let buckets: Vec<BucketBits> = ranges.iter().map(buckets).collect();
        let reader = context.cache.filters();
        let count = ranges.len() * runs.descriptors().count();
        let mut asked = Vec::with_capacity(count);
        let mut questions = Vec::with_capacity(count);
        // The newest first: a document that replaced another is in a later run, and a caller who finds it has enough.
        for run in runs.descriptors().rev() {
            let filters = reader.of_run(run.run);
            for (index, (range, buckets)) in ranges.iter().zip(&buckets).enumerate() {
                if let Some(lane) = RunLane::of(run, range.lane, *buckets) {
                    asked.push((lane, index));
                    questions.push(lane.question(filters, range.low_code, range.high_code));
                }
            }
        }
        let mut plan = Self {
            lanes: Vec::new(),
            cost: ProbeCost::default(),
        };
        // Together, so that the processor fetches the memory of many filters in the time of one.
        FilterQuestion::decide_all(&mut questions)?;
        for ((lane, index), question) in asked.into_iter().zip(questions) {
            match question.verdict()? {
                FilterVerdict::RuledOut => plan.cost.ruled_out += 1,
                verdict => plan.lanes.push(LaneRead {
                    lane,
                    index,
                    verdict,
                    is_unasked: false,
                }),
            }
        }
        Ok(plan)
    }
}

fn add_cost(context: &SharedContext, cost: ProbeCost) {
    let count = &context.counters.count;
    count.blocks_read.add(cost.blocks);
    count.cached_blocks_read.add(cost.cached_blocks);
    count.lanes_ruled_out.add(cost.ruled_out);
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
