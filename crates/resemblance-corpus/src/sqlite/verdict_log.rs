//! Tables of verdicts that grow with a store.
//!
//! A verdict must not be published before the store contains its document, and must not be lost if
//! the process dies. The verdicts of a commit are therefore first written to a separate table; then
//! the store commits; then the verdicts move to their final table. A process that finds pending
//! verdicts asks the store whether its commit took place.

use rusqlite::{Transaction, TransactionBehavior, params};

use super::database::{Database, DatabaseUse, quoted};
use super::definition::{self, VERDICT_NAMES};
use super::table::SqliteTable;
use crate::changes::{Verdict, WaitingDocument};
use crate::error::CorpusError;
use crate::settings::CorpusSettings;
use crate::source::CorpusSource;

/// The verdicts on the rows of one table.
pub struct VerdictLog {
    database: Database,
    table: SqliteTable,
    name: String,
    /// The name of the table of pending verdicts.
    pending: String,
}

impl VerdictLog {
    /// Opens the verdicts with this name beside the table that the settings select.
    ///
    /// # Errors
    ///
    /// An error if the database cannot be read or written, if its rows have no numbers, or if
    /// another object has the name.
    pub fn open(
        source: &CorpusSource,
        settings: &CorpusSettings,
        name: &str,
    ) -> Result<Self, CorpusError> {
        let database = Database::open(source, DatabaseUse::Writing)?;
        let table = SqliteTable::choose(&database, settings)?;
        if table.rowid.is_none() {
            return Err(database.bad(format!(
                "{:?} has no rowid, which add --verdicts needs to recognize new rows",
                table.name
            )));
        }
        let log = Self {
            database,
            table,
            name: name.to_owned(),
            pending: definition::pending_name(name),
        };
        log.has(&log.name)?;
        log.has(&log.pending)?;
        Ok(log)
    }

    /// Returns the number of the first row that may have no verdict.
    ///
    /// # Errors
    ///
    /// An error if the database cannot be read, or if the greatest possible row number has a
    /// verdict.
    pub fn next_row(&self) -> Result<i64, CorpusError> {
        if !self.has(&self.name)? {
            return Ok(i64::MIN);
        }
        let sql = format!("SELECT max(row_id) FROM main.{}", quoted(&self.name));
        let found = self
            .database
            .connection
            .query_row(&sql, [], |row| row.get(0));
        let last: Option<i64> = found.map_err(|e| self.database.failed(&e))?;
        let next = last.map_or(Some(i64::MIN), |last| last.checked_add(1));
        let message = "no row can come after the last that has a verdict";
        next.ok_or_else(|| self.database.bad(message))
    }

    /// Returns the documents that the store contains according to the pending verdicts, or `None`
    /// if none is pending.
    ///
    /// # Errors
    ///
    /// An error if the database cannot be read.
    pub fn waiting(&self) -> Result<Option<Vec<WaitingDocument>>, CorpusError> {
        if !self.has(&self.pending)? {
            return Ok(None);
        }
        let columns = "kept, document, document_key";
        let sql = format!("SELECT {columns} FROM main.{}", quoted(&self.pending));
        let read = || -> rusqlite::Result<_> {
            let mut statement = self.database.connection.prepare(&sql)?;
            let mut rows = statement.query([])?;
            let (mut is_any, mut kept) = (false, Vec::new());
            while let Some(row) = rows.next()? {
                is_any = true;
                if row.get(0)? {
                    let id = row.get::<_, i64>(1)?.cast_unsigned();
                    kept.push(WaitingDocument {
                        id,
                        key: row.get(2)?,
                    });
                }
            }
            Ok(is_any.then_some(kept))
        };
        read().map_err(|e| self.database.failed(&e))
    }

