//! Whole lanes of a snapshot in order, for joins, statistics and checks.

use crate::engine::{PanicSafe, ReadOnlyBlocks};
use crate::error::Result;
use crate::format::Posting;
use crate::index::{KWayMerge, lane_iter_owned};
use crate::read::snapshot_view::SnapshotState;
use crate::read::view::PostingTable;

/// Postings of one lane, ascending. Holds its own snapshot of the file.
pub(crate) type PostingStream = PanicSafe<Box<dyn Iterator<Item = Result<Posting>> + Send>>;

impl SnapshotState {
    pub(crate) fn blocks(&self, table: PostingTable) -> Result<&ReadOnlyBlocks> {
        let tables = self.tables()?;
        Ok(match table {
            PostingTable::Keys => &tables.keys,
            PostingTable::Bands => &tables.bands,
            PostingTable::Permuted => &tables.permuted,
        })
    }

    /// All postings of a lane, of dead documents too, in runs and in memory.
    pub(crate) fn lane_stream(&self, table: PostingTable, lane: u16) -> Result<PostingStream> {
        let mut streams: Vec<Box<dyn Iterator<Item = Result<Posting>> + Send>> = Vec::new();
        for run in self.version.runs.descriptors() {
            if let Some(summary) = run.lane(lane).filter(|summary| summary.postings > 0) {
                let blocks = self.blocks(table)?;
                let stream = lane_iter_owned(blocks, table.name(), run.run, summary)?;
                streams.push(Box::new(stream));
            }
        }
        let in_memory = self.version.memtable.lane(lane)?;
        streams.push(Box::new(in_memory.into_iter().map(Ok)));
        Ok(PanicSafe::new(Box::new(KWayMerge::new(streams))))
    }
}
