//! Counts the pairs that a store returns against exact similarities.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use resemblance::invariant::{at_mut, bug};
use resemblance::schema::{MinHashSchema, TableDesign};
use resemblance::{Family, Result};
use resemblance_corpus::verification::Partner;

/// Steps of similarity: tenths, and 1 for itself.
pub(super) const STEPS: usize = 11;

/// Steps of similarity: hundredths, and 1 for itself.
const HUNDREDTHS: usize = 101;

/// Returns the step of a similarity, 0 to 10.
pub(super) fn step_of(similarity: f64) -> usize {
    ((similarity.clamp(0.0, 1.0) * 10.0) as usize).min(STEPS - 1)
}

/// Returns the range of similarities of a step, by its index: `0.7-0.8` for 7, and `1` for 10.
///
/// ```
/// assert_eq!(resemblance_eval::step_name(7), "0.7-0.8");
/// ```
#[must_use]
pub fn step_name(step: usize) -> String {
    if step + 1 >= STEPS {
        return "1".into();
    }
    let from = step as f64 / 10.0;
    format!("{from:.1}-{:.1}", from + 0.1)
}

/// The errors of some estimates.
///
/// ```
/// # use resemblance_eval::{Evaluation, Sampler};
/// # use resemblance::{Document, Error, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?)?;
/// # let (mut sampler, sketcher) = (Sampler::new(), store.sketcher());
/// # for (number, text) in ["a b c d e f g h i", "b c d e f g h i j", "x y z"].iter().enumerate() {
/// #     let (features, signature) = (sketcher.feature_hashes(text)?, sketcher.text(text)?);
/// #     sampler.add(number as u64, text.as_bytes().into(), features, signature)?;
/// # }
/// # let sample = sampler.finish(3);
/// # for signature in &sample.signatures {
/// #     store.insert(Document::without_key(), signature)?;
/// # }
/// # let mut evaluation = Evaluation::new(&store.snapshot()?, sample, 10)?;
/// # evaluation.run(0.1, |_| Ok::<_, Error>(()))?;
/// # let minhash = evaluation.minhash.unwrap();
/// let errors = &minhash.near.errors;
/// assert_eq!(errors.count, minhash.near.candidates);
/// println!("{:?} ± {:?}, of {:?} by theory", errors.mean(), errors.deviation(), errors.theory());
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct EstimateErrors {
    /// Number of estimates.
    pub count: u64,
    sum: f64,
    squares: f64,
    variances: f64,
}

impl EstimateErrors {
    /// Counts the error of an estimate, whose variance is this in theory.
    ///
    /// ```
    /// use resemblance_eval::EstimateErrors;
    /// let mut errors = EstimateErrors::default();
    /// for error in [0.5, -0.25] {
    ///     errors.add(error, 0.25);
    /// }
    /// assert_eq!((errors.count, errors.mean(), errors.theory()), (2, Some(0.125), Some(0.5)));
    /// ```
    pub fn add(&mut self, error: f64, variance: f64) {
        self.count += 1;
        self.sum += error;
        self.squares += error * error;
        self.variances += variance;
    }

    fn mean_of(&self, sum: f64) -> Option<f64> {
        (self.count > 0).then(|| sum / self.count as f64)
    }

    /// Returns the mean error, 0 for an unbiased estimate; `None` without estimates.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        self.mean_of(self.sum)
    }

    /// Returns the root of the mean squared error; `None` without estimates.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        self.mean_of(self.squares).map(f64::sqrt)
    }

    /// Returns the theoretical value of [`deviation`](Self::deviation); `None` without estimates.
    #[must_use]
    pub fn theory(&self) -> Option<f64> {
        self.mean_of(self.variances).map(f64::sqrt)
    }
}

