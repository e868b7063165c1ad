//! The verb `explain`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use resemblance::Schema;
use resemblance_eval::report::{ExplainedPair, explained_page};

use crate::failure::{Failure, Outcome, Result};
use crate::options::{BoundOptions, CorpusOptions, SchemaOptions, parse_key};
use crate::output::escape::{self, PrintedKey, printed};
use crate::output::{Destination, Layout, guard, has_colour};
use crate::session::{Context, read_text, read_texts_of, taken_text};

/// The form of what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExplainForm {
    /// For reading: shared parts in colour on a terminal, else between ⟦ and ⟧
    Text,
    /// One JSON array with an object for each pair; spans are pairs of byte positions
    Json,
    /// One static page
    Html,
}

/// Show which parts two texts share, and how similar that makes them
///
/// Both texts are cut into shingles by the schema options, as pairs and dedup do. A part is marked if it is
/// covered by shingles that the other text has, too. The exact similarity (Jaccard, of the sets of
/// shingles) stands beside the estimate from signatures, cosine, Dice and overlap, and the share of each text's
/// shingles that the other has. Where signatures count how often shingles occur (--minhash-kind weighted and
/// probability, --tf-idf), so does one more cosine. The texts are two
/// files, two documents of a corpus, or the pairs that another verb has reported.
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
    /// The corpora that the documents are in (see resemblance --help)
    #[arg(long, value_name = "CORPUS", num_args = 1..)]
    corpus: Vec<PathBuf>,
    /// A tab-separated file whose first two columns are keys, as pairs, clusters, contain, and dedup --report
    /// write it; - for standard input
    #[arg(long, value_name = "FILE", requires = "corpus")]
    pairs: Option<PathBuf>,
    /// At most the first N of these pairs; the others are counted
    #[arg(long, value_name = "N", default_value_t = 20, requires = "pairs")]
    limit: usize,
    /// The keys are given as they are printed: escaped
    #[arg(long, requires = "corpus", conflicts_with = "pairs")]
    escaped: bool,
    /// Form of what is written
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
    let pairs = if arguments.corpus.is_empty() {
        vec![explain_files(context, arguments, &schema)?]
    } else {
        explain_documents(context, arguments, &schema)?
    };
    write(arguments, &pairs)?;
    Ok(Outcome::found(!pairs.is_empty()))
}

/// One pair, its texts compared.
fn compare(schema: &Schema, labels: [String; 2], texts: [String; 2]) -> Result<ExplainedPair> {
    if schema.text().is_none() {
        let usage = "explain is for texts, and by these options documents are no texts";
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
            "{} is a document without a key, which no corpus has",
            printed(&key)
        ))),
    }
}

/// First columns of reports that are names, and no keys.
const HEADERS: [&str; 4] = ["key_a\t", "cluster_key\t", "query\t", "dropped\t"];

/// Returns the pairs of different keys in a report, at most as many as are wanted.
fn reported_pairs(
    context: &Context,
    arguments: &ExplainArguments,
    path: &Path,
) -> Result<Vec<[Vec<u8>; 2]>> {
    let cannot_read = |e| Failure::io(format!("cannot read {}", path.display()), &e);
    let report: Box<dyn BufRead> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(BufReader::new(File::open(path).map_err(cannot_read)?)),
    };
    let has_header = |line: &str| HEADERS.iter().any(|header| line.starts_with(header));
    let (mut pairs, mut others) = (Vec::new(), 0_u64);
    for (number, read) in (1_u64..).zip(report.lines()) {
        context.interrupt.check()?;
        let line = read.map_err(cannot_read)?;
        if line.is_empty() || number == 1 && has_header(&line) {
            continue;
        }
        let place = || format!("{}:{number}", path.display());
        let mut columns = line.split('\t');
        let (Some(a), Some(b)) = (columns.next(), columns.next()) else {
            let failure = Failure::bad_input("expected two keys with a tab between them");
            return Err(failure.at(place()));
        };
        if a == b {
            // clusters lists its first member as a member, too.
            continue;
        }
        if pairs.len() == arguments.limit {
            others += 1;
            continue;
        }
        let key = |column: &str| {
            let key = escape::parse(column.as_bytes());
            document_key(key.map_err(|reason| Failure::bad_input(reason).at(place()))?)
        };
        pairs.push([key(a)?, key(b)?]);
    }
    if others > 0 {
        context.note(format!(
            "{others} more pairs are not explained (--limit {})",
            arguments.limit
        ));
    }
    Ok(pairs)
}

fn write(arguments: &ExplainArguments, pairs: &[ExplainedPair]) -> Result<()> {
    let is_standard = arguments.output.as_os_str() == "-";
    let has_colour = is_standard && has_colour(&std::io::stdout());
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
    if is_standard {
        return Layout::table().paragraph(text.trim_end_matches('\n'));
    }
    let mut destination = Destination::create(&arguments.output, arguments.force)?;
    destination.write(text.as_bytes())?;
    destination.finish()
}
