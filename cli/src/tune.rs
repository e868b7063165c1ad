//! The verb `tune`.

use std::path::PathBuf;

use clap::Args;
use resemblance::{
    Banding, BulkOptions, Error, MinHash, Schema, SimHash, TableDesign, hamming_ball,
};

use super::Context;
use super::arguments::{CorpusOptions, Format, FormatOptions};
use super::background::Background;
use super::chart::{Axis, Chart};
use super::failure::{Failure, Outcome, Result};
use super::results::{Column, Results, Value};
use super::schema::parse_bits;
use super::text_plot::TextPlot;

/// What a posting takes on disk with codes of 40 bits, its share of the filters included, about.
const BAND_POSTING_BYTES: f64 = 5.4;
/// The same with codes of 64 bits.
const TABLE_POSTING_BYTES: f64 = 8.4;

/// Where the S-curve is shown, and the columns.
const POINTS: [(f64, &str); 10] = [
    (0.50, "p0.50"),
    (0.55, "p0.55"),
    (0.60, "p0.60"),
    (0.65, "p0.65"),
    (0.70, "p0.70"),
    (0.75, "p0.75"),
    (0.80, "p0.80"),
    (0.85, "p0.85"),
    (0.90, "p0.90"),
    (0.95, "p0.95"),
];

/// The same for SimHash, which finds only what is nearly identical.
const NEAR_POINTS: [(f64, &str); 4] = [
    (0.80, "p0.80"),
    (0.90, "p0.90"),
    (0.95, "p0.95"),
    (0.99, "p0.99"),
];

/// Show what schemas would find and cost, to choose one
///
/// MinHash: for each number of values the bands that reach the recall at the threshold, and the
/// probability p0.50 to p0.95 that a pair of that similarity is looked at. candidates is what a
/// query is expected to look at among so many documents, if each of them has the similarity
/// --background to it; with --corpus it comes from the exact similarities of that corpus instead.
/// deviation is the standard deviation of the estimate at the threshold; curve_threshold is
/// (1/bands)^(1/rows). Bytes are per document: of the postings, of the signature, and of all
/// without the key's own bytes.
///
/// SimHash (--simhash 64): for each number of documents the permuted tables that a store gets,
/// the candidates of a query if fingerprints are uniform, and the probability that unweighted sets
/// of a Jaccard similarity come within the distance.
///
/// On a terminal, or with --format table, the curves are drawn too.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance tune --threshold 0.7 --recall 0.99
  resemblance tune --values 128,256 --documents 10000000 --svg curves.svg
  resemblance tune --corpus corpus.jsonl.gz --sample 2000
  resemblance tune --simhash 64 --distance 3 --format tsv --header")]
pub(crate) struct Arguments {
    /// Similarity from which on documents are near-duplicates [default: 0.8]
    #[arg(long, value_name = "T", conflicts_with = "simhash")]
    threshold: Option<f64>,
    /// Share of the pairs right at the threshold that must be found [default: 0.95]
    #[arg(long, value_name = "R", conflicts_with = "simhash")]
    recall: Option<f64>,
    /// Numbers of MinHash values to compare
    #[arg(
        long,
        value_name = "K,...",
        value_delimiter = ',',
        default_value = "64,128,256,512",
        conflicts_with = "simhash"
    )]
    values: Vec<u16>,
    /// Documents in the store [default: 1000000; with --simhash 100000 to 1000000000]
    #[arg(long, value_name = "N")]
    documents: Option<u64>,
    /// Similarity that documents are assumed to have that are not alike [default: 0.05]
    #[arg(long, value_name = "S", conflicts_with_all = ["simhash", "corpus"])]
    background: Option<f64>,
    /// Take the similarities of documents that are not alike from a corpus (all pairs of it, exact)
    #[arg(long, value_name = "CORPUS", conflicts_with = "simhash")]
    corpus: Vec<PathBuf>,
    /// Of the corpus, only the N documents whose keys hash lowest
    #[arg(long, value_name = "N", requires = "corpus")]
    sample: Option<usize>,
    /// Shingles of N words, to compare the corpus by [default: 5]
    #[arg(long, value_name = "N", requires = "corpus", conflicts_with = "chars")]
    words: Option<u16>,
    /// Shingles of N characters instead
    #[arg(long, value_name = "N", requires = "corpus")]
    chars: Option<u16>,
    /// Show SimHash tables for fingerprints of this many bits instead: 64 or 128
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    simhash: Option<u16>,
    /// Greatest Hamming distance of a near-duplicate [default: 3, of 128 bits 6]
    #[arg(long, value_name = "D", requires = "simhash")]
    distance: Option<u8>,
    /// Draw the curves to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long, requires = "svg")]
    force: bool,
    #[command(flatten)]
    options: CorpusOptions,
    #[command(flatten)]
    format: FormatOptions,
}

