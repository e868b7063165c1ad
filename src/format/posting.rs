//! A posting, and the key under which a block of postings is stored.

use serde::{Deserialize, Serialize};

/// A document indexed under a code of some lane. Postings sort by code, then by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Posting {
    pub(crate) code: u64,
    pub(crate) id: u64,
}

impl Posting {
    /// Returns the posting as one number, which sorts as postings do and is compared without a
    /// branch: the order of postings makes branches unpredictable.
    #[inline]
    pub(crate) fn rank(&self) -> u128 {
        u128::from(self.code) << 64 | u128::from(self.id)
    }

    /// Sorts before every other posting of its code.
    pub(crate) const fn lowest_of(code: u64) -> Self {
        Self { code, id: 0 }
    }

    /// Returns the posting that sorts right after this one; itself if it is the greatest.
    pub(crate) const fn next(self) -> Self {
        match (self.id.checked_add(1), self.code.checked_add(1)) {
            (Some(id), _) => Self { id, ..self },
            (None, Some(code)) => Self { code, id: 0 },
            (None, None) => self,
        }
    }

    /// Returns the posting that sorts right before this one; `None` for the smallest.
    pub(crate) const fn previous(self) -> Option<Self> {
        match (self.id.checked_sub(1), self.code.checked_sub(1)) {
            (Some(id), _) => Some(Self { id, ..self }),
            (None, Some(code)) => Some(Self { code, id: u64::MAX }),
            (None, None) => None,
        }
    }

    /// The greatest posting there is.
    pub(crate) const MAX: Self = Self {
        code: u64::MAX,
        id: u64::MAX,
    };
}

/// The codes that differ from one in at most a given number of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NearCodes {
    pub(crate) code: u64,
    pub(crate) max_distance: u32,
}

impl NearCodes {
    #[inline]
    pub(crate) fn have(self, code: u64) -> bool {
        (self.code ^ code).count_ones() <= self.max_distance
    }
}

/// Run `u32`, lane `u16`, code and id `u64` of the **last** posting of the block, all big-endian,
/// so that the order of the bytes is the order of the numbers.
pub(crate) type BlockKey = [u8; 22];

/// Returns the key of the block of this run and lane that ends with `last`.
pub(crate) fn block_key(run: u32, lane: u16, last: Posting) -> BlockKey {
    let mut key = [0; 22];
    let fields = run
        .to_be_bytes()
        .into_iter()
        .chain(lane.to_be_bytes())
        .chain(last.code.to_be_bytes())
        .chain(last.id.to_be_bytes());
    for (byte, field) in key.iter_mut().zip(fields) {
        *byte = field;
    }
    key
}

/// Returns the run, lane and last posting of a block, from its key.
pub(crate) fn split_block_key(key: &BlockKey) -> (u32, u16, Posting) {
    let [r0, r1, r2, r3, l0, l1, posting @ ..] = *key;
    let [c0, c1, c2, c3, c4, c5, c6, c7, id @ ..] = posting;
    let last = Posting {
        code: u64::from_be_bytes([c0, c1, c2, c3, c4, c5, c6, c7]),
        id: u64::from_be_bytes(id),
    };
    (
        u32::from_be_bytes([r0, r1, r2, r3]),
        u16::from_be_bytes([l0, l1]),
        last,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posting_next_and_previous_are_inverse() {
        let posting = |code, id| Posting { code, id };
        let pairs = [
            (posting(3, 4), posting(3, 5)),
            (posting(3, u64::MAX), posting(4, 0)),
            (posting(u64::MAX, u64::MAX - 1), Posting::MAX),
        ];
        for (before, after) in pairs {
            assert_eq!((before.next(), after.previous()), (after, Some(before)));
        }
        assert_eq!(Posting::MAX.next(), Posting::MAX);
        assert_eq!(posting(0, 0).previous(), None);
    }

    #[test]
    fn block_keys_sort_like_their_numbers() {
        let numbers = [0u64, 1, 255, 256, u64::MAX - 1, u64::MAX];
        let mut keys = Vec::new();
        for run in [0u32, 1, 256, u32::MAX] {
            for lane in [0u16, 255, 256, u16::MAX] {
                for code in numbers {
                    keys.extend(numbers.map(|id| block_key(run, lane, Posting { code, id })));
                }
            }
        }
        assert!(keys.is_sorted_by(|a, b| a < b));
    }
}
