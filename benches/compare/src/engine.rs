//! The interface of all engines in the comparison.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::batch::{Batch, Input};
use crate::documents::{Form, Probe};
use crate::options::Options;
use crate::ours::Ours;
use crate::process::allocated_bytes;
#[cfg(rocksdb)]
use crate::rocksdb;
use crate::sqlite::Sqlite;
use crate::{Result, fjall, hash_map, lmdb, ours, sqlite};

static CACHE_BYTES: AtomicU64 = AtomicU64::new(64 << 20);

/// The cache of every engine that has one.
pub fn cache_bytes() -> u64 {
    CACHE_BYTES.load(Ordering::Relaxed)
}

/// Sets it, before any engine is opened.
pub fn set_cache_bytes(bytes: u64) {
    CACHE_BYTES.store(bytes, Ordering::Relaxed);
}

/// True unless memory is so short that the system's reading ahead of mapped pages would only drop others.
static IS_MAPPED: AtomicBool = AtomicBool::new(true);

/// Returns true if engines that can map their file do.
pub fn is_mapped() -> bool {
    IS_MAPPED.load(Ordering::Relaxed)
}

/// Sets it, before any engine is opened.
pub fn set_mapped(is_mapped: bool) {
    IS_MAPPED.store(is_mapped, Ordering::Relaxed);
}

/// An engine that documents are loaded into.
pub trait Engine {
    /// Its version and settings, in words.
    fn settings(&self) -> Result<String>;

    /// Inserts a batch. It is durable when this returns, unless the engine is in memory.
    fn insert(&mut self, batch: &Batch) -> Result<()>;

    /// Waits until nothing is left to do in the background.
    fn finish_background_work(&mut self) -> Result<()> {
        Ok(())
    }

    /// Takes the state that probes see. Nothing is inserted after it.
    fn begin_reading(&mut self) -> Result<()> {
        Ok(())
    }

    /// The numbers of the documents that share a band with a probe, ascending.
    fn candidates(&self, probe: &Probe) -> Result<Vec<u64>>;

    /// Answers many probes in one call. Returns `None` if the engine has no such call.
    fn candidates_many(&self, _: &[Probe]) -> Option<Result<Vec<Vec<u64>>>> {
        None
    }

    /// Returns lines for the report after loading, and the bytes of a document's postings if the
    /// engine stores more than postings.
    fn inspect(&self) -> Result<(Vec<String>, Option<f64>)> {
        Ok((Vec::new(), None))
    }

    /// Ends it, its logs emptied.
    fn close(self: Box<Self>) -> Result<()>;
}

/// The engines that keep postings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Resemblance,
    Sqlite,
    /// The rows of each batch are sorted by the primary key first.
    SqliteSorted,
    Lmdb,
    Fjall,
    #[cfg(rocksdb)]
    RocksDb,
    HashMap,
}

impl Kind {
    pub const ALL: &[Self] = &[
        Self::Resemblance,
        Self::Sqlite,
        Self::SqliteSorted,
        Self::Lmdb,
        Self::Fjall,
        #[cfg(rocksdb)]
        Self::RocksDb,
        Self::HashMap,
    ];

    /// Whether what it keeps outlives it.
    pub fn is_durable(self) -> bool {
        self != Self::HashMap
    }

    /// The batch as the engine takes it.
    pub fn batch(self, options: &Options, numbers: std::ops::Range<u64>) -> Batch {
        let batch = Batch::new(options.form(), numbers);
        let sqlite = matches!(self, Self::Sqlite | Self::SqliteSorted);
        match self {
            Self::Resemblance => batch,
            _ if sqlite && options.with_records() => batch.with_rows(options.form()).with_records(),
            _ => batch.with_rows(options.form()),
        }
    }

    /// Opens what is in the folder, or makes it.
    pub fn open(self, form: Form, folder: &Path) -> Result<Box<dyn Engine>> {
        let path = self.path(folder);
        Ok(match self {
            Self::Resemblance => Box::new(Ours::open(form, &path)?),
            Self::Sqlite => Box::new(Sqlite::open(&path, false)?),
            Self::SqliteSorted => Box::new(Sqlite::open(&path, true)?),
            Self::Lmdb => Box::new(lmdb::Lmdb::open(&path)?),
            Self::Fjall => Box::new(fjall::Fjall::open(&path)?),
            #[cfg(rocksdb)]
            Self::RocksDb => Box::new(rocksdb::RocksDb::open(&path)?),
            Self::HashMap => Box::new(hash_map::Map::default()),
        })
    }

    /// Makes a new one of all that the input gives, in the engine's own fastest way.
    pub fn bulk_load(self, folder: &Path, input: &mut Input) -> Result<Box<dyn Engine>> {
        let path = self.path(folder);
        match self {
            Self::Resemblance => ours::bulk_load(&path, input)?,
            Self::Sqlite | Self::SqliteSorted => sqlite::bulk_load(&path, input)?,
            Self::Lmdb => lmdb::bulk_load(&path, input)?,
            Self::Fjall => fjall::bulk_load(&path, input)?,
            #[cfg(rocksdb)]
            Self::RocksDb => rocksdb::bulk_load(&path, input)?,
            Self::HashMap => return Ok(Box::new(hash_map::bulk_load(input))),
        }
        self.open(input.form, folder)
    }

    /// Makes a closed one as small and as fast to read as it can be, in the engine's own way.
    pub fn compact(self, folder: &Path) -> Result<()> {
        let path = self.path(folder);
        match self {
            Self::Resemblance => ours::compact(&path),
            Self::Sqlite | Self::SqliteSorted => sqlite::compact(&path),
            Self::Lmdb => lmdb::compact(&path),
            Self::Fjall => fjall::compact(&path),
            #[cfg(rocksdb)]
            Self::RocksDb => rocksdb::compact(&path),
            Self::HashMap => Ok(()),
        }
    }

    /// Bytes on disk of a closed one without its logs.
    pub fn file_bytes(self, folder: &Path) -> Result<u64> {
        let log_bytes = match self {
            Self::Fjall => fjall::log_bytes(&self.path(folder))?,
            #[cfg(rocksdb)]
            Self::RocksDb => rocksdb::log_bytes(&self.path(folder))?,
            _ => 0,
        };
        Ok(allocated_bytes(folder)? - log_bytes)
    }

    fn path(self, folder: &Path) -> PathBuf {
        folder.join(self.to_string())
    }
}

/// How an engine of this name is built, if this program was built without it.
pub fn how_to_build(name: &str) -> Option<&'static str> {
    (name == "rocksdb" && cfg!(not(rocksdb))).then_some(
        "not in this program: it is built with RUSTFLAGS='--cfg rocksdb' and RocksDB installed, as \
         docs/benchmarks.md says",
    )
}

/// As the command line names it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resemblance => "resemblance",
            Self::Sqlite => "sqlite",
            Self::SqliteSorted => "sqlite-sorted",
            Self::Lmdb => "lmdb",
            Self::Fjall => "fjall",
            #[cfg(rocksdb)]
            Self::RocksDb => "rocksdb",
            Self::HashMap => "hashmap",
        })
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        let mut kinds = Self::ALL.iter().copied();
        kinds
            .find(|kind| kind.to_string() == name)
            .ok_or_else(|| match how_to_build(name) {
                Some(how) => format!("{name}: {how}"),
                None => format!("{name}: no such engine"),
            })
    }
}
