//! Objects of the Python half, made from here.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule};

use crate::errors::invalid;

/// A class of a module of the package, such as `("reports", "CheckReport")`.
pub(crate) fn class<'py>(py: Python<'py>, module: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
    PyModule::import(py, format!("resemblance.{module}"))?.getattr(name)
}

/// An object of such a class, made with keyword arguments.
pub(crate) fn object<'py>(
    py: Python<'py>,
    module: &str,
    name: &str,
    fields: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    class(py, module, name)?.call((), Some(fields))
}

/// Makes a dictionary of named values.
macro_rules! fields {
    ($py:expr, $($name:ident: $value:expr),+ $(,)?) => {{
        let fields = pyo3::types::PyDict::new($py);
        $(fields.set_item(stringify!($name), $value)?;)+
        fields
    }};
}
pub(crate) use fields;

/// A number as the library takes it.
///
/// # Errors
/// `InvalidParameterError` if it is negative or too large.
pub(crate) fn number<T: TryFrom<i64>>(
    py: Python<'_>,
    parameter: &'static str,
    value: i64,
) -> PyResult<T> {
    T::try_from(value).map_err(|_| {
        let bits = size_of::<T>() * 8;
        let expected = format!("a whole number from 0 on, of at most {bits} bits");
        invalid(py, parameter, value, expected)
    })
}

/// Which of some words a parameter is.
pub(crate) fn choice<T: Copy>(
    py: Python<'_>,
    parameter: &'static str,
    word: &str,
    choices: &[(&str, T)],
) -> PyResult<T> {
    let found = choices.iter().find(|(name, _)| *name == word);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = choices
            .iter()
            .map(|(name, _)| format!("{name:?}"))
            .collect();
        invalid(py, parameter, format!("{word:?}"), names.join(" or "))
    })
}

/// The element of a sequence at an index, which counts from the end if it is negative.
pub(crate) fn at<T>(all: &[T], index: isize) -> Option<&T> {
    let start = if index < 0 { all.len() } else { 0 };
    all.get(start.checked_add_signed(index)?)
}
