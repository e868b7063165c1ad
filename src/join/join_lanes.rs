//! The lanes of a join: those of the documents, or special tables for a distance that the
//! documents' tables do not cover.

use std::sync::Arc;

use crate::error::Result;
use crate::format::Posting;
use crate::invariant::OrBug;
use crate::join::source::{JoinSource, LanePostings, LiveDocuments};
use crate::query::ResolvedBounds;
use crate::read::PostingTable;
use resemblance_sketch::lanes::{LaneSet, TableDesign};

/// Number of postings of a special table that are sorted at a time. Twice that number are in
/// memory, at 16 bytes each, and the fingerprints are read once for each share.
const SHARE_POSTINGS: usize = if cfg!(test) { 50 } else { 1 << 20 };

/// The lanes that a join reads.
pub(super) struct JoinLanes {
    lanes: LaneSet,
    /// True if the tables are the join's own, made of the fingerprints: the stored ones would miss pairs.
    has_own_tables: bool,
}

impl JoinLanes {
    /// Chooses the lanes for these bounds.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`](crate::Error::InvalidParameter) for a distance of more than 63 bits.
    pub(super) fn new(source: &dyn JoinSource, bounds: &ResolvedBounds) -> Result<Self> {
        let lanes = source.context().lanes.clone();
        let distance = bounds.max_distance.zip(lanes.design());
        // The stored tables prove only distances within whole buckets.
        let beyond =
            distance.filter(|(distance, design)| *distance > design.bucket_distance().into());
        let own = beyond.map(|(distance, design)| {
            TableDesign::by_whole_buckets(design.bits(), distance, source.len())
        });
        Ok(match own.transpose()? {
            Some(design) => Self {
                lanes: lanes.with_design(design),
                has_own_tables: true,
            },
            None => Self {
                lanes,
                has_own_tables: false,
            },
        })
    }

    pub(super) fn set(&self) -> &LaneSet {
        &self.lanes
    }

    /// Returns true if a lane is a table.
    pub(super) fn is_table(&self, lane: u16) -> bool {
        lane > self.lanes.band_count()
    }

    /// Returns the number of postings of a lane, about.
    pub(super) fn postings(&self, source: &dyn JoinSource, lane: u16) -> u64 {
        match self.has_own_tables && self.is_table(lane) {
            true => source.len(),
            false => source.lane_postings(lane),
        }
    }

    /// Opens a lane.
    pub(super) fn open(
        self: &Arc<Self>,
        source: &Arc<dyn JoinSource>,
        lane: u16,
    ) -> Result<LanePostings> {
        if !self.is_table(lane) {
            return source.lane(PostingTable::Bands, lane);
        }
        if !self.has_own_tables {
            return source.lane(PostingTable::Permuted, lane);
        }
        Ok(Box::new(OwnTable {
            source: Arc::clone(source),
            lanes: Arc::clone(self),
            lane,
            share: Vec::new().into_iter(),
            next: Some(Posting::lowest_of(0)),
        }))
    }
}

/// The postings of a special table of a join. The smallest ones that fit into memory are first,
/// then the next ones.
struct OwnTable {
    source: Arc<dyn JoinSource>,
    lanes: Arc<JoinLanes>,
    lane: u16,
    share: std::vec::IntoIter<Posting>,
    /// The smallest posting that may follow the share, or `None` after the last.
    next: Option<Posting>,
}

impl OwnTable {
    /// Reads the next share. Returns false after the last.
    fn fill(&mut self) -> Result<bool> {
        let Some(start) = self.next else {
            return Ok(false);
        };
        let mut share: Vec<Posting> = Vec::new();
        let mut end = None;
        let lanes = self.lanes.set();
        let table = lanes.table(self.lane).or_bug("the table of a lane")?;
        self.source.fingerprints(&mut |id, fingerprint| {
            let code = table.permute(fingerprint);
            let posting = Posting { code, id };
            // Every share reads all fingerprints again: memory is bounded, not the number of passes.
            if posting < start || end.is_some_and(|end| posting >= end) {
                return Ok(());
            }
            share.push(posting);
            // Cutting at twice the size, not at each posting beyond it, keeps the work for each posting constant.
            if share.len() >= 2 * SHARE_POSTINGS {
                let (_, first_beyond, _) = share.select_nth_unstable(SHARE_POSTINGS);
                end = Some(*first_beyond);
                share.truncate(SHARE_POSTINGS);
            }
            Ok(())
        })?;
        share.sort_unstable();
        self.next = end;
        self.share = share.into_iter();
        Ok(true)
    }
}

impl Iterator for OwnTable {
    type Item = Result<Posting>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(posting) = self.share.next() {
                return Some(Ok(posting));
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.next = None;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// A lane that is being read.
pub(super) struct BucketStream {
    lane: u16,
    postings: LanePostings,
    /// Read, but of the next bucket.
    next: Option<Posting>,
}

impl BucketStream {
    pub(crate) fn open(
        source: &Arc<dyn JoinSource>,
        lanes: &Arc<JoinLanes>,
        lane: u16,
    ) -> Result<Self> {
        let mut postings = lanes.open(source, lane)?;
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
