//! A store that goes away with the process.

use std::path::Path;

use resemblance::Store;
use tempfile::TempDir;

use super::building::temporary_name;
use super::context::Context;
use crate::failure::{Failure, Result};
use crate::output::scratch_builder;

/// A store in a temporary folder, removed when dropped.
pub(crate) struct ScratchStore {
    // in this order: the store is closed before its folder goes
    store: Store,
    _folder: Option<TempDir>,
}

impl ScratchStore {
    /// A store that `build` makes under the name it is given, for reading.
    pub(crate) fn build_unnamed<T>(
        context: &Context,
        build: impl FnOnce(&Path) -> Result<T>,
    ) -> Result<(Self, T)> {
        let name = temporary_name(&context.temp_dir);
        let folder = scratch_builder()
            .tempdir_in(&context.temp_dir)
            .map_err(|e| Failure::io(&name, &e))?;
        let path = folder.path().join("store.rsm");
        let built = build(&path)?;
        let store = context
            .store_options
            .open_read_only(&path)
            .map_err(|e| Failure::store(&name, e))?;
        let folder = if cfg!(unix) {
            folder.close().map_err(|e| Failure::io(&name, &e))?;
            None
        } else {
            Some(folder)
        };
        let scratch = Self {
            store,
            _folder: folder,
        };
        Ok((scratch, built))
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }
}
