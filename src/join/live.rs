//! The documents that take part in a join.

use std::collections::BTreeMap;

use crate::format::{CHUNK_DOCUMENTS, DeadChunk};
use crate::state::Tombstones;

/// The documents that take part in a join, found without reading their rows. It takes one bit per
/// document in stretches of ids of which any is dropped or hidden, and 8 bytes per document that is
/// in no run yet.
pub(crate) struct LiveDocuments {
    sealed_below: u64,
    /// The ids of documents that are in no run yet, ascending.
    unsealed: Vec<u64>,
    dropped: Tombstones,
    hidden: BTreeMap<u64, DeadChunk>,
}

impl LiveDocuments {
    /// `unsealed` are the documents that are in no run, ascending; all below `sealed_below` are there that
    /// have postings and no tombstone in `dropped`.
    pub(crate) fn new(sealed_below: u64, unsealed: Vec<u64>, dropped: Tombstones) -> Self {
        Self {
            sealed_below,
            unsealed,
            dropped,
            hidden: BTreeMap::new(),
        }
    }

    /// Returns the ids, ascending.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u64> {
        let ids = (0..self.sealed_below).chain(self.unsealed.iter().copied());
        ids.filter(|id| self.contains(*id))
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        if self.dropped.contains(id) || self.is_hidden(id) {
            return false;
        }
        id < self.sealed_below || self.is_unsealed(id)
    }

    /// Returns the memory that the documents take that are in no run, in bytes.
    pub(super) fn size_bytes(&self) -> u64 {
        (self.unsealed.len() * size_of::<u64>()) as u64
    }

    fn is_hidden(&self, id: u64) -> bool {
        let chunk = self.hidden.get(&(id / CHUNK_DOCUMENTS));
        chunk.is_some_and(|chunk| chunk.contains(id))
    }

    fn is_unsealed(&self, id: u64) -> bool {
        // While no document was dropped, the ids are contiguous, and the index follows from the id.
        let contiguous = self.unsealed.first().and_then(|first| {
            let index = usize::try_from(id.checked_sub(*first)?).ok()?;
            self.unsealed.get(index)
        });
        contiguous == Some(&id) || self.unsealed.binary_search(&id).is_ok()
    }

    /// Takes a document out of all buckets that are still to come.
    pub(super) fn hide(&mut self, id: u64) {
        let chunk = self.hidden.entry(id / CHUNK_DOCUMENTS);
        chunk.or_insert_with(DeadChunk::new).set(id);
    }
}
