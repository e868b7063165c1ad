//! Where the answer to a call is left.

use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use crate::sync::{Condvar, Mutex, MutexGuard};

/// What a thread that waits is told.
#[derive(Debug)]
pub(crate) enum Reply<A> {
    Answer(A),
    /// It leads now. Its own call still waits in the line.
    Lead,
    /// Who led stopped before the call was made.
    Abandoned,
}

#[derive(Debug)]
enum ReplyState<A> {
    Waiting(Option<Waker>),
    Reply(Reply<A>),
    Fetched,
}

/// Where the answer to one call is left, for a thread or for a future.
#[derive(Debug)]
pub(crate) struct ReplySlot<A> {
    state: Mutex<ReplyState<A>>,
    changed: Condvar,
}

impl<A> Default for ReplySlot<A> {
    fn default() -> Self {
        Self {
            state: Mutex::new(ReplyState::Waiting(None)),
            changed: Condvar::new(),
        }
    }
}

impl<A> ReplySlot<A> {
    fn lock(&self) -> MutexGuard<'_, ReplyState<A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, told: Reply<A>) {
        let before = std::mem::replace(&mut *self.lock(), ReplyState::Reply(told));
        self.changed.notify_one();
        if let ReplyState::Waiting(Some(waker)) = before {
            waker.wake();
        }
    }

    pub(crate) fn answer(&self, answer: A) {
        self.tell(Reply::Answer(answer));
    }

    pub(crate) fn lead(&self) {
        self.tell(Reply::Lead);
    }

    /// Tells the owner that there will be no answer, unless there is one.
    pub(crate) fn abandon(&self) {
        let is_open = !matches!(
            *self.lock(),
            ReplyState::Reply(Reply::Answer(_)) | ReplyState::Fetched
        );
        if is_open {
            self.tell(Reply::Abandoned);
        }
    }

    /// Waits to be told.
    pub(crate) fn wait(&self) -> Reply<A> {
        let mut state = self.lock();
        loop {
            match std::mem::replace(&mut *state, ReplyState::Waiting(None)) {
                ReplyState::Reply(Reply::Lead) => return Reply::Lead,
                ReplyState::Reply(told) => {
                    *state = ReplyState::Fetched;
                    return told;
                }
                ReplyState::Fetched => {
                    *state = ReplyState::Fetched;
                    return Reply::Abandoned;
                }
                ReplyState::Waiting(waker) => *state = ReplyState::Waiting(waker),
            }
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What has been told so far.
    pub(crate) fn try_fetch(&self) -> Option<Reply<A>> {
        let mut state = self.lock();
        match &*state {
            ReplyState::Waiting(_) => return None,
            ReplyState::Fetched => return Some(Reply::Abandoned),
            ReplyState::Reply(_) => {}
        }
        match std::mem::replace(&mut *state, ReplyState::Fetched) {
            ReplyState::Reply(told) => Some(told),
            _ => None,
        }
    }

    /// For a future: what has been told, or who is to be woken.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<Reply<A>> {
        let mut state = self.lock();
        if let ReplyState::Waiting(waker) = &mut *state {
            match waker {
                Some(waker) => waker.clone_from(context.waker()),
                None => *waker = Some(context.waker().clone()),
            }
            return Poll::Pending;
        }
        match std::mem::replace(&mut *state, ReplyState::Fetched) {
            ReplyState::Reply(told) => Poll::Ready(told),
            _ => Poll::Ready(Reply::Abandoned),
        }
    }
}
