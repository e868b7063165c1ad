//! Columns that are added to rows when they are written: fields of a JSON line, or values of a CSV
//! or TSV row. The module `tables` adds such columns to Parquet and Arrow.

use std::fmt;

use serde_json::value::RawValue;

use crate::bad_document::BadDocument;
use crate::columns;
use crate::fields;
use crate::record::CorpusRecord;
use crate::separated;

/// Returns the value of a column in a record, given the record's number in the corpus, from 0.
type ValueOf<T> = Box<dyn Fn(u64) -> Option<T> + Send + Sync>;

/// The values of a column. `None` is a null.
#[non_exhaustive]
pub enum ColumnValues {
    /// Booleans.
    Truth(ValueOf<bool>),
    /// Unsigned integers.
    Integer(ValueOf<u64>),
    /// Floating-point numbers.
    Number(ValueOf<f64>),
    /// Strings.
    Text(ValueOf<String>),
}

/// A column that is added to records when they are written.
pub struct AddedColumn {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: ColumnValues,
}

impl fmt::Debug for AddedColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddedColumn")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl AddedColumn {
    /// Returns the value of a record as JSON.
    fn json(&self, record: u64) -> serde_json::Value {
        match &self.values {
            ColumnValues::Truth(value) => value(record).into(),
            ColumnValues::Integer(value) => value(record).into(),
            ColumnValues::Number(value) => value(record).into(),
            ColumnValues::Text(value) => value(record).into(),
        }
    }

    /// Returns the value of a record as CSV and TSV contain it. A null is empty.
    fn cell(&self, record: u64, separator: u8) -> String {
        match (&self.values, self.json(record)) {
            (_, serde_json::Value::Null) => String::new(),
            (_, serde_json::Value::String(text)) => separated::quoted(&text, separator),
            (_, value) => value.to_string(),
        }
    }
}

/// Returns the record with these columns added.
///
/// # Errors
///
/// An error if the record has a field or column with one of the names, or is not a row.
pub fn record_with(
    columns: &[AddedColumn],
    record: &CorpusRecord,
    number: u64,
) -> Result<CorpusRecord, BadDocument> {
    match &record.names {
        Some(names) => {
            let separator = names.separator();
            let cells = columns.iter().map(|column| column.cell(number, separator));
            Ok(with_cells(record, separator, cells))
        }
        None => {
            let json = columns::utf8(&record.bytes)?;
            let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
            line_must_not_have(json, &names)?;
            let whole = json.trim_ascii_end();
            let open = whole
                .strip_suffix('}')
                .ok_or_else(|| BadDocument::new("not a JSON object"))?;
            let (_, end) = json.split_at(whole.len());
            let mut line = open.to_owned();
            for column in columns {
                let name = serde_json::Value::from(&*column.name);
                line += &format!(",{name}:{}", column.json(number));
            }
            line.push('}');
            line += end;
            Ok(record.clone().with_bytes(line))
        }
    }
}

/// Returns the first row of a CSV or TSV file with the names of these columns added.
///
/// # Errors
///
/// An error if the file has a column with one of the names.
pub fn header_with(
    columns: &[AddedColumn],
    header: &CorpusRecord,
) -> Result<CorpusRecord, BadDocument> {
    let Some(names) = &header.names else {
        return Err(BadDocument::new("no header row"));
    };
    if let Some(column) = columns.iter().find(|column| names.has(&column.name)) {
        return Err(taken(&column.name));
    }
    let separator = names.separator();
    let cells = columns
        .iter()
        .map(|column| separated::quoted(&column.name, separator));
    Ok(with_cells(header, separator, cells))
}

fn with_cells(
    record: &CorpusRecord,
    separator: u8,
    cells: impl Iterator<Item = String>,
) -> CorpusRecord {
    let row: &[u8] = &record.bytes;
    let line = row.strip_suffix(b"\n").unwrap_or(row);
    let whole = line.strip_suffix(b"\r").unwrap_or(line);
    let (_, end) = row.split_at(whole.len());
    let mut bytes = whole.to_vec();
    for cell in cells {
        bytes.push(separator);
        bytes.extend_from_slice(cell.as_bytes());
    }
    bytes.extend_from_slice(end);
    record.clone().with_bytes(bytes)
}

/// Returns an error if a JSON line has a field with one of these names.
pub(crate) fn line_must_not_have(json: &str, names: &[&str]) -> Result<(), BadDocument> {
    let found = fields::find(json, names)
        .map_err(|error| BadDocument::new(format!("not JSON ({error})")))?;
    let mut found = names.iter().zip(&found);
    match found.find(|(_, value): &(_, &Option<&RawValue>)| value.is_some()) {
        Some((name, _)) => Err(taken(name)),
        None => Ok(()),
    }
}

/// Creates the error for a field that exists already.
pub(crate) fn taken(name: &str) -> BadDocument {
    BadDocument::new(format!("the field or column {name:?} already exists"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::separated::ColumnNames;
    use crate::settings::CorpusSettings;

    fn columns() -> Vec<AddedColumn> {
        let column = |name: &str, values| AddedColumn {
            name: name.into(),
            values,
        };
        vec![
            column("t", ColumnValues::Truth(Box::new(|n| Some(n == 7)))),
            column("i", ColumnValues::Integer(Box::new(|_| Some(u64::MAX)))),
            column("n", ColumnValues::Number(Box::new(|_| Some(0.25)))),
            column(
                "x",
                ColumnValues::Text(Box::new(|_| Some("a,\"b\"\t".into()))),
            ),
            column("z", ColumnValues::Text(Box::new(|_| None))),
        ]
    }

    fn record(bytes: &str, names: Option<ColumnNames>) -> CorpusRecord {
        CorpusRecord {
            bytes: bytes.to_owned().into(),
            names: names.map(Arc::new),
            ..CorpusRecord::default()
        }
    }

    #[test]
    fn added_columns_leave_a_row_unchanged() {
        let columns = columns();
        let text = |record: CorpusRecord| String::from_utf8(record.bytes.to_vec()).unwrap();
        let with = |record: &CorpusRecord| record_with(&columns, record, 7).map(text);
        let added = r#","t":true,"i":18446744073709551615,"n":0.25,"x":"a,\"b\"\t","z":null}"#;
        for end in ["", "\n", " \r\n"] {
            let expected = format!("{{ \"a\": 1.50 {added}{end}");
            assert_eq!(
                with(&record(&format!("{{ \"a\": 1.50 }}{end}"), None)),
                Ok(expected)
            );
        }
        let nested = r#"{"a": {"t": 1}}"#;
        assert!(with(&record(nested, None)).is_ok());
        let error = with(&record(r#"{"a": 1, "n": null}"#, None)).unwrap_err();
        assert_eq!(error.reason, "the field or column \"n\" already exists");

        let names = |row: &str, separator| {
            ColumnNames::parse(row.as_bytes(), separator, &CorpusSettings::default()).unwrap()
        };
        let row = record("\"1\"\"\",b\r\n", Some(names("id,text", b',')));
        let expected = "\"1\"\"\",b,true,18446744073709551615,0.25,\"a,\"\"b\"\"\t\",\r\n";
        assert_eq!(with(&row), Ok(expected.to_owned()));
        let header = record("id,text\r\n", Some(names("id,text", b',')));
        let header = header_with(&columns, &header).map(text);
        assert_eq!(header, Ok("id,text,t,i,n,x,z\r\n".to_owned()));
        let header = record("text\tx", Some(names("text\tx", b'\t')));
        assert!(header_with(&columns, &header).is_err());
    }
}
