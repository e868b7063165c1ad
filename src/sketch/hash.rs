//! Features to random 64-bit numbers. Frozen: a change makes every store miss what it holds.

use xxhash_rust::xxh3::xxh3_64;

/// 2^64 divided by the golden ratio: the step of a splitmix64 stream.
pub(super) const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of a feature's bytes: XXH3-64 with seed 0. Ready-made hashes take its place.
#[inline]
pub(crate) fn feature_hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// The finalizer of splitmix64 (Steele, Lea and Flood 2014, with Stafford's constants "Mix13"), a
/// bijection.
#[inline]
pub(crate) const fn mix64(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The number that [`mix64`] maps to `mixed`: the multipliers' inverses modulo 2^64, and the shifts undone.
#[inline]
pub(super) const fn unmix64(mixed: u64) -> u64 {
    let mixed = (mixed ^ (mixed >> 31) ^ (mixed >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    let mixed = (mixed ^ (mixed >> 27) ^ (mixed >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    mixed ^ (mixed >> 30) ^ (mixed >> 60)
}

/// The number at `index` of the splitmix64 stream of `seed`. The stream's start is mixed, so that
/// neighbouring seeds do not share a shifted stream.
pub(super) const fn derive(seed: u64, index: u64) -> u64 {
    let start = mix64(seed.wrapping_add(GOLDEN_GAMMA));
    mix64(start.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN_GAMMA)))
}

/// Indexes into the stream of a recipe's seed. Frozen.
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
    /// The first number of MinHash's functions; each family says which follow.
    pub(crate) const MINHASH: u64 = 16;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixing_can_be_undone() {
        for number in (0..1_000_u64).map(|i| i.wrapping_mul(GOLDEN_GAMMA) >> (i % 64)) {
            assert_eq!(unmix64(mix64(number)), number);
        }
    }
}
