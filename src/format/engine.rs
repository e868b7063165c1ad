//! Errors of the storage engine, turned into ours.

use crate::Error;

/// Any error of redb as one of ours; `?` cannot do it, for redb stays out of `error.rs`.
pub(crate) fn engine_error(error: impl Into<redb::Error>) -> Error {
    match error.into() {
        redb::Error::Corrupted(detail) => Error::corrupt("storage engine", detail),
        redb::Error::Io(source) => Error::Io {
            action: "reading or writing the store".into(),
            source,
        },
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

macro_rules! from_engine_errors {
    ($($kind:ident),*) => {
        $(impl From<redb::$kind> for Error {
            fn from(error: redb::$kind) -> Self {
                engine_error(error)
            }
        })*
    };
}

from_engine_errors!(
    CommitError,
    CompactionError,
    DatabaseError,
    StorageError,
    TableError,
    TransactionError
);
