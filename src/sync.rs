//! Locks and threads of the standard library, or those of loom in unit tests built with `--cfg loom`:
//! loom's models go through the possible orders of threads' steps. And the process that threads are in.

use std::sync::{LockResult, PoisonError};

use crate::error::{Error, Result};

#[cfg(all(loom, test))]
pub(crate) use loom::{
    sync::{Condvar, Mutex, MutexGuard},
    thread::{self, ThreadId},
};
#[cfg(not(all(loom, test)))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard},
    thread::{self, ThreadId},
};

/// What a lock gives, whether or not a thread has panicked while it held it. Those who change what is behind
/// a lock keep it whole at every step, and a panic in the midst of a transaction closes the store.
pub(crate) trait IgnorePoison<G> {
    fn ignore_poison(self) -> G;
}

impl<G> IgnorePoison<G> for LockResult<G> {
    fn ignore_poison(self) -> G {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The process in which a value was made. After a `fork` the child has a copy of the memory, but shares
/// the file and its locks with the parent, and none of the parent's threads goes on in it: a mutex that
/// one of them held is never released, and one that is waited for never ends.
#[derive(Clone, Debug)]
pub(crate) struct HomeProcess {
    id: u32,
    forks: forkguard::Guard,
}

impl HomeProcess {
    pub(crate) fn current() -> Self {
        Self {
            id: std::process::id(),
            forks: forkguard::new(),
        }
    }

    /// Asks the system, which takes a tenth of the time of a probe.
    pub(crate) fn is_current(&self) -> bool {
        self.id == std::process::id()
    }

    /// Asks whether there was a fork: no system call. The C library tells, of any fork that is made through it. In
    /// the child of another kind nothing is written, because [`is_current`](Self::is_current) is asked before each
    /// write to a file.
    ///
    /// # Errors
    /// [`Error::Forked`] in any other process.
    pub(crate) fn check(&self) -> Result<()> {
        match self.forks.clone().detected_fork() {
            false => Ok(()),
            true => Err(Error::Forked),
        }
    }
}

impl Default for HomeProcess {
    fn default() -> Self {
        Self::current()
    }
}
