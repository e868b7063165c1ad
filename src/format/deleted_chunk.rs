//! Rows of the table `dead`: bitmaps of deleted documents whose postings are still in a run.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::format::checksum;

pub(crate) const DEAD: &str = "dead";

/// Documents that one row covers.
pub(crate) const CHUNK_DOCUMENTS: u64 = 16_000;
const BITMAP_BYTES: usize = 2_000;
const KIND: u8 = 1;
const KIND_OF_TWO: u8 = 2;

/// One row, with a bit for each of 16,000 consecutive documents, set if it is deleted. Among the
/// documents in runs that are being merged it distinguishes those that the merge drops, because
/// they were deleted when it began, from those that have been deleted since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeletedChunk {
    before_merge: Box<[u8]>,
    /// The documents that were deleted while their run was being merged; empty if there are none.
    since: Box<[u8]>,
}

/// Returns the byte and the mask of a document's bit within its chunk.
fn byte_and_mask(id: u64) -> (usize, u8) {
    let offset = id % CHUNK_DOCUMENTS;
    // The remainder is below 16,000, so the byte is below 2,000.
    ((offset / 8) as usize, 1 << (offset % 8))
}

/// Returns true if a document has its bit in the bitmap of its chunk.
pub(super) fn has(bits: &[u8], id: u64) -> bool {
    let (byte, mask) = byte_and_mask(id);
    bits.get(byte).is_some_and(|bits| bits & mask != 0)
}

/// Sets the bit of a document.
pub(super) fn put(bits: &mut [u8], id: u64) {
    let (byte, mask) = byte_and_mask(id);
    if let Some(bits) = bits.get_mut(byte) {
        *bits |= mask;
    }
}

impl DeletedChunk {
    pub(crate) fn new() -> Self {
        Self {
            before_merge: [0; BITMAP_BYTES].into(),
            since: [].into(),
        }
    }

    #[inline]
    pub(crate) fn contains(&self, id: u64) -> bool {
        has(&self.before_merge, id) || has(&self.since, id)
    }

    /// Returns true if a merge of the document's run drops it, because it was deleted when the
    /// merge began.
    #[inline]
    pub(crate) fn is_dropped(&self, id: u64) -> bool {
        has(&self.before_merge, id)
    }

    pub(crate) fn set(&mut self, id: u64) {
        put(&mut self.before_merge, id);
    }

    /// Records that a document was deleted while its run was being merged.
    pub(crate) fn set_since(&mut self, id: u64) {
        if self.since.is_empty() {
            self.since = [0; BITMAP_BYTES].into();
        }
        put(&mut self.since, id);
    }

    /// Ends the merge of the runs that cover these ids: clears the bits of documents that it
    /// dropped, and keeps those of documents that were deleted since. Returns the number of each.
    pub(crate) fn end_merge(&mut self, chunk: u64, ids: &RangeInclusive<u64>) -> (u64, u64) {
        let (mut dropped, mut left) = (0, 0);
        let first = chunk.saturating_mul(CHUNK_DOCUMENTS);
        for byte in 0..BITMAP_BYTES {
            let first_in_byte = first.saturating_add(byte as u64 * 8);
            let in_range = |bit: u64| ids.contains(&first_in_byte.saturating_add(bit));
            let mask = (0..8)
                .filter(|bit| in_range(*bit))
                .map(|bit| 1u8 << bit)
                .sum::<u8>();
            let since = self.since.get_mut(byte);
            let died = since.map_or(0, |since| {
                let died = *since & mask;
                *since &= !mask;
                died
            });
            if let Some(before_merge) = self.before_merge.get_mut(byte) {
                dropped += u64::from((*before_merge & mask).count_ones());
                *before_merge = (*before_merge & !mask) | died;
            }
            left += u64::from(died.count_ones());
        }
        if self.since.iter().all(|byte| *byte == 0) {
            self.since = [].into();
        }
        (dropped, left)
    }

