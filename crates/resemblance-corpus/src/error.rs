//! Errors that end the reading of a corpus.

use std::fmt;
use std::io;
use std::path::Path;

use super::input::Compression;

/// An error that ends the reading, as opposed to one bad record, which can be skipped.
#[derive(Debug)]
pub enum CorpusError {
    /// The content is wrong.
    Bad(String),
    /// The system refused to read.
    Io(String),
}

/// The reason why remote bytes could not be read: a whole message.
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
    /// An error about content.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::Bad(message.into())
    }

    /// A file that could not be opened or looked at.
    pub fn open(path: &Path, error: io::Error) -> Self {
        let shown = path.display();
        Self::Io(match error.kind() {
            io::ErrorKind::NotFound if std::fs::symlink_metadata(path).is_ok() => {
                format!("{shown} is a link to a file that does not exist")
            }
            io::ErrorKind::NotFound => format!("{shown} does not exist"),
            _ => format!("cannot read {shown}: {error}"),
        })
    }

    /// Refuses a file that a feature reads which is not part of this build.
    pub fn requires(path: &Path, kind: &str, feature: &str) -> Self {
        Self::Bad(format!(
            "{}: {kind} requires the feature `{feature}`, which is not part of this build; cargo install --path cli \
             --features {feature} builds it in",
            path.display()
        ))
    }

    /// Reports why a walk through a folder ended.
    pub(crate) fn walk(root: &Path, error: walkdir::Error) -> Self {
        let path = error.path().unwrap_or(root).to_path_buf();
        Self::open(&path, error.into())
    }

    /// A table that is not read from its beginning to its end, where there is only a pipe.
    pub(crate) fn not_from_the_end(path: &Path, kind: &str) -> Self {
        let shown = path.display();
        Self::Bad(format!(
            "{shown} is {kind}, which is not read from a pipe or a compressed file, because it is not read \
             from the beginning to the end; write it to a file as it is and name that"
        ))
    }

    /// A failure in the middle of a file: a decoder's own errors carry no system error number.
    pub fn read(path: &Path, is_compressed: bool, error: &io::Error) -> Self {
        let inner = error.get_ref();
        if let Some(remote) = inner.and_then(|e| e.downcast_ref::<RemoteError>()) {
            return Self::Io(remote.to_string());
        }
        let shown = path.display();
        if is_compressed && Compression::is_window_error(error) {
            Self::Bad(format!(
                "{shown} was compressed with a window that takes more than half of --memory; raise that"
            ))
        } else if is_compressed && error.raw_os_error().is_none() {
            Self::Bad(format!("{shown} is damaged or cut short: {error}"))
        } else {
            Self::Io(format!("cannot read {shown}: {error}"))
        }
    }
}

impl fmt::Display for CorpusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Bad(message) | Self::Io(message)) = self;
        f.write_str(message)
    }
}

impl std::error::Error for CorpusError {}
