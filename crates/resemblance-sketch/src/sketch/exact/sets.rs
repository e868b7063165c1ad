//! Sets of features, with and without weights.

use std::cmp::Ordering;

use super::shared::shared_from;
use crate::error::{Result, SketchError};
use crate::sketch::simhash::add_up_equal;

/// A set of distinct features of any ordered type: strings, hashes, numbers.
///
/// ```
/// use resemblance_sketch::exact::{FeatureSet, containment, jaccard};
///
/// let words = |text: &'static str| text.split(' ').collect::<FeatureSet<&str>>();
/// let (a, b) = (words("to be or not to be"), words("not to be"));
/// assert_eq!(a.as_slice(), ["be", "not", "or", "to"]);
/// assert_eq!((a.len(), b.len(), a.shared(&b)), (4, 3, 3));
/// assert_eq!((jaccard(&a, &b), containment(&a, &b)), (3.0 / 4.0, 3.0 / 4.0));
/// assert!(FeatureSet::<&str>::default().is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureSet<T>(Vec<T>);

impl<T: Ord> FromIterator<T> for FeatureSet<T> {
    /// Repeats count once.
    fn from_iter<I: IntoIterator<Item = T>>(features: I) -> Self {
        let mut features: Vec<T> = features.into_iter().collect();
        features.sort_unstable();
        features.dedup();
        Self(features)
    }
}

impl<T: Ord> FeatureSet<T> {
    /// The features in ascending order.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }

    /// The number of features.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no features.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of features that are in both sets.
    #[must_use]
    pub fn shared(&self, other: &Self) -> usize {
        shared(&self.0, &other.0)
    }
}

fn shared<T: Ord>(a: &[T], b: &[T]) -> usize {
    let both = |(a, b): (Option<&T>, Option<&T>)| a.is_some() && b.is_some();
    merge(a, b, T::cmp).filter(|&pair| both(pair)).count()
}

/// Returns the Jaccard similarity |A ∩ B| / |A ∪ B|, 0 to 1. Two empty sets have similarity 1.
///
/// ```
/// use resemblance_sketch::exact::{FeatureSet, jaccard};
/// let a = FeatureSet::from_iter([1, 2, 3, 3]);
/// let b = FeatureSet::from_iter([2, 3, 4]);
/// assert_eq!(jaccard(&a, &b), 0.5);
/// ```
#[must_use]
pub fn jaccard<T: Ord>(a: &FeatureSet<T>, b: &FeatureSet<T>) -> f64 {
    jaccard_of_sorted(&a.0, &b.0)
}

/// Returns the [`jaccard`] similarity of two slices that are ascending and without repeats, such as
/// those that [`Sketcher::feature_hashes`](crate::Sketcher::feature_hashes) returns. For other
/// slices the result is meaningless.
///
/// ```
/// use resemblance_sketch::exact::jaccard_of_sorted;
/// assert_eq!(jaccard_of_sorted(&[1, 2, 3], &[2, 3, 4]), 0.5);
/// ```
#[must_use]
pub fn jaccard_of_sorted<T: Ord>(a: &[T], b: &[T]) -> f64 {
    let shared = shared(a, b);
    ratio(shared as f64, (a.len() + b.len() - shared) as f64)
}

/// The maximum amount by which rounding lowers a bound on a number of features.
const ROUNDING: f64 = 1e-6;

/// Like [`jaccard_of_sorted`], but stops early when the similarity is certain to be below `floor`.
/// It then returns some number below `floor`.
pub fn jaccard_from(floor: f64, a: &[u64], b: &[u64]) -> f64 {
    let total = a.len() + b.len();
    // |A ∩ B| / |A ∪ B| ≥ f exactly if |A ∩ B| ≥ f / (1 + f) (|A| + |B|).
    let needed = (floor / (1.0 + floor) * total as f64 - ROUNDING).ceil() as usize;
    let shared = shared_from(needed, a, b);
    ratio(shared as f64, (total - shared) as f64)
}

