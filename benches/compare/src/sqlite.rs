//! The same postings in SQLite.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::Result;

/// A posting: band, code, document.
pub type Row = (u16, u64, u64);

/// A document: id, key, signature.
pub type Record = (u64, String, Vec<u8>);

pub struct Sqlite {
    connection: Connection,
}

impl Sqlite {
    pub fn create(path: &Path, cache_bytes: u64) -> Result<Self> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        // Negative: in KiB instead of pages.
        let cache = -i64::try_from(cache_bytes / 1024)?;
        connection.pragma_update(None, "cache_size", cache)?;
        connection.execute_batch(
            "CREATE TABLE postings (band INTEGER, hash INTEGER, id INTEGER,
                                    PRIMARY KEY (band, hash, id)) WITHOUT ROWID;
             CREATE TABLE records (id INTEGER PRIMARY KEY, key TEXT UNIQUE, signature BLOB)",
        )?;
        Ok(Self { connection })
    }

    /// The settings as SQLite has them.
    pub fn settings(&self) -> Result<String> {
        let mut settings = format!("SQLite {}", rusqlite::version());
        for name in [
            "journal_mode",
            "synchronous",
            "page_size",
            "cache_size",
            "wal_autocheckpoint",
            "mmap_size",
        ] {
            let value: rusqlite::types::Value =
                self.connection
                    .pragma_query_value(None, name, |row| row.get(0))?;
            settings += &match value {
                rusqlite::types::Value::Integer(value) => format!(", {name} {value}"),
                rusqlite::types::Value::Text(value) => format!(", {name} {value}"),
                value => format!(", {name} {value:?}"),
            };
        }
        Ok(settings)
    }

    /// Inserts a batch in one transaction.
    pub fn insert(&mut self, rows: &[Row], records: &[Record]) -> Result<()> {
        let transaction = self.connection.transaction()?;
        {
            let mut insert =
                transaction.prepare_cached("INSERT INTO postings VALUES (?1, ?2, ?3)")?;
            for &(band, code, id) in rows {
                insert.execute(params![band, code as i64, id as i64])?;
            }
            let mut insert =
                transaction.prepare_cached("INSERT INTO records VALUES (?1, ?2, ?3)")?;
            for (id, key, signature) in records {
                insert.execute(params![*id as i64, key, signature])?;
            }
        }
        Ok(transaction.commit()?)
    }

    /// The documents that share a code in some band, ascending.
    pub fn candidates(&self, codes: &[u64]) -> Result<Vec<u64>> {
        let mut select = self
            .connection
            .prepare_cached("SELECT id FROM postings WHERE band = ?1 AND hash = ?2")?;
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

    /// Moves the log into the file and empties it.
    pub fn checkpoint(&self) -> Result<()> {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: i64 = self.connection.query_row(sql, [], |row| row.get(0))?;
        if busy == 0 {
            Ok(())
        } else {
            Err("the checkpoint could not finish".into())
        }
    }

    pub fn close(self) -> Result<()> {
        self.connection.close().map_err(|(_, error)| error.into())
    }
}
