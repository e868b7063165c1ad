//! What is done with whole corpora: their duplicates dropped, recall measured, bands and tables
//! compared, exact similarities beside estimates, sketching on all cores.
//!
//! Other rooms import nothing from here but the folders, which are public modules of the crate.

pub mod dedup;
pub mod eval;
pub mod pipeline;
pub mod tune;
pub mod verification;
