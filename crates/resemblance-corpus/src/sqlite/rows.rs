//! Reads the rows of a table on a separate thread, because a statement cannot move to another
//! thread.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};
use std::vec;

use bytes::Bytes;
use rusqlite::limits::Limit;
use rusqlite::{InterruptHandle, Row, Rows};

use super::database::{self, Database, DatabaseUse, UnchangingFile};
use super::json;
use super::table::{SqliteSelection, SqliteTable};
use crate::bad_document::BadDocument;
use crate::error::CorpusError;
use crate::reading::{Opening, Source, SourceReading};
use crate::record::CorpusRecord;
use crate::settings::SourceKind;

/// The maximum number of rows in a batch.
const ROWS_TOGETHER: usize = 256;

/// The maximum number of bytes in a batch, before its last line.
const BYTES_TOGETHER: usize = 1 << 20;

/// The number of batches that are read ahead.
const BATCHES_AHEAD: usize = 2;

/// A row.
pub(super) struct SqliteRow {
    /// The requested columns. The line number is SQLite's number of the row, or a count from 1 if
    /// it has none.
    pub(super) record: CorpusRecord,
    /// The line with all columns, if it is requested.
    whole: Option<Bytes>,
}

impl SqliteRow {
    fn bytes(&self) -> usize {
        self.record.bytes.len() + self.whole.as_ref().map_or(0, Bytes::len)
    }
}

/// How rows become records.
#[derive(Clone, Copy)]
pub(super) struct RowForm {
    /// The number of the source.
    pub(super) source: usize,
    /// The maximum length of a line. A longer one is a bad document.
    pub(super) max_bytes: u64,
    /// True if lines with all columns are requested too.
    pub(super) is_whole: bool,
}

impl RowForm {
    /// Converts the current row of a statement. `number` is its position, from 1, among the rows
    /// that were read.
    pub(super) fn row(
        &self,
        row: &Row<'_>,
        selection: &SqliteSelection,
        number: i64,
    ) -> rusqlite::Result<SqliteRow> {
        let rowid: Option<i64> = row.get(0)?;
        let line = rowid.unwrap_or(number).cast_unsigned();
        let asked = json::line(row, selection, false)?;
        let whole = self.is_whole.then(|| json::line(row, selection, true));
        let problem = |problem| SqliteRow {
            record: CorpusRecord::problem(self.source, line, problem),
            whole: None,
        };
        Ok(match (asked, whole.transpose()?.transpose()) {
            (Err(bad), _) | (_, Err(bad)) => problem(bad),
            (Ok(asked), _) if asked.len() as u64 > self.max_bytes => {
                problem(BadDocument::too_long("row", self.max_bytes))
            }
            (Ok(asked), Ok(whole)) => SqliteRow {
                record: CorpusRecord::new(self.source, line, asked),
                whole: whole.map(Bytes::from),
            },
        })
    }
}

/// Some rows, or none at the end.
type RowBatch = Result<Vec<SqliteRow>, rusqlite::Error>;

/// The rows of a table in order: either all, as of the time the first is read, or those beginning
/// with a number.
struct SqliteRows {
    name: PathBuf,
    /// The file, if it was opened as unchanging.
    unchanging: Option<UnchangingFile>,
    /// `None` when no more rows are wanted.
    batches: Option<Receiver<RowBatch>>,
    batch: vec::IntoIter<SqliteRow>,
    interrupt: InterruptHandle,
    reader: Option<JoinHandle<()>>,
    /// The length of the file, the number of its bytes counted as read, and the counter.
    file_bytes: u64,
    counted_bytes: u64,
    bytes_read: Arc<AtomicU64>,
}

/// Opens a table of a database. The content of its rows shows whether a second reading sees the
/// same.
pub(crate) fn open(
    opening: &Opening<'_>,
    reading: &mut SourceReading,
) -> Result<Box<dyn Source>, CorpusError> {
    let &Opening {
        source,
        settings,
        is_whole,
        ..
    } = opening;
    let opened_for = match settings.rows_from {
        Some(_) => DatabaseUse::ReadingBesideWriter,
        None => DatabaseUse::Reading,
    };
    let mut database = Database::open(source, opened_for)?;
    let value_bytes = settings.window_bytes.max(settings.max_line_bytes);
    let limit = i32::try_from(value_bytes).unwrap_or(i32::MAX);
    let limited = database
        .connection
        .set_limit(Limit::SQLITE_LIMIT_LENGTH, limit);
    limited.map_err(|error| database.failed(&error))?;
    if settings.rows_from.is_none() {
        database.execute("BEGIN")?;
    }
    let table = SqliteTable::choose(&database, settings)?;
    let selection = match SqliteSelection::new(table, settings, is_whole) {
        Ok(selection) => selection,
        Err(bad) => return Ok(opening.problem(bad)),
    };
    reading.count_file(source.kind);
    if settings.rows_from.is_some() && selection.table.rowid.is_none() {
        return Err(database.bad(format!("{} has no rowid", selection.table.name)));
    }
    let name = database.name.clone();
    let unchanging = database.unchanging.take();
    let metadata = source.path().and_then(|path| std::fs::metadata(path).ok());
    let interrupt = database.connection.get_interrupt_handle();
    let (sender, batches) = mpsc::sync_channel(BATCHES_AHEAD);
    let thread = RowReading {
        database,
        selection,
        form: RowForm {
            source: opening.number,
            max_bytes: settings.max_line_bytes,
            is_whole,
        },
        rows_from: settings.rows_from,
        sender,
    };
    let reader = thread::Builder::new()
        .name("rsm-sqlite".into())
        .spawn(move || thread.run())
        .map_err(|e| CorpusError::read(&name, false, &e))?;
    Ok(Box::new(SqliteRows {
        name,
        unchanging,
        batches: Some(batches),
        batch: Vec::new().into_iter(),
        interrupt,
        reader: Some(reader),
        file_bytes: metadata.map_or(0, |metadata| metadata.len()),
        counted_bytes: 0,
        bytes_read: Arc::clone(opening.bytes_read),
    }))
}

