//! The verb `eval`.

use std::path::{Path, PathBuf};

use clap::Args;
use resemblance::{
    Bounds, By, Document, EmptyDocuments, MinHashSchema, Schema, Signature, Snapshot,
};

use super::Context;
use super::arguments::{BoundOptions, CorpusOptions, FormatOptions};
use super::building::Building;
use super::compare;
use super::eval_output::{self, Charts};
use super::eval_tally::{Compared, MinHashTally, SimHashTally};
use super::exact_join::{ExactJoin, Partner};
use super::failure::{Failure, Outcome, Result};
use super::progress::Progress;
use super::sample::{Sample, SampleOptions};
use super::schema::SchemaOptions;
use super::scratch::ScratchStore;
use super::verify::must_compare_sets;

/// So many documents are looked up together.
const TOGETHER: usize = 64;

/// Compare what a store returns with exact similarities
///
/// Puts a corpus, or a sample of it, into a temporary store and compares what it returns with the
/// exact Jaccard similarities of all pairs of --min or more, from an exact join by an inverted index
/// of the features (hashes of 64 bits), and SimHash with the distances of all pairs. tsv and jsonl
/// give one measure a line: section, item, measure, value. Sections: minhash (the whole), exact (by
/// tenths of the exact similarity), estimate (by tenths of the estimate), missed (pairs that should
/// have been returned), distance and within (SimHash).
///
/// Memory holds the features of the documents, within --memory. A sample of a share s of the
/// documents has s² of the pairs. All estimates come from the same hash functions, so those of
/// documents that are alike err together: see --compare for several seeds.
///
/// --compare makes signatures of several kinds and sizes with several seeds instead, without a
/// store: a line for each, with the error of the estimates of all pairs from --min up to below 1
/// (mean_error, deviation, what theory expects), the same for pairs of 0.4 to 0.6 (half_pairs,
/// half_deviation, half_theory), the worst case worst_theory, and the nanoseconds that a feature takes
/// on one thread with the seed that was quickest. Of the schema options only --words and --chars count.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance eval corpus.jsonl.gz --threshold 0.8
  resemblance eval corpus.jsonl --sample 5000 --minhash 256 --svg charts --format table
  resemblance eval corpus.jsonl --simhash 64 --distance 3
  resemblance eval corpus.jsonl --compare --seeds 8 --svg charts")]
