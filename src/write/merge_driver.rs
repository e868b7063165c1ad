//! The merge driver. It begins merges of runs when they are due, advances them in proportion to the
//! changes of commits, and ends them in a later commit.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::engine::{EngineResult, RUNS};
use crate::error::{Error, Result};
use crate::format::{LaneSummary, RunDescriptor, encode_run};
use crate::index::{LaneMerge, MergeBudget, MergePlan, Pace, RunTables, plan};
use crate::invariant::{OrBug, at, invariant};
use crate::observe::{MERGE, log as events};
use crate::read::PostingTable;
use crate::state::{MergeDrops, Run};
use crate::write::equal_notes::forget_dropped;
use crate::write::filter_policy::filter_shape;
use crate::write::flush::check_lanes_agree;
use crate::write::run_tables::run_tables;
use crate::write::writer::Writer;
use resemblance_sketch::lanes::LaneRole;

/// Number of input blocks that a merge holds decoded: some 16 of each input.
const STEP_BLOCKS: usize = 96;

/// A merge during one slice. The descriptors are copies, which replace those of the run set when the
/// slice is done: an error in between leaves the run set as it was.
struct Advance {
    output: RunDescriptor,
    inputs: Vec<RunDescriptor>,
    dropped: MergeDrops,
}

impl Writer {
    /// Counts the postings of a document that was inserted or deleted, which pace the merges: `kept` in the
    /// lane of kept hashes, and one in each other.
    pub(super) fn note_moved(&mut self, kept: u64) -> Result<()> {
        let lanes = self.store.context.lanes.single_count();
        self.state
            .count_moved(u64::from(lanes).saturating_add(kept))
    }

    /// Returns the mean number of kept hashes of the documents of the run at a position.
    pub(super) fn mean_kept(&self, position: usize) -> Result<u64> {
        let run = &at(&self.runs.current, position)?.descriptor;
        let lane = self.store.context.lanes.kept_lane();
        let kept = lane.and_then(|lane| run.lane(lane));
        Ok(kept.map_or(0, |summary| summary.postings / run.documents.max(1)))
    }

    /// Begins the merges that are due, and advances those under way in step with the postings that
    /// have moved since the last call. A merge that ends may make another one due, which gets the rest
    /// of its merge budget.
    pub(super) fn merge(&mut self) -> Result<()> {
        let moved = self.state.postings_moved.checked_sub(self.paced_up_to);
        let mut left = moved.or_bug("a count of moved postings that only rises")?;
        self.paced_up_to = self.state.postings_moved;
        loop {
            self.begin_merges(left)?;
            if self.leaves_merges()? {
                return Ok(());
            }
            let ended = self.pay_merge_debts()?;
            if ended == 0 {
                return Ok(());
            }
            // A merge that was begun before this transaction may have had more to do than `left`.
            left = left.saturating_sub(ended);
        }
    }

    /// Pays what merges owe if that is at least a slice, or enough to end a merge. Returns the
    /// number of moved postings that the ended merges represented.
    fn pay_merge_debts(&mut self) -> Result<u64> {
        let outputs = self.runs.outputs.iter().cloned();
        let (mut several, alone): (Vec<_>, Vec<_>) =
            outputs.partition(|output| output.inputs.len() > 1);
        let mut paid = 0_u64;
        for output in alone {
            let mut debt = Pace::ALONE.postings(self.moved_since(output.kept_up_to));
            paid = paid.saturating_add(self.pay_merge(&output, Pace::ALONE, &mut debt)?);
        }
        // Merges of several runs have one debt, so that the work of a commit on them does not
        // depend on how many of them are under way. The one that was advanced last has paid it up
        // to then. A file may claim that one merge is ahead: that does not affect the others.
        let paid_up_to = several
            .iter()
            .map(|output| output.kept_up_to)
            .filter(|paid| *paid <= self.state.postings_moved);
        let Some(paid_up_to) = paid_up_to.max() else {
            return Ok(paid);
        };
        let pace = Pace::together(several.len());
        let mut debt = pace.postings(self.moved_since(paid_up_to));
        // The small merges take most runs away.
        several.sort_by_key(|output| output.level);
        for output in several {
            paid = paid.saturating_add(self.pay_merge(&output, pace, &mut debt)?);
        }
        Ok(paid)
    }

    /// Returns how many postings have moved since the count had this value. A file may claim that a merge is
    /// ahead: it waits then.
    fn moved_since(&self, paid_up_to: u64) -> u64 {
        self.state.postings_moved.saturating_sub(paid_up_to)
    }

