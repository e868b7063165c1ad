//! Which sealed documents are dead: the bitmaps of the table `dead`, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use redb::{ReadableTable, Table};

use crate::error::Result;
use crate::format::{CHUNK_DOCUMENTS, DeadChunk};

/// The bitmaps of all chunks with a dead document: a bit a document, two where runs are merged.
/// Cheap to clone; a change copies what it touches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tombstones {
    chunks: Arc<BTreeMap<u64, Arc<DeadChunk>>>,
    documents: u64,
}

impl Tombstones {
    /// # Errors
    /// Those of reading.
    pub(crate) fn read<T: ReadableTable<u64, &'static [u8]>>(table: &T) -> Result<Self> {
        let mut chunks = BTreeMap::new();
        let mut documents = 0;
        for entry in table.iter()? {
            let (chunk, row) = entry?;
            let chunk = chunk.value();
            let bitmap = DeadChunk::decode(chunk, row.value())?;
            documents += bitmap.count();
            chunks.insert(chunk, Arc::new(bitmap));
        }
        Ok(Self {
            chunks: Arc::new(chunks),
            documents,
        })
    }

    #[inline]
    pub(crate) fn contains(&self, id: u64) -> bool {
        let chunk = self.chunks.get(&(id / CHUNK_DOCUMENTS));
        chunk.is_some_and(|chunk| chunk.contains(id))
    }

    /// Adds one that is not there.
    pub(crate) fn insert(&mut self, id: u64) {
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = chunks.entry(id / CHUNK_DOCUMENTS);
        Arc::make_mut(chunk.or_insert_with(|| Arc::new(DeadChunk::new()))).set(id);
        self.documents += 1;
    }

    /// Whether the merge of its run drops a document, if its run is being merged.
    pub(crate) fn is_dropped(&self, id: u64) -> bool {
        let chunk = self.chunks.get(&(id / CHUNK_DOCUMENTS));
        chunk.is_some_and(|chunk| chunk.is_dropped(id))
    }

    /// How many are dead.
    pub(crate) fn len(&self) -> u64 {
        self.documents
    }

    /// All dead documents, ascending.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        let chunks = self.chunks.iter();
        chunks.flat_map(|(chunk, bitmap)| bitmap.ids(*chunk))
    }

    /// What a merge of runs that cover these ids drops.
    pub(crate) fn dropped(&self, ids: &RangeInclusive<u64>) -> MergeDrops {
        let first_chunk = ids.start() / CHUNK_DOCUMENTS;
        let held = self.chunks.range(first_chunk..=ids.end() / CHUNK_DOCUMENTS);
        let mut chunks = Vec::new();
        for (chunk, bitmap) in held {
            // Chunks of documents come close together where there are any.
            let place = usize::try_from(chunk - first_chunk).unwrap_or(usize::MAX);
            chunks.push((place, Arc::clone(bitmap)));
        }
        MergeDrops {
            first_chunk,
            chunks,
        }
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> u64 {
        let chunks = self.chunks.values();
        chunks.map(|chunk| chunk.heap_bytes() as u64).sum()
    }
}

/// Documents that a merge drops.
pub(crate) struct MergeDrops {
    first_chunk: u64,
    /// With their places after the first, ascending.
    chunks: Vec<(usize, Arc<DeadChunk>)>,
}

impl MergeDrops {
    /// The first of them from `id` on. There may be some beyond the runs that are merged.
    pub(crate) fn first_from(&self, id: u64) -> Option<u64> {
        let place = (id / CHUNK_DOCUMENTS).saturating_sub(self.first_chunk);
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let before = self.chunks.partition_point(|(found, _)| *found < place);
        let mut chunks = self.chunks.iter().skip(before);
        chunks.find_map(|(place, bitmap)| {
            let chunk = self.first_chunk.saturating_add(*place as u64);
            bitmap.first_dropped(chunk, id)
        })
    }

    #[inline]
    pub(crate) fn contains(&self, id: u64) -> bool {
        if self.chunks.is_empty() {
            return false;
        }
        let Some(place) = (id / CHUNK_DOCUMENTS).checked_sub(self.first_chunk) else {
            return false;
        };
        let Ok(place) = usize::try_from(place) else {
            return false;
        };
        // Where every chunk has a bitmap, it is at its place.
        let at_place = self.chunks.get(place).filter(|(found, _)| *found == place);
        let bitmap = at_place.or_else(|| {
            let found = self
                .chunks
                .binary_search_by_key(&place, |(place, _)| *place);
            self.chunks.get(found.ok()?)
        });
        bitmap.is_some_and(|(_, bitmap)| bitmap.is_dropped(id))
    }
}

/// The dead of a transaction: what was committed, with its changes.
#[derive(Debug)]
pub(crate) struct TombstoneDelta {
    pub(crate) set: Tombstones,
    /// Chunks whose rows are to be written.
    changed: BTreeSet<u64>,
}

impl TombstoneDelta {
    pub(crate) fn new(set: Tombstones) -> Self {
        Self {
            set,
            changed: BTreeSet::new(),
        }
    }

    fn chunk(&mut self, chunk: u64) -> &mut DeadChunk {
        self.changed.insert(chunk);
        let chunks = Arc::make_mut(&mut self.set.chunks);
        let bitmap = chunks.entry(chunk);
        Arc::make_mut(bitmap.or_insert_with(|| Arc::new(DeadChunk::new())))
    }

    /// Notes that a sealed document is gone.
    pub(crate) fn insert(&mut self, id: u64, is_being_merged: bool) {
        self.set.documents += 1;
        let chunk = self.chunk(id / CHUNK_DOCUMENTS);
        if is_being_merged {
            chunk.set_since(id);
        } else {
            chunk.set(id);
        }
    }

    /// Forgets what a merge of runs that cover these ids has dropped. How many that were, and how
    /// many have died since.
    pub(crate) fn end_merge(&mut self, ids: &RangeInclusive<u64>) -> (u64, u64) {
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
        self.set.documents = self.set.documents.saturating_sub(dropped);
        (dropped, left)
    }

    /// Writes the rows of what has changed.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn flush(&mut self, table: &mut Table<'_, u64, &'static [u8]>) -> Result<()> {
        for chunk in std::mem::take(&mut self.changed) {
            let bitmap = self.set.chunks.get(&chunk);
            match bitmap.filter(|bitmap| !bitmap.is_clear()) {
                Some(bitmap) => {
                    table.insert(chunk, bitmap.encode(chunk).as_slice())?;
                }
                None => {
                    table.remove(chunk)?;
                    Arc::make_mut(&mut self.set.chunks).remove(&chunk);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }
}
