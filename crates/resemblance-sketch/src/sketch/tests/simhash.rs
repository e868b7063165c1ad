use std::f64::consts::PI;

use super::*;
use crate::sketch::hash::{derive, mix64, stream};

fn fingerprint(sketcher: &Sketcher, hashes: impl IntoIterator<Item = u64>) -> u64 {
    sketcher.hashes(hashes).unwrap().simhash().unwrap() as u64
}

/// The definition, bit by bit, for distinct features with weights in steps.
fn naive(seed: u64, features: &[(u64, i128)]) -> u64 {
    let word = |x: u64| mix64(x ^ derive(seed, stream::PROJECTION_KEY));
    let mixed = |j: u32, x: u64| {
        let turn = u64::from(j + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mix64(mix64(x ^ derive(seed, stream::FEATURE_KEY)).wrapping_add(turn))
    };
    let present: Vec<_> = features.iter().filter(|feature| feature.1 > 0).collect();
    let bit = |j: u32| {
        let sign = |x: u64| if word(x) >> j & 1 == 1 { 1 } else { -1 };
        let sum: i128 = present.iter().map(|&&(x, weight)| sign(x) * weight).sum();
        let decider = present
            .iter()
            .min_by_key(|feature| (mixed(j, feature.0), feature.0));
        sum > 0 || sum == 0 && decider.is_some_and(|feature| sign(feature.0) == 1)
    };
    (0..64).map(|j| u64::from(bit(j)) << j).sum()
}

#[test]
fn simhash_follows_its_definition() {
    for count in [0, 1, 2, 3, 4, 10, 254, 255, 256, 510, 511, 1_001] {
        for seed in [0, 1, 77] {
            let sketcher = sketcher(seed, None, Some(64));
            let features: Vec<u64> = (0..count).map(|i: u64| i * i).collect();
            let once: Vec<_> = features.iter().map(|&x| (x, 1)).collect();
            let repeated = features.iter().chain(features.iter().rev()).copied();
            assert_eq!(
                fingerprint(&sketcher, repeated),
                naive(seed, &once),
                "{count}"
            );
            let weight = |x: u64| f64::from((x as u32).wrapping_mul(0x9e37_79b9) >> 16) / 512.0;
            let steps = |x: u64| (weight(x) * 65_536.0) as i128;
            let expected: Vec<_> = features.iter().map(|&x| (x, steps(x))).collect();
            let weighted = features.iter().map(|&x| (x, weight(x)));
            let signature = sketcher.weighted_hashes(weighted).unwrap();
            assert_eq!(
                signature.simhash(),
                Some(naive(seed, &expected).into()),
                "{count}"
            );
        }
    }
}

#[test]
fn weights_are_rounded_half_to_even_and_added_up_in_any_order() {
    let rounded = [(0.5, 0), (0.500_001, 1), (1.5, 2), (2.5, 2), (3.5, 4)];
    for (steps, expected) in rounded {
        assert_eq!(
            crate::sketch::simhash::quantise(steps / 65_536.0).unwrap(),
            expected
        );
    }
    assert_eq!(crate::sketch::simhash::quantise(65_536.0).unwrap(), 1 << 32);
    let sketcher = sketcher(2, Some(16), Some(64));
    let parts: Vec<(u64, f64)> = (0..500).map(|i| (i % 90, (i % 7) as f64 * 0.3)).collect();
    let mut whole = vec![0_u64; 90];
    for &(x, weight) in &parts {
        whole[x as usize] += crate::sketch::simhash::quantise(weight).unwrap();
    }
    let whole = (0..).zip(whole.iter().map(|&steps| steps as f64 / 65_536.0));
    let expected = sketcher.weighted_hashes(whole).unwrap();
    assert_eq!(
        sketcher.weighted_hashes(parts.iter().copied()).unwrap(),
        expected
    );
    assert_eq!(
        sketcher
            .weighted_hashes(parts.iter().rev().copied())
            .unwrap(),
        expected
    );
}

/// Weights that together would overflow the sums are refused, and the largest allowed are not.
#[test]
fn the_sum_of_the_weights_is_bounded() {
    let half = u64::MAX / 4;
    let mut most = vec![(1, half), (2, half), (1, 1)];
    assert_eq!(
        crate::sketch::simhash::merge(&mut most).unwrap(),
        u64::MAX / 2
    );
    assert_eq!(most, [(1, half + 1), (2, half)]);
    let mut more = vec![(1, half), (2, half), (1, 2)];
    refused(crate::sketch::simhash::merge(&mut more), "weights");
    let sketcher = sketcher(0, None, Some(64));
    let hasher = sketcher.functions.simhash.as_ref().unwrap();
    let expected: Vec<_> = most
        .iter()
        .map(|&(x, weight)| (x, i128::from(weight)))
        .collect();
    assert_eq!(
        hasher.weighted(&most, u64::MAX / 2).number(),
        Some(naive(0, &expected).into())
    );
}

/// Ties included (sets of 2 and 4), each bit is a fair coin and bits are independent: over S seeds
/// the number of set bits has mean 32 and variance 16.
#[test]
fn simhash_bits_are_fair_and_independent() {
    for count in [1, 2, 3, 4, 50] {
        for structure in STRUCTURES {
            let seeds = 4_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for seed in 0..seeds {
                let sketcher = sketcher(seed, None, Some(64));
                let bits = fingerprint(&sketcher, (0..count).map(structure)).count_ones();
                let deviation = f64::from(bits) - 32.0;
                sum += deviation;
                squares += deviation * deviation;
            }
            let seeds = seeds as f64;
            let mean_score = sum / seeds / (16.0 / seeds).sqrt();
            let variance_score = (squares / seeds / 16.0 - 1.0) / (2.0 / seeds).sqrt();
            assert!(mean_score.abs() < SCORE, "{count}: {mean_score}");
            assert!(variance_score.abs() < SCORE, "{count}: {variance_score}");
        }
    }
}

/// The mean share of differing bits over seeds, and the share of seeds within distance 3.
fn measure(common: u64, each: u64, structure: fn(u64) -> u64, seeds: u64) -> (f64, f64) {
    let (mut bits, mut near) = (0, 0);
    for seed in 0..seeds {
        let sketcher = sketcher(seed, None, Some(64));
        let [a, b] = pair(0, common, each).map(|set| fingerprint(&sketcher, set.map(structure)));
        let distance = (a ^ b).count_ones();
        bits += distance;
        near += u32::from(distance <= 3);
    }
    (
        f64::from(bits) / (64 * seeds) as f64,
        f64::from(near) / seeds as f64,
    )
}

/// Two features agree in a bit or tie, so {x, y} and {x, z} have in each bit that of the bit's
/// decider: it differs with probability 1/2 unless that is x in both, 1/3 of the time. A constant
/// for ties would give 3/8, a coin of each document 1/2. Bits are independent: with one decider for
/// all of them a third of these pairs would be at distance 0.
#[test]
fn simhash_breaks_ties_independently_per_bit() {
    let seeds = 6_000;
    for structure in STRUCTURES {
        let (differ, near) = measure(1, 1, structure, seeds);
        assert_eq!(near, 0.0, "P(distance <= 3) is 1e-7 for independent bits");
        let variance = (1.0 / 3.0) * (2.0 / 3.0) / 64.0;
        let score = (differ - 1.0 / 3.0) / (variance / seeds as f64).sqrt();
        assert!(score.abs() < SCORE, "{differ}");
    }
}

/// Charikar's P(bit differs) = θ / π with cos θ = 2J / (1 + J) for sets of equal size, and the
/// binomial P(distance <= 3) that follows from it. Odd sizes: no ties. For hundreds of features
/// the normal limit is off by less than the 0.002 and 0.01 allowed for it.
#[test]
fn simhash_distance_follows_the_angle() {
    let seeds = 2_000;
    for (common, each) in [(800, 101), (900, 51), (990, 5)] {
        for structure in [STRUCTURES[0], STRUCTURES[3]] {
            let cosine = common as f64 / (common + each) as f64;
            let p = cosine.acos() / PI;
            let (differ, near) = measure(common, each, structure, seeds);
            let error = SCORE * (p * (1.0 - p) / (64 * seeds) as f64).sqrt() + 0.002;
            assert!((differ - p).abs() < error, "{differ}, not {p}");
            let choose = [1.0, 64.0, 2_016.0, 41_664.0];
            let terms = (0..)
                .zip(choose)
                .map(|(d, c)| c * p.powi(d) * (1.0 - p).powi(64 - d));
            let expected: f64 = terms.sum();
            let error = SCORE * (expected * (1.0 - expected) / seeds as f64).sqrt() + 0.01;
            assert!((near - expected).abs() < error, "{near}, not {expected}");
        }
    }
}

#[test]
fn fingerprints_of_32_bits_are_the_lower_half() {
    let (short, whole) = (sketcher(7, None, Some(32)), sketcher(7, None, Some(64)));
    for count in 0..50 {
        let half = short.hashes(0..count).unwrap();
        assert_eq!(half.simhash_bits(), Some(32));
        let lower = fingerprint(&whole, 0..count) & u64::from(u32::MAX);
        assert_eq!(half.simhash(), Some(lower.into()));
    }
}

/// Texts in one piece, in pieces, with their features and by their hashes have the fingerprint of
/// features that weigh as much as they occur, also beside MinHash and sets.
#[test]
fn counted_fingerprints_are_those_of_weights() {
    let schema = |minhash: Option<crate::MinHash>, counts| {
        let simhash = crate::SimHash::bits128().term_counts(counts);
        let mut builder = crate::Schema::builder().text(crate::Text::words(1));
        if let Some(minhash) = minhash {
            builder = builder.minhash(minhash).exact();
        }
        builder.simhash(simhash).build().unwrap()
    };
    let text = "a a a b c c d e f ".repeat(7) + "g g h";
    let weights = [
        ("a", 21.0),
        ("b", 7.0),
        ("c", 14.0),
        ("d", 7.0),
        ("e", 7.0),
        ("f", 7.0),
    ];
    let weights = weights.into_iter().chain([("g", 2.0), ("h", 1.0)]);
    for minhash in [
        None,
        Some(crate::MinHash::new(64)),
        Some(crate::MinHash::weighted(64)),
    ] {
        let (counted, sets) = (schema(minhash, true), schema(minhash, false));
        let (sketcher, plain) = (counted.sketcher(), sets.sketcher());
        let found = sketcher.text(&text).unwrap();
        let expected = plain.weighted_features(weights.clone()).unwrap();
        assert_eq!(found.fingerprint(), expected.fingerprint());
        assert_ne!(
            found.fingerprint(),
            plain.text(&text).unwrap().fingerprint()
        );
        assert_eq!(found.minhash(), plain.text(&text).unwrap().minhash());
        assert_eq!(sketcher.text_reader(text.as_bytes()).unwrap(), found);
        assert_eq!(sketcher.text_and_feature_hashes(&text).unwrap().0, found);
        assert_eq!(sketcher.features(text.split_whitespace()).unwrap(), found);
        // The recipe records the option.
        assert!(found.hamming(&plain.text(&text).unwrap()).is_err());
        let read = crate::Schema::from_bytes(&counted.to_bytes().unwrap()).unwrap();
        assert!(read == counted && read.has_term_counts() && !sets.has_term_counts());
        let difference = sets.recipe_difference(&counted).unwrap();
        assert_eq!(difference.found, "128 bits, repeats count");
    }
    let external = crate::SimHash::external(64).term_counts(true);
    assert!(crate::Schema::builder().simhash(external).build().is_err());
}

/// A feature with a negative weight has the opposite of its projections, and the angle between
/// vectors of any signs is estimated (Charikar 2002). Standard deviation of 128 bits at 60 degrees:
/// √(1/3 · 2/3 / 128) = 0.042; of the mean of 200 vectors 0.003.
#[test]
fn negative_weights_turn_projections_around() {
    let sketcher = |seed| {
        let schema = crate::Schema::builder().simhash(crate::SimHash::bits128());
        schema.seed(seed).build().unwrap().sketcher()
    };
    let (mut differing, root) = (0.0, 3_f64.sqrt() / 2.0);
    for seed in 0..200 {
        let sketcher = sketcher(seed);
        // Vectors of many features, so that sums are nearly normal.
        let of = |a: f64, b: f64| {
            let signs = move |i: u64| if i.is_multiple_of(3) { -1.0 } else { 1.0 };
            let first = (0..301).map(move |i| (i, a * signs(i)));
            let second = (1_000..1_301).map(move |i| (i, b * signs(i)));
            sketcher.weighted_hashes(first.chain(second)).unwrap()
        };
        differing += f64::from(of(1.0, 0.0).hamming(&of(0.5, root)).unwrap()) / 128.0;
        // No sum of an odd number of features is 0, which one feature would decide.
        assert_eq!(of(1.0, -0.5).hamming(&of(-1.0, 0.5)).unwrap(), 128);
    }
    let found = differing / 200.0;
    assert!((found - 1.0 / 3.0).abs() < 5.0 * 0.003, "{found}");
    let sketcher = sketcher(1);
    let cancelled = sketcher
        .weighted_hashes([(7, 1.5), (8, 1.0), (7, -1.5)])
        .unwrap();
    assert_eq!(cancelled, sketcher.weighted_hashes([(8, 1.0)]).unwrap());
    assert!(
        sketcher
            .weighted_hashes([(7, 1.5), (7, -1.5)])
            .unwrap()
            .is_empty()
    );
}