/// The pairs of one step of exact similarity.
///
/// ```
/// # use resemblance_eval::{Evaluation, Sampler};
/// # use resemblance::{Document, Error, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?)?;
/// # let (mut sampler, sketcher) = (Sampler::new(), store.sketcher());
/// # for (number, text) in ["a b c d e f g h i", "b c d e f g h i j", "x y z"].iter().enumerate() {
/// #     let (features, signature) = (sketcher.feature_hashes(text)?, sketcher.text(text)?);
/// #     sampler.add(number as u64, text.as_bytes().into(), features, signature)?;
/// # }
/// # let sample = sampler.finish(3);
/// # for signature in &sample.signatures {
/// #     store.insert(Document::without_key(), signature)?;
/// # }
/// # let mut evaluation = Evaluation::new(&store.snapshot()?, sample, 10)?;
/// # evaluation.run(0.1, |_| Ok::<_, Error>(()))?;
/// # let minhash = evaluation.minhash.unwrap();
/// let step = minhash.steps[8]; // from 0.8 to 0.9
/// assert_eq!((step.pairs, step.mean_similarity()), (1, Some(0.8)));
/// println!("a recall of {:?}", step.share(step.returned as f64));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SimilarityStep {
    /// Number of pairs.
    pub pairs: u64,
    /// The sum of their similarities.
    pub similarities: f64,
    /// The sum of their probabilities of being found.
    pub expected: f64,
    /// Number of those that share a band.
    pub candidates: u64,
    /// Number of those that the store returns.
    pub returned: u64,
    /// The errors of their estimates.
    pub errors: EstimateErrors,
}

impl SimilarityStep {
    /// Returns the mean of their exact similarities, from 0 to 1; `None` without any pair.
    #[must_use]
    pub fn mean_similarity(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.similarities / self.pairs as f64)
    }

    /// Returns a count as a share of the pairs; `None` without any pair.
    #[must_use]
    pub fn share(&self, count: f64) -> Option<f64> {
        (self.pairs > 0).then(|| count / self.pairs as f64)
    }
}

/// The pairs that were returned with an estimate of one step.
///
/// ```
/// # use resemblance_eval::{Evaluation, Sampler};
/// # use resemblance::{Document, Error, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?)?;
/// # let (mut sampler, sketcher) = (Sampler::new(), store.sketcher());
/// # for (number, text) in ["a b c d e f g h i", "b c d e f g h i j", "x y z"].iter().enumerate() {
/// #     let (features, signature) = (sketcher.feature_hashes(text)?, sketcher.text(text)?);
/// #     sampler.add(number as u64, text.as_bytes().into(), features, signature)?;
/// # }
/// # let sample = sampler.finish(3);
/// # for signature in &sample.signatures {
/// #     store.insert(Document::without_key(), signature)?;
/// # }
/// # let mut evaluation = Evaluation::new(&store.snapshot()?, sample, 10)?;
/// # evaluation.run(0.1, |_| Ok::<_, Error>(()))?;
/// # let minhash = evaluation.minhash.unwrap();
/// let returned = minhash.all_returned();
/// assert!(returned.pairs == 0 || returned.precision() == Some(1.0));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ReturnedPairs {
    /// Number of pairs.
    pub pairs: u64,
    /// Number of those whose exact similarity reaches the threshold.
    pub right: u64,
}

impl ReturnedPairs {
    fn plus(self, other: &Self) -> Self {
        Self {
            pairs: self.pairs + other.pairs,
            right: self.right + other.right,
        }
    }

    /// Returns the share of them that is right, from 0 to 1; `None` without any pair.
    #[must_use]
    pub fn precision(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.right as f64 / self.pairs as f64)
    }
}

