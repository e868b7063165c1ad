//! The verb `remove`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use resemblance::{DocumentId, Filter, Store};

use crate::failure::{Failure, Outcome, Result};
use crate::options::{parse_key, parse_keys, read_keys};
use crate::output::Counted;
use crate::output::escape::PrintedKey;
use crate::session::{Context, change_each, change_store, open_to_read};

/// Remove documents from a store
///
/// All keys are removed in one commit. Keys that the store does not have are reported; if there were any, the exit code
/// is 1. With --prefix it is 1 if no key has the prefix.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance remove seen.rsm https://example.org/ https://example.net/
  resemblance remove seen.rsm --prefix https://example.org/
  resemblance list seen.rsm --newer-than 1h --no-header | cut -f1 | resemblance remove seen.rsm --escaped --from -
  resemblance remove seen.rsm --escaped '\\#17'")]
pub(crate) struct RemoveArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// Keys as bytes; after -- if one begins with -
    #[arg(
        required_unless_present_any = ["prefix", "from"],
        conflicts_with = "prefix",
        value_name = "KEY"
    )]
    keys: Vec<OsString>,
    /// Also remove the documents with the keys in this file, one per line; - is standard input. Only with --escaped is an
    /// empty line a key
    #[arg(long, value_name = "FILE", conflicts_with = "prefix")]
    from: Option<PathBuf>,
    /// The keys, or the prefix, are given as results print them, with escapes; keys also as \#ID
    #[arg(short, long)]
    escaped: bool,
    /// Remove all documents whose keys begin with these bytes
    #[arg(long, value_name = "PREFIX", allow_hyphen_values = true)]
    prefix: Option<OsString>,
    /// With --prefix: remove nothing, and print how many documents would be removed
    #[arg(long, requires = "prefix", conflicts_with = "keys")]
    dry_run: bool,
    /// With --prefix: remove the documents even if they are more than nine tenths of the store
    #[arg(long, requires = "prefix", conflicts_with = "keys")]
    force: bool,
}

pub(crate) fn remove(context: &Context, arguments: &RemoveArguments) -> Result<Outcome> {
    if let Some(prefix) = &arguments.prefix {
        return remove_prefix(context, arguments, prefix);
    }
    let mut keys = parse_keys(&arguments.keys, arguments.escaped)?;
    if let Some(path) = &arguments.from {
        keys.extend(read_keys(path, arguments.escaped)?);
    }
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

fn remove_prefix(
    context: &Context,
    arguments: &RemoveArguments,
    prefix: &OsString,
) -> Result<Outcome> {
    let prefix = match parse_key(prefix, arguments.escaped)? {
        PrintedKey::Key(prefix) if !prefix.is_empty() => prefix,
        found => {
            let found = crate::output::escape::printed(&found);
            return Err(Failure::usage(format!(
                "--prefix: found {found:?}, expected the first bytes of keys"
            )));
        }
    };
    if arguments.dry_run {
        let store = open_to_read(context, &arguments.store)?;
        let found = ids_below(context, arguments, &store, prefix)?.len();
        let counted = Counted(found as u64, "document");
        context.note(format!("a dry run: {counted} would be removed"));
        return Ok(Outcome::found(found > 0));
    }
    let options = &context.store_options;
    let removed = change_store(context, &arguments.store, options, |store| {
        let failure = |error| Failure::unfinished(arguments.store.display(), error);
        let ids = ids_below(context, arguments, store, prefix)?;
        let mut transaction = store.begin_write().map_err(failure)?;
        for id in &ids {
            context.interrupt.check()?;
            transaction.remove_id(*id).map_err(failure)?;
        }
        transaction.commit().map_err(failure)?;
        Ok(ids.len())
    })?;
    context.note(format!("removed {removed}"));
    Ok(Outcome::found(removed > 0))
}

/// The documents whose keys begin so. An error if they are nearly all that there are.
fn ids_below(
    context: &Context,
    arguments: &RemoveArguments,
    store: &Store,
    prefix: Vec<u8>,
) -> Result<Vec<DocumentId>> {
    let snapshot = store.snapshot()?;
    let mut ids = Vec::new();
    for record in snapshot.iter().passing(Filter::all().key_prefix(prefix)) {
        context.interrupt.check()?;
        ids.push(record?.id());
    }
    let (found, documents) = (ids.len() as u64, snapshot.len());
    let are_most = u128::from(found) * 10 > u128::from(documents) * 9;
    if are_most && !arguments.force {
        let message = format!(
            "--prefix would remove {found} of {}, more than nine tenths",
            Counted(documents, "document")
        );
        if !arguments.dry_run {
            return Err(Failure::usage(message).with_note("--force removes them anyway"));
        }
        context.note(format!(
            "warning: {message}; without --dry-run this requires --force"
        ));
    }
    Ok(ids)
}
