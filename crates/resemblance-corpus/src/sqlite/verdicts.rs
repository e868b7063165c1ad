//! Tables of verdicts that are written as a whole: one row for each document of another table in
//! the same database.

use itertools::Itertools;
use rusqlite::types::Value;
use rusqlite::{ffi, params_from_iter};

use super::database::{Database, DatabaseUse, quoted};
use super::definition::{self, row_column};
use super::rows::RowForm;
use super::table::{SqliteSelection, SqliteTable};
use crate::changes::{AddedColumn, ColumnValues};
use crate::documents::Corpus;
use crate::error::CorpusError;
use crate::record::{CorpusRecord, ReadTotals};
use crate::settings::CorpusSettings;
use crate::source::CorpusSource;

/// A table of verdicts to write.
pub struct VerdictTable {
    source: CorpusSource,
    name: String,
}

impl VerdictTable {
    /// Prepares a table with this name beside the table that the settings select. An existing table
    /// of verdicts on the same table is overwritten only if `force` is true.
    ///
    /// # Errors
    ///
    /// An error if the database cannot be read or written, or the name is not free.
    pub fn new(
        source: &CorpusSource,
        settings: &CorpusSettings,
        name: &str,
        force: bool,
    ) -> Result<Self, CorpusError> {
        let database = Database::open(source, DatabaseUse::Writing)?;
        let table = SqliteTable::choose(&database, settings)?;
        let has_verdicts = definition::has_verdicts(&database, &table, name)?;
        definition::has_verdicts(&database, &table, &definition::pending_name(name))?;
        if has_verdicts && !force {
            let message = format!("{name:?} has verdicts already; --force overwrites them");
            return Err(database.in_the_way(message));
        }
        Ok(Self {
            source: source.clone(),
            name: name.to_owned(),
        })
    }

    /// Rereads the only source of a corpus, and writes a row with the values of these columns for
    /// each record for which `is_document` returns true, given its number from 0. Returns false,
    /// and writes nothing, if this reading differed from `totals`.
    ///
    /// # Errors
    ///
    /// An error if the database cannot be read or written, if two documents without numbers have
    /// the same key, or if `is_document` fails. Nothing is then written.
    pub fn write<E: From<CorpusError>>(
        &self,
        corpus: &Corpus,
        columns: &[AddedColumn],
        totals: ReadTotals,
        is_document: impl FnMut(u64) -> Result<bool, E>,
    ) -> Result<bool, E> {
        // Uncommitted changes are undone when the connection closes.
        let database = Database::open(&self.source, DatabaseUse::Writing)?;
        database.execute("BEGIN IMMEDIATE")?;
        let table = SqliteTable::choose(&database, &corpus.settings)?;
        for name in [&self.name, &definition::pending_name(&self.name)] {
            if definition::has_verdicts(&database, &table, name)? {
                database.execute(&format!("DROP TABLE main.{}", quoted(name)))?;
            }
        }
        database.execute(&definition::create_sql(&table, &self.name, ""))?;
        let selection = SqliteSelection::new(table, &corpus.settings, false)
            .map_err(|bad| database.bad(bad.reason))?;
        let filling = VerdictFilling {
            database: &database,
            selection: &selection,
            corpus,
            columns,
        };
        let (records, checksum) = filling.fill(&self.name, is_document)?;
        let is_same = (records, checksum) == (totals.records, totals.checksum);
        if is_same {
            database.execute("COMMIT")?;
        }
        Ok(is_same)
    }
}

/// A table of verdicts that is being filled.
struct VerdictFilling<'a> {
    database: &'a Database,
    selection: &'a SqliteSelection,
    corpus: &'a Corpus,
    columns: &'a [AddedColumn],
}

impl VerdictFilling<'_> {
    /// Returns the number of records that were read, and their checksum.
    fn fill<E: From<CorpusError>>(
        &self,
        name: &str,
        mut is_document: impl FnMut(u64) -> Result<bool, E>,
    ) -> Result<(u64, u32), E> {
        let connection = &self.database.connection;
        let failed = |error: rusqlite::Error| E::from(self.database.failed(&error));
        let form = RowForm {
            source: 0,
            max_bytes: self.corpus.settings.max_line_bytes,
            is_whole: false,
        };
        let mut statement = connection.prepare(&self.selection.sql()).map_err(failed)?;
        let mut insert = connection.prepare(&self.insert_sql(name)).map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        let mut hasher = crc32fast::Hasher::new();
        let mut records = 0;
        let mut number = 0;
        while let Some(row) = rows.next().map_err(failed)? {
            number += 1;
            let row = form.row(row, self.selection, number).map_err(failed)?;
            row.record.check_with(|bytes| hasher.update(bytes));
            if is_document(records)? {
                let values = self.values(&row.record, records)?;
                let inserted = insert.execute(params_from_iter(values));
                inserted.map_err(|error| self.not_inserted(&error, &row.record))?;
            }
            records += 1;
        }
        Ok((records, hasher.finalize()))
    }

    fn insert_sql(&self, name: &str) -> String {
        let row = quoted(row_column(&self.selection.table));
        let names = self.columns.iter().map(|column| quoted(&column.name));
        let columns = std::iter::once(row).chain(names).join(", ");
        let marks = vec!["?"; 1 + self.columns.len()].join(", ");
        format!(
            "INSERT INTO main.{} ({columns}) VALUES ({marks})",
            quoted(name)
        )
    }

    /// Returns the number or key of the row, and the values of the columns.
    fn values(&self, record: &CorpusRecord, number: u64) -> Result<Vec<Value>, CorpusError> {
        let row = match self.selection.table.rowid {
            Some(_) => Value::Integer(record.line.cast_signed()),
            None => {
                let parsed = self.corpus.parse(record);
                let document = parsed.map_err(|bad| self.database.bad(bad.reason))?;
                let key = String::from_utf8(document.key.into_owned());
                Value::Text(key.map_err(|_| self.database.bad("a key outside UTF-8"))?)
            }
        };
        let mut values = vec![row];
        for column in self.columns {
            values.push(match &column.values {
                ColumnValues::Truth(value) => value(number).map(i64::from).into(),
                ColumnValues::Integer(value) => {
                    let value = value(number).map(i64::try_from).transpose();
                    let too_large = |_| self.database.bad("an integer beyond 63 bits");
                    value.map_err(too_large)?.into()
                }
                ColumnValues::Number(value) => value(number).into(),
                ColumnValues::Text(value) => value(number).into(),
            });
        }
        Ok(values)
    }

    fn not_inserted(&self, error: &rusqlite::Error, record: &CorpusRecord) -> CorpusError {
        let code = error.sqlite_error().map(|error| error.extended_code);
        if code != Some(ffi::SQLITE_CONSTRAINT_PRIMARYKEY) {
            return self.database.failed(error);
        }
        let place = self.corpus.position(record.source, record.line);
        self.database.bad(format!(
            "two rows have the same key, the second at {place}: --verdicts needs unique keys for a table \
             without a rowid"
        ))
    }
}
