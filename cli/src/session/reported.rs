//! Reports that other verbs have written, read row by row.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use resemblance_corpus::{
    BadDocument, Compression, ContentRule, Corpus, CorpusRecords, CorpusSettings, FieldPath,
    IdRule, SourceKind, named_kind,
};
use serde_json::{Map, Value};

use super::context::Context;
use crate::failure::{Failure, Result};
use crate::output::escape::{self, PrintedKey, printed};
use crate::output::id_name;

/// A row of a report: a pair of documents, and what is known of it.
pub(crate) struct ReportedRow {
    pub(crate) keys: [PrintedKey; 2],
    /// The columns by their names; none of a report without a header.
    columns: Map<String, Value>,
}

impl ReportedRow {
    /// Returns the value of a column, if there is one.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match self.columns.get(name)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            value => Some(value.to_string()),
        }
    }

    /// Returns the value of a column of numbers, if there is one.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.text(name)?.parse().ok()
    }
}

/// The key by which a corpus is searched.
pub(crate) fn document_key(key: PrintedKey) -> Result<Vec<u8>> {
    match key {
        PrintedKey::Key(key) => Ok(key),
        PrintedKey::Id(_) => Err(Failure::usage(format!(
            "{} is a document without a key, and all documents of a corpus have keys",
            printed(&key)
        ))),
    }
}

/// Called with each row of a report.
pub(crate) type OnRow<'a> = &'a mut dyn FnMut(ReportedRow) -> Result<()>;

/// Reads a report whose first two columns are keys: tsv, csv, jsonl, json or parquet, compressed or
/// not, or standard input for `-`.
pub(crate) fn read_report(context: &Context, path: &Path, on_row: OnRow<'_>) -> Result<()> {
    let cannot_read = |e| Failure::io(format!("cannot read {}", path.display()), &e);
    let (place, window_bytes) = (path.to_path_buf(), context.memory_bytes / 2);
    let opening = move || {
        let opened = decompressed(&place, window_bytes);
        opened.map_err(|e| Failure::io(format!("cannot read {}", place.display()), &e))
    };
    let mut progress = context.progress("reading");
    let mut report = context.interrupt.while_working(&mut progress, opening)?;
    let start = report.fill_buf().map_err(cannot_read)?;
    if start.starts_with(b"PAR1") {
        return rows_of_table(context, path, on_row);
    }
    let form = ReportForm::of(path, start);
    rows_of_lines(context, path, form, report, on_row)
}

/// The names of the first two columns of reports.
const NAMES: [[&str; 2]; 6] = [
    ["key_a", "key_b"],
    ["cluster_key", "key"],
    ["query", "key"],
    ["dropped", "survivor"],
    ["dropped", "test"],
    ["document", "candidate"],
];

/// The names of the other columns that are read of a table.
const VALUES: [&str; 7] = [
    "similarity",
    "similarity_estimate",
    "distance",
    "similarity_is",
    "held",
    "covered",
    "rule",
];

/// The form of a report, which its first line shows.
#[derive(Clone, Copy, PartialEq)]
enum ReportForm {
    /// Keys are escaped.
    Tsv,
    Csv,
    /// An object on each line, between brackets and with commas in an array.
    Json,
}

impl ReportForm {
    fn of(path: &Path, start: &[u8]) -> Self {
        let line = start.split(|byte| *byte == b'\n').next().unwrap_or(start);
        let is_json = line.starts_with(b"{") || line.trim_ascii().starts_with(b"[");
        let is_csv_header = NAMES.iter().any(|[first, _]| {
            let rest = line.strip_prefix(first.as_bytes());
            rest.is_some_and(|rest| rest.starts_with(b","))
        });
        match line.contains(&b'\t') {
            true => Self::Tsv,
            false if is_json => Self::Json,
            false if is_csv_header || named_kind(path) == Some(SourceKind::Csv) => Self::Csv,
            false => Self::Tsv,
        }
    }

    /// Returns a row, whose columns have these names, or `None` of a line without any.
    fn row(self, line: &str, names: &[String]) -> Result<Option<ReportedRow>> {
        let cells = match self {
            Self::Json => return json_row(line, plain_key),
            Self::Tsv | Self::Csv => self.cells(line),
        };
        let [a, b, ..] = &cells[..] else {
            return Err(Failure::bad_input("expected two keys in a row"));
        };
        let key = |cell: &String| match self {
            Self::Csv => Ok(escape::parse_string(cell)),
            _ => escape::parse(cell.as_bytes()).map_err(Failure::bad_input),
        };
        let keys = [key(a)?, key(b)?];
        let named = names.iter().cloned();
        let columns = named.zip(cells.into_iter().map(Value::String)).collect();
        Ok(Some(ReportedRow { keys, columns }))
    }

    fn cells(self, line: &str) -> Vec<String> {
        match self {
            Self::Csv => csv_cells(line),
            _ => line.split('\t').map(str::to_owned).collect(),
        }
    }

    /// Returns true if a row continues in the next line because a quote is open.
    fn is_open(self, line: &str) -> bool {
        self == Self::Csv && line.matches('"').count() % 2 == 1
    }

    fn is_header(self, line: &str) -> bool {
        let separator = match self {
            Self::Tsv => '\t',
            Self::Csv => ',',
            Self::Json => return false,
        };
        let first = line.split(separator).next();
        NAMES.iter().any(|[name, _]| first == Some(*name))
    }
}

