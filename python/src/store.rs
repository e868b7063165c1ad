//! Stores.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyType;
use resemblance::{DocumentId, EvictPolicy, ExistingKeys, StoreOptions};

use crate::answers::{Novelty, Upserted};
use crate::batches::signature_of;
use crate::corpus::Deduplicator;
use crate::errors::{check_unused, file_error, invalid, invalid_parameter};
use crate::filter::judge;
use crate::keys::Key;
use crate::lease::{Lease, OpenFile};
use crate::progress::Callback;
use crate::python::{Report, choice, class, given, object, optional_number};
use crate::reads::{Reads, Source};
use crate::schema::Schema;
use crate::snapshot::Snapshot;
use crate::tickets::Ticket;
use crate::transaction::{Many, ManyAnswers, NO_PAYLOAD, Transaction, writes};
use crate::waiting::{Handle, Home, WriterGate, await_stopped, in_background, lock, released};

const EXISTING_KEYS: [(&str, ExistingKeys); 4] = [
    ("refuse", ExistingKeys::Refuse),
    ("skip", ExistingKeys::Skip),
    ("replace", ExistingKeys::Replace),
    ("replace-if-newer", ExistingKeys::ReplaceIfNewer),
];

/// A store for near-duplicate search in one file.
#[pyclass(frozen, weakref, extends = Reads, module = "resemblance")]
pub(crate) struct Store {
    handle: Arc<Handle>,
    schema: Py<Schema>,
    /// The path of the file.
    #[pyo3(get)]
    path: PathBuf,
    gate: Arc<WriterGate>,
}

/// Settings of a store.
fn store_options(
    py: Python<'_>,
    cache_bytes: Option<u64>,
    probe_budget: Option<u64>,
    group_wait: Option<f64>,
    sharing: SharingOptions,
) -> PyResult<StoreOptions> {
    let duration = |name, seconds| {
        let wait = Duration::try_from_secs_f64(seconds);
        wait.map_err(|_| invalid(py, name, seconds, "seconds, from 0 on"))
    };
    let SharingOptions {
        wait,
        shared_writers,
        without_lock,
    } = sharing;
    let wait = wait.map(|seconds| duration("wait", seconds)).transpose()?;
    let group_wait = group_wait.map(|seconds| duration("group_wait", seconds));
    let options = given!(StoreOptions::new(), cache_bytes, probe_budget, wait, shared_writers;
        without_lock if without_lock);
    Ok(given!(options, group_wait: group_wait.transpose()?))
}

/// How a store is shared with other processes.
#[derive(Clone, Copy, Default)]
struct SharingOptions {
    /// Seconds to wait for another process.
    wait: Option<f64>,
    shared_writers: Option<bool>,
    without_lock: bool,
}

impl Store {
    /// Opens or creates a store in a separate thread, because recovery after a crash takes long.
    fn start(
        py: Python<'_>,
        path: PathBuf,
        begin: impl FnOnce(&PathBuf) -> resemblance::Result<resemblance::Store> + Send + 'static,
    ) -> PyResult<Py<Self>> {
        await_stopped(py)?;
        let file = path.clone();
        let store = in_background(py, None, move |_| begin(&file))?;
        let schema = Py::new(py, Schema::new(py, store.schema().clone())?)?;
        let handle = Arc::new(Handle {
            store: Mutex::new(Some(store)),
            file: OpenFile::new(&path),
            home: Home::here(),
        });
        let holder: Weak<Handle> = Arc::downgrade(&handle);
        handle.file.note("Store", holder);
        let reads = Reads {
            source: Source::Store(Arc::clone(&handle)),
            schema: schema.clone_ref(py),
            features: None,
        };
        let store = Self {
            handle,
            schema,
            path,
            gate: Arc::default(),
        };
        Py::new(py, PyClassInitializer::from(reads).add_subclass(store))
    }

