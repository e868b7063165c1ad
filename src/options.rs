//! Options of an open store. They change speed and memory, and change answers only where their
//! documentation says so.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::{FileOptions, FileSource, Files, JournalLimits, Sharing};
use crate::error::{Error, Result};
use crate::threads::processors;

/// Kept hashes for each document of `flush_after` at which the memtable is flushed.
const KEPT_HASHES_PER_DOCUMENT: u64 = 64;

/// The least number of documents at which the memtable is flushed by default.
const MIN_FLUSHED_DOCUMENTS: u64 = 65_536;

/// The number of postings at which it is flushed by default, if that many documents have them.
const FLUSHED_POSTINGS: u64 = 1 << 20;

/// Number of postings below which a second thread costs more than it saves.
const MIN_IN_PARALLEL: u64 = 16_384;

/// Number of changes of clusters that a store keeps.
const KEPT_CHANGES: u64 = 1 << 20;

/// Options of an open store: its use of memory and disk. The file does not store them. Only
/// [`probe_budget`](Self::probe_budget) can change an answer, and an answer that it may have
/// changed reports this.
///
/// ```
/// use resemblance::StoreOptions;
/// let options = StoreOptions::new().cache_bytes(256 << 20);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    pub(crate) cache_bytes: u64,
    flush_after: Option<u64>,
    pub(crate) quick_repair: bool,
    pub(crate) merge_slice_postings: u64,
    pub(crate) merges_in_parallel: bool,
    pub(crate) group_calls: usize,
    pub(crate) group_wait: Duration,
    pub(crate) queue_bytes: usize,
    pub(crate) probe_budget: Option<u64>,
    pub(crate) kept_changes: u64,
    journal: JournalLimits,
    is_without_lock: bool,
    is_written_at_once: bool,
    is_alone: bool,
    shared_writers: Option<bool>,
    wait: Duration,
    files: FileSource,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl StoreOptions {
    /// Creates the default options: a cache of 64 MiB, no quick repair.
    #[must_use]
    pub fn new() -> Self {
        Self {
            cache_bytes: 64 << 20,
            flush_after: None,
            quick_repair: false,
            // About 64 blocks. In addition to its blocks, a slice writes a few rows, and rereads
            // the postings that did not fill a block of the slice before.
            merge_slice_postings: 64 * 700,
            merges_in_parallel: processors() > 1,
            group_calls: 1_024,
            group_wait: Duration::from_millis(1),
            queue_bytes: 64 << 20,
            probe_budget: None,
            kept_changes: KEPT_CHANGES,
            journal: JournalLimits::USUAL,
            is_without_lock: false,
            is_written_at_once: false,
            is_alone: false,
            shared_writers: None,
            wait: Duration::from_secs(10),
            files: FileSource::default(),
        }
    }

    /// Sets whether any number of processes may take turns to write the store. A new store records
    /// the setting. Opening an existing store with a different setting changes it, when no other
    /// process has the store open. Default: the setting of the store; a new store has one writer at
    /// a time.
    ///
    /// Each write transaction is a turn. While no other process writes, a process keeps its caches;
    /// after a turn of another process, it reads what that one has committed.
    /// [`insert_if_new`](crate::Store::insert_if_new) is atomic among all processes: if two
    /// processes insert near-duplicates at the same time, exactly one is new.
    ///
    /// The setting has a price: each commit also writes which pages of the file are free, about
    /// 1/16,384 of the file. A store with one writer avoids that, and other processes can still
    /// read it.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, StoreOptions, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// // As in two processes:
    /// let one = StoreOptions::new().shared_writers(true).create(&path, schema)?;
    /// let other = Store::open(&path)?;
    /// let page = one.sketch_text("to be or not to be")?;
    /// assert!(one.insert_if_new("1", &page)?.is_new());
    /// assert!(!other.insert_if_new("2", &page)?.is_new());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn shared_writers(mut self, on: bool) -> Self {
        self.shared_writers = Some(on);
        self
    }

    /// Sets how long to wait for another process, or another handle of this one, that has the store
    /// open for writing. If the wait is longer, the call returns [`Error::Locked`], which names the
    /// other process. Handles that only read do not wait, except for a compaction or a rebanding,
    /// which need exclusive access. Default: 10 seconds.
    ///
    /// ```
    /// # use resemblance::{Error, MinHash, Schema, Store, StoreOptions, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// use std::time::Duration;
    /// let writer = Store::create(&path, schema)?;
    /// let second = StoreOptions::new().wait(Duration::ZERO).open(&path);
    /// assert!(matches!(second, Err(Error::Locked { .. })));
    /// let reader = StoreOptions::new().open_read_only(&path)?;
    /// writer.insert("a", &writer.sketch_text("some text or other")?)?;
    /// assert_eq!(reader.snapshot()?.len(), 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Sets the size of the one cache that reads and the writer share, at least 1 MiB. Default: 64
    /// MiB, whatever the machine has. A quarter of it holds pages of the file; a cache of less than
    /// 64 MiB uses one half or 16 MiB for them, whichever is less. The rest holds data that probes
    /// read from runs: filters in up to seven eighths of it, the places of other blocks in the file
    /// in up to half of the remainder (or a tenth of the whole, if that is more), and blocks of
    /// postings in what is left. [`Snapshot::stats`](crate::Snapshot::stats) reports the memory of
    /// filters and blocks.
    ///
    /// New filters have 3 to 16 bits for each posting; smaller runs get more bits. Their size is
    /// chosen so that the filters of all documents of the store fit. If there is not enough memory
    /// for 3 bits, the largest runs get no filters. While a store grows, filters may take up to
    /// twice their share, because older runs were written when the store was smaller. A store that
    /// is written with a small cache and read with a large one has coarser filters until its runs
    /// are merged.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes.max(1 << 20);
        self
    }

    /// Sets the number of documents whose postings are kept in memory before they are flushed to a
    /// run: 1 to 1,048,576. Each takes 16 bytes per lane. With containment a document also takes 16
    /// bytes for each kept hash, and postings are flushed as soon as there are 64 times as many
    /// hashes as this number. Default: the number that has 2²⁰ postings, but at least 65,536.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, StoreOptions, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// // A document has a posting in each lane: with 16 bytes each these are kept in 64 MiB.
    /// let documents = (64 << 20) / (16 * schema.lanes() as u64);
    /// let store = StoreOptions::new().flush_after(documents).create(&path, schema)?;
    /// # drop(store);
    /// assert!(StoreOptions::new().flush_after(0).open(&path).is_err());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn flush_after(mut self, documents: u64) -> Self {
        self.flush_after = Some(documents);
        self
    }

    /// Sets whether commits record what a fast repair after a crash needs. If off, opening after a
    /// crash reads the file twice. If on, each commit syncs once more and also writes which pages
    /// are free. Default: off.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, StoreOptions, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// // For a file of many gigabytes that must open quickly after a crash:
    /// let store = StoreOptions::new().quick_repair(true).create(path, schema)?;
    /// assert_eq!(store.close()?, resemblance::Closed::File);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn quick_repair(mut self, on: bool) -> Self {
        self.quick_repair = on;
        self
    }

    /// Sets whether a commit with much to merge or sort computes on a second thread while the first
    /// one reads and writes. The thread ends before the commit does, and the written bytes are the
    /// same. Default: on if the machine has more than one processor.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, StoreOptions, Text};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// // The other processors are for others.
    /// let store = StoreOptions::new().merge_in_parallel(false).create_in_memory(schema)?;
    /// assert_eq!(store.close()?, resemblance::Closed::File);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn merge_in_parallel(mut self, on: bool) -> Self {
        self.merges_in_parallel = on;
        self
    }

    /// Sets the maximum number of calls from different threads, such as
    /// [`Store::insert_if_new`](crate::Store::insert_if_new), that share a transaction: 1 to
    /// 65,536. With 1, each call syncs separately. Default: 1,024.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, StoreOptions, Text};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// let alone = StoreOptions::new().group_calls(1).create_in_memory(schema)?;
    /// alone.insert("a", &alone.sketch_text("some text or other")?)?;
    /// assert_eq!(alone.metrics().largest_group, 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn group_calls(mut self, calls: usize) -> Self {
        self.group_calls = calls;
        self
    }

    /// Sets the maximum time that a call waits for calls of other threads before it begins to
    /// write. It waits only while fewer threads are calling than have recently called at about the
    /// same time, and at most for a quarter of the time that the last commit took. A single writer
    /// never waits. Default: 1 ms.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, StoreOptions, Text};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// use std::time::Duration;
    /// // More calls per sync, for a disk that is slow to sync.
    /// let options = StoreOptions::new().group_wait(Duration::from_millis(5));
    /// assert_eq!(options.create_in_memory(schema)?.close()?, resemblance::Closed::File);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn group_wait(mut self, wait: Duration) -> Self {
        self.group_wait = wait;
        self
    }

    /// Sets how many bytes of keys, payloads and signatures may wait for a commit in a
    /// [queue](crate::Store::queue), 1 or more. Further changes are refused;
    /// [`Queue::ready`](crate::Queue::ready) waits until there is room. A single change may be
    /// larger. Default: 64 MiB.
    ///
    /// ```
    /// # use resemblance::{Error, MinHash, Schema, StoreOptions, Text};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// let store = StoreOptions::new().queue_bytes(256 << 20).create_in_memory(schema)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// match store.queue().insert("a", &page) {
    ///     Ok(ticket) => assert_eq!(ticket.wait()?.get(), 0),
    ///     Err(Error::QueueFull { waiting_bytes }) => eprintln!("{waiting_bytes} bytes wait"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn queue_bytes(mut self, bytes: usize) -> Self {
        self.queue_bytes = bytes;
        self
    }

    /// Sets the maximum number of candidates with which `insert_if_new` and its variants compare a
    /// document, 1 or more. This bounds the cost of a document if templates or error pages fill a
    /// bucket. The search first looks for an identical document, and then chooses candidates as
    /// [`Query::probe_budget`](crate::Query::probe_budget) does. Default: no limit.
    ///
    /// If the budget is exceeded, a near-duplicate may be treated as new, and a reported
    /// near-duplicate may not be the most similar one.
    /// [`Novelty::budget_exceeded`](crate::Novelty::budget_exceeded) reports this. Queries have a
    /// separate budget.
    ///
    /// ```
    /// # use resemblance::{MinHash, Novelty, Schema, Signature, StoreOptions};
    /// # let minhash = MinHash::new(16).banding(4, 2).threshold(0.9);
    /// # let schema = Schema::builder().minhash(minhash).build()?;
    /// let options = StoreOptions::new().probe_budget(2);
    /// let store = options.create_in_memory(schema)?;
    /// // All share a band; no two are near.
    /// let page = |number| Signature::from_minhash([vec![7; 2], vec![number; 14]].concat());
    /// assert!(matches!(store.insert_if_new("1", &page(1))?, Novelty::New { .. }));
    /// assert!(matches!(store.insert_if_new("2", &page(2))?, Novelty::New { .. }));
    /// assert!(matches!(store.insert_if_new("3", &page(3))?, Novelty::New { .. }));
    /// let fourth = store.insert_if_new("4", &page(4))?;
    /// assert!(matches!(fourth, Novelty::New { left_out: Some(_), .. }));
    /// assert_eq!(fourth.budget_exceeded().map(|beyond| beyond.documents), Some(1));
    /// // An identical document is found all the same.
    /// assert!(matches!(store.insert_if_new("5", &page(3))?, Novelty::NearDuplicate(_)));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn probe_budget(mut self, documents: u64) -> Self {
        self.probe_budget = Some(documents);
        self
    }

    /// Opens files even if the file system has no locks, as is the case with some network and
    /// user-space file systems. Without this option, such files are refused with
    /// [`Error::LocksUnsupported`]. If there are locks, they are used.
    ///
    /// Without locks, nothing prevents a second process, or this process, from opening the store a
    /// second time. **If two handles write at once, they overwrite each other's pages: documents
    /// are lost, the file is damaged, and neither handle gets an error.** Use this option only if
    /// you make sure that no other process has the store open while one writes to it.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, StoreOptions, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// // On a file system without locks, and where this process alone has the store.
    /// let store = StoreOptions::new().without_lock().create(path, schema)?;
    /// assert_eq!(store.close()?, resemblance::Closed::File);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn without_lock(mut self) -> Self {
        self.is_without_lock = true;
        self
    }

    /// Sets the merge debt, in postings, at which a commit advances a merge, unless fewer postings
    /// are left to merge. Small slices let tests observe unfinished merges of small runs.
    #[doc(hidden)]
    #[must_use]
    pub fn merge_slice(mut self, postings: u64) -> Self {
        self.merge_slice_postings = postings;
        self
    }

    /// Sets how many changes of its clusters a store keeps. Tests keep few. All writers of a store
    /// must keep the same number, because each removes those beyond it.
    #[doc(hidden)]
    #[must_use]
    pub fn kept_changes(mut self, changes: u64) -> Self {
        self.kept_changes = changes;
        self
    }

    /// Sets the size of the journal for small commits in bytes (0 for no journal), and the number
    /// of syncs after which each opening uses it. Tests use small journals, which fill quickly.
    #[doc(hidden)]
    #[must_use]
    pub fn journal(mut self, bytes: u64, after_syncs: u32) -> Self {
        self.journal = JournalLimits { bytes, after_syncs };
        self
    }

    /// Replaces the files of the operating system by others. Tests use this.
    #[doc(hidden)]
    #[must_use]
    pub fn files(mut self, files: Arc<dyn Files>) -> Self {
        self.files = FileSource(files);
        self
    }

    /// Returns the options of a store in memory. Nothing is synced, so a journal would save
    /// nothing, and no other process can open it.
    pub(crate) fn in_memory(&self, path: &Path) -> Self {
        Self {
            journal: JournalLimits::NONE,
            is_without_lock: true,
            files: FileSource::with_one_in_memory(path.into()),
            ..self.clone()
        }
    }

    pub(crate) fn shared_files(&self) -> &FileSource {
        &self.files
    }

    /// The number of kept hashes at which the memtable is flushed though it has fewer documents: 64 MiB of
    /// postings by default.
    pub(crate) fn flush_after_kept_hashes(&self) -> u64 {
        self.flush_after
            .unwrap_or(MIN_FLUSHED_DOCUMENTS)
            .saturating_mul(KEPT_HASHES_PER_DOCUMENT)
    }

    /// The number of documents, with a posting in each of `lanes`, at which the memtable is flushed. Fewer lanes make
    /// room for more documents, and so for fewer runs, each of which a probe searches.
    pub(crate) fn flush_after_documents(&self, lanes: u16) -> u64 {
        let documents = FLUSHED_POSTINGS / u64::from(lanes.max(1));
        self.flush_after
            .unwrap_or(documents.max(MIN_FLUSHED_DOCUMENTS))
    }

    /// Returns true if work on this number of postings is worth a second thread.
    pub(crate) fn is_in_parallel(&self, postings: u64) -> bool {
        // Small slices are those of tests, which see both ways.
        self.merges_in_parallel && postings >= MIN_IN_PARALLEL.min(self.merge_slice_postings)
    }

    pub(crate) fn validate(&self) -> Result<()> {
        if self.probe_budget == Some(0) {
            let expected = "1 document or more, or no budget";
            return Err(Error::invalid("probe_budget", 0, expected));
        }
        if let Some(found) = self.flush_after
            && !(1..=1 << 20).contains(&found)
        {
            let expected = "1 to 1,048,576 documents";
            return Err(Error::invalid("flush_after", found, expected));
        }
        if self.queue_bytes == 0 {
            return Err(Error::invalid("queue_bytes", 0, "1 byte or more"));
        }
        if !(1..=1 << 16).contains(&self.group_calls) {
            let expected = "1 to 65,536 calls";
            return Err(Error::invalid("group_calls", self.group_calls, expected));
        }
        Ok(())
    }

    /// Returns the options for a file that is written as a whole, and not searched meanwhile: all of the cache is for its
    /// pages.
    pub(crate) fn written_at_once(&self) -> Self {
        Self {
            is_written_at_once: true,
            ..self.clone()
        }
    }

    /// Returns whether several processes should write the store, if the caller has set it.
    pub(crate) fn wants_shared_writers(&self) -> Option<bool> {
        self.shared_writers
    }

    /// Returns the options for a file that no other process may have open.
    pub(crate) fn alone(&self) -> Self {
        Self {
            is_alone: true,
            ..self.clone()
        }
    }

    pub(crate) fn is_written_at_once(&self) -> bool {
        self.is_written_at_once
    }

    /// Returns the options of the file.
    pub(crate) fn file_options(&self) -> FileOptions {
        FileOptions {
            files: self.files.clone(),
            cache_bytes: to_usize(match self.is_written_at_once {
                true => self.cache_bytes,
                false => self.page_cache_bytes(),
            }),
            journal: self.journal,
            is_filled_at_once: self.is_written_at_once,
            is_without_lock: self.is_without_lock,
            sharing: match (
                self.is_alone || self.is_written_at_once,
                self.shared_writers,
            ) {
                (true, _) => Sharing::Alone,
                (false, Some(true)) => Sharing::ManyWriters,
                (false, _) => Sharing::OneWriter,
            },
            notes_many_writers: self.shared_writers == Some(true),
            wait: self.wait,
            final_path: None,
        }
    }

    /// Returns the bytes of the cache that hold pages of the file.
    fn page_cache_bytes(&self) -> u64 {
        let least = (self.cache_bytes / 2).min(MIN_PAGE_BYTES);
        least.max(self.cache_bytes / 4)
    }

    /// Returns the bytes of the cache that hold filters and blocks of runs.
    pub(crate) fn run_cache_bytes(&self) -> usize {
        to_usize(self.cache_bytes - self.page_cache_bytes())
    }

    /// Returns how many of these may hold filters.
    pub(crate) fn filter_cache_bytes(&self) -> usize {
        self.run_cache_bytes() / 8 * 7
    }
}

/// The bytes of pages that the writer needs, if the cache is at least twice as large.
const MIN_PAGE_BYTES: u64 = 16 << 20;

/// Returns a limit of bytes: all of the address space where that is smaller.
fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use resemblance_sketch::lanes::{HELD_POSTING_BYTES, HELD_ROW_BYTES};

    #[test]
    fn default_cache_matches_the_assumption_of_table_tuning() {
        let options = StoreOptions::new();
        assert_eq!(HELD_POSTING_BYTES, options.run_cache_bytes() as f64);
        assert_eq!(HELD_ROW_BYTES, options.file_options().cache_bytes as f64);
    }

    #[test]
    fn memtable_holds_more_documents_of_few_lanes() {
        let options = StoreOptions::new();
        let flushed = [0, 1, 5, 16, 21].map(|lanes| options.flush_after_documents(lanes));
        assert_eq!(flushed, [1 << 20, 1 << 20, 209_715, 65_536, 65_536]);
        assert_eq!(options.flush_after(7).flush_after_documents(5), 7);
    }
}
