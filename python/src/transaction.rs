//! Write transactions, and insertions of many documents at once.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use resemblance::{Document, DocumentId, Error, Signature, WriteTransaction};
use resemblance_corpus::verification::SketchedText;

use crate::answers::{Matches, Novelty, Record, Upserted};
use crate::batches::{Batch, Batches, Beside, signature_of};
use crate::errors::{check_unused, invalid};
use crate::filter::{Filter, Passing};
use crate::joins::bounds;
use crate::keys::Key;
use crate::lease::{Held, Holder, Lease, OpenFile};
use crate::python::given;
use crate::schema::Schema;
use crate::waiting::{Home, Passage, released};

/// Changes that become visible and durable together.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Transaction {
    open: Arc<Lease<OpenTransaction>>,
    /// True after `commit` or `rollback`. Otherwise a transaction that is not open lost its changes
    /// because the store was closed.
    is_ended: AtomicBool,
    schema: Py<Schema>,
    home: Home,
}

/// The transaction is dropped before its passage, so that the next one may begin.
struct OpenTransaction {
    transaction: WriteTransaction,
    _passage: Passage,
}

impl Held for OpenTransaction {
    const NAME: &'static str = "Transaction";
}

/// The default payload.
pub(crate) const NO_PAYLOAD: &[u8] = &[];

/// Returns one document from its parts.
pub(crate) fn document<'a>(key: Option<&'a Key>, payload: &'a [u8], stamp: u64) -> Document<'a> {
    let document = key.map_or_else(Document::without_key, |key| Document::new(&key.0));
    document.payload(payload).stamp(stamp)
}

/// Many documents, with the values that accompany them.
pub(crate) struct Many<'py> {
    batches: Batches<'py>,
    keys: Beside<'py, Option<Key>>,
    payloads: Beside<'py, PyBackedBytes>,
    stamps: Beside<'py, u64>,
}

/// The fields of a batch besides its documents.
pub(crate) struct BatchFields {
    keys: Option<Vec<Option<Key>>>,
    payloads: Option<Vec<PyBackedBytes>>,
    stamps: Option<Vec<u64>>,
}

/// Documents, and the results for their texts.
pub(crate) type Documents<'a, S> = [(Document<'a>, &'a S)];

impl<'py> Many<'py> {
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

    /// Sketches batch after batch, and works on each without the interpreter.
    pub(crate) fn for_each(
        mut self,
        py: Python<'py>,
        schema: &Schema,
        mut work: impl FnMut(&Documents<'_, Signature>) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        while let Some((batch, fields)) = self.next(py)? {
            let signatures = self.batches.sketch(py, &schema.parts, &batch)?;
            released(py, || work(&fields.beside(&signatures)))?;
        }
        Ok(())
    }

    /// The same as `for_each`, with the features of texts for exact similarities if
    /// `with_features`.
    pub(crate) fn for_each_text(
        mut self,
        py: Python<'py>,
        schema: &Schema,
        with_features: bool,
        mut work: impl FnMut(&Documents<'_, SketchedText>) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        while let Some((batch, fields)) = self.next(py)? {
            let sketched = self
                .batches
                .sketch_texts(py, &schema.parts, &batch, with_features)?;
            released(py, || work(&fields.beside(&sketched)))?;
        }
        Ok(())
    }

    /// Returns the next documents, or `None` after the last.
    pub(crate) fn next(&mut self, py: Python<'py>) -> PyResult<Option<(Batch<'py>, BatchFields)>> {
        py.check_signals()?;
        let Some(batch) = self.batches.next()? else {
            self.keys.end(py)?;
            self.payloads.end(py)?;
            self.stamps.end(py)?;
            return Ok(None);
        };
        let fields = BatchFields {
            keys: self.keys.next(py, batch.len())?,
            payloads: self.payloads.next(py, batch.len())?,
            stamps: self.stamps.next(py, batch.len())?,
        };
        Ok(Some((batch, fields)))
    }
}

impl BatchFields {
    pub(crate) fn key(&self, index: usize) -> Option<&Key> {
        self.keys.as_ref()?.get(index)?.as_ref()
    }

    /// Returns the documents, each with the result for its text.
    fn beside<'a, S>(&'a self, sketched: &'a [S]) -> Vec<(Document<'a>, &'a S)> {
        let numbered = sketched.iter().enumerate();
        let documents = numbered.map(|(index, sketched)| {
            let payload = self.payloads.as_ref().and_then(|all| all.get(index));
            let stamp = self.stamps.as_ref().and_then(|all| all.get(index));
            let (payload, stamp) = (payload.map_or(NO_PAYLOAD, |it| &**it), stamp.copied());
            (
                document(self.key(index), payload, stamp.map_or(0, |it| it)),
                sketched,
            )
        });
        documents.collect()
    }
}

