//! The verb `remove`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use resemblance::DocumentId;

use crate::failure::{Outcome, Result};
use crate::options::parse_keys;
use crate::output::escape::PrintedKey;
use crate::session::{Context, change_each};

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
    let keys = parse_keys(&arguments.keys, arguments.escaped)?;
    let (removed, missing) =
        change_each(
            context,
            &arguments.store,
            &keys,
            |documents, key| match key {
                PrintedKey::Key(key) => Ok(documents.remove(key)?.is_some()),
                PrintedKey::Id(id) => documents.remove_id(DocumentId::new(*id)),
            },
        )?;
    context.note(format!("removed {removed}, not found {missing}"));
    Ok(Outcome::found(missing == 0))
}
