//! Long calls, during which the interpreter continues and Ctrl-C works.
//!
//! Python handles signals in its main thread, between its own instructions. Nothing here may
//! therefore work for longer than a moment without asking for signals. Work is done in pieces, or
//! in a separate thread that can be stopped, and for which the caller waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use resemblance::Error;

use crate::errors::{OrRaise, busy, exception};
use crate::lease::{Holder, OpenFile};
pub(crate) use crate::lease::{closed, lock};
use crate::progress::{Callback, CallerLink, Reporter};

/// How often Python is asked for signals.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

/// How long to wait for a stopped thread before its caller continues without it.
const GRACE: Duration = Duration::from_millis(250);

/// Calls the library without the interpreter.
pub(crate) fn released<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    py.detach(work).or_raise(py)
}

/// The process that made a value. In a fork of it, the threads that hold locks do not exist, so
/// nothing may wait there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home(u32);

impl Home {
    pub(crate) fn here() -> Self {
        Self(std::process::id())
    }

    /// # Errors
    /// `ForkedError` in any other process.
    pub(crate) fn check(self, py: Python<'_>) -> PyResult<()> {
        if self == Self::here() {
            return Ok(());
        }
        Err(exception(py, &Error::Forked))
    }
}

/// An open store, until it is closed.
pub(crate) struct Handle {
    pub(crate) store: Mutex<Option<resemblance::Store>>,
    pub(crate) file: Arc<OpenFile>,
    pub(crate) home: Home,
}

impl Holder for Handle {
    fn holds(&self) -> bool {
        lock(&self.store).is_some()
    }

    /// A store closes itself.
    fn release(&self) {}
}

impl Handle {
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<resemblance::Store> {
        self.home.check(py)?;
        let store = py.detach(|| lock(&self.store).clone());
        store.ok_or_else(|| closed("the store")).or_raise(py)
    }
}

impl Drop for Handle {
    /// The last handle waits for queued changes, and other threads continue meanwhile.
    fn drop(&mut self) {
        let store = lock(&self.store).take();
        // While the interpreter ends, no caller remains to wait for.
        let _ = Python::try_attach(|py| py.detach(|| drop(store)));
    }
}

/// Tells a thread that its caller has stopped waiting.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Threads whose callers continued without them. They hold stores for a moment longer.
static ABANDONED: Mutex<Vec<(Home, JoinHandle<()>)>> = Mutex::new(Vec::new());

/// Waits for threads that were stopped, so that the files they had open can be opened.
pub(crate) fn await_stopped(py: Python<'_>) -> PyResult<()> {
    let here = Home::here();
    loop {
        let is_settled = {
            let mut threads = lock(&ABANDONED);
            drop_ended(&mut threads, here);
            threads.is_empty()
        };
        if is_settled {
            return Ok(());
        }
        py.detach(|| std::thread::sleep(PATIENCE / 5));
        py.check_signals()?;
    }
}

/// Detaches a thread that was stopped.
pub(crate) fn abandon(home: Home, thread: JoinHandle<()>) {
    if home == Home::here() {
        let mut threads = lock(&ABANDONED);
        drop_ended(&mut threads, home);
        threads.push((home, thread));
    }
}

/// Drops the handles of threads that have ended, because their stacks stay in memory until then, and
/// those of another process.
fn drop_ended(threads: &mut Vec<(Home, JoinHandle<()>)>, here: Home) {
    threads.retain(|(home, thread)| *home == here && !thread.is_finished());
}

/// Starts a thread of this package.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> PyResult<JoinHandle<()>> {
    let builder = std::thread::Builder::new().name("resemblance".into());
    builder.spawn(work).map_err(PyErr::from)
}

/// Receives from a thread, and lets Python handle signals meanwhile. Returns `None` if the thread
/// has ended.
pub(crate) fn receive<T: Send>(
    py: Python<'_>,
    receiver: &Mutex<Receiver<T>>,
    mut while_waiting: impl FnMut() -> PyResult<()>,
) -> PyResult<Option<T>> {
    loop {
        match py.detach(|| lock(receiver).recv_timeout(PATIENCE)) {
            Ok(value) => return Ok(Some(value)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals()?;
                while_waiting()?;
            }
        }
    }
}

/// Does long work in a separate thread. `progress` is a callable that receives the progress. If it
/// returns `False`, the work is stopped; if it raises, that exception is raised here.
pub(crate) fn in_background<T: Send + 'static>(
    py: Python<'_>,
    progress: Callback,
    work: impl FnOnce(&CallerLink) -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let link = CallerLink::default();
    let own = link.clone();
    let (sender, receiver) = sync_channel(1);
    let thread = spawn(move || {
        // The caller may have stopped waiting.
        let _ = sender.send(work(&own));
    })?;
    let receiver = Mutex::new(receiver);
    let mut reporter = Reporter::new(progress);
    let received = receive(py, &receiver, || reporter.report(py, &link));
    match received.and_then(|answer| reporter.report(py, &link).map(|()| answer)) {
        Ok(Some(answer)) => {
            let _ = py.detach(|| thread.join());
            answer.or_raise(py)
        }
        Ok(None) => Err(panicked()),
        Err(raised) => {
            link.stop.set();
            py.detach(|| leave(thread));
            Err(raised)
        }
    }
}

