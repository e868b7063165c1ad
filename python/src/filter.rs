//! The documents that a question is about.

use std::sync::{Arc, Mutex};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use resemblance::StoredDocument;

use crate::keys::{Key, optional_key};
use crate::python::{given, object};
use crate::waiting::lock;

/// Restricts a question to some of the documents. A document must meet every condition that is given.
///
/// The answer is as if the store held no other documents: `limit`, `n`, `probe_budget` and
/// `max_document_frequency` count only those that pass. `newer_than` is the least stamp, and
/// `older_than` is greater than all stamps. `key_prefix` is the beginning of keys. `matching` is a
/// callable that receives a `StoredDocument` and returns true if it passes. It is called from any
/// thread that answers, and an exception that it raises ends the question. It can use the store, but
/// not the transaction or the iterator that asks it: that raises `BusyError`.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Filter {
    newer_than: Option<u64>,
    older_than: Option<u64>,
    key_prefix: Option<Key>,
    matching: Option<Py<PyAny>>,
}

#[pymethods]
impl Filter {
    #[new]
    #[pyo3(signature = (*, newer_than=None, older_than=None, key_prefix=None, matching=None))]
    fn new(
        newer_than: Option<u64>,
        older_than: Option<u64>,
        key_prefix: Option<Key>,
        matching: Option<Py<PyAny>>,
    ) -> Self {
        Self {
            newer_than,
            older_than,
            key_prefix,
            matching,
        }
    }

    // The callable can be changed, and `Filter` cannot: clearing the callable ends every cycle.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.matching)
    }
}

/// The filter of one question, and the exception that its callable raised.
#[derive(Clone, Default)]
pub(crate) struct Passing {
    pub(crate) filter: Option<resemblance::Filter<'static>>,
    /// The callable that the filter asks. The filter shares this reference; `Filter` has another.
    pub(crate) callable: Option<Arc<Py<PyAny>>>,
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Passing {
    pub(crate) fn new(filter: Option<&Bound<'_, Filter>>) -> Self {
        let mut passing = Self::default();
        if let Some(bound) = filter {
            let filter = bound.get();
            let callable = filter.matching.as_ref();
            passing.callable = callable.map(|it| Arc::new(it.clone_ref(bound.py())));
            let (newer_than, older_than) = (filter.newer_than, filter.older_than);
            let key_prefix = filter.key_prefix.as_ref().map(|prefix| &prefix.0);
            let made = given!(
                resemblance::Filter::all(),
                newer_than,
                older_than,
                key_prefix
            );
            passing.filter = Some(match passing.callable.clone() {
                Some(callable) => {
                    let raised = Arc::clone(&passing.raised);
                    made.when(move |document| passes(&callable, &raised, document))
                }
                None => made,
            });
        }
        passing
    }

    /// Returns the answer, or the exception that the callable raised.
    pub(crate) fn answer<T>(&self, result: PyResult<T>) -> PyResult<T> {
        match lock(&self.raised).take() {
            Some(error) => Err(error),
            None => result,
        }
    }
}

/// Asks the callable, unless it has raised: then no further document passes.
fn passes(
    callable: &Py<PyAny>,
    raised: &Mutex<Option<PyErr>>,
    document: &StoredDocument<'_>,
) -> bool {
    if lock(raised).is_some() {
        return false;
    }
    let judged = Python::attach(|py| judge(py, callable, document));
    judged.unwrap_or_else(|error| {
        *lock(raised) = Some(error);
        false
    })
}

/// Asks a Python callable about a stored document.
pub(crate) fn judge(
    py: Python<'_>,
    callable: &Py<PyAny>,
    document: &StoredDocument<'_>,
) -> PyResult<bool> {
    let document = object!(py, reports.StoredDocument,
        id: document.id().get(),
        key: optional_key(py, document.key())?,
        stamp: document.stamp(),
        payload: document.payload(),
    )?;
    callable.call1(py, (document,))?.is_truthy(py)
}