pub(crate) struct Arguments {
    /// JSON Lines files, folders of text files, or - (see resemblance --help)
    #[arg(required = true, value_name = "CORPUS")]
    inputs: Vec<PathBuf>,
    /// Only the N documents whose keys hash lowest [default: all]
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Exact similarity from which on pairs are looked at, at most the threshold
    #[arg(long, value_name = "J", default_value_t = 0.1)]
    min: f64,
    /// Most pairs to list that should have been returned
    #[arg(long, value_name = "N", default_value_t = 20)]
    list: usize,
    /// Compare kinds and sizes of signatures by error and time instead
    #[arg(long)]
    compare: bool,
    /// Seeds of --compare, from 1 on
    #[arg(long, value_name = "N", default_value_t = 4, requires = "compare",
          value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Draw charts into this folder
    #[arg(long, value_name = "FOLDER")]
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

impl Arguments {
    fn charts<'a>(&'a self, context: &'a Context) -> Option<Charts<'a>> {
        let folder: &Path = self.svg.as_deref()?;
        Some(Charts {
            context,
            folder,
            force: self.force,
        })
    }
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<Outcome> {
    let schema = arguments.schema.build_for_texts(&arguments.bounds)?;
    must_compare_sets(&schema)?;
    let threshold = schema.minhash().map_or(1.0, |minhash| minhash.threshold());
    let most = if arguments.compare { 1.0 } else { threshold };
    if !(arguments.min > 0.0 && arguments.min <= most) {
        return Err(Failure::usage(format!(
            "--min {}: expected a similarity above 0, at most {most}",
            arguments.min
        )));
    }
    let mut sample = read(context, arguments, &schema)?;
    if arguments.compare {
        let table = compare::run(context, &sample, arguments.min, arguments.seeds)?;
        table.write(&arguments.format)?;
        if let Some(charts) = arguments.charts(context) {
            charts.write(&table.charts())?;
        }
        return Ok(Outcome::Done);
    }
    let store = fill(context, &schema, &sample)?;
    let snapshot = store.store().snapshot()?;
    if schema.minhash().is_some_and(|m| m.value_bits() < 32) {
        sample.signatures = stored(&snapshot)?;
    }
    let mut evaluation = Evaluation {
        context,
        sample: &sample,
        snapshot,
        alike: schema.empty_documents() == EmptyDocuments::Alike,
        minhash: schema
            .minhash()
            .map(|minhash| MinHashTally::new(minhash, arguments.list)),
        simhash: schema
            .simhash()
            .map(|simhash| SimHashTally::new(simhash.design().clone())),
    };
    evaluation.run(arguments.min)?;
    report(context, arguments, &evaluation)?;
    Ok(Outcome::Done)
}

fn read(context: &Context, arguments: &Arguments, schema: &Schema) -> Result<Sample> {
    // Cut values take their 32 bits in memory.
    let value_bytes = |m: MinHashSchema| u64::from(m.value_bits().max(32) / 8);
    let values_bytes = |m: MinHashSchema| value_bytes(m) * u64::from(m.values());
    let own_bytes = 16 + schema.minhash().map_or(0, values_bytes);
    let (sketcher, signature_bytes) = if arguments.compare {
        (None, compare::MOST_SIGNATURE_BYTES)
    } else {
        (Some(schema.sketcher()), own_bytes)
    };
    let sample = Sample::read(
        context,
        SampleOptions {
            inputs: &arguments.inputs,
            corpus: &arguments.options,
            text: schema.text().unwrap_or(resemblance::Text::words(5)),
            sketcher,
            signature_bytes,
            size: arguments.sample,
        },
    )?;
    if (sample.len() as u64) < sample.read {
        let share = sample.len() as f64 / sample.read as f64;
        context.messages.note(format!(
            "a sample of {} of {} documents: about {:.4} of the pairs",
            sample.len(),
            sample.read,
            share * share
        ));
    }
    Ok(sample)
}

/// The signatures as a store keeps them: what it estimates from, where values are cut.
fn stored(snapshot: &Snapshot) -> Result<Vec<Signature>> {
    let records = snapshot.iter()?;
    let signatures = records.map(|record| Ok(record?.signature().clone()));
    Ok(signatures.collect::<resemblance::Result<_>>()?)
}

/// A temporary store whose ids are the places in the sample.
fn fill(context: &Context, schema: &Schema, sample: &Sample) -> Result<ScratchStore> {
    let (store, ()) = ScratchStore::build_unnamed(context, |path| {
        let mut building = Building::begin(context, path, &context.temp_dir, schema, true)?;
        for (key, signature) in sample.keys.iter().zip(&sample.signatures) {
            let place = || String::from_utf8_lossy(key).into_owned();
            building.insert(Document::without_key(), signature, place)?;
        }
        building.finish(&mut |_, _| Ok(()))
    })?;
    Ok(store)
}

/// The documents that a store returns by distance, with it, and how many it looked at.
struct Nearby {
    documents: Vec<(usize, u32)>,
    candidates: usize,
}

struct Evaluation<'a> {
    context: &'a Context,
    sample: &'a Sample,
    snapshot: Snapshot,
    /// Documents without features resemble each other.
    alike: bool,
    minhash: Option<MinHashTally>,
    simhash: Option<SimHashTally>,
}

impl Evaluation<'_> {
    fn run(&mut self, floor: f64) -> Result<()> {
        let mut join = ExactJoin::new(&self.sample.features, floor);
        let mut progress = Progress::new("comparing", self.context.messages.quiet);
        let signatures = &self.sample.signatures;
        for (batch, signatures) in signatures.chunks(TOGETHER).enumerate() {
            let first = batch * TOGETHER;
            let minhash = self.minhash.as_ref().map(|tally| tally.minhash);
            let minhash = minhash.map(|minhash| self.by_similarity(minhash, signatures));
            let mut minhash = minhash.transpose()?.unwrap_or_default().into_iter();
            let simhash = self.simhash.is_some();
            let simhash = simhash.then(|| self.by_distance(signatures)).transpose()?;
            let mut simhash = simhash.unwrap_or_default().into_iter();
            for document in first..first + signatures.len() {
                self.context.interrupt.check()?;
                let mut exact = join.advance().unwrap_or_default();
                self.add_empty(document, &mut exact);
                if let Some(found) = minhash.next() {
                    self.count_similar(document, &exact, found);
                }
                if let Some(found) = simhash.next() {
                    self.count_near(document, &exact, found);
                }
                progress.update(document as u64, 0);
            }
        }
        progress.clear();
        Ok(())
    }

