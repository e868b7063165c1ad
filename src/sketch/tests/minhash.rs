use super::super::hash::{derive, mix64, stream};
use super::*;

/// The definition, value by value.
fn naive(seed: u64, values: u64, features: &[u64]) -> Vec<u32> {
    let value = |i| {
        let multiplier = derive(seed, stream::MINHASH + 2 * i) | 1;
        let addend = derive(seed, stream::MINHASH + 2 * i + 1);
        let hash = |&x: &u64| {
            let mixed = mix64(x ^ derive(seed, stream::FEATURE_KEY));
            (multiplier.wrapping_mul(mixed).wrapping_add(addend) >> 32) as u32
        };
        features.iter().map(hash).min().unwrap_or(u32::MAX)
    };
    (0..values).map(value).collect()
}

#[test]
fn values_are_those_of_the_definition() {
    for count in [0, 1, 2, 7, 8, 9, 16, 255, 256, 257, 1_000] {
        for (seed, values) in [(0, 16), (9, 117), (u64::MAX, 1024)] {
            let features: Vec<u64> = (0..count).map(|i: u64| i.wrapping_mul(seed)).collect();
            let expected = naive(seed, u64::from(values), &features);
            for simhash in [None, Some(64)] {
                let sketcher = sketcher(seed, Some(values), simhash);
                let signature = sketcher.hashes(features.iter().copied()).unwrap();
                assert_eq!(signature.minhash(), Some(&expected[..]));
            }
        }
    }
}

#[test]
fn equal_values_are_counted() {
    let a: Vec<u32> = (0..100_000).collect();
    for length in [0, 1, 15, 16, 128, 1024, 100_000] {
        let mut b = a[..length].to_vec();
        b.iter_mut().step_by(3).for_each(|value| *value ^= 1 << 31);
        let expected = a.iter().zip(&b).filter(|(a, b)| a == b).count();
        assert_eq!(estimate_equal(&a[..length], &b), expected);
    }
}

const VALUES: u16 = 128;
const ROWS: usize = 7;

/// Over seeds the estimate has the mean J and, if the values are independent, the variance
/// J (1 - J) / k; a band of r rows agrees with probability J^r. The sample variance of S nearly
/// normal estimates has the relative standard deviation √(2 / S).
#[test]
fn over_seeds_the_estimate_is_unbiased_and_its_values_are_independent() {
    for (common, each, seeds) in [(1, 1, 4_000), (8, 1, 4_000), (20, 5, 2_000), (400, 50, 300)] {
        for structure in STRUCTURES {
            let j = common as f64 / (common + 2 * each) as f64;
            let (mut deviations, mut squares, mut bands) = (0.0, 0.0, 0.0);
            for seed in 0..seeds {
                let sketcher = sketcher(seed, Some(VALUES), None);
                let [a, b] =
                    pair(0, common, each).map(|set| sketcher.hashes(set.map(structure)).unwrap());
                let deviation = a.jaccard(&b).unwrap() - j;
                deviations += deviation;
                squares += deviation * deviation;
                let [a, b] = [&a, &b].map(|s| s.minhash().unwrap().chunks_exact(ROWS));
                bands += a.zip(b).filter(|(a, b)| a == b).count() as f64;
            }
            let seeds = seeds as f64;
            let variance = j * (1.0 - j) / f64::from(VALUES);
            let mean_score = deviations / seeds / (variance / seeds).sqrt();
            let variance_score = (squares / seeds / variance - 1.0) / (2.0 / seeds).sqrt();
            let agree = j.powi(ROWS as i32);
            let tried = seeds * (usize::from(VALUES) / ROWS) as f64;
            let band_score = (bands - tried * agree) / (tried * agree * (1.0 - agree)).sqrt();
            for score in [mean_score, variance_score, band_score] {
                assert!(
                    score.abs() < SCORE,
                    "{mean_score} {variance_score} {band_score} J {j}"
                );
            }
        }
    }
}

/// With the functions of one seed, over documents: what a store sees. No two functions may agree
/// about documents more often than chance: of 8,128 correlations the largest of chance is near 4
/// standard errors, beyond 6 once in 60,000 runs.
#[test]
fn over_documents_no_two_functions_are_correlated() {
    let values = usize::from(VALUES);
    for (common, each, documents) in [(1, 1, 10_000), (8, 2, 10_000)] {
        let sketcher = sketcher(0, Some(VALUES), None);
        let j = common as f64 / (common + 2 * each) as f64;
        let mut together = vec![0_u32; values * values];
        for document in 0..documents {
            let [a, b] = pair(document * 100, common, each).map(|s| sketcher.hashes(s).unwrap());
            let both = a.minhash().unwrap().iter().zip(b.minhash().unwrap());
            let equal: Vec<u32> = both.map(|(a, b)| u32::from(a == b)).collect();
            for (i, row) in together.chunks_exact_mut(values).enumerate() {
                if equal[i] == 1 {
                    row.iter_mut()
                        .zip(&equal)
                        .for_each(|(sum, equal)| *sum += equal);
                }
            }
        }
        let documents = documents as f64;
        let share = |i: usize, j: usize| f64::from(together[i * values + j]) / documents;
        for i in 0..values {
            let score = (share(i, i) - j) / (j * (1.0 - j) / documents).sqrt();
            assert!(score.abs() < SCORE, "value {i}: {score}");
            for other in 0..i {
                let covariance = share(i, other) - share(i, i) * share(other, other);
                let score = covariance / (j * (1.0 - j)) * documents.sqrt();
                assert!(score.abs() < 6.0, "values {i} and {other}: {score}");
            }
        }
    }
}

/// The cut to 32 bits over-estimates by at most (1 - J) n / 2^33 = 0.00006 here, far below the
/// standard error.
#[test]
fn a_million_features_are_estimated_as_well() {
    let sketcher = sketcher(5, Some(256), None);
    let [a, b] = pair(0, 500_000, 250_000).map(|set| sketcher.hashes(set).unwrap());
    let error = a.jaccard(&b).unwrap() - 0.5;
    assert!(error.abs() < SCORE * (0.25_f64 / 256.0).sqrt(), "{error}");
}

/// Two disjoint sets of n features agree in a value of b bits with probability n / 2^(b + 1): the
/// over-estimate that the cut to 32 bits causes, seen here with fewer bits. The count of chance is
/// nearly Poisson; the terms left out are below 1 % of it.
#[test]
fn the_cut_over_estimates_as_stated() {
    for (bits, n, seeds) in [(16, 100, 600), (20, 1_000, 100)] {
        for structure in STRUCTURES {
            let mut equal = 0;
            for seed in 0..seeds {
                let sketcher = sketcher(seed, Some(1024), None);
                let [a, b] = pair(0, 0, n).map(|s| sketcher.hashes(s.map(structure)).unwrap());
                let values = a.minhash().unwrap().iter().zip(b.minhash().unwrap());
                equal += values
                    .filter(|(a, b)| (*a ^ *b) >> (32 - bits) == 0)
                    .count();
            }
            let expected = (seeds * 1024 * n) as f64 / 2_f64.powi(bits + 1);
            let error = equal as f64 - expected;
            assert!(
                error.abs() < SCORE * expected.sqrt() + 0.01 * expected,
                "{error} {expected}"
            );
        }
    }
}
