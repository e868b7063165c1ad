//! The verb `dedup`.

mod annotations;
mod arguments;
mod decide;
mod review;
mod write;

use std::sync::Arc;

use resemblance::Schema;
use resemblance_corpus::dedup::TextPart;

pub(crate) use self::arguments::DedupArguments;
pub(in crate::verbs) use self::arguments::{DedupBasis, DedupChoices, DedupPaths};
pub(in crate::verbs) use self::decide::{DecidedRecord, decide};
use self::write::DedupOutputs;
pub(in crate::verbs) use self::write::{DecidedBits, DedupFiles};
use crate::failure::{Failure, Outcome, Result};
use crate::options::{KeepRule, PolicyName};
use crate::session::{
    Context, DocumentTally, Job, TrimmedCorpus, must_be_same, resolve_corpus, spool_sources,
    trim_corpus,
};
use resemblance_corpus::{ContentRule, Corpus, HtmlExtractor};

/// A prepared deduplication: its input, its rules, and where its decisions are written.
struct Prepared<'a> {
    choices: DedupChoices<'a>,
    basis: DedupBasis,
    corpus: Corpus,
    outputs: DedupOutputs,
}

pub(crate) fn dedup(context: &Context, arguments: &DedupArguments) -> Result<Outcome> {
    let Prepared {
        choices,
        basis,
        mut corpus,
        mut outputs,
    } = prepare(context, arguments)?;
    let mut tally = DocumentTally::default();
    let mut totals_before = None;
    if let Some(part) = arguments.part()? {
        let trimmed = trim(context, arguments, &basis.schema, corpus, part)?;
        if !arguments.drops_documents() {
            return write_trimmed(context, trimmed, outputs);
        }
        tally.dropped_parts = trimmed.tally.dropped_parts;
        totals_before = Some(trimmed.totals);
        corpus = trimmed.corpus;
    }
    let settings = [
        ("the verb", "dedup".to_owned()),
        ("--verify", basis.is_exact.to_string()),
        ("--keep", arguments.survivors.keep.scoring()),
    ];
    let folder = arguments.job.as_deref();
    let job = Job::open(context, folder, &corpus, &basis.schema, &settings)?;
    let corpus = Arc::new(corpus);
    let mut on_drop = |decided: DecidedRecord<'_>| outputs.take(decided);
    let decided = decide(context, choices, &basis, &corpus, job, tally, &mut on_drop)?;
    if let Some(before) = totals_before {
        must_be_same(before, decided.totals)?;
    }
    outputs.write(context, &corpus, decided)?;
    Ok(Outcome::Done)
}

impl DedupArguments {
    /// An error if the values of options contradict each other, whatever the corpus is.
    pub(crate) fn must_agree(&self) -> Result<()> {
        check_levels(self)?;
        check_sample(self)?;
        match self.drops_documents() {
            true => self.choices().must_agree(),
            false => Ok(()),
        }
    }
}

/// Checks the corpus and the options, and opens the outputs: impossible requests are reported
/// before anything is read.
fn prepare<'a>(context: &Context, arguments: &'a DedupArguments) -> Result<Prepared<'a>> {
    check_levels(arguments)?;
    check_sample(arguments)?;
    let choices = arguments.choices();
    choices.check_limits()?;
    let basis = choices.basis(context)?;
    let content = ContentRule::new(&basis.schema, basis.is_exact);
    let mut corpus = resolve_corpus(context, &arguments.corpus, &arguments.join.corpus, content)?;
    arguments.survivors.keep.apply(&mut corpus);
    corpus.settings.sample = arguments.sample;
    let outputs = DedupOutputs::open(arguments, &corpus, &basis)?;
    let basis = choices.weigh(context, basis)?;
    spool_sources(context, &mut corpus)?;
    Ok(Prepared {
        choices,
        basis,
        corpus,
        outputs,
    })
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
            "--level paragraph and line do not go with --html: extracted texts cannot be written back",
        ));
    }
    let Some(recipe) = schema.text() else {
        let usage = "--level paragraph and line need texts, and this schema has no rule for texts";
        return Err(Failure::usage(usage));
    };
    trim_corpus(
        context,
        corpus,
        part,
        &recipe,
        arguments.join.corpus.skip_bad,
    )
}

/// Writes the rest of each text; nothing is left of those that were emptied.
fn write_trimmed(
    context: &Context,
    trimmed: TrimmedCorpus,
    outputs: DedupOutputs,
) -> Result<Outcome> {
    let (tally, totals) = (trimmed.tally, trimmed.totals);
    context.note(totals);
    let corpus = Arc::new(trimmed.corpus);
    let decided = DecidedBits {
        kept: trimmed.kept,
        dropped: trimmed.emptied,
        columns: None,
        reports: Vec::new(),
    };
    let before_names = || Ok(());
    outputs
        .sinks
        .write(context, &corpus, totals, decided, before_names)?;
    context.counts(tally.summary("kept", totals));
    Ok(Outcome::Done)
}

/// An error if an option for near-duplicate documents was given without that level, or a job for another.
fn check_levels(arguments: &DedupArguments) -> Result<()> {
    if arguments.job.is_some() {
        arguments.join.schema.must_not_weigh("--job")?;
        if arguments.part()?.is_some() {
            return Err(Failure::usage("--job needs --level document"));
        }
    }
    if !arguments.drops_documents() {
        let given = [
            ("--annotate", arguments.annotate.is_some()),
            ("--verdicts", arguments.verdicts.is_some()),
            ("--report", arguments.report.is_some()),
            ("--rejected", arguments.rejected.is_some()),
            ("--review", arguments.review.review.is_some()),
            ("--against", arguments.survivors.against.is_some()),
            ("--lost", arguments.lost.is_some()),
            ("--budget", arguments.survivors.budget.is_some()),
            ("--max-bucket", arguments.join.limits.max_bucket.is_some()),
            ("--policy", arguments.survivors.policy != PolicyName::First),
            (
                "--keep",
                !matches!(arguments.survivors.keep, KeepRule::First),
            ),
            (
                "--threshold or --distance",
                arguments.join.bounds.is_given(),
            ),
            ("--by", arguments.join.by.is_given()),
            ("--verify", arguments.join.verify.is_given()),
        ];
        let first = given.into_iter().find(|(_, is_given)| *is_given);
        let named = first.map(|(option, _)| option);
        if let Some(option) = named.or_else(|| arguments.join.schema.first_of_signatures()) {
            return Err(
                Failure::usage(format!("{option} is for near-duplicate documents"))
                    .with_note("add document to --level"),
            );
        }
    }
    Ok(())
}

/// Returns an error if a sample was requested of documents that lose parts.
fn check_sample(arguments: &DedupArguments) -> Result<()> {
    if arguments.sample.is_some() && arguments.part()?.is_some() {
        return Err(Failure::usage(
            "--sample needs --level document: repeated parts are found only among all documents",
        ));
    }
    Ok(())
}
