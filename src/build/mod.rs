//! Builds whole stores offline: external sort, bulk build, rebanding.
//!
//! Imports `state` and below, and writes runs without a transaction buffer.

mod build_estimate;
mod bulk_build;
mod bulk_options;
mod bulk_store;
mod lane_postings;
mod link_clusters;
mod reband_operation;
mod reband_store;
mod repeated;
mod sort;

pub use build_estimate::BuildEstimate;
pub(crate) use bulk_build::{BuildCallbacks, bulk_build};
pub use bulk_build::{BulkBuild, BulkReport};
pub use bulk_options::{BulkOptions, DuplicateKeys};
pub use reband_operation::RebandReport;
pub(crate) use reband_operation::reband_file;
pub(crate) use repeated::OneOfEachKey;
pub(crate) use sort::{Sorter, code_bits, merge_lanes};
