//! Numbers that are counted: one that all threads share, and one of a single transaction.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that all threads share. Nothing else depends on the order in which they see it change.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Adds to the number and returns the sum.
    pub(crate) fn add(&self, value: u64) -> u64 {
        // An atomic wraps at 2^64, which no count of events reaches.
        self.0.fetch_add(value, Relaxed).wrapping_add(value)
    }

    pub(super) fn subtract(&self, value: u64) {
        let before = self.0.fetch_sub(value, Relaxed);
        debug_assert!(before >= value, "{value} taken from a count of {before}");
    }

    /// Raises the number to `value` if it is less, and returns what it was.
    pub(super) fn raise(&self, value: u64) -> u64 {
        self.0.fetch_max(value, Relaxed)
    }
}

/// A number of one transaction, which stays on one thread.
#[derive(Debug, Default)]
pub(crate) struct LocalCounter(Cell<u64>);

impl LocalCounter {
    pub(crate) fn get(&self) -> u64 {
        self.0.get()
    }

    pub(crate) fn add(&self, value: u64) {
        self.0.set(self.0.get() + value);
    }
}
