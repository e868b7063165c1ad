//! Builds a new store from the rows that are left of a damaged one.

mod loss_report;
mod meta;
mod rebuild;
mod row_source;
mod rows;
mod scan;
mod scanner;
mod tombstones;

pub use loss_report::IdRange;
pub use rebuild::RepairReport;
pub(crate) use rebuild::repair;
