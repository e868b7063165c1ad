//! Snapshots: a store as it was at one moment.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use resemblance::{DocumentId, Error, Family, Nearest};

use crate::answers::{Matches, Record};
use crate::batches::{Batches, sketch};
use crate::errors::{exception, invalid};
use crate::joins::{BY, BoundFields, Clusters, JoinSettings, Pairs};
use crate::keys::{Key, key_object, optional_key};
use crate::maintain::{check_report, stats_object};
use crate::passages::{self, PassageFields, Which};
use crate::python::{choice, fields, object};
use crate::schema::Schema;
use crate::signature;
use crate::waiting::{Home, in_background, lock, released};

/// Documents that are read at once for an iteration.
const RECORDS_TOGETHER: usize = 256;

/// The store at one moment. Later writes do not change it.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Snapshot {
    pub(crate) snapshot: resemblance::Snapshot,
    pub(crate) schema: Py<Schema>,
}

/// What a query is told besides its signature.
#[derive(Clone, Copy, Default)]
pub(crate) struct QueryFields<'a> {
    pub(crate) bounds: BoundFields<'a>,
    pub(crate) limit: Option<usize>,
    pub(crate) payloads: bool,
    pub(crate) scan: bool,
    pub(crate) probe_budget: Option<u64>,
}

/// What a search for the nearest is told besides its signature.
#[derive(Clone, Copy)]
pub(crate) struct NearestFields {
    pub(crate) by: Option<Family>,
    pub(crate) min_recall: Option<f64>,
    pub(crate) scan: bool,
    pub(crate) payloads: bool,
}

impl NearestFields {
    fn set<A>(self, mut nearest: Nearest<'_, A>) -> Nearest<'_, A> {
        if let Some(by) = self.by {
            nearest = nearest.by(by);
        }
        if let Some(probability) = self.min_recall {
            nearest = nearest.min_recall(probability);
        }
        if !self.scan {
            nearest = nearest.without_scan();
        }
        if self.payloads {
            nearest = nearest.with_payloads();
        }
        nearest
    }
}

/// The family of a name.
pub(crate) fn family(py: Python<'_>, by: Option<&str>) -> PyResult<Option<Family>> {
    by.map(|by| choice(py, "by", by, &BY)).transpose()
}

/// A callable of Python's that says how alike documents are, and what it raised.
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
    /// That the call was stopped, if the callable raises.
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

/// The answer, or what the callable that verifies raised.
fn answer<T>(verifier: Option<&Verifier>, result: PyResult<T>) -> PyResult<T> {
    match verifier.and_then(|verifier| lock(&verifier.raised).take()) {
        Some(error) => Err(error),
        None => result,
    }
}

/// Sets what both kinds of queries have.
macro_rules! with_fields {
    ($query:expr, $fields:expr) => {{
        let mut query = $query;
        if let Some(limit) = $fields.limit {
            query = query.limit(limit);
        }
        if $fields.payloads {
            query = query.with_payloads();
        }
        if let Some(budget) = $fields.probe_budget {
            query = query.probe_budget(budget);
        }
        query
    }};
}

/// A text or a signature, as a signature.
pub(crate) fn signature_of(
    py: Python<'_>,
    schema: &Py<Schema>,
    document: &Bound<'_, PyAny>,
) -> PyResult<resemblance::Signature> {
    if let Ok(ready) = document.cast::<signature::Signature>() {
        return Ok(ready.get().signature.clone());
    }
    match document.extract::<&str>() {
        Ok(text) => sketch(py, &schema.get().parts.sketcher, text),
        Err(_) => {
            let found = document.get_type().name()?;
            Err(invalid(py, "document", found, "a str or a Signature"))
        }
    }
}

impl Snapshot {
    pub(crate) fn new(snapshot: resemblance::Snapshot, schema: Py<Schema>) -> Self {
        Self { snapshot, schema }
    }

