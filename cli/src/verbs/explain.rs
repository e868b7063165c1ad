//! The verb `explain`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use resemblance::Schema;
use resemblance_eval::report::{ExplainedPair, explained_page};

use crate::failure::{Failure, Outcome, Result};
use crate::options::{BoundOptions, CorpusOptions, SchemaOptions, parse_key};
use crate::output::escape::{self, PrintedKey};
use crate::output::{Destination, Layout, Value, guard, has_colour};
use crate::session::{Context, document_key, read_report, read_text, read_texts_of, taken_text};

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

impl ExplainArguments {
    /// Returns the schema that the options ask for, or an error if it cannot be explained.
    pub(crate) fn own_schema(&self) -> Result<Schema> {
        if self.schema.weighs_by_rarity() {
            return Err(Failure::usage(
                "--tf-idf counts the features of a whole corpus, and explain compares pairs",
            ));
        }
        let schema = self.schema.build(&self.bounds)?;
        if schema.vector().is_some() {
            let usage = "explain compares texts by their features: omit --vector";
            return Err(Failure::usage(usage));
        }
        Ok(schema)
    }
}

pub(crate) fn explain(context: &Context, arguments: &ExplainArguments) -> Result<Outcome> {
    let schema = arguments.own_schema()?;
    // Before the texts are read, so that an output that cannot be written is refused immediately.
    let is_standard = arguments.output.as_os_str() == "-";
    let create = || Destination::create(&arguments.output, arguments.force);
    let destination = (!is_standard).then(create).transpose()?;
    let pairs = if arguments.corpus.is_empty() {
        vec![explain_files(context, arguments, &schema)?]
    } else {
        explain_documents(context, arguments, &schema)?
    };
    let outcome = Outcome::found(!pairs.is_empty());
    write(arguments, destination, pairs)?;
    Ok(outcome)
}

/// Two texts that were compared.
struct NamedPair {
    /// Their keys, or the names of their files.
    names: [Vec<u8>; 2],
    explained: ExplainedPair,
}

impl NamedPair {
    /// Compares two texts. `labels` are their names in print.
    fn compare(
        schema: &Schema,
        names: [Vec<u8>; 2],
        labels: [String; 2],
        texts: [String; 2],
    ) -> Result<Self> {
        if schema.text().is_none() {
            let usage = "explain compares texts, and with these options documents are not texts";
            return Err(Failure::usage(usage));
        }
        let explained = ExplainedPair::new(schema, labels, texts)?;
        Ok(Self { names, explained })
    }

    /// Returns all figures. Names are strings without escapes, as in every result in JSON.
    fn json(&self) -> serde_json::Value {
        let mut json = self.explained.json();
        let [a, b] = &self.names;
        if let Some(fields) = json.as_object_mut() {
            fields.extend(Value::Key(a).json_fields("a"));
            fields.extend(Value::Key(b).json_fields("b"));
        }
        json
    }
}

fn explain_files(
    context: &Context,
    arguments: &ExplainArguments,
    schema: &Schema,
) -> Result<NamedPair> {
    let [a, b] = &arguments.texts[..] else {
        return Err(Failure::usage("--pairs needs --corpus"));
    };
    if a == "-" && b == "-" {
        return Err(Failure::usage("standard input (-) is given twice"));
    }
    guard::protect([a, b].map(Path::new));
    let read = |path: &OsString| {
        let file = (path != "-").then_some(Path::new(path));
        let corpus = "--corpus FILE compares documents of it, which two keys name";
        let text = read_text(context, file, arguments.options.max_line_bytes(), corpus)?;
        taken_text(schema, text)
    };
    let label = |path: &OsString| escape::one_line(&path.to_string_lossy());
    let names = [a, b].map(|path| path.as_encoded_bytes().to_vec());
    NamedPair::compare(schema, names, [label(a), label(b)], [read(a)?, read(b)?])
}

fn explain_documents(
    context: &Context,
    arguments: &ExplainArguments,
    schema: &Schema,
) -> Result<Vec<NamedPair>> {
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
        |_, _, _| Ok(()),
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
            let names = [a, b].map(Clone::clone);
            explained.push(NamedPair::compare(schema, names, labels, [text_a, text_b])?);
        }
    }
    Ok(explained)
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
    let mut found = ReportedPairs {
        pairs: Vec::new(),
        limit: arguments.limit,
        others: 0,
    };
    read_report(context, path, &mut |row| found.push(row.keys))?;
    if found.others > 0 {
        context.note(format!(
            "{} more pairs are not explained (--limit {})",
            found.others, arguments.limit
        ));
    }
    Ok(found.pairs)
}

/// Writes the pairs to the destination, or to standard output without one.
fn write(
    arguments: &ExplainArguments,
    destination: Option<Destination>,
    pairs: Vec<NamedPair>,
) -> Result<()> {
    let has_colour = destination.is_none() && has_colour(&std::io::stdout());
    let text = match arguments.format {
        ExplainForm::Text => {
            let texts = pairs.iter().map(|pair| pair.explained.text(has_colour));
            texts.collect::<Vec<_>>().join("\n")
        }
        ExplainForm::Json => {
            let objects = pairs.iter().map(NamedPair::json).collect();
            let json = serde_json::Value::Array(objects).to_string();
            escape::json(&json).into_owned() + "\n"
        }
        ExplainForm::Html => {
            let pairs: Vec<_> = pairs.into_iter().map(|pair| pair.explained).collect();
            explained_page("What texts share", &pairs)
        }
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
