//! One writer at a time, first come, first served, and no thread that waits for itself.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use crate::error::{Error, Result};
use crate::sync::{Condvar, Mutex, MutexGuard, ThreadId, thread};

/// Lets one write transaction in. Knows which thread holds it, so that a thread that holds one
/// gets an error in place of a deadlock. Those that wait are let in in the order in which they came:
/// a thread that writes over and over keeps nobody out.
#[derive(Debug, Default)]
pub(crate) struct WriterLock {
    line: Mutex<LockQueue>,
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
    /// Waits with the lock of the line.
    has_come: Condvar,
}

impl WriterLock {
    fn lock(&self) -> MutexGuard<'_, LockQueue> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn permit(self: &Arc<Self>) -> WriterGuard {
        WriterGuard {
            gate: Arc::clone(self),
        }
    }

    /// Waits for the turn of this thread.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<WriterGuard> {
        let current = thread::current().id();
        let mut line = self.lock();
        match line.holder {
            None => line.holder = Some(current),
            Some(thread) if thread == current => return Err(Error::Busy),
            Some(_) => {
                let turn = Arc::new(Waiter {
                    thread: current,
                    has_come: Condvar::new(),
                });
                line.waiting.push_back(Arc::clone(&turn));
                // Who leaves makes the next one the holder: nobody can come in between.
                while line.holder != Some(current) {
                    let woken = turn.has_come.wait(line);
                    line = woken.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        Ok(self.permit())
    }

    /// Takes the turn if it is free.
    pub(crate) fn try_enter(self: &Arc<Self>) -> Result<WriterGuard> {
        let mut line = self.lock();
        if line.holder.is_some() {
            return Err(Error::Busy);
        }
        line.holder = Some(thread::current().id());
        Ok(self.permit())
    }

    /// Whether this thread holds the turn: waiting for another one would never end.
    pub(crate) fn is_held_here(&self) -> bool {
        self.lock().holder == Some(thread::current().id())
    }
}

/// The right to write; dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct WriterGuard {
    gate: Arc<WriterLock>,
}

impl Drop for WriterGuard {
    fn drop(&mut self) {
        let mut line = self.gate.lock();
        let next = line.waiting.pop_front();
        line.holder = next.as_ref().map(|turn| turn.thread);
        if let Some(turn) = next {
            turn.has_come.notify_one();
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
    fn a_thread_never_waits_for_itself() {
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
    fn those_who_wait_are_let_in_in_their_order() {
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
        // Whoever leaves and comes back is behind those who wait.
        let again = gate.enter().unwrap();
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
        drop(again);
        for waiter in waiters {
            waiter.join().unwrap();
        }
    }
}