impl Source for SqliteRows {
    fn next(&mut self, reading: &mut SourceReading) -> Result<Option<CorpusRecord>, CorpusError> {
        Ok(self.next_row()?.map(|row| {
            // The checksum covers the requested columns, whatever else is read.
            reading.count_document(SourceKind::Sqlite, &row.record);
            match row.whole {
                Some(bytes) => row.record.with_bytes(bytes),
                None => row.record,
            }
        }))
    }
}

impl SqliteRows {
    /// Returns the next row, or nothing after the last.
    fn next_row(&mut self) -> Result<Option<SqliteRow>, CorpusError> {
        loop {
            if let Some(row) = self.batch.next() {
                self.count(row.bytes() as u64);
                return Ok(Some(row));
            }
            let batch = self.batches.as_ref().map(Receiver::recv);
            match batch {
                Some(Ok(Ok(batch))) if batch.is_empty() => {
                    if let Some(unchanging) = &self.unchanging {
                        unchanging.must_be_unchanged(&self.name)?;
                    }
                    // The file may be longer or shorter than the lines of its rows.
                    self.count(u64::MAX);
                    self.batches = None;
                }
                Some(Ok(Ok(batch))) => self.batch = batch.into_iter(),
                Some(Ok(Err(error))) => return Err(database::failed(&self.name, &error)),
                Some(Err(_)) => {
                    let name = self.name.display();
                    let message = format!("internal error: the reader of {name} has gone");
                    return Err(CorpusError::io(message));
                }
                None => return Ok(None),
            }
        }
    }

    /// Counts bytes as read, up to the length of the file.
    fn count(&mut self, bytes: u64) {
        let counted = bytes.min(self.file_bytes - self.counted_bytes);
        self.counted_bytes += counted;
        self.bytes_read.fetch_add(counted, Ordering::Relaxed);
    }
}

impl Drop for SqliteRows {
    /// Ends the thread and releases its lock on the database.
    fn drop(&mut self) {
        self.batches = None;
        self.interrupt.interrupt();
        if let Some(reader) = self.reader.take() {
            // A panic of the thread has already been noticed, because the end did not arrive.
            let _ = reader.join();
        }
    }
}

/// The thread that reads a table.
struct RowReading {
    database: Database,
    selection: SqliteSelection,
    form: RowForm,
    /// The number of the first row to read, if rows have numbers; otherwise all are read.
    rows_from: Option<i64>,
    sender: SyncSender<RowBatch>,
}

impl RowReading {
    fn run(self) {
        let read = match (self.rows_from, self.selection.table.rowid) {
            (Some(first), Some(rowid)) => self.read_from(first, rowid),
            _ => self.read_all(),
        };
        // If the caller has stopped, nothing receives it.
        let _ = self.sender.send(read.map(|()| Vec::new()));
    }

    /// Reads with one statement, which sees the table at one point in time.
    fn read_all(&self) -> rusqlite::Result<()> {
        let mut statement = self.database.connection.prepare(&self.selection.sql())?;
        let mut rows = statement.query([])?;
        let mut first = 1;
        loop {
            let batch = self.batch(&mut rows, first)?;
            first += batch.len() as i64;
            if batch.is_empty() || self.sender.send(Ok(batch)).is_err() {
                return Ok(());
            }
        }
    }

    /// Reads with one statement for each batch. Between two of them other processes may write, such
    /// as the one that waits for these rows.
    fn read_from(&self, mut first: i64, rowid: &str) -> rusqlite::Result<()> {
        let connection = &self.database.connection;
        // Rows that are added meanwhile are left for the next time.
        let sql = self.selection.table.last_row_sql(rowid);
        let last: Option<i64> = connection.query_row(&sql, [], |row| row.get(0))?;
        let Some(last) = last else {
            return Ok(());
        };
        let mut statement = connection.prepare(&self.selection.piece_sql(rowid))?;
        while first <= last {
            let batch = self.batch(&mut statement.query([first, last])?, 1)?;
            let Some(row) = batch.last() else {
                return Ok(());
            };
            let next = row.record.line.cast_signed().checked_add(1);
            if self.sender.send(Ok(batch)).is_err() {
                return Ok(());
            }
            match next {
                Some(next) => first = next,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Returns the next rows. `first` is the number of the first one if SQLite has no numbers.
    fn batch(&self, rows: &mut Rows<'_>, first: i64) -> rusqlite::Result<Vec<SqliteRow>> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < ROWS_TOGETHER && bytes < BYTES_TOGETHER {
            let Some(row) = rows.next()? else {
                break;
            };
            let number = first + batch.len() as i64;
            let row = self.form.row(row, &self.selection, number)?;
            bytes += row.bytes();
            batch.push(row);
        }
        Ok(batch)
    }
}
