//! Keys: bytes in a store, `str` in Python.
//!
//! A key is passed as `str` or `bytes`, and returned as `str`. Bytes that are not UTF-8 are escaped
//! as Python escapes file names (`surrogateescape`), so a returned key can be passed again.

use std::borrow::Cow;

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyIterator, PyMemoryView, PyString};

use crate::python::class;

/// The encoding that preserves Python's own file names.
const ESCAPED: (&str, &str) = ("utf-8", "surrogateescape");

/// A key that a caller gave.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key(pub(crate) Vec<u8>);

impl<'py> FromPyObject<'_, 'py> for Key {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let value: &Bound<'py, PyAny> = &value;
        if let Ok(text) = value.cast::<PyString>() {
            return match text.to_str() {
                Ok(text) => Ok(Self(text.as_bytes().to_vec())),
                Err(_) => {
                    let bytes = text.call_method1("encode", ESCAPED)?;
                    Ok(Self(bytes.cast::<PyBytes>()?.as_bytes().to_vec()))
                }
            };
        }
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(Self(bytes.as_bytes().to_vec()));
        }
        let found = value.get_type().name()?;
        let text =
            format!("a key is str or bytes, and not {found}; str() makes one of most things");
        Err(PyTypeError::new_err(text))
    }
}

/// Iterates over the values of a parameter that takes several. A text is not its characters, bytes
/// are not numbers, a mapping is not its keys, a table is not the names of its columns, and an open
/// file is not its lines.
#[pyfunction]
pub(crate) fn several<'py>(
    parameter: &str,
    values: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyIterator>> {
    let is_one = values.is_instance_of::<PyString>()
        || values.is_instance_of::<PyBytes>()
        || values.is_instance_of::<PyByteArray>()
        || values.is_instance_of::<PyMemoryView>();
    let advice = if is_one {
        "; make a list of a single one"
    } else if is_mapping(values)? {
        "; list(it.values()) has its values, and list(it) its keys"
    } else if values
        .getattr_opt("columns")?
        .is_some_and(|it| !it.is_callable())
    {
        "; a table is not one of its columns"
    } else if values.hasattr("readline")? {
        "; read_files() reads files, and a generator may strip the ends of lines"
    } else if values.hasattr("__iter__")? || values.hasattr("__getitem__")? {
        return values.try_iter();
    } else {
        ""
    };
    let found = values.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "{parameter}: found {found}, expected a list or another iterable{advice}"
    )))
}

/// True if a value is a mapping. Python code may decide this, and an exception that it raises, such as
/// that of Ctrl-C, must not be lost.
fn is_mapping(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let mapping = value.py().import("collections.abc")?.getattr("Mapping")?;
    value.is_instance(&mapping)
}

/// Iterates over the features of a set.
pub(crate) fn features_of<'py>(set: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    several("features", set)
}

/// A key of a list by the rule for a column: strings, bytes and numbers are keys, and so are times.
/// `place` is its position.
pub(crate) fn listed_key(value: &Bound<'_, PyAny>, place: usize) -> PyResult<Option<Key>> {
    if let Ok(key) = value.extract() {
        return Ok(key);
    }
    let key = class(value.py(), "corpus", "_key")?.call1((value, place))?;
    key.extract()
}

impl Key {
    /// The exception that no document has this key.
    pub(crate) fn missing(self, py: Python<'_>) -> PyErr {
        match self.into_pyobject(py) {
            Ok(key) => PyKeyError::new_err(key.unbind()),
            Err(_) => PyKeyError::new_err("no document has this key"),
        }
    }
}

/// A key as it is returned.
impl<'py> IntoPyObject<'py> for &Key {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        key_object(py, &self.0)
    }
}

impl<'py> IntoPyObject<'py> for Key {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        key_object(py, &self.0)
    }
}

/// Returns a key as a Python object.
pub(crate) fn key_object<'py>(py: Python<'py>, key: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match String::from_utf8_lossy(key) {
        Cow::Borrowed(text) => Ok(PyString::new(py, text).into_any()),
        Cow::Owned(_) => PyBytes::new(py, key).call_method1("decode", ESCAPED),
    }
}

/// Returns a key as a Python object, `None` for a document without one.
pub(crate) fn optional_key<'py>(
    py: Python<'py>,
    key: Option<&[u8]>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    key.map(|key| key_object(py, key)).transpose()
}
