//! Probes and sweeps of runs.

use crate::engine::ReadableTable;
use crate::error::Result;
use crate::format::{LaneSummary, RunDescriptor};
use crate::index::{
    CodeRange, FilterOf, FilterReader, ProbeCost, ProbeRange, VisitProbe, probe_lane_while,
    sweep_lane,
};
use crate::invariant::at;
use crate::lanes::BucketBits;
use crate::read::view::{PostingTable, Visit};
use crate::state::{RunSet, SharedContext};

/// The tables that probes read of runs.
pub(crate) struct ProbeTables<'t, B, F> {
    pub(crate) context: &'t SharedContext,
    pub(crate) table: PostingTable,
    pub(crate) blocks: &'t B,
    pub(crate) filters: &'t F,
}

/// What the filters in memory say of a lane of a run.
#[derive(Clone, Copy)]
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
        let reader = context.filters.reader();
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
            context
                .reads
                .add_probe(self.cost.blocks, self.cost.ruled_out);
        }
        self.lanes.is_empty()
    }
}

impl<B, F> ProbeTables<'_, B, F>
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
        let mut cost = plan.cost;
        let mut last_run = None;
        for lane_read in plan.lanes {
            let LaneRead {
                run, lane, index, ..
            } = lane_read;
            if last_run
                .replace(run.run)
                .is_some_and(|last| last != run.run)
                && is_enough()?
            {
                break;
            }
            let range = at(ranges, index)?;
            let (low, high) = (range.low_code, range.high_code);
            if let FilterVerdict::Ask(filter) = lane_read.verdict
                && !self
                    .context
                    .filters
                    .read(self.filters, &filter, (low, high))?
            {
                cost.ruled_out += 1;
                continue;
            }
            let visit = &mut |posting| visit(index, posting);
            let name = self.table.name();
            let read = probe_lane_while(self.blocks, name, run.run, lane, low, high, visit)?;
            cost.blocks += read.blocks;
        }
        if last_run.is_some() {
            is_enough()?;
        }
        self.context.reads.add_probe(cost.blocks, cost.ruled_out);
        Ok(())
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
            let name = self.table.name();
            let read = sweep_lane(self.blocks, name, run.run, summary, &held, visit)?;
            cost.blocks += read.blocks;
        }
        self.context.reads.add_probe(cost.blocks, cost.ruled_out);
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
            let reader = self.context.filters.reader();
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
        let filters = &self.context.filters;
        let answer = filters.reader().may_hold(filter, codes);
        match answer {
            Some(answer) => Ok(answer),
            None => filters.read(self.filters, filter, codes),
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