/// Returns the cells of a row of CSV.
fn csv_cells(row: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    let mut characters = row.chars().peekable();
    while let Some(character) = characters.next() {
        let Some(cell) = cells.last_mut() else {
            break;
        };
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            other => cell.push(other),
        }
    }
    cells
}

/// A key in jsonl and json. A key outside UTF-8 has a separate field.
fn plain_key(key: &str) -> PrintedKey {
    PrintedKey::Key(key.as_bytes().to_vec())
}

/// Returns the row of an object, `None` on a line of brackets alone.
fn json_row(line: &str, read_key: fn(&str) -> PrintedKey) -> Result<Option<ReportedRow>> {
    let object = line.trim().trim_end_matches(',');
    if ["[", "]", "[]"].contains(&object) {
        return Ok(None);
    }
    let columns: Map<String, Value> = serde_json::from_str(object).map_err(|error| {
        let column = error.column();
        Failure::bad_input(format!(
            "expected one JSON object per line, found another character at {column}"
        ))
    })?;
    let key = |name: &str| -> Option<PrintedKey> {
        match columns.get(name)? {
            Value::String(key) => Some(read_key(key)),
            _ => {
                let Some(digits) = columns.get(&format!("{name}_hex")) else {
                    return columns.get(&id_name(name))?.as_u64().map(PrintedKey::Id);
                };
                let digits = digits.as_str()?;
                let escaped: String = digits
                    .as_bytes()
                    .chunks(2)
                    .map(|pair| format!("\\x{}", String::from_utf8_lossy(pair)))
                    .collect();
                escape::parse(escaped.as_bytes()).ok()
            }
        }
    };
    let pairs = NAMES.iter().find_map(|[a, b]| Some([key(a)?, key(b)?]));
    let advice = "expected two keys, as fields such as key_a and key_b, or dropped and survivor";
    let keys = pairs.ok_or_else(|| Failure::bad_input(advice))?;
    Ok(Some(ReportedRow { keys, columns }))
}

/// Returns the contents of a report. Decompresses them if the name of the file asks for it.
fn decompressed(path: &Path, window_bytes: u64) -> std::io::Result<Box<dyn BufRead + Send>> {
    let report: Box<dyn Read + Send> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin()),
        false => Box::new(File::open(path)?),
    };
    let mut report = BufReader::new(report);
    let compression = Compression::from_content(report.fill_buf()?);
    Ok(match compression {
        Compression::None => Box::new(report),
        _ => Box::new(BufReader::new(
            compression.decoder(Box::new(report), window_bytes)?,
        )),
    })
}

fn rows_of_lines(
    context: &Context,
    path: &Path,
    form: ReportForm,
    report: Box<dyn BufRead + Send>,
    on_row: OnRow<'_>,
) -> Result<()> {
    let cannot_read = |e| Failure::io(format!("cannot read {}", path.display()), &e);
    let (mut row, mut names) = (String::new(), Vec::new());
    for (number, read) in (1_u64..).zip(report.split(b'\n')) {
        context.interrupt.check()?;
        let place = || format!("{}:{number}", path.display());
        let read = String::from_utf8(read.map_err(cannot_read)?).map_err(|error| {
            let bad = BadDocument::of_utf8(error.as_bytes(), &error.utf8_error());
            Failure::from(bad).at(place())
        })?;
        row.push_str(read.strip_suffix('\r').unwrap_or(&read));
        if form.is_open(&row) {
            row.push('\n');
            continue;
        }
        let line = std::mem::take(&mut row);
        if number == 1 && form.is_header(&line) {
            names = form.cells(&line);
        } else if !line.is_empty() {
            let read = form.row(&line, &names);
            let taken = read.and_then(|row| row.map_or(Ok(()), &mut *on_row));
            taken.map_err(|failure| failure.at(place()))?;
        }
    }
    Ok(())
}

/// Reads a report in Parquet as a corpus is read: a row becomes a line of JSON.
fn rows_of_table(context: &Context, path: &Path, on_row: OnRow<'_>) -> Result<()> {
    let numbers = NAMES.iter().flatten().map(|name| id_name(name));
    let names = NAMES.iter().flatten().chain(&VALUES);
    let names = names.map(|name| (*name).to_owned()).chain(numbers);
    let fields = names.map(|name| FieldPath::from_name(&name));
    let mut settings = CorpusSettings::default();
    settings.id = IdRule::Path;
    settings.text_fields = fields.collect();
    settings.content = ContentRule::with_numbers();
    settings.kind = Some(SourceKind::Parquet);
    settings.window_bytes = context.memory_bytes / 2;
    let corpus = Arc::new(Corpus::resolve(&[path.to_path_buf()], settings)?);
    for record in CorpusRecords::new(Arc::clone(&corpus), Arc::default()) {
        context.interrupt.check()?;
        let record = record?;
        let place = || corpus.position(record.source, record.line);
        let read = match &record.problem {
            Some(bad) => Err(Failure::from(bad.clone())),
            None => json_row(
                &String::from_utf8_lossy(&record.bytes),
                escape::parse_string,
            ),
        };
        let taken = read.and_then(|row| row.map_or(Ok(()), &mut *on_row));
        taken.map_err(|failure| failure.at(place()))?;
    }
    Ok(())
}
