//! Opening databases, names in SQL, and what SQLite says as the tool says it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use crate::error::CorpusError;
use crate::settings::SourceKind;
use crate::source::CorpusSource;

/// How long another program that has the database locked is waited for.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection, and the name of the file in messages.
pub(super) struct Database {
    pub(super) connection: Connection,
    pub(super) name: PathBuf,
}

impl Database {
    /// Opens the database of a source, which must lie in a file.
    pub(super) fn open(source: &CorpusSource, may_write: bool) -> Result<Self, CorpusError> {
        let name = source.name().into_owned();
        let path = source
            .path()
            .filter(|path| std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()));
        let Some(path) = path else {
            let kind = SourceKind::Sqlite.name();
            return Err(CorpusError::not_from_the_end(&name, kind));
        };
        // SQLite would take a name that begins with "file:" for a URI.
        let path = std::path::absolute(path).map_err(|e| CorpusError::open(&name, e))?;
        let access = if may_write {
            OpenFlags::SQLITE_OPEN_READ_WRITE
        } else {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        };
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(path, flags).and_then(|connection| {
            prepare(&connection)?;
            Ok(connection)
        });
        match opened {
            Ok(connection) => Ok(Self { connection, name }),
            Err(error) => Err(failed(&name, &error)),
        }
    }

    /// Executes statements that give no rows.
    pub(super) fn execute(&self, sql: &str) -> Result<(), CorpusError> {
        let executed = self.connection.execute_batch(sql);
        executed.map_err(|e| self.failed(&e))
    }

    pub(super) fn failed(&self, error: &rusqlite::Error) -> CorpusError {
        failed(&self.name, error)
    }

    /// Something else is where a table is to be.
    pub(super) fn in_the_way(&self, message: impl std::fmt::Display) -> CorpusError {
        CorpusError::Io(format!("{}: {message}", self.name.display()))
    }

    /// The content is not what it should be.
    pub(super) fn bad(&self, message: impl std::fmt::Display) -> CorpusError {
        CorpusError::bad(format!("{}: {message}", self.name.display()))
    }
}

/// A file from elsewhere may be damaged on purpose: what stands in its schema gets nothing to do beyond reading.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "synchronous", "FULL")
}

/// An identifier as SQL has it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Reports an error of SQLite.
pub(super) fn failed(name: &Path, error: &rusqlite::Error) -> CorpusError {
    let shown = name.display();
    let kind = SourceKind::Sqlite.name();
    let extended = error.sqlite_error().map_or(0, |error| error.extended_code);
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => CorpusError::bad(format!(
            "{shown} is no {kind}, or damaged or cut short: {error}"
        )),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let seconds = BUSY_TIMEOUT.as_secs();
            CorpusError::Io(format!(
                "{shown} has been locked by another program for {seconds} seconds; give the command again when \
                 that has ended"
            ))
        }
        Some(ErrorCode::ReadOnly)
            if extended == ffi::SQLITE_READONLY_ROLLBACK
                || extended == ffi::SQLITE_READONLY_RECOVERY =>
        {
            CorpusError::Io(format!(
                "{shown} was left in the middle of a change by a program that was stopped; open it once with \
                 that program or with sqlite3, which undoes the change"
            ))
        }
        Some(ErrorCode::ReadOnly) => {
            CorpusError::Io(format!("cannot write to {shown}: it is read-only"))
        }
        Some(ErrorCode::CannotOpen) => CorpusError::Io(format!(
            "cannot read {shown}: {error}; a database in WAL mode needs its files -wal and -shm, or a folder in \
             which they can be made"
        )),
        Some(ErrorCode::Unknown) => CorpusError::bad(format!("{shown}: {error}")),
        _ => CorpusError::Io(format!("cannot use {shown}: {error}")),
    }
}