/// A pair at the threshold or above that was not returned.
///
/// ```
/// # use resemblance_eval::{Evaluation, Sampler};
/// # use resemblance::{Document, Error, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?)?;
/// # let (mut sampler, sketcher) = (Sampler::new(), store.sketcher());
/// # for (number, text) in ["a b c d e f g h i", "b c d e f g h i j", "x y z"].iter().enumerate() {
/// #     let (features, signature) = (sketcher.feature_hashes(text)?, sketcher.text(text)?);
/// #     sampler.add(number as u64, text.as_bytes().into(), features, signature)?;
/// # }
/// # let sample = sampler.finish(3);
/// # for signature in &sample.signatures {
/// #     store.insert(Document::without_key(), signature)?;
/// # }
/// # let mut evaluation = Evaluation::new(&store.snapshot()?, sample, 10)?;
/// # evaluation.run(0.1, |_| Ok::<_, Error>(()))?;
/// # let minhash = evaluation.minhash.unwrap();
/// for pair in minhash.missed() {
///     assert!(pair.similarity >= 0.8);
///     println!("{} and {}: {}, estimated {}", pair.a, pair.b, pair.similarity, pair.estimate);
/// }
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct MissedPair {
    /// The earlier document, by its index in the sample.
    pub a: usize,
    /// The later one.
    pub b: usize,
    /// The exact similarity.
    pub similarity: f64,
    /// The estimate from the signatures.
    pub estimate: f64,
    /// True if they share a band, so that only the estimate was too low.
    pub is_candidate: bool,
}

/// The rank of a missed pair: similarities are not negative, so their bits sort as they do. The
/// most similar pair is first; then the two documents, the bits of the estimate, and whether it is
/// a candidate decide.
type MissedRank = (Reverse<u64>, usize, usize, u64, bool);

/// The pairs of a document with those before it, each list ascending by document.
pub(super) struct ComparedDocument<'a> {
    pub(super) document: usize,
    /// All pairs at the floor or above.
    pub(super) exact: &'a [Partner],
    /// The documents that share a band, with their estimates.
    pub(super) candidates: &'a [Partner],
    /// The returned documents, with their estimates.
    pub(super) returned: &'a [Partner],
}

/// Returns the partner with this document's index, if there is one.
fn find(partners: &[Partner], document: usize) -> Option<Partner> {
    let index = partners.binary_search_by_key(&document, |partner| partner.document);
    index.ok().and_then(|index| partners.get(index)).copied()
}

/// A pair at the floor or above, and how the store found it.
struct FoundPair {
    partner: Partner,
    estimate: f64,
    is_candidate: bool,
    is_returned: bool,
    is_near: bool,
}

/// Counts of the pairs that a store returned by similarity.
///
/// ```
/// # use resemblance_eval::{Evaluation, Sampler};
/// # use resemblance::{Document, Error, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?)?;
/// # let (mut sampler, sketcher) = (Sampler::new(), store.sketcher());
/// # for (number, text) in ["a b c d e f g h i", "b c d e f g h i j", "x y z"].iter().enumerate() {
/// #     let (features, signature) = (sketcher.feature_hashes(text)?, sketcher.text(text)?);
/// #     sampler.add(number as u64, text.as_bytes().into(), features, signature)?;
/// # }
/// # let sample = sampler.finish(3);
/// # for signature in &sample.signatures {
/// #     store.insert(Document::without_key(), signature)?;
/// # }
/// # let mut evaluation = Evaluation::new(&store.snapshot()?, sample, 10)?;
/// # evaluation.run(0.1, |_| Ok::<_, Error>(()))?;
/// # let minhash = evaluation.minhash.unwrap();
/// assert_eq!(minhash.near.pairs, 1); // one pair is at the threshold or above
/// assert_eq!(minhash.all_returned().pairs, minhash.near.returned);
/// assert!(minhash.returned_from(0).pairs >= minhash.returned_from(80).pairs);
/// for (step, pairs) in minhash.steps.iter().enumerate() {
///     println!("{}: {} pairs", resemblance_eval::step_name(step), pairs.pairs);
/// }
/// assert!(minhash.missed().all(|pair| pair.similarity >= 0.8));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct MinHashTally {
    /// The design by which the store compares.
    pub minhash: MinHashSchema,
    /// The pairs by exact similarity, in tenths; the last step is 1. See [`step_name`].
    pub steps: [SimilarityStep; STEPS],
    /// The pairs at the threshold or above, as one step.
    pub near: SimilarityStep,
    /// The returned pairs by estimate, in the same steps.
    pub returned: [ReturnedPairs; STEPS],
    /// Pairs that share a band.
    pub candidates: u64,
    /// Candidates below the floor.
    pub candidates_below: u64,
    max_missed: usize,
    missed: BTreeSet<MissedRank>,
    /// The candidates by estimate, in hundredths; the last step is 1.
    estimates: [ReturnedPairs; HUNDREDTHS],
}

