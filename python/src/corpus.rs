//! Whole corpora: offline builds, deduplication, choices of a schema.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use resemblance::invariant::OrBug;
use resemblance::{
    Bounds, BulkOptions, Document, DuplicateKeys, Error, MinHash, SchemaBuilder, StoreOptions,
};
use resemblance_corpus::dedup::{
    ComparedCandidate, DedupPolicy, DropRule, FeatureShares, Preference,
};
use resemblance_corpus::verification::{FeatureSets, SketchedText};
use resemblance_eval::{
    BAND_POSTING_BYTES, Evaluation, Sampler, TABLE_POSTING_BYTES, document_bytes,
};

use crate::answers::Match;
use crate::batches::threads_or_all;
use crate::errors::{OrRaise, invalid};
use crate::joins::BY;
use crate::keys::{Key, several};
use crate::lease::{Held, Holder, Lease, OpenFile};
use crate::progress::Callback;
use crate::python::{Report, choice, class, given, object};
use crate::schema::{Schema, name_of};
use crate::snapshot::Snapshot;
use crate::transaction::Many;
use crate::waiting::{Home, Passage, await_stopped, closed, in_background, lock, released};

const DUPLICATE_KEYS: [(&str, DuplicateKeys); 3] = [
    ("refuse", DuplicateKeys::Refuse),
    ("keep-first", DuplicateKeys::KeepFirst),
    ("keep-last", DuplicateKeys::KeepLast),
];

type Build = resemblance::BulkBuild<'static>;

/// Builds a store from many documents, offline.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct BulkBuild {
    build: Mutex<Option<Build>>,
    schema: Py<Schema>,
    home: Home,
}

fn bulk_options(
    py: Python<'_>,
    memory_bytes: Option<u64>,
    temp_dir: Option<PathBuf>,
    threads: Option<usize>,
    duplicate_keys: &str,
) -> PyResult<BulkOptions> {
    let rule = choice(py, "duplicate_keys", duplicate_keys, &DUPLICATE_KEYS)?;
    let threads = NonZeroUsize::new(threads_or_all(py, threads)?);
    let options = BulkOptions::new().duplicate_keys(rule);
    Ok(given!(options, memory_bytes, temp_dir, threads))
}

fn finish_build(
    py: Python<'_>,
    build: Build,
    progress: Callback,
) -> PyResult<resemblance::report::BulkReport> {
    in_background(py, progress, move |link| {
        build.on_progress(link.callback()).finish()
    })
}

#[pymethods]
impl BulkBuild {
    #[new]
    #[pyo3(signature = (path, schema, *, memory_bytes=None, temp_dir=None, threads=None,
        duplicate_keys="refuse"))]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        schema: Py<Schema>,
        memory_bytes: Option<u64>,
        temp_dir: Option<PathBuf>,
        threads: Option<usize>,
        duplicate_keys: &str,
    ) -> PyResult<Self> {
        let options = bulk_options(py, memory_bytes, temp_dir, threads, duplicate_keys)?;
        let own = schema.get().parts.schema.clone();
        let build = released(py, || resemblance::Store::bulk_build(path, own, &options))?;
        Ok(Self {
            build: Mutex::new(Some(build)),
            schema,
            home: Home::here(),
        })
    }

    /// Adds documents. They are in the store after `finish`.
    #[pyo3(signature = (documents, keys=None, *, payloads=None, stamps=None, threads=None))]
    fn insert_many(
        &self,
        py: Python<'_>,
        documents: &Bound<'_, PyAny>,
        keys: Option<&Bound<'_, PyAny>>,
        payloads: Option<&Bound<'_, PyAny>>,
        stamps: Option<&Bound<'_, PyAny>>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        self.home.check(py)?;
        let many = Many::new(documents, keys, payloads, stamps, threads)?;
        many.for_each(py, self.schema.get(), |documents| {
            let mut guard = lock(&self.build);
            let build = guard.as_mut().ok_or_else(|| closed("the build"))?;
            for (document, signature) in documents {
                build.insert(document.clone(), signature)?;
            }
            Ok(())
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let documents = py.detach(|| lock(&self.build).as_ref().map_or(0, Build::len));
        Ok(usize::try_from(documents)?)
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Completes the store.
    #[pyo3(signature = (*, progress=None))]
    fn finish<'py>(&self, py: Python<'py>, progress: Callback) -> Report<'py> {
        self.home.check(py)?;
        let build = py.detach(|| lock(&self.build).take());
        let open = build.ok_or_else(|| closed("the build")).or_raise(py)?;
        let report = finish_build(py, open, progress)?;
        bulk_report(py, &report)
    }
}

