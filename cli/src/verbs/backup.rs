//! The verb `backup`.

use std::path::PathBuf;

use clap::Args;

use crate::failure::{Outcome, Result};
use crate::options::FormatOptions;
use crate::output::{Results, Value, must_be_new};
use crate::session::{Context, open_to_read};

/// Copy a store, and verify it on the way
///
/// The copy is an independent store with the same documents, ids and answers, and without the free space. It appears
/// under its name when it is complete and durable. Other processes may read and write the store meanwhile: the copy
/// contains exactly one commit.
///
/// Columns: documents, rows (of all tables), size_bytes (space the copy takes on disk).
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  resemblance backup seen.rsm -o backup/seen-monday.rsm")]
pub(crate) struct BackupArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// The file to create; it must not exist
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    format: FormatOptions,
}

pub(crate) fn backup(context: &Context, arguments: &BackupArguments) -> Result<Outcome> {
    must_be_new(
        &arguments.output,
        "backup never overwrites: give another name",
    )?;
    let snapshot = open_to_read(context, &arguments.store)?.snapshot()?;
    let backup = snapshot
        .backup(&arguments.output)
        .store(context.store_options.clone());
    let (done, stopped) = context.carry_out(backup);
    // The library names the copy in its own words; damage is the store's.
    let report = done.map_err(|error| match stopped {
        Some(signal) => signal.with_note("no copy was made"),
        None => error.into(),
    })?;
    let fields = [
        ("documents", Value::Count(report.documents)),
        ("rows", Value::Count(report.rows)),
        ("size_bytes", Value::Count(report.size_bytes)),
    ];
    Results::print_one(arguments.format.layout(), &fields)?;
    Ok(Outcome::Done)
}
