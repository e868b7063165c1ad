//! The options of an offline build.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::build::sort::{Sorter, code_bits};
use crate::engine::{FileSource, folder_of};
use crate::error::Result;
use crate::options::StoreOptions;
use crate::threads::{MAX_THREADS, processors};
use resemblance_sketch::schema::Schema;

/// Minimum memory limit, in bytes; a lower one is raised to it.
const MIN_MEMORY_BYTES: u64 = 1 << 20;

/// The action for a document that has the key of an earlier one.
///
/// ```
/// # use resemblance::{BulkOptions, DuplicateKeys, Error, MinHash, Schema, Store};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.rsm");
/// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
/// # let page = schema.sketcher().hashes([1, 2, 3])?;
/// let options = BulkOptions::new().duplicate_keys(DuplicateKeys::Refuse); // the default
/// let mut build = Store::bulk_build(path, schema, &options)?;
/// build.insert("a", &page)?;
/// build.insert("a", &page)?;
/// assert!(matches!(build.finish(), Err(Error::KeyTwice { .. })));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DuplicateKeys {
    /// Fail with [`Error::KeyTwice`](crate::Error::KeyTwice). In this case, no store is created.
    #[default]
    Refuse,
    /// Leave the later document out and count it; its id remains unused.
    KeepFirst,
    /// Replace the earlier document, which is left out and counted; its id remains unused.
    KeepLast,
}

/// The memory, disk space and threads that [`Store::bulk_build`](crate::Store::bulk_build) and
/// [`Store::reband`](crate::Store::reband) use. Only [`duplicate_keys`](Self::duplicate_keys)
/// changes which documents the store holds.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.rsm");
/// use std::num::NonZeroUsize;
/// use resemblance::{BulkOptions, DuplicateKeys, StoreOptions};
/// # use resemblance::{MinHash, Schema, Store};
/// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
/// let options = BulkOptions::new()
///     .memory_bytes(1 << 30)
///     .temp_dir(std::env::temp_dir())
///     .threads(NonZeroUsize::MIN)
///     .duplicate_keys(DuplicateKeys::KeepLast)
///     .store(StoreOptions::new().cache_bytes(256 << 20));
/// let build = Store::bulk_build(path, schema, &options)?;
/// assert_eq!(build.finish()?.documents, 0);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkOptions {
    pub(crate) store: StoreOptions,
    pub(crate) memory_bytes: u64,
    pub(super) temp_dir: Option<PathBuf>,
    pub(super) threads: Option<NonZeroUsize>,
    pub(crate) duplicate_keys: DuplicateKeys,
    pub(super) kept_hashes: Option<u64>,
}

impl Default for BulkOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl BulkOptions {
    /// Creates the default options: 256 MiB for sorting, temporary files beside the store, all
    /// cores, the default [`StoreOptions`], and an error for a repeated key.
    #[must_use]
    pub fn new() -> Self {
        Self {
            store: StoreOptions::new(),
            memory_bytes: 256 << 20,
            temp_dir: None,
            threads: None,
            duplicate_keys: DuplicateKeys::Refuse,
            kept_hashes: None,
        }
    }

    /// Sets the options with which the file is written. The cache takes memory in addition to the
    /// memory for sorting.
    #[must_use]
    pub fn store(mut self, options: StoreOptions) -> Self {
        self.store = options;
        self
    }

    /// Sets the memory for sorting postings, in bytes; at least 1 MiB. Postings that do not fit are
    /// sorted piece by piece and written to a temporary file. The memory suffices for postings of
    /// up to fifty times its size (256 MiB suffice for 75 million documents with 20 lanes). Beyond
    /// that, the last step takes proportionally more memory.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes.max(MIN_MEMORY_BYTES);
        self
    }

    /// Sets the folder of the temporary file. Default: the folder of the store, in which the store
    /// itself is always built.
    #[must_use]
    pub fn temp_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.temp_dir = Some(folder.into());
        self
    }

    /// Sets the number of threads that sort, in addition to the one that inserts. Default: one for
    /// each further core, and at least one. At most 1,024 are started.
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets the mean number of [kept hashes](crate::Signature::kept_hashes) of a document, for
    /// [`estimate`](Self::estimate) with a schema that has containment. It is about 2 / (w + 1) of
    /// the shingles with windows, or 1 / s of them with a scale. With an [exact](crate::SchemaBuilder::exact) schema it is the
    /// number of all features, also if there is containment. Nothing else depends on it.
    ///
    /// ```
    /// use resemblance::{BulkOptions, Containment, Schema};
    /// let schema = Schema::builder().containment(Containment::new(5).window(9)).build()?;
    /// assert!(BulkOptions::new().estimate(&schema, 1_000_000, 30, 0).is_err());
    /// let options = BulkOptions::new().kept_hashes(100); // of 500 shingles
    /// let bytes = options.estimate(&schema, 1_000_000, 0, 0)?.disk_bytes;
    /// assert!((900..1_300).contains(&(bytes / 1_000_000)));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn kept_hashes(mut self, mean: u64) -> Self {
        self.kept_hashes = Some(mean);
        self
    }

    /// Sets what to do with a document that has the key of an earlier one.
    #[must_use]
    pub fn duplicate_keys(mut self, rule: DuplicateKeys) -> Self {
        self.duplicate_keys = rule;
        self
    }

    /// Returns what sorts the postings of a store with this schema, at this path.
    pub(super) fn sorter(&self, schema: &Schema, path: &Path) -> Result<Sorter> {
        let folder = self.temp_dir.clone().unwrap_or_else(|| folder_of(path));
        let files = FileSource::default();
        Ok(Sorter::new(
            &code_bits(schema)?,
            schema.containment().is_some(),
            self.memory_bytes,
            self.sorting_threads(),
            &files.lasting(&folder)?,
        ))
    }

    pub(super) fn sorting_threads(&self) -> usize {
        let threads = self.threads.map(usize::from);
        threads
            .unwrap_or_else(|| processors() - 1)
            .clamp(1, MAX_THREADS)
    }
}
