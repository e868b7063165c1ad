//! Results on standard output or in a file: a table, tab- or comma-separated values, JSON or Parquet.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::Path;

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use clap::ValueEnum;

use super::colour::{has_colour, painted_table};
use super::column_kind::{ColumnKind, TypedValue};
use super::destination::Destination;
use super::escape;
use super::parquet_rows::ParquetRows;
use resemblance::Fingerprint;

use crate::bug::bug;
use crate::failure::{Failure, Result};
use resemblance_corpus::{Compression, SourceKind, named_kind};

/// The form of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns for reading
    Table,
    /// Tab-separated values
    Tsv,
    /// Comma-separated values, quoted where need be
    Csv,
    /// One JSON object per line
    Jsonl,
    /// One JSON array of objects
    Json,
    /// Parquet, with the fields of jsonl: for verbs whose columns have types
    #[value(skip)]
    Parquet,
}

impl Format {
    /// What stands between two values of a line; `None` where values have names or columns.
    fn separator(self) -> Option<char> {
        match self {
            Self::Tsv => Some('\t'),
            Self::Csv => Some(','),
            Self::Table | Self::Jsonl | Self::Json | Self::Parquet => None,
        }
    }
}

/// How results are laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    format: Format,
    has_header: bool,
}

impl Layout {
    /// Results in this form; without one a table on a terminal, and tsv elsewhere. Only tsv and csv have
    /// a header that can be left out.
    pub(crate) fn new(format: Option<Format>, has_header: bool) -> Self {
        let format = format.unwrap_or_else(|| {
            if std::io::stdout().is_terminal() {
                Format::Table
            } else {
                Format::Tsv
            }
        });
        Self { format, has_header }
    }

    /// The form that the name of a file asks for; tsv if it asks for none.
    pub(crate) fn of_name(path: &Path, has_header: bool) -> Result<Self> {
        let format = match named_kind(path) {
            Some(SourceKind::Lines) => Format::Jsonl,
            Some(SourceKind::Csv) => Format::Csv,
            Some(SourceKind::Parquet) => Format::Parquet,
            Some(kind @ (SourceKind::Arrow | SourceKind::Sqlite)) => {
                return Err(Failure::usage(format!(
                    "{} is named as {}, in which no results are written; .parquet and .jsonl are names of \
                     forms with types",
                    path.display(),
                    kind.name()
                )));
            }
            Some(SourceKind::Tsv | SourceKind::Text) | None => {
                let is_json = path.extension().is_some_and(|end| end == "json");
                if is_json { Format::Json } else { Format::Tsv }
            }
        };
        Ok(Self { format, has_header })
    }

    /// A table.
    pub(crate) fn table() -> Self {
        Self {
            format: Format::Table,
            has_header: false,
        }
    }

    /// True for aligned columns, which words may stand between.
    pub(crate) fn is_table(self) -> bool {
        self.format == Format::Table
    }

    /// Prints one JSON value.
    pub(crate) fn json(self, value: &serde_json::Value) -> Result<()> {
        self.paragraph(&escape::json(&value.to_string()))
    }

    /// Prints a paragraph of text that has colours, and nothing else that drives a terminal.
    pub(crate) fn painted_paragraph(self, text: &str) -> Result<()> {
        let mut output = painted_output()?;
        output.write(format!("{text}\n").as_bytes())?;
        output.finish()
    }

    /// Prints a paragraph of text.
    pub(crate) fn paragraph(self, text: &str) -> Result<()> {
        let mut results = Results::new(Self::table(), Vec::new())?;
        results.line = format!("{text}\n");
        results.write_line()?;
        results.finish()
    }
}

/// Tables are laid out piece by piece, so that results of any length can be shown.
const TABLE_ROWS: usize = 1000;
/// Columns, and a line below their names.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A column, whose name is also the field's name in jsonl.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    name: &'static str,
    /// False for fields that only jsonl and Parquet show.
    is_shown: bool,
    kind: ColumnKind,
}

impl Column {
    pub(crate) fn new(name: &'static str) -> Self {
        Self::of(name, ColumnKind::Text)
    }

    /// One that has a type in Parquet, too.
    pub(crate) fn of(name: &'static str, kind: ColumnKind) -> Self {
        let is_shown = true;
        Self {
            name,
            is_shown,
            kind,
        }
    }

