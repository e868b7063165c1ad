//! The first phase of a merge: the rows of the documents that it drops go, and where many go the
//! others are packed again.
//!
//! To take rows out one by one as documents are removed would copy nearly every page of the tables in
//! each commit, and leave pages half empty. Here a page is written once for all that has died in it.

use std::ops::{Bound, Range};

use redb::{ReadableTable, Table};

use crate::engine::{DOCUMENTS, RowTable, SIGNATURES, engine_error};
use crate::error::{Error, Result};
use crate::format::RunDescriptor;
use crate::state::MergeDrops;
use crate::write::writer::Writer;

/// Rows that are looked at together: about 64 pages of them. Bounds the memory, but for a row that is
/// larger by itself.
const WINDOW_BYTES: usize = 64 * 4_096;

/// Where less than this share of a window goes, only the pages that it goes from are written, and keep
/// the gaps.
const DENSE_SHARE: usize = 16;

/// What the rows of a document count as when merges keep up, in postings of each lane. Fewer would free
/// more pages in a commit, which wait for the next one; more would leave the dead for longer.
const ROW_LANES: u64 = 1;

/// The rows of neighbouring documents.
#[derive(Default)]
struct Window {
    /// Of live documents, ascending.
    documents: Vec<(u64, Vec<u8>)>,
    signatures: Vec<(u64, Vec<u8>)>,
    /// What goes.
    dropped: Vec<u64>,
    size_bytes: usize,
}

impl Window {
    fn is_dense(&self) -> bool {
        self.dropped.len() * DENSE_SHARE >= self.documents.len()
    }

    /// About how many documents' rows are written.
    fn written(&self) -> usize {
        let all = self.documents.len() + self.dropped.len();
        if self.is_dense() {
            all
        } else {
            // A page has several rows.
            all.min(self.dropped.len() * DENSE_SHARE / 2)
        }
    }
}

impl Writer {
    /// What the rows of a document count as when merges keep up.
    pub(crate) fn row_postings(&self) -> u64 {
        u64::from(self.store.context.lanes.count()) * ROW_LANES
    }

    /// What is left of the phase for a merge, in postings; less where few documents are dead.
    pub(crate) fn rows_left(&self, output: &RunDescriptor) -> u64 {
        let rows = output.rows_from.map_or(0, |from| {
            output.last_id.saturating_sub(from).saturating_add(1)
        });
        rows.saturating_mul(self.row_postings())
    }

    /// Drops rows of documents that a merge drops, for about so many postings' worth. What it was
    /// worth; the output tells what is left.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if one of these documents has no rows, and those of reading and writing.
    pub(crate) fn advance_rows(
        &mut self,
        output: &mut RunDescriptor,
        dropped: &MergeDrops,
        postings: u64,
    ) -> Result<u64> {
        if output.rows_from.is_none() {
            return Ok(0);
        }
        let (mut done, mut removed) = (0, 0);
        let write = self.write()?;
        let mut documents = write.open_table(DOCUMENTS)?;
        let mut signatures = write.open_table(SIGNATURES)?;
        while let Some(from) = output.rows_from {
            let first = dropped.first_from(from).filter(|id| *id <= output.last_id);
            output.rows_from = first;
            let Some(first) = first.filter(|_| done < postings) else {
                break;
            };
            let (window, end) = read_window(
                (&documents, &signatures),
                first..output.last_id.saturating_add(1),
                dropped,
            )?;
            rewrite(&mut documents, first..end, &window, &window.documents)?;
            rewrite(&mut signatures, first..end, &window, &window.signatures)?;
            done += (window.written() as u64).saturating_mul(self.row_postings());
            removed += window.written() as u64;
            output.rows_from = (end <= output.last_id).then_some(end);
        }
        drop((documents, signatures));
        self.note_removed_rows(removed);
        Ok(done)
    }
}

/// Reads the rows of the first documents among `ids` that are there. Where what was read ends.
fn read_window(
    (documents, signatures): (&RowsOf<'_>, &RowsOf<'_>),
    ids: Range<u64>,
    dropped: &MergeDrops,
) -> Result<(Window, u64)> {
    let mut window = Window::default();
    let mut next = dropped.first_from(ids.start);
    let mut end = ids.end;
    let mut of_signatures = signatures.range(ids.clone())?;
    for entry in documents.range(ids.clone())? {
        let (id, document) = entry?;
        let id = id.value();
        if window.size_bytes >= WINDOW_BYTES {
            end = id;
            break;
        }
        let signature = of_signatures.next().transpose()?;
        let signature = signature.filter(|(found, _)| found.value() == id);
        let Some((_, signature)) = signature else {
            return Err(no_row(SIGNATURES, id, "invariant 1"));
        };
        if let Some(missing) = next.filter(|next| *next < id) {
            return Err(no_row(DOCUMENTS, missing, "invariant 4"));
        }
        let (document, signature) = (document.value(), signature.value());
        window.size_bytes += document.len() + signature.len();
        if next == Some(id) {
            window.dropped.push(id);
            next = id.checked_add(1).and_then(|id| dropped.first_from(id));
        } else {
            window.documents.push((id, document.to_vec()));
            window.signatures.push((id, signature.to_vec()));
        }
    }
    if let Some(missing) = next.filter(|next| *next < end) {
        return Err(no_row(DOCUMENTS, missing, "invariant 4"));
    }
    let orphan = of_signatures.next().transpose()?;
    if let Some((orphan, _)) = orphan.filter(|(found, _)| found.value() < end) {
        return Err(no_row(DOCUMENTS, orphan.value(), "invariant 1"));
    }
    Ok((window, end))
}

type RowsOf<'t> = Table<'t, u64, &'static [u8]>;

fn no_row(table: RowTable, id: u64, invariant: &str) -> Error {
    let place = format!("table {}, document {id}", redb::TableHandle::name(&table));
    let detail = format!("found no row, expected one ({invariant})");
    Error::corrupt(place, detail)
}

/// Leaves in a range of a table what lives there, in full pages if much goes.
fn rewrite(
    table: &mut RowsOf<'_>,
    ids: Range<u64>,
    window: &Window,
    live: &[(u64, Vec<u8>)],
) -> Result<()> {
    if !window.is_dense() {
        for id in &window.dropped {
            table.remove(id)?;
        }
        return Ok(());
    }
    table.retain_in(ids.clone(), |_, _| false)?;
    let mut cursor = table.lower_bound_mut(Bound::Included(ids.start))?;
    for (id, row) in live {
        cursor
            .insert_before(id, row.as_slice())
            .map_err(engine_error)?;
    }
    Ok(cursor.close()?)
}
