//! The verb `touch`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use resemblance::DocumentId;

use crate::failure::{Outcome, Result};
use crate::options::{parse_keys, parse_stamp};
use crate::output::escape::PrintedKey;
use crate::session::{Context, change_each};

/// Change the stamps of documents in a store
///
/// All keys are touched in one commit. Keys that the store does not have are reported; if there were any, the exit code
/// is 1.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance touch seen.rsm https://example.org/ https://example.net/
  resemblance touch seen.rsm --stamp 2026-01-31T08:00:00Z --escaped '\\#17'")]
pub(crate) struct TouchArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// Keys as bytes; after -- if one begins with -
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<OsString>,
    /// The stamp: now (seconds since 1970), a number, or a time such as 2026-01-31T08:00:00Z
    #[arg(long, value_name = "now|N|TIME", value_parser = parse_stamp, default_value = "now")]
    stamp: u64,
    /// The keys are given as results print them, with escapes, or as \#ID
    #[arg(short, long)]
    escaped: bool,
}

pub(crate) fn touch(context: &Context, arguments: &TouchArguments) -> Result<Outcome> {
    let keys = parse_keys(&arguments.keys, arguments.escaped)?;
    let stamp = arguments.stamp;
    let (touched, missing) =
        change_each(
            context,
            &arguments.store,
            &keys,
            |documents, key| match key {
                PrintedKey::Key(key) => Ok(documents.touch(key, stamp)?.is_some()),
                PrintedKey::Id(id) => documents.touch_id(DocumentId::new(*id), stamp),
            },
        )?;
    context.note(format!(
        "touched {touched} with stamp {stamp}, not found {missing}"
    ));
    Ok(Outcome::found(missing == 0))
}