impl MinHashTally {
    /// Keeps the `max_missed` most similar pairs that were not returned.
    pub(super) fn new(minhash: MinHashSchema, max_missed: usize) -> Self {
        Self {
            minhash,
            steps: [SimilarityStep::default(); STEPS],
            near: SimilarityStep::default(),
            returned: [ReturnedPairs::default(); STEPS],
            candidates: 0,
            candidates_below: 0,
            max_missed,
            missed: BTreeSet::new(),
            estimates: [ReturnedPairs::default(); HUNDREDTHS],
        }
    }

    /// Returns the pairs that would be returned if the bound on the estimate were `hundredths`, 0
    /// to 100: the candidates of the bands whose estimate is at least that. They are right if their
    /// exact similarity reaches the threshold.
    #[must_use]
    pub fn returned_from(&self, hundredths: usize) -> ReturnedPairs {
        let steps = self.estimates.iter().skip(hundredths);
        steps.fold(ReturnedPairs::default(), ReturnedPairs::plus)
    }

    /// Returns the counts of all returned pairs, whatever the estimate.
    #[must_use]
    pub fn all_returned(&self) -> ReturnedPairs {
        let steps = self.returned.iter();
        steps.fold(ReturnedPairs::default(), ReturnedPairs::plus)
    }

    /// Iterates over the most similar of the pairs that were not returned, up to the number that
    /// [`Evaluation::new`](crate::Evaluation::new) was asked to keep. There are `near.pairs -
    /// near.returned` of them in all.
    pub fn missed(&self) -> impl Iterator<Item = MissedPair> {
        self.missed.iter().map(
            |&(Reverse(similarity), a, b, estimate, is_candidate)| MissedPair {
                a,
                b,
                similarity: f64::from_bits(similarity),
                estimate: f64::from_bits(estimate),
                is_candidate,
            },
        )
    }

    /// Counts the pairs of a document, and names those missed. `estimate` gives that of the pair with
    /// another document.
    pub(super) fn add(
        &mut self,
        compared: &ComparedDocument<'_>,
        estimate: impl Fn(usize) -> Result<f64>,
    ) -> Result<()> {
        // Binary searches below would miss entries that are out of order.
        debug_assert!(compared.exact.is_sorted_by_key(|partner| partner.document));
        debug_assert!(
            compared
                .returned
                .is_sorted_by_key(|partner| partner.document)
        );
        debug_assert!(
            compared
                .candidates
                .is_sorted_by_key(|partner| partner.document)
        );
        let threshold = self.minhash.threshold();
        for partner in compared.exact {
            let similarity = partner.similarity;
            let estimate = estimate(partner.document)?;
            let is_candidate = find(compared.candidates, partner.document).is_some();
            let is_returned = find(compared.returned, partner.document).is_some();
            let is_near = similarity >= threshold;
            let found = FoundPair {
                partner: *partner,
                estimate,
                is_candidate,
                is_returned,
                is_near,
            };
            self.count(found)?;
            if is_near && !is_returned {
                self.missed.insert((
                    Reverse(similarity.to_bits()),
                    partner.document,
                    compared.document,
                    estimate.to_bits(),
                    is_candidate,
                ));
                if self.missed.len() > self.max_missed {
                    self.missed.pop_last();
                }
            }
        }
        for near in compared.returned {
            let exact = find(compared.exact, near.document);
            let step = at_mut(&mut self.returned, step_of(near.similarity))?;
            step.pairs += 1;
            step.right += u64::from(exact.is_some_and(|e| e.similarity >= threshold));
        }
        for candidate in compared.candidates {
            let exact = find(compared.exact, candidate.document);
            let hundredths = (candidate.similarity.clamp(0.0, 1.0) * 100.0) as usize;
            let step = at_mut(&mut self.estimates, hundredths)?;
            step.pairs += 1;
            step.right += u64::from(exact.is_some_and(|e| e.similarity >= threshold));
            self.candidates += 1;
            self.candidates_below += u64::from(exact.is_none());
        }
        Ok(())
    }

