//! Selects the table to read, its columns, and their order.

use itertools::Itertools;

use super::database::{Database, DatabaseUse, quoted};
use super::marker::source_of_verdicts;
use crate::bad_document::BadDocument;
use crate::columns;
use crate::error::CorpusError;
use crate::settings::CorpusSettings;
use crate::source::CorpusSource;

/// SQLite's names for the number of a row, unless columns have these names.
const ROWID_NAMES: [&str; 3] = ["rowid", "_rowid_", "oid"];

/// A table or view of a database.
pub(super) struct SqliteTable {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    /// The name for the number of a row, if rows have numbers.
    pub(super) rowid: Option<&'static str>,
    /// The columns of the primary key, for a table without row numbers.
    primary_key: Vec<String>,
    /// True if the table is a view, whose definition determines its order and columns.
    is_view: bool,
}

/// A table in the database's schema.
struct ListedTable {
    name: String,
    kind: String,
    has_rowid: bool,
    is_of_verdicts: bool,
}

impl SqliteTable {
    /// Returns the table that the settings name, or the only one.
    pub(super) fn choose(
        database: &Database,
        settings: &CorpusSettings,
    ) -> Result<Self, CorpusError> {
        let all = list(database).map_err(|e| database.failed(&e))?;
        let names = |has_verdicts: bool| {
            let shown = all
                .iter()
                .filter(|table| has_verdicts || !table.is_of_verdicts);
            format!("{:?}", shown.map(|table| &table.name).format(", "))
        };
        let Some(name) = &settings.table else {
            let is_ordinary = |table: &ListedTable| table.kind == "table" && !table.is_of_verdicts;
            let mut ordinary = all.iter().filter(|table| is_ordinary(table));
            return match (ordinary.next(), ordinary.next()) {
                (Some(only), None) => Self::describe(database, only),
                (None, _) if all.is_empty() => Err(database.bad("the database has no tables")),
                _ => Err(database.bad(format!(
                    "the database has {}; name one with --table",
                    names(false)
                ))),
            };
        };
        // SQLite ignores case in names.
        let mut named = all
            .iter()
            .filter(|table| table.name.eq_ignore_ascii_case(name));
        match named.next() {
            Some(found) => Self::describe(database, found),
            None => Err(database.bad(format!(
                "there is no table {name:?}: the database has {}",
                names(true)
            ))),
        }
    }

    /// Returns the statement that selects the greatest row number, or null.
    pub(super) fn last_row_sql(&self, rowid: &str) -> String {
        format!("SELECT max({rowid}) FROM main.{}", quoted(&self.name))
    }

    fn describe(database: &Database, listed: &ListedTable) -> Result<Self, CorpusError> {
        let all = columns_of(database, &listed.name).map_err(|e| database.failed(&e))?;
        let in_key = all.iter().filter(|column| column.key_place > 0);
        let primary_key = in_key
            .sorted_by_key(|column| column.key_place)
            .map(|column| column.name.clone())
            .collect();
        let shown = all.into_iter().filter(|column| !column.is_hidden);
        let columns: Vec<String> = shown.map(|column| column.name).collect();
        let is_free = |name: &&&str| !columns.iter().any(|c| c.eq_ignore_ascii_case(name));
        let rowid = ROWID_NAMES.iter().find(is_free).copied();
        Ok(Self {
            name: listed.name.clone(),
            rowid: rowid.filter(|_| listed.has_rowid),
            primary_key,
            is_view: listed.kind == "view",
            columns,
        })
    }
}

/// The columns of a table to read.
pub(super) struct SqliteSelection {
    pub(super) table: SqliteTable,
    /// The columns in reading order, after the row number.
    pub(super) read: Vec<ReadColumn>,
}

/// A column to read.
pub(super) struct ReadColumn {
    pub(super) name: String,
    /// True for a text or a key, whose bytes are UTF-8.
    pub(super) is_text: bool,
    /// True if documents use the column; otherwise it is only written.
    pub(super) is_asked_for: bool,
}

