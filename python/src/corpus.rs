//! Whole corpora: offline builds, a corpus without its near-duplicates, choices of a schema.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use resemblance::dedup::{DedupPolicy, Preference};
use resemblance::eval::{Evaluation, Sampler};
use resemblance::tune::{BAND_POSTING_BYTES, TABLE_POSTING_BYTES, document_bytes};
use resemblance::verification::FeatureSets;
use resemblance::{
    BulkOptions, Document, DuplicateKeys, Error, MinHash, SchemaBuilder, StoreOptions,
};

use crate::answers::Match;
use crate::batches::{Batches, Beside, threads_or_all};
use crate::errors::{OrRaise, invalid};
use crate::joins::{BY, BoundFields, Clusters, JoinSettings, Pairs};
use crate::keys::{Key, optional_key};
use crate::python::{choice, fields, object};
use crate::schema::{Schema, name_of};
use crate::transaction::ManyFields;
use crate::waiting::{Home, Passage, closed, in_background, lock, released, settle};

const DUPLICATE_KEYS: [(&str, DuplicateKeys); 3] = [
    ("refuse", DuplicateKeys::Refuse),
    ("keep-first", DuplicateKeys::KeepFirst),
    ("keep-last", DuplicateKeys::KeepLast),
];

type Build = resemblance::BulkBuild<'static>;

/// A store that is made of many documents, offline.
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
    let mut options = BulkOptions::new().duplicate_keys(rule);
    if let Some(bytes) = memory_bytes {
        options = options.memory_bytes(bytes);
    }
    if let Some(folder) = temp_dir {
        options = options.temp_dir(folder);
    }
    if let Some(threads) = NonZeroUsize::new(threads_or_all(py, threads)?) {
        options = options.threads(threads);
    }
    Ok(options)
}

fn finish_build(
    py: Python<'_>,
    build: Build,
    progress: Option<Py<PyAny>>,
) -> PyResult<resemblance::BulkReport> {
    in_background(py, progress, move |told| {
        build.on_progress(told.callback()).finish()
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

    /// Adds documents. They are in the store once it is finished.
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
        let mut many = ManyFields::new(documents, keys, payloads, stamps, threads)?;
        let mut is_open = true;
        many.for_each(py, self.schema.get(), |batch| {
            let mut build = lock(&self.build);
            let Some(build) = build.as_mut() else {
                is_open = false;
                return Ok(());
            };
            let mut documents = batch.documents().into_iter();
            documents
                .try_for_each(|(document, signature)| build.insert(document, signature).map(drop))
        })?;
        if !is_open {
            return Err(closed(py, "the build"));
        }
        Ok(())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let documents = py.detach(|| lock(&self.build).as_ref().map_or(0, Build::len));
        Ok(usize::try_from(documents)?)
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Makes the store.
    #[pyo3(signature = (*, progress=None))]
    fn finish<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.home.check(py)?;
        let build = py.detach(|| lock(&self.build).take());
        let build = build.ok_or_else(|| closed(py, "the build"))?;
        let report = finish_build(py, build, progress)?;
        bulk_report(py, &report)
    }
}

/// Makes one store of several that were made by one recipe; documents keep the order of the shards.
#[pyfunction]
#[pyo3(signature = (target, shards, *, duplicate_keys="refuse", memory_bytes=None, temp_dir=None,
    threads=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn merge<'py>(
    py: Python<'py>,
    target: PathBuf,
    shards: &Bound<'py, PyAny>,
    duplicate_keys: &str,
    memory_bytes: Option<u64>,
    temp_dir: Option<PathBuf>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let shards = shards.try_iter()?.map(|path| path?.extract());
    let shards = shards.collect::<PyResult<Vec<PathBuf>>>()?;
    let options = bulk_options(py, memory_bytes, temp_dir, threads, duplicate_keys)?;
    settle(py)?;
    let report = in_background(py, progress, move |told| {
        let merge = resemblance::Store::merge(target, shards).bulk(options);
        merge.on_progress(told.callback()).run()
    })?;
    bulk_report(py, &report)
}

