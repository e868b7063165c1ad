//! Writes the decisions of `dedup` to their destinations.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use resemblance::Schema;

use super::annotations::{Annotations, column_names};
use super::arguments::DedupArguments;
use super::arguments::{DedupBasis, DedupPaths};
use super::decide::{DecidedDocuments, DecidedRecord};
use super::review::ReviewReport;
use crate::failure::{Failure, Result};
use crate::options::similarity_name;
use crate::output::{
    CompleteFile, Counted, DropReport, OutputTarget, RejectedReport, Results, Sink, SurvivorPlace,
    guard,
};
#[cfg(feature = "sqlite")]
use crate::session::corpus_changed;
use crate::session::{BitList, Context, CopiedRecords, Revisits, copy_records};
#[cfg(not(feature = "sqlite"))]
use crate::verbs::verdicts::NoVerdicts as DedupVerdicts;
#[cfg(feature = "sqlite")]
use crate::verbs::verdicts::only_database;
#[cfg(feature = "sqlite")]
use resemblance::invariant::OrBug;
#[cfg(feature = "sqlite")]
use resemblance_corpus::VerdictTable;
use resemblance_corpus::{AddedColumn, Corpus, ReadTotals, SourceKind, not_for_more_columns};
use resemblance_eval::SampledClusters;

/// All that is written, opened.
pub(super) struct DedupOutputs {
    schema: Schema,
    /// The prefix of the names of added columns.
    column_prefix: String,
    pub(super) sinks: DedupFiles<Sink>,
    report: Option<DropReport>,
    rejected: Option<RejectedReport>,
    review: Option<ReviewReport>,
    verdicts: Option<DedupVerdicts>,
    annotations: Option<Annotations>,
    /// The survivor of each dropped document, by number, if revisit records replace these.
    replaced: Option<HashMap<u64, u64>>,
    /// The share of the documents that is decided on, and their clusters.
    sampled: Option<(f64, SampledClusters)>,
}

impl DedupOutputs {
    pub(super) fn open(
        arguments: &DedupArguments,
        corpus: &Corpus,
        basis: &DedupBasis,
    ) -> Result<Self> {
        let paths = arguments.paths();
        let targets = DedupFiles::choose(kept_target(arguments, corpus)?, &paths, corpus)?;
        must_take_columns(arguments, corpus, &basis.schema)?;
        let is_exact = basis.is_exact || basis.schema.is_exact();
        let report = targets.report(&paths, corpus, &basis.schema, is_exact)?;
        let bounds = arguments.choices().join_bounds();
        let threshold = bounds.similarity_floor(&basis.schema)?;
        let reason = match arguments.lost {
            Some(share) => format!("more than {share} lost"),
            None => format!("similarity below {threshold}"),
        };
        let rejected = targets.rejected(&paths, corpus, reason)?;
        let review = targets.review(arguments, &paths, corpus, threshold)?;
        // A dry run refuses what could not be written, too.
        let verdicts = DedupVerdicts::new(arguments.verdicts.as_deref(), arguments.force, corpus)?
            .filter(|_| !arguments.dry_run);
        let is_annotated = arguments.annotate.is_some() || verdicts.is_some();
        Ok(Self {
            schema: basis.schema.clone(),
            column_prefix: arguments.column_prefix(),
            sinks: targets.create(arguments.force)?,
            report,
            rejected,
            review,
            verdicts,
            annotations: is_annotated.then(Annotations::default),
            replaced: arguments.revisit.then(HashMap::new),
            sampled: arguments
                .sample
                .map(|share| (share, SampledClusters::default())),
        })
    }

