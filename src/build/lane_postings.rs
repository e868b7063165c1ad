//! Writes all lanes while they are merged, and reports the progress.

use crate::build::sort::{LaneChunks, Sorter, merge_lanes};
use crate::error::Result;
use crate::format::{LaneSummary, Posting};
use crate::index::{ChunkIter, PostingChunks};
use crate::invariant::invariant;
use crate::types::{Phase, Watch};

/// The merge of all lanes: postings so far, of those that were pushed.
struct MergeCount<'a, 'w> {
    watch: &'a mut Watch<'w>,
    done: u64,
    total: u64,
}

/// The merged chunks of a lane; progress is reported after each.
pub(super) struct CountedChunks<'a, 'c, 'w> {
    chunks: LaneChunks<'a>,
    count: &'a mut MergeCount<'c, 'w>,
}

impl PostingChunks for CountedChunks<'_, '_, '_> {
    fn read(&mut self, postings: &mut Vec<Posting>) -> Result<()> {
        let before = postings.len();
        self.chunks.read(postings)?;
        let read = (postings.len() - before) as u64;
        if read == 0 {
            return Ok(());
        }
        let count = &mut *self.count;
        count.done += read;
        let (done, total) = (count.done, count.total);
        count.watch.report(Phase::WritingPostings, done, total)
    }
}

/// A lane on its way into a store.
pub(super) struct LaneWritten {
    pub(super) summary: LaneSummary,
    /// Number of postings that were left out.
    pub(super) left_out: u64,
}

/// Writes all lanes, one after the other: `write` takes the number of a lane and its postings.
///
/// # Errors
/// [`Error::Bug`](crate::Error::Bug) if postings get lost, and what merging and `write` fail with.
pub(super) fn write_lanes(
    sorter: &Sorter,
    watch: &mut Watch<'_>,
    mut write: impl FnMut(u16, ChunkIter<CountedChunks<'_, '_, '_>>) -> Result<LaneWritten>,
) -> Result<Vec<LaneSummary>> {
    let (lanes, sorted, total) = (sorter.lanes()?, sorter.sorted(), sorter.postings());
    watch.report(Phase::WritingPostings, 0, total)?;
    let mut count = MergeCount {
        watch,
        done: 0,
        total,
    };
    let summaries = merge_lanes(&sorted, lanes, sorter.threads(), |merged| {
        let mut summaries = Vec::with_capacity(lanes.into());
        for lane in 0..lanes {
            let chunks = CountedChunks {
                chunks: merged.lane(lane)?,
                count: &mut count,
            };
            let LaneWritten { summary, left_out } = write(lane, ChunkIter::new(chunks))?;
            let (written, given) = (summary.postings, sorted.lane_postings(lane.into())?);
            invariant!(
                written + left_out == given,
                "lane {lane}: wrote {written} and left out {left_out} of {given} postings"
            );
            summaries.push(summary);
        }
        Ok(summaries)
    })?;
    let done = count.done;
    invariant!(done == total, "merged {done} of {total} postings");
    Ok(summaries)
}
