//! The first phase of a merge. It drops the rows of deleted documents, and repacks the remaining
//! rows where many are dropped.
//!
//! Removing rows together with each document would copy nearly every page of the tables in each
//! commit, and leave pages half empty. Here a page is written once for all rows that are dropped
//! from it.

use std::ops::{Bound, Range};

use crate::engine::{DOCUMENTS, EngineResult, PAYLOADS, ReadableTable, TableHandle};
use crate::error::{Error, Result};
use crate::format::{RowHead, RunDescriptor, no_row};
use crate::invariant::invariant;
use crate::state::MergeDrops;
use crate::write::pending_rows::{DocumentTables, RowsOf};
use crate::write::writer::Writer;

/// Bytes of the rows that are read together: about 64 pages of them. Bounds the memory, except for a
/// single row that is larger.
pub(crate) const WINDOW_BYTES: usize = 64 * 4_096;

/// The minimum share of dropped rows, as one in this number, for which all pages of a window are
/// rewritten. With fewer dropped rows, only the pages that contain them are rewritten, and keep the
/// gaps.
pub(crate) const DENSE_SHARE: usize = 16;

/// Number of postings of each lane that a document's rows count as in the pace of merges. With
/// fewer a commit would free more pages, which cannot be reused before the next one; with more the
/// rows of deleted documents would be kept longer.
const ROW_LANES: u64 = 1;

/// Rows of neighbouring documents.
#[derive(Default)]
struct Window {
    /// Rows of the documents that are kept, with their ids, ascending.
    documents: Vec<(u64, Vec<u8>)>,
    /// Rows of the payloads that are kept.
    payloads: Vec<(u64, Vec<u8>)>,
    /// Ids of the documents that are dropped, ascending.
    dropped: Vec<u64>,
    /// The ids among them of documents that have a payload.
    dropped_payloads: Vec<u64>,
    size_bytes: usize,
}

impl Window {
    fn is_dense(&self) -> bool {
        self.dropped.len() * DENSE_SHARE >= self.documents.len()
    }

    /// Returns about how many documents' rows are written.
    fn written_documents(&self) -> usize {
        let all = self.documents.len() + self.dropped.len();
        if self.is_dense() {
            all
        } else {
            // Each page with a dropped row is copied with its other rows.
            all.min(self.dropped.len() * DENSE_SHARE / 2)
        }
    }
}

impl Writer {
    /// Returns the number of postings that a document's rows count as in the pace of merges.
    fn row_postings(&self) -> u64 {
        u64::from(self.store.context.lanes.count()) * ROW_LANES
    }

    /// Returns an upper bound of the rest of this phase for a merge, in postings: less if few documents
    /// are deleted.
    pub(super) fn rows_left(&self, output: &RunDescriptor) -> u64 {
        // Ids are below 2^64 - 1, and `rows_from` is one of the run's.
        let rows = output.rows_from.map_or(0, |from| output.last_id - from + 1);
        rows.saturating_mul(self.row_postings())
    }

    /// Drops rows of documents that a merge drops, until they count as about this many postings.
    /// Returns the number that they count as; the next call continues from `output.rows_from`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if one of these documents has no rows, and those of reading and writing.
    pub(super) fn advance_rows(
        &mut self,
        output: &mut RunDescriptor,
        dropped: &MergeDrops,
        postings: u64,
    ) -> Result<u64> {
        if output.rows_from.is_none() {
            return Ok(0);
        }
        let (mut done, mut moved) = (0, 0);
        let mut tables = DocumentTables::open(self.write()?, &self.store.context)?;
        while let Some(from) = output.rows_from {
            let first = dropped.first_from(from).filter(|id| *id <= output.last_id);
            // `rows_from` skips to the next document that is dropped: the rows before it are not
            // changed.
            output.rows_from = first;
            let Some(first) = first.filter(|_| done < postings) else {
                break;
            };
            let ids = first..output.last_id + 1;
            let (window, end) = read_window(&tables.documents, &tables.payloads, ids, dropped)?;
            let is_dense = window.is_dense();
            let (live, gone) = (&window.documents, &window.dropped);
            rewrite(&mut tables.documents, first..end, is_dense, live, gone)?;
            // Sets are large: a repack reads only chunks with one that is dropped.
            tables.remove_sets(gone)?;
            let (live, gone) = (&window.payloads, &window.dropped_payloads);
            if !gone.is_empty() {
                rewrite(&mut tables.payloads, first..end, is_dense, live, gone)?;
            }
            done += window.written_documents() as u64 * self.row_postings();
            moved += window.written_documents() as u64;
            output.rows_from = (end <= output.last_id).then_some(end);
        }
        drop(tables);
        self.note_removed_rows(moved);
        Ok(done)
    }
}

