//! SimHash (Charikar 2002): the signs of 32, 64 or 128 random projections of the weighted feature
//! vector.

use std::ops::AddAssign;

use super::hash::{GOLDEN_GAMMA, derive, mix64, stream, unmix64};
use crate::error::{Result, SketchError};
use crate::fingerprint::Fingerprint;

/// The maximum weight of a feature.
const MAX_WEIGHT: f64 = 65_536.0;

/// The number of steps in a weight of 1. Weights are whole numbers of steps because a sum of
/// integers, unlike a sum of floats, does not depend on the order. Frozen.
pub(super) const WHOLE_WEIGHT: u64 = 65_536;

/// The maximum sum of a document's weights, in steps: twice that sum must fit 64 bits.
const MAX_TOTAL: u64 = u64::MAX / 2;

/// Bits of a counter in [`BitPlanes`].
const PLANES: usize = 8;
/// The maximum value of such a counter.
const MAX_PLANE_COUNT: usize = (1 << PLANES) - 1;

/// A feature's hash and its weight in steps.
pub(super) type WeightedHash = (u64, u64);

/// The projections of one seed.
#[derive(Debug)]
pub(super) struct SimHasher {
    bits: u16,
    feature_key: u64,
    /// The projections for bits 0 to 63, and those for bits 64 to 127 if fingerprints have them.
    projections: Vec<Projection>,
}

/// 64 projections, which make one half of a fingerprint.
#[derive(Debug)]
struct Projection {
    key: u64,
    /// The bit of the fingerprint that the first projection determines, 0 or 64.
    first_bit: u32,
}

impl Projection {
    /// Returns the signs of a feature's 64 projections, one bit each.
    #[inline]
    fn word(&self, hash: u64) -> u64 {
        mix64(hash ^ self.key)
    }

    /// Returns, for each bit, the number of features with a positive sign.
    fn count(&self, distinct: &[u64]) -> [u64; 64] {
        let mut positive = [0_u64; 64];
        for block in distinct.chunks(MAX_PLANE_COUNT) {
            let mut planes = BitPlanes::default();
            let (eights, rest) = block.as_chunks::<8>();
            for hashes in eights {
                planes.add_eight(hashes.map(|hash| self.word(hash)));
            }
            for &hash in rest {
                planes.add(0, self.word(hash));
            }
            for (bit, positive) in positive.iter_mut().enumerate() {
                for (worth, plane) in planes.0.iter().enumerate() {
                    *positive += ((plane >> bit) & 1) << worth;
                }
            }
        }
        positive
    }

    /// Returns, for each bit, the sum of the weights of the features with a positive sign.
    fn sum(&self, distinct: &[WeightedHash]) -> [u64; 64] {
        let mut positive = [0_u64; 64];
        for &(hash, weight) in distinct {
            let word = self.word(hash);
            for (bit, positive) in positive.iter_mut().enumerate() {
                // The mask is all ones if the sign is positive, else 0, which needs no branch. The
                // sum is at most the total.
                *positive += weight & ((word >> bit) & 1).wrapping_neg();
            }
        }
        positive
    }
}

/// 64 counters. Counter j consists of bit j of each plane, so one addition increments all counters.
#[derive(Default)]
struct BitPlanes([u64; PLANES]);

impl BitPlanes {
    /// Adds 2^`worth` to each counter whose bit in `word` is set.
    #[inline]
    fn add(&mut self, worth: usize, word: u64) {
        let mut carry = word;
        for plane in self.0.iter_mut().skip(worth) {
            let sum = *plane ^ carry;
            carry &= *plane;
            *plane = sum;
        }
    }

    /// Adds eight words of worth 1. Full adders first reduce them to one word of worth 8, so that
    /// fewer carries pass through the planes (Harley and Seal).
    #[inline]
    fn add_eight(&mut self, words: [u64; 8]) {
        let [ones, twos, fours, ..] = &mut self.0;
        let [a, b, c, d, e, f, g, h] = words;
        let (first, second) = (full_adder(ones, a, b), full_adder(ones, c, d));
        let low = full_adder(twos, first, second);
        let (first, second) = (full_adder(ones, e, f), full_adder(ones, g, h));
        let high = full_adder(twos, first, second);
        let eights = full_adder(fours, low, high);
        self.add(3, eights);
    }
}

