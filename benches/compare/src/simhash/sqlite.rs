//! Four tables of 16-bit blocks in SQLite: what is at most three bits apart has a block in common.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};

use super::{DISTANCE, Index, Pairs};
use crate::Result;
use crate::sqlite::{close, connect, settings};

const TABLES: u32 = 4;

pub struct Blocks {
    connection: Connection,
    path: PathBuf,
}

fn path(folder: &Path) -> PathBuf {
    folder.join("sqlite.db")
}

fn block(fingerprint: u64, table: u32) -> u16 {
    (fingerprint >> (16 * table)) as u16
}

impl Blocks {
    pub fn open(folder: &Path) -> Result<Self> {
        let path = path(folder);
        let connection = connect(&path)?;
        for table in 0..TABLES {
            connection.execute_batch(&format!(
                "CREATE TABLE IF NOT EXISTS blocks{table} (block INTEGER, fingerprint INTEGER,
                     id INTEGER, PRIMARY KEY (block, fingerprint, id)) WITHOUT ROWID"
            ))?;
        }
        Ok(Self { connection, path })
    }

    /// All rows of a table, those of a block together.
    fn for_each_bucket(&self, table: u32, mut visit: impl FnMut(&[(u64, u64)])) -> Result<()> {
        let sql = format!(
            "SELECT block, fingerprint, id FROM blocks{table} ORDER BY block, fingerprint, id"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let mut rows = select.query([])?;
        let (mut bucket, mut current) = (Vec::new(), None);
        while let Some(row) = rows.next()? {
            let block: u16 = row.get(0)?;
            if current.replace(block).is_some_and(|before| before != block) {
                visit(&bucket);
                bucket.clear();
            }
            bucket.push((row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64));
        }
        visit(&bucket);
        Ok(())
    }
}

pub fn compact(folder: &Path) -> Result<()> {
    crate::sqlite::compact(&path(folder))
}

impl Index for Blocks {
    fn settings(&self) -> Result<String> {
        let settings = settings(&self.connection)?;
        Ok(format!(
            "{settings}; {TABLES} tables WITHOUT ROWID, primary key (block, fingerprint, id); \
             rows as the documents come"
        ))
    }

    fn insert(&mut self, first: u64, fingerprints: &[u64]) -> Result<()> {
        let transaction = self.connection.transaction()?;
        for table in 0..TABLES {
            let sql = format!("INSERT INTO blocks{table} VALUES (?1, ?2, ?3)");
            let mut insert = transaction.prepare_cached(&sql)?;
            for (id, fingerprint) in (first..).zip(fingerprints) {
                let block = block(*fingerprint, table);
                insert.execute(params![block, *fingerprint as i64, id as i64])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn begin_reading(&mut self) -> Result<()> {
        Ok(self.connection.execute_batch("BEGIN")?)
    }

    fn near(&self, fingerprint: u64) -> Result<Vec<u64>> {
        let mut ids = Vec::new();
        for table in 0..TABLES {
            let sql = format!("SELECT fingerprint, id FROM blocks{table} WHERE block = ?1");
            let mut select = self.connection.prepare_cached(&sql)?;
            let mut rows = select.query(params![block(fingerprint, table)])?;
            while let Some(row) = rows.next()? {
                let found = row.get::<_, i64>(0)? as u64;
                if (found ^ fingerprint).count_ones() <= DISTANCE {
                    ids.push(row.get::<_, i64>(1)? as u64);
                }
            }
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// Table after table in order; a pair is taken in the first block that it has in common.
    fn pairs(&self) -> Result<Pairs> {
        let mut pairs = Vec::new();
        for table in 0..TABLES {
            self.for_each_bucket(table, |bucket| {
                for (place, &(a, a_id)) in bucket.iter().enumerate() {
                    for &(b, b_id) in bucket.iter().skip(place + 1) {
                        let met = || (0..table).any(|one| block(a ^ b, one) == 0);
                        if (a ^ b).count_ones() <= DISTANCE && !met() {
                            pairs.push((a_id.min(b_id), a_id.max(b_id)));
                        }
                    }
                }
            })?;
        }
        Ok(pairs)
    }

    fn close(self: Box<Self>) -> Result<()> {
        close(self.connection, &self.path)
    }
}