/// The answers for many documents: a `Novelty` or an id for each.
#[derive(IntoPyObject)]
pub(crate) enum ManyAnswers {
    Novelties(Vec<Novelty>),
    Ids(Vec<u64>),
}

impl ManyAnswers {
    pub(crate) fn new(if_new: bool) -> Self {
        match if_new {
            true => Self::Novelties(Vec::new()),
            false => Self::Ids(Vec::new()),
        }
    }

    /// Inserts documents.
    pub(crate) fn insert(
        &mut self,
        transaction: &mut WriteTransaction,
        documents: &Documents<'_, Signature>,
    ) -> Result<(), Error> {
        match self {
            Self::Novelties(all) => {
                let novelties = transaction.insert_many(documents).if_new().run()?;
                all.extend(novelties.into_iter().map(Novelty::from));
            }
            Self::Ids(all) => {
                let ids = transaction.insert_many(documents).run()?;
                all.extend(ids.into_iter().map(DocumentId::get));
            }
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Novelties(all) => all.len(),
            Self::Ids(all) => all.len(),
        }
    }
}

/// Generates the changes of one document that stores and transactions share. Each calls the method
/// `with`.
macro_rules! writes {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// Inserts a document and returns its id. Its key must not exist.
            ///
            /// A document is a text or a `Signature`, and a key is `str`, `bytes`, or `None` for a
            /// document without one. `payload` is stored with it, and `stamp` is any number, by
            /// which documents can be evicted later. An existing key raises `KeyExistsError`. If
            /// you call this on a store, the change is durable on return.
            #[pyo3(signature = (key, document, *, payload=NO_PAYLOAD, stamp=0),
                                text_signature = "($self, key, document, *, payload=b'', stamp=0)")]
            fn insert(
                &self,
                py: Python<'_>,
                key: Option<Key>,
                document: &Bound<'_, PyAny>,
                payload: &[u8],
                stamp: u64,
            ) -> PyResult<u64> {
                let signature = signature_of(py, &self.schema, document)?;
                let document = crate::transaction::document(key.as_ref(), payload, stamp);
                let id = self.with(py, |open| open.insert(document, &signature))?;
                Ok(id.get())
            }

            /// Inserts a document unless its key or a near-duplicate exists.
            ///
            /// The answer is true if the document was inserted. `found` is the near-duplicate, or
            /// the document with the key; `key_exists` distinguishes the two. The check and the
            /// insert are one step: if two near-duplicates arrive at the same time, exactly one is
            /// new.
            #[pyo3(signature = (key, document, *, payload=NO_PAYLOAD, stamp=0),
                                text_signature = "($self, key, document, *, payload=b'', stamp=0)")]
            fn insert_if_new(
                &self,
                py: Python<'_>,
                key: Option<Key>,
                document: &Bound<'_, PyAny>,
                payload: &[u8],
                stamp: u64,
            ) -> PyResult<Novelty> {
                let signature = signature_of(py, &self.schema, document)?;
                let document = crate::transaction::document(key.as_ref(), payload, stamp);
                let novelty = self.with(py, |open| open.insert_if_new(document, &signature));
                novelty.map(Novelty::from)
            }

            /// Inserts a document in place of the one with its key, if there is one.
            ///
            /// `revision` of the answer shows how much the document differs from the one that it
            /// replaced, and `last` how near they are.
            #[pyo3(signature = (key, document, *, payload=NO_PAYLOAD, stamp=0),
                                text_signature = "($self, key, document, *, payload=b'', stamp=0)")]
            fn upsert(
                &self,
                py: Python<'_>,
                key: Option<Key>,
                document: &Bound<'_, PyAny>,
                payload: &[u8],
                stamp: u64,
            ) -> PyResult<Upserted> {
                let signature = signature_of(py, &self.schema, document)?;
                let document = crate::transaction::document(key.as_ref(), payload, stamp);
                let upserted = self.with(py, |open| open.upsert(document, &signature));
                upserted.map(Upserted::from)
            }

            /// Removes the document with a key, and returns its id. A missing key raises
            /// `KeyError`; `discard` returns `False` instead.
            fn remove(&self, py: Python<'_>, key: Key) -> PyResult<u64> {
                let id = self.with(py, |open| open.remove(&key.0))?;
                id.map(DocumentId::get).ok_or_else(|| key.missing(py))
            }

            /// Removes the document with a key if it exists, and returns whether it did.
            fn discard(&self, py: Python<'_>, key: Key) -> PyResult<bool> {
                Ok(self.with(py, |open| open.remove(&key.0))?.is_some())
            }

            /// Sets the stamp of the document with a key, and returns its id. Call it for documents
            /// that were seen again, so that `evict` keeps them. A missing key raises `KeyError`.
            fn touch(&self, py: Python<'_>, key: Key, stamp: u64) -> PyResult<u64> {
                let id = self.with(py, |open| open.touch(&key.0, stamp))?;
                id.map(DocumentId::get).ok_or_else(|| key.missing(py))
            }

            /// Sets a named position, such as the offset of a queue, or removes it with `None`. A
            /// transaction sets it in the same commit as its documents. `store.position(name)`
            /// returns it after a restart.
            fn set_position(
                &self,
                py: Python<'_>,
                name: &str,
                position: Option<&[u8]>,
            ) -> PyResult<()> {
                self.with(py, |open| open.set_position(name, position))
            }
        }
    };
}
pub(crate) use writes;

