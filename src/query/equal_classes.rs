//! Classes of documents with equal signatures, of which a search compares one.
//!
//! Runs record which of their documents are equal. Equal documents share all their buckets. When a
//! posting has led to one document of a class, a search need not read the postings of the others in
//! any lane, because the records name them.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::format::{CHUNK_DOCUMENTS, EqualChunk};
use crate::invariant::{OrBug, at, at_mut};
use crate::read::ReadView;

const WORDS: usize = (CHUNK_DOCUMENTS / 64) as usize;

/// The classes that a search has met.
pub(super) struct EqualClasses<'v> {
    view: &'v dyn ReadView,
    /// Digests, in the order in which they were met.
    met: Vec<u128>,
    /// The chunks of ids that postings have led to. Together they have all members of the classes met but
    /// those that were read as postings.
    chunks: BTreeMap<u64, LoadedChunk>,
    /// The current chunk, which is not among the others: neighbours follow each other.
    current: Option<(u64, LoadedChunk)>,
}

/// The records of a chunk of ids.
#[derive(Default)]
struct LoadedChunk {
    row: Option<EqualChunk>,
    /// The members of each class of the row, ascending by their offsets in the chunk.
    offsets: Vec<Vec<u16>>,
    /// A bit for each document of a class met, in the order of the ids; empty if the row has none.
    met: Vec<u64>,
    /// Number of the classes met that the bits take into account.
    refreshed: usize,
}

impl LoadedChunk {
    fn decode(chunk: u64, row: Option<&[u8]>) -> Result<Self> {
        let notes = row.map(|row| EqualChunk::decode(chunk, row)).transpose()?;
        Ok(Self {
            offsets: notes.as_ref().map_or_else(Vec::new, EqualChunk::offsets),
            row: notes,
            ..Self::default()
        })
    }

    fn offsets_of(&self, digest: u128) -> &[u16] {
        let position = self.row.as_ref().and_then(|row| row.position(digest));
        let offsets = position.and_then(|position| self.offsets.get(position));
        offsets.map_or(&[], Vec::as_slice)
    }

    /// Takes the classes into account that were met since the last time.
    fn refresh(&mut self, met: &[u128]) -> Result<()> {
        // Classes are met while this chunk is put aside, too: each chunk catches up when it is asked again.
        let new = met.get(self.refreshed..).or_bug("the classes met")?;
        for digest in new {
            let position = self.row.as_ref().and_then(|row| row.position(*digest));
            let Some(position) = position else {
                continue;
            };
            self.met.resize(WORDS, 0);
            for offset in at(&self.offsets, position)? {
                *at_mut(&mut self.met, usize::from(*offset) / 64)? |= 1 << (offset % 64);
            }
        }
        self.refreshed = met.len();
        Ok(())
    }

    fn is_met(&self, id: u64) -> bool {
        let offset = id % CHUNK_DOCUMENTS;
        let word = self.met.get((offset / 64) as usize);
        word.is_some_and(|word| word >> (offset % 64) & 1 == 1)
    }

    /// Returns the first offset, from one on, of a document that is in no class met; `None` if all that
    /// are left of the chunk are.
    fn first_other(&self, offset: u64) -> Option<u64> {
        let first_word = (offset / 64) as usize;
        for (index, word) in (0..).zip(&self.met).skip(first_word) {
            let passed = if index == first_word { offset % 64 } else { 0 };
            // Documents before the requested one are skipped, whether or not their classes were
            // met.
            let others = !word & (u64::MAX << passed);
            if others != 0 {
                return Some(index as u64 * 64 + u64::from(others.trailing_zeros()));
            }
        }
        // Without words, no class occurs in this chunk, and the document itself is the first other
        // one. With words there is none, because every bit from the offset on is set.
        self.met.is_empty().then_some(offset)
    }
}

impl<'v> EqualClasses<'v> {
    pub(super) fn new(view: &'v dyn ReadView) -> Self {
        Self {
            view,
            met: Vec::new(),
            chunks: BTreeMap::new(),
            current: None,
        }
    }

