//! How the recall of one corpus varies with the seed of the hash functions.

use resemblance::invariant::OrBug;
use resemblance::schema::{MinHashKind, MinHashSchema};
use resemblance::{Error, FamilySums, Result, Schema};
use resemblance_sketch::lanes::LaneSet;

use crate::tally::ComparedDocument;

/// The range of similarity above the threshold to which the promised recall refers.
const JUST_ABOVE: f64 = 0.05;

/// The band codes and values of all documents of a sample, for the seeds from 1.
struct SeedCodes {
    bands: usize,
    seeds: usize,
    /// The codes of each document with each seed.
    codes: Vec<u64>,
    /// The values of each document with each seed, as a store keeps them.
    values: Vec<Vec<u8>>,
}

/// A pair as it is with one seed.
struct SeedOutcome {
    is_candidate: bool,
    /// True if the estimate reaches the threshold.
    is_within: bool,
}

impl SeedCodes {
    fn of(&self, document: usize) -> Result<impl Iterator<Item = (&[u64], &Vec<u8>)>> {
        let length = self.bands * self.seeds;
        let of_document = document * length..(document + 1) * length;
        let codes = self
            .codes
            .get(of_document)
            .or_bug("a document of a pair has no codes")?;
        let values = self.values.iter().skip(document * self.seeds);
        Ok(codes.chunks_exact(self.bands).zip(values))
    }
}

/// The recall of the candidates among the pairs in a range of similarity, with several seeds.
///
/// Pairs that share documents are found or missed together. The recall of one seed therefore
/// deviates more from the mean than it would if all pairs were independent.
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
/// # evaluation.over_seeds(20, || Ok::<_, Error>(()))?;
/// # evaluation.run(0.1, |_| Ok::<_, Error>(()))?;
/// let spread = evaluation.seeds().last().unwrap();
/// assert_eq!((spread.pairs, spread.families()), (1, 1));
/// let (least, mean, greatest) = (spread.min(), spread.mean(), spread.max());
/// assert!(least <= mean && mean <= greatest);
/// println!("{:?} with the seed of the store", spread.own_recall());
/// println!("{mean:?} ± {:?}, of {:?} by theory", spread.deviation(), spread.expected());
/// assert!(spread.deviation_if_independent() <= spread.deviation_if_together());
/// assert_eq!(spread.found.len(), 20);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct RecallSpread {
    /// The minimum similarity of the pairs.
    pub min_similarity: f64,
    /// An upper bound that no similarity reaches, or `None` if similarities may be up to 1.
    pub below: Option<f64>,
    /// The number of pairs.
    pub pairs: u64,
    /// The number of pairs that are candidates in the store, with the store's seed.
    pub own: u64,
    /// The number of pairs that are candidates with each seed from 1.
    pub found: Vec<u64>,
    /// The number of pairs whose estimate reaches the threshold with each seed.
    pub within: Vec<u64>,
    /// The number of pairs that are both, and so would be returned, with each seed.
    pub returned: Vec<u64>,
    expected: f64,
    variances: f64,
    /// The deviations of the pairs.
    families: FamilySums,
}

impl RecallSpread {
    fn new(min_similarity: f64, below: Option<f64>, seeds: usize) -> Self {
        Self {
            min_similarity,
            below,
            pairs: 0,
            own: 0,
            found: vec![0; seeds],
            within: vec![0; seeds],
            returned: vec![0; seeds],
            expected: 0.0,
            variances: 0.0,
            families: FamilySums::default(),
        }
    }

    fn holds(&self, similarity: f64) -> bool {
        similarity >= self.min_similarity && self.below.is_none_or(|below| similarity < below)
    }

    fn share(&self, found: f64) -> Option<f64> {
        (self.pairs > 0).then(|| found / self.pairs as f64)
    }

    /// Returns the recall with the store's seed, from 0 to 1, or `None` without pairs.
    #[must_use]
    pub fn own_recall(&self) -> Option<f64> {
        self.share(self.own as f64)
    }

    /// Returns the recall that theory predicts, averaged over seeds, or `None` without pairs.
    #[must_use]
    pub fn expected(&self) -> Option<f64> {
        self.share(self.expected)
    }

    /// Iterates over the recall with each seed from 1. Empty without pairs.
    fn recalls(&self) -> impl Iterator<Item = f64> {
        self.found.iter().filter_map(|f| self.share(*f as f64))
    }

