//! The kept hashes of a signature, packed.

use super::bits::{fields, mask, pack, read_word};
use crate::sketch::KEPT_HASH_BITS;

/// Bytes of the count in front.
const COUNT_BYTES: usize = size_of::<u32>();

/// The low bits that are stored of each hash: as many as leave about as many different upper parts as there
/// are hashes.
fn low_bits(count: u32) -> u32 {
    u32::from(KEPT_HASH_BITS) - count.max(1).ilog2()
}

/// Bytes of `count` fields of `width` bits.
fn packed_bytes(count: u64, width: u32) -> u64 {
    (count * u64::from(width)).div_ceil(8)
}

/// Bits of the upper parts in unary: a one for each hash, and a zero for each upper part.
fn unary_bits(count: u32) -> u64 {
    u64::from(count) + (1 << (u32::from(KEPT_HASH_BITS) - low_bits(count)))
}

/// Appends hashes, which ascend: their number, their low bits, and their upper parts in unary.
pub(super) fn encode(hashes: &[u64], bytes: &mut Vec<u8>) {
    // No document has 2^32 shingles that differ.
    let count = u32::try_from(hashes.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&count.to_le_bytes());
    if count == 0 {
        return;
    }
    let low = low_bits(count);
    let low_parts = hashes.iter().map(|hash| hash & mask(low));
    pack(bytes, low, hashes.len(), low_parts);
    let start = bytes.len();
    let unary_bytes = unary_bits(count).div_ceil(8) as usize;
    bytes.resize(start + unary_bytes, 0);
    for (index, hash) in (0_u64..).zip(hashes) {
        let position = (hash >> low) + index;
        if let Some(byte) = bytes.get_mut(start + (position / 8) as usize) {
            *byte |= 1 << (position % 8);
        }
    }
}

/// The packed hashes of a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PackedHashes<'a> {
    count: u32,
    low: &'a [u8],
    unary: &'a [u8],
}

impl<'a> PackedHashes<'a> {
    /// Splits the hashes off the front of `bytes`; `None` if they are no hashes that ascend. Returns the
    /// bytes behind them, too.
    pub(super) fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (count, rest) = bytes.split_first_chunk::<COUNT_BYTES>()?;
        let count = u32::from_le_bytes(*count);
        if count == 0 {
            return Some((Self::default(), rest));
        }
        let low_bytes = usize::try_from(packed_bytes(count.into(), low_bits(count))).ok()?;
        let (low, rest) = rest.split_at_checked(low_bytes)?;
        let unary_bytes = usize::try_from(unary_bits(count).div_ceil(8)).ok()?;
        let (unary, rest) = rest.split_at_checked(unary_bytes)?;
        let packed = Self { count, low, unary };
        packed.is_valid().then_some((packed, rest))
    }

    /// Returns true if there is a one for each hash, and the hashes ascend.
    fn is_valid(self) -> bool {
        let (mut count, mut last) = (0, None);
        for hash in self.iter() {
            if last >= Some(hash) || hash >> KEPT_HASH_BITS != 0 {
                return false;
            }
            (count, last) = (count + 1, Some(hash));
        }
        let ones: u32 = self.unary.iter().map(|byte| byte.count_ones()).sum();
        count == self.count && ones == self.count
    }

    /// Returns the number of hashes.
    pub(super) fn count(self) -> u32 {
        self.count
    }

    /// Iterates over the hashes, ascending.
    pub(super) fn iter(self) -> impl Iterator<Item = u64> + 'a {
        let low_bits = low_bits(self.count);
        let low = fields(self.low, low_bits);
        // The upper part of a hash is the number of zeros before its one.
        let uppers = ones(self.unary).zip(0_u64..);
        let uppers = uppers.map(|(position, index)| position - index);
        let hashes = uppers
            .zip(low)
            .map(move |(upper, low)| upper << low_bits | low);
        hashes.take(self.count as usize)
    }
}

/// The positions of the ones among bits.
fn ones(bits: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let words = bits.chunks(8).map(|chunk| read_word(chunk, 0));
    words.zip(0_u64..).flat_map(|(word, index)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let position = (rest != 0).then(|| rest.trailing_zeros())?;
            rest &= rest - 1;
            Some(64 * index + u64::from(position))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn come_back(hashes: &[u64]) -> usize {
        let mut bytes = vec![7];
        encode(hashes, &mut bytes);
        let length = bytes.len() - 1;
        bytes.push(9);
        let (packed, rest) = PackedHashes::split(&bytes[1..]).unwrap();
        assert_eq!(packed.count() as usize, hashes.len());
        assert_eq!(packed.iter().collect::<Vec<_>>(), hashes);
        assert_eq!(rest, [9]);
        // What is cut, and what no encoder writes, is refused.
        for end in 1..bytes.len() - 1 {
            assert!(PackedHashes::split(&bytes[1..end]).is_none(), "{end}");
        }
        length
    }

    #[test]
    fn hashes_come_back_and_take_five_bytes_each() {
        let greatest = mask(u32::from(KEPT_HASH_BITS));
        come_back(&[]);
        come_back(&[0]);
        come_back(&[greatest]);
        come_back(&[0, 1, greatest - 1, greatest]);
        for count in [3, 64, 100, 460, 5_000] {
            let mut hashes: Vec<u64> = (0..count)
                .map(|number| crate::sketch::mix64(number) >> (64 - KEPT_HASH_BITS))
                .collect();
            hashes.sort_unstable();
            let bytes = come_back(&hashes) as f64 / count as f64;
            let expected = (46.6 - (count as f64).log2()) / 8.0;
            assert!(
                (bytes - expected).abs() < 6.0 / count as f64 + 0.13,
                "{count}: {bytes}"
            );
        }
    }

    #[test]
    fn hashes_that_do_not_ascend_are_refused() {
        for hashes in [&[5, 5][..], &[1 << 43, 1 << 43], &[9, 8]] {
            let mut bytes = Vec::new();
            encode(hashes, &mut bytes);
            assert!(PackedHashes::split(&bytes).is_none(), "{hashes:?}");
        }
    }
}
