use super::*;
use crate::sketch::weighted::{WeightProcess, WeightedMinHasher, gap, negative_ln, time_of};

const PROCESSES: [WeightProcess; 2] = [WeightProcess::Steps, WeightProcess::Rates];

fn weights(features: u64, kind: u64) -> Vec<(u64, u64)> {
    let weight = |feature: u64| match kind {
        0 => 1,
        1 => 1 + feature % 5,
        2 => 65_536 * (1 + feature % 3),
        _ => 1 + mix64(feature) % (1 << (1 + feature % 20)),
    };
    (0..features)
        .map(|feature| (feature, weight(feature)))
        .collect()
}

/// A tight limit leaves values without an event; those that have one have the same.
#[test]
fn weighted_time_limit_does_not_change_earlier_values() {
    for (process, kind) in PROCESSES
        .into_iter()
        .flat_map(|p| (0..4).map(move |k| (p, k)))
    {
        let hasher = WeightedMinHasher::new(process, 4, 64);
        let features = weights(100, kind);
        let total: u64 = features.iter().map(|&(_, weight)| weight).sum();
        let wide = hasher.firsts(&features, 64.0 * 20.0 / total as f64);
        let mut left_out = 0;
        for share in [0.1, 0.5, 1.0, 3.0, 7.0] {
            let limit = 64.0 * share / total as f64;
            for (narrow, wide) in hasher.firsts(&features, limit).into_iter().zip(&wide) {
                let is_within = time_of(narrow) <= limit;
                match is_within {
                    true => assert_eq!(narrow, *wide),
                    false => left_out += usize::from(time_of(*wide) > limit),
                }
                assert_eq!(is_within, time_of(*wide) <= limit);
            }
        }
        assert!(left_out > 50);
    }
}

#[test]
fn weighted_minhash_ignores_order_and_accepts_any_weight() {
    for process in PROCESSES {
        order_does_not_matter_to(&WeightedMinHasher::new(process, 4, 64));
    }
}

fn order_does_not_matter_to(hasher: &WeightedMinHasher) {
    let mut features = weights(50, 3);
    features.extend([(1_000, 1), (1_001, 1 << 32), (1_002, 3 << 40)]);
    let values = hasher.values(&features);
    features.reverse();
    assert_eq!(hasher.values(&features), values);
    assert!(values.iter().all(|&value| value < u32::MAX));
    assert_eq!(hasher.values(&[]), [u32::MAX; 64]);
    assert_eq!(hasher.values(&[(5, 0)]), [u32::MAX; 64]);
    for weight in [
        1,
        2,
        3,
        (1 << 32) - 1,
        (1 << 32) + 1,
        u64::MAX / 2,
        u64::MAX,
    ] {
        let values = hasher.values(&[(5, weight)]);
        assert!(values.iter().all(|&value| value < u32::MAX), "{weight}");
    }
}

/// A weight of w against one of v > w agrees in w / v of the values, whether it ends a block or
/// cuts one. The values of a pair are independent.
#[test]
fn weights_of_one_feature_agree_by_their_ratio() {
    for (small, large) in [
        (1, 2),
        (3, 4),
        (200, 257),
        (256, 4_096),
        (5_000, 16_384),
        (40_000, 65_536),
        (65_535, 65_537),
        (65_536, 200_000),
        (3 << 40, 1 << 42),
    ] {
        let seeds = 200;
        let mut equal = 0;
        for seed in 0..seeds {
            let hasher = WeightedMinHasher::new(WeightProcess::Steps, seed, 128);
            let [a, b] = [small, large].map(|weight| hasher.values(&[(seed, weight), (9, 1)]));
            equal += estimate_equal(&a, &b);
        }
        let j = (small + 1) as f64 / (large + 1) as f64;
        let tried = (seeds * 128) as f64;
        let score = (equal as f64 - tried * j) / (tried * j * (1.0 - j)).sqrt();
        assert!(score.abs() < SCORE, "{small} of {large}: {score}");
    }
}

/// Two values of one feature are equal whatever its weight, and so are those of all weights times ten.
#[test]
fn probability_minhash_compares_normalized_weights() {
    for seed in 0..20 {
        let hasher = WeightedMinHasher::new(WeightProcess::Rates, seed, 128);
        assert_eq!(
            hasher.values(&[(seed, 3)]),
            hasher.values(&[(seed, 1_000_000)])
        );
        let features = weights(60, 3);
        let tenfold: Vec<(u64, u64)> = features.iter().map(|&(f, w)| (f, 8 * w)).collect();
        assert_eq!(hasher.values(&features), hasher.values(&tenfold));
    }
}

