//! How far long work is: from the thread that does it to a callable of Python's.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use resemblance::Progress;

use crate::errors::exception;
use crate::python::{fields, object};
use crate::waiting::{Stop, lock};

/// What a thread tells its caller.
#[derive(Clone, Default)]
pub(crate) struct Told {
    pub(crate) stop: Stop,
    newest: Arc<Mutex<Option<Progress>>>,
}

impl Told {
    /// The callback of a long operation of the library.
    pub(crate) fn callback(&self) -> impl FnMut(Progress) -> ControlFlow<()> + Send + use<> {
        let told = self.clone();
        move |progress| {
            *lock(&told.newest) = Some(progress);
            if told.stop.is_set() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        }
    }
}

/// Tells a callable of Python's what is new.
pub(crate) struct Reporter {
    callable: Option<Py<PyAny>>,
    last: Option<Progress>,
}

impl Reporter {
    pub(crate) fn new(callable: Option<Py<PyAny>>) -> Self {
        Self {
            callable,
            last: None,
        }
    }

    /// # Errors
    /// What the callable raises, and `StoppedError` if it returns `False`.
    pub(crate) fn report(&mut self, py: Python<'_>, told: &Told) -> PyResult<()> {
        let (Some(callable), newest) = (&self.callable, *lock(&told.newest)) else {
            return Ok(());
        };
        let Some(progress) = newest.filter(|progress| self.last != Some(*progress)) else {
            return Ok(());
        };
        self.last = newest;
        let fields = fields!(py,
            phase: progress.phase.to_string(),
            done: progress.done,
            total: progress.total,
            unit: progress.phase.unit(),
        );
        let answer = callable.call1(py, (object(py, "reports", "Progress", &fields)?,))?;
        if answer.bind(py).is_instance_of::<pyo3::types::PyBool>() && !answer.is_truthy(py)? {
            return Err(exception(
                py,
                &resemblance::Error::Stopped { work: "the call" },
            ));
        }
        Ok(())
    }
}
