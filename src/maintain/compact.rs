//! `compact`: one run, and no free pages.

use std::path::Path;

use crate::engine::{contained, open_database, verify_pages};
use crate::error::Result;
use crate::index::{MergePlan, RunShape, level_of};
use crate::maintain::stats::file_size;
use crate::observe::{UPKEEP, log as events};
use crate::options::StoreOptions;
use crate::state::may_write;
use crate::store::Store;
use crate::transaction::WriteTransaction;

/// What `compact` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactReport {
    /// Bytes on disk before.
    pub size_before_bytes: u64,
    /// Bytes on disk after.
    pub size_after_bytes: u64,
}

impl Store {
    /// Merges all runs of a store that nobody has open into one, drops everything of removed
    /// documents, and gives free space back to the disk. The merge goes by transactions of bounded
    /// size, and the rest moves pages one by one: interrupted, the store is as good as before, and
    /// the next compaction goes on where this one stopped.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open) and [`WriteTransaction::commit`]; [`Error::Corrupt`](crate::Error::Corrupt)
    /// if a page is damaged.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// Store::create(&path, Schema::builder().minhash(MinHash::new(64)).build()?)?;
    /// let report = Store::compact(&path)?;
    /// assert!(report.size_after_bytes <= report.size_before_bytes);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn compact(path: impl AsRef<Path>) -> Result<CompactReport> {
        Self::compact_with(path, &StoreOptions::new())
    }

    /// [`compact`](Self::compact) with options.
    ///
    /// # Errors
    ///
    /// As [`compact`](Self::compact).
    pub fn compact_with(path: impl AsRef<Path>, options: &StoreOptions) -> Result<CompactReport> {
        let path = path.as_ref();
        // Merging and moving would give damaged pages good checksums, and moving does not even end
        // where those that say what is free are damaged.
        if may_write(path, options)? {
            verify_pages(path, options)?;
        }
        let store = Self::open_with(path, options)?;
        let (_, size_before_bytes) = file_size(path, options)?;
        while store.begin_write()?.compact_some()? {}
        drop(store);
        let mut database = open_database(path, options)?;
        contained(|| {
            while database.compact()? {}
            Ok(database.close()?)
        })?;
        let (_, size_after_bytes) = file_size(path, options)?;
        let message =
            format_args!("compacted: {size_before_bytes} bytes before, {size_after_bytes} now");
        events::debug(UPKEEP, path, message);
        Ok(CompactReport {
            size_before_bytes,
            size_after_bytes,
        })
    }
}

/// Postings that one transaction of a compaction merges: bounds what it writes.
const POSTINGS_A_COMMIT: u64 = 1 << 23;

impl WriteTransaction {
    /// Goes on merging all runs into one; whether something was left to do.
    fn compact_some(mut self) -> Result<bool> {
        let is_busy = self.change(|writer| {
            if writer.runs.outputs.is_empty() {
                let shapes = writer.runs.shapes();
                let dead: u64 = shapes.iter().map(|run| run.dead).sum();
                if shapes.len() < 2 && dead == 0 {
                    return Ok(false);
                }
                let documents = shapes.iter().map(RunShape::live).sum();
                let seal_after = writer.store.core.options.seal_after_documents;
                let plan = MergePlan {
                    runs: shapes.iter().map(|run| run.run).collect(),
                    level: level_of(documents, seal_after),
                };
                writer.begin_merge(&plan, 0)?;
            }
            writer.advance_merges(POSTINGS_A_COMMIT)?;
            Ok(true)
        })?;
        self.commit()?;
        Ok(is_busy)
    }
}
