//! The clock algorithm, the only rule by which filters and blocks are evicted.

use std::sync::atomic::{AtomicBool, Ordering};

/// A mark that is set if an entry was used since the hand of its clock last passed it. A new entry
/// is not marked, so entries that are used once do not displace the others.
#[derive(Debug, Default)]
pub(super) struct UsedMark(AtomicBool);

impl UsedMark {
    #[inline]
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// All threads use the same entries. A store with every use would pass the cache line from core to core; this
    /// way only the first use after each round of the clock stores.
    #[inline]
    pub(super) fn set(&self) {
        if !self.is_set() {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Clears the mark, and returns whether it was set.
    pub(super) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// Entries in the order in which a hand examines them when one has to be dropped.
#[derive(Debug)]
pub(super) struct Clock<T> {
    entries: Vec<T>,
    hand: usize,
}

impl<T> Default for Clock<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            hand: 0,
        }
    }
}

impl<T> Clock<T> {
    pub(super) fn push(&mut self, entry: T) {
        self.entries.push(entry);
    }

    /// Takes out the next entry whose mark is not set, and clears the marks of those before it; `None` once the hand
    /// has passed the last.
    pub(super) fn pop_unused(&mut self, mut take_mark: impl FnMut(&T) -> bool) -> Option<T> {
        while let Some(entry) = self.entries.get(self.hand) {
            if !take_mark(entry) {
                // The last entry takes its place.
                return Some(self.entries.swap_remove(self.hand));
            }
            self.hand += 1;
        }
        self.hand = 0;
        None
    }

    /// Removes and returns all entries for which `goes` returns true.
    pub(super) fn extract(&mut self, goes: impl Fn(&T) -> bool) -> Vec<T> {
        self.entries.extract_if(.., |entry| goes(entry)).collect()
    }
}
