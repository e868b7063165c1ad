use std::collections::{BTreeMap, BTreeSet};

use super::super::exact::*;
use super::*;
use crate::error::Result;
use crate::error::SketchError;

/// Against the standard library's sets, over random sets of numbers below 40.
#[test]
fn similarities_of_sets_are_as_defined() {
    let set = |word: u64| {
        (0..word % 23)
            .map(move |i| derive_small(word, i))
            .collect::<Vec<_>>()
    };
    for case in 0..500 {
        let (a, b) = (set(mix64(case)), set(mix64(case + 1_000)));
        let [of_a, of_b] = [&a, &b].map(|set| set.iter().copied().collect::<BTreeSet<_>>());
        let [ours_a, ours_b] = [&a, &b].map(|set| set.iter().copied().collect::<FeatureSet<_>>());
        let shared = of_a.intersection(&of_b).count();
        let all = of_a.union(&of_b).count();
        let share = |part: usize, whole: usize| match whole {
            0 => 1.0,
            _ => part as f64 / whole as f64,
        };
        assert_eq!(ours_a.shared(&ours_b), shared);
        assert_eq!(jaccard(&ours_a, &ours_b), share(shared, all));
        assert_eq!(containment(&ours_a, &ours_b), share(shared, of_a.len()));
        assert_eq!(ours_a.is_empty(), of_a.is_empty());
        // Where a set is empty, 1 if both are, and 0 if not.
        let [m, n] = [of_a.len() as f64, of_b.len() as f64];
        let or_equal = |similarity: f64| match m * n > 0.0 {
            true => similarity,
            false => f64::from(u8::from(m == n)),
        };
        let close = |found: f64, expected: f64| {
            assert!(
                (found - or_equal(expected)).abs() < 1e-12,
                "{found} {expected}"
            );
        };
        close(dice(&ours_a, &ours_b), 2.0 * shared as f64 / (m + n));
        close(overlap(&ours_a, &ours_b), shared as f64 / m.min(n));
        close(cosine(&ours_a, &ours_b), shared as f64 / (m * n).sqrt());
        let bits = |set: &BTreeSet<u64>| [set.iter().map(|&feature| 1_u64 << feature).sum()];
        assert_eq!(
            jaccard_of_bits(&bits(&of_a), &bits(&of_b)),
            share(shared, all)
        );
    }
}

fn derive_small(word: u64, index: u64) -> u64 {
    mix64(word.wrapping_add(index)) % 40
}

#[test]
fn the_weighted_similarity_is_as_defined() {
    let set = |word: u64| {
        let features = (0..word % 23).map(move |i| (derive_small(word, i), (i % 4) as f64));
        features.collect::<Vec<_>>()
    };
    for case in 0..500 {
        let sets = [set(mix64(case)), set(mix64(case + 1_000))];
        let ours = sets
            .each_ref()
            .map(|set| WeightedSet::new(set.iter().copied()).unwrap());
        let sums = sets.map(|set| {
            let mut sums = BTreeMap::<u64, f64>::new();
            set.into_iter()
                .for_each(|(feature, weight)| *sums.entry(feature).or_default() += weight);
            sums
        });
        let weight = |of: usize, feature: u64| sums[of].get(&feature).copied().unwrap_or(0.0);
        let least: f64 = (0..40).map(|f| weight(0, f).min(weight(1, f))).sum();
        let most: f64 = (0..40).map(|f| weight(0, f).max(weight(1, f))).sum();
        let expected = if most > 0.0 { least / most } else { 1.0 };
        assert_eq!(weighted_jaccard(&ours[0], &ours[1]), expected);
        assert_eq!(weighted_jaccard(&ours[1], &ours[0]), expected);
        let [a, b] = &ours;
        let lengths = [a, b].map(|set| !set.as_slice().is_empty());
        let or_equal = |similarity: f64| match lengths {
            [true, true] => similarity,
            [x, y] => f64::from(u8::from(x == y)),
        };
        let dot = |x: usize, y: usize| (0..40).map(|f| weight(x, f) * weight(y, f)).sum::<f64>();
        let cosine = or_equal(dot(0, 1) / (dot(0, 0) * dot(1, 1)).sqrt());
        assert!((weighted_cosine(a, b) - cosine).abs() < 1e-12);
        // Moulton and Jiang 2018, as they define it.
        let both = (0..40).filter(|&i| weight(0, i) > 0.0 && weight(1, i) > 0.0);
        let term = |i: u64| {
            let share = |of: usize, j: u64| weight(of, j) / weight(of, i);
            let sum: f64 = (0..40).map(|j| share(0, j).max(share(1, j))).sum();
            1.0 / sum
        };
        let probability = or_equal(both.map(term).sum());
        assert!((probability_jaccard(a, b) - probability).abs() < 1e-12);
        assert!((probability_jaccard(b, a) - probability).abs() < 1e-12);
        let tenfold = a.as_slice().iter().map(|(f, w)| (*f, 10.0 * w));
        let tenfold = WeightedSet::new(tenfold).unwrap();
        assert_eq!(probability_jaccard(a, &tenfold), 1.0);
        assert_eq!(probability_jaccard(&tenfold, a), 1.0);
        assert_eq!(probability_jaccard(a, a), 1.0);
    }
    for weight in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(WeightedSet::new([("a", 1.0), ("b", weight)]).is_err());
    }
}

