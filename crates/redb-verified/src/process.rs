//! Locks that an earlier panic has poisoned, and the process to which a value belongs.

use std::sync::{LockResult, PoisonError};

use crate::engine_error::{EngineError, Result};

/// Returns a lock's guard even if a thread has panicked while it held the lock. Code that changes
/// data behind a lock keeps them consistent at every step, and a panic during a transaction closes
/// the store.
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
/// shares the file and its locks with the parent. None of the parent's threads runs in the child,
/// so a mutex that one of them held is never released, and waiting for one of them never ends.
#[derive(Clone, Debug)]
pub struct HomeProcess {
    id: u32,
    forks: forkguard::Guard,
}

impl HomeProcess {
    /// Returns the current process.
    #[must_use]
    pub fn current() -> Self {
        Self {
            id: std::process::id(),
            forks: forkguard::new(),
        }
    }

    /// Returns true in the process that made the value. Queries the system, which takes about as
    /// long as a short read.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.id == std::process::id()
    }

    /// Returns an error in any other process. It makes no system call, because the C library
    /// registers every fork that is made through it. After another kind of fork, nothing is written
    /// to the file: [`is_current`](Self::is_current) is checked before each write.
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
