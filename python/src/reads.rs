//! The read methods that stores and snapshots share: queries of a store at one moment.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pyo3::call::PyCallArgs;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use resemblance::{Error, Nearest};
use resemblance_corpus::verification::{FeatureSets, verify_exact};

use crate::answers::{Matches, Record};
use crate::batches::{Batches, signature_of};
use crate::errors::{OrRaise, check_unused, file_error, invalid};
use crate::filter::{Filter, Passing};
use crate::joins::{Clusters, Pairs, bounds, family};
use crate::keys::{Key, optional_key};
use crate::lease::{Holder, Lease, OpenFile};
use crate::maintain::{check_report, stats_object};
use crate::progress::Callback;
use crate::python::{Report, given, object};
use crate::schema::Schema;
use crate::waiting::{Handle, Home, in_background, lock, released};

/// The number of documents that an iteration reads at once.
const RECORDS_TOGETHER: usize = 256;

/// The source of an answer.
pub(crate) enum Source {
    /// A store in its state at the time of the query.
    Store(Arc<Handle>),
    Snapshot(Arc<Lease<resemblance::Snapshot>>),
}

/// The state that the read methods of stores and snapshots share.
#[pyclass(frozen, subclass, name = "_Reads", module = "resemblance")]
pub(crate) struct Reads {
    pub(crate) source: Source,
    /// The schema of the store.
    #[pyo3(get)]
    pub(crate) schema: Py<Schema>,
    /// The features of the documents, if the similarities of joins are to be exact.
    pub(crate) features: Option<Arc<FeatureSets>>,
}

/// A Python callable that returns the similarity of documents, and the exception that it raised.
struct Verifier {
    callable: Py<PyAny>,
    raised: Mutex<Option<PyErr>>,
}

impl Verifier {
    fn new(callable: Py<PyAny>) -> Self {
        Self {
            callable,
            raised: Mutex::default(),
        }
    }

    /// # Errors
    /// Returns the error that the call was stopped, if the callable raises.
    fn ask(&self, arguments: impl for<'py> PyCallArgs<'py>) -> resemblance::Result<Option<f64>> {
        Python::attach(|py| {
            let answer = self.callable.bind(py).call1(arguments);
            answer.and_then(|answer| answer.extract()).map_err(|error| {
                *lock(&self.raised) = Some(error);
                Error::Stopped { work: "the call" }
            })
        })
    }
}

/// Returns the answer, or the exception that the verifying callable raised.
fn answer<T>(verifier: Option<&Verifier>, result: PyResult<T>) -> PyResult<T> {
    match verifier.and_then(|verifier| lock(&verifier.raised).take()) {
        Some(error) => Err(error),
        None => result,
    }
}

impl Reads {
    /// Returns the snapshot that answers.
    pub(crate) fn snapshot(&self, py: Python<'_>) -> PyResult<resemblance::Snapshot> {
        match &self.source {
            Source::Snapshot(lease) => released(py, || lease.get()),
            Source::Store(handle) => {
                let store = handle.get(py)?;
                released(py, || store.snapshot())
            }
        }
    }

    pub(crate) fn file(&self) -> &Arc<OpenFile> {
        match &self.source {
            Source::Snapshot(lease) => &lease.file,
            Source::Store(handle) => &handle.file,
        }
    }