/// Adds two words to a plane, and returns the carry.
#[inline]
fn full_adder(plane: &mut u64, a: u64, b: u64) -> u64 {
    let either = a ^ b;
    let carry = (a & b) | (either & *plane);
    *plane ^= either;
    carry
}

impl SimHasher {
    pub(crate) fn new(seed: u64, bits: u16) -> Self {
        let streams = [stream::PROJECTION_KEY, stream::HIGH_PROJECTION_KEY];
        let projection = |(first_bit, stream)| Projection {
            key: derive(seed, stream),
            first_bit,
        };
        // A fingerprint of 32 bits keeps the lower bits of one projection.
        let halves = usize::from(bits.div_ceil(64));
        Self {
            bits,
            feature_key: derive(seed, stream::FEATURE_KEY),
            projections: [0, 64]
                .into_iter()
                .zip(streams)
                .take(halves)
                .map(projection)
                .collect(),
        }
    }

    /// Returns the fingerprint of distinct features of weight 1; 0 without features.
    pub(super) fn unweighted(&self, distinct: &[u64]) -> Fingerprint {
        self.fingerprint(|projection| {
            let positive = projection.count(distinct);
            let hashes = distinct.iter().copied();
            self.signs(projection, &positive, distinct.len() as u64, hashes)
        })
    }

    /// Returns the fingerprint of distinct features with positive weights; 0 without features.
    /// `total` is the sum of the weights, as [`merge`] returns it.
    pub(super) fn weighted(&self, distinct: &[WeightedHash], total: u64) -> Fingerprint {
        self.fingerprint(|projection| {
            let positive = projection.sum(distinct);
            let hashes = distinct.iter().map(|&(hash, _)| hash);
            self.signs(projection, &positive, total, hashes)
        })
    }

    /// Returns the fingerprint of distinct features with positive or negative weights; 0 without
    /// features. `total` is the sum of the weights without their signs.
    pub(super) fn signed(&self, distinct: &[(u64, i64)], total: u64) -> Fingerprint {
        self.fingerprint(|projection| {
            let mut positive = [0_u64; 64];
            for &(hash, weight) in distinct {
                // A negative weight turns the sign of each projection around.
                let word = match weight < 0 {
                    true => !projection.word(hash),
                    false => projection.word(hash),
                };
                for (bit, positive) in positive.iter_mut().enumerate() {
                    *positive += weight.unsigned_abs() & ((word >> bit) & 1).wrapping_neg();
                }
            }
            let hashes = distinct.iter().map(|&(hash, _)| hash);
            self.signs(projection, &positive, total, hashes)
        })
    }

    fn fingerprint(&self, signs: impl Fn(&Projection) -> u64) -> Fingerprint {
        let halves = self.projections.iter();
        let value = halves.fold(0, |value, projection| {
            value | u128::from(signs(projection)) << projection.first_bit
        });
        let mask = u128::MAX >> (128 - self.bits.clamp(1, 128));
        Fingerprint::from_number(self.bits, value & mask)
    }

    /// Sets bit j if the features with positive signs outweigh the others. In a tie, the sign of
    /// one feature decides. The choice is a fair coin, and often the same for similar documents.
    fn signs(
        &self,
        projection: &Projection,
        positive: &[u64; 64],
        total: u64,
        hashes: impl Iterator<Item = u64> + Clone,
    ) -> u64 {
        let mut signs = 0;
        // The mixed hashes of the features, computed once, at the first tie.
        let mut mixed: Vec<u64> = Vec::new();
        for (bit, &positive) in (0..64).zip(positive) {
            // The product cannot overflow: `positive` is at most `total`, which is at most
            // MAX_TOTAL.
            let doubled = 2 * positive;
            let is_set = if doubled == total {
                if mixed.is_empty() {
                    mixed.extend(hashes.clone().map(|hash| mix64(hash ^ self.feature_key)));
                }
                self.tie(projection, bit, &mixed)
            } else {
                doubled > total
            };
            signs |= u64::from(is_set) << bit;
        }
        signs
    }

