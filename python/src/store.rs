//! Stores.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};
use resemblance::{DocumentId, EvictPolicy, ExistingKeys, StoreOptions};

use crate::answers::{Matches, Novelty, Record, Upserted};
use crate::corpus::Deduplicator;
use crate::errors::invalid;
use crate::joins::{BoundFields, Clusters, Pairs};
use crate::keys::{Key, optional_key};
use crate::python::{choice, class, fields, object};
use crate::schema::Schema;
use crate::snapshot::{
    NearestFields, QueryFields, Records, Snapshot, family, no_such_key, signature_of,
};
use crate::tickets::Ticket;
use crate::transaction::{DocumentFields, ManyAnswers, ManyFields, NO_PAYLOAD, Transaction};
use crate::waiting::{Home, WriterGate, closed, in_background, lock, released, settle};

const EXISTING_KEYS: [(&str, ExistingKeys); 4] = [
    ("refuse", ExistingKeys::Refuse),
    ("skip", ExistingKeys::Skip),
    ("replace", ExistingKeys::Replace),
    ("replace-if-newer", ExistingKeys::ReplaceIfNewer),
];

/// A store for near-duplicate search in one file.
#[pyclass(frozen, weakref, module = "resemblance")]
pub(crate) struct Store {
    store: Mutex<Option<resemblance::Store>>,
    schema: Py<Schema>,
    path: PathBuf,
    gate: Arc<WriterGate>,
    home: Home,
}

/// Settings of a store, by the names that they have in Python.
#[derive(Default)]
pub(crate) struct OptionFields {
    pub(crate) cache_bytes: Option<u64>,
    pub(crate) probe_budget: Option<u64>,
    pub(crate) group_wait: Option<f64>,
    pub(crate) without_lock: bool,
}

impl OptionFields {
    pub(crate) fn build(&self, py: Python<'_>) -> PyResult<StoreOptions> {
        let mut options = StoreOptions::new();
        if let Some(bytes) = self.cache_bytes {
            options = options.cache_bytes(bytes);
        }
        if let Some(documents) = self.probe_budget {
            options = options.probe_budget(documents);
        }
        if let Some(seconds) = self.group_wait {
            let wait = Duration::try_from_secs_f64(seconds);
            let wait =
                wait.map_err(|_| invalid(py, "group_wait", seconds, "seconds, from 0 on"))?;
            options = options.group_wait(wait);
        }
        if self.without_lock {
            options = options.without_lock();
        }
        Ok(options)
    }
}

impl Store {
    fn wrap(py: Python<'_>, path: PathBuf, store: resemblance::Store) -> PyResult<Self> {
        let schema = Py::new(py, Schema::new(py, store.schema().clone())?)?;
        Ok(Self {
            store: Mutex::new(Some(store)),
            schema,
            path,
            gate: Arc::default(),
            home: Home::here(),
        })
    }

    /// Opens or creates in a thread of its own: a repair after a crash takes long.
    fn start(
        py: Python<'_>,
        path: PathBuf,
        begin: impl FnOnce(&PathBuf) -> resemblance::Result<resemblance::Store> + Send + 'static,
    ) -> PyResult<Self> {
        settle(py)?;
        let (store, path) = in_background(py, None, move |_| Ok((begin(&path)?, path)))?;
        Self::wrap(py, path, store)
    }

    /// Another handle of the store.
    fn handle(&self, py: Python<'_>) -> PyResult<resemblance::Store> {
        self.home.check(py)?;
        let store = py.detach(|| lock(&self.store).clone());
        store.ok_or_else(|| closed(py, "the store"))
    }

    fn reader(&self, py: Python<'_>) -> PyResult<Snapshot> {
        let store = self.handle(py)?;
        let snapshot = released(py, || store.snapshot())?;
        Ok(Snapshot::new(snapshot, self.schema.clone_ref(py)))
    }

    /// Makes one durable change.
    fn write<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&resemblance::Store) -> resemblance::Result<T> + Send,
    ) -> PyResult<T> {
        let store = self.handle(py)?;
        let _passage = self.gate.pass(py)?;
        released(py, || work(&store))
    }
}

