//! Rows of CSV and TSV: finds their ends and the values of their columns.
//!
//! The crate `csv`, which serves as the oracle in tests, silently accepts text after quotes and
//! quotes that do not end. It also does not keep the original bytes of a row, which are written
//! unchanged.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::bad_document::BadDocument;
use super::columns;
use super::content::CONTENT_FIELDS;
use super::form;
use super::json_line::{push, push_name};
use super::settings::CorpusSettings;

/// The role of a column, which determines how its values are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnRole {
    /// A text: any value.
    Text,
    /// Features, weights or a signature: JSON, or a string.
    Content,
    /// An id, a stamp, a payload or a score: a number if the value looks like one, else a string.
    Value,
}

/// The header row of a file, which names the columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnNames {
    separator: u8,
    names: Vec<String>,
    /// `None` for columns that no option requests.
    roles: Vec<Option<ColumnRole>>,
}

impl ColumnNames {
    /// Parses the names in a row, and checks that they include the requested columns.
    pub(crate) fn parse(
        row: &[u8],
        separator: u8,
        settings: &CorpusSettings,
    ) -> Result<Self, BadDocument> {
        let values = values(columns::utf8(row)?, separator)?;
        let names: Vec<String> = values.into_iter().map(Cow::into_owned).collect();
        if names.iter().any(|name| name.contains('\r')) {
            return Err(form::carriage_returns());
        }
        Self::new(names, separator, settings)
    }

    /// Creates the value from names, and checks that they include the requested columns.
    pub(crate) fn new(
        names: Vec<String>,
        separator: u8,
        settings: &CorpusSettings,
    ) -> Result<Self, BadDocument> {
        columns::must_be_there(&names, settings).map_err(|bad| {
            let by_another = [';', '|', '\t'].into_iter().find(|byte| match &names[..] {
                [row] => row.matches(*byte).count() > 0,
                _ => false,
            });
            match by_another {
                Some(byte) => BadDocument::new(bad.reason).with_advice(format!(
                    "the first row looks as if {byte:?} separated its values: set --separator"
                )),
                None => bad,
            }
        })?;
        columns::must_be_unique(names.iter().map(String::as_str), settings)?;
        let wanted = columns::paths(settings);
        let role = |name: &String| {
            let is_wanted = wanted.contains(&name.as_str());
            is_wanted.then(|| role(name, settings))
        };
        Ok(Self {
            separator,
            roles: names.iter().map(role).collect(),
            names,
        })
    }

    /// The byte between two values of a row.
    pub(crate) fn separator(&self) -> u8 {
        self.separator
    }

    /// Describes how the columns of another file differ.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        if self.separator != other.separator {
            let (own, theirs) = (char::from(self.separator), char::from(other.separator));
            return Some(format!(
                "different separators ({own:?} in the first, {theirs:?} in the second)"
            ));
        }
        let names = |columns: &'_ Self| columns.names.clone();
        let (own, theirs) = (names(self), names(other));
        columns::difference(
            own.iter().map(String::as_str),
            theirs.iter().map(String::as_str),
        )
    }

    /// True if there is a column of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// Converts a row to a line of JSON with the requested columns. An empty value counts as
    /// missing, except for a text.
    pub(crate) fn json(&self, row: &[u8]) -> Result<Vec<u8>, BadDocument> {
        let values = values(columns::utf8(row)?, self.separator)?;
        if values.len() != self.names.len() {
            let (found, expected) = (values.len(), self.names.len());
            let has_returns = row.trim_ascii_end().contains(&b'\r');
            if has_returns && !row.contains(&b'"') {
                return Err(form::carriage_returns());
            }
            return Err(BadDocument::new(format!(
                "{found} values, expected {expected}, one for each column name"
            ))
            .with_advice("a value with separators or line ends must be in double quotes"));
        }
        let mut json = vec![b'{'];
        for ((name, role), value) in self.names.iter().zip(&self.roles).zip(&values) {
            let Some(role) = role.filter(|role| *role == ColumnRole::Text || !value.is_empty())
            else {
                continue;
            };
            push_name(&mut json, name);
            if is_json(role, value) {
                json.extend_from_slice(value.as_bytes());
            } else {
                push(&mut json, &**value);
            }
        }
        json.push(b'}');
        Ok(json)
    }
}

