//! The verb `explain`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use resemblance::Schema;
use resemblance_corpus::{
    Compression, Corpus, CorpusRecords, CorpusSettings, FieldPath, IdRule, SourceKind, named_kind,
};
use resemblance_eval::report::{ExplainedPair, explained_page};

use crate::failure::{Failure, Outcome, Result};
use crate::options::{BoundOptions, CorpusOptions, SchemaOptions, parse_key};
use crate::output::escape::{self, PrintedKey, printed};
use crate::output::{Destination, Layout, guard, has_colour};
use crate::session::{Context, read_text, read_texts_of, taken_text};

/// The form of what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExplainForm {
    /// Plain text: shared parts are in colour on a terminal, otherwise between ⟦ and ⟧
    Text,
    /// One JSON array with an object for each pair; spans are pairs of byte positions
    Json,
    /// One static page
    Html,
}

/// Show which parts two texts share, and how similar that makes them
///
/// Both texts are split into shingles by the schema options, as in pairs and dedup. A part is marked if it is covered
/// by shingles that the other text also has. The output shows the exact similarity (Jaccard, of the sets of shingles),
/// the estimate from signatures, cosine, Dice and overlap, and the share of each text's shingles that the other
/// contains. Schemas that count how often shingles occur (--minhash-kind weighted and probability, --tf-idf,
/// --simhash-counts yes) add a cosine that counts them too. The texts are two files, two documents of a corpus, or the
/// pairs that another verb has reported.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance explain old.txt new.txt
  resemblance explain page/1 page/7 --corpus pages.jsonl --words 3
  resemblance explain --pairs pairs.tsv --corpus pages.jsonl -o pairs.html --format html
  resemblance explain --pairs dropped.tsv --corpus pages.jsonl --limit 5")]
pub(crate) struct ExplainArguments {
    /// Two files, each one text in UTF-8 (- for standard input); with --corpus two keys
    #[arg(num_args = 2, value_names = ["A", "B"], required_unless_present = "pairs", conflicts_with = "pairs")]
    texts: Vec<OsString>,
    /// The corpora that contain the documents (see resemblance --help)
    #[arg(long, value_name = "CORPUS", num_args = 1..)]
    corpus: Vec<PathBuf>,
    /// A report whose first two columns are keys, as written by pairs, clusters, contain and dedup --report: tsv, csv,
    /// jsonl, json or parquet, compressed or not; - for standard input, except for parquet
    #[arg(long, value_name = "FILE", requires = "corpus")]
    pairs: Option<PathBuf>,
    /// At most the first N of these pairs; the others are counted
    #[arg(long, value_name = "N", default_value_t = 20, requires = "pairs")]
    limit: usize,
    /// Keys are given as results print them, with escapes
    #[arg(long, requires = "corpus", conflicts_with = "pairs")]
    escaped: bool,
    /// Format of the output
    #[arg(long, value_name = "FORM", default_value = "text")]
    format: ExplainForm,
    /// A file, or - for standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    bounds: BoundOptions,
    #[command(flatten)]
    schema: SchemaOptions,
    #[command(flatten)]
    options: CorpusOptions,
}

pub(crate) fn explain(context: &Context, arguments: &ExplainArguments) -> Result<Outcome> {
    if arguments.schema.weighs_by_rarity() {
        return Err(Failure::usage(
            "--tf-idf counts the features of a whole corpus, and explain compares pairs",
        ));
    }
    let schema = arguments.schema.build(&arguments.bounds)?;
    // Before the texts are read, so that an output that cannot be written is refused immediately.
    let is_standard = arguments.output.as_os_str() == "-";
    let create = || Destination::create(&arguments.output, arguments.force);
    let destination = (!is_standard).then(create).transpose()?;
    let pairs = if arguments.corpus.is_empty() {
        vec![explain_files(context, arguments, &schema)?]
    } else {
        explain_documents(context, arguments, &schema)?
    };
    write(arguments, destination, &pairs)?;
    Ok(Outcome::found(!pairs.is_empty()))
}

/// One pair, its texts compared.
fn compare(schema: &Schema, labels: [String; 2], texts: [String; 2]) -> Result<ExplainedPair> {
    if schema.text().is_none() {
        let usage = "explain compares texts, and with these options documents are not texts";
        return Err(Failure::usage(usage));
    }
    Ok(ExplainedPair::new(schema, labels, texts)?)
}

