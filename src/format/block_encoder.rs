//! Packs postings into blocks; `block` describes the layout.

use crate::format::bits::{mask, pack, width_of};
use crate::format::block::{BLOCK_POSTINGS, BLOCK_VALUE_BYTES, HAS_PREVIOUS, HEADER_BYTES, KIND};
use crate::format::checksum;
use crate::format::checksum::CHECKSUM_BYTES;
use crate::format::posting::{BlockKey, Posting, block_key};

/// The result of [`encode_if`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encoded {
    pub(crate) key: BlockKey,
    /// Number of postings in the block.
    pub(crate) count: usize,
    /// The last posting of the block.
    pub(crate) last: Posting,
}

/// Packs the first of `postings` that fit one block, if `is_wanted` accepts their number. They must
/// be in strictly ascending order, and all after `previous`, the last posting of the block before
/// in this lane of the run.
///
/// `value` is overwritten. Returns `None` if `is_wanted` refuses the block, or if there are no
/// postings.
pub(crate) fn encode_if(
    table: &str,
    run: u32,
    lane: u16,
    previous: Option<Posting>,
    postings: &[Posting],
    value: &mut Vec<u8>,
    is_wanted: impl FnOnce(usize) -> bool,
) -> Option<Encoded> {
    debug_assert!(
        postings
            .iter()
            .take(BLOCK_POSTINGS)
            .is_sorted_by(|a, b| a < b)
    );
    let shape = BlockShape::from_largest_prefix(postings).filter(|shape| is_wanted(shape.count))?;
    let taken = postings.get(..shape.count)?;
    let (first, last) = (taken.first()?, *taken.last()?);
    let before = previous.unwrap_or(Posting::lowest_of(0));
    let count = u16::try_from(shape.count).ok()?;

    value.clear();
    // Packing writes whole words, one beyond the end.
    value.reserve(BLOCK_VALUE_BYTES + 16);
    value.push(KIND);
    value.push(if previous.is_some() { HAS_PREVIOUS } else { 0 });
    // Widths are at most 64.
    value.extend([shape.low_bits as u8, shape.id_bits() as u8, 0]);
    value.extend_from_slice(&count.to_le_bytes());
    for number in [before.code, before.id, first.code, shape.min_id] {
        value.extend_from_slice(&number.to_le_bytes());
    }
    shape.encode_codes(first.code, taken, value);
    let ids = taken.iter().map(|posting| posting.id - shape.min_id);
    pack(value, shape.id_bits(), shape.count, ids);

    let key = block_key(run, lane, last);
    checksum::seal(table, &key, value);
    Some(Encoded {
        key,
        count: shape.count,
        last,
    })
}

/// Does what [`encode_if`] does, and accepts a block of any number of postings.
#[cfg(test)]
pub(crate) fn encode(
    table: &str,
    run: u32,
    lane: u16,
    previous: Option<Posting>,
    postings: &[Posting],
    value: &mut Vec<u8>,
) -> Option<Encoded> {
    encode_if(table, run, lane, previous, postings, value, |_| true)
}

/// The figures on which the size of a block depends.
#[derive(Clone, Copy)]
pub(super) struct BlockShape {
    count: usize,
    /// Last code less first code.
    span: u64,
    low_bits: u32,
    min_id: u64,
    max_id: u64,
}

impl BlockShape {
    /// Returns the shape of the largest prefix of postings that fits one block; `None` without
    /// postings.
    fn from_largest_prefix(postings: &[Posting]) -> Option<Self> {
        /// Postings taken before the size is checked again.
        const STRIDE: usize = 64;
        let mut shape = Self::from_posting(postings.first()?);
        let mut rest = postings.get(1..BLOCK_POSTINGS.min(postings.len()))?;
        let first_code = postings.first()?.code;
        let mut stride = STRIDE;
        while !rest.is_empty() {
            let (next, after) = rest.split_at_checked(stride).unwrap_or((rest, &[]));
            let longer = shape.with(first_code, next);
            if longer.value_bytes() <= BLOCK_VALUE_BYTES {
                (shape, rest) = (longer, after);
            } else if stride == 1 {
                break;
            } else {
                stride /= 2;
            }
        }
        Some(shape)
    }

    pub(super) fn from_posting(posting: &Posting) -> Self {
        Self {
            count: 1,
            span: 0,
            low_bits: 0,
            min_id: posting.id,
            max_id: posting.id,
        }
    }

    pub(super) fn with(mut self, first_code: u64, next: &[Posting]) -> Self {
        for posting in next {
            self.min_id = self.min_id.min(posting.id);
            self.max_id = self.max_id.max(posting.id);
        }
        self.count += next.len();
        if let Some(last) = next.last() {
            self.span = last.code - first_code;
        }
        // The floor of the logarithm of the mean gap makes the sum of both parts the smallest.
        self.low_bits = (self.span / self.count as u64).max(1).ilog2();
        self
    }

    fn id_bits(&self) -> u32 {
        width_of(self.max_id - self.min_id)
    }

    pub(super) fn value_bytes(&self) -> usize {
        // The mean gap bounds the zeros of the upper part by twice the count.
        let zeros = (self.span >> self.low_bits) as usize;
        HEADER_BYTES
            + (self.count + zeros).div_ceil(8)
            + (self.count * self.low_bits as usize).div_ceil(8)
            + (self.count * self.id_bits() as usize).div_ceil(8)
            + CHECKSUM_BYTES
    }

    fn encode_codes(&self, first_code: u64, postings: &[Posting], value: &mut Vec<u8>) {
        let upper_bits = self.count + (self.span >> self.low_bits) as usize;
        let (mut word, mut word_index) = (0u64, 0);
        let end = value.len() + upper_bits.div_ceil(8);
        for (index, posting) in postings.iter().enumerate() {
            let position = index + ((posting.code - first_code) >> self.low_bits) as usize;
            while word_index < position / 64 {
                value.extend_from_slice(&word.to_le_bytes());
                (word, word_index) = (0, word_index + 1);
            }
            word |= 1 << (position % 64);
        }
        value.extend_from_slice(&word.to_le_bytes());
        value.truncate(end);
        let lowest = mask(self.low_bits);
        let lower = postings
            .iter()
            .map(|posting| (posting.code - first_code) & lowest);
        pack(value, self.low_bits, self.count, lower);
    }
}