/// Reads the rows of the first documents within `ids` that fit a window. Returns them with the end
/// of the ids that were covered.
fn read_window(
    documents: &RowsOf<'_>,
    payloads: &RowsOf<'_>,
    ids: Range<u64>,
    dropped: &MergeDrops,
) -> Result<(Window, u64)> {
    let mut window = Window::default();
    let mut next = dropped.first_from(ids.start);
    let mut end = ids.end;
    let mut payload_rows = payloads.range(ids.clone()).engine()?;
    for entry in documents.range(ids.clone()).engine()? {
        let (key, row) = entry.engine()?;
        let (id, document) = (key.value(), row.value());
        if window.size_bytes >= WINDOW_BYTES {
            end = id;
            break;
        }
        if let Some(missing) = next.filter(|next| *next < id) {
            return Err(no_row(DOCUMENTS.name(), missing, 4));
        }
        let payload = match RowHead::decode(id, document)?.has_payload {
            true => {
                let row = payload_rows.next().transpose().engine()?;
                let (found, row) = row.ok_or_else(|| no_row(PAYLOADS.name(), id, 1))?;
                match found.value() {
                    found if found < id => return Err(orphan(found)),
                    found if found > id => return Err(no_row(PAYLOADS.name(), id, 1)),
                    _ => Some(row.value().to_vec()),
                }
            }
            false => None,
        };
        window.size_bytes += document.len() + payload.as_ref().map_or(0, Vec::len);
        if next == Some(id) {
            window.dropped.push(id);
            window.dropped_payloads.extend(payload.map(|_| id));
            next = id.checked_add(1).and_then(|id| dropped.first_from(id));
        } else {
            window.documents.push((id, document.to_vec()));
            window.payloads.extend(payload.map(|row| (id, row)));
        }
    }
    if let Some(missing) = next.filter(|next| *next < end) {
        return Err(no_row(DOCUMENTS.name(), missing, 4));
    }
    let left = payload_rows.next().transpose().engine()?;
    if let Some((found, _)) = left.filter(|(found, _)| found.value() < end) {
        return Err(orphan(found.value()));
    }
    Ok((window, end))
}

/// The error of a payload without a document that has one.
fn orphan(id: u64) -> Error {
    let detail = "found a row, but no document that has a payload (invariant 1)";
    Error::corrupt(format!("table {}, document {id}", PAYLOADS.name()), detail)
}

/// Leaves the live rows in a range of a table: in full pages if many others are dropped.
fn rewrite(
    table: &mut RowsOf<'_>,
    ids: Range<u64>,
    is_dense: bool,
    live: &[(u64, Vec<u8>)],
    dropped: &[u64],
) -> Result<()> {
    if !is_dense {
        for id in dropped {
            let is_removed = table.remove(id).engine()?.is_some();
            invariant!(is_removed, "document {id} has lost a row since it was read");
        }
        return Ok(());
    }
    // Pages fill up if the whole range is removed and the rest is appended. Single removals would
    // leave gaps.
    table.retain_in(ids.clone(), |_, _| false).engine()?;
    let mut cursor = table.lower_bound_mut(Bound::Included(ids.start)).engine()?;
    for (id, row) in live {
        cursor.insert_before(id, row.as_slice()).engine()?;
    }
    cursor.close().engine()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(live: u64, dropped: u64) -> Window {
        Window {
            documents: (0..live).map(|id| (id, Vec::new())).collect(),
            dropped: (live..live + dropped).collect(),
            ..Window::default()
        }
    }

    /// Sixteen rows, half of them on either side, are about the contents of a page.
    #[test]
    fn repack_counts_rows_beside_a_dropped_one() {
        assert_eq!(window(100, 1).written_documents(), 8);
        assert_eq!(window(100, 2).written_documents(), 16);
        assert_eq!(window(100, 7).written_documents(), 107);
        assert_eq!(window(0, 3).written_documents(), 3);
        assert_eq!(window(100, 0).written_documents(), 0);
    }
}
