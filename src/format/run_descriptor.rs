//! The description of a run that is read without its blocks.

use serde::{Deserialize, Serialize};

use crate::format::filter::FilterShape;
use crate::format::posting::Posting;
use resemblance_sketch::lanes::index_of_lane;

/// One run: the postings of a contiguous range of document ids in all lanes.
///
/// While runs are merged, the output has a separate descriptor. Postings move there lane by lane:
/// together the descriptors hold what they held before, each posting once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunDescriptor {
    /// Its number: unique, never reused, the leading part of its blocks' keys.
    pub(crate) run: u32,
    /// About the number of times that its postings have been merged with others.
    pub(crate) level: u8,
    /// The lowest id of its range.
    pub(crate) first_id: u64,
    /// The highest id of its range, inclusive.
    pub(crate) last_id: u64,
    /// Number of documents of its range that were live when it was written, those without postings
    /// included.
    pub(crate) documents: u64,
    /// The runs that are being merged into this one, ascending by their ranges; else none.
    pub(crate) inputs: Vec<u32>,
    /// Progress of that merge: the `postings_moved` of the state that it has worked off.
    pub(crate) kept_up_to: u64,
    /// The id from which on the rows of documents that the merge drops are still there; `None` once
    /// it has dropped them all.
    pub(crate) rows_from: Option<u64>,
    /// Its lanes, ascending by number. In the output of an unfinished merge, all lanes but the last
    /// are complete, and later lanes do not exist yet.
    pub(crate) lanes: Vec<LaneSummary>,
}

impl RunDescriptor {
    /// Returns the summary of a lane, `None` if the run does not hold it.
    pub(crate) fn lane(&self, lane: u16) -> Option<&LaneSummary> {
        let index = index_of_lane(&self.lanes, lane, |summary| summary.lane);
        self.lanes.get(index?)
    }

    /// Returns true if a lane may get more postings.
    pub(crate) fn is_growing(&self, lane: u16) -> bool {
        !self.inputs.is_empty() && self.lanes.last().is_some_and(|last| last.lane == lane)
    }

    /// Postings in all lanes; a forged file may claim more than there are numbers for.
    pub(crate) fn postings(&self) -> u64 {
        let postings = self.lanes.iter().map(|summary| summary.postings);
        postings.fold(0, u64::saturating_add)
    }

    /// Blocks in all lanes.
    pub(crate) fn blocks(&self) -> u64 {
        let blocks = self.lanes.iter().map(|summary| summary.blocks);
        blocks.fold(0, u64::saturating_add)
    }
}

/// One lane of a run. Reads check what they find against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaneSummary {
    pub(crate) lane: u16,
    /// Number of postings in its blocks, those up to `after` included.
    pub(crate) postings: u64,
    pub(crate) blocks: u64,
    /// Bytes of the values of its blocks, checksums included.
    pub(crate) bytes: u64,
    /// The shape of its filter, if it has one.
    pub(crate) filter: Option<FilterShape>,
    /// Postings up to this one have been merged into another run. A block may still contain some of
    /// them; these are skipped.
    pub(crate) after: Option<Posting>,
    /// The last posting: distinguishes a lane that ends from a lane whose last block is lost.
    pub(crate) last: Option<Posting>,
}

impl LaneSummary {
    /// Makes the summary of a lane without postings.
    pub(crate) const fn empty(lane: u16) -> Self {
        Self {
            lane,
            postings: 0,
            blocks: 0,
            bytes: 0,
            filter: None,
            after: None,
            last: None,
        }
    }

    /// Returns a posting such that none of the lane sorts before it.
    pub(crate) fn first_possible(&self) -> Posting {
        self.after.map_or(Posting::lowest_of(0), Posting::next)
    }
}
