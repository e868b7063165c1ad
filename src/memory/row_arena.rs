//! Rows of documents in memory, one after the other.

use crate::error::Result;
use crate::invariant::{OrBug, at};

/// Rows of documents with ids from 0.
#[derive(Default)]
pub(super) struct RowArena {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RowArena {
    pub(super) fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Returns the bytes of memory that the rows take.
    pub(super) fn size_bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<usize>()
    }

    pub(super) fn row(&self, id: u64) -> Result<&[u8]> {
        let index = usize::try_from(id).ok().or_bug("a document in memory")?;
        let start = match index.checked_sub(1) {
            Some(before) => *at(&self.ends, before)?,
            None => 0,
        };
        let row = self.bytes.get(start..*at(&self.ends, index)?);
        row.or_bug("the row of a document in memory")
    }
}
