//! Files under temporary names, which go when they are dropped.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::engine::FileSource;
use crate::engine::errors::io_error;
use crate::engine::files::create_private;
use crate::engine::leftovers::{remove_leftovers, temporary_name};
use crate::error::{Error, Result};
use crate::sync::HomeProcess;

/// So many names that are taken, and something else is wrong.
const TRIES: u32 = 10_000;

/// A file's name, and the file goes with it.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    path: PathBuf,
    is_ours: bool,
    files: FileSource,
    home: HomeProcess,
}

impl TemporaryFile {
    /// Makes a file in a folder under a name that nothing has. `make` must refuse a name that is
    /// taken, with [`Error::AlreadyExists`].
    pub(crate) fn create<T>(
        folder: &Path,
        files: &FileSource,
        make: impl Fn(&Path) -> Result<T>,
    ) -> Result<(Self, T)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if files.0.are_shared() {
            remove_leftovers(folder);
        }
        let mut tries = 0;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(temporary_name(number));
            match make(&path) {
                Err(Error::AlreadyExists { .. }) if tries < TRIES => tries += 1,
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

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// An empty file to write to and read from, without a name where a file can do without.
    pub(crate) fn create_file(folder: &Path) -> Result<(Self, File)> {
        let (mut scratch, file) = Self::create(folder, &FileSource::default(), |path| {
            let file = create_private(path);
            file.map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => Error::AlreadyExists { path: path.into() },
                _ => io_error("creating", path, error),
            })
        })?;
        if cfg!(unix) {
            // Not even a killed process leaves it behind.
            fs::remove_file(&scratch.path)
                .map_err(|error| io_error("unlinking", &scratch.path, error))?;
            scratch.is_ours = false;
        }
        Ok((scratch, file))
    }

    /// Gives the file its name, unless something has it, and with it the mode of a new file.
    pub(crate) fn publish(self, target: &Path) -> Result<()> {
        self.publish_with_mode(target, None)
    }

    /// The same, with the mode of the file that it is a copy of.
    pub(crate) fn publish_as_copy(self, target: &Path, source: &Path) -> Result<()> {
        self.publish_with_mode(target, Some(source))
    }

    fn publish_with_mode(mut self, target: &Path, source: Option<&Path>) -> Result<()> {
        if !self.home.is_current() {
            return Err(Error::Forked);
        }
        // Not every file system has modes, and a file that only its owner can read is better than none.
        let _ = self.files.0.set_mode(&self.path, source);
        let published = self.files.0.publish(&self.path, target);
        published.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Error::AlreadyExists {
                path: target.into(),
            },
            _ => io_error("naming", target, error),
        })?;
        self.is_ours = false;
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if self.is_ours && self.home.is_current() {
            // Nobody is left to be told.
            let _ = self.files.0.remove(&self.path);
        }
    }
}

/// An error if something has the name, a link that leads nowhere included.
pub(crate) fn must_not_exist(path: &Path, files: &FileSource) -> Result<()> {
    match files.0.exists(path) {
        Ok(true) => Err(Error::AlreadyExists { path: path.into() }),
        Ok(false) => Ok(()),
        Err(error) => Err(io_error("looking for", path, error)),
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
        let make = |path: &Path| fs::write(path, "mine").map_err(|e| io_error("making", path, e));
        TemporaryFile::create(folder, &FileSource::default(), make)
            .unwrap()
            .0
    }

    #[test]
    fn a_file_gets_its_name_or_goes() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        drop(scratch(folder.path()));
        assert!(names(folder.path()).is_empty());
        scratch(folder.path()).publish(&target).unwrap();
        assert_eq!(names(folder.path()), ["target"]);
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
    }

    #[test]
    fn what_has_the_name_stays() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        fs::write(&target, "precious").unwrap();
        let refused = scratch(folder.path()).publish(&target);
        assert!(matches!(refused, Err(Error::AlreadyExists { .. })));
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        assert_eq!(names(folder.path()), ["target"]);
    }

    #[test]
    fn taken_names_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let left = std::cell::Cell::new(3);
        let make = |path: &Path| {
            left.set(left.get() - 1);
            if left.get() > 0 {
                return Err(Error::AlreadyExists { path: path.into() });
            }
            Ok(())
        };
        TemporaryFile::create(folder.path(), &FileSource::default(), make).unwrap();
        assert_eq!(left.get(), 0);
    }

    #[test]
    fn a_file_for_reading_and_writing_leaves_nothing() {
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