    /// Takes a candidate. If it is one of many equal ones, returns the next id that is in no class
    /// met so far. Otherwise returns `None`, and the candidate must be compared by itself.
    pub(super) fn take(&mut self, id: u64) -> Result<Option<u64>> {
        if id >= self.view.flushed_below() {
            return Ok(None);
        }
        let chunk = self.load(id / CHUNK_DOCUMENTS)?;
        if !chunk.is_met(id) {
            let Some(digest) = chunk.row.as_ref().and_then(|row| row.digest(id)) else {
                return Ok(None);
            };
            self.met.push(digest);
        }
        self.first_other(id).map(Some)
    }

    fn first_other(&mut self, mut id: u64) -> Result<u64> {
        while id < self.view.flushed_below() {
            let chunk = id / CHUNK_DOCUMENTS;
            let first = chunk * CHUNK_DOCUMENTS;
            if let Some(offset) = self.load(chunk)?.first_other(id - first) {
                return Ok(first + offset);
            }
            // From here on all documents of the chunk are of classes that were met.
            id = first.saturating_add(CHUNK_DOCUMENTS);
        }
        Ok(id)
    }

    fn load(&mut self, chunk: u64) -> Result<&mut LoadedChunk> {
        // The ids of a code ascend, so that most are in the chunk of the one before: the map is asked only when that
        // changes.
        let loaded = match self.current.take() {
            Some(current) if current.0 == chunk => current,
            other => {
                self.chunks.extend(other);
                let loaded = self.chunks.remove(&chunk);
                (chunk, loaded.map_or_else(|| self.read(chunk), Ok)?)
            }
        };
        let (_, loaded) = self.current.insert(loaded);
        loaded.refresh(&self.met)?;
        Ok(loaded)
    }

    fn read(&self, chunk: u64) -> Result<LoadedChunk> {
        let mut loaded = LoadedChunk::default();
        self.view.equal_row(chunk, &mut |row| {
            loaded = LoadedChunk::decode(chunk, row)?;
            Ok(())
        })?;
        Ok(loaded)
    }

    /// Ends the reading of postings, and returns the classes met.
    pub(super) fn into_members(mut self) -> Result<EqualMembers> {
        self.chunks.extend(self.current.take());
        for chunk in self.chunks.values_mut() {
            chunk.refresh(&self.met)?;
        }
        Ok(EqualMembers {
            classes: self.met,
            chunks: self.chunks,
        })
    }
}

/// The members of classes, of which a search compares one each.
#[derive(Default)]
pub(super) struct EqualMembers {
    classes: Vec<u128>,
    chunks: BTreeMap<u64, LoadedChunk>,
}

impl EqualMembers {
    pub(super) fn have(&self, id: u64) -> bool {
        let chunk = self.chunks.get(&(id / CHUNK_DOCUMENTS));
        chunk.is_some_and(|chunk| chunk.is_met(id))
    }

    /// Returns the members of each class, ascending by id. They may be deleted.
    pub(super) fn classes(&self) -> impl Iterator<Item = impl Iterator<Item = u64> + '_> {
        let ids = |(chunk, loaded): (&u64, &'_ LoadedChunk), digest| {
            let first = chunk * CHUNK_DOCUMENTS;
            let offsets = loaded.offsets_of(digest).to_vec();
            offsets
                .into_iter()
                .map(move |offset| first + u64::from(offset))
        };
        self.classes.iter().map(move |digest| {
            self.chunks
                .iter()
                .flat_map(move |chunk| ids(chunk, *digest))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chunk of which the class that was met first has no member, and that of the second has two.
    #[test]
    fn equal_classes_are_searched_in_every_chunk() {
        let chunk = 3;
        let first = chunk * CHUNK_DOCUMENTS;
        let members = [(first + 5, 20), (first + 6, 30), (first + 70, 20)];
        let row = EqualChunk::new(&members).unwrap().encode(chunk);
        let mut loaded = LoadedChunk::decode(chunk, Some(&row)).unwrap();
        let are_met = |loaded: &LoadedChunk, expected: [bool; 3]| {
            assert_eq!(members.map(|(id, _)| loaded.is_met(id)), expected);
        };
        loaded.refresh(&[10]).unwrap();
        are_met(&loaded, [false; 3]);
        loaded.refresh(&[10, 11, 20]).unwrap();
        are_met(&loaded, [true, false, true]);
        assert_eq!(loaded.first_other(5), Some(6));
        assert_eq!(loaded.first_other(70), Some(71));
        loaded.refresh(&[10, 11, 20, 30]).unwrap();
        are_met(&loaded, [true; 3]);
    }
}
