//! The open store, which handles, snapshots and transactions share, and its log.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::engine::{EngineResult, ReadTransaction, RedbFile, WriteTransaction};
use crate::error::{Error, Result};
use crate::format::header;
use crate::observe::{DAMAGE, STORE, SharedCounters, log as events};
use crate::options::StoreOptions;
use crate::state::context::SharedContext;
use crate::state::full_buckets::FullBuckets;
use crate::state::load::follow;
use crate::state::version_set::{Version, VersionSet};
use crate::state::writer_lock::WriterLock;
use crate::sync::{HomeProcess, IgnorePoison, Mutex};
use resemblance_sketch::schema::Schema;

/// An open file with everything that its handles, snapshots and transactions share.
pub(crate) struct OpenStore {
    pub(crate) context: SharedContext,
    pub(crate) engine: RedbFile,
    pub(crate) versions: VersionSet,
    pub(crate) writer_lock: Arc<WriterLock>,
    /// The full buckets as of a commit. A transaction takes them, and returns them when it ends well.
    pub(super) full_buckets: Mutex<Option<(u64, FullBuckets)>>,
    /// True if this release and this handle may write.
    pub(crate) writable: bool,
    /// How to follow a writer that recovers the file, if this handle has recovered it in memory.
    pub(super) recovered: Option<Recovered>,
    /// Declared, and so dropped, after the engine: the file is closed before that is logged.
    pub(super) session: Option<Session>,
}

impl OpenStore {
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.context.health.check_home()?;
        match self.writable {
            true => Ok(()),
            false => Err(Error::ReadOnly),
        }
    }

    /// Begins a transaction of the engine.
    pub(crate) fn begin_write(&self) -> Result<WriteTransaction> {
        let mut write = self.engine.begin_write()?;
        // Where others write, too, it is always on.
        if !self.engine.has_peers {
            write.set_quick_repair(self.context.options.quick_repair);
        }
        Ok(write)
    }

    /// Returns a snapshot of the file with the version that belongs to it. A handle that only reads follows the commits
    /// of other processes.
    pub(crate) fn snapshot(&self) -> Result<(ReadTransaction, Arc<Version>)> {
        self.versions.snapshot(&self.engine, |read, state, before| {
            if self.writable && !self.engine.has_peers {
                let place = format!("table {}, row {}", header::META, header::STATE);
                let detail = format!("commit {} is none that this handle made", state.commit);
                return Err(Error::corrupt(place, detail));
            }
            follow(&self.context, read, state, before)
        })
    }

    /// Returns what is known of the full buckets as of a commit.
    pub(crate) fn take_full_buckets(&self, commit: u64) -> Option<FullBuckets> {
        let kept = self.full_buckets.lock().ignore_poison().take()?;
        (kept.0 == commit).then_some(kept.1)
    }

    pub(crate) fn keep_full_buckets(&self, commit: u64, full_buckets: FullBuckets) {
        *self.full_buckets.lock().ignore_poison() = Some((commit, full_buckets));
    }

    /// Follows the commits of other processes, after whose turn this one writes.
    pub(crate) fn begin_turn(&self) -> Result<()> {
        match self.engine.has_peers {
            true => self.snapshot().map(drop),
            false => Ok(()),
        }
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.context.schema
    }

    /// Closes the file, and packs it if a good part of it was never written.
    pub(crate) fn close(self) -> Result<()> {
        let may_write = self.writable && self.context.health.check_writes().is_ok();
        match may_write {
            true => {
                let Self {
                    context, engine, ..
                } = self;
                engine.close_packed(&context.path, &context.options.file_options())
            }
            false => self.engine.close(),
        }
        .engine()
    }
}

/// A file that was recovered in memory after a crash, until a writer recovers it.
pub(super) struct Recovered {
    pub(super) options: StoreOptions,
    pub(super) replacement: Mutex<Option<Arc<OpenStore>>>,
}

impl Recovered {
    pub(super) fn new(options: StoreOptions) -> Self {
        Self {
            options,
            replacement: Mutex::new(None),
        }
    }
}

/// The time from opening a store to closing it. Dropping it logs the end.
#[derive(Debug)]
pub(super) struct Session {
    path: PathBuf,
    counters: Arc<SharedCounters>,
    opened: Instant,
    home: HomeProcess,
}

impl Session {
    /// Logs that a store was opened; `how` describes the way, and `began` is when that started.
    pub(crate) fn begin(context: &SharedContext, how: &str, began: Instant) -> Self {
        let (documents, took) = (context.counters.count.documents.get(), began.elapsed());
        events::info(
            STORE,
            &context.path,
            format_args!("{how} in {took:.1?}; documents: {documents}"),
        );
        Self {
            path: context.path.clone(),
            counters: Arc::clone(&context.counters),
            opened: Instant::now(),
            home: HomeProcess::current(),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.home.is_current() {
            return;
        }
        let (documents, age) = (self.counters.count.documents.get(), self.opened.elapsed());
        events::info(
            STORE,
            &self.path,
            format_args!("closed after {age:.1?}; documents: {documents}"),
        );
    }
}

impl SharedContext {
    /// Records the number of documents after opening or after a commit, and warns once if the store
    /// has outgrown its design.
    pub(crate) fn note_documents(&self, documents: u64) {
        self.counters.count.documents.set(documents);
        let expected = self.schema.expected_documents();
        if documents > expected && self.counters.is_first_outgrown() {
            events::warn(
                STORE,
                &self.path,
                format_args!(
                    "outgrown: {documents} documents, designed for {expected}; `reband` adapts it"
                ),
            );
        }
    }

    /// Warns once that a budget left candidates out.
    pub(crate) fn note_budget_met(&self) {
        if self.counters.is_first_budget_met() {
            let message = format_args!("a probe met its budget; `stats` names the largest buckets");
            events::warn(STORE, &self.path, message);
        }
    }

    /// Counts answered queries.
    pub(crate) fn note_queries(&self, queries: usize) {
        self.counters.count.queries.add(queries as u64);
    }

    /// Counts documents that were compared with a signature.
    pub(crate) fn note_candidates(&self, candidates: usize) {
        self.counters.count.candidates.add(candidates as u64);
    }

    /// Logs damage, and an error after which the handle is not used any more.
    pub(super) fn note_error(&self, error: &Error, is_last: bool) {
        if is_last {
            let message = format_args!("{error}; this handle is not used any more");
            events::error(DAMAGE, &self.path, message);
        } else if matches!(error, Error::Corrupt { .. }) {
            events::error(DAMAGE, &self.path, format_args!("{error}"));
        }
    }
}
