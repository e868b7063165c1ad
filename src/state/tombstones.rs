//! Tombstones of documents in runs: the bitmaps of the table `dead`, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::engine::{EngineResult, ReadableTable, Table};
use crate::error::Result;
use crate::format::{CHUNK_DOCUMENTS, DeletedChunk};
use crate::invariant::OrBug;

/// The tombstones of one version: bitmaps of all chunks that have a deleted document, with one bit a
/// document, or two where runs are being merged. A clone is cheap, and a change copies the chunk that it
/// touches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tombstones {
    chunks: Arc<BTreeMap<u64, Arc<DeletedChunk>>>,
    documents: u64,
}

impl Tombstones {
    /// Reads all bitmaps from their table.
    ///
    /// # Errors
    /// Returns the errors of reading.
    pub(crate) fn read<T: ReadableTable<u64, &'static [u8]>>(table: &T) -> Result<Self> {
        let mut chunks = BTreeMap::new();
        let mut documents = 0;
        for entry in table.iter().engine()? {
            let (key, row) = entry.engine()?;
            let chunk = key.value();
            let bitmap = DeletedChunk::decode(chunk, row.value())?;
            documents += bitmap.count();
            chunks.insert(chunk, Arc::new(bitmap));
        }
        Ok(Self {
            chunks: Arc::new(chunks),
            documents,
        })
    }

    /// Returns these tombstones with other bitmaps of some chunks, or none where a chunk has no bit any more.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) if there are fewer tombstones than bits.
    pub(super) fn with_chunks(&self, changed: BTreeMap<u64, Option<DeletedChunk>>) -> Result<Self> {
        let mut chunks = BTreeMap::clone(&self.chunks);
        let mut documents = self.documents;
        for (chunk, bitmap) in changed {
            let before = match bitmap {
                Some(bitmap) => {
                    documents += bitmap.count();
                    chunks.insert(chunk, Arc::new(bitmap))
                }
                None => chunks.remove(&chunk),
            };
            let left = documents.checked_sub(before.map_or(0, |before| before.count()));
            documents = left.or_bug("a count of all tombstones")?;
        }
        Ok(Self {
            chunks: Arc::new(chunks),
            documents,
        })
    }

    /// Returns the number of deleted documents in a range of ids.
    pub(super) fn count_within(&self, ids: &RangeInclusive<u64>) -> u64 {
        let chunks = ids.start() / CHUNK_DOCUMENTS..=ids.end() / CHUNK_DOCUMENTS;
        let held = self.chunks.range(chunks);
        held.map(|(chunk, bitmap)| bitmap.count_within(*chunk, ids))
            .sum()
    }

    #[inline]
    pub(crate) fn contains(&self, id: u64) -> bool {
        let chunk = self.chunks.get(&(id / CHUNK_DOCUMENTS));
        chunk.is_some_and(|chunk| chunk.contains(id))
    }

    /// Adds a document that has no tombstone yet.
    pub(crate) fn insert(&mut self, id: u64) {
        debug_assert!(!self.contains(id), "document {id} is deleted twice");
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = chunks.entry(id / CHUNK_DOCUMENTS);
        Arc::make_mut(chunk.or_insert_with(|| Arc::new(DeletedChunk::new()))).set(id);
        self.documents += 1;
    }

    /// Returns true if the merge of the document's run, if there is one, drops the document.
    pub(crate) fn is_dropped(&self, id: u64) -> bool {
        let chunk = self.chunks.get(&(id / CHUNK_DOCUMENTS));
        chunk.is_some_and(|chunk| chunk.is_dropped(id))
    }

    /// Returns the number of deleted documents.
    pub(crate) fn len(&self) -> u64 {
        self.documents
    }

    /// Returns the ids of all deleted documents, ascending.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        let chunks = self.chunks.iter();
        chunks.flat_map(|(chunk, bitmap)| bitmap.ids(*chunk))
    }

    /// Returns the documents that a merge of the runs which cover these ids drops.
    pub(crate) fn dropped(&self, ids: &RangeInclusive<u64>) -> MergeDrops {
        let first_chunk = ids.start() / CHUNK_DOCUMENTS;
        let held = self.chunks.range(first_chunk..=ids.end() / CHUNK_DOCUMENTS);
        let chunks = held.map(|(chunk, bitmap)| (*chunk, Arc::clone(bitmap)));
        MergeDrops {
            first_chunk,
            chunks: chunks.collect(),
        }
    }

    /// Returns the bytes of the bitmaps on the heap.
    pub(crate) fn heap_bytes(&self) -> u64 {
        let chunks = self.chunks.values();
        chunks.map(|chunk| chunk.heap_bytes() as u64).sum()
    }
}

