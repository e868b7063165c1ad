//! Filters, read and written from `format-spec.md` alone.

use crate::spec::bytes::Bytes;
use crate::spec::recipe::mix64;

/// How many pieces, blocks of 256 bits in each, and bits of a bucket.
pub(crate) type Shape = (u32, u16, u8);

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

/// The kind of a lane, which determines its buckets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Key,
    /// With the bits of a code.
    Band(u8),
    /// With the bits of the prefix.
    Table(u32),
}

impl Kind {
    pub(crate) fn bucket(self, code: u64) -> u64 {
        match self {
            Self::Key => code,
            Self::Band(code_bits) => code << (64 - code_bits),
            Self::Table(prefix_bits) => code >> (64 - prefix_bits) << (64 - prefix_bits),
        }
    }
}

pub(crate) fn piece((pieces, ..): Shape, bucket: u64) -> u32 {
    ((u128::from(bucket) * u128::from(pieces)) >> 64) as u32
}

/// The block of a bucket in its piece, and the numbers of its bits there.
pub(crate) fn bits((_, blocks, set_bits): Shape, bucket: u64) -> (usize, Vec<usize>) {
    let hash = mix64(bucket);
    let block = ((hash >> 32) * u64::from(blocks)) >> 32;
    let word_bits = 256 / u64::from(set_bits);
    let bits = (0..set_bits.into()).map(|word| {
        let product = (hash as u32).wrapping_mul(SALTS[word]);
        word * word_bits as usize + ((u64::from(product) * word_bits) >> 32) as usize
    });
    (block as usize, bits.collect())
}

/// The bits of a piece that are set for a bucket: number and mask of each byte.
fn places(shape: Shape, bucket: u64) -> impl Iterator<Item = (usize, u8)> {
    let (block, bits) = bits(shape, bucket);
    bits.into_iter()
        .map(move |bit| (block * 32 + bit / 8, 1 << (bit % 8)))
}

/// Whether a piece lets a bucket pass.
pub(crate) fn passes(shape: Shape, blocks: &[u8], bucket: u64) -> bool {
    places(shape, bucket).all(|(byte, mask)| blocks[byte] & mask != 0)
}

/// The piece of this number that holds those of the buckets that belong to it.
pub(crate) fn build(shape: Shape, number: u32, buckets: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut blocks = vec![0; usize::from(shape.1) * 32];
    for bucket in buckets.filter(|bucket| piece(shape, *bucket) == number) {
        for (byte, mask) in places(shape, bucket) {
            blocks[byte] |= mask;
        }
    }
    blocks
}

/// The blocks of a row.
pub(crate) fn decode(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = Bytes::open("filters", key, value);
    assert_eq!(bytes.u8(), 1, "kind");
    bytes.rest().to_vec()
}

/// Run, lane and piece, from a key.
pub(crate) fn split_key(key: &[u8]) -> (u32, u16, u32) {
    (
        u32::from_be_bytes(key[..4].try_into().unwrap()),
        u16::from_be_bytes(key[4..6].try_into().unwrap()),
        u32::from_be_bytes(key[6..10].try_into().unwrap()),
    )
}
