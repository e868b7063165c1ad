//! What sorts the postings of many documents outside memory and writes them once: the offline build
//! of a new store, a new one of what is left of a damaged one, and new bands for an old one.

mod batch;
mod build;
mod estimate;
mod lane_postings;
mod merge;
mod options;
mod reband;
mod repair;
mod repeated;
mod sorting;
mod spill;

pub use build::{BulkBuild, BulkEvent, BulkReport};
pub use estimate::{BulkEstimate, RebandEstimate};
pub use options::{BulkOptions, DuplicateKeys};
pub use reband::{RebandEvent, RebandReport};
pub use repair::{RepairEvent, RepairOptions, RepairReport};
