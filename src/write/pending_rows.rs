//! Rows of a transaction's new documents, collected so that tables are opened once for many.

use std::iter::once;
use std::ops::Bound;

use crate::engine::{
    DOCUMENTS, EngineResult, PAYLOADS, ReadableTable, RowTable, SETS, Table, TableHandle,
    WriteTransaction,
};
use crate::error::Result;
use crate::format::{ChunkSets, RowHead, SetChunk, encode_payload, no_row};
use crate::invariant::{OrBug, invariant};
use crate::state::SharedContext;
use crate::types::Document;
use resemblance_sketch::sketch::Signature;

/// Bytes of rows beyond which they are written; bounds the memory of a long transaction.
const FLUSH_BYTES: usize = 4 << 20;

/// The minimum number of rows that are appended. Appending is several times faster than inserting,
/// but leaves the last page partly filled.
const MIN_APPENDED: usize = 1_000;

/// The rows of one document.
pub(crate) struct DocumentRows {
    pub(crate) document: Vec<u8>,
    pub(crate) payload: Option<Vec<u8>>,
    /// The exact set, in a store that has the table.
    pub(crate) set: Option<Vec<u8>>,
}

impl DocumentRows {
    pub(crate) fn encode(
        context: &SharedContext,
        id: u64,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<Self> {
        Ok(Self {
            document: context.document_row(id, document, signature)?,
            payload: encode_payload(id, &document.payload),
            set: context.set_row(id, signature)?,
        })
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let others = [&self.payload, &self.set];
        let others = others.iter().map(|row| row.as_ref().map_or(0, Vec::len));
        self.document.len() + others.sum::<usize>()
    }
}

/// Documents with consecutive ids whose rows are not in the tables yet; a deleted one is `None`.
#[derive(Default)]
pub(super) struct PendingRows {
    first_id: u64,
    documents: Vec<Option<DocumentRows>>,
    size_bytes: usize,
}

impl PendingRows {
    fn index(&self, id: u64) -> Option<usize> {
        let index = usize::try_from(id.checked_sub(self.first_id)?).ok()?;
        (index < self.documents.len()).then_some(index)
    }

    fn rows(&self, id: u64) -> Option<&DocumentRows> {
        self.documents.get(self.index(id)?)?.as_ref()
    }

    fn place(&mut self, id: u64) -> Option<&mut Option<DocumentRows>> {
        let index = self.index(id)?;
        self.documents.get_mut(index)
    }

    /// Returns true if the rows of this id are here or were until it was deleted: the tables have none
    /// of it then.
    pub(super) fn covers(&self, id: u64) -> bool {
        self.index(id).is_some()
    }

    pub(super) fn document(&self, id: u64) -> Option<&[u8]> {
        self.rows(id).map(|rows| rows.document.as_slice())
    }

    pub(super) fn payload(&self, id: u64) -> Option<&[u8]> {
        self.rows(id)?.payload.as_deref()
    }

    pub(super) fn set(&self, id: u64) -> Option<&[u8]> {
        self.rows(id)?.set.as_deref()
    }

    /// Returns the rows of documents with their ids, ascending.
    pub(super) fn documents(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let rows = (self.first_id..).zip(&self.documents);
        rows.filter_map(|(id, rows)| Some((id, rows.as_ref()?.document.as_slice())))
    }

    /// Adds the next document.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) if its id does not follow the one before: then the rows would
    /// be written under other documents' ids.
    pub(super) fn push(&mut self, id: u64, rows: DocumentRows) -> Result<()> {
        if self.documents.is_empty() {
            self.first_id = id;
        }
        let expected = self.first_id + self.documents.len() as u64;
        invariant!(id == expected, "document {id} came after {expected} - 1");
        self.size_bytes += rows.size_bytes();
        self.documents.push(Some(rows));
        Ok(())
    }