/// Against the standard library's, which is within one unit in the last place.
#[test]
fn weighted_logarithm_is_within_its_error_bound() {
    let mut inputs: Vec<f64> = (0..200_000_u64)
        .map(|i| ((mix64(i) >> 11) + 1) as f64 / 2_f64.powi(53))
        .collect();
    inputs.extend((0..=53).map(|i| 2_f64.powi(-i)));
    inputs.extend((1..2_000).map(|i| 1.0 - f64::from(i) / 2_f64.powi(53)));
    inputs
        .extend((1..2_000).map(|i| std::f64::consts::FRAC_1_SQRT_2 + f64::from(i - 1_000) * 1e-16));
    for x in inputs {
        let expected = -x.ln();
        let error = (negative_ln(x) - expected).abs();
        assert!(
            error <= 5.0 * f64::EPSILON * expected,
            "{x}: {error} of {expected}"
        );
    }
    assert_eq!(negative_ln(1.0), 0.0);
}

/// A gap is −ln of the rest of its share to 2^-29, and never so small that a stream would seem to end.
#[test]
fn weighted_gaps_are_logarithms() {
    let edges = (0..32).flat_map(|bits| [(1 << bits) - 1, 1 << bits, !(1 << bits)]);
    for number in edges.chain((0..1_000_000).map(|i| mix64(i) as u32)) {
        let share = (f64::from(number) + 0.5) / 2_f64.powi(32);
        let (found, expected) = (gap(number), negative_ln(1.0 - share));
        let error = (found - expected).abs();
        assert!(error <= 2_f64.powi(-29), "{number}: {error} of {expected}");
        assert!(
            found * 1.001 >= f64::from(number) / 2_f64.powi(32),
            "{number}"
        );
    }
}

/// Exponential with mean 1: the first three moments are 1, 2 and 6, with variances of
/// (2 n)! - n!² a draw.
#[test]
fn weighted_gaps_are_exponential() {
    let draws = 1_000_000;
    let gaps = || (1..=draws).map(|i| gap((mix64(i) >> 32) as u32));
    for (power, mean, square) in [(1, 1.0, 2.0), (2, 2.0, 24.0), (3, 6.0, 720.0)] {
        let found = gaps().map(|gap| gap.powi(power)).sum::<f64>() / draws as f64;
        let deviation: f64 = (square - mean * mean) / draws as f64;
        let score = (found - mean) / deviation.sqrt();
        assert!(score.abs() < SCORE, "moment {power}: {score}");
    }
}

/// Weights in any number of groups have the values of the same weights in one, whatever is in a group.
#[test]
fn weighted_values_do_not_depend_on_company() {
    for process in PROCESSES {
        let hasher = WeightedMinHasher::new(process, 7, 32);
        let features = weights(1_000, 3);
        let whole = hasher.firsts(&features, 1.0);
        let mut least = hasher.firsts(&[], 1.0);
        for feature in &features {
            for (least, own) in least.iter_mut().zip(hasher.firsts(&[*feature], 1.0)) {
                *least = own.min(*least);
            }
        }
        assert_eq!(whole, least);
    }
}

/// Too small a weight is absence; a weight beyond the range is refused, however extreme.
#[test]
fn extreme_weights_are_absent_or_refused() {
    let (kind, values) = (MinHashKind::Weighted, 64);
    let exact = Recipe {
        minhash: Some(MinHashRecipe { kind, values }),
        exact_bits: Some(44),
        ..recipe(1, None, None)
    };
    let sketcher = Sketcher::new(exact).unwrap();
    let of = |weight: f64| sketcher.weighted_features([("a", 1.0), ("b", weight)]);
    let alone = sketcher.weighted_features([("a", 1.0)]).unwrap();
    for weight in [0.0, -0.0, 1e-300, f64::MIN_POSITIVE, 5e-324, 7e-6] {
        assert_eq!(of(weight).unwrap(), alone, "{weight}");
    }
    for weight in [8e-6, 65_536.0] {
        assert_ne!(
            of(weight).unwrap().exact_set(),
            alone.exact_set(),
            "{weight}"
        );
    }
    for weight in [65_536.1, 1e300, f64::INFINITY, f64::NAN, -1e-300, -1.0] {
        assert!(of(weight).is_err(), "{weight}");
    }
}