    pub(crate) fn run_query(
        &self,
        py: Python<'_>,
        document: Option<&Bound<'_, PyAny>>,
        key: Option<Key>,
        fields: QueryFields<'_>,
    ) -> PyResult<Matches> {
        let bounds = fields.bounds.build(py)?;
        let signature = match (document, &key) {
            (Some(document), None) => Some(signature_of(py, &self.schema, document)?),
            (None, Some(_)) => None,
            _ => {
                let found = "both or neither";
                return Err(invalid(py, "document", found, "a document or a key"));
            }
        };
        let ask = |query: resemblance::Query<'_>| {
            let query = with_fields!(query, fields).bounds(bounds);
            if fields.scan {
                query.scan().run()
            } else {
                query.run()
            }
        };
        let found = released(py, || match (&signature, &key) {
            (Some(signature), _) => ask(self.snapshot.query(signature)).map(Some),
            (None, Some(key)) => self.snapshot.query_by_key(&key.0)?.map(ask).transpose(),
            (None, None) => Ok(None),
        })?;
        match (found, key) {
            (Some(found), _) => Ok(Matches(found)),
            (None, key) => Err(no_such_key(py, key)),
        }
    }

    pub(crate) fn run_nearest(
        &self,
        py: Python<'_>,
        document: &Bound<'_, PyAny>,
        n: usize,
        fields: NearestFields,
        verify: Option<Py<PyAny>>,
        run: impl FnOnce(Nearest<'_>) -> resemblance::Result<resemblance::Matches> + Send,
    ) -> PyResult<Matches> {
        let signature = signature_of(py, &self.schema, document)?;
        let verifier = verify.map(Verifier::new);
        let matches = released(py, || {
            let mut nearest = fields.set(self.snapshot.nearest(&signature, n));
            if let Some(verifier) = &verifier {
                nearest = nearest.verify(|id| verifier.ask((id.get(),)));
            }
            run(nearest)
        });
        answer(verifier.as_ref(), matches).map(Matches)
    }

    pub(crate) fn run_nearest_many(
        &self,
        py: Python<'_>,
        documents: &Bound<'_, PyAny>,
        n: usize,
        fields: NearestFields,
        verify: Option<Py<PyAny>>,
    ) -> PyResult<Vec<Matches>> {
        let verifier = verify.map(|callable| Arc::new(Verifier::new(callable)));
        let mut batches = Batches::new(documents, None)?;
        let mut all: Vec<Matches> = Vec::new();
        while let Some(batch) = batches.next()? {
            let signatures = batches.sketch(py, &self.schema.get().parts.sketcher, &batch)?;
            let (snapshot, own, before) = (self.snapshot.clone(), verifier.clone(), all.len());
            // A scan takes long, and Ctrl-C ends it.
            let answers = in_background(py, None, move |_| {
                let mut nearest = fields.set(snapshot.nearest(&signatures, n));
                if let Some(verifier) = &own {
                    nearest = nearest.verify(|index, id| verifier.ask((before + index, id.get())));
                }
                nearest.run()
            });
            let answers = answer(verifier.as_deref(), answers)?;
            all.extend(answers.into_iter().map(Matches));
        }
        Ok(all)
    }

    pub(crate) fn run_query_many(
        &self,
        py: Python<'_>,
        documents: &Bound<'_, PyAny>,
        fields: QueryFields<'_>,
        threads: Option<usize>,
    ) -> PyResult<Vec<Matches>> {
        let bounds = fields.bounds.build(py)?;
        // A sweep through the buckets costs each thread about the same for few and for many.
        let mut batches = Batches::new(documents, threads)?.by_threads();
        let (threads, mut all) = (batches.threads(), Vec::new());
        while let Some(batch) = batches.next()? {
            let signatures = batches.sketch(py, &self.schema.get().parts.sketcher, &batch)?;
            let answers = released(py, || {
                with_fields!(self.snapshot.query(&signatures[..]), fields)
                    .bounds(bounds)
                    .threads(threads)
                    .run()
            })?;
            all.extend(answers.into_iter().map(Matches));
            py.check_signals()?;
        }
        Ok(all)
    }

    pub(crate) fn find(&self, py: Python<'_>, key: &Key) -> PyResult<Option<Record>> {
        let record = released(py, || self.snapshot.get(&key.0))?;
        Ok(record.map(|record| Record::new(record, self.schema.clone_ref(py))))
    }

    pub(crate) fn has(&self, py: Python<'_>, key: &Key) -> PyResult<bool> {
        released(py, || self.snapshot.contains(&key.0))
    }

    pub(crate) fn iterate(&self, py: Python<'_>, prefix: Option<Key>, is_of_keys: bool) -> Records {
        let records = self.snapshot.iter();
        let records = match prefix {
            Some(prefix) => records.key_prefix(prefix.0),
            None => records,
        };
        Records {
            records: Mutex::new(records),
            ready: Mutex::default(),
            schema: self.schema.clone_ref(py),
            is_of_keys,
            home: Home::here(),
        }
    }
}

pub(crate) fn no_such_key(py: Python<'_>, key: Option<Key>) -> PyErr {
    match key.map(|key| key_object(py, &key.0)) {
        Some(Ok(key)) => PyKeyError::new_err(key.unbind()),
        _ => PyKeyError::new_err("no document has this key"),
    }
}

#[pymethods]
impl Snapshot {
    /// The schema of the store.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> Bound<'py, Schema> {
        self.schema.bind(py).clone()
    }