    fn run_nearest(
        &self,
        py: Python<'_>,
        document: &Bound<'_, PyAny>,
        n: usize,
        filter: Option<&Bound<'_, Filter>>,
        verify: Option<Py<PyAny>>,
        run: impl FnOnce(Nearest<'_>) -> resemblance::Result<resemblance::Matches> + Send,
    ) -> PyResult<Matches> {
        let (snapshot, verifier) = (self.snapshot(py)?, verify.map(Verifier::new));
        let passing = Passing::new(filter);
        let signature = signature_of(py, &self.schema, document)?;
        let matches = released(py, || {
            let nearest = given!(snapshot.nearest(&signature, n), filter: passing.filter.clone());
            run(match &verifier {
                Some(verifier) => nearest.verify(|id| verifier.ask((id.get(),))),
                None => nearest,
            })
        });
        passing
            .answer(answer(verifier.as_ref(), matches))
            .map(Matches::from)
    }

    fn find(&self, py: Python<'_>, key: &Key) -> PyResult<Option<Record>> {
        let snapshot = self.snapshot(py)?;
        let record = released(py, || snapshot.get(&key.0))?;
        let made = record.map(|record| Record::new(py, &record, &self.schema));
        made.transpose()
    }

    fn iterate(&self, py: Python<'_>, passing: Passing, is_of_keys: bool) -> PyResult<Records> {
        let records = given!(self.snapshot(py)?.iter(), passing: passing.filter.clone());
        Ok(Records {
            records: Lease::new(self.file(), records),
            ready: Mutex::default(),
            schema: self.schema.clone_ref(py),
            is_of_keys,
            passing,
            home: Home::here(),
        })
    }
}

#[pymethods]
impl Reads {
    /// Returns the documents near one document, best first.
    ///
    /// Pass a text, a `Signature`, or the `key` of a stored document. `threshold` is the minimum
    /// similarity and `max_distance` the maximum distance. Without either, the bounds of the schema
    /// count, combined as its `near` says. If the schema has both families, one bound alone selects
    /// its family, and the other family does not count; `by="both"` or `by="any"` takes the missing
    /// bound from the schema. `limit` is the maximum number of answers, and `payloads=True` reads
    /// payloads as well. A bound for which the index was not made is refused, unless you set
    /// `accept_lower_recall`, or `scan` to compare every document. `margin` accepts estimates that
    /// many standard deviations below `threshold`; `certainty` of the answer then holds for true
    /// similarities. `filter` is a `Filter`, which chooses the documents that can match.
    #[pyo3(signature = (document=None, /, *, key=None, threshold=None, max_distance=None, by=None,
        limit=None, payloads=false, accept_lower_recall=false, margin=None, scan=false, probe_budget=None,
        filter=None))]
    fn query(
        &self,
        py: Python<'_>,
        document: Option<&Bound<'_, PyAny>>,
        key: Option<Key>,
        threshold: Option<f64>,
        max_distance: Option<u32>,
        by: Option<&str>,
        limit: Option<usize>,
        payloads: bool,
        accept_lower_recall: bool,
        margin: Option<f64>,
        scan: bool,
        probe_budget: Option<u64>,
        filter: Option<&Bound<'_, Filter>>,
    ) -> PyResult<Matches> {
        let (snapshot, passing) = (self.snapshot(py)?, Passing::new(filter));
        let bounds = bounds(py, threshold, max_distance, by, accept_lower_recall, margin)?;
        let ask = |query: resemblance::Query<'_>| {
            let query = given!(query.bounds(bounds), limit, probe_budget, filter: passing.filter.clone();
                    with_payloads if payloads);
            if scan {
                query.scan().run()
            } else {
                query.run()
            }
        };
        let found = match (document, key) {
            (Some(document), None) => {
                let signature = signature_of(py, &self.schema, document)?;
                passing.answer(released(py, || ask(snapshot.query(&signature))))?
            }
            (None, Some(key)) => {
                let ask_by_key = || snapshot.query_by_key(&key.0)?.map(ask).transpose();
                let answer = passing.answer(released(py, ask_by_key))?;
                answer.ok_or_else(|| key.missing(py))?
            }
            _ => {
                let found = "both or neither";
                return Err(invalid(py, "document", found, "a document or a key"));
            }
        };
        Ok(found.into())
    }

    /// Returns the documents near each of many documents, in their order. This is several times
    /// faster than single calls of `query`. The parameters are those of `query`. `threads` is the
    /// number of threads, by default one for each core.
    #[pyo3(signature = (documents, *, threshold=None, max_distance=None, by=None, limit=None,
        payloads=false, accept_lower_recall=false, margin=None, probe_budget=None, filter=None, threads=None))]
    fn query_many(
        &self,
        py: Python<'_>,
        documents: &Bound<'_, PyAny>,
        threshold: Option<f64>,
        max_distance: Option<u32>,
        by: Option<&str>,
        limit: Option<usize>,
        payloads: bool,
        accept_lower_recall: bool,
        margin: Option<f64>,
        probe_budget: Option<u64>,
        filter: Option<&Bound<'_, Filter>>,
        threads: Option<usize>,
    ) -> PyResult<Vec<Matches>> {
        let (reader, passing) = (self.snapshot(py)?, Passing::new(filter));
        let bounds = bounds(py, threshold, max_distance, by, accept_lower_recall, margin)?;
        // A sweep through the buckets costs each thread about the same for few and for many.
        let mut batches = Batches::new(documents, threads)?.by_threads();
        let (threads, mut all) = (batches.threads, Vec::new());
        while let Some(batch) = batches.next()? {
            let signatures = batches.sketch(py, &self.schema.get().parts, &batch)?;
            let (snapshot, filter) = (reader.clone(), passing.filter.clone());
            let answers = in_background(py, None, move |_| {
                let query = snapshot.query(&signatures[..]).bounds(bounds);
                let query = given!(query, limit, probe_budget, filter; with_payloads if payloads);
                query.threads(threads).run()
            });
            let answers = passing.answer(answers)?;
            all.extend(answers.into_iter().map(Matches::from));
        }
        Ok(all)
    }

    /// Returns the `n` documents that are nearest to one document, however far they are. Documents
    /// without features are near no others. `recall` of the answer is the probability that a document
    /// as near as the last one was found; it is at least `min_recall` unless `scan` is false. `verify` receives the id of a candidate and
    /// returns its exact similarity, which decides, or `None` to use the estimate.
    #[pyo3(signature = (document, n=10, /, *, by=None, min_recall=None, scan=true, payloads=false,
        filter=None, verify=None))]
    fn nearest(
        &self,
        py: Python<'_>,
        document: &Bound<'_, PyAny>,
        n: usize,
        by: Option<&str>,
        min_recall: Option<f64>,
        scan: bool,
        payloads: bool,
        filter: Option<&Bound<'_, Filter>>,
        verify: Option<Py<PyAny>>,
    ) -> PyResult<Matches> {
        let by = family(py, by)?;
        self.run_nearest(py, document, n, filter, verify, |nearest| {
            given!(nearest, by, min_recall; without_scan if !scan, with_payloads if payloads).run()
        })
    }

    /// Returns the `n` documents that are nearest to each of many documents. Those whose nearest
    /// documents are in no bucket share one scan. `verify` receives the position of the query
    /// document, then the id of the candidate.
    #[pyo3(signature = (documents, n=10, /, *, by=None, min_recall=None, scan=true, payloads=false,
        filter=None, verify=None))]
    fn nearest_many(
        &self,
        py: Python<'_>,
        documents: &Bound<'_, PyAny>,
        n: usize,
        by: Option<&str>,
        min_recall: Option<f64>,
        scan: bool,
        payloads: bool,
        filter: Option<&Bound<'_, Filter>>,
        verify: Option<Py<PyAny>>,
    ) -> PyResult<Vec<Matches>> {
        let (reader, by) = (self.snapshot(py)?, family(py, by)?);
        let verifier = verify.map(|callable| Arc::new(Verifier::new(callable)));
        let passing = Passing::new(filter);
        let mut batches = Batches::new(documents, None)?;
        let mut all: Vec<Matches> = Vec::new();
        while let Some(batch) = batches.next()? {
            let signatures = batches.sketch(py, &self.schema.get().parts, &batch)?;
            let (snapshot, own, before) = (reader.clone(), verifier.clone(), all.len());
            let filter = passing.filter.clone();
            // A scan takes long, and Ctrl-C ends it.
            let answers = in_background(py, None, move |_| {
                let nearest = snapshot.nearest(&signatures, n);
                let nearest = given!(nearest, by, min_recall, filter;
                    without_scan if !scan, with_payloads if payloads);
                match &own {
                    Some(verifier) => nearest
                        .verify(|index, id| verifier.ask((before + index, id.get())))
                        .run(),
                    None => nearest.run(),
                }
            });
            let answers = passing.answer(answer(verifier.as_deref(), answers))?;
            all.extend(answers.into_iter().map(Matches::from));
        }
        Ok(all)
    }

    /// Returns one document within the distance `factor` * `radius`, or none if there is none
    /// within `radius`. `recall` of the answer is the probability that a document at the distance
    /// `radius` would have been found. The distance is 1 - similarity, or the number of differing
    /// bits for SimHash.
    #[pyo3(signature = (document, radius, factor=1.0, /, *, by=None, min_recall=None, scan=true,
        payloads=false, filter=None, verify=None))]
    fn near(
        &self,
        py: Python<'_>,
        document: &Bound<'_, PyAny>,
        radius: f64,
        factor: f64,
        by: Option<&str>,
        min_recall: Option<f64>,
        scan: bool,
        payloads: bool,
        filter: Option<&Bound<'_, Filter>>,
        verify: Option<Py<PyAny>>,
    ) -> PyResult<Matches> {
        let by = family(py, by)?;
        self.run_nearest(py, document, 1, filter, verify, |nearest| {
            given!(nearest, by, min_recall; without_scan if !scan, with_payloads if payloads)
                .within(radius, factor)
        })
    }

    /// Returns the position that `Transaction.set_position` has set under a name, or `None`.
    fn position(&self, py: Python<'_>, name: &str) -> PyResult<Option<Cow<'static, [u8]>>> {
        let snapshot = self.snapshot(py)?;
        let position = released(py, || snapshot.position(name))?;
        Ok(position.map(Cow::Owned))
    }

    /// Returns the document with a key, or `None`. `store[key]` raises `KeyError` instead.
    fn get(&self, py: Python<'_>, key: Key) -> PyResult<Option<Record>> {
        self.find(py, &key)
    }

    fn __getitem__(&self, py: Python<'_>, key: Key) -> PyResult<Record> {
        self.find(py, &key)?.ok_or_else(|| key.missing(py))
    }

    fn __contains__(&self, py: Python<'_>, key: Key) -> PyResult<bool> {
        let snapshot = self.snapshot(py)?;
        released(py, || snapshot.contains(&key.0))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(usize::try_from(self.snapshot(py)?.len())?)
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Iterates over the keys in order of insertion. A document without a key gives `None`.
    fn __iter__(&self, py: Python<'_>) -> PyResult<Records> {
        self.iterate(py, Passing::default(), true)
    }

    /// Iterates over all documents in the order of their insertion, or over those that pass a `Filter`.
    #[pyo3(signature = (*, filter=None))]
    fn records(&self, py: Python<'_>, filter: Option<&Bound<'_, Filter>>) -> PyResult<Records> {
        self.iterate(py, Passing::new(filter), false)
    }

    /// Iterates over all near pairs of documents while a thread finds them.
    ///
    /// The bounds are those of `query`. `max_bucket` limits how many documents of a bucket are
    /// compared, and `left_out` of the iterator reports what was not compared. `keys=False` does
    /// not read keys, which is faster. `arrays` and `to_arrow` of the iterator return columns.
    #[pyo3(signature = (*, threshold=None, max_distance=None, by=None, accept_lower_recall=false, margin=None,
        threads=None, max_bucket=None, filter=None, keys=true, progress=None))]
    fn pairs(
        &self,
        py: Python<'_>,
        threshold: Option<f64>,
        max_distance: Option<u32>,
        by: Option<&str>,
        accept_lower_recall: bool,
        margin: Option<f64>,
        threads: Option<usize>,
        max_bucket: Option<usize>,
        filter: Option<&Bound<'_, Filter>>,
        keys: bool,
        progress: Callback,
    ) -> PyResult<Pairs> {
        let bounds = bounds(py, threshold, max_distance, by, accept_lower_recall, margin)?;
        let (snapshot, features) = (self.snapshot(py)?, self.features.clone());
        let (join, passing) = (snapshot.pairs().bounds(bounds), Passing::new(filter));
        let join = given!(join, threads, max_bucket, filter: passing.filter.clone());
        let found = passing.answer(released(py, || verify_exact(join, features).run()))?;
        let schema = &self.schema.get().parts.schema;
        Pairs::start(
            self.file(),
            found,
            schema,
            keys.then_some(snapshot),
            progress,
        )
    }

    /// Finds the documents that near pairs link. Two documents are in one cluster if a chain of
    /// pairs connects them, so they may be far apart. Documents without a partner are in no
    /// cluster. The parameters are those of `pairs`.
    #[pyo3(signature = (*, threshold=None, max_distance=None, by=None, accept_lower_recall=false, margin=None,
        threads=None, max_bucket=None, filter=None, progress=None))]
    fn clusters(
        &self,
        py: Python<'_>,
        threshold: Option<f64>,
        max_distance: Option<u32>,
        by: Option<&str>,
        accept_lower_recall: bool,
        margin: Option<f64>,
        threads: Option<usize>,
        max_bucket: Option<usize>,
        filter: Option<&Bound<'_, Filter>>,
        progress: Callback,
    ) -> PyResult<Clusters> {
        let bounds = bounds(py, threshold, max_distance, by, accept_lower_recall, margin)?;
        let (snapshot, features) = (self.snapshot(py)?, self.features.clone());
        let (file, passing) = (Arc::clone(self.file()), Passing::new(filter));
        let filter = passing.filter.clone();
        let clusters = in_background(py, progress, move |link| {
            let join = given!(
                snapshot.clusters().bounds(bounds),
                threads,
                max_bucket,
                filter
            );
            let found = verify_exact(join, features)
                .on_progress(link.callback())
                .run()?;
            Ok(Clusters::new(found, Lease::new(&file, snapshot)))
        });
        passing.answer(clusters)
    }

    /// Counts documents, postings, runs and tables.
    #[pyo3(signature = (*, progress=None))]
    fn stats<'py>(&self, py: Python<'py>, progress: Callback) -> Report<'py> {
        let snapshot = self.snapshot(py)?;
        let stats = in_background(py, progress, move |link| {
            snapshot.stats().on_progress(link.callback()).run()
        })?;
        stats_object(py, &stats)
    }

    /// Checks all rows and postings; `resemblance.check` checks a closed file, its pages included.
    #[pyo3(signature = (*, progress=None))]
    fn check<'py>(&self, py: Python<'py>, progress: Callback) -> Report<'py> {
        let snapshot = self.snapshot(py)?;
        let report = in_background(py, progress, move |link| {
            snapshot.check().on_progress(link.callback()).run()
        })?;
        check_report(py, &report)
    }

    /// Copies the store, as it is at this moment, into a new file. Other threads may use the store
    /// meanwhile.
    #[pyo3(signature = (path, *, progress=None))]
    fn backup<'py>(&self, py: Python<'py>, path: PathBuf, progress: Callback) -> Report<'py> {
        let snapshot = self.snapshot(py)?;
        let report = in_background(py, progress, move |link| {
            snapshot.backup(path).on_progress(link.callback()).run()
        })?;
        object! { py, reports.BackupReport, report { documents, rows, size_bytes } }
    }

    /// Writes all documents into a file, which `Store.import_` reads.
    #[pyo3(signature = (path, *, progress=None))]
    fn export<'py>(&self, py: Python<'py>, path: PathBuf, progress: Callback) -> Report<'py> {
        let snapshot = self.snapshot(py)?;
        let file = create_private(&path).map_err(|e| file_error(py, &path, e))?;
        let report = in_background(py, progress, move |link| {
            let result = snapshot.export(&file).on_progress(link.callback()).run();
            let synced = file.sync_all();
            if result.is_err() {
                // Half of a stream is of no use; that it cannot be removed is the smaller trouble.
                let _ = std::fs::remove_file(&path);
            }
            let report = result?;
            let action = format!("writing {}", path.display());
            synced.map_err(|source| Error::Io { action, source })?;
            Ok(report)
        })?;
        object!(py, reports.ExportReport, report { documents }, size_bytes: report.bytes)
    }
}

