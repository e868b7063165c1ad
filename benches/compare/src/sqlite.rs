//! The same postings in SQLite.

use std::path::{Path, PathBuf};

use resemblance::Signature;
use rusqlite::types::Value;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::Result;
use crate::batch::{Batch, Input, Record, Row};
use crate::documents::Probe;
use crate::engine::{Engine, cache_bytes, is_mapped};
use crate::sharing::{Shared, WAIT, is_near};

/// More than SQLite can map; it reduces the value to its limit.
const MAP_BYTES: i64 = 1 << 40;

/// The number of pages in the log at which it is moved into the file: 64 MiB, 16 times the default.
const CHECKPOINT_PAGES: i64 = 16_384;

pub struct Sqlite {
    connection: Connection,
    path: PathBuf,
    sorted: bool,
}

/// Opens a database with the settings of all measurements.
pub fn connect(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(WAIT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // A negative number means KiB instead of pages.
    let cache = -i64::try_from(cache_bytes() / 1024)?;
    connection.pragma_update(None, "cache_size", cache)?;
    // Reads the file without a copy, if SQLite can.
    let map_bytes = if is_mapped() { MAP_BYTES } else { 0 };
    connection.pragma_update(None, "mmap_size", map_bytes)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    Ok(connection)
}

/// Returns the settings that SQLite reports.
pub fn settings(connection: &Connection) -> Result<String> {
    let mut settings = format!("SQLite {}", rusqlite::version());
    for name in [
        "journal_mode",
        "synchronous",
        "page_size",
        "cache_size",
        "wal_autocheckpoint",
        "mmap_size",
    ] {
        let value: Value = connection.pragma_query_value(None, name, |row| row.get(0))?;
        settings += &match value {
            Value::Integer(value) => format!(", {name} {value}"),
            Value::Text(value) => format!(", {name} {value}"),
            value => format!(", {name} {value:?}"),
        };
    }
    Ok(settings)
}

/// Ends reading, moves the log into the file, and closes.
pub fn close(connection: Connection, path: &Path) -> Result<()> {
    if !connection.is_autocommit() {
        connection.execute_batch("COMMIT")?;
    }
    let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
    let busy: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    if busy != 0 {
        return Err("the checkpoint could not finish".into());
    }
    connection.close().map_err(|(_, error)| error)?;
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    assert!(!Path::new(&log).exists(), "SQLite's log is gone");
    Ok(())
}

impl Sqlite {
    /// Opens the database. If `sorted`, the rows of a batch are sorted by primary key before they
    /// are inserted.
    pub fn open(path: &Path, sorted: bool) -> Result<Self> {
        let connection = connect(path)?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS postings (band INTEGER, hash INTEGER, id INTEGER,
                 PRIMARY KEY (band, hash, id)) WITHOUT ROWID;
             CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY, key TEXT UNIQUE,
                 signature BLOB)",
        )?;
        Ok(Self {
            connection,
            path: path.to_owned(),
            sorted,
        })
    }
}

/// Inserts everything in one transaction, in the order of the primary keys.
pub fn bulk_load(path: &Path, input: &mut Input) -> Result<()> {
    let mut sqlite = Sqlite::open(path, true)?;
    let transaction = sqlite.connection.transaction()?;
    while let Some(rows) = input.next_band() {
        insert_rows(&transaction, &rows)?;
    }
    input.for_each_records(|records| insert_records(&transaction, records))?;
    transaction.commit()?;
    close(sqlite.connection, path)
}

pub fn compact(path: &Path) -> Result<()> {
    let connection = connect(path)?;
    connection.execute_batch("VACUUM")?;
    close(connection, path)
}

fn insert_rows(transaction: &Transaction<'_>, rows: &[Row]) -> Result<()> {
    let mut insert = transaction.prepare_cached("INSERT INTO postings VALUES (?1, ?2, ?3)")?;
    for &(band, code, id) in rows {
        insert.execute(params![band, code as i64, id as i64])?;
    }
    Ok(())
}

fn insert_records(transaction: &Transaction<'_>, records: &[Record]) -> Result<()> {
    let mut insert = transaction.prepare_cached("INSERT INTO records VALUES (?1, ?2, ?3)")?;
    for (id, key, signature) in records {
        insert.execute(params![*id as i64, key, signature])?;
    }
    Ok(())
}

fn candidates(connection: &Connection, codes: &[u64]) -> Result<Vec<u64>> {
    let sql = "SELECT id FROM postings WHERE band = ?1 AND hash = ?2";
    let mut select = connection.prepare_cached(sql)?;
    let mut ids = Vec::new();
    for (band, code) in (0_u16..).zip(codes) {
        let mut rows = select.query(params![band, *code as i64])?;
        while let Some(row) = rows.next()? {
            ids.push(row.get::<_, i64>(0)? as u64);
        }
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

impl Shared for Sqlite {
    fn load(&mut self, batch: &Batch) -> Result<()> {
        self.insert(batch)
    }

    fn insert_if_new(&mut self, key: &str, signature: &Signature, codes: &[u64]) -> Result<bool> {
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        for id in candidates(&transaction, codes)? {
            let sql = "SELECT signature FROM records WHERE id = ?1";
            let mut select = transaction.prepare_cached(sql)?;
            let stored: Vec<u8> = select.query_row([id as i64], |row| row.get(0))?;
            if is_near(signature, &stored) {
                return Ok(false);
            }
        }
        let values = signature.minhash().unwrap_or_default();
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let sql = "INSERT INTO records VALUES (NULL, ?1, ?2)";
        let id = transaction
            .prepare_cached(sql)?
            .insert(params![key, bytes])? as u64;
        let rows = (0..).zip(codes).map(|(band, code)| (band, *code, id));
        insert_rows(&transaction, &rows.collect::<Vec<_>>())?;
        transaction.commit()?;
        Ok(true)
    }
}

impl Engine for Sqlite {
    fn settings(&self) -> Result<String> {
        let order = if self.sorted {
            "the rows of each batch sorted by the primary key first, within the time"
        } else {
            "the rows of each batch as the documents come"
        };
        let settings = settings(&self.connection)?;
        Ok(format!("{settings}; WITHOUT ROWID; {order}"))
    }

    fn insert(&mut self, batch: &Batch) -> Result<()> {
        let transaction = self.connection.transaction()?;
        if self.sorted {
            insert_rows(&transaction, &batch.sorted_rows())?;
        } else {
            insert_rows(&transaction, &batch.rows)?;
        }
        insert_records(&transaction, &batch.records)?;
        Ok(transaction.commit()?)
    }

    fn begin_reading(&mut self) -> Result<()> {
        Ok(self.connection.execute_batch("BEGIN")?)
    }

    fn candidates(&self, probe: &Probe) -> Result<Vec<u64>> {
        candidates(&self.connection, &probe.codes)
    }

    fn close(self: Box<Self>) -> Result<()> {
        close(self.connection, &self.path)
    }
}
