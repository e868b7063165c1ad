//! Work on whole corpora: dropping duplicates, measuring recall, comparing bands and tables, and
//! computing exact similarities.
//!
//! Other rooms import nothing from here but the folders, which are public modules of the crate.

pub mod collection;
pub mod dedup;
pub mod eval;
pub mod tune;
pub mod verification;
