//! The policy that decides which runs are merged, and when.
//!
//! Runs form tiers. When level 0 has four runs, they are merged into one run of level 1; when any
//! other level has six, they are merged into one run of the next level. n flushes rewrite a posting
//! about 1 + log₆(n / 4) times and leave about 3 + 5 log₆(n / 4) runs.

use crate::options::StoreOptions;

/// The properties of a run that the choice of merges depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunShape {
    pub(crate) run: u32,
    pub(crate) level: u8,
    pub(crate) first_id: u64,
    pub(crate) last_id: u64,
    /// Documents that have postings in the run.
    pub(crate) documents: u64,
    /// The number of these documents that have been deleted since.
    pub(crate) deleted: u64,
}

impl RunShape {
    /// Number of its documents that are not deleted.
    pub(crate) fn live(&self) -> u64 {
        self.documents.saturating_sub(self.deleted)
    }
}

/// Runs to merge into one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MergePlan {
    /// Their numbers, in the order of their ids.
    pub(crate) runs: Vec<u32>,
    /// The level of the run that they become.
    pub(crate) level: u8,
}

/// Returns the number of neighbouring runs of a level that are merged. Runs of level 0 are frequent
/// and are soon one; wider merges above them rewrite a posting less often.
const fn fan_in(level: u8) -> usize {
    match level {
        0 => 4,
        _ => 6,
    }
}

/// The number of postings that merges read for each posting that is inserted or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    quarters: u64,
}

impl Pace {
    /// The pace of a run that is rewritten alone, because a fifth of it is deleted. A replacement
    /// counts twice, and a document's rows count as much as its postings. The run is therefore
    /// rewritten before half of it is deleted. Twice this pace would free twice the number of pages
    /// in a commit.
    pub(crate) const ALONE: Self = Self { quarters: 16 };

    /// Returns the pace for this number of merges of several runs at once. Each posting that is
    /// inserted has to be merged once into each level, so a pace above 1 per merge always suffices.
    /// The minimum pace lets merges end soon in a store of few levels. Until then, probes read
    /// their inputs in addition to the output.
    pub(crate) fn together(merges: usize) -> Self {
        let quarters = (merges as u64).saturating_mul(5);
        Self {
            quarters: quarters.max(12),
        }
    }

    /// Returns the number of postings to take on for this number that have moved.
    pub(crate) fn postings(self, moved: u64) -> u64 {
        moved.saturating_mul(self.quarters) / 4
    }

    /// Returns the number of postings that have to move until this number is taken on.
    pub(crate) fn moved(self, postings: u64) -> u64 {
        postings.saturating_mul(4) / self.quarters
    }
}

/// Returns the next merge to run in addition to those in progress, if any. The lowest level comes
/// first, so that the small merges, which remove most runs, do not wait for a large one.
///
/// Merges run side by side, but at most one into each level, and one of a run alone: the work of a
/// commit on merges must not depend on how many runs happen to be due.
///
/// Runs of lower levels between two of them are merged with them. A run that was written in one
/// piece, and so is at a higher level than its neighbours, must not leave small runs behind
/// permanently.
pub(crate) fn plan(all: &[RunShape], under_way: &[MergePlan]) -> Option<MergePlan> {
    let mut runs = all.to_vec();
    runs.sort_unstable_by_key(|run| (run.first_id, run.run));
    let is_merging = |run: &RunShape| under_way.iter().any(|merge| merge.runs.contains(&run.run));
    let is_busy = |level: u8| {
        let mut several = under_way.iter().filter(|merge| merge.runs.len() > 1);
        several.any(|merge| merge.level == level.saturating_add(1))
    };
    let mut levels: Vec<u8> = runs.iter().map(|run| run.level).collect();
    levels.sort_unstable();
    levels.dedup();
    let merged = levels
        .into_iter()
        .filter(|level| !is_busy(*level))
        .find_map(|level| neighbours(&runs, level, is_merging));
    merged.or_else(|| {
        let is_busy = under_way.iter().any(|merge| merge.runs.len() == 1);
        runs.retain(|run| !is_merging(run));
        most_deleted(&runs).filter(|_| !is_busy)
    })
}

/// Returns the oldest runs of a level, up to its fan-in, without any of a higher level or in a
/// merge between them.
fn neighbours(
    runs: &[RunShape],
    level: u8,
    is_merging: impl Fn(&RunShape) -> bool,
) -> Option<MergePlan> {
    // An output covers all ids from its first input to its last, so every run between them is an input. One
    // of a higher level would be rewritten too often, and one in another merge cannot be an input twice.
    let is_barrier = |run: &RunShape| run.level > level || is_merging(run);
    runs.split(is_barrier).find_map(|group| {
        let of_level = |run: &RunShape| run.level == level;
        let first = group.iter().position(of_level)?;
        let places = group.iter().enumerate().filter(|(_, run)| of_level(run));
        let (last, _) = places.take(fan_in(level)).nth(fan_in(level) - 1)?;
        let window = group.get(first..=last)?;
        Some(MergePlan {
            runs: window.iter().map(|run| run.run).collect(),
            level: level.saturating_add(1),
        })
    })
}

/// The run with the greatest share of deleted documents, if that is above a fifth.
fn most_deleted(runs: &[RunShape]) -> Option<MergePlan> {
    let share = |run: &RunShape| (u128::from(run.deleted) << 64) / u128::from(run.documents.max(1));
    let spoiled = runs
        .iter()
        .filter(|run| u128::from(run.deleted) * 5 > u128::from(run.documents));
    // The first of equals: the oldest.
    let most = spoiled.rev().max_by_key(|run| share(run))?;
    Some(MergePlan {
        runs: vec![most.run],
        level: most.level,
    })
}

/// The level of a run that was written in one piece: how many merges make a run of `flush_after`
/// documents as large.
fn level_of(documents: u64, flush_after: u64) -> u8 {
    let mut level = 0;
    let mut size = flush_after.max(1);
    while let Some(larger) = size.checked_mul(fan_in(level) as u64)
        && larger <= documents
    {
        size = larger;
        level += 1;
    }
    level
}

/// Returns the level that a run of this number of documents, with this total of kept hashes, would
/// have reached by merges. `lanes` are those with a posting of each document.
pub(crate) fn whole_level(options: &StoreOptions, lanes: u16, documents: u64, kept: u64) -> u8 {
    let flushed = options.flush_after_documents(lanes);
    let by_kept = level_of(kept, options.flush_after_kept_hashes());
    level_of(documents, flushed).max(by_kept)
}

#[cfg(test)]
#[path = "levels_tests.rs"]
mod tests;
