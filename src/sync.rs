//! Locks and threads of the standard library, or those of loom in unit tests built with `--cfg
//! loom`, whose models try all possible orders of threads' steps. Also contains the process to
//! which threads belong.

pub(crate) use redb_verified::{HomeProcess, IgnorePoison};

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