    /// Returns the first document of chunk number `chunk` from `id` on that a merge of its run
    /// drops.
    pub(crate) fn first_dropped(&self, chunk: u64, id: u64) -> Option<u64> {
        let first = chunk.saturating_mul(CHUNK_DOCUMENTS);
        let skipped = id.saturating_sub(first);
        let bytes = (0..).step_by(8).zip(self.before_merge.iter());
        let left = bytes.filter(|(offset, bits)| **bits != 0 && offset + 8 > skipped);
        let bits = left.flat_map(|(offset, bits)| {
            let set = (0..8).filter(move |bit| bits & (1 << bit) != 0);
            set.map(move |bit| offset + bit)
        });
        let offset = bits.into_iter().find(|offset| *offset >= skipped)?;
        first.checked_add(offset)
    }

    /// Returns the number of deleted documents.
    pub(crate) fn count(&self) -> u64 {
        let bitmaps = self.before_merge.iter().chain(&self.since);
        bitmaps.map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// Returns the number of deleted documents of chunk number `chunk` in a range of ids.
    pub(crate) fn count_within(&self, chunk: u64, ids: &RangeInclusive<u64>) -> u64 {
        let first = chunk.saturating_mul(CHUNK_DOCUMENTS);
        let last = first.saturating_add(CHUNK_DOCUMENTS - 1);
        if ids.contains(&first) && ids.contains(&last) {
            return self.count();
        }
        self.ids(chunk).filter(|id| ids.contains(id)).count() as u64
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.before_merge.len() + self.since.len()
    }

    pub(crate) fn is_clear(&self) -> bool {
        self.since.is_empty() && self.before_merge.iter().all(|bits| *bits == 0)
    }

    /// Returns the ids of the deleted documents of chunk number `chunk`, ascending.
    pub(crate) fn ids(&self, chunk: u64) -> impl Iterator<Item = u64> + '_ {
        // The last chunk is cut short by the greatest id.
        let first = chunk.saturating_mul(CHUNK_DOCUMENTS);
        let last = first.saturating_add(CHUNK_DOCUMENTS - 1);
        (first..=last).filter(|id| self.contains(*id))
    }

    pub(crate) fn encode(&self, chunk: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(2 * BITMAP_BYTES + 5);
        bytes.push(if self.since.is_empty() {
            KIND
        } else {
            KIND_OF_TWO
        });
        bytes.extend_from_slice(&self.before_merge);
        bytes.extend_from_slice(&self.since);
        checksum::seal(DEAD, &chunk.to_be_bytes(), &mut bytes);
        bytes
    }

    pub(crate) fn decode(chunk: u64, bytes: &[u8]) -> Result<Self> {
        let bytes = checksum::open(DEAD, &chunk.to_be_bytes(), bytes)?;
        let bitmaps = match bytes {
            [KIND, bits @ ..] if bits.len() == BITMAP_BYTES => Some((bits, &[][..])),
            [KIND_OF_TWO, bits @ ..] if bits.len() == 2 * BITMAP_BYTES => {
                bits.split_at_checked(BITMAP_BYTES)
            }
            _ => None,
        };
        let Some((before_merge, since)) = bitmaps else {
            let detail = format!(
                "found {} bytes, expected one bitmap of 2,000 or two",
                bytes.len()
            );
            let place = format!("table {DEAD}, chunk {chunk}");
            return Err(Error::corrupt(place, detail));
        };
        let mut bytes = before_merge.iter().zip(since);
        if bytes.any(|(before, since)| before & since != 0) {
            let place = format!("table {DEAD}, chunk {chunk}");
            let detail = "found a document in both bitmaps, expected it in one";
            return Err(Error::corrupt(place, detail));
        }
        Ok(Self {
            before_merge: before_merge.into(),
            since: since.into(),
        })
    }
}

/// The greatest number of changes that are listed.
const MAX_CHANGES: usize = 64;

/// The last change of a bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChunkChange {
    commit: u64,
    chunk: u64,
}

/// The bitmaps that the last commits have changed, so that another process need not reread all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TombstoneChanges {
    /// All changes of later commits than this one are listed.
    complete_since: u64,
    /// Each chunk at most once, the last change at the end.
    changes: Vec<ChunkChange>,
}

