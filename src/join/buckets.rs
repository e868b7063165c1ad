//! The buckets of a lane, one after the other, without dropped documents.

use std::sync::Arc;

use crate::error::Result;
use crate::format::Posting;
use crate::join::join_lanes::JoinLanes;
use crate::join::live::LiveDocuments;
use crate::join::source::{JoinSource, LanePostings};
use crate::lanes::LaneSet;

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
