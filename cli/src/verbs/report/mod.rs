//! The verb `report`.

mod bands;
mod groups;
mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Args;
use resemblance::collection::Collected;
use resemblance::dedup::{DedupPolicy, Preference};
use resemblance::verification::FeatureSets;
use resemblance::{DocumentId, LeftOut};

use self::bands::PairBands;
use self::groups::{ClusterFigures, Likeness};
use self::page::{DroppedSample, ReportPage, SamplePair};
use crate::bug::bug;
use crate::corpus::only_store;
use crate::failure::{Failure, Outcome, Result};
use crate::options::JoinOptions;
use crate::output::{Destination, ExplainedPair, escape};
use crate::session::{
    Context, JoinProduct, JoinProgress, JoinedDocuments, Subject, announce_join, deduplicator,
    limited, must_be_rereadable, read_texts_of,
};

/// Texts that are longer are not shown.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// So many of the documents that dedup drops are listed.
const DROPPED: usize = 20;

/// Write one page of HTML about the near-duplicates of a corpus
///
/// The page says how many near-duplicates there are, how alike, in clusters of which sizes, and what dedup
/// would drop of them. It shows the curve by which pairs are found, some pairs of each band of similarity
/// with their differences, and the clusters that look wrong: the largest, and chains whose members have
/// little in common. It is one file without scripts, and needs nothing from elsewhere. Samples are chosen by
/// hashes, so that the same corpus has the same page. The corpus is read twice, and compared three times.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance report corpus.jsonl.gz -o report.html
  resemblance report a.jsonl b.jsonl -o report.html --chars 9 --threshold 0.7 --samples 10
  resemblance report texts/ -o report.html --simhash 64 --distance 3")]
pub(crate) struct ReportArguments {
    /// JSON Lines files, or folders of text files (see resemblance --help)
    #[arg(required = true, value_name = "CORPUS")]
    inputs: Vec<PathBuf>,
    /// The page: a file, or - for standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Pairs to show of each band of similarity, at most
    #[arg(long, value_name = "N", default_value_t = 3)]
    samples: usize,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    join: JoinOptions,
}

pub(crate) fn report(context: &Context, arguments: &ReportArguments) -> Result<Outcome> {
    if let Some(store) = only_store(&arguments.inputs) {
        return Err(Failure::usage(format!(
            "{} is a store, which has no texts to show: give its corpus",
            store.display()
        )));
    }
    let (inputs, options) = (&arguments.inputs, &arguments.join.corpus);
    must_be_rereadable(context, inputs, options)?;
    let mut destination = Destination::create(&arguments.output, arguments.force)?;
    let found = find(context, arguments)?;
    let page = found.page(context, arguments)?.html()?;
    destination.write(page.as_bytes())?;
    destination.finish()?;
    context.messages.note(format!(
        "pairs {}, clusters {}, documents that dedup drops {}",
        found.bands.pairs, found.clusters.clusters, found.dropped.total
    ));
    Ok(Outcome::Done)
}

/// What was found in a corpus.
struct Found {
    subject: Subject,
    collected: Collected,
    bands: PairBands,
    clusters: ClusterFigures,
    dropped: DroppedDocuments,
    left_out: LeftOut,
}

/// What dedup drops.
struct DroppedDocuments {
    total: u64,
    /// Those least like their survivors: likeness, the document and its survivor.
    least_alike: Vec<(Likeness, DocumentId, DocumentId)>,
}

fn find(context: &Context, arguments: &ReportArguments) -> Result<Found> {
    let subject = Subject::open(context, &arguments.inputs, &arguments.join)?;
    let JoinedDocuments::OfCorpus(collected) = subject.documents.clone() else {
        return Err(bug("a store where a corpus was given").into());
    };
    let (bands, left_out) = find_pairs(context, arguments, &subject)?;
    let clusters = find_clusters(context, arguments, &subject, &collected)?;
    let dropped = find_dropped(context, arguments, &subject)?;
    Ok(Found {
        subject,
        collected,
        bands,
        clusters,
        dropped,
        left_out,
    })
}

fn find_pairs(
    context: &Context,
    arguments: &ReportArguments,
    subject: &Subject,
) -> Result<(PairBands, LeftOut)> {
    let join = subject.documents.pairs().bounds(subject.bounds);
    let join = limited(context, join, arguments.join.limits);
    let joining = announce_join(context, &join, JoinProduct::Clusters)?;
    let mut progress = joining.display("finding pairs", context.messages.quiet);
    let mut bands = PairBands::new(subject.documents.schema(), arguments.samples);
    let features = subject.features.clone();
    context.interrupt.while_working(&mut progress, move || {
        let join = match features {
            Some(features) => join.verify_exact(features),
            None => join,
        };
        let mut pairs = join.run()?;
        while let Some(pair) = pairs.next() {
            let pair = pair?;
            joining.add_pair(pairs.lanes_read());
            bands.add(&pair)?;
        }
        Ok((bands, pairs.left_out()))
    })
}

fn find_clusters(
    context: &Context,
    arguments: &ReportArguments,
    subject: &Subject,
    collected: &Collected,
) -> Result<ClusterFigures> {
    let join = subject.documents.clusters().bounds(subject.bounds);
    let join = limited(context, join, arguments.join.limits);
    let joining = JoinProgress::default();
    let join = joining.follow(join);
    let mut progress = joining.display("finding clusters", context.messages.quiet);
    let (features, collected) = (subject.features.clone(), collected.clone());
    context.interrupt.while_working(&mut progress, move || {
        let join = match features.clone() {
            Some(features) => join.verify_exact(features),
            None => join,
        };
        let mut figures = ClusterFigures::default();
        for cluster in join.run()? {
            let likeness = |a, b| likeness(&collected, features.as_deref(), a, b);
            figures.add(&cluster, likeness)?;
        }
        Ok(figures)
    })
}

