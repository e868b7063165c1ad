//! Batches of texts, from anything that Python iterates over or that has `__arrow_c_stream__` or
//! `__arrow_c_array__`. Signatures may be among them.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, Float32Array, Float64Array, StringArray,
    TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow_schema::{ArrowError, DataType, Field};
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyIterator, PySet, PyString};
use pyo3_arrow::error::PyArrowError;
use pyo3_arrow::{PyArray, PyArrayReader};
use resemblance::{Error, Signature};
use resemblance_corpus::verification::SketchedText;
use resemblance_corpus::{column_keys, column_values};

use crate::errors::{OrRaise, invalid, invalid_parameter};
use crate::keys::{Key, key_object, listed_key, several};
use crate::python::class;
use crate::schema::{Schema, SchemaParts};
use crate::signature;
use crate::waiting::{PATIENCE, lock, released};

/// The number of documents in a batch. The work on one batch takes a moment.
pub(crate) const BATCH_DOCUMENTS: usize = 2_048;

/// The number of bytes of text after which a batch ends.
const BATCH_BYTES: usize = 8 << 20;

/// Longer texts are read piece by piece, and signals are handled in between.
const PIECE_BYTES: usize = 8 << 20;

/// The minimum number of bytes of text for which a thread is worth starting.
const THREAD_BYTES: usize = 32 << 10;

/// The advice for a text with a lone surrogate.
const ENCODABLE: &str =
    "a text without lone surrogates; text.encode('utf-8', 'replace').decode() replaces them";

/// The maximum number of documents that a thread takes at once.
const PART_DOCUMENTS: usize = 64;

/// Documents in batches, and the threads that work on a batch.
pub(crate) struct Batches<'py> {
    source: Source<'py>,
    pub(crate) threads: usize,
    batch_documents: usize,
    batch_bytes: usize,
    /// The batch that was gathered while other threads worked on the previous one.
    ahead: Option<PyResult<Option<Batch<'py>>>>,
    /// The number of documents in all batches gathered so far.
    gathered: usize,
}

/// The source of documents.
enum Source<'py> {
    Items(Bound<'py, PyIterator>),
    Arrow {
        arrays: Arrays,
        rest: Option<ArrayRef>,
    },
    Signatures {
        all: Bound<'py, signature::Signatures>,
        next: usize,
    },
}

/// Some documents, the position of the first, and the objects from which they are borrowed.
pub(crate) enum Batch<'py> {
    Items(usize, Vec<Bound<'py, PyAny>>),
    Arrow(usize, ArrayRef),
    Signatures(Vec<Signature>),
}

