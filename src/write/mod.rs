//! The write transaction: its buffer, batches, upserts, flushes and merge steps.
//!
//! Imports `query` and below. A change is durable when its transaction commits.

mod batch;
mod batch_dedup;
mod buffer;
mod conservation;
mod duplicate_check;
mod equal_notes;
mod filter_policy;
mod flush;
mod insert_many;
mod merge_driver;
mod pending_rows;
mod repack;
mod run_tables;
#[cfg(test)]
pub(crate) mod testing;
mod transaction;
mod upsert;
mod writer;

pub(crate) use batch::{Arbiter, BatchTarget, SyncAskCaller, insert_batch};
pub(crate) use duplicate_check::find_duplicate;
pub(crate) use equal_notes::EqualCollector;
pub(crate) use filter_policy::{filter_bits_per_document, filter_shape};
pub use insert_many::InsertMany;
pub(crate) use insert_many::check_batch;
pub(crate) use pending_rows::{DocumentRows, DocumentTables, SetWriter, append_rows, append_sets};
pub(crate) use repack::{DENSE_SHARE, WINDOW_BYTES};
pub(crate) use run_tables::run_tables;
pub use transaction::WriteTransaction;
pub(crate) use transaction::check_position;
pub(crate) use writer::Writer;
