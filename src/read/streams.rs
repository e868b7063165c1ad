//! Whole lanes of a snapshot in order, for joins, statistics and checks.

use crate::engine::{PanicSafe, ReadOnlyBlocks};
use crate::error::Result;
use crate::format::Posting;
use crate::index::{ChunkIter, KWayMerge, OwnedLane, PostingChunks, read_lane};
use crate::read::snapshot_view::SnapshotState;
use crate::read::view::PostingTable;

/// Postings of one lane, ascending. Holds its own snapshot of the file.
pub(crate) type PostingStream = PanicSafe<ChunkIter<KWayMerge<LaneStream>>>;

/// A part of a lane.
pub(crate) enum LaneStream {
    Run(Box<OwnedLane>),
    Memtable(Vec<Posting>),
}

impl PostingChunks for LaneStream {
    fn read(&mut self, postings: &mut Vec<Posting>) -> Result<()> {
        match self {
            Self::Run(lane) => lane.read(postings)?,
            Self::Memtable(sorted) => postings.append(sorted),
        }
        Ok(())
    }
}

impl SnapshotState {
    pub(crate) fn blocks(&self, table: PostingTable) -> Result<&ReadOnlyBlocks> {
        let tables = self.tables()?;
        Ok(match table {
            PostingTable::Keys => &tables.keys,
            PostingTable::Bands => &tables.bands,
            PostingTable::Permuted => &tables.permuted,
        })
    }

    /// Returns all postings of a lane, including those of deleted documents, in runs and in memory.
    pub(crate) fn lane_stream(&self, table: PostingTable, lane: u16) -> Result<PostingStream> {
        let mut streams = Vec::new();
        for run in self.version.runs.descriptors() {
            if let Some(summary) = run.lane(lane).filter(|summary| summary.postings > 0) {
                let of_run = read_lane(self.blocks(table)?, table.name(), run.run, summary)?;
                streams.push(LaneStream::Run(Box::new(of_run)));
            }
        }
        streams.push(LaneStream::Memtable(self.version.memtable.lane(lane)?));
        Ok(PanicSafe::new(ChunkIter::new(KWayMerge::new(streams))))
    }
}
