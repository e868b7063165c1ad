//! Whole lanes of a snapshot in order, for joins, statistics and checks.

use std::collections::BTreeMap;

use redb::ReadableTable;

use crate::error::Result;
use crate::format::dead::{CHUNK_DOCUMENTS, DeadChunk};
use crate::postings::{KWayMerge, Posting, lane_iter_owned};
use crate::store::engine::Contained;
use crate::store::snapshot::SnapshotInner;
use crate::store::source::PostingTable;

/// Postings of one lane, ascending. Holds its own snapshot of the file.
pub(crate) type PostingStream = Contained<Box<dyn Iterator<Item = Result<Posting>> + Send>>;

impl SnapshotInner {
    pub(crate) fn blocks(
        &self,
        table: PostingTable,
    ) -> Result<&redb::ReadOnlyTable<&'static [u8; 22], &'static [u8]>> {
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
        for run in &self.committed.runs {
            if let Some(summary) = run.descriptor.lane(lane) {
                let run = run.descriptor.run;
                let blocks = self.blocks(table)?;
                streams.push(Box::new(lane_iter_owned(
                    blocks,
                    table.name(),
                    run,
                    summary,
                )?));
            }
        }
        let in_memory = self.committed.memtable.lane(lane);
        streams.push(Box::new(in_memory.into_iter().map(Ok)));
        Ok(Contained::new(Box::new(KWayMerge::new(streams))))
    }

    /// The bitmaps of dead documents.
    pub(crate) fn dead_chunks(&self) -> Result<BTreeMap<u64, DeadChunk>> {
        let mut chunks = BTreeMap::new();
        for entry in self.tables()?.dead.iter()? {
            let (chunk, row) = entry?;
            chunks.insert(
                chunk.value(),
                DeadChunk::decode(chunk.value(), row.value())?,
            );
        }
        Ok(chunks)
    }
}

/// Whether a document has a bit in the bitmaps.
pub(crate) fn is_marked(chunks: &BTreeMap<u64, DeadChunk>, id: u64) -> bool {
    let chunk = chunks.get(&(id / CHUNK_DOCUMENTS));
    chunk.is_some_and(|chunk| chunk.contains(id))
}
