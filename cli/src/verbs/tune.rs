//! The verb `tune`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use itertools::Itertools as _;
use resemblance::exact::fingerprints_within;
use resemblance::invariant::OrBug;
use resemblance::schema::{Banding, TYPICAL_FEATURES, noun};
use resemblance::{Error, MinHash, Schema, SimHash, Vector};
use resemblance_eval::{
    BAND_POSTING_BYTES, Background, BandingChoice, Chart, TABLE_POSTING_BYTES, TableChoice,
    near_neighbour_plan, s_curves,
};

use crate::failure::{Failure, Outcome, Result};
use crate::options::{
    CorpusOptions, FormatOptions, TableGroups, default_text, parse_bits, parse_euclidean,
    simhash_of,
};
use crate::output::{Column, Counted, Destination, GroupedNumber, Results, Value, write_chart};
use crate::session::{Context, SampleSource, read_sample};
use resemblance_corpus::ContentRule;

/// The points at which the S-curve is shown, and the columns.
const POINTS: [f64; 10] = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];
/// The place of the column `curve_threshold` among the facts of a choice.
const CURVE_THRESHOLD: usize = 6;
const POINT_COLUMNS: &str = "p0.50 p0.55 p0.60 p0.65 p0.70 p0.75 p0.80 p0.85 p0.90 p0.95";

/// The points for SimHash, which finds only near-identical documents.
const NEAR_POINTS: [f64; 4] = [0.8, 0.9, 0.95, 0.99];

/// Number of families of pairs for which the spread of the recall is shown.
const FAMILIES: u64 = 100;

/// [`BandingTable::advice`] takes the fewest values with this deviation of the estimates and this number of
/// candidates at most.
const ACCURATE_DEVIATION: f64 = 0.045;
const FEW_CANDIDATES: f64 = 1_000.0;

/// Show what different schemas would find and cost
///
/// MinHash: for each number of values, the bands that reach the recall at the threshold, and the probability p0.50 to
/// p0.95 that a pair of that similarity becomes a candidate. candidates is the expected number for a query among
/// --documents, if each of them has the similarity --background to it; with --corpus it is computed from the exact
/// similarities of that corpus instead. recall is the mean over seeds. recall_deviation is its standard deviation for a
/// corpus with 100 families of near-duplicates at the threshold, each found or missed as a whole; for a single family
/// it is ten times as large. deviation is the standard deviation of the estimate at the threshold; curve_threshold is
/// (1/bands)^(1/rows). false_positive_area lies below the threshold and under the S-curve, false_negative_area above it
/// and over the curve (tsv and jsonl). --bands and --rows show the given bands, and --curve-threshold those whose curve
/// is steepest there. Bytes are per document: of its postings, of its signature, and of everything but its key.
///
/// Vectors (--vector 384): the same for the hash values of vectors, by their cosine, or with --euclidean by their
/// distance, at which the similarity is 1 / (1 + distance).
///
/// SimHash (--simhash 64): for each number of documents, the permuted tables of a store, the candidates of a query if
/// fingerprints are uniform, and the probability that unweighted sets of a given Jaccard similarity, with --features
/// features together, are within the distance.
///
/// Near neighbours (--nearest J,...): the bands that find documents of similarity J among documents of similarity
/// --background, according to theory: rho = ln(1/J) / ln(1/background), rows = ln n / ln(1/background) rounded up, the
/// fewest bands that find a neighbour with probability 1 - 1/e or more, and their cost. short_probability is the
/// probability with which query --nearest finds them by the first two rows of the bands of --threshold, before it reads
/// all signatures.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance tune --threshold 0.7 --recall 0.99
  resemblance tune --values 128,256 --documents 10000000 --svg curves.svg
  resemblance tune --corpus corpus.jsonl.gz --sample 2000
  resemblance tune --bands 20 --rows 5 --format table
  resemblance tune --nearest 0.8,0.5,0.3 --documents 10000000
  resemblance tune --vector 384 --threshold 0.97
  resemblance tune --simhash 64 --distance 3 --format tsv
  resemblance tune --simhash 64 --tables 5,2")]
