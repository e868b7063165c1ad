//! Filters show, without reading blocks, that a lane of a run does not contain a bucket.
//!
//! A filter is cut into pieces by equal ranges of buckets. A lane that is written in order
//! therefore also writes its filter in order, one piece at a time. A piece is a split block Bloom
//! filter (Putze, Sanders and Singler, J. Experimental Algorithmics 14, 2009), whose bits are
//! chosen as in Apache Parquet. It consists of blocks of 256 bits; a bucket sets eight bits in one
//! of them, or four if there is little room.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::format::checksum;
use crate::invariant::{at, at_mut};
use resemblance_sketch::sketch::mix64;

pub(crate) const FILTERS: &str = "filters";

const KIND: u8 = 1;

/// Bytes of a block of the filter.
const BLOCK_BYTES: usize = 32;

/// A block, which is within one cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(32))]
struct FilterBlock([u8; BLOCK_BYTES]);

impl FilterBlock {
    const EMPTY: Self = Self([0; BLOCK_BYTES]);
}

/// Maximum number of blocks of a piece: 4,032 bytes, which fit one page with their key.
const MAX_BLOCKS: u16 = 126;

/// The odd multipliers that choose one bit in each of the words of a block.
const SALTS: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// Run `u32`, lane `u16` and number of the piece `u32`, all big-endian.
pub(crate) type FilterKey = [u8; 10];

/// Returns the key of a piece.
pub(crate) fn filter_key(run: u32, lane: u16, piece: u32) -> FilterKey {
    let [a, b, c, d] = run.to_be_bytes();
    let [e, f] = lane.to_be_bytes();
    let [g, h, i, j] = piece.to_be_bytes();
    [a, b, c, d, e, f, g, h, i, j]
}

/// Returns the run, lane and number of a piece, from its key.
pub(crate) fn split_filter_key(key: &FilterKey) -> (u32, u16, u32) {
    let [r0, r1, r2, r3, l0, l1, piece @ ..] = *key;
    (
        u32::from_be_bytes([r0, r1, r2, r3]),
        u16::from_be_bytes([l0, l1]),
        u32::from_be_bytes(piece),
    )
}

/// The division of a filter into pieces and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilterShape {
    /// Number of pieces, at least one.
    pub(crate) pieces: u32,
    /// Blocks of 256 bits in each, 1 to 126.
    pub(crate) blocks: u16,
    /// Bits of a bucket in its block: 4 or 8, each in a separate word.
    pub(crate) set_bits: u8,
}

/// The minimum number of bits per posting for eight bits to be set. In a smaller filter, four set
/// bits let fewer other codes pass than eight.
const MIN_BITS_FOR_EIGHT: u64 = 9;

impl FilterShape {
    /// Returns the shape of a filter for about `postings` postings, with `bits_per_posting` bits
    /// each.
    pub(crate) fn new(postings: u64, bits_per_posting: u64) -> Self {
        let block_bits = BLOCK_BYTES as u64 * 8;
        let blocks = postings
            .saturating_mul(bits_per_posting)
            .div_ceil(block_bits);
        let pieces = blocks.div_ceil(MAX_BLOCKS.into()).clamp(1, u32::MAX.into());
        let of_piece = blocks.div_ceil(pieces).clamp(1, MAX_BLOCKS.into());
        Self {
            // Both are within their types: they have just been clamped.
            pieces: pieces as u32,
            blocks: of_piece as u16,
            set_bits: if bits_per_posting < MIN_BITS_FOR_EIGHT {
                4
            } else {
                8
            },
        }
    }

    pub(super) fn is_valid(self) -> bool {
        self.pieces > 0 && (1..=MAX_BLOCKS).contains(&self.blocks) && matches!(self.set_bits, 4 | 8)
    }

    /// Returns the number of blocks in all pieces.
    pub(crate) fn all_blocks(self) -> u64 {
        u64::from(self.pieces) * u64::from(self.blocks)
    }

    /// Returns the index of the piece that a bucket belongs to.
    #[inline]
    pub(crate) fn piece(self, bucket: u64) -> u32 {
        let product = u128::from(bucket) * u128::from(self.pieces);
        (product >> 64) as u32
    }
}

/// A bucket, and the block of a piece that decides about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilterProbe<'p> {
    block: &'p FilterBlock,
    /// Chooses the bits.
    hash: u32,
    has_four: bool,
}

