//! Probes and sweeps of runs.

use std::time::{Duration, Instant};

use crate::engine::{ReadableTable, Readahead, WantedRow};
use crate::error::Result;
use crate::format::{FILTERS, LaneSummary, Posting, RunDescriptor, block_key};
use crate::index::{
    CodeRange, FilterOf, FilterReader, LaneRef, ProbeCost, ProbeRange, VisitProbe,
    probe_lane_while, sweep_lane,
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
    /// Asks for pages before they are read.
    pub(crate) readahead: Option<&'t Readahead>,
    pub(crate) blocks: &'t dyn Fn() -> Result<&'t B>,
    pub(crate) filters: &'t dyn Fn() -> Result<&'t F>,
}

/// What takes as long to read came from a disk, and the next blocks will.
const SLOW_READ: Duration = Duration::from_micros(40);

/// What the filters in memory say of a lane of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FilterVerdict {
    /// It does not hold the codes.
    RuledOut,
    /// It may.
    MayHold,
    /// Its filter has to be read.
    Ask(FilterOf),
}

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
}

impl<'r> LaneReads<'r> {
    /// Plans the reads for these ranges. All filters in memory are asked under one lock.
    pub(crate) fn of(context: &SharedContext, runs: &'r RunSet, ranges: &[CodeRange]) -> Self {
        let buckets = |range: &CodeRange| context.lanes.bucket_bits(range.lane);
        let buckets: Vec<BucketBits> = ranges.iter().map(buckets).collect();
        let reader = context.cache.filters();
        let mut plan = Self {
            lanes: Vec::new(),
            cost: ProbeCost::default(),
        };
        for run in runs.descriptors().rev() {
            for (index, (range, buckets)) in ranges.iter().zip(&buckets).enumerate() {
                let Some(lane) = run.lane(range.lane).filter(|lane| lane.postings > 0) else {
                    continue;
                };
                let codes = (range.low_code, range.high_code);
                match verdict(&reader, (run, lane), *buckets, codes) {
                    FilterVerdict::RuledOut => plan.cost.ruled_out += 1,
                    verdict => plan.lanes.push(LaneRead {
                        run,
                        lane,
                        index,
                        verdict,
                    }),
                }
            }
        }
        plan
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
        let mut last_run = None;
        let mut may_ask = self.readahead.is_some();
        for place in 0..lanes.len() {
            let lane = *at(&lanes, place)?;
            let run = lane.run.run;
            if last_run.replace(run).is_some_and(|last| last != run) && is_enough()? {
                break;
            }
            let range = at(ranges, lane.index)?;
            let began = may_ask.then(Instant::now);
            let is_from_file = self.read_lane(&lane, range, visit, &mut cost)?;
            let is_slow = began.is_some_and(|began| began.elapsed() >= SLOW_READ);
            if is_from_file && is_slow {
                may_ask = false;
                let next = lanes.get_mut(place + 1..);
                self.read_ahead(next.or_bug("the lanes to read next")?, ranges)?;
            }
        }
        if last_run.is_some() {
            is_enough()?;
        }
        add_cost(self.context, cost);
        Ok(())
    }

