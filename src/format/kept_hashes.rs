//! The packed form of the kept hashes of a signature and their positions, and of exact sets.

use super::bits::{fields, mask, pack, read_word, take, width_of};
use crate::error::Result;
use crate::invariant::{OrBug, at_mut, invariant};
use resemblance_sketch::KeptVector;
use resemblance_sketch::exact::ExactSet;
use resemblance_sketch::sketch::{KEPT_HASH_BITS, KeptShingle};

/// Bytes of the count in front.
const COUNT_BYTES: usize = size_of::<u32>();

/// The number of low bits to store of each hash. It leaves about one upper part for each hash.
fn low_bits(count: u32, hash_bits: u8) -> u32 {
    u32::from(hash_bits).saturating_sub(count.max(1).ilog2())
}

/// Returns the upper part of a hash. A hash of 64 bits that is alone has none.
fn upper_part(hash: u64, low_bits: u32) -> u64 {
    hash.checked_shr(low_bits).unwrap_or(0)
}

/// The message of a bug: no document that fits into memory has this many hashes.
const TOO_MANY: &str = "fewer than 2^32 kept hashes of a document";

/// Bytes of `count` fields of `width` bits.
fn packed_bytes(count: u64, width: u32) -> u64 {
    (count * u64::from(width)).div_ceil(8)
}

/// Returns true if the bits behind the first `used` of these bytes, which end in the last byte, are
/// zeros.
fn is_padded(bytes: &[u8], used: u64) -> bool {
    bytes
        .last()
        .is_none_or(|last| used.is_multiple_of(8) || last >> (used % 8) == 0)
}

/// Bits of the upper parts in unary: a one for each hash, and a zero for each upper part.
fn unary_bits(count: u32) -> u64 {
    u64::from(count) + (1 << count.max(1).ilog2())
}

/// Appends kept hashes, which ascend.
pub(super) fn encode(hashes: &[u64], bytes: &mut Vec<u8>) -> Result<()> {
    encode_hashes(hashes, KEPT_HASH_BITS, bytes)
}

/// Appends hashes, which ascend: their number, their low bits, and their upper parts in unary.
fn encode_hashes(hashes: &[u64], hash_bits: u8, bytes: &mut Vec<u8>) -> Result<()> {
    let count = u32::try_from(hashes.len()).ok().or_bug(TOO_MANY)?;
    bytes.extend_from_slice(&count.to_le_bytes());
    if count == 0 {
        return Ok(());
    }
    let low = low_bits(count, hash_bits);
    let unary_bytes = unary_bits(count).div_ceil(8) as usize;
    // Also the last word of the low parts, which may reach beyond their end, and a checksum.
    bytes.reserve(packed_bytes(count.into(), low) as usize + unary_bytes + 24);
    let low_parts = hashes.iter().map(|hash| hash & mask(low));
    pack(bytes, low, hashes.len(), low_parts);
    let start = bytes.len();
    // Whole words are written, so the last one may reach beyond the end for now.
    bytes.resize(start + unary_bytes.next_multiple_of(8), 0);
    let (_, unary) = bytes.split_at_mut(start);
    let (words, _) = unary.as_chunks_mut::<8>();
    let (mut word, mut place) = (0_u64, 0);
    for (index, hash) in (0_u64..).zip(hashes) {
        let position = upper_part(*hash, low) + index;
        let next = (position / 64) as usize;
        if next != place {
            *at_mut(words, place)? = word.to_le_bytes();
            (word, place) = (0, next);
        }
        word |= 1 << (position % 64);
    }
    *at_mut(words, place)? = word.to_le_bytes();
    bytes.truncate(start + unary_bytes);
    Ok(())
}

/// The packed hashes of a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PackedHashes<'a> {
    count: u32,
    /// The width of a hash; 0 without hashes.
    hash_bits: u8,
    low: &'a [u8],
    unary: &'a [u8],
}

