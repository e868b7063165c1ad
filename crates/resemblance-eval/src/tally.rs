//! Compares the pairs that a store returns with exact similarities.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use resemblance::invariant::{at, at_mut, bug};
use resemblance::schema::{MinHashSchema, TableDesign};
use resemblance::{Family, Result};
use resemblance_corpus::verification::Partner;

/// The number of steps of similarity: tenths, and one step for 1 itself.
pub(super) const STEPS: usize = 11;

/// The number of steps of similarity: hundredths, and one step for 1 itself.
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
    /// The number of estimates.
    pub count: u64,
    sum: f64,
    squares: f64,
    variances: f64,
}

impl EstimateErrors {
    /// Adds the error of an estimate. `variance` is its theoretical variance.
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

    /// Returns the mean error, which is 0 for an unbiased estimate, or `None` without estimates.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        self.mean_of(self.sum)
    }

    /// Returns the root mean square error, or `None` without estimates.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        self.mean_of(self.squares).map(f64::sqrt)
    }

    /// Returns the theoretical value of [`deviation`](Self::deviation), or `None` without
    /// estimates.
    #[must_use]
    pub fn theory(&self) -> Option<f64> {
        self.mean_of(self.variances).map(f64::sqrt)
    }
}

/// The pairs in one step of exact similarity.
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
    /// The number of pairs.
    pub pairs: u64,
    /// The sum of their exact similarities.
    pub similarities: f64,
    /// The sum of their probabilities of being found.
    pub expected: f64,
    /// The number of pairs that share a band.
    pub candidates: u64,
    /// The number of pairs that the store returns.
    pub returned: u64,
    /// The errors of their estimates.
    pub errors: EstimateErrors,
}

impl SimilarityStep {
    /// Returns the mean of their exact similarities, from 0 to 1, or `None` without pairs.
    #[must_use]
    pub fn mean_similarity(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.similarities / self.pairs as f64)
    }

    /// Returns a count as a share of the pairs, or `None` without pairs.
    #[must_use]
    pub fn share(&self, count: f64) -> Option<f64> {
        (self.pairs > 0).then(|| count / self.pairs as f64)
    }
}

/// The returned pairs whose estimate is in one step.
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
    /// The number of pairs.
    pub pairs: u64,
    /// The number of pairs whose exact similarity reaches the threshold.
    pub right: u64,
}

impl ReturnedPairs {
    fn plus(self, other: &Self) -> Self {
        Self {
            pairs: self.pairs + other.pairs,
            right: self.right + other.right,
        }
    }

    /// Returns the share of the pairs that is right, from 0 to 1, or `None` without pairs.
    #[must_use]
    pub fn precision(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.right as f64 / self.pairs as f64)
    }
}

/// A pair at or above the threshold that the store did not return.
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
    /// The index of the earlier document in the sample.
    pub a: usize,
    /// The index of the later document.
    pub b: usize,
    /// The exact similarity.
    pub similarity: f64,
    /// The estimate from the signatures.
    pub estimate: f64,
    /// True if the two share a band, so that only the estimate was too low.
    pub is_candidate: bool,
}

/// The rank of a missed pair, the most similar first. Similarities are not negative, so their bits
/// sort as they do. Ties are broken by the two documents, the bits of the estimate, and whether the
/// pair is a candidate.
type MissedRank = (Reverse<u64>, usize, usize, u64, bool);

/// The pairs of a document with earlier documents. Each list ascends by document.
pub(super) struct ComparedDocument<'a> {
    pub(super) document: usize,
    /// All pairs that reach the floor.
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

/// A pair that reaches the floor, and how the store found it.
struct FoundPair {
    partner: Partner,
    estimate: f64,
    is_candidate: bool,
    is_returned: bool,
    is_near: bool,
}

