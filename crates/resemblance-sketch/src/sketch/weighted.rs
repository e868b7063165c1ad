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
//! McSherry and Talwar (2010) and Ioffe (ICDM 2010); one process for all values, over growing
//! blocks of steps, to Ertl (*BagMinHash*, KDD 2018); its stop at a time known beforehand to
//! Christiani (*DartMinHash*, 2020).
//!
//! The steps of a feature are cut into the same blocks for all weights. A block has one stream of
//! events in order of time, with exponential gaps, and a weight takes the events on its steps. So
//! it has to look at few blocks, and rejects few events: the blocks double from weight 1 on, where
//! most weights are, and are coarser below.
//!
//! **Rates.** A feature with weight w has one stream of events, on average 1 / w units of time
//! apart. Each event belongs to one of the k values at random. A value takes its first event. The
//! first event of a feature for a value has the time E / w, where E is exponential, independent of
//! other features and values, and the same for every weight. That is the P-MinHash of Moulton and
//! Jiang (*Maximally Consistent Sampling and the Jaccard Index of Probability Distributions*,
//! 2018), in which two sets x and y select the same feature for a value with probability Σ 1 / Σ
//! max(xⱼ / xᵢ, yⱼ / yᵢ), where i runs over the features of both sets and j over all features. The
//! probability does not change if all weights of a set are multiplied by a number. Taking all
//! values from one stream is due to Ertl (*ProbMinHash*, 2020).
//!
//! **Cost.** For a total weight W, all k values have an event by the time k (ln k + 3) / W in about
//! 95 of 100 cases, and later events are skipped. Otherwise everything is repeated with a later
//! limit. The result does not depend on the limit. An event takes one hash and a gap from a table.
//! Whether a stream ends is random, and a loop over one stream would mispredict each end. So many
//! streams advance together, one event each, and those that end drop out without a branch.
//!
//! Gaps are exact to 2^-29, about the resolution of the hash. A value is a hash of its event:
//! different events have equal hashes with probability 2^-32.

use super::hash::{GOLDEN_GAMMA, derive, mix64, stream};
use super::simhash::WeightedHash;

/// The number of features whose streams advance together. They stay in the fastest cache.
const TOGETHER: usize = 384;

/// The base-2 logarithm of the number of steps in the first block, and of the weight 1. Frozen.
const FIRST_BLOCK_BITS: u32 = 8;
const WHOLE_WEIGHT_BITS: u32 = 16;

/// The number of values that half of a word can have.
const HALF_WORD: f64 = 4_294_967_296.0;

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

/// The first event of a value: the bits of its time, which are in the order of times, above the
/// bits of its word. Of events at the same time, the one with the smaller word counts, so that
/// order does not matter.
type FirstEvent = u128;

/// Returns the time of an event; not a number if there was none.
pub(super) fn time_of(event: FirstEvent) -> f64 {
    f64::from_bits((event >> u64::BITS) as u64)
}

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
            if firsts.iter().all(|&first| time_of(first) <= limit) {
                let value = |first: FirstEvent| (mix64(first as u64) as u32).min(u32::MAX - 1);
                return firsts.into_iter().map(value).collect();
            }
            limit *= 1.5;
        }
    }

    /// Returns the first events of all values. Events before the limit do not depend on it.
    pub(super) fn firsts(&self, features: &[WeightedHash], limit: f64) -> Vec<FirstEvent> {
        let mut race = EventRace {
            limit,
            firsts: vec![FirstEvent::MAX; self.values],
            streams: [EventStream::default(); TOGETHER],
        };
        let mut mixed = [(0, 0); TOGETHER];
        for group in features.chunks(TOGETHER) {
            for (mixed, &(hash, weight)) in mixed.iter_mut().zip(group) {
                *mixed = (mix64(hash ^ self.key), weight);
            }
            let (mixed_group, _) = mixed.split_at_mut(group.len());
            match self.process {
                WeightProcess::Steps => race.run_blocks(mixed_group),
                WeightProcess::Rates => {
                    let present = mixed_group.iter().filter(|(_, weight)| *weight > 0);
                    race.run(present, 0, |weight| weight as f64, |_, _| true);
                }
            }
        }
        race.firsts
    }
}

/// The events of a feature, or of one block of its steps.
#[derive(Clone, Copy, Default)]
struct EventStream {
    /// The position in the sequence of random words, and the word there.
    state: u64,
    word: u64,
    /// The sum of the gaps up to this event.
    elapsed: f64,
    /// The weight of the feature.
    weight: u64,
}

/// The race of the events for the values.
struct EventRace {
    /// The time of the last event that may count.
    limit: f64,
    firsts: Vec<FirstEvent>,
    streams: [EventStream; TOGETHER],
}

impl EventRace {
    /// Runs the streams of all blocks of features, which are given by mixed hashes and weights.
    /// The features are left in another order.
    fn run_blocks(&mut self, features: &mut [WeightedHash]) {
        let mut reaching = features.len();
        let (mut first_step, mut end_bits) = (0, FIRST_BLOCK_BITS);
        for block in 0_u64.. {
            let (before, _) = features.split_at_mut(reaching);
            reaching = keep(before, |(_, weight)| *weight > first_step);
            if reaching == 0 {
                return;
            }
            let (group, _) = before.split_at(reaching);
            let end = 1_u64.checked_shl(end_bits).unwrap_or(u64::MAX);
            let size = end - first_step;
            let has = |weight: u64, word: u64| {
                weight >= end || first_step + scaled(mix64(word), size) < weight
            };
            self.run(group.iter(), block, |_| size as f64, has);
            first_step = end;
            end_bits += match end_bits {
                ..12 => 4,
                12..WHOLE_WEIGHT_BITS => 2,
                _ => 1,
            };
        }
    }

