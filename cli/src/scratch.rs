//! Files that exist under their final name only once they are complete.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use resemblance::{Error, Schema, Store, StoreOptions};
use tempfile::{Builder, NamedTempFile, TempDir};

use super::Context;
use super::building::temporary_name;
use super::failure::{Failure, Result};

/// What to do about a file that exists.
pub(crate) const FORCE: &str = "--force overwrites it";
const PREFIX: &str = ".resemblance-";

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
            let store = Store::create_with(path, schema.clone(), options);
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
            let store = Store::open_read_only_with(path, options);
            let name = temporary_name(&context.temp_dir);
            Ok((store.map_err(|e| Failure::store(name, e))?, built))
        })
    }

    fn make<T>(
        context: &Context,
        make: impl FnOnce(&Path) -> Result<(Store, T)>,
    ) -> Result<(Self, T)> {
        let name = temporary_name(&context.temp_dir);
        let folder = builder().tempdir_in(&context.temp_dir);
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

fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX);
    builder
}

/// An empty file next to `target`, with the permissions of any new file.
pub(crate) fn file_beside(target: &Path) -> Result<NamedTempFile<File>> {
    let dir = parent(target);
    let made = builder().make_in(&dir, |path| File::create_new(path));
    made.map_err(|e| cannot_write(target, &e))
}

/// A folder for files that will be moved into or next to `dir`.
pub(crate) fn folder_in(dir: &Path) -> Result<TempDir> {
    let made = builder().tempdir_in(dir);
    made.map_err(|e| Failure::io(format!("cannot write to {}", dir.display()), &e))
}

/// The folder in which a path lies.
pub(crate) fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Where a path leads, whether or not anything is there: two paths that agree are one file.
pub(crate) fn place(path: &Path) -> Option<PathBuf> {
    let beside = || {
        Some(
            std::fs::canonicalize(parent(path))
                .ok()?
                .join(path.file_name()?),
        )
    };
    std::fs::canonicalize(path).ok().or_else(beside)
}

/// An error if something has the name already.
pub(crate) fn must_not_exist(path: &Path, advice: &str) -> Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Err(Failure::Io(format!(
            "{} exists already; {advice}",
            path.display()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(cannot_write(path, &error)),
    }
}

pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::io(format!("cannot write {}", path.display()), error)
}
