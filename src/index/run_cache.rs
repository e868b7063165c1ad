//! The memory in which filters and blocks of runs are kept.

use crate::engine::ReadableTable;
use crate::error::Result;
use crate::format::FilterKey;
use crate::index::block_cache::BlockCache;
use crate::index::filter_cache::{FilterCache, FilterOf, FilterReader};
use crate::index::run::Value;

/// Filters and blocks of runs, within one limit of bytes. Filters come first, up to a limit of their own: a
/// byte of them saves more reads. Blocks have what is left.
#[derive(Debug)]
pub(crate) struct RunCache {
    filters: FilterCache,
    blocks: BlockCache,
    max_bytes: usize,
}

impl RunCache {
    pub(crate) fn new(max_bytes: usize, max_filter_bytes: usize) -> Self {
        Self {
            filters: FilterCache::new(max_filter_bytes.min(max_bytes)),
            blocks: BlockCache::new(max_bytes),
            max_bytes,
        }
    }

    pub(crate) fn blocks(&self) -> &BlockCache {
        &self.blocks
    }

    pub(crate) fn filters(&self) -> FilterReader<'_> {
        self.filters.reader()
    }

    /// Answers as [`FilterReader::may_hold`] for a piece that is not held: reads it and keeps it, in the
    /// place of blocks if need be.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] if the piece is missing or damaged.
    pub(crate) fn read_filter<T: ReadableTable<&'static FilterKey, Value>>(
        &self,
        table: &T,
        filter: &FilterOf,
        codes: (u64, u64),
    ) -> Result<bool> {
        let answer = self.filters.read(table, filter, codes);
        self.share();
        answer
    }

    /// Forgets everything: for a transaction that wrote runs and was rolled back. The next one writes other
    /// runs under the same numbers.
    pub(crate) fn clear(&self) {
        self.retain_runs(|_| false);
    }

    /// Forgets all runs but these.
    pub(crate) fn retain_runs(&self, is_kept: impl Fn(u32) -> bool) {
        self.filters.retain_runs(&is_kept);
        self.blocks.retain_runs(&is_kept);
        self.share();
    }

    /// Gives blocks what filters leave.
    fn share(&self) {
        // Filters stay within a limit that is no greater.
        let left = self.max_bytes.saturating_sub(self.filters.size_bytes());
        self.blocks.set_max_bytes(left);
    }

    /// Bytes of filters held.
    pub(crate) fn filter_bytes(&self) -> u64 {
        self.filters.size_bytes() as u64
    }

    /// Bytes of blocks held.
    pub(crate) fn block_bytes(&self) -> u64 {
        self.blocks.size_bytes()
    }
}
