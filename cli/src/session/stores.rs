//! Opening stores, and changing their documents by key.

use std::path::Path;

use resemblance::{DocumentId, Record, Schema, Snapshot, Store, StoreOptions, WriteTransaction};

use super::context::Context;
use crate::failure::{Failure, Result};
use crate::output::Counted;
use crate::output::escape::{PrintedKey, printed};

/// Opens for reading, also while another process writes. A store that was not closed properly is read as its last
/// commit left it.
pub(crate) fn open_to_read(context: &Context, path: &Path) -> Result<Store> {
    let store = context.store_options.open_read_only(path)?;
    print_store(context, path, &store)?;
    Ok(store)
}

/// Opens a store that keeps clusters, to read it.
pub(crate) fn open_with_clusters(context: &Context, path: &Path) -> Result<Store> {
    let store = open_to_read(context, path)?;
    if store.schema().clusters().is_some() {
        return Ok(store);
    }
    let message = format!("{} keeps no clusters", path.display());
    let advice = "create a store with --clusters, and import an export of this one into it";
    Err(Failure::usage(message).with_note(advice))
}

/// Opens a store for writing, changes it, and closes it, which truncates a file that is longer than
/// its contents. Waits for another process that has it, until a signal arrives.
pub(crate) fn change_store<T>(
    context: &Context,
    path: &Path,
    options: &StoreOptions,
    change: impl FnOnce(&Store) -> Result<T>,
) -> Result<T> {
    let mut progress = context.progress("opening");
    let (options, file) = (options.clone(), path.to_path_buf());
    let open = move || Ok(options.open(file)?);
    let store = context.interrupt.while_working(&mut progress, open)?;
    print_store(context, path, &store)?;
    let changed = change(&store)?;
    // Nothing else of this process has the store open.
    let closed = store.close().map_err(|error| {
        let failure = Failure::store(path.display(), error);
        failure.with_note("closing the store failed, after all changes were committed")
    });
    let _ = closed?;
    Ok(changed)
}

/// Prints the opened store with -v.
fn print_store(context: &Context, path: &Path, store: &Store) -> Result<()> {
    if context.messages.verbose {
        let documents = store.snapshot()?.len();
        context.detail(format_args!(
            "{}: {}; {}",
            path.display(),
            Counted(documents, "document"),
            store.schema()
        ));
    }
    Ok(())
}

/// An error if texts cannot be sketched for this schema.
pub(crate) fn must_take_text(schema: &Schema) -> Result<()> {
    match (schema.text(), schema.vector()) {
        (_, Some(_)) => Err(Failure::usage(
            "the documents of the store have vectors, so a text alone cannot be compared",
        )
        .with_note("--corpus FILE reads documents with vectors, and --key K names a stored one")),
        (Some(_), None) => Ok(()),
        (None, None) => Err(Failure::usage(
            "the schema of the store has no rule for texts, so only programs can add to it or query it",
        )),
    }
}

/// Returns the document with this key or number.
pub(crate) fn find_document(snapshot: &Snapshot, key: &PrintedKey) -> Result<Option<Record>> {
    Ok(match key {
        PrintedKey::Key(key) => snapshot.get(key)?,
        PrintedKey::Id(id) => snapshot.get_id(DocumentId::new(*id))?,
    })
}

/// Changes the documents with these keys in one commit, one by one, until the run is interrupted. `change` returns
/// false for a key that the store does not have, which is named then. Returns how many were changed, and how many
/// were missing.
pub(crate) fn change_each(
    context: &Context,
    path: &Path,
    keys: &[PrintedKey],
    change: impl Fn(&mut WriteTransaction, &PrintedKey) -> resemblance::Result<bool>,
) -> Result<(u64, u64)> {
    change_store(context, path, &context.store_options, |store| {
        let failure = |error| Failure::unfinished(path.display(), error);
        let mut transaction = store.begin_write().map_err(failure)?;
        let (mut changed, mut missing) = (0, 0);
        for key in keys {
            context.interrupt.check()?;
            if change(&mut transaction, key).map_err(failure)? {
                changed += 1;
            } else {
                missing += 1;
                let key = printed(key);
                context.note(format!("no document has the key {key}"));
            }
        }
        transaction.commit().map_err(failure)?;
        Ok((changed, missing))
    })
}