/// Merges several stores with one recipe into one. Documents keep the order of the shards.
#[pyfunction]
#[pyo3(signature = (target, shards, *, duplicate_keys="refuse", memory_bytes=None, temp_dir=None,
    threads=None, progress=None))]
pub(crate) fn merge<'py>(
    py: Python<'py>,
    target: PathBuf,
    shards: &Bound<'py, PyAny>,
    duplicate_keys: &str,
    memory_bytes: Option<u64>,
    temp_dir: Option<PathBuf>,
    threads: Option<usize>,
    progress: Callback,
) -> Report<'py> {
    let paths = several("shards", shards)?.map(|path| path?.extract());
    let shards = paths.collect::<PyResult<Vec<PathBuf>>>()?;
    let options = bulk_options(py, memory_bytes, temp_dir, threads, duplicate_keys)?;
    await_stopped(py)?;
    let report = in_background(py, progress, move |link| {
        let merge = resemblance::Store::merge(target, shards).bulk(options);
        merge.on_progress(link.callback()).run()
    })?;
    bulk_report(py, &report)
}

fn bulk_report<'py>(py: Python<'py>, report: &resemblance::report::BulkReport) -> Report<'py> {
    object! { py, reports.BulkReport, report { documents, duplicates, spilled_bytes } }
}

/// Decides which documents of a stream to keep: those that are near no document kept before.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Deduplicator {
    open: Arc<Lease<OpenDeduplicator>>,
    schema: Py<Schema>,
    is_exact: bool,
    home: Home,
}

/// The transaction in it is dropped before its passage.
struct OpenDeduplicator {
    deduplicator: resemblance_corpus::dedup::Deduplicator,
    /// The number of documents that were compared with only some of their candidates.
    budget_exceeded: u64,
    _passage: Option<Passage>,
}