impl<'a> PackedHashes<'a> {
    /// Splits the hashes off the front of `bytes`; `None` if they are not ascending hashes. Also
    /// returns the bytes after them.
    pub(super) fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (packed, rest) = Self::split_unchecked(bytes, KEPT_HASH_BITS)?;
        packed.is_valid().then_some((packed, rest))
    }

    /// Like [`split`](Self::split), but does not check that the hashes ascend.
    fn split_unchecked(bytes: &'a [u8], hash_bits: u8) -> Option<(Self, &'a [u8])> {
        let (count, rest) = bytes.split_first_chunk::<COUNT_BYTES>()?;
        let count = u32::from_le_bytes(*count);
        if count == 0 {
            return Some((Self::default(), rest));
        }
        let low_bytes =
            usize::try_from(packed_bytes(count.into(), low_bits(count, hash_bits))).ok()?;
        let (low, rest) = rest.split_at_checked(low_bytes)?;
        let unary_bytes = usize::try_from(unary_bits(count).div_ceil(8)).ok()?;
        let (unary, rest) = rest.split_at_checked(unary_bytes)?;
        // A one behind the fields would be another encoding of the same hashes. Behind the unary
        // part it would be one too many.
        let is_padded = is_padded(
            low,
            u64::from(count) * u64::from(low_bits(count, hash_bits)),
        );
        let packed = Self {
            count,
            hash_bits,
            low,
            unary,
        };
        is_padded.then_some((packed, rest))
    }

    /// Returns the hashes; `None` if they do not ascend, or a one is missing or left.
    fn ascending(self) -> Option<Vec<u64>> {
        let hashes: Vec<u64> = self.iter().collect();
        let ones: u32 = self.unary.iter().map(|byte| byte.count_ones()).sum();
        let do_ascend = hashes.is_sorted_by(|a, b| a < b)
            && hashes.last().is_none_or(|last| self.is_narrow(*last));
        (do_ascend && hashes.len() == self.count as usize && ones == self.count).then_some(hashes)
    }

    /// Returns true if there is a one for each hash, and the hashes ascend.
    fn is_valid(self) -> bool {
        let (mut count, mut last) = (0, None);
        for hash in self.iter() {
            if last >= Some(hash) || !self.is_narrow(hash) {
                return false;
            }
            (count, last) = (count + 1, Some(hash));
        }
        let ones: u32 = self.unary.iter().map(|byte| byte.count_ones()).sum();
        count == self.count && ones == self.count
    }

    /// Returns whether a hash has the width of these hashes.
    fn is_narrow(self, hash: u64) -> bool {
        hash & !mask(self.hash_bits.into()) == 0
    }

    /// Returns the number of hashes.
    pub(super) fn count(self) -> u32 {
        self.count
    }

    /// Iterates over the hashes, ascending.
    pub(super) fn iter(self) -> impl Iterator<Item = u64> + 'a {
        let low_bits = low_bits(self.count, self.hash_bits);
        let low = fields(self.low, low_bits);
        // The upper part of a hash is the number of zeros before its one.
        let uppers = ones(self.unary).zip(0_u64..);
        let hash = move |((position, index), low): ((u64, u64), u64)| {
            let upper = (position - index).checked_shl(low_bits);
            upper.unwrap_or(0) | low
        };
        uppers.zip(low).map(hash).take(self.count as usize)
    }
}

/// The form of the exact sets of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetForm {
    /// Hashes of this width, 32 to 64, with or without weights.
    Features { hash_bits: u8, is_weighted: bool },
    /// A vector.
    Vector(VectorForm),
}

/// The form of the vectors of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VectorForm {
    pub(crate) dimensions: u16,
    pub(crate) kept: KeptVector,
}