    /// Advances a merge by a debt, and subtracts what that pays. Returns 0 or, if the merge has
    /// ended, the number of moved postings that it represented.
    fn pay_merge(
        &mut self,
        output: &Arc<RunDescriptor>,
        pace: Pace,
        debt: &mut u64,
    ) -> Result<u64> {
        let inputs = self.inputs_of(output)?;
        // A file may claim more postings than there are numbers for.
        let rest = inputs.iter().fold(self.rows_left(output), |rest, run| {
            rest.saturating_add(run.descriptor.postings())
        });
        let slice = self.store.context.options.merge_slice_postings;
        if *debt == 0 || *debt < slice.min(rest) {
            return Ok(0);
        }
        let has_ended = self.advance_merge(output, *debt)?;
        if !has_ended {
            *debt = 0;
            return Ok(0);
        }
        *debt = debt.saturating_sub(rest);
        // At least 1, so that the caller looks for another merge that is due.
        Ok(pace.moved(rest).max(1))
    }

    /// Returns the runs that are merged into an output.
    fn inputs_of(&self, output: &RunDescriptor) -> Result<&[Arc<Run>]> {
        // Opening has checked those of the file.
        let inputs = self.runs.inputs(output);
        inputs.or_bug_with(|| format!("the runs that are merged into run {}", output.run))
    }

    /// Begins all merges that are due, with a debt of this many moved postings.
    fn begin_merges(&mut self, behind: u64) -> Result<()> {
        while let Some(plan) = plan(&self.runs.shapes(), &self.runs.merges()) {
            self.begin_merge(&plan, behind)?;
        }
        Ok(())
    }

    /// Begins the merge of neighbouring runs, none of which is being merged, with a debt of
    /// `behind` moved postings.
    pub(crate) fn begin_merge(&mut self, plan: &MergePlan, behind: u64) -> Result<()> {
        let run = self.state.take_run_number()?;
        let mut inputs: Vec<RunDescriptor> = Vec::with_capacity(plan.runs.len());
        for number in &plan.runs {
            let current = self.runs.run(*number);
            let run = current.or_bug_with(|| format!("run {number}, which is to be merged"))?;
            inputs.push(run.descriptor.clone());
        }
        let first_id = at(&inputs, 0)?.first_id;
        let last_id = at(&inputs, inputs.len() - 1)?.last_id;
        let kept_up_to = self.state.postings_moved.checked_sub(behind);
        let mut output = RunDescriptor {
            run,
            level: plan.level,
            first_id,
            last_id,
            documents: 0,
            inputs: plan.runs.clone(),
            kept_up_to: kept_up_to.or_bug("a debt of no more than has moved")?,
            rows_from: None,
            lanes: Vec::new(),
        };
        let dropped = self.deleted.set.dropped(&range_of(&output));
        let first_dropped = dropped.first_from(output.first_id);
        output.rows_from = first_dropped.filter(|id| *id <= output.last_id);
        output.lanes.push(self.new_lane(0, &inputs)?);
        self.write_descriptor(&output)?;
        self.counters.count.merges_begun.add(1);
        self.log_merge(format_args!(
            "run {run} begun, of level {}: a merge of runs {:?}",
            output.level, output.inputs
        ));
        self.runs.outputs.push(Arc::new(output));
        self.mark_changed();
        Ok(())
    }

    /// Returns the summary of a lane of an output, without postings yet.
    fn new_lane(&self, lane: u16, inputs: &[RunDescriptor]) -> Result<LaneSummary> {
        let documents = inputs.iter().map(|run| run.documents).sum();
        let of_lane = inputs.iter().filter_map(|run| run.lane(lane));
        let postings = of_lane.map(|summary| summary.postings).sum();
        Ok(LaneSummary {
            filter: filter_shape(
                &self.store.context,
                lane,
                postings,
                documents,
                self.state.documents,
            )?,
            ..LaneSummary::empty(lane)
        })
    }

    fn role_of(&self, lane: u16) -> Result<LaneRole> {
        let role = self.store.context.lanes.roles().nth(lane.into());
        role.or_bug_with(|| format!("the role of lane {lane}"))
    }

    /// Advances each merge under way by about this many postings.
    pub(crate) fn advance_merges(&mut self, postings: u64) -> Result<()> {
        for output in self.runs.outputs.clone() {
            self.advance_merge(&output, postings)?;
        }
        Ok(())
    }

