//! Rows of documents, copied piece by piece: for scans of a whole store.

use std::ops::Range;

use crate::engine::EngineResult;
use crate::error::Result;
use crate::read::snapshot_view::SnapshotView;
use crate::read::view::ReadView;

/// How much is read at a time. A row that is larger by itself is read alone.
const PIECE_BYTES: usize = 1 << 20;
const PIECE_DOCUMENTS: usize = 16_384;

/// Rows of live documents. They are copied, so that neither a snapshot nor anything else of the engine is
/// held while they are in use.
#[derive(Debug, Default)]
pub(crate) struct StoredRows {
    bytes: Vec<u8>,
    /// Ids, and where their rows end in `bytes`.
    ends: Vec<(u64, usize)>,
}

impl StoredRows {
    /// Replaces the rows by the first ones among `ids`. Returns the id to go on from.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn read(&mut self, snapshot: &SnapshotView, ids: Range<u64>) -> Result<u64> {
        self.bytes.clear();
        self.ends.clear();
        let end = ids.end;
        snapshot.context().run_checked(|| {
            for entry in snapshot.inner.tables()?.documents.range(ids).engine()? {
                let (id, row) = entry.engine()?;
                let id = id.value();
                let is_full = self.bytes.len() >= PIECE_BYTES || self.ends.len() >= PIECE_DOCUMENTS;
                if is_full {
                    return Ok(id);
                }
                if !snapshot.inner.is_dead(id) {
                    self.bytes.extend_from_slice(row.value());
                    self.ends.push((id, self.bytes.len()));
                }
            }
            Ok(end)
        })
    }

    /// Ids and rows, ascending by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |(id, end)| {
            let row = self.bytes.get(start..*end);
            debug_assert!(row.is_some(), "rows end in ascending order");
            let row = row.unwrap_or_default();
            start = *end;
            (*id, row)
        })
    }
}
