//! MinHash of weighted features, by two processes. With the first, two signatures agree in a value
//! with probability Σ min / Σ max of the weights, the weighted Jaccard similarity. With the second,
//! the probability is the probability Jaccard similarity of the distributions that are proportional
//! to the weights.
//!
//! **Steps.** Weights are whole numbers of steps. Events happen on the steps of every feature at
//! random times, on average one on each step in each unit of time. Each event belongs to one of the
//! k values at random. A value takes the first of its events on a step below the feature's weight.
//! Two weighted sets have the same first event exactly if the first event on the larger weights is
//! also on the smaller weights. This happens with probability Σ min / Σ max, independently for each
//! value, so the variance is J (1 - J) / k. Consistent sampling of this kind is due to Manasse,
//! McSherry and Talwar (2010) and Ioffe (ICDM 2010); one process for all values, over steps that
//! double, to Ertl (*BagMinHash*, KDD 2018); its stop at a time known beforehand to Christiani
//! (*DartMinHash*, 2020).
//!
//! The steps of a feature are cut into blocks [0, 1), [1, 2), [2, 4), [4, 8), ..., so that a weight
//! covers whole blocks and a part of one more. A block of size s generates its events in order of
//! time, with exponential gaps of mean 1 / s. For a total weight W, all k values have an event by
//! the time k (ln k + 3) / W in about 95 of 100 cases, and later events are skipped. Otherwise
//! everything is repeated with twice the time limit. The result does not depend on the limit. The
//! cost is one look at each block, and at most about 2 k (ln k + 3) events.
//!
//! **Rates.** A feature with weight w has one stream of events, on average 1 / w units of time
//! apart. Each event belongs to one of the k values at random. A value takes its first event. The
//! first event of a feature for a value has the time E / w, where E is exponential, independent of
//! other features and values, and the same for every weight. That is the P-MinHash of Moulton and
//! Jiang (*Maximally Consistent Sampling and the Jaccard Index of Probability Distributions*,
//! 2018), in which two sets x and y select the same feature for a value with probability Σ 1 / Σ
//! max(xⱼ / xᵢ, yⱼ / yᵢ), where i runs over the features of both sets and j over all features. The
//! probability does not change if all weights of a set are multiplied by a number. Taking all
//! values from one stream is due to Ertl (*ProbMinHash*, 2020). The time limit and the cost are the
//! same as above.
//!
//! Gaps are exact except for rounding to 2^-53. A value is a hash of its event: different events
//! have equal hashes with probability 2^-32.

use super::hash::{GOLDEN_GAMMA, derive, mix64, stream};
use super::simhash::WeightedHash;

/// The number of random words for an event of each process. Frozen.
const STEP_EVENT_WORDS: u64 = 3;
const RATE_EVENT_WORDS: u64 = 2;

/// How the weight of a feature determines its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WeightProcess {
    /// A greater weight covers more steps and so more events: Σ min / Σ max.
    Steps,
    /// A greater weight makes the same events earlier: the probability Jaccard similarity.
    Rates,
}

/// The process of one seed.
#[derive(Debug)]
pub(super) struct WeightedMinHasher {
    process: WeightProcess,
    key: u64,
    values: usize,
}

/// The first event of a value: its time and its hash.
type FirstEvent = (f64, u32);

/// Represents a value that has had no event.
const NO_EVENT: FirstEvent = (f64::INFINITY, u32::MAX);

impl WeightedMinHasher {
    /// Creates the process of a seed, for signatures of `values` values.
    pub(super) fn new(process: WeightProcess, seed: u64, values: u16) -> Self {
        let key = match process {
            WeightProcess::Steps => stream::WEIGHTED_KEY,
            WeightProcess::Rates => stream::PROBABILITY_KEY,
        };
        Self {
            process,
            key: derive(seed, key),
            values: usize::from(values),
        }
    }

    /// Returns the values of distinct features, in any order, each with its weight in steps, as
    /// [`merge`](super::simhash::merge) leaves them. Each value is `u32::MAX` if no weight is
    /// positive.
    pub(crate) fn values(&self, features: &[WeightedHash]) -> Vec<u32> {
        let total: f64 = features.iter().map(|&(_, weight)| weight as f64).sum();
        if total <= 0.0 {
            return vec![u32::MAX; self.values];
        }
        let values = self.values as f64;
        let mut limit = values * (negative_ln(1.0 / values.max(1.0)) + 3.0) / total;
        loop {
            let firsts = self.firsts(features, limit);
            if firsts.iter().all(|&(time, _)| time < limit) {
                return firsts.into_iter().map(|(_, value)| value).collect();
            }
            limit *= 2.0;
        }
    }

