//! The verb `dedup`.

mod annotations;
mod arguments;
mod choices;
mod kept;
mod plan;
mod sample;
#[cfg(feature = "sqlite")]
mod verdicts;

use std::path::PathBuf;
use std::sync::Arc;

use resemblance::Schema;
use resemblance::dedup::TextPart;

use self::annotations::{Annotations, column_names};
pub(crate) use self::arguments::DedupArguments;
pub(in crate::verbs) use self::choices::{DedupBasis, DedupChoices};
pub(in crate::verbs) use self::plan::{DedupPlan, DroppedDocument};
use self::sample::SampledClusters;
#[cfg(feature = "sqlite")]
use self::verdicts::DedupVerdicts;
#[cfg(not(feature = "sqlite"))]
use super::verdicts::NoVerdicts as DedupVerdicts;
use crate::bug::bug;
use crate::failure::{Failure, Outcome, Result};
use crate::options::{KeepRule, PolicyName, similarity_name};
use crate::output::{DropReport, OutputTarget, Sink};
use crate::session::{
    BitList, Context, CopiedRecords, DocumentTally, Job, TrimmedCorpus, copy_records, must_be_same,
    resolve_corpus, spool_sources, trim_corpus,
};
use resemblance_corpus::{
    AddedColumn, ContentRule, Corpus, HtmlExtractor, ReadTotals, not_for_more_columns,
};

pub(crate) fn dedup(context: &Context, arguments: &DedupArguments) -> Result<Outcome> {
    check_levels(arguments)?;
    check_sample(arguments)?;
    let choices = arguments.choices();
    choices.check_limits()?;
    let basis = choices.basis(context)?;
    let (schema, is_exact) = (basis.schema.clone(), basis.is_exact);
    let content = ContentRule::new(&schema, is_exact);
    let mut corpus = resolve_corpus(context, &arguments.corpus, &arguments.options, content)?;
    arguments.survivors.keep.apply(&mut corpus);
    corpus.settings.sample = arguments.sample;
    let outputs = Outputs::choose(arguments, &corpus, &schema)?;
    let mut report = outputs.report(arguments, &schema, is_exact, &corpus)?;
    let verdicts = DedupVerdicts::new(arguments.verdicts.as_deref(), arguments.force, &corpus)?;
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
    let corpus = Arc::new(corpus);
    let mut sampled = SampledClusters::default();
    let is_annotated = arguments.annotate.is_some() || verdicts.is_some();
    let mut annotations = is_annotated.then(Annotations::default);
    let mut on_drop = |dropped: DroppedDocument<'_>| {
        if arguments.sample.is_some() {
            sampled.take(&dropped);
        }
        if let Some(annotations) = &mut annotations {
            annotations.take(&dropped);
        }
        match (&mut report, dropped.survivor) {
            (Some(report), Some(survivor)) => report.row(dropped.key, survivor),
            _ => Ok(()),
        }
    };
    let read = (Arc::clone(&corpus), job);
    let plan = DedupPlan::new(context, choices, &basis, read, &mut on_drop)?;
    let decided = plan.run(tally)?;
    let totals = decided.totals;
    if let Some(before) = totals_before {
        must_be_same(before, totals)?;
    }
    let columns = annotations.map(|a| a.columns(&schema, &arguments.column_prefix()));
    let mut columns = columns.transpose()?;
    if let Some(verdicts) = verdicts {
        let columns = columns.take().ok_or_else(|| bug("no verdicts"))?;
        verdicts.write(context, &corpus, &decided, &columns)?;
    }
    let records = (decided.kept, decided.dropped, columns);
    copy(context, &corpus, totals, records, sinks)?;
    if let Some(report) = report {
        report.finish()?;
    }
    let summary = decided.tally.summary("kept", totals);
    context.messages.counts(summary);
    if let Some(share) = arguments.sample {
        let note = sampled.note(share, decided.tally.read, totals.records);
        context.messages.note(note);
    }
    Ok(Outcome::Done)
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
        ("--keep", arguments.survivors.keep.scoring()),
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
    if HtmlExtractor::of(schema).is_some() {
        return Err(Failure::usage(
            "--level paragraph and line take parts out of texts, which --html has made of others",
        ));
    }
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
    context
        .messages
        .counts(trimmed.tally.summary("kept", totals));
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
            let names = column_names(schema, &arguments.column_prefix());
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

/// An error if an option for near-duplicate documents was given without that level, or a job for another.
fn check_levels(arguments: &DedupArguments) -> Result<()> {
    if arguments.job.is_some() {
        arguments.schema.must_not_weigh("--job")?;
        if arguments.part()?.is_some() {
            return Err(Failure::usage("--job is for --level document alone"));
        }
    }
    if !arguments.drops_documents() {
        let given = [
            ("--annotate", arguments.annotate.is_some()),
            ("--verdicts", arguments.verdicts.is_some()),
            ("--report", arguments.report.is_some()),
            ("--against", arguments.survivors.against.is_some()),
            ("--budget", arguments.survivors.budget.is_some()),
            ("--max-bucket", arguments.limits.max_bucket.is_some()),
            ("--policy", arguments.survivors.policy != PolicyName::First),
            (
                "--keep",
                !matches!(arguments.survivors.keep, KeepRule::First),
            ),
            ("--threshold or --distance", arguments.bounds.is_given()),
            ("--by", arguments.by.is_given()),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            return Err(Failure::usage(format!(
                "{option} is for near-duplicate documents; add document to --level"
            )));
        }
    }
    Ok(())
}

/// An error if a sample was asked for where its documents would be written, or could not be compared with the whole.
fn check_sample(arguments: &DedupArguments) -> Result<()> {
    if arguments.sample.is_none() {
        return Ok(());
    }
    if !arguments.dry_run {
        return Err(Failure::usage(
            "--sample is for --dry-run: a part of a corpus without its own duplicates is no corpus without \
             duplicates",
        ));
    }
    let others = [
        ("--dropped", arguments.dropped.is_some()),
        ("--annotate", arguments.annotate.is_some()),
        ("--job", arguments.job.is_some()),
        ("--level", arguments.part()?.is_some()),
    ];
    match others.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::usage(format!(
            "{option} is for all documents, and --sample takes some"
        ))),
    }
}
