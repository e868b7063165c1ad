//! The sorted batches of a build, merged lane by lane beside the thread that writes them.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::build::sort::batch::{Column, SortBatch};
use crate::build::sort::spill::{Extent, Spill};
use crate::error::Result;
use crate::format::Posting;
use crate::index::merge_slices;
use crate::invariant::{OrBug, at, bug, invariant};
use crate::threads::spawn_scoped;

/// Chunks that a merging thread may be ahead.
const AHEAD: usize = 4;

/// More threads would wait for the one that writes, and each has its own buffers.
const MAX_THREADS: usize = 3;

/// Everything that was pushed into a build, sorted.
pub(crate) struct Sorted<'a> {
    pub(super) spill: &'a Spill,
    /// The extents of the lanes of each spilled batch.
    pub(super) extents: &'a [Vec<Extent>],
    /// The last batch, which stays in memory.
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
    Held(&'a Column, u64),
}

/// A sorted source of a lane, read chunk by chunk.
struct Stream<'a> {
    source: SortSource<'a>,
    next_chunk: usize,
    ended: bool,
    postings: Vec<Posting>,
    /// Postings of the chunk that are merged already.
    taken: usize,
}

impl Stream<'_> {
    fn rest(&self) -> Result<&[Posting]> {
        self.postings
            .get(self.taken..)
            .or_bug("postings of a stream, behind those that were taken")
    }

    /// Reads on, if everything has been taken.
    fn fill(&mut self, spill: &Spill, bytes: &mut Vec<u8>) -> Result<()> {
        if self.ended || self.taken < self.postings.len() {
            return Ok(());
        }
        self.postings.clear();
        self.taken = 0;
        match &self.source {
            SortSource::Spilled(extent) => {
                spill.read(extent, self.next_chunk, bytes, &mut self.postings)?;
            }
            SortSource::Held(column, first_id) => {
                let length = spill.chunk_postings();
                let start = column.len().min(self.next_chunk.saturating_mul(length));
                let end = column.len().min(start + length);
                column.postings(start..end, *first_id, &mut self.postings)?;
            }
        }
        self.next_chunk += 1;
        self.ended = self.postings.is_empty();
        Ok(())
    }
}

/// The merge of a lane.
struct SortedMerge<'a> {
    spill: &'a Spill,
    streams: Vec<Stream<'a>>,
    bytes: Vec<u8>,
    /// Postings of all streams that have not been merged yet.
    left: u64,
    /// The last posting that was merged.
    last: Option<Posting>,
}

impl<'a> SortedMerge<'a> {
    fn new(sorted: &Sorted<'a>, lane: usize) -> Result<Self> {
        let stream = |source| Stream {
            source,
            next_chunk: 0,
            ended: false,
            postings: Vec::new(),
            taken: 0,
        };
        let mut streams = Vec::with_capacity(sorted.extents.len() + 1);
        for extents in sorted.extents {
            streams.push(stream(SortSource::Spilled(*at(extents, lane)?)));
        }
        let held = at(sorted.batch.columns(), lane)?;
        let first_id = sorted.batch.first_id();
        streams.push(stream(SortSource::Held(held, first_id)));
        Ok(Self {
            spill: sorted.spill,
            streams,
            bytes: Vec::new(),
            left: sorted.lane_postings(lane)?,
            last: None,
        })
    }

