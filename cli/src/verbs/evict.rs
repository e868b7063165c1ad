//! The verb `evict`.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use resemblance::{EvictEvent, EvictOptions, EvictReport, Store};

use crate::bug::bug;
use crate::failure::{Failure, Outcome, Result};
use crate::options::FormatOptions;
use crate::output::{Column, ProgressDisplay, Results, Value};
use crate::session::{Context, open_to_read};

/// Remove documents by their age or number
///
/// The stamp of a document is its age; of documents with equal stamps, the one added first is the oldest.
/// Documents are removed in commits of 1,000, so that the command can be stopped and given again.
/// Columns: examined, evicted, left, slices (commits), longest_slice_ms.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance evict seen.rsm --keep-newest 1000000
  resemblance evict seen.rsm --older-than 1700000000 --dry-run")]
#[command(group(ArgGroup::new("which").required(true).args(["older_than", "keep_newest"])))]
pub(crate) struct EvictArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// Remove the documents whose stamps are smaller
    #[arg(long, value_name = "STAMP")]
    older_than: Option<u64>,
    /// Remove all but the N newest documents
    #[arg(long, value_name = "N")]
    keep_newest: Option<u64>,
    /// Remove nothing, and say how many documents would be removed
    #[arg(long)]
    dry_run: bool,
    /// Remove at most N documents per commit
    #[arg(long, value_name = "N", default_value = "1000")]
    slice: NonZeroUsize,
    #[command(flatten)]
    format: FormatOptions,
}

pub(crate) fn evict(context: &Context, arguments: &EvictArguments) -> Result<Outcome> {
    let path = &arguments.store;
    let store = if arguments.dry_run {
        open_to_read(context, path)?
    } else {
        context.store_options.open(path)?
    };
    let before = store.snapshot()?.len();
    let mut progress = ProgressDisplay::new("evicting", context.messages.quiet);
    let mut stopped = None;
    let report = evict_documents(&store, arguments, |event| {
        if let EvictEvent::Examined { documents, .. } | EvictEvent::Searched { documents, .. } =
            event
        {
            progress.update(documents, 0);
        }
        match context.interrupt.check() {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                stopped = Some(failure);
                ControlFlow::Break(())
            }
        }
    });
    progress.clear();
    let report = report.map_err(|error| Failure::unfinished(path.display(), error))?;
    if let Some(stopped) = stopped.filter(|_| report.stopped) {
        let evicted = report.evicted;
        let note = format!(": evicted {evicted} documents; give the command again for the rest");
        return Err(stopped.with_note(&note));
    }
    print(arguments, &report, before)?;
    if arguments.dry_run {
        context.messages.note("a dry run: nothing was removed");
    }
    Ok(Outcome::Done)
}

fn evict_documents(
    store: &Store,
    arguments: &EvictArguments,
    watch: impl FnMut(EvictEvent) -> ControlFlow<()>,
) -> resemblance::Result<EvictReport> {
    let options = EvictOptions::new().dry_run(arguments.dry_run);
    let options = options.slice_documents(arguments.slice.get());
    match (arguments.older_than, arguments.keep_newest) {
        (Some(stamp), _) => store.evict_older_than_with(stamp, &options, watch),
        (None, Some(documents)) => store.keep_newest_with(documents, &options, watch),
        (None, None) => Err(bug("an eviction without a rule")),
    }
}

fn print(arguments: &EvictArguments, report: &EvictReport, before: u64) -> Result<()> {
    let left = before.checked_sub(report.evicted);
    let left = left.ok_or_else(|| bug("more documents were evicted than there were"))?;
    let columns = ["examined", "evicted", "left", "slices", "longest_slice_ms"];
    let columns = columns.map(Column::new).into();
    let mut results = Results::new(arguments.format.layout(), columns)?;
    results.row(&[
        Value::Count(report.examined),
        Value::Count(report.evicted),
        Value::Count(left),
        Value::Count(report.slices),
        Value::Number(report.longest_slice.as_secs_f64() * 1_000.0),
    ])?;
    results.finish()
}
