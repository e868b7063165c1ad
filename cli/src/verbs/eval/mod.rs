//! The verb `eval`.

mod sections;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use itertools::Itertools as _;
use resemblance::schema::MinHashSchema;
use resemblance::{Document, Schema};
use resemblance_eval::{
    CHART_NAMES, ComparedKind, ComparedPairs, DocumentSample, Evaluation, MAX_SIGNATURE_BYTES,
    NamedChart, compare_kinds, comparison_charts, minhash_charts, promise_chart, simhash_chart,
};

use crate::failure::{Failure, Outcome, Result};
use crate::options::{
    BoundOptions, CorpusOptions, FormatOptions, SchemaOptions, must_compare_sets,
};
use crate::output::{
    Counted, Destination, GroupedNumber, make_folder, may_be_folder, must_be_free, write_chart,
};
use crate::session::{
    Context, SampleSource, ScratchStore, StoreBuilding, read_sample, with_tf_idf,
};
use resemblance_corpus::ContentRule;

/// Compare the results of a store with exact similarities
///
/// Adds a corpus, or a sample of it, to a temporary store and compares its results with the exact Jaccard similarities
/// of all pairs of --min or more, which an inverted index of the features (hashes of 64 bits) finds. SimHash is
/// compared with the distances of all pairs. tsv and jsonl have one measure per line: section, item, measure, value.
/// Sections: minhash (the whole), exact (by tenths of the exact similarity), estimate (by tenths of the estimate),
/// missed (pairs that should have been returned), seeds (recall of the candidates with other seeds), promise
/// (the probability of missing a pair right at the threshold, and the share missed just above it), distance and
/// within (SimHash), and families (with both: the pairs that MinHash alone, SimHash alone, both and any return).
///
/// The features of the documents must fit into --memory. A sample of a share s of the documents has a share s² of the
/// pairs. All estimates use the same hash functions, so the errors of similar documents are not independent, and the
/// recall of one seed differs from the mean. The section seeds shows by how much; --compare measures the errors.
///
/// --compare computes signatures of several kinds and sizes with several seeds instead, without a store. It prints a
/// line for each, with the error of the estimates of all pairs from --min up to below 1 (mean_error, deviation,
/// theory), the same for pairs of 0.4 to 0.6 (half_pairs, half_deviation, half_theory), the worst case worst_theory,
/// and the nanoseconds per feature on one thread with the fastest seed. Of the schema options, only --words and --chars
/// are used.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance eval corpus.jsonl.gz --threshold 0.8
  resemblance eval corpus.jsonl --sample 5000 --minhash 256 --svg charts --format table
  resemblance eval corpus.jsonl --simhash 64 --distance 3
  resemblance eval corpus.jsonl --minhash 128 --simhash 64 --format table
  resemblance eval corpus.jsonl --compare --seeds 8 --svg charts")]
pub(crate) struct EvalArguments {
    /// JSON Lines files, tables, folders or - (see resemblance --help)
    #[arg(required = true, value_name = "CORPUS")]
    inputs: Vec<PathBuf>,
    /// Use only the N documents whose keys have the least hashes [default: all]
    #[arg(long, value_name = "N")]
    sample: Option<NonZeroUsize>,
    /// Minimum exact similarity of the pairs to compare, at most the threshold
    #[arg(long, value_name = "J", default_value_t = 0.1)]
    min: f64,
    /// Maximum number of missed pairs to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    list: usize,
    /// Compare the error and time of several kinds and sizes of signatures instead
    #[arg(long)]
    compare: bool,
    /// Number of seeds, from 1, whose recall (with --compare, error) is compared [default: 20, with --compare 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,
    /// Draw charts into this folder: pairs found, precision and recall, or with --compare error and time
    #[arg(long, value_name = "OUT_DIR")]
    svg: Option<PathBuf>,
    /// Overwrite charts that exist
    #[arg(long, requires = "svg")]
    force: bool,
    #[command(flatten)]
    bounds: BoundOptions,
    #[command(flatten)]
    schema: SchemaOptions,
    #[command(flatten)]
    options: CorpusOptions,
    #[command(flatten)]
    format: FormatOptions,
}

/// Draws charts into the folder that is given, if one is. The title of each names the corpus.
fn draw(context: &Context, arguments: &EvalArguments, mut charts: Vec<NamedChart>) -> Result<()> {
    let Some(folder) = &arguments.svg else {
        return Ok(());
    };
    let corpus = arguments
        .inputs
        .iter()
        .map(|path| corpus_name(path))
        .join(", ");
    make_folder(folder)?;
    for (name, chart) in &mut charts {
        chart.title = format!("{} ({corpus})", chart.title);
        let destination = Destination::create(&folder.join(name), arguments.force)?;
        write_chart(chart, destination)?;
    }
    let names = charts.iter().map(|(name, _)| *name).join(", ");
    context.note(format!("drew {names} in {}", folder.display()));
    Ok(())
}

