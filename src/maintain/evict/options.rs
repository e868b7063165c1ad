//! The options, events and report of an eviction.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::format::DocumentRow;
use crate::maintain::evict::newest::Age;
use crate::types::DocumentId;

const MAX_SLICE_DOCUMENTS: usize = 1_000_000;

/// The options of an eviction.
///
/// ```
/// use resemblance::EvictOptions;
/// let options = EvictOptions::new().slice_documents(200).dry_run(true);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictOptions {
    pub(super) slice_documents: usize,
    pub(super) is_dry_run: bool,
}

impl Default for EvictOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl EvictOptions {
    /// Makes the default options: 1,000 documents per transaction, and no dry run.
    #[must_use]
    pub fn new() -> Self {
        Self {
            slice_documents: 1_000,
            is_dry_run: false,
        }
    }

    /// Maximum number of documents that one transaction removes, 1 to 1,000,000. Other writers wait
    /// for one such transaction at most.
    #[must_use]
    pub fn slice_documents(mut self, documents: usize) -> Self {
        self.slice_documents = documents;
        self
    }

    /// If on, removes nothing; the report counts the documents that would be removed.
    #[must_use]
    pub fn dry_run(mut self, on: bool) -> Self {
        self.is_dry_run = on;
        self
    }

    pub(crate) fn validate(&self) -> Result<()> {
        if (1..=MAX_SLICE_DOCUMENTS).contains(&self.slice_documents) {
            return Ok(());
        }
        let expected = format!("1 to {MAX_SLICE_DOCUMENTS}");
        Err(Error::invalid(
            "slice_documents",
            self.slice_documents,
            expected,
        ))
    }
}

/// The result of an eviction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EvictReport {
    /// Documents that were looked at; none by [`Store::keep_newest`](crate::Store::keep_newest) of a store with no more than
    /// it keeps.
    pub examined: u64,
    /// Documents that were removed; of a dry run, those that would be.
    pub evicted: u64,
    /// Documents that were to go, and were touched, replaced or removed by others before their turn.
    pub spared: u64,
    /// Transactions.
    pub slices: u64,
    /// The longest time that a transaction kept other writers waiting, commit included.
    pub longest_slice: Duration,
    /// True if the caller stopped it. Documents evicted until then stay evicted; the same call
    /// again goes on.
    pub stopped: bool,
}

/// An event of an eviction. The answer [`ControlFlow::Break`](std::ops::ControlFlow::Break) ends it;
/// no transaction is open at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EvictEvent {
    /// [`Store::keep_newest`](crate::Store::keep_newest) looks for the oldest document to keep, in several passes over all.
    Searched {
        /// Documents read so far in this pass.
        documents: u64,
        /// Documents to read in this pass.
        total: u64,
    },
    /// Documents are examined one by one, and evicted if they qualify.
    Examined {
        /// Documents examined so far.
        documents: u64,
        /// Documents to examine: those in the store when the eviction began.
        total: u64,
        /// Documents evicted so far.
        evicted: u64,
    },
}

/// A document of which [`Store::evict_where`](crate::Store::evict_where) asks whether it is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredDocument<'a> {
    id: u64,
    row: DocumentRow<'a>,
}

impl<'a> StoredDocument<'a> {
    pub(crate) fn decode(id: u64, row: &'a [u8]) -> Result<Self> {
        let row = DocumentRow::decode(id, row)?;
        Ok(Self { id, row })
    }

    pub(super) fn age(&self) -> Age {
        (self.row.stamp, self.id)
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> DocumentId {
        DocumentId::new(self.id)
    }

    /// Its key, unless it was appended without one.
    #[must_use]
    pub fn key(&self) -> Option<&'a [u8]> {
        self.row.key
    }

    /// Returns the stamp of the document.
    #[must_use]
    pub fn stamp(&self) -> u64 {
        self.row.stamp
    }

    /// Returns the payload of the document.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.row.payload
    }
}
