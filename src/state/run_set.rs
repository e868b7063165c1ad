//! The runs of one version of a store, and the merges in progress.

use std::sync::Arc;

use crate::format::RunDescriptor;
use crate::index::{MergePlan, RunShape};

/// A run, and the number of its documents that are deleted.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) descriptor: RunDescriptor,
    pub(crate) deleted: u64,
}

impl Run {
    /// Returns the properties that the choice of merges depends on.
    fn shape(&self) -> RunShape {
        RunShape {
            run: self.descriptor.run,
            level: self.descriptor.level,
            first_id: self.descriptor.first_id,
            last_id: self.descriptor.last_id,
            documents: self.descriptor.documents,
            deleted: self.deleted,
        }
    }
}

/// The runs, including those that are being merged, and the outputs that they are merged into.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunSet {
    /// Ascending by their ranges of ids, which do not overlap.
    pub(crate) current: Vec<Arc<Run>>,
    /// Outputs of merges. Each holds the postings that were taken from its inputs so far; the
    /// inputs are kept until the merge ends.
    pub(crate) outputs: Vec<Arc<RunDescriptor>>,
}

impl RunSet {
    /// Returns all runs and outputs. Together they hold each posting once.
    pub(crate) fn descriptors(&self) -> impl DoubleEndedIterator<Item = &RunDescriptor> {
        let outputs = self.outputs.iter().map(|output| &**output);
        outputs.chain(self.current.iter().map(|run| &run.descriptor))
    }

    /// Returns the position of the run whose range a document is in.
    pub(crate) fn position_of(&self, id: u64) -> Option<usize> {
        let position = self
            .current
            .partition_point(|run| run.descriptor.last_id < id);
        let run = self.current.get(position)?;
        (run.descriptor.first_id <= id).then_some(position)
    }

    pub(crate) fn is_merging(&self, run: u32) -> bool {
        self.outputs
            .iter()
            .any(|output| output.inputs.contains(&run))
    }

    pub(crate) fn shapes(&self) -> Vec<RunShape> {
        self.current.iter().map(|run| run.shape()).collect()
    }

    /// Returns the merges that are under way.
    pub(crate) fn merges(&self) -> Vec<MergePlan> {
        let plan = |output: &Arc<RunDescriptor>| MergePlan {
            runs: output.inputs.clone(),
            level: output.level,
        };
        self.outputs.iter().map(plan).collect()
    }

    /// Returns the run with a number, if it is kept.
    pub(crate) fn run(&self, number: u32) -> Option<&Arc<Run>> {
        self.current.iter().find(|run| run.descriptor.run == number)
    }

    /// Adds a run at the position of its ids.
    pub(crate) fn insert(&mut self, run: Run) {
        let first_id = run.descriptor.first_id;
        let position = self
            .current
            .partition_point(|other| other.descriptor.first_id < first_id);
        self.current.insert(position, Arc::new(run));
    }

    /// Names what contradicts itself in the runs, as a file describes them; `None` if nothing does.
    pub(crate) fn contradiction(&self, flushed_below: u64, next_run: u32) -> Option<&'static str> {
        let runs = &self.current;
        let apart = runs.is_sorted_by(|a, b| a.descriptor.last_id < b.descriptor.first_id);
        let below = runs
            .iter()
            .all(|run| run.descriptor.last_id < flushed_below);
        let numbered = self.descriptors().all(|run| run.run < next_run);
        if !(apart && below && numbered) {
            return Some("ranges or numbers of runs");
        }
        let mut merging = Vec::new();
        for output in &self.outputs {
            let Some(inputs) = self.inputs(output) else {
                return Some("a merge and the runs that it merges");
            };
            if !has_fitting_filter(output, inputs) {
                return Some("a merge's filter and its postings");
            }
            merging.extend(inputs.iter().map(|run| run.descriptor.run));
        }
        merging.sort_unstable();
        let twice = merging.windows(2).any(|pair| pair.first() == pair.last());
        twice.then_some("two merges")
    }

    /// Returns the runs that are merged into an output: neighbours, from the first to the last id of its
    /// range. `None` if they are not all there.
    pub(crate) fn inputs(&self, output: &RunDescriptor) -> Option<&[Arc<Run>]> {
        let first = self
            .current
            .iter()
            .position(|run| Some(&run.descriptor.run) == output.inputs.first())?;
        let inputs = self
            .current
            .get(first..first.checked_add(output.inputs.len())?)?;
        let numbers = inputs.iter().map(|run| run.descriptor.run);
        let (first, last) = (inputs.first()?, inputs.last()?);
        let spans = first.descriptor.first_id == output.first_id
            && last.descriptor.last_id == output.last_id;
        let begun = output.lanes.last().is_some();
        (spans && begun && numbers.eq(output.inputs.iter().copied())).then_some(inputs)
    }
}

/// Returns true unless the filter of the lane that a merge is writing has more blocks than the lane had postings when it
/// was begun. Only this lane can claim a filter whose pieces need not be in the file, and the merge will write them all.
fn has_fitting_filter(output: &RunDescriptor, inputs: &[Arc<Run>]) -> bool {
    let writing = output.lanes.last();
    let Some((lane, filter)) = writing.and_then(|lane| Some((lane, lane.filter?))) else {
        return true;
    };
    // Each posting has been written, is left in its input, or was dropped with a document whose tombstone stays
    // until the merge ends.
    let of_inputs = inputs.iter().map(|run| {
        let left = run.descriptor.lane(lane.lane).map_or(0, |it| it.postings);
        left.saturating_add(run.deleted)
    });
    filter.all_blocks() <= of_inputs.fold(lane.postings, u64::saturating_add)
}