/// The counts of the pairs that a store returned by similarity.
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
    /// The settings by which the store compares.
    pub minhash: MinHashSchema,
    /// The pairs by exact similarity, in tenths; the last step is 1. See [`step_name`].
    pub steps: [SimilarityStep; STEPS],
    /// The pairs at or above the threshold, as one step.
    pub near: SimilarityStep,
    /// The returned pairs by estimate, in the same steps.
    pub returned: [ReturnedPairs; STEPS],
    /// The number of pairs that share a band.
    pub candidates: u64,
    /// The number of candidates below the floor.
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
    /// to 100: the candidates whose estimate reaches that bound. They are right if their exact
    /// similarity reaches the threshold.
    #[must_use]
    pub fn returned_from(&self, hundredths: usize) -> ReturnedPairs {
        let steps = self.estimates.iter().skip(hundredths);
        steps.fold(ReturnedPairs::default(), ReturnedPairs::plus)
    }

    /// Returns the counts of all returned pairs.
    #[must_use]
    pub fn all_returned(&self) -> ReturnedPairs {
        let steps = self.returned.iter();
        steps.fold(ReturnedPairs::default(), ReturnedPairs::plus)
    }

    /// Iterates over the most similar pairs that were not returned, at most the number that was
    /// passed to [`Evaluation::new`](crate::Evaluation::new). There are `near.pairs -
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

    /// Counts the pairs of a document, and records those that were missed. `estimate` returns the
    /// estimate for another document.
    pub(super) fn add(
        &mut self,
        compared: &ComparedDocument<'_>,
        estimate: impl Fn(usize) -> Result<f64>,
    ) -> Result<()> {
        // The binary searches below would miss entries that are out of order.
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

/// The pairs that a store returned by MinHash, by SimHash, by both or by either, compared with the
/// pairs whose exact similarity reaches the threshold. This is the comparison of Henzinger
/// (*Finding near-duplicate web pages*, SIGIR 2006).
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
    /// The family of signatures that decides.
    pub by: Family,
    /// The minimum similarity of a right pair.
    pub threshold: f64,
    /// The number of right pairs in the sample.
    pub pairs: u64,
    /// The number of right pairs that theory expects to be candidates: they share a band (MinHash),
    /// or are within the distance (SimHash, and both), or either.
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

    /// Returns the share of the right pairs that was returned, from 0 to 1, or `None` without right
    /// pairs.
    #[must_use]
    pub fn recall(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.returned.right as f64 / self.pairs as f64)
    }

    /// Counts the pairs of a document with earlier documents. `exact` are those that reach the
    /// floor. `returned` are all that were returned, including later documents. `theory` returns
    /// the expected share for a similarity.
    pub(super) fn add(
        &mut self,
        document: usize,
        exact: &[Partner],
        returned: &[usize],
        theory: &FamilyTheory,
        features: &[Vec<u64>],
    ) -> Result<()> {
        let is_right = |partner: &Partner| partner.similarity >= self.threshold;
        for partner in exact.iter().filter(|partner| is_right(partner)) {
            self.pairs += 1;
            let count = union_size(features, document, partner)?;
            self.expected += theory.probability(self.by, partner.similarity, count)?;
        }
        for other in returned.iter().filter(|other| **other < document) {
            self.returned.pairs += 1;
            self.returned.right += u64::from(find(exact, *other).as_ref().is_some_and(is_right));
        }
        Ok(())
    }
}

/// The probabilities that pairs are candidates of each family.
pub(super) struct FamilyTheory {
    pub(super) minhash: MinHashSchema,
    pub(super) design: TableDesign,
}

impl FamilyTheory {
    fn probability(&self, by: Family, similarity: f64, features: u64) -> Result<f64> {
        let bands = self.minhash.probability(similarity);
        let distance = self.design.probability(similarity, features);
        match by {
            Family::MinHash => Ok(bands),
            // If both must be near, only the tables are queried.
            Family::SimHash | Family::Both => Ok(distance),
            Family::Any => Ok(1.0 - (1.0 - bands) * (1.0 - distance)),
            other => Err(bug(format!("no theory of {other:?}"))),
        }
    }
}

/// Returns the number of features of a document and its partner together.
fn union_size(features: &[Vec<u64>], document: usize, partner: &Partner) -> Result<u64> {
    let sum = at(features, document)?.len() + at(features, partner.document)?.len();
    Ok((sum as f64 / (1.0 + partner.similarity)).round() as u64)
}

/// The counts of the pairs that a store returned by distance.
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
    /// The settings by which the store compares.
    pub design: TableDesign,
    /// For each distance, the number of pairs according to a comparison of all pairs, and the
    /// number returned.
    pub distances: Vec<(u64, u64)>,
    /// The number of returned pairs that are not at such a distance. It is 0 unless something is
    /// wrong.
    pub wrong: u64,
    /// The pairs by exact similarity. `returned` counts those within the greatest distance.
    pub steps: [SimilarityStep; STEPS],
    /// The number of candidates of the queries for all documents.
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

    /// Counts the pairs of a document. `near` are those within the greatest distance according to a
    /// comparison of all pairs, and `returned` are those that the store returned. Both are
    /// ascending, with their distances. `features` are those of all documents.
    pub(super) fn add(
        &mut self,
        document: usize,
        features: &[Vec<u64>],
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
            let count = union_size(features, document, partner)?;
            step.expected += self.design.probability(partner.similarity, count);
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
        // The candidate with the low estimate is right; among the others one is, namely the one
        // that was found.
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
        let exact = [partner(2, 0.9), partner(3, 0.9)];
        tally
            .add(6, &vec![vec![1]; 7], &exact, &near, &returned)
            .unwrap();
        assert_eq!(tally.distances, [(1, 1), (0, 0), (0, 0), (2, 1)]);
        assert_eq!(tally.wrong, 1);
        assert_eq!((tally.steps[9].pairs, tally.steps[9].returned), (2, 1));
    }
}
