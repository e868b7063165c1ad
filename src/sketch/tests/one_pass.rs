use super::*;
use crate::sketch::hash::{GOLDEN_GAMMA, derive, stream};
use crate::sketch::one_pass::OnePass;

fn values(seed: u64, size: u16, hashes: impl IntoIterator<Item = u64>) -> Vec<u32> {
    let sketch = OnePass::new(seed, size);
    let mut state = sketch.state();
    sketch.update(&mut state, hashes);
    sketch.values(state)
}

/// The definition: all features in all rounds.
fn by_definition(seed: u64, places: u64, hashes: &[u64]) -> Vec<u32> {
    let key = derive(seed, stream::ONE_PASS_KEY);
    let mut earliest = vec![(u64::MAX, u64::MAX); places as usize];
    for &hash in hashes {
        let word = mix64(hash ^ key);
        for round in 0..2 * places {
            let thrown = match round {
                0 => word,
                _ => mix64(word.wrapping_add(GOLDEN_GAMMA.wrapping_mul(round))),
            };
            let product = u128::from(thrown) * u128::from(places);
            let (place, time) = match round.checked_sub(places) {
                None => ((product >> 64) as u64, product as u64 >> 17),
                Some(place) => (place, thrown >> 17),
            };
            let earliest = &mut earliest[place as usize];
            *earliest = (*earliest).min((round, time));
        }
    }
    let cut = |(round, time): (u64, u64)| {
        let number = (round << 47) + time;
        let length = number.ilog2();
        let rest = u128::from(number - (1 << length)) << 26 >> length;
        (length << 26) + rest as u32
    };
    earliest.into_iter().map(cut).collect()
}

#[test]
fn values_are_as_defined() {
    for places in [1, 2, 16, 100, 128] {
        for features in [1, 2, 10, 100, 500, 3_000] {
            for (seed, structure) in STRUCTURES.into_iter().enumerate() {
                let hashes: Vec<u64> = (0..features).map(structure).collect();
                let expected = by_definition(seed as u64, places, &hashes);
                assert_eq!(values(seed as u64, places as u16, hashes), expected);
            }
        }
    }
}

/// 5,000 features are more than are taken through the rounds together.
#[test]
fn neither_order_nor_repeats_nor_the_cuts_into_updates_matter() {
    let sketch = OnePass::new(3, 256);
    for features in [1_u64, 7, 300, 5_000, 9_000] {
        let expected = values(3, 256, 0..features);
        assert_eq!(
            values(3, 256, (0..features).rev().chain(0..features)),
            expected
        );
        for length in [1, 256] {
            let mut state = sketch.state();
            let all: Vec<u64> = (0..features).collect();
            for piece in all.chunks(length) {
                sketch.update(&mut state, piece.iter().copied());
            }
            assert_eq!(sketch.values(state), expected);
        }
    }
}

#[test]
fn the_values_of_a_union_are_the_minima_by_place() {
    for (common, each) in [(0, 1), (3, 4), (100, 40), (2_000, 700)] {
        let [a, b] = pair(5, common, each).map(|set| values(1, 128, set));
        let union = values(1, 128, 5..5 + common + 2 * each);
        let minima: Vec<u32> = a.iter().zip(&b).map(|(a, b)| *a.min(b)).collect();
        assert_eq!(union, minima);
    }
}

#[test]
fn only_the_empty_set_has_places_without_a_value() {
    for size in [1, 16, 1024] {
        assert_eq!(values(0, size, []), vec![u32::MAX; size.into()]);
        for seed in 0..20 {
            assert!(
                values(seed, size, [9])
                    .iter()
                    .all(|value| *value < u32::MAX)
            );
        }
    }
}

/// Two disjoint sets have values with equal leading 6 + b bits with probability at most 2^-b, here
/// with b = 10 in place of 26; and where a place is filled in its last round, which cells of k / 2^b
/// of a round do not tell apart. The count of chance is nearly Poisson.
#[test]
fn unequal_features_have_equal_values_as_seldom_as_stated() {
    for (features, seeds) in [(1_u64, 300), (10, 300), (1_000, 100), (50_000, 30)] {
        let mut equal = 0;
        for seed in 0..seeds {
            let [a, b] = pair(0, 0, features).map(|set| values(seed, 1024, set));
            equal += a
                .iter()
                .zip(&b)
                .filter(|(a, b)| (*a ^ *b) >> 16 == 0)
                .count();
        }
        let last_round = (-2.0 * features as f64).exp();
        let most = (seeds * 1024) as f64 * (1.0 / 1024.0 + last_round);
        assert!(
            (equal as f64) < most + SCORE * most.sqrt(),
            "{features}: {equal}"
        );
    }
}

/// One-permutation hashing with optimal densification: an empty place takes the value of a place
/// that is chosen at random, again and again until it has one.
fn densified(seed: u64, places: u64, hashes: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut earliest = vec![u64::MAX; places as usize];
    for hash in hashes {
        let product = u128::from(mix64(hash ^ derive(seed, 7))) * u128::from(places);
        let earliest = &mut earliest[(product >> 64) as usize];
        *earliest = (*earliest).min(product as u64);
    }
    let donor = |place: u64| {
        let draws = (0..).map(|draw| derive(seed ^ (place << 32), 1_000 + draw));
        let mut places = draws.map(|word| (u128::from(word) * u128::from(places)) >> 64);
        places.find(|&place| earliest[place as usize] < u64::MAX)
    };
    let filled = |place: u64| match earliest[place as usize] {
        u64::MAX => earliest[donor(place).unwrap() as usize],
        value => value,
    };
    (0..places).map(filled).collect()
}

/// Sets of 24 features and 128 places: copies make densified values vary more than independent ones
/// (1.3 times their variance), while one-pass values, of which every round has all features once,
/// vary less (0.5 times). The relative standard deviation of a variance of 3,000 is 0.026.
#[test]
fn the_variance_is_below_that_of_densification() {
    let (seeds, j) = (3_000, 0.5);
    let share = |equal: usize| equal as f64 / 128.0 - j;
    let (mut ours, mut theirs) = (0.0, 0.0);
    for seed in 0..seeds {
        let [a, b] = pair(0, 16, 8).map(|set| values(seed, 128, set));
        ours += share(estimate_equal(&a, &b)).powi(2);
        let [a, b] = pair(0, 16, 8).map(|set| densified(seed, 128, set));
        theirs += share(a.iter().zip(&b).filter(|(a, b)| a == b).count()).powi(2);
    }
    let independent = f64::from(seeds as u32) * j * (1.0 - j) / 128.0;
    assert!(
        ours / independent < 0.5 * (1.0 + SCORE * 0.026) + 0.05,
        "{}",
        ours / independent
    );
    assert!(
        theirs / independent > 1.3 * (1.0 - SCORE * 0.026),
        "{}",
        theirs / independent
    );
}