impl OpenDeduplicator {
    fn decide(
        &mut self,
        documents: &[(Document<'_>, &SketchedText)],
    ) -> resemblance::Result<Vec<resemblance::Novelty>> {
        let decided = self.deduplicator.decide_many(documents)?;
        let beyond = decided.iter().filter(|it| it.budget_exceeded().is_some());
        self.budget_exceeded += beyond.count() as u64;
        Ok(decided)
    }
}

impl Held for OpenDeduplicator {
    const NAME: &'static str = "Deduplicator";
}

/// Creates a deduplicator of single documents with this memory for the documents. If similarities
/// are exact, it keeps features in the same amount of memory.
fn decider(
    folder: &Path,
    schema: resemblance::Schema,
    options: &StoreOptions,
    is_exact: bool,
    memory_bytes: Option<u64>,
) -> Result<resemblance_corpus::dedup::Deduplicator, Error> {
    let decider = resemblance_corpus::dedup::Deduplicator::create(folder, schema, options)?;
    Ok(given!(decider, memory_bytes)
        .verify_exact(is_exact.then(|| features_in(folder, memory_bytes))))
}

/// Returns memory for features, with a folder for those that do not fit.
pub(crate) fn features_in(folder: &Path, memory_bytes: Option<u64>) -> FeatureSets {
    given!(FeatureSets::new(folder), memory_bytes)
}

impl Deduplicator {
    pub(crate) fn new(
        file: &Arc<OpenFile>,
        deduplicator: resemblance_corpus::dedup::Deduplicator,
        passage: Option<Passage>,
        schema: Py<Schema>,
    ) -> Self {
        let open = OpenDeduplicator {
            deduplicator,
            budget_exceeded: 0,
            _passage: passage,
        };
        Self {
            open: Lease::new(file, open),
            schema,
            is_exact: false,
            home: Home::here(),
        }
    }

    /// Returns a count, or 0 after it is closed.
    fn count(&self, py: Python<'_>, count: fn(&OpenDeduplicator) -> u64) -> u64 {
        py.detach(|| self.open.with(|open| Ok(count(open))).unwrap_or(0))
    }
}

#[pymethods]
impl Deduplicator {
    /// Creates a deduplicator without documents, with a temporary store in a folder.
    #[new]
    #[pyo3(signature = (schema, folder, *, exact=false, cache_bytes=None, memory_bytes=None,
        budget=None))]
    fn create(
        py: Python<'_>,
        schema: Py<Schema>,
        folder: PathBuf,
        exact: bool,
        cache_bytes: Option<u64>,
        memory_bytes: Option<u64>,
        budget: Option<u64>,
    ) -> PyResult<Self> {
        let options = given!(StoreOptions::new(), cache_bytes, probe_budget: budget);
        let own = schema.get().parts.schema.clone();
        let made = released(py, || decider(&folder, own, &options, exact, memory_bytes));
        Ok(Self {
            is_exact: exact,
            ..Self::new(&OpenFile::new(&folder), made?, None, schema)
        })
    }

    /// Decides on documents in their order. The answer is `None` for a document that is kept, and
    /// otherwise the most similar kept one. `stamps` identify the documents later; they are 0 by
    /// default.
    #[pyo3(signature = (documents, keys=None, *, stamps=None, threads=None))]
    fn decide_many<'py>(
        &self,
        py: Python<'py>,
        documents: &Bound<'py, PyAny>,
        keys: Option<&Bound<'py, PyAny>>,
        stamps: Option<&Bound<'py, PyAny>>,
        threads: Option<usize>,
    ) -> PyResult<Vec<Option<Match>>> {
        let many = Many::new(documents, keys, None, stamps, threads)?;
        self.home.check(py)?;
        let mut answers = Vec::new();
        many.for_each_text(py, self.schema.get(), self.is_exact, |documents| {
            self.open.with(|open| {
                let decided = open.decide(documents)?;
                answers.extend(decided.iter().map(|it| it.found().map(Match::from)));
                Ok(())
            })
        })?;
        Ok(answers)
    }

    /// Decides as `decide_many` does. Instead of a match, the answer has its stamp, similarity,
    /// whether that is exact, the distance, of the features of each the share that both have, and the
    /// rule that decided.
    #[pyo3(signature = (documents, *, stamps, threads=None))]
    fn decide_with_evidence<'py>(
        &self,
        py: Python<'py>,
        documents: &Bound<'py, PyAny>,
        stamps: &Bound<'py, PyAny>,
        threads: Option<usize>,
    ) -> PyResult<Vec<Option<FoundFields>>> {
        let many = Many::new(documents, None, None, Some(stamps), threads)?;
        self.home.check(py)?;
        let schema = self.schema.get();
        let mut answers = Vec::new();
        many.for_each_text(py, schema, self.is_exact, |documents| {
            self.open.with(|open| {
                let decided = open.decide(documents)?;
                for ((_, document), decision) in documents.iter().zip(&decided) {
                    let fields = decision.found().map(|found| {
                        let shares = open.deduplicator.shares(document, found)?;
                        found_fields(found.stamp(), found, shares, &schema.parts.schema)
                    });
                    answers.push(fields.transpose()?);
                }
                Ok(())
            })
        })?;
        Ok(answers)
    }

    /// The number of documents that were compared with only some of their candidates, because of a
    /// budget.
    #[getter]
    fn budget_exceeded(&self, py: Python<'_>) -> u64 {
        self.count(py, |open| open.budget_exceeded)
    }

    /// The number of kept documents, including those of the store.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let kept = self.count(py, |open| open.deduplicator.len());
        Ok(usize::try_from(kept)?)
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Drops all kept documents.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.open.release());
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> bool {
        self.close(py);
        false
    }
}

/// A corpus in a temporary store, for joins.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct TemporaryCorpus {
    state: Mutex<CorpusState>,
    schema: Py<Schema>,
    path: PathBuf,
    is_exact: bool,
    memory_bytes: Option<u64>,
}

enum CorpusState {
    Building(Box<Build>, Option<Box<FeatureSets>>),
    Ready(resemblance::Snapshot, Option<Arc<FeatureSets>>),
    Closed,
}