fn role(name: &str, settings: &CorpusSettings) -> ColumnRole {
    if settings
        .taken_texts()
        .iter()
        .any(|path| path.name() == name)
    {
        ColumnRole::Text
    } else if CONTENT_FIELDS.contains(&name) {
        ColumnRole::Content
    } else {
        ColumnRole::Value
    }
}

/// Returns true if a value is copied into JSON unchanged.
fn is_json(role: ColumnRole, value: &str) -> bool {
    let begins: fn(char) -> bool = match role {
        ColumnRole::Text => return false,
        ColumnRole::Content => |first| first == '[' || first == '{',
        ColumnRole::Value => |first| first == '-' || first.is_ascii_digit(),
    };
    let parsed = serde_json::from_str::<&RawValue>(value);
    value.starts_with(begins) && parsed.is_ok_and(|raw| raw.get().len() == value.len())
}

/// Returns a value as it is written in a row, in quotes if necessary.
pub(crate) fn quoted(value: &str, separator: u8) -> String {
    let is_special = |byte: u8| byte == separator || matches!(byte, b'"' | b'\n' | b'\r');
    if value.bytes().any(is_special) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value.to_owned()
    }
}

/// Returns true if a quoted value continues after this line of a row. `is_quoted` is true if one
/// continues into the line.
pub(crate) fn ends_in_quotes(line: &[u8], separator: u8, is_quoted: bool) -> bool {
    if !is_quoted && memchr::memchr(b'"', line).is_none() {
        return false;
    }
    let mut rest = line;
    let mut in_quotes = is_quoted;
    loop {
        if in_quotes {
            let Some((_, after)) = split_at(rest, b'"') else {
                return true;
            };
            // A doubled quote represents itself.
            in_quotes = after.starts_with(b"\"");
            rest = after.strip_prefix(b"\"").unwrap_or(after);
            if in_quotes {
                continue;
            }
        } else if let Some(after) = rest.strip_prefix(b"\"") {
            (in_quotes, rest) = (true, after);
            continue;
        }
        match split_at(rest, separator) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
}

/// Returns the bytes before and after the first occurrence of `byte`.
fn split_at(bytes: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let position = memchr::memchr(byte, bytes)?;
    let (before, from) = bytes.split_at_checked(position)?;
    Some((before, from.split_first()?.1))
}

/// Returns the values of a row, with or without its line end.
fn values(row: &str, separator: u8) -> Result<Vec<Cow<'_, str>>, BadDocument> {
    let line = row.strip_suffix('\n').unwrap_or(row);
    let mut rest = line.strip_suffix('\r').unwrap_or(line);
    let separator = char::from(separator);
    let mut values = Vec::new();
    loop {
        let (value, after) = match rest.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let end = rest.find(separator).unwrap_or(rest.len());
                let (value, after) = rest.split_at(end);
                (value.into(), after)
            }
        };
        values.push(value);
        match after.strip_prefix(separator) {
            Some(after) => rest = after,
            None if after.is_empty() => return Ok(values),
            None => {
                let place = values.len();
                return Err(BadDocument::new(format!(
                    "text after the closing quote of column {place}"
                ))
                .with_advice("double a quote inside quotes, as in \"a \"\"b\"\" c\""));
            }
        }
    }
}