    /// Makes one durable change.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&resemblance::Store) -> resemblance::Result<T> + Send,
    ) -> PyResult<T> {
        let store = self.handle.get(py)?;
        let _passage = self.gate.pass(py)?;
        released(py, || work(&store))
    }
}

writes!(Store);

#[pymethods]
impl Store {
    /// Creates a store in a new file. If the file exists, raises `AlreadyExistsError`.
    ///
    /// `cache_bytes` limits the memory for parts of the file. `probe_budget` limits the number of
    /// documents with which a query is compared. `group_wait` is the number of seconds for which a
    /// change waits for others to share its sync. With `shared_writers`, several processes can open
    /// the store for writing and take turns. `without_lock` is for file systems without locks.
    #[classmethod]
    #[pyo3(signature = (path, schema, *, cache_bytes=None, probe_budget=None, group_wait=None,
        shared_writers=false, without_lock=false))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn create(
        class: &Bound<'_, PyType>,
        path: PathBuf,
        schema: &Schema,
        cache_bytes: Option<u64>,
        probe_budget: Option<u64>,
        group_wait: Option<f64>,
        shared_writers: bool,
        without_lock: bool,
    ) -> PyResult<Py<Self>> {
        let (py, schema) = (class.py(), schema.parts.schema.clone());
        let sharing = SharingOptions {
            wait: None,
            shared_writers: Some(shared_writers),
            without_lock,
        };
        let options = store_options(py, cache_bytes, probe_budget, group_wait, sharing)?;
        Self::start(py, path, move |path| options.create(path, schema))
    }

    /// Creates a store in memory, for tests and temporary work. `backup` writes it to a file. Its
    /// `path` is `:memory:`, which is not a file.
    #[classmethod]
    #[pyo3(signature = (schema, *, cache_bytes=None, probe_budget=None))]
    fn in_memory(
        class: &Bound<'_, PyType>,
        schema: &Schema,
        cache_bytes: Option<u64>,
        probe_budget: Option<u64>,
    ) -> PyResult<Py<Self>> {
        let (py, schema) = (class.py(), schema.parts.schema.clone());
        let options = store_options(
            py,
            cache_bytes,
            probe_budget,
            None,
            SharingOptions::default(),
        )?;
        Self::start(py, ":memory:".into(), move |_| {
            options.create_in_memory(schema)
        })
    }

    /// Opens an existing store. With `read_only`, it can be opened while another process writes it.
    ///
    /// `wait` is the number of seconds to wait for another process that has the store open for
    /// writing, or that has its turn; then `LockedError` names that process. `shared_writers`
    /// changes whether several processes may take turns, when no other one has the store open. By
    /// default the setting of the store does not change.
    #[classmethod]
    #[pyo3(signature = (path, *, read_only=false, wait=10.0, shared_writers=None, cache_bytes=None, probe_budget=None,
        group_wait=None, without_lock=false))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn open(
        class: &Bound<'_, PyType>,
        path: PathBuf,
        read_only: bool,
        wait: f64,
        shared_writers: Option<bool>,
        cache_bytes: Option<u64>,
        probe_budget: Option<u64>,
        group_wait: Option<f64>,
        without_lock: bool,
    ) -> PyResult<Py<Self>> {
        let py = class.py();
        let sharing = SharingOptions {
            wait: Some(wait),
            shared_writers,
            without_lock,
        };
        let options = store_options(py, cache_bytes, probe_budget, group_wait, sharing)?;
        Self::start(py, path, move |path| match read_only {
            true => options.open_read_only(path),
            false => options.open(path),
        })
    }

    /// Opens the store at a path, or creates it if it does not exist. The settings are those of `open`.
    #[classmethod]
    #[pyo3(signature = (path, schema, *, wait=10.0, shared_writers=None, cache_bytes=None, probe_budget=None,
        group_wait=None, without_lock=false))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn open_or_create(
        class: &Bound<'_, PyType>,
        path: PathBuf,
        schema: &Schema,
        wait: f64,
        shared_writers: Option<bool>,
        cache_bytes: Option<u64>,
        probe_budget: Option<u64>,
        group_wait: Option<f64>,
        without_lock: bool,
    ) -> PyResult<Py<Self>> {
        let (py, schema) = (class.py(), schema.parts.schema.clone());
        let sharing = SharingOptions {
            wait: Some(wait),
            shared_writers,
            without_lock,
        };
        let options = store_options(py, cache_bytes, probe_budget, group_wait, sharing)?;
        Self::start(py, path, move |path| options.open_or_create(path, schema))
    }

    /// Queues `insert_if_new`, and returns a ticket for its answer. If this thread has a
    /// transaction open, for which the change would wait, raises `BusyError`.
    #[pyo3(signature = (key, document, *, payload=NO_PAYLOAD, stamp=0),
        text_signature = "($self, key, document, *, payload=b'', stamp=0)")]
    fn queue_insert_if_new(
        &self,
        py: Python<'_>,
        key: Option<Key>,
        document: &Bound<'_, PyAny>,
        payload: &[u8],
        stamp: u64,
    ) -> PyResult<Ticket> {
        let signature = signature_of(py, &self.schema, document)?;
        let document = crate::transaction::document(key.as_ref(), payload, stamp);
        let store = self.handle.get(py)?;
        self.gate.check(py)?;
        let queued = released(py, || store.queue().insert_if_new(document, &signature));
        queued.map(|ticket| Ticket::new(ticket, &self.gate, Some))
    }

    /// Queues `set_position`, and returns a ticket. The position is durable no earlier than the
    /// documents queued before it, and is set even if one of them is an error. If this thread has a
    /// transaction open, raises `BusyError`.
    fn queue_set_position(
        &self,
        py: Python<'_>,
        name: &str,
        position: Option<&[u8]>,
    ) -> PyResult<Ticket> {
        let store = self.handle.get(py)?;
        self.gate.check(py)?;
        let queued = released(py, || store.queue().set_position(name, position));
        queued.map(|ticket| Ticket::new(ticket, &self.gate, |()| None))
    }

    /// Does the same as `insert_if_new`, for asyncio: the event loop continues while the document
    /// becomes durable. A transaction that is open in the thread of the loop raises `BusyError`.
    #[pyo3(signature = (key, document, *, payload=None, stamp=0))]
    fn insert_if_new_async<'py>(
        slf: &Bound<'py, Self>,
        key: Option<&Bound<'py, PyAny>>,
        document: &Bound<'py, PyAny>,
        payload: Option<&Bound<'py, PyAny>>,
        stamp: u64,
    ) -> Report<'py> {
        let coroutine = class(slf.py(), "_async", "insert_if_new")?;
        coroutine.call1((slf, key, document, payload, stamp))
    }

    /// Does the same as `queue_set_position`, for asyncio. Each `insert_if_new_async` that was
    /// awaited or made a task before is queued first, even while the queue is full.
    fn set_position_async<'py>(
        slf: &Bound<'py, Self>,
        name: &str,
        position: Option<&Bound<'py, PyAny>>,
    ) -> Report<'py> {
        let coroutine = class(slf.py(), "_async", "set_position")?;
        coroutine.call1((slf, name, position))
    }

    /// Inserts many documents in one transaction, or in one for each `commit_every` of them. This
    /// is much faster than one by one. `threads` is the number of threads that sketch them, by
    /// default one for each core.
    ///
    /// `documents` are texts or signatures: a list, another iterable, or a column with Arrow's
    /// interface. `keys`, `payloads` and `stamps` have one entry for each document. Returns the
    /// ids. With `if_new`, returns a `Novelty` for each, and does not insert documents near a
    /// stored document or near an earlier one of the same call. `position` is a name and bytes, which
    /// the last commit sets as `set_position` does.
    #[pyo3(signature = (documents, keys=None, *, payloads=None, stamps=None, if_new=false,
        threads=None, commit_every=None, position=None))]
    fn insert_many<'py>(
        &self,
        py: Python<'py>,
        documents: &Bound<'py, PyAny>,
        keys: Option<&Bound<'py, PyAny>>,
        payloads: Option<&Bound<'py, PyAny>>,
        stamps: Option<&Bound<'py, PyAny>>,
        if_new: bool,
        threads: Option<usize>,
        commit_every: Option<i64>,
        position: Option<(PyBackedStr, PyBackedBytes)>,
    ) -> PyResult<ManyAnswers> {
        if let Some(every) = commit_every.filter(|every| *every < 1) {
            return Err(invalid(py, "commit_every", every, "1 or more documents"));
        }
        let commit_every = optional_number::<usize>(py, "commit_every", commit_every)?;
        let many = Many::new(documents, keys, payloads, stamps, threads)?;
        let store = self.handle.get(py)?;
        let mut answers = ManyAnswers::new(if_new);
        let _passage = self.gate.begin(py)?;
        let mut transaction = Some(released(py, || store.begin_write())?);
        let mut committed = 0;
        many.for_each(py, self.schema.get(), |documents| {
            let mut rest = documents;
            while let Some(open) = transaction.as_mut().filter(|_| !rest.is_empty()) {
                let full = commit_every.map(|every| every + committed - answers.len());
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
        if let Some(mut last) = transaction {
            released(py, || {
                if let Some((name, position)) = &position {
                    last.set_position(name, Some(position))?;
                }
                last.commit()
            })?;
        }
        Ok(answers)
    }

    /// Begins a write transaction. Waits until the transaction of another thread has ended. Its
    /// changes become visible and durable together, with `commit` or at the end of a `with` block.
    /// An exception in the block rolls them back.
    fn transaction(&self, py: Python<'_>) -> PyResult<Transaction> {
        let store = self.handle.get(py)?;
        let passage = self.gate.begin(py)?;
        let transaction = released(py, || store.begin_write())?;
        let schema = self.schema.clone_ref(py);
        Ok(Transaction::new(
            &self.handle.file,
            transaction,
            passage,
            schema,
        ))
    }

    /// Takes a snapshot, which reads the store as it is now. Later writes do not change it, and it
    /// does not wait for them. The space of documents that are removed later is not reused until
    /// the snapshot or the store is closed.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Py<Snapshot>> {
        let store = self.handle.get(py)?;
        let snapshot = released(py, || store.snapshot())?;
        let lease = Lease::new(&self.handle.file, snapshot);
        Snapshot::bound(self.schema.bind(py), lease, None)
    }

    /// Decides which documents of a stream are near no document of this store and no document kept
    /// before. It writes nothing to the store, which has no other writer until the deduplicator is
    /// closed.
    fn deduplicator(&self, py: Python<'_>) -> PyResult<Deduplicator> {
        let store = self.handle.get(py)?;
        let passage = self.gate.begin(py)?;
        let deduplicator = released(py, || {
            resemblance_corpus::dedup::Deduplicator::in_store(&store)
        })?;
        let schema = self.schema.clone_ref(py);
        let file = &self.handle.file;
        Ok(Deduplicator::new(file, deduplicator, Some(passage), schema))
    }

    /// Removes documents by their stamps, by their number, or by the decision of a callable.
    ///
    /// Pass one of three parameters. `older_than` removes documents with a smaller stamp.
    /// `keep_newest` removes all but that number of documents with the greatest stamps. `matching`
    /// is a callable that receives a `StoredDocument` and returns true to remove it. It is called
    /// again for each document that it selected, just before that is removed, and the second answer
    /// counts. An exception that it raises ends the call: documents removed before are not restored,
    /// and no other is removed. It may change single documents; a transaction, `insert_many` and
    /// `deduplicator` raise `BusyError` in it. `dry_run` only counts the documents, and asks once for each.
    #[pyo3(signature = (*, older_than=None, keep_newest=None, matching=None, dry_run=false,
        progress=None))]
    fn evict<'py>(
        &self,
        py: Python<'py>,
        older_than: Option<u64>,
        keep_newest: Option<u64>,
        matching: Option<Py<PyAny>>,
        dry_run: bool,
        progress: Callback,
    ) -> Report<'py> {
        let store = self.handle.get(py)?;
        let _passage = self.gate.pass(py)?;
        let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
        let (own, gate) = (Arc::clone(&raised), Arc::clone(&self.gate));
        let result = in_background(py, progress, move |link| {
            let _part = gate.take_part();
            let policy = match (older_than, keep_newest, matching) {
                (Some(stamp), None, None) => EvictPolicy::OlderThan(stamp),
                (None, Some(documents), None) => EvictPolicy::KeepNewest(documents),
                (None, None, Some(callable)) => {
                    let stop = link.stop.clone();
                    EvictPolicy::matching(move |document| {
                        // After an exception the rest of the batch must stay.
                        if stop.is_set() {
                            return false;
                        }
                        let judged = Python::attach(|py| judge(py, &callable, document));
                        judged.unwrap_or_else(|error| {
                            *lock(&own) = Some(error);
                            stop.set();
                            false
                        })
                    })
                }
                (stamp, documents, callable) => {
                    let given = [stamp.is_some(), documents.is_some(), callable.is_some()];
                    let found = format!("{} of them", given.iter().filter(|is| **is).count());
                    let expected = "older_than, keep_newest or matching, one of them";
                    return Err(invalid_parameter("policy", found, expected));
                }
            };
            let evict = store.evict(policy).dry_run(dry_run);
            evict.on_progress(link.callback()).run()
        });
        if let Some(error) = lock(&raised).take() {
            return Err(error);
        }
        let report = result?;
        object! { py, reports.EvictReport, report { examined, evicted, spared } }
    }

    /// Inserts the documents of a file that `export` wrote.
    ///
    /// `existing_keys` determines what happens to a document whose key exists: `"refuse"` ends the
    /// import with an error, `"skip"` keeps the old document, `"replace"` keeps the new one, and
    /// `"replace-if-newer"` keeps the one with the greater stamp. With `if_new`, near-duplicates of
    /// stored documents are left out.
    #[pyo3(signature = (path, *, existing_keys="refuse", if_new=false, progress=None))]
    fn import_<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        existing_keys: &str,
        if_new: bool,
        progress: Callback,
    ) -> Report<'py> {
        let rule = choice(py, "existing_keys", existing_keys, &EXISTING_KEYS)?;
        let store = self.handle.get(py)?;
        let file = std::fs::File::open(&path).map_err(|e| file_error(py, &path, e))?;
        let _passage = self.gate.pass(py)?;
        let report = in_background(py, progress, move |link| {
            let import = store.import(file).existing_keys(rule).if_new(if_new);
            import.on_progress(link.callback()).run()
        })?;
        object! { py, reports.ImportReport, report { read, inserted, replaced, skipped, near_duplicates } }
    }

    /// Waits for queued changes, and closes the file. Closes its snapshots and iterators, and rolls
    /// back an open transaction. A call in another thread keeps the file open until it ends.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.home.check(py)?;
        check_unused(py, self.handle.file.used_here())?;
        if let Some(store) = py.detach(|| lock(&self.handle.store).take()) {
            let file = &self.handle.file;
            let _ = released(py, || {
                file.take_back();
                store.close()
            })?;
            await_stopped(py)?;
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
        let expected = "its schema, or its path: each process opens a store by itself";
        Err(invalid(py, "store", "pickling", expected))
    }

    fn __repr__(&self) -> String {
        format!("<resemblance.Store: {}>", self.path.display())
    }
}