    /// Probes a lane of a run. Returns true if a filter or a block may have come from the file.
    fn read_lane(
        &self,
        lane: &LaneRead<'_>,
        range: &CodeRange,
        visit: &mut Visit<'_>,
        cost: &mut ProbeCost,
    ) -> Result<bool> {
        let codes = (range.low_code, range.high_code);
        let (may_hold, has_asked) = match &lane.verdict {
            FilterVerdict::RuledOut => (false, false),
            FilterVerdict::MayHold => (true, false),
            FilterVerdict::Ask(filter) => (self.ask(filter, codes)?, true),
        };
        if !may_hold {
            cost.ruled_out += 1;
            return Ok(has_asked);
        }
        let visit = &mut |posting| visit(lane.index, posting);
        let cache = self.context.cache.blocks();
        let read = probe_lane_while(
            self.lane(lane.run, lane.lane),
            self.blocks,
            cache,
            codes,
            visit,
        )?;
        cost.add(read);
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
            let cache = self.context.cache.blocks();
            cost.add(sweep_lane(lane, self.blocks, cache, &held, visit)?);
        }
        add_cost(self.context, cost);
        Ok(())
    }

    /// Returns those of `wanted` that a lane of a run may hold.
    fn may_be_held(
        &self,
        of: (&RunDescriptor, &LaneSummary),
        buckets: BucketBits,
        wanted: &[ProbeRange],
    ) -> Result<Vec<ProbeRange>> {
        let codes = |wanted: &ProbeRange| (wanted.low_code, wanted.high_code);
        let verdicts: Vec<FilterVerdict> = {
            let reader = self.context.cache.filters();
            let verdicts = wanted.iter();
            let verdicts = verdicts.map(|wanted| verdict(&reader, of, buckets, codes(wanted)));
            verdicts.collect()
        };
        let mut held = Vec::with_capacity(wanted.len());
        for (wanted, verdict) in wanted.iter().zip(verdicts) {
            let may_hold = match verdict {
                FilterVerdict::RuledOut => false,
                FilterVerdict::MayHold => true,
                FilterVerdict::Ask(filter) => self.ask(&filter, codes(wanted))?,
            };
            if may_hold {
                held.push(*wanted);
            }
        }
        Ok(held)
    }

    /// Asks a filter, and reads its piece unless it is held: a neighbour may have read it just now.
    fn ask(&self, filter: &FilterOf, codes: (u64, u64)) -> Result<bool> {
        let cache = &self.context.cache;
        let answer = cache.filters().may_hold(filter, codes);
        match answer {
            Some(answer) => Ok(answer),
            None => cache.read_filter((self.filters)()?, filter, codes),
        }
    }

    /// Asks for the pages of lanes that are read next. Filters come first: they tell which blocks are needed.
    fn read_ahead(&self, lanes: &mut [LaneRead<'_>], ranges: &[CodeRange]) -> Result<()> {
        let Some(readahead) = self.readahead else {
            return Ok(());
        };
        let codes = |lane: &LaneRead<'_>| -> Result<(u64, u64)> {
            let range = at(ranges, lane.index)?;
            Ok((range.low_code, range.high_code))
        };
        let mut pieces = Vec::new();
        for lane in &*lanes {
            if let FilterVerdict::Ask(filter) = lane.verdict {
                pieces.extend(filter.key(codes(lane)?).map(|key| WantedRow {
                    table: FILTERS,
                    key: key.to_vec(),
                }));
            }
        }
        readahead.ask(&pieces);
        let mut blocks = Vec::new();
        for lane in lanes {
            let (low, high) = codes(lane)?;
            if let FilterVerdict::Ask(filter) = lane.verdict {
                lane.verdict = match self.ask(&filter, (low, high))? {
                    true => FilterVerdict::MayHold,
                    false => FilterVerdict::RuledOut,
                };
            }
            let target = Posting::lowest_of(low).max(lane.lane.first_possible());
            let (run, number) = (lane.run.run, lane.lane.lane);
            if lane.verdict == FilterVerdict::MayHold
                && !self.context.cache.blocks().holds(run, number, target)
            {
                blocks.push(WantedRow {
                    table: self.table.name(),
                    key: block_key(run, number, target).to_vec(),
                });
            }
        }
        readahead.ask(&blocks);
        Ok(())
    }

    fn lane<'r>(&self, run: &RunDescriptor, summary: &'r LaneSummary) -> LaneRef<'r> {
        LaneRef {
            table_name: self.table.name(),
            run: run.run,
            summary,
        }
    }
}

/// Asks the filters in memory about a lane of a run.
fn verdict(
    reader: &FilterReader<'_>,
    (run, lane): (&RunDescriptor, &LaneSummary),
    buckets: BucketBits,
    codes: (u64, u64),
) -> FilterVerdict {
    if let Some(after) = lane.after.filter(|after| codes.0 < after.code) {
        // Postings up to here have moved into the merge's output, and the pieces of the filter with them.
        return if codes.1 >= after.code {
            FilterVerdict::MayHold
        } else {
            FilterVerdict::RuledOut
        };
    }
    let Some(shape) = lane.filter.filter(|_| !run.is_growing(lane.lane)) else {
        return FilterVerdict::MayHold;
    };
    let filter = FilterOf {
        run: run.run,
        lane: lane.lane,
        shape,
        buckets,
    };
    match reader.may_hold(&filter, codes) {
        Some(true) => FilterVerdict::MayHold,
        Some(false) => FilterVerdict::RuledOut,
        None => FilterVerdict::Ask(filter),
    }
}