    fn count(&mut self, found: FoundPair) -> Result<()> {
        let similarity = found.partner.similarity;
        let variance = self.minhash.variance(similarity);
        let expected = self.minhash.probability(similarity);
        let step = at_mut(&mut self.steps, step_of(similarity))?;
        for step in [Some(step), found.is_near.then_some(&mut self.near)]
            .into_iter()
            .flatten()
        {
            step.pairs += 1;
            step.similarities += similarity;
            step.expected += expected;
            step.candidates += u64::from(found.is_candidate);
            step.returned += u64::from(found.is_returned);
            step.errors.add(found.estimate - similarity, variance);
        }
        Ok(())
    }
}

/// The pairs that a store returned by one family, by both or by any, against those whose exact similarity
/// reaches the threshold: the comparison of Henzinger (*Finding near-duplicate web pages*, SIGIR 2006).
///
/// ```
/// # use resemblance_eval::{Evaluation, Sampler};
/// # use resemblance::{Document, Error, MinHash, Schema, SimHash, Store, Text};
/// # let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).simhash(SimHash::bits64());
/// # let store = Store::in_memory(schema.build()?)?;
/// # let (mut sampler, sketcher) = (Sampler::new(), store.sketcher());
/// # for (number, text) in ["a b c", "c b a", "x y z"].iter().enumerate() {
/// #     let (features, signature) = (sketcher.feature_hashes(text)?, sketcher.text(text)?);
/// #     sampler.add(number as u64, text.as_bytes().into(), features, signature)?;
/// # }
/// # let sample = sampler.finish(3);
/// # for signature in &sample.signatures {
/// #     store.insert(Document::without_key(), signature)?;
/// # }
/// let mut evaluation = Evaluation::new(&store.snapshot()?, sample, 10)?;
/// evaluation.run(0.1, |_| Ok::<_, Error>(()))?;
/// for tally in &evaluation.families {
///     assert_eq!(tally.recall(), Some(1.0)); // of the one pair of equal features
///     assert!((tally.expected - 1.0).abs() < 1e-9);
/// }
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FamilyTally {
    /// The family that decides.
    pub by: Family,
    /// The least similarity of a right pair.
    pub threshold: f64,
    /// Number of right pairs in the sample.
    pub pairs: u64,
    /// The number of these that theory expects to be candidates: to share a band, or to lie within
    /// the distance (of both families the latter, of any either).
    pub expected: f64,
    /// The returned pairs.
    pub returned: ReturnedPairs,
}

impl FamilyTally {
    pub(super) fn of_all(threshold: f64) -> Vec<Self> {
        let tally = |by| Self {
            by,
            threshold,
            pairs: 0,
            expected: 0.0,
            returned: ReturnedPairs::default(),
        };
        [Family::MinHash, Family::SimHash, Family::Both, Family::Any]
            .map(tally)
            .to_vec()
    }

    /// Returns the share of the right pairs that was returned, from 0 to 1; `None` without any
    /// right pair.
    #[must_use]
    pub fn recall(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.returned.right as f64 / self.pairs as f64)
    }

    /// Counts the pairs of a document with those before it: `exact` are those at the floor or above,
    /// `returned` all that were returned, those after it too. `theory` is of pairs of a similarity.
    pub(super) fn add(
        &mut self,
        document: usize,
        exact: &[Partner],
        returned: &[usize],
        theory: &FamilyTheory,
    ) -> Result<()> {
        let is_right = |partner: &Partner| partner.similarity >= self.threshold;
        for partner in exact.iter().filter(|partner| is_right(partner)) {
            self.pairs += 1;
            self.expected += theory.probability(self.by, partner.similarity)?;
        }
        for other in returned.iter().filter(|other| **other < document) {
            self.returned.pairs += 1;
            self.returned.right += u64::from(find(exact, *other).as_ref().is_some_and(is_right));
        }
        Ok(())
    }
}