    /// Changes the rows of a document that is here; returns false if it is not.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) if the count of bytes is wrong.
    pub(super) fn change(
        &mut self,
        id: u64,
        change: impl FnOnce(&mut DocumentRows),
    ) -> Result<bool> {
        let Some(rows) = self.place(id).and_then(Option::as_mut) else {
            return Ok(false);
        };
        let before = rows.size_bytes();
        change(rows);
        let now = rows.size_bytes();
        let others = self.size_bytes.checked_sub(before);
        self.size_bytes = others.or_bug("a size that includes each row")? + now;
        Ok(true)
    }

    /// Removes a document and returns its row, if it is here. The rows count as bytes until the next flush.
    pub(super) fn remove(&mut self, id: u64) -> Option<Vec<u8>> {
        self.place(id)?.take().map(|rows| rows.document)
    }

    pub(super) fn is_full(&self) -> bool {
        self.size_bytes >= FLUSH_BYTES
    }

    /// Writes the rows to the tables and drops them here.
    pub(super) fn flush(&mut self, write: &WriteTransaction) -> Result<()> {
        if self.documents.is_empty() {
            return Ok(());
        }
        let payloads = (self.first_id..).zip(&self.documents);
        let mut payloads =
            payloads.filter_map(|(id, rows)| Some((id, rows.as_ref()?.payload.as_deref()?)));
        let write_rows = match self.documents.len() < MIN_APPENDED {
            true => insert_rows,
            false => append_rows,
        };
        write_rows(write, DOCUMENTS, &mut self.documents())?;
        write_rows(write, PAYLOADS, &mut payloads)?;
        let sets = (self.first_id..).zip(&self.documents);
        let mut sets = sets.filter_map(|(id, rows)| Some((id, rows.as_ref()?.set.as_deref()?)));
        append_sets(write, &mut sets)?;
        self.documents.clear();
        self.size_bytes = 0;
        Ok(())
    }
}

fn insert_rows(
    write: &WriteTransaction,
    table: RowTable,
    rows: &mut dyn Iterator<Item = (u64, &[u8])>,
) -> Result<()> {
    let Some(first) = rows.next() else {
        return Ok(());
    };
    let mut table = write.open_table(table).engine()?;
    for (id, row) in once(first).chain(rows) {
        table.insert(id, row).engine()?;
    }
    Ok(())
}

/// Appends rows with ascending ids, all above those that the table has.
pub(crate) fn append_rows(
    write: &WriteTransaction,
    table: RowTable,
    rows: &mut dyn Iterator<Item = (u64, &[u8])>,
) -> Result<()> {
    let Some(first) = rows.next() else {
        return Ok(());
    };
    let mut table = write.open_table(table).engine()?;
    let mut cursor = table.upper_bound_mut(Bound::<u64>::Unbounded).engine()?;
    for (id, row) in once(first).chain(rows) {
        cursor.insert_before(id, row).engine()?;
    }
    cursor.close().engine()
}

/// Appends exact sets to their table, in chunks.
pub(crate) struct SetWriter<'t> {
    table: RowsOf<'t>,
    chunk: SetChunk,
}

impl<'t> SetWriter<'t> {
    pub(crate) fn open(write: &'t WriteTransaction) -> Result<Self> {
        Ok(Self {
            table: write.open_table(SETS).engine()?,
            chunk: SetChunk::default(),
        })
    }

    /// Adds the sealed set of a document with a higher id than all others in the table.
    pub(crate) fn push(&mut self, id: u64, set: &[u8]) -> Result<()> {
        if !self.chunk.has_room(id, set) {
            self.write_chunk()?;
        }
        self.chunk.push(id, set)
    }

    /// Writes the sets that are not in the table yet.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.write_chunk()
    }

    fn write_chunk(&mut self) -> Result<()> {
        write_chunk(&mut self.table, &self.chunk)?;
        self.chunk.bytes.clear();
        Ok(())
    }
}

