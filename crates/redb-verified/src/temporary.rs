//! Files with temporary names. They are removed when they are dropped.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::engine_error::{EngineError, Result};
use crate::files::{FileSource, create_private};
use crate::leftovers::{remove_leftovers, temporary_name};
use crate::process::HomeProcess;

/// The number of names to try. If all are taken, something else is wrong.
const TRIES: u32 = 10_000;

/// A file with a temporary name. Dropping the value removes the file.
#[derive(Debug)]
pub struct TemporaryFile {
    path: PathBuf,
    is_ours: bool,
    files: FileSource,
    home: HomeProcess,
}

impl TemporaryFile {
    /// Creates a file in a folder under an unused name. `make` must fail if the name is taken.
    ///
    /// # Errors
    /// The errors of `make`.
    pub fn create<T, E>(
        folder: &Path,
        files: &FileSource,
        make: impl Fn(&Path) -> Result<T, E>,
    ) -> Result<(Self, T), E> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if files.0.are_shared() {
            remove_leftovers(folder);
        }
        // If the current folder is unknown, `make` fails in a relative one.
        let folder = files.0.lasting(folder).unwrap_or_else(|_| folder.into());
        let mut tries = 0;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(temporary_name(number));
            let is_taken = files.0.exists(&path).is_ok_and(|exists| exists);
            match make(&path) {
                Err(_) if is_taken && tries < TRIES => tries += 1,
                Err(error) => return Err(error),
                Ok(made) => {
                    let scratch = Self {
                        path,
                        is_ours: true,
                        files: files.clone(),
                        home: HomeProcess::current(),
                    };
                    return Ok((scratch, made));
                }
            }
        }
    }

    /// Returns the name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates an empty file for writing and reading. On systems that allow it, the file has no
    /// name.
    ///
    /// # Errors
    /// [`EngineError::Io`].
    pub fn create_file(folder: &Path) -> Result<(Self, File)> {
        let (mut scratch, file) = Self::create(folder, &FileSource::default(), |path| {
            create_private(path).map_err(|error| EngineError::naming("creating", path, error))
        })?;
        if cfg!(unix) {
            // Not even a killed process leaves the file behind.
            fs::remove_file(&scratch.path)
                .map_err(|error| EngineError::io("unlinking", &scratch.path, error))?;
            scratch.is_ours = false;
        }
        Ok((scratch, file))
    }

    /// Renames the file to `target`, unless that name is taken. Gives it the mode, owner and group of
    /// `source`, of which it is a copy, or the mode of a new file.
    ///
    /// # Errors
    /// [`EngineError::AlreadyExists`], [`EngineError::Forked`], [`EngineError::Io`].
    pub fn publish(mut self, target: &Path, source: Option<&Path>) -> Result<()> {
        if !self.home.is_current() {
            return Err(EngineError::Forked);
        }
        // Not every file system has modes, and a file that only its owner can read is better than
        // no file.
        let _ = self.files.0.set_mode(&self.path, source);
        self.files
            .0
            .publish(&self.path, target)
            .map_err(|error| EngineError::naming("naming", target, error))?;
        self.is_ours = false;
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if self.is_ours && self.home.is_current() {
            // No caller remains to receive the error.
            let _ = self.files.0.remove(&self.path);
        }
    }
}

/// Returns an error if the name is taken, even by a dangling link.
///
/// # Errors
/// [`EngineError::AlreadyExists`], [`EngineError::Io`].
pub fn must_not_exist(path: &Path, files: &FileSource) -> Result<()> {
    match files.0.exists(path) {
        Ok(true) => Err(EngineError::AlreadyExists { path: path.into() }),
        Ok(false) => Ok(()),
        Err(error) => Err(EngineError::io("looking for", path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn scratch(folder: &Path) -> TemporaryFile {
        let make = |path: &Path| fs::write(path, "mine");
        TemporaryFile::create(folder, &FileSource::default(), make)
            .unwrap()
            .0
    }

    #[test]
    fn temporary_file_is_renamed_or_removed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        drop(scratch(folder.path()));
        assert!(names(folder.path()).is_empty());
        scratch(folder.path()).publish(&target, None).unwrap();
        assert_eq!(names(folder.path()), ["target"]);
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
    }

    #[test]
    fn temporary_file_never_replaces_an_existing_one() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        fs::write(&target, "precious").unwrap();
        let refused = scratch(folder.path()).publish(&target, None);
        assert!(matches!(refused, Err(EngineError::AlreadyExists { .. })));
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        assert_eq!(names(folder.path()), ["target"]);
    }

    #[test]
    fn temporary_file_skips_existing_names() {
        let folder = tempfile::tempdir().unwrap();
        let files = FileSource::default();
        let make = |path: &Path| File::create_new(path);
        let first = TemporaryFile::create(folder.path(), &files, make).unwrap();
        let name = first.0.path().file_name().unwrap().to_str().unwrap();
        let (before, number) = name.rsplit_once('-').unwrap();
        // Other tests take numbers meanwhile.
        for taken in (number.parse::<u64>().unwrap() + 1..).take(100) {
            fs::write(folder.path().join(format!("{before}-{taken}")), "precious").unwrap();
        }
        let (file, _) = TemporaryFile::create(folder.path(), &files, make).unwrap();
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "");
        assert_eq!(names(folder.path()).len(), 102);
    }

    #[test]
    fn scratch_file_is_removed_when_dropped() {
        use std::io::{Read, Seek, Write};
        let folder = tempfile::tempdir().unwrap();
        let (scratch, mut file) = TemporaryFile::create_file(folder.path()).unwrap();
        file.write_all(b"text").unwrap();
        file.rewind().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        drop((file, scratch));
        assert!(names(folder.path()).is_empty());
    }
}
