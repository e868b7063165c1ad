//! SQLite databases: reads the rows of a table or view as lines of JSON, and writes tables of
//! verdicts beside it.
//!
//! `database` opens files and reports errors, `table` selects the table and its columns, `rows`
//! reads it on a separate thread, and `verdicts` writes. Readers of a corpus import `SqliteRows`;
//! commands import the tables of verdicts.

mod database;
mod definition;
mod json;
mod marker;
mod rows;
mod table;
mod verdict_log;
mod verdicts;

pub(super) use rows::open;
pub(super) use table::column_names;
pub use verdict_log::VerdictLog;
pub use verdicts::VerdictTable;