/// The name of a corpus in a chart: that of its file, or of the folder if its file is called like many others.
fn corpus_name(path: &Path) -> String {
    let name = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let own = name(path).unwrap_or_else(|| path.display().to_string());
    let plain = own.split('.').next().unwrap_or(&own).to_owned();
    match path.parent().and_then(name) {
        Some(folder) if ["docs", "corpus", "data"].contains(&&*plain) => folder,
        _ => plain,
    }
}

/// Fails if a schema compares anything other than sets of features.
fn must_have_features(schema: &Schema) -> Result<()> {
    if schema.vector().is_some() {
        return Err(
            Failure::usage("eval compares features, and vectors have none").with_note(
                "tune --vector N shows what a schema for vectors finds, and what it costs",
            ),
        );
    }
    must_compare_sets(schema)
}

impl EvalArguments {
    /// Returns the schema that the options ask for, or an error if it cannot be measured as they say.
    pub(crate) fn own_schema(&self) -> Result<Schema> {
        let schema = self.schema.build(&self.bounds)?;
        must_have_features(&schema)?;
        if self.seeds.is_some() && schema.minhash().is_none() && !self.compare {
            return Err(Failure::usage(
                "--seeds compares signatures of MinHash, and the schema has none",
            )
            .with_note("omit --seeds, or add --minhash K"));
        }
        let threshold = schema.minhash().map_or(1.0, |minhash| minhash.threshold());
        let max_floor = if self.compare { 1.0 } else { threshold };
        if !(self.min > 0.0 && self.min <= max_floor) {
            return Err(Failure::usage(format!(
                "--min: found {}, expected a similarity above 0 and at most {max_floor}",
                self.min
            )));
        }
        Ok(schema)
    }
}

pub(crate) fn eval(context: &Context, arguments: &EvalArguments) -> Result<Outcome> {
    if let Some(folder) = &arguments.svg {
        may_be_folder(folder)?;
        for name in CHART_NAMES {
            must_be_free(&folder.join(name), arguments.force)?;
        }
    }
    let mut schema = arguments.own_schema()?;
    if arguments.schema.weighs_by_rarity() {
        schema = with_tf_idf(context, schema, &arguments.inputs, &arguments.options)?;
    }
    let sample = read(context, arguments, &schema)?;
    if arguments.compare {
        let compared = compare(context, arguments, &sample)?;
        let compared =
            compared.ok_or_else(|| Failure::bad_input(nothing_to_estimate(arguments)))?;
        let deviation = |kind: &ComparedKind| kind.all.deviation().unwrap_or(f64::INFINITY);
        let best = |a: &&ComparedKind, b: &&ComparedKind| deviation(a).total_cmp(&deviation(b));
        if let Some(best) = compared.iter().min_by(best) {
            context.note(format!(
                "the estimates of {} with {} values are the most accurate: a standard deviation of {:.4}",
                best.kind.name,
                best.values(),
                deviation(best)
            ));
        }
        sections::write_compared(arguments.format.layout(), &compared)?;
        draw(context, arguments, comparison_charts(&compared))?;
        return Ok(Outcome::Done);
    }
    let store = fill(context, &schema, &sample)?;
    let snapshot = store.store().snapshot()?;
    let mut evaluation = Evaluation::new(&snapshot, sample, arguments.list)?;
    if schema.minhash().is_some() {
        let mut progress = context.progress("sketching");
        evaluation.over_seeds(recall_seeds(arguments), || context.tick(&mut progress))?;
        progress.clear();
    }
    let mut progress = context.progress("comparing");
    evaluation.run(arguments.min, |document| {
        context.count(&mut progress, document)
    })?;
    progress.clear();
    report(context, arguments, &evaluation)?;
    Ok(match evaluation.sample.is_empty() {
        true => Outcome::Nothing,
        false => Outcome::Done,
    })
}

fn nothing_to_estimate(arguments: &EvalArguments) -> String {
    let floor = arguments.min;
    format!(
        "no two documents have a similarity from {floor} to below 1, so kinds of signatures cannot be \
         compared (--compare)"
    )
}

/// Returns the number of seeds whose recall is compared.
fn recall_seeds(arguments: &EvalArguments) -> u64 {
    arguments.seeds.unwrap_or(20)
}

