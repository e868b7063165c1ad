//! The same postings in RocksDB.

use std::path::Path;
use std::time::Duration;

use rocksdb::properties::{
    COMPACTION_PENDING, MEM_TABLE_FLUSH_PENDING, NUM_RUNNING_COMPACTIONS, NUM_RUNNING_FLUSHES,
    num_files_at_level,
};
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, BottommostLevelCompaction, Cache, CompactOptions, DB,
    DBCompressionType, IngestExternalFileOptions, Options, ReadOptions, SliceTransform,
    SstFileWriter, WriteBatch, WriteOptions,
};

use crate::Result;
use crate::batch::{Batch, Input};
use crate::documents::Probe;
use crate::engine::{Engine, cache_bytes};
use crate::packed::{document, pack, prefix};
use crate::process::allocated_bytes;

/// The number of bits of each entry in a filter, at the error rate of a Bloom filter. A Ribbon
/// filter takes seven.
const FILTER_BITS: f64 = 10.0;

const BLOCK_BYTES: usize = 4096;

/// The block size of indexes and filters. With larger blocks than those of postings, a search reads
/// fewer of them.
const METADATA_BLOCK_BYTES: usize = 16 << 10;

const MEMTABLE_BYTES: usize = 64 << 20;

/// The number of memtables, including those that are being flushed: commits need not wait for a
/// flush.
const MEMTABLES: i32 = 4;

/// The share of the memtable for its filter, about ten bits for each entry.
const MEMTABLE_FILTER_SHARE: f64 = 0.03;

/// The number of rows in a file to ingest: about the number in a 64 MiB file, as compactions write
/// it.
const FILE_ROWS: usize = 3_000_000;

/// RocksDB's default number of levels.
const LEVELS: usize = 7;

const IDLE_POLLS: u32 = 5;

pub struct RocksDb {
    database: DB,
}

impl RocksDb {
    pub fn open(path: &Path) -> Result<Self> {
        let database = DB::open(&options()?, path)?;
        Ok(Self { database })
    }

