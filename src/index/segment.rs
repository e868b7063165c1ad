//! The postings of a batch of documents, in memory, sorted.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::format::{NearCodes, Posting};
use crate::index::code_search::{CodeSearch, LazyTable, SortedPostings};
use crate::index::k_way::SliceMerger;
use crate::index::radix::sort_by_number;
use crate::invariant::{OrBug, invariant};
use resemblance_sketch::lanes::{LaneCode, index_of_lane};

/// Immutable postings of some documents in all lanes.
///
/// They are one allocation: the system would take back and clear the pages of many small ones between one segment and the
/// next.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Ascending.
    lanes: Vec<SegmentLane>,
    /// Lane by lane, each sorted.
    postings: Vec<Posting>,
    documents: u64,
    max_id: u64,
}

#[derive(Clone, Debug)]
struct SegmentLane {
    lane: u16,
    /// The range of the segment's postings.
    places: Range<usize>,
    table: LazyTable,
}

/// The codes `low_code..=high_code` of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeRange {
    pub(crate) lane: u16,
    pub(crate) low_code: u64,
    pub(crate) high_code: u64,
    /// Postings of other codes than these need not be visited.
    pub(crate) near: Option<NearCodes>,
}

impl CodeRange {
    pub(crate) const fn new(lane: u16, low_code: u64, high_code: u64) -> Self {
        Self {
            lane,
            low_code,
            high_code,
            near: None,
        }
    }
}

/// Directs a probe after a posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeControl {
    GoOn,
    /// Skip the postings before this one, in the range and in the current segment or run. Skipped
    /// postings on disk are not read.
    SkipTo(Posting),
    /// Skip the rest of the range in the current segment or run.
    End,
}

impl Segment {
    /// Creates a builder with room for this number of documents, and of postings in all lanes,
    /// which are added next.
    fn with_capacity(documents: u64, max_id: u64, lanes: usize, postings: usize) -> Self {
        Self {
            lanes: Vec::with_capacity(lanes),
            postings: Vec::with_capacity(postings),
            documents,
            max_id,
        }
    }

    /// Adds a lane after the others: the postings from `start`, which are sorted.
    fn add_lane(&mut self, lane: u16, start: usize) {
        self.lanes.push(SegmentLane {
            lane,
            places: start..self.postings.len(),
            table: LazyTable::default(),
        });
    }

    /// Merges segments, the oldest first. No posting is in two of them.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) without any segment, and those of [`lane`](Self::lane).
    pub(super) fn merge(segments: &[&Segment]) -> Result<Segment> {
        let documents = segments.iter().map(|segment| segment.documents).sum();
        let max_ids = segments.iter().map(|segment| segment.max_id);
        let max_id = max_ids.max().or_bug("a segment to merge")?;
        let lanes = all_lanes(segments);
        let postings = segments.iter().map(|segment| segment.postings.len()).sum();
        let mut merged = Segment::with_capacity(documents, max_id, lanes.len(), postings);
        // It holds one lane at a time in between, which fits the processor's cache.
        let mut merger = SliceMerger::default();
        for lane in lanes {
            let slices = segments.iter().map(|segment| segment.lane(lane));
            let slices: Vec<&[Posting]> = slices.collect::<Result<_>>()?;
            let start = merged.postings.len();
            merger.append(&slices, &mut merged.postings)?;
            merged.add_lane(lane, start);
        }
        let found = merged.postings.len();
        invariant!(found == postings, "merged {found} of {postings} postings");
        Ok(merged)
    }

    /// The postings of a lane, sorted; none of a lane that the segment does not have.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) if they are not where they must be.
    pub(crate) fn lane(&self, lane: u16) -> Result<&[Posting]> {
        self.searchable(lane).all()
    }

    /// A lane, to be searched; without postings if the segment does not have it.
    pub(super) fn searchable(&self, lane: u16) -> SortedPostings<'_> {
        let Some(found) = self.find(lane) else {
            return SortedPostings::Plain(&[]);
        };
        match self.postings.get(found.places.clone()) {
            Some(postings) => SortedPostings::WithTable(postings, &found.table),
            None => SortedPostings::Missing,
        }
    }

    /// Returns the number of postings in a lane.
    pub(super) fn lane_postings(&self, lane: u16) -> u64 {
        self.find(lane).map_or(0, |found| found.places.len() as u64)
    }

    fn find(&self, lane: u16) -> Option<&SegmentLane> {
        let index = index_of_lane(&self.lanes, lane, |found| found.lane)?;
        self.lanes.get(index)
    }

    /// Visits the postings of several ranges, except for those that need not be visited, with the
    /// range's index, each range as `visit` directs.
    ///
    /// # Errors
    /// Returns the errors of `visit`.
    pub(crate) fn probe(
        &self,
        ranges: &[CodeRange],
        visit: &mut dyn FnMut(usize, Posting) -> Result<ProbeControl>,
    ) -> Result<()> {
        let search = |range: &CodeRange| self.searchable(range.lane).search(range.low_code);
        let mut searches: Vec<CodeSearch<'_>> = ranges.iter().map(search).collect();
        CodeSearch::run(&mut searches);
        for (index, (search, range)) in searches.iter().zip(ranges).enumerate() {
            let postings = search.found()?;
            let in_range = |posting: &&Posting| posting.code <= range.high_code;
            let is_near =
                |posting: &&Posting| range.near.is_none_or(|near| near.have(posting.code));
            // Ranges may share postings: what one of them passes over another may want.
            let mut from = *postings.first().unwrap_or(&Posting::MAX);
            for posting in postings.iter().take_while(in_range).filter(is_near) {
                if *posting < from {
                    continue;
                }
                match visit(index, *posting)? {
                    ProbeControl::GoOn => {}
                    ProbeControl::SkipTo(next) => from = next,
                    ProbeControl::End => break,
                }
            }
        }
        Ok(())
    }

    /// Returns the number of documents that the segment was built from.
    pub(crate) fn documents(&self) -> u64 {
        self.documents
    }

    /// No document has a greater id.
    pub(super) fn max_id(&self) -> u64 {
        self.max_id
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let tables = self.lanes.iter().map(|lane| lane.table.heap_bytes());
        self.postings.capacity() * size_of::<Posting>()
            + self.lanes.capacity() * size_of::<SegmentLane>()
            + tables.sum::<usize>()
    }
}

