//! The buckets of a lane, one after the other, without dropped documents.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::format::{CHUNK_DOCUMENTS, DeadChunk, Posting};
use crate::lanes::LaneSet;
use crate::read::SnapshotView;
use crate::read::{PostingStream, PostingTable};
use crate::state::Tombstones;

/// The documents that take part in a join, found without reading their rows. It takes one bit per
/// document in stretches of ids of which any is dropped or hidden, and 8 bytes per document that is
/// in no run yet.
pub(super) struct LiveDocuments {
    sealed_below: u64,
    /// The ids of documents that are in no run yet, ascending.
    unsealed: Vec<u64>,
    dropped: Tombstones,
    hidden: BTreeMap<u64, DeadChunk>,
}

impl LiveDocuments {
    pub(crate) fn new(snapshot: &SnapshotView) -> Result<Self> {
        Ok(Self {
            sealed_below: snapshot.inner.version.state.sealed_below,
            unsealed: snapshot.unsealed_ids()?,
            dropped: snapshot.inner.version.dead.clone(),
            hidden: BTreeMap::new(),
        })
    }

    fn contains(&self, id: u64) -> bool {
        if self.dropped.contains(id) || self.is_hidden(id) {
            return false;
        }
        id < self.sealed_below || self.is_unsealed(id)
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

/// A lane that is being read.
pub(super) struct BucketStream {
    lane: u16,
    postings: PostingStream,
    /// Read, but of the next bucket.
    next: Option<Posting>,
}

impl BucketStream {
    pub(crate) fn open(snapshot: &SnapshotView, lane: u16) -> Result<Self> {
        let is_table = lane > snapshot.context().lanes.band_count();
        let table = if is_table {
            PostingTable::Permuted
        } else {
            PostingTable::Bands
        };
        let mut postings = snapshot.inner.lane_stream(table, lane)?;
        let next = postings.next().transpose()?;
        Ok(Self {
            lane,
            postings,
            next,
        })
    }

    pub(crate) fn lane(&self) -> u16 {
        self.lane
    }

    /// Reads the postings of the next bucket, ascending by code, then id. Only those of live
    /// documents are kept, so there may be none. Returns false at the end of the lane.
    pub(crate) fn read(
        &mut self,
        lanes: &LaneSet,
        live: &LiveDocuments,
        bucket: &mut Vec<Posting>,
    ) -> Result<bool> {
        bucket.clear();
        let Some(first) = self.next else {
            return Ok(false);
        };
        let (_, high) = lanes.bucket_range(self.lane, first.code);
        while let Some(posting) = self.next.filter(|posting| posting.code <= high) {
            if live.contains(posting.id) {
                bucket.push(posting);
            }
            self.next = self.postings.next().transpose()?;
        }
        Ok(true)
    }
}
