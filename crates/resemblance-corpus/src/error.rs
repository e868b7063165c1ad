//! Errors that end the reading of a corpus.

use std::fmt;
use std::io;
use std::path::Path;

use crate::bad_document::{builds_in, io_reason};
use crate::input::Compression;

/// An error that ends the reading. (A single bad record can be skipped instead.)
#[derive(Debug)]
#[non_exhaustive]
pub enum CorpusError {
    /// The content is wrong.
    Bad {
        /// A description of the fault.
        reason: String,
        /// Advice, one sentence in each entry.
        advice: Vec<String>,
    },
    /// The system failed to read.
    Io {
        /// The action that failed, and why.
        reason: String,
        /// Advice, one sentence in each entry.
        advice: Vec<String>,
    },
}

/// Why remote bytes could not be read, as a complete message.
#[derive(Clone, Debug)]
pub(crate) struct RemoteError(String);

impl RemoteError {
    #[cfg(feature = "remote")]
    pub(crate) fn new(message: String) -> Self {
        Self(message)
    }
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RemoteError {}

impl CorpusError {
    /// Creates an error about content.
    pub fn bad(reason: impl Into<String>) -> Self {
        Self::Bad {
            reason: reason.into(),
            advice: Vec::new(),
        }
    }

    /// Creates an error of the system.
    pub(crate) fn io(reason: impl Into<String>) -> Self {
        Self::Io {
            reason: reason.into(),
            advice: Vec::new(),
        }
    }

    /// Returns true if the file or object does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { reason, .. } if reason.ends_with("does not exist"))
    }

    /// Returns the same error with advice on what to do about it.
    pub(crate) fn with_advice(mut self, sentence: impl Into<String>) -> Self {
        let (Self::Bad { advice, .. } | Self::Io { advice, .. }) = &mut self;
        advice.push(sentence.into());
        self
    }

    /// Creates the error for a file that could not be opened or examined.
    pub fn open(path: &Path, error: io::Error) -> Self {
        let shown = path.display();
        Self::io(match error.kind() {
            io::ErrorKind::NotFound if std::fs::symlink_metadata(path).is_ok() => {
                format!("{shown} is a link to a file that does not exist")
            }
            io::ErrorKind::NotFound => format!("{shown} does not exist"),
            _ => format!("cannot read {shown}: {}", io_reason(&error)),
        })
    }

    /// Creates the error for a file whose kind requires a feature that is not part of this build.
    pub fn requires(path: &Path, kind: &str, feature: &str) -> Self {
        Self::bad(format!(
            "{}: {kind} requires the feature `{feature}`, which is not part of this build",
            path.display()
        ))
        .with_advice(builds_in(feature))
    }

    /// Creates the error that ended a walk through a folder.
    pub(crate) fn walk(root: &Path, error: walkdir::Error) -> Self {
        let path = error.path().unwrap_or(root).to_path_buf();
        Self::open(&path, error.into())
    }

    /// Creates the error for a table that comes through a pipe and cannot be read from beginning to
    /// end.
    pub(crate) fn not_from_the_end(path: &Path, kind: &str) -> Self {
        let shown = path.display();
        Self::bad(format!(
            "{shown} is {kind}, which cannot be read from a pipe or a compressed file"
        ))
        .with_advice("write it to an uncompressed file, and give that")
    }

    /// Creates the error for a failure in the middle of a file. A decoder's own errors have no
    /// system error number.
    pub fn read(path: &Path, is_compressed: bool, error: &io::Error) -> Self {
        let inner = error.get_ref();
        if let Some(remote) = inner.and_then(|e| e.downcast_ref::<RemoteError>()) {
            return Self::io(remote.to_string());
        }
        let shown = path.display();
        if is_compressed && Compression::is_window_error(error) {
            Self::bad(format!(
                "{shown} was compressed with a window that takes more than half of --memory"
            ))
            .with_advice("raise --memory")
        } else if is_compressed && Compression::is_dictionary_error(error) {
            Self::bad(format!(
                "{shown} was compressed with a dictionary of Zstandard, which is not in the file"
            ))
            .with_advice("unpack it first, with zstd -d -D DICTIONARY")
        } else if is_compressed && error.raw_os_error().is_none() {
            Self::bad(format!("{shown} is damaged or truncated: {error}"))
        } else {
            Self::io(format!("cannot read {shown}: {}", io_reason(error)))
        }
    }
}

impl fmt::Display for CorpusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Bad { reason, advice } | Self::Io { reason, advice }) = self;
        f.write_str(reason)?;
        advice.iter().try_for_each(|advice| write!(f, "; {advice}"))
    }
}

impl std::error::Error for CorpusError {}