    /// Returns the first events of all values. Events before the limit do not depend on it.
    pub(super) fn firsts(&self, features: &[WeightedHash], limit: f64) -> Vec<FirstEvent> {
        let mut firsts = vec![NO_EVENT; self.values];
        for &(hash, weight) in features {
            let word = mix64(hash ^ self.key);
            if self.process == WeightProcess::Rates {
                offer_at_rate(word, weight, limit, &mut firsts);
                continue;
            }
            // Block 0 has step 0; block b has the 2^(b - 1) steps that begin at 2^(b - 1).
            for block in 0..=u64::BITS {
                let first_step = match block {
                    0 => 0,
                    _ => 1 << (block - 1),
                };
                if first_step >= weight {
                    break;
                }
                let offset = u64::from(block + 1).wrapping_mul(GOLDEN_GAMMA);
                let events = BlockEvents {
                    state: mix64(word.wrapping_add(offset)),
                    first_step,
                    weight,
                };
                events.offer(limit, &mut firsts);
            }
        }
        firsts
    }
}

/// The events of one block of a feature's steps, in the order of their times.
struct BlockEvents {
    /// Position in the stream of random words.
    state: u64,
    first_step: u64,
    /// The weight of the feature, which owns the steps below it.
    weight: u64,
}

impl BlockEvents {
    /// Passes each event before the limit to its value, if the event is on a step of the feature.
    fn offer(mut self, limit: f64, firsts: &mut [FirstEvent]) {
        // Times are in units of this block's mean gap. The factor is a power of two, hence exact,
        // so all blocks end at the same time.
        let size = self.first_step.max(1);
        let bound = limit * size as f64;
        let has_all_steps = self.weight - self.first_step >= size;
        let mut sum = 0.0;
        loop {
            let share = unit(word_at(self.state, 1));
            // -ln x ≥ 1 - x. Most blocks have no event before the limit, and this bound shows it
            // without a logarithm. The factor allows for rounding.
            if sum + (1.0 - share) * 0.999 > bound {
                return;
            }
            sum += negative_ln(share);
            if sum > bound {
                return;
            }
            if has_all_steps || self.step(size) < self.weight {
                offer_event(sum / size as f64, word_at(self.state, 3), firsts);
            }
            let step = STEP_EVENT_WORDS.wrapping_mul(GOLDEN_GAMMA);
            self.state = self.state.wrapping_add(step);
        }
    }

    /// Returns the step of an event in a block of several steps: the leading bits of a word.
    fn step(&self, size: u64) -> u64 {
        self.first_step + (word_at(self.state, 2) >> (size.leading_zeros() + 1))
    }
}

/// Passes the events of a feature before the limit to their values. The weight changes only their
/// times.
fn offer_at_rate(start: u64, weight: u64, limit: f64, firsts: &mut [FirstEvent]) {
    if weight == 0 {
        return;
    }
    let weight = weight as f64;
    // More than any sum of gaps whose time is within the limit, including rounding errors.
    let bound = limit * weight * 1.001;
    let (mut state, mut sum) = (mix64(start), 0.0);
    loop {
        let share = unit(word_at(state, 1));
        // As above: most features have no event before the limit.
        if sum + (1.0 - share) * 0.999 > bound {
            return;
        }
        sum += negative_ln(share);
        let time = sum / weight;
        if time > limit {
            return;
        }
        offer_event(time, word_at(state, 2), firsts);
        state = state.wrapping_add(RATE_EVENT_WORDS.wrapping_mul(GOLDEN_GAMMA));
    }
}

/// Returns the word at an index, beginning with 1, of the stream with this initial state.
#[inline]
fn word_at(state: u64, index: u64) -> u64 {
    mix64(state.wrapping_add(index.wrapping_mul(GOLDEN_GAMMA)))
}

/// Passes an event to the value that its word selects.
fn offer_event(time: f64, word: u64, firsts: &mut [FirstEvent]) {
    // The high half of word × k is below k.
    let value = (u128::from(word) * firsts.len() as u128) >> u64::BITS;
    if let Some(first) = firsts.get_mut(value as usize) {
        let hash = (word as u32).min(u32::MAX - 1);
        // Of events at the same time, the one with the smallest hash counts, so that order does not
        // matter.
        if time < first.0 || (time == first.0 && hash < first.1) {
            *first = (time, hash);
        }
    }
}

/// Returns a number in (0, 1], a multiple of 2^-53.
#[inline]
fn unit(word: u64) -> f64 {
    const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
    ((word >> 11) + 1) as f64 * STEP
}

/// Returns −ln x for 2^-1022 ≤ x ≤ 1, accurate to 4 units in the last place. Unlike the standard
/// library's logarithm, the result is the same on every platform: it uses only additions,
/// multiplications and one division.
///
/// x = 2^e m with m within [√½, √2]; ln m = 2 artanh s for s = (m - 1) / (m + 1), computed with 11
/// terms of its series. s² ≤ 0.0295, so the omitted terms are below 2^-60 of the sum.
pub(super) fn negative_ln(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    const TERMS: [f64; 11] = [
        1.0 / 21.0,
        1.0 / 19.0,
        1.0 / 17.0,
        1.0 / 15.0,
        1.0 / 13.0,
        1.0 / 11.0,
        1.0 / 9.0,
        1.0 / 7.0,
        1.0 / 5.0,
        1.0 / 3.0,
        1.0,
    ];
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as f64 - 1023.0;
    let mut mantissa = f64::from_bits((bits & MANTISSA) | ONE);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1.0;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let series = TERMS.iter().fold(0.0, |sum, term| sum * square + term);
    -(exponent * std::f64::consts::LN_2 + 2.0 * s * series)
}
