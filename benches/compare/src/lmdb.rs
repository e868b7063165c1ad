//! The same postings in LMDB.

use std::path::Path;

use heed::types::Bytes;
use heed::{
    CommitOrAbort, CompactionOption, Database, DatabaseFlags, Env, EnvOpenOptions, PutFlags, RoTxn,
    WithTls,
};
use resemblance::Signature;

use crate::Result;
use crate::batch::{Batch, Input};
use crate::documents::Probe;
use crate::engine::Engine;
use crate::packed::{document, prefix};
use crate::sharing::{Shared, is_near};

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

/// Postings and records that several processes share.
pub struct SharedLmdb {
    postings: Database<'static, Bytes, Bytes>,
    records: Database<'static, Bytes, Bytes>,
    env: Env,
}

impl SharedLmdb {
    pub fn open(path: &Path) -> Result<Self> {
        std::fs::create_dir_all(path)?;
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES).max_dbs(2);
        // SAFETY: only processes of this measurement open the file, all of them through LMDB.
        let env = unsafe { options.open(path)? };
        let transaction = env.write_txn()?;
        let databases = env.create_databases_and_commit(transaction, |opener, transaction| {
            let mut options = opener.database_options().types::<Bytes, Bytes>();
            let records = options.name("records").create(transaction)?;
            options.flags(DatabaseFlags::DUP_SORT | DatabaseFlags::DUP_FIXED);
            let postings = options.name("postings").create(transaction)?;
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit((postings, records)))
        })?;
        let (postings, records) = databases.unwrap_commit();
        Ok(Self {
            postings,
            records,
            env,
        })
    }
}

impl Shared for SharedLmdb {
    fn load(&mut self, batch: &Batch) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        for (band, code, id) in batch.sorted_rows() {
            let key = prefix(band, code);
            self.postings
                .put(&mut transaction, &key, &id.to_be_bytes())?;
        }
        for (id, _, signature) in &batch.records {
            self.records
                .put(&mut transaction, &id.to_be_bytes(), signature)?;
        }
        Ok(transaction.commit()?)
    }

    fn insert_if_new(&mut self, _: &str, signature: &Signature, codes: &[u64]) -> Result<bool> {
        let mut transaction = self.env.write_txn()?;
        for (band, code) in (0..).zip(codes) {
            let found = self
                .postings
                .get_duplicates(&transaction, &prefix(band, *code))?;
            for entry in found.into_iter().flatten() {
                let (_, id) = entry?;
                let stored = self.records.get(&transaction, id)?.ok_or("no record")?;
                if is_near(signature, stored) {
                    return Ok(false);
                }
            }
        }
        let last = self.records.last(&transaction)?;
        let id = last.map_or(Ok(0), |(id, _)| document(id).map(|id| id + 1))?;
        let values = signature.minhash().unwrap_or_default();
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.records
            .put(&mut transaction, &id.to_be_bytes(), &bytes)?;
        for (band, code) in (0..).zip(codes) {
            self.postings
                .put(&mut transaction, &prefix(band, *code), &id.to_be_bytes())?;
        }
        transaction.commit()?;
        Ok(true)
    }
}