    /// Returns the sign of the feature whose hash, mixed again for this bit, is smallest. Each bit
    /// has a different deciding feature. With a single one, two features would have the fingerprint
    /// of one of them.
    fn tie(&self, projection: &Projection, bit: u32, mixed: &[u64]) -> bool {
        let offset = u64::from(projection.first_bit + bit + 1).wrapping_mul(GOLDEN_GAMMA);
        let least = mixed.iter().map(|mixed| mix64(mixed.wrapping_add(offset)));
        // Mixing can be inverted, so the minimum itself identifies its feature.
        let decider = least.min().map(|least| unmix64(least).wrapping_sub(offset));
        let hash = decider.map(|mixed| unmix64(mixed) ^ self.feature_key);
        hash.is_some_and(|hash| (projection.word(hash) >> bit) & 1 == 1)
    }
}

/// Converts a weight to steps, rounded half to even. 0 means that the feature is absent.
pub(super) fn quantise(weight: f64) -> Result<u64> {
    if (0.0..=MAX_WEIGHT).contains(&weight) {
        // The product is exact: the factor is a power of two, and the result is an integer of at
        // most 2^32.
        return Ok((weight * WHOLE_WEIGHT as f64).round_ties_even() as u64);
    }
    let expected =
        "a finite number of 0 to 65,536; a schema of SimHash alone takes negative ones as well";
    Err(SketchError::invalid("weight", weight, expected))
}

/// Returns true if a feature with this weight, which must be in range, is present after rounding.
pub fn is_present(weight: f64) -> bool {
    quantise(weight).is_ok_and(|steps| steps > 0)
}

/// Sorts features by hash, adds up the weights of repeated ones, and returns the sum of all weights.
///
/// # Errors
///
/// [`SketchError::InvalidParameter`] if the sum is 2^47 or more.
pub(super) fn merge(features: &mut Vec<WeightedHash>) -> Result<u64> {
    let total = total(features.iter().map(|(_, weight)| *weight))?;
    add_up(features);
    Ok(total)
}

/// The same for positive and negative weights. Drops features whose weights cancel out, and returns
/// the sum of the others without their signs.
pub(super) fn merge_signed(features: &mut Vec<(u64, i64)>) -> Result<u64> {
    let weights = |features: &[(u64, i64)]| total(features.iter().map(|(_, it)| it.unsigned_abs()));
    weights(features)?;
    features.sort_unstable();
    add_up_equal(features);
    features.retain(|(_, weight)| *weight != 0);
    weights(features)
}

fn total(weights: impl Iterator<Item = u64>) -> Result<u64> {
    let (found, expected) = ("a sum of at least 2^47", "a sum below 2^47 a document");
    let mut total = 0_u64;
    for weight in weights {
        total = total.saturating_add(weight);
        SketchError::require(total <= MAX_TOTAL, "weights", found, expected)?;
    }
    Ok(total)
}

/// Sorts hashes, and returns each with the number of its occurrences.
pub(super) fn count_repeats(hashes: &mut [u64]) -> impl Iterator<Item = WeightedHash> {
    hashes.sort_unstable();
    let runs = hashes.chunk_by(|a, b| a == b);
    runs.filter_map(|run| Some((*run.first()?, run.len() as u64)))
}

/// Sorts features by hash, and adds up the weights of repeated ones, whose sum fits 64 bits.
pub(super) fn add_up(features: &mut Vec<WeightedHash>) {
    features.sort_unstable();
    add_up_equal(features);
}

/// Adds up the weights of equal features, which must be adjacent.
pub(super) fn add_up_equal<T: PartialEq, W: AddAssign + Copy>(features: &mut Vec<(T, W)>) {
    features.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
}
