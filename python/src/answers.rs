//! The answers of queries and writes.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySlice, PyTuple};
use resemblance::Revision;
use resemblance::search::Scope;

use crate::keys::Key;
use crate::python::at;
use crate::schema::Schema;
use crate::signature::Signature;

/// A stored document that is near the one that was asked about.
#[pyclass(frozen, eq, module = "resemblance")]
#[derive(PartialEq)]
pub(crate) struct Match {
    /// The id of the stored document.
    #[pyo3(get)]
    id: u64,
    /// Its key, `None` without one. Bytes that are not UTF-8 are surrogates.
    #[pyo3(get)]
    key: Option<Key>,
    /// Its similarity, from 0 to 1: an estimate unless `is_exact`; `None` without MinHash.
    #[pyo3(get)]
    similarity: Option<f64>,
    /// True if the similarity was computed from features, and not estimated from signatures.
    #[pyo3(get)]
    is_exact: bool,
    /// The number of bits in which the fingerprints differ; `None` without SimHash.
    #[pyo3(get)]
    distance: Option<u32>,
    /// The stamp of the stored document.
    #[pyo3(get)]
    stamp: u64,
    /// Its payload, `None` unless the query asked for `payloads`.
    #[pyo3(get)]
    payload: Option<Vec<u8>>,
}

impl From<&resemblance::Match> for Match {
    fn from(found: &resemblance::Match) -> Self {
        Self {
            id: found.id().get(),
            key: found.key().map(|key| Key(key.to_vec())),
            similarity: found.similarity(),
            is_exact: found.is_exact(),
            distance: found.distance(),
            stamp: found.stamp(),
            payload: found.payload().map(<[u8]>::to_vec),
        }
    }
}

/// The fields of a match, as `pickle` keeps them.
type MatchFields = (
    u64,
    Option<Key>,
    Option<f64>,
    bool,
    Option<u32>,
    u64,
    Option<Vec<u8>>,
);

/// A similarity and a distance as `repr` has them.
pub(crate) fn measures(similarity: Option<f64>, distance: Option<u32>) -> String {
    let mut text = String::new();
    if let Some(similarity) = similarity {
        text += &format!(", similarity={similarity:.4}");
    }
    if let Some(distance) = distance {
        text += &format!(", distance={distance}");
    }
    text
}

#[pymethods]
impl Match {
    /// Its key as bytes, `None` if it has none.
    #[getter]
    fn key_bytes(&self) -> Option<&[u8]> {
        self.key.as_ref().map(|key| key.0.as_slice())
    }

    /// Makes a match of its fields, as `pickle` does.
    #[staticmethod]
    fn _of_fields(fields: MatchFields) -> Self {
        let (id, key, similarity, is_exact, distance, stamp, payload) = fields;
        Self {
            id,
            key,
            similarity,
            is_exact,
            distance,
            stamp,
            payload,
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, it) = (slf.py(), slf.get());
        let key = it.key_bytes().map(|key| PyBytes::new(py, key));
        let payload = it
            .payload
            .as_deref()
            .map(|payload| PyBytes::new(py, payload));
        let fields = (
            it.id,
            key,
            it.similarity,
            it.is_exact,
            it.distance,
            it.stamp,
            payload,
        );
        (slf.get_type().getattr("_of_fields")?, (fields,)).into_pyobject(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let key = match &self.key {
            Some(key) => format!(", key={}", key.into_pyobject(py)?.repr()?),
            None => String::new(),
        };
        let measures = measures(self.similarity, self.distance);
        Ok(format!("Match(id={}{key}{measures})", self.id))
    }
}

/// The documents near one, best first.
#[pyclass(frozen, sequence, module = "resemblance")]
pub(crate) struct Matches(pub(crate) resemblance::Matches);

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
    fn budget_exceeded(&self) -> Option<u64> {
        self.0.budget_exceeded().map(|it| it.documents)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        if index.is_instance_of::<PySlice>() {
            let all = PyList::new(py, self.0.iter().map(Match::from))?;
            return all.as_any().get_item(index);
        }
        let found = at(&self.0, index.extract()?, "match")?;
        Ok(Bound::new(py, Match::from(found))?.into_any())
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shown = self.0.iter().map(|found| Match::from(found).__repr__(py));
        let all = shown.collect::<PyResult<Vec<_>>>()?;
        Ok(format!("[{}]", all.join(", ")))
    }
}

