use std::collections::BTreeSet;

use super::*;
use crate::sample::one_in;
use crate::sketch::bottom_k::{BottomK, bottom_k_jaccard, merge, rows};
use crate::sketch::hash::{derive, stream};

fn values(seed: u64, size: u16, hashes: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let sketch = BottomK::new(seed, size);
    let mut state = sketch.state();
    sketch.update(&mut state, hashes);
    sketch.values(&state)
}

/// Both sets by their definition, and their true similarity.
fn sets(size: usize, common: u64, each: u64) -> ([BTreeSet<u64>; 2], Vec<u64>) {
    let value = |hash: u64| mix64(hash ^ derive(9, stream::BOTTOM_K_KEY));
    let sets = pair(0, common, each).map(|set| set.map(value).collect::<BTreeSet<_>>());
    let union = sets[0].union(&sets[1]).take(size).copied().collect();
    (sets, union)
}

#[test]
fn bottom_k_follows_its_definition() {
    for size in [1_u16, 16, 100] {
        let least = usize::from(size);
        for (common, each) in [(0, 0), (0, 5), (5, 0), (7, 2), (30, 40), (900, 200)] {
            let (sets, union) = sets(least, common, each);
            let sketches = pair(0, common, each).map(|set| values(9, size, set));
            for (sketch, set) in sketches.iter().zip(&sets) {
                assert_eq!(*sketch, set.iter().take(least).copied().collect::<Vec<_>>());
            }
            let [a, b] = &sketches;
            assert_eq!(merge(a, b, least), union);
            let both = |value: &&u64| sets.iter().all(|set| set.contains(value));
            let expected = match union.len() {
                0 => 1.0,
                all => union.iter().filter(both).count() as f64 / all as f64,
            };
            assert_eq!(bottom_k_jaccard(a, b, least), expected);
            assert_eq!(bottom_k_jaccard(b, a, least), expected);
        }
    }
}

#[test]
fn bottom_k_ignores_order_repeats_and_update_boundaries() {
    let sketch = BottomK::new(2, 32);
    let expected = values(2, 32, 0..5_000);
    let repeated = (0..5_000).rev().flat_map(|feature| [feature; 3]);
    assert_eq!(values(2, 32, repeated.chain(0..5_000)), expected);
    let mut state = sketch.state();
    (0..5_000).for_each(|feature| sketch.update(&mut state, [feature, feature / 2]));
    assert_eq!(sketch.values(&state), expected);
}

#[test]
fn bottom_k_memory_is_bounded() {
    let sketch = BottomK::new(2, 32);
    let mut state = sketch.state();
    let before = std::mem::size_of_val(&state);
    for piece in 0..200_u64 {
        sketch.update(&mut state, (0..1_000).map(|feature| feature * (piece % 7)));
    }
    let held = format!("{state:?}").matches(", ").count();
    assert!(held <= 64, "{held} values are held, {before}");
}

/// P = J (1 - q) + q for small sets, within q of J for large ones, q = (15 / 16)^min(k, N). Under a quarter of the seeds,
/// under all of them with `RESEMBLANCE_TESTS=all`; the bound follows from their number.
#[test]
fn bottom_k_rows_agree_with_the_stated_probability() {
    let (count, size, seeds) = (16, 128_u16, 4_000 / one_in(4) as u64);
    for (common, each) in [(1, 1), (8, 4), (30, 5), (60, 60), (400, 100), (3_000, 200)] {
        let union = common + 2 * each;
        let j = common as f64 / union as f64;
        let none = (1.0 - 1.0 / 16.0_f64).powf(union.min(u64::from(size)) as f64);
        let mut agree = 0;
        for seed in 0..seeds {
            let [a, b] = pair(0, common, each).map(|set| rows(&values(seed, size, set), count));
            agree += estimate_equal(&a, &b);
        }
        let tried = (seeds as usize * count) as f64;
        let share = agree as f64 / tried;
        // Rows of a pair are related where many are empty: counted as if all 16 were one.
        let error = SCORE * (0.25 / tried * if none > 0.01 { 16.0 } else { 1.0 }).sqrt();
        let least = j * (1.0 - none);
        let least = if union < u64::from(size) {
            least + none
        } else {
            least
        };
        let most = j * (1.0 - none) + none;
        assert!(
            share > least - error && share < most + error,
            "{share}: {least} to {most}"
        );
    }
}

/// Rows must be independent of each other: a band of r agrees with probability J^r.
#[test]
fn bottom_k_bands_agree_as_independent_rows_do() {
    let (common, each, seeds) = (800, 100, 3_000_u64);
    let j: f64 = 0.8;
    let mut agree = 0;
    for seed in 0..seeds {
        let [a, b] = pair(0, common, each).map(|set| rows(&values(seed, 128, set), 16));
        agree += a.chunks(4).zip(b.chunks(4)).filter(|(a, b)| a == b).count();
    }
    let tried = (seeds * 4) as f64;
    // Values are drawn without replacement, which changes J^4 by less than 6 / (1000 × 0.8).
    let expected = j.powi(4);
    let error = SCORE * (expected * (1.0 - expected) / tried).sqrt() + 0.0075 * expected;
    assert!(
        (agree as f64 / tried - expected).abs() < error,
        "{agree} of {tried}"
    );
}
