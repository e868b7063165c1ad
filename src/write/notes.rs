//! What a transaction counts and tells: commits, flushes, merges.

use std::time::{Duration, Instant};

use crate::error::Result;
use crate::format::RunDescriptor;
use crate::observe::{COMMIT, MERGE, log as events};
use crate::write::writer::Writer;

/// A commit that takes longer is told of, if none before took as long.
const LONG_COMMIT: Duration = Duration::from_secs(1);

impl Writer {
    /// Counts how a commit has ended, which began at `began`. One that was given up before it wrote is
    /// counted when the transaction is let go of.
    pub(crate) fn note_commit(&self, began: Instant, outcome: &Result<()>) {
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

    /// The transaction is let go of without a commit, or after one that did not write.
    pub(crate) fn note_dropped(&self) {
        if !self.counters.is_counted() {
            self.store
                .context
                .counters
                .count
                .transactions_rolled_back
                .add(1);
        }
    }

    pub(crate) fn note_flush(&self, run: &RunDescriptor) {
        let postings = run.postings();
        self.counters.flushes.add(1);
        self.counters.flushed_postings.add(postings);
        let RunDescriptor {
            first_id, last_id, ..
        } = run;
        let run = run.run;
        self.tell_merge(format_args!(
            "run {run} flushed: documents {first_id} to {last_id}, {postings} postings"
        ));
    }

    pub(crate) fn note_merge_begun(&self, output: &RunDescriptor) {
        self.counters.merges_begun.add(1);
        let RunDescriptor {
            run, level, inputs, ..
        } = output;
        self.tell_merge(format_args!(
            "run {run} begun, of level {level}: a merge of runs {inputs:?}"
        ));
    }

    /// A slice of a merge: postings read, blocks written.
    pub(crate) fn note_merged(&self, postings: u64, blocks: u64) {
        self.counters.merged_postings.add(postings);
        self.counters.merged_blocks.add(blocks);
    }

    pub(crate) fn note_merge_ended(&self, output: &RunDescriptor) {
        self.counters.merges_ended.add(1);
        let (run, documents, postings) = (output.run, output.documents, output.postings());
        self.tell_merge(format_args!(
            "run {run} merged: {documents} documents, {postings} postings"
        ));
    }

    fn tell_merge(&self, message: std::fmt::Arguments<'_>) {
        events::debug(MERGE, &self.store.context.path, message);
    }
}