/// The outcome of `insert_if_new`. True if the document was inserted.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Novelty(pub(crate) resemblance::Novelty);

#[pymethods]
impl Novelty {
    /// True if the document was inserted.
    #[getter]
    fn is_new(&self) -> bool {
        self.0.is_new()
    }

    /// True if a stored document has the key.
    #[getter]
    fn key_exists(&self) -> bool {
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
                Some(found.into())
            }
            _ => None,
        }
    }

    /// Candidates that were not compared, because of a budget; `None` if all were.
    #[getter]
    fn budget_exceeded(&self) -> Option<u64> {
        self.0.budget_exceeded().map(|it| it.documents)
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
        let shown = found.as_deref().unwrap_or("another");
        Ok(format!("<Novelty: {kind} of {shown}>"))
    }
}

/// The outcome of `upsert`.
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

    /// The relation of the document to the one that had its key: `"first"`, `"unchanged"`, `"near"`
    /// or `"different"`.
    #[getter]
    fn revision(&self) -> &'static str {
        match &self.0.revision {
            Revision::First => "first",
            Revision::Unchanged(_) => "unchanged",
            Revision::Near(_) => "near",
            _ => "different",
        }
    }

    /// The match with the last version, if there was one.
    #[getter]
    fn last(&self) -> Option<Match> {
        self.0.revision.last().map(Match::from)
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
    id: u64,
    key: Option<Key>,
    stamp: u64,
    payload: Vec<u8>,
    signature: Py<Signature>,
}

impl Record {
    pub(crate) fn new(
        py: Python<'_>,
        record: &resemblance::Record,
        schema: &Py<Schema>,
    ) -> PyResult<Self> {
        let signature = Signature::new(record.signature().clone(), schema.clone_ref(py));
        Ok(Self {
            id: record.id().get(),
            key: record.key().map(|key| Key(key.to_vec())),
            stamp: record.stamp(),
            payload: record.payload().to_vec(),
            signature: Py::new(py, signature)?,
        })
    }
}

/// The fields of a record, as `pickle` keeps them.
type RecordFields = (u64, Option<Key>, u64, Vec<u8>, Py<Signature>);

#[pymethods]
impl Record {
    /// The id of the document.
    #[getter]
    fn id(&self) -> u64 {
        self.id
    }

    /// Its key, `None` without one. Bytes that are not UTF-8 are surrogates.
    #[getter]
    fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// Its key as bytes, `None` if it has none.
    #[getter]
    fn key_bytes(&self) -> Option<&[u8]> {
        self.key.as_ref().map(|key| key.0.as_slice())
    }

    /// Its signature.
    #[getter]
    fn signature(&self, py: Python<'_>) -> Py<Signature> {
        self.signature.clone_ref(py)
    }

    /// Its stamp.
    #[getter]
    fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Its payload.
    #[getter]
    fn payload(&self) -> &[u8] {
        &self.payload
    }

    fn __eq__(&self, other: &Self) -> bool {
        let [own, others] = [self, other].map(|it| (it.id, &it.key, it.stamp, &it.payload));
        own == others && self.signature.get().signature == other.signature.get().signature
    }

    /// Makes a record of its fields, as `pickle` does.
    #[staticmethod]
    fn _of_fields(fields: RecordFields) -> Self {
        let (id, key, stamp, payload, signature) = fields;
        Self {
            id,
            key,
            stamp,
            payload,
            signature,
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, it) = (slf.py(), slf.get());
        let key = it.key_bytes().map(|key| PyBytes::new(py, key));
        let payload = PyBytes::new(py, &it.payload);
        let fields = (it.id, key, it.stamp, payload, it.signature.bind(py));
        (slf.get_type().getattr("_of_fields")?, (fields,)).into_pyobject(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let key = match self.key() {
            Some(key) => key.into_pyobject(py)?.repr()?.to_string(),
            None => "None".into(),
        };
        let (id, stamp) = (self.id(), self.stamp());
        Ok(format!("Record(id={id}, key={key}, stamp={stamp})"))
    }
}