/// Writes a chunk, unless it is empty.
fn write_chunk(sets: &mut RowsOf<'_>, chunk: &SetChunk) -> Result<()> {
    if !chunk.bytes.is_empty() {
        let (first_id, bytes) = (chunk.first_id, chunk.bytes.as_slice());
        let old = sets.insert(first_id, bytes).engine()?;
        invariant!(old.is_none(), "document {first_id} has two chunks of sets");
    }
    Ok(())
}

/// Appends the sealed sets of documents with ascending ids, all above those that the table has, and
/// returns their number.
pub(crate) fn append_sets(
    write: &WriteTransaction,
    sets: &mut dyn Iterator<Item = (u64, &[u8])>,
) -> Result<usize> {
    // A store without exact sets has no such table.
    let Some(first) = sets.next() else {
        return Ok(0);
    };
    let mut writer = SetWriter::open(write)?;
    let mut count = 0;
    for (id, set) in once(first).chain(sets) {
        writer.push(id, set)?;
        count += 1;
    }
    writer.finish()?;
    Ok(count)
}

/// Removes the first of these sets, and the others that are in the same chunk. Returns the ids of the rest.
fn remove_from_chunk<'i>(sets: &mut RowsOf<'_>, ids: &'i [u64]) -> Result<&'i [u64]> {
    let Some((&first, _)) = ids.split_first() else {
        return Ok(ids);
    };
    let (mut rest, mut kept) = (ids, SetChunk::default());
    let found = sets.range(..=first).engine()?.next_back();
    let Some((key, chunk)) = found.transpose().engine()? else {
        return Err(no_row(SETS.name(), first, 1));
    };
    for entry in ChunkSets::new(key.value(), chunk.value()) {
        let (id, set) = entry?;
        match rest.split_first() {
            Some((next, others)) if *next == id => rest = others,
            Some((missing, _)) if *missing < id => return Err(no_row(SETS.name(), *missing, 1)),
            _ => kept.push(id, set)?,
        }
    }
    if rest.len() == ids.len() {
        return Err(no_row(SETS.name(), first, 1));
    }
    let first_id = key.value();
    drop((key, chunk));
    sets.remove(first_id).engine()?;
    write_chunk(sets, &kept)?;
    Ok(rest)
}

/// The tables that have a row of a document.
pub(crate) struct DocumentTables<'t> {
    pub(super) documents: RowsOf<'t>,
    pub(super) payloads: RowsOf<'t>,
    /// `None` in a store without exact sets.
    pub(super) sets: Option<RowsOf<'t>>,
}

impl<'t> DocumentTables<'t> {
    pub(crate) fn open(write: &'t WriteTransaction, context: &SharedContext) -> Result<Self> {
        let open_sets = || write.open_table(SETS).engine();
        Ok(Self {
            documents: write.open_table(DOCUMENTS).engine()?,
            payloads: write.open_table(PAYLOADS).engine()?,
            sets: context.schema.has_sets().then(open_sets).transpose()?,
        })
    }

    /// Removes the rows of a document. Returns whether it had a payload, or `None` if it did not
    /// exist.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) for a row that cannot be read, or a missing
    /// payload or exact set.
    pub(crate) fn remove(&mut self, id: u64) -> Result<Option<bool>> {
        let Some(row) = self.documents.remove(id).engine()? else {
            return Ok(None);
        };
        let had_payload = RowHead::decode(id, row.value())?.has_payload;
        drop(row);
        if had_payload && self.payloads.remove(id).engine()?.is_none() {
            return Err(no_row(PAYLOADS.name(), id, 1));
        }
        self.remove_sets(&[id])?;
        Ok(Some(had_payload))
    }

    /// Removes the exact sets of documents, by ascending ids, in a store that has the table.
    pub(super) fn remove_sets(&mut self, ids: &[u64]) -> Result<()> {
        let Some(sets) = &mut self.sets else {
            return Ok(());
        };
        let mut rest = ids;
        while !rest.is_empty() {
            rest = remove_from_chunk(sets, rest)?;
        }
        Ok(())
    }
}

/// An open table of rows.
pub(crate) type RowsOf<'t> = Table<'t, u64, &'static [u8]>;
