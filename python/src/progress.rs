//! Reports the progress of long work from the thread that does it to a Python callable.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use resemblance::{Error, Phase, Progress};

use crate::errors::OrRaise;
use crate::python::object;
use crate::waiting::{Stop, lock};

/// A Python callable that receives the progress of a call.
pub(crate) type Callback = Option<Py<PyAny>>;

/// The progress of a phase: done, and total.
type Step = (Phase, u64, Option<u64>);

/// The link between a thread and its caller: progress one way, the order to stop the other.
#[derive(Clone, Default)]
pub(crate) struct CallerLink {
    pub(crate) stop: Stop,
    newest: Arc<Mutex<Option<Step>>>,
}

impl CallerLink {
    pub(crate) fn report(&self, phase: Phase, done: u64, total: Option<u64>) {
        *lock(&self.newest) = Some((phase, done, total));
    }

    /// The callback of a long operation of the library.
    pub(crate) fn callback(&self) -> impl FnMut(Progress) -> ControlFlow<()> + Send + use<> {
        let link = self.clone();
        move |progress| {
            link.report(progress.phase, progress.done, progress.total);
            if link.stop.is_set() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        }
    }
}

/// Reports new progress to a Python callable.
pub(crate) struct Reporter {
    pub(crate) callable: Callback,
    last: Option<Step>,
}

impl Reporter {
    pub(crate) fn new(callable: Callback) -> Self {
        Self {
            callable,
            last: None,
        }
    }

    /// # Errors
    /// Raises what the callable raises, and `StoppedError` if it returns `False`.
    pub(crate) fn report(&mut self, py: Python<'_>, link: &CallerLink) -> PyResult<()> {
        let (Some(callable), newest) = (&self.callable, *lock(&link.newest)) else {
            return Ok(());
        };
        let Some((phase, done, total)) = newest.filter(|step| self.last != Some(*step)) else {
            return Ok(());
        };
        self.last = newest;
        let progress = object!(py, reports.Progress,
            phase: phase.to_string(), done: done, total: total, unit: phase.unit())?;
        let answer = callable.call1(py, (progress,))?;
        if answer.bind(py).is_instance_of::<pyo3::types::PyBool>() && !answer.is_truthy(py)? {
            return Err(Error::Stopped { work: "the call" }).or_raise(py);
        }
        Ok(())
    }
}
