//! Rows of a transaction's new documents, collected so that tables are opened once for many.

use std::ops::Bound;

use crate::engine::{DOCUMENTS, EngineResult, RowTable, SIGNATURES, WriteTransaction};
use crate::error::Result;
use crate::invariant::{OrBug, invariant};

/// Bytes of rows beyond which they are written; bounds the memory of a long transaction.
const FLUSH_BYTES: usize = 4 << 20;

/// Number of rows from which they are appended. Appending is several times quicker than inserting,
/// but leaves the last page of the append as full as it happens to be.
const MIN_APPENDED: usize = 1_000;

/// The two rows of one document.
struct RowPair {
    document: Vec<u8>,
    signature: Vec<u8>,
}

/// Documents with consecutive ids whose rows are not in the tables yet; a deleted one is `None`.
#[derive(Default)]
pub(super) struct PendingRows {
    first_id: u64,
    documents: Vec<Option<RowPair>>,
    size_bytes: usize,
}

impl PendingRows {
    fn index(&self, id: u64) -> Option<usize> {
        let index = usize::try_from(id.checked_sub(self.first_id)?).ok()?;
        (index < self.documents.len()).then_some(index)
    }

    fn rows(&self, id: u64) -> Option<&RowPair> {
        self.documents.get(self.index(id)?)?.as_ref()
    }

    /// Returns true if the rows of this id are here or were until it was deleted: the tables have none
    /// of it then.
    pub(super) fn covers(&self, id: u64) -> bool {
        self.index(id).is_some()
    }

    pub(super) fn document(&self, id: u64) -> Option<&[u8]> {
        self.rows(id).map(|rows| rows.document.as_slice())
    }

    pub(super) fn signature(&self, id: u64) -> Option<&[u8]> {
        self.rows(id).map(|rows| rows.signature.as_slice())
    }

    /// Returns the signature rows with their ids, ascending.
    pub(super) fn signatures(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let rows = (self.first_id..).zip(&self.documents);
        rows.filter_map(|(id, rows)| Some((id, rows.as_ref()?.signature.as_slice())))
    }

    /// Adds the next document.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) if its id does not follow the one before: then the rows would
    /// be written under other documents' ids.
    pub(super) fn push(&mut self, id: u64, document: Vec<u8>, signature: Vec<u8>) -> Result<()> {
        if self.documents.is_empty() {
            self.first_id = id;
        }
        let expected = self.first_id + self.documents.len() as u64;
        invariant!(id == expected, "document {id} came after {expected} - 1");
        self.size_bytes += document.len() + signature.len();
        self.documents.push(Some(RowPair {
            document,
            signature,
        }));
        Ok(())
    }

    /// Replaces the document row of a document that is here; returns false if it is not.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) if the count of bytes is wrong.
    pub(super) fn replace_document(&mut self, id: u64, row: &[u8]) -> Result<bool> {
        let rows = self
            .index(id)
            .and_then(|index| self.documents.get_mut(index));
        let Some(rows) = rows.and_then(Option::as_mut) else {
            return Ok(false);
        };
        let others = self.size_bytes.checked_sub(rows.document.len());
        self.size_bytes = others.or_bug("a size that includes each row")? + row.len();
        rows.document = row.to_vec();
        Ok(true)
    }

    /// Removes a document and returns its signature row, if it is here. The rows count as bytes until
    /// the next flush.
    pub(super) fn remove(&mut self, id: u64) -> Option<Vec<u8>> {
        let rows = self
            .index(id)
            .and_then(|index| self.documents.get_mut(index));
        rows.and_then(Option::take).map(|rows| rows.signature)
    }

    pub(super) fn is_full(&self) -> bool {
        self.size_bytes >= FLUSH_BYTES
    }

    /// Writes the rows to the tables and drops them here.
    pub(super) fn flush(&mut self, write: &WriteTransaction) -> Result<()> {
        if self.documents.is_empty() {
            return Ok(());
        }
        let rows = || {
            let rows = (self.first_id..).zip(&self.documents);
            rows.filter_map(|(id, rows)| Some((id, rows.as_ref()?)))
        };
        let documents = rows().map(|(id, rows)| (id, rows.document.as_slice()));
        let signatures = rows().map(|(id, rows)| (id, rows.signature.as_slice()));
        if self.documents.len() < MIN_APPENDED {
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
    write: &WriteTransaction,
    table: RowTable,
    rows: impl Iterator<Item = (u64, &'r [u8])>,
) -> Result<()> {
    let mut table = write.open_table(table).engine()?;
    for (id, row) in rows {
        table.insert(id, row).engine()?;
    }
    Ok(())
}

/// Appends rows with ascending ids, all above those that the table has.
pub(crate) fn append_rows<'r>(
    write: &WriteTransaction,
    table: RowTable,
    rows: impl Iterator<Item = (u64, &'r [u8])>,
) -> Result<()> {
    let mut table = write.open_table(table).engine()?;
    let mut cursor = table.upper_bound_mut(Bound::<u64>::Unbounded).engine()?;
    for (id, row) in rows {
        cursor.insert_before(id, row).engine()?;
    }
    cursor.close().engine()
}
