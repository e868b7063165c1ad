//! Tickets of queued changes, for which asyncio can wait.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::answers::Novelty;
use crate::errors::exception;
use crate::waiting::{Home, WriterGate, lock, receive, spawn};

/// The answer to a queued change: a `Novelty`, or `None` for a position.
// It hides its callables from the garbage collector: they are called even if nothing else refers to it.
#[pyclass(frozen, generic, module = "resemblance")]
pub(crate) struct Ticket {
    state: Mutex<TicketState>,
    bells: Arc<Bells>,
    gate: Arc<WriterGate>,
    home: Home,
}

type Answer = resemblance::Result<Option<resemblance::Novelty>>;

enum TicketState {
    Waiting(Pin<Box<dyn Future<Output = Answer> + Send>>),
    Answered(Arc<Answer>),
}

/// Wakes a thread, or has a Python callable called.
enum Bell {
    Thread(Sender<()>),
    Callable(Py<PyAny>, Sender<Py<PyAny>>),
}

/// The bells of a ticket. The library keeps one waker of a ticket, so all who wait share it.
#[derive(Default)]
struct Bells(Mutex<Vec<Bell>>);

impl Wake for Bells {
    fn wake(self: Arc<Self>) {
        let bells = std::mem::take(&mut *lock(&self.0));
        for bell in bells {
            match bell {
                // A thread that was interrupted does not listen.
                Bell::Thread(sender) => drop(sender.send(())),
                Bell::Callable(callable, caller) => drop(caller.send(callable)),
            }
        }
    }
}

/// The thread that calls callables, and its process. The thread that answers tickets must not call
/// them, because it would wait for itself if one of them writes.
static CALLER: Mutex<Option<(Home, Sender<Py<PyAny>>)>> = Mutex::new(None);

/// Returns the way to the thread that calls callables, which begins with the first one.
fn caller() -> PyResult<Sender<Py<PyAny>>> {
    let mut caller = lock(&CALLER);
    match &*caller {
        Some((home, sender)) if *home == Home::here() => Ok(sender.clone()),
        _ => {
            let (sender, receiver) = channel();
            drop(spawn(move || call_each(&receiver))?);
            *caller = Some((Home::here(), sender.clone()));
            Ok(sender)
        }
    }
}

fn call_each(callables: &Receiver<Py<PyAny>>) {
    for callable in callables {
        // While the interpreter ends, no caller remains.
        let _ = Python::try_attach(move |py| {
            let callable = callable.bind(py);
            if let Err(raised) = callable.call0() {
                raised.write_unraisable(py, Some(callable));
            }
        });
    }
}

impl Ticket {
    pub(crate) fn new<T: 'static>(
        ticket: resemblance::Ticket<T>,
        gate: &Arc<WriterGate>,
        novelty_of: fn(T) -> Option<resemblance::Novelty>,
    ) -> Self {
        let answer = Box::pin(async move { ticket.await.map(novelty_of) });
        Self {
            state: Mutex::new(TicketState::Waiting(answer)),
            bells: Arc::default(),
            gate: Arc::clone(gate),
            home: Home::here(),
        }
    }

    /// Returns the answer if it is available. Otherwise the bell rings when it is.
    fn poll(&self, bell: Option<Bell>) -> Option<Arc<Answer>> {
        let mut state = lock(&self.state);
        let ticket = match &mut *state {
            TicketState::Answered(answer) => return Some(Arc::clone(answer)),
            TicketState::Waiting(ticket) => ticket,
        };
        // An answer that arrives after the poll rings only once the bell is here.
        let mut bells = lock(&self.bells.0);
        let waker = Waker::from(Arc::clone(&self.bells));
        match ticket.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => {
                bells.extend(bell);
                None
            }
            Poll::Ready(answer) => {
                let answer = Arc::new(answer);
                *state = TicketState::Answered(Arc::clone(&answer));
                Some(answer)
            }
        }
    }
}

/// Returns a copy of an answer, or raises its error.
fn novelty(py: Python<'_>, answer: &Answer) -> PyResult<Option<Novelty>> {
    match answer {
        Ok(novelty) => Ok(novelty.clone().map(Novelty::from)),
        Err(error) => Err(exception(py, error)),
    }
}

#[pymethods]
impl Ticket {
    /// Returns true if the answer is available. Otherwise calls `callable` when it is.
    ///
    /// One thread of the package calls all callables, one after the other. They may write, but one
    /// that waits keeps the others waiting, also those of asyncio. An exception goes to
    /// `sys.unraisablehook`. A callable is not called after the interpreter has begun to end.
    fn on_ready(&self, py: Python<'_>, callable: Py<PyAny>) -> PyResult<bool> {
        self.home.check(py)?;
        let bell = Bell::Callable(callable, caller()?);
        Ok(py.detach(|| self.poll(Some(bell))).is_some())
    }

    /// Waits for the answer. The change is then durable. If this thread has a transaction open, for
    /// which the change waits, raises `BusyError`.
    fn wait(&self, py: Python<'_>) -> PyResult<Option<Novelty>> {
        self.home.check(py)?;
        let (sender, receiver) = channel();
        let receiver = Mutex::new(receiver);
        loop {
            let bell = Bell::Thread(sender.clone());
            if let Some(answer) = py.detach(|| self.poll(Some(bell))) {
                return novelty(py, &answer);
            }
            receive(py, &receiver, || self.gate.check(py))?;
        }
    }

    /// Returns the answer if it is available. Otherwise raises `RuntimeError`.
    fn result(&self, py: Python<'_>) -> PyResult<Option<Novelty>> {
        self.home.check(py)?;
        match py.detach(|| self.poll(None)) {
            Some(answer) => novelty(py, &answer),
            None => Err(PyRuntimeError::new_err("there is no answer yet")),
        }
    }
}
