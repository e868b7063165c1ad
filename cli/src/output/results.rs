//! Results on standard output or in a file: a table, tab- or comma-separated values, JSON or Parquet.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::Path;

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use clap::ValueEnum;

use super::colour::{has_colour, painted_table};
use super::destination::{CompleteFile, Destination};
use super::escape;
#[cfg(feature = "tables")]
use super::parquet_rows::ParquetRows;
use super::value::{Column, Value};
use crate::failure::{Failure, Result};
#[cfg(feature = "tables")]
use resemblance::invariant::bug;
use resemblance_corpus::{Compression, SourceKind, is_json_name, named_kind};

/// The form of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns
    Table,
    /// Tab-separated values
    Tsv,
    /// Comma-separated values, quoted where necessary
    Csv,
    /// One JSON object per line
    Jsonl,
    /// One JSON array of objects
    Json,
    /// A Parquet file with the fields of jsonl
    Parquet,
}

impl Format {
    /// Returns the character between two values of a line; `None` where values have names or
    /// columns.
    fn separator(self) -> Option<char> {
        match self {
            Self::Tsv => Some('\t'),
            Self::Csv => Some(','),
            Self::Table | Self::Jsonl | Self::Json | Self::Parquet => None,
        }
    }
}

/// The layout of results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    format: Format,
    has_header: bool,
}

impl Layout {
    /// Results in this form; without one a table on a terminal, and tsv elsewhere. Only tsv and csv have
    /// a header that can be left out.
    pub(crate) fn new(format: Option<Format>, has_header: bool) -> Self {
        let usual = match std::io::stdout().is_terminal() {
            true => Format::Table,
            false => Format::Tsv,
        };
        Self {
            format: format.unwrap_or(usual),
            has_header,
        }
    }

