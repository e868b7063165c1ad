//! Files that exist under their final name only once they are complete.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use resemblance::{Error, Schema, Store, StoreOptions};
use tempfile::{Builder, NamedTempFile, TempPath};

use super::Context;
use super::failure::{Failure, Result};

/// What to do about a file that exists.
pub(crate) const FORCE: &str = "--force overwrites it";
const PREFIX: &str = ".resemblance-";

/// A store in a temporary file, removed when dropped.
pub(crate) struct ScratchStore {
    // in this order: the store is closed before its file goes
    store: Store,
    path: Option<TempPath>,
    /// In messages.
    name: String,
}

impl ScratchStore {
    /// A store that no one else will open. Where a file can lose its name while it is in use, it
    /// does so at once, so that not even a killed process leaves it behind.
    pub(crate) fn create_unnamed(context: &Context, schema: &Schema) -> Result<Self> {
        let mut scratch = Self::create(&context.temp_dir, schema, &context.store_options)?;
        if cfg!(unix)
            && let Some(path) = scratch.path.take()
        {
            let dir = context.temp_dir.display();
            path.close()
                .map_err(|e| Failure::io(format!("temporary store in {dir}"), &e))?;
        }
        Ok(scratch)
    }

    pub(crate) fn create(dir: &Path, schema: &Schema, options: &StoreOptions) -> Result<Self> {
        let name = format!("temporary store in {}", dir.display());
        let mut refused = None;
        let made = builder().make_in(dir, |path| {
            Store::create_with(path, schema.clone(), options).map_err(|error| {
                let is_taken = matches!(error, Error::AlreadyExists { .. });
                refused = Some(error);
                // a taken name is tried again with another
                io::Error::from(if is_taken {
                    io::ErrorKind::AlreadyExists
                } else {
                    io::ErrorKind::Other
                })
            })
        });
        match made {
            Ok(file) => {
                let (store, path) = file.into_parts();
                Ok(Self {
                    store,
                    path: Some(path),
                    name,
                })
            }
            Err(error) => Err(match refused {
                Some(refused) => Failure::store(name, refused),
                None => Failure::io(name, &error),
            }),
        }
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

    /// Closes the store and gives it its name, unless something has that name.
    pub(crate) fn persist(self, target: &Path) -> Result<()> {
        drop(self.store);
        match self.path {
            Some(path) => path
                .persist_noclobber(target)
                .map_err(|e| cannot_write(target, &e.error)),
            None => Ok(()),
        }
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
pub(crate) fn folder_in(dir: &Path) -> Result<tempfile::TempDir> {
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