#[pymethods]
impl TemporaryCorpus {
    #[new]
    #[pyo3(signature = (path, schema, *, exact=false, memory_bytes=None))]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        schema: Py<Schema>,
        exact: bool,
        memory_bytes: Option<u64>,
    ) -> PyResult<Self> {
        let path = std::path::absolute(path)?;
        let folder = path.parent().map(PathBuf::from);
        let options = bulk_options(py, memory_bytes, folder.clone(), None, "refuse")?;
        let own = schema.get().parts.schema.clone();
        let (build, features) = released(py, || {
            let build = resemblance::Store::bulk_build(&path, own, &options)?;
            let kept_in = folder.filter(|_| exact);
            let features = kept_in.map(|folder| Box::new(features_in(&folder, memory_bytes)));
            Ok((Box::new(build), features))
        })?;
        let state = Mutex::new(CorpusState::Building(build, features));
        Ok(Self {
            state,
            schema,
            path,
            is_exact: exact,
            memory_bytes,
        })
    }

    /// Adds documents; their ids are their positions.
    #[pyo3(signature = (documents, keys=None, *, threads=None))]
    fn insert_many(
        &self,
        py: Python<'_>,
        documents: &Bound<'_, PyAny>,
        keys: Option<&Bound<'_, PyAny>>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        let many = Many::new(documents, keys, None, None, threads)?;
        many.for_each_text(py, self.schema.get(), self.is_exact, |documents| {
            let CorpusState::Building(build, features) = &mut *lock(&self.state) else {
                return Err(closed("the corpus"));
            };
            for (document, sketched) in documents {
                let id = build.insert(document.clone(), &sketched.signature)?;
                if let Some(features) = features {
                    features.put(id, Arc::clone(&sketched.features))?;
                }
            }
            Ok(())
        })
    }

    /// Completes the store after the last document.
    #[pyo3(signature = (*, progress=None))]
    fn finish(&self, py: Python<'_>, progress: Callback) -> PyResult<()> {
        let state = std::mem::replace(&mut *lock(&self.state), CorpusState::Closed);
        let CorpusState::Building(build, mut features) = state else {
            return Err(closed("the corpus")).or_raise(py);
        };
        finish_build(py, *build, progress)?;
        let snapshot = released(py, || {
            if let Some(features) = &mut features {
                features.flush()?;
            }
            // The snapshot keeps the file open.
            resemblance::Store::open(&self.path)?.snapshot()
        })?;
        *lock(&self.state) =
            CorpusState::Ready(snapshot, features.map(|features| Arc::new(*features)));
        Ok(())
    }

    /// Returns the complete corpus, for joins.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Py<Snapshot>> {
        let (snapshot, features) = self.ready(py)?;
        let lease = Lease::new(&OpenFile::new(&self.path), snapshot);
        Snapshot::bound(self.schema.bind(py), lease, features)
    }

    /// Returns the documents that a policy removes, as tuples: position, position of the one that
    /// is kept, similarity, whether it is exact, distance, of the features of each the share that both
    /// have, and the rule that decided. `keep` is `"first"`, `"last"`, or a number for each document. `lost` is the share of
    /// features that may be lost, if this decides. With `rejected`, also returns the documents that were
    /// compared and kept apart, with the kept ones.
    #[pyo3(signature = (policy, keep, *, lost=None, rejected=false, threads=None, max_bucket=None,
        progress=None))]
    fn duplicates(
        &self,
        py: Python<'_>,
        policy: &str,
        keep: &Bound<'_, PyAny>,
        lost: Option<f64>,
        rejected: bool,
        threads: Option<usize>,
        max_bucket: Option<usize>,
        progress: Callback,
    ) -> PyResult<(Vec<DuplicateFields>, Vec<ComparedFields>)> {
        let (snapshot, features) = self.ready(py)?;
        let policy = match lost {
            None => self.policy(py, policy, rejected, threads)?,
            Some(max_lost) => DedupPolicy::Contained {
                max_lost,
                most_first: policy == "representative",
                threads: NonZeroUsize::new(threads_or_all(py, threads)?)
                    .or_bug("no thread")
                    .or_raise(py)?,
                memory_bytes: self.memory_bytes.unwrap_or(LOST_MEMORY_BYTES),
                with_rejected: rejected,
            },
        };
        let preference = preference(py, keep)?;
        in_background(py, progress, move |link| {
            let join = given!(snapshot.clusters(), threads, max_bucket);
            let reporting = join.on_progress(link.callback());
            let mut found =
                resemblance_corpus::dedup::duplicates(reporting, policy, &preference, features)?;
            let rejected = found.take_rejected();
            let duplicates = found.map(|duplicate| {
                if link.stop.is_set() {
                    return Err(Error::Stopped {
                        work: "the search for duplicates",
                    });
                }
                let found = duplicate?;
                let (id, first) = (found.document.id().get(), found.survivor.id().get());
                let (held, covered) = found.shares.map(|it| (it.held, it.covered)).unzip();
                let (similarity, is_exact) = (found.similarity, found.is_exact);
                Ok((
                    id,
                    first,
                    similarity,
                    is_exact,
                    found.distance,
                    held,
                    covered,
                    found.rule.name(),
                ))
            });
            let rejected = rejected.iter().map(|it| compared_fields(0, it));
            Ok((duplicates.collect::<Result<_, _>>()?, rejected.collect()))
        })
    }

    /// Closes the file.
    fn close(&self, py: Python<'_>) {
        let state = std::mem::replace(&mut *lock(&self.state), CorpusState::Closed);
        py.detach(|| drop(state));
    }
}

