//! Clusters of stores that are built or rebanded.

use std::path::Path;
use std::sync::Arc;

use crate::engine;
use crate::error::Result;
use crate::invariant::OrBug;
use crate::options::StoreOptions;
use crate::state::{OpenStore, Version, open};
use crate::types::Watch;
use crate::write::{WriteTransaction, Writer};

/// Finds the clusters of a store, in one commit. No other handle may have the store open.
pub(super) fn link_clusters(
    path: &Path,
    options: &StoreOptions,
    watch: &mut Watch<'_>,
) -> Result<()> {
    let store = Arc::new(open(path, options)?);
    let mut transaction = WriteTransaction::begin(&store)?;
    transaction.change(|writer| writer.relink_clusters(watch))?;
    transaction.commit()?;
    let store = Arc::into_inner(store);
    store.or_bug("the only handle of a store")?.close()
}

/// Finds the clusters of a store again in a transaction that has left it in this version.
pub(super) fn relinked(
    store: OpenStore,
    write: engine::WriteTransaction,
    version: &Version,
    watch: &mut Watch<'_>,
) -> Result<(OpenStore, engine::WriteTransaction)> {
    let store = Arc::new(store);
    let mut writer = Writer::adopt(Arc::clone(&store), write, version)?;
    store
        .context
        .run_checked(|| writer.relink_clusters(watch))?;
    let write = writer.release()?;
    let store = Arc::into_inner(store);
    Ok((store.or_bug("the only handle of a store")?, write))
}
