//! The answers of queries and writes.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, StringArray, StructArray,
    UInt32Array, UInt64Array,
};
use arrow_schema::{Field, Fields};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyIterator, PyList};
use pyo3_arrow::ffi::{ArrayIterator, to_stream_pycapsule};
use resemblance::search::{Certainty, Scope};
use resemblance::{CertaintyBasis, Revision};
use resemblance_corpus::dedup::DropRule;

use crate::batches::arrow_error;
use crate::errors::invalid;
use crate::keys::Key;
use crate::python::{Report, item};
use crate::schema::Schema;
use crate::signature::Signature;

/// The number of rows of answers in a batch of columns.
const ROWS_TOGETHER: usize = 64 << 10;

/// The columns of some rows, with their names.
pub(crate) type Columns = Vec<(&'static str, ArrayRef)>;

/// Answers as a stream of Arrow. pyarrow, polars and DuckDB make tables of it.
pub(crate) fn arrow_stream<'py, R>(
    py: Python<'py>,
    rows: &[R],
    columns: impl Fn(&[R]) -> Columns,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let named = |columns: Columns| {
        let field =
            |(name, values): &(&str, ArrayRef)| Field::new(*name, values.data_type().clone(), true);
        let fields: Fields = columns.iter().map(field).collect();
        let values = columns.into_iter().map(|(_, values)| values).collect();
        StructArray::try_new(fields, values, None).map_err(arrow_error)
    };
    // An answer without rows has columns as well.
    let first = named(columns(rows.get(..ROWS_TOGETHER).unwrap_or(rows)))?;
    let field = Field::new("", first.data_type().clone(), false);
    let mut batches: Vec<ArrayRef> = vec![Arc::new(first)];
    for rows in rows.chunks(ROWS_TOGETHER).skip(1) {
        batches.push(Arc::new(named(columns(rows))?));
    }
    let stream = ArrayIterator::new(batches.into_iter().map(Ok), Arc::new(field));
    Ok(to_stream_pycapsule(py, Box::new(stream), requested_schema)?)
}

/// Returns true if all of these keys are texts. Otherwise their column contains bytes.
pub(crate) fn are_texts<'a>(mut keys: impl Iterator<Item = &'a Option<Key>>) -> bool {
    keys.all(|key| {
        key.as_ref()
            .is_none_or(|key| str::from_utf8(&key.0).is_ok())
    })
}

/// A column of ids or other whole numbers.
pub(crate) fn numbers(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

/// How near two documents are.
pub(crate) struct Measures {
    pub(crate) similarity: Option<f64>,
    pub(crate) is_exact: bool,
    pub(crate) distance: Option<u32>,
}

/// The columns of `Measures`, after others.
pub(crate) fn with_measures<R>(
    mut columns: Columns,
    rows: &[R],
    measures: impl Fn(&R) -> Measures,
) -> Columns {
    let measured = || rows.iter().map(&measures);
    let similarities: Float64Array = measured().map(|it| it.similarity).collect();
    let are_exact: BooleanArray = measured().map(|it| Some(it.is_exact)).collect();
    let distances: UInt32Array = measured().map(|it| it.distance).collect();
    columns.push(("similarity", Arc::new(similarities)));
    columns.push(("is_exact", Arc::new(are_exact)));
    columns.push(("distance", Arc::new(distances)));
    columns
}

/// A column of keys.
pub(crate) fn key_values<'a>(
    keys: impl Iterator<Item = &'a Option<Key>>,
    are_texts: bool,
) -> ArrayRef {
    let bytes = keys.map(|key| key.as_ref().map(|key| key.0.as_slice()));
    if are_texts {
        let texts = bytes.map(|key| str::from_utf8(key?).ok());
        return Arc::new(texts.collect::<StringArray>());
    }
    Arc::new(bytes.collect::<BinaryArray>())
}

/// The fields of a class as `dataclasses` has them: pandas makes columns of lists of its objects.
pub(crate) fn dataclass_fields<'py>(py: Python<'py>, names: &[&str]) -> Report<'py> {
    let make = py.import("dataclasses")?.getattr("make_dataclass")?;
    make.call1(("Fields", names))?
        .getattr("__dataclass_fields__")
}

