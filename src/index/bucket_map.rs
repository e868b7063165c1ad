//! The postings of one lane in memory, by bucket: a hash table with chains.

use crate::format::Posting;

/// The end of a chain.
const NONE: u32 = u32::MAX;

/// Slots of the smallest table.
const MIN_SLOTS: usize = 1 << 4;

/// Spreads codes whose lowest bits may be equal (2⁶⁴ divided by the golden ratio).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The postings of one lane. A bucket is found in constant time, and takes no order.
#[derive(Debug, Default)]
pub(crate) struct BucketMap {
    /// The last posting of the chain of each slot; their number is a power of two.
    slots: Vec<u32>,
    postings: Vec<ChainedPosting>,
}

#[derive(Debug)]
struct ChainedPosting {
    code: u64,
    id: u32,
    /// The posting before it in its chain.
    previous: u32,
}

impl ChainedPosting {
    fn posting(&self) -> Posting {
        Posting {
            code: self.code,
            id: self.id.into(),
        }
    }
}

impl BucketMap {
    /// Bytes that a posting takes, about.
    pub(crate) const POSTING_BYTES: usize = size_of::<ChainedPosting>() + 3 * size_of::<u32>();

    /// Appends a posting. `low_code` returns the lowest code in the bucket of a code. Returns false
    /// if the lane is full, with 2³² − 1 postings, or the id is not below 2³².
    #[must_use]
    pub(crate) fn push(&mut self, posting: Posting, low_code: impl Fn(u64) -> u64) -> bool {
        let index = u32::try_from(self.postings.len()).ok();
        let id = u32::try_from(posting.id).ok();
        let Some((index, id)) = index.filter(|i| *i < NONE).zip(id) else {
            return false;
        };
        if 2 * self.postings.len() >= self.slots.len() {
            self.grow(&low_code);
        }
        let slot = slot_of(low_code(posting.code), self.slots.len());
        let Some(last) = self.slots.get_mut(slot) else {
            return false;
        };
        let previous = std::mem::replace(last, index);
        self.postings.push(ChainedPosting {
            code: posting.code,
            id,
            previous,
        });
        true
    }

    fn grow(&mut self, low_code: &impl Fn(u64) -> u64) {
        self.chain_again((2 * self.slots.len()).max(MIN_SLOTS), low_code);
    }

    /// Makes a table of this many slots, a power of two.
    fn chain_again(&mut self, slots: usize, low_code: &impl Fn(u64) -> u64) {
        self.slots = vec![NONE; slots];
        // In the order of insertion, so that the newest posting is first in its chain again.
        for (index, chained) in (0..).zip(&mut self.postings) {
            let slot = slot_of(low_code(chained.code), slots);
            if let Some(last) = self.slots.get_mut(slot) {
                chained.previous = std::mem::replace(last, index);
            }
        }
    }

    /// Removes the postings of other documents than those to keep.
    pub(crate) fn retain(
        &mut self,
        mut is_kept: impl FnMut(u64) -> bool,
        low_code: impl Fn(u64) -> u64,
    ) {
        self.postings.retain(|chained| is_kept(chained.id.into()));
        self.postings.shrink_to_fit();
        self.chain_again(2 * self.postings.len().next_power_of_two(), &low_code);
    }

    /// Returns the number of postings.
    pub(crate) fn len(&self) -> usize {
        self.postings.len()
    }

    /// Returns the postings with codes of `low_code..=high_code`, the codes of one bucket, the newest
    /// first.
    pub(crate) fn bucket(&self, low_code: u64, high_code: u64) -> impl Iterator<Item = Posting> {
        self.chain(self.last(low_code), low_code, high_code)
    }

    /// Returns where the chain of a bucket begins, given the bucket's lowest code. If there are
    /// many buckets, look up all beginnings first: the processor then waits for several at a time.
    pub(crate) fn last(&self, low_code: u64) -> u32 {
        let slot = slot_of(low_code, self.slots.len());
        self.slots.get(slot).copied().unwrap_or(NONE)
    }

    /// Returns the postings of a [`bucket`](Self::bucket), of which `last` is known.
    pub(crate) fn chain(
        &self,
        last: u32,
        low_code: u64,
        high_code: u64,
    ) -> impl Iterator<Item = Posting> {
        let mut next = last;
        let chain = std::iter::from_fn(move || {
            let chained = self.postings.get(next as usize)?;
            next = chained.previous;
            Some(chained.posting())
        });
        chain.filter(move |posting| (low_code..=high_code).contains(&posting.code))
    }
}

/// `slots` is a power of two, or 0.
fn slot_of(low_code: u64, slots: usize) -> usize {
    let mixed = low_code.wrapping_mul(SPREAD);
    // The upper bits of a product depend on all bits of the factors.
    (mixed >> 32) as usize & slots.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn bucket_map_returns_inserted_postings() {
        // Buckets of 16 codes, one of them large.
        let low = |code: u64| code & !15;
        let code = |n: u64| {
            if n.is_multiple_of(3) {
                7
            } else {
                n * n % 5_000
            }
        };
        let (mut map, mut model) = (BucketMap::default(), BTreeMap::<u64, Vec<Posting>>::new());
        assert_eq!(map.bucket(0, 15).count(), 0);
        for id in 0..5_000 {
            let posting = Posting { code: code(id), id };
            assert!(map.push(posting, low));
            model
                .entry(low(posting.code))
                .or_default()
                .insert(0, posting);
        }
        for low_code in (0..6_000).step_by(16) {
            let expected = model.get(&low_code).cloned().unwrap_or_default();
            let found: Vec<Posting> = map.bucket(low_code, low_code + 15).collect();
            assert_eq!(found, expected, "bucket {low_code}");
        }
    }
}
