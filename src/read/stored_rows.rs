//! Rows of documents in pieces, as what walks over a whole store reads them.

use std::ops::Range;

use crate::error::Result;
use crate::read::snapshot_view::SnapshotView;
use crate::read::view::ReadView;

/// What is read at a time: the memory, but for a row that is larger by itself.
const PIECE_BYTES: usize = 1 << 20;
const PIECE_DOCUMENTS: usize = 16_384;

/// Rows of live documents. They are copied, so that nothing of the engine is held, and no snapshot
/// needs to be, while they are looked at.
#[derive(Debug, Default)]
pub(crate) struct StoredRows {
    bytes: Vec<u8>,
    /// Ids, and where their rows end.
    ends: Vec<(u64, usize)>,
}

impl StoredRows {
    /// Reads the first rows among `ids` in the place of those before; the id after them.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn read(&mut self, snapshot: &SnapshotView, ids: Range<u64>) -> Result<u64> {
        self.bytes.clear();
        self.ends.clear();
        let end = ids.end;
        snapshot.context().run_checked(|| {
            for entry in snapshot.inner.tables()?.documents.range(ids)? {
                let (id, row) = entry?;
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
            let row = self.bytes.get(start..*end).unwrap_or_default();
            start = *end;
            (*id, row)
        })
    }
}