/// Makes objects of a class pickleable, by these fields. So they can also be copied.
macro_rules! pickled {
    ($class:ident { $($field:ident: $kind:ty),+ $(,)? }) => {
        #[pymethods]
        impl $class {
            /// Makes an object of its fields, as `pickle` does.
            #[staticmethod]
            fn _of_fields($($field: $kind),+) -> Self {
                Self { $($field),+ }
            }

            fn __reduce__<'py>(
                slf: &Bound<'py, Self>,
            ) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
                let it = slf.get();
                let fields = ($(&it.$field,)+);
                (slf.get_type().getattr("_of_fields")?, fields).into_pyobject(slf.py())
            }
        }
    };
}
pub(crate) use pickled;

/// Makes objects of a class pickleable, and lists its fields for `dataclasses`. A field after a
/// semicolon is only pickled.
macro_rules! row {
    ($class:ident { $($field:ident: $kind:ty),+ $(; $rest:ident: $rest_kind:ty)? }) => {
        crate::answers::pickled!($class { $($field: $kind,)+ $($rest: $rest_kind)? });

        #[pymethods]
        impl $class {
            #[classattr]
            fn __dataclass_fields__(py: Python<'_>) -> Report<'_> {
                crate::answers::dataclass_fields(py, &[$(stringify!($field)),+])
            }
        }
    };
}
pub(crate) use row;

/// An object with Arrow's interface as a table of pyarrow.
pub(crate) fn arrow_table<'py>(rows: &Bound<'py, PyAny>) -> Report<'py> {
    rows.py().import("pyarrow")?.call_method1("table", (rows,))
}

/// A stored document that is near the document of the query.
#[pyclass(frozen, eq, from_py_object, module = "resemblance")]
#[derive(Clone, PartialEq)]
pub(crate) struct Match {
    /// The id of the stored document.
    #[pyo3(get)]
    id: u64,
    /// The key, or `None`. Bytes that are not UTF-8 become surrogates.
    #[pyo3(get)]
    key: Option<Key>,
    /// The similarity, from 0 to 1: an estimate unless `is_exact`. `None` without MinHash.
    #[pyo3(get)]
    similarity: Option<f64>,
    /// True if the similarity was computed from features rather than estimated from signatures.
    #[pyo3(get)]
    is_exact: bool,
    /// The number of bits in which the fingerprints differ, or `None` without SimHash.
    #[pyo3(get)]
    distance: Option<u32>,
    /// The stamp of the stored document.
    #[pyo3(get)]
    stamp: u64,
    /// The payload, or `None` unless the query requested `payloads`.
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

impl<'py> IntoPyObject<'py> for &Match {
    type Target = Match;
    type Output = Bound<'py, Match>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Bound::new(py, self.clone())
    }
}

impl Match {
    /// Returns the rule by which the document is near the one of the query.
    pub(crate) fn rule(&self, schema: &resemblance::Schema) -> resemblance::Result<DropRule> {
        let bounds = resemblance::Bounds::new();
        DropRule::of(
            bounds,
            schema,
            self.similarity,
            self.is_exact,
            self.distance,
        )
    }
}

row!(Match {
    id: u64,
    key: Option<Key>,
    similarity: Option<f64>,
    is_exact: bool,
    distance: Option<u32>,
    stamp: u64,
    payload: Option<Vec<u8>>
});

/// Formats a similarity and a distance for `repr`.
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
    /// The key as bytes, or `None` without a key.
    #[getter]
    fn key_bytes(&self) -> Option<&[u8]> {
        self.key.as_ref().map(|key| key.0.as_slice())
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

/// The kind of statement that is certified, and the probability of missing it.
pub(crate) type CertaintyTuple = (String, f64);

pub(crate) fn certainty_tuple(certainty: Certainty) -> Option<CertaintyTuple> {
    let (about, missed) = certainty.about().zip(certainty.missed_at_most())?;
    Some((about.to_owned(), missed))
}

/// The certainty of an answer, computed when a program asks for it: that takes longer than a query.
#[derive(Clone, Copy)]
struct LazyCertainty(CertaintyBasis);

impl LazyCertainty {
    fn tuple(self) -> Option<CertaintyTuple> {
        certainty_tuple(self.0.certainty())
    }
}

impl PartialEq for LazyCertainty {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.tuple() == other.tuple()
    }
}

