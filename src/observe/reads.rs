//! How much look-ups and queries read.

use std::sync::atomic::{AtomicU64, Ordering};

/// What look-ups and queries have read since a store was opened: made by [`Store::reads`](crate::Store::reads).
///
/// ```
/// # use resemblance::{MinHash, Schema, Store};
/// # let folder = tempfile::tempdir().unwrap();
/// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
/// let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// assert!(!store.snapshot()?.contains("a")?);
/// // What is not sealed yet is found in memory.
/// assert_eq!(store.reads().blocks, 0);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reads {
    /// Blocks of postings, from the page cache or the disk.
    pub blocks: u64,
    /// Lanes of runs that a filter ruled out, without a block read.
    pub ruled_out: u64,
    /// Lanes that were asked for a code or a prefix: one for the key, one for each band and table, of
    /// each document that was looked for.
    pub lanes: u64,
    /// Rows of signatures that were looked for, to compare documents.
    pub signatures: u64,
    /// Rows of documents (key, stamp and payload) that were looked for.
    pub documents: u64,
}

/// Counts what all threads read.
#[derive(Debug, Default)]
pub(crate) struct ReadCounters {
    blocks: AtomicU64,
    ruled_out: AtomicU64,
    lanes: AtomicU64,
    signatures: AtomicU64,
    documents: AtomicU64,
}

impl ReadCounters {
    pub(crate) fn add_probe(&self, blocks: u64, ruled_out: u64) {
        self.blocks.fetch_add(blocks, Ordering::Relaxed);
        self.ruled_out.fetch_add(ruled_out, Ordering::Relaxed);
    }

    pub(crate) fn add_lanes(&self, lanes: usize) {
        self.lanes.fetch_add(lanes as u64, Ordering::Relaxed);
    }

    pub(crate) fn add_signatures(&self, rows: usize) {
        self.signatures.fetch_add(rows as u64, Ordering::Relaxed);
    }

    pub(crate) fn add_documents(&self, rows: usize) {
        self.documents.fetch_add(rows as u64, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Reads {
        Reads {
            blocks: self.blocks.load(Ordering::Relaxed),
            ruled_out: self.ruled_out.load(Ordering::Relaxed),
            lanes: self.lanes.load(Ordering::Relaxed),
            signatures: self.signatures.load(Ordering::Relaxed),
            documents: self.documents.load(Ordering::Relaxed),
        }
    }
}
