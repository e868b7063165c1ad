//! Counting: atomics that all threads share, and what a transaction counts for itself until it ends.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::observe::metrics::{Counters, Latencies, Metrics};
use crate::types::Novelty;

/// A number. Nothing else depends on the order in which threads see it change.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// What it is then.
    pub(crate) fn add(&self, value: u64) -> u64 {
        self.0.fetch_add(value, Relaxed).wrapping_add(value)
    }

    fn subtract(&self, value: u64) {
        self.0.fetch_sub(value, Relaxed);
    }

    /// Makes it at least as great; what it was.
    fn raise(&self, value: u64) -> u64 {
        self.0.fetch_max(value, Relaxed)
    }
}

/// Latencies as they come.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    total_nanos: Counter,
    longest_nanos: Counter,
    buckets: [Counter; 32],
}

impl Histogram {
    /// Counts one; the longest before it.
    pub(crate) fn record(&self, latency: Duration) -> Duration {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let bucket = (nanos / 1_000).checked_ilog2().map_or(0, |log| log + 1);
        let longest = self.longest_nanos.raise(nanos);
        self.total_nanos.add(nanos);
        let bucket = self.buckets.get(bucket as usize).or(self.buckets.last());
        bucket.map(|bucket| bucket.add(1));
        Duration::from_nanos(longest)
    }

    pub(crate) fn get(&self) -> Latencies {
        let mut buckets = [0; 32];
        for (to, from) in buckets.iter_mut().zip(&self.buckets) {
            *to = from.get();
        }
        Latencies {
            count: buckets.iter().sum(),
            total: Duration::from_nanos(self.total_nanos.get()),
            longest: Duration::from_nanos(self.longest_nanos.get()),
            buckets,
        }
    }
}

/// What all handles of an open file count.
#[derive(Debug, Default)]
pub(crate) struct SharedCounters {
    pub(crate) count: Counters,
    /// When those snapshots were made that are alive, by their numbers.
    snapshots: Mutex<BTreeMap<u64, Instant>>,
    next_snapshot: Counter,
    is_outgrown_told: AtomicBool,
    is_budget_told: AtomicBool,
    has_file_failed: AtomicBool,
}

impl SharedCounters {
    /// Everything but `reads`.
    pub(crate) fn get(&self) -> Metrics {
        let oldest = self.lock_snapshots().values().next().copied();
        Metrics {
            oldest_snapshot: oldest.map(|made| made.elapsed()),
            ..self.count.get()
        }
    }

    /// A call of a one-call form has come, and will wait for its answer.
    pub(crate) fn call_waits(&self) {
        let waiting = self.count.calls_waiting.add(1);
        self.count.most_calls_waiting.raise(waiting);
    }

    /// A call does not wait after all.
    pub(crate) fn call_refused(&self) {
        self.count.calls_waiting.subtract(1);
    }

    /// A call has its answer, so long after it came.
    pub(crate) fn call_answered(&self, latency: Duration) {
        self.count.calls_waiting.subtract(1);
        self.count.call_latencies.record(latency);
    }

    /// A document was not inserted, without a transaction.
    pub(crate) fn known(&self, novelty: &Novelty) {
        let tally = TransactionCounters::default();
        tally.answered(novelty);
        tally.count(&self.count);
    }

    /// A transaction was committed that so many calls share.
    pub(crate) fn group_committed(&self, calls: u64) {
        self.count.groups.add(1);
        self.count.largest_group.raise(calls);
    }