impl<'py> IntoPyObject<'py> for LazyCertainty {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        self.tuple().into_bound_py_any(py)
    }
}

impl<'py> IntoPyObject<'py> for &LazyCertainty {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        (*self).into_pyobject(py)
    }
}

/// Reads what was pickled.
impl<'a, 'py> FromPyObject<'a, 'py> for LazyCertainty {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let certainty = match value.extract::<Option<CertaintyTuple>>()? {
            None => Certainty::Uncertified,
            Some((about, missed_at_most)) => match about.as_str() {
                "truth" => Certainty::Truth { missed_at_most },
                "estimate" => Certainty::Estimate { missed_at_most },
                "signature" => Certainty::Signature { missed_at_most },
                _ => return Err(invalid(value.py(), "certainty", about, "a pickled one")),
            },
        };
        Ok(Self(CertaintyBasis::Known(certainty)))
    }
}

/// The documents near one document, best first.
#[pyclass(frozen, eq, sequence, module = "resemblance")]
#[derive(PartialEq)]
pub(crate) struct Matches {
    found: Vec<Match>,
    /// The probability that a document at the bound is found, or `None` if no document can be
    /// missed.
    #[pyo3(get)]
    recall: Option<f64>,
    /// How sure it is that no document within the bounds is missing: "truth", "estimate" or
    /// "signature", which is what is meant to be within the bounds, and the probability with which a
    /// document right at the bound is missed at most. `None` if nothing is certified, for example
    /// because a budget left out candidates. For `nearest` the bound is the last document.
    #[pyo3(get)]
    certainty: LazyCertainty,
    /// The documents that were searched: "candidates", "short buckets", or "scan" for all.
    #[pyo3(get)]
    scope: String,
    /// The number of stored documents that were compared.
    #[pyo3(get)]
    candidates: usize,
    /// The number of candidates that a budget left out, or `None` if all were compared.
    #[pyo3(get)]
    budget_exceeded: Option<u64>,
}

impl From<resemblance::Matches> for Matches {
    fn from(matches: resemblance::Matches) -> Self {
        let scope = match matches.scope() {
            Scope::Scan => "scan",
            Scope::ShortBuckets => "short buckets",
            _ => "candidates",
        };
        Self {
            found: matches.iter().map(Match::from).collect(),
            recall: matches.recall(),
            certainty: LazyCertainty(matches.certainty_basis()),
            scope: scope.to_owned(),
            candidates: matches.candidates(),
            budget_exceeded: matches.budget_exceeded().map(|it| it.documents),
        }
    }
}

pickled!(Matches {
    found: Vec<Match>,
    recall: Option<f64>,
    certainty: LazyCertainty,
    scope: String,
    candidates: usize,
    budget_exceeded: Option<u64>,
});

#[pymethods]
impl Matches {
    fn __len__(&self) -> usize {
        self.found.len()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let object = |found: &Match| found.into_bound_py_any(index.py());
        item(&self.found, index, "match", object)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, &self.found)?.try_iter()
    }

    /// The matches as Arrow has them: a column for each field of `Match`.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let are_texts = are_texts(self.found.iter().map(|it| &it.key));
        let columns = |rows: &[Match]| match_columns(rows, are_texts);
        arrow_stream(py, &self.found, columns, requested_schema)
    }

    /// The matches as a table of pyarrow.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> Report<'py> {
        arrow_table(slf)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shown = self.found.iter().map(|found| found.__repr__(py));
        let all = shown.collect::<PyResult<Vec<_>>>()?;
        Ok(format!("[{}]", all.join(", ")))
    }
}

