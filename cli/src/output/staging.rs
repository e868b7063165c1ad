//! Files that get their name when they are complete, and the names that may not be taken.

use std::fs::{File, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile, TempDir};

use crate::failure::{Failure, Result};
use resemblance_corpus::is_remote;

/// What to do about a file that exists.
pub(crate) const FORCE: &str = "--force overwrites it";
const PREFIX: &str = ".resemblance-";

/// Makes temporary files and folders whose names tell where they come from.
pub(crate) fn scratch_builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX);
    builder
}

/// An empty file next to `target` that its owner alone may read, and the permissions of any new file there.
pub(crate) fn file_beside(target: &Path) -> Result<(NamedTempFile, Permissions)> {
    must_be_local(target)?;
    let dir = parent(target);
    let made = || {
        // Only making a file tells what the process gives to new ones; it goes at once.
        let usual = scratch_builder().make_in(&dir, |path| File::create_new(path))?;
        let permissions = usual.as_file().metadata()?.permissions();
        Ok((scratch_builder().tempfile_in(&dir)?, permissions))
    };
    made().map_err(|e| cannot_write(target, &e))
}

/// A folder for files that will be moved into or next to `dir`.
pub(crate) fn folder_in(dir: &Path) -> Result<TempDir> {
    must_be_local(dir)?;
    let made = scratch_builder().tempdir_in(dir);
    made.map_err(|e| Failure::io(format!("cannot write to {}", dir.display()), &e))
}

/// Makes the names of files in a folder outlast a crash of the system, where a system can.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// The folder in which a path lies.
pub(crate) fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Where a path leads, whether or not anything is there: two paths that agree are one file.
pub(crate) fn canonical_path(path: &Path) -> Option<PathBuf> {
    let beside = || {
        Some(
            std::fs::canonicalize(parent(path))
                .ok()?
                .join(path.file_name()?),
        )
    };
    std::fs::canonicalize(path).ok().or_else(beside)
}

/// An error if a name is that of a place on a server, where nothing is written.
fn must_be_local(path: &Path) -> Result<()> {
    if is_remote(path) {
        return Err(Failure::usage(format!(
            "{} cannot be written to: outputs are local files; write one and copy it there",
            path.display()
        )));
    }
    Ok(())
}

/// An error if something has the name already.
pub(crate) fn must_not_exist(path: &Path, advice: &str) -> Result<()> {
    must_be_local(path)?;
    match std::fs::symlink_metadata(path) {
        Ok(_) => Err(Failure::refused(format!(
            "{} exists already; {advice}",
            path.display()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(cannot_write(path, &error)),
    }
}

/// An error if a folder on the way from `root` to `relative` below it is a link: what is written there
/// would be written elsewhere.
pub(crate) fn must_not_pass_links(root: &Path, relative: &Path) -> Result<()> {
    let mut path = root.to_path_buf();
    for part in parent(relative).components() {
        path.push(part);
        let metadata = std::fs::symlink_metadata(&path);
        if metadata.is_ok_and(|metadata| metadata.is_symlink()) {
            let message = format!(
                "{} is a link; nothing is written through it",
                path.display()
            );
            return Err(Failure::refused(message));
        }
    }
    Ok(())
}

pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::io(format!("cannot write {}", path.display()), error)
}
