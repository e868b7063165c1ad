//! How many pairs a join is expected to have missed, from the pairs that it found.

use std::collections::HashMap;

use crate::clusters::DisjointSets;
use resemblance_sketch::schema::MinHashSchema;

/// The half width of an interval of 95 %, in standard deviations.
const DEVIATIONS: f64 = 1.96;

/// A sum for each family of documents, which are connected by pairs. Pairs of a family are found or
/// missed together, so their deviations add up.
#[derive(Clone, Debug, Default)]
pub struct FamilySums {
    families: DisjointSets,
    /// The later document of each pair with the value of the pair. By document and not by family, because the root of
    /// a family changes whenever two families join.
    values: Vec<(u64, f64)>,
    /// The values before this place are sums, one for each document, ascending.
    summed: usize,
}

/// Minimum number of values to add up at a time.
const MIN_VALUES: usize = if cfg!(test) { 8 } else { 1 << 16 };

/// Adds up the values of each document, in the order in which they were added, and returns the sums by document.
fn sum_by_document(mut values: Vec<(u64, f64)>) -> Vec<(u64, f64)> {
    values.sort_by_key(|(document, _)| *document);
    values.dedup_by(|later, sum| {
        let is_same = later.0 == sum.0;
        if is_same {
            sum.1 += later.1;
        }
        is_same
    });
    values
}

impl FamilySums {
    /// Adds to the sum of the family that the pair connects.
    pub fn add(&mut self, a: u64, b: u64, value: f64) {
        self.families.join(a, b);
        self.values.push((b, value));
        // Memory is in proportion to the documents, not to the pairs.
        if self.values.len() >= 2 * self.summed + MIN_VALUES {
            self.values = sum_by_document(std::mem::take(&mut self.values));
            self.summed = self.values.len();
        }
    }

    /// Returns the sum of each family.
    pub fn totals(&self) -> Vec<f64> {
        let mut families = self.families.clone();
        let sums = sum_by_document(self.values.clone()).into_iter();
        let by_family = sums.map(|(document, sum)| (families.root(document), sum));
        let totals = sum_by_document(by_family.collect()).into_iter();
        totals.map(|(_, total)| total).collect()
    }

    /// Returns the greatest standard deviation of the sum of variables with these standard
    /// deviations, if those of different families are independent.
    pub fn deviation(&self) -> f64 {
        let totals = self.totals();
        totals.iter().map(|total| total * total).sum::<f64>().sqrt()
    }
}

/// The number of pairs that share no band, estimated from those that share one (Horvitz and
/// Thompson 1952): a pair that is found with probability P stands for 1 / P pairs, of which (1 − P) /
/// P were missed. The variance of the estimate's error is the sum of (1 − P) / P over all pairs if
/// these are independent. Deviations add up within a family, so the square of the family's sum of
/// √((1 − P) / P) bounds its variance; each found pair again stands for 1 / P.
#[derive(Clone, Debug)]
pub struct MissedPairs {
    minhash: MinHashSchema,
    bound: f64,
    is_exact: bool,
    expected: f64,
    deviations: FamilySums,
    /// The probabilities that estimates were missed, by the bits of the estimate.
    by_estimate: HashMap<u64, f64>,
}

impl MissedPairs {
    /// Begins without pairs, for those whose similarity is at least `bound`. `is_exact` means that
    /// similarities are exact. Otherwise they are estimates, and the missed pairs are those with
    /// such estimates.
    pub fn new(minhash: MinHashSchema, bound: f64, is_exact: bool) -> Self {
        Self {
            minhash,
            bound,
            is_exact,
            expected: 0.0,
            deviations: FamilySums::default(),
            by_estimate: HashMap::new(),
        }
    }

    /// Adds a pair that was found. A less similar one, which only its distance is near, has no part
    /// in the estimate.
    pub fn add(&mut self, a: u64, b: u64, similarity: f64) {
        if similarity < self.bound {
            return;
        }
        let minhash = self.minhash;
        let by_similarity = || 1.0 - minhash.probability(similarity);
        let missed = match self.is_exact {
            true => by_similarity(),
            // An estimate has one of few values, and an integral is behind each.
            false => *self
                .by_estimate
                .entry(similarity.to_bits())
                .or_insert_with(|| {
                    let missed = minhash
                        .layout()
                        .missed_estimate(minhash.banding(), similarity);
                    missed.unwrap_or_else(by_similarity)
                }),
        };
        let found = 1.0 - missed;
        if missed > 0.0 && found > 0.0 {
            self.expected += missed / found;
            // The pair stands for 1 / found pairs, each with this deviation.
            let deviation = (missed / found).sqrt() / found;
            self.deviations.add(a.min(b), a.max(b), deviation);
        }
    }

    /// Returns the expected number of missed pairs.
    pub fn expected(&self) -> f64 {
        self.expected
    }

    /// Returns the interval that holds the number of missed pairs with a probability of about 95 %.
    pub fn interval(&self) -> (f64, f64) {
        let half = DEVIATIONS * self.deviations.deviation();
        ((self.expected - half).max(0.0), self.expected + half)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn family_sums_are_those_of_connected_documents() {
        let (mut sums, mut pairs) = (FamilySums::default(), Vec::new());
        for number in 0..500_u64 {
            // Ten chains of documents, each pair several times and in no order.
            let (family, link) = (number % 10, number * 7 % 13);
            let a = family * 100 + link;
            sums.add(a, a + 1, number as f64);
            pairs.push((family, number as f64));
            assert!(sums.values.len() <= 2 * 130 + MIN_VALUES);
        }
        let mut expected = BTreeMap::new();
        for (family, value) in pairs {
            *expected.entry(family).or_insert(0.0) += value;
        }
        assert_eq!(sums.totals(), expected.into_values().collect::<Vec<f64>>());
    }
}
