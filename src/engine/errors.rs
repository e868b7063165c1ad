//! Errors of the storage engine, turned into ours.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use crate::error::{Error, Result};

use super::files::NoLocks;
use super::layout::UnknownLayout;
use super::page_layout::PAGE_BYTES;

/// A page, or the head of the file, that is not what it must be; inside of [`std::io::Error`].
#[derive(Debug)]
pub(super) struct DamagedPage {
    pub(super) offset: u64,
    pub(crate) detail: &'static str,
}

pub(super) fn damaged(offset: u64, detail: &'static str) -> std::io::Error {
    std::io::Error::new(ErrorKind::InvalidData, DamagedPage { offset, detail })
}

/// How the places of damaged pages begin.
const PAGE: &str = "page at byte ";

impl DamagedPage {
    fn place(&self) -> String {
        format!("{PAGE}{}", self.offset)
    }
}

impl fmt::Display for DamagedPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.detail)
    }
}

impl std::error::Error for DamagedPage {}

/// An access to the file that known releases of the engine do not make; inside of [`std::io::Error`].
#[derive(Debug)]
struct UnknownAccess {
    detail: &'static str,
}

impl fmt::Display for UnknownAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.detail)
    }
}

impl std::error::Error for UnknownAccess {}

/// An access to the file from another process than the one that opened it; inside of
/// [`std::io::Error`].
#[derive(Debug)]
pub(super) struct ForkedAccess;

impl fmt::Display for ForkedAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the file was opened in another process")
    }
}

impl std::error::Error for ForkedAccess {}

/// Refuses what is not whole pages behind the head, before anything is read or written: to verify it
/// would be to find damage where there is none.
pub(super) fn refuse_partial_pages(
    offset: u64,
    length: usize,
    detail: &'static str,
) -> std::io::Result<()> {
    let page = PAGE_BYTES as u64;
    if offset >= page && offset.is_multiple_of(page) && length.is_multiple_of(PAGE_BYTES) {
        return Ok(());
    }
    let access = UnknownAccess { detail };
    Err(std::io::Error::new(ErrorKind::Unsupported, access))
}

impl From<UnknownLayout> for Error {
    fn from(unknown: UnknownLayout) -> Self {
        Self::UnknownLayout {
            found: unknown.found,
        }
    }
}

impl From<UnknownLayout> for std::io::Error {
    fn from(unknown: UnknownLayout) -> Self {
        Self::new(ErrorKind::InvalidData, unknown)
    }
}

/// Returns our error inside of one that the verification of pages gave the engine; `None` if it is
/// another's.
pub(super) fn page_error(error: &std::io::Error) -> Option<Error> {
    let inner = error.get_ref()?;
    if let Some(unknown) = inner.downcast_ref::<UnknownLayout>() {
        return Some(unknown.clone().into());
    }
    if let Some(access) = inner.downcast_ref::<UnknownAccess>() {
        return Some(Error::UntriedEngine {
            detail: access.detail.into(),
        });
    }
    if inner.is::<ForkedAccess>() {
        return Some(Error::Forked);
    }
    let page = inner.downcast_ref::<DamagedPage>()?;
    Some(Error::corrupt(page.place(), page.detail))
}

/// Returns true if an error is about a damaged page.
pub(crate) fn is_of_page(error: &Error) -> bool {
    matches!(error, Error::Corrupt { place, .. } if place.starts_with(PAGE))
}

/// Results of redb as ours. A `From` would make redb, and its version, a part of the public interface.
pub(crate) trait EngineResult<T> {
    fn engine(self) -> Result<T>;
}

impl<T, E: Into<redb::Error>> EngineResult<T> for std::result::Result<T, E> {
    fn engine(self) -> Result<T> {
        self.map_err(engine_error)
    }
}

/// Returns an error of redb as one of ours.
pub(crate) fn engine_error(error: impl Into<redb::Error>) -> Error {
    match error.into() {
        redb::Error::Corrupted(detail) => Error::corrupt("storage engine", detail),
        redb::Error::Io(source) => page_error(&source).unwrap_or(Error::Io {
            action: "reading or writing the store".into(),
            source,
        }),
        error @ (redb::Error::TableDoesNotExist(_)
        | redb::Error::TableTypeMismatch { .. }
        | redb::Error::TypeDefinitionChanged { .. }) => {
            Error::corrupt("the tables of the store", error.to_string())
        }
        redb::Error::PreviousIo => Error::Closed {
            reason: "an earlier read or write of the file failed".into(),
        },
        other => Error::Storage(Box::new(other)),
    }
}

pub(super) fn is_without_locks(error: &std::io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<NoLocks>())
}

pub(super) fn open_error(path: &Path, error: redb::DatabaseError) -> Error {
    match error {
        redb::DatabaseError::DatabaseAlreadyOpen => Error::Locked { path: path.into() },
        redb::DatabaseError::UpgradeRequired(version) => Error::NotAStore {
            path: path.into(),
            reason: format!("its pages have the old layout {version}"),
        },
        redb::DatabaseError::Storage(redb::StorageError::Io(error)) => {
            if is_without_locks(&error) {
                return Error::LocksUnsupported { path: path.into() };
            }
            if let Some(damage) = page_error(&error) {
                return damage;
            }
            if error.kind() == ErrorKind::InvalidData {
                return Error::corrupt(path.display().to_string(), error.to_string());
            }
            io_error("opening", path, error)
        }
        error => engine_error(error),
    }
}

pub(crate) fn io_error(action: &str, path: &Path, source: std::io::Error) -> Error {
    Error::Io {
        action: format!("{action} {}", path.display()),
        source,
    }
}
