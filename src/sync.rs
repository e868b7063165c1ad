//! What the crate's own synchronisation is made of: the standard library's, or, in unit tests built
//! with `--cfg loom`, that of loom, whose models go through the possible orders of threads' steps.

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
