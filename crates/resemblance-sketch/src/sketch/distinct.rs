//! A set of distinct hashes.

use super::hash::GOLDEN_GAMMA;

/// The number of slots in the smallest table.
const MIN_SLOTS: usize = 1 << 10;

/// Tables of up to this many slots leave three of four slots empty. Most look-ups then end at their
/// first slot, which the processor predicts. Larger tables fill up to three quarters, to save
/// memory.
const MAX_SPARSE_SLOTS: usize = 1 << 16;

/// A set of hashes: an open-addressing table beside a list. Large sets take 19 to 30 bytes a hash.
pub(super) struct DistinctHashes {
    /// The slots, whose number is a power of two. 0 marks an empty one.
    slots: Vec<u64>,
    /// All hashes, in the order of their first occurrences.
    list: Vec<u64>,
    /// True if 0, which no slot can hold, is in the set.
    has_zero: bool,
}

impl DistinctHashes {
    /// Creates a set for about `hashes` hashes.
    pub(super) fn with_capacity(hashes: usize) -> Self {
        // The number is the caller's hint. It must not make the crate reserve much memory.
        let enough = (4 * hashes.min(MAX_SPARSE_SLOTS / 4)).next_power_of_two();
        let slots = enough.max(MIN_SLOTS);
        Self {
            slots: vec![0; slots],
            list: Vec::with_capacity(slots / 4),
            has_zero: false,
        }
    }

    /// Adds hashes. Hashes that the set contains change nothing.
    pub(super) fn extend(&mut self, hashes: &[u64]) {
        for hash in hashes {
            if self.list.len() >= self.max_hashes() {
                self.grow();
            }
            if *hash == 0 {
                let is_new = !std::mem::replace(&mut self.has_zero, true);
                self.list.extend(is_new.then_some(0));
            } else if let Some(slot) = free_slot(&mut self.slots, *hash) {
                *slot = *hash;
                self.list.push(*hash);
            }
        }
    }

    /// The number of hashes at which the table grows.
    fn max_hashes(&self) -> usize {
        let slots = self.slots.len();
        if slots <= MAX_SPARSE_SLOTS {
            slots / 4
        } else {
            slots / 4 * 3
        }
    }

    fn grow(&mut self) {
        let sparse = (4 * self.slots.len()).min(MAX_SPARSE_SLOTS);
        self.slots = vec![0; sparse.max(2 * self.slots.len())];
        for hash in self.list.iter().filter(|hash| **hash != 0) {
            if let Some(slot) = free_slot(&mut self.slots, *hash) {
                *slot = *hash;
            }
        }
    }

    /// Returns all hashes, in no particular order.
    pub(super) fn into_vec(self) -> Vec<u64> {
        self.list
    }
}

/// Returns the empty slot for a hash, or `None` if the table contains the hash.
#[inline]
fn free_slot(slots: &mut [u64], hash: u64) -> Option<&mut u64> {
    debug_assert!(slots.len().is_power_of_two());
    let last = slots.len() - 1;
    // Hashes from the caller may be any numbers. The upper bits of a product depend on all bits.
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(GOLDEN_GAMMA);
    let mut position = (mixed >> 32) as usize & last;
    loop {
        match slots.get(position) {
            Some(0) => return slots.get_mut(position),
            Some(found) if *found == hash => return None,
            // The search ends because at least a quarter of the slots are empty.
            _ => position = (position + 1) & last,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn distinct_set_keeps_each_hash_once() {
        for count in [0_u64, 1, 2, 767, 768, 769, 1_000, 100_000] {
            let room = [0, 5_000, usize::MAX][count as usize % 3];
            let mut set = DistinctHashes::with_capacity(room);
            let hashes: Vec<u64> = (0..count).map(|i| (i * i % 70_001) << 40).collect();
            set.extend(&hashes);
            set.extend(&hashes);
            let expected: BTreeSet<u64> = hashes.into_iter().collect();
            let found = set.into_vec();
            assert_eq!(found.len(), expected.len(), "{count}");
            assert_eq!(found.into_iter().collect::<BTreeSet<u64>>(), expected);
        }
    }
}
