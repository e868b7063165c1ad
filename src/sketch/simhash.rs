//! SimHash (Charikar 2002): 64 signs of random projections of the weighted feature vector.

use super::hash::{GOLDEN_GAMMA, derive, mix64, stream};
use crate::error::{Error, Result};

/// The largest weight of a feature.
const MAX_WEIGHT: f64 = 65_536.0;

/// Steps in a weight of 1. Sums of integers do not depend on the order; sums of floats would.
const WEIGHT_STEPS: f64 = 65_536.0;

/// The largest sum of a document's weights, in steps: twice a sum of bits must fit 64 bits.
const MAX_TOTAL: u64 = u64::MAX / 2;

/// Bits of a plane counter, and the features it can count.
const PLANES: usize = 8;
const PLANE_FEATURES: usize = (1 << PLANES) - 1;

/// A feature's hash and its weight in steps.
pub(super) type Weighted = (u64, u64);

/// The projections of one seed.
#[derive(Debug)]
pub(super) struct SimHasher {
    feature_key: u64,
    projection_key: u64,
}

impl SimHasher {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            feature_key: derive(seed, stream::FEATURE_KEY),
            projection_key: derive(seed, stream::PROJECTION_KEY),
        }
    }

    /// The signs of a feature's 64 projections.
    #[inline]
    fn word(&self, hash: u64) -> u64 {
        mix64(hash ^ self.projection_key)
    }

    /// The fingerprint of features of weight 1; they must be distinct. 0 if there is none.
    pub(super) fn unweighted(&self, distinct: &[u64]) -> u64 {
        let mut positive = [0_u64; 64];
        for block in distinct.chunks(PLANE_FEATURES) {
            // Counter j is the bits j of the planes: one addition serves 64 counters.
            let mut planes = [0_u64; PLANES];
            for &hash in block {
                let mut carry = self.word(hash);
                for plane in &mut planes {
                    let sum = *plane ^ carry;
                    carry &= *plane;
                    *plane = sum;
                }
            }
            for (bit, positive) in positive.iter_mut().enumerate() {
                for (place, plane) in planes.iter().enumerate() {
                    *positive += ((plane >> bit) & 1) << place;
                }
            }
        }
        self.signs(&positive, distinct.len() as u64, distinct.iter().copied())
    }

    /// The fingerprint of distinct features of positive weights that [`merge`] has summed to
    /// `total`. 0 if there is none.
    pub(super) fn weighted(&self, distinct: &[Weighted], total: u64) -> u64 {
        let mut positive = [0_u64; 64];
        for &(hash, weight) in distinct {
            let word = self.word(hash);
            for (bit, positive) in positive.iter_mut().enumerate() {
                // Cannot overflow: at most `total`.
                *positive += weight & ((word >> bit) & 1).wrapping_neg();
            }
        }
        self.signs(&positive, total, distinct.iter().map(|&(hash, _)| hash))
    }

    /// Bit j is set where the positive half outweighs the negative one. A tie takes the bit of the
    /// tie's decider: a fair coin, and often the same one for similar documents.
    fn signs(
        &self,
        positive: &[u64; 64],
        total: u64,
        hashes: impl Iterator<Item = u64> + Clone,
    ) -> u64 {
        let mut fingerprint = 0;
        for (bit, &positive) in (0..64).zip(positive) {
            // Cannot overflow: `positive` is at most `total`, at most MAX_TOTAL.
            let doubled = 2 * positive;
            let is_set = if doubled == total {
                self.tie(bit, hashes.clone())
            } else {
                doubled > total
            };
            fingerprint |= u64::from(is_set) << bit;
        }
        fingerprint
    }

    /// The bit of the feature whose hash, mixed for this bit, is least. Each bit has a decider of
    /// its own: with one for all, two features would have the fingerprint of one of them.
    fn tie(&self, bit: u32, hashes: impl Iterator<Item = u64>) -> bool {
        let offset = u64::from(bit + 1).wrapping_mul(GOLDEN_GAMMA);
        let mixed = |hash: u64| mix64(mix64(hash ^ self.feature_key).wrapping_add(offset));
        let decider = hashes.min_by_key(|&hash| (mixed(hash), hash));
        decider.is_some_and(|hash| (self.word(hash) >> bit) & 1 == 1)
    }
}

/// A weight in steps, rounded half to even. 0 means that the feature is absent.
pub(super) fn quantise(weight: f64) -> Result<u64> {
    if (0.0..=MAX_WEIGHT).contains(&weight) {
        // Exact: the factor is a power of two, and the result is an integer of at most 2^32.
        return Ok((weight * WEIGHT_STEPS).round_ties_even() as u64);
    }
    Err(Error::invalid(
        "weight",
        weight,
        "a finite number of 0 to 65,536",
    ))
}

/// Sorts features by hash and adds up the weights of repeated ones; returns the sum of all.
pub(super) fn merge(features: &mut Vec<Weighted>) -> Result<u64> {
    let mut total = 0_u64;
    for &(_, weight) in features.iter() {
        total = total
            .checked_add(weight)
            .filter(|&total| total <= MAX_TOTAL)
            .ok_or_else(|| {
                Error::invalid(
                    "weights",
                    "a sum of at least 2^47",
                    "a sum below 2^47 a document",
                )
            })?;
    }
    features.sort_unstable();
    features.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    Ok(total)
}