fn bulk_report<'py>(
    py: Python<'py>,
    report: &resemblance::BulkReport,
) -> PyResult<Bound<'py, PyAny>> {
    let fields = fields!(py,
        documents: report.documents,
        duplicates: report.duplicates,
        spilled_bytes: report.spilled_bytes,
    );
    object(py, "reports", "BulkReport", &fields)
}

/// Decides which documents of a stream are kept: those near none that was kept before.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Deduplicator {
    open: Mutex<Option<OpenDeduplicator>>,
    schema: Py<Schema>,
    is_exact: bool,
    home: Home,
}

/// The transaction in it goes before its passage.
struct OpenDeduplicator {
    deduplicator: resemblance::dedup::Deduplicator,
    /// Documents that were compared with a part of their candidates only.
    beyond_budget: u64,
    _passage: Option<Passage>,
}

/// What decides documents one by one, within so much memory for them and as much for their features, which it
/// keeps if similarities are to be exact.
fn decider(
    folder: &Path,
    schema: resemblance::Schema,
    options: &StoreOptions,
    (is_exact, memory_bytes): (bool, Option<u64>),
) -> Result<resemblance::dedup::Deduplicator, Error> {
    let mut decider = resemblance::dedup::Deduplicator::create(folder, schema, options)?;
    if let Some(bytes) = memory_bytes {
        decider = decider.memory_bytes(bytes);
    }
    Ok(decider.verify_exact(is_exact.then(|| features_in(folder, memory_bytes))))
}

/// Room for features, in a folder where they do not fit into so much memory.
fn features_in(folder: &Path, memory_bytes: Option<u64>) -> FeatureSets {
    let features = FeatureSets::new(folder);
    match memory_bytes {
        Some(bytes) => features.memory_bytes(bytes),
        None => features,
    }
}

impl Deduplicator {
    pub(crate) fn new(
        deduplicator: resemblance::dedup::Deduplicator,
        passage: Option<Passage>,
        schema: Py<Schema>,
    ) -> Self {
        let open = OpenDeduplicator {
            deduplicator,
            beyond_budget: 0,
            _passage: passage,
        };
        Self {
            open: Mutex::new(Some(open)),
            schema,
            is_exact: false,
            home: Home::here(),
        }
    }
}

#[pymethods]
impl Deduplicator {
    /// Begins with nothing kept, in a temporary store in a folder.
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
        let mut options = StoreOptions::new();
        if let Some(bytes) = cache_bytes {
            options = options.cache_bytes(bytes);
        }
        if let Some(budget) = budget {
            options = options.probe_budget(budget);
        }
        let own = schema.get().parts.schema.clone();
        let made = released(py, || {
            decider(&folder, own, &options, (exact, memory_bytes))
        });
        let deduplicator = made?;
        Ok(Self {
            is_exact: exact,
            ..Self::new(deduplicator, None, schema)
        })
    }

    /// Decides documents in their order: `None` for one that is kept, else the kept one that it is most
    /// like. `stamps` are what the documents are known by later; without any they are 0.
    #[pyo3(signature = (documents, keys=None, *, stamps=None, threads=None))]
    fn decide_many<'py>(
        &self,
        py: Python<'py>,
        documents: &Bound<'py, PyAny>,
        keys: Option<&Bound<'py, PyAny>>,
        stamps: Option<&Bound<'py, PyAny>>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut batches = Batches::new(documents, threads)?;
        let (mut keys, mut stamps) = (Beside::keys(keys)?, Beside::values("stamps", stamps)?);
        self.home.check(py)?;
        let answers = PyList::empty(py);
        let sketcher = &self.schema.get().parts.sketcher;
        while let Some(batch) = batches.next()? {
            py.check_signals()?;
            let (own_keys, own_stamps) =
                (keys.next(py, batch.len())?, stamps.next(py, batch.len())?);
            let sketched = batches.sketch_texts(py, sketcher, &batch, self.is_exact)?;
            let documents: Vec<_> = sketched
                .iter()
                .enumerate()
                .map(|(index, sketched)| {
                    let key = own_keys.as_ref().and_then(|keys| keys.get(index));
                    let document =
                        key.map_or_else(Document::without_key, |key: &Key| Document::new(&key.0));
                    let stamp = own_stamps.as_ref().and_then(|stamps| stamps.get(index));
                    (
                        document.stamp(stamp.copied().map_or(0, |stamp: u64| stamp)),
                        sketched,
                    )
                })
                .collect();
            let decided = py.detach(|| {
                let mut open = lock(&self.open);
                open.as_mut().map(|open| {
                    let decided = open.deduplicator.decide_many(&documents)?;
                    let beyond = decided.iter().filter(|it| it.budget_exceeded().is_some());
                    open.beyond_budget += beyond.count() as u64;
                    Ok(decided)
                })
            });
            for decision in decided
                .ok_or_else(|| closed(py, "the deduplicator"))?
                .or_raise(py)?
            {
                answers.append(decision.found().cloned().map(Match))?;
            }
        }
        keys.end(py)?;
        stamps.end(py)?;
        Ok(answers)
    }

    /// The number of documents that were compared with a part of their candidates only, because of a budget.
    #[getter]
    fn beyond_budget(&self, py: Python<'_>) -> u64 {
        py.detach(|| {
            lock(&self.open)
                .as_ref()
                .map_or(0, |open| open.beyond_budget)
        })
    }

    /// The number of documents that are kept, those of the store included.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let kept = py.detach(|| {
            lock(&self.open)
                .as_ref()
                .map_or(0, |open| open.deduplicator.len())
        });
        Ok(usize::try_from(kept)?)
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Forgets all that was kept.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(lock(&self.open).take()));
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