/// Appends an exact set: its vector, or its hashes and its weights, if it has any. Drops the low
/// bits that are 0 in all weights.
pub(super) fn encode_set(set: &ExactSet, form: SetForm, bytes: &mut Vec<u8>) -> Result<()> {
    let (hash_bits, is_weighted) = match form {
        SetForm::Features {
            hash_bits,
            is_weighted,
        } => (hash_bits, is_weighted),
        SetForm::Vector(form) => {
            form.kept
                .encode(set.vector().or_bug("a vector to keep")?, bytes);
            return Ok(());
        }
    };
    encode_hashes(set.hashes(), hash_bits, bytes)?;
    let weights = set.weights();
    let expected = usize::from(is_weighted) * set.hashes().len();
    let found = weights.len();
    invariant!(
        found == expected,
        "a set has {found} weights, expected {expected}"
    );
    let all = weights.iter().fold(0, |all, weight| all | weight);
    if all > 0 {
        let shift = all.trailing_zeros();
        let width = width_of(all >> shift);
        bytes.extend_from_slice(&[shift as u8, width as u8]);
        let fields = weights.iter().map(|weight| weight >> shift);
        pack(bytes, width, weights.len(), fields);
    }
    Ok(())
}

/// Splits an exact set off the front of `bytes`. Also returns the bytes that follow. Returns `None`
/// if the set is not in its encoded form.
pub(super) fn split_set(bytes: &[u8], form: SetForm) -> Option<(ExactSet, &[u8])> {
    let (hash_bits, is_weighted) = match form {
        SetForm::Features {
            hash_bits,
            is_weighted,
        } => (hash_bits, is_weighted),
        SetForm::Vector(form) => {
            let size_bytes = form.kept.size_bytes(form.dimensions);
            let (vector, rest) = bytes.split_at_checked(size_bytes)?;
            return Some((ExactSet::of_vector(form.kept.decode(vector)?), rest));
        }
    };
    let (packed, mut rest) = PackedHashes::split_unchecked(bytes, hash_bits)?;
    let hashes = packed.ascending()?;
    let mut weights = Vec::new();
    if is_weighted && !hashes.is_empty() {
        let [shift, width] = take(&mut rest)?;
        if width == 0 || shift > 63 || width > 64 - shift {
            return None;
        }
        let packed_bytes = packed_bytes(hashes.len() as u64, width.into());
        let (packed, behind) = rest.split_at_checked(usize::try_from(packed_bytes).ok()?)?;
        if !is_padded(packed, hashes.len() as u64 * u64::from(width)) {
            return None;
        }
        weights.extend(fields(packed, width.into()).take(hashes.len()));
        let all = weights.iter().fold(0, |all, field| all | field);
        if all & 1 == 0 || width_of(all) != u32::from(width) || weights.contains(&0) {
            return None;
        }
        weights.iter_mut().for_each(|field| *field <<= shift);
        rest = behind;
    }
    Some((ExactSet::from_sorted(hashes, weights), rest))
}

/// Returns the number of hashes of a packed set, and any number for a vector.
pub(super) fn set_count(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.first_chunk::<COUNT_BYTES>()?))
}

/// The most bits of a position. No document has 2^47 shingles.
const MAX_POSITION_BITS: u8 = 47;

/// Appends the positions of kept shingles, if there are any: their number, the bits of a position,
/// and by ascending hash their positions, each with a bit that is set for the last one of its hash.
pub(super) fn encode_positions(shingles: &[KeptShingle], bytes: &mut Vec<u8>) -> Result<()> {
    let Some(&(greatest, _)) = shingles.last() else {
        return Ok(());
    };
    let mut by_hash: Vec<(u64, u64)> = shingles.iter().map(|&(at, hash)| (hash, at)).collect();
    by_hash.sort_unstable();
    let count = u32::try_from(by_hash.len()).ok().or_bug(TOO_MANY)?;
    bytes.extend_from_slice(&count.to_le_bytes());
    let width = width_of(greatest);
    bytes.push(width as u8);
    let next = by_hash.iter().skip(1).map(|&(hash, _)| Some(hash));
    let neighbours = by_hash.iter().zip(next.chain([None]));
    let placed = neighbours.map(|(&(hash, at), next)| at << 1 | u64::from(next != Some(hash)));
    pack(bytes, width + 1, by_hash.len(), placed);
    Ok(())
}

/// The packed positions of a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PackedPositions<'a> {
    count: u32,
    width: u8,
    placed: &'a [u8],
}