    /// Returns the documents near one, best first.
    #[pyo3(signature = (document=None, /, *, key=None, threshold=None, max_distance=None, by=None,
        limit=None, payloads=false, accept_lower_recall=false, scan=false, probe_budget=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
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
        scan: bool,
        probe_budget: Option<u64>,
    ) -> PyResult<Matches> {
        let bounds = BoundFields {
            threshold,
            max_distance,
            by,
            accept_lower_recall,
        };
        let fields = QueryFields {
            bounds,
            limit,
            payloads,
            scan,
            probe_budget,
        };
        self.run_query(py, document, key, fields)
    }

    /// Returns the documents near each of many.
    #[pyo3(signature = (documents, *, threshold=None, max_distance=None, by=None, limit=None,
        payloads=false, accept_lower_recall=false, probe_budget=None, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
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
        probe_budget: Option<u64>,
        threads: Option<usize>,
    ) -> PyResult<Vec<Matches>> {
        let bounds = BoundFields {
            threshold,
            max_distance,
            by,
            accept_lower_recall,
        };
        let fields = QueryFields {
            bounds,
            limit,
            payloads,
            scan: false,
            probe_budget,
        };
        self.run_query_many(py, documents, fields, threads)
    }

    /// Returns the `n` documents that are nearest to one, however far they are. `recall` of the answer is
    /// the probability that one as near as the last was found, at least `min_recall` unless `scan` is
    /// false. `verify` takes the id of a candidate and returns its exact similarity, which decides, or
    /// `None`: then the estimate decides.
    #[pyo3(signature = (document, n=10, /, *, by=None, min_recall=None, scan=true, payloads=false,
        verify=None))]
    #[allow(clippy::too_many_arguments, reason = "they are named in Python")]
    fn nearest(
        &self,
        py: Python<'_>,
        document: &Bound<'_, PyAny>,
        n: usize,
        by: Option<&str>,
        min_recall: Option<f64>,
        scan: bool,
        payloads: bool,
        verify: Option<Py<PyAny>>,
    ) -> PyResult<Matches> {
        let fields = NearestFields {
            by: family(py, by)?,
            min_recall,
            scan,
            payloads,
        };
        self.run_nearest(py, document, n, fields, verify, |nearest| nearest.run())
    }

    /// Returns the `n` documents that are nearest to each of many: those whose nearest no bucket holds
    /// share one scan. `verify` takes the position of the document that asks as well, before the id.
    #[pyo3(signature = (documents, n=10, /, *, by=None, min_recall=None, scan=true, payloads=false,
        verify=None))]
    #[allow(clippy::too_many_arguments, reason = "they are named in Python")]
    fn nearest_many(
        &self,
        py: Python<'_>,
        documents: &Bound<'_, PyAny>,
        n: usize,
        by: Option<&str>,
        min_recall: Option<f64>,
        scan: bool,
        payloads: bool,
        verify: Option<Py<PyAny>>,
    ) -> PyResult<Vec<Matches>> {
        let fields = NearestFields {
            by: family(py, by)?,
            min_recall,
            scan,
            payloads,
        };
        self.run_nearest_many(py, documents, n, fields, verify)
    }

    /// Returns one document within the distance `factor` * `radius`, or none if there is none within
    /// `radius`: `recall` of the answer is the probability that one at that distance would have been
    /// found. The distance is 1 - similarity, or differing bits for SimHash.
    #[pyo3(signature = (document, radius, factor=1.0, /, *, by=None, min_recall=None, scan=true,
        payloads=false, verify=None))]
    #[allow(clippy::too_many_arguments, reason = "they are named in Python")]
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
        verify: Option<Py<PyAny>>,
    ) -> PyResult<Matches> {
        let fields = NearestFields {
            by: family(py, by)?,
            min_recall,
            scan,
            payloads,
        };
        let within = |nearest: Nearest<'_>| nearest.within(radius, factor);
        self.run_nearest(py, document, 1, fields, verify, within)
    }

    /// Returns the documents that contain one, those that share most first.
    #[pyo3(signature = (document, /, *, min_share=None, min_shared=None, limit=None,
        max_document_frequency=None))]
    fn contained_in<'py>(
        &self,
        py: Python<'py>,
        document: &Bound<'_, PyAny>,
        min_share: Option<f64>,
        min_shared: Option<u32>,
        limit: Option<usize>,
        max_document_frequency: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let fields = PassageFields {
            which: Which::Containing,
            min_share,
            min_shared,
            limit,
            max_document_frequency,
        };
        let signature = signature_of(py, &self.schema, document)?;
        fields.one(py, &self.snapshot, signature)
    }

    /// Returns the documents that contain each of many.
    #[pyo3(signature = (documents, *, min_share=None, min_shared=None, limit=None,
        max_document_frequency=None, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn contained_in_many<'py>(
        &self,
        py: Python<'py>,
        documents: &Bound<'_, PyAny>,
        min_share: Option<f64>,
        min_shared: Option<u32>,
        limit: Option<usize>,
        max_document_frequency: Option<u64>,
        threads: Option<usize>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let fields = PassageFields {
            which: Which::Containing,
            min_share,
            min_shared,
            limit,
            max_document_frequency,
        };
        fields.many(py, (&self.snapshot, &self.schema), documents, threads)
    }

    /// Returns the documents that one contains, those that share most first.
    #[pyo3(signature = (document, /, *, min_share=None, min_shared=None, limit=None,
        max_document_frequency=None))]
    fn contents_of<'py>(
        &self,
        py: Python<'py>,
        document: &Bound<'_, PyAny>,
        min_share: Option<f64>,
        min_shared: Option<u32>,
        limit: Option<usize>,
        max_document_frequency: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let fields = PassageFields {
            which: Which::Contained,
            min_share,
            min_shared,
            limit,
            max_document_frequency,
        };
        let signature = signature_of(py, &self.schema, document)?;
        fields.one(py, &self.snapshot, signature)
    }

    /// Returns the documents that each of many contains.
    #[pyo3(signature = (documents, *, min_share=None, min_shared=None, limit=None,
        max_document_frequency=None, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn contents_of_many<'py>(
        &self,
        py: Python<'py>,
        documents: &Bound<'_, PyAny>,
        min_share: Option<f64>,
        min_shared: Option<u32>,
        limit: Option<usize>,
        max_document_frequency: Option<u64>,
        threads: Option<usize>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let fields = PassageFields {
            which: Which::Contained,
            min_share,
            min_shared,
            limit,
            max_document_frequency,
        };
        fields.many(py, (&self.snapshot, &self.schema), documents, threads)
    }

    /// Returns the documents that share any passage with one, those that share most first.
    #[pyo3(signature = (document, /, *, min_share=None, min_shared=None, limit=None,
        max_document_frequency=None))]
    fn overlaps<'py>(
        &self,
        py: Python<'py>,
        document: &Bound<'_, PyAny>,
        min_share: Option<f64>,
        min_shared: Option<u32>,
        limit: Option<usize>,
        max_document_frequency: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let fields = PassageFields {
            which: Which::Overlapping,
            min_share,
            min_shared,
            limit,
            max_document_frequency,
        };
        let signature = signature_of(py, &self.schema, document)?;
        fields.one(py, &self.snapshot, signature)
    }

    /// Returns the documents that share any passage with each of many.
    #[pyo3(signature = (documents, *, min_share=None, min_shared=None, limit=None,
        max_document_frequency=None, threads=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn overlaps_many<'py>(
        &self,
        py: Python<'py>,
        documents: &Bound<'_, PyAny>,
        min_share: Option<f64>,
        min_shared: Option<u32>,
        limit: Option<usize>,
        max_document_frequency: Option<u64>,
        threads: Option<usize>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let fields = PassageFields {
            which: Which::Overlapping,
            min_share,
            min_shared,
            limit,
            max_document_frequency,
        };
        fields.many(py, (&self.snapshot, &self.schema), documents, threads)
    }

    /// Returns the passages of each of many texts that more than so many documents have.
    #[pyo3(signature = (documents, max_document_frequency, *, threads=None))]
    fn frequent_passages<'py>(
        &self,
        py: Python<'py>,
        documents: &Bound<'_, PyAny>,
        max_document_frequency: u64,
        threads: Option<usize>,
    ) -> PyResult<Vec<Vec<Bound<'py, PyAny>>>> {
        let asked = (&self.snapshot, &self.schema);
        passages::frequent_passages(py, asked, documents, max_document_frequency, threads)
    }

    /// Returns the ids of the documents that share a bucket with one.
    fn candidates(&self, py: Python<'_>, document: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let signature = signature_of(py, &self.schema, document)?;
        let found = released(py, || self.snapshot.candidates(&signature))?;
        Ok(found.into_iter().map(DocumentId::get).collect())
    }

    /// Returns the document with a key, or `None`.
    fn get(&self, py: Python<'_>, key: Key) -> PyResult<Option<Record>> {
        self.find(py, &key)
    }

    /// Returns the document with an id, or `None`.
    fn get_id(&self, py: Python<'_>, id: u64) -> PyResult<Option<Record>> {
        let record = released(py, || self.snapshot.get_id(DocumentId::new(id)))?;
        Ok(record.map(|record| Record::new(record, self.schema.clone_ref(py))))
    }

    fn __getitem__(&self, py: Python<'_>, key: Key) -> PyResult<Record> {
        self.find(py, &key)?
            .ok_or_else(|| no_such_key(py, Some(key)))
    }

    fn __contains__(&self, py: Python<'_>, key: Key) -> PyResult<bool> {
        self.has(py, &key)
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.snapshot.len())?)
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// The keys, in the order in which documents were inserted; `None` for one without.
    fn __iter__(&self, py: Python<'_>) -> Records {
        self.iterate(py, None, true)
    }

    /// Iterates over all documents in the order of their insertion, or over those whose keys begin with
    /// `prefix`.
    #[pyo3(signature = (*, prefix=None))]
    fn records(&self, py: Python<'_>, prefix: Option<Key>) -> Records {
        self.iterate(py, prefix, false)
    }

    /// Iterates over all pairs of documents that are near each other.
    #[pyo3(signature = (*, threshold=None, max_distance=None, by=None, accept_lower_recall=false,
        threads=None, max_bucket=None, keys=true, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    pub(crate) fn pairs(
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
        let bounds = BoundFields {
            threshold,
            max_distance,
            by,
            accept_lower_recall,
        }
        .build(py)?;
        let settings = JoinSettings {
            bounds,
            threads,
            max_bucket,
            features: None,
        };
        Pairs::start(py, self.snapshot.clone(), &settings, keys, progress)
    }

    /// Finds the documents that are linked by near pairs.
    #[pyo3(signature = (*, threshold=None, max_distance=None, by=None, accept_lower_recall=false,
        threads=None, max_bucket=None, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    pub(crate) fn clusters(
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
        let bounds = BoundFields {
            threshold,
            max_distance,
            by,
            accept_lower_recall,
        }
        .build(py)?;
        let settings = JoinSettings {
            bounds,
            threads,
            max_bucket,
            features: None,
        };
        Clusters::find(py, self.snapshot.clone(), settings, progress)
    }

    /// Counts documents, postings, runs and tables.
    #[pyo3(signature = (*, progress=None))]
    pub(crate) fn stats<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let snapshot = self.snapshot.clone();
        let stats = in_background(py, progress, move |told| {
            snapshot.stats().on_progress(told.callback()).run()
        })?;
        stats_object(py, &stats)
    }

    /// Checks all rows and postings.
    #[pyo3(signature = (*, progress=None))]
    pub(crate) fn check<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let snapshot = self.snapshot.clone();
        let report = in_background(py, progress, move |told| {
            snapshot.check().on_progress(told.callback()).run()
        })?;
        check_report(py, &report)
    }

    /// Copies the store, as this snapshot sees it, into a new file.
    #[pyo3(signature = (path, *, progress=None))]
    pub(crate) fn backup<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let snapshot = self.snapshot.clone();
        let report = in_background(py, progress, move |told| {
            snapshot.backup(path).on_progress(told.callback()).run()
        })?;
        let fields = fields!(py,
            documents: report.documents,
            rows: report.rows,
            size_bytes: report.size_bytes,
        );
        object(py, "reports", "BackupReport", &fields)
    }

    /// Writes all documents into a file, which `Store.import_` reads.
    #[pyo3(signature = (path, *, progress=None))]
    pub(crate) fn export<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let snapshot = self.snapshot.clone();
        let file = create_private(&path)?;
        let report = in_background(py, progress, move |told| {
            let result = snapshot.export(&file).on_progress(told.callback()).run();
            let synced = file.sync_all();
            if result.is_err() {
                // Half of a stream is of no use; that it cannot be removed is the smaller trouble.
                let _ = std::fs::remove_file(&path);
            }
            let report = result?;
            let action = format!("writing {}", path.display());
            synced.map_err(|source| resemblance::Error::Io { action, source })?;
            Ok(report)
        })?;
        let fields = fields!(py, documents: report.documents, size_bytes: report.bytes);
        object(py, "reports", "ExportReport", &fields)
    }

    fn __repr__(&self) -> String {
        format!("<resemblance.Snapshot: {} documents>", self.snapshot.len())
    }
}

/// Creates a file that only its owner may read: payloads are nobody else's business.
fn create_private(path: &std::path::Path) -> std::io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Iterates over documents, or over their keys.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Records {
    records: Mutex<resemblance::Records>,
    ready: Mutex<VecDeque<Result<resemblance::Record, resemblance::Error>>>,
    schema: Py<Schema>,
    is_of_keys: bool,
    home: Home,
}

#[pymethods]
impl Records {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.home.check(py)?;
        let mut next = lock(&self.ready).pop_front();
        if next.is_none() {
            let read: Vec<_> = py.detach(|| {
                lock(&self.records)
                    .by_ref()
                    .take(RECORDS_TOGETHER)
                    .collect()
            });
            py.check_signals()?;
            let mut ready = lock(&self.ready);
            ready.extend(read);
            next = ready.pop_front();
        }
        let Some(record) = next else {
            return Ok(None);
        };
        let record = record.map_err(|error| exception(py, &error))?;
        if self.is_of_keys {
            let key = optional_key(py, record.key())?;
            return Ok(Some(key.unwrap_or_else(|| py.None().into_bound(py))));
        }
        let record = Record::new(record, self.schema.clone_ref(py));
        Ok(Some(Bound::new(py, record)?.into_any()))
    }
}
