//! What is counted and told of a store's life: it is opened and closed, transactions end, runs are
//! sealed and merged, something goes wrong.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::format::RunDescriptor;
use crate::observe::{COMMIT, DAMAGE, MERGE, Meters, Metrics, STORE, log as events};
use crate::state::context::Core;
use crate::store::Store;
use crate::write::Writer;

/// A commit that takes longer is told of, if none before took as long.
const LONG_COMMIT: Duration = Duration::from_secs(1);

impl Store {
    /// What was done through this handle and its clones, snapshots and transactions since the store
    /// was opened: a few dozen atomic reads, and a lock that only the making of snapshots takes.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
    /// let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let page = store.sketcher().hashes([1, 2, 3])?;
    /// store.insert_if_new("a", &page)?;
    /// store.insert_if_new("b", &page)?;
    /// let metrics = store.metrics();
    /// assert_eq!((metrics.inserted, metrics.near_duplicates), (1, 1));
    /// eprint!("{metrics}");
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        Metrics {
            reads: self.reads(),
            ..self.inner.core.meters.get()
        }
    }
}

/// From opening a store to closing it, which is told when this is let go of.
#[derive(Debug)]
pub(crate) struct Session {
    path: PathBuf,
    meters: Arc<Meters>,
    opened: Instant,
}

impl Session {
    /// `how` it was opened, and when that began.
    pub(crate) fn begin(core: &Core, how: &str, began: Instant) -> Self {
        let (documents, took) = (core.meters.count.documents.get(), began.elapsed());
        events::info(
            STORE,
            &core.path,
            format_args!("{how} in {took:.1?}; documents: {documents}"),
        );
        Self {
            path: core.path.clone(),
            meters: Arc::clone(&core.meters),
            opened: Instant::now(),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let (documents, age) = (self.meters.count.documents.get(), self.opened.elapsed());
        events::info(
            STORE,
            &self.path,
            format_args!("closed after {age:.1?}; documents: {documents}"),
        );
    }
}

impl Core {
    /// So many documents are there after opening, or after a commit.
    pub(crate) fn note_documents(&self, documents: u64) {
        self.meters.count.documents.set(documents);
        let expected = self.schema.expected_documents();
        if documents > expected && self.meters.is_first_outgrown() {
            events::warn(
                STORE,
                &self.path,
                format_args!(
                    "outgrown: {documents} documents, designed for {expected}; `reband` mends it"
                ),
            );
        }
    }

    /// A document was not compared with all that it shares buckets with.
    pub(crate) fn note_budget_met(&self) {
        if self.meters.is_first_budget_met() {
            let message = format_args!("a probe met its budget; `stats` names the largest buckets");
            events::warn(STORE, &self.path, message);
        }
    }

    /// So many questions were answered.
    pub(crate) fn note_queries(&self, queries: usize) {
        self.meters.count.queries.add(queries as u64);
    }

    /// So many documents were compared with a signature.
    pub(crate) fn note_candidates(&self, candidates: usize) {
        self.meters.count.candidates.add(candidates as u64);
    }

    /// Tells of damage, and of what ends the use of this handle.
    pub(crate) fn note_error(&self, error: &Error, is_last: bool) {
        if is_last {
            let message = format_args!("{error}; this handle is not used any more");
            events::error(DAMAGE, &self.path, message);
        } else if matches!(error, Error::Corrupt { .. }) {
            events::error(DAMAGE, &self.path, format_args!("{error}"));
        }
    }
}

impl Writer {
    /// Counts how a commit has ended, which began at `began`. One that was given up before it wrote is
    /// counted when the transaction is let go of.
    pub(crate) fn note_commit(&self, began: Instant, outcome: &Result<()>) {
        let core = &self.store.core;
        let count = &core.meters.count;
        match (outcome, self.write().is_err()) {
            (Ok(()), true) => {
                count.transactions_committed.add(1);
                self.tally.count(count);
                core.note_documents(self.state.documents);
                let latency = began.elapsed();
                let longest = count.commit_latencies.record(latency);
                if latency > LONG_COMMIT.max(longest) {
                    let message = format_args!("a commit took {latency:.1?}, the longest so far");
                    events::warn(COMMIT, &core.path, message);
                }
            }
            (Ok(()), false) => {
                count.transactions_unchanged.add(1);
                self.tally.count(count);
            }
            (Err(error), true) => {
                count.transactions_failed.add(1);
                let message = format_args!("a commit failed: {error}; this handle writes no more");
                events::error(COMMIT, &core.path, message);
            }
            (Err(_), false) => {}
        }
    }

    /// The transaction is let go of without a commit, or after one that did not write.
    pub(crate) fn note_dropped(&self) {
        if !self.tally.is_counted() {
            self.store.core.meters.count.transactions_rolled_back.add(1);
        }
    }

    pub(crate) fn note_seal(&self, run: &RunDescriptor) {
        let postings = run.postings();
        self.tally.seals.add(1);
        self.tally.sealed_postings.add(postings);
        let RunDescriptor {
            first_id, last_id, ..
        } = run;
        let run = run.run;
        self.tell_merge(format_args!(
            "run {run} sealed: documents {first_id} to {last_id}, {postings} postings"
        ));
    }

    pub(crate) fn note_merge_begun(&self, output: &RunDescriptor) {
        self.tally.merges_begun.add(1);
        let RunDescriptor {
            run, level, inputs, ..
        } = output;
        self.tell_merge(format_args!(
            "run {run} begun, of level {level}: a merge of runs {inputs:?}"
        ));
    }

    /// A slice of a merge: postings read, blocks written.
    pub(crate) fn note_merged(&self, postings: u64, blocks: u64) {
        self.tally.merged_postings.add(postings);
        self.tally.merged_blocks.add(blocks);
    }

    pub(crate) fn note_merge_ended(&self, output: &RunDescriptor) {
        self.tally.merges_ended.add(1);
        let (run, documents, postings) = (output.run, output.documents, output.postings());
        self.tell_merge(format_args!(
            "run {run} merged: {documents} documents, {postings} postings"
        ));
    }

    fn tell_merge(&self, message: std::fmt::Arguments<'_>) {
        events::debug(MERGE, &self.store.core.path, message);
    }
}