/// A document of a batch.
enum Item<'b> {
    Text(&'b str),
    Ready(&'b Signature),
}

/// Arrays in their order.
pub(crate) type Arrays = Box<dyn Iterator<Item = Result<ArrayRef, ArrowError>> + Send>;

/// Returns the arrays of an object with Arrow's interface, or `None` for another object. Dictionary
/// arrays are replaced by their values.
pub(crate) fn arrow_arrays(parameter: &str, object: &Bound<'_, PyAny>) -> PyResult<Option<Arrays>> {
    if object.hasattr("__arrow_c_stream__")? {
        let is_polars = object.get_type().module()?.to_str()?.starts_with("polars");
        let object = match is_polars {
            true => &class(object.py(), "corpus", "_of_polars")?.call1((object,))?,
            false => object,
        };
        let reader: PyArrayReader = object.extract().map_err(|e| of_value(object.py(), e))?;
        check_extension(parameter, &*reader.field_ref()?)?;
        let arrays = reader.into_reader()?;
        return Ok(Some(Box::new(arrays.map(|array| column_values(&array?)))));
    }
    if object.hasattr("__arrow_c_array__")? {
        let array: PyArray = object.extract().map_err(|e| of_value(object.py(), e))?;
        check_extension(parameter, array.field())?;
        let array = column_values(array.array());
        return Ok(Some(Box::new(std::iter::once(array))));
    }
    Ok(None)
}

/// Returns the arrays of lists of an object with Arrow's interface, or `None` for another object.
/// NumPy reads those that are arrays of two dimensions for it.
pub(crate) fn list_arrays(object: &Bound<'_, PyAny>) -> PyResult<Option<Arrays>> {
    if object.hasattr("__arrow_c_stream__")? {
        let reader: PyArrayReader = object.extract().map_err(|e| of_value(object.py(), e))?;
        return Ok(Some(Box::new(reader.into_reader()?)));
    }
    if object.hasattr("__arrow_c_array__")? {
        let array: PyArray = object.extract().map_err(|e| of_value(object.py(), e))?;
        return Ok(Some(Box::new(std::iter::once(Ok(array.array().clone())))));
    }
    Ok(None)
}

/// Refuses types of other programs that are numbers in Arrow alone, such as the periods of pandas.
fn check_extension(parameter: &str, field: &Field) -> PyResult<()> {
    match field.extension_type_name() {
        Some(name) if field.data_type().is_integer() => {
            let message =
                format!("{parameter}: found the type {name}, expected strings or numbers");
            Err(PyTypeError::new_err(message))
        }
        _ => Ok(()),
    }
}

pub(crate) fn arrow_error(error: ArrowError) -> PyErr {
    Python::attach(|py| of_value(py, PyErr::from(PyArrowError::from(error))))
}

/// Returns a `ValueError` for an error of Arrow, which has no type of its own, and any other error
/// unchanged.
fn of_value(py: Python<'_>, error: PyErr) -> PyErr {
    match error.get_type(py).is(py.get_type::<PyException>()) {
        true => PyValueError::new_err(error.value(py).to_string()),
        false => error,
    }
}

/// Texts and keys of an Arrow table, some rows at a time.
#[pyclass(module = "resemblance")]
pub(crate) struct ArrowBatches {
    arrays: Mutex<Arrays>,
    text: String,
    key: Option<String>,
    /// The number of rows returned so far.
    rows: AtomicUsize,
}

#[pymethods]
impl ArrowBatches {
    #[new]
    fn create(table: &Bound<'_, PyAny>, text: String, key: Option<String>) -> PyResult<Self> {
        match arrow_arrays("table", table)?.map(Mutex::new) {
            Some(arrays) => Ok(Self {
                arrays,
                text,
                key,
                rows: AtomicUsize::new(0),
            }),
            None => Err(PyTypeError::new_err(
                "table: found an object without Arrow's interface",
            )),
        }
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// The next rows: their texts, and their keys if there are any. A single column is texts.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<ArrowRows>> {
        let next = py.detach(|| lock(&self.arrays).next());
        let Some(array) = next.transpose().map_err(arrow_error)? else {
            return Ok(None);
        };
        let Some(table) = array.as_struct_opt() else {
            return Ok(Some((text_column(array), None)));
        };
        let before = self.rows.fetch_add(table.len(), Ordering::Relaxed);
        let column = |name: &str| {
            let mut fields = (0..)
                .zip(table.fields())
                .filter(|(_, it)| it.name() == name);
            let Some((place, field)) = fields.next() else {
                return Ok(None);
            };
            check_extension(name, field)?;
            match fields.next() {
                None => Ok(Some(table.column(place))),
                Some(_) => Err(invalid(py, "column", format!("several {name:?}"), "one")),
            }
        };
        let missing = |name: &str| {
            let names = table.column_names().join(", ");
            invalid(py, "column", format!("{name:?}"), names)
        };
        let texts = column(&self.text)?.ok_or_else(|| missing(&self.text))?;
        let texts = column_values(texts).map_err(arrow_error)?;
        let keys = match &self.key {
            Some(name) => match column(name)? {
                Some(column) => Some(key_column(py, name, column, before)?),
                // Ids need not be there, unless their column is named.
                None if name == "id" => None,
                None => return Err(missing(name)),
            },
            None => None,
        };
        let keys = keys.map(PyArray::from_array_ref);
        Ok(Some((text_column(texts), keys)))
    }
}

/// Returns a column of texts. One of the type Null becomes strings, because it counts no nulls.
fn text_column(texts: ArrayRef) -> PyArray {
    PyArray::from_array_ref(match texts.data_type() {
        DataType::Null => Arc::new(StringArray::new_null(texts.len())),
        _ => texts,
    })
}

/// Texts, and keys if there are any.
type ArrowRows = (PyArray, Option<PyArray>);

/// Returns the key for a number of a kind, as the tool makes it: `"double"`, `"float"`, or `"ns"` or
/// `"us"` since 1970. Returns `None` for a float that is not a number.
#[pyfunction]
pub(crate) fn number_key(
    py: Python<'_>,
    kind: &str,
    number: &Bound<'_, PyAny>,
) -> PyResult<Option<Key>> {
    let column: ArrayRef = match kind {
        "ns" => Arc::new(TimestampNanosecondArray::from(vec![
            number.extract::<i64>()?,
        ])),
        "us" => Arc::new(TimestampMicrosecondArray::from(vec![
            number.extract::<i64>()?,
        ])),
        "float" => Arc::new(Float32Array::from(vec![number.extract::<f32>()?])),
        _ => Arc::new(Float64Array::from(vec![number.extract::<f64>()?])),
    };
    let made = column_keys("key", &column);
    let mut keys = made.map_err(|(_, bad)| invalid(py, "key", bad, "strings or numbers"))?;
    Ok(keys.pop().flatten().map(Key))
}

/// The keys in a column, as strings or byte strings. `before` is the number of rows before it.
fn key_column(py: Python<'_>, name: &str, column: &ArrayRef, before: usize) -> PyResult<ArrayRef> {
    if column.data_type().is_string() {
        return Ok(Arc::clone(column));
    }
    let keys = column_keys(name, column).map_err(|(row, bad)| {
        let found = format!("{bad} in row {}, counted from 0", before + row);
        invalid(py, "key", found, "strings or numbers")
    })?;
    let keys = keys.iter().map(Option::as_deref).collect::<Vec<_>>();
    Ok(Arc::new(BinaryArray::from(keys)))
}

impl<'py> Batches<'py> {
    /// Creates batches for a number of threads, by default one for each core.
    pub(crate) fn new(documents: &Bound<'py, PyAny>, threads: Option<usize>) -> PyResult<Self> {
        Ok(Self {
            source: Source::new(documents)?,
            threads: threads_or_all(documents.py(), threads)?,
            batch_documents: BATCH_DOCUMENTS,
            batch_bytes: BATCH_BYTES,
            ahead: None,
            gathered: 0,
        })
    }

    /// Makes batches so large that each thread has as much work as a single thread would have in
    /// one batch.
    pub(crate) fn by_threads(self) -> Self {
        Self {
            batch_documents: self.batch_documents.saturating_mul(self.threads),
            batch_bytes: self.batch_bytes.saturating_mul(self.threads),
            ..self
        }
    }

    /// Returns the next documents, `None` after the last.
    pub(crate) fn next(&mut self) -> PyResult<Option<Batch<'py>>> {
        match self.ahead.take() {
            Some(next) => next,
            None => self.gather(),
        }
    }

    fn gather(&mut self) -> PyResult<Option<Batch<'py>>> {
        let (documents, bytes) = (self.batch_documents, self.batch_bytes);
        let batch = self.source.next(self.gathered, documents, bytes)?;
        self.gathered += batch.as_ref().map_or(0, Batch::len);
        Ok(batch)
    }

    /// Makes the signatures of a batch.
    pub(crate) fn sketch(
        &mut self,
        py: Python<'_>,
        parts: &SchemaParts,
        batch: &Batch<'_>,
    ) -> PyResult<Vec<Signature>> {
        let items = batch.items(py)?;
        if let [Item::Text(text)] = items.as_slice() {
            return Ok(vec![sketch(py, parts, text)?]);
        }
        self.map(py, &items, |item| match item {
            Item::Text(text) => Ok(parts.sketcher.text(&parts.taken(text)?)?),
            Item::Ready(signature) => {
                parts.check(signature)?;
                Ok((*signature).clone())
            }
        })
    }

    /// Makes the signatures of texts, and their features for exact similarities if `with_features`.
    pub(crate) fn sketch_texts(
        &mut self,
        py: Python<'_>,
        parts: &SchemaParts,
        batch: &Batch<'_>,
        with_features: bool,
    ) -> PyResult<Vec<SketchedText>> {
        self.map(py, &batch.items(py)?, |item| match item {
            Item::Text(text) => {
                SketchedText::new(&parts.sketcher, with_features, &parts.taken(text)?)
            }
            Item::Ready(signature) if !with_features => {
                parts.check(signature)?;
                Ok(SketchedText {
                    signature: (*signature).clone(),
                    features: Arc::default(),
                })
            }
            Item::Ready(_) => {
                let expected = "texts, which exact similarities are computed from";
                Err(invalid_parameter("documents", "a signature", expected))
            }
        })
    }

    /// Applies a function to each document, on several threads if that is worth it. The threads
    /// need no interpreter, so the caller's thread gathers the next batch first, and then works on
    /// the rest. Threads take parts one by one.
    fn map<T: Send>(
        &mut self,
        py: Python<'_>,
        items: &[Item<'_>],
        work: impl Fn(&Item<'_>) -> Result<T, Error> + Sync,
    ) -> PyResult<Vec<T>> {
        let bytes: usize = items.iter().map(Item::bytes).sum();
        let threads = self.threads.min(bytes / THREAD_BYTES + 1);
        let all = |items: &[Item<'_>]| items.iter().map(&work).collect::<Result<Vec<T>, Error>>();
        if threads <= 1 || items.len() < 2 {
            return released(py, || all(items));
        }
        let part_documents = items.len().div_ceil(threads * 8).min(PART_DOCUMENTS);
        let (next, parts) = (AtomicUsize::new(0), items.chunks(part_documents));
        let take = || {
            let index = next.fetch_add(1, Ordering::Relaxed);
            parts.clone().nth(index).map(|part| (index, part))
        };
        let run = || {
            let mut done = Vec::new();
            while let Some((index, part)) = take() {
                done.push((index, all(part)));
            }
            Ok(done)
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
            if self.ahead.is_none() {
                self.ahead = Some(self.gather());
            }
            let (mut done, mut last_look) = (Vec::new(), Instant::now());
            while let Some((index, part)) = take() {
                done.push((index, py.detach(|| all(part))));
                if last_look.elapsed() < PATIENCE {
                    continue;
                }
                // Ctrl-C ends the work of the others as well.
                py.check_signals()
                    .inspect_err(|_| next.store(items.len(), Ordering::Relaxed))?;
                last_look = Instant::now();
            }
            released(py, || {
                done.extend(joined(others)?);
                done.sort_unstable_by_key(|(index, _)| *index);
                let mut results = Vec::with_capacity(items.len());
                for (_, part) in done {
                    results.extend(part?);
                }
                Ok(results)
            })
        })
    }
}

/// Returns the results of threads in their order.
fn joined<'a, T: Send + 'a>(
    shares: impl IntoIterator<Item = ScopedJoinHandle<'a, Result<Vec<T>, Error>>>,
) -> Result<Vec<T>, Error> {
    let mut all = Vec::new();
    for share in shares {
        let done = share.join();
        all.extend(done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
    }
    Ok(all)
}

impl<'py> Source<'py> {
    fn new(documents: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(all) = documents.cast::<signature::Signatures>() {
            return Ok(Self::Signatures {
                all: all.clone(),
                next: 0,
            });
        }
        if let Some(arrays) = arrow_arrays("documents", documents)? {
            return Ok(Self::Arrow { arrays, rest: None });
        }
        Ok(Self::Items(several("documents", documents)?))
    }

    /// Returns some documents, up to a number of documents or of bytes.
    fn next(
        &mut self,
        first: usize,
        documents: usize,
        bytes: usize,
    ) -> PyResult<Option<Batch<'py>>> {
        match self {
            Self::Items(items) => {
                let (mut batch, mut gathered_bytes) = (Vec::new(), 0);
                while batch.len() < documents && gathered_bytes < bytes {
                    let Some(item) = items.next() else { break };
                    let item = item?;
                    if let Ok(text) = item.cast::<PyString>() {
                        gathered_bytes += text.len()?;
                    }
                    batch.push(item);
                }
                Ok((!batch.is_empty()).then_some(Batch::Items(first, batch)))
            }
            Self::Arrow { arrays, rest } => loop {
                let array = match rest.take() {
                    Some(array) => array,
                    None => match arrays.next().transpose().map_err(arrow_error)? {
                        Some(array) => array,
                        None => return Ok(None),
                    },
                };
                if array.is_empty() {
                    continue;
                }
                let count = arrow_batch(&array, documents, bytes);
                if count < array.len() {
                    *rest = Some(array.slice(count, array.len() - count));
                }
                return Ok(Some(Batch::Arrow(first, array.slice(0, count))));
            },
            Self::Signatures { all, next } => {
                let rest = all.get().all().iter().skip(*next);
                let batch: Vec<_> = rest.take(documents).cloned().collect();
                *next += batch.len();
                Ok((!batch.is_empty()).then_some(Batch::Signatures(batch)))
            }
        }
    }
}

/// Returns the number of documents at the start of an array that make a batch.
fn arrow_batch(array: &ArrayRef, documents: usize, bytes: usize) -> usize {
    let each = array.get_array_memory_size() / array.len().max(1);
    (bytes / each.max(1)).clamp(1, documents).min(array.len())
}

impl Batch<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Items(_, items) => items.len(),
            Self::Arrow(_, array) => array.len(),
            Self::Signatures(signatures) => signatures.len(),
        }
    }

    /// Borrows the documents.
    fn items(&self, py: Python<'_>) -> PyResult<Vec<Item<'_>>> {
        match self {
            Self::Items(first, items) => (*first..).zip(items).map(item).collect(),
            Self::Arrow(first, array) => {
                let texts = (*first..).zip(optional_texts(array)?);
                let items = texts.map(|(place, text)| {
                    let found = || format!("null at position {place}");
                    text.map(Item::Text)
                        .ok_or_else(|| invalid(py, "documents", found(), "a text"))
                });
                items.collect()
            }
            Self::Signatures(signatures) => Ok(signatures.iter().map(Item::Ready).collect()),
        }
    }

    /// Borrows the documents, which must be texts.
    pub(crate) fn texts(&self, py: Python<'_>) -> PyResult<Vec<&str>> {
        let items = self.items(py)?.into_iter();
        let texts = items.map(|item| match item {
            Item::Text(text) => Ok(text),
            Item::Ready(_) => {
                let text = "texts are needed here, and no signatures";
                Err(PyTypeError::new_err(text))
            }
        });
        texts.collect()
    }
}

