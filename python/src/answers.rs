//! What queries and writes answer.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySlice};
use resemblance::{BudgetExceeded, Revision, Scope};

use crate::keys::optional_key;
use crate::python::at;
use crate::schema::Schema;
use crate::signature::Signature;

/// A stored document that is near the one that was asked about.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Match(pub(crate) resemblance::Match);

#[pymethods]
impl Match {
    /// The id of the stored document.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id().get()
    }

    /// Its key, `None` if it has none. Bytes that are no UTF-8 are surrogates.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        optional_key(py, self.0.key())
    }

    /// Its key as bytes, `None` if it has none.
    #[getter]
    fn key_bytes<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.key().map(|key| PyBytes::new(py, key))
    }

    /// Its similarity, from 0 to 1: an estimate unless `is_exact`; `None` without MinHash.
    #[getter]
    fn similarity(&self) -> Option<f64> {
        self.0.similarity()
    }

    /// Whether the similarity was computed from features, and not estimated from signatures.
    #[getter]
    fn is_exact(&self) -> bool {
        self.0.is_exact()
    }

    /// The number of bits in which the fingerprints differ; `None` without SimHash.
    #[getter]
    fn distance(&self) -> Option<u32> {
        self.0.distance()
    }

    /// The stamp of the stored document.
    #[getter]
    fn stamp(&self) -> u64 {
        self.0.stamp()
    }

    /// Its payload, `None` unless the query asked for `payloads`.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.payload().map(|payload| PyBytes::new(py, payload))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut text = format!("Match(id={}", self.id());
        if let Some(key) = self.key(py)? {
            text += &format!(", key={}", key.repr()?);
        }
        if let Some(similarity) = self.similarity() {
            text += &format!(", similarity={similarity:.4}");
        }
        if let Some(distance) = self.distance() {
            text += &format!(", distance={distance}");
        }
        Ok(text + ")")
    }
}

/// The documents near one, best first.
#[pyclass(frozen, sequence, module = "resemblance")]
pub(crate) struct Matches(pub(crate) resemblance::Matches);

fn documents(beyond: Option<BudgetExceeded>) -> Option<u64> {
    beyond.map(|beyond| beyond.documents)
}

#[pymethods]
impl Matches {
    /// The probability that a document at the bound is found; `None` where nothing is missed.
    #[getter]
    fn recall(&self) -> Option<f64> {
        self.0.recall()
    }

    /// The documents among which these were looked for: "candidates", "short buckets", or with "scan" all.
    #[getter]
    fn scope(&self) -> &'static str {
        match self.0.scope() {
            Scope::Scan => "scan",
            Scope::ShortBuckets => "short buckets",
            _ => "candidates",
        }
    }

    /// The number of stored documents that were compared.
    #[getter]
    fn candidates(&self) -> usize {
        self.0.candidates()
    }

    /// Candidates that were not compared, because of a budget; `None` if all were.
    #[getter]
    fn beyond_budget(&self) -> Option<u64> {
        documents(self.0.budget_exceeded())
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        if index.is_instance_of::<PySlice>() {
            let all = PyList::new(
                py,
                self.0
                    .iter()
                    .map(|found| Match(found.clone()).into_pyobject(py))
                    .collect::<PyResult<Vec<_>>>()?,
            )?;
            return all.as_any().get_item(index);
        }
        let index: isize = index.extract()?;
        let found = at(&self.0, index).cloned();
        let found = found.ok_or_else(|| PyIndexError::new_err("no match has this index"))?;
        Ok(Bound::new(py, Match(found))?.into_any())
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shown = self.0.iter().map(|found| Match(found.clone()).__repr__(py));
        Ok(format!(
            "[{}]",
            shown.collect::<PyResult<Vec<_>>>()?.join(", ")
        ))
    }
}

/// What `insert_if_new` found. True if the document was inserted.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Novelty(pub(crate) resemblance::Novelty);

#[pymethods]
impl Novelty {
    /// Whether the document was inserted.
    #[getter]
    fn is_new(&self) -> bool {
        self.0.is_new()
    }

    /// Whether the key is that of a stored document.
    #[getter]
    fn is_same_key(&self) -> bool {
        matches!(self.0, resemblance::Novelty::KeyExists(_))
    }

    /// The id of the document: the new one, or the one that was found.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id().get()
    }

    /// The stored document that it is like, or whose key it has.
    #[getter]
    fn found(&self) -> Option<Match> {
        match &self.0 {
            resemblance::Novelty::NearDuplicate(found) | resemblance::Novelty::KeyExists(found) => {
                Some(Match(found.clone()))
            }
            _ => None,
        }
    }

    /// Candidates that were not compared, because of a budget; `None` if all were.
    #[getter]
    fn beyond_budget(&self) -> Option<u64> {
        documents(self.0.budget_exceeded())
    }

    fn __bool__(&self) -> bool {
        self.0.is_new()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let kind = match &self.0 {
            resemblance::Novelty::KeyExists(_) => "same key",
            resemblance::Novelty::NearDuplicate(_) => "near-duplicate",
            _ => return Ok(format!("<Novelty: new, id={}>", self.id())),
        };
        let found = self.found().map(|found| found.__repr__(py)).transpose()?;
        Ok(format!(
            "<Novelty: {kind} of {}>",
            found.as_deref().unwrap_or("another")
        ))
    }
}

/// What `upsert` did.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Upserted(pub(crate) resemblance::Upserted);

#[pymethods]
impl Upserted {
    /// The id of the document.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id.get()
    }

    /// The id of the document that it replaced, `None` if there was none.
    #[getter]
    fn replaced(&self) -> Option<u64> {
        self.0.replaced.map(|id| id.get())
    }

    /// What the document is to the one that had its key: `"first"`, `"unchanged"`, `"near"` or
    /// `"different"`.
    #[getter]
    fn revision(&self) -> &'static str {
        match &self.0.revision {
            Revision::First => "first",
            Revision::Unchanged(_) => "unchanged",
            Revision::Near(_) => "near",
            _ => "different",
        }
    }

    /// How near the last version is, if there was one.
    #[getter]
    fn last(&self) -> Option<Match> {
        self.0.revision.last().cloned().map(Match)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __repr__(&self) -> String {
        format!("<Upserted: {}, id={}>", self.revision(), self.id())
    }
}

/// A stored document.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Record {
    record: resemblance::Record,
    schema: Py<Schema>,
}

impl Record {
    pub(crate) fn new(record: resemblance::Record, schema: Py<Schema>) -> Self {
        Self { record, schema }
    }
}

#[pymethods]
impl Record {
    /// The id of the document.
    #[getter]
    fn id(&self) -> u64 {
        self.record.id().get()
    }

    /// Its key, `None` if it has none. Bytes that are no UTF-8 are surrogates.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        optional_key(py, self.record.key())
    }

    /// Its key as bytes, `None` if it has none.
    #[getter]
    fn key_bytes<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.record.key().map(|key| PyBytes::new(py, key))
    }

    /// Its signature.
    #[getter]
    fn signature(&self, py: Python<'_>) -> Signature {
        Signature::new(self.record.signature().clone(), self.schema.clone_ref(py))
    }

    /// Its stamp.
    #[getter]
    fn stamp(&self) -> u64 {
        self.record.stamp()
    }

    /// Its payload.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.record.payload())
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.record == other.record
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let key = match self.key(py)? {
            Some(key) => key.repr()?.to_string(),
            None => "None".into(),
        };
        Ok(format!(
            "Record(id={}, key={key}, stamp={})",
            self.id(),
            self.stamp()
        ))
    }
}