    /// Records a document that is dropped, or a candidate that is not near.
    pub(super) fn take(&mut self, decided: DecidedRecord<'_>) -> Result<()> {
        if let Some(review) = &mut self.review {
            review.take(&decided);
        }
        let dropped = match (decided, &mut self.rejected) {
            (DecidedRecord::Dropped(dropped), _) => dropped,
            (DecidedRecord::Rejected { .. }, None) => return Ok(()),
            (
                DecidedRecord::Rejected {
                    document,
                    candidate,
                    ..
                },
                Some(report),
            ) => return report.row(document, candidate),
        };
        if let Some((_, sampled)) = &mut self.sampled {
            match dropped.survivor.map(|survivor| survivor.place) {
                Some(SurvivorPlace::Corpus(number)) => sampled.add(number),
                Some(SurvivorPlace::Store(_)) => sampled.add_known(),
                None => {}
            }
        }
        if let Some(annotations) = &mut self.annotations {
            annotations.take(&dropped);
        }
        if let (Some(replaced), Some(survivor)) = (&mut self.replaced, dropped.survivor)
            && let SurvivorPlace::Corpus(number) = survivor.place
        {
            replaced.insert(dropped.number, number);
        }
        match (&mut self.report, dropped.survivor) {
            (Some(report), Some(survivor)) => report.row(dropped.key, survivor),
            _ => Ok(()),
        }
    }

    /// Writes the decisions, and prints their counts.
    pub(super) fn write(
        self,
        context: &Context,
        corpus: &Arc<Corpus>,
        decided: DecidedDocuments,
    ) -> Result<()> {
        let mut columns = match self.annotations {
            Some(annotations) => Some(annotations.columns(&self.schema, &self.column_prefix)?),
            None => None,
        };
        let verdicts = self.verdicts;
        let of_rows = verdicts.is_some().then(|| DecidedBits {
            kept: decided.kept.clone(),
            dropped: decided.dropped.clone(),
            columns: columns.take(),
            reports: Vec::new(),
        });
        let (tally, totals) = (decided.tally, decided.totals);
        let review = match self.review {
            Some(review) => Some(review.write(context, corpus, totals, &self.schema)?),
            None => None,
        };
        let mut sinks = self.sinks;
        if let Some(survivors) = self.replaced {
            sinks.revisits = Some(Revisits::read(context, corpus, totals, survivors)?);
        }
        let reports = [
            self.report.map(DropReport::complete),
            self.rejected.map(RejectedReport::complete),
            review.map(Results::complete),
        ];
        let copied = DecidedBits {
            kept: decided.kept,
            dropped: decided.dropped,
            columns,
            reports: reports.into_iter().flatten().collect::<Result<_>>()?,
        };
        // Verdicts that are written stay, so everything that can fail comes before them.
        let write_verdicts = || match verdicts.as_ref().zip(of_rows.as_ref()) {
            Some((verdicts, decided)) => verdicts.write(context, corpus, totals, decided),
            None => Ok(()),
        };
        let written = sinks.write(context, corpus, totals, copied, write_verdicts);
        written.map_err(|failure| match &verdicts {
            Some(_) => failure.or_unfinished("the verdicts were not written"),
            None => failure,
        })?;
        context.counts(tally.summary("kept", totals));
        if let Some((share, sampled)) = self.sampled {
            let (read, documents) = (tally.read, totals.records);
            let expected = 100.0 * sampled.expected_drops(read, share);
            context.note(format!(
                "--sample {share}: {read} of {}, by hashes of their keys; about {expected:.1} % of all \
                 documents are expected to be dropped (the sample has only one document of most pairs)",
                Counted(documents, "document")
            ));
        }
        Ok(())
    }
}

/// The target of the kept documents, if they are written.
fn kept_target(arguments: &DedupArguments, corpus: &Corpus) -> Result<Option<OutputTarget>> {
    let inputs = &arguments.corpus;
    if arguments.dry_run {
        return Ok(None);
    }
    if arguments.in_place {
        return OutputTarget::in_place(inputs, corpus).map(Some);
    }
    let Some(path) = &arguments.output else {
        return Ok(None);
    };
    let chosen = OutputTarget::choose(path, inputs, corpus, arguments.force, false);
    let target = chosen.map_err(|failure| match guard::reads_file(path) {
        true => failure.with_note("--in-place replaces the corpus by the documents kept"),
        false => failure,
    })?;
    let mut sources = corpus.sources.iter();
    let has_warc = sources.any(|source| source.kind == SourceKind::Warc);
    let is_folder = matches!(target, OutputTarget::Folder { .. });
    if arguments.revisit && !(has_warc && is_folder) {
        return Err(Failure::usage(
            "--revisit writes records of WARC, which needs WARC files and a folder after -o",
        ));
    }
    Ok(Some(target))
}

