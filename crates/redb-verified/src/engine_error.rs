//! The error of the crate, and the errors that pass through the engine on their way to it.

use std::io::ErrorKind;
use std::panic::Location;
use std::path::{Path, PathBuf};

use crate::page_layout::PAGE_BYTES;

/// An error of a file. The variants differ in what the caller can do about them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// An invariant of this crate is broken, or a program panicked without a failure of the file before.
    #[error("internal error: {what} ({file}:{line}); please report this as a bug")]
    Bug {
        /// The statement that does not hold.
        what: String,
        /// The source file of the check.
        file: &'static str,
        /// Its line.
        line: u32,
    },
    /// A new file met one that exists. It was not touched.
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
    /// The file is something else. It was not touched.
    #[error("{} is not a file of verified pages: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The reason why it was refused.
        reason: String,
    },
    /// The pages of the file are laid out in a way that this release does not know. The file need
    /// not be damaged, and it was not touched.
    #[error("the pages are laid out in a way that this release does not know: {found}")]
    UnknownLayout {
        /// A description of what was found and what was expected.
        found: String,
    },
    /// The program was linked with a release of redb that lays out pages in a way that this crate does not
    /// know. No file was touched.
    #[error("this release of redb lays out pages in a way that this crate does not know: {detail}")]
    UntriedEngine {
        /// A description of the difference.
        detail: String,
    },
    /// The file is damaged.
    #[error("damaged: {place}: {detail}")]
    Corrupt {
        /// The page, or the part of the file. Pages begin with [`PAGE_PLACE`].
        place: String,
        /// A description of what was found there and what was expected.
        detail: String,
    },
    /// Another process, or another handle of this one, has the file open.
    #[error("{} is in use by {holder}", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
        /// The process that has it: its program and its number where the system shows them.
        holder: String,
    },
    /// A process has the file open that shares files in another way, because it was built with another release.
    #[error(
        "{} is open in a process that was built with another release, which shares files differently; \
         close it first",
        path.display()
    )]
    OtherProtocol {
        /// The file.
        path: PathBuf,
    },
    /// The file system has no locks. Nothing was written.
    #[error("{} cannot be locked: its file system has no locks", path.display())]
    LocksUnsupported {
        /// The file.
        path: PathBuf,
    },
    /// The file system locks no ranges of bytes. The file is opened for one process then.
    #[doc(hidden)]
    #[error("the file system locks no ranges of bytes")]
    RangeLocksUnsupported,
    /// The file was opened in another process, from which this one was forked.
    #[error("the file was opened before a fork, in another process")]
    Forked,
    /// The file was not closed properly, and must be opened for writing before it can be read.
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
    /// The operating system refused an operation on a file.
    #[error("{action}: {source}")]
    Io {
        /// A description of the action that failed, with the file's name where it is known.
        action: String,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
    /// redb reported an error that has no variant here.
    #[error("storage: {0}")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A result with an [`EngineError`].
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// The prefix of the places of damaged pages in [`EngineError::Corrupt`].
pub const PAGE_PLACE: &str = "page at byte ";

impl EngineError {
    /// The error of a broken invariant, at the line of the caller.
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

    /// Returns the error of giving a file a name, such as "creating".
    pub(crate) fn naming(action: &str, path: &Path, source: std::io::Error) -> Self {
        match source.kind() {
            ErrorKind::AlreadyExists => Self::AlreadyExists { path: path.into() },
            _ => Self::io(action, path, source),
        }
    }

    /// Returns the error of opening a file that must be there.
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

    /// Returns the error of a file that another process has; the one who waits for it finds out which.
    pub fn locked(path: &Path) -> Self {
        Self::Locked {
            path: path.into(),
            holder: "another process or handle".to_owned(),
        }
    }

    /// Wraps an error for its way through redb, behind which it is taken out of [`std::io::Error`] again.
    pub(crate) fn for_redb(self) -> std::io::Error {
        let kind = match self {
            Self::Corrupt { .. } | Self::UnknownLayout { .. } => ErrorKind::InvalidData,
            Self::UntriedEngine { .. } => ErrorKind::Unsupported,
            _ => ErrorKind::Other,
        };
        std::io::Error::new(kind, self)
    }

    /// Returns an error of redb that came of opening a file.
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

/// Refuses a file with partial pages behind the head, before anything is read or written: verifying
/// it would find damage where there is none.
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