/// The probability that pairs are candidates of each family.
pub(super) struct FamilyTheory {
    pub(super) minhash: MinHashSchema,
    pub(super) design: TableDesign,
}

impl FamilyTheory {
    fn probability(&self, by: Family, similarity: f64) -> Result<f64> {
        let bands = self.minhash.probability(similarity);
        let distance = self.design.probability(similarity);
        match by {
            Family::MinHash => Ok(bands),
            // Where both must be near, the tables alone are asked.
            Family::SimHash | Family::Both => Ok(distance),
            Family::Any => Ok(1.0 - (1.0 - bands) * (1.0 - distance)),
            other => Err(bug(format!("no theory of {other:?}"))),
        }
    }
}

/// Counts of the pairs that a store returned by distance.
///
/// ```
/// # use resemblance_eval::{Evaluation, Sampler};
/// # use resemblance::{Document, Error, Schema, SimHash, Store, Text};
/// # let schema = Schema::builder().text(Text::words(1)).simhash(SimHash::bits64()).build()?;
/// # let store = Store::in_memory(schema)?;
/// # let (mut sampler, sketcher) = (Sampler::new(), store.sketcher());
/// # for (number, text) in ["a b c", "c b a", "x y z"].iter().enumerate() {
/// #     let (features, signature) = (sketcher.feature_hashes(text)?, sketcher.text(text)?);
/// #     sampler.add(number as u64, text.as_bytes().into(), features, signature)?;
/// # }
/// # let sample = sampler.finish(3);
/// # for signature in &sample.signatures {
/// #     store.insert(Document::without_key(), signature)?;
/// # }
/// let mut evaluation = Evaluation::new(&store.snapshot()?, sample, 10)?;
/// evaluation.run(0.1, |_| Ok::<_, Error>(()))?;
/// let simhash = evaluation.simhash.expect("the schema has SimHash");
/// assert_eq!(simhash.distances[0], (1, 1)); // all that are there are found
/// assert_eq!(simhash.wrong, 0);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct SimHashTally {
    /// The design by which the store compares.
    pub design: TableDesign,
    /// The number of pairs at each distance by comparing all with all, and the number returned.
    pub distances: Vec<(u64, u64)>,
    /// Returned, but at no such distance: never, unless something is wrong.
    pub wrong: u64,
    /// The pairs by exact similarity; `returned` are those within the greatest distance.
    pub steps: [SimilarityStep; STEPS],
    /// Candidates of the queries of all documents.
    pub candidates: u64,
}

impl SimHashTally {
    pub(super) fn new(design: TableDesign) -> Self {
        Self {
            distances: vec![(0, 0); usize::from(design.max_distance()) + 1],
            design,
            wrong: 0,
            steps: [SimilarityStep::default(); STEPS],
            candidates: 0,
        }
    }