/// An error if the corpus has columns with the names of those that --annotate adds.
fn must_take_columns(arguments: &DedupArguments, corpus: &Corpus, schema: &Schema) -> Result<()> {
    if arguments.annotate.is_none() {
        return Ok(());
    }
    let owned_names = column_names(schema, &arguments.column_prefix());
    let names: Vec<&str> = owned_names.iter().map(String::as_str).collect();
    if let Some(reason) = not_for_more_columns(corpus, &names)? {
        let advice = "--annotate-prefix NAME renames the new ones";
        return Err(Failure::bad_input(format!("--annotate: {reason}")).with_note(advice));
    }
    Ok(())
}

/// The destination of documents.
pub(in crate::verbs) struct DedupFiles<T> {
    kept: Option<T>,
    dropped: Option<T>,
    annotated: Option<T>,
    /// The revisit records in place of pages that are not kept.
    revisits: Option<Revisits>,
}

impl DedupFiles<OutputTarget> {
    /// Chooses the targets of dropped and annotated documents in addition to that of the kept ones.
    /// Two equal targets are an error.
    pub(in crate::verbs) fn choose(
        kept: Option<OutputTarget>,
        paths: &DedupPaths<'_>,
        corpus: &Corpus,
    ) -> Result<Self> {
        let choose = |path: Option<&Path>, are_rows| {
            path.map(|path| OutputTarget::choose(path, paths.inputs, corpus, paths.force, are_rows))
                .transpose()
        };
        let targets = Self {
            kept,
            dropped: choose(paths.dropped, false)?,
            annotated: choose(paths.annotated, true)?,
            revisits: None,
        };
        let (dropped, annotated) = ("the dropped documents", "the annotated documents");
        for (target, what, other) in [
            (&targets.kept, dropped, paths.dropped),
            (&targets.kept, annotated, paths.annotated),
            (&targets.dropped, annotated, paths.annotated),
        ] {
            if let (Some(target), Some(other)) = (target, other) {
                target.must_not_meet(what, other, corpus)?;
            }
        }
        Ok(targets)
    }

    /// Creates the list of dropped documents, if one is wanted.
    pub(in crate::verbs) fn report(
        &self,
        paths: &DedupPaths<'_>,
        corpus: &Corpus,
        schema: &Schema,
        is_exact: bool,
    ) -> Result<Option<DropReport>> {
        let Some(path) = paths.report else {
            return Ok(None);
        };
        let targets = [&self.kept, &self.dropped, &self.annotated];
        for target in targets.into_iter().flatten() {
            target.must_not_meet("the report", path, corpus)?;
        }
        let name = similarity_name(is_exact);
        let (force, has_header) = (paths.force, paths.has_header);
        DropReport::create(path, force, has_header, schema, name).map(Some)
    }

    /// Creates the list of rejected candidates, if one is wanted.
    fn rejected(
        &self,
        paths: &DedupPaths<'_>,
        corpus: &Corpus,
        reason: String,
    ) -> Result<Option<RejectedReport>> {
        let Some(path) = paths.rejected else {
            return Ok(None);
        };
        if paths.report == Some(path) {
            return Err(Failure::usage("--rejected and --report name the same file"));
        }
        let targets = [&self.kept, &self.dropped, &self.annotated];
        for target in targets.into_iter().flatten() {
            target.must_not_meet("the rejected candidates", path, corpus)?;
        }
        RejectedReport::create(path, paths.force, paths.has_header, reason).map(Some)
    }

