//! How snapshots get the version that belongs to what they read from the file.

use std::sync::{Arc, PoisonError};

use redb::ReadTransaction;

use crate::engine::{META, RedbFile};
use crate::error::{Error, Result};
use crate::format::header::{self, State};
use crate::state::version::Version;
use crate::sync::{Mutex, MutexGuard};

/// The versions that a reader may need: that of the last commit, and during a commit also the one
/// that it makes.
///
/// The writer publishes a version before the engine commits, under the commit number that the
/// commit writes into the file. A reader takes the version whose number it reads in its own
/// snapshot of the file, so the two always belong together.
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
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version of the last commit. Only the writer may ask: it knows that none is under way.
    pub(crate) fn latest(&self) -> Result<Arc<Version>> {
        let versions = self.lock();
        versions
            .last()
            .cloned()
            .ok_or_else(|| Error::corrupt("memory", "no version is published"))
    }

    /// Whether no later commit than this one has returned.
    pub(crate) fn is_current(&self, commit: u64) -> bool {
        let versions = self.lock();
        versions
            .iter()
            .any(|version| version.state.commit == commit)
    }

    /// Makes a version available, runs the commit that will show it, and forgets what came before;
    /// or the version itself, if the commit fails. Only the writer may ask.
    ///
    /// # Errors
    /// Those of `commit`.
    pub(crate) fn commit(
        &self,
        version: Version,
        commit: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let number = version.state.commit;
        self.lock().push(Arc::new(version));
        let outcome = commit();
        let is_kept = |version: &Arc<Version>| match &outcome {
            Ok(()) => version.state.commit >= number,
            Err(_) => version.state.commit != number,
        };
        self.lock().retain(is_kept);
        outcome
    }

    /// A snapshot of the file with the version that belongs to it. The lock keeps the writer from
    /// forgetting that version in between; it is never held while the writer syncs.
    pub(crate) fn snapshot(&self, engine: &RedbFile) -> Result<(ReadTransaction, Arc<Version>)> {
        self.snapshot_of(|| {
            let read = engine.begin_read()?;
            let commit = read_state(&read)?.commit;
            Ok((read, commit))
        })
    }

    /// What `begin` reads from the file, with the version of the commit that it finds there.
    fn snapshot_of<R>(
        &self,
        begin: impl FnOnce() -> Result<(R, u64)>,
    ) -> Result<(R, Arc<Version>)> {
        let versions = self.lock();
        let (read, commit) = begin()?;
        let version = versions
            .iter()
            .find(|version| version.state.commit == commit);
        let version = version.cloned().ok_or_else(|| {
            let place = format!("table {}, row {}", header::META, header::STATE);
            Error::corrupt(
                place,
                format!("commit {commit} is none that this handle made"),
            )
        })?;
        Ok((read, version))
    }
}

/// The counters in a snapshot of the file.
pub(crate) fn read_state(read: &ReadTransaction) -> Result<State> {
    let table = read.open_table(META)?;
    let row = table.get(header::STATE)?;
    let row =
        row.ok_or_else(|| Error::corrupt("table meta", "found no row state, expected one"))?;
    header::decode_state(row.value())
}

#[cfg(all(loom, test))]
#[path = "version_set_models.rs"]
mod models;