/// Creates a file that only its owner may read, because payloads may be private.
fn create_private(path: &Path) -> std::io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Iterates over documents, or over their keys.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Records {
    records: Arc<Lease<resemblance::Records>>,
    ready: Mutex<VecDeque<Result<resemblance::Record, resemblance::Error>>>,
    schema: Py<Schema>,
    is_of_keys: bool,
    passing: Passing,
    home: Home,
}

#[pymethods]
impl Records {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.passing.callable.as_deref())
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.home.check(py)?;
        let mut next = lock(&self.ready).pop_front();
        if next.is_none() {
            check_unused(py, self.records.used_here())?;
            let read: PyResult<Vec<_>> = released(py, || {
                let together =
                    |all: &mut resemblance::Records| all.by_ref().take(RECORDS_TOGETHER).collect();
                self.records.with(|records| Ok(together(records)))
            });
            let read = self.passing.answer(read)?;
            py.check_signals()?;
            let mut ready = lock(&self.ready);
            ready.extend(read);
            next = ready.pop_front();
        }
        let Some(record) = next.transpose().or_raise(py)? else {
            return Ok(None);
        };
        if self.is_of_keys {
            let key = optional_key(py, record.key())?;
            return Ok(Some(key.unwrap_or_else(|| py.None().into_bound(py))));
        }
        let record = Record::new(py, &record, &self.schema)?;
        Ok(Some(Bound::new(py, record)?.into_any()))
    }
}