impl Arguments {
    fn draw(&self, context: &Context, chart: &Chart) -> Result<()> {
        if let Some(path) = &self.svg {
            chart.write(path, self.force)?;
            context.messages.note(format!("drew {}", path.display()));
        }
        Ok(())
    }

    fn is_table(&self) -> Result<bool> {
        Ok(Results::new(&self.bare_format(), Vec::new())?.format() == Format::Table)
    }

    fn bare_format(&self) -> FormatOptions {
        FormatOptions {
            format: self.format.format,
            header: false,
        }
    }

    fn say(&self, text: &str) -> Result<()> {
        Results::new(&self.bare_format(), Vec::new())?.paragraph(text)
    }
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<Outcome> {
    match arguments.simhash {
        Some(bits) => tune_simhash(context, arguments, bits),
        None => tune_minhash(context, arguments),
    }
}

/// One row of the MinHash table.
struct Choice {
    values: u16,
    banding: Banding,
    candidates: f64,
    document_bytes: f64,
}

impl Choice {
    fn name(&self) -> String {
        let (bands, rows) = (self.banding.bands(), self.banding.rows());
        format!("{} values: {bands} bands of {rows} rows", self.values)
    }
}

fn tune_minhash(context: &Context, arguments: &Arguments) -> Result<Outcome> {
    let threshold = arguments.threshold.unwrap_or(0.8);
    let recall = arguments.recall.unwrap_or(0.95);
    let documents = arguments.documents.unwrap_or(1_000_000);
    let background = background(context, arguments)?;
    let mut choices = Vec::new();
    for &values in &arguments.values {
        let banding = match Banding::by_recall(values, threshold, recall) {
            Err(error) if is_unreachable(&error, recall) => {
                context.messages.note(format!("{values} values: {error}"));
                continue;
            }
            other => other?,
        };
        let minhash = MinHash::new(values)
            .threshold(threshold)
            .banding(banding.bands(), banding.rows());
        choices.push(Choice {
            values,
            banding,
            candidates: background.candidates(banding, documents),
            document_bytes: document_bytes(&Schema::builder().minhash(minhash).build()?)?,
        });
    }
    if choices.is_empty() {
        return Err(Failure::usage(format!(
            "none of the numbers of values in --values reaches recall {recall} at threshold \
             {threshold}"
        )));
    }
    let table = MinHashTable {
        arguments,
        threshold,
        documents,
        background: &background,
        choices: &choices,
    };
    if arguments.is_table()? {
        table.in_words(recall)?;
    } else {
        table.columns()?;
    }
    arguments.draw(context, &s_curves(&choices, threshold, recall))?;
    Ok(Outcome::Done)
}

fn background(context: &Context, arguments: &Arguments) -> Result<Background> {
    if arguments.corpus.is_empty() {
        return Background::assumed(arguments.background.unwrap_or(0.05));
    }
    let text = super::sample::text_rule(arguments.words, arguments.chars);
    Background::measured(
        context,
        &arguments.corpus,
        &arguments.options,
        text,
        arguments.sample,
    )
}

/// Whether more values are all that is missing.
fn is_unreachable(error: &Error, recall: f64) -> bool {
    let is_possible = recall > 0.0 && recall < 1.0;
    matches!(error, Error::InvalidParameter { parameter, .. } if *parameter == "recall" && is_possible)
}

/// What a document takes on disk, without its key, when there are many.
fn document_bytes(schema: &Schema) -> Result<f64> {
    const MANY: u64 = 1_000_000;
    let options = BulkOptions::new();
    let store_bytes =
        |documents| -> Result<u64> { Ok(options.estimate(schema, documents, 0, 0)?.store_bytes) };
    Ok(store_bytes(MANY)?.saturating_sub(store_bytes(0)?) as f64 / MANY as f64)
}

struct MinHashTable<'a> {
    arguments: &'a Arguments,
    threshold: f64,
    documents: u64,
    background: &'a Background,
    choices: &'a [Choice],
}

