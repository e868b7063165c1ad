//! The verb `dedup`.

mod kept;
mod plan;

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use resemblance::verification::FeatureSets;
use resemblance::{Schema, Snapshot};

use self::plan::DedupPlan;
use crate::corpus::{ContentRule, Corpus};
use crate::failure::{Failure, Outcome, Result};
use crate::options::{
    BoundOptions, ByOptions, CorpusOptions, JoinLimits, KeepRule, SchemaOptions, VerifyOptions,
    similarity_name,
};
use crate::output::{DropReport, OutputTarget, Sink};
use crate::session::{
    BitList, Context, DocumentTally, NamedStore, copy_records, open_to_read, resolve_corpus,
    spool_sources, with_tf_idf,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PolicyName {
    /// Drop a document that is a near-duplicate of an earlier one that was kept
    First,
    /// Keep one document of each cluster, as `clusters` lists them
    Cluster,
    /// Keep documents with many near-duplicates, and drop these: as first, but in the order of their number
    Representative,
}

/// Write a corpus without its near-duplicates
///
/// Of two near-duplicates the earlier one survives, unless --keep says otherwise: arguments in their
/// order, paths in a folder in byte order. Kept lines pass through byte for byte (a missing newline is added where another
/// line follows, blank lines go, a byte order mark stays only at the start of an output). Nothing
/// is written before the whole input has been read, and nothing is left behind after a failure.
/// A file and a new folder get their name when they are complete; a folder that is there gets its
/// files one after the other.
/// Ids need not be unique. Documents without any word are kept, unless --empty alike is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance dedup corpus.jsonl.gz -o unique.jsonl.zst --report dropped.tsv
  resemblance dedup shard-*.jsonl.gz -o unique/
  resemblance dedup texts/ -o unique-texts/ --chars 9 --threshold 0.9
  resemblance dedup corpus.jsonl -o unique.jsonl --verify estimate --report dropped.tsv
  resemblance dedup corpus.jsonl -o unique.jsonl --keep quality:max --dropped dropped.jsonl
  zcat corpus.jsonl.gz | resemblance dedup - -o - | gzip > unique.jsonl.gz
  resemblance dedup more.jsonl --against seen.rsm -o new.jsonl")]
pub(crate) struct DedupArguments {
    /// JSON Lines files, folders of text files, or - (see resemblance --help)
    #[arg(required = true)]
    corpus: Vec<PathBuf>,
    /// A file (its name tells the compression), - for standard output, or a folder, which gets the
    /// input's file names and compression (if it exists, or ends in /, or texts are written)
    #[arg(short, long, value_name = "OUT", required_unless_present = "dry_run")]
    output: Option<PathBuf>,
    /// Decide, and write the report and what was dropped, but not what was kept
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,
    /// Write the documents that were dropped as near-duplicates here, as they stand in the input: a file or
    /// a folder, as with -o
    #[arg(long, value_name = "OUT")]
    dropped: Option<PathBuf>,
    /// Write a line for each dropped document: dropped, survivor, similarity (of SimHash alone the
    /// distance, of both families both); tab-separated. A last column says whether the similarity is
    /// exact, or an estimate because the survivor's text is not at hand. With --verify estimate there is
    /// no such column, and all are estimates
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Leave out the first line of the report, which has the names of the columns
    #[arg(long, requires = "report")]
    no_header: bool,
    /// Also drop near-duplicates of documents in this store, whose schema is used. A store has no texts,
    /// so documents are compared with it by estimate
    #[arg(long, value_name = "STORE")]
    pub(crate) against: Option<PathBuf>,
    /// The corpus that this store was made of, or a part of it: the similarity to documents whose texts
    /// are there is exact
    #[arg(long, value_name = "CORPUS", num_args = 1.., requires = "against")]
    texts: Vec<PathBuf>,
    /// Which documents survive
    #[arg(long, value_name = "POLICY", default_value = "first")]
    policy: PolicyName,
    /// Which of several near-duplicates survives: first, last, longest, or the one with the greatest or
    /// the least number in a field, such as quality:max or price:min; the earlier one of two alike. A
    /// document without that number comes last. Unless it is first, all documents are read before any is
    /// decided
    #[arg(long, value_name = "RULE", default_value = "first")]
    keep: KeepRule,
    /// Compare a document with at most N candidates, those that share the most buckets with it. This
    /// bounds the time where texts have much boilerplate, but some near-duplicates may stay. Documents
    /// with more candidates are counted. For --policy first
    #[arg(long, value_name = "N")]
    budget: Option<NonZeroU64>,
    /// Overwrite existing output, but never a store
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    bounds: BoundOptions,
    #[command(flatten)]
    by: ByOptions,
    #[command(flatten)]
    limits: JoinLimits,
    #[command(flatten)]
    verify: VerifyOptions,
    #[command(flatten)]
    schema: SchemaOptions,
    #[command(flatten)]
    options: CorpusOptions,
}

pub(crate) fn dedup(context: &Context, arguments: &DedupArguments) -> Result<Outcome> {
    check_limits(arguments)?;
    let (schema, snapshot) = match &arguments.against {
        Some(path) => {
            let store = open_to_read(context, path)?;
            arguments.schema.must_agree(store.schema())?;
            arguments.bounds.must_lie_within(store.schema())?;
            (store.schema().clone(), Some(store.snapshot()?))
        }
        None => {
            let schema = arguments.schema.build(&arguments.bounds)?;
            let weighed = arguments.schema.weighs_by_rarity().then(|| {
                let (inputs, options) = (&arguments.corpus, &arguments.options);
                with_tf_idf(context, schema.clone(), inputs, options)
            });
            (weighed.transpose()?.unwrap_or(schema), None)
        }
    };
    let is_exact = arguments
        .verify
        .is_exact(&schema, arguments.budget.is_some())?;
    let content = ContentRule::new(&schema, is_exact);
    let mut corpus = resolve_corpus(context, &arguments.corpus, &arguments.options, content)?;
    arguments.keep.apply(&mut corpus);
    let outputs = Outputs::choose(arguments, &corpus)?;
    let report = outputs.report(arguments, &schema, is_exact, &corpus)?;
    let (kept_sink, dropped_sink) = outputs.create(arguments.force)?;
    spool_sources(context, &mut corpus)?;
    let known_features = known_features(context, arguments, snapshot.as_ref(), is_exact)?;

    let mut plan = DedupPlan {
        context,
        arguments,
        corpus: Arc::new(corpus),
        schema,
        against: snapshot,
        known_features,
        report,
        features: context.features(is_exact),
        is_exact,
        kept: BitList::default(),
        dropped: BitList::default(),
        tally: DocumentTally::default(),
    };
    let totals = plan.run()?;
    let DedupPlan {
        corpus,
        report,
        kept,
        dropped,
        tally,
        ..
    } = plan;
    let sinks = [(kept, kept_sink), (dropped, dropped_sink)];
    let sinks = sinks.into_iter();
    let sinks = sinks.filter_map(|(records, sink)| Some((records, sink?)));
    copy_records(context, &corpus, totals, sinks.collect())?;
    if let Some(report) = report {
        report.finish()?;
    }
    context.messages.note(tally.summary("kept", totals));
    Ok(Outcome::Done)
}

/// Where documents go.
struct Outputs {
    kept: Option<OutputTarget>,
    dropped: Option<OutputTarget>,
}

impl Outputs {
    fn choose(arguments: &DedupArguments, corpus: &Corpus) -> Result<Self> {
        let choose =
            |path: &PathBuf| OutputTarget::choose(path, &arguments.corpus, corpus, arguments.force);
        let outputs = Self {
            kept: arguments.output.as_ref().map(choose).transpose()?,
            dropped: arguments.dropped.as_ref().map(choose).transpose()?,
        };
        if let (Some(kept), Some(dropped)) = (&outputs.kept, &arguments.dropped) {
            kept.must_not_meet("the dropped documents", dropped, corpus)?;
        }
        Ok(outputs)
    }

    /// The list of dropped documents, if one is wanted.
    fn report(
        &self,
        arguments: &DedupArguments,
        schema: &Schema,
        is_exact: bool,
        corpus: &Corpus,
    ) -> Result<Option<DropReport>> {
        let Some(path) = &arguments.report else {
            return Ok(None);
        };
        for target in [&self.kept, &self.dropped].into_iter().flatten() {
            target.must_not_meet("the report", path, corpus)?;
        }
        let mut report = DropReport::create(path, arguments.force, schema, is_exact)?;
        if !arguments.no_header {
            report.header(similarity_name(is_exact))?;
        }
        Ok(Some(report))
    }

    fn create(&self, force: bool) -> Result<(Option<Sink>, Option<Sink>)> {
        let create = |target: &Option<OutputTarget>| {
            let sink = target.as_ref().map(|target| Sink::create(target, force));
            sink.transpose()
        };
        Ok((create(&self.kept)?, create(&self.dropped)?))
    }
}

/// The features of the documents of the other store, if similarities are to be exact.
fn known_features(
    context: &Context,
    arguments: &DedupArguments,
    snapshot: Option<&Snapshot>,
    is_exact: bool,
) -> Result<Option<Arc<FeatureSets>>> {
    let against = arguments.against.as_ref().zip(snapshot);
    let Some(((path, snapshot), mut features)) = against.zip(context.features(is_exact)) else {
        return Ok(None);
    };
    let name = path.display();
    let store = NamedStore { name, snapshot };
    let known = store.read_texts(context, &arguments.texts, &arguments.options, &mut features)?;
    // A search that nobody verifies compares one of equal documents.
    Ok((known > 0).then(|| Arc::new(features)))
}

/// An error if a limit was given for the other policy.
fn check_limits(arguments: &DedupArguments) -> Result<()> {
    if arguments.limits.max_bucket.is_some() && arguments.policy == PolicyName::First {
        return Err(Failure::usage(
            "--max-bucket is for --policy cluster and representative; the policy first compares with \
             what is kept",
        ));
    }
    if arguments.budget.is_some() && arguments.policy != PolicyName::First {
        return Err(Failure::usage(
            "--budget is for --policy first; --max-bucket is for the other policies",
        ));
    }
    Ok(())
}
