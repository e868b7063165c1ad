//! Compares the error and time of several kinds and sizes of signatures, over the pairs of a
//! sample.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use resemblance::invariant::{OrBug, at};
use resemblance::schema::{MinHashSchema, feature_hash};
use resemblance::{Error, Result, Signature, Sketcher};
use resemblance_corpus::verification::exact_partners;

use super::kinds::{SIGNATURE_KINDS, SignatureKind, signature_bytes, variance};
use super::sample::DocumentSample;
use super::tally::EstimateErrors;

/// The maximum number of pairs to compare. If there are more, a sample is compared.
const MAX_PAIRS: usize = 100_000;

/// The similarities at which estimates have the greatest errors.
const HALF: std::ops::RangeInclusive<f64> = 0.4..=0.6;

/// More features than two documents ever have.
const LARGE_UNION: f64 = 1e18;

/// Two documents and their exact similarity, which is below 1 because equal sets have equal
/// signatures.
#[derive(Clone, Copy, Debug)]
struct ComparedPair {
    a: usize,
    b: usize,
    similarity: f64,
    /// The number of features in the union of both.
    union: f64,
}

/// The pairs of a sample whose exact similarity is at least a floor and below 1.
#[derive(Debug)]
pub struct ComparedPairs {
    pairs: Vec<ComparedPair>,
    /// The number of such pairs in the sample, including those that are not compared.
    total: u64,
}

impl ComparedPairs {
    /// Finds the pairs that reach the floor. If there are more than 100,000, keeps those with the
    /// lowest hashes. Calls `on_document` after each document with the number processed so far, and
    /// stops if that returns an error.
    pub fn find<E: From<Error>>(
        sample: &DocumentSample,
        floor: f64,
        mut on_document: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut total = 0;
        // The hash comes first; it is almost always different.
        let mut kept: BTreeSet<(u64, usize, usize, u64)> = BTreeSet::new();
        for (document, partners) in exact_partners(&sample.features, floor)?.enumerate() {
            let partners = partners?;
            for partner in partners.iter().filter(|partner| partner.similarity < 1.0) {
                total += 1;
                let numbers = [partner.document, document].map(|n| (n as u64).to_le_bytes());
                let hash = feature_hash(&numbers.concat());
                let similarity = partner.similarity.to_bits();
                kept.insert((hash, partner.document, document, similarity));
                if kept.len() > MAX_PAIRS {
                    kept.pop_last();
                }
            }
            on_document(document as u64 + 1)?;
        }
        let mut pairs = Vec::with_capacity(kept.len());
        for (_, a, b, similarity) in kept {
            let similarity = f64::from_bits(similarity);
            let count = at(&sample.features, a)?.len() + at(&sample.features, b)?.len();
            pairs.push(ComparedPair {
                a,
                b,
                similarity,
                union: (count as f64 / (1.0 + similarity)).round(),
            });
        }
        Ok(Self { pairs, total })
    }

    /// Iterates over the pairs to compare: the indices of both documents in the sample, the smaller
    /// first, and their exact similarity. The order is independent of the documents.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        self.pairs
            .iter()
            .map(|pair| (pair.a, pair.b, pair.similarity))
    }

    /// Returns true if no pair is similar enough.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Returns the number of pairs to compare, at most 100,000.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Returns the number of such pairs in the sample.
    pub fn total(&self) -> u64 {
        self.total
    }
}

/// Errors and times of one kind of signature in one size.
#[derive(Debug)]
pub struct ComparedKind {
    /// The kind.
    pub kind: &'static SignatureKind,
    /// Its parameters.
    pub minhash: MinHashSchema,
    /// The number of seeds.
    pub seeds: u64,
    /// The errors of all pairs.
    pub all: EstimateErrors,
    /// The errors of the pairs with a similarity of 0.4 to 0.6.
    pub half: EstimateErrors,
    /// The number of features of the documents in the pairs.
    features: u64,
    /// The sketching time with the fastest seed. Slower ones were delayed by something else.
    time: Duration,
}

impl ComparedKind {
    /// Returns the number of MinHash values.
    pub fn values(&self) -> u16 {
        self.minhash.values()
    }

    /// Returns the number of bytes of a signature's values.
    pub fn signature_bytes(&self) -> u64 {
        signature_bytes(&self.minhash)
    }

    /// Returns the greatest theoretical deviation over all similarities.
    pub fn worst_theory(&self) -> f64 {
        let steps = (0..=1_000).map(|step| f64::from(step) / 1_000.0);
        let variances = steps.map(|similarity| variance(&self.minhash, similarity, LARGE_UNION));
        variances.fold(0.0, f64::max).sqrt()
    }

    /// Returns the nanoseconds for each feature on one thread, or `None` if there are no features.
    pub fn feature_nanoseconds(&self) -> Option<f64> {
        (self.features > 0).then(|| self.time.as_nanos() as f64 / self.features as f64)
    }

    fn add(
        &mut self,
        pairs: &[ComparedPair],
        signatures: &BTreeMap<usize, Signature>,
    ) -> Result<()> {
        let signature = |document: usize| {
            let signature = signatures.get(&document);
            signature.or_bug("a document of a pair that was not sketched")
        };
        for pair in pairs {
            // The estimate is not clamped to [0, 1], which would hide errors of few bits.
            let estimate = signature(pair.a)?.jaccard_unclamped(signature(pair.b)?)?;
            let error = estimate - pair.similarity;
            let variance = variance(&self.minhash, pair.similarity, pair.union);
            self.all.add(error, variance);
            if HALF.contains(&pair.similarity) {
                self.half.add(error, variance);
            }
        }
        Ok(())
    }
}

/// Sketches the documents of the pairs with every kind, size and seed, beginning with seed 1, and
/// compares the estimates with the exact similarities. Calls `on_document` before each sketch, and
/// stops if that returns an error.
pub fn compare_kinds<E: From<Error>>(
    sample: &DocumentSample,
    pairs: &ComparedPairs,
    seeds: u64,
    mut on_document: impl FnMut() -> Result<(), E>,
) -> Result<Vec<ComparedKind>, E> {
    let documents: BTreeSet<usize> = pairs.pairs.iter().flat_map(|p| [p.a, p.b]).collect();
    let mut compared = Vec::new();
    for kind in SIGNATURE_KINDS {
        for &values in kind.sizes {
            let minhash = kind.schema(values, 1)?.minhash();
            let mut row = ComparedKind {
                kind,
                minhash: minhash.or_bug("a kind of MinHash without MinHash")?,
                seeds,
                all: EstimateErrors::default(),
                half: EstimateErrors::default(),
                features: 0,
                time: Duration::MAX,
            };
            for seed in 1..=seeds {
                let sketcher = kind.schema(values, seed)?.sketcher();
                let mut signatures = BTreeMap::new();
                let (mut features, mut time) = (0, Duration::ZERO);
                for &document in &documents {
                    on_document()?;
                    let hashes = at(&sample.features, document)?;
                    let (signature, taken) = timed_sketch(&sketcher, hashes)?;
                    time += taken;
                    features += hashes.len() as u64;
                    signatures.insert(document, signature);
                }
                row.features = features;
                row.time = row.time.min(time);
                row.add(&pairs.pairs, &signatures)?;
            }
            compared.push(row);
        }
    }
    Ok(compared)
}

fn timed_sketch(sketcher: &Sketcher, hashes: &[u64]) -> Result<(Signature, Duration)> {
    let start = Instant::now();
    let signature = sketcher.hashes(hashes.iter().copied())?;
    Ok((signature, start.elapsed()))
}