    /// Counts the pairs of a document: `near` are those within the greatest distance by comparing
    /// all with all, `returned` those that the store returned, both ascending, with their
    /// distances.
    pub(super) fn add(
        &mut self,
        exact: &[Partner],
        near: &[(usize, u32)],
        returned: &[(usize, u32)],
    ) -> Result<()> {
        debug_assert!(near.is_sorted());
        for (_, distance) in near {
            at_mut(&mut self.distances, *distance as usize)?.0 += 1;
        }
        for pair in returned {
            match self.distances.get_mut(pair.1 as usize) {
                Some(counts) if near.binary_search(pair).is_ok() => counts.1 += 1,
                _ => self.wrong += 1,
            }
        }
        for partner in exact {
            let is_near = near.binary_search_by_key(&partner.document, |(document, _)| *document);
            let step = at_mut(&mut self.steps, step_of(partner.similarity))?;
            step.pairs += 1;
            step.similarities += partner.similarity;
            step.expected += self.design.probability(partner.similarity);
            step.returned += u64::from(is_near.is_ok());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use resemblance::{MinHash, Schema};

    fn partner(document: usize, similarity: f64) -> Partner {
        Partner {
            document,
            similarity,
        }
    }

    #[test]
    fn tally_steps_are_tenths() {
        let names: Vec<_> = [0.0, 0.3, 0.7, 0.999, 1.0]
            .map(|similarity| step_name(step_of(similarity)))
            .to_vec();
        assert_eq!(names, ["0.0-0.1", "0.3-0.4", "0.7-0.8", "0.9-1.0", "1"]);
    }

    #[test]
    fn found_missed_and_wrong_pairs_are_counted() {
        let minhash = MinHash::new(100).value_bits(32);
        let minhash = minhash.threshold(0.8).banding(20, 5);
        let schema = Schema::builder().minhash(minhash).build().unwrap();
        let mut tally = MinHashTally::new(schema.minhash().unwrap(), 2);
        let exact = [
            partner(0, 0.85), // found
            partner(1, 0.8),  // a candidate, its estimate too low
            partner(2, 0.95), // no candidate
            partner(3, 0.75), // returned though below the threshold
            partner(4, 0.82), // missed too, but only two are kept
        ];
        let returned = [partner(0, 0.9), partner(3, 0.81), partner(7, 0.8)];
        let estimate = |document| if document == 1 { 0.7 } else { 0.9 };
        let compared = ComparedDocument {
            document: 9,
            exact: &exact,
            candidates: &[0, 1, 3, 7, 8].map(|document| partner(document, estimate(document))),
            returned: &returned,
        };
        tally
            .add(&compared, |document| Ok(estimate(document)))
            .unwrap();
        let near = tally.near;
        assert_eq!((near.pairs, near.candidates, near.returned), (4, 2, 1));
        let all = tally.all_returned();
        assert_eq!((all.pairs, all.right), (3, 1));
        // The candidate with the low estimate is right; of the others one is, the one that was found.
        for (hundredths, expected) in [(0, (5, 2)), (70, (5, 2)), (71, (4, 1)), (91, (0, 0))] {
            let found = tally.returned_from(hundredths);
            assert_eq!((found.pairs, found.right), expected, "{hundredths}");
        }
        assert_eq!((tally.candidates, tally.candidates_below), (5, 2));
        assert_eq!(near.pairs - near.returned, 3);
        let missed: Vec<_> = tally.missed().map(|m| (m.a, m.b, m.is_candidate)).collect();
        assert_eq!(missed, [(2, 9, false), (4, 9, false)]);
        let step = tally.steps[8];
        assert_eq!((step.pairs, step.candidates), (3, 2));
        let expected = step.errors.mean().unwrap();
        assert!((expected - (0.05 - 0.1 + 0.08) / 3.0).abs() < 1e-12);
        let theory = [0.85, 0.8, 0.82].map(|j| j * (1.0 - j) / 100.0);
        let theory = (theory.iter().sum::<f64>() / 3.0).sqrt();
        assert!((step.errors.theory().unwrap() - theory).abs() < 1e-12);
    }

    #[test]
    fn tally_counts_each_distance() {
        let design = TableDesign::new(64, 3, &[(1, 1); 4]).unwrap();
        let mut tally = SimHashTally::new(design);
        let near = [(0, 0), (2, 3), (5, 3)];
        let returned = [(0, 0), (2, 3), (4, 1)];
        tally
            .add(&[partner(2, 0.9), partner(3, 0.9)], &near, &returned)
            .unwrap();
        assert_eq!(tally.distances, [(1, 1), (0, 0), (0, 0), (2, 1)]);
        assert_eq!(tally.wrong, 1);
        assert_eq!((tally.steps[9].pairs, tally.steps[9].returned), (2, 1));
    }
}
