//! Rows as lines of JSON.

use std::io::Write;

use rusqlite::Row;
use rusqlite::types::ValueRef;

use super::table::{ReadColumn, SqliteSelection};
use crate::bad_document::BadDocument;

/// A line, or what is wrong with the row.
pub(super) type RowLine = Result<Vec<u8>, BadDocument>;

/// What a reading gives of a row.
pub(super) struct RowLines {
    /// The columns that are asked for; one that is null is missing.
    pub(super) asked: RowLine,
    /// All columns.
    pub(super) whole: Option<RowLine>,
}

/// Why a value is no JSON.
enum NoValue {
    /// SQLite says so.
    Sqlite(rusqlite::Error),
    Bad(BadDocument),
}

/// The lines of the row that the statement of a selection is at.
pub(super) fn lines(
    row: &Row<'_>,
    selection: &SqliteSelection,
    is_whole: bool,
) -> rusqlite::Result<RowLines> {
    let asked = line(row, selection, |column, value| {
        column.is_asked_for && !matches!(value, ValueRef::Null)
    })?;
    let whole = is_whole.then(|| line(row, selection, |_, _| true));
    Ok(RowLines {
        asked,
        whole: whole.transpose()?,
    })
}

fn line(
    row: &Row<'_>,
    selection: &SqliteSelection,
    is_wanted: impl Fn(&ReadColumn, ValueRef<'_>) -> bool,
) -> rusqlite::Result<RowLine> {
    let mut json = vec![b'{'];
    for (index, column) in (1..).zip(&selection.read) {
        let value = row.get_ref(index)?;
        if !is_wanted(column, value) {
            continue;
        }
        if json.len() > 1 {
            json.push(b',');
        }
        let pushed = push_string(&mut json, &column.name).and_then(|()| {
            json.push(b':');
            push_value(&mut json, column, value)
        });
        match pushed {
            Ok(()) => {}
            Err(NoValue::Bad(bad)) => return Ok(Err(bad)),
            Err(NoValue::Sqlite(error)) => return Err(error),
        }
    }
    json.extend_from_slice(b"}\n");
    Ok(Ok(json))
}

fn push_value(json: &mut Vec<u8>, column: &ReadColumn, value: ValueRef<'_>) -> Result<(), NoValue> {
    match value {
        ValueRef::Null => json.extend_from_slice(b"null"),
        ValueRef::Integer(number) => json.extend_from_slice(number.to_string().as_bytes()),
        // JSON has no infinite numbers: they become null.
        ValueRef::Real(number) => {
            serde_json::to_writer(json, &number).map_err(not_written)?;
        }
        ValueRef::Blob(bytes) if !column.is_text => push_digits(json, bytes)?,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => push_string(json, text)?,
            // SQLite takes any bytes for a text.
            Err(_) if !column.is_text => push_digits(json, bytes)?,
            Err(error) => {
                let (name, position) = (&column.name, error.valid_up_to() + 1);
                return Err(NoValue::Bad(BadDocument::new(format!(
                    "column {name:?} has invalid UTF-8 at byte {position}"
                ))));
            }
        },
    }
    Ok(())
}

fn push_string(json: &mut Vec<u8>, text: &str) -> Result<(), NoValue> {
    serde_json::to_writer(json, text).map_err(not_written)
}

/// Two hexadecimal digits a byte.
fn push_digits(json: &mut Vec<u8>, bytes: &[u8]) -> Result<(), NoValue> {
    json.push(b'"');
    for byte in bytes {
        write!(json, "{byte:02x}").map_err(|e| not_written(serde_json::Error::io(e)))?;
    }
    json.push(b'"');
    Ok(())
}

fn not_written(error: serde_json::Error) -> NoValue {
    NoValue::Sqlite(rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}