fn read(context: &Context, arguments: &EvalArguments, schema: &Schema) -> Result<DocumentSample> {
    // Cut values take their 32 bits in memory.
    let value_bytes = |m: MinHashSchema| u64::from(m.value_bits().max(32) / 8);
    let values_bytes = |m: MinHashSchema| value_bytes(m) * u64::from(m.values());
    let code_bytes = |m: MinHashSchema| {
        (8 * u64::from(m.bands()) + m.layout().size_bytes() as u64) * recall_seeds(arguments)
    };
    let minhash_bytes = |m| values_bytes(m) + code_bytes(m);
    let own_bytes = 16 + schema.minhash().map_or(0, minhash_bytes);
    let signature_bytes = match arguments.compare {
        true => MAX_SIGNATURE_BYTES,
        false => own_bytes,
    };
    let source = SampleSource {
        inputs: &arguments.inputs,
        corpus: &arguments.options,
        content: ContentRule::new(schema, true),
        sketcher: schema.sketcher(),
        has_signatures: !arguments.compare,
        signature_bytes,
        max_documents: arguments.sample.map(NonZeroUsize::get),
    };
    let sample = read_sample(context, source)?;
    if (sample.len() as u64) < sample.read {
        let share = sample.len() as f64 / sample.read as f64;
        context.note(format!(
            "a sample of {} of {}: about {:.4} of the pairs",
            sample.len(),
            Counted(sample.read, "document"),
            share * share
        ));
    }
    Ok(sample)
}

/// A temporary store whose ids are the indexes of the sample.
fn fill(context: &Context, schema: &Schema, sample: &DocumentSample) -> Result<ScratchStore> {
    let (store, ()) = ScratchStore::build_unnamed(context, |path| {
        let mut building = StoreBuilding::begin(context, path, &context.temp_dir, schema, true)?;
        for (key, signature) in sample.keys.iter().zip(&sample.signatures) {
            let place = || String::from_utf8_lossy(key).into_owned();
            building.insert(Document::without_key(), signature, place)?;
        }
        building.finish(&mut |_, _| Ok(()))
    })?;
    Ok(store)
}

/// Compares what the store finds with what it should find, in one sentence.
fn verdict(evaluation: &Evaluation) -> String {
    let minhash = evaluation.minhash.as_ref().map(|tally| {
        let (near, all) = (&tally.near, tally.all_returned());
        let bound = format!("of similarity {} or more", tally.minhash.threshold());
        sentence(near.returned, near.pairs, &bound, all.pairs - all.right)
    });
    let simhash = evaluation.simhash.as_ref().map(|tally| {
        let (pairs, returned): (Vec<u64>, Vec<u64>) = tally.distances.iter().copied().unzip();
        let (pairs, returned) = (pairs.iter().sum(), returned.iter().sum());
        let bound = format!("within distance {}", tally.design.max_distance());
        sentence(returned, pairs, &bound, tally.wrong)
    });
    minhash.into_iter().chain(simhash).join("; ")
}

fn sentence(found: u64, pairs: u64, bound: &str, wrong: u64) -> String {
    let [found, wrong] = [found, wrong].map(GroupedNumber);
    let pairs = Counted(pairs, "pair");
    format!("{found} of {pairs} {bound} found, {wrong} wrong")
}

fn report(context: &Context, arguments: &EvalArguments, evaluation: &Evaluation) -> Result<()> {
    let (mut found, mut drawn) = (Vec::new(), Vec::new());
    if let Some(tally) = &evaluation.minhash {
        found.extend(sections::minhash_sections(
            tally,
            &evaluation.sample,
            arguments.min,
        )?);
        if !evaluation.seeds().is_empty() {
            found.push(sections::seed_section(evaluation.seeds()));
            let threshold = tally.minhash.threshold();
            found.push(sections::promise_section(&evaluation.promises(), threshold));
        }
        drawn.extend(minhash_charts(tally));
        drawn.extend(promise_chart(&evaluation.promises()));
    }
    if let Some(tally) = &evaluation.simhash {
        found.extend(sections::simhash_sections(tally));
        drawn.push(simhash_chart(tally));
    }
    if !evaluation.families.is_empty() {
        found.push(sections::family_section(&evaluation.families));
    }
    context.note(verdict(evaluation));
    sections::write(arguments.format.layout(), &found)?;
    draw(context, arguments, drawn)
}

/// Compares kinds of signatures, without a store; `None` where no pair is there to compare.
fn compare(
    context: &Context,
    arguments: &EvalArguments,
    sample: &DocumentSample,
) -> Result<Option<Vec<ComparedKind>>> {
    let floor = arguments.min;
    let seeds = arguments.seeds.unwrap_or(4);
    let mut progress = context.progress("comparing exactly");
    let pairs = ComparedPairs::find(sample, floor, |documents| {
        context.count(&mut progress, documents)
    })?;
    progress.clear();
    if pairs.is_empty() {
        return Ok(None);
    }
    context.note(format!(
        "{} of {} of similarity {floor} up to below 1, {}",
        pairs.len(),
        Counted(pairs.total(), "pair"),
        Counted(seeds, "seed")
    ));
    let mut progress = context.progress("sketching");
    let compared = compare_kinds(sample, &pairs, seeds, || context.tick(&mut progress))?;
    progress.clear();
    Ok(Some(compared))
}
