//! Counters and log events of a transaction: commits, flushes and merges.

use std::time::{Duration, Instant};

use crate::error::Result;
use crate::format::RunDescriptor;
use crate::observe::{COMMIT, MERGE, log as events};
use crate::write::writer::Writer;

/// A commit that takes longer than this, and longer than any before, is logged.
const LONG_COMMIT: Duration = Duration::from_secs(1);

impl Writer {
    /// Counts the end of a commit that began at `began`. A commit that failed before the engine wrote is
    /// counted as rolled back when the transaction is dropped.
    pub(super) fn note_commit(&self, began: Instant, outcome: &Result<()>) {
        let context = &self.store.context;
        let count = &context.counters.count;
        match (outcome, self.has_ended()) {
            (Ok(()), true) => {
                count.transactions_committed.add(1);
                self.counters.count(count);
                context.note_documents(self.state.documents);
                let latency = began.elapsed();
                let longest = count.commit_latencies.record(latency);
                if latency > LONG_COMMIT.max(longest) {
                    let message = format_args!("a commit took {latency:.1?}, the longest so far");
                    events::warn(COMMIT, &context.path, message);
                }
            }
            (Ok(()), false) => {
                count.transactions_unchanged.add(1);
                self.counters.count(count);
            }
            (Err(error), true) => {
                count.transactions_failed.add(1);
                let message = format_args!("a commit failed: {error}; this handle writes no more");
                events::error(COMMIT, &context.path, message);
            }
            (Err(_), false) => {}
        }
    }

    /// Counts a transaction that is dropped without a commit as rolled back.
    pub(super) fn note_dropped(&self) {
        if !self.counters.is_counted() {
            self.store
                .context
                .counters
                .count
                .transactions_rolled_back
                .add(1);
        }
    }

    pub(super) fn note_flush(&self, run: &RunDescriptor) {
        let postings = run.postings();
        self.counters.flushes.add(1);
        self.counters.flushed_postings.add(postings);
        let RunDescriptor {
            first_id, last_id, ..
        } = run;
        let run = run.run;
        self.log_merge(format_args!(
            "run {run} flushed: documents {first_id} to {last_id}, {postings} postings"
        ));
    }

    pub(super) fn note_merge_begun(&self, output: &RunDescriptor) {
        self.counters.merges_begun.add(1);
        let RunDescriptor {
            run, level, inputs, ..
        } = output;
        self.log_merge(format_args!(
            "run {run} begun, of level {level}: a merge of runs {inputs:?}"
        ));
    }

    /// Counts the postings read and the blocks written by a slice of a merge.
    pub(super) fn note_merged(&self, postings: u64, blocks: u64) {
        self.counters.merged_postings.add(postings);
        self.counters.merged_blocks.add(blocks);
    }

    pub(super) fn note_merge_ended(&self, output: &RunDescriptor) {
        self.counters.merges_ended.add(1);
        let (run, documents, postings) = (output.run, output.documents, output.postings());
        self.log_merge(format_args!(
            "run {run} merged: {documents} documents, {postings} postings"
        ));
    }

    fn log_merge(&self, message: std::fmt::Arguments<'_>) {
        events::debug(MERGE, &self.store.context.path, message);
    }
}
