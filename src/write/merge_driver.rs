//! Merges: begun when runs are due, advanced by what commits bring, ended in some later commit.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::engine::RUNS;
use crate::error::{Error, Result};
use crate::format::{FilterShape, LaneSummary, RunDescriptor, encode_run};
use crate::index::{LaneMerge, MergeBudget, MergePlan, Pace, RunTables, plan};
use crate::lanes::LaneRole;
use crate::read::PostingTable;
use crate::state::{MergeDrops, Run};
use crate::write::run_tables::run_tables;
use crate::write::writer::Writer;

/// Below so many postings a second thread takes longer to begin than it saves.
const LEAST_IN_PARALLEL: u64 = 16_384;

/// How many input blocks a merge holds decoded.
const STEP_BLOCKS: usize = 64;

/// A run with less than this share of all documents has filters in the lanes of bands and tables. The
/// largest runs have most hits, and filters of theirs would not stay in the cache.
const FILTERED_SHARE: u64 = 4;

/// Bits of a filter a posting.
const FILTER_BITS: u64 = 10;
/// In the key lane, where most look-ups find nothing.
pub(crate) const KEY_FILTER_BITS: u64 = 12;

/// A merge as it advances: copies, which take the places of the originals at the end.
struct Advance {
    output: RunDescriptor,
    inputs: Vec<RunDescriptor>,
    dropped: MergeDrops,
}

impl Writer {
    /// Notes that a document came or went, which merges have to keep up with.
    pub(crate) fn note_moved(&mut self) -> Result<()> {
        self.state.count_moved(self.store.context.lanes.count())
    }

    /// Begins the merges that are due, and advances those under way by what has moved. One that ends
    /// may make another one due, which gets what the former has left.
    pub(crate) fn merge(&mut self) -> Result<()> {
        let mut left = self.state.postings_moved.saturating_sub(self.merged_up_to);
        self.merged_up_to = self.state.postings_moved;
        loop {
            self.begin_merges(left)?;
            let ended = self.keep_up()?;
            if ended == 0 {
                return Ok(());
            }
            left = left.saturating_sub(ended);
        }
    }

    /// Advances each merge that is behind by a slice, or can be ended. How many postings those that
    /// have ended were behind.
    fn keep_up(&mut self) -> Result<u64> {
        let mut worked_off = 0;
        for output in self.runs.outputs.clone() {
            let moved = self.state.postings_moved.saturating_sub(output.kept_up_to);
            let pace = Pace::of(output.level, output.inputs.len());
            let behind = pace.postings(moved);
            let inputs = self.runs.inputs(&output).unwrap_or_default();
            let rest = inputs.iter().fold(self.rows_left(&output), |rest, run| {
                rest.saturating_add(run.descriptor.postings())
            });
            let slice = self.store.context.options.merge_slice_postings;
            if behind < slice.min(rest) {
                continue;
            }
            if self.advance_merge(&output, behind)? {
                worked_off = u64::saturating_add(worked_off, pace.moved(rest).max(1));
            }
        }
        Ok(worked_off)
    }

    /// Begins all merges that are due, so many postings behind.
    fn begin_merges(&mut self, behind: u64) -> Result<()> {
        while let Some(plan) = plan(&self.runs.shapes(), &self.runs.merges()) {
            self.begin_merge(&plan, behind)?;
        }
        Ok(())
    }

    /// Begins the merge of neighbouring runs, none of which is being merged.
    pub(crate) fn begin_merge(&mut self, plan: &MergePlan, behind: u64) -> Result<()> {
        let run = self.state.take_run_number()?;
        let inputs: Vec<&Arc<Run>> = plan
            .runs
            .iter()
            .filter_map(|run| self.runs.run(*run))
            .collect();
        let (Some(first), Some(last)) = (inputs.first(), inputs.last()) else {
            return Ok(());
        };
        let mut output = RunDescriptor {
            run,
            level: plan.level,
            first_id: first.descriptor.first_id,
            last_id: last.descriptor.last_id,
            documents: 0,
            inputs: plan.runs.clone(),
            kept_up_to: self.state.postings_moved.saturating_sub(behind),
            rows_from: None,
            lanes: Vec::new(),
        };
        let dropped = self.dead.set.dropped(&range_of(&output));
        let first_dropped = dropped.first_from(output.first_id);
        output.rows_from = first_dropped.filter(|id| *id <= output.last_id);
        let inputs: Vec<RunDescriptor> = inputs.iter().map(|run| run.descriptor.clone()).collect();
        output.lanes.push(self.new_lane(0, &inputs));
        self.write_descriptor(&output)?;
        self.note_merge_begun(&output);
        self.runs.outputs.push(Arc::new(output));
        self.mark_changed();
        Ok(())
    }

