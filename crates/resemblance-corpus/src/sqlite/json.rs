//! Converts rows to lines of JSON.

use rusqlite::Row;
use rusqlite::types::ValueRef;

use super::table::{ReadColumn, SqliteSelection};
use crate::bad_document::BadDocument;
use crate::json_line::{push, push_digits, push_name};

/// Returns the line for the current row of a statement, or describes the row's fault. If
/// `is_whole`, the line has all columns, and otherwise the requested ones that are not null.
pub(super) fn line(
    row: &Row<'_>,
    selection: &SqliteSelection,
    is_whole: bool,
) -> rusqlite::Result<Result<Vec<u8>, BadDocument>> {
    let mut json = vec![b'{'];
    for (index, column) in (1..).zip(&selection.read) {
        let value = row.get_ref(index)?;
        if is_whole || column.is_asked_for && value != ValueRef::Null {
            push_name(&mut json, &column.name);
            if let Err(bad) = push_value(&mut json, column, value) {
                return Ok(Err(bad));
            }
        }
    }
    json.extend_from_slice(b"}\n");
    Ok(Ok(json))
}

fn push_value(
    json: &mut Vec<u8>,
    column: &ReadColumn,
    value: ValueRef<'_>,
) -> Result<(), BadDocument> {
    match value {
        ValueRef::Null => json.extend_from_slice(b"null"),
        ValueRef::Integer(number) => push(json, &number),
        ValueRef::Real(number) => push(json, &number),
        ValueRef::Blob(bytes) if !column.is_text => push_digits(json, bytes),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => push(json, text),
            // SQLite accepts any bytes as text.
            Err(_) if !column.is_text => push_digits(json, bytes),
            Err(error) => {
                let (name, position) = (&column.name, error.valid_up_to() + 1);
                return Err(BadDocument::new(format!(
                    "column {name:?} has invalid UTF-8 at byte {position}"
                )));
            }
        },
    }
    Ok(())
}