    /// Passes each event before the limit to its value, if its feature `has` it by its weight and
    /// the event's word. `rate` is the number of events in a unit of time.
    #[inline]
    fn run<'a>(
        &mut self,
        features: impl Iterator<Item = &'a WeightedHash>,
        block: u64,
        rate: impl Fn(u64) -> f64,
        has: impl Fn(u64, u64) -> bool,
    ) {
        // A gap of share v is at least v, so most streams end without a look at their gap. The
        // factor allows for rounding.
        let bound = self.limit * 1.001 * HALF_WORD;
        let is_early = |elapsed: f64, word: u64, weight: u64| {
            elapsed * HALF_WORD + (word >> 32) as f64 <= bound * rate(weight)
        };
        let values = self.firsts.len() as u64;
        let mut live = 0;
        for &(mixed, weight) in features {
            let state = mixed.wrapping_add((block << 32).wrapping_mul(GOLDEN_GAMMA));
            let begun = EventStream {
                state,
                word: mix64(state),
                elapsed: 0.0,
                weight,
            };
            put(&mut self.streams, live, begun);
            live += usize::from(is_early(0.0, begun.word, weight));
        }
        while live > 0 {
            let mut kept = 0;
            for at in 0..live {
                let Some(&now) = self.streams.get(at) else {
                    break;
                };
                let elapsed = now.elapsed + gap((now.word >> 32) as u32);
                let time = elapsed * (1.0 / rate(now.weight));
                let counts = (time <= self.limit) & has(now.weight, now.word);
                // Not a branch: it would be mispredicted.
                let counted = if counts { time } else { f64::INFINITY };
                let event = u128::from(counted.to_bits()) << u64::BITS | u128::from(now.word);
                let place = (u64::from(now.word as u32) * values) >> 32;
                if let Some(first) = self.firsts.get_mut(place as usize) {
                    *first = event.min(*first);
                }
                let state = now.state.wrapping_add(GOLDEN_GAMMA);
                let next = EventStream {
                    state,
                    word: mix64(state),
                    elapsed,
                    weight: now.weight,
                };
                put(&mut self.streams, kept, next);
                kept += usize::from(is_early(elapsed, next.word, next.weight));
            }
            live = kept;
        }
    }
}

/// Keeps the features that pass, in their order, and returns their number.
fn keep(features: &mut [WeightedHash], passes: impl Fn(&WeightedHash) -> bool) -> usize {
    let mut kept = 0;
    for at in 0..features.len() {
        let Some(&feature) = features.get(at) else {
            break;
        };
        put(features, kept, feature);
        kept += usize::from(passes(&feature));
    }
    kept
}

#[inline]
fn put<T>(slots: &mut [T], at: usize, item: T) {
    if let Some(slot) = slots.get_mut(at) {
        *slot = item;
    }
}

/// Returns the high half of a product: for a random word, a random number below `size`.
#[inline]
fn scaled(word: u64, size: u64) -> u64 {
    ((u128::from(word) * u128::from(size)) >> u64::BITS) as u64
}

/// The values of −ln x at 1 + i / 256, each with the difference to the next one.
static LOGARITHMS: [(f64, f64); 256] = {
    let mut table = [(0.0, 0.0); 256];
    let mut rest = table.as_mut_slice();
    while let [entry, after @ ..] = rest {
        let place = (255 - after.len()) as f64;
        let (here, next) = (1.0 + place / 256.0, 1.0 + (place + 1.0) / 256.0);
        *entry = (negative_ln(here), negative_ln(next) - negative_ln(here));
        rest = after;
    }
    table
};

/// Returns the gap of a share v = (`number` + ½) / 2^32: −ln (1 - v), accurate to 2^-29.
///
/// 1 - v = 2^-e (1 + (i + f) / 256). The logarithm of the last factor is interpolated with the
/// second difference of a logarithm, which is the square of the first one.
#[inline]
pub(super) fn gap(number: u32) -> f64 {
    const ONE: u64 = 1023 << 52;
    let rest = u64::from(!number) << 1 | 1;
    let zeros = rest.leading_zeros();
    let fraction = rest << zeros << 1;
    let exponent = f64::from(zeros) - 30.0;
    let within = f64::from_bits((fraction << 8) >> 12 | ONE) - 1.0;
    let &(here, step) = LOGARITHMS
        .get((fraction >> 56) as usize)
        .unwrap_or(&(0.0, 0.0));
    let curve = 1.0 - step * 0.5 * (1.0 - within);
    exponent * std::f64::consts::LN_2 + (here + step * within * curve)
}

/// Returns −ln x for 2^-1022 ≤ x ≤ 1, accurate to 4 units in the last place. Unlike the standard
/// library's logarithm, the result is the same on every platform: it uses only additions,
/// multiplications and one division.
///
/// x = 2^e m with m within [√½, √2]; ln m = 2 artanh s for s = (m - 1) / (m + 1), computed with 11
/// terms of its series. s² ≤ 0.0295, so the omitted terms are below 2^-60 of the sum.
pub(super) const fn negative_ln(x: f64) -> f64 {
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
    // Not `fold`, which cannot run at compile time.
    let (mut series, mut terms) = (0.0, TERMS.as_slice());
    while let [term, rest @ ..] = terms {
        series = series * square + *term;
        terms = rest;
    }
    -(exponent * std::f64::consts::LN_2 + 2.0 * s * series)
}