#[pymethods]
impl Store {
    /// Creates a store.
    #[classmethod]
    #[pyo3(signature = (path, schema, *, cache_bytes=None, probe_budget=None, group_wait=None,
        without_lock=false))]
    fn create(
        class: &Bound<'_, PyType>,
        path: PathBuf,
        schema: &Schema,
        cache_bytes: Option<u64>,
        probe_budget: Option<u64>,
        group_wait: Option<f64>,
        without_lock: bool,
    ) -> PyResult<Self> {
        let fields = OptionFields {
            cache_bytes,
            probe_budget,
            group_wait,
            without_lock,
        };
        let (options, schema) = (fields.build(class.py())?, schema.parts.schema.clone());
        Self::start(class.py(), path, move |path| options.create(path, schema))
    }

    /// Opens a store. Never creates one.
    #[classmethod]
    #[pyo3(signature = (path, *, read_only=false, cache_bytes=None, probe_budget=None,
        group_wait=None, without_lock=false))]
    fn open(
        class: &Bound<'_, PyType>,
        path: PathBuf,
        read_only: bool,
        cache_bytes: Option<u64>,
        probe_budget: Option<u64>,
        group_wait: Option<f64>,
        without_lock: bool,
    ) -> PyResult<Self> {
        let fields = OptionFields {
            cache_bytes,
            probe_budget,
            group_wait,
            without_lock,
        };
        let options = fields.build(class.py())?;
        Self::start(class.py(), path, move |path| {
            if read_only {
                options.open_read_only(path)
            } else {
                options.open(path)
            }
        })
    }

    /// Opens the store at a path, or creates it if there is none.
    #[classmethod]
    #[pyo3(signature = (path, schema, *, cache_bytes=None, probe_budget=None, group_wait=None,
        without_lock=false))]
    fn open_or_create(
        class: &Bound<'_, PyType>,
        path: PathBuf,
        schema: &Schema,
        cache_bytes: Option<u64>,
        probe_budget: Option<u64>,
        group_wait: Option<f64>,
        without_lock: bool,
    ) -> PyResult<Self> {
        let fields = OptionFields {
            cache_bytes,
            probe_budget,
            group_wait,
            without_lock,
        };
        let (options, schema) = (fields.build(class.py())?, schema.parts.schema.clone());
        Self::start(class.py(), path, move |path| {
            options.open_or_create(path, schema)
        })
    }

    /// The schema of the store.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> Bound<'py, Schema> {
        self.schema.bind(py).clone()
    }

    /// The path of the file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Inserts a document under a key that must be free, and returns its id.
    #[pyo3(signature = (key, document, *, payload=NO_PAYLOAD, stamp=0))]
    fn insert(
        &self,
        py: Python<'_>,
        key: Option<Key>,
        document: &Bound<'_, PyAny>,
        payload: &[u8],
        stamp: u64,
    ) -> PyResult<u64> {
        let signature = signature_of(py, &self.schema, document)?;
        let fields = DocumentFields {
            key,
            payload,
            stamp,
        };
        let id = self.write(py, |store| store.insert(fields.build(), &signature))?;
        Ok(id.get())
    }

    /// Inserts a document unless its key or a near-duplicate is there, in one durable step.
    #[pyo3(signature = (key, document, *, payload=NO_PAYLOAD, stamp=0))]
    fn insert_if_new(
        &self,
        py: Python<'_>,
        key: Option<Key>,
        document: &Bound<'_, PyAny>,
        payload: &[u8],
        stamp: u64,
    ) -> PyResult<Novelty> {
        let signature = signature_of(py, &self.schema, document)?;
        let fields = DocumentFields {
            key,
            payload,
            stamp,
        };
        self.write(py, |store| store.insert_if_new(fields.build(), &signature))
            .map(Novelty)
    }

    /// Queues `insert_if_new`, and returns a ticket for its answer.
    #[pyo3(signature = (key, document, *, payload=NO_PAYLOAD, stamp=0))]
    fn queue_insert_if_new(
        &self,
        py: Python<'_>,
        key: Option<Key>,
        document: &Bound<'_, PyAny>,
        payload: &[u8],
        stamp: u64,
    ) -> PyResult<Ticket> {
        let signature = signature_of(py, &self.schema, document)?;
        let fields = DocumentFields {
            key,
            payload,
            stamp,
        };
        let store = self.handle(py)?;
        let queued = released(py, || {
            store.queue().insert_if_new(fields.build(), &signature)
        });
        queued.map(Ticket::new)
    }

    /// `insert_if_new` for asyncio: the loop runs on while the document becomes durable.
    #[pyo3(signature = (key, document, *, payload=None, stamp=0))]
    fn insert_if_new_async<'py>(
        slf: &Bound<'py, Self>,
        key: Option<&Bound<'py, PyAny>>,
        document: &Bound<'py, PyAny>,
        payload: Option<&Bound<'py, PyAny>>,
        stamp: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let coroutine = class(slf.py(), "_async", "insert_if_new")?;
        coroutine.call1((slf, key, document, payload, stamp))
    }

    /// Inserts a document in place of the one with its key, if there is one.
    #[pyo3(signature = (key, document, *, payload=NO_PAYLOAD, stamp=0))]
    fn upsert(
        &self,
        py: Python<'_>,
        key: Option<Key>,
        document: &Bound<'_, PyAny>,
        payload: &[u8],
        stamp: u64,
    ) -> PyResult<Upserted> {
        let signature = signature_of(py, &self.schema, document)?;
        let fields = DocumentFields {
            key,
            payload,
            stamp,
        };
        self.write(py, |store| store.upsert(fields.build(), &signature))
            .map(Upserted)
    }

    /// Inserts many documents in one transaction, or in one for each `commit_every` of them.
    #[pyo3(signature = (documents, keys=None, *, payloads=None, stamps=None, if_new=false,
        threads=None, commit_every=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn insert_many<'py>(
        &self,
        py: Python<'py>,
        documents: &Bound<'py, PyAny>,
        keys: Option<&Bound<'py, PyAny>>,
        payloads: Option<&Bound<'py, PyAny>>,
        stamps: Option<&Bound<'py, PyAny>>,
        if_new: bool,
        threads: Option<usize>,
        commit_every: Option<NonZeroUsize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut many = ManyFields::new(documents, keys, payloads, stamps, threads)?;
        let store = self.handle(py)?;
        let mut answers = ManyAnswers::new(if_new);
        let _passage = self.gate.begin(py)?;
        let mut transaction = Some(released(py, || store.begin_write())?);
        let mut committed = 0;
        many.for_each(py, self.schema.get(), |batch| {
            let documents = batch.documents();
            let mut rest = documents.as_slice();
            while let Some(open) = transaction.as_mut().filter(|_| !rest.is_empty()) {
                let full = commit_every.map(|every| every.get() + committed - answers.len());
                let (part, later) =
                    rest.split_at(full.map_or(rest.len(), |room| room.min(rest.len())));
                answers.insert(open, part)?;
                rest = later;
                if full == Some(part.len())
                    && let Some(full) = transaction.take()
                {
                    full.commit()?;
                    transaction = Some(store.begin_write()?);
                    committed = answers.len();
                }
            }
            Ok(())
        })?;
        if let Some(last) = transaction {
            released(py, || last.commit())?;
        }
        answers.into_list(py)
    }

    /// Removes the document with a key, and returns its id.
    fn remove(&self, py: Python<'_>, key: Key) -> PyResult<u64> {
        let id = self.write(py, |store| store.remove(&key.0))?;
        id.map(DocumentId::get)
            .ok_or_else(|| no_such_key(py, Some(key)))
    }

    /// Removes the document with a key if there is one, and returns whether there was.
    fn discard(&self, py: Python<'_>, key: Key) -> PyResult<bool> {
        Ok(self.write(py, |store| store.remove(&key.0))?.is_some())
    }

    /// Gives the document with a key another stamp, and returns its id.
    fn touch(&self, py: Python<'_>, key: Key, stamp: u64) -> PyResult<u64> {
        let id = self.write(py, |store| store.touch(&key.0, stamp))?;
        id.map(DocumentId::get)
            .ok_or_else(|| no_such_key(py, Some(key)))
    }

    /// Begins a write transaction, after waiting for the one that another thread has open.
    fn transaction(&self, py: Python<'_>) -> PyResult<Transaction> {
        let store = self.handle(py)?;
        let passage = self.gate.begin(py)?;
        let transaction = released(py, || store.begin_write())?;
        Ok(Transaction::new(
            transaction,
            passage,
            self.schema.clone_ref(py),
        ))
    }

    /// Takes a snapshot: the store as it is now, for reading.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        self.reader(py)
    }

    /// Decides which documents of a stream are near none of this store and none that was kept before.
    fn deduplicator(&self, py: Python<'_>) -> PyResult<Deduplicator> {
        let store = self.handle(py)?;
        let passage = self.gate.begin(py)?;
        let deduplicator = released(py, || store.deduplicator())?;
        Ok(Deduplicator::new(
            deduplicator,
            Some(passage),
            self.schema.clone_ref(py),
        ))
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
        self.reader(py)?.run_query(py, document, key, fields)
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
        self.reader(py)?
            .run_query_many(py, documents, fields, threads)
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
        self.reader(py)?
            .run_nearest(py, document, n, fields, verify, |nearest| nearest.run())
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
        self.reader(py)?
            .run_nearest_many(py, documents, n, fields, verify)
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
        let within = |nearest: resemblance::Nearest<'_>| nearest.within(radius, factor);
        self.reader(py)?
            .run_nearest(py, document, 1, fields, verify, within)
    }

    /// Returns the document with a key, or `None`.
    fn get(&self, py: Python<'_>, key: Key) -> PyResult<Option<Record>> {
        self.reader(py)?.find(py, &key)
    }

    fn __getitem__(&self, py: Python<'_>, key: Key) -> PyResult<Record> {
        self.reader(py)?
            .find(py, &key)?
            .ok_or_else(|| no_such_key(py, Some(key)))
    }

    fn __contains__(&self, py: Python<'_>, key: Key) -> PyResult<bool> {
        self.reader(py)?.has(py, &key)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(usize::try_from(self.reader(py)?.snapshot.len())?)
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// The keys, in the order in which documents were inserted; `None` for one without.
    fn __iter__(&self, py: Python<'_>) -> PyResult<Records> {
        Ok(self.reader(py)?.iterate(py, None, true))
    }

    /// Iterates over all documents in the order of their insertion, or over those whose keys begin with
    /// `prefix`.
    #[pyo3(signature = (*, prefix=None))]
    fn records(&self, py: Python<'_>, prefix: Option<Key>) -> PyResult<Records> {
        Ok(self.reader(py)?.iterate(py, prefix, false))
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
        let reader = self.reader(py)?;
        reader.pairs(
            py,
            threshold,
            max_distance,
            by,
            accept_lower_recall,
            threads,
            max_bucket,
            keys,
            progress,
        )
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
        let reader = self.reader(py)?;
        let lower = accept_lower_recall;
        reader.clusters(
            py,
            threshold,
            max_distance,
            by,
            lower,
            threads,
            max_bucket,
            progress,
        )
    }

    /// Removes documents by their stamps, by their number, or as a callable says.
    #[pyo3(signature = (*, older_than=None, keep_newest=None, matching=None, dry_run=false,
        progress=None))]
    fn evict<'py>(
        &self,
        py: Python<'py>,
        older_than: Option<u64>,
        keep_newest: Option<u64>,
        matching: Option<Py<PyAny>>,
        dry_run: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = usize::from(older_than.is_some())
            + usize::from(keep_newest.is_some())
            + usize::from(matching.is_some());
        if given != 1 {
            let expected = "older_than, keep_newest or matching, one of them";
            return Err(invalid(py, "policy", format!("{given} of them"), expected));
        }
        let store = self.handle(py)?;
        let _passage = self.gate.pass(py)?;
        let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
        let own = Arc::clone(&raised);
        let result = in_background(py, progress, move |told| {
            let policy = match (older_than, keep_newest, matching) {
                (Some(stamp), _, _) => EvictPolicy::OlderThan(stamp),
                (_, Some(documents), _) => EvictPolicy::KeepNewest(documents),
                (_, _, matching) => {
                    let stop = told.stop.clone();
                    EvictPolicy::matching(move |document| {
                        let judged = Python::attach(|py| judge(py, matching.as_ref(), document));
                        judged.unwrap_or_else(|error| {
                            *lock(&own) = Some(error);
                            stop.set();
                            false
                        })
                    })
                }
            };
            store
                .evict(policy)
                .dry_run(dry_run)
                .on_progress(told.callback())
                .run()
        });
        if let Some(error) = lock(&raised).take() {
            return Err(error);
        }
        let report = result?;
        let fields = fields!(py,
            examined: report.examined,
            evicted: report.evicted,
            spared: report.spared,
        );
        object(py, "reports", "EvictReport", &fields)
    }

    /// Counts documents, postings, runs and tables.
    #[pyo3(signature = (*, progress=None))]
    fn stats<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.reader(py)?.stats(py, progress)
    }

    /// Checks all rows and postings while the store is open; `resemblance.check` checks a closed file, its
    /// pages included.
    #[pyo3(signature = (*, progress=None))]
    fn check<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.reader(py)?.check(py, progress)
    }

    /// Copies the store into a new file, while it is in use.
    #[pyo3(signature = (path, *, progress=None))]
    fn backup<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.reader(py)?.backup(py, path, progress)
    }

    /// Writes all documents into a file, which `import_` reads.
    #[pyo3(signature = (path, *, progress=None))]
    fn export<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.reader(py)?.export(py, path, progress)
    }

    /// Inserts the documents of a file that `export` wrote.
    #[pyo3(signature = (path, *, existing_keys="refuse", if_new=false, progress=None))]
    fn import_<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        existing_keys: &str,
        if_new: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rule = choice(py, "existing_keys", existing_keys, &EXISTING_KEYS)?;
        let store = self.handle(py)?;
        let file = std::fs::File::open(path)?;
        let _passage = self.gate.pass(py)?;
        let report = in_background(py, progress, move |told| {
            let import = store.import(file).existing_keys(rule).if_new(if_new);
            import.on_progress(told.callback()).run()
        })?;
        let fields = fields!(py,
            read: report.read,
            inserted: report.inserted,
            replaced: report.replaced,
            skipped: report.skipped,
            near_duplicates: report.near_duplicates,
        );
        object(py, "reports", "ImportReport", &fields)
    }

    /// Waits for queued changes, and closes the file unless a snapshot or a transaction keeps it open.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.home.check(py)?;
        if let Some(store) = py.detach(|| lock(&self.store).take()) {
            // A snapshot or a transaction may keep the file open: Python drops them when it likes.
            let _ = released(py, || store.close())?;
        }
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.close(py)?;
        Ok(false)
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<()> {
        let expected =
            "its schema, or its path: each process opens a store by itself, one at a time";
        Err(invalid(py, "store", "pickling", expected))
    }

    fn __repr__(&self) -> String {
        format!("<resemblance.Store: {}>", self.path.display())
    }
}

impl Drop for Store {
    /// The last handle waits for queued changes, and these may wait for the interpreter: a ticket calls
    /// a callable of Python's.
    fn drop(&mut self) {
        let store = self.store.get_mut().map(Option::take);
        let store = store.unwrap_or_else(|poisoned| poisoned.into_inner().take());
        // While the interpreter ends there is nobody to wait for.
        let _ = Python::try_attach(|py| py.detach(|| drop(store)));
    }
}

/// What a callable of Python's says about a stored document.
fn judge(
    py: Python<'_>,
    callable: Option<&Py<PyAny>>,
    document: &resemblance::StoredDocument<'_>,
) -> PyResult<bool> {
    let fields = fields!(py,
        id: document.id().get(),
        key: optional_key(py, document.key())?,
        stamp: document.stamp(),
        payload: pyo3::types::PyBytes::new(py, document.payload()),
    );
    let document = object(py, "reports", "StoredDocument", &fields)?;
    match callable {
        Some(callable) => callable.call1(py, (document,))?.is_truthy(py),
        None => Ok(false),
    }
}