    /// A field that other forms show only if `is_shown`.
    pub(crate) fn shown_if(self, is_shown: bool) -> Self {
        Self { is_shown, ..self }
    }
}

/// One field of a result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    /// A document: its key, or its number where it has none; jsonl has both.
    Document {
        id: u64,
        key: Option<&'a [u8]>,
    },
    /// A key that belongs to no stored document.
    Key(&'a [u8]),
    /// A document without a key, by its number; nothing where forms have types.
    NoKey(u64),
    Text(&'a str),
    Count(u64),
    /// A place in a text, in bytes, or a length; nothing where there is none.
    Position(Option<usize>),
    Number(f64),
    /// A number that may be very small or large: four significant digits.
    Significant(f64),
    Similarity(Option<f64>),
    Distance(Option<u32>),
    /// MinHash values, separated by commas.
    Values(Option<&'a [u32]>),
    /// Hashes of 64 bits, 16 hexadecimal digits each, separated by commas.
    Hashes(&'a [u64]),
    /// A fingerprint in hexadecimal: all digits that its number of bits has.
    Fingerprint(Option<Fingerprint>),
    /// Bytes in hexadecimal.
    Bytes(&'a [u8]),
}

/// Where rows go.
enum ResultsOutput {
    Lines(Box<Destination>),
    Parquet(Box<ParquetRows>),
}

/// A stream of rows.
pub(crate) struct Results {
    format: Format,
    columns: Vec<Column>,
    out: ResultsOutput,
    /// Of a table, those that are not written yet.
    rows: Vec<Vec<String>>,
    /// True once a row of a JSON array is written.
    has_rows: bool,
    /// Of the columns shown, which are aligned to the right.
    numeric: Vec<bool>,
    line: String,
    /// The names of the columns of a table stand out.
    is_painted: bool,
    /// Characters of a terminal's line, into which tables must fit.
    width: Option<u16>,
}

/// Standard output for text whose control characters are escaped, but for those that paint it.
fn painted_output() -> Result<Destination> {
    let stdout = Box::new(std::io::stdout());
    Destination::new(Path::new("-"), Compression::None, stdout, None)
}

/// `None` where the results go elsewhere.
fn terminal_width() -> Option<u16> {
    let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(width.0)
}

impl Results {
    /// Writes the header if one is wanted.
    pub(crate) fn new(layout: Layout, columns: Vec<Column>) -> Result<Self> {
        let is_table = layout.is_table() && !columns.is_empty();
        let is_painted = is_table && has_colour(&std::io::stdout());
        let output = if is_painted {
            painted_output()?
        } else {
            Destination::create(Path::new("-"), false)?
        };
        Self {
            is_painted,
            width: terminal_width(),
            ..Self::to(layout, columns, output)?
        }
        .begin(layout)
    }

    /// The same in a file, whose results are no table.
    pub(crate) fn create(
        path: &Path,
        force: bool,
        layout: Layout,
        columns: Vec<Column>,
    ) -> Result<Self> {
        let output = Destination::create(path, force)?;
        Self::to(layout, columns, output)?.begin(layout)
    }

    fn to(layout: Layout, columns: Vec<Column>, output: Destination) -> Result<Self> {
        let out = match layout.format {
            Format::Parquet if output.alters_bytes() => {
                let reason = "Parquet is written neither to a terminal nor compressed as a whole; > FILE.parquet \
                              makes a file of it";
                return Err(Failure::usage(reason));
            }
            Format::Parquet => {
                let kinds: Vec<_> = columns.iter().map(|c| (c.name, c.kind)).collect();
                ResultsOutput::Parquet(Box::new(ParquetRows::new(&kinds, output)?))
            }
            _ => ResultsOutput::Lines(Box::new(output)),
        };
        Ok(Self {
            format: layout.format,
            columns,
            out,
            rows: Vec::new(),
            has_rows: false,
            numeric: Vec::new(),
            line: String::new(),
            is_painted: false,
            width: None,
        })
    }

    /// Writes the names of the columns, if that is wanted.
    fn begin(mut self, layout: Layout) -> Result<Self> {
        if let Some(separator) = self.format.separator().filter(|_| layout.has_header) {
            let names: Vec<_> = self.shown_names().collect();
            self.line = names.join(&separator.to_string()) + "\n";
            self.write_line()?;
        }
        Ok(self)
    }

    fn shown_names(&self) -> impl Iterator<Item = &'static str> {
        let shown = self.columns.iter().filter(|column| column.is_shown);
        shown.map(|column| column.name)
    }

    /// Writes one result; a value for every column.
    pub(crate) fn row(&mut self, values: &[Value<'_>]) -> Result<()> {
        if let ResultsOutput::Parquet(parquet) = &mut self.out {
            return parquet.row(values.iter().map(Value::typed));
        }
        match self.format {
            Format::Jsonl => self.json_line(values),
            Format::Json => {
                self.json_line(values);
                self.line.pop();
                let before = if self.has_rows { ",\n" } else { "[\n" };
                self.line.insert_str(0, before);
                self.has_rows = true;
            }
            Format::Tsv => self.separated_line(values, '\t'),
            Format::Csv => self.separated_line(values, ','),
            Format::Table | Format::Parquet => {
                let cells = self.columns.iter().zip(values);
                let cells = cells.filter(|(column, _)| column.is_shown);
                if self.rows.is_empty() {
                    self.numeric = cells.clone().map(|(_, value)| value.is_number()).collect();
                }
                let cell = |value: &Value<'_>| escape::for_terminal(&value.text()).into_owned();
                self.rows
                    .push(cells.map(|(_, value)| cell(value)).collect());
                if self.rows.len() >= TABLE_ROWS {
                    self.write_table()?;
                }
                return Ok(());
            }
        }
        self.write_line()
    }

    /// Writes what is still held back.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.write_table()?;
        if self.format == Format::Json {
            self.line = if self.has_rows { "\n]\n" } else { "[]\n" }.into();
            self.write_line()?;
        }
        match self.out {
            ResultsOutput::Lines(output) => output.finish(),
            ResultsOutput::Parquet(parquet) => parquet.finish(),
        }
    }

    fn write_line(&mut self) -> Result<()> {
        match &mut self.out {
            ResultsOutput::Lines(output) => output.write(self.line.as_bytes()),
            ResultsOutput::Parquet(_) => Err(bug("a line of Parquet").into()),
        }
    }

    fn write_table(&mut self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut table = Table::new();
        table
            .load_style(STYLE)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(self.shown_names())
            .add_rows(self.rows.drain(..));
        if let Some(width) = self.width {
            table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width);
        }
        for (index, is_number) in self.numeric.iter().enumerate() {
            if let Some(column) = table.column_mut(index).filter(|_| *is_number) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        self.line = table.trim_fmt();
        if self.is_painted {
            self.line = painted_table(&self.line);
        }
        self.line.push('\n');
        self.write_line()
    }

    fn separated_line(&mut self, values: &[Value<'_>], separator: char) {
        self.line.clear();
        for (column, value) in self.columns.iter().zip(values) {
            if column.is_shown {
                let text = value.text();
                // Escapes leave no tabs and no line ends.
                if text.contains([separator, '"']) && separator == ',' {
                    let _ = write!(self.line, "\"{}\"", text.replace('"', "\"\""));
                } else {
                    self.line.push_str(&text);
                }
                self.line.push(separator);
            }
        }
        self.line.pop();
        self.line.push('\n');
    }

    fn json_line(&mut self, values: &[Value<'_>]) {
        self.line.clear();
        self.line.push('{');
        for (column, value) in self.columns.iter().zip(values) {
            if let Value::Document { id, .. } = value {
                let name = column.name.replacen("key", "id", 1);
                let _ = write!(self.line, "\"{name}\":{id},");
            }
            json_field(&mut self.line, column.name, *value);
            self.line.push(',');
        }
        self.line.pop();
        self.line.push_str("}\n");
    }
}

fn json_field(line: &mut String, name: &str, value: Value<'_>) {
    let _ = write!(line, "\"{name}\":");
    let number = |json: Option<String>| json.unwrap_or_else(|| "null".into());
    let json = match value {
        Value::Document { key: None, .. } | Value::NoKey(_) => "null".into(),
        Value::Document { key: Some(key), .. } | Value::Key(key) => {
            match std::str::from_utf8(key) {
                Ok(text) => json_string(text),
                Err(_) => format!("null,\"{name}_hex\":\"{}\"", hexadecimal(key)),
            }
        }
        Value::Text(text) => json_string(text),
        Value::Count(count) => count.to_string(),
        Value::Position(position) => number(position.map(|position| position.to_string())),
        Value::Number(value) | Value::Significant(value) => {
            number(serde_json::to_string(&value).ok())
        }
        Value::Similarity(value) => number(value.and_then(|v| serde_json::to_string(&v).ok())),
        Value::Distance(value) => number(value.map(|v| v.to_string())),
        Value::Values(values) => number(values.map(|v| format!("[{}]", joined(v)))),
        Value::Hashes(hashes) => {
            let quoted = hashes.iter().map(|hash| format!("\"{hash:016x}\""));
            format!("[{}]", quoted.collect::<Vec<_>>().join(","))
        }
        Value::Fingerprint(value) => number(value.map(|value| format!("\"{value}\""))),
        Value::Bytes(bytes) => format!("\"{}\"", hexadecimal(bytes)),
    };
    line.push_str(&json);
}

/// A JSON string; beside what JSON asks for, whatever drives a terminal is escaped.
pub(crate) fn json_string(text: &str) -> String {
    escape::json(&serde_json::Value::from(text).to_string()).into_owned()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn joined(values: &[u32]) -> String {
    let texts: Vec<_> = values.iter().map(u32::to_string).collect();
    texts.join(",")
}

impl Value<'_> {
    fn is_number(&self) -> bool {
        matches!(
            self,
            Self::Count(_)
                | Self::Position(_)
                | Self::Number(_)
                | Self::Significant(_)
                | Self::Similarity(_)
                | Self::Distance(_)
        )
    }

    /// The form of columns that have types.
    fn typed(&self) -> TypedValue<'_> {
        match self {
            Self::Document { id, key } => TypedValue::Document(*id, *key),
            Self::Key(key) => TypedValue::Text(Some(key)),
            Self::NoKey(_) => TypedValue::Text(None),
            Self::Text(text) => TypedValue::Text(Some(text.as_bytes())),
            Self::Count(count) => TypedValue::Count(Some(*count)),
            Self::Distance(bits) => TypedValue::Count(bits.map(u64::from)),
            Self::Number(value) | Self::Significant(value) => TypedValue::Number(Some(*value)),
            Self::Similarity(value) => TypedValue::Number(value.map(f64::from)),
            Self::Position(_)
            | Self::Values(_)
            | Self::Hashes(_)
            | Self::Fingerprint(_)
            | Self::Bytes(_) => TypedValue::Other,
        }
    }

    /// The form in tables and tsv; nothing where there is no value.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Document { id, key: None } | Self::NoKey(id) => escape::without_key(*id).into(),
            Self::Document { key: Some(key), .. } | Self::Key(key) => escape::key(key),
            Self::Text(text) => escape::key(text.as_bytes()),
            Self::Count(count) => count.to_string().into(),
            Self::Position(position) => position.map(|p| p.to_string()).unwrap_or_default().into(),
            Self::Number(value) => format!("{value:.2}").into(),
            Self::Significant(value) => significant(*value).into(),
            Self::Similarity(value) => value.map(|v| format!("{v:.6}")).unwrap_or_default().into(),
            Self::Distance(value) => value.map(|v| v.to_string()).unwrap_or_default().into(),
            Self::Values(values) => values.map(joined).unwrap_or_default().into(),
            Self::Hashes(hashes) => {
                let texts = hashes.iter().map(|hash| format!("{hash:016x}"));
                texts.collect::<Vec<_>>().join(",").into()
            }
            Self::Fingerprint(value) => value
                .map(|value| value.to_string())
                .unwrap_or_default()
                .into(),
            Self::Bytes(bytes) => hexadecimal(bytes).into(),
        }
    }
}

/// Four significant digits, with an exponent where zeros would be many.
fn significant(value: f64) -> String {
    let size = value.abs();
    match size {
        0.0 => "0".into(),
        0.001..10_000.0 => {
            let whole_digits = size.log10().floor() as i32;
            let decimals = usize::try_from(3 - whole_digits).unwrap_or(0);
            format!("{value:.decimals$}")
        }
        10_000.0..1e9 => format!("{value:.0}"),
        _ => format!("{value:.3e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_say_enough() {
        let cases = [
            (0.0, "0"),
            (0.999_64, "0.9996"),
            (0.000_36, "3.600e-4"),
            (-0.0475, "-0.04750"),
            (47.5, "47.50"),
            (12_345.6, "12346"),
            (1e12, "1.000e12"),
            (f64::NAN, "NaN"),
        ];
        for (value, text) in cases {
            assert_eq!(significant(value), text);
        }
    }

    fn results(format: Format, columns: Vec<Column>) -> Results {
        Results::new(Layout::new(Some(format), false), columns).unwrap()
    }

    fn pair_columns(with_distance: bool) -> Vec<Column> {
        vec![
            Column::new("key_a"),
            Column::new("key_b"),
            Column::new("similarity"),
            Column::of("distance", ColumnKind::Count).shown_if(with_distance),
        ]
    }

    const PAIR: [Value<'static>; 4] = [
        Value::Document {
            id: 4,
            key: Some(b"a\tb\"\xc3\xa9"),
        },
        Value::Document { id: 9, key: None },
        Value::Similarity(Some(0.953_125)),
        Value::Distance(None),
    ];

    #[test]
    fn tab_separated() {
        let mut results = results(Format::Tsv, pair_columns(false));
        results.separated_line(&PAIR, '\t');
        assert_eq!(results.line, "a\\tb\"\u{e9}\t\\#9\t0.953125\n");
        results.columns = pair_columns(true);
        results.separated_line(&PAIR, '\t');
        assert_eq!(results.line, "a\\tb\"\u{e9}\t\\#9\t0.953125\t\n");
    }

    #[test]
    fn comma_separated() {
        let mut results = results(Format::Csv, pair_columns(false));
        results.separated_line(&PAIR, ',');
        assert_eq!(results.line, "\"a\\tb\"\"\u{e9}\",\\#9,0.953125\n");
        results.separated_line(&[Value::Key(b"a,b"), Value::Text("c")], ',');
        assert_eq!(results.line, "\"a,b\",c\n");
    }

    #[test]
    fn json() {
        let mut results = results(Format::Jsonl, pair_columns(false));
        results.json_line(&PAIR);
        assert_eq!(
            results.line,
            "{\"id_a\":4,\"key_a\":\"a\\tb\\\"\u{e9}\",\"id_b\":9,\"key_b\":null,\
             \"similarity\":0.953125,\"distance\":null}\n"
        );
        results.columns = vec![Column::new("key"), Column::new("query")];
        let key = Value::Document {
            id: 0,
            key: Some(b"\xff"),
        };
        results.json_line(&[key, Value::Key(b"\xfe")]);
        assert_eq!(
            results.line,
            "{\"id\":0,\"key\":null,\"key_hex\":\"ff\",\"query\":null,\"query_hex\":\"fe\"}\n"
        );
    }

    #[test]
    fn every_value_has_both_forms() {
        let cases = [
            (Value::Text("a\nb"), "a\\nb", "\"a\\nb\""),
            (
                Value::Text("\u{7f}\u{9b}\u{202e}\u{1b}"),
                "\\x7F\\xC2\\x9B\\xE2\\x80\\xAE\\x1B",
                "\"\\u007f\\u009b\\u202e\\u001b\"",
            ),
            (Value::Count(7), "7", "7"),
            (Value::Position(Some(7)), "7", "7"),
            (Value::Position(None), "", "null"),
            (Value::Number(1.5), "1.50", "1.5"),
            (Value::Similarity(Some(1.0)), "1.000000", "1.0"),
            (Value::Similarity(None), "", "null"),
            (Value::Distance(Some(3)), "3", "3"),
            (Value::Values(Some(&[1, 2])), "1,2", "[1,2]"),
            (
                Value::Hashes(&[1, u64::MAX]),
                "0000000000000001,ffffffffffffffff",
                "[\"0000000000000001\",\"ffffffffffffffff\"]",
            ),
            (Value::Hashes(&[]), "", "[]"),
            (
                Value::Fingerprint(Some(255_u64.into())),
                "00000000000000ff",
                "\"00000000000000ff\"",
            ),
            (Value::Bytes(b"\x01\xff"), "01ff", "\"01ff\""),
        ];
        for (value, text, json) in cases {
            assert_eq!(value.text(), text);
            let mut line = String::new();
            json_field(&mut line, "x", value);
            assert_eq!(line, format!("\"x\":{json}"));
        }
    }
}