writes!(Transaction);

impl Transaction {
    pub(crate) fn new(
        file: &Arc<OpenFile>,
        transaction: WriteTransaction,
        passage: Passage,
        schema: Py<Schema>,
    ) -> Self {
        let open = OpenTransaction {
            transaction,
            _passage: passage,
        };
        Self {
            open: Lease::new(file, open),
            is_ended: AtomicBool::new(false),
            schema,
            home: Home::here(),
        }
    }

    /// Uses the transaction without the interpreter.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut WriteTransaction) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.home.check(py)?;
        check_unused(py, self.open.used_here())?;
        released(py, || self.open.with(|open| work(&mut open.transaction)))
    }

    fn take(&self, py: Python<'_>) -> PyResult<OpenTransaction> {
        self.home.check(py)?;
        check_unused(py, self.open.used_here())?;
        let open = released(py, || self.open.take())?;
        self.is_ended.store(true, Ordering::Relaxed);
        Ok(open)
    }
}

#[pymethods]
impl Transaction {
    /// Inserts many documents. `threads` is the number of threads that sketch them, by default one
    /// for each core.
    ///
    /// `keys`, `payloads` and `stamps` have one entry for each document. Returns the ids. With
    /// `if_new`, returns a `Novelty` for each, and does not insert documents near a stored document
    /// or near an earlier one of the same call.
    #[pyo3(signature = (documents, keys=None, *, payloads=None, stamps=None, if_new=false,
        threads=None))]
    fn insert_many<'py>(
        &self,
        py: Python<'py>,
        documents: &Bound<'py, PyAny>,
        keys: Option<&Bound<'py, PyAny>>,
        payloads: Option<&Bound<'py, PyAny>>,
        stamps: Option<&Bound<'py, PyAny>>,
        if_new: bool,
        threads: Option<usize>,
    ) -> PyResult<ManyAnswers> {
        let many = Many::new(documents, keys, payloads, stamps, threads)?;
        self.home.check(py)?;
        let mut answers = ManyAnswers::new(if_new);
        many.for_each(py, self.schema.get(), |documents| {
            let insert =
                |open: &mut OpenTransaction| answers.insert(&mut open.transaction, documents);
            self.open.with(insert)
        })?;
        Ok(answers)
    }

    /// Returns a named position as this transaction has left it, or `None`.
    fn position(&self, py: Python<'_>, name: &str) -> PyResult<Option<Cow<'static, [u8]>>> {
        let position = self.with(py, |open| open.position(name))?;
        Ok(position.map(Cow::Owned))
    }

    /// Returns the id of the cluster of the document with a key, as this transaction has left it.
    fn cluster_of(&self, py: Python<'_>, key: Key) -> PyResult<Option<u64>> {
        let found = self.with(py, |open| open.cluster_of(&key.0))?;
        Ok(found.map(resemblance::ClusterId::get))
    }

    /// Returns the document with a key, or `None`.
    fn get(&self, py: Python<'_>, key: Key) -> PyResult<Option<Record>> {
        let record = self.with(py, |open| open.get(&key.0))?;
        let made = record.map(|record| Record::new(py, &record, &self.schema));
        made.transpose()
    }

    /// Returns the documents near one document, including documents of this transaction.
    #[pyo3(signature = (document, /, *, threshold=None, max_distance=None, by=None, limit=None,
        payloads=false, accept_lower_recall=false, margin=None, filter=None))]
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
        margin: Option<f64>,
        filter: Option<&Bound<'_, Filter>>,
    ) -> PyResult<Matches> {
        let passing = Passing::new(filter);
        let bounds = bounds(py, threshold, max_distance, by, accept_lower_recall, margin)?;
        let signature = signature_of(py, &self.schema, document)?;
        let found = self.with(py, |open| {
            let query = open.query(&signature).bounds(bounds);
            given!(query, limit, filter: passing.filter.clone(); with_payloads if payloads).run()
        });
        passing.answer(found).map(Matches::from)
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

    /// Commits unless the transaction has ended, or rolls back after an exception.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        _exception: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        self.home.check(py)?;
        if kind.is_some() {
            // If the store was closed, that rolled back, and the exception of the block counts.
            py.detach(|| drop(self.open.take()));
        } else if !self.is_ended.load(Ordering::Relaxed) {
            self.commit(py)?;
        }
        Ok(false)
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<()> {
        let expected = "use in the process that began it";
        Err(invalid(py, "transaction", "pickling", expected))
    }
}
