//! What is known of a run without reading its blocks.

use serde::{Deserialize, Serialize};

use super::posting::Posting;

/// One run: the postings of a contiguous range of document ids in all lanes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunDescriptor {
    /// Its number: unique, never reused, the leading part of its blocks' keys.
    pub(crate) run: u32,
    /// How many times its postings have been merged with others, about.
    pub(crate) level: u8,
    /// The least id of its range.
    pub(crate) first_id: u64,
    /// The greatest id of its range, inclusive.
    pub(crate) last_id: u64,
    /// The documents of its range that were live when it was written, those that are filed nowhere
    /// included.
    pub(crate) documents: u64,
    /// Its lanes, ascending by number.
    pub(crate) lanes: Vec<LaneSummary>,
}

impl RunDescriptor {
    /// The summary of a lane, if the run holds that lane.
    pub(crate) fn lane(&self, lane: u16) -> Option<&LaneSummary> {
        let place = self
            .lanes
            .binary_search_by_key(&lane, |summary| summary.lane);
        self.lanes.get(place.ok()?)
    }

    /// Postings in all lanes.
    pub(crate) fn postings(&self) -> u64 {
        self.lanes.iter().map(|summary| summary.postings).sum()
    }

    /// Blocks in all lanes.
    pub(crate) fn blocks(&self) -> u64 {
        self.lanes.iter().map(|summary| summary.blocks).sum()
    }
}

/// One lane of a run. Reads check what they find against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaneSummary {
    pub(crate) lane: u16,
    pub(crate) postings: u64,
    pub(crate) blocks: u64,
    /// Of the blocks' values, checksums included.
    pub(crate) bytes: u64,
    /// The last posting: tells a lane that ends from a lane whose last block is lost.
    pub(crate) last: Option<Posting>,
}

impl LaneSummary {
    /// A lane without postings.
    pub(crate) const fn empty(lane: u16) -> Self {
        Self {
            lane,
            postings: 0,
            blocks: 0,
            bytes: 0,
            last: None,
        }
    }
}