/// Returns the value after an opening quote, and the rest after its closing quote.
fn unquoted(quoted: &str) -> Result<(Cow<'_, str>, &str), BadDocument> {
    let mut value = Cow::Borrowed("");
    let mut rest = quoted;
    loop {
        let Some((piece, after)) = rest.split_once('"') else {
            return Err(BadDocument::new("a quote that is never closed"));
        };
        match after.strip_prefix('"') {
            // The first of two quotes is part of the value.
            Some(after) => {
                value.to_mut().push_str(piece);
                value.to_mut().push('"');
                rest = after;
            }
            None if value.is_empty() => return Ok((piece.into(), after)),
            None => {
                value.to_mut().push_str(piece);
                return Ok((value, after));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parses a file with the crate `csv`, which serves as the oracle.
    fn by_csv(bytes: &[u8], separator: u8) -> Vec<Vec<String>> {
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(separator)
            .has_headers(false)
            .flexible(true)
            .from_reader(bytes);
        let rows = reader.records().map(Result::unwrap);
        rows.map(|row| row.iter().map(str::to_owned).collect())
            .collect()
    }

    /// The rows of a file, by the functions of this file.
    fn rows(bytes: &[u8], separator: u8) -> Vec<&[u8]> {
        let (mut rows, mut start, mut end, mut is_quoted) = (Vec::new(), 0, 0, false);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            end += line.len();
            is_quoted = ends_in_quotes(line, separator, is_quoted);
            if !is_quoted {
                rows.push(&bytes[start..end]);
                start = end;
            }
        }
        rows
    }

    proptest! {
        #[test]
        fn separated_rows_agree_with_the_crate_csv(
            table in prop::collection::vec(
                prop::collection::vec("[a\",;\t\n\u{e9} ]{0,6}", 1..5), 0..8),
            separator in prop::sample::select(vec![b',', b'\t']),
            quotes_all in any::<bool>(),
            line_end in prop::sample::select(vec!["\n", "\r\n"]),
        ) {
            let style = if quotes_all { csv::QuoteStyle::Always } else { csv::QuoteStyle::Necessary };
            let terminator = if line_end == "\n" { csv::Terminator::Any(b'\n') } else { csv::Terminator::CRLF };
            let mut writer = csv::WriterBuilder::new()
                .delimiter(separator)
                .flexible(true)
                .quote_style(style)
                .terminator(terminator)
                .from_writer(Vec::new());
            for row in &table {
                writer.write_record(row).unwrap();
            }
            let bytes = writer.into_inner().unwrap();
            let found = rows(&bytes, separator);
            prop_assert_eq!(found.concat(), bytes.clone());
            let found: Vec<Vec<_>> = found
                .iter()
                .map(|row| values(std::str::from_utf8(row).unwrap(), separator).unwrap())
                .collect();
            prop_assert_eq!(&found, &by_csv(&bytes, separator));
            prop_assert_eq!(&found, &table);
        }

        #[test]
        fn separated_reader_reads_or_refuses_any_bytes(bytes in "[a\",\n]{0,40}") {
            let found = rows(bytes.as_bytes(), b',');
            let length: usize = found.iter().map(|row| row.len()).sum();
            prop_assert!(length <= bytes.len());
            for row in found {
                let _ = values(std::str::from_utf8(row).unwrap(), b',');
            }
        }
    }

    #[test]
    fn separated_row_becomes_a_line_of_json() {
        let settings = CorpusSettings {
            score_field: Some(super::super::FieldPath::from_name("score")),
            ..CorpusSettings::default()
        };
        let names =
            ColumnNames::parse(b"id,text,other,score,features\r\n", b',', &settings).unwrap();
        let json = |row: &str| {
            let json = names.json(row.as_bytes()).map_err(|bad| bad.reason)?;
            Ok::<_, String>(String::from_utf8(json).unwrap())
        };
        for (row, expected) in [
            ("7,a b,x,1.5,\n", r#"{"id":7,"text":"a b","score":1.5}"#),
            ("007,,,,", r#"{"id":"007","text":""}"#),
            (
                "\"\",\"a\n\"\"b\"\"\",,nan,\"[1]\"\r\n",
                r#"{"text":"a\n\"b\"","score":"nan","features":[1]}"#,
            ),
            (
                "1 ,2,,- 1,x",
                r#"{"id":"1 ","text":"2","score":"- 1","features":"x"}"#,
            ),
        ] {
            assert_eq!(json(row).as_deref(), Ok(expected), "{row}");
        }
        assert_eq!(
            json("a,b").unwrap_err(),
            "2 values, expected 5, one for each column name"
        );
        assert_eq!(
            json("\"a\"b,c,d,e,f").unwrap_err(),
            "text after the closing quote of column 1"
        );
        let none = ColumnNames::parse(b"id,body", b',', &settings).unwrap_err();
        assert_eq!(none.reason, "there is no column \"text\"");
        assert!(none.advice.concat().contains("\"id\", \"body\""));
    }
}