impl FilterProbe<'_> {
    /// Decides for many buckets what [`may_hold`](Self::may_hold) decides for one. This is faster
    /// if the processor handles all words of a block at once.
    pub(crate) fn ask_all<T>(asked: impl Iterator<Item = (Self, T)>, notify: impl FnMut(T, bool)) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the feature that the function needs, as just checked.
            #[allow(unsafe_code, reason = "a kernel for processors that have been asked")]
            return unsafe { Self::ask_all_avx2(asked, notify) };
        }
        Self::ask_each(asked, notify);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn ask_all_avx2<T>(asked: impl Iterator<Item = (Self, T)>, notify: impl FnMut(T, bool)) {
        Self::ask_each(asked, notify);
    }

    #[inline(always)]
    fn ask_each<T>(asked: impl Iterator<Item = (Self, T)>, mut notify: impl FnMut(T, bool)) {
        for (probe, of) in asked {
            notify(of, probe.may_hold());
        }
    }

    /// Reads a byte of what [`may_hold`](Self::may_hold) reads. Calling this for many filters
    /// before asking the first waits for memory once instead of each time.
    #[inline]
    pub(crate) fn touch(self) -> u8 {
        let FilterBlock([byte, ..]) = self.block;
        *byte
    }

    /// Returns false only if the bucket was not inserted.
    #[inline(always)]
    pub(crate) fn may_hold(self) -> bool {
        let FilterBlock(block) = self.block;
        // All words are examined: which word first lacks its bit is random, so the processor cannot
        // predict it.
        if self.has_four {
            let words = block.as_chunks::<8>().0.iter().zip(SALTS);
            let lacks = |(word, salt): (&[u8; 8], u32)| {
                !u64::from_le_bytes(*word) & bit_of_64(self.hash, salt)
            };
            words.map(lacks).fold(0, |all, lacking| all | lacking) == 0
        } else {
            let words = block.as_chunks::<4>().0.iter().zip(SALTS);
            let lacks = |(word, salt): (&[u8; 4], u32)| {
                !u32::from_le_bytes(*word) & bit_of_32(self.hash, salt)
            };
            words.map(lacks).fold(0, |all, lacking| all | lacking) == 0
        }
    }
}

/// A piece of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilterPiece {
    blocks: Box<[FilterBlock]>,
    has_four: bool,
}

impl FilterPiece {
    /// Makes an empty piece.
    pub(crate) fn new(shape: FilterShape) -> Self {
        Self::with_blocks(shape, vec![FilterBlock::EMPTY; shape.blocks.into()].into())
    }

    fn with_blocks(shape: FilterShape, blocks: Box<[FilterBlock]>) -> Self {
        Self {
            blocks,
            has_four: shape.set_bits == 4,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.blocks.fill(FilterBlock::EMPTY);
    }

    /// # Errors
    /// [`Error::Bug`] if the bucket's block does not exist, which is impossible.
    #[inline(always)]
    pub(crate) fn insert(&mut self, bucket: u64) -> Result<()> {
        let (index, hash) = self.index_and_hash(bucket);
        let FilterBlock(block) = at_mut(&mut self.blocks, index)?;
        if self.has_four {
            for (word, salt) in block.as_chunks_mut::<8>().0.iter_mut().zip(SALTS) {
                *word = (u64::from_le_bytes(*word) | bit_of_64(hash, salt)).to_le_bytes();
            }
        } else {
            for (word, salt) in block.as_chunks_mut::<4>().0.iter_mut().zip(SALTS) {
                *word = (u32::from_le_bytes(*word) | bit_of_32(hash, salt)).to_le_bytes();
            }
        }
        Ok(())
    }

    /// Inserts many buckets. This is several times faster if the processor handles all words of a
    /// block at once.
    ///
    /// # Errors
    /// Returns the errors of [`insert`](Self::insert).
    pub(crate) fn insert_all(&mut self, mut buckets: impl Iterator<Item = u64>) -> Result<()> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the feature that the function needs, as just checked.
            #[allow(unsafe_code, reason = "a kernel for processors that have been asked")]
            return unsafe { self.insert_all_avx2(buckets) };
        }
        buckets.try_for_each(|bucket| self.insert(bucket))
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn insert_all_avx2(&mut self, buckets: impl Iterator<Item = u64>) -> Result<()> {
        for bucket in buckets {
            self.insert(bucket)?;
        }
        Ok(())
    }

