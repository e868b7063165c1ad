//! Merges the sorted batches of a build lane by lane, while another thread writes them.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::build::sort::sort_batch::{PostingColumn, SortBatch};
use crate::build::sort::spill::{Extent, Spill};
use crate::error::Result;
use crate::format::Posting;
use crate::index::{KWayMerge, PostingChunks};
use crate::invariant::{OrBug, at, bug, invariant};
use crate::threads::spawn_scoped;

/// Chunks that a merging thread may be ahead.
const AHEAD: usize = 4;

/// The maximum number of threads. Each has separate buffers, and more threads would only wait for
/// the one that writes.
const MAX_THREADS: usize = 3;

/// Everything that was pushed into a build, sorted.
pub(crate) struct Sorted<'a> {
    pub(super) spill: &'a Spill,
    /// The extents of the lanes of each spilled batch.
    pub(super) extents: &'a [Vec<Extent>],
    /// The last batch, which is in memory.
    pub(super) batch: &'a SortBatch,
}

impl Sorted<'_> {
    /// Returns the number of postings in a lane.
    pub(crate) fn lane_postings(&self, lane: usize) -> Result<u64> {
        let mut postings = at(self.batch.columns(), lane)?.len() as u64;
        for extents in self.extents {
            postings += at(extents, lane)?.postings() as u64;
        }
        Ok(postings)
    }
}

enum SortSource<'a> {
    Spilled(Extent),
    Held(&'a PostingColumn, u64),
}

/// A sorted part of a lane: that of one batch.
struct SortedPart<'a> {
    spill: &'a Spill,
    source: SortSource<'a>,
    next_chunk: usize,
}

impl PostingChunks for SortedPart<'_> {
    fn read(&mut self, postings: &mut Vec<Posting>) -> Result<()> {
        match &self.source {
            SortSource::Spilled(extent) => self.spill.read(extent, self.next_chunk, postings)?,
            SortSource::Held(column, first_id) => {
                let length = self.spill.chunk_postings();
                let start = column.len().min(self.next_chunk.saturating_mul(length));
                let end = column.len().min(start + length);
                column.postings(start..end, *first_id, postings)?;
            }
        }
        self.next_chunk += 1;
        Ok(())
    }
}

/// The merge of a lane.
struct SortedMerge<'a> {
    parts: KWayMerge<SortedPart<'a>>,
    /// Postings of all parts that have not been merged yet.
    left: u64,
    /// The last posting that was merged.
    last: Option<Posting>,
}

impl<'a> SortedMerge<'a> {
    fn new(sorted: &Sorted<'a>, lane: usize) -> Result<Self> {
        let part = |source| SortedPart {
            spill: sorted.spill,
            source,
            next_chunk: 0,
        };
        let mut parts = Vec::with_capacity(sorted.extents.len() + 1);
        for extents in sorted.extents {
            parts.push(part(SortSource::Spilled(*at(extents, lane)?)));
        }
        let held = at(sorted.batch.columns(), lane)?;
        parts.push(part(SortSource::Held(held, sorted.batch.first_id())));
        Ok(Self {
            parts: KWayMerge::new(parts),
            left: sorted.lane_postings(lane)?,
            last: None,
        })
    }

    /// Returns the next postings in ascending order, and none at the end.
    fn next_chunk(&mut self) -> Result<Vec<Posting>> {
        let mut merged = Vec::new();
        self.parts.read(&mut merged)?;
        let (count, left, first) = (merged.len() as u64, self.left, merged.first().copied());
        invariant!(count > 0 || left == 0, "{left} postings were not merged");
        invariant!(
            first.is_none() || self.last < first,
            "merged {first:?} after {:?}",
            self.last
        );
        debug_assert!(merged.is_sorted(), "a merged chunk is out of order");
        let behind = left.checked_sub(count);
        self.left = behind.or_bug_with(|| format!("merged {count} of {left} postings"))?;
        self.last = merged.last().copied();
        Ok(merged)
    }
}

/// A chunk of a lane; an empty one ends the lane.
type Message = Result<Vec<Posting>>;

/// Merges all lanes on up to `threads` other threads, at least one and at most three, while `consume`
/// takes them in order on this one.
pub(crate) fn merge_lanes<T>(
    sorted: &Sorted<'_>,
    lanes: u16,
    threads: usize,
    consume: impl FnOnce(&MergedLanes) -> Result<T>,
) -> Result<T> {
    let merging = threads.min(usize::from(lanes)).clamp(1, MAX_THREADS);
    thread::scope(|scope| {
        let mut receivers = Vec::new();
        for thread in 0..merging {
            let (sender, receiver) = sync_channel(AHEAD);
            receivers.push(receiver);
            // Lanes are distributed round robin: while one is consumed, the other threads merge the
            // next ones.
            let own_lanes = (thread..usize::from(lanes)).step_by(merging);
            spawn_scoped(scope, "merge", move || {
                merge_every(sorted, own_lanes, &sender)
            })?;
        }
        // The receivers are dropped before the scope waits for its threads. If `consume` has failed, each
        // thread stops at its next chunk.
        let merged = MergedLanes { receivers };
        consume(&merged)
    })
}

/// Merges the lanes of one thread.
fn merge_every(
    sorted: &Sorted<'_>,
    lanes: impl IntoIterator<Item = usize>,
    sender: &SyncSender<Message>,
) {
    for lane in lanes {
        match send_lane(sorted, lane, sender) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                // If the receiver no longer exists, the consumer has failed and needs no error.
                let _ = sender.send(Err(error));
                return;
            }
        }
    }
}

/// Merges and sends a lane. Returns false if no thread waits for it any more.
fn send_lane(sorted: &Sorted<'_>, lane: usize, sender: &SyncSender<Message>) -> Result<bool> {
    let mut merge = SortedMerge::new(sorted, lane)?;
    loop {
        let chunk = merge.next_chunk()?;
        let is_last = chunk.is_empty();
        if sender.send(Ok(chunk)).is_err() {
            return Ok(false);
        }
        if is_last {
            return Ok(true);
        }
    }
}

/// The lanes in the order in which they are merged.
pub(crate) struct MergedLanes {
    receivers: Vec<Receiver<Message>>,
}

impl MergedLanes {
    /// Returns the chunks of a lane. The caller takes the lanes in order, and each to its end.
    pub(crate) fn lane(&self, lane: u16) -> Result<LaneChunks<'_>> {
        let thread = usize::from(lane) % self.receivers.len().max(1);
        Ok(LaneChunks(at(&self.receivers, thread)?))
    }
}

/// The chunks of a lane.
pub(crate) struct LaneChunks<'a>(&'a Receiver<Message>);

impl PostingChunks for LaneChunks<'_> {
    fn read(&mut self, postings: &mut Vec<Posting>) -> Result<()> {
        let message = self.0.recv();
        let mut chunk = message.map_err(|_| bug("a merging thread panicked"))??;
        postings.append(&mut chunk);
        Ok(())
    }
}