    /// Waits until nothing is at work or wanted.
    fn wait_until_idle(&self) -> Result<()> {
        let mut idle = 0;
        while idle < IDLE_POLLS {
            idle = if self.works()? { 0 } else { idle + 1 };
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    fn works(&self) -> Result<bool> {
        for name in [
            NUM_RUNNING_FLUSHES,
            NUM_RUNNING_COMPACTIONS,
            MEM_TABLE_FLUSH_PENDING,
            COMPACTION_PENDING,
        ] {
            let value = self.database.property_int_value(name)?;
            if value.ok_or("a property is missing")? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn files_at_level(&self, level: usize) -> Result<u64> {
        let value = self.database.property_value(num_files_at_level(level))?;
        Ok(value.ok_or("a property is missing")?.parse()?)
    }

    /// Returns the version of the library, which it writes beside its options.
    fn version(&self) -> Result<String> {
        for entry in std::fs::read_dir(self.database.path())? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if !name.is_some_and(|name| name.starts_with("OPTIONS-")) {
                continue;
            }
            let text = std::fs::read_to_string(path)?;
            let mut lines = text.lines().filter_map(|line| line.split_once('='));
            if let Some((_, version)) = lines.find(|(name, _)| name.trim() == "rocksdb_version") {
                return Ok(version.to_owned());
            }
        }
        Err("RocksDB wrote no version".into())
    }
}

fn options() -> Result<Options> {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&table_options()?);
    options.set_prefix_extractor(SliceTransform::create_fixed_prefix(prefix(0, 0).len()));
    options.set_memtable_prefix_bloom_ratio(MEMTABLE_FILTER_SHARE);
    options.set_compression_type(DBCompressionType::None);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_write_buffer_size(MEMTABLE_BYTES);
    options.set_max_write_buffer_number(MEMTABLES);
    options.set_max_background_jobs(2);
    // Commits wait for compactions of level 0, which are one at a time.
    options.set_max_subcompactions(2);
    options.set_compaction_readahead_size(2 << 20);
    // The disk works while files are written, and not only when they are synced.
    options.set_bytes_per_sync(1 << 20);
    options.set_keep_log_file_num(1);
    Ok(options)
}

/// Index and filters are larger than the cache where there are millions of documents, so that they
/// are cached block by block.
fn table_options() -> Result<BlockBasedOptions> {
    let mut options = BlockBasedOptions::default();
    // The newest that 7.8 writes.
    options.set_format_version(5);
    options.set_block_size(BLOCK_BYTES);
    options.set_block_cache(&Cache::new_lru_cache(usize::try_from(cache_bytes())?)?);
    options.set_cache_index_and_filter_blocks(true);
    options.set_pin_l0_filter_and_index_blocks_in_cache(true);
    options.set_pin_top_level_index_and_filter(true);
    options.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    options.set_partition_filters(true);
    options.set_metadata_block_size(METADATA_BLOCK_BYTES);
    // Probes know prefixes only. Level 0 is short-lived, and Bloom filters are made in less time.
    options.set_whole_key_filtering(false);
    options.set_hybrid_ribbon_filter(FILTER_BITS, 1);
    Ok(options)
}

/// Files of sorted rows become the lowest level as they are.
pub fn bulk_load(path: &Path, input: &mut Input) -> Result<()> {
    let rocksdb = RocksDb::open(path)?;
    let folder = path.with_extension("ingest");
    std::fs::create_dir(&folder)?;
    let options = options()?;
    let mut files = Vec::new();
    while let Some(rows) = input.next_band() {
        for rows in rows.chunks(FILE_ROWS) {
            let file = folder.join(files.len().to_string());
            let mut writer = SstFileWriter::create(&options);
            writer.open(&file)?;
            for &row in rows {
                writer.put(pack(row), [])?;
            }
            writer.finish()?;
            files.push(file);
        }
    }
    let mut options = IngestExternalFileOptions::default();
    options.set_move_files(true);
    rocksdb
        .database
        .ingest_external_file_opts(&options, files)?;
    Ok(std::fs::remove_dir(folder)?)
}

/// Everything into one level, the files that are there already as well.
pub fn compact(path: &Path) -> Result<()> {
    let rocksdb = RocksDb::open(path)?;
    let mut options = CompactOptions::default();
    options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
    let all: Option<&[u8]> = None;
    rocksdb.database.compact_range_opt(all, all, &options);
    rocksdb.wait_until_idle()?;
    // The library does not report its errors.
    for level in 0..LEVELS - 1 {
        if rocksdb.files_at_level(level)? > 0 {
            return Err(format!("level {level} is not compacted").into());
        }
    }
    Ok(())
}

/// Bytes on disk of logs of writes, and of what happened.
pub fn log_bytes(path: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        let is_of_writes = path.extension().is_some_and(|extension| extension == "log");
        let name = path.file_name().and_then(|name| name.to_str());
        if is_of_writes || name.is_some_and(|name| name.starts_with("LOG")) {
            bytes += allocated_bytes(&path)?;
        }
    }
    Ok(bytes)
}

impl Engine for RocksDb {
    fn settings(&self) -> Result<String> {
        Ok(format!(
            "RocksDB {}, keys of 18 bytes and no values, block cache {} MiB with index and filter \
             blocks in it, both in parts of {METADATA_BLOCK_BYTES} bytes, the top level and those \
             of level 0 pinned, blocks of {BLOCK_BYTES} bytes, filters of prefixes (band and code) only, {FILTER_BITS} bits: \
             Bloom in level 0 and memtables, Ribbon below; no compression, format 5, levels of \
             dynamic size, {} memtables of {} MiB at most, 2 background jobs, 2 subcompactions, \
             the log synced with each batch (fdatasync); the rows of each batch are sorted first, \
             within the time; bulk: sorted files of {FILE_ROWS} rows at most, ingested; a probe has \
             one iterator for all bands, within prefixes; it flushes and compacts in threads of \
             its own, so that only the total of bytes written says something",
            self.version()?,
            cache_bytes() >> 20,
            MEMTABLES,
            MEMTABLE_BYTES >> 20,
        ))
    }

    fn insert(&mut self, batch: &Batch) -> Result<()> {
        let mut writes = WriteBatch::default();
        for row in batch.sorted_rows() {
            writes.put(pack(row), []);
        }
        let mut options = WriteOptions::default();
        options.set_sync(true);
        Ok(self.database.write_opt(writes, &options)?)
    }

    fn finish_background_work(&mut self) -> Result<()> {
        self.wait_until_idle()
    }

    fn candidates(&self, probe: &Probe) -> Result<Vec<u64>> {
        let mut options = ReadOptions::default();
        options.set_prefix_same_as_start(true);
        let mut entries = self.database.raw_iterator_opt(options);
        let mut ids = Vec::new();
        for (band, code) in (0..).zip(&probe.codes) {
            entries.seek(prefix(band, *code));
            while let Some(key) = entries.key() {
                ids.push(document(key)?);
                entries.next();
            }
            entries.status()?;
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    fn inspect(&self) -> Result<(Vec<String>, Option<f64>)> {
        let levels = (0..LEVELS).map(|level| self.files_at_level(level));
        let levels: Vec<u64> = levels.collect::<Result<_>>()?;
        Ok((vec![format!("files by level: {levels:?}")], None))
    }

    /// Flushes the memtable to a table first, because there is no log.
    fn close(self: Box<Self>) -> Result<()> {
        self.database.flush()?;
        self.wait_until_idle()
    }
}
