//! Stores made whole and offline: external sort, bulk build, another banding.
//!
//! Imports `state` and below, and writes runs without a transaction buffer.

mod bulk_build;
mod bulk_store;
mod estimate;
mod lane_postings;
mod options;
mod reband;
mod reband_store;
mod repeated;
mod sort;

pub(crate) use bulk_build::bulk_build;
pub use bulk_build::{BulkBuild, BulkReport};
pub use estimate::BuildEstimate;
pub use options::{BulkOptions, DuplicateKeys};
pub use reband::RebandReport;
pub(crate) use reband::reband_file;
pub(crate) use repeated::OneOfEachKey;