pub(crate) struct TuneArguments {
    /// Minimum similarity of near-duplicates [default: 0.8, for vectors 0.95]
    #[arg(long, value_name = "T", conflicts_with = "simhash")]
    threshold: Option<f64>,
    /// Show the hash values of vectors of N numbers instead
    #[arg(long, value_name = "N", conflicts_with_all = ["simhash", "curve_threshold", "nearest", "corpus"])]
    vector: Option<u16>,
    /// Maximum Euclidean distance of near vectors, instead of the cosine
    #[arg(long, value_name = "D", requires = "vector", conflicts_with_all = WITHOUT_DISTANCE, value_parser = parse_euclidean)]
    euclidean: Option<f64>,
    /// Share of the pairs at the threshold that must be found [default: 0.95]
    #[arg(long, value_name = "R", conflicts_with = "simhash")]
    recall: Option<f64>,
    /// Numbers of values to compare [default: 64,128,256,512, for vectors 128,256,512,1024; with --bands the number they
    /// need]
    #[arg(
        long,
        value_name = "K,...",
        value_delimiter = ',',
        conflicts_with = "simhash"
    )]
    values: Vec<u16>,
    /// Show this number of bands instead of choosing them
    #[arg(long, value_name = "B", requires = "rows", conflicts_with_all = ["simhash", "recall"])]
    bands: Option<u16>,
    /// Show bands of this number of rows
    #[arg(long, value_name = "R", requires = "bands", conflicts_with_all = ["simhash", "recall", "curve_threshold", "nearest"])]
    rows: Option<u16>,
    /// Choose bands by T = (1/bands)^(1/rows) instead of by recall
    #[arg(long, value_name = "T", conflicts_with_all = ["simhash", "recall", "bands"])]
    curve_threshold: Option<f64>,
    /// Show the bands that theory requires to find near neighbours of these similarities
    #[arg(
        long,
        value_name = "J,...",
        value_delimiter = ',',
        conflicts_with_all = ["simhash", "bands", "curve_threshold", "corpus", "svg"]
    )]
    nearest: Vec<f64>,
    /// Documents in the store [default: 1000000; with --simhash 100000 to 1000000000]
    #[arg(long, value_name = "N")]
    documents: Option<u64>,
    /// Assumed similarity of documents that are not near-duplicates [default: 0.05, for vectors a cosine of 0.2 or four
    /// times the distance]
    #[arg(long, value_name = "S", conflicts_with_all = ["simhash", "corpus"])]
    background: Option<f64>,
    /// Measure the background in a corpus instead (exact similarities of all pairs)
    #[arg(long, value_name = "CORPUS", conflicts_with = "simhash")]
    corpus: Vec<PathBuf>,
    /// Measure only the N documents of the corpus whose keys have the least hashes
    #[arg(long, value_name = "N", requires = "corpus", conflicts_with_all = WITHOUT_CORPUS)]
    sample: Option<NonZeroUsize>,
    /// The texts of the corpus are HTML (feature html)
    #[arg(long, requires = "corpus", conflicts_with_all = WITHOUT_CORPUS)]
    html: bool,
    /// Compare the corpus by shingles of N words [default: 5 words, or characters of scripts without spaces]
    #[arg(long, value_name = "N", requires = "corpus", conflicts_with = "chars", conflicts_with_all = WITHOUT_CORPUS)]
    words: Option<u16>,
    /// Shingles of N characters instead
    #[arg(long, value_name = "N", requires = "corpus", conflicts_with_all = WITHOUT_CORPUS)]
    chars: Option<u16>,
    /// Show SimHash tables for fingerprints of this many bits instead: 32, 64 or 128
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    simhash: Option<u16>,
    /// Maximum Hamming distance of near-duplicates [default: 3, with 32 bits 2, with 128 bits 6]
    #[arg(long, value_name = "D", requires = "simhash", conflicts_with_all = OF_MINHASH)]
    distance: Option<u8>,
    /// Show these permuted tables (see create) instead of choosing them
    #[arg(long, value_name = "S,R+...", requires = "simhash", conflicts_with_all = OF_MINHASH)]
    tables: Option<TableGroups>,
    /// Distinct shingles of two documents together [default: 400]
    #[arg(long, value_name = "N", requires = "simhash", conflicts_with_all = OF_MINHASH,
        value_parser = clap::value_parser!(u64).range(1..))]
    features: Option<u64>,
    /// Draw the curves to this file
    #[arg(long, value_name = "OUT")]
    svg: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long, requires = "svg", conflicts_with = "nearest")]
    force: bool,
    #[command(flatten)]
    options: CorpusOptions,
    #[command(flatten)]
    format: FormatOptions,
}

