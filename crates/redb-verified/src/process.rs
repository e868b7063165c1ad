//! Locks that an earlier panic has poisoned, and the process that threads are in.

use std::sync::{LockResult, PoisonError};

use crate::engine_error::{EngineError, Result};

/// Takes a lock's guard whether or not a thread has panicked while it held the lock. Code that
/// changes the data behind a lock keeps it whole at every step, and a panic in the midst of a
/// transaction closes the store.
pub trait IgnorePoison<G> {
    /// Returns the guard.
    fn ignore_poison(self) -> G;
}

impl<G> IgnorePoison<G> for LockResult<G> {
    fn ignore_poison(self) -> G {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The process in which a value was made. After a `fork` the child has a copy of the memory, but
/// shares the file and its locks with the parent, and none of the parent's threads runs in it: a
/// mutex that one of them held is never released, and one that is waited for never ends.
#[derive(Clone, Debug)]
pub struct HomeProcess {
    id: u32,
    forks: forkguard::Guard,
}

impl HomeProcess {
    /// Returns the process that runs this.
    #[must_use]
    pub fn current() -> Self {
        Self {
            id: std::process::id(),
            forks: forkguard::new(),
        }
    }

    /// Returns true in that process. Asks the system, which takes about as long as a short read.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.id == std::process::id()
    }

    /// Refuses any other process, without a system call: the C library notes every fork that is made through it.
    /// In the child of another kind of fork nothing is written, because [`is_current`](Self::is_current) is asked
    /// before each write to a file.
    ///
    /// # Errors
    /// [`EngineError::Forked`] in any other process.
    pub fn check(&self) -> Result<()> {
        match self.forks.clone().detected_fork() {
            false => Ok(()),
            true => Err(EngineError::Forked),
        }
    }
}

impl Default for HomeProcess {
    fn default() -> Self {
        Self::current()
    }
}