impl TemporaryCorpus {
    /// Returns the complete corpus.
    fn ready(&self, py: Python<'_>) -> PyResult<(resemblance::Snapshot, Option<Arc<FeatureSets>>)> {
        let ready = match &*lock(&self.state) {
            CorpusState::Ready(snapshot, features) => Some((snapshot.clone(), features.clone())),
            _ => None,
        };
        // An exception is made without the lock, because that runs Python code.
        ready.ok_or_else(|| closed("the corpus")).or_raise(py)
    }

    fn policy(
        &self,
        py: Python<'_>,
        name: &str,
        rejected: bool,
        threads: Option<usize>,
    ) -> PyResult<DedupPolicy> {
        let decider = || -> PyResult<Box<resemblance_corpus::dedup::Deduplicator>> {
            let parent = self.path.parent();
            let folder = parent.map_or_else(std::env::temp_dir, PathBuf::from);
            let (schema, options) = (self.schema.get().parts.schema.clone(), StoreOptions::new());
            let made = released(py, || {
                let made = decider(&folder, schema, &options, self.is_exact, self.memory_bytes)?;
                if rejected {
                    made.collect_rejected()
                } else {
                    Ok(made)
                }
            });
            let threads = NonZeroUsize::new(threads_or_all(py, threads)?);
            Ok(Box::new(given!(made?, threads)))
        };
        match name {
            "first" => Ok(DedupPolicy::First(decider()?)),
            "cluster" => Ok(DedupPolicy::Cluster),
            "representative" => Ok(DedupPolicy::Representative(decider()?)),
            name => {
                let expected = "'first', 'cluster' or 'representative'";
                Err(invalid(py, "policy", format!("{name:?}"), expected))
            }
        }
    }
}

fn preference(py: Python<'_>, keep: &Bound<'_, PyAny>) -> PyResult<Preference> {
    match keep.extract::<String>().as_deref() {
        Ok("first") => Ok(Preference::Earliest),
        Ok("last") => Ok(Preference::Latest),
        Ok(rule) => {
            let expected = "'first', 'last', 'longest', or a number for each document";
            Err(invalid(py, "keep", format!("{rule:?}"), expected))
        }
        Err(_) => Ok(Preference::Highest(keep.extract()?)),
    }
}

/// The fields of a duplicate, as [`TemporaryCorpus::duplicates`] lists them, with its position and
/// that of the document that is kept.
type DuplicateFields = (
    u64,
    u64,
    Option<f64>,
    bool,
    Option<u32>,
    Option<f64>,
    Option<f64>,
    &'static str,
);

/// The number of a document, that of another one with which it was compared, their similarity, and
/// of the features of each the share that both have.
pub(crate) type ComparedFields = (u64, u64, f64, f64, f64);

