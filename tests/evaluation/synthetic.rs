//! Sets of known similarity. A bias or a correlation of the hash functions shows here first.

use resemblance::{Schema, Signature};

use crate::default_schema;
use crate::theory::Rule;

/// Seeds of a case. They are fixed: a case passes always or never.
const SEEDS: u64 = 4_000;

/// How far a figure may be from its expectation, in standard deviations. By chance one in 1.7
/// million is further; there are about a hundred.
const DEVIATIONS: f64 = 5.0;

/// Two sets of `size` features each of which `common` are in both, so J = common / (2 size - common).
struct Case {
    size: u64,
    common: u64,
    /// Turns the features' numbers 0, 1, 2, .. to hashes.
    hash: fn(u64) -> u64,
}

impl Case {
    fn similarity(&self) -> f64 {
        self.common as f64 / (2 * self.size - self.common) as f64
    }

    fn signatures(&self, schema: &Schema) -> [Signature; 2] {
        let sketcher = schema.sketcher();
        let sets = [
            0..self.size,
            self.size - self.common..2 * self.size - self.common,
        ];
        sets.map(|set| sketcher.hashes(set.map(self.hash)).unwrap())
    }
}

/// XXH3, as features of bytes are hashed.
fn random(number: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes())
}

/// Small numbers in sequence, which a caller may bring as hashes.
fn sequential(number: u64) -> u64 {
    number
}

/// Multiples of a high power of two: nothing varies but the top bits.
fn shifted(number: u64) -> u64 {
    number << 48
}

fn cases() -> Vec<Case> {
    let sizes = [
        (1, 0),
        (3, 2),
        (10, 9),
        (50, 25),
        (45, 40),
        (45, 41),
        (100, 95),
        (400, 360),
    ];
    let hashes: [fn(u64) -> u64; 3] = [random, sequential, shifted];
    let all = hashes.into_iter().flat_map(|hash| {
        sizes
            .into_iter()
            .map(move |(size, common)| Case { size, common, hash })
    });
    all.collect()
}

/// Whether the signatures agree in all rows of some band.
fn shares_a_band(rule: Rule, a: &[u32], b: &[u32]) -> bool {
    let bands = a.chunks_exact(rule.rows).zip(b.chunks_exact(rule.rows));
    bands.take(rule.bands).any(|(a, b)| a == b)
}

/// The number of equal values is binomial over the seeds, in mean and in variance (functions that
/// depend on each other would keep the mean and widen the variance), and pairs are returned as
/// often as theory says.
#[test]
fn values_agree_independently_and_as_often_as_the_sets_do() {
    for case in cases() {
        let similarity = case.similarity();
        let rule = Rule::of(default_schema().build().unwrap().minhash().unwrap());
        let (mut sum, mut squares, mut returned) = (0.0, 0.0, 0.0);
        for seed in 0..SEEDS {
            let schema = default_schema().seed(seed).build().unwrap();
            let [a, b] = case.signatures(&schema);
            let equal = a.jaccard(&b).unwrap() * rule.values as f64;
            sum += equal;
            squares += equal * equal;
            let band = shares_a_band(rule, a.minhash().unwrap(), b.minhash().unwrap());
            returned += f64::from(u8::from(band && equal >= rule.least_equal as f64));
        }
        let (seeds, values) = (SEEDS as f64, rule.values as f64);
        let (mean, expected) = (sum / seeds, similarity * values);
        let variance = (squares - sum * sum / seeds) / (seeds - 1.0);
        let fair = values * similarity * (1.0 - similarity);
        let label = format!("{} of {}, J {similarity:.3}", case.common, case.size);

        let error = (fair / seeds).sqrt();
        assert!(
            (mean - expected).abs() <= DEVIATIONS * error,
            "{label}: {mean} equal values, expected {expected} +- {error}"
        );
        // The variance of a sample variance, from the binomial's fourth central moment.
        let fourth = fair * (1.0 + 3.0 * fair * (1.0 - 2.0 / values));
        let error = ((fourth - fair * fair) / seeds).sqrt();
        assert!(
            (variance - fair).abs() <= DEVIATIONS * error,
            "{label}: variance {variance}, expected {fair} +- {error}"
        );
        let expected = rule.probability(similarity);
        let error = (expected * (1.0 - expected) / seeds).sqrt();
        // Where hardly any pair is, or is not, returned, the normal bound is narrower than one.
        let bound = DEVIATIONS * error + 1.0 / seeds;
        assert!(
            (returned / seeds - expected).abs() <= bound,
            "{label}: {} returned, expected {expected} +- {error}",
            returned / seeds
        );
    }
}