    /// A lane of an output, with nothing in it yet.
    fn new_lane(&self, lane: u16, inputs: &[RunDescriptor]) -> LaneSummary {
        let documents = inputs.iter().map(|run| run.documents).sum();
        let of_lane = inputs.iter().filter_map(|run| run.lane(lane));
        let postings = of_lane.map(|summary| summary.postings).sum();
        LaneSummary {
            filter: self.filter_shape(lane, postings, documents),
            ..LaneSummary::empty(lane)
        }
    }

    /// What the filter of a lane of a run is to be: of so many postings, in a run of so many documents.
    pub(crate) fn filter_shape(
        &self,
        lane: u16,
        postings: u64,
        documents: u64,
    ) -> Option<FilterShape> {
        let lanes = &self.store.context.lanes;
        if postings == 0 {
            return None;
        }
        let is_small = documents.saturating_mul(FILTERED_SHARE) < self.state.documents;
        match lanes.roles().nth(lane.into())? {
            LaneRole::Key => Some(FilterShape::of(postings, KEY_FILTER_BITS)),
            LaneRole::Band(_) => is_small.then(|| FilterShape::of(postings, FILTER_BITS)),
            LaneRole::Table(_) => {
                // Where most buckets have a document, a filter would let most probes pass.
                let length = u32::from(lanes.bucket_bits(lane).length);
                let buckets = 1u64.checked_shl(length).unwrap_or(u64::MAX);
                let is_sparse = buckets / 4 >= documents;
                (is_small && is_sparse).then(|| FilterShape::of(postings, FILTER_BITS))
            }
        }
    }

    /// Advances each merge under way by about so many postings.
    pub(crate) fn advance_merges(&mut self, postings: u64) -> Result<()> {
        for output in self.runs.outputs.clone() {
            self.advance_merge(&output, postings)?;
        }
        Ok(())
    }

    /// Advances a merge by about so many postings; whether it has ended.
    fn advance_merge(&mut self, output: &Arc<RunDescriptor>, postings: u64) -> Result<bool> {
        let inputs = self.runs.inputs(output).ok_or_else(|| {
            let place = format!("table runs, run {}", output.run);
            Error::corrupt(place, "its inputs are not there (invariant 3)")
        })?;
        let mut advance = Advance {
            output: (**output).clone(),
            inputs: inputs.iter().map(|run| run.descriptor.clone()).collect(),
            dropped: self.dead.set.dropped(&range_of(output)),
        };
        advance.output.kept_up_to = self.state.postings_moved;
        self.mark_changed();
        self.has_written_runs = true;
        let rows = self.advance_rows(&mut advance.output, &advance.dropped, postings)?;
        let mut left = postings.saturating_sub(rows);
        while left > 0 {
            let (read, is_complete) = self.advance_lane(&mut advance, left)?;
            left = left.saturating_sub(read);
            if !is_complete {
                break;
            }
            let lanes = self.store.context.lanes.count();
            let next = advance.output.lanes.last().map_or(0, |last| last.lane + 1);
            if next >= lanes {
                self.end_merge(advance)?;
                return Ok(true);
            }
            let lane = self.new_lane(next, &advance.inputs);
            advance.output.lanes.push(lane);
        }
        self.put_off(advance)?;
        Ok(false)
    }