impl SqliteSelection {
    /// Selects the requested columns, or all. A missing column is an error.
    pub(super) fn new(
        table: SqliteTable,
        settings: &CorpusSettings,
        is_whole: bool,
    ) -> Result<Self, BadDocument> {
        columns::must_be_there(&table.columns, settings)?;
        let paths = columns::paths(settings);
        let is_text = |name: &str| {
            let mut texts = settings.text_fields.iter().chain(settings.id.field());
            texts.any(|path| path.name() == name)
        };
        let read = table.columns.iter().map(|name| ReadColumn {
            name: name.clone(),
            is_text: is_text(name),
            is_asked_for: paths.contains(&name.as_str()),
        });
        // The selected columns may change how SQLite computes a view, and so the order of its rows.
        let read_all = is_whole || table.is_view;
        Ok(Self {
            read: read
                .filter(|column| read_all || column.is_asked_for)
                .collect(),
            table,
        })
    }

    /// Returns the statement for all rows.
    pub(super) fn sql(&self) -> String {
        self.select("")
    }

    /// Returns the statement for the rows in a range of numbers.
    pub(super) fn piece_sql(&self, rowid: &str) -> String {
        self.select(&format!(" WHERE {rowid} BETWEEN ?1 AND ?2"))
    }

    fn select(&self, condition: &str) -> String {
        let rowid = self.table.rowid.unwrap_or("NULL");
        let names = self.read.iter().map(|column| quoted(&column.name));
        let columns = std::iter::once(rowid.to_owned()).chain(names).join(", ");
        let table = quoted(&self.table.name);
        let keys = self.table.primary_key.iter().map(|name| quoted(name));
        let order = match self.table.rowid {
            Some(rowid) => format!(" ORDER BY {rowid}"),
            None if self.table.primary_key.is_empty() => String::new(),
            None => format!(" ORDER BY {}", keys.format(", ")),
        };
        format!("SELECT {columns} FROM main.{table}{condition}{order}")
    }
}

/// Returns the names of all columns of a source's table.
pub(crate) fn column_names(
    source: &CorpusSource,
    settings: &CorpusSettings,
) -> Result<Vec<String>, CorpusError> {
    let database = Database::open(source, DatabaseUse::Reading)?;
    Ok(SqliteTable::choose(&database, settings)?.columns)
}

/// Returns all tables and views except SQLite's internal ones.
fn list(database: &Database) -> rusqlite::Result<Vec<ListedTable>> {
    let mut statement = database.connection.prepare(
        "SELECT l.name, l.type, l.wr, s.sql FROM pragma_table_list AS l \
         JOIN main.sqlite_schema AS s ON s.name = l.name AND s.type IN ('table', 'view') \
         WHERE l.schema = 'main' AND l.type != 'shadow' AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
         ORDER BY s.rowid",
    )?;
    let tables = statement.query_map([], |row| {
        let kind: String = row.get(1)?;
        let is_without: bool = row.get(2)?;
        let sql: Option<String> = row.get(3)?;
        Ok(ListedTable {
            name: row.get(0)?,
            has_rowid: kind != "view" && !is_without,
            is_of_verdicts: sql.is_some_and(|sql| source_of_verdicts(&sql).is_some()),
            kind,
        })
    })?;
    tables.collect()
}

/// A column of a table.
struct ListedColumn {
    name: String,
    /// The position in the primary key, from 1, or 0 outside of it.
    key_place: i64,
    /// True for an argument of a virtual table.
    is_hidden: bool,
}

fn columns_of(database: &Database, table: &str) -> rusqlite::Result<Vec<ListedColumn>> {
    const HIDDEN: i64 = 1;
    let sql = "SELECT name, hidden, pk FROM pragma_table_xinfo(?1, 'main') ORDER BY cid";
    let mut statement = database.connection.prepare(sql)?;
    let columns = statement.query_map([table], |row| {
        Ok(ListedColumn {
            name: row.get(0)?,
            key_place: row.get(2)?,
            is_hidden: row.get::<_, i64>(1)? == HIDDEN,
        })
    })?;
    columns.collect()
}
