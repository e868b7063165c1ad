//! The counters of an open file, which all threads share, and those of a transaction until it ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use redb_verified::{Counter, FileCounters};

use crate::error::Result;
use crate::invariant::OrBug;
use crate::observe::latencies::Latencies;
use crate::observe::metrics::{Counters, Metrics};
use crate::sync::IgnorePoison;
use crate::types::Novelty;

/// Counters that all handles of an open file share.
#[derive(Debug, Default)]
pub(crate) struct SharedCounters {
    pub(crate) count: Counters,
    /// The counters of the file's reads and writes.
    pub(crate) file: Arc<FileCounters>,
    /// The time at which each live snapshot was created, by number, the oldest first.
    snapshots: Mutex<BTreeMap<u64, Instant>>,
    next_snapshot: Counter,
    has_warned_outgrown: AtomicBool,
    has_warned_budget: AtomicBool,
}

impl SharedCounters {
    /// Makes the counters of a store in a file.
    pub(crate) fn of(file: &Arc<FileCounters>) -> Self {
        Self {
            file: Arc::clone(file),
            ..Self::default()
        }
    }

    /// Returns all numbers as they are now.
    pub(crate) fn get(&self) -> Metrics {
        let oldest = self.lock_snapshots().values().next().copied();
        Metrics {
            oldest_snapshot: oldest.map(|made| made.elapsed()),
            file_reads: self.file.reads.get(),
            file_read_bytes: self.file.read_bytes.get(),
            file_writes: self.file.writes.get(),
            file_written_bytes: self.file.written_bytes.get(),
            sync_latencies: Latencies::of(&self.file.syncs),
            turn_latencies: Latencies::of(&self.file.turn_waits),
            ..self.count.get()
        }
    }

    /// Counts a call of a one-call form that begins to wait for its answer.
    pub(crate) fn call_waits(&self) {
        let waiting = self.count.calls_waiting.add(1);
        self.count.most_calls_waiting.raise(waiting);
    }

    /// Takes back a waiting call that the queue has refused.
    pub(crate) fn call_refused(&self) {
        self.count.calls_waiting.subtract(1);
    }

    /// Counts the answer to a call, `latency` after the call.
    pub(crate) fn call_answered(&self, latency: Duration) {
        self.count.calls_waiting.subtract(1);
        self.count.call_latencies.record(latency);
    }

    /// Counts a document that was found not to be new without a transaction.
    pub(crate) fn note_known(&self, novelty: &Novelty) {
        let counters = TransactionCounters::default();
        counters.note_answer(novelty);
        counters.add_to(&self.count);
    }

    /// Counts a transaction that was committed for this many calls.
    pub(crate) fn group_committed(&self, calls: u64) {
        self.count.groups.add(1);
        self.count.largest_group.raise(calls);
    }

    /// Counts a call as waiting until the guard is dropped, however the call ends.
    pub(crate) fn begin_call(&self) -> WaitingCall<'_> {
        self.call_waits();
        WaitingCall {
            counters: self,
            came: Instant::now(),
        }
    }

    /// Counts a snapshot as alive until the guard is dropped.
    pub(crate) fn snapshot(self: &Arc<Self>) -> LiveSnapshot {
        let number = self.next_snapshot.add(1);
        self.lock_snapshots().insert(number, Instant::now());
        self.count.snapshots.add(1);
        LiveSnapshot {
            counters: Arc::clone(self),
            number,
        }
    }

    fn lock_snapshots(&self) -> MutexGuard<'_, BTreeMap<u64, Instant>> {
        self.snapshots.lock().ignore_poison()
    }

    /// Returns true the first time, so that the warning is logged once.
    pub(crate) fn is_first_outgrown(&self) -> bool {
        !self.has_warned_outgrown.swap(true, Relaxed)
    }

    /// Returns true the first time, so that the warning is logged once.
    pub(crate) fn is_first_budget_met(&self) -> bool {
        !self.has_warned_budget.swap(true, Relaxed)
    }

    pub(crate) fn lanes_probed(&self, lanes: usize) {
        self.count.lanes_probed.add(lanes as u64);
    }

    pub(crate) fn signatures_read(&self, rows: usize) {
        self.count.signatures_read.add(rows as u64);
    }
}

/// Guard of a call that waits for its answer.
#[derive(Debug)]
pub(crate) struct WaitingCall<'m> {
    counters: &'m SharedCounters,
    came: Instant,
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.counters.call_answered(self.came.elapsed());
    }
}

/// Guard of a live snapshot. In a process other than the one that made it, it must be forgotten
/// instead of dropped: a thread that does not exist there may hold the lock.
#[derive(Debug)]
pub(crate) struct LiveSnapshot {
    counters: Arc<SharedCounters>,
    number: u64,
}

impl Drop for LiveSnapshot {
    fn drop(&mut self) {
        self.counters.lock_snapshots().remove(&self.number);
        self.counters.count.snapshots.subtract(1);
    }
}

/// Numbers of one transaction. They are added to those of the store once it is committed.
#[derive(Debug, Default)]
pub(crate) struct TransactionCounters {
    pub(crate) count: Counters,
    /// Documents that the transaction deleted, whether they were replaced, evicted or removed.
    pub(crate) deleted: Counter,
    is_counted: AtomicBool,
}

impl TransactionCounters {
    /// Counts the answer for a document that was to be inserted if it is new.
    pub(crate) fn note_answer(&self, novelty: &Novelty) {
        match novelty {
            Novelty::KeyExists(_) => self.count.known.add(1),
            Novelty::NearDuplicate(_) => self.count.near_duplicates.add(1),
            Novelty::New { .. } => 0,
        };
        let is_beyond = novelty.budget_exceeded().is_some();
        self.count.budgets_met.add(u64::from(is_beyond));
    }

    /// Returns the number of deleted documents that were neither replaced nor evicted.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) if more were replaced and evicted than deleted.
    pub(crate) fn removed(&self) -> Result<u64> {
        let deleted = self.deleted.get();
        let (replaced, evicted) = (self.count.replaced.get(), self.count.evicted.get());
        deleted.checked_sub(replaced + evicted).or_bug_with(|| {
            format!("{replaced} documents replaced and {evicted} evicted, of {deleted} deleted")
        })
    }

    /// Adds the numbers of a transaction that has been committed to those of the store.
    pub(crate) fn add_to(&self, counters: &Counters) {
        self.count.add_to(counters);
        // The commit has failed before if this is an error.
        let removed = self.removed();
        debug_assert!(removed.is_ok(), "{removed:?}");
        counters.removed.add(removed.unwrap_or_default());
        self.is_counted.store(true, Relaxed);
    }

    /// Returns true once the transaction has been counted as committed.
    pub(crate) fn is_counted(&self) -> bool {
        self.is_counted.load(Relaxed)
    }
}

#[cfg(test)]
#[path = "counters_tests.rs"]
mod tests;