impl TemporaryCorpus {
    fn ready(&self, py: Python<'_>) -> PyResult<(resemblance::Snapshot, Option<Arc<FeatureSets>>)> {
        match &*lock(&self.state) {
            CorpusState::Ready(snapshot, features) => Ok((snapshot.clone(), features.clone())),
            _ => Err(closed(py, "the corpus")),
        }
    }

    fn settings(
        &self,
        py: Python<'_>,
        fields: BoundFields<'_>,
        threads: Option<usize>,
        max_bucket: Option<usize>,
    ) -> PyResult<(resemblance::Snapshot, JoinSettings)> {
        let (snapshot, features) = self.ready(py)?;
        let bounds = fields.build(py)?;
        Ok((
            snapshot,
            JoinSettings {
                bounds,
                threads,
                max_bucket,
                features,
            },
        ))
    }
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
        let folder = path.parent().map(PathBuf::from);
        let options = bulk_options(py, memory_bytes, folder.clone(), None, "refuse")?;
        let own = schema.get().parts.schema.clone();
        let (build, features) = released(py, || {
            let build = resemblance::Store::bulk_build(&path, own, &options)?;
            let folder = folder.filter(|_| exact);
            let features = folder.map(|folder| features_in(&folder, memory_bytes));
            Ok((Box::new(build), features.map(Box::new)))
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
        let (mut batches, mut keys) = (Batches::new(documents, threads)?, Beside::keys(keys)?);
        let sketcher = &self.schema.get().parts.sketcher;
        while let Some(batch) = batches.next()? {
            py.check_signals()?;
            let own_keys = keys.next(py, batch.len())?;
            let sketched = batches.sketch_texts(py, sketcher, &batch, self.is_exact)?;
            let inserted = py.detach(|| {
                let mut state = lock(&self.state);
                let CorpusState::Building(build, features) = &mut *state else {
                    return None;
                };
                Some(
                    sketched
                        .iter()
                        .enumerate()
                        .try_for_each(|(index, sketched)| {
                            let key = own_keys.as_ref().and_then(|keys| keys.get(index));
                            let document = key.map_or_else(Document::without_key, |key: &Key| {
                                Document::new(&key.0)
                            });
                            let id = build.insert(document, &sketched.signature)?;
                            match features {
                                Some(features) => features.put(id, Arc::clone(&sketched.features)),
                                None => Ok(()),
                            }
                        }),
                )
            });
            inserted
                .ok_or_else(|| closed(py, "the corpus"))?
                .or_raise(py)?;
        }
        keys.end(py)
    }

    /// Makes the store, after the last document.
    #[pyo3(signature = (*, progress=None))]
    fn finish(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<()> {
        let state = std::mem::replace(&mut *lock(&self.state), CorpusState::Closed);
        let CorpusState::Building(build, mut features) = state else {
            return Err(closed(py, "the corpus"));
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

    /// Iterates over all pairs of documents that are near each other.
    #[pyo3(signature = (*, threshold=None, max_distance=None, by=None, accept_lower_recall=false,
        threads=None, max_bucket=None, keys=true, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn pairs(
        &self,
        py: Python<'_>,
        threshold: Option<f64>,
        max_distance: Option<u32>,
        by: Option<&str>,
        accept_lower_recall: bool,
        threads: Option<usize>,
        max_bucket: Option<usize>,
        keys: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Pairs> {
        let fields = BoundFields {
            threshold,
            max_distance,
            by,
            accept_lower_recall,
        };
        let (snapshot, settings) = self.settings(py, fields, threads, max_bucket)?;
        Pairs::start(py, snapshot, &settings, keys, progress)
    }

    /// Finds the documents that are linked by near pairs.
    #[pyo3(signature = (*, threshold=None, max_distance=None, by=None, accept_lower_recall=false,
        threads=None, max_bucket=None, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn clusters(
        &self,
        py: Python<'_>,
        threshold: Option<f64>,
        max_distance: Option<u32>,
        by: Option<&str>,
        accept_lower_recall: bool,
        threads: Option<usize>,
        max_bucket: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Clusters> {
        let fields = BoundFields {
            threshold,
            max_distance,
            by,
            accept_lower_recall,
        };
        let (snapshot, settings) = self.settings(py, fields, threads, max_bucket)?;
        Clusters::find(py, snapshot, settings, progress)
    }

    /// The documents that go by a policy, as tuples: position, position of the one that stays, similarity,
    /// whether it is exact, distance. `keep` is `"first"`, `"last"`, or a number for each document.
    #[pyo3(signature = (policy, keep, *, threads=None, max_bucket=None, progress=None))]
    fn duplicates(
        &self,
        py: Python<'_>,
        policy: &str,
        keep: &Bound<'_, PyAny>,
        threads: Option<usize>,
        max_bucket: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<DuplicateFields>> {
        let fields = BoundFields::default();
        let (snapshot, settings) = self.settings(py, fields, threads, max_bucket)?;
        let policy = self.policy(py, policy, settings.features.is_some(), threads)?;
        let preference = preference(py, keep)?;
        in_background(py, progress, move |told| {
            let join = settings
                .apply(snapshot.clusters())
                .on_progress(told.callback());
            let duplicates = join.duplicates(policy, &preference, settings.features.clone())?;
            let duplicates = duplicates.map(|duplicate| {
                if told.stop.is_set() {
                    return Err(Error::Stopped {
                        work: "the search for duplicates",
                    });
                }
                let found = duplicate?;
                let (id, first) = (found.document.id().get(), found.survivor.id().get());
                Ok((id, first, found.similarity, found.is_exact, found.distance))
            });
            duplicates.collect()
        })
    }

    /// Lets go of the file.
    fn close(&self, py: Python<'_>) {
        let state = std::mem::replace(&mut *lock(&self.state), CorpusState::Closed);
        py.detach(|| drop(state));
    }
}

impl TemporaryCorpus {
    fn policy(
        &self,
        py: Python<'_>,
        name: &str,
        is_exact: bool,
        threads: Option<usize>,
    ) -> PyResult<DedupPolicy> {
        let decider = || -> PyResult<Box<resemblance::dedup::Deduplicator>> {
            let folder = self.path.parent();
            let folder = folder.map_or_else(std::env::temp_dir, PathBuf::from);
            let schema = self.schema.get().parts.schema.clone();
            let (options, kind) = (StoreOptions::new(), (is_exact, self.memory_bytes));
            let made = released(py, || decider(&folder, schema, &options, kind))?;
            let threads = NonZeroUsize::new(threads_or_all(py, threads)?);
            Ok(Box::new(match threads {
                Some(threads) => made.threads(threads),
                None => made,
            }))
        };
        match name {
            "first" => Ok(DedupPolicy::First(decider()?)),
            "cluster" => Ok(DedupPolicy::Cluster),
            "representative" => Ok(DedupPolicy::Representative(decider()?)),
            name => Err(invalid(
                py,
                "policy",
                format!("{name:?}"),
                "'first', 'cluster' or 'representative'",
            )),
        }
    }
}

fn preference(py: Python<'_>, keep: &Bound<'_, PyAny>) -> PyResult<Preference> {
    match keep.extract::<String>().as_deref() {
        Ok("first") => Ok(Preference::Earliest),
        Ok("last") => Ok(Preference::Latest),
        Ok(rule) => Err(invalid(
            py,
            "keep",
            format!("{rule:?}"),
            "'first', 'last', 'longest', or a number for each document",
        )),
        Err(_) => Ok(Preference::Highest(keep.extract()?)),
    }
}

type DuplicateFields = (u64, u64, Option<f64>, bool, Option<u32>);

/// Builds a schema, and says how many bytes a document takes with it.
fn with_cost(py: Python<'_>, schema: SchemaBuilder) -> PyResult<(resemblance::Schema, f64)> {
    released(py, || {
        let schema = schema.build()?;
        let bytes = document_bytes(&schema)?;
        Ok((schema, bytes))
    })
}

/// What the bands of a number of values cost, for pairs of a similarity to be found.
#[pyfunction]
#[pyo3(signature = (values, threshold, recall, documents, background))]
pub(crate) fn banding_choice(
    py: Python<'_>,
    values: u16,
    threshold: f64,
    recall: f64,
    documents: u64,
    background: f64,
) -> PyResult<Bound<'_, PyAny>> {
    if !(0.0..=1.0).contains(&background) {
        return Err(invalid(
            py,
            "background",
            background,
            "a similarity, 0 to 1",
        ));
    }
    let minhash = MinHash::new(values).threshold(threshold).recall(recall);
    let schema = resemblance::Schema::builder().minhash(minhash);
    let (schema, document_bytes) = with_cost(py, schema)?;
    let minhash = schema.minhash();
    let minhash = minhash.ok_or_else(|| invalid(py, "values", values, "MinHash values"))?;
    let banding = minhash.banding();
    let fields = fields!(py,
        values: minhash.values(),
        bands: banding.bands(),
        rows: banding.rows(),
        recall: banding.probability(threshold),
        deviation: minhash.variance(threshold).sqrt(),
        candidates: banding.candidates(documents, background),
        posting_bytes: BAND_POSTING_BYTES * f64::from(banding.bands()),
        document_bytes: document_bytes,
    );
    object(py, "reports", "BandingChoice", &fields)
}

/// What the tables for a distance cost.
#[pyfunction]
#[pyo3(signature = (max_distance, documents, *, bits=64))]
pub(crate) fn table_choice(
    py: Python<'_>,
    max_distance: u8,
    documents: u64,
    bits: u16,
) -> PyResult<Bound<'_, PyAny>> {
    let simhash = match bits {
        32 => resemblance::SimHash::bits32(),
        64 => resemblance::SimHash::bits64(),
        128 => resemblance::SimHash::bits128(),
        256 => resemblance::SimHash::external(256),
        bits => return Err(invalid(py, "bits", bits, "32, 64, 128 or 256")),
    };
    let simhash = simhash.max_distance(max_distance);
    let schema = resemblance::Schema::builder().simhash(simhash);
    let (schema, document_bytes) = with_cost(py, schema.expected_documents(documents))?;
    let design = schema.simhash();
    let design = design.ok_or_else(|| invalid(py, "bits", bits, "bits of a SimHash"))?;
    let fields = fields!(py,
        documents: documents,
        tables: design.table_count(),
        posting_bytes: TABLE_POSTING_BYTES * design.table_count() as f64,
        document_bytes: document_bytes,
    );
    object(py, "reports", "TableChoice", &fields)
}

/// Measures what a schema finds of a sample of texts, against all exact similarities of it. The folder
/// gets a store of the sample.
#[pyfunction]
#[pyo3(signature = (documents, schema, folder, *, keys=None, floor=0.1, max_missed=100, progress=None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn evaluate_sample<'py>(
    py: Python<'py>,
    documents: &Bound<'py, PyAny>,
    schema: &Schema,
    folder: PathBuf,
    keys: Option<&Bound<'py, PyAny>>,
    floor: f64,
    max_missed: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let parts = Arc::clone(&schema.parts);
    if parts.schema.text().is_none() {
        return Err(invalid(py, "schema", "no text", "one that takes texts"));
    }
    let mut sampler = Sampler::new();
    let (mut batches, mut keys) = (Batches::new(documents, None)?, Beside::keys(keys)?);
    let mut read = 0;
    while let Some(batch) = batches.next()? {
        py.check_signals()?;
        let own_keys = keys.next(py, batch.len())?;
        let texts = batch.texts(py)?;
        (sampler, read) = released(py, || {
            let may_be_kept = sampler.key_filter();
            for (index, text) in texts.iter().enumerate() {
                let own = own_keys.as_ref().and_then(|keys| keys.get(index));
                let key = own.map_or_else(|| read.to_string().into_bytes(), |key| key.0.clone());
                if may_be_kept(&key) {
                    let features = parts.sketcher.feature_hashes(text)?;
                    sampler.add(read, key, features, parts.sketcher.text(text)?)?;
                }
                read += 1;
            }
            Ok((sampler, read))
        })?;
    }
    keys.end(py)?;
    let evaluation = in_background(py, progress, move |told| {
        let sample = sampler.finish(read);
        let path = folder.join("sample.rsm");
        let options = BulkOptions::new().temp_dir(folder);
        let mut build = resemblance::Store::bulk_build(&path, parts.schema.clone(), &options)?;
        for signature in &sample.signatures {
            build.insert(Document::without_key(), signature)?;
        }
        build.finish()?;
        let snapshot = resemblance::Store::open(&path)?.snapshot()?;
        let mut evaluation = snapshot.evaluate(sample, max_missed)?;
        evaluation.run(floor, |_| match told.stop.is_set() {
            true => Err(Error::Stopped {
                work: "the evaluation",
            }),
            false => Ok(()),
        })?;
        Ok(evaluation)
    })?;
    evaluation_object(py, &evaluation)
}

fn evaluation_object<'py>(py: Python<'py>, evaluation: &Evaluation) -> PyResult<Bound<'py, PyAny>> {
    let fields = fields!(py, documents: evaluation.sample.len());
    if let Some(tally) = &evaluation.minhash {
        let near = &tally.near;
        let share = near.pairs as f64;
        fields.set_item("near_pairs", near.pairs)?;
        fields.set_item("near_found", near.returned)?;
        fields.set_item(
            "recall",
            (near.pairs > 0).then(|| near.returned as f64 / share),
        )?;
        fields.set_item(
            "expected_recall",
            (near.pairs > 0).then(|| near.expected / share),
        )?;
        fields.set_item("precision", tally.all_returned().precision())?;
        fields.set_item("error_mean", near.errors.mean())?;
        fields.set_item("error_deviation", near.errors.deviation())?;
        fields.set_item("candidates", tally.candidates)?;
        let steps = (0..).zip(&tally.steps).map(|(place, step)| {
            let from = f64::from(place) / 10.0;
            (
                from,
                step.pairs,
                step.candidates,
                step.expected,
                step.returned,
            )
        });
        fields.set_item("steps", steps.collect::<Vec<_>>())?;
        let key = |index: usize| evaluation.sample.keys.get(index).cloned().map(Key);
        let mut missed = Vec::new();
        for pair in tally.missed() {
            let (a, b) = (key(pair.a), key(pair.b));
            let a = optional_key(py, a.as_ref().map(|key| key.0.as_slice()))?;
            let b = optional_key(py, b.as_ref().map(|key| key.0.as_slice()))?;
            missed.push((a, b, pair.similarity, pair.estimate));
        }
        fields.set_item("missed", missed)?;
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
    object(py, "reports", "Evaluation", &fields)
}
