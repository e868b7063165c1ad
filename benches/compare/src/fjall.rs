//! The same postings in fjall.

use std::path::Path;
use std::time::Duration;

use fjall::config::{CompressionPolicy, FilterPolicy, PinningPolicy};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot};

use crate::Result;
use crate::batch::{Batch, Input};
use crate::documents::Probe;
use crate::engine::{Engine, cache_bytes};
use crate::packed::{document, pack, prefix};
use crate::process::allocated_bytes;

const IDLE_POLLS: u32 = 25;

pub struct Fjall {
    reader: Option<Snapshot>,
    keyspace: Keyspace,
    database: Database,
}

impl Fjall {
    pub fn open(path: &Path) -> Result<Self> {
        let database = Database::builder(path).cache_size(cache_bytes()).open()?;
        let keyspace = database.keyspace("postings", || {
            // Its filters are of whole keys, and a probe knows only how those that it asks for begin.
            KeyspaceCreateOptions::default()
                .filter_policy(FilterPolicy::disabled())
                .index_block_pinning_policy(PinningPolicy::all(true))
                .data_block_compression_policy(CompressionPolicy::disabled())
        })?;
        Ok(Self {
            reader: None,
            keyspace,
            database,
        })
    }

    /// Waits until the engine has been idle for a while, because requested work begins a little
    /// later.
    fn wait_until_idle(&self) {
        let mut idle = 0;
        while idle < IDLE_POLLS {
            let database = &self.database;
            let works = database.outstanding_flushes() > 0 || database.active_compactions() > 0;
            idle = if works { 0 } else { idle + 1 };
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Everything in one ingestion, in the order of the keys.
pub fn bulk_load(path: &Path, input: &mut Input) -> Result<()> {
    let fjall = Fjall::open(path)?;
    let mut ingestion = fjall.keyspace.start_ingestion()?;
    while let Some(rows) = input.next_band() {
        for row in rows {
            ingestion.write(pack(row), [])?;
        }
    }
    ingestion.finish()?;
    Ok(fjall.database.persist(PersistMode::SyncAll)?)
}

pub fn compact(path: &Path) -> Result<()> {
    let fjall = Fjall::open(path)?;
    fjall.keyspace.rotate_memtable_and_wait()?;
    fjall.wait_until_idle();
    fjall.keyspace.major_compact()?;
    Ok(fjall.database.persist(PersistMode::SyncAll)?)
}

/// Bytes on disk of logs, whose rows are in the tables as well once it is closed.
pub fn log_bytes(path: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jnl") {
            bytes += allocated_bytes(&path)?;
        }
    }
    Ok(bytes)
}

impl Engine for Fjall {
    fn settings(&self) -> Result<String> {
        Ok(format!(
            "fjall 3, keys of 18 bytes and no values, block cache {} MiB, no filters (they are of \
             whole keys: probes, which ask for prefixes, cannot use them), index blocks pinned, no \
             compression, the rest by default (memtable 64 MiB), each batch persisted with \
             fdatasync; the rows of each batch are sorted first, within the time; it flushes and \
             merges in threads of its own, so that only the total of bytes written says something",
            cache_bytes() >> 20
        ))
    }

    fn insert(&mut self, batch: &Batch) -> Result<()> {
        let mut writes = self
            .database
            .batch()
            .durability(Some(PersistMode::SyncData));
        for row in batch.sorted_rows() {
            writes.insert(&self.keyspace, pack(row), []);
        }
        Ok(writes.commit()?)
    }

    fn finish_background_work(&mut self) -> Result<()> {
        self.wait_until_idle();
        Ok(())
    }

    fn begin_reading(&mut self) -> Result<()> {
        self.reader = Some(self.database.snapshot());
        Ok(())
    }

    fn candidates(&self, probe: &Probe) -> Result<Vec<u64>> {
        let reader = self.reader.as_ref().ok_or("no reader")?;
        let mut ids = Vec::new();
        for (band, code) in (0..).zip(&probe.codes) {
            for entry in reader.prefix(&self.keyspace, prefix(band, *code)) {
                ids.push(document(&entry.key()?)?);
            }
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// Flushes the memtable to a table first, because there is no log.
    fn close(mut self: Box<Self>) -> Result<()> {
        self.reader = None;
        self.keyspace.rotate_memtable_and_wait()?;
        self.wait_until_idle();
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }
}