fn explain_files(
    context: &Context,
    arguments: &ExplainArguments,
    schema: &Schema,
) -> Result<ExplainedPair> {
    let [a, b] = &arguments.texts[..] else {
        return Err(Failure::usage("--pairs needs --corpus"));
    };
    if a == "-" && b == "-" {
        return Err(Failure::usage("standard input (-) is given twice"));
    }
    guard::protect([a, b].map(Path::new));
    let read = |path: &OsString| {
        let file = (path != "-").then_some(Path::new(path));
        let text = read_text(context, file, arguments.options.max_line_bytes())?;
        taken_text(schema, text)
    };
    let label = |path: &OsString| escape::one_line(&path.to_string_lossy());
    compare(schema, [label(a), label(b)], [read(a)?, read(b)?])
}

fn explain_documents(
    context: &Context,
    arguments: &ExplainArguments,
    schema: &Schema,
) -> Result<Vec<ExplainedPair>> {
    let wanted = match &arguments.pairs {
        Some(path) => reported_pairs(context, arguments, path)?,
        None => {
            let key = |key: &OsString| document_key(parse_key(key, arguments.escaped)?);
            let keys = arguments
                .texts
                .iter()
                .map(key)
                .collect::<Result<Vec<_>>>()?;
            let pair = <[Vec<u8>; 2]>::try_from(keys);
            vec![pair.map_err(|_| Failure::usage("give two keys, or --pairs"))?]
        }
    };
    let keys: BTreeSet<Vec<u8>> = wanted.iter().flatten().cloned().collect();
    let (inputs, options) = (&arguments.corpus, &arguments.options);
    let texts = read_texts_of(
        context,
        inputs,
        options,
        schema,
        keys.clone(),
        usize::MAX,
        |_, _| Ok(()),
    )?;
    for key in keys.iter().filter(|key| !texts.contains_key(*key)) {
        let key = escape::key(key);
        context.note(format!("no document with a text has the key {key}"));
    }
    let mut explained = Vec::new();
    for [a, b] in &wanted {
        context.interrupt.check()?;
        let text = |key: &Vec<u8>, texts: &BTreeMap<Vec<u8>, String>| texts.get(key).cloned();
        if let (Some(text_a), Some(text_b)) = (text(a, &texts), text(b, &texts)) {
            let labels = [a, b].map(|key| escape::key(key).into_owned());
            explained.push(compare(schema, labels, [text_a, text_b])?);
        }
    }
    Ok(explained)
}