    /// Writes verdicts durably as pending until the store commits. Drops those that were pending
    /// before.
    ///
    /// # Errors
    ///
    /// An error if the database cannot be written.
    pub fn prepare(&self, verdicts: &[Verdict]) -> Result<(), CorpusError> {
        self.change(|| {
            let pending = quoted(&self.pending);
            self.create()?;
            self.database
                .execute(&format!("DELETE FROM main.{pending}"))?;
            let written = self.write_waiting(&pending, verdicts);
            written.map_err(|e| self.database.failed(&e))
        })
    }

    /// Moves the pending verdicts durably to their final table.
    ///
    /// # Errors
    ///
    /// An error if the database cannot be written.
    pub fn publish(&self) -> Result<(), CorpusError> {
        let (name, pending) = (quoted(&self.name), quoted(&self.pending));
        self.change(|| {
            self.create()?;
            self.database.execute(&format!(
                "INSERT INTO main.{name} (row_id, {VERDICT_NAMES}) \
                 SELECT row_id, {VERDICT_NAMES} FROM main.{pending}; DELETE FROM main.{pending}"
            ))
        })
    }

    /// Removes everything except the table of verdicts.
    ///
    /// # Errors
    ///
    /// An error if the database cannot be written.
    pub fn finish(self) -> Result<(), CorpusError> {
        if self.has(&self.name)? && !self.has(&self.pending)? {
            return Ok(());
        }
        self.change(|| {
            self.create()?;
            let pending = quoted(&self.pending);
            self.database.execute(&format!("DROP TABLE main.{pending}"))
        })
    }

    /// Returns true if a verdict on another row states that the store contains the document with
    /// this id because of that row.
    ///
    /// # Errors
    ///
    /// An error if the database cannot be read.
    pub fn is_kept(&self, document: u64) -> Result<bool, CorpusError> {
        if !self.has(&self.name)? {
            return Ok(false);
        }
        let name = quoted(&self.name);
        let sql = format!("SELECT 1 FROM main.{name} WHERE cluster = ?1 AND kept = 1");
        let prepared = self.database.connection.prepare_cached(&sql);
        let found = prepared.and_then(|mut found| found.exists([cluster(document)]));
        found.map_err(|e| self.database.failed(&e))
    }

    fn has(&self, name: &str) -> Result<bool, CorpusError> {
        definition::has_verdicts(&self.database, &self.table, name)
    }

    /// Runs a change in one transaction.
    fn change(&self, change: impl FnOnce() -> Result<(), CorpusError>) -> Result<(), CorpusError> {
        let connection = &self.database.connection;
        let failed = |error| self.database.failed(&error);
        // On an error, dropping the transaction rolls it back.
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
            .map_err(failed)?;
        change()?;
        transaction.commit().map_err(failed)
    }

    /// Creates missing tables, and the index that finds a document.
    fn create(&self) -> Result<(), CorpusError> {
        let more = ", document INTEGER NOT NULL, document_key BLOB NOT NULL";
        for (name, more) in [(&self.name, ""), (&self.pending, more)] {
            if !self.has(name)? {
                let created = definition::create_sql(&self.table, name, more);
                self.database.execute(&created)?;
            }
        }
        let (index, name) = (quoted(&format!("{}_kept", self.name)), quoted(&self.name));
        self.database.execute(&format!(
            "CREATE INDEX IF NOT EXISTS main.{index} ON {name}(cluster) WHERE kept = 1"
        ))
    }

    fn write_waiting(&self, pending: &str, verdicts: &[Verdict]) -> rusqlite::Result<()> {
        let sql = format!(
            "INSERT INTO main.{pending} (row_id, kept, cluster, survivor, similarity, distance, similarity_is, \
             document, document_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        );
        let mut insert = self.database.connection.prepare_cached(&sql)?;
        for verdict in verdicts {
            insert.execute(params![
                verdict.row,
                verdict.is_kept,
                cluster(verdict.document),
                verdict.survivor,
                verdict.similarity,
                verdict.distance,
                verdict.evidence,
                verdict.document.cast_signed(),
                verdict.key,
            ])?;
        }
        Ok(())
    }
}

/// Returns the name of a cluster whose survivor is in a store.
fn cluster(document: u64) -> String {
    format!("store:{document}")
}
