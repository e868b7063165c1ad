//! The verb `compact`.

use std::path::PathBuf;

use clap::Args;
use resemblance::Store;

use super::Context;
use super::arguments::FormatOptions;
use super::failure::{Failure, Outcome, Result};
use super::progress::Progress;
use super::results::{Column, Results, Value};

/// Make a store's file as small as it can be
///
/// Columns: size_before_bytes, size_after_bytes (space taken on disk). Nothing else can use the
/// store meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  resemblance compact seen.rsm")]
pub(crate) struct Arguments {
    /// The store
    pub(crate) store: PathBuf,
    #[command(flatten)]
    format: FormatOptions,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<Outcome> {
    let path = arguments.store.clone();
    let options = context.store_options.clone();
    let mut progress = Progress::new("compacting", context.messages.quiet);
    let report = context.interrupt.while_working(&mut progress, move || {
        Store::compact_with(&path, &options)
            .map_err(|error| Failure::unfinished(path.display(), error))
    })?;
    let columns = vec![
        Column::new("size_before_bytes"),
        Column::new("size_after_bytes"),
    ];
    let mut results = Results::new(&arguments.format, columns)?;
    results.row(&[
        Value::Count(report.size_before_bytes),
        Value::Count(report.size_after_bytes),
    ])?;
    results.finish()?;
    Ok(Outcome::Done)
}
