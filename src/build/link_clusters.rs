//! Clusters of stores that are built or rebanded: links the documents of a new store, and refuses
//! changes after which other documents would be near.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::invariant::OrBug;
use crate::options::StoreOptions;
use crate::state::open;
use crate::types::Watch;
use crate::write::WriteTransaction;
use resemblance_sketch::schema::{Rebanding, Schema};

/// Enters all documents of a store into clusters, in one commit. No other handle may have the store
/// open, and it must have no clusters yet.
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

/// Returns a schema with other bands or tables.
///
/// # Errors
/// [`Error::InvalidParameter`] if the change could make other documents near, and with them the
/// clusters that the store keeps.
pub(super) fn rebanded_schema(old: &Schema, rebanding: &Rebanding) -> Result<Schema> {
    let new = old.rebanded(rebanding)?;
    let keeps_near = old.minhash() == new.minhash()
        && old.simhash() == new.simhash()
        && old.is_exact() == new.is_exact();
    if old.clusters().is_none() || keeps_near {
        return Ok(new);
    }
    let found = "other bands, tables or sets for a store that keeps clusters";
    let expected = "none: export the store, create one with the new schema, and import the stream; \
                    the clusters then have new ids";
    Err(Error::invalid("rebanding", found, expected))
}
