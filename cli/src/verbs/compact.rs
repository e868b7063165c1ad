//! The verb `compact`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use resemblance::Store;

use crate::failure::{Failure, Outcome, Result};
use crate::options::FormatOptions;
use crate::output::{Results, Value};
use crate::session::Context;

/// Make a store's file as small as it can be
///
/// Columns: size_before_bytes, size_after_bytes (space taken on disk), length_before_bytes, length_after_bytes (of the
/// file, which is longer than its size on disk if it has holes). No other process can use the store meanwhile, so
/// --shared-writers can also change whether processes take turns in writing it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance compact seen.rsm
  resemblance compact seen.rsm --shared-writers on")]
pub(crate) struct CompactArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// Change whether several processes may take turns in writing the store (see create)
    #[arg(long, value_name = "WHETHER")]
    shared_writers: Option<Switch>,
    #[command(flatten)]
    format: FormatOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

pub(crate) fn compact(context: &Context, arguments: &CompactArguments) -> Result<Outcome> {
    let path = arguments.store.clone();
    let options = context.store_options.clone();
    let mut progress = context.progress("compacting");
    let notify = progress.reporter();
    let shared_writers = arguments.shared_writers.map(|switch| switch == Switch::On);
    let report = context.interrupt.while_working(&mut progress, move || {
        let failure = |error| Failure::unfinished(path.display(), error);
        let compaction = options.compact(&path).on_progress(notify);
        let report = compaction.run().map_err(failure)?;
        if let Some(are_shared) = shared_writers {
            let store = options.shared_writers(are_shared).open(&path);
            let _ = store.and_then(Store::close).map_err(failure)?;
        }
        Ok(report)
    })?;
    let fields = [
        ("size_before_bytes", Value::Count(report.size_before_bytes)),
        ("size_after_bytes", Value::Count(report.size_after_bytes)),
        (
            "length_before_bytes",
            Value::Count(report.length_before_bytes),
        ),
        (
            "length_after_bytes",
            Value::Count(report.length_after_bytes),
        ),
    ];
    Results::print_one(arguments.format.layout(), &fields)?;
    Ok(Outcome::Done)
}
