//! Blocks and rows that look-ups and queries read.

use crate::observe::counter::Counter;

/// Blocks and rows that look-ups and queries have read since a store was opened.
/// A part of [`Metrics`](crate::Metrics).
///
/// ```
/// # use resemblance::{MinHash, Schema, Store};
/// # let folder = tempfile::tempdir().unwrap();
/// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
/// let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// assert!(!store.snapshot()?.contains("a")?);
/// // Documents that are not flushed yet are found in memory.
/// assert_eq!(store.metrics().reads.blocks, 0);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reads {
    /// Blocks of postings that were searched.
    pub blocks: u64,
    /// How many of these were in the cache of blocks: the others came from a page of the file.
    pub cached_blocks: u64,
    /// Lanes of runs that a filter ruled out, without a block read.
    pub ruled_out: u64,
    /// Lanes that were probed for a code or a prefix: one for the key and one for each band and table,
    /// for each document that was looked up.
    pub lanes: u64,
    /// Rows of signatures that were looked up, to compare documents.
    pub signatures: u64,
    /// Rows of documents (key, stamp and payload) that were looked up.
    pub documents: u64,
}

/// Counts the reads of all threads.
#[derive(Debug, Default)]
pub(crate) struct ReadCounters {
    blocks: Counter,
    cached_blocks: Counter,
    ruled_out: Counter,
    lanes: Counter,
    signatures: Counter,
    documents: Counter,
}

impl ReadCounters {
    pub(crate) fn add_probe(&self, blocks: u64, cached_blocks: u64, ruled_out: u64) {
        self.blocks.add(blocks);
        self.cached_blocks.add(cached_blocks);
        self.ruled_out.add(ruled_out);
    }

    pub(crate) fn add_lanes(&self, lanes: usize) {
        self.lanes.add(lanes as u64);
    }

    pub(crate) fn add_signatures(&self, rows: usize) {
        self.signatures.add(rows as u64);
    }

    pub(crate) fn add_documents(&self, rows: usize) {
        self.documents.add(rows as u64);
    }

    pub(crate) fn get(&self) -> Reads {
        Reads {
            blocks: self.blocks.get(),
            cached_blocks: self.cached_blocks.get(),
            ruled_out: self.ruled_out.get(),
            lanes: self.lanes.get(),
            signatures: self.signatures.get(),
            documents: self.documents.get(),
        }
    }
}
