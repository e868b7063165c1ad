//! The verb `dedup`.

mod annotations;
mod arguments;
mod kept;
mod plan;

use std::path::PathBuf;
use std::sync::Arc;

use resemblance::dedup::TextPart;
use resemblance::verification::FeatureSets;
use resemblance::{Schema, Snapshot};

use self::annotations::{Annotations, column_names};
pub(crate) use self::arguments::DedupArguments;
use self::arguments::PolicyName;
use self::plan::DedupPlan;
use crate::corpus::{AddedColumn, ContentRule, Corpus, ReadTotals, not_for_more_columns};
use crate::failure::{Failure, Outcome, Result};
use crate::options::{KeepRule, similarity_name};
use crate::output::{DropReport, OutputTarget, Sink};
use crate::session::{
    BitList, Context, CopiedRecords, DocumentTally, Job, NamedStore, TrimmedCorpus, copy_records,
    must_be_same, open_to_read, resolve_corpus, spool_sources, trim_corpus, with_tf_idf,
};

pub(crate) fn dedup(context: &Context, arguments: &DedupArguments) -> Result<Outcome> {
    check_limits(arguments)?;
    let (schema, snapshot) = schema(context, arguments)?;
    let is_exact = arguments
        .verify
        .is_exact(&schema, arguments.budget.is_some())?;
    let content = ContentRule::new(&schema, is_exact);
    let mut corpus = resolve_corpus(context, &arguments.corpus, &arguments.options, content)?;
    arguments.keep.apply(&mut corpus);
    let outputs = Outputs::choose(arguments, &corpus, &schema)?;
    let report = outputs.report(arguments, &schema, is_exact, &corpus)?;
    let sinks = outputs.create(arguments.force)?;
    spool_sources(context, &mut corpus)?;
    let mut totals_before = None;
    let mut tally = DocumentTally::default();
    if let Some(part) = arguments.part()? {
        let trimmed = trim(context, arguments, &schema, corpus, part)?;
        if !arguments.drops_documents() {
            return write_trimmed(context, trimmed, sinks);
        }
        tally.dropped_parts = trimmed.tally.dropped_parts;
        totals_before = Some(trimmed.totals);
        corpus = trimmed.corpus;
    }
    let job = job(context, arguments, &corpus, &schema, is_exact)?;
    let known_features = known_features(context, arguments, snapshot.as_ref(), is_exact)?;

    let mut plan = DedupPlan {
        context,
        arguments,
        corpus: Arc::new(corpus),
        job,
        schema,
        against: snapshot,
        known_features,
        report,
        annotations: arguments.annotate.is_some().then(Annotations::default),
        features: context.features(is_exact),
        is_exact,
        kept: BitList::default(),
        dropped: BitList::default(),
        tally,
    };
    let totals = plan.run()?;
    if let Some(before) = totals_before {
        must_be_same(before, totals)?;
    }
    let columns = plan.annotations.take();
    let columns = columns.map(|a| a.columns(&plan.schema, &arguments.annotate_prefix));
    let records = (plan.kept, plan.dropped, columns.transpose()?);
    copy(context, &plan.corpus, totals, records, sinks)?;
    if let Some(report) = plan.report {
        report.finish()?;
    }
    context.messages.note(plan.tally.summary("kept", totals));
    Ok(Outcome::Done)
}

/// The schema of the documents, and the other store if there is one.
fn schema(context: &Context, arguments: &DedupArguments) -> Result<(Schema, Option<Snapshot>)> {
    Ok(match &arguments.against {
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
    })
}

/// The job that keeps what is read, if one is wanted.
fn job(
    context: &Context,
    arguments: &DedupArguments,
    corpus: &Corpus,
    schema: &Schema,
    is_exact: bool,
) -> Result<Option<Arc<Job>>> {
    let Some(folder) = &arguments.job else {
        return Ok(None);
    };
    let settings = [
        ("the verb", "dedup".to_owned()),
        ("--verify", is_exact.to_string()),
        ("--keep", arguments.keep.scoring()),
    ];
    let job = Job::open(context, folder, corpus, schema, &settings)?;
    Ok(Some(Arc::new(job)))
}

/// The corpus without its repeated paragraphs or lines.
fn trim(
    context: &Context,
    arguments: &DedupArguments,
    schema: &Schema,
    corpus: Corpus,
    part: TextPart,
) -> Result<TrimmedCorpus> {
    let Some(recipe) = schema.text() else {
        let usage = "--level paragraph and line are for texts, which this schema has no rule for";
        return Err(Failure::usage(usage));
    };
    trim_corpus(context, corpus, part, &recipe, arguments.options.skip_bad)
}