fn item<'b>((place, object): (usize, &'b Bound<'_, PyAny>)) -> PyResult<Item<'b>> {
    if let Ok(text) = object.cast::<PyString>() {
        return text.to_str().map(Item::Text).map_err(|error| {
            // The error names the character that cannot be encoded, and not its place.
            let found = format!("{} at position {place}", error.value(object.py()));
            invalid(object.py(), "documents", found, ENCODABLE)
        });
    }
    if let Ok(signature) = object.cast::<signature::Signature>() {
        return Ok(Item::Ready(&signature.get().signature));
    }
    let found = object.get_type().name()?;
    let text =
        format!("a document is a str or a Signature, and not {found}, as at position {place}");
    Err(PyTypeError::new_err(text))
}

/// The strings of an Arrow column, `None` for a null.
pub(crate) fn optional_texts(array: &ArrayRef) -> PyResult<Vec<Option<&str>>> {
    match array.data_type() {
        DataType::Utf8 => Ok(array.as_string::<i32>().iter().collect()),
        DataType::LargeUtf8 => Ok(array.as_string::<i64>().iter().collect()),
        DataType::Utf8View => Ok(array.as_string_view().iter().collect()),
        DataType::Null => Ok(vec![None; array.len()]),
        other => {
            let text = format!("texts are an Arrow column of strings, and not of {other}");
            Err(PyTypeError::new_err(text))
        }
    }
}