    /// Counts a call as waiting until it is let go of, however it ends.
    pub(crate) fn call(&self) -> WaitingCall<'_> {
        self.call_waits();
        WaitingCall {
            counters: self,
            came: Instant::now(),
        }
    }

    /// Counts a snapshot as alive until it is let go of.
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
        self.snapshots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// True the first time.
    pub(crate) fn is_first_outgrown(&self) -> bool {
        !self.is_outgrown_told.swap(true, Relaxed)
    }

    /// True the first time.
    pub(crate) fn is_first_budget_met(&self) -> bool {
        !self.is_budget_told.swap(true, Relaxed)
    }

    /// Notes that a page was damaged, or that an access to the file was refused.
    pub(crate) fn note_file_failure(&self) {
        self.has_file_failed.store(true, Relaxed);
    }

    /// True once a page was damaged, or an access to the file was refused.
    pub(crate) fn has_file_failed(&self) -> bool {
        self.has_file_failed.load(Relaxed)
    }

    pub(crate) fn file_read(&self, length: usize) {
        self.count.file_reads.add(1);
        self.count.file_read_bytes.add(length as u64);
    }

    pub(crate) fn file_written(&self, length: usize) {
        self.count.file_writes.add(1);
        self.count.file_written_bytes.add(length as u64);
    }
}

/// A call that waits for its answer.
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

/// A snapshot that is alive.
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

/// A number of one transaction.
#[derive(Debug, Default)]
pub(crate) struct LocalCounter(Cell<u64>);

impl LocalCounter {
    pub(crate) fn add(&self, value: u64) {
        self.0.set(self.0.get().saturating_add(value));
    }
}

/// What a transaction has done so far. It counts once it is committed.
#[derive(Debug, Default)]
pub(crate) struct TransactionCounters {
    pub(crate) inserted: LocalCounter,
    /// Documents that are not there any more, for whatever reason.
    pub(crate) gone: LocalCounter,
    /// Those of `gone` that another took the place of.
    pub(crate) replaced: LocalCounter,
    /// Those of `gone` that were evicted.
    pub(crate) evicted: LocalCounter,
    pub(crate) touched: LocalCounter,
    pub(crate) known: LocalCounter,
    pub(crate) near_duplicates: LocalCounter,
    pub(crate) unchanged: LocalCounter,
    pub(crate) budgets_met: LocalCounter,
    pub(crate) flushes: LocalCounter,
    pub(crate) flushed_postings: LocalCounter,
    pub(crate) merges_begun: LocalCounter,
    pub(crate) merges_ended: LocalCounter,
    pub(crate) merged_postings: LocalCounter,
    pub(crate) merged_blocks: LocalCounter,
    is_counted: Cell<bool>,
}

impl TransactionCounters {
    /// What came of a document that was to be inserted if it is new.
    pub(crate) fn answered(&self, novelty: &Novelty) {
        match novelty {
            Novelty::SameKey(_) => self.known.add(1),
            Novelty::NearDuplicate(_) => self.near_duplicates.add(1),
            Novelty::New(_) | Novelty::NewWithinBudget { .. } => {}
        }
        self.budgets_met
            .add(u64::from(novelty.beyond_budget().is_some()));
    }

    /// The transaction has been committed.
    pub(crate) fn count(&self, count: &Counters) {
        let evicted_or_replaced = self.evicted.0.get().saturating_add(self.replaced.0.get());
        count
            .removed
            .add(self.gone.0.get().saturating_sub(evicted_or_replaced));
        for (tallied, counter) in [
            (&self.inserted, &count.inserted),
            (&self.replaced, &count.replaced),
            (&self.evicted, &count.evicted),
            (&self.touched, &count.touched),
            (&self.known, &count.known),
            (&self.near_duplicates, &count.near_duplicates),
            (&self.unchanged, &count.unchanged),
            (&self.budgets_met, &count.budgets_met),
            (&self.flushes, &count.flushes),
            (&self.flushed_postings, &count.flushed_postings),
            (&self.merges_begun, &count.merges_begun),
            (&self.merges_ended, &count.merges_ended),
            (&self.merged_postings, &count.merged_postings),
            (&self.merged_blocks, &count.merged_blocks),
        ] {
            counter.add(tallied.0.get());
        }
        self.is_counted.set(true);
    }

    /// How the transaction has ended is counted.
    pub(crate) fn is_counted(&self) -> bool {
        self.is_counted.get()
    }
}

#[cfg(test)]
#[path = "counters_tests.rs"]
mod tests;
