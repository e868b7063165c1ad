//! The definition of a table of verdicts, and what has the name of one.

use rusqlite::OptionalExtension;

use super::database::{Database, quoted};
use super::marker::{marker, source_of_verdicts};
use super::table::SqliteTable;
use crate::error::CorpusError;

/// The columns behind the one that tells the row.
const VERDICT_COLUMNS: &str = "kept INTEGER NOT NULL, cluster TEXT, size INTEGER, rank INTEGER, \
     survivor TEXT, similarity REAL, distance INTEGER, similarity_is TEXT";

/// Their names.
pub(super) const VERDICT_NAMES: [&str; 8] = [
    "kept",
    "cluster",
    "size",
    "rank",
    "survivor",
    "similarity",
    "distance",
    "similarity_is",
];

/// The column that tells the row: by its number, or by its key where SQLite has no number for it.
pub(super) fn row_column(table: &SqliteTable) -> &'static str {
    match table.rowid {
        Some(_) => "row_id",
        None => "key",
    }
}

/// The statement that makes a table of verdicts on another, with more columns if there are any.
pub(super) fn create_sql(
    table: &SqliteTable,
    name: &str,
    more: &str,
) -> Result<String, serde_json::Error> {
    let (name, marker) = (quoted(name), marker(&table.name)?);
    let row = match table.rowid {
        Some(_) => "row_id INTEGER PRIMARY KEY",
        None => "key TEXT PRIMARY KEY NOT NULL",
    };
    Ok(format!(
        "CREATE TABLE main.{name} ({marker} {row}, {VERDICT_COLUMNS}{more})"
    ))
}

/// What has the name of a table of verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameHolder {
    Nothing,
    /// Verdicts on the same table.
    Verdicts,
}

/// What has this name; an error for what is no table of verdicts on this table.
pub(super) fn holder(
    database: &Database,
    table: &SqliteTable,
    name: &str,
) -> Result<NameHolder, CorpusError> {
    if name.is_empty() || name.to_lowercase().starts_with("sqlite_") {
        let message = format!("SQLite takes no table {name:?}; give --verdicts another name");
        return Err(database.bad(message));
    }
    let sql = "SELECT sql FROM main.sqlite_schema WHERE lower(name) = lower(?1)";
    let found: Option<Option<String>> = database
        .connection
        .query_row(sql, [name], |row| row.get(0))
        .optional()
        .map_err(|e| database.failed(&e))?;
    let Some(sql) = found else {
        return Ok(NameHolder::Nothing);
    };
    match sql.as_deref().and_then(source_of_verdicts) {
        Some(source) if source == table.name => Ok(NameHolder::Verdicts),
        Some(source) => Err(database.in_the_way(format!(
            "{name:?} has verdicts on the rows of {source:?}, not of {:?}; give --verdicts another name",
            table.name
        ))),
        None => Err(database.in_the_way(format!(
            "{name:?} is there already, and has no verdicts; give --verdicts another name"
        ))),
    }
}

/// Where verdicts wait for the commit of the store that they tell of.
pub(super) fn pending_name(name: &str) -> String {
    format!("{name}_pending")
}
