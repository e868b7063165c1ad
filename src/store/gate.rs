//! One writer at a time, and no thread that waits for itself.

use std::sync::{Arc, PoisonError};

use crate::error::{Error, Result};
use crate::sync::{Condvar, Mutex, MutexGuard, ThreadId, thread};

/// Lets one write transaction in. Knows which thread holds it, so that a thread that holds one
/// gets an error in place of a deadlock.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    holder: Mutex<Option<ThreadId>>,
    freed: Condvar,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn of this thread.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<Permit> {
        let current = thread::current().id();
        let mut holder = self.lock();
        while let Some(thread) = *holder {
            if thread == current {
                return Err(Error::Busy);
            }
            holder = self
                .freed
                .wait(holder)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *holder = Some(current);
        Ok(Permit {
            gate: Arc::clone(self),
        })
    }

    /// Takes the turn if it is free.
    pub(crate) fn try_enter(self: &Arc<Self>) -> Result<Permit> {
        let mut holder = self.lock();
        if holder.is_some() {
            return Err(Error::Busy);
        }
        *holder = Some(thread::current().id());
        Ok(Permit {
            gate: Arc::clone(self),
        })
    }
}

/// The right to write; dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Arc<Gate>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        *self.gate.lock() = None;
        self.gate.freed.notify_one();
    }
}

#[cfg(all(loom, test))]
#[path = "gate_models.rs"]
mod models;

#[cfg(all(not(loom), test))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_never_waits_for_itself() {
        let gate = Arc::new(Gate::default());
        let permit = gate.enter().unwrap();
        assert!(matches!(gate.enter(), Err(Error::Busy)));
        assert!(matches!(gate.try_enter(), Err(Error::Busy)));
        let other = Arc::clone(&gate);
        let waiter = thread::spawn(move || other.enter().map(drop));
        drop(permit);
        waiter.join().unwrap().unwrap();
        gate.try_enter().unwrap();
    }
}
