//! Checks that the linked engine writes pages as this crate reads them.
//!
//! Cargo may link a release of the engine that was never tested with this crate, and a file format
//! with the same number may still have different pages. Before a process opens its first file, it
//! therefore lets the engine write a small file in memory, and reads it with verified pages. An
//! engine that fails this check is refused. Every file with our seal has therefore been written by
//! an engine that passed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use redb::{
    Database, Key, ReadTransaction, ReadableDatabase, ReadableTable, StorageBackend,
    TableDefinition, Value,
};

use crate::engine_error::{EngineError, Result};
use crate::files::{JournalLimits, MemoryFile};
use crate::journaled_file::Role;
use crate::page_layout::copy;
use crate::verified_file::{Verification, VerifiedFile};

/// Tables with every combination of fixed and variable widths of keys and values.
const NUMBERED: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("numbered");
const NAMED: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("named");
const FIXED: TableDefinition<'static, &[u8; 22], &[u8; SHORT_BYTES]> =
    TableDefinition::new("fixed");
const COUNTED: TableDefinition<'static, &[u8], &[u8; SHORT_BYTES]> =
    TableDefinition::new("counted");

/// The number of rows that gives every table a branch above its leaves.
const ROWS: u64 = 16;

/// The length of values that exceed a page, and of values of which few fit into one.
const LONG_BYTES: usize = 9_000;
const SHORT_BYTES: usize = 500;

/// The size of the write cache. Everything written remains in memory until it is committed.
const WRITE_CACHE_BYTES: usize = 1 << 20;

/// Fails if the engine of this process writes a different page layout. Checks once, which takes a
/// millisecond or two.
///
/// # Errors
/// [`EngineError::UntriedEngine`].
pub(crate) fn check_engine() -> Result<()> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let memory = MemoryFile::default();
        let open = || verified(&memory);
        match catch_unwind(AssertUnwindSafe(|| try_engine(open))) {
            Ok(trial) => trial.err().map(|error| error.to_string()),
            Err(_) => Some("it stopped with a panic".into()),
        }
    });
    match found {
        None => Ok(()),
        Some(detail) => Err(EngineError::UntriedEngine {
            detail: detail.clone(),
        }),
    }
}

/// Opens a file in memory with verified pages.
fn verified(memory: &MemoryFile) -> (VerifiedFile, Arc<Verification>) {
    let file = VerifiedFile::new(memory.clone().into(), JournalLimits::NONE, Role::Alone);
    let verification = Arc::clone(&file.verification);
    (file, verification)
}

/// Writes a file, changes it, and reads it, each time through a new handle of the same memory.
fn try_engine<F: StorageBackend>(open: impl Fn() -> (F, Arc<Verification>)) -> Result<()> {
    let mut builder = Database::builder();
    builder.set_cache_size(WRITE_CACHE_BYTES);
    let (file, verification) = open();
    let database = builder.create_with_backend(file)?;
    verification.opened();
    write_rows(&database)?;
    drop_rows(&database)?;
    database.close()?;
    // Without a cache, every page is read from the file.
    builder.set_cache_size(0);
    let (file, verification) = open();
    let database = builder.open_read_only_with_backend(file)?;
    verification.opened();
    read_rows(&database)?;
    Ok(database.close()?)
}

fn write_rows(database: &Database) -> Result<()> {
    let write = database.begin_write()?;
    {
        let mut numbered = write.open_table(NUMBERED)?;
        let mut named = write.open_table(NAMED)?;
        let mut fixed = write.open_table(FIXED)?;
        let mut counted = write.open_table(COUNTED)?;
        let (short, long) = ([5; SHORT_BYTES], [7; LONG_BYTES]);
        for row in 0..ROWS {
            let value: &[u8] = if row == 3 { &long } else { &short };
            let name = row.to_string();
            let mut key = [1; 22];
            copy(&mut key, &row.to_be_bytes());
            numbered.insert(row, value)?;
            named.insert(name.as_str(), value)?;
            fixed.insert(&key, &short)?;
            counted.insert(key.as_slice(), &short)?;
        }
    }
    Ok(write.commit()?)
}

/// Makes the other kind of commit, and writes pages again.
fn drop_rows(database: &Database) -> Result<()> {
    let mut write = database.begin_write()?;
    write.set_quick_repair(true);
    write.open_table(NUMBERED)?.retain(|row, _| is_kept(row))?;
    Ok(write.commit()?)
}

fn is_kept(row: u64) -> bool {
    row.is_multiple_of(2)
}

fn read_rows(database: &redb::ReadOnlyDatabase) -> Result<()> {
    let read = database.begin_read()?;
    let rows = [
        count(&read, NUMBERED)?,
        count(&read, NAMED)?,
        count(&read, FIXED)?,
        count(&read, COUNTED)?,
    ];
    match rows == [ROWS / 2, ROWS, ROWS, ROWS] {
        true => Ok(()),
        false => Err(EngineError::corrupt(
            "a trial of the engine",
            format!("found {rows:?} rows"),
        )),
    }
}

/// Reads all rows of a table.
fn count<K: Key + 'static, V: Value + 'static>(
    read: &ReadTransaction,
    table: TableDefinition<'_, K, V>,
) -> Result<u64> {
    let mut rows = 0;
    for row in read.open_table(table)?.iter()? {
        row?;
        rows += 1;
    }
    Ok(rows)
}

#[cfg(test)]
#[path = "layout_check_tests.rs"]
mod tests;