    /// The form that the name of a file asks for; tsv if it asks for none.
    pub(crate) fn of_name(path: &Path, has_header: bool) -> Result<Self> {
        let format = match named_kind(path) {
            Some(SourceKind::Lines) => Format::Jsonl,
            Some(SourceKind::Csv) => Format::Csv,
            Some(SourceKind::Parquet) => Format::Parquet,
            Some(SourceKind::Tsv | SourceKind::Text) | None => match is_json_name(path) {
                true => Format::Json,
                false => Format::Tsv,
            },
            Some(kind) => {
                return Err(Failure::usage(format!(
                    "{} has the name of {}, in which results cannot be written",
                    path.display(),
                    kind.name()
                ))
                .with_note(".parquet and .jsonl are formats with types"));
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

    /// Returns true for aligned columns, which words may surround.
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

/// The destination of rows.
enum ResultsOutput {
    Lines(Box<Destination>),
    #[cfg(feature = "tables")]
    Parquet(Box<ParquetRows>),
}

/// A stream of rows.
pub(crate) struct Results {
    format: Format,
    columns: Vec<Column>,
    out: ResultsOutput,
    /// The rows of a table that are not written yet.
    rows: Vec<Vec<String>>,
    /// True once a row of a JSON array is written.
    has_rows: bool,
    /// A flag for each column shown: true if it is aligned to the right.
    numeric: Vec<bool>,
    line: String,
    /// True if the names of the columns of a table are emphasized.
    is_painted: bool,
    /// Characters of a terminal's line, into which tables must fit.
    width: Option<u16>,
}

/// Standard output for text whose control characters are escaped, but for those that paint it.
fn painted_output() -> Result<Destination> {
    let stdout = Box::new(std::io::stdout());
    Destination::new(Path::new("-"), Compression::None, stdout, None)
}

/// Returns the width of the terminal, or `None` if the results are written elsewhere.
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

    /// Creates results in a file, which are not a table.
    pub(crate) fn create(
        path: &Path,
        force: bool,
        layout: Layout,
        columns: Vec<Column>,
    ) -> Result<Self> {
        let output = Destination::create(path, force)?;
        Self::to(layout, columns, output)?.begin(layout)
    }

    /// Prints one result: the names of its columns, and their values.
    pub(crate) fn print_one(layout: Layout, fields: &[(&'static str, Value<'_>)]) -> Result<()> {
        let (names, values): (Vec<_>, Vec<_>) = fields.iter().copied().unzip();
        let columns = names.into_iter().map(Column::new).collect();
        let mut results = Self::new(layout, columns)?;
        results.row(&values)?;
        results.finish()
    }

    fn to(layout: Layout, columns: Vec<Column>, output: Destination) -> Result<Self> {
        let out = match layout.format {
            Format::Parquet if output.alters_bytes() => {
                let reason = "Parquet cannot be compressed as a whole or written to a terminal";
                return Err(Failure::usage(reason).with_note("> FILE.parquet writes it to a file"));
            }
            #[cfg(feature = "tables")]
            Format::Parquet => {
                ResultsOutput::Parquet(Box::new(ParquetRows::new(&columns, output)?))
            }
            #[cfg(not(feature = "tables"))]
            Format::Parquet => {
                let usage =
                    "Parquet requires the feature `tables`, which is not part of this build";
                return Err(Failure::usage(usage).with_note(
                    "cargo install --locked --path cli --features tables builds it in; \
                     add the features that you had",
                ));
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
        #[cfg(feature = "tables")]
        if let ResultsOutput::Parquet(parquet) = &mut self.out {
            return parquet.row(values);
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
                let cells = self
                    .columns
                    .iter()
                    .zip(values)
                    .filter(|(column, _)| column.is_shown);
                if self.rows.is_empty() {
                    self.numeric = cells.clone().map(|(_, value)| value.is_number()).collect();
                }
                let is_on_terminal = std::io::stdout().is_terminal();
                let cell = |value: &Value<'_>| match value {
                    Value::Count(count) if is_on_terminal => escape::grouped(*count),
                    other => escape::for_terminal(&other.text()).into_owned(),
                };
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

    /// Passes on the lines that are complete, before a pause: the next ones may take long.
    pub(crate) fn pass_on(&mut self) -> Result<()> {
        match &mut self.out {
            ResultsOutput::Lines(output) => output.pass_on(),
            #[cfg(feature = "tables")]
            ResultsOutput::Parquet(_) => Ok(()),
        }
    }

    /// Writes what is still held back.
    pub(crate) fn finish(self) -> Result<()> {
        self.complete()?.give_name()
    }

    /// Writes what is still held back into a file that has no name yet.
    pub(crate) fn complete(mut self) -> Result<CompleteFile> {
        self.write_table()?;
        if self.format == Format::Json {
            self.line = if self.has_rows { "\n]\n" } else { "[]\n" }.into();
            self.write_line()?;
        }
        match self.out {
            ResultsOutput::Lines(output) => output.complete(),
            #[cfg(feature = "tables")]
            ResultsOutput::Parquet(parquet) => parquet.complete(),
        }
    }

    fn write_line(&mut self) -> Result<()> {
        match &mut self.out {
            ResultsOutput::Lines(output) => output.write(self.line.as_bytes()),
            #[cfg(feature = "tables")]
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
                let text = match separator {
                    ',' => value.unescaped(),
                    _ => value.text(),
                };
                if separator == ',' && text.contains([',', '"', '\n', '\r']) {
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
        let columns = self.columns.iter().zip(values);
        let fields = columns
            .flat_map(|(column, value)| value.json_fields(column.name))
            .map(|(name, json)| format!("\"{name}\":{}", escape::json(&json.to_string())));
        self.line = format!("{{{}}}\n", fields.collect::<Vec<_>>().join(","));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::ColumnKind;

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
    fn tsv_results_are_written() {
        let mut results = results(Format::Tsv, pair_columns(false));
        results.separated_line(&PAIR, '\t');
        assert_eq!(results.line, "a\\tb\"\u{e9}\t\\#9\t0.953125\n");
        results.columns = pair_columns(true);
        results.separated_line(&PAIR, '\t');
        assert_eq!(results.line, "a\\tb\"\u{e9}\t\\#9\t0.953125\t\n");
    }

    #[test]
    fn csv_results_are_written() {
        let mut results = results(Format::Csv, pair_columns(false));
        results.separated_line(&PAIR, ',');
        assert_eq!(results.line, "\"a\tb\"\"\u{e9}\",\\#9,0.953125\n");
        results.separated_line(&[Value::Key(b"a,b"), Value::Text("c")], ',');
        assert_eq!(results.line, "\"a,b\",c\n");
    }

    #[test]
    fn json_results_are_written() {
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
}
