//! Selects the columns of a table to read, and checks that they can be read.

use arrow_schema::{DataType, Field, Fields, Schema};

use super::json;
use crate::bad_document::BadDocument;
use crate::columns;
use crate::settings::CorpusSettings;

/// The approximate size in bytes and the maximum number of rows that are decoded together.
pub(super) const BATCH_BYTES: u64 = 4 << 20;
const MAX_BATCH_ROWS: u64 = 1024;

/// Returns the number of rows to decode together, if all `rows` rows take `bytes` bytes.
pub(super) fn rows_together(bytes: u64, rows: u64) -> usize {
    let row_bytes = (bytes / rows.max(1)).max(1);
    // At most `MAX_BATCH_ROWS`.
    (BATCH_BYTES / row_bytes).clamp(1, MAX_BATCH_ROWS) as usize
}

/// Returns an error unless the schema has the requested columns, texts are strings, and vectors are
/// lists of numbers.
pub(super) fn check(schema: &Schema, settings: &CorpusSettings) -> Result<(), BadDocument> {
    let mut names = Vec::new();
    list_names("", schema.fields(), &mut names);
    columns::must_be_there(&names, settings)?;
    let top_names = schema.fields().iter().map(|field| field.name().as_str());
    columns::must_be_unique(top_names, settings)?;
    for path in columns::paths(settings) {
        let field =
            find(schema.fields(), path).filter(|field| !json::is_written(field.data_type()));
        if let Some(data_type) = field.map(Field::data_type) {
            let reason = format!("column {path:?} is {data_type}, which is not supported");
            return Err(BadDocument::new(reason).with_advice("cast it to strings or numbers"));
        }
    }
    if let Some((path, vectors)) = settings.vectors()
        && let Some(field) = find(schema.fields(), path.name())
    {
        must_be_vector(path.name(), vectors.dimensions(), field)?;
    }
    let texts = settings.taken_texts().iter();
    for path in texts.filter(|_| !settings.content.takes_numbers) {
        if let Some(field) = find(schema.fields(), path.name()) {
            must_be_text(path.name(), field)?;
        }
    }
    Ok(())
}

/// Returns true if the column with these path components is the one at `path` or a part of it.
pub(super) fn is_of_path(parts: &[String], path: &str) -> bool {
    let Some((first, others)) = parts.split_first() else {
        return false;
    };
    let nested = || {
        let (name, rest) = path.split_once('.')?;
        (first == name).then(|| is_of_path(others, rest))
    };
    first == path || nested().unwrap_or(false)
}

/// Returns the field at a path. A name that itself contains the dots takes precedence.
fn find<'f>(fields: &'f Fields, path: &str) -> Option<&'f Field> {
    let named = |name: &str| fields.iter().find(|field| field.name() == name);
    if let Some(field) = named(path) {
        return Some(field);
    }
    let (first, rest) = path.split_once('.')?;
    match named(first)?.data_type() {
        DataType::Struct(inner) => find(inner, rest),
        _ => None,
    }
}

fn list_names(before: &str, fields: &Fields, names: &mut Vec<String>) {
    for field in fields {
        let name = format!("{before}{}", field.name());
        if let DataType::Struct(inner) = field.data_type() {
            list_names(&format!("{name}."), inner, names);
        }
        names.push(name);
    }
}

fn must_be_vector(path: &str, dimensions: u16, field: &Field) -> Result<(), BadDocument> {
    let data_type = field.data_type();
    let may_be_vector = match data_type {
        DataType::List(element) | DataType::LargeList(element) => element.data_type().is_numeric(),
        DataType::FixedSizeList(element, length) => {
            element.data_type().is_numeric() && *length == i32::from(dimensions)
        }
        other => json::is_text(other) || *other == DataType::Null,
    };
    if may_be_vector {
        return Ok(());
    }
    let reason = format!("column {path:?} is {data_type}, expected lists of {dimensions} numbers");
    Err(BadDocument::new(reason).with_advice("--vector-field names another column"))
}

fn must_be_text(path: &str, field: &Field) -> Result<(), BadDocument> {
    let data_type = field.data_type();
    let advice = match data_type {
        // A column with only nulls has this type.
        DataType::Null => return Ok(()),
        _ if json::is_text(data_type) => return Ok(()),
        DataType::Struct(inner) => {
            let names: Vec<_> = inner
                .iter()
                .map(|field| format!("{path}.{}", field.name()))
                .collect();
            format!("--text-field names one of its fields: {}", names.join(", "))
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            "cast it to strings, as duckdb does with decode(column)".to_owned()
        }
        _ => "--text-field names another column".to_owned(),
    };
    let bad = BadDocument::new(format!("column {path:?} is {data_type}, expected strings"));
    Err(bad.with_advice(advice))
}
