//! What all handles of an open store share, and the version that each commit makes.
//!
//! Imports `index`, `engine` and below. It has no verbs of its own but opening.

mod context;
pub(crate) mod open;
mod run_set;
mod session;
mod tombstones;
mod version;
mod writer_lock;

pub(crate) use context::{Core, shape_of};
pub(crate) use open::may_write;
pub(crate) use run_set::{Run, RunSet};
pub(crate) use session::Session;
pub(crate) use tombstones::{DeadChanges, DeadSet, Dropped};
pub(crate) use version::{Committed, Publication};
pub(crate) use writer_lock::{Gate, Permit};
