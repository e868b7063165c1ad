//! The distinct ones of many hashes.

use crate::sketch::hash::GOLDEN_GAMMA;

/// Slots of the smallest table.
const LEAST_SLOTS: usize = 1 << 10;

/// A table of up to so many slots has three empty ones for each that is taken: a look-up then mostly
/// ends at the first, as the processor expects. Larger ones are fuller, for their memory.
const SPARSE_SLOTS: usize = 1 << 16;

/// A set of hashes: an open table beside a list. Takes 19 to 30 bytes for each once there are many.
pub(crate) struct DistinctHashes {
    /// A power of two of them; 0 where there is nothing.
    slots: Vec<u64>,
    /// All of them, in the order in which they came.
    list: Vec<u64>,
    has_zero: bool,
}

impl DistinctHashes {
    /// A set that has room for about so many.
    pub(crate) fn with_room(hashes: usize) -> Self {
        // What the caller expects is no more than a hint.
        let slots = 4 * hashes.min(SPARSE_SLOTS / 4);
        let slots = slots.next_power_of_two().max(LEAST_SLOTS);
        Self {
            slots: vec![0; slots],
            list: Vec::with_capacity(slots / 4),
            has_zero: false,
        }
    }

    pub(crate) fn extend(&mut self, hashes: &[u64]) {
        for hash in hashes {
            if self.list.len() >= self.most() {
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

    /// How many the table takes before it grows.
    fn most(&self) -> usize {
        let slots = self.slots.len();
        if slots <= SPARSE_SLOTS {
            slots / 4
        } else {
            slots / 4 * 3
        }
    }

    fn grow(&mut self) {
        let slots = (4 * self.slots.len()).min(SPARSE_SLOTS);
        let slots = slots.max(2 * self.slots.len());
        self.slots = vec![0; slots];
        for hash in self.list.iter().filter(|hash| **hash != 0) {
            if let Some(slot) = free_slot(&mut self.slots, *hash) {
                *slot = *hash;
            }
        }
    }

    /// All of them, in no order that means anything.
    pub(crate) fn into_vec(self) -> Vec<u64> {
        self.list
    }
}

/// Where a hash is to be put, `None` if it is there.
#[inline]
fn free_slot(slots: &mut [u64], hash: u64) -> Option<&mut u64> {
    let last = slots.len().checked_sub(1)?;
    // Hashes that the caller brings may be any numbers; of a product the upper bits depend on all.
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(GOLDEN_GAMMA);
    let mut place = (mixed >> 32) as usize & last;
    loop {
        match slots.get(place) {
            Some(0) => return slots.get_mut(place),
            Some(found) if *found == hash => return None,
            // There is always an empty one.
            _ => place = (place + 1) & last,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_is_kept_once() {
        for count in [0_u64, 1, 2, 767, 768, 769, 1_000, 100_000] {
            let room = [0, 5_000, usize::MAX][count as usize % 3];
            let mut set = DistinctHashes::with_room(room);
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