#[test]
fn bits_of_different_lengths_are_compared() {
    assert_eq!(jaccard_of_bits(&[1, 1], &[1]), 0.5);
    assert_eq!(jaccard_of_bits(&[], &[0]), 1.0);
    assert_eq!(jaccard_of_bits(&[], &[8]), 0.0);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let refused = |result: Result<()>, name: &str| match result {
        Err(SketchError::InvalidParameter { parameter, .. }) => assert_eq!(parameter, name),
        other => panic!("{other:?}"),
    };
    refused(angle(65, 64).map(drop), "distance");
    refused(same_bit_probability(0, 0).map(drop), "bits");
    refused(sensitivity(1.0, 0.5).map(drop), "near");
    refused(sensitivity(0.5, f64::NAN).map(drop), "far");
    refused(simhash([(1, 1.0)], 129).map(drop), "bits");
    refused(simhash([(1, 1.0)], 0).map(drop), "bits");
    refused(simhash([(16, 1.0)], 4).map(drop), "hash");
    refused(simhash([(1, -1.0)], 4).map(drop), "weight");
    refused(modular_minhash([1], &[(1, 1)], 0).map(drop), "modulus");
    refused(permuted_table(&[1], &[0, 0]).map(drop), "places");
    refused(permuted_table(&[1], &[1, 2]).map(drop), "places");
    refused(permuted_table(&[4], &[1, 0]).map(drop), "fingerprint");
    assert_eq!(angle(64, 64).unwrap(), std::f64::consts::PI);
    assert_eq!(simhash([(u128::MAX, 0.5)], 128).unwrap(), u128::MAX);
    assert_eq!(simhash([], 128).unwrap(), 0);
    let identity: Vec<u8> = (0..128).collect();
    assert_eq!(
        permuted_table(&[u128::MAX, 5], &identity).unwrap(),
        [5, u128::MAX]
    );
    assert_eq!(fingerprints_within(128, 128), None);
    assert_eq!(fingerprints_within(127, 128), Some(u128::MAX));
    assert_eq!(fingerprints_within(99, 64), Some(1 << 64));
}

/// The classical SimHash of a sketcher's own words is the sketcher's, where no bit is tied.
#[test]
fn the_classical_simhash_agrees_with_the_frozen_one() {
    use crate::sketch::hash::{derive, stream};
    let sketcher = sketcher(6, None, Some(64));
    for features in [1_u64, 3, 11, 101] {
        let key = derive(6, stream::PROJECTION_KEY);
        let words = (0..features).map(|hash| (u128::from(mix64(hash ^ key)), 1.0));
        let frozen = sketcher.hashes(0..features).unwrap().simhash().unwrap();
        assert_eq!(simhash(words, 64).unwrap(), frozen);
    }
}
