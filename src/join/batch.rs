//! Buckets that are compared together: their documents in groups of equal signatures.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::format::{CHUNK_DOCUMENTS, EqualChunk, Posting};
use crate::invariant::{OrBug, at, invariant};
use crate::join::signature_batch::SignatureBatch;
use crate::join::source::JoinSource;
use resemblance_sketch::fingerprint::Fingerprint;

/// The documents of a bucket that have one signature.
pub(super) struct Group {
    /// The smallest of their ids. Equal documents share all their buckets, so it is the same in
    /// each.
    pub(super) first: u64,
    /// Their positions among the members of the batch, ascending by id.
    pub(super) members: Range<usize>,
    /// Slot of the signature in the batch of signatures; `usize::MAX` where none is read.
    pub(super) slot: usize,
    pub(super) fingerprint: Fingerprint,
}

/// Memory that a bucket takes for each document, in bytes, if no two have the same signature: the
/// posting, the id, the id with the digest of the signature, the member and the group.
pub(super) const BUCKET_DOCUMENT_BYTES: u64 =
    (size_of::<Posting>() + 2 * size_of::<u64>() + size_of::<(u128, u64)>() + size_of::<Group>())
        as u64;

/// Groups of one bucket that are to be compared, each of `b` with each of `a` before it.
pub(super) struct BucketPiece {
    pub(super) lane: u16,
    pub(super) a: Range<usize>,
    pub(super) b: Range<usize>,
    /// Groups from here on are not compared among each other.
    pub(super) representatives_end: usize,
    /// True if the signatures are read for this piece alone.
    pub(super) is_read_alone: bool,
}

impl BucketPiece {
    /// Returns the number of comparisons that the piece takes.
    pub(super) fn comparisons(&self) -> usize {
        let end = self.a.end.min(self.representatives_end);
        let earlier = |b: usize| end.min(b).saturating_sub(self.a.start);
        self.b.clone().map(earlier).sum()
    }
}

/// Buckets that were cut short, by lane and lowest code, with the first id of the last group that
/// is compared with all groups. Two groups met there only if at most one of them follows it.
pub(super) type CutBuckets = HashMap<(u16, u64), u64>;

#[derive(Default)]
pub(super) struct JoinBatch {
    pub(super) signatures: Arc<SignatureBatch>,
    pub(super) members: Vec<u64>,
    /// Bucket by bucket, each ascending by first id.
    pub(super) groups: Vec<Group>,
    /// The lower 64 bits of the groups' fingerprints, side by side for fast comparison; empty
    /// without SimHash.
    pub(super) fingerprints: Vec<u64>,
    pub(super) pieces: Vec<BucketPiece>,
}

impl JoinBatch {
    /// Appends groups of equal documents.
    pub(super) fn group(&mut self, mut documents: Vec<(u128, u64)>) {
        documents.sort_unstable();
        for equal in documents.chunk_by(|a, b| a.0 == b.0) {
            self.push_group(equal.iter().map(|(_, id)| *id), 0_u64.into());
        }
    }

    /// Appends a group of documents whose ids ascend.
    pub(super) fn push_group(&mut self, ids: impl Iterator<Item = u64>, fingerprint: Fingerprint) {
        let start = self.members.len();
        self.members.extend(ids);
        if let Some(&first) = self.members.get(start) {
            self.groups.push(Group {
                first,
                members: start..self.members.len(),
                slot: usize::MAX,
                fingerprint,
            });
        }
    }

    pub(super) fn members_of(&self, group: usize) -> &[u64] {
        debug_assert!(group < self.groups.len());
        let group = self.groups.get(group);
        let members = group.and_then(|group| self.members.get(group.members.clone()));
        // Asked for each pair, so checked in tests alone.
        members.unwrap_or_default()
    }

    /// Looks up the slots of the signatures of some groups.
    pub(super) fn find_slots(&mut self, indexes: Range<usize>) -> Result<()> {
        let groups = self
            .groups
            .get_mut(indexes.clone())
            .or_bug("groups of a piece")?;
        for group in groups.iter_mut() {
            group.slot = self.signatures.slot(group.first)?;
        }
        if self.fingerprints.is_empty() {
            return Ok(());
        }
        let fingerprints = self
            .fingerprints
            .get_mut(indexes)
            .or_bug("a fingerprint for each group")?;
        for (fingerprint, group) in fingerprints.iter_mut().zip(groups) {
            let found = self.signatures.fingerprint(group.slot);
            group.fingerprint = found.or_bug("a fingerprint for each signature")?;
            *fingerprint = group.fingerprint.word(0);
        }
        Ok(())
    }

    /// Reads the signatures of a piece that is read alone.
    pub(super) fn read_piece(
        &mut self,
        source: &dyn JoinSource,
        piece: usize,
        with_codes: bool,
        threads: usize,
    ) -> Result<()> {
        let piece = at(&self.pieces, piece)?;
        invariant!(piece.is_read_alone, "a piece is read again");
        let (a, b) = (piece.a.clone(), piece.b.clone());
        // Shares are apart, or `a` is the beginning of `b`.
        let earlier = if a.start == b.start { 0..0 } else { a };
        let first = |index| Ok(at(&self.groups, index)?.first);
        let indexes = earlier.clone().chain(b.clone());
        let ids = indexes.map(first).collect::<Result<Vec<u64>>>()?;
        // Data that was compared before is freed first.
        self.signatures = Arc::default();
        self.signatures = source.signatures(&ids, with_codes, threads)?;
        self.find_slots(earlier)?;
        self.find_slots(b)
    }
}

/// The minimum number of documents in a bucket for which the records of equal documents are looked
/// up.
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
    /// Returns the errors of reading.
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
