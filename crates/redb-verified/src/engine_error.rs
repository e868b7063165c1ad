//! The error of the crate, and the errors that the engine passes on to it.

use std::io::ErrorKind;
use std::panic::Location;
use std::path::{Path, PathBuf};

use crate::page_layout::PAGE_BYTES;

/// An error of a file. Variants are grouped by what the caller can do about them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A broken invariant of this crate, or a panic without an earlier failure of the file. Please
    /// report it.
    #[error("internal error: {what} ({file}:{line}); please report this as a bug")]
    Bug {
        /// The condition that is broken.
        what: String,
        /// The source file of the check.
        file: &'static str,
        /// Its line.
        line: u32,
    },
    /// A file with this name exists, so none was created. The existing file is unchanged.
    #[error("{} already exists", path.display())]
    AlreadyExists {
        /// The file.
        path: PathBuf,
    },
    /// The file does not exist. Opening never creates one.
    #[error("{} does not exist", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The file is not of this kind. It is unchanged.
    #[error("{} is not a file of verified pages: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Why the file was refused.
        reason: String,
    },
    /// The pages of the file have a layout that this release does not know. The file may be intact.
    /// It is unchanged.
    #[error("the pages are laid out in a way that this release does not know: {found}")]
    UnknownLayout {
        /// A description of what was found and what was expected.
        found: String,
    },
    /// The program is linked with a release of redb whose page layout this crate does not know. No
    /// file was changed.
    #[error("this release of redb lays out pages in a way that this crate does not know: {detail}")]
    UntriedEngine {
        /// A description of the difference.
        detail: String,
    },
    /// The file is damaged.
    #[error("damaged: {place}: {detail}")]
    Corrupt {
        /// The damaged page or part of the file. For a page it begins with [`PAGE_PLACE`].
        place: String,
        /// A description of what was found there and what was expected.
        detail: String,
    },
    /// Another process, or another handle of this one, has the file open.
    #[error("{} is in use by {holder}", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
        /// The process that has the file open: its program and process number, if the system shows
        /// them.
        holder: String,
    },
    /// Another process that was built with another release has the file open, and shares files in a
    /// different way.
    #[error(
        "{} is open in a process that was built with another release, which shares files differently; \
         close it first",
        path.display()
    )]
    OtherProtocol {
        /// The file.
        path: PathBuf,
    },
    /// The file system does not support locks. Nothing was written.
    #[error("{} cannot be locked: its file system has no locks", path.display())]
    LocksUnsupported {
        /// The file.
        path: PathBuf,
    },
    /// The file system cannot lock ranges of bytes. Only one process can then open the file.
    #[doc(hidden)]
    #[error("the file system locks no ranges of bytes")]
    RangeLocksUnsupported,
    /// The file was opened in another process, of which this one is a fork.
    #[error("the file was opened before a fork, in another process")]
    Forked,
    /// The file was not closed properly. Open it for writing before reading it.
    #[error("{} was not closed properly; open it once for writing, which repairs it", path.display())]
    NeedsRecovery {
        /// The file.
        path: PathBuf,
    },
    /// The file was opened for reading only.
    #[error("the file was opened read-only")]
    ReadOnly,
    /// An earlier failure closed the file. Open it again.
    #[error("the file must be opened again: {reason}")]
    Closed {
        /// The earlier failure.
        reason: String,
    },
    /// The operating system reported an error.
    #[error("{action}: {source}")]
    Io {
        /// A description of the action that failed, with the file's name where it is known.
        action: String,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// An error of redb that has no variant here.
    #[error("storage: {0}")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A result whose error is [`EngineError`].
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// The prefix of the places of damaged pages in [`EngineError::Corrupt`].
pub const PAGE_PLACE: &str = "page at byte ";

impl EngineError {
    /// Returns the error of a broken invariant, with the line of the caller.
    #[track_caller]
    pub(crate) fn bug(what: impl Into<String>) -> Self {
        Self::bug_at(what, Location::caller())
    }

    pub(crate) fn bug_at(what: impl Into<String>, place: &Location<'static>) -> Self {
        Self::Bug {
            what: what.into(),
            file: place.file(),
            line: place.line(),
        }
    }

    pub(crate) fn corrupt(place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Corrupt {
            place: place.into(),
            detail: detail.into(),
        }
    }

    /// Returns the error of an operation on a file, such as "reading".
    pub fn io(action: &str, path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            action: format!("{action} {}", path.display()),
            source,
        }
    }

    /// Returns the error of an operation on a file's name, such as "creating".
    pub(crate) fn naming(action: &str, path: &Path, source: std::io::Error) -> Self {
        match source.kind() {
            ErrorKind::AlreadyExists => Self::AlreadyExists { path: path.into() },
            _ => Self::io(action, path, source),
        }
    }

    /// Returns the error of opening a file that should exist.
    pub(crate) fn opening(path: &Path, source: std::io::Error) -> Self {
        match source.kind() {
            ErrorKind::NotFound => Self::NotFound { path: path.into() },
            ErrorKind::IsADirectory => Self::foreign(path, "it is not a regular file"),
            _ => Self::io("opening", path, source),
        }
    }

    pub(crate) fn foreign(path: &Path, reason: impl Into<String>) -> Self {
        Self::Foreign {
            path: path.into(),
            reason: reason.into(),
        }
    }

    /// Returns the error for a file that another process has open. The waiting code finds out which
    /// process it is.
    pub fn locked(path: &Path) -> Self {
        Self::Locked {
            path: path.into(),
            holder: "another process or handle".to_owned(),
        }
    }

    /// Wraps an error so that it can pass through redb as a [`std::io::Error`] and be unwrapped
    /// afterwards.
    pub(crate) fn for_redb(self) -> std::io::Error {
        let kind = match self {
            Self::Corrupt { .. } | Self::UnknownLayout { .. } => ErrorKind::InvalidData,
            Self::UntriedEngine { .. } => ErrorKind::Unsupported,
            _ => ErrorKind::Other,
        };
        std::io::Error::new(kind, self)
    }

    /// Converts an error that redb returned when it opened a file.
    pub(crate) fn opening_in_redb(path: &Path, error: redb::DatabaseError) -> Self {
        match error {
            redb::DatabaseError::DatabaseAlreadyOpen => Self::locked(path),
            redb::DatabaseError::LockProtocolMismatch => Self::OtherProtocol { path: path.into() },
            redb::DatabaseError::RepairAborted => Self::NeedsRecovery { path: path.into() },
            redb::DatabaseError::UpgradeRequired(version) => {
                Self::foreign(path, format!("its pages have the old layout {version}"))
            }
            redb::DatabaseError::Storage(redb::StorageError::Unsupported) => {
                Self::RangeLocksUnsupported
            }
            redb::DatabaseError::Storage(redb::StorageError::Io(error)) => {
                error.downcast().unwrap_or_else(|error| match error.kind() {
                    ErrorKind::InvalidData => {
                        Self::corrupt(path.display().to_string(), error.to_string())
                    }
                    _ => Self::io("opening", path, error),
                })
            }
            error => error.into(),
        }
    }
}

