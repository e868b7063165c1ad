//! Hashes features to uniform 64-bit numbers. Frozen: after a change, a store would miss its own
//! documents.

use xxhash_rust::xxh3::xxh3_64;

/// 2^64 divided by the golden ratio: the step of a splitmix64 stream.
pub(super) const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the hash of a feature's bytes: XXH3-64 with seed 0. A [`Sketcher`](crate::Sketcher)
/// makes the same signature from features and from their hashes.
///
/// ```
/// use resemblance_sketch::{MinHash, Schema, feature_hash};
/// let sketcher = Schema::builder().minhash(MinHash::new(64)).build()?.sketcher();
/// let hashes = ["a", "b"].map(|feature| feature_hash(feature.as_bytes()));
/// assert_eq!(sketcher.hashes(hashes)?, sketcher.features(["a", "b"])?);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[must_use]
#[inline(always)]
pub fn feature_hash(bytes: &[u8]) -> u64 {
    match bytes.len() {
        17..=64 => hash_17_to_64(bytes),
        _ => hash_other_lengths(bytes),
    }
}

/// Not inlined: it is long, and the loops over shingles should be short.
#[inline(never)]
fn hash_other_lengths(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// The beginning of XXH3's secret, in words.
const SECRET: [u64; 8] = [
    0xbe4b_a423_396c_feb8,
    0x1cad_21f7_2c81_017c,
    0xdb97_9083_e96d_d4de,
    0x1f67_b3b7_a4a4_4072,
    0x78e5_c0cc_4ee6_79cb,
    0x2172_ffcc_7dd0_5a82,
    0x8e24_43f7_7446_08b8,
    0x4c26_3a81_e690_35e0,
];

/// XXH3-64 of 17 to 64 bytes. Most shingles of words have about 32 bytes, the length at which XXH3
/// takes a different path. Both paths are computed and one result is dropped, so that the processor
/// has no branch to predict.
#[inline(always)]
fn hash_17_to_64(bytes: &[u8]) -> u64 {
    let [a, b, c, d, e, f, g, h] = SECRET;
    let length = bytes.len();
    let ends = bytes.first_chunk().zip(bytes.last_chunk());
    let (first, last) = ends.unwrap_or((&[0; 16], &[0; 16]));
    let outer = fold(first, a, b).wrapping_add(fold(last, c, d));
    // Up to 32 bytes, these places are within the first 32 bytes.
    let (_, second) = bytes.split_at((length - 16).min(16));
    let (before_last, _) = bytes.split_at(length.max(32) - 16);
    let inner = second.first_chunk().zip(before_last.last_chunk());
    let (second, before_last) = inner.unwrap_or((&[0; 16], &[0; 16]));
    let inner = fold(second, e, f).wrapping_add(fold(before_last, g, h));
    let kept = if length > 32 { inner } else { 0 };
    let start = (length as u64).wrapping_mul(0x9e37_79b1_85eb_ca87);
    let sum = start.wrapping_add(outer).wrapping_add(kept);
    let mixed = (sum ^ (sum >> 37)).wrapping_mul(0x1656_6791_9e37_79f9);
    mixed ^ (mixed >> 32)
}

/// Combines each word with a secret, multiplies the two, and folds the halves of the product into
/// one.
#[inline(always)]
fn fold(words: &[u8; 16], first: u64, second: u64) -> u64 {
    let words = u128::from_le_bytes(*words);
    let product = u128::from(words as u64 ^ first) * u128::from((words >> 64) as u64 ^ second);
    product as u64 ^ (product >> 64) as u64
}

/// The finalizer of splitmix64 (Steele, Lea and Flood 2014, with Stafford's constants "Mix13"), a
/// bijection.
#[inline]
pub const fn mix64(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Inverts [`mix64`]: multiplies by the inverses modulo 2^64 and undoes the shifts.
#[inline]
pub(super) const fn unmix64(mixed: u64) -> u64 {
    let mixed = (mixed ^ (mixed >> 31) ^ (mixed >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    let mixed = (mixed ^ (mixed >> 27) ^ (mixed >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    mixed ^ (mixed >> 30) ^ (mixed >> 60)
}

/// Returns the number at `index` of the splitmix64 stream of `seed`. The start of the stream is
/// mixed, so that streams of neighbouring seeds are not shifted copies of each other.
#[inline]
pub(super) const fn derive(seed: u64, index: u64) -> u64 {
    let start = mix64(seed.wrapping_add(GOLDEN_GAMMA));
    mix64(start.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN_GAMMA)))
}

/// Indices into the number stream of a recipe's seed. Frozen.
pub(super) mod stream {
    /// The key that feature hashes are mixed with.
    pub(crate) const FEATURE_KEY: u64 = 0;
    /// The key of SimHash's projection words.
    pub(crate) const PROJECTION_KEY: u64 = 1;
    /// The key of one-pass MinHash.
    pub(crate) const ONE_PASS_KEY: u64 = 2;
    /// The key of bottom-k.
    pub(crate) const BOTTOM_K_KEY: u64 = 3;
    /// The key of weighted MinHash.
    pub(crate) const WEIGHTED_KEY: u64 = 4;
    /// The key of SimHash's projection words for the bits 64 to 127 of a fingerprint.
    pub(crate) const HIGH_PROJECTION_KEY: u64 = 5;
    /// The key of MinHash of distributions.
    pub(crate) const PROBABILITY_KEY: u64 = 6;
    /// The key of kept hashes.
    pub(crate) const CONTAINMENT_KEY: u64 = 7;
    /// The key of the signs by which vectors are rotated.
    pub(crate) const VECTOR_KEY: u64 = 8;
    /// The key of the shifts of a vector's intervals.
    pub(crate) const INTERVAL_KEY: u64 = 9;
    /// The index of MinHash's first function. Each family defines the indices after it.
    pub(crate) const MINHASH: u64 = 16;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_of_every_length_have_the_hash_of_xxh3() {
        let bytes: Vec<u8> = (0..300).map(|i| mix64(i) as u8).collect();
        for length in 0..=bytes.len() {
            for bytes in [&bytes[..length], &bytes[bytes.len() - length..]] {
                assert_eq!(feature_hash(bytes), xxh3_64(bytes), "{length}");
            }
        }
    }

    #[test]
    fn hash_mix_is_invertible() {
        for number in (0..1_000_u64).map(|i| i.wrapping_mul(GOLDEN_GAMMA) >> (i % 64)) {
            assert_eq!(unmix64(mix64(number)), number);
        }
    }
}