    /// Creates the list of pairs to review, if one is wanted.
    fn review(
        &self,
        arguments: &DedupArguments,
        paths: &DedupPaths<'_>,
        corpus: &Corpus,
        threshold: f64,
    ) -> Result<Option<ReviewReport>> {
        let path = arguments.review.review.as_deref();
        if path.is_some() && [paths.report, paths.rejected].contains(&path) {
            let usage = "--review and another report name the same file";
            return Err(Failure::usage(usage));
        }
        let targets = [&self.kept, &self.dropped, &self.annotated];
        for (target, path) in targets.into_iter().flatten().zip(path.iter().cycle()) {
            target.must_not_meet("the pairs to review", path, corpus)?;
        }
        ReviewReport::create(&arguments.review, paths, arguments.lost, threshold)
    }

    pub(in crate::verbs) fn create(&self, force: bool) -> Result<DedupFiles<Sink>> {
        let create = |target: &Option<OutputTarget>| {
            let sink = target.as_ref().map(|target| Sink::create(target, force));
            sink.transpose()
        };
        Ok(DedupFiles {
            kept: create(&self.kept)?,
            dropped: create(&self.dropped)?.map(Sink::of_pages_alone),
            annotated: create(&self.annotated)?,
            revisits: None,
        })
    }
}

/// The decisions on all documents, and the reports about them.
pub(in crate::verbs) struct DecidedBits {
    pub(in crate::verbs) kept: BitList,
    pub(in crate::verbs) dropped: BitList,
    /// The columns of annotated documents.
    pub(in crate::verbs) columns: Option<Vec<AddedColumn>>,
    /// The reports, which get their names with the documents.
    pub(in crate::verbs) reports: Vec<CompleteFile>,
}

impl DedupFiles<Sink> {
    /// Writes the kept documents, the dropped ones as they are in the input, and both with more
    /// columns. Calls `before_names` when all files are complete.
    pub(in crate::verbs) fn write(
        self,
        context: &Context,
        corpus: &Arc<Corpus>,
        totals: ReadTotals,
        decided: DecidedBits,
        before_names: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let DecidedBits {
            kept,
            dropped,
            columns,
            reports,
        } = decided;
        let mut outputs = Vec::new();
        let mut add = |sink: Option<Sink>, wanted, are_trimmed, revisits| {
            outputs.extend(sink.map(|sink| CopiedRecords {
                wanted,
                sink,
                are_trimmed,
                revisits,
            }));
        };
        let annotated = self
            .annotated
            .zip(columns)
            .map(|(sink, columns)| sink.with_columns(columns));
        add(annotated, kept.or(&dropped), false, None);
        add(self.dropped, dropped, false, None);
        // The kept ones come last, because they may replace the corpus.
        add(self.kept, kept, true, self.revisits);
        copy_records(context, corpus, totals, outputs, reports, before_names)
    }
}

#[cfg(feature = "sqlite")]
/// The table that `--verdicts` asks for.
struct DedupVerdicts(VerdictTable);

#[cfg(feature = "sqlite")]
impl DedupVerdicts {
    /// Returns `None` if none is requested, and an error if it cannot be written in the end.
    fn new(name: Option<&str>, force: bool, corpus: &Corpus) -> Result<Option<Self>> {
        let Some(name) = name else {
            return Ok(None);
        };
        let source = only_database(corpus)?;
        let table = VerdictTable::new(source, &corpus.settings, name, force)?;
        Ok(Some(Self(table)))
    }

    /// Reads the database again, and writes the verdicts on its rows.
    fn write(
        &self,
        context: &Context,
        corpus: &Corpus,
        totals: ReadTotals,
        decided: &DecidedBits,
    ) -> Result<()> {
        let (kept, dropped) = (&decided.kept, &decided.dropped);
        let columns = decided.columns.as_ref().or_bug("no verdicts")?;
        let mut progress = context.progress("writing verdicts");
        let is_same = self.0.write(corpus, columns, totals, |number| {
            context.count(&mut progress, number)?;
            // A database that has grown since is reported below.
            if number >= kept.len() {
                return Ok::<_, Failure>(false);
            }
            Ok(kept.get(number)? || dropped.get(number)?)
        })?;
        progress.clear();
        if is_same {
            Ok(())
        } else {
            Err(corpus_changed())
        }
    }
}
