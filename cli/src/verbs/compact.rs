//! The verb `compact`.

use std::path::PathBuf;

use clap::Args;

use crate::failure::{Failure, Outcome, Result};
use crate::options::FormatOptions;
use crate::output::{Results, Value};
use crate::session::Context;

/// Make a store's file as small as it can be
///
/// Columns: size_before_bytes, size_after_bytes (space taken on disk). No other process can use the store meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  resemblance compact seen.rsm")]
pub(crate) struct CompactArguments {
    /// The store
    pub(crate) store: PathBuf,
    #[command(flatten)]
    format: FormatOptions,
}

pub(crate) fn compact(context: &Context, arguments: &CompactArguments) -> Result<Outcome> {
    let path = arguments.store.clone();
    let options = context.store_options.clone();
    let mut progress = context.progress("compacting");
    let notify = progress.reporter();
    let report = context.interrupt.while_working(&mut progress, move || {
        let compacted = options.compact(&path).on_progress(notify).run();
        compacted.map_err(|error| Failure::unfinished(path.display(), error))
    })?;
    let fields = [
        ("size_before_bytes", Value::Count(report.size_before_bytes)),
        ("size_after_bytes", Value::Count(report.size_after_bytes)),
    ];
    Results::print_one(arguments.format.layout(), &fields)?;
    Ok(Outcome::Done)
}