    /// Returns the next postings in ascending order, and none at the end.
    fn next_chunk(&mut self) -> Result<Vec<Posting>> {
        for stream in &mut self.streams {
            stream.fill(self.spill, &mut self.bytes)?;
        }
        self.streams.retain(|stream| !stream.ended);
        let rests: Vec<&[Posting]> = self
            .streams
            .iter()
            .map(Stream::rest)
            .collect::<Result<_>>()?;
        // What any stream still has on disk comes after the last that it has here, so everything up
        // to the smallest of these last ones can be merged now.
        let Some(bound) = rests.iter().filter_map(|rest| rest.last()).min().copied() else {
            invariant!(self.left == 0, "{} postings were not merged", self.left);
            return Ok(Vec::new());
        };
        let mut heads = Vec::with_capacity(rests.len());
        for rest in rests {
            let (head, _) = rest.split_at(rest.partition_point(|posting| *posting <= bound));
            heads.push(head);
        }
        let merged = merge_slices(&heads);
        let lengths: Vec<usize> = heads.iter().map(|head| head.len()).collect();
        for (stream, length) in self.streams.iter_mut().zip(lengths) {
            stream.taken += length;
        }
        self.check(&merged)?;
        Ok(merged)
    }

    /// Counts the postings of a chunk, which must come after those before it.
    fn check(&mut self, merged: &[Posting]) -> Result<()> {
        let (count, first) = (merged.len() as u64, merged.first());
        invariant!(
            self.last.is_none_or(|last| first > Some(&last)),
            "merged {first:?} after {:?}",
            self.last
        );
        debug_assert!(merged.is_sorted(), "a merged chunk is out of order");
        let left = self.left.checked_sub(count);
        self.left = left.or_bug_with(|| format!("merged {count} of {} postings", self.left))?;
        self.last = merged.last().copied();
        Ok(())
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
    let threads = threads.min(usize::from(lanes)).clamp(1, MAX_THREADS);
    thread::scope(|scope| {
        let mut receivers = Vec::new();
        for thread in 0..threads {
            let (sender, receiver) = sync_channel(AHEAD);
            receivers.push(receiver);
            spawn_scoped(scope, "merge", move || {
                merge_every(sorted, lanes, thread, threads, &sender);
            })?;
        }
        // The receivers are dropped before the scope waits for its threads. If `consume` has failed, each
        // thread stops at its next chunk.
        let merged = MergedLanes { receivers };
        consume(&merged)
    })
}

/// Merges the lanes that are this thread's.
fn merge_every(
    sorted: &Sorted<'_>,
    lanes: u16,
    thread: usize,
    threads: usize,
    sender: &SyncSender<Message>,
) {
    // Lanes go round robin: while one is consumed, the other threads merge those that come next.
    for lane in (thread..usize::from(lanes)).step_by(threads) {
        let mut merge = match SortedMerge::new(sorted, lane) {
            Ok(merge) => merge,
            Err(error) => {
                // If the receiver is gone, the consumer has failed and wants no error.
                let _ = sender.send(Err(error));
                return;
            }
        };
        loop {
            let chunk = merge.next_chunk();
            let is_last = chunk.as_ref().map_or(true, Vec::is_empty);
            let failed = chunk.is_err();
            if sender.send(chunk).is_err() || failed {
                return;
            }
            if is_last {
                break;
            }
        }
    }
}

/// The lanes as they come.
pub(crate) struct MergedLanes {
    receivers: Vec<Receiver<Message>>,
}

impl MergedLanes {
    /// Returns the chunks of a lane. The caller takes the lanes in order, and each to its end.
    pub(crate) fn lane(&self, lane: u16) -> Result<LaneChunks<'_>> {
        let thread = usize::from(lane) % self.receivers.len().max(1);
        Ok(LaneChunks {
            receiver: Some(at(&self.receivers, thread)?),
        })
    }
}

/// The chunks of a lane, none of them empty.
pub(crate) struct LaneChunks<'a> {
    receiver: Option<&'a Receiver<Message>>,
}

impl Iterator for LaneChunks<'_> {
    type Item = Message;

    fn next(&mut self) -> Option<Message> {
        let receiver = self.receiver?;
        let message = receiver.recv();
        let message = message.unwrap_or_else(|_| Err(bug("a merging thread panicked")));
        if message.as_ref().map_or(true, Vec::is_empty) {
            self.receiver = None;
        }
        match message {
            Ok(chunk) if chunk.is_empty() => None,
            other => Some(other),
        }
    }
}
