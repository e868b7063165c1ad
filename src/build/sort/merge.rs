//! The sorted batches of a build, merged lane by lane beside the thread that writes them.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::build::sort::batch::{Batch, Column};
use crate::build::sort::spill::{Extent, Spill};
use crate::error::{Error, Result};
use crate::format::Posting;
use crate::index::merge_slices;

/// Chunks that a merging thread may be ahead.
const AHEAD: usize = 4;

/// More threads would wait for the one that writes, and each has its own buffers.
const MOST_THREADS: usize = 3;

/// Everything that was pushed into a build, sorted.
pub(crate) struct Sorted<'a> {
    pub(crate) spill: &'a Spill,
    /// Of each spilled batch, the extents of its lanes.
    pub(crate) extents: &'a [Vec<Extent>],
    /// The last batch, which stays in memory.
    pub(crate) batch: &'a Batch,
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
    /// So many of them have been taken.
    taken: usize,
}

impl Stream<'_> {
    fn rest(&self) -> &[Posting] {
        self.postings.get(self.taken..).unwrap_or_default()
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
                column.postings(start..end, *first_id, &mut self.postings);
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
}

impl<'a> SortedMerge<'a> {
    fn new(sorted: &Sorted<'a>, lane: usize) -> Self {
        let spilled = sorted
            .extents
            .iter()
            .filter_map(|extents| extents.get(lane));
        let spilled = spilled.map(|extent| SortSource::Spilled(*extent));
        let held = sorted.batch.columns().get(lane);
        let held = held.map(|column| SortSource::Held(column, sorted.batch.first_id()));
        let stream = |source| Stream {
            source,
            next_chunk: 0,
            ended: false,
            postings: Vec::new(),
            taken: 0,
        };
        Self {
            spill: sorted.spill,
            streams: spilled.chain(held).map(stream).collect(),
            bytes: Vec::new(),
        }
    }

    /// The next postings in order; none at the end.
    fn next_chunk(&mut self) -> Result<Vec<Posting>> {
        for stream in &mut self.streams {
            stream.fill(self.spill, &mut self.bytes)?;
        }
        self.streams.retain(|stream| !stream.ended);
        // What any stream still has on disk comes after the last that it has here.
        let last = self.streams.iter().filter_map(|s| s.rest().last()).min();
        let Some(last) = last.copied() else {
            return Ok(Vec::new());
        };
        let mut heads = Vec::with_capacity(self.streams.len());
        for stream in &self.streams {
            let rest = stream.rest();
            let (head, _) = rest.split_at(rest.partition_point(|posting| *posting <= last));
            heads.push(head);
        }
        let merged = merge_slices(&heads);
        let lengths: Vec<usize> = heads.iter().map(|head| head.len()).collect();
        for (stream, length) in self.streams.iter_mut().zip(lengths) {
            stream.taken += length;
        }
        Ok(merged)
    }
}

/// A chunk of a lane; an empty one ends the lane.
type Message = Result<Vec<Posting>>;

/// Merges all lanes on so many threads, at least one, or on few if there are many, while `consume` takes them in order on this
/// one.
pub(crate) fn merge_lanes<T>(
    sorted: &Sorted<'_>,
    lanes: u16,
    threads: usize,
    consume: impl FnOnce(&MergedLanes) -> Result<T>,
) -> Result<T> {
    let threads = threads.min(usize::from(lanes)).clamp(1, MOST_THREADS);
    thread::scope(|scope| {
        let mut receivers = Vec::new();
        for thread in 0..threads {
            let (sender, receiver) = sync_channel(AHEAD);
            receivers.push(receiver);
            scope.spawn(move || merge_every(sorted, lanes, thread, threads, &sender));
        }
        // It goes before the threads are waited for: they stop when nobody listens.
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
    for lane in (thread..usize::from(lanes)).step_by(threads) {
        let mut merge = SortedMerge::new(sorted, lane);
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
    /// The chunks of a lane. The lanes must be asked for in order, and each taken to its end.
    pub(crate) fn lane(&self, lane: u16) -> LaneChunks<'_> {
        let thread = usize::from(lane) % self.receivers.len().max(1);
        LaneChunks {
            receiver: self.receivers.get(thread),
        }
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
        let message = receiver.recv().unwrap_or_else(|_| {
            let place = "sorting postings";
            Err(Error::corrupt(place, "a thread ended without an answer"))
        });
        if message.as_ref().map_or(true, Vec::is_empty) {
            self.receiver = None;
        }
        match message {
            Ok(chunk) if chunk.is_empty() => None,
            other => Some(other),
        }
    }
}