fn null(py: Python<'_>, column: &'static str) -> PyErr {
    invalid(py, column, "null", "a value in each row")
}

/// Returns the strings of a column without nulls.
pub(crate) fn texts<'a>(py: Python<'_>, array: &'a ArrayRef) -> PyResult<Vec<&'a str>> {
    let texts: Option<Vec<_>> = optional_texts(array)?.into_iter().collect();
    texts.ok_or_else(|| null(py, "texts"))
}

/// The byte strings, or the strings as such, of a column; `None` for a null.
fn optional_binaries(array: &ArrayRef) -> PyResult<Vec<Option<&[u8]>>> {
    match array.data_type() {
        DataType::Binary => Ok(array.as_binary::<i32>().iter().collect()),
        DataType::LargeBinary => Ok(array.as_binary::<i64>().iter().collect()),
        DataType::BinaryView => Ok(array.as_binary_view().iter().collect()),
        _ => {
            let texts = optional_texts(array)?.into_iter();
            Ok(texts.map(|text| text.map(str::as_bytes)).collect())
        }
    }
}

/// The byte strings, or the strings as such, of a column without nulls.
pub(crate) fn binaries<'a>(
    py: Python<'_>,
    column: &'static str,
    array: &'a ArrayRef,
) -> PyResult<Vec<&'a [u8]>> {
    let values: Option<Vec<_>> = optional_binaries(array)?.into_iter().collect();
    values.ok_or_else(|| null(py, column))
}

