//! The verb `evict`.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use resemblance::report::EvictReport;
use resemblance::{EvictPolicy, Store};

use crate::failure::{Failure, Outcome, Result};
use crate::options::{FormatOptions, parse_age};
use crate::output::{Results, Value};
use crate::session::{Context, open_to_read, open_to_write};
use resemblance::invariant::bug;

/// Remove documents by their age or number
///
/// The stamp of a document is its age; of documents with equal stamps, the one added first is the oldest.
/// Documents are removed in commits of 1,000, so that the command can be stopped and given again.
/// Columns: examined, evicted, left, slices (commits), longest_slice_ms.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance evict seen.rsm --keep-newest 1000000
  resemblance evict seen.rsm --older-than 14d
  resemblance evict seen.rsm --older-than 1700000000 --dry-run")]
#[command(group(ArgGroup::new("which").required(true).args(["older_than", "keep_newest"])))]
pub(crate) struct EvictArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// Remove the documents whose stamps are smaller: an age such as 14d (s, m, h, d, w), a stamp, or a
    /// time such as 2026-01-31T08:00:00Z
    #[arg(long, value_name = "AGE|STAMP", value_parser = parse_age)]
    older_than: Option<u64>,
    /// Remove all but the N newest documents
    #[arg(long, value_name = "N")]
    keep_newest: Option<u64>,
    /// With --older-than: remove more than nine tenths of the documents, or all of a store whose stamps
    /// are 0
    #[arg(long, conflicts_with = "keep_newest")]
    force: bool,
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
        open_to_write(context, path, &context.store_options)?
    };
    let before = store.snapshot()?.len();
    if let Some(stamp) = arguments.older_than.filter(|_| !arguments.force) {
        must_leave_some(context, arguments, &store, stamp)?;
    }
    let mut watched = context.watch();
    let report = store
        .evict(policy(arguments)?)
        .dry_run(arguments.dry_run)
        .slice_documents(arguments.slice.get())
        .on_progress(|progress| watched.tell(progress))
        .run();
    if let Some(stopped) = watched.signal() {
        let evicted = before
            .checked_sub(store.snapshot()?.len())
            .ok_or_else(|| bug("an eviction has added documents"))?;
        let note = format!("evicted {evicted} documents; give the command again for the rest");
        return Err(stopped.with_note(note));
    }
    let evicted = report.map_err(|error| Failure::unfinished(path.display(), error))?;
    print(arguments, &evicted, before)?;
    if arguments.dry_run {
        context.note("a dry run: nothing was removed");
    }
    Ok(Outcome::Done)
}

/// An error if so many documents are older that the stamps or the age must be wrong.
fn must_leave_some(
    context: &Context,
    arguments: &EvictArguments,
    store: &Store,
    stamp: u64,
) -> Result<()> {
    let count_older = |stamp| {
        let counted = store
            .evict(EvictPolicy::OlderThan(stamp))
            .dry_run(true)
            .on_progress(|_| match context.interrupt.check() {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            })
            .run();
        context.interrupt.check()?;
        match counted {
            Ok(report) => Ok(report.evicted),
            Err(error) => Err(Failure::store(arguments.store.display(), error)),
        }
    };
    let documents = store.snapshot()?.len();
    let older = count_older(stamp)?;
    // All but a tenth; nothing is lost where nothing is.
    if u128::from(older) * 10 <= u128::from(documents) * 9 {
        return Ok(());
    }
    let message = if count_older(1)? == documents {
        format!("all stamps are 0, so --older-than would remove all {documents} documents")
    } else {
        format!("--older-than would remove {older} of {documents} documents, more than nine tenths")
    };
    if arguments.dry_run {
        context.note(format!("warning: {message}"));
        return Ok(());
    }
    let failure = Failure::usage(message).with_note("--force removes them all the same");
    Err(failure.with_note(
        "add --stamp and --stamp-field give documents stamps, and touch gives them others",
    ))
}

fn policy(arguments: &EvictArguments) -> Result<EvictPolicy<'static>> {
    match (arguments.older_than, arguments.keep_newest) {
        (Some(stamp), _) => Ok(EvictPolicy::OlderThan(stamp)),
        (None, Some(documents)) => Ok(EvictPolicy::KeepNewest(documents)),
        (None, None) => Err(bug("an eviction without a rule").into()),
    }
}

fn print(arguments: &EvictArguments, report: &EvictReport, before: u64) -> Result<()> {
    let left = before
        .checked_sub(report.evicted)
        .ok_or_else(|| bug("more documents were evicted than there were"))?;
    let longest_ms = report.longest_slice.as_secs_f64() * 1_000.0;
    let fields = [
        ("examined", Value::Count(report.examined)),
        ("evicted", Value::Count(report.evicted)),
        ("left", Value::Count(left)),
        ("slices", Value::Count(report.slices)),
        ("longest_slice_ms", Value::Number(longest_ms)),
    ];
    Results::print_one(arguments.format.layout(), &fields)
}