impl<'a> PackedPositions<'a> {
    /// Splits the positions of this number of hashes off the front of `bytes`; `None` if they are
    /// not valid. Also returns the bytes after them.
    pub(super) fn split(bytes: &'a [u8], hashes: u32) -> Option<(Self, &'a [u8])> {
        if hashes == 0 {
            return Some((Self::default(), bytes));
        }
        let (count, rest) = bytes.split_first_chunk::<COUNT_BYTES>()?;
        let count = u32::from_le_bytes(*count);
        let (&width, rest) = rest.split_first()?;
        if width > MAX_POSITION_BITS {
            return None;
        }
        let placed_bytes = packed_bytes(count.into(), u32::from(width) + 1);
        let (placed, rest) = rest.split_at_checked(usize::try_from(placed_bytes).ok()?)?;
        let packed = Self {
            count,
            width,
            placed,
        };
        packed.is_valid(hashes).then_some((packed, rest))
    }

    /// Returns true if the number of last positions is `hashes`, the last of all is among them, the
    /// positions of a hash ascend, and the greatest one has the width.
    fn is_valid(self, hashes: u32) -> bool {
        let (mut lasts, mut before, mut greatest) = (0, None, 0);
        for (position, is_last) in self.iter() {
            if before >= Some(position) {
                return false;
            }
            lasts += u32::from(is_last);
            before = (!is_last).then_some(position);
            greatest = greatest.max(position);
        }
        lasts == hashes && before.is_none() && width_of(greatest) == u32::from(self.width)
    }

