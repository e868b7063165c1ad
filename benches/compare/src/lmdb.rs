//! The same postings in LMDB.

use std::path::Path;

use heed::types::Bytes;
use heed::{
    CommitOrAbort, CompactionOption, Database, DatabaseFlags, Env, EnvOpenOptions, PutFlags, RoTxn,
    WithTls,
};

use crate::Result;
use crate::batch::{Batch, Input};
use crate::documents::Probe;
use crate::engine::Engine;
use crate::packed::{document, prefix};

/// Only address space: it takes neither memory nor disk.
const MAP_BYTES: usize = 1 << 40;

const DATA_FILE: &str = "data.mdb";

pub struct Lmdb {
    // Declared before the environment, so that the reader ends first.
    reader: Option<RoTxn<'static, WithTls>>,
    database: Database<'static, Bytes, Bytes>,
    env: Env,
}

impl Lmdb {
    pub fn open(path: &Path) -> Result<Self> {
        std::fs::create_dir_all(path)?;
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES);
        // SAFETY: the folder is this process's own; no other program changes the file.
        let env = unsafe { options.open(path)? };
        let transaction = env.write_txn()?;
        let database = env
            .create_databases_and_commit(transaction, |opener, transaction| {
                let mut options = opener.database_options().types::<Bytes, Bytes>();
                options.flags(DatabaseFlags::DUP_SORT | DatabaseFlags::DUP_FIXED);
                let database = options.create(transaction)?;
                Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(database))
            })?
            .unwrap_commit();
        Ok(Self {
            reader: None,
            database,
            env,
        })
    }
}

fn close(env: Env) {
    env.prepare_for_closing().wait();
}

/// Appends the rows in the order of their keys, one commit for each band.
pub fn bulk_load(path: &Path, input: &mut Input) -> Result<()> {
    let lmdb = Lmdb::open(path)?;
    while let Some(rows) = input.next_band() {
        let mut transaction = lmdb.env.write_txn()?;
        for (band, code, id) in rows {
            let (flags, key) = (PutFlags::APPEND_DUP, prefix(band, code));
            lmdb.database
                .put_with_flags(&mut transaction, flags, &key, &id.to_be_bytes())?;
        }
        transaction.commit()?;
    }
    close(lmdb.env);
    Ok(())
}

/// Replaces the file by a copy without free pages.
pub fn compact(path: &Path) -> Result<()> {
    let copy = path.join("copy.mdb");
    let lmdb = Lmdb::open(path)?;
    lmdb.env
        .copy_to_path(&copy, CompactionOption::Enabled)?
        .sync_all()?;
    close(lmdb.env);
    Ok(std::fs::rename(copy, path.join(DATA_FILE))?)
}

impl Engine for Lmdb {
    fn settings(&self) -> Result<String> {
        Ok(
            "LMDB (heed), DUPSORT and DUPFIXED: keys of 10 bytes, each with ids of 8, each commit \
             synced, no write map; the rows of each batch are sorted first, within the time; its \
             cache is the page cache of the system, whatever --memory says, and resident memory \
             counts it"
                .into(),
        )
    }

    fn insert(&mut self, batch: &Batch) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        for (band, code, id) in batch.sorted_rows() {
            let key = prefix(band, code);
            self.database
                .put(&mut transaction, &key, &id.to_be_bytes())?;
        }
        Ok(transaction.commit()?)
    }

    fn begin_reading(&mut self) -> Result<()> {
        self.reader = Some(self.env.clone().static_read_txn()?);
        Ok(())
    }

    fn candidates(&self, probe: &Probe) -> Result<Vec<u64>> {
        let reader = self.reader.as_ref().ok_or("no reader")?;
        let mut ids = Vec::new();
        for (band, code) in (0..).zip(&probe.codes) {
            let found = self.database.get_duplicates(reader, &prefix(band, *code))?;
            for entry in found.into_iter().flatten() {
                let (_, id) = entry?;
                ids.push(document(id)?);
            }
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { reader, env, .. } = *self;
        drop(reader);
        close(env);
        Ok(())
    }
}
