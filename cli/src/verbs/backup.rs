//! The verb `backup`.

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use resemblance::{BackupEvent, BackupReport, Snapshot};

use crate::failure::{Outcome, Result};
use crate::options::FormatOptions;
use crate::output::{Column, ProgressDisplay, Results, Value, must_not_exist};
use crate::session::{Context, open_to_read};

/// Copy a store, and verify it on the way
///
/// The copy is a store of its own with the same documents, ids and answers, without the free space. It
/// gets its name when it is complete and durable. Meanwhile other processes may read the store, and
/// none can write to it; a program that has it open for writing makes copies through the library.
///
/// Columns: documents, rows (of all tables), size_bytes (space the copy takes on disk).
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  resemblance backup seen.rsm -o backup/seen-monday.rsm")]
pub(crate) struct BackupArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// The file to make; it must not exist
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    format: FormatOptions,
}

pub(crate) fn backup(context: &Context, arguments: &BackupArguments) -> Result<Outcome> {
    must_not_exist(&arguments.output, "backup makes a new store")?;
    let snapshot = open_to_read(context, &arguments.store)?.snapshot()?;
    let report = back_up(context, arguments, &snapshot)?;
    let columns = ["documents", "rows", "size_bytes"].map(Column::new);
    let mut results = Results::new(arguments.format.layout(), columns.to_vec())?;
    results.row(&[
        Value::Count(report.documents),
        Value::Count(report.rows),
        Value::Count(report.size_bytes),
    ])?;
    results.finish()?;
    Ok(Outcome::Done)
}

fn back_up(
    context: &Context,
    arguments: &BackupArguments,
    snapshot: &Snapshot,
) -> Result<BackupReport> {
    let length = || std::fs::metadata(&arguments.store).ok().map(|m| m.len());
    let mut progress = ProgressDisplay::with_total_bytes("copying", context.messages.quiet, length);
    let mut stopped = None;
    let (target, options) = (&arguments.output, &context.store_options);
    let report = snapshot.backup_with(target, options, |event| {
        if let BackupEvent::Copied { rows, bytes, .. } = event {
            progress.update(rows, bytes);
        }
        match context.interrupt.check() {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                stopped = Some(failure.with_note("there is no copy"));
                ControlFlow::Break(())
            }
        }
    });
    progress.clear();
    // The library names the copy in its own words; damage is the store's.
    report.map_err(|error| stopped.unwrap_or_else(|| error.into()))
}
