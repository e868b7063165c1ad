//! The verb `remove`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use resemblance::DocumentId;

use crate::failure::{Failure, Outcome, Result};
use crate::options::parse_key;
use crate::output::escape::PrintedKey;
use crate::session::{Context, change_each, open_to_write};

/// Remove documents from a store
///
/// All keys are removed in one commit. Keys that the store does not have are named; if there were
/// any, the exit code is 1.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance remove seen.rsm https://example.org/ https://example.net/
  resemblance remove seen.rsm --escaped '\\#17'")]
pub(crate) struct RemoveArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// Keys, as their bytes; after -- if one begins with -
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<OsString>,
    /// The keys are given as results print them: with escapes, or as \#ID
    #[arg(short, long)]
    escaped: bool,
}

pub(crate) fn remove(context: &Context, arguments: &RemoveArguments) -> Result<Outcome> {
    let parse = |key: &OsString| parse_key(key, arguments.escaped);
    let keys: Vec<_> = arguments.keys.iter().map(parse).collect::<Result<_>>()?;
    let store = open_to_write(context, &arguments.store, &context.store_options)?;
    let failure = |error| Failure::unfinished(arguments.store.display(), error);
    let mut transaction = store.begin_write().map_err(failure)?;
    let (removed, missing) = change_each(context, &keys, |key| {
        let removed = match key {
            PrintedKey::Key(key) => transaction.remove(key).map(|id| id.is_some()),
            PrintedKey::Id(id) => transaction.remove_id(DocumentId::new(*id)),
        };
        removed.map_err(failure)
    })?;
    transaction.commit().map_err(failure)?;
    context.note(format!("removed {removed}, not found {missing}"));
    Ok(Outcome::found(missing == 0))
}