fn match_columns(rows: &[Match], are_texts: bool) -> Columns {
    let named: Columns = vec![
        ("id", numbers(rows.iter().map(|it| it.id))),
        ("key", key_values(rows.iter().map(|it| &it.key), are_texts)),
    ];
    let mut columns = with_measures(named, rows, |it| Measures {
        similarity: it.similarity,
        is_exact: it.is_exact,
        distance: it.distance,
    });
    let payloads: BinaryArray = rows.iter().map(|it| it.payload.as_deref()).collect();
    columns.push(("stamp", numbers(rows.iter().map(|it| it.stamp))));
    columns.push(("payload", Arc::new(payloads)));
    columns
}

/// The result of `insert_if_new`. It is true if the document was inserted.
#[pyclass(frozen, eq, get_all, module = "resemblance")]
#[derive(PartialEq)]
pub(crate) struct Novelty {
    /// True if the document was inserted.
    is_new: bool,
    /// True if a stored document has the key.
    key_exists: bool,
    /// The id of the new document, or of the one that was found.
    id: u64,
    /// The stored document that is near the new one, or that has its key.
    found: Option<Match>,
    /// The number of candidates that a budget left out, or `None` if all were compared.
    budget_exceeded: Option<u64>,
}

impl From<resemblance::Novelty> for Novelty {
    fn from(novelty: resemblance::Novelty) -> Self {
        let found = match &novelty {
            resemblance::Novelty::NearDuplicate(found) | resemblance::Novelty::KeyExists(found) => {
                Some(found.into())
            }
            _ => None,
        };
        Self {
            is_new: novelty.is_new(),
            key_exists: matches!(novelty, resemblance::Novelty::KeyExists(_)),
            id: novelty.id().get(),
            found,
            budget_exceeded: novelty.budget_exceeded().map(|it| it.documents),
        }
    }
}

pickled!(Novelty {
    is_new: bool,
    key_exists: bool,
    id: u64,
    found: Option<Match>,
    budget_exceeded: Option<u64>,
});

#[pymethods]
impl Novelty {
    fn __bool__(&self) -> bool {
        self.is_new
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let kind = match self.key_exists {
            true => "same key",
            false => "near-duplicate",
        };
        match &self.found {
            Some(found) => Ok(format!("<Novelty: {kind} of {}>", found.__repr__(py)?)),
            None => Ok(format!("<Novelty: new, id={}>", self.id)),
        }
    }
}

/// The result of `upsert`.
#[pyclass(frozen, eq, get_all, module = "resemblance")]
#[derive(PartialEq)]
pub(crate) struct Upserted {
    /// The id of the document.
    id: u64,
    /// The id of the document that it replaced, or `None`.
    replaced: Option<u64>,
    /// The relation of the document to the one that had its key: `"first"`, `"unchanged"`, `"near"`
    /// or `"different"`.
    revision: String,
    /// The match with the last version, if there was one.
    last: Option<Match>,
}

impl From<resemblance::Upserted> for Upserted {
    fn from(upserted: resemblance::Upserted) -> Self {
        let revision = match &upserted.revision {
            Revision::First => "first",
            Revision::Unchanged(_) => "unchanged",
            Revision::Near(_) => "near",
            _ => "different",
        };
        Self {
            id: upserted.id.get(),
            replaced: upserted.replaced.map(|id| id.get()),
            revision: revision.to_owned(),
            last: upserted.revision.last().map(Match::from),
        }
    }
}

pickled!(Upserted {
    id: u64,
    replaced: Option<u64>,
    revision: String,
    last: Option<Match>,
});

#[pymethods]
impl Upserted {
    fn __repr__(&self) -> String {
        format!("<Upserted: {}, id={}>", self.revision, self.id)
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

row!(Record { id: u64, key: Option<Key>, stamp: u64, payload: Vec<u8>; signature: Py<Signature> });

#[pymethods]
impl Record {
    /// The id of the document.
    #[getter]
    fn id(&self) -> u64 {
        self.id
    }

    /// The key, or `None`. Bytes that are not UTF-8 become surrogates.
    #[getter]
    fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// The key as bytes, or `None` without a key.
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

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let key = match self.key() {
            Some(key) => key.into_pyobject(py)?.repr()?.to_string(),
            None => "None".into(),
        };
        let (id, stamp) = (self.id(), self.stamp());
        Ok(format!("Record(id={id}, key={key}, stamp={stamp})"))
    }
}
