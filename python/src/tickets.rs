//! Tickets of queued changes, for which asyncio can wait.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::answers::Novelty;
use crate::errors::OrRaise;
use crate::waiting::{Home, lock, receive};

/// The answer to a queued change: a `Novelty`, or `None` for a position.
#[pyclass(frozen, generic, module = "resemblance")]
pub(crate) struct Ticket {
    state: Mutex<TicketState>,
    home: Home,
}

type Answer = resemblance::Result<Option<resemblance::Novelty>>;

enum TicketState {
    Waiting(Pin<Box<dyn Future<Output = Answer> + Send>>),
    Answered(Answer),
    Fetched,
}

/// Wakes a thread, or calls a Python callable.
enum Bell {
    Thread(SyncSender<()>),
    Callable(Py<PyAny>),
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        match &*self {
            // A full channel has rung already.
            Self::Thread(sender) => drop(sender.try_send(())),
            Self::Callable(callable) => {
                // If the loop is closed, no task waits any more.
                let _ = Python::try_attach(|py| callable.call0(py).map(drop));
            }
        }
    }
}

impl Ticket {
    pub(crate) fn new<T: 'static>(
        ticket: resemblance::Ticket<T>,
        novelty_of: fn(T) -> Option<resemblance::Novelty>,
    ) -> Self {
        let answer = Box::pin(async move { ticket.await.map(novelty_of) });
        Self {
            state: Mutex::new(TicketState::Waiting(answer)),
            home: Home::here(),
        }
    }

    /// Returns true if the answer is available. Otherwise the bell rings when it is.
    fn poll(&self, bell: Bell) -> bool {
        let mut state = lock(&self.state);
        if let TicketState::Waiting(ticket) = &mut *state {
            let waker = Waker::from(Arc::new(bell));
            match ticket.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Pending => return false,
                Poll::Ready(answer) => *state = TicketState::Answered(answer),
            }
        }
        true
    }
}

#[pymethods]
impl Ticket {
    /// Returns true if the answer is available. Otherwise calls `callable` in some thread when it
    /// is.
    fn on_ready(&self, py: Python<'_>, callable: Py<PyAny>) -> PyResult<bool> {
        self.home.check(py)?;
        Ok(py.detach(|| self.poll(Bell::Callable(callable))))
    }

    /// Waits for the answer. The change is then durable.
    fn wait(&self, py: Python<'_>) -> PyResult<Option<Novelty>> {
        self.home.check(py)?;
        let (sender, receiver): (_, Receiver<()>) = sync_channel(1);
        let receiver = Mutex::new(receiver);
        while !py.detach(|| self.poll(Bell::Thread(sender.clone()))) {
            receive(py, &receiver, || Ok(()))?;
        }
        self.result(py)
    }

    /// Returns the answer if it is available. It can be taken only once.
    fn result(&self, py: Python<'_>) -> PyResult<Option<Novelty>> {
        let state = py.detach(|| {
            let mut state = lock(&self.state);
            match &*state {
                TicketState::Answered(_) => std::mem::replace(&mut *state, TicketState::Fetched),
                _ => TicketState::Fetched,
            }
        });
        match state {
            TicketState::Answered(answer) => Ok(answer.or_raise(py)?.map(Novelty)),
            _ => Err(PyRuntimeError::new_err(
                "there is no answer yet, or it was fetched",
            )),
        }
    }
}
