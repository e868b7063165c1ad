//! The postings that have not been flushed to a run.

use std::sync::Arc;

use crate::error::Result;
use crate::format::Posting;
use crate::index::k_way::SliceMerger;
use crate::index::segment::{CodeRange, ProbeControl, Segment};
use crate::index::sweep::{ProbeRange, VisitProbe, sweep_slice};

/// A lane in memory alone: the documents that were deleted before they were flushed, each indexed under
/// its id. Segments are immutable, so a deletion cannot take postings out; the next flush does.
pub(crate) const TOMBSTONE_LANE: u16 = u16::MAX;

/// An immutable list of segments, oldest first, merged by doubling. Adding a segment gives a new
/// list that shares what it did not merge: older lists stay valid for the snapshots that hold them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memtable {
    segments: Arc<[Arc<Segment>]>,
    documents: u64,
}

impl Memtable {
    /// This memtable and the postings of newer documents.
    ///
    /// Segments at the end that are not twice as large as those after them are merged with them, so
    /// that each is at least twice as large as the next, whatever the sizes of the commits: n
    /// documents are in at most 1 + log₂ n segments.
    ///
    /// # Errors
    /// Returns the errors of [`Segment::merge`].
    pub(crate) fn push(&self, segment: Segment) -> Result<Memtable> {
        self.push_shared(&Arc::new(segment))
    }

    fn push_shared(&self, segment: &Arc<Segment>) -> Result<Memtable> {
        if segment.documents() == 0 {
            return Ok(self.clone());
        }
        let mut kept = &*self.segments;
        // Newest first. All are merged at once, because intermediate results would be wasted.
        let mut merged: Vec<&Segment> = vec![segment];
        let mut documents = segment.documents();
        while let [older @ .., last] = kept
            && last.documents() < documents.saturating_mul(2)
        {
            merged.push(last);
            documents += last.documents();
            kept = older;
        }
        let newest = if merged.len() == 1 {
            Arc::clone(segment)
        } else {
            merged.reverse();
            Arc::new(Segment::merge(&merged)?)
        };
        Ok(Memtable {
            segments: kept.iter().cloned().chain([newest]).collect(),
            documents: self.documents + segment.documents(),
        })
    }

    /// This memtable and all of a newer one, such as a transaction's own.
    ///
    /// # Errors
    /// Returns the errors of [`Segment::merge`].
    pub(crate) fn append(&self, newer: &Memtable) -> Result<Memtable> {
        match &*newer.segments {
            [] => Ok(self.clone()),
            _ if self.segments.is_empty() => Ok(newer.clone()),
            [one] => self.push_shared(one),
            several => {
                let segments: Vec<&Segment> = several.iter().map(|segment| &**segment).collect();
                self.push(Segment::merge(&segments)?)
            }
        }
    }

    /// Like [`append`](Self::append), without merging: probes of the result would take longer.
    pub(crate) fn chain(&self, newer: &Memtable) -> Memtable {
        Memtable {
            segments: self
                .segments
                .iter()
                .chain(newer.segments.iter())
                .cloned()
                .collect(),
            documents: self.documents + newer.documents,
        }
    }

    /// Visits the postings of several ranges, with the range's index: segment by segment, range by
    /// range within each, each range as `visit` directs. This is faster than one range after
    /// another.
    ///
    /// # Errors
    /// Returns the errors of `visit`.
    pub(crate) fn probe(
        &self,
        ranges: &[CodeRange],
        visit: &mut dyn FnMut(usize, Posting) -> Result<ProbeControl>,
    ) -> Result<()> {
        let mut segments = self.segments.iter();
        segments.try_for_each(|segment| segment.probe(ranges, visit))
    }

    /// Does the same as [`probe`](Self::probe), for documents from an id upwards; it may also visit
    /// earlier ones. After a commit, the documents are in its segment, or in the segment into which
    /// it was merged.
    pub(crate) fn probe_since(
        &self,
        first_id: u64,
        ranges: &[CodeRange],
        visit: &mut dyn FnMut(usize, Posting) -> Result<ProbeControl>,
    ) -> Result<()> {
        let segments = self.segments.iter();
        let mut since = segments.filter(|segment| segment.max_id() >= first_id);
        since.try_for_each(|segment| segment.probe(ranges, visit))
    }

    /// Visits the postings in a lane within `wanted`, which is sorted by low code: segment by
    /// segment. Returns false if `visit` ended the sweep.
    ///
    /// # Errors
    /// Returns the errors of `visit`.
    pub(crate) fn sweep(
        &self,
        lane: u16,
        wanted: &[ProbeRange],
        visit: &mut VisitProbe<'_>,
    ) -> Result<bool> {
        for segment in self.segments.iter() {
            if !sweep_slice(segment.searchable(lane), wanted, visit)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// All postings of a lane, sorted.
    ///
    /// # Errors
    /// Returns the errors of [`Segment::lane`].
    pub(crate) fn lane(&self, lane: u16) -> Result<Vec<Posting>> {
        let lanes = self.segments.iter().map(|segment| segment.lane(lane));
        let mut merged = Vec::new();
        SliceMerger::default().append(&lanes.collect::<Result<Vec<_>>>()?, &mut merged)?;
        Ok(merged)
    }

    /// Returns the number of postings in a lane.
    pub(crate) fn lane_postings(&self, lane: u16) -> u64 {
        let segments = self.segments.iter();
        segments.map(|segment| segment.lane_postings(lane)).sum()
    }

    /// Bytes on the heap, those shared with other memtables included.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.segments
            .iter()
            .map(|segment| segment.heap_bytes())
            .sum()
    }
}

#[cfg(test)]
#[path = "memtable_tests.rs"]
mod tests;
