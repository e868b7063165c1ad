//! The files, besides the store, that record the outcome for each document of an addition.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use resemblance::Schema;
use resemblance_corpus::{Corpus, CorpusSource, ReadTotals, SourceKind};

use super::dedup::{DecidedBits, DedupFiles, DedupPaths};
use crate::failure::{Failure, Result};
use crate::options::CorpusOptions;
use crate::output::{DropReport, OutputTarget, Sink, Survivor, must_be_free};
use crate::session::{BitList, Context, resolve};

/// The files that an addition writes.
#[derive(Debug, Args)]
pub(super) struct AddOutputOptions {
    /// With --if-new: write the added documents here, unchanged: a file, - for standard output, or a folder, as with
    /// dedup -o. With this option, --dropped or --report, all documents are added in one commit or none, as with
    /// --atomic, and the files are complete before the store is changed. Only -o - goes with --commit-interval and
    /// --commit-every: lines are then written before the commit that adds them, so that after a kill the last ones may
    /// be written a second time, but none is missing
    #[arg(
        short,
        long,
        value_name = "OUT",
        requires = "if_new",
        conflicts_with_all = ["verdicts", "upsert"]
    )]
    output: Option<PathBuf>,
    /// With --if-new: write the skipped documents here, unchanged: near-duplicates, and those whose keys the store has
    #[arg(
        long,
        value_name = "OUT",
        requires = "if_new",
        conflicts_with_all = ["commit_every", "commit_interval", "verdicts", "upsert"]
    )]
    dropped: Option<PathBuf>,
    /// With --if-new: write a line for each skipped document, as dedup --report does. similarity_is and rule are key if
    /// the store has the key
    #[arg(
        long,
        value_name = "OUT",
        requires = "if_new",
        conflicts_with_all = ["commit_every", "commit_interval", "verdicts", "upsert"]
    )]
    report: Option<PathBuf>,
    /// Omit the header line of a report in tsv or csv
    #[arg(
        long,
        requires = "report",
        conflicts_with_all = ["commit_every", "commit_interval", "verdicts", "upsert"]
    )]
    no_header: bool,
    /// Overwrite existing output, but never a store
    #[arg(long)]
    force: bool,
}

impl AddOutputOptions {
    /// Returns true if anything is written besides the store.
    pub(super) fn are_given(&self) -> bool {
        self.output.is_some() || self.dropped.is_some() || self.report.is_some()
    }

    /// Returns true if added documents are written to standard output, and nothing else is written.
    pub(super) fn is_standard_output(&self) -> bool {
        let Self {
            dropped: None,
            report: None,
            ..
        } = self
        else {
            return false;
        };
        self.output
            .as_ref()
            .is_some_and(|path| path.as_os_str() == "-")
    }

    /// An error if existing output may be overwritten, and nothing is written.
    fn must_have_effect(&self) -> Result<()> {
        match self.force && !self.are_given() {
            true => Err(Failure::usage(
                "--force is for -o, --dropped and --report, and none of them is given",
            )),
            false => Ok(()),
        }
    }
}

impl AddOutputOptions {
    /// Returns an error if the documents of a corpus cannot be written as requested, with commits in
    /// between if it `has_commits`. Called before the store is opened, so that a refused command does
    /// not change it.
    pub(super) fn must_be_free(
        &self,
        context: &Context,
        inputs: &[PathBuf],
        options: &CorpusOptions,
        has_commits: bool,
    ) -> Result<()> {
        self.must_have_effect()?;
        if !self.are_given() {
            return Ok(());
        }
        if has_commits && !self.is_standard_output() {
            return Err(Failure::usage(
                "--commit-every and --commit-interval go with -o - alone, not with files",
            ));
        }
        let corpus = resolve(context, inputs, context.corpus_settings(options)?)?;
        let is_other = |source: &&CorpusSource| source.kind != SourceKind::Lines;
        if let Some(source) = corpus.sources.iter().find(is_other)
            && has_commits
        {
            return Err(Failure::usage(format!(
                "{}: -o - with --commit-every or --commit-interval writes JSON Lines only",
                source.name().display()
            )));
        }
        self.targets(&self.paths(inputs), &corpus)?;
        match &self.report {
            Some(path) if path.as_os_str() != "-" => must_be_free(path, self.force),
            _ => Ok(()),
        }
    }

    fn paths<'a>(&'a self, inputs: &'a [PathBuf]) -> DedupPaths<'a> {
        DedupPaths {
            inputs,
            dropped: self.dropped.as_deref(),
            annotated: None,
            report: self.report.as_deref(),
            rejected: None,
            has_header: !self.no_header,
            force: self.force,
        }
    }

    fn targets(&self, paths: &DedupPaths<'_>, corpus: &Corpus) -> Result<DedupFiles<OutputTarget>> {
        let choose = |path| OutputTarget::choose(path, paths.inputs, corpus, self.force, false);
        let kept = self.output.as_deref().map(choose).transpose()?;
        DedupFiles::choose(kept, paths, corpus)
    }
}

/// The documents of an addition, each with what became of it.
pub(super) struct AdditionFiles {
    sinks: DedupFiles<Sink>,
    report: Option<DropReport>,
    added: BitList,
    left_out: BitList,
}

impl AdditionFiles {
    /// Opens the files, if any are requested. A file that cannot be written is refused before
    /// anything is read.
    pub(super) fn open(
        options: &AddOutputOptions,
        inputs: &[PathBuf],
        corpus: &Corpus,
        schema: &Schema,
        is_exact: bool,
    ) -> Result<Option<Self>> {
        if !options.are_given() {
            return Ok(None);
        }
        let paths = options.paths(inputs);
        let targets = options.targets(&paths, corpus)?;
        Ok(Some(Self {
            report: targets.report(&paths, corpus, schema, is_exact)?,
            sinks: targets.create(options.force)?,
            added: BitList::default(),
            left_out: BitList::default(),
        }))
    }

    /// Records the outcome for a document, given its number in the corpus. Documents arrive in
    /// order; those in between are bad, or were skipped.
    pub(super) fn take(
        &mut self,
        number: u64,
        key: &[u8],
        survivor: Option<&Survivor>,
    ) -> Result<()> {
        while self.added.len() < number {
            self.added.push(false);
            self.left_out.push(false);
        }
        self.added.push(survivor.is_none());
        self.left_out.push(survivor.is_some());
        match (&mut self.report, survivor) {
            (Some(report), Some(survivor)) => report.row(key, survivor),
            _ => Ok(()),
        }
    }

    /// Reads the corpus again, and completes the files.
    pub(super) fn write(
        self,
        context: &Context,
        corpus: &Arc<Corpus>,
        totals: ReadTotals,
    ) -> Result<()> {
        let report = self.report.map(DropReport::complete).transpose()?;
        let decided = DecidedBits {
            kept: self.added,
            dropped: self.left_out,
            columns: None,
            reports: report.into_iter().collect(),
        };
        self.sinks
            .write(context, corpus, totals, decided, || Ok(()))
    }
}