    /// Finds the block that decides about a bucket, without reading it.
    ///
    /// # Errors
    /// [`Error::Bug`] if the bucket's block does not exist, which is impossible.
    #[inline]
    pub(crate) fn probe(&self, bucket: u64) -> Result<FilterProbe<'_>> {
        let (index, hash) = self.index_and_hash(bucket);
        Ok(FilterProbe {
            block: at(&self.blocks, index)?,
            hash,
            has_four: self.has_four,
        })
    }

    /// Returns false only if the bucket was not inserted.
    ///
    /// # Errors
    /// Returns the errors of [`probe`](Self::probe).
    pub(crate) fn may_hold(&self, bucket: u64) -> Result<bool> {
        Ok(self.probe(bucket)?.may_hold())
    }

    /// Returns the index of a bucket's block, and the hash that chooses the bits in it.
    #[inline]
    fn index_and_hash(&self, bucket: u64) -> (usize, u32) {
        let hash = mix64(bucket);
        let index = ((hash >> 32) * self.blocks.len() as u64) >> 32;
        (index as usize, hash as u32)
    }

    pub(crate) fn size_bytes(&self) -> usize {
        size_of_val(&*self.blocks)
    }

    pub(crate) fn encode(&self, key: &FilterKey) -> Vec<u8> {
        let mut value = Vec::with_capacity(self.size_bytes() + 1 + checksum::CHECKSUM_BYTES);
        value.push(KIND);
        for FilterBlock(block) in &self.blocks {
            value.extend_from_slice(block);
        }
        checksum::seal(FILTERS, key, &mut value);
        value
    }

    /// # Errors
    /// [`Error::Corrupt`] if checksum, kind or length are not what they must be.
    pub(crate) fn decode(key: &FilterKey, shape: FilterShape, value: &[u8]) -> Result<Self> {
        let length = usize::from(shape.blocks) * BLOCK_BYTES;
        match checksum::open(FILTERS, key, value)? {
            [KIND, bytes @ ..] if bytes.len() == length => {
                let blocks = bytes.as_chunks().0.iter().copied().map(FilterBlock);
                Ok(Self::with_blocks(shape, blocks.collect()))
            }
            found => {
                let (kind, found) = (found.first(), found.len());
                let detail = format!(
                    "found kind {kind:?} and {found} bytes, expected {KIND} and {length} more"
                );
                Err(Error::corrupt(checksum::place(FILTERS, key), detail))
            }
        }
    }
}

#[inline]
fn bit_of_32(hash: u32, salt: u32) -> u32 {
    1 << (hash.wrapping_mul(salt) >> 27)
}