/// The options that a corpus is not measured for. clap drops a requirement that conflicts with them.
const WITHOUT_CORPUS: [&str; 5] = ["nearest", "background", "simhash", "vector", "euclidean"];

/// The options that a distance of vectors does not go with.
const WITHOUT_DISTANCE: [&str; 5] = [
    "threshold",
    "simhash",
    "curve_threshold",
    "nearest",
    "corpus",
];

/// The options that SimHash has no use for.
const OF_MINHASH: [&str; 13] = [
    "threshold",
    "vector",
    "euclidean",
    "recall",
    "values",
    "curve_threshold",
    "nearest",
    "background",
    "corpus",
    "sample",
    "html",
    "words",
    "chars",
];

impl TuneArguments {
    /// Creates the file of the chart, if one is requested. Called before anything is measured, so
    /// that a file that cannot be written is refused immediately.
    fn create_chart(&self) -> Result<Option<Destination>> {
        let create = |path: &PathBuf| Destination::create(path, self.force);
        self.svg.as_ref().map(create).transpose()
    }

    fn threshold(&self) -> f64 {
        let usual = match (self.vector, self.euclidean) {
            (_, Some(distance)) => 1.0 / (1.0 + distance),
            (Some(_), None) => 0.95,
            (None, None) => 0.8,
        };
        self.threshold.unwrap_or(usual)
    }

    fn background(&self) -> f64 {
        let usual = match (self.vector, self.euclidean) {
            (_, Some(distance)) => 1.0 / (1.0 + 4.0 * distance),
            (Some(_), None) => 0.2,
            (None, None) => 0.05,
        };
        self.background.unwrap_or(usual)
    }

    fn recall(&self) -> f64 {
        self.recall.unwrap_or(0.95)
    }

    fn documents(&self) -> u64 {
        self.documents.unwrap_or(1_000_000)
    }

    fn features(&self) -> u64 {
        self.features.unwrap_or(TYPICAL_FEATURES)
    }

    fn say(&self, text: &str) -> Result<()> {
        self.format.layout().paragraph(text)
    }
}

pub(crate) fn tune(context: &Context, arguments: &TuneArguments) -> Result<Outcome> {
    let destination = arguments.create_chart()?;
    let chart = match arguments.simhash {
        Some(bits) => tune_simhash(context, arguments, bits)?,
        None if !arguments.nearest.is_empty() => return tune_nearest(context, arguments),
        None => tune_minhash(context, arguments)?,
    };
    if let Some(destination) = destination {
        let note = format!("drew {}", destination.path.display());
        write_chart(&chart, destination)?;
        context.note(note);
    }
    Ok(Outcome::Done)
}

/// Returns a schema of a number of values with the bands that suit them, or with those that were given.
fn schema_of(arguments: &TuneArguments, values: u16) -> resemblance::Result<Schema> {
    let builder = Schema::builder();
    if let Some(dimensions) = arguments.vector {
        let vector = match arguments.euclidean {
            Some(distance) => Vector::euclidean(dimensions, distance),
            None => Vector::cosine(dimensions).threshold(arguments.threshold()),
        };
        let vector = vector.values(values).recall(arguments.recall());
        return Ok(match arguments.bands.zip(arguments.rows) {
            Some((bands, rows)) => builder.vector(vector.banding(bands, rows)).build()?,
            None => builder.vector(vector).build()?,
        });
    }
    let minhash = MinHash::new(values).threshold(arguments.threshold());
    let banding = match (
        arguments.bands.zip(arguments.rows),
        arguments.curve_threshold,
    ) {
        (Some((bands, rows)), _) => Banding::explicit(bands, rows, values)?,
        (None, Some(similarity)) => Banding::by_curve(values, similarity)?,
        (None, None) => {
            let minhash = minhash.recall(arguments.recall());
            return Ok(builder.minhash(minhash).build()?);
        }
    };
    let minhash = minhash.banding(banding.bands(), banding.rows());
    Ok(builder.minhash(minhash).build()?)
}