impl MinHashTable<'_> {
    /// What is said of a choice beside its probabilities.
    fn facts(&self, choice: &Choice) -> [Value<'static>; 9] {
        let (banding, values) = (choice.banding, f64::from(choice.values));
        let variance = self.threshold * (1.0 - self.threshold) / values;
        [
            Value::Count(choice.values.into()),
            Value::Count(banding.bands().into()),
            Value::Count(banding.rows().into()),
            Value::Significant(banding.probability(self.threshold)),
            Value::Significant(variance.sqrt()),
            Value::Significant(banding.approximate_threshold()),
            Value::Significant(choice.candidates),
            Value::Significant(BAND_POSTING_BYTES * f64::from(banding.bands())),
            Value::Significant(choice.document_bytes),
        ]
    }

    fn fact_columns() -> Vec<Column> {
        [
            "values",
            "bands",
            "rows",
            "recall",
            "deviation",
            "curve_threshold",
            "candidates",
            "posting_bytes",
            "document_bytes",
        ]
        .map(Column::new)
        .to_vec()
    }

    fn probabilities(choice: &Choice) -> impl Iterator<Item = Value<'static>> {
        let banding = choice.banding;
        POINTS
            .into_iter()
            .map(move |(similarity, _)| Value::Significant(banding.probability(similarity)))
    }

    fn columns(&self) -> Result<()> {
        let mut columns = Self::fact_columns();
        let others = ["signature_bytes", "threshold", "documents", "background"];
        columns.extend(others.map(Column::new));
        columns.extend(POINTS.map(|(_, name)| Column::new(name)));
        let mut results = Results::new(&self.arguments.format, columns)?;
        for choice in self.choices {
            let mut row = self.facts(choice).to_vec();
            row.extend([
                Value::Count(4 * u64::from(choice.values)),
                Value::Significant(self.threshold),
                Value::Count(self.documents),
                Value::Significant(self.background.mean()),
            ]);
            row.extend(Self::probabilities(choice));
            results.row(&row)?;
        }
        results.finish()
    }

    fn in_words(&self, recall: f64) -> Result<()> {
        let format = self.arguments.bare_format();
        let (threshold, documents) = (self.threshold, self.documents);
        self.arguments.say(&format!(
            "MinHash: pairs of similarity {threshold} found with probability {recall} or more"
        ))?;
        let mut results = Results::new(&format, Self::fact_columns())?;
        for choice in self.choices {
            results.row(&self.facts(choice))?;
        }
        results.finish()?;
        self.arguments.say(&format!(
            "candidates: of a query among {documents} documents, {}\n\
             bytes a document: {BAND_POSTING_BYTES} a band with codes of 40 bits, 4 a value, and \
             the rows; without keys\n\n\
             probability that a pair of a similarity is looked at",
            self.background
        ))?;
        let mut columns = vec![Column::new("values")];
        columns.extend(POINTS.map(|(_, name)| Column::new(name)));
        let mut results = Results::new(&format, columns)?;
        let mut plot = TextPlot::new();
        plot.upright("the threshold", threshold);
        for choice in self.choices {
            let mut row = vec![Value::Count(choice.values.into())];
            row.extend(Self::probabilities(choice));
            results.row(&row)?;
            plot.curve(&choice.name(), |s| choice.banding.probability(s));
        }
        results.finish()?;
        self.arguments.say(&format!("\n{}", plot.text()))
    }
}

fn s_curves(choices: &[Choice], threshold: f64, recall: f64) -> Chart {
    let mut chart = Chart {
        title: format!("Bands for a recall of {recall} at similarity {threshold}"),
        x: Axis::share("Jaccard similarity"),
        y: Axis::share("probability of being looked at"),
        series: Vec::new(),
    };
    for choice in choices {
        chart.curve(choice.name(), |s| choice.banding.probability(s));
    }
    chart.upright("threshold", threshold);
    chart
}

