//! Every kind's unclamped estimates against its own published theory, over random pairs.
//!
//! A cell is a kind, a similarity and a size. In each the mean of the errors and the mean of their
//! squares, both divided by what theory says of the pair, are held against bounds that a right kind
//! exceeds in any cell of all with probability 0.001.

use super::*;
use crate::sample::trials;
use crate::sketch::b_bit;
use crate::sketch::bottom_k::{BottomK, bottom_k_jaccard};
use crate::sketch::exact::{WeightedSet, probability_jaccard, weighted_jaccard};
use crate::sketch::minhash::MinHasher;
use crate::sketch::one_pass::OnePass;
use crate::sketch::weighted::{WeightProcess, WeightedMinHasher};

/// Values of a signature.
const SIZE: usize = 64;

/// Pairs of a cell, fewer of large sets in a usual run. The bounds follow from their number.
fn pair_count(features: u64) -> u64 {
    trials(if features < 1_000 { 200 } else { 80 }, 400)
}

const SIMILARITIES: [f64; 6] = [0.1, 0.3, 0.5, 0.7, 0.9, 0.95];

const FEATURES: [u64; 3] = [10, 100, 2_000];

/// Tests of all kinds together: nine kinds, all cells, the mean and the variance.
const TESTS: f64 = (9 * SIMILARITIES.len() * FEATURES.len() * 2) as f64;

/// The theoretical variance of an estimate.
#[derive(Clone, Copy, Debug)]
enum Variance {
    Equal(f64),
    AtMost(f64),
}

impl Variance {
    fn bound(self) -> f64 {
        let (Self::Equal(variance) | Self::AtMost(variance)) = self;
        variance
    }
}

/// An estimate's error, and its theory.
struct Observation {
    error: f64,
    variance: Variance,
}

/// Whether the observations of a cell agree with their theory.
///
/// With x = ln(2 × tests / 0.001): a nearly normal mean of S errors of variance 1 exceeds √(2 x / S)
/// with probability at most e^-x (Chernoff). The mean of the squares of normal errors exceeds
/// 1 + 2 √(x / S) + 2 x / S or falls below 1 - 2 √(x / S) with probability at most e^-x (Laurent and
/// Massart, 2000). A sum of k equal draws has a fourth moment of at most 3 + 1 / (k² V) where a
/// normal error has 3: that widens the square root by √((2 + 1 / (k² V)) / 2).
fn check(observations: &[Observation]) -> std::result::Result<(), String> {
    let count = observations.len() as f64;
    let (mut sum, mut squares, mut excess, mut only_bounded) = (0.0, 0.0, 0.0_f64, false);
    for Observation { error, variance } in observations {
        only_bounded |= matches!(variance, Variance::AtMost(_));
        let variance = variance.bound();
        if variance <= 0.0 {
            if error.abs() > 1e-12 {
                return Err(format!("{error} where the similarity is known"));
            }
            continue;
        }
        sum += error / variance.sqrt();
        squares += error * error / variance;
        excess = excess.max(1.0 / ((SIZE * SIZE) as f64 * variance));
    }
    let x = (2.0 * TESTS / 0.001).ln();
    let (mean, square) = (sum / count, squares / count);
    let spread = 2.0 * (x / count * (2.0 + excess) / 2.0).sqrt();
    if mean.abs() > (2.0 * x / count).sqrt() {
        return Err(format!("mean error of {mean} standard deviations"));
    }
    let exact = observations.iter().all(|seen| seen.variance.bound() <= 0.0);
    if square > 1.0 + spread + 2.0 * x / count {
        return Err(format!("variance {square} times that of theory"));
    }
    if square < 1.0 - spread && !only_bounded && !exact {
        return Err(format!("variance only {square} times that of theory"));
    }
    Ok(())
}

/// Runs a kind over all cells that exist. It is given two sets of random features, J and |A ∪ B|.
fn cells(kind: &str, observe: impl Fn(&[u64], &[u64], f64, f64) -> Observation) -> Vec<String> {
    cells_of(kind, pair_count, observe)
}