fn values(arguments: &TuneArguments) -> Result<Vec<u16>> {
    if !arguments.values.is_empty() {
        return Ok(arguments.values.clone());
    }
    let Some((bands, rows)) = arguments.bands.zip(arguments.rows) else {
        return Ok(match arguments.vector {
            Some(_) => vec![128, 256, 512, 1024],
            None => vec![64, 128, 256, 512],
        });
    };
    let values = bands.checked_mul(rows);
    let usage = || {
        Failure::usage(format!(
            "--bands {bands} --rows {rows}: more than 65,535 values"
        ))
    };
    Ok(vec![values.ok_or_else(usage)?.max(16)])
}

fn tune_nearest(context: &Context, arguments: &TuneArguments) -> Result<Outcome> {
    let documents = arguments.documents();
    let far = arguments.background();
    let values = arguments.values.first().copied().unwrap_or(128);
    let schema = schema_of(arguments, values)?;
    let own = BandingChoice::new(&schema, documents, &Background::assumed(far))?.banding;
    let short = Banding::explicit(own.bands(), own.rows().min(2), u16::MAX)?;
    for &near in &arguments.nearest {
        let plan = near_neighbour_plan(near, far, documents)?;
        context.note(format!(
            "neighbours of similarity {near}: take {} of {}",
            Counted(plan.bands.into(), "band"),
            Counted(plan.rows.into(), "row")
        ));
    }
    if arguments.format.layout().is_table() {
        arguments.say(&format!(
            "near neighbours among {documents} {} of similarity {far}\n\
             posting_bytes: {BAND_POSTING_BYTES} a band, in a store of such bands\n\
             short_probability: of query --nearest, by the first rows of {own} bands, which take \
             nothing more",
            noun(documents, "document")
        ))?;
    }
    let columns = Column::list(
        "similarity background documents rho rows bands probability candidates values posting_bytes short_probability short_candidates",
    );
    let mut results = Results::new(arguments.format.layout(), columns)?;
    for &near in &arguments.nearest {
        let plan = near_neighbour_plan(near, far, documents)?;
        results.row(&[
            Value::Significant(near),
            Value::Significant(far),
            Value::Count(documents),
            Value::Significant(plan.rho),
            Value::Count(plan.rows.into()),
            Value::Count(plan.bands.into()),
            Value::Significant(plan.probability),
            Value::Significant(plan.candidates),
            Value::Count(u64::from(plan.rows) * u64::from(plan.bands)),
            Value::Significant(BAND_POSTING_BYTES * f64::from(plan.bands)),
            Value::Significant(short.probability(near)),
            Value::Significant(short.candidates(documents, far)),
        ])?;
    }
    results.finish()?;
    Ok(Outcome::Done)
}

fn tune_minhash(context: &Context, arguments: &TuneArguments) -> Result<Chart> {
    let (threshold, recall) = (arguments.threshold(), arguments.recall());
    let documents = arguments.documents();
    let background = background(context, arguments)?;
    let mut choices = Vec::new();
    for values in values(arguments)? {
        let schema = schema_of(arguments, values);
        match schema.and_then(|schema| BandingChoice::new(&schema, documents, &background)) {
            Err(error) if is_unreachable(&error, recall) => {
                context.note(format!("{values} values: {error}"));
            }
            choice => choices.push(choice?),
        }
    }
    if choices.is_empty() {
        return Err(Failure::usage(format!(
            "none of the numbers of values in --values reaches recall {recall} at threshold \
             {threshold}"
        )));
    }
    let table = BandingTable {
        arguments,
        background: &background,
        choices: &choices,
    };
    context.note(table.advice()?);
    if arguments.format.layout().is_table() {
        table.in_words(recall)?;
    } else {
        table.columns()?;
    }
    let title = match (arguments.bands, arguments.curve_threshold) {
        (Some(_), _) => "Bands that are given".to_owned(),
        (None, Some(similarity)) => format!("Bands with the steepest curve at {similarity}"),
        (None, None) => format!("Bands for a recall of {recall} at similarity {threshold}"),
    };
    Ok(s_curves(&choices, threshold, title))
}

