//! Rows of a transaction's new documents, gathered so that tables are opened once for many.

use std::ops::Bound;

use crate::engine::{DOCUMENTS, RowTable, SIGNATURES, engine_error};
use crate::error::Result;

/// Rows gathered before they are written; bounds the memory of a long transaction.
const FLUSH_BYTES: usize = 4 << 20;

/// From so many rows on they are appended: several times quicker, but the last page that an append
/// fills stays as full as it is.
const FEWEST_APPENDED: usize = 1_000;

/// The rows of one document.
struct Rows {
    document: Vec<u8>,
    signature: Vec<u8>,
}

/// Documents with consecutive ids whose rows are not in the tables yet. Removed ones are `None`.
#[derive(Default)]
pub(crate) struct PendingRows {
    first_id: u64,
    documents: Vec<Option<Rows>>,
    size_bytes: usize,
}

impl PendingRows {
    fn index(&self, id: u64) -> Option<usize> {
        let index = usize::try_from(id.checked_sub(self.first_id)?).ok()?;
        (index < self.documents.len()).then_some(index)
    }

    fn rows(&self, id: u64) -> Option<&Rows> {
        self.documents.get(self.index(id)?)?.as_ref()
    }

    /// Whether the row of this id is here or was: the tables then have none.
    pub(crate) fn covers(&self, id: u64) -> bool {
        self.index(id).is_some()
    }

    pub(crate) fn document(&self, id: u64) -> Option<&[u8]> {
        self.rows(id).map(|rows| rows.document.as_slice())
    }

    pub(crate) fn signature(&self, id: u64) -> Option<&[u8]> {
        self.rows(id).map(|rows| rows.signature.as_slice())
    }

    /// The signature rows that are here, ascending by id.
    pub(crate) fn signatures(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let rows = (self.first_id..).zip(&self.documents);
        rows.filter_map(|(id, rows)| Some((id, rows.as_ref()?.signature.as_slice())))
    }

    /// Adds the next document; ids come without gaps between two flushes.
    pub(crate) fn push(&mut self, id: u64, document: Vec<u8>, signature: Vec<u8>) {
        if self.documents.is_empty() {
            self.first_id = id;
        }
        self.size_bytes += document.len() + signature.len();
        self.documents.push(Some(Rows {
            document,
            signature,
        }));
    }

    /// Puts another document row in the place of one that is here; whether it was.
    pub(crate) fn replace_document(&mut self, id: u64, row: &[u8]) -> bool {
        let rows = self
            .index(id)
            .and_then(|index| self.documents.get_mut(index));
        let Some(rows) = rows.and_then(Option::as_mut) else {
            return false;
        };
        self.size_bytes = (self.size_bytes + row.len()).saturating_sub(rows.document.len());
        rows.document = row.to_vec();
        true
    }

    /// Takes a document out; its signature row, if it was here.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Vec<u8>> {
        let rows = self
            .index(id)
            .and_then(|index| self.documents.get_mut(index));
        rows.and_then(Option::take).map(|rows| rows.signature)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.size_bytes >= FLUSH_BYTES
    }

    /// Writes the rows to the tables and forgets them.
    pub(crate) fn flush(&mut self, write: &redb::WriteTransaction) -> Result<()> {
        if self.documents.is_empty() {
            return Ok(());
        }
        let rows = || {
            let rows = (self.first_id..).zip(&self.documents);
            rows.filter_map(|(id, rows)| Some((id, rows.as_ref()?)))
        };
        let documents = rows().map(|(id, rows)| (id, rows.document.as_slice()));
        let signatures = rows().map(|(id, rows)| (id, rows.signature.as_slice()));
        if self.documents.len() < FEWEST_APPENDED {
            insert_rows(write, DOCUMENTS, documents)?;
            insert_rows(write, SIGNATURES, signatures)?;
        } else {
            append_rows(write, DOCUMENTS, documents)?;
            append_rows(write, SIGNATURES, signatures)?;
        }
        self.documents.clear();
        self.size_bytes = 0;
        Ok(())
    }
}

fn insert_rows<'r>(
    write: &redb::WriteTransaction,
    table: RowTable,
    rows: impl Iterator<Item = (u64, &'r [u8])>,
) -> Result<()> {
    let mut table = write.open_table(table)?;
    for (id, row) in rows {
        table.insert(id, row)?;
    }
    Ok(())
}

/// Adds rows whose ids ascend, above all that are there.
pub(crate) fn append_rows<'r>(
    write: &redb::WriteTransaction,
    table: RowTable,
    rows: impl Iterator<Item = (u64, &'r [u8])>,
) -> Result<()> {
    let mut table = write.open_table(table)?;
    let mut cursor = table.upper_bound_mut(Bound::<u64>::Unbounded)?;
    for (id, row) in rows {
        cursor.insert_before(id, row).map_err(engine_error)?;
    }
    Ok(cursor.close()?)
}
