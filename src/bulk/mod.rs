//! The offline build: a new store from many documents, its postings sorted outside memory and
//! written once.

mod batch;
mod build;
mod estimate;
mod merge;
mod options;
mod repeated;
mod scratch;
mod sorting;
mod spill;

pub use build::{BulkBuild, BulkEvent, BulkReport};
pub use estimate::BulkEstimate;
pub use options::{BulkOptions, DuplicateKeys};