/// Writes what is left of each text.
fn write_trimmed(context: &Context, trimmed: TrimmedCorpus, sinks: Sinks) -> Result<Outcome> {
    let totals = trimmed.totals;
    context.messages.note(totals);
    let records = (trimmed.kept, trimmed.emptied, None);
    copy(context, &Arc::new(trimmed.corpus), totals, records, sinks)?;
    context.messages.note(trimmed.tally.summary("kept", totals));
    Ok(Outcome::Done)
}

/// Writes the documents that were kept, those that were dropped as they stand in the input, and both with more
/// columns.
fn copy(
    context: &Context,
    corpus: &Arc<Corpus>,
    totals: ReadTotals,
    (kept, dropped, columns): (BitList, BitList, Option<Vec<AddedColumn>>),
    sinks: Sinks,
) -> Result<()> {
    let annotated = sinks.annotated.zip(columns);
    let annotated = annotated.map(|(sink, columns)| sink.with_columns(columns));
    let outputs = [
        (kept.or(&dropped), annotated, false),
        (kept, sinks.kept, true),
        (dropped, sinks.dropped, false),
    ];
    let outputs = outputs
        .into_iter()
        .filter_map(|(wanted, sink, are_trimmed)| {
            Some(CopiedRecords {
                wanted,
                sink: sink?,
                are_trimmed,
            })
        });
    copy_records(context, corpus, totals, outputs.collect())
}

/// Where documents go.
struct Outputs {
    kept: Option<OutputTarget>,
    dropped: Option<OutputTarget>,
    annotated: Option<OutputTarget>,
}

/// The same, opened.
struct Sinks {
    kept: Option<Sink>,
    dropped: Option<Sink>,
    annotated: Option<Sink>,
}

impl Outputs {
    fn choose(arguments: &DedupArguments, corpus: &Corpus, schema: &Schema) -> Result<Self> {
        let choose =
            |path: &PathBuf| OutputTarget::choose(path, &arguments.corpus, corpus, arguments.force);
        let outputs = Self {
            kept: arguments.output.as_ref().map(choose).transpose()?,
            dropped: arguments.dropped.as_ref().map(choose).transpose()?,
            annotated: arguments.annotate.as_ref().map(choose).transpose()?,
        };
        let others = [
            (&outputs.kept, "the dropped documents", &arguments.dropped),
            (
                &outputs.kept,
                "the annotated documents",
                &arguments.annotate,
            ),
            (
                &outputs.dropped,
                "the annotated documents",
                &arguments.annotate,
            ),
        ];
        for (target, what, other) in others {
            if let (Some(target), Some(other)) = (target, other) {
                target.must_not_meet(what, other, corpus)?;
            }
        }
        if outputs.annotated.is_some() {
            let names = column_names(schema, &arguments.annotate_prefix);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            if let Some(reason) = not_for_more_columns(corpus, &names)? {
                let advice = "--annotate-prefix NAME calls the new ones otherwise";
                return Err(Failure::bad_input(format!("--annotate: {reason}")).with_note(advice));
            }
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
        for target in [&self.kept, &self.dropped, &self.annotated]
            .into_iter()
            .flatten()
        {
            target.must_not_meet("the report", path, corpus)?;
        }
        let (force, has_header) = (arguments.force, !arguments.no_header);
        let name = similarity_name(is_exact);
        let report = DropReport::create(path, force, has_header, schema, name)?;
        Ok(Some(report))
    }

    fn create(&self, force: bool) -> Result<Sinks> {
        let create = |target: &Option<OutputTarget>| {
            let sink = target.as_ref().map(|target| Sink::create(target, force));
            sink.transpose()
        };
        Ok(Sinks {
            kept: create(&self.kept)?,
            dropped: create(&self.dropped)?,
            annotated: create(&self.annotated)?,
        })
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

/// An error if a limit was given for the other policy, or a job for what it does not keep.
fn check_limits(arguments: &DedupArguments) -> Result<()> {
    if arguments.job.is_some() {
        arguments.schema.must_not_weigh("--job")?;
        if arguments.part()?.is_some() {
            return Err(Failure::usage("--job is for --level document alone"));
        }
    }
    if !arguments.drops_documents() {
        let given = [
            ("--annotate", arguments.annotate.is_some()),
            ("--report", arguments.report.is_some()),
            ("--against", arguments.against.is_some()),
            ("--budget", arguments.budget.is_some()),
            ("--max-bucket", arguments.limits.max_bucket.is_some()),
            ("--policy", arguments.policy != PolicyName::First),
            ("--keep", !matches!(arguments.keep, KeepRule::First)),
            ("--threshold or --distance", arguments.bounds.is_given()),
            ("--by", arguments.by.is_given()),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            return Err(Failure::usage(format!(
                "{option} is for near-duplicate documents; add document to --level"
            )));
        }
    }
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
