//! Errors of the library as exceptions of `resemblance.errors`.

use std::io::ErrorKind;
use std::path::Path;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use resemblance::Error;

use crate::lease::OpenFile;
use crate::python::class;

/// Returns the exception for an error.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let made = class(py, "errors", name(error)).and_then(|class| {
        let exception = class.call1((message(error),))?;
        let fields = PyDict::new(py);
        describe(error, &fields)?;
        for (name, value) in fields {
            exception.setattr(name.extract::<String>()?.as_str(), value)?;
        }
        Ok(PyErr::from_value(exception))
    });
    // The module cannot be imported while the interpreter ends: the message is still worth having.
    made.unwrap_or_else(|_| PyRuntimeError::new_err(error.to_string()))
}

/// The error of a parameter of this package.
pub(crate) fn invalid_parameter(
    parameter: &'static str,
    found: impl ToString,
    expected: impl ToString,
) -> Error {
    let (found, expected) = (found.to_string(), expected.to_string());
    Error::InvalidParameter {
        parameter,
        found,
        expected,
    }
}

/// The exception for a parameter of this package.
pub(crate) fn invalid(
    py: Python<'_>,
    parameter: &'static str,
    found: impl ToString,
    expected: impl ToString,
) -> PyErr {
    exception(py, &invalid_parameter(parameter, found, expected))
}

/// The exception for a file that cannot be created or opened.
pub(crate) fn file_error(py: Python<'_>, path: &Path, source: std::io::Error) -> PyErr {
    let path = path.to_owned();
    let error = match source.kind() {
        ErrorKind::AlreadyExists => Error::AlreadyExists { path },
        ErrorKind::NotFound => Error::NotFound { path },
        _ => Error::Io {
            action: format!("opening {}", path.display()),
            source,
        },
    };
    exception(py, &error)
}

/// Checks that no call of this thread uses an object, or one that it would close.
///
/// # Errors
/// `BusyError` with its name otherwise: the callable that a call runs would wait for that call.
pub(crate) fn check_unused(py: Python<'_>, used: Option<&'static str>) -> PyResult<()> {
    let Some(name) = used else {
        return Ok(());
    };
    let message = format!(
        "the {name} is in use by the call that runs this code; use the store or a snapshot here, or \
         wait until that call returns"
    );
    Err(busy(py, &message))
}

/// Returns a `BusyError` with this message.
pub(crate) fn busy(py: Python<'_>, message: &str) -> PyErr {
    let made = class(py, "errors", "BusyError").and_then(|class| class.call1((message,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Turns a result of the library into one of Python.
pub(crate) trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T, E: Into<Error>> OrRaise<T> for Result<T, E> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, &error.into()))
    }
}

fn message(error: &Error) -> String {
    match error {
        Error::Locked { path, .. } => {
            let found = match OpenFile::holders_of(path) {
                Some(holders) => {
                    let shown = path.display();
                    format!("{shown} is open in this process, which has not closed: {holders}")
                }
                None => error.to_string(),
            };
            format!(
                "{found}; with shared_writers=True several processes write a store in turns: see \
                 docs/python/several-processes.md"
            )
        }
        Error::InvalidParameter { parameter, .. } if python_parameter(parameter) != *parameter => {
            error
                .to_string()
                .replacen(parameter, python_parameter(parameter), 1)
        }
        // The name in Rust is not that in Python.
        _ => error.to_string().replace(
            "its `signature_of_values` takes",
            "Signature.from_minhash(values, schema=...) takes",
        ),
    }
}

/// Returns the name in Python of a parameter of the library.
fn python_parameter(parameter: &'static str) -> &'static str {
    match parameter {
        "min_similarity" => "threshold",
        parameter => parameter,
    }
}

fn name(error: &Error) -> &'static str {
    match error {
        Error::Bug { .. } => "InternalError",
        Error::InvalidParameter { .. } => "InvalidParameterError",
        Error::KeyExists { .. } => "KeyExistsError",
        Error::KeyTwice { .. } => "RepeatedKeyError",
        Error::SignatureMismatch { .. } => "SignatureMismatchError",
        Error::AlreadyExists { .. } => "AlreadyExistsError",
        Error::NotFound { .. } => "NotFoundError",
        Error::NotAStore { .. } => "NotAStoreError",
        Error::NewerFormat { .. } => "NewerFormatError",
        Error::UnknownFeatures { .. } => "UnknownFeaturesError",
        Error::UnknownLayout { .. } => "UnknownLayoutError",
        Error::UntriedEngine { .. } => "UntriedEngineError",
        Error::Corrupt { .. } => "CorruptError",
        Error::SelfTest { .. } => "SelfTestError",
        Error::DamagedStream { .. } => "DamagedStreamError",
        Error::OtherRecipe { .. } => "OtherRecipeError",
        Error::ImportStopped { .. } => "ImportStoppedError",
        Error::MissingFeature { .. } => "MissingFeatureError",
        Error::NotUtf8 { .. } => "NotUtf8Error",
        Error::Locked { .. } | Error::OtherProtocol { .. } => "LockedError",
        Error::LocksUnsupported { .. } => "LocksUnsupportedError",
        Error::Forked => "ForkedError",
        Error::NeedsRecovery { .. } => "NeedsRecoveryError",
        Error::Stopped { .. } => "StoppedError",
        Error::ReadOnly => "ReadOnlyError",
        Error::Busy => "BusyError",
        Error::QueueFull { .. } => "QueueFullError",
        Error::Closed { .. } => "ClosedError",
        Error::Io { .. } => "StoreIOError",
        Error::Storage(_) => "StorageError",
        // The library may gain kinds; the message identifies them.
        _ => "ResemblanceError",
    }
}

/// Sets the fields of an error that a program may want to read.
fn describe(error: &Error, fields: &Bound<'_, PyDict>) -> PyResult<()> {
    let py = fields.py();
    match error {
        Error::InvalidParameter {
            parameter,
            found,
            expected,
        } => {
            fields.set_item("parameter", python_parameter(parameter))?;
            fields.set_item("found", found)?;
            fields.set_item("expected", expected)
        }
        Error::KeyExists { key, id } => {
            fields.set_item("key", PyBytes::new(py, key))?;
            fields.set_item("id", id.get())
        }
        Error::KeyTwice { key, first, second } => {
            fields.set_item("key", PyBytes::new(py, key))?;
            fields.set_item("first", first.get())?;
            fields.set_item("second", second.get())
        }
        Error::Locked { path, holder } => {
            fields.set_item("holder", holder)?;
            fields.set_item("filename", path)
        }
        Error::OtherProtocol { path } => {
            fields.set_item("holder", "a process of another release")?;
            fields.set_item("filename", path)
        }
        Error::AlreadyExists { path }
        | Error::NotFound { path }
        | Error::NotAStore { path, .. }
        | Error::LocksUnsupported { path }
        | Error::NeedsRecovery { path } => fields.set_item("filename", path),
        Error::Io { source, .. } => fields.set_item("errno", source.raw_os_error()),
        Error::DamagedStream { documents, .. } => fields.set_item("documents", documents),
        Error::ImportStopped { documents, source } => {
            fields.set_item("documents", documents)?;
            fields.set_item("__cause__", exception(py, source).into_value(py))
        }
        _ => Ok(()),
    }
}
