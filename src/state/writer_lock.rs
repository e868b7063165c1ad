//! The writer lock: one writer at a time, first come, first served, and no thread waits for itself.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::sync::{Condvar, HomeProcess, IgnorePoison, Mutex, MutexGuard, ThreadId, thread};

/// The lock of a store's write transaction.
///
/// It knows which thread holds it, so that a thread that locks it twice gets an error instead of a
/// deadlock. A transaction may move between threads: the one that changed it last holds the lock.
/// Waiting threads get it in the order of arrival, so a thread that writes over and over does not
/// starve others.
#[derive(Debug, Default)]
pub(crate) struct WriterLock {
    queue: Mutex<LockQueue>,
}

#[derive(Debug, Default)]
struct LockQueue {
    holder: Option<ThreadId>,
    waiting: VecDeque<Arc<Waiter>>,
}

/// A thread that waits.
#[derive(Debug)]
struct Waiter {
    thread: ThreadId,
    /// Signalled, under the lock of the queue, when the thread holds the writer lock.
    has_turn: Condvar,
}

impl WriterLock {
    fn lock(&self) -> MutexGuard<'_, LockQueue> {
        self.queue.lock().ignore_poison()
    }

    fn guard(self: &Arc<Self>, holder: ThreadId) -> WriterGuard {
        WriterGuard {
            lock: Arc::clone(self),
            holder,
            home: HomeProcess::current(),
        }
    }

    /// Waits until this thread holds the lock.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<WriterGuard> {
        let current = thread::current().id();
        let mut queue = self.lock();
        match queue.holder {
            // The lock is handed over without a gap, so if no thread holds it, no thread waits.
            None => queue.holder = Some(current),
            Some(thread) if thread == current => return Err(Error::Busy),
            Some(_) => {
                let turn = Arc::new(Waiter {
                    thread: current,
                    // One for each thread: a shared one would wake all of them with each hand-over.
                    has_turn: Condvar::new(),
                });
                queue.waiting.push_back(Arc::clone(&turn));
                // The leaving thread makes the next waiting thread the holder at once. If it only
                // freed the lock, a thread that arrives now could take it before the one that was
                // woken.
                while queue.holder != Some(current) {
                    queue = turn.has_turn.wait(queue).ignore_poison();
                }
            }
        }
        Ok(self.guard(current))
    }

    /// Takes the lock, or returns [`Error::Busy`] if any thread holds it.
    pub(crate) fn try_enter(self: &Arc<Self>) -> Result<WriterGuard> {
        let mut queue = self.lock();
        if queue.holder.is_some() {
            return Err(Error::Busy);
        }
        let current = thread::current().id();
        queue.holder = Some(current);
        Ok(self.guard(current))
    }

    /// Returns true if a thread waits for the lock.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    /// Returns true if this thread holds the lock, so that waiting for a writer would never end.
    pub(crate) fn is_held_here(&self) -> bool {
        self.lock().holder == Some(thread::current().id())
    }
}

/// Guard of the writer lock; dropping it hands the lock to the next waiting thread.
#[derive(Debug)]
pub(crate) struct WriterGuard {
    lock: Arc<WriterLock>,
    holder: ThreadId,
    home: HomeProcess,
}

impl WriterGuard {
    /// Makes this thread the holder: the transaction may have been begun by another one.
    pub(crate) fn hold_here(&mut self) {
        let current = thread::current().id();
        if self.holder != current {
            self.holder = current;
            self.lock.lock().holder = Some(current);
        }
    }
}

impl Drop for WriterGuard {
    fn drop(&mut self) {
        if !self.home.is_current() {
            // A forked child has a copy of the queue, and none of the threads in it. Another thread may have
            // held the mutex during the fork, and then it is never free in the child.
            return;
        }
        let mut queue = self.lock.lock();
        let next = queue.waiting.pop_front();
        queue.holder = next.as_ref().map(|turn| turn.thread);
        if let Some(turn) = next {
            turn.has_turn.notify_one();
        }
    }
}

#[cfg(all(loom, test))]
#[path = "writer_lock_models.rs"]
mod models;

#[cfg(all(not(loom), test))]
mod tests {
    use super::*;

    #[test]
    fn writer_lock_never_waits_for_its_own_thread() {
        let gate = Arc::new(WriterLock::default());
        let permit = gate.enter().unwrap();
        assert!(gate.is_held_here());
        assert!(matches!(gate.enter(), Err(Error::Busy)));
        assert!(matches!(gate.try_enter(), Err(Error::Busy)));
        let other = Arc::clone(&gate);
        let waiter = thread::spawn(move || other.enter().map(drop));
        drop(permit);
        waiter.join().unwrap().unwrap();
        assert!(!gate.is_held_here());
        gate.try_enter().unwrap();
    }

    #[test]
    fn writer_lock_is_first_come_first_served() {
        let gate = Arc::new(WriterLock::default());
        let order = Arc::new(Mutex::new(Vec::new()));
        let first = gate.enter().unwrap();
        let mut waiters = Vec::new();
        for number in 0..4 {
            let (gate_of_thread, order) = (Arc::clone(&gate), Arc::clone(&order));
            waiters.push(thread::spawn(move || {
                let permit = gate_of_thread.enter().unwrap();
                order.lock().unwrap().push(number);
                drop(permit);
            }));
            while gate.lock().waiting.len() <= number {
                thread::yield_now();
            }
        }
        drop(first);
        // A thread that leaves and returns is behind the waiting ones.
        let again = gate.enter().unwrap();
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
        drop(again);
        for waiter in waiters {
            waiter.join().unwrap();
        }
    }
}
