//! A sample of decisions for a person to judge.

use std::collections::BTreeMap;

use resemblance::schema::feature_hash;

/// A sample of the decisions near a bound: pairs of which one document was dropped, and pairs that
/// were kept apart. Judged by a person, it shows whether the bound is where it should be.
///
/// The numbers of the documents and the seed select the pairs, whatever the order in which they are
/// added.
///
/// ```
/// use resemblance_corpus::dedup::ReviewSample;
///
/// let mut sample = ReviewSample::new(0.8, 0.045, 6, 0);
/// for number in 0..100_u32 {
///     let similarity = f64::from(number) / 100.0;
///     sample.add(similarity >= 0.8, similarity, [number.into(), 100], || number);
/// }
/// let [dropped, kept_apart] = sample.finish();
/// assert_eq!((dropped.pairs, kept_apart.pairs), (5, 4)); // 80 to 84, and 76 to 79
/// assert_eq!((dropped.chosen().count(), kept_apart.chosen().count()), (3, 3));
/// assert!(dropped.chosen().all(|number| (80..=84).contains(number)));
/// ```
#[derive(Debug)]
pub struct ReviewSample<T> {
    bound: f64,
    within: f64,
    seed: u64,
    dropped: ReviewSide<T>,
    kept_apart: ReviewSide<T>,
}

/// The pairs on one side of a bound: see [`ReviewSample`].
#[derive(Debug)]
pub struct ReviewSide<T> {
    /// The number of pairs that are near the bound.
    pub pairs: u64,
    size: usize,
    /// The pairs with the least hashes, by these and the numbers of their documents.
    chosen: BTreeMap<[u64; 3], T>,
}

impl<T> ReviewSample<T> {
    /// Begins a sample of at most `size` pairs, half of them dropped and half kept apart, whose
    /// value is less than `within` away from the bound. An odd pair is a dropped one.
    #[must_use]
    pub fn new(bound: f64, within: f64, size: usize, seed: u64) -> Self {
        let side = |size| ReviewSide {
            pairs: 0,
            size,
            chosen: BTreeMap::new(),
        };
        Self {
            bound,
            within,
            seed,
            dropped: side(size.div_ceil(2)),
            kept_apart: side(size / 2),
        }
    }

    /// Adds a pair, given the value that was compared with the bound (a similarity, or the share of
    /// features that would be lost) and the numbers of its documents, which must differ from those
    /// of other pairs. `describe` is called only if the pair is chosen so far.
    pub fn add(
        &mut self,
        is_dropped: bool,
        value: f64,
        numbers: [u64; 2],
        describe: impl FnOnce() -> T,
    ) {
        let is_near = (value - self.bound).abs() < self.within;
        if !is_near {
            return;
        }
        let [document, other] = numbers;
        let bytes = [self.seed, document, other].map(u64::to_le_bytes);
        let place = [feature_hash(bytes.as_flattened()), document, other];
        let side = match is_dropped {
            true => &mut self.dropped,
            false => &mut self.kept_apart,
        };
        side.pairs += 1;
        let is_less = side.chosen.last_key_value().is_some_and(|it| place < *it.0);
        if is_less || side.chosen.len() < side.size {
            side.chosen.insert(place, describe());
        }
        if side.chosen.len() > side.size {
            side.chosen.pop_last();
        }
    }

    /// Returns the pairs that were dropped, and those that were kept apart.
    #[must_use]
    pub fn finish(self) -> [ReviewSide<T>; 2] {
        [self.dropped, self.kept_apart]
    }
}

impl<T> ReviewSide<T> {
    /// Returns the chosen pairs in a random order.
    pub fn chosen(&self) -> impl Iterator<Item = &T> {
        self.chosen.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Random;

    /// Returns the numbers of the pairs that are chosen on each side, and the number of pairs there.
    fn sample(
        pairs: &[(bool, f64, [u64; 2])],
        size: usize,
        seed: u64,
    ) -> [(u64, Vec<[u64; 2]>); 2] {
        let mut sample = ReviewSample::new(0.8, 0.1, size, seed);
        for &(is_dropped, value, numbers) in pairs {
            sample.add(is_dropped, value, numbers, || numbers);
        }
        let sides = sample.finish();
        sides.map(|side| (side.pairs, side.chosen().copied().collect()))
    }

    fn pairs() -> Vec<(bool, f64, [u64; 2])> {
        let mut random = Random(4);
        let pairs = (0..1_000).map(|number| {
            let value = random.below(1_000) as f64 / 1_000.0;
            (value >= 0.8, value, [number, random.below(number + 1)])
        });
        pairs.collect()
    }

    #[test]
    fn review_samples_are_of_the_pairs_near_the_bound() {
        let pairs = pairs();
        let near = |wanted: bool| {
            let pairs = pairs.iter().filter(move |(is_dropped, value, _)| {
                *is_dropped == wanted && (value - 0.8).abs() < 0.1
            });
            Vec::from_iter(pairs.map(|(_, _, numbers)| *numbers))
        };
        for size in [0, 1, 2, 7, 20, 5_000] {
            let sides = sample(&pairs, size, 3);
            let expected = [(near(true), size.div_ceil(2)), (near(false), size / 2)];
            for ((count, mut chosen), (all, most)) in sides.into_iter().zip(expected) {
                assert_eq!(count, all.len() as u64);
                assert_eq!(chosen.len(), most.min(all.len()));
                chosen.sort_unstable();
                chosen.dedup();
                assert_eq!(chosen.len(), most.min(all.len()));
                assert!(chosen.iter().all(|it| all.contains(it)));
            }
        }
    }

    #[test]
    fn review_samples_depend_on_the_seed_and_not_on_the_order() {
        let mut pairs = pairs();
        let chosen = sample(&pairs, 20, 3);
        let mut random = Random(5);
        for _ in 0..20 {
            for last in (1..pairs.len()).rev() {
                pairs.swap(last, random.index(last + 1));
            }
            assert_eq!(sample(&pairs, 20, 3), chosen);
        }
        assert_ne!(sample(&pairs, 20, 4), chosen);
    }

    #[test]
    fn every_pair_near_the_bound_is_chosen_equally_often() {
        let pairs: Vec<_> = (0..40).map(|number| (true, 0.85, [number, 99])).collect();
        let mut counts = [0_u32; 40];
        for seed in 0..4_000 {
            for [number, _] in &sample(&pairs, 20, seed)[0].1 {
                counts[*number as usize] += 1;
            }
        }
        // Ten of forty: a thousand times each, with a standard deviation of 27.
        assert!(
            counts.iter().all(|count| (865..1_135).contains(count)),
            "{counts:?}"
        );
    }
}