    /// Iterates over the positions by ascending hash, each with whether it is the last one of its hash.
    fn iter(self) -> impl Iterator<Item = (u64, bool)> + 'a {
        let placed = fields(self.placed, u32::from(self.width) + 1).take(self.count as usize);
        placed.map(|placed| (placed >> 1, placed & 1 == 1))
    }

    /// Returns the kept shingles of these hashes, which ascend, in the order of the document.
    pub(super) fn shingles(self, hashes: &[u64]) -> Vec<KeptShingle> {
        let mut shingles = Vec::with_capacity(self.count as usize);
        let mut left = hashes.iter();
        let mut hash = left.next();
        for (position, is_last) in self.iter() {
            shingles.extend(hash.map(|&hash| (position, hash)));
            if is_last {
                hash = left.next();
            }
        }
        shingles.sort_unstable();
        shingles
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
        encode(hashes, &mut bytes).unwrap();
        let length = bytes.len() - 1;
        bytes.push(9);
        let (packed, rest) = PackedHashes::split(&bytes[1..]).unwrap();
        assert_eq!(packed.count() as usize, hashes.len());
        assert_eq!(packed.iter().collect::<Vec<_>>(), hashes);
        assert_eq!(rest, [9]);
        // Truncated bytes, and bytes that no encoder writes, are refused.
        for end in 1..bytes.len() - 1 {
            assert!(PackedHashes::split(&bytes[1..end]).is_none(), "{end}");
        }
        length
    }

    #[test]
    fn kept_hashes_round_trip_in_five_bytes_each() {
        let greatest = mask(u32::from(KEPT_HASH_BITS));
        come_back(&[]);
        come_back(&[0]);
        come_back(&[greatest]);
        come_back(&[0, 1, greatest - 1, greatest]);
        for count in [3, 64, 100, 460, 5_000] {
            let mut hashes: Vec<u64> = (0..count)
                .map(|number| resemblance_sketch::sketch::mix64(number) >> (64 - KEPT_HASH_BITS))
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
    fn kept_positions_round_trip_in_logarithmic_size() {
        let hash = |number: u64| resemblance_sketch::sketch::mix64(number) >> (64 - KEPT_HASH_BITS);
        for (count, step, different) in [
            (1_u64, 1, 1),
            (1, 1 << 46, 1),
            (7, 1, 1),
            (100, 3, 17),
            (444, 9, 444),
        ] {
            let shingles: Vec<KeptShingle> = (0..count)
                .map(|number| (number * step, hash(number % different)))
                .collect();
            let mut hashes: Vec<u64> = shingles.iter().map(|(_, hash)| *hash).collect();
            hashes.sort_unstable();
            hashes.dedup();
            let mut bytes = Vec::new();
            encode_positions(&shingles, &mut bytes).unwrap();
            let bits = u64::from(width_of((count - 1) * step)) + 1;
            assert_eq!(bytes.len() as u64, 5 + (count * bits).div_ceil(8));
            bytes.push(9);
            let number = hashes.len() as u32;
            let (packed, rest) = PackedPositions::split(&bytes, number).unwrap();
            assert_eq!((packed.shingles(&hashes), rest), (shingles, &[9][..]));
            for end in 0..bytes.len() - 1 {
                assert!(PackedPositions::split(&bytes[..end], number).is_none());
            }
            assert!(PackedPositions::split(&bytes, number + 1).is_none());
            assert!(number == 1 || PackedPositions::split(&bytes, number - 1).is_none());
            bytes[4] += 1;
            assert!(
                PackedPositions::split(&bytes, number).is_none(),
                "a wider one"
            );
        }
        let (packed, rest) = PackedPositions::split(&[9], 0).unwrap();
        assert_eq!((packed.shingles(&[]), rest), (vec![], &[9][..]));
    }

    /// Checks that no other bytes of this length, but for one bit, are the same set.
    fn has_one_encoding(bytes: &[u8], form: SetForm) {
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            if let Some((set, &[])) = split_set(&changed, form) {
                let mut again = Vec::new();
                encode_set(&set, form, &mut again).unwrap();
                assert_eq!(again, changed, "bit {bit}");
            }
        }
    }

    #[test]
    fn exact_sets_round_trip_and_refuse_other_bytes() {
        let units = [None, Some(1_u64 << 16), Some(3), Some(7 << 40)];
        for (hash_bits, unit) in [32, 44, 57, 63, 64]
            .into_iter()
            .flat_map(|b| units.map(|u| (b, u)))
        {
            let form = SetForm::Features {
                hash_bits,
                is_weighted: unit.is_some(),
            };
            for count in [0, 1, 2, 64, 300_u64] {
                let greatest = mask(hash_bits.into());
                let mut hashes: Vec<u64> = (0..count).map(|n| n * n * 977 + n).collect();
                // The greatest hash, too.
                hashes
                    .iter_mut()
                    .skip(1)
                    .last()
                    .into_iter()
                    .for_each(|last| *last = greatest);
                let weigh =
                    |unit: u64| (0..count).map(|n| (n % 5 + 1) * unit).collect::<Vec<u64>>();
                let set = ExactSet::from_sorted(hashes, unit.map(weigh).unwrap_or_default());
                let mut bytes = Vec::new();
                encode_set(&set, form, &mut bytes).unwrap();
                bytes.push(9);
                assert_eq!(split_set(&bytes, form), Some((set, &[9][..])));
                assert_eq!(set_count(&bytes), Some(count as u32));
                for end in 0..bytes.len() - 1 {
                    assert_eq!(split_set(&bytes[..end], form), None, "{count} {end}");
                }
                bytes.pop();
                has_one_encoding(&bytes, form);
            }
        }
        for hashes in [&[5, 5][..], &[1 << 43, 1 << 43], &[9, 8]] {
            let mut bytes = Vec::new();
            encode(hashes, &mut bytes).unwrap();
            let form = SetForm::Features {
                hash_bits: KEPT_HASH_BITS,
                is_weighted: false,
            };
            assert_eq!(split_set(&bytes, form), None);
        }
    }

    #[test]
    fn kept_hashes_must_ascend() {
        for hashes in [&[5, 5][..], &[1 << 43, 1 << 43], &[9, 8]] {
            let mut bytes = Vec::new();
            encode(hashes, &mut bytes).unwrap();
            assert!(PackedHashes::split(&bytes).is_none(), "{hashes:?}");
        }
    }
}
