//! The write transaction: its buffer, batches, upserts, flushes and merge steps.
//!
//! Imports `query` and below. A change is durable when its transaction commits.

mod batch_dedup;
mod buffer;
mod duplicate_check;
mod flush;
mod insert_many;
mod merge_driver;
mod notes;
mod pending_rows;
mod repack;
mod tail_view;
mod transaction;
mod upsert;
mod writer;

pub(crate) use merge_driver::{KEY_FILTER_BITS, run_tables};
pub(crate) use pending_rows::append_rows;
pub(crate) use transaction::{Transaction, find_duplicate};
pub(crate) use writer::Writer;