/// Returns the fields of a comparison, whose document is one of a batch that begins with `first`.
pub(crate) fn compared_fields(first: u64, it: &ComparedCandidate) -> ComparedFields {
    let (held, covered) = (it.shares.held, it.shares.covered);
    let (document, candidate) = (first + it.document, it.candidate.get());
    (document, candidate, it.similarity, held, covered)
}

/// The number of the document that was found for another one, and how near they are.
pub(crate) type FoundFields = (
    u64,
    Option<f64>,
    bool,
    Option<u32>,
    Option<f64>,
    Option<f64>,
    &'static str,
);

/// Returns the fields of a document that was found within the bounds of a schema.
pub(crate) fn found_fields(
    number: u64,
    found: &resemblance::Match,
    shares: Option<FeatureShares>,
    schema: &resemblance::Schema,
) -> resemblance::Result<FoundFields> {
    let (similarity, is_exact) = (found.similarity(), found.is_exact());
    let distance = found.distance();
    let rule = DropRule::of(Bounds::new(), schema, similarity, is_exact, distance)?;
    let (held, covered) = shares.map(|it| (it.held, it.covered)).unzip();
    let rule = rule.name();
    Ok((number, similarity, is_exact, distance, held, covered, rule))
}

/// The default memory for the features by which documents are looked for.
const LOST_MEMORY_BYTES: u64 = 256 << 20;

/// Builds a schema, and returns the number of bytes that a document takes with it.
fn with_cost(py: Python<'_>, schema: SchemaBuilder) -> PyResult<(resemblance::Schema, f64)> {
    released(py, || {
        let built = schema.build()?;
        let bytes = document_bytes(&built)?;
        Ok((built, bytes))
    })
}

/// Returns the cost of the bands for a number of values, if pairs of a similarity are to be found.
#[pyfunction]
#[pyo3(signature = (values, threshold, recall, documents, background))]
pub(crate) fn banding_choice(
    py: Python<'_>,
    values: u16,
    threshold: f64,
    recall: f64,
    documents: u64,
    background: f64,
) -> Report<'_> {
    if !(0.0..=1.0).contains(&background) {
        let expected = "a similarity, 0 to 1";
        return Err(invalid(py, "background", background, expected));
    }
    let minhash = MinHash::new(values).threshold(threshold).recall(recall);
    let schema = resemblance::Schema::builder().minhash(minhash);
    let (schema, document_bytes) = with_cost(py, schema)?;
    let Some(minhash) = schema.minhash() else {
        return Err(invalid(py, "values", values, "MinHash values"));
    };
    let banding = minhash.banding();
    object!(py, reports.BandingChoice,
        values: minhash.values(),
        bands: banding.bands(),
        rows: banding.rows(),
        recall: banding.probability(threshold),
        deviation: minhash.variance(threshold).sqrt(),
        candidates: banding.candidates(documents, background),
        posting_bytes: BAND_POSTING_BYTES * f64::from(banding.bands()),
        document_bytes: document_bytes,
    )
}

/// Returns the cost of the tables for a distance.
#[pyfunction]
#[pyo3(signature = (max_distance, documents, *, bits=64))]
pub(crate) fn table_choice(
    py: Python<'_>,
    max_distance: u8,
    documents: u64,
    bits: u16,
) -> Report<'_> {
    let simhash = match bits {
        32 => resemblance::SimHash::bits32(),
        64 => resemblance::SimHash::bits64(),
        128 => resemblance::SimHash::bits128(),
        256 => resemblance::SimHash::external(256),
        bits => return Err(invalid(py, "bits", bits, "32, 64, 128 or 256")),
    };
    let schema = resemblance::Schema::builder().simhash(simhash.max_distance(max_distance));
    let (schema, document_bytes) = with_cost(py, schema.expected_documents(documents))?;
    let Some(design) = schema.simhash() else {
        return Err(invalid(py, "bits", bits, "bits of a SimHash"));
    };
    object!(py, reports.TableChoice,
        documents: documents,
        tables: design.table_count(),
        posting_bytes: TABLE_POSTING_BYTES * design.table_count() as f64,
        document_bytes: document_bytes,
    )
}