/// Returns the share of `a` that is in `b`: |A ∩ B| / |A|, 0 to 1. It is 1 if `a` is empty.
///
/// ```
/// use resemblance_sketch::exact::{FeatureSet, containment};
/// let part = FeatureSet::from_iter(["x", "y"]);
/// let all = FeatureSet::from_iter(["w", "x", "y", "z"]);
/// assert_eq!((containment(&part, &all), containment(&all, &part)), (1.0, 0.5));
/// ```
#[must_use]
pub fn containment<T: Ord>(a: &FeatureSet<T>, b: &FeatureSet<T>) -> f64 {
    ratio(a.shared(b) as f64, a.len() as f64)
}

/// Returns the Dice coefficient 2 |A ∩ B| / (|A| + |B|), 0 to 1. It equals 2 J / (1 + J) for the
/// Jaccard similarity J. Two empty sets have coefficient 1.
///
/// ```
/// use resemblance_sketch::exact::{FeatureSet, dice};
/// let a = FeatureSet::from_iter([1, 2, 3]);
/// let b = FeatureSet::from_iter([2, 3, 4, 5, 6]);
/// assert_eq!(dice(&a, &b), 4.0 / 8.0);
/// ```
#[must_use]
pub fn dice<T: Ord>(a: &FeatureSet<T>, b: &FeatureSet<T>) -> f64 {
    ratio(2.0 * a.shared(b) as f64, (a.len() + b.len()) as f64)
}

/// Returns the overlap coefficient |A ∩ B| / min(|A|, |B|), 0 to 1. It is 1 if one set contains the
/// other. Two empty sets have coefficient 1, an empty one and a nonempty one 0.
///
/// ```
/// use resemblance_sketch::exact::{FeatureSet, overlap};
/// let a = FeatureSet::from_iter([1, 2]);
/// let b = FeatureSet::from_iter([2, 3, 4, 5]);
/// assert_eq!(overlap(&a, &b), 1.0 / 2.0);
/// ```
#[must_use]
pub fn overlap<T: Ord>(a: &FeatureSet<T>, b: &FeatureSet<T>) -> f64 {
    share_of(a.shared(b) as f64, a.len().min(b.len()) as f64, a == b)
}

/// Returns the cosine similarity |A ∩ B| / √(|A| |B|), 0 to 1. Two empty sets have similarity 1, an
/// empty one and a nonempty one 0.
///
/// ```
/// use resemblance_sketch::exact::{FeatureSet, cosine};
/// let a = FeatureSet::from_iter([1, 2]);
/// let b = FeatureSet::from_iter([2, 3, 4, 5, 6, 7, 8, 9]);
/// assert_eq!(cosine(&a, &b), 1.0 / 4.0);
/// ```
#[must_use]
pub fn cosine<T: Ord>(a: &FeatureSet<T>, b: &FeatureSet<T>) -> f64 {
    let length = (a.len() as f64 * b.len() as f64).sqrt();
    share_of(a.shared(b) as f64, length, a == b)
}

/// A set of distinct features with weights.
///
/// ```
/// use resemblance_sketch::exact::{WeightedSet, weighted_jaccard};
/// let a = WeightedSet::new([("x", 1.0), ("y", 2.0), ("x", 1.0)])?;
/// let b = WeightedSet::new([("x", 1.0), ("z", 1.0)])?;
/// assert_eq!(a.as_slice(), [("x", 2.0), ("y", 2.0)]);
/// assert_eq!(weighted_jaccard(&a, &b), 1.0 / 5.0);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WeightedSet<T>(Vec<(T, f64)>);

