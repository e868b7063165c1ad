use super::*;
use crate::sketch::one_pass::OnePass;

fn values(seed: u64, size: u16, hashes: impl IntoIterator<Item = u64>) -> Vec<u32> {
    let sketch = OnePass::new(seed, size);
    let mut state = sketch.state();
    sketch.update(&mut state, hashes);
    sketch.values(state)
}

/// 5,000 features are more than are taken through the rounds together.
#[test]
fn one_pass_ignores_order_repeats_and_update_boundaries() {
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
fn one_pass_union_is_the_minimum_per_place() {
    for (common, each) in [(0, 1), (3, 4), (100, 40), (2_000, 700)] {
        let [a, b] = pair(5, common, each).map(|set| values(1, 128, set));
        let union = values(1, 128, 5..5 + common + 2 * each);
        let minima: Vec<u32> = a.iter().zip(&b).map(|(a, b)| *a.min(b)).collect();
        assert_eq!(union, minima);
    }
}

#[test]
fn one_pass_fills_every_place_of_a_nonempty_set() {
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
fn one_pass_collides_with_the_stated_probability() {
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