fn background(context: &Context, arguments: &TuneArguments) -> Result<Background> {
    if arguments.corpus.is_empty() {
        let similarity = arguments.background();
        if (0.0..=1.0).contains(&similarity) {
            return Ok(Background::assumed(similarity));
        }
        return Err(Failure::usage(format!(
            "--background: found {similarity}, expected a similarity of 0 to 1"
        )));
    }
    // A schema needs signatures, although none are made.
    let text = default_text(arguments.words, arguments.chars);
    let builder = Schema::builder().text(text).simhash(SimHash::bits64());
    let schema = builder.build()?;
    let content = ContentRule::new(&schema, true);
    let source = SampleSource {
        inputs: &arguments.corpus,
        corpus: &arguments.options,
        content: match arguments.html {
            true => content.of_html(),
            false => content,
        },
        sketcher: schema.sketcher(),
        has_signatures: false,
        signature_bytes: 0,
        max_documents: arguments.sample.map(NonZeroUsize::get),
    };
    let sample = read_sample(context, source)?;
    if sample.len() < 2 {
        return Err(Failure::bad_input(
            "--corpus: at least two documents are needed",
        ));
    }
    let check = || context.interrupt.check();
    Background::measured(&sample.features, check)
}

/// True if more values are all that is missing.
fn is_unreachable(error: &Error, recall: f64) -> bool {
    let is_possible = recall > 0.0 && recall < 1.0;
    matches!(error, Error::InvalidParameter { parameter, .. } if *parameter == "recall" && is_possible)
}

/// Describes where the candidates of a query come from.
fn in_words(background: &Background) -> String {
    let mean = background.mean();
    match background.documents() {
        None => format!("each of similarity {mean} to it: an assumption, see --background"),
        Some(documents) => format!(
            "as similar as the pairs of {documents} documents of the corpus (mean {mean:.4}; its \
             near-duplicates are among them)"
        ),
    }
}

struct BandingTable<'a> {
    arguments: &'a TuneArguments,
    background: &'a Background,
    choices: &'a [BandingChoice],
}