    /// Advances a merge by about this many postings, and returns true if it has ended.
    fn advance_merge(&mut self, output: &Arc<RunDescriptor>, postings: u64) -> Result<bool> {
        let inputs = self.inputs_of(output)?;
        // All slices must drop the same documents, or one would lose its postings in only some
        // lanes. Documents that were deleted since the merge began have separate bits, and are not
        // in this set.
        let mut advance = Advance {
            output: (**output).clone(),
            inputs: inputs.iter().map(|run| run.descriptor.clone()).collect(),
            dropped: self.deleted.set.dropped(&range_of(output)),
        };
        // The slice pays the whole debt, so the next one is counted from here on.
        advance.output.kept_up_to = self.state.postings_moved;
        self.mark_changed();
        self.has_written_runs = true;
        let rows = self.advance_rows(&mut advance.output, &advance.dropped, postings)?;
        // Rows and postings are read in whole windows and blocks, which may exceed the budget: the
        // merge is that much ahead, and nothing is left for this slice.
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
            let lane = self.new_lane(next, &advance.inputs)?;
            advance.output.lanes.push(lane);
        }
        self.pause_merge(advance)?;
        Ok(false)
    }

    /// Advances the lane that is being merged. Returns the number of postings that were read, and true if
    /// the lane is complete.
    fn advance_lane(&self, advance: &mut Advance, postings: u64) -> Result<(u64, bool)> {
        let Advance {
            output,
            inputs,
            dropped,
        } = advance;
        let run = output.run;
        let lane = output.lanes.last_mut();
        let summary = lane.or_bug("a lane that is being merged")?;
        let (lane, blocks) = (summary.lane, summary.blocks);
        let lanes = &self.store.context.lanes;
        let mut tables = self.run_tables(PostingTable::of(self.role_of(lane)?))?;
        let lane_inputs = inputs
            .iter()
            .filter_map(|input| Some((input.run, *input.lane(lane)?)));
        let buckets = lanes.bucket_bits(lane);
        let mut merge = LaneMerge::new(&tables, buckets, lane_inputs, run, *summary)?;
        let options = &self.store.context.options;
        let budget = MergeBudget {
            postings,
            blocks: STEP_BLOCKS,
            is_parallel: options.is_in_parallel(postings.min(merge.unread())),
        };
        let is_dropped = |id| dropped.contains(id);
        let step = merge.advance(&mut tables, budget, &is_dropped)?;
        let mut input_lanes: Vec<&mut LaneSummary> = inputs
            .iter_mut()
            .filter_map(|input| input.lanes.iter_mut().find(|summary| summary.lane == lane))
            .collect();
        if step.is_last {
            *summary = merge.finish(&mut tables)?;
            for input_lane in input_lanes {
                *input_lane = LaneSummary::empty(lane);
            }
        } else {
            let (written, left) = merge.pause(&mut tables)?;
            *summary = written;
            invariant!(
                left.len() == input_lanes.len(),
                "run {run}, lane {lane}: {} inputs left of {}",
                left.len(),
                input_lanes.len()
            );
            for (input_lane, left) in input_lanes.iter_mut().zip(left) {
                **input_lane = left;
            }
        }
        let written = summary.blocks.checked_sub(blocks);
        let written_blocks = written.or_bug("an output that only grows")?;
        self.counters.count.merged_postings.add(step.postings);
        self.counters.count.merged_blocks.add(written_blocks);
        Ok((step.postings, step.is_last))
    }

    /// Leaves the rest of a merge to a later slice. Partly merged blocks remain with their input,
    /// whose summary records how far they are done.
    fn pause_merge(&mut self, advance: Advance) -> Result<()> {
        for descriptor in advance.inputs.iter().chain([&advance.output]) {
            self.write_descriptor(descriptor)?;
        }
        for descriptor in advance.inputs {
            let number = descriptor.run;
            let mut current = self.runs.current.iter_mut();
            let run = current
                .find(|other| other.descriptor.run == number)
                .or_bug_with(|| format!("run {number}, which is being merged"))?;
            Arc::make_mut(run).descriptor = descriptor;
        }
        let output = advance.output;
        let number = output.run;
        let mut outputs = self.runs.outputs.iter_mut();
        let paused = outputs
            .find(|other| other.run == number)
            .or_bug_with(|| format!("the merge into run {number}"))?;
        *paused = Arc::new(output);
        Ok(())
    }

    /// Replaces the inputs by the output, and clears the tombstones of the documents that were dropped.
    fn end_merge(&mut self, advance: Advance) -> Result<()> {
        let mut output = advance.output;
        {
            let mut runs = self.write()?.open_table(RUNS).engine()?;
            for run in output.inputs.iter().chain([&output.run]) {
                runs.remove(run).engine()?;
            }
        }
        let inputs = std::mem::take(&mut output.inputs);
        let runs = &mut self.runs;
        let before = (runs.current.len(), runs.outputs.len());
        runs.current
            .retain(|run| !inputs.contains(&run.descriptor.run));
        runs.outputs.retain(|other| other.run != output.run);
        let removed = (before.0 - runs.current.len(), before.1 - runs.outputs.len());
        invariant!(
            removed == (inputs.len(), 1),
            "the merge of runs {inputs:?} into run {} removed {removed:?}",
            output.run
        );
        let (dropped, deleted) = self.clear_tombstones(&output)?;
        let documents: u64 = advance.inputs.iter().map(|run| run.documents).sum();
        // The descriptors of the file have not been compared with its tombstones.
        let left = documents.checked_sub(dropped);
        output.documents = left.ok_or_else(|| {
            let place = format!("table runs, runs {inputs:?}");
            let detail =
                format!("found {documents} documents, expected the {dropped} deleted ones");
            Error::corrupt(place, detail)
        })?;
        self.has_dropped_runs = true;
        check_lanes_agree(&self.store.context.lanes, output.run, &output.lanes)?;
        if output.postings() == 0 {
            // Documents that were deleted since the merge began have no postings either, and no other
            // merge would clear their tombstones.
            let since = self.deleted.set.dropped(&range_of(&output));
            output.rows_from = Some(output.first_id);
            self.advance_rows(&mut output, &since, u64::MAX)?;
            self.clear_tombstones(&output)?;
        }
        self.counters.count.merges_ended.add(1);
        self.log_merge(format_args!(
            "run {} merged: {} documents, {} postings",
            output.run,
            output.documents,
            output.postings()
        ));
        self.add_run_unless_empty(output, deleted)
    }

    /// Clears the tombstones of the documents that a merge has dropped. Returns their number, and the
    /// number of documents deleted since the merge began.
    fn clear_tombstones(&mut self, output: &RunDescriptor) -> Result<(u64, u64)> {
        let ids = range_of(output);
        forget_dropped(self.write()?, &ids, &self.deleted.set.dropped(&ids))?;
        self.deleted.end_merge(&ids)
    }

    /// Opens the tables that lanes of this kind are written to.
    pub(super) fn run_tables(&self, table: PostingTable) -> Result<RunTables<'_>> {
        run_tables(self.write()?, table)
    }

    fn write_descriptor(&self, descriptor: &RunDescriptor) -> Result<()> {
        let row = encode_run(descriptor)?;
        let mut runs = self.write()?.open_table(RUNS).engine()?;
        runs.insert(descriptor.run, row.as_slice()).engine()?;
        Ok(())
    }

    pub(super) fn log_merge(&self, message: std::fmt::Arguments<'_>) {
        events::debug(MERGE, &self.store.context.path, message);
    }

    /// Adds a run to its table and to the run set, at the position of its ids. A run whose documents are
    /// all deleted or without postings is not described at all.
    pub(super) fn add_run_unless_empty(
        &mut self,
        descriptor: RunDescriptor,
        deleted: u64,
    ) -> Result<()> {
        if descriptor.postings() == 0 {
            return Ok(());
        }
        self.write_descriptor(&descriptor)?;
        self.runs.insert(Run {
            descriptor,
            deleted,
        });
        Ok(())
    }
}

