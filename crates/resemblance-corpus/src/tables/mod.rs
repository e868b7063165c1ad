//! Tables of columns: Parquet files, and Arrow IPC files and streams.
//!
//! Reading converts the requested columns of each row to a line of JSON, so that a row becomes the
//! same document as that line. Writing copies rows with all their columns.

mod arrow_ipc;
mod json;
mod pages;
mod parquet_file;
mod projection;
mod rows;
mod table_error;
mod table_file;
mod table_input;
mod table_writer;

pub use json::{column_keys, column_values};
pub(super) use rows::open;
pub use table_error::TableError;
pub(super) use table_file::TableFile;
pub(super) use table_writer::TableColumns;
pub use table_writer::TableWriter;
