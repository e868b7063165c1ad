//! Digests of signatures that the notes of equal documents tell, so that their rows need not be read.

use crate::error::Result;
use crate::format::{CHUNK_DOCUMENTS, EqualChunk};
use crate::join::source::JoinSource;

/// Number of documents of a bucket from which notes about them are looked up.
pub(super) const MIN_DOCUMENTS: usize = if cfg!(test) { 8 } else { 64 };

/// Documents of which some are noted to be equal.
#[derive(Default)]
pub(super) struct NotedDocuments {
    /// Ids and digests of those that are noted, ascending by id.
    noted: Vec<(u64, u128)>,
    /// The others, ascending.
    pub(super) others: Vec<u64>,
}

impl NotedDocuments {
    /// Looks documents up whose ids ascend.
    ///
    /// # Errors
    /// Those of reading.
    pub(super) fn read(source: &dyn JoinSource, ids: &[u64]) -> Result<Self> {
        let mut documents = Self::default();
        for ids in ids.chunk_by(|a, b| a / CHUNK_DOCUMENTS == b / CHUNK_DOCUMENTS) {
            let chunk = ids.first().map_or(0, |id| id / CHUNK_DOCUMENTS);
            source.notes(chunk, &mut |notes| {
                documents.take(chunk, notes, ids);
                Ok(())
            })?;
        }
        Ok(documents)
    }

    fn take(&mut self, chunk: u64, row: Option<&EqualChunk>, ids: &[u64]) {
        let Some(row) = row else {
            self.others.extend(ids);
            return;
        };
        let mut members = row.members(chunk).peekable();
        for &id in ids {
            while members.next_if(|(member, _)| *member < id).is_some() {}
            match members.next_if(|(member, _)| *member == id) {
                Some(member) => self.noted.push(member),
                None => self.others.push(id),
            }
        }
    }

    /// Returns the digests that are noted, with the ids.
    pub(super) fn digests(&self) -> impl Iterator<Item = (u128, u64)> {
        self.noted.iter().map(|(id, digest)| (*digest, *id))
    }

    /// Returns the digest of a document, `None` if it is not noted.
    pub(super) fn digest(&self, id: u64) -> Option<u128> {
        let position = self.noted.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.noted.get(position).map(|(_, digest)| *digest)
    }

    /// Returns the first document of each digest that is noted.
    pub(super) fn firsts(&self) -> Vec<u64> {
        let mut firsts: Vec<(u128, u64)> = self.digests().collect();
        firsts.sort_unstable();
        firsts.dedup_by_key(|(digest, _)| *digest);
        firsts.into_iter().map(|(_, id)| id).collect()
    }
}
