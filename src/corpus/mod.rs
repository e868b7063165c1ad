//! Work on whole corpora: dropping duplicates, measuring recall, comparing bands and tables,
//! computing exact similarities, and sketching on all cores.
//!
//! Other rooms import nothing from here but the folders, which are public modules of the crate.

pub mod collection;
pub mod dedup;
pub mod eval;
pub mod pipeline;
pub mod tune;
pub mod verification;