    /// Returns the mean recall over the seeds, or `None` without pairs.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let mean = self.recalls().sum::<f64>() / self.found.len() as f64;
        (self.pairs > 0).then_some(mean)
    }

    /// Returns the sample standard deviation of the recall over the seeds (the divisor is the
    /// number of seeds minus one). Returns `None` with fewer than two seeds or without pairs.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        let mean = self.mean().filter(|_| self.found.len() > 1)?;
        let squares = self.recalls().map(|recall| (recall - mean).powi(2));
        Some((squares.sum::<f64>() / (self.found.len() - 1) as f64).sqrt())
    }

    /// Returns the lowest recall of a seed, or `None` without pairs.
    #[must_use]
    pub fn min(&self) -> Option<f64> {
        self.recalls().min_by(f64::total_cmp)
    }

    /// Returns the highest recall of a seed, or `None` without pairs.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        self.recalls().max_by(f64::total_cmp)
    }

    /// Returns the standard deviation that the recall would have if all pairs were independent, or
    /// `None` without pairs.
    #[must_use]
    pub fn deviation_if_independent(&self) -> Option<f64> {
        self.share(self.variances.sqrt())
    }

    /// Returns the standard deviation that the recall would have if all pairs of a family were
    /// found or missed together, or `None` without pairs. A family is a set of documents that are
    /// connected by pairs.
    #[must_use]
    pub fn deviation_if_together(&self) -> Option<f64> {
        self.share(self.families.deviation())
    }

    /// Returns the number of families, which are sets of documents connected by pairs.
    #[must_use]
    pub fn families(&self) -> u64 {
        self.families.totals().len() as u64
    }

    fn add(&mut self, pair: (u64, u64), probability: f64, is_own: bool, outcomes: &[SeedOutcome]) {
        let variance = probability * (1.0 - probability);
        self.pairs += 1;
        self.own += u64::from(is_own);
        self.expected += probability;
        self.variances += variance;
        self.families.add(pair.0, pair.1, variance.sqrt());
        let counts = self.found.iter_mut().zip(&mut self.within);
        let counts = counts.zip(&mut self.returned);
        for (((found, within), returned), outcome) in counts.zip(outcomes) {
            *found += u64::from(outcome.is_candidate);
            *within += u64::from(outcome.is_within);
            *returned += u64::from(outcome.is_candidate && outcome.is_within);
        }
    }
}

/// A promised probability of missing a pair right at the threshold, and the pairs just above it that
/// were found and missed with each seed.
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
/// # evaluation.over_seeds(20, || Ok::<_, Error>(()))?;
/// # evaluation.run(0.1, |_| Ok::<_, Error>(()))?;
/// for promise in evaluation.promises() {
///     let (name, promised) = (promise.name, promise.promised);
///     println!("{name}: {promised:?}, measured {:?}, {:?}", promise.missed(), promise.interval());
///     assert!(promise.pairs() <= 20);
/// }
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Promise {
    /// The promise: `truth` (of an exact store, or where a caller verifies), `estimate` (of the
    /// pairs whose estimates reach the threshold) or `truth_by_estimate` (where estimates decide).
    pub name: &'static str,
    /// The promised probability, or `None` if nothing is certified.
    pub promised: Option<f64>,
    /// The number of pairs with each seed from 1.
    pairs: Vec<u64>,
    /// The number of pairs that were found with each seed.
    found: Vec<u64>,
}

impl Promise {
    /// Returns the promises of a schema beside what happened to the pairs just above its threshold.
    pub(super) fn all(minhash: MinHashSchema, spread: &RecallSpread) -> Vec<Self> {
        let (layout, banding) = (minhash.layout(), minhash.banding());
        let threshold = minhash.threshold();
        let truth = Some(1.0 - minhash.recall_at_threshold());
        let estimate = layout.missed_estimate(banding, threshold);
        let by_estimate = layout.missed_similarity(Some(banding), threshold, threshold);
        let all = vec![spread.pairs; spread.found.len()];
        let promise = |name, promised, pairs: &Vec<u64>, found: &Vec<u64>| Self {
            name,
            promised,
            pairs: pairs.clone(),
            found: found.clone(),
        };
        vec![
            promise("truth", truth, &all, &spread.found),
            promise("estimate", estimate, &spread.within, &spread.returned),
            promise("truth_by_estimate", by_estimate, &all, &spread.returned),
        ]
    }

    /// Returns the number of pairs with all seeds.
    #[must_use]
    pub fn pairs(&self) -> u64 {
        self.pairs.iter().sum()
    }

