//! Write transactions, and inserting many documents at once.

use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;
use pyo3::types::PyList;
use resemblance::{Document, DocumentId, WriteTransaction};

use crate::answers::{Matches, Novelty, Record, Upserted};
use crate::batches::{Batches, Beside};
use crate::errors::{OrRaise, invalid};
use crate::joins::BoundFields;
use crate::keys::Key;
use crate::schema::Schema;
use crate::snapshot::{no_such_key, signature_of};
use crate::waiting::{Home, Passage, closed, lock, released};

/// Changes that become visible and durable together.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Transaction {
    open: Mutex<Option<OpenTransaction>>,
    schema: Py<Schema>,
    home: Home,
}

/// The transaction goes before its passage: the next one may begin then.
struct OpenTransaction {
    transaction: WriteTransaction,
    _passage: Passage,
}

/// The payload of a document without one.
pub(crate) const NO_PAYLOAD: &[u8] = &[];

/// Key, payload and stamp of one document.
pub(crate) struct DocumentFields<'a> {
    pub(crate) key: Option<Key>,
    pub(crate) payload: &'a [u8],
    pub(crate) stamp: u64,
}

impl DocumentFields<'_> {
    pub(crate) fn build(&self) -> Document<'_> {
        let document = match &self.key {
            Some(key) => Document::new(&key.0),
            None => Document::without_key(),
        };
        document.payload(self.payload).stamp(self.stamp)
    }
}

/// Many documents, and what stands beside them.
pub(crate) struct ManyFields<'py> {
    batches: Batches<'py>,
    keys: Beside<'py, Key>,
    payloads: Beside<'py, Vec<u8>>,
    stamps: Beside<'py, u64>,
}

/// Some of them: their signatures, and what stands beside each.
pub(crate) struct ManyBatch {
    signatures: Vec<resemblance::Signature>,
    keys: Option<Vec<Key>>,
    payloads: Option<Vec<Vec<u8>>>,
    stamps: Option<Vec<u64>>,
}

impl<'py> ManyFields<'py> {
    pub(crate) fn new(
        documents: &Bound<'py, PyAny>,
        keys: Option<&Bound<'py, PyAny>>,
        payloads: Option<&Bound<'py, PyAny>>,
        stamps: Option<&Bound<'py, PyAny>>,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        Ok(Self {
            batches: Batches::new(documents, threads)?,
            keys: Beside::keys(keys)?,
            payloads: Beside::values("payloads", payloads)?,
            stamps: Beside::values("stamps", stamps)?,
        })
    }

    /// Works on batch after batch without the interpreter.
    pub(crate) fn for_each(
        &mut self,
        py: Python<'py>,
        schema: &Schema,
        mut work: impl FnMut(&ManyBatch) -> Result<(), resemblance::Error> + Send,
    ) -> PyResult<()> {
        while let Some(batch) = self.next(py, schema)? {
            released(py, || work(&batch))?;
        }
        Ok(())
    }

    /// Sketches the next documents, `None` after the last.
    fn next(&mut self, py: Python<'py>, schema: &Schema) -> PyResult<Option<ManyBatch>> {
        py.check_signals()?;
        let Some(batch) = self.batches.next()? else {
            self.keys.end(py)?;
            self.payloads.end(py)?;
            self.stamps.end(py)?;
            return Ok(None);
        };
        let count = batch.len();
        Ok(Some(ManyBatch {
            signatures: self.batches.sketch(py, &schema.parts.sketcher, &batch)?,
            keys: self.keys.next(py, count)?,
            payloads: self.payloads.next(py, count)?,
            stamps: self.stamps.next(py, count)?,
        }))
    }
}

impl ManyBatch {
    /// The documents, each with its signature.
    pub(crate) fn documents(&self) -> Vec<(Document<'_>, &resemblance::Signature)> {
        let documents = self
            .signatures
            .iter()
            .enumerate()
            .map(|(index, signature)| {
                let key = self.keys.as_ref().and_then(|keys| keys.get(index));
                let mut document =
                    key.map_or_else(Document::without_key, |key| Document::new(&key.0));
                if let Some(payload) = self.payloads.as_ref().and_then(|all| all.get(index)) {
                    document = document.payload(payload);
                }
                if let Some(stamp) = self.stamps.as_ref().and_then(|all| all.get(index)) {
                    document = document.stamp(*stamp);
                }
                (document, signature)
            });
        documents.collect()
    }
}

/// The answers for many documents: novelties, or ids.
pub(crate) enum ManyAnswers {
    Novelties(Vec<resemblance::Novelty>),
    Ids(Vec<DocumentId>),
}

impl ManyAnswers {
    pub(crate) fn new(if_new: bool) -> Self {
        if if_new {
            Self::Novelties(Vec::new())
        } else {
            Self::Ids(Vec::new())
        }
    }