/// Measures how much of a sample of texts a schema finds, compared with all exact similarities. The
/// folder receives a store of the sample.
#[pyfunction]
#[pyo3(signature = (documents, schema, folder, *, keys=None, floor=0.1, max_missed=100, progress=None))]
pub(crate) fn evaluate_sample<'py>(
    py: Python<'py>,
    documents: &Bound<'py, PyAny>,
    schema: &Schema,
    folder: PathBuf,
    keys: Option<&Bound<'py, PyAny>>,
    floor: f64,
    max_missed: usize,
    progress: Callback,
) -> Report<'py> {
    let parts = Arc::clone(&schema.parts);
    if parts.schema.text().is_none() {
        return Err(invalid(py, "schema", "no text", "one that takes texts"));
    }
    let mut sampler = Sampler::new();
    let mut many = Many::new(documents, keys, None, None, None)?;
    let mut read = 0;
    while let Some((batch, fields)) = many.next(py)? {
        let texts = batch.texts(py)?;
        (sampler, read) = released(py, || {
            let may_be_kept = sampler.key_filter();
            for (index, text) in texts.iter().enumerate() {
                let own = fields.key(index);
                let key = own.map_or_else(|| read.to_string().into_bytes(), |key| key.0.clone());
                if may_be_kept(&key) {
                    let taken = parts.taken(text)?;
                    let (signature, features) = parts.sketcher.text_and_feature_hashes(&taken)?;
                    sampler.add(read, key, features, signature)?;
                }
                read += 1;
            }
            Ok((sampler, read))
        })?;
    }
    let evaluation = in_background(py, progress, move |link| {
        let sample = sampler.finish(read);
        let path = folder.join("sample.rsm");
        let options = BulkOptions::new().temp_dir(folder);
        let mut build = resemblance::Store::bulk_build(&path, parts.schema.clone(), &options)?;
        for signature in &sample.signatures {
            build.insert(Document::without_key(), signature)?;
        }
        build.finish()?;
        let snapshot = resemblance::Store::open(&path)?.snapshot()?;
        let mut evaluation = Evaluation::new(&snapshot, sample, max_missed)?;
        evaluation.run(floor, |_| match link.stop.is_set() {
            true => Err(Error::Stopped {
                work: "the evaluation",
            }),
            false => Ok(()),
        })?;
        Ok(evaluation)
    })?;
    evaluation_object(py, &evaluation)
}

fn evaluation_object<'py>(py: Python<'py>, evaluation: &Evaluation) -> Report<'py> {
    let fields = PyDict::new(py);
    fields.set_item("documents", evaluation.sample.len())?;
    if let Some(tally) = &evaluation.minhash {
        let near = &tally.near;
        let share = |found: f64| (near.pairs > 0).then(|| found / near.pairs as f64);
        fields.set_item("near_pairs", near.pairs)?;
        fields.set_item("near_found", near.returned)?;
        fields.set_item("recall", share(near.returned as f64))?;
        fields.set_item("expected_recall", share(near.expected))?;
        fields.set_item("precision", tally.all_returned().precision())?;
        fields.set_item("error_mean", near.errors.mean())?;
        fields.set_item("error_deviation", near.errors.deviation())?;
        fields.set_item("candidates", tally.candidates)?;
        let steps = (0..).zip(&tally.steps).map(|(place, it)| {
            let from = f64::from(place) / 10.0;
            (from, it.pairs, it.candidates, it.expected, it.returned)
        });
        fields.set_item("steps", steps.collect::<Vec<_>>())?;
        let key = |index: usize| evaluation.sample.keys.get(index).cloned().map(Key);
        let missed = tally
            .missed()
            .map(|it| (key(it.a), key(it.b), it.similarity, it.estimate));
        fields.set_item("missed", missed.collect::<Vec<_>>())?;
    }
    if let Some(tally) = &evaluation.simhash {
        fields.set_item("distances", tally.distances.clone())?;
    }
    let families = PyDict::new(py);
    for tally in &evaluation.families {
        let returned = &tally.returned;
        let counts = (returned.pairs, returned.right, tally.expected);
        families.set_item(name_of(&BY, &tally.by), counts)?;
    }
    fields.set_item("families", families)?;
    class(py, "reports", "Evaluation")?.call((), Some(&fields))
}
