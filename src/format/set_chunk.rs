//! Values of the table `sets`: the exact sets of several documents.

use crate::error::Result;
use crate::format::checksum;
use crate::format::document_row::{SETS, open_set};
use crate::invariant::OrBug;

/// Bytes of a chunk that takes no further set. With its key and the engine's own bytes, it fills a page of
/// 16 KiB. A larger set has its own chunk.
pub(crate) const SET_CHUNK_BYTES: usize = (16 << 10) - 16;

/// Bytes in front of a set: its id, as the difference from that of the chunk, and its length.
const ENTRY_BYTES: usize = 8;

/// A chunk of exact sets that is written.
#[derive(Debug, Default)]
pub(crate) struct SetChunk {
    /// The id of the first set, which is the key of the chunk.
    pub(crate) first_id: u64,
    pub(crate) bytes: Vec<u8>,
}

impl SetChunk {
    /// Returns the difference of an id from that of the chunk.
    fn difference(&self, id: u64) -> Option<u32> {
        u32::try_from(id.checked_sub(self.first_id)?).ok()
    }

    /// Returns true if the chunk is empty or takes another set.
    pub(crate) fn has_room(&self, id: u64, set: &[u8]) -> bool {
        let bytes = self.bytes.len() + ENTRY_BYTES + set.len();
        self.bytes.is_empty() || bytes <= SET_CHUNK_BYTES && self.difference(id).is_some()
    }

    /// Adds the sealed set of a document with a higher id than those before.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) for one that the chunk has no room for.
    pub(crate) fn push(&mut self, id: u64, set: &[u8]) -> Result<()> {
        if self.bytes.is_empty() {
            self.first_id = id;
        }
        let fields = self.difference(id).zip(u32::try_from(set.len()).ok());
        let (difference, length) = fields.or_bug("a chunk with room for a set")?;
        self.bytes.extend_from_slice(&difference.to_le_bytes());
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(set);
        Ok(())
    }
}

/// The sealed sets of a stored chunk with their ids, ascending. A chunk that is not well-formed ends with
/// an error.
pub(crate) struct ChunkSets<'c> {
    first_id: u64,
    rest: &'c [u8],
    last_id: Option<u64>,
}

impl<'c> ChunkSets<'c> {
    pub(crate) fn new(first_id: u64, bytes: &'c [u8]) -> Self {
        Self {
            first_id,
            rest: bytes,
            last_id: None,
        }
    }

    /// Returns the sealed set of a document, `None` if it is not here.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) for anything that is not a chunk.
    pub(crate) fn find(self, id: u64) -> Result<Option<&'c [u8]>> {
        for entry in self {
            let (found, set) = entry?;
            if found >= id {
                return Ok((found == id).then_some(set));
            }
        }
        Ok(None)
    }

    /// Verifies the checksums of all sets.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) for a wrong one, and for anything that is not a chunk.
    pub(crate) fn check(mut self) -> Result<()> {
        self.try_for_each(|entry| {
            let (id, set) = entry?;
            open_set(id, set).map(drop)
        })
    }

    fn split(&mut self) -> Option<(u64, &'c [u8])> {
        let (difference, rest) = self.rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (set, rest) = rest.split_at_checked(length)?;
        let difference = u32::from_le_bytes(*difference).into();
        let id = self.first_id.checked_add(difference)?;
        let ascends = match self.last_id {
            Some(last) => last < id,
            None => id == self.first_id,
        };
        (self.rest, self.last_id) = (rest, Some(id));
        ascends.then_some((id, set))
    }
}

impl<'c> Iterator for ChunkSets<'c> {
    type Item = Result<(u64, &'c [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() && self.last_id.is_some() {
            return None;
        }
        let bytes = self.rest;
        let entry = self.split();
        if entry.is_none() {
            (self.rest, self.last_id) = (&[], Some(self.first_id));
        }
        Some(entry.ok_or_else(|| {
            let place = format!("table {SETS}, chunk {}", self.first_id);
            checksum::unknown_layout(place, bytes)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(id: u64, length: usize) -> Vec<u8> {
        let mut set = vec![7; length];
        checksum::seal(SETS, &id.to_be_bytes(), &mut set);
        set
    }

    #[test]
    fn set_chunk_is_full_at_a_page() {
        let (mut chunk, set) = (SetChunk::default(), sealed(5, 1_000));
        // A set that exceeds a chunk has its own.
        assert!(chunk.has_room(5, &[0; 1 << 20]));
        let mut id = 5;
        while chunk.has_room(id, &set) {
            chunk.push(id, &set).unwrap();
            id += 3;
        }
        assert_eq!(chunk.bytes.len(), SET_CHUNK_BYTES / 1_012 * 1_012);
        chunk.bytes.clear();
        chunk.push(5, &set).unwrap();
        assert!(chunk.has_room(5 + u64::from(u32::MAX), &set));
        assert!(!chunk.has_room(6 + u64::from(u32::MAX), &set));
        assert!(chunk.push(6 + u64::from(u32::MAX), &set).is_err());
    }

    #[test]
    fn set_chunk_finds_its_documents_alone() {
        let mut chunk = SetChunk::default();
        for id in [9, 10, 17] {
            chunk.push(id, &sealed(id, id as usize)).unwrap();
        }
        let sets = || ChunkSets::new(9, &chunk.bytes);
        sets().check().unwrap();
        let ids: Vec<u64> = sets().map(|entry| entry.unwrap().0).collect();
        assert_eq!(ids, [9, 10, 17]);
        for id in 9..20 {
            let expected = ids.contains(&id).then(|| sealed(id, id as usize));
            assert_eq!(sets().find(id).unwrap(), expected.as_deref());
        }
        assert!(ChunkSets::new(8, &chunk.bytes).check().is_err());
    }

    #[test]
    fn set_chunk_reports_damage() {
        let mut chunk = SetChunk::default();
        for id in [9, 10, 17] {
            chunk.push(id, &sealed(id, 20)).unwrap();
        }
        for place in 0..chunk.bytes.len() {
            let mut damaged = chunk.bytes.clone();
            damaged[place] ^= 4;
            assert!(ChunkSets::new(9, &damaged).check().is_err(), "byte {place}");
            // Whatever is cut off, except for whole sets, is missed.
            let is_whole = place > 0 && place % 32 == 0;
            let cut = ChunkSets::new(9, &chunk.bytes[..place]);
            assert_eq!(cut.check().is_ok(), is_whole, "{place} bytes");
        }
    }
}