/// Returns the strings of an Arrow column, and `None` for a null. For byte strings, returns the
/// corresponding keys.
#[pyfunction]
pub(crate) fn arrow_list<'py>(
    column: &Bound<'py, PyAny>,
) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
    let py = column.py();
    let Some(arrays) = arrow_arrays("column", column)? else {
        return Err(PyTypeError::new_err("this is no Arrow column"));
    };
    let mut all = Vec::new();
    for next in arrays {
        let array = next.map_err(arrow_error)?;
        for value in optional_binaries(&array)? {
            all.push(value.map(|value| key_object(py, value)).transpose()?);
        }
    }
    Ok(all)
}

/// Converts an item at a position.
type Convert<'py, T> = fn(&'static str, usize, &Bound<'py, PyAny>) -> PyResult<T>;

/// Values that accompany documents, such as keys: one for each document, passed in the same steps.
pub(crate) enum Beside<'py, T> {
    Nothing,
    Items {
        name: &'static str,
        items: Bound<'py, PyIterator>,
        /// The number of items read.
        read: usize,
        convert: Convert<'py, T>,
    },
    Ready(&'static str, std::vec::IntoIter<T>),
}

impl<'py> Beside<'py, Option<Key>> {
    pub(crate) fn keys(keys: Option<&Bound<'py, PyAny>>) -> PyResult<Self> {
        let Some(keys) = keys else {
            return Ok(Self::Nothing);
        };
        if let Some(arrays) = arrow_arrays("keys", keys)? {
            let mut all = Vec::new();
            for next in arrays {
                let array = next.map_err(arrow_error)?;
                let column = match array.data_type().is_binary() {
                    true => array,
                    false => key_column(keys.py(), "keys", &array, all.len())?,
                };
                let rows = optional_binaries(&column)?;
                all.extend(rows.into_iter().map(|key| key.map(|key| Key(key.to_vec()))));
            }
            return Ok(Self::Ready("keys", all.into_iter()));
        }
        Self::items("keys", keys, |_, place, key| listed_key(key, place))
    }
}