#[inline]
fn bit_of_64(hash: u32, salt: u32) -> u64 {
    1 << (hash.wrapping_mul(salt) >> 26)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_shape_follows_the_number_of_postings() {
        let shape = |postings, bits| {
            let shape = FilterShape::new(postings, bits);
            assert!(shape.is_valid());
            (shape.pieces, shape.blocks, shape.set_bits)
        };
        assert_eq!(shape(0, 10), (1, 1, 8));
        assert_eq!(shape(1_000, 10), (1, 40, 8));
        assert_eq!(shape(3_225, 10), (1, 126, 8));
        assert_eq!(shape(3_226, 10), (2, 64, 8));
        assert_eq!(shape(65_536, 12), (25, 123, 8));
        assert_eq!(shape(u64::MAX, 12), (u32::MAX, 126, 8));
        assert_eq!((shape(1_000, 9), shape(1_000, 8)), ((1, 36, 8), (1, 32, 4)));
    }

    /// A merge may write no larger filter.
    #[test]
    fn filter_shapes_have_at_most_one_block_for_each_posting() {
        let powers = (0..64).map(|shift| 1_u64 << shift);
        let around = powers.flat_map(|power| [power - 1, power, power + 1, 3 * (power >> 1)]);
        let all = (1..20_000).chain(around).chain([u64::MAX]);
        for postings in all.filter(|postings| *postings > 0) {
            for bits in 1..=16 {
                let shape = FilterShape::new(postings, bits);
                assert!(shape.all_blocks() <= postings, "{postings}, {bits} bits");
            }
        }
    }

    #[test]
    fn filter_pieces_are_equal_ranges() {
        let shape = FilterShape {
            pieces: 3,
            blocks: 1,
            set_bits: 8,
        };
        let third = u64::MAX / 3;
        let buckets = [0, third, third + 1, 2 * third, 2 * third + 1, u64::MAX];
        assert_eq!(
            buckets.map(|bucket| shape.piece(bucket)),
            [0, 0, 1, 1, 2, 2]
        );
    }

    /// The rate of false positives is a Poisson mixture over the load of a block (Putze et al.): of n buckets each
    /// leaves a word of w bits without a certain one with 1 - 1/w. 20,000 tests of a rate p have a standard deviation
    /// of sqrt(20,000 p (1 - p)), and the load of the few blocks of a piece adds up to 1.7 times as much.
    #[test]
    fn filter_finds_its_codes_and_few_others() {
        for (bits, rate) in [
            (16, 0.0013),
            (10, 0.0126_f64),
            (8, 0.0267),
            (6, 0.0600),
            (4, 0.1647),
            (3, 0.2988),
        ] {
            let buckets = 30_000 / bits;
            let shape = FilterShape::new(buckets, bits);
            let mut piece = FilterPiece::new(shape);
            for number in 0..buckets {
                piece.insert(mix64(number)).unwrap();
            }
            assert!((0..buckets).all(|number| piece.may_hold(mix64(number)).unwrap()));
            let wrong = (10_000..30_000).filter(|number| piece.may_hold(mix64(*number)).unwrap());
            let wrong = wrong.count() as f64;
            let deviation = (20_000.0 * rate * (1.0 - rate)).sqrt();
            let expected = 20_000.0 * rate;
            assert!(
                (wrong - expected).abs() < 8.0 * deviation,
                "{bits}: {wrong}, {expected}"
            );
            piece.clear();
            assert!((0..buckets).all(|number| !piece.may_hold(mix64(number)).unwrap()));
        }
    }

    /// In filters of which about half of the questions find nothing.
    #[test]
    fn batch_over_filters_agrees_with_single_lookups() {
        for bits in [4, 10] {
            let mut piece = FilterPiece::new(FilterShape::new(2_000, bits));
            piece.insert_all((0..2_000).map(mix64)).unwrap();
            let probe = |number| piece.probe(mix64(number)).unwrap();
            let mut reported = vec![None; 5_000];
            let asked = reported
                .iter_mut()
                .zip(0..)
                .map(|(reported, number)| (probe(number), reported));
            FilterProbe::ask_all(asked, |reported, may_hold| *reported = Some(may_hold));
            for (reported, number) in reported.iter().zip(0..) {
                assert_eq!(*reported, Some(probe(number).may_hold()), "{number}");
            }
            let ruled_out = reported
                .iter()
                .filter(|reported| **reported == Some(false))
                .count();
            assert!((2_000..3_000).contains(&ruled_out), "{ruled_out}");
        }
    }

    #[test]
    fn filter_batch_agrees_with_single_lookups() {
        for (postings, bits) in [1, 2, 77, 3_000]
            .map(|postings| [(postings, 10), (postings, 4)])
            .concat()
        {
            let shape = FilterShape::new(postings, bits);
            let (mut at_once, mut one_by_one) = (FilterPiece::new(shape), FilterPiece::new(shape));
            at_once.insert_all((0..postings).map(mix64)).unwrap();
            (0..postings).for_each(|number| one_by_one.insert(mix64(number)).unwrap());
            assert_eq!(at_once, one_by_one);
        }
    }

    #[test]
    fn filter_pieces_round_trip_and_detect_damage() {
        let shape = FilterShape::new(500, 12);
        let mut piece = FilterPiece::new(shape);
        piece.insert(77).unwrap();
        let key = filter_key(0xa1b2_c3d4, 0xe5f6, 0x0102_0304);
        assert_eq!(key, [0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6, 1, 2, 3, 4]);
        assert_eq!(split_filter_key(&key), (0xa1b2_c3d4, 0xe5f6, 0x0102_0304));
        let value = piece.encode(&key);
        assert_eq!(FilterPiece::decode(&key, shape, &value).unwrap(), piece);
        let other = FilterShape::new(5_000, 12);
        assert!(FilterPiece::decode(&key, other, &value).is_err());
        assert!(FilterPiece::decode(&filter_key(0, 0, 0), shape, &value).is_err());
        checksum::assert_damage_is_named(&value, |value| FilterPiece::decode(&key, shape, value));
    }
}