/// Like `cells`, with this number of pairs for each number of features.
fn cells_of(
    kind: &str,
    pair_count: impl Fn(u64) -> u64,
    observe: impl Fn(&[u64], &[u64], f64, f64) -> Observation,
) -> Vec<String> {
    let mut failures = Vec::new();
    for features in FEATURES {
        for (place, similarity) in (0..).zip(SIMILARITIES) {
            let common = (2.0 * features as f64 * similarity / (1.0 + similarity)).round() as u64;
            let each = features - common;
            if each == 0 {
                continue;
            }
            let union = (common + 2 * each) as f64;
            let mut observations = Vec::new();
            for number in 0..pair_count(features) {
                // No features are in two cells.
                let begin = place << 48 | number << 32 | features << 16;
                let [a, b] =
                    pair(begin, common, each).map(|set| set.map(mix64).collect::<Vec<_>>());
                observations.push(observe(&a, &b, common as f64 / union, union));
            }
            if let Err(failure) = check(&observations) {
                failures.push(format!(
                    "{kind}, {features} features, J {similarity}: {failure}"
                ));
            }
        }
    }
    failures
}

const NONE: [&str; 0] = [];

fn binomial(j: f64) -> f64 {
    j * (1.0 - j) / SIZE as f64
}

fn k_hash(hashes: &[u64]) -> Vec<u32> {
    let hasher = MinHasher::new(11, SIZE as u16, Permutations::default());
    let mut minima = hasher.minima();
    hasher.update(&mut minima, hashes);
    minima.values()
}

fn one_pass(hashes: &[u64]) -> Vec<u32> {
    let sketch = OnePass::new(11, SIZE as u16);
    let mut state = sketch.state();
    sketch.update(&mut state, hashes.iter().copied());
    sketch.values(state)
}

/// Weights of any size, of which every second one differs between sets, and J as they make it.
fn weigh(hashes: &[u64], set: u64) -> Vec<(u64, u64)> {
    let steps = |hash: u64| 1 + mix64(hash ^ (set * (hash & 1))) % 5;
    let weight = |hash: u64| steps(hash) << ((hash >> 40) % 18);
    hashes.iter().map(|&hash| (hash, weight(hash))).collect()
}

fn weighted(features: &[(u64, u64)]) -> Vec<u32> {
    WeightedMinHasher::new(WeightProcess::Steps, 11, SIZE as u16).values(features)
}

fn weighted_sets(sets: &[Vec<(u64, u64)>; 2]) -> [WeightedSet<u64>; 2] {
    sets.each_ref().map(|set| {
        let weights = set.iter().map(|&(hash, weight)| (hash, weight as f64));
        WeightedSet::new(weights).unwrap()
    })
}

fn weighted_similarity(sets: &[Vec<(u64, u64)>; 2]) -> f64 {
    let [a, b] = weighted_sets(sets);
    weighted_jaccard(&a, &b)
}

fn share(a: &[u32], b: &[u32]) -> f64 {
    estimate_equal(a, b) as f64 / SIZE as f64
}

/// Counts equal cut values in the packed form, as a store would.
fn cut_estimate(a: &[u32], b: &[u32], bits: u8) -> f64 {
    let [a, b] = [a, b].map(|set| {
        let mut bytes = Vec::new();
        b_bit::pack(
            set.iter().map(|&v| b_bit::cut(v, bits, true)),
            bits,
            &mut bytes,
        );
        bytes
    });
    b_bit::unclamped(b_bit::count_equal(&a, &b, SIZE, bits), SIZE, bits)
}

/// Broder 1997: J (1 - J) / k.
#[test]
fn k_hash_functions_estimate_as_the_theory_predicts() {
    let failures = cells("k functions", |a, b, j, _| Observation {
        error: share(&k_hash(a), &k_hash(b)) - j,
        variance: Variance::Equal(binomial(j)),
    });
    assert_eq!(failures, NONE);
}

/// Dahlgaard, Knudsen and Thorup 2017: at most J (1 - J) / k.
#[test]
fn one_pass_values_estimate_as_the_theory_predicts() {
    let failures = cells("one pass", |a, b, j, _| Observation {
        error: share(&one_pass(a), &one_pass(b)) - j,
        variance: Variance::AtMost(binomial(j)),
    });
    assert_eq!(failures, NONE);
}