    /// Inserts documents.
    pub(crate) fn insert(
        &mut self,
        transaction: &mut WriteTransaction,
        documents: &[(Document<'_>, &resemblance::Signature)],
    ) -> Result<(), resemblance::Error> {
        match self {
            Self::Novelties(all) => all.extend(transaction.insert_many(documents).if_new().run()?),
            Self::Ids(all) => all.extend(transaction.insert_many(documents).run()?),
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Novelties(all) => all.len(),
            Self::Ids(all) => all.len(),
        }
    }

    pub(crate) fn into_list(self, py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
        match self {
            Self::Ids(all) => PyList::new(py, all.into_iter().map(DocumentId::get)),
            Self::Novelties(all) => {
                let all = all
                    .into_iter()
                    .map(|novelty| Bound::new(py, Novelty(novelty)));
                PyList::new(py, all.collect::<PyResult<Vec<_>>>()?)
            }
        }
    }
}

impl Transaction {
    pub(crate) fn new(transaction: WriteTransaction, passage: Passage, schema: Py<Schema>) -> Self {
        let open = OpenTransaction {
            transaction,
            _passage: passage,
        };
        Self {
            open: Mutex::new(Some(open)),
            schema,
            home: Home::here(),
        }
    }

    /// Works with the transaction, and without the interpreter.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut WriteTransaction) -> Result<T, resemblance::Error> + Send,
    ) -> PyResult<T> {
        self.home.check(py)?;
        let worked = py.detach(|| {
            let mut open: MutexGuard<'_, _> = lock(&self.open);
            open.as_mut().map(|open| work(&mut open.transaction))
        });
        worked
            .ok_or_else(|| closed(py, "the transaction"))?
            .or_raise(py)
    }

    fn take(&self, py: Python<'_>) -> PyResult<OpenTransaction> {
        self.home.check(py)?;
        let open = py.detach(|| lock(&self.open).take());
        open.ok_or_else(|| closed(py, "the transaction"))
    }
}

#[pymethods]
impl Transaction {
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
        let id = self.with(py, |open| open.insert(fields.build(), &signature))?;
        Ok(id.get())
    }

    /// Inserts a document unless its key or a near-duplicate is there.
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
        self.with(py, |open| open.insert_if_new(fields.build(), &signature))
            .map(Novelty)
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
        self.with(py, |open| open.upsert(fields.build(), &signature))
            .map(Upserted)
    }

    /// Inserts many documents.
    #[pyo3(signature = (documents, keys=None, *, payloads=None, stamps=None, if_new=false,
        threads=None))]
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
    ) -> PyResult<Bound<'py, PyList>> {
        let mut many = ManyFields::new(documents, keys, payloads, stamps, threads)?;
        let mut answers = ManyAnswers::new(if_new);
        self.home.check(py)?;
        let mut is_open = true;
        many.for_each(py, self.schema.get(), |batch| {
            let mut open = lock(&self.open);
            match open.as_mut() {
                Some(open) => answers.insert(&mut open.transaction, &batch.documents())?,
                None => is_open = false,
            }
            Ok(())
        })?;
        if !is_open {
            return Err(closed(py, "the transaction"));
        }
        answers.into_list(py)
    }

    /// Removes the document with a key, and returns its id.
    fn remove(&self, py: Python<'_>, key: Key) -> PyResult<u64> {
        let id = self.with(py, |open| open.remove(&key.0))?;
        id.map(DocumentId::get)
            .ok_or_else(|| no_such_key(py, Some(key)))
    }

    /// Removes the document with a key if there is one, and returns whether there was.
    fn discard(&self, py: Python<'_>, key: Key) -> PyResult<bool> {
        Ok(self.with(py, |open| open.remove(&key.0))?.is_some())
    }

    /// Gives the document with a key another stamp, and returns its id.
    fn touch(&self, py: Python<'_>, key: Key, stamp: u64) -> PyResult<u64> {
        let id = self.with(py, |open| open.touch(&key.0, stamp))?;
        id.map(DocumentId::get)
            .ok_or_else(|| no_such_key(py, Some(key)))
    }

    /// Returns the document with a key, or `None`.
    fn get(&self, py: Python<'_>, key: Key) -> PyResult<Option<Record>> {
        let record = self.with(py, |open| open.get(&key.0))?;
        Ok(record.map(|record| Record::new(record, self.schema.clone_ref(py))))
    }

    /// Returns the documents near one, those of this transaction included.
    #[pyo3(signature = (document, /, *, threshold=None, max_distance=None, by=None, limit=None,
        payloads=false, accept_lower_recall=false))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn query(
        &self,
        py: Python<'_>,
        document: &Bound<'_, PyAny>,
        threshold: Option<f64>,
        max_distance: Option<u32>,
        by: Option<&str>,
        limit: Option<usize>,
        payloads: bool,
        accept_lower_recall: bool,
    ) -> PyResult<Matches> {
        let fields = BoundFields {
            threshold,
            max_distance,
            by,
            accept_lower_recall,
        };
        let (bounds, signature) = (fields.build(py)?, signature_of(py, &self.schema, document)?);
        let found = self.with(py, |open| {
            let mut query = open.query(&signature).bounds(bounds);
            if let Some(limit) = limit {
                query = query.limit(limit);
            }
            if payloads {
                query = query.with_payloads();
            }
            query.run()
        })?;
        Ok(Matches(found))
    }

    fn __contains__(&self, py: Python<'_>, key: Key) -> PyResult<bool> {
        self.with(py, |open| open.contains(&key.0))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let documents = self.with(py, |open| Ok(open.len()))?;
        Ok(usize::try_from(documents)?)
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Makes the changes durable and visible.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let OpenTransaction {
            transaction,
            _passage,
        } = self.take(py)?;
        released(py, || transaction.commit())
    }

    /// Drops the changes.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.take(py)?;
        py.detach(|| drop(open));
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Commits, or rolls back after an exception.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        _exception: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        self.home.check(py)?;
        let is_open = py.detach(|| lock(&self.open).is_some());
        if is_open && kind.is_some() {
            self.rollback(py)?;
        } else if is_open {
            self.commit(py)?;
        }
        Ok(false)
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<()> {
        Err(invalid(
            py,
            "transaction",
            "pickling",
            "use in the process that began it",
        ))
    }
}
