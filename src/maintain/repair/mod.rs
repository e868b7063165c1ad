//! Builds a new store from the rows that remain of a damaged one.

mod damaged_rows;
mod loss_report;
mod meta;
mod page_scan;
mod rebuild;
mod row_source;
mod scanner;
mod tombstones;

pub use loss_report::IdRange;
pub use rebuild::RepairReport;
pub(crate) use rebuild::repair;