    /// Advances the lane that is being merged: how many postings were read, and whether it is complete.
    fn advance_lane(&self, advance: &mut Advance, postings: u64) -> Result<(u64, bool)> {
        let Advance {
            output,
            inputs,
            dropped,
        } = advance;
        let run = output.run;
        let Some(summary) = output.lanes.last_mut() else {
            return Ok((0, true));
        };
        let (lane, blocks) = (summary.lane, summary.blocks);
        let lanes = &self.store.context.lanes;
        let role = lanes.roles().nth(lane.into()).unwrap_or(LaneRole::Key);
        let mut tables = self.run_tables(PostingTable::of(role))?;
        let of_lane = inputs
            .iter()
            .filter_map(|input| Some((input.run, *input.lane(lane)?)));
        let buckets = lanes.bucket_bits(lane);
        let mut merge = LaneMerge::new(&tables, buckets, of_lane, (run, *summary))?;
        let options = &self.store.context.options;
        let budget = MergeBudget {
            postings,
            blocks: STEP_BLOCKS,
            is_parallel: options.merges_in_parallel
                && postings.min(merge.unread())
                    >= LEAST_IN_PARALLEL.min(options.merge_slice_postings),
        };
        let is_dropped = |id| dropped.contains(id);
        let step = merge.advance(&mut tables, budget, &is_dropped)?;
        let of_lane = inputs
            .iter_mut()
            .filter_map(|input| input.lanes.iter_mut().find(|summary| summary.lane == lane));
        if step.is_last {
            *summary = merge.finish(&mut tables)?;
            of_lane.for_each(|summary| *summary = LaneSummary::empty(lane));
        } else {
            let (written, left) = merge.pause(&mut tables)?;
            *summary = written;
            of_lane
                .zip(left)
                .for_each(|(summary, left)| *summary = left);
        }
        self.note_merged(step.postings, summary.blocks.saturating_sub(blocks));
        Ok((step.postings, step.is_last))
    }

    /// Leaves the rest of a merge to a later slice.
    fn put_off(&mut self, advance: Advance) -> Result<()> {
        for descriptor in advance.inputs.iter().chain([&advance.output]) {
            self.write_descriptor(descriptor)?;
        }
        for descriptor in advance.inputs {
            let run = descriptor.run;
            let standing = &mut self.runs.standing;
            if let Some(run) = standing
                .iter_mut()
                .find(|other| other.descriptor.run == run)
            {
                Arc::make_mut(run).descriptor = descriptor;
            }
        }
        let output = advance.output;
        let outputs = &mut self.runs.outputs;
        if let Some(place) = outputs.iter_mut().find(|other| other.run == output.run) {
            *place = Arc::new(output);
        }
        Ok(())
    }

    /// Puts the output in the place of the inputs, and forgets the dead that have been dropped.
    fn end_merge(&mut self, advance: Advance) -> Result<()> {
        let mut output = advance.output;
        {
            let mut runs = self.write()?.open_table(RUNS)?;
            for input in advance
                .inputs
                .iter()
                .map(|input| input.run)
                .chain([output.run])
            {
                runs.remove(input)?;
            }
        }
        let inputs = std::mem::take(&mut output.inputs);
        let runs = &mut self.runs;
        runs.standing
            .retain(|run| !inputs.contains(&run.descriptor.run));
        runs.outputs.retain(|other| other.run != output.run);
        let (dropped, dead) = self.dead.end_merge(&range_of(&output));
        let documents: u64 = advance.inputs.iter().map(|run| run.documents).sum();
        output.documents = documents.saturating_sub(dropped);
        if output.postings() == 0 {
            // What has died since is filed nowhere, and no other merge would forget it.
            let since = self.dead.set.dropped(&range_of(&output));
            output.rows_from = Some(output.first_id);
            self.advance_rows(&mut output, &since, u64::MAX)?;
            self.dead.end_merge(&range_of(&output));
        }
        self.note_merge_ended(&output);
        self.add_run_unless_empty(output, dead)
    }

    /// The tables that runs are written to.
    pub(crate) fn run_tables(&self, table: PostingTable) -> Result<RunTables<'_>> {
        run_tables(self.write()?, table)
    }

    fn write_descriptor(&self, descriptor: &RunDescriptor) -> Result<()> {
        let row = encode_run(descriptor)?;
        let mut runs = self.write()?.open_table(RUNS)?;
        runs.insert(descriptor.run, row.as_slice())?;
        Ok(())
    }

    /// Adds a run to the table and to the list, in the place of its ids. Where all documents of its
    /// range are gone, or are filed nowhere, there is nothing to describe.
    pub(crate) fn add_run_unless_empty(
        &mut self,
        descriptor: RunDescriptor,
        dead: u64,
    ) -> Result<()> {
        if descriptor.postings() == 0 {
            return Ok(());
        }
        self.write_descriptor(&descriptor)?;
        self.runs.insert(Run { descriptor, dead });
        Ok(())
    }
}

fn range_of(run: &RunDescriptor) -> RangeInclusive<u64> {
    run.first_id..=run.last_id
}
