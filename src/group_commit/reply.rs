//! Where the answer to a call is left.

use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use crate::sync::{Condvar, Mutex, MutexGuard};

/// What a thread that waits is told.
#[derive(Debug)]
pub(crate) enum Told<A> {
    Answer(A),
    /// It leads now. Its own call still waits in the line.
    Lead,
    /// Who led stopped before the call was made.
    Abandoned,
}

#[derive(Debug)]
enum State<A> {
    Waiting(Option<Waker>),
    Told(Told<A>),
    Fetched,
}

/// Where the answer to one call is left, for a thread or for a future.
#[derive(Debug)]
pub(crate) struct Slot<A> {
    state: Mutex<State<A>>,
    changed: Condvar,
}

impl<A> Default for Slot<A> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State::Waiting(None)),
            changed: Condvar::new(),
        }
    }
}

impl<A> Slot<A> {
    fn lock(&self) -> MutexGuard<'_, State<A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, told: Told<A>) {
        let before = std::mem::replace(&mut *self.lock(), State::Told(told));
        self.changed.notify_one();
        if let State::Waiting(Some(waker)) = before {
            waker.wake();
        }
    }

    pub(crate) fn answer(&self, answer: A) {
        self.tell(Told::Answer(answer));
    }

    pub(crate) fn lead(&self) {
        self.tell(Told::Lead);
    }

    /// Tells the owner that there will be no answer, unless there is one.
    pub(crate) fn abandon(&self) {
        let is_open = !matches!(*self.lock(), State::Told(Told::Answer(_)) | State::Fetched);
        if is_open {
            self.tell(Told::Abandoned);
        }
    }

    /// Waits to be told.
    pub(crate) fn wait(&self) -> Told<A> {
        let mut state = self.lock();
        loop {
            match std::mem::replace(&mut *state, State::Waiting(None)) {
                State::Told(Told::Lead) => return Told::Lead,
                State::Told(told) => {
                    *state = State::Fetched;
                    return told;
                }
                State::Fetched => {
                    *state = State::Fetched;
                    return Told::Abandoned;
                }
                State::Waiting(waker) => *state = State::Waiting(waker),
            }
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What has been told so far.
    pub(crate) fn try_fetch(&self) -> Option<Told<A>> {
        let mut state = self.lock();
        match &*state {
            State::Waiting(_) => return None,
            State::Fetched => return Some(Told::Abandoned),
            State::Told(_) => {}
        }
        match std::mem::replace(&mut *state, State::Fetched) {
            State::Told(told) => Some(told),
            _ => None,
        }
    }

    /// For a future: what has been told, or who is to be woken.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<Told<A>> {
        let mut state = self.lock();
        if let State::Waiting(waker) = &mut *state {
            match waker {
                Some(waker) => waker.clone_from(context.waker()),
                None => *waker = Some(context.waker().clone()),
            }
            return Poll::Pending;
        }
        match std::mem::replace(&mut *state, State::Fetched) {
            State::Told(told) => Poll::Ready(told),
            _ => Poll::Ready(Told::Abandoned),
        }
    }
}