impl BandingTable<'_> {
    /// Advises the fewest values whose estimates are accurate and whose queries look at few documents.
    fn advice(&self) -> Result<String> {
        let threshold = self.arguments.threshold();
        let deviation = |choice: &BandingChoice| choice.minhash.variance(threshold).sqrt();
        let by_values = || {
            let values = |choice: &&BandingChoice| choice.minhash.values();
            self.choices.iter().sorted_by_key(values)
        };
        let is_enough = |choice: &&BandingChoice| {
            deviation(choice) <= ACCURATE_DEVIATION && choice.candidates <= FEW_CANDIDATES
        };
        let best = by_values().find(is_enough).or(by_values().last());
        let chosen = best.or_bug("a number of values")?;
        let verb = if self.choices.len() > 1 {
            "take"
        } else {
            "with"
        };
        let candidates = match chosen.candidates {
            ..1.0 => "less than one candidate".to_owned(),
            candidates => Counted(candidates.ceil() as u64, "candidate").to_string(),
        };
        Ok(format!(
            "{verb} {} values: {:.1} % of the pairs of similarity {threshold} are found, the estimates deviate by \
             {:.3}, {} bytes a document, {candidates} a query",
            chosen.minhash.values(),
            100.0 * chosen.probability(threshold),
            deviation(chosen),
            GroupedNumber(chosen.document_bytes.round() as u64)
        ))
    }

    /// A choice without its probabilities.
    fn facts(&self, choice: &BandingChoice) -> [Value<'static>; 10] {
        let (banding, threshold) = (choice.banding, self.arguments.threshold());
        [
            Value::Count(choice.minhash.values().into()),
            Value::Count(banding.bands().into()),
            Value::Count(banding.rows().into()),
            Value::Significant(choice.probability(threshold)),
            Value::Significant(choice.minhash.recall_deviation(FAMILIES)),
            Value::Significant(choice.minhash.variance(threshold).sqrt()),
            Value::Significant(banding.approximate_threshold()),
            Value::Significant(choice.candidates),
            Value::Significant(BAND_POSTING_BYTES * f64::from(banding.bands())),
            Value::Significant(choice.document_bytes),
        ]
    }

    fn fact_columns(&self) -> Vec<Column> {
        let names = "values bands rows recall recall_deviation deviation curve_threshold candidates \
                     posting_bytes document_bytes";
        let columns = Column::list(names).into_iter().enumerate();
        // It is not a similarity where values agree by another curve.
        let is_shown = |place| place != CURVE_THRESHOLD || self.arguments.vector.is_none();
        columns
            .map(|(place, column)| column.shown_if(is_shown(place)))
            .collect()
    }

    fn probabilities(choice: &BandingChoice) -> [Value<'static>; 10] {
        POINTS.map(|similarity| Value::Significant(choice.probability(similarity)))
    }

    fn columns(&self) -> Result<()> {
        let mut columns = self.fact_columns();
        columns.extend(Column::list(
            "signature_bytes threshold documents background",
        ));
        let areas = Column::list("false_positive_area false_negative_area").into_iter();
        columns.extend(areas.map(|column| column.shown_if(self.arguments.vector.is_none())));
        columns.extend(Column::list(POINT_COLUMNS));
        let mut results = Results::new(self.arguments.format.layout(), columns)?;
        let threshold = self.arguments.threshold();
        for choice in self.choices {
            let (false_positive_area, false_negative_area) = choice.banding.areas(threshold);
            let mut row = self.facts(choice).to_vec();
            row.extend([
                Value::Count(choice.minhash.layout().size_bytes() as u64),
                Value::Significant(threshold),
                Value::Count(self.arguments.documents()),
                Value::Significant(self.background.mean()),
                Value::Significant(false_positive_area),
                Value::Significant(false_negative_area),
            ]);
            row.extend(Self::probabilities(choice));
            results.row(&row)?;
        }
        results.finish()
    }

    fn in_words(&self, recall: f64) -> Result<()> {
        let layout = self.arguments.format.layout();
        let (threshold, documents) = (self.arguments.threshold(), self.arguments.documents());
        let are_by_recall =
            self.arguments.bands.is_none() && self.arguments.curve_threshold.is_none();
        let (family, other_bytes) = match self.arguments.vector {
            Some(_) => ("vectors", "the values and the vector"),
            None => ("MinHash", "2 a value"),
        };
        self.arguments.say(&match are_by_recall {
            false => format!("{family}: bands that are given, at the threshold {threshold}"),
            true => format!(
                "{family}: pairs of similarity {threshold} found with probability {recall} or more"
            ),
        })?;
        let mut results = Results::new(layout, self.fact_columns())?;
        for choice in self.choices {
            results.row(&self.facts(choice))?;
        }
        results.finish()?;
        self.arguments.say(&format!(
            "recall: the mean over seeds; recall_deviation: its spread over seeds (see tune --help)\n\
             candidates: of a query among {documents} documents, {}\n\
             bytes a document: {BAND_POSTING_BYTES} a band with codes of 40 bits, {other_bytes}, and \
             the rows; without keys\n\n\
             probability that a pair of a similarity is looked at",
            in_words(self.background)
        ))?;
        let mut columns = vec![Column::new("values")];
        columns.extend(Column::list(POINT_COLUMNS));
        let mut results = Results::new(layout, columns)?;
        for choice in self.choices {
            let mut row = vec![Value::Count(choice.minhash.values().into())];
            row.extend(Self::probabilities(choice));
            results.row(&row)?;
        }
        results.finish()
    }
}

