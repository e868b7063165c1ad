//! SQLite databases: the rows of a table or view as lines of JSON, and tables of verdicts beside it.
//!
//! `database` opens files and tells errors, `table` says what is read of which table, `rows` reads it on a thread of its
//! own, and `verdicts` writes. Readers of a corpus import `SqliteRows`, verbs the tables of verdicts.

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