/// How alike two documents are.
fn likeness(
    collected: &Collected,
    features: Option<&FeatureSets>,
    a: DocumentId,
    b: DocumentId,
) -> Result<Likeness> {
    if let Some(features) = features
        && let Some(similarity) = features.similarity(a, b)?
    {
        return Ok(Likeness::Similarity(similarity));
    }
    let record = |id| -> Result<_> {
        let record = collected.get_id(id)?;
        Ok(record.ok_or_else(|| bug("a document of a cluster that was not collected"))?)
    };
    let (a, b) = (record(a)?, record(b)?);
    if collected.schema().minhash().is_some() {
        let estimate = a.signature().jaccard(b.signature())?;
        return Ok(Likeness::Similarity(estimate));
    }
    Ok(Likeness::Distance(a.signature().hamming(b.signature())?))
}

fn find_dropped(
    context: &Context,
    arguments: &ReportArguments,
    subject: &Subject,
) -> Result<DroppedDocuments> {
    let join = subject.documents.clusters().bounds(subject.bounds);
    let join = limited(context, join, arguments.join.limits);
    let (decider, _) = deduplicator(context, subject.documents.schema(), None)?;
    let decider = match context.features(subject.features.is_some()) {
        Some(features) => decider.verify_exact(features),
        None => decider,
    };
    let joining = JoinProgress::default();
    let join = joining.follow(join);
    let mut progress = joining.display("finding duplicates", context.messages.quiet);
    let features = subject.features.clone();
    context.interrupt.while_working(&mut progress, move || {
        let policy = DedupPolicy::First(Box::new(decider));
        let duplicates = join.duplicates(policy, &Preference::Earliest, features)?;
        let mut dropped = DroppedDocuments {
            total: 0,
            least_alike: Vec::new(),
        };
        for duplicate in duplicates {
            let duplicate = duplicate?;
            let likeness = Likeness::of(duplicate.similarity, duplicate.distance)?;
            let (document, survivor) = (duplicate.document.id(), duplicate.survivor.id());
            dropped.total += 1;
            dropped.least_alike.push((likeness, document, survivor));
            dropped.least_alike.sort_by(groups::least_alike);
            dropped.least_alike.truncate(DROPPED);
        }
        Ok(dropped)
    })
}

impl Found {
    fn page<'f>(
        &'f self,
        context: &Context,
        arguments: &'f ReportArguments,
    ) -> Result<ReportPage<'f>> {
        let texts = self.texts(context, arguments)?;
        let inputs = arguments.inputs.iter();
        let inputs = inputs.map(|path| path.display().to_string());
        let mut samples = Vec::new();
        for band in &self.bands.bands {
            let pairs = band.samples.iter();
            let pairs = pairs.map(|sample| self.sample_pair(&texts, sample.a, sample.b));
            samples.push((band, pairs.collect::<Result<Vec<_>>>()?));
        }
        let mut chains = Vec::new();
        for cluster in self.clusters.shown() {
            let pair = self.sample_pair(&texts, cluster.least_alike.0, cluster.least_alike.1)?;
            chains.push((cluster, pair));
        }
        let dropped = self.dropped.least_alike.iter();
        let dropped = dropped.map(|(likeness, document, survivor)| {
            Ok(DroppedSample {
                likeness: *likeness,
                document: self.label(*document)?,
                survivor: self.label(*survivor)?,
            })
        });
        Ok(ReportPage {
            inputs: inputs.collect(),
            documents: self.collected.len(),
            schema: self.subject.documents.schema(),
            is_exact: self.subject.features.is_some(),
            bands: &self.bands,
            clusters: &self.clusters,
            left_out: self.left_out,
            dropped: self.dropped.total,
            dropped_samples: dropped.collect::<Result<_>>()?,
            samples,
            chains,
        })
    }

    fn key(&self, id: DocumentId) -> Result<Vec<u8>> {
        let key = self.collected.key(id)?;
        Ok(key.ok_or_else(|| bug("a document of a corpus without a key"))?)
    }

    fn label(&self, id: DocumentId) -> Result<String> {
        Ok(escape::key(&self.key(id)?).into_owned())
    }

    /// The texts of all pairs that are shown.
    fn texts(
        &self,
        context: &Context,
        arguments: &ReportArguments,
    ) -> Result<BTreeMap<Vec<u8>, String>> {
        let samples = self.bands.bands.iter().flat_map(|band| &band.samples);
        let samples = samples.map(|sample| (sample.a, sample.b));
        let chains = self.clusters.shown();
        let pairs = samples.chain(chains.map(|cluster| cluster.least_alike));
        let mut wanted = BTreeSet::new();
        for (a, b) in pairs {
            wanted.extend([self.key(a)?, self.key(b)?]);
        }
        let (inputs, options) = (&arguments.inputs, &arguments.join.corpus);
        read_texts_of(context, inputs, options, wanted, MAX_TEXT_BYTES)
    }

    /// Two documents, explained if their texts are at hand.
    fn sample_pair(
        &self,
        texts: &BTreeMap<Vec<u8>, String>,
        a: DocumentId,
        b: DocumentId,
    ) -> Result<SamplePair> {
        let labels = [self.label(a)?, self.label(b)?];
        let schema = self.subject.documents.schema();
        let found = texts.get(&self.key(a)?).zip(texts.get(&self.key(b)?));
        let found = found.filter(|_| schema.text().is_some());
        let explained = found.map(|(text_a, text_b)| {
            let texts = [text_a.clone(), text_b.clone()];
            ExplainedPair::new(schema, labels.clone(), texts)
        });
        let explained = explained.transpose()?;
        Ok(SamplePair { labels, explained })
    }
}
