//! Opens databases, quotes names in SQL, and translates the errors of SQLite.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use crate::error::CorpusError;
use crate::settings::SourceKind;
use crate::source::CorpusSource;

/// How long to wait for another program that has locked the database.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection, and the name of the file in messages.
pub(super) struct Database {
    pub(super) connection: Connection,
    pub(super) name: PathBuf,
    /// The file, if no other process writes to it.
    pub(super) unchanging: Option<UnchangingFile>,
}

/// The purpose for which a database is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DatabaseUse {
    Writing,
    /// Reading while others write, such as the process that waits for the rows.
    ReadingBesideWriter,
    Reading,
}

/// A database in WAL mode that no process has open. If it were only read, SQLite would leave the
/// files `-wal` and `-shm` beside it; opened as unchanging, it needs neither.
pub(super) struct UnchangingFile {
    path: PathBuf,
    length: u64,
    modified: Option<SystemTime>,
}

impl UnchangingFile {
    fn find(path: &Path) -> Option<Self> {
        // Two bytes of the file header state that changes go to a log, which a writer creates
        // before anything else.
        let mut head = [0; 20];
        File::open(path).ok()?.read_exact(&mut head).ok()?;
        let is_logged = head.ends_with(&[2, 2]);
        let unchanging = Self::of(path)?;
        (cfg!(unix) && is_logged && !unchanging.has_log()).then_some(unchanging)
    }

    fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            path: path.into(),
            length: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }

    fn has_log(&self) -> bool {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        Path::new(&log).exists()
    }

    /// Returns the file's URI for SQLite.
    fn address(&self) -> Option<String> {
        let path = self.path.to_str()?;
        let escaped = path
            .replace('%', "%25")
            .replace('?', "%3f")
            .replace('#', "%23");
        Some(format!("file:{escaped}?immutable=1"))
    }

    /// Returns an error if another process has opened the file for writing since.
    pub(super) fn must_be_unchanged(&self, name: &Path) -> Result<(), CorpusError> {
        let is_same = Self::of(&self.path)
            .is_some_and(|now| (now.length, now.modified) == (self.length, self.modified));
        if is_same && !self.has_log() {
            return Ok(());
        }
        let shown = name.display();
        Err(
            CorpusError::io(format!("{shown} was written to while it was read"))
                .with_advice("give the command again"),
        )
    }
}

impl Database {
    /// Opens the database of a source, which must be a file.
    pub(super) fn open(
        source: &CorpusSource,
        opened_for: DatabaseUse,
    ) -> Result<Self, CorpusError> {
        let name = source.name().into_owned();
        let path = source
            .path()
            .filter(|path| std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()));
        let Some(path) = path else {
            let kind = SourceKind::Sqlite.name();
            return Err(CorpusError::not_from_the_end(&name, kind));
        };
        // SQLite would treat a name that begins with "file:" as a URI.
        let path = std::path::absolute(path).map_err(|e| CorpusError::open(&name, e))?;
        let unchanging = match opened_for {
            DatabaseUse::Reading => UnchangingFile::find(&path),
            DatabaseUse::Writing | DatabaseUse::ReadingBesideWriter => None,
        };
        let address = unchanging.as_ref().and_then(UnchangingFile::address);
        let access = match (opened_for, &address) {
            (DatabaseUse::Writing, _) => OpenFlags::SQLITE_OPEN_READ_WRITE,
            (_, None) => OpenFlags::SQLITE_OPEN_READ_ONLY,
            (_, Some(_)) => OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
        };
        let opened_name = address.as_ref().map_or(path, PathBuf::from);
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(opened_name, flags).and_then(|connection| {
            prepare(&connection)?;
            Ok(connection)
        });
        match opened {
            Ok(connection) => Ok(Self {
                connection,
                name,
                unchanging: unchanging.filter(|_| address.is_some()),
            }),
            Err(error) => Err(failed(&name, &error)),
        }
    }

    /// Executes statements that return no rows.
    pub(super) fn execute(&self, sql: &str) -> Result<(), CorpusError> {
        let executed = self.connection.execute_batch(sql);
        executed.map_err(|e| self.failed(&e))
    }

    pub(super) fn failed(&self, error: &rusqlite::Error) -> CorpusError {
        failed(&self.name, error)
    }

    /// Creates the error for another object with the name of a table.
    pub(super) fn in_the_way(&self, message: impl std::fmt::Display) -> CorpusError {
        CorpusError::io(format!("{}: {message}", self.name.display()))
    }

    /// Creates the error for wrong content.
    pub(super) fn bad(&self, message: impl std::fmt::Display) -> CorpusError {
        CorpusError::bad(format!("{}: {message}", self.name.display()))
    }
}

/// Prepares a connection. A file may be damaged on purpose, so its schema must not trigger anything
/// except reading.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "synchronous", "FULL")
}

/// Returns a name as a quoted SQL identifier.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Converts an error of SQLite.
pub(super) fn failed(name: &Path, error: &rusqlite::Error) -> CorpusError {
    let shown = name.display();
    let kind = SourceKind::Sqlite.name();
    let extended = error.sqlite_error().map_or(0, |error| error.extended_code);
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => CorpusError::bad(format!(
            "{shown} is damaged, truncated, or not {kind}: {error}"
        )),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let seconds = BUSY_TIMEOUT.as_secs();
            CorpusError::io(format!(
                "{shown} has been locked by another program for {seconds} seconds"
            )).with_advice("give the command again when that program has ended")
        }
        Some(ErrorCode::ReadOnly)
            if extended == ffi::SQLITE_READONLY_ROLLBACK
                || extended == ffi::SQLITE_READONLY_RECOVERY =>
        {
            CorpusError::io(format!(
                "{shown} has an unfinished change of a program that was stopped"
            )).with_advice("open it once with that program or with sqlite3, which rolls the change back")
        }
        Some(ErrorCode::ReadOnly) => {
            CorpusError::io(format!("cannot write to {shown}: it is read-only"))
        }
        Some(ErrorCode::CannotOpen) => CorpusError::io(format!(
            "cannot read {shown}: {error}"
        )).with_advice("a database in WAL mode needs its files -wal and -shm, or a folder in which they can be created"),
        Some(ErrorCode::TooBig) => CorpusError::bad(format!(
            "{shown} has a value that takes more than half of --memory"
        )).with_advice("raise --memory"),
        Some(ErrorCode::Unknown) => CorpusError::bad(format!("{shown}: {error}")),
        _ => CorpusError::io(format!("cannot use {shown}: {error}")),
    }
}
