//! Creates objects of the Python half.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyModule, PySlice};

use crate::errors::invalid;

/// An object of the Python half, or the exception that creating it raised.
pub(crate) type Report<'py> = PyResult<Bound<'py, PyAny>>;

/// A class of a module of the package, such as `("reports", "CheckReport")`.
pub(crate) fn class<'py>(py: Python<'py>, module: &str, name: &str) -> Report<'py> {
    PyModule::import(py, format!("resemblance.{module}"))?.getattr(name)
}

/// Creates an object of such a class, from the fields of a value with the same names and from
/// additional named values.
macro_rules! object {
    ($py:expr, $module:ident.$class:ident, $source:ident { $($field:ident),+ }
        $(, $name:ident: $value:expr)* $(,)?) => {
        crate::python::object!($py, $module.$class,
            $($field: $source.$field,)+ $($name: $value,)*)
    };
    ($py:expr, $module:ident.$class:ident, $($name:ident: $value:expr),+ $(,)?) => {{
        let fields = pyo3::types::PyDict::new($py);
        $(fields.set_item(stringify!($name), $value)?;)+
        crate::python::class($py, stringify!($module), stringify!($class))?
            .call((), Some(&fields))
    }};
}
pub(crate) use object;

/// Passes settings to a builder if they are set: `given!(builder, limit, min_similarity:
/// threshold)` calls `builder.limit(…)` unless `limit` is `None`. After a semicolon follow methods
/// that are called on a condition.
macro_rules! given {
    (@value $setting:ident) => { $setting };
    (@value $setting:ident $value:expr) => { $value };
    ($builder:expr, $($setting:ident $(: $value:expr)?),* $(; $($method:ident if $holds:expr),+)?) => {{
        let builder = $builder;
        $(let builder = match crate::python::given!(@value $setting $($value)?) {
            Some(value) => builder.$setting(value),
            None => builder,
        };)*
        $($(let builder = if $holds { builder.$method() } else { builder };)+)?
        builder
    }};
}
pub(crate) use given;

/// Converts a number to the library's type.
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

pub(crate) fn optional_number<T: TryFrom<i64>>(
    py: Python<'_>,
    parameter: &'static str,
    value: Option<i64>,
) -> PyResult<Option<T>> {
    value.map(|value| number(py, parameter, value)).transpose()
}

/// Returns the choice that a parameter's word names.
pub(crate) fn choice<T: Copy>(
    py: Python<'_>,
    parameter: &'static str,
    word: &str,
    choices: &[(&str, T)],
) -> PyResult<T> {
    let found = choices.iter().find(|(name, _)| *name == word);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names = choices.iter().map(|(name, _)| format!("{name:?}"));
        let expected = names.collect::<Vec<_>>().join(" or ");
        invalid(py, parameter, format!("{word:?}"), expected)
    })
}

/// The element of a sequence at an index, or a list of those of a slice.
pub(crate) fn item<'py, T>(
    all: &[T],
    index: &Bound<'py, PyAny>,
    what: &str,
    object: impl Fn(&T) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    if index.is_instance_of::<PySlice>() {
        let objects = all.iter().map(object).collect::<PyResult<Vec<_>>>()?;
        return PyList::new(index.py(), objects)?.as_any().get_item(index);
    }
    object(at(all, index.extract()?, what)?)
}

/// The element of a sequence at an index, which counts from the end if it is negative.
pub(crate) fn at<'a, T>(all: &'a [T], index: isize, what: &str) -> PyResult<&'a T> {
    let start = if index < 0 { all.len() } else { 0 };
    let place = start.checked_add_signed(index);
    let found = place.and_then(|place| all.get(place));
    found.ok_or_else(|| PyIndexError::new_err(format!("no {what} has this index")))
}