fn tune_simhash(context: &Context, arguments: &TuneArguments, bits: u16) -> Result<Chart> {
    let mut simhash = simhash_of(bits);
    if let Some(distance) = arguments.distance {
        simhash = simhash.max_distance(distance);
    }
    if let Some(TableGroups(groups)) = &arguments.tables {
        simhash = simhash.tables(groups);
    }
    let documents = match arguments.documents {
        Some(documents) => vec![documents],
        None => (5..=9).map(|power| 10_u64.pow(power)).collect(),
    };
    let mut choices = Vec::new();
    for documents in documents {
        choices.push(TableChoice::new(simhash.clone(), documents)?);
    }
    let first = choices.first().or_bug("a number of documents")?;
    let design = &first.design;
    let distance = design.max_distance();
    let count = |choice: &&TableChoice| choice.design.table_count() as u64;
    // The largest number of documents that each number of tables is good for.
    let largest = choices.iter().rev().dedup_by(|a, b| count(a) == count(b));
    let advice = largest.map(|choice| {
        let tables = Counted(count(&choice), "table");
        format!("{tables} up to {}", Counted(choice.documents, "document"))
    });
    context.note(format!(
        "every fingerprint within distance {distance} is found: take {}",
        advice.collect_vec().iter().rev().join(", ")
    ));
    let is_table = arguments.format.layout().is_table();
    if is_table {
        // With many bits and a large distance there are more than a number holds.
        let probes =
            fingerprints_within(distance.into(), design.bits().into()).unwrap_or(u128::MAX);
        arguments.say(&format!(
            "SimHash: every fingerprint of {bits} bits within distance {distance} is found; without \
             tables that takes {probes} probes"
        ))?;
    }
    simhash_rows(arguments, &choices, is_table)?;
    if is_table {
        arguments.say(&format!(
            "candidates: of a query, if fingerprints are uniform\n\
             bytes a document: {TABLE_POSTING_BYTES} a table, {} the fingerprint, and the rows; \
             without keys\n\
             p0.80 to p0.99: unweighted sets of that Jaccard similarity, with {} features together, come \
             within the distance",
            bits / 8,
            arguments.features()
        ))?;
    }
    Ok(first.curve(arguments.features()))
}

fn simhash_rows(arguments: &TuneArguments, choices: &[TableChoice], is_table: bool) -> Result<()> {
    let mut columns = Column::list(
        "documents design tables prefix_bits candidates posting_bytes document_bytes p0.80 p0.90 p0.95 p0.99",
    );
    let others = ["distance", "probes_without_tables"];
    columns.extend(others.map(|name| Column::new(name).shown_if(!is_table)));
    let mut results = Results::new(arguments.format.layout(), columns)?;
    for choice in choices {
        let design = &choice.design;
        let group = |(blocks, leading): &(u8, u8)| format!("({blocks},{leading})");
        let groups = design.groups().iter().map(group).join(" ");
        let (min, max) = design.prefix_bits().into_inner();
        let prefix = if min == max {
            min.to_string()
        } else {
            format!("{min}-{max}")
        };
        let mut row = vec![
            Value::Count(choice.documents),
            Value::Text(&groups),
            Value::Count(design.table_count() as u64),
            Value::Text(&prefix),
            Value::Significant(design.candidates(choice.documents)),
            Value::Significant(TABLE_POSTING_BYTES * design.table_count() as f64),
            Value::Significant(choice.document_bytes),
        ];
        let features = arguments.features();
        row.extend(NEAR_POINTS.map(|s| Value::Significant(design.probability(s, features))));
        let probes = fingerprints_within(design.max_distance().into(), design.bits().into());
        row.push(Value::Count(design.max_distance().into()));
        // With many bits there are more than any program could do; the column holds 64 bits.
        let shown = probes.map_or(u64::MAX, |probes| u64::try_from(probes).unwrap_or(u64::MAX));
        row.push(Value::Count(shown));
        results.row(&row)?;
    }
    results.finish()
}
