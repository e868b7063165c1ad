//! The definition of a table of verdicts, and checks of an existing object with its name.

use rusqlite::OptionalExtension;

use super::database::{Database, quoted};
use super::marker::{marker, source_of_verdicts};
use super::table::SqliteTable;
use crate::error::CorpusError;

/// The advice if another object has the name.
const ANOTHER_NAME: &str = "give --verdicts another name";

const VERDICT_COLUMNS: &str = "kept INTEGER NOT NULL, cluster TEXT, size INTEGER, rank INTEGER, \
     survivor TEXT, similarity REAL, distance INTEGER, similarity_is TEXT";

/// The names of all columns except the one that identifies the row.
pub(super) const VERDICT_NAMES: &str =
    "kept, cluster, size, rank, survivor, similarity, distance, similarity_is";

/// Returns the column that identifies the row: by its number, or by its key if SQLite does not
/// number the table's rows.
pub(super) fn row_column(table: &SqliteTable) -> &'static str {
    match table.rowid {
        Some(_) => "row_id",
        None => "key",
    }
}

/// Returns the statement that creates a table of verdicts on another table, with additional columns
/// if there are any.
pub(super) fn create_sql(table: &SqliteTable, name: &str, more: &str) -> String {
    let (name, marker) = (quoted(name), marker(&table.name));
    let row = match table.rowid {
        Some(_) => "row_id INTEGER PRIMARY KEY",
        None => "key TEXT PRIMARY KEY NOT NULL",
    };
    format!("CREATE TABLE main.{name} ({marker} {row}, {VERDICT_COLUMNS}{more})")
}

/// Returns true if the name is that of a table of verdicts on this table, and false if it is free.
///
/// # Errors
///
/// An error if another object has the name.
pub(super) fn has_verdicts(
    database: &Database,
    table: &SqliteTable,
    name: &str,
) -> Result<bool, CorpusError> {
    if name.is_empty() || name.to_lowercase().starts_with("sqlite_") {
        let error = database.bad(format!("SQLite does not allow a table {name:?}"));
        return Err(error.with_advice(ANOTHER_NAME));
    }
    let sql = "SELECT sql FROM main.sqlite_schema WHERE lower(name) = lower(?1)";
    let found = database
        .connection
        .query_row(sql, [name], |row| row.get::<_, Option<String>>(0));
    let Some(sql) = found.optional().map_err(|e| database.failed(&e))? else {
        return Ok(false);
    };
    let reason = match sql.as_deref().and_then(source_of_verdicts) {
        Some(source) if source == table.name => return Ok(true),
        Some(source) => {
            let table = &table.name;
            format!("{name:?} has verdicts on the rows of {source:?}, not of {table:?}")
        }
        None => format!("{name:?} already exists, and has no verdicts"),
    };
    Err(database.in_the_way(reason).with_advice(ANOTHER_NAME))
}

/// Returns the name of the table in which verdicts wait for the store's commit.
pub(super) fn pending_name(name: &str) -> String {
    format!("{name}_pending")
}