    /// Returns the share of the pairs of all seeds that was missed, or `None` without pairs.
    #[must_use]
    pub fn missed(&self) -> Option<f64> {
        let found: u64 = self.found.iter().sum();
        let pairs = self.pairs();
        (pairs > 0).then(|| (pairs - found) as f64 / pairs as f64)
    }

    /// Returns the interval that holds the mean of [`missed`](Self::missed) over all seeds with a
    /// probability of about 95 %, from how much the seeds differ. Returns `None` without pairs or
    /// with fewer than two seeds.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        let missed = self.missed()?;
        let seeds = self.pairs.len() as f64;
        // Pairs of a family are missed together, so only the seeds are independent.
        let errors = self.pairs.iter().zip(&self.found).map(|(pairs, found)| {
            let error = (pairs - found) as f64 - missed * *pairs as f64;
            error * error
        });
        let variance = errors.sum::<f64>() * seeds / (seeds - 1.0);
        let half = 1.96 * variance.sqrt() / self.pairs() as f64;
        (seeds > 1.0).then(|| ((missed - half).max(0.0), (missed + half).min(1.0)))
    }
}

/// The recall of a sample with several seeds.
pub(super) struct SeedRecall {
    codes: SeedCodes,
    minhash: MinHashSchema,
    pub(super) spreads: Vec<RecallSpread>,
}

impl SeedRecall {
    /// Computes the bands of all documents with the seeds from 1 to `seeds`. Calls `on_document`
    /// before each signature.
    pub(super) fn new<E: From<Error>>(
        schema: &Schema,
        features: &[Vec<u64>],
        seeds: u64,
        mut on_document: impl FnMut() -> Result<(), E>,
    ) -> Result<Self, E> {
        let minhash = schema.minhash().filter(|minhash| {
            let kind = minhash.kind();
            kind != MinHashKind::External && !kind.is_weighted()
        });
        let minhash = minhash.ok_or_else(|| {
            let expected = "MinHash of sets of features, which other seeds can be tried with";
            Error::invalid("schema", "none", expected)
        })?;
        let lanes = LaneSet::new(Some((minhash.banding(), minhash.code_bits())), None)
            .map_err(Error::from)?
            .of_value_bits(minhash.layout().bits());
        let sketchers = (1..=seeds).map(|seed| schema.minhash_sketcher(seed).map_err(Error::from));
        let sketchers: Vec<_> = sketchers.collect::<Result<_>>()?;
        let (mut codes, mut values) = (Vec::new(), Vec::new());
        for hashes in features {
            for sketcher in &sketchers {
                on_document()?;
                let signature = sketcher
                    .hashes(hashes.iter().copied())
                    .map_err(Error::from)?;
                let rows = signature.rows(Some(minhash.layout()));
                lanes.band_codes(&rows, &mut codes).map_err(Error::from)?;
                let mut bytes = Vec::new();
                signature.encode_values(minhash.layout(), &mut bytes);
                values.push(bytes);
            }
        }
        let threshold = minhash.threshold();
        let below = (threshold + JUST_ABOVE < 1.0).then_some(threshold + JUST_ABOVE);
        let seeds = sketchers.len();
        Ok(Self {
            codes: SeedCodes {
                bands: minhash.bands().into(),
                seeds,
                codes,
                values,
            },
            minhash,
            spreads: below
                .map(Some)
                .into_iter()
                .chain([None])
                .map(|below| RecallSpread::new(threshold, below, seeds))
                .collect(),
        })
    }

    /// Counts the pairs of a document.
    pub(super) fn add(&mut self, compared: &ComparedDocument<'_>) -> Result<()> {
        let document = compared.document;
        let layout = self.minhash.layout();
        let least = layout.min_agreement(self.minhash.threshold());
        for partner in compared.exact {
            if partner.similarity < self.minhash.threshold() {
                continue;
            }
            let both = self
                .codes
                .of(partner.document)?
                .zip(self.codes.of(document)?);
            let outcomes: Vec<SeedOutcome> = both
                .map(|(a, b)| SeedOutcome {
                    is_candidate: a.0.iter().zip(b.0).any(|(a, b)| a == b),
                    is_within: layout.agreement(a.1, b.1) >= least,
                })
                .collect();
            let is_own = compared
                .candidates
                .binary_search_by_key(&partner.document, |c| c.document)
                .is_ok();
            let probability = self.minhash.probability(partner.similarity);
            let pair = (partner.document as u64, document as u64);
            for spread in &mut self.spreads {
                if spread.holds(partner.similarity) {
                    spread.add(pair, probability, is_own, &outcomes);
                }
            }
        }
        Ok(())
    }
}
