//! The verb `touch`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use resemblance::DocumentId;

use crate::failure::{Failure, Outcome, Result};
use crate::options::{parse_key, parse_stamp};
use crate::output::escape::PrintedKey;
use crate::session::{Context, change_each, open_to_write};

/// Give documents of a store another stamp
///
/// All keys are touched in one commit. Keys that the store does not have are named; if there were any,
/// the exit code is 1.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance touch seen.rsm https://example.org/ https://example.net/
  resemblance touch seen.rsm --stamp 2026-01-31T08:00:00Z --escaped '\\#17'")]
pub(crate) struct TouchArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// Keys, as their bytes; after -- if one begins with -
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<OsString>,
    /// The stamp: now (seconds since 1970), a number, or a time such as 2026-01-31T08:00:00Z
    #[arg(long, value_name = "now|N|TIME", value_parser = parse_stamp, default_value = "now")]
    stamp: u64,
    /// The keys are given as results print them: with escapes, or as \#ID
    #[arg(short, long)]
    escaped: bool,
}

pub(crate) fn touch(context: &Context, arguments: &TouchArguments) -> Result<Outcome> {
    let parse = |key: &OsString| parse_key(key, arguments.escaped);
    let keys: Vec<_> = arguments.keys.iter().map(parse).collect::<Result<_>>()?;
    let store = open_to_write(context, &arguments.store, &context.store_options)?;
    let failure = |error| Failure::unfinished(arguments.store.display(), error);
    let mut transaction = store.begin_write().map_err(failure)?;
    let stamp = arguments.stamp;
    let (touched, missing) = change_each(context, &keys, |key| {
        let touched = match key {
            PrintedKey::Key(key) => transaction.touch(key, stamp).map(|id| id.is_some()),
            PrintedKey::Id(id) => transaction.touch_id(DocumentId::new(*id), stamp),
        };
        touched.map_err(failure)
    })?;
    transaction.commit().map_err(failure)?;
    context.note(format!(
        "touched {touched} with stamp {stamp}, not found {missing}"
    ));
    Ok(Outcome::found(missing == 0))
}
