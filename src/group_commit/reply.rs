//! Replies to write requests, and the slots in which they are left.

use std::task::{Context, Poll, Waker};

use crate::sync::{Condvar, IgnorePoison, Mutex, MutexGuard};

/// The message to the owner of a request.
#[derive(Debug)]
pub(super) enum Reply<A> {
    Answer(A),
    /// The waiting thread leads now. Its own request still waits in the queue.
    Lead,
    /// The leader stopped before the request was committed.
    Abandoned,
}

#[derive(Debug)]
enum ReplyState<A> {
    Waiting(Option<Waker>),
    Reply(Reply<A>),
    Fetched,
}

impl<A> ReplyState<A> {
    /// Takes the message, if there is one. A call after the last message returns that the request
    /// was abandoned.
    fn fetch(&mut self) -> Option<Reply<A>> {
        let next = match self {
            Self::Waiting(_) => return None,
            // The answer has not arrived yet: the slot keeps waiting.
            Self::Reply(Reply::Lead) => Self::Waiting(None),
            Self::Reply(_) | Self::Fetched => Self::Fetched,
        };
        match std::mem::replace(self, next) {
            Self::Reply(reply) => Some(reply),
            Self::Waiting(_) | Self::Fetched => Some(Reply::Abandoned),
        }
    }
}

/// The slot for the reply to one request, which a thread waits for or a future polls.
#[derive(Debug)]
pub(super) struct ReplySlot<A> {
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
        self.state.lock().ignore_poison()
    }

    fn send(&self, reply: Reply<A>) {
        let before = std::mem::replace(&mut *self.lock(), ReplyState::Reply(reply));
        self.changed.notify_one();
        if let ReplyState::Waiting(Some(waker)) = before {
            waker.wake();
        }
    }

    pub(super) fn answer(&self, answer: A) {
        self.send(Reply::Answer(answer));
    }

    pub(super) fn lead(&self) {
        self.send(Reply::Lead);
    }

    /// Informs the owner that there will be no answer, unless it has one.
    pub(super) fn abandon(&self) {
        let is_open = !matches!(
            *self.lock(),
            ReplyState::Reply(Reply::Answer(_)) | ReplyState::Fetched
        );
        if is_open {
            self.send(Reply::Abandoned);
        }
    }

    /// Waits for a message.
    pub(super) fn wait(&self) -> Reply<A> {
        let mut state = self.lock();
        loop {
            if let Some(reply) = state.fetch() {
                return reply;
            }
            state = self.changed.wait(state).ignore_poison();
        }
    }

    /// Takes the message, if there is one.
    pub(super) fn try_fetch(&self) -> Option<Reply<A>> {
        self.lock().fetch()
    }

    /// Takes the message for a future, or registers its waker.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<Reply<A>> {
        let mut state = self.lock();
        if let ReplyState::Waiting(waker) = &mut *state {
            match waker {
                Some(waker) => waker.clone_from(context.waker()),
                None => *waker = Some(context.waker().clone()),
            }
        }
        state.fetch().map_or(Poll::Pending, Poll::Ready)
    }
}