impl TombstoneChanges {
    /// Lists the chunks that a commit changes.
    pub(crate) fn add(&mut self, commit: u64, chunks: &BTreeSet<u64>) {
        self.changes
            .retain(|change| !chunks.contains(&change.chunk));
        let changes = chunks.iter().map(|&chunk| ChunkChange { commit, chunk });
        self.changes.extend(changes);
        let extra = self.changes.len().saturating_sub(MAX_CHANGES);
        let dropped = self.changes.drain(..extra).next_back();
        if let Some(last) = dropped {
            self.complete_since = last.commit;
            self.changes.retain(|change| change.commit > last.commit);
        }
    }

    /// Returns the chunks that have changed since a commit; `None` if not all of these changes are listed.
    pub(crate) fn since(&self, commit: u64) -> Option<impl Iterator<Item = u64> + '_> {
        (commit >= self.complete_since).then(|| {
            let later = self
                .changes
                .iter()
                .filter(move |change| change.commit > commit);
            later.map(|change| change.chunk)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_chunk_bits_round_trip() {
        let mut chunk = DeletedChunk::new();
        for id in [32_000, 32_001, 47_999] {
            chunk.set(id);
        }
        let bytes = chunk.encode(2);
        let read = DeletedChunk::decode(2, &bytes).unwrap();
        assert_eq!(read.ids(2).collect::<Vec<_>>(), [32_000, 32_001, 47_999]);
        assert!(!read.is_clear());
        assert!(DeletedChunk::decode(1, &bytes).is_err());
    }

    #[test]
    fn deleted_chunk_reports_damage() {
        let mut chunk = DeletedChunk::new();
        chunk.set(32_001);
        checksum::assert_damage_is_named(&chunk.encode(2), |row| DeletedChunk::decode(2, row));
        chunk.set_since(32_002);
        checksum::assert_damage_is_named(&chunk.encode(2), |row| DeletedChunk::decode(2, row));
    }

    #[test]
    fn deleted_chunk_drops_deletions_before_the_merge() {
        let mut chunk = DeletedChunk::new();
        for id in [32_000, 32_001, 32_010, 47_999] {
            chunk.set(id);
        }
        chunk.set_since(32_002);
        chunk.set_since(47_998);
        let bytes = chunk.encode(2);
        let mut chunk = DeletedChunk::decode(2, &bytes).unwrap();
        let deleted = [32_000, 32_001, 32_002, 32_010, 47_998, 47_999];
        assert_eq!(chunk.ids(2).collect::<Vec<_>>(), deleted);
        let dropped = deleted.into_iter().filter(|id| chunk.is_dropped(*id));
        assert_eq!(
            dropped.collect::<Vec<_>>(),
            [32_000, 32_001, 32_010, 47_999]
        );
        let mut firsts = Vec::new();
        while let Some(id) = chunk.first_dropped(2, firsts.last().map_or(0, |last| last + 1)) {
            firsts.push(id);
        }
        assert_eq!(firsts, [32_000, 32_001, 32_010, 47_999]);
        assert_eq!(chunk.count(), 6);
        // The merge of the runs up to 32,005 ends; another one continues.
        assert_eq!(chunk.end_merge(2, &(5..=32_005)), (2, 1));
        assert_eq!(chunk.ids(2).collect::<Vec<_>>(), deleted[2..]);
        assert!(chunk.is_dropped(32_002) && !chunk.is_dropped(47_998));
        assert_eq!(chunk.end_merge(2, &(32_006..=90_000)), (2, 1));
        assert_eq!(chunk.end_merge(2, &(32_000..=90_000)), (2, 0));
        assert!(chunk.is_clear());
        assert_eq!(chunk, DeletedChunk::new());
    }

    #[test]
    fn deleted_chunk_covers_the_greatest_ids() {
        let mut chunk = DeletedChunk::new();
        chunk.set(u64::MAX);
        assert_eq!(
            chunk.ids(u64::MAX / CHUNK_DOCUMENTS).collect::<Vec<_>>(),
            [u64::MAX]
        );
        let last = u64::MAX / CHUNK_DOCUMENTS;
        assert_eq!(chunk.first_dropped(last, u64::MAX), Some(u64::MAX));
        // The key of a row may be any number.
        assert!(chunk.ids(u64::MAX).count() <= 1);
    }
}