impl<'py, T> Beside<'py, T> {
    fn items(
        name: &'static str,
        values: &Bound<'py, PyAny>,
        convert: Convert<'py, T>,
    ) -> PyResult<Self> {
        if values.is_instance_of::<PySet>() || values.is_instance_of::<PyFrozenSet>() {
            let text = format!("{name}: found a set, which has no order, expected a list");
            return Err(PyTypeError::new_err(text));
        }
        Ok(Self::Items {
            name,
            items: several(name, values)?,
            read: 0,
            convert,
        })
    }

    pub(crate) fn values(name: &'static str, values: Option<&Bound<'py, PyAny>>) -> PyResult<Self>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        match values {
            None => Ok(Self::Nothing),
            Some(values) => Self::items(name, values, |name, place, item| {
                item.extract().map_err(Into::into).map_err(|reason: PyErr| {
                    let py = item.py();
                    let message = format!("{name}: {} at position {place}", reason.value(py));
                    PyErr::from_type(reason.get_type(py), message)
                })
            }),
        }
    }

    /// Returns the values of the next `count` documents, `None` without any such values.
    pub(crate) fn next(&mut self, py: Python<'py>, count: usize) -> PyResult<Option<Vec<T>>> {
        let (name, found) = match self {
            Self::Nothing => return Ok(None),
            Self::Items {
                name,
                items,
                read,
                convert,
            } => {
                let items = (*read..).zip(items.take(count));
                let found = items.map(|(place, item)| convert(name, place, &item?));
                let found = found.collect::<PyResult<Vec<T>>>()?;
                *read += found.len();
                (*name, found)
            }
            Self::Ready(name, items) => (*name, items.take(count).collect()),
        };
        if found.len() < count {
            let found = "fewer than there are documents";
            return Err(invalid(py, name, found, "one for each"));
        }
        Ok(Some(found))
    }

    /// Checks that no value is left after the last document.
    pub(crate) fn end(&mut self, py: Python<'py>) -> PyResult<()> {
        let (name, is_over) = match self {
            Self::Nothing => return Ok(()),
            Self::Items { name, items, .. } => (*name, items.next().transpose()?.is_none()),
            Self::Ready(name, items) => (*name, items.next().is_none()),
        };
        if is_over {
            return Ok(());
        }
        let found = "more than there are documents";
        Err(invalid(py, name, found, "one for each"))
    }
}