impl From<redb::Error> for EngineError {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Corrupted(detail) => Self::corrupt("storage engine", detail),
            redb::Error::Io(error) => error.downcast().unwrap_or_else(|source| Self::Io {
                action: "reading or writing the store".into(),
                source,
            }),
            error @ (redb::Error::TableDoesNotExist(_)
            | redb::Error::TableTypeMismatch { .. }
            | redb::Error::TypeDefinitionChanged { .. }) => {
                Self::corrupt("the tables of the store", error.to_string())
            }
            redb::Error::PreviousIo => Self::Closed {
                reason: "an earlier read or write of the file failed".into(),
            },
            other => Self::Storage(Box::new(other)),
        }
    }
}

macro_rules! from_errors_of_redb {
    ($($error:ident),+) => {$(
        impl From<redb::$error> for EngineError {
            fn from(error: redb::$error) -> Self {
                redb::Error::from(error).into()
            }
        }
    )+};
}

from_errors_of_redb!(
    StorageError,
    TableError,
    TransactionError,
    CommitError,
    CursorError,
    DatabaseError,
    CompactionError
);

pub(crate) fn damaged(offset: u64, detail: &'static str) -> std::io::Error {
    EngineError::corrupt(format!("{PAGE_PLACE}{offset}"), detail).for_redb()
}

/// Refuses a file whose length after the head is not a whole number of pages, before anything is
/// read or written. Verification would report damage where there is none.
pub(crate) fn refuse_partial_pages(
    offset: u64,
    length: usize,
    detail: &'static str,
) -> std::io::Result<()> {
    let page = PAGE_BYTES as u64;
    if offset >= page && offset.is_multiple_of(page) && length.is_multiple_of(PAGE_BYTES) {
        return Ok(());
    }
    let detail = detail.into();
    Err(EngineError::UntriedEngine { detail }.for_redb())
}