/// Computes in a separate thread. After Ctrl-C the caller does not wait for it: it holds no file.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = sync_channel(1);
    // The caller may have stopped waiting.
    drop(spawn(move || drop(sender.send(work())))?);
    let answer = receive(py, &Mutex::new(receiver), || Ok(()))?;
    answer.ok_or_else(panicked)?.or_raise(py)
}

fn panicked() -> PyErr {
    PyRuntimeError::new_err("a thread of resemblance panicked")
}

/// Waits a moment for a thread that was stopped, then detaches it.
fn leave(thread: JoinHandle<()>) {
    let end = Instant::now() + GRACE;
    while !thread.is_finished() {
        if Instant::now() >= end {
            abandon(Home::here(), thread);
            return;
        }
        std::thread::sleep(PATIENCE / 10);
    }
}

/// Admits one writer: a transaction, or any number of calls that each begin one. A thread that
/// waits for a transaction waits here, where Ctrl-C ends the wait, and not in the library.
#[derive(Default)]
pub(crate) struct WriterGate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    /// The thread that began the open transaction.
    transaction: Option<ThreadId>,
    /// The number of transactions that wait to begin: later calls let them pass first.
    waiting: usize,
    /// The threads of the calls in progress.
    calls: Vec<ThreadId>,
}

/// Leaves the gate when it is dropped.
pub(crate) struct Passage {
    gate: Arc<WriterGate>,
    /// The thread of a call, `None` for a transaction.
    call: Option<ThreadId>,
}

impl GateState {
    /// True if this thread is in a call, whose callable it runs.
    fn is_in_call(&self) -> bool {
        self.calls.contains(&std::thread::current().id())
    }

    /// # Errors
    /// `Busy` if this thread has a transaction open: it would wait for itself.
    fn check_thread(&self) -> Result<(), Error> {
        match self.transaction == Some(std::thread::current().id()) {
            true => Err(Error::Busy),
            false => Ok(()),
        }
    }
}

impl WriterGate {
    /// # Errors
    /// `BusyError` if this thread has a transaction open.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        let checked = lock(&self.state).check_thread();
        checked.or_raise(py)
    }

    /// Lets one call write.
    pub(crate) fn pass(self: &Arc<Self>, py: Python<'_>) -> PyResult<Passage> {
        self.enter(py, false)
    }

    /// Lets this thread take part in a call that another one began, and that waits for it.
    pub(crate) fn take_part(self: &Arc<Self>) -> Passage {
        let thread = std::thread::current().id();
        lock(&self.state).calls.push(thread);
        Passage {
            gate: Arc::clone(self),
            call: Some(thread),
        }
    }

    /// Lets a transaction begin.
    ///
    /// # Errors
    /// `BusyError` if a call of this thread runs a callable that begins it: each would wait for the other.
    pub(crate) fn begin(self: &Arc<Self>, py: Python<'_>) -> PyResult<Passage> {
        if lock(&self.state).is_in_call() {
            let message = "a call that changes the store runs this code: insert or remove single documents here, \
                           or wait until that call returns";
            return Err(busy(py, message));
        }
        lock(&self.state).waiting += 1;
        let entered = self.enter(py, true);
        lock(&self.state).waiting -= 1;
        self.changed.notify_all();
        entered
    }

    fn enter(self: &Arc<Self>, py: Python<'_>, is_transaction: bool) -> PyResult<Passage> {
        while !py.detach(|| self.try_enter(is_transaction)).or_raise(py)? {
            py.check_signals()?;
        }
        Ok(Passage {
            gate: Arc::clone(self),
            call: (!is_transaction).then(|| std::thread::current().id()),
        })
    }

    /// Waits for a moment. Returns true if the caller may continue.
    fn try_enter(&self, is_transaction: bool) -> Result<bool, Error> {
        let mut state = lock(&self.state);
        let blocks = |state: &GateState| {
            let calls_block = is_transaction && !state.calls.is_empty();
            // A call within a call would wait for a transaction that waits for the outer one.
            let lets_pass = !is_transaction && state.waiting > 0 && !state.is_in_call();
            state.transaction.is_some() || calls_block || lets_pass
        };
        state.check_thread()?;
        if blocks(&state) {
            let waited = self.changed.wait_timeout(state, PATIENCE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if blocks(&state) {
                return Ok(false);
            }
        }
        if is_transaction {
            state.transaction = Some(std::thread::current().id());
        } else {
            state.calls.push(std::thread::current().id());
        }
        Ok(true)
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let mut state = lock(&self.gate.state);
        match self.call {
            None => state.transaction = None,
            Some(thread) => {
                let entered = state.calls.iter().position(|it| *it == thread);
                entered.map(|place| state.calls.swap_remove(place));
            }
        }
        drop(state);
        self.gate.changed.notify_all();
    }
}
