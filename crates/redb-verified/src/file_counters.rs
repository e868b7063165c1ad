//! Counters of the reads and writes of an open file. All threads share them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A number that all threads share. The order in which threads see its changes does not matter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Returns the number.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Sets the number.
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Adds to the number and returns the sum.
    pub fn add(&self, value: u64) -> u64 {
        // An atomic wraps at 2^64, a number that no count of events reaches.
        self.0.fetch_add(value, Relaxed).wrapping_add(value)
    }

    /// Subtracts from the number, which must not be smaller than `value`.
    pub fn subtract(&self, value: u64) {
        let before = self.0.fetch_sub(value, Relaxed);
        debug_assert!(before >= value, "{value} taken from a count of {before}");
    }

    /// Raises the number to `value` if it is smaller, and returns the old number.
    pub fn raise(&self, value: u64) -> u64 {
        self.0.fetch_max(value, Relaxed)
    }
}

/// The number of buckets in a histogram. Each bucket spans twice the range of the one before.
const BUCKETS: usize = 32;

/// Recorded durations, counted by length.
#[derive(Debug, Default)]
pub struct Histogram {
    /// The sum of all durations.
    pub total_nanos: Counter,
    /// The longest duration.
    pub longest_nanos: Counter,
    /// The number of durations of each length. Bucket i ends before 2^i microseconds; the last one
    /// is unbounded.
    pub buckets: [Counter; BUCKETS],
}

impl Histogram {
    /// Records a duration, and returns the longest one recorded before it.
    pub fn record(&self, duration: Duration) -> Duration {
        // 2^64 nanoseconds are 584 years.
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = (nanos / 1_000).checked_ilog2().map_or(0, |log| log + 1);
        let longest = self.longest_nanos.raise(nanos);
        self.total_nanos.add(nanos);
        if let Some(bucket) = self.buckets.get((bucket as usize).min(BUCKETS - 1)) {
            bucket.add(1);
        }
        Duration::from_nanos(longest)
    }
}

/// Counters of an open file.
#[derive(Debug, Default)]
pub struct FileCounters {
    /// Reads of the file, including those that opened it.
    pub reads: Counter,
    /// Bytes read.
    pub read_bytes: Counter,
    /// Writes to the file, including those that created or recovered it.
    pub writes: Counter,
    /// Bytes written.
    pub written_bytes: Counter,
    /// Syncs of the file.
    pub syncs: Histogram,
    /// Waits for a turn to write a file that several processes write, one for each turn.
    pub turn_waits: Histogram,
    has_failed: AtomicBool,
}

impl FileCounters {
    pub(crate) fn note_read(&self, length: usize) {
        self.reads.add(1);
        self.read_bytes.add(length as u64);
    }

    pub(crate) fn note_write(&self, length: usize) {
        self.writes.add(1);
        self.written_bytes.add(length as u64);
    }

    pub(crate) fn note_failure(&self) {
        self.has_failed.store(true, Relaxed);
    }

    /// Returns true if a page was damaged or an access to the file was refused since the file was
    /// opened.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Relaxed)
    }
}
