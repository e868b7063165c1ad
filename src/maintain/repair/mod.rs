//! A new store from what is left of a damaged one.

mod loss_report;
mod meta;
mod repair;
mod row_source;
mod rows;
mod scan;
mod scanner;
mod tombstones;

pub use loss_report::IdRange;
pub(crate) use repair::repair_with;
pub use repair::{RepairEvent, RepairOptions, RepairReport};