    /// What the store gives for signatures: candidates by the bands, with their estimates, and what
    /// it returns.
    fn by_similarity(
        &self,
        minhash: MinHashSchema,
        signatures: &[Signature],
    ) -> Result<Vec<[Vec<Partner>; 2]>> {
        let bounds = Bounds::new().by(By::MinHash);
        // Whatever the estimate is, it is at least 0: these are all that share a band.
        let all = bounds.min_similarity(0.0).accept_lower_recall();
        let own = bounds.min_similarity(minhash.threshold());
        let partners = |bounds: Bounds| -> Result<Vec<Vec<Partner>>> {
            let answers = self.snapshot.query_many(signatures).bounds(bounds).run()?;
            let partners = answers.into_iter().map(|matches| {
                let mut partners: Vec<Partner> = matches
                    .iter()
                    .map(|near| Partner {
                        document: place(near.id().get()),
                        similarity: near.similarity().unwrap_or_default(),
                    })
                    .collect();
                partners.sort_unstable_by_key(|partner| partner.document);
                partners
            });
            Ok(partners.collect())
        };
        let pairs = partners(all)?.into_iter().zip(partners(own)?);
        Ok(pairs.map(|(all, own)| [all, own]).collect())
    }

    /// What the store returns by distance.
    fn by_distance(&self, signatures: &[Signature]) -> Result<Vec<Nearby>> {
        let bounds = Bounds::new().by(By::SimHash);
        let answers = self.snapshot.query_many(signatures).bounds(bounds).run()?;
        let found = answers.into_iter().map(|matches| {
            let candidates = matches.candidates();
            let near = matches.iter();
            let near =
                near.map(|near| (place(near.id().get()), near.distance().unwrap_or(u32::MAX)));
            let mut documents: Vec<_> = near.collect();
            documents.sort_unstable();
            Nearby {
                documents,
                candidates,
            }
        });
        Ok(found.collect())
    }

    /// Documents without features are equal sets, where the schema counts them as alike.
    fn add_empty(&self, document: usize, exact: &mut Vec<Partner>) {
        let is_empty = |place: &usize| {
            let features = self.sample.features.get(*place);
            features.is_some_and(Vec::is_empty)
        };
        if self.alike && is_empty(&document) {
            let others = (0..document).filter(is_empty);
            exact.extend(others.map(|document| Partner {
                document,
                similarity: 1.0,
            }));
        }
    }

    fn count_similar(&mut self, document: usize, exact: &[Partner], found: [Vec<Partner>; 2]) {
        let Some(tally) = &mut self.minhash else {
            return;
        };
        let [all, mut returned] = found;
        let all = all.iter().map(|partner| partner.document);
        let candidates: Vec<usize> = all.take_while(|other| *other < document).collect();
        returned.retain(|partner| partner.document < document);
        let signatures = &self.sample.signatures;
        let own = signatures.get(document);
        let compared = Compared {
            document,
            exact,
            candidates: &candidates,
            returned: &returned,
        };
        tally.add(&compared, |other| {
            let (own, other) = own.zip(signatures.get(other))?;
            own.jaccard(other).ok()
        });
    }

    fn count_near(&mut self, document: usize, exact: &[Partner], found: Nearby) {
        let Some(tally) = &mut self.simhash else {
            return;
        };
        let Nearby {
            documents: mut returned,
            candidates,
        } = found;
        returned.retain(|(other, _)| *other < document);
        // Each pair is looked at from both sides, each document from its own.
        tally.candidates += candidates as u64;
        let most = u32::from(tally.design.max_distance());
        let signatures = &self.sample.signatures;
        let Some(own) = signatures.get(document) else {
            return;
        };
        let earlier = signatures.iter().take(document).enumerate();
        let is_comparable = |other: &Signature| {
            own.is_empty() == other.is_empty() && (self.alike || !own.is_empty())
        };
        let near = earlier.filter(|(_, other)| is_comparable(other));
        let near = near.filter_map(|(place, other)| Some((place, own.hamming(other).ok()?)));
        let near: Vec<(usize, u32)> = near.filter(|(_, distance)| *distance <= most).collect();
        tally.add(exact, &near, &returned);
    }
}

/// The place of an id of the temporary store.
fn place(id: u64) -> usize {
    usize::try_from(id).unwrap_or(usize::MAX)
}

fn report(context: &Context, arguments: &Arguments, evaluation: &Evaluation<'_>) -> Result<()> {
    let mut sections = Vec::new();
    let mut drawn = Vec::new();
    if let Some(tally) = &evaluation.minhash {
        let found = eval_output::minhash_sections(tally, evaluation.sample, arguments.min);
        sections.extend(found);
        drawn.extend(eval_output::minhash_charts(tally));
    }
    if let Some(tally) = &evaluation.simhash {
        sections.extend(eval_output::simhash_sections(tally));
        drawn.push(eval_output::simhash_chart(tally));
    }
    eval_output::write(&arguments.format, &sections)?;
    if let Some(charts) = arguments.charts(context) {
        charts.write(&drawn)?;
    }
    Ok(())
}