fn tune_simhash(context: &Context, arguments: &Arguments, bits: u16) -> Result<Outcome> {
    let mut simhash = if bits == 128 {
        SimHash::bits128()
    } else {
        SimHash::bits64()
    };
    if let Some(distance) = arguments.distance {
        simhash = simhash.max_distance(distance);
    }
    let documents = match arguments.documents {
        Some(documents) => vec![documents],
        None => (5..=9).map(|power| 10_u64.pow(power)).collect(),
    };
    let designs = documents.into_iter().map(|documents| {
        let schema = Schema::builder()
            .simhash(simhash)
            .expected_documents(documents)
            .build()?;
        let design = schema.simhash().map(|simhash| simhash.design().clone());
        let design = design.ok_or_else(|| Failure::usage("--simhash: no tables"))?;
        Ok((documents, design, document_bytes(&schema)?))
    });
    let designs: Vec<(u64, TableDesign, f64)> = designs.collect::<Result<_>>()?;
    let Some((_, design, _)) = designs.first() else {
        return Ok(Outcome::Done);
    };
    let distance = design.max_distance();
    let is_table = arguments.is_table()?;
    if is_table {
        arguments.say(&format!(
            "SimHash: every fingerprint of {bits} bits within distance {distance} is found; without \
             tables that takes {} probes",
            hamming_ball(design.bits(), distance)
        ))?;
    }
    simhash_rows(arguments, &designs, is_table)?;
    if is_table {
        let mut plot = TextPlot::new();
        plot.curve(&curve_name(distance), |s| design.probability(s));
        arguments.say(&format!(
            "candidates: of a query, if fingerprints are uniform\n\
             bytes a document: {TABLE_POSTING_BYTES} a table, {} the fingerprint, and the rows; \
             without keys\n\
             p0.80 to p0.99: unweighted sets of equal size and that Jaccard similarity come within \
             the distance\n\n{}",
            bits / 8,
            plot.text()
        ))?;
    }
    let mut chart = Chart {
        title: format!("SimHash of {bits} bits"),
        x: Axis::share("Jaccard similarity of unweighted sets"),
        y: Axis::share("probability of being found"),
        series: Vec::new(),
    };
    chart.curve(curve_name(distance), |s| design.probability(s));
    arguments.draw(context, &chart)?;
    Ok(Outcome::Done)
}

fn curve_name(distance: u8) -> String {
    format!("distance {distance} or less")
}

fn simhash_rows(
    arguments: &Arguments,
    designs: &[(u64, TableDesign, f64)],
    is_table: bool,
) -> Result<()> {
    let mut columns = ["documents", "design", "tables", "prefix_bits", "candidates"]
        .map(Column::new)
        .to_vec();
    columns.extend(["posting_bytes", "document_bytes"].map(Column::new));
    columns.extend(NEAR_POINTS.map(|(_, name)| Column::new(name)));
    let others = ["distance", "probes_without_tables"];
    columns.extend(others.map(|name| Column::shown_if(name, !is_table)));
    let mut results = Results::new(&arguments.format, columns)?;
    for (documents, design, document_bytes) in designs {
        let groups: Vec<String> = design
            .groups()
            .iter()
            .map(|(blocks, leading)| format!("({blocks},{leading})"))
            .collect();
        let groups = groups.join(" ");
        let (least, most) = design.prefix_bits().into_inner();
        let prefix = if least == most {
            least.to_string()
        } else {
            format!("{least}-{most}")
        };
        let tables = design.table_count();
        let mut row = vec![
            Value::Count(*documents),
            Value::Text(&groups),
            Value::Count(tables as u64),
            Value::Text(&prefix),
            Value::Significant(design.candidates(*documents)),
            Value::Significant(TABLE_POSTING_BYTES * tables as f64),
            Value::Significant(*document_bytes),
        ];
        row.extend(NEAR_POINTS.map(|(s, _)| Value::Significant(design.probability(s))));
        let probes = hamming_ball(design.bits(), design.max_distance());
        row.push(Value::Count(design.max_distance().into()));
        row.push(Value::Count(u64::try_from(probes).unwrap_or(u64::MAX)));
        results.row(&row)?;
    }
    results.finish()
}