/// The lanes of any of the segments, ascending.
fn all_lanes(segments: &[&Segment]) -> Vec<u16> {
    let all = segments.iter().flat_map(|segment| &segment.lanes);
    let mut lanes: Vec<u16> = all.map(|found| found.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes
}

/// Collects the postings of documents, to be sorted once; until then they can be probed slowly.
#[derive(Debug)]
pub(crate) struct SegmentBuilder {
    lanes: Arc<[u16]>,
    /// The postings of each lane in the order of insertion.
    columns: Vec<Vec<Posting>>,
    documents: u64,
    last_id: Option<u64>,
    max_id: u64,
    ids_ascend: bool,
}

impl SegmentBuilder {
    /// Creates a builder for these lanes: numbers, strictly ascending.
    pub(crate) fn new(lanes: Arc<[u16]>) -> Self {
        debug_assert!(lanes.is_sorted_by(|a, b| a < b));
        Self {
            columns: vec![Vec::new(); lanes.len()],
            lanes,
            documents: 0,
            last_id: None,
            max_id: 0,
            ids_ascend: true,
        }
    }

    /// Adds a document with its codes, in the order of their lanes. Ascending ids are faster.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) for a code in another lane.
    pub(crate) fn push(&mut self, id: u64, codes: &[LaneCode]) -> Result<()> {
        let (mut lanes, mut columns) = (self.lanes.iter(), self.columns.iter_mut());
        for of_lane in codes.chunk_by(|a, b| a.lane == b.lane) {
            let lane = of_lane.first().map(|code| code.lane);
            let position = lanes.position(|other| Some(*other) == lane);
            let found = position.and_then(|position| columns.nth(position));
            let column = found.or_bug_with(|| format!("a posting of lane {lane:?}"))?;
            column.extend(of_lane.iter().map(|code| Posting {
                code: code.code,
                id,
            }));
        }
        self.ids_ascend &= self.last_id.is_none_or(|last| last < id);
        self.last_id = Some(id);
        self.max_id = self.max_id.max(id);
        self.documents += 1;
        Ok(())
    }

    /// Visits the postings of a lane whose codes are in `low_code..=high_code`, unordered. It
    /// examines every posting of the lane, so keep the builder small if it is probed.
    pub(crate) fn postings_in(
        &self,
        lane: u16,
        low_code: u64,
        high_code: u64,
        visit: &mut impl FnMut(Posting),
    ) {
        let Ok(index) = self.lanes.binary_search(&lane) else {
            return;
        };
        for posting in self.columns.get(index).into_iter().flatten() {
            if (low_code..=high_code).contains(&posting.code) {
                visit(*posting);
            }
        }
    }

    /// Returns the number of documents that have been added.
    pub(crate) fn documents(&self) -> u64 {
        self.documents
    }

    /// Sorts the added postings, and leaves the builder empty.
    pub(crate) fn build(&mut self) -> Segment {
        let documents = std::mem::take(&mut self.documents);
        let max_id = std::mem::take(&mut self.max_id);
        let postings = self.columns.iter().map(Vec::len).sum();
        let mut segment = Segment::with_capacity(documents, max_id, self.lanes.len(), postings);
        let mut scratch = Vec::new();
        for (lane, column) in self.lanes.iter().zip(&mut self.columns) {
            // Documents are added with ascending ids, but a deletion adds the id of an older one.
            // The sort by number keeps the order of equal codes, so it can be used only if the ids
            // ascend already.
            if self.ids_ascend {
                sort_by_number(column, &mut scratch, |posting| posting.code);
            } else {
                column.sort_unstable();
            }
            let start = segment.postings.len();
            segment.postings.append(column);
            segment.add_lane(*lane, start);
        }
        self.last_id = None;
        self.ids_ascend = true;
        segment
    }
}

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