/// Documents that a merge drops.
pub(crate) struct MergeDrops {
    /// The chunk of the first id of the runs that are merged.
    first_chunk: u64,
    /// Chunks with their numbers, ascending.
    chunks: Vec<(u64, Arc<DeletedChunk>)>,
}

impl MergeDrops {
    /// Returns the first dropped document from `id` on. It may be beyond the runs that are merged, since
    /// the last chunk may be.
    pub(crate) fn first_from(&self, id: u64) -> Option<u64> {
        let chunk = id / CHUNK_DOCUMENTS;
        let before = self.chunks.partition_point(|(found, _)| *found < chunk);
        let mut chunks = self.chunks.iter().skip(before);
        chunks.find_map(|(chunk, bitmap)| bitmap.first_dropped(*chunk, id))
    }

    #[inline]
    pub(crate) fn contains(&self, id: u64) -> bool {
        if self.chunks.is_empty() {
            return false;
        }
        let chunk = id / CHUNK_DOCUMENTS;
        // If every chunk has a bitmap, it is at the position of its number, which saves the search.
        let offset = chunk.checked_sub(self.first_chunk);
        let position = offset.and_then(|offset| usize::try_from(offset).ok());
        let guessed = position.and_then(|position| self.chunks.get(position));
        let bitmap = guessed.filter(|(found, _)| *found == chunk).or_else(|| {
            let found = self
                .chunks
                .binary_search_by_key(&chunk, |(found, _)| *found);
            self.chunks.get(found.ok()?)
        });
        bitmap.is_some_and(|(_, bitmap)| bitmap.is_dropped(id))
    }
}

/// The tombstones of a transaction: the committed ones with its changes.
#[derive(Debug)]
pub(crate) struct TombstoneDelta {
    pub(crate) set: Tombstones,
    /// Numbers of the chunks whose rows must be written.
    changed: BTreeSet<u64>,
}

impl TombstoneDelta {
    pub(crate) fn new(set: Tombstones) -> Self {
        Self {
            set,
            changed: BTreeSet::new(),
        }
    }

    fn chunk(&mut self, chunk: u64) -> &mut DeletedChunk {
        self.changed.insert(chunk);
        let chunks = Arc::make_mut(&mut self.set.chunks);
        let bitmap = chunks.entry(chunk);
        Arc::make_mut(bitmap.or_insert_with(|| Arc::new(DeletedChunk::new())))
    }

    /// Adds a tombstone for a document in a run. If the run is being merged, the merge has decided what
    /// it drops, and the document is left to a later one.
    pub(crate) fn insert(&mut self, id: u64, is_being_merged: bool) {
        debug_assert!(!self.set.contains(id), "document {id} is deleted twice");
        self.set.documents += 1;
        let chunk = self.chunk(id / CHUNK_DOCUMENTS);
        if is_being_merged {
            chunk.set_since(id);
        } else {
            chunk.set(id);
        }
    }

    /// Clears the tombstones of the documents that a merge of the runs which cover these ids has
    /// dropped. Returns their number, and the number of documents deleted since the merge began.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) if there were fewer tombstones than that.
    pub(crate) fn end_merge(&mut self, ids: &RangeInclusive<u64>) -> Result<(u64, u64)> {
        let chunks = ids.start() / CHUNK_DOCUMENTS..=ids.end() / CHUNK_DOCUMENTS;
        let held: Vec<u64> = self
            .set
            .chunks
            .range(chunks)
            .map(|(chunk, _)| *chunk)
            .collect();
        let (mut dropped, mut left) = (0, 0);
        for chunk in held {
            let counts = self.chunk(chunk).end_merge(chunk, ids);
            dropped += counts.0;
            left += counts.1;
        }
        let documents = self.set.documents.checked_sub(dropped);
        self.set.documents = documents.or_bug("a count of all tombstones")?;
        Ok((dropped, left))
    }

    /// Writes the rows of the chunks that have changed, and returns their numbers.
    ///
    /// # Errors
    /// Returns the errors of writing.
    pub(crate) fn flush(
        &mut self,
        table: &mut Table<'_, u64, &'static [u8]>,
    ) -> Result<BTreeSet<u64>> {
        let changed = std::mem::take(&mut self.changed);
        for &chunk in &changed {
            let bitmap = self.set.chunks.get(&chunk);
            match bitmap.filter(|bitmap| !bitmap.is_clear()) {
                Some(bitmap) => {
                    table
                        .insert(chunk, bitmap.encode(chunk).as_slice())
                        .engine()?;
                }
                None => {
                    // The format allows no row without a set bit.
                    table.remove(chunk).engine()?;
                    Arc::make_mut(&mut self.set.chunks).remove(&chunk);
                }
            }
        }
        Ok(changed)
    }

    pub(crate) fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }
}