/// Returns the number of threads that a caller requested, or one for each core.
pub(crate) fn threads_or_all(py: Python<'_>, threads: Option<usize>) -> PyResult<usize> {
    match threads {
        Some(threads) if !(1..=1_024).contains(&threads) => {
            Err(invalid(py, "threads", threads, "1 to 1,024"))
        }
        Some(threads) => Ok(threads),
        None => Ok(std::thread::available_parallelism().map_or(1, NonZeroUsize::get)),
    }
}

/// Makes the signature of a text. A long one is read in pieces, with a look at signals between.
pub(crate) fn sketch(py: Python<'_>, parts: &SchemaParts, document: &str) -> PyResult<Signature> {
    let text = py.detach(|| parts.taken(document)).or_raise(py)?;
    if text.len() <= PIECE_BYTES {
        return py.detach(|| parts.sketcher.text(&text)).or_raise(py);
    }
    let mut stream = parts.sketcher.streamed_text().or_raise(py)?;
    let mut rest: &str = &text;
    while !rest.is_empty() {
        let mut end = rest.len().min(PIECE_BYTES);
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (piece, later) = rest.split_at(end);
        stream = py.detach(|| {
            stream.push(piece);
            stream
        });
        py.check_signals()?;
        rest = later;
    }
    Ok(stream.finish())
}

/// A text or a signature, as a signature.
pub(crate) fn signature_of(
    py: Python<'_>,
    schema: &Py<Schema>,
    document: &Bound<'_, PyAny>,
) -> PyResult<Signature> {
    if let Ok(ready) = document.cast::<signature::Signature>() {
        let signature = &ready.get().signature;
        schema.get().parts.check(signature).or_raise(py)?;
        return Ok(signature.clone());
    }
    let Ok(text) = document.cast::<PyString>() else {
        let found = document.get_type().name()?;
        return Err(invalid(py, "document", found, "a str or a Signature"));
    };
    match text.to_str() {
        Ok(text) => sketch(py, &schema.get().parts, text),
        Err(error) => Err(invalid(py, "document", error.value(py), ENCODABLE)),
    }
}

/// Divides many items among threads. The results are in order.
pub(crate) fn in_shares<I: Sync, T: Send>(
    items: &[I],
    threads: usize,
    work: impl Fn(&[I]) -> Result<Vec<T>, Error> + Sync,
) -> Result<Vec<T>, Error> {
    if threads <= 1 || items.len() < 2 {
        return work(items);
    }
    let work = &work;
    std::thread::scope(|scope| {
        let mut shares = items.chunks(items.len().div_ceil(threads));
        let own = shares.next();
        let others: Vec<_> = shares
            .map(|share| scope.spawn(move || work(share)))
            .collect();
        let mut all = own.map_or(Ok(Vec::new()), work)?;
        all.extend(joined(others)?);
        Ok(all)
    })
}

impl Item<'_> {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Ready(_) => 0,
        }
    }
}