impl<T: Ord> WeightedSet<T> {
    /// Creates the set from features and weights. The weights of a repeated feature add up. A
    /// feature of weight 0 is left out.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if a weight is negative or not finite.
    pub fn new(features: impl IntoIterator<Item = (T, f64)>) -> Result<Self> {
        let mut distinct = Vec::new();
        for (feature, weight) in features {
            let expected = "a finite number, at least 0";
            let is_valid = (0.0..f64::INFINITY).contains(&weight);
            SketchError::require(is_valid, "weight", weight, expected)?;
            if weight > 0.0 {
                distinct.push((feature, weight));
            }
        }
        // Repeated features are sorted by weight, so that sums of floats do not depend on the order
        // of the input.
        distinct.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        add_up_equal(&mut distinct);
        Ok(Self(distinct))
    }

    /// The features with their weights, ascending by feature.
    #[must_use]
    pub fn as_slice(&self) -> &[(T, f64)] {
        &self.0
    }
}

/// Returns the weighted Jaccard similarity Σ min(a, b) / Σ max(a, b) over all features, 0 to 1.
/// Sums are `f64`. Two empty sets have similarity 1.
///
/// ```
/// use resemblance_sketch::exact::{WeightedSet, weighted_jaccard};
/// let a = WeightedSet::new([(7_u64, 3.0), (8, 1.0)])?;
/// let b = WeightedSet::new([(7_u64, 1.0), (9, 1.0)])?;
/// assert_eq!(weighted_jaccard(&a, &b), 1.0 / (3.0 + 1.0 + 1.0));
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[must_use]
pub fn weighted_jaccard<T: Ord>(a: &WeightedSet<T>, b: &WeightedSet<T>) -> f64 {
    let (mut sum_of_minima, mut sum_of_maxima) = (0.0, 0.0);
    for (a, b) in weights_of(a, b) {
        sum_of_minima += a.min(b);
        sum_of_maxima += a.max(b);
    }
    ratio(sum_of_minima, sum_of_maxima)
}

/// Returns the cosine similarity of two weight vectors, Σ a b / √(Σ a² Σ b²), 0 to 1. Sums are
/// `f64`. With tf-idf weights it is the usual similarity of texts. SimHash estimates the
/// corresponding [`angle`](crate::exact::angle). Two empty sets have similarity 1, an empty one and
/// a nonempty one 0.
///
/// ```
/// use resemblance_sketch::exact::{WeightedSet, weighted_cosine};
/// let a = WeightedSet::new([("x", 3.0), ("y", 4.0)])?;
/// let b = WeightedSet::new([("x", 6.0), ("z", 8.0)])?;
/// assert_eq!(weighted_cosine(&a, &b), 18.0 / (5.0 * 10.0));
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[must_use]
pub fn weighted_cosine<T: Ord>(a: &WeightedSet<T>, b: &WeightedSet<T>) -> f64 {
    let squares = |set: &WeightedSet<T>| set.0.iter().map(|(_, w)| w * w).sum::<f64>();
    // A feature that is in only one set adds 0.
    let products = weights_of(a, b).map(|(a, b)| a * b);
    let length = squares(a).sqrt() * squares(b).sqrt();
    let cosine = share_of(products.sum(), length, a == b);
    // Rounding may raise the result for parallel vectors slightly above 1.
    cosine.min(1.0)
}

