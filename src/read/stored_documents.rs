//! Documents without their signatures, copied piece by piece: for scans of a whole store.

use std::ops::Range;

use crate::engine::EngineResult;
use crate::error::Result;
use crate::format::RowHead;
use crate::read::snapshot_view::SnapshotView;
use crate::read::view::ReadView;
use crate::types::Document;

/// The number of bytes to read at a time. A larger row is read alone.
const PIECE_BYTES: usize = 1 << 20;
const PIECE_DOCUMENTS: usize = 16_384;

/// Live documents with their ids. They are copied, so that neither a snapshot nor anything else of the
/// engine is held while they are in use.
#[derive(Debug, Default)]
pub(crate) struct StoredDocuments {
    documents: Vec<(u64, Document<'static>)>,
}

impl StoredDocuments {
    /// Replaces the documents by the first ones among `ids`, with their payloads if requested.
    /// Returns the id to continue from.
    ///
    /// # Errors
    /// Returns the errors of reading.
    pub(crate) fn read(
        &mut self,
        snapshot: &SnapshotView,
        ids: Range<u64>,
        with_payloads: bool,
    ) -> Result<u64> {
        self.documents.clear();
        let end = ids.end;
        let mut size_bytes = 0;
        snapshot.context().run_checked(|| {
            for entry in snapshot.inner.tables()?.documents.range(ids).engine()? {
                let (key, row) = entry.engine()?;
                let id = key.value();
                // Asked before a row is taken: the first one is, however large, or nothing ever would be.
                let is_full = size_bytes >= PIECE_BYTES || self.documents.len() >= PIECE_DOCUMENTS;
                if is_full {
                    return Ok(id);
                }
                if !snapshot.inner.is_deleted(id) {
                    let head = RowHead::decode(id, row.value())?;
                    let document = snapshot.view().to_document(id, &head, with_payloads)?;
                    size_bytes += document.key().map_or(0, <[u8]>::len) + document.payload.len();
                    self.documents.push((id, document));
                }
            }
            Ok(end)
        })
    }

    /// Ids and documents, ascending by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(u64, Document<'static>)> {
        self.documents.iter()
    }
}