fn range_of(run: &RunDescriptor) -> RangeInclusive<u64> {
    run.first_id..=run.last_id
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::StoreOptions;
    use crate::read::SnapshotView;
    use crate::types::Document;
    use crate::write::testing;
    use crate::write::transaction::WriteTransaction;

    #[test]
    fn merged_runs_leave_the_cache() {
        let folder = tempfile::tempdir().unwrap();
        let (store, signature) = testing::store(&folder, &StoreOptions::new().flush_after(4));
        let mut transaction = WriteTransaction::begin(&store).unwrap();
        for key in 0..12_u8 {
            transaction
                .insert(Document::new(&[key]), &signature)
                .unwrap();
        }
        transaction.commit().unwrap();
        let version = store.versions.latest().unwrap();
        let runs: Vec<u32> = version.runs.descriptors().map(|run| run.run).collect();
        assert_eq!(runs.len(), 3);
        let snapshot = SnapshotView::open(&store).unwrap();
        for key in 0..12_u8 {
            assert!(snapshot.view().find_key(&[key]).unwrap().is_some());
        }
        drop(snapshot);
        assert!(store.context.cache.block_bytes() > 0);
        let mut transaction = WriteTransaction::begin(&store).unwrap();
        let merge = |writer: &mut Writer| {
            writer.begin_merge(&MergePlan { runs, level: 1 }, 0)?;
            writer.advance_merges(1 << 30)
        };
        transaction.change(merge).unwrap();
        transaction.commit().unwrap();
        let version = store.versions.latest().unwrap();
        assert_eq!(version.runs.descriptors().count(), 1);
        assert_eq!(store.context.cache.block_bytes(), 0);
    }
}