/// The key by which a corpus is searched.
fn document_key(key: PrintedKey) -> Result<Vec<u8>> {
    match key {
        PrintedKey::Key(key) => Ok(key),
        PrintedKey::Id(_) => Err(Failure::usage(format!(
            "{} is a document without a key, and all documents of a corpus have keys",
            printed(&key)
        ))),
    }
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

    /// Returns the two keys of a line, or `None` if it has none.
    fn keys(self, line: &str) -> Result<Option<[PrintedKey; 2]>> {
        let columns: Vec<String> = match self {
            Self::Json => return json_keys(line, plain_key),
            Self::Tsv => line.split('\t').take(2).map(str::to_owned).collect(),
            Self::Csv => csv_cells(line),
        };
        let [a, b, ..] = &columns[..] else {
            return Err(Failure::bad_input("expected two keys in a row"));
        };
        let key = |column: &String| match self {
            Self::Csv => Ok(escape::parse_string(column)),
            _ => escape::parse(column.as_bytes()).map_err(Failure::bad_input),
        };
        Ok(Some([key(a)?, key(b)?]))
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

/// Returns the two keys of an object, `None` on a line of brackets alone.
fn json_keys(line: &str, read_key: fn(&str) -> PrintedKey) -> Result<Option<[PrintedKey; 2]>> {
    let object = line.trim().trim_end_matches(',');
    if ["[", "]", "[]"].contains(&object) {
        return Ok(None);
    }
    let parsed: serde_json::Value = serde_json::from_str(object).map_err(|error| {
        let column = error.column();
        Failure::bad_input(format!(
            "expected one JSON object per line, found another character at {column}"
        ))
    })?;
    let key = |name: &str| -> Option<PrintedKey> {
        match parsed.get(name)? {
            serde_json::Value::String(key) => Some(read_key(key)),
            _ => {
                let digits = parsed.get(format!("{name}_hex"))?.as_str()?;
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
    pairs.map(Some).ok_or_else(|| Failure::bad_input(advice))
}

/// The pairs of different keys in a report, at most the number that is wanted.
struct ReportedPairs {
    pairs: Vec<[Vec<u8>; 2]>,
    limit: usize,
    /// The number of pairs beyond the limit.
    others: u64,
}

impl ReportedPairs {
    fn push(&mut self, [a, b]: [PrintedKey; 2]) -> Result<()> {
        // clusters lists its first member as a member, too.
        if a == b {
            return Ok(());
        }
        if self.pairs.len() == self.limit {
            self.others += 1;
            return Ok(());
        }
        self.pairs.push([document_key(a)?, document_key(b)?]);
        Ok(())
    }
}

/// Returns the pairs of different keys in a report.
fn reported_pairs(
    context: &Context,
    arguments: &ExplainArguments,
    path: &Path,
) -> Result<Vec<[Vec<u8>; 2]>> {
    let cannot_read = |e| Failure::io(format!("cannot read {}", path.display()), &e);
    let (place, window_bytes) = (path.to_path_buf(), context.memory_bytes / 2);
    let opening = move || {
        let opened = decompressed(&place, window_bytes);
        opened.map_err(|e| Failure::io(format!("cannot read {}", place.display()), &e))
    };
    let mut progress = context.progress("reading");
    let mut report = context.interrupt.while_working(&mut progress, opening)?;
    let mut found = ReportedPairs {
        pairs: Vec::new(),
        limit: arguments.limit,
        others: 0,
    };
    let start = report.fill_buf().map_err(cannot_read)?;
    if start.starts_with(b"PAR1") {
        pairs_of_table(context, path, &mut found)?;
    } else {
        let form = ReportForm::of(path, start);
        pairs_of_lines(context, path, form, report, &mut found)?;
    }
    if found.others > 0 {
        context.note(format!(
            "{} more pairs are not explained (--limit {})",
            found.others, arguments.limit
        ));
    }
    Ok(found.pairs)
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

fn pairs_of_lines(
    context: &Context,
    path: &Path,
    form: ReportForm,
    report: Box<dyn BufRead + Send>,
    found: &mut ReportedPairs,
) -> Result<()> {
    let cannot_read = |e| Failure::io(format!("cannot read {}", path.display()), &e);
    let mut row = String::new();
    for (number, read) in (1_u64..).zip(report.split(b'\n')) {
        context.interrupt.check()?;
        let place = || format!("{}:{number}", path.display());
        let read = String::from_utf8(read.map_err(cannot_read)?).map_err(|error| {
            let position = error.utf8_error().valid_up_to() + 1;
            Failure::bad_input(format!("invalid UTF-8 at byte {position}")).at(place())
        })?;
        row.push_str(read.strip_suffix('\r').unwrap_or(&read));
        if form.is_open(&row) {
            row.push('\n');
            continue;
        }
        let line = std::mem::take(&mut row);
        if line.is_empty() || number == 1 && form.is_header(&line) {
            continue;
        }
        if let Some(keys) = form.keys(&line).map_err(|failure| failure.at(place()))? {
            found.push(keys).map_err(|failure| failure.at(place()))?;
        }
    }
    Ok(())
}

/// Reads a report in Parquet as a corpus is read: a row becomes a line of JSON.
fn pairs_of_table(context: &Context, path: &Path, found: &mut ReportedPairs) -> Result<()> {
    let keys = NAMES
        .iter()
        .flatten()
        .map(|name| FieldPath::from_name(name));
    let settings = CorpusSettings {
        id: IdRule::Path,
        text_fields: keys.collect(),
        kind: Some(SourceKind::Parquet),
        window_bytes: context.memory_bytes / 2,
        ..CorpusSettings::default()
    };
    let corpus = Arc::new(Corpus::resolve(&[path.to_path_buf()], settings)?);
    for record in CorpusRecords::new(Arc::clone(&corpus), Arc::default()) {
        context.interrupt.check()?;
        let record = record?;
        let place = || corpus.position(record.source, record.line);
        let read = match &record.problem {
            Some(bad) => Err(Failure::from(bad.clone())),
            None => json_keys(
                &String::from_utf8_lossy(&record.bytes),
                escape::parse_string,
            ),
        };
        if let Some(keys) = read.map_err(|failure| failure.at(place()))? {
            found.push(keys).map_err(|failure| failure.at(place()))?;
        }
    }
    Ok(())
}

/// Writes the pairs to the destination, or to standard output without one.
fn write(
    arguments: &ExplainArguments,
    destination: Option<Destination>,
    pairs: &[ExplainedPair],
) -> Result<()> {
    let has_colour = destination.is_none() && has_colour(&std::io::stdout());
    let text = match arguments.format {
        ExplainForm::Text => {
            let texts = pairs.iter().map(|pair| pair.text(has_colour));
            texts.collect::<Vec<_>>().join("\n")
        }
        ExplainForm::Json => {
            let objects = pairs.iter().map(ExplainedPair::json).collect();
            let json = serde_json::Value::Array(objects).to_string();
            escape::json(&json).into_owned() + "\n"
        }
        ExplainForm::Html => explained_page("What texts share", pairs),
    };
    if has_colour && arguments.format == ExplainForm::Text {
        return Layout::table().painted_paragraph(text.trim_end_matches('\n'));
    }
    let Some(mut destination) = destination else {
        return Layout::table().paragraph(text.trim_end_matches('\n'));
    };
    destination.write(text.as_bytes())?;
    destination.finish()
}
