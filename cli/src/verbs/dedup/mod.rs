//! The verb `dedup`.

mod arguments;
mod choices;
mod kept;
mod plan;

use std::path::PathBuf;
use std::sync::Arc;

use resemblance::Schema;
use resemblance::dedup::TextPart;

pub(crate) use self::arguments::DedupArguments;
pub(in crate::verbs) use self::choices::{DedupBasis, DedupChoices};
pub(in crate::verbs) use self::plan::DedupPlan;
use crate::corpus::{ContentRule, Corpus, ReadTotals};
use crate::failure::{Failure, Outcome, Result};
use crate::options::{KeepRule, PolicyName, similarity_name};
use crate::output::{DropReport, OutputTarget, Sink, Survivor};
use crate::session::{
    BitList, Context, CopiedRecords, DocumentTally, TrimmedCorpus, copy_records, must_be_same,
    resolve_corpus, spool_sources, trim_corpus,
};

pub(crate) fn dedup(context: &Context, arguments: &DedupArguments) -> Result<Outcome> {
    check_levels(arguments)?;
    let choices = arguments.choices();
    choices.check_limits()?;
    let basis = choices.basis(context)?;
    let (schema, is_exact) = (basis.schema.clone(), basis.is_exact);
    let content = ContentRule::new(&schema, is_exact);
    let mut corpus = resolve_corpus(context, &arguments.corpus, &arguments.options, content)?;
    arguments.survivors.keep.apply(&mut corpus);
    let outputs = Outputs::choose(arguments, &corpus)?;
    let mut report = outputs.report(arguments, &schema, is_exact, &corpus)?;
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
    let corpus = Arc::new(corpus);
    let mut on_drop = |dropped: &[u8], survivor: &Survivor| match &mut report {
        Some(report) => report.line(dropped, survivor),
        None => Ok(()),
    };
    let plan = DedupPlan::new(context, choices, &basis, Arc::clone(&corpus), &mut on_drop)?;
    let decided = plan.run(tally)?;
    let totals = decided.totals;
    if let Some(before) = totals_before {
        must_be_same(before, totals)?;
    }
    let records = (decided.kept, decided.dropped);
    copy(context, &corpus, totals, records, sinks)?;
    if let Some(report) = report {
        report.finish()?;
    }
    context.messages.note(decided.tally.summary("kept", totals));
    Ok(Outcome::Done)
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
fn write_trimmed(
    context: &Context,
    trimmed: TrimmedCorpus,
    outputs: (Option<Sink>, Option<Sink>),
) -> Result<Outcome> {
    let totals = trimmed.totals;
    context.messages.note(totals);
    let records = (trimmed.kept, trimmed.emptied);
    copy(context, &Arc::new(trimmed.corpus), totals, records, outputs)?;
    context.messages.note(trimmed.tally.summary("kept", totals));
    Ok(Outcome::Done)
}

/// Writes the documents that were kept, and those that were dropped as they stand in the input.
fn copy(
    context: &Context,
    corpus: &Arc<Corpus>,
    totals: ReadTotals,
    (kept, dropped): (BitList, BitList),
    (kept_sink, dropped_sink): (Option<Sink>, Option<Sink>),
) -> Result<()> {
    let outputs = [(kept, kept_sink, true), (dropped, dropped_sink, false)];
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

/// An error if an option for near-duplicate documents was given without that level.
fn check_levels(arguments: &DedupArguments) -> Result<()> {
    if !arguments.drops_documents() {
        let given = [
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