/// Returns the probability Jaccard similarity, 0 to 1, of the distributions that are proportional
/// to the weights (Moulton and Jiang 2018). It is the sum, over all features i that both sets have,
/// of 1 / Σ max(aⱼ / aᵢ, bⱼ / bᵢ), where j runs over all features.
/// [`MinHash::probability`](crate::MinHash::probability) estimates it. The computation takes O(n
/// log n) steps for n features; sums are `f64`. Two empty sets have similarity 1, an empty one and
/// a nonempty one 0.
///
/// ```
/// use resemblance_sketch::exact::{WeightedSet, probability_jaccard};
/// let a = WeightedSet::new([("x", 1.0), ("y", 1.0)])?;
/// let b = WeightedSet::new([("x", 20.0), ("y", 20.0)])?;
/// let c = WeightedSet::new([("x", 1.0), ("z", 1.0)])?;
/// assert_eq!(probability_jaccard(&a, &b), 1.0);
/// assert_eq!(probability_jaccard(&a, &c), 1.0 / 3.0);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[must_use]
pub fn probability_jaccard<T: Ord>(a: &WeightedSet<T>, b: &WeightedSet<T>) -> f64 {
    if a.0.is_empty() || b.0.is_empty() {
        return f64::from(u8::from(a.0.is_empty() && b.0.is_empty()));
    }
    let mut weights: Vec<(f64, f64)> = weights_of(a, b).collect();
    // Where the ratio a / b of j is at least that of i, aⱼ / aᵢ is the greater one. At least one of
    // a and b is positive, so the ratio is a number or infinite.
    let ratio = |weight: &(f64, f64)| weight.0 / weight.1;
    weights.sort_by(|x, y| ratio(x).total_cmp(&ratio(y)));
    // The sums below would round the similarity of proportional weights, which is 1.
    if weights.first().map(ratio) == weights.last().map(ratio) {
        return 1.0;
    }
    // For each feature, the sum of its a and of all later ones. Adding from the end avoids
    // subtraction.
    let mut sum = 0.0;
    let add = |&(a, _): &(f64, f64)| {
        sum += a;
        sum
    };
    let mut sums_of_a: Vec<f64> = weights.iter().rev().map(add).collect();
    sums_of_a.reverse();
    let (mut sum_of_b, mut similarity) = (0.0, 0.0);
    for ((a, b), sum_of_a) in weights.into_iter().zip(sums_of_a) {
        if a > 0.0 && b > 0.0 {
            similarity += 1.0 / (sum_of_a / a + sum_of_b / b);
        }
        sum_of_b += b;
    }
    similarity.min(1.0)
}

/// Returns the weights of each feature in both sets, ascending by feature; 0 where a set does not
/// have it.
fn weights_of<'a, T: Ord>(
    a: &'a WeightedSet<T>,
    b: &'a WeightedSet<T>,
) -> impl Iterator<Item = (f64, f64)> + 'a {
    let weight = |feature: Option<&(T, f64)>| feature.map_or(0.0, |&(_, weight)| weight);
    let pairs = merge(&a.0, &b.0, |a, b| a.0.cmp(&b.0));
    pairs.map(move |(a, b)| (weight(a), weight(b)))
}

/// Returns `part / whole`. If `whole` is 0, a set is empty, and the result is 1 for equal sets,
/// else 0.
fn share_of(part: f64, whole: f64, are_equal: bool) -> f64 {
    match whole > 0.0 {
        true => part / whole,
        false => f64::from(u8::from(are_equal)),
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

/// Merges two ascending slices. Pairs each item with the equal item of the other slice, if there is
/// one.
fn merge<'a, T>(
    mut a: &'a [T],
    mut b: &'a [T],
    compare: impl Fn(&T, &T) -> Ordering,
) -> impl Iterator<Item = (Option<&'a T>, Option<&'a T>)> {
    std::iter::from_fn(move || {
        let order = match (a.first(), b.first()) {
            (None, None) => return None,
            (Some(a), Some(b)) => compare(a, b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
        };
        let left = order.is_le().then(|| a.split_off_first()).flatten();
        let right = order.is_ge().then(|| b.split_off_first()).flatten();
        Some((left, right))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Random;

    #[test]
    fn similarity_with_a_floor_is_exact_or_below_it() {
        let mut random = Random(1);
        for round in 0..400 {
            let range = 1 + random.below(300);
            let mut set = |size| {
                let set: std::collections::BTreeSet<u64> =
                    (0..size).map(|_| random.below(range)).collect();
                set.into_iter().collect::<Vec<_>>()
            };
            let (a, b) = (set(round % 90), set(3 * round % 200));
            let exact = jaccard_of_sorted(&a, &b);
            for floor in [0.0, 0.2, exact, 0.5, 0.8, 1.0] {
                let found = jaccard_from(floor, &a, &b);
                assert!(
                    found == exact || exact < floor && found < floor,
                    "{found} for {exact}, floor {floor}"
                );
            }
        }
    }
}
