//! The version that a commit makes, and the set of versions, which gives each snapshot the version
//! of the commit that it reads from the file.

use std::sync::Arc;

use crate::engine::{EngineResult, META, ReadTransaction, RedbFile};
use crate::error::{Error, Result};
use crate::format::RunDescriptor;
use crate::format::header::{self, State};
use crate::index::Memtable;
use crate::invariant::OrBug;
use crate::state::run_set::{Run, RunSet};
use crate::state::tombstones::Tombstones;
use crate::sync::{IgnorePoison, Mutex, MutexGuard};

/// State, runs, memtable and tombstones of one commit.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) state: State,
    pub(crate) runs: RunSet,
    pub(crate) memtable: Memtable,
    pub(crate) deleted: Tombstones,
}

impl Version {
    /// Returns the version of a store whose documents are all in one run, if they have postings.
    pub(crate) fn of_one_run(state: State, run: Option<RunDescriptor>) -> Self {
        let mut runs = RunSet::default();
        if let Some(descriptor) = run {
            runs.insert(Run {
                descriptor,
                deleted: 0,
            });
        }
        Self {
            state,
            runs,
            memtable: Memtable::default(),
            deleted: Tombstones::default(),
        }
    }

    /// Returns the number of postings in a lane, in runs and in memory, those of deleted documents included.
    pub(crate) fn lane_postings(&self, lane: u16) -> u64 {
        let summaries = self.runs.descriptors().filter_map(|run| run.lane(lane));
        let in_runs = summaries.map(|summary| summary.postings);
        in_runs.fold(self.memtable.lane_postings(lane), u64::saturating_add)
    }

    /// Returns the number of documents whose rows a merge under way has still to drop.
    pub(crate) fn rows_left(&self, output: &RunDescriptor) -> u64 {
        let dropped = self.deleted.dropped(&(output.first_id..=output.last_id));
        let after = |id: u64| id.checked_add(1).and_then(|next| dropped.first_from(next));
        let first = output.rows_from.and_then(|from| dropped.first_from(from));
        let left = std::iter::successors(first, |id| after(*id));
        left.take_while(|id| *id <= output.last_id).count() as u64
    }

    /// Returns true if a merge under way has dropped the rows of this deleted document.
    pub(crate) fn has_lost_rows(&self, id: u64) -> bool {
        let mut outputs = self.runs.outputs.iter();
        let output = outputs.find(|output| (output.first_id..=output.last_id).contains(&id));
        // From `rows_from` on the rows are still there; without it the phase is over.
        let is_before = |output: &Arc<RunDescriptor>| output.rows_from.is_none_or(|from| id < from);
        output.is_some_and(|output| is_before(output) && self.deleted.is_dropped(id))
    }
}

/// The versions that a reader may need: the one of the last commit, and while a commit is under way
/// also the one that it makes.
///
/// The writer publishes a version before the engine commits, under the number that the commit writes
/// into the file. A reader takes the version whose number it reads in its own snapshot of the file, so
/// the two always belong together.
#[derive(Debug)]
pub(crate) struct VersionSet {
    versions: Mutex<Vec<Arc<Version>>>,
}

impl VersionSet {
    pub(crate) fn new(version: Version) -> Self {
        Self {
            versions: Mutex::new(vec![Arc::new(version)]),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Version>>> {
        self.versions.lock().ignore_poison()
    }

    /// Returns the version of the last commit. Only the writer may call this: it knows that no commit is
    /// under way.
    pub(crate) fn latest(&self) -> Result<Arc<Version>> {
        let versions = self.lock();
        let latest = versions.last().cloned();
        latest.or_bug("a published version")
    }

    /// Returns true unless a later commit than this one has returned.
    pub(crate) fn is_current(&self, commit: u64) -> bool {
        let versions = self.lock();
        versions
            .iter()
            .any(|version| version.state.commit == commit)
    }

    /// Publishes a version, runs the engine's commit of it, and drops the versions before it; or, if the
    /// commit fails, drops the version again. Only the writer may call this.
    ///
    /// # Errors
    /// Returns the errors of `commit`.
    pub(crate) fn commit(
        &self,
        version: Version,
        commit: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let number = version.state.commit;
        // Published before the commit: as soon as the engine has committed, a reader may find this number in
        // the file, and needs the version that belongs to it.
        {
            let mut versions = self.lock();
            let ascends = versions.iter().all(|other| other.state.commit < number);
            debug_assert!(ascends, "commit {number} is not the next one");
            versions.push(Arc::new(version));
        }
        // The lock is free here: readers continue during the sync, and find both versions.
        let outcome = commit();
        let is_kept = |version: &Arc<Version>| match &outcome {
            Ok(()) => version.state.commit >= number,
            Err(_) => version.state.commit != number,
        };
        self.lock().retain(is_kept);
        outcome
    }

    /// Returns a snapshot of the file with the version that belongs to it. The lock keeps the
    /// writer from dropping that version in between; no thread holds it while the writer syncs.
    ///
    /// A commit that another process has made is followed by `follow`, which makes its version from an earlier one.
    pub(crate) fn snapshot(
        &self,
        engine: &RedbFile,
        follow: impl FnOnce(&ReadTransaction, State, &Version) -> Result<Version>,
    ) -> Result<(ReadTransaction, Arc<Version>)> {
        let begin = || {
            let read = engine.begin_read()?;
            let state = read_state(&read)?;
            Ok((read, state))
        };
        self.snapshot_of(begin, follow)
    }

    /// Returns what `begin` returns, with the version of the commit that it finds in the file.
    fn snapshot_of<R>(
        &self,
        begin: impl FnOnce() -> Result<(R, State)>,
        follow: impl FnOnce(&R, State, &Version) -> Result<Version>,
    ) -> Result<(R, Arc<Version>)> {
        let mut versions = self.lock();
        let (read, state) = begin()?;
        let version = versions
            .iter()
            .find(|version| version.state.commit == state.commit);
        if let Some(version) = version {
            return Ok((read, Arc::clone(version)));
        }
        let last = versions.last().or_bug("a published version")?;
        if state.commit < last.state.commit {
            let place = format!("table {}, row {}", header::META, header::STATE);
            let detail = format!("commit {} is earlier than those before", state.commit);
            return Err(Error::corrupt(place, detail));
        }
        let version = Arc::new(follow(&read, state, last)?);
        *versions = vec![Arc::clone(&version)];
        Ok((read, version))
    }
}

/// Reads the state of a snapshot of the file.
pub(super) fn read_state(read: &ReadTransaction) -> Result<State> {
    let table = read.open_table(META).engine()?;
    match table.get(header::STATE).engine()? {
        Some(row) => header::decode_state(row.value()),
        None => Err(Error::corrupt(
            "table meta",
            "found no row state, expected one",
        )),
    }
}

#[cfg(all(loom, test))]
#[path = "version_set_models.rs"]
mod models;