/// Broder 1997: a draw without replacement, J (1 - J) / k × (N - k) / (N - 1).
#[test]
fn bottom_k_values_estimate_as_the_theory_predicts() {
    let sketch = BottomK::new(11, SIZE as u16);
    let values = |hashes: &[u64]| {
        let mut state = sketch.state();
        sketch.update(&mut state, hashes.iter().copied());
        sketch.values(&state)
    };
    let failures = cells("bottom-k", |a, b, j, union| {
        let left = (union - SIZE as f64).max(0.0) / (union - 1.0);
        Observation {
            error: bottom_k_jaccard(&values(a), &values(b), SIZE) - j,
            variance: Variance::Equal(binomial(j) * left),
        }
    });
    assert_eq!(failures, NONE);
}

/// Ioffe 2010: J (1 - J) / k for the weighted J.
#[test]
fn weighted_values_estimate_as_the_theory_predicts() {
    let failures = cells("weighted", |a, b, _, _| {
        let sets = [weigh(a, 1), weigh(b, 2)];
        let j = weighted_similarity(&sets);
        let [a, b] = sets.map(|set| weighted(&set));
        Observation {
            error: share(&a, &b) - j,
            variance: Variance::Equal(binomial(j)),
        }
    });
    assert_eq!(failures, NONE);
}

/// Moulton and Jiang 2018: the values are of the same feature with the probability J of the distributions,
/// independently, so that the variance is J (1 - J) / k.
#[test]
fn distribution_values_estimate_as_the_theory_predicts() {
    let hasher = WeightedMinHasher::new(WeightProcess::Rates, 11, SIZE as u16);
    let failures = cells("probability", |a, b, _, _| {
        // The second document is three times as long.
        let longer = |(hash, weight): &(u64, u64)| (*hash, 3 * weight);
        let sets = [weigh(a, 1), weigh(b, 2).iter().map(longer).collect()];
        let [x, y] = weighted_sets(&sets);
        let j = probability_jaccard(&x, &y);
        let [a, b] = sets.map(|set| hasher.values(&set));
        Observation {
            error: share(&a, &b) - j,
            variance: Variance::Equal(binomial(j)),
        }
    });
    assert_eq!(failures, NONE);
}

/// Li and König 2010, over values of each kind.
#[test]
fn cut_values_estimate_as_the_theory_predicts() {
    for bits in [1, 4] {
        let failures = cells("k functions, cut", |a, b, j, _| Observation {
            error: cut_estimate(&k_hash(a), &k_hash(b), bits) - j,
            variance: Variance::Equal(b_bit::variance(j, SIZE, bits)),
        });
        assert_eq!(failures, NONE);
    }
    let failures = cells("one pass, cut", |a, b, j, _| Observation {
        error: cut_estimate(&one_pass(a), &one_pass(b), 2) - j,
        variance: Variance::AtMost(b_bit::variance(j, SIZE, 2)),
    });
    assert_eq!(failures, NONE);
    let failures = cells("weighted, cut", |a, b, _, _| {
        let sets = [weigh(a, 1), weigh(b, 2)];
        let j = weighted_similarity(&sets);
        let [a, b] = sets.map(|set| weighted(&set));
        Observation {
            error: cut_estimate(&a, &b, 8) - j,
            variance: Variance::Equal(b_bit::variance(j, SIZE, 8)),
        }
    });
    assert_eq!(failures, NONE);
}

/// The bounds are of use: what is biased, or repeats its values, is found out.
#[test]
fn theory_test_detects_a_wrong_kind() {
    let pairs = |_| trials(200, 400);
    let uncorrected = cells_of("cut, without correction", pairs, |a, b, j, _| {
        let [a, b] = [a, b].map(|set| k_hash(set).into_iter().map(|v| b_bit::cut(v, 4, true)));
        Observation {
            error: share(&a.collect::<Vec<_>>(), &b.collect::<Vec<_>>()) - j,
            variance: Variance::Equal(b_bit::variance(j, SIZE, 4)),
        }
    });
    assert!(uncorrected.len() >= 8, "{uncorrected:?}");
    let half = |set: &[u64]| k_hash(set)[..SIZE / 2].repeat(2);
    let repeated = cells_of("half of the values twice", pairs, |a, b, j, _| {
        Observation {
            error: share(&half(a), &half(b)) - j,
            variance: Variance::AtMost(binomial(j)),
        }
    });
    assert!(repeated.len() >= 12, "{repeated:?}");
    let idle = cells_of("no error", pairs, |_, _, j, _| Observation {
        error: 0.0,
        variance: Variance::Equal(binomial(j)),
    });
    assert!(idle.len() >= 15, "{idle:?}");
}
