//! A store that goes away with the process.

use std::path::Path;

use resemblance::{Error, Schema, Store, StoreOptions};
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
    /// In messages.
    name: String,
}

impl ScratchStore {
    /// An empty store that no one else will open. Where a file can lose its name while it is in
    /// use, it does so at once, so that not even a killed process leaves it behind.
    pub(crate) fn create_unnamed(
        context: &Context,
        schema: &Schema,
        options: &StoreOptions,
    ) -> Result<Self> {
        let made = Self::make(context, |path| {
            let store = options.create(path, schema.clone());
            let name = temporary_name(&context.temp_dir);
            Ok((store.map_err(|e| Failure::store(name, e))?, ()))
        })?;
        Ok(made.0)
    }

    /// A store that `build` makes under the name it is given, for reading.
    pub(crate) fn build_unnamed<T>(
        context: &Context,
        build: impl FnOnce(&Path) -> Result<T>,
    ) -> Result<(Self, T)> {
        let options = &context.store_options;
        Self::make(context, |path| {
            let built = build(path)?;
            let store = options.open_read_only(path);
            let name = temporary_name(&context.temp_dir);
            Ok((store.map_err(|e| Failure::store(name, e))?, built))
        })
    }

    fn make<T>(
        context: &Context,
        make: impl FnOnce(&Path) -> Result<(Store, T)>,
    ) -> Result<(Self, T)> {
        let name = temporary_name(&context.temp_dir);
        let folder = scratch_builder().tempdir_in(&context.temp_dir);
        let folder = folder.map_err(|e| Failure::io(&name, &e))?;
        let (store, made) = make(&folder.path().join("store.rsm"))?;
        let folder = if cfg!(unix) {
            folder.close().map_err(|e| Failure::io(&name, &e))?;
            None
        } else {
            Some(folder)
        };
        let scratch = Self {
            store,
            _folder: folder,
            name,
        };
        Ok((scratch, made))
    }

    /// A library error about this store, whose name the user does not know.
    pub(crate) fn failure(&self, error: Error) -> Failure {
        Failure::store(&self.name, error)
    }

    /// A library error about one document that was to go in.
    pub(crate) fn document_failure(&self, place: String, error: Error) -> Failure {
        Failure::document(&self.name, place, error)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }
}
