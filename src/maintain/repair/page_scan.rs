//! Finds rows anywhere in a file, whether or not a tree leads to them.
//!
//! A page of rows is recognized by the checksums of its rows. The place of each is kept in memory,
//! 24 bytes for each page, so that rows can be read in the order of their ids.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::engine::{
    Leaf, LeafPage, PAGE_BYTES, Page, PageFile, Widths, intact_rows, stated_count,
};
use crate::error::Result;
use crate::format::{DOCUMENTS, PAYLOADS, SETS};
use crate::maintain::repair::damaged_rows::{ReadRow, row_at};
use crate::maintain::repair::meta::MetaRows;
use crate::maintain::stored_keys::row_check;
use crate::types::{Phase, Watch};

/// Bytes of the file that are read between two calls of the progress callback.
const BYTES_PER_CALL: u64 = 4 << 20;

/// The key and value widths of the tables `documents` and `payloads`.
const ROWS: Widths = Widths {
    key: Some(8),
    value: None,
};

const NAMED_ROWS: Widths = Widths {
    key: None,
    value: None,
};

/// The rows that a scan found.
pub(super) struct Scanned {
    pub(super) documents: ScannedRows,
    pub(super) payloads: ScannedRows,
    pub(super) sets: ScannedRows,
    /// The rows of `meta` of the newest commit that were found together.
    pub(super) meta: MetaRows,
}

/// Looks at all pages of a file.
pub(super) fn scan(pages: &PageFile, watch: &mut Watch<'_>) -> Result<Scanned> {
    let mut scanned = Scanned {
        documents: ScannedRows::new(DOCUMENTS),
        payloads: ScannedRows::new(PAYLOADS),
        sets: ScannedRows::new(SETS),
        meta: MetaRows::default(),
    };
    let total = pages.length_bytes();
    for offset in (0..total).step_by(PAGE_BYTES).skip(1) {
        if offset % BYTES_PER_CALL == PAGE_BYTES as u64 {
            watch.report(Phase::ScanningPages, offset, total)?;
        }
        let Some(bytes) = read_page(pages, offset) else {
            continue;
        };
        scanned.documents.look_at(offset, &bytes);
        scanned.payloads.look_at(offset, &bytes);
        scanned.sets.look_at(offset, &bytes);
        look_for_meta(&bytes, &mut scanned.meta);
    }
    let tables = [
        &mut scanned.documents,
        &mut scanned.payloads,
        &mut scanned.sets,
    ];
    for rows in tables {
        rows.leaves
            .sort_unstable_by_key(|leaf| Reverse(leaf.first_id));
    }
    watch.report(Phase::ScanningPages, total, total)?;
    Ok(scanned)
}

/// Returns the bytes of a possible page of rows, up to the end of its last row.
fn read_page(pages: &PageFile, offset: u64) -> Option<Vec<u8>> {
    let rest = pages.length_bytes().checked_sub(offset)?;
    // An upper bound of a length of memory: more than that is never read.
    let max = usize::try_from(rest).unwrap_or(usize::MAX);
    let bytes = pages.read(offset, max.min(PAGE_BYTES)).ok()?;
    let ends_beyond = || {
        let leaf = Leaf::of_rows(&bytes, ROWS, stated_count(&bytes))?;
        let end = leaf.stated_ends()?;
        let length = end.checked_next_power_of_two()?;
        (length > PAGE_BYTES && length <= max.min(128 << 20)).then_some(length)
    };
    match ends_beyond() {
        Some(length) => pages.read(offset, length).ok(),
        None => Some(bytes),
    }
}

/// Keeps the rows of `meta` of a page, if its commit is newer than that of those before.
fn look_for_meta(bytes: &[u8], newest: &mut MetaRows) {
    let Some(Page::Leaf(leaf)) = Page::parse(bytes, NAMED_ROWS) else {
        return;
    };
    let mut rows = MetaRows::default();
    for row in 0..leaf.rows() {
        if let Some((key, value)) = leaf.key(row).zip(leaf.value(row)) {
            // Anything else is not one of our rows.
            let _ = rows.take(key, value);
        }
    }
    let commit = |rows: &MetaRows| rows.state.map(|state| state.commit);
    if rows.schema.is_some() && (newest.schema.is_none() || commit(&rows) > commit(newest)) {
        *newest = rows;
    }
}

/// A page in which rows were found.
#[derive(Clone, Copy, Debug)]
struct LeafPlace {
    first_id: u64,
    offset: u64,
    rows: u16,
}

/// The rows of one table.
pub(super) struct ScannedRows {
    table: &'static str,
    /// Descending by their first ids.
    leaves: Vec<LeafPlace>,
    /// The pages whose rows are being read, with the id of the next row of each: the lowest first.
    open: BinaryHeap<Reverse<(u64, u64, usize)>>,
    held: std::collections::BTreeMap<u64, LeafPage>,
    last: Option<u64>,
}

impl ScannedRows {
    fn new(table: &'static str) -> Self {
        Self {
            table,
            leaves: Vec::new(),
            open: BinaryHeap::new(),
            held: std::collections::BTreeMap::new(),
            last: None,
        }
    }

    fn is_good(&self, key: &[u8], value: &[u8]) -> bool {
        row_check(self.table, key, value).is_ok()
    }

    fn look_at(&mut self, offset: u64, bytes: &[u8]) {
        let good = |key: &[u8], value: &[u8]| self.is_good(key, value);
        let Some((rows, _)) = intact_rows(bytes, ROWS, good) else {
            return;
        };
        let Some(leaf) = Leaf::of_rows(bytes, ROWS, rows) else {
            return;
        };
        if let Some((_, first_id)) = self.good_row(&leaf, 0)
            && let Ok(rows) = u16::try_from(rows)
        {
            self.leaves.push(LeafPlace {
                first_id,
                offset,
                rows,
            });
        }
    }

    /// Returns the first intact row from `from` on, and its id.
    fn good_row(&self, leaf: &Leaf<'_>, from: usize) -> Option<(usize, u64)> {
        (from..leaf.rows()).find_map(|row| {
            let (id, key, value) = row_at(leaf, row)?;
            self.is_good(key, value).then_some((row, id))
        })
    }

    /// Returns the next row. All rows that are found of a document are returned; they differ in
    /// stamps and payloads that were written in their place.
    pub(crate) fn next(&mut self, pages: &PageFile) -> Option<ReadRow> {
        loop {
            self.open_leaves(pages);
            let Reverse((id, offset, row)) = self.open.pop()?;
            let page = self.held.remove(&offset)?;
            let leaf = page.leaf()?;
            let value = row_at(&leaf, row).map(|(_, _, value)| value.to_vec());
            let next = self.good_row(&leaf, row + 1);
            if let Some((row, id)) = next {
                self.open.push(Reverse((id, offset, row)));
                self.held.insert(offset, page);
            }
            if let Some(value) = value.filter(|_| self.last.is_none_or(|last| last <= id)) {
                self.last = Some(id);
                return Some(ReadRow { id, value });
            }
        }
    }

    /// Reads the pages of the next rows.
    fn open_leaves(&mut self, pages: &PageFile) {
        while let Some(leaf) = self.leaves.last().copied() {
            let lowest = self.open.peek().map(|Reverse((id, ..))| *id);
            if lowest.is_some_and(|lowest| lowest < leaf.first_id) {
                return;
            }
            self.leaves.pop();
            let Some(bytes) = read_page(pages, leaf.offset) else {
                continue;
            };
            let page = LeafPage::damaged(bytes, ROWS, leaf.rows.into());
            let first = page.leaf().and_then(|leaf| self.good_row(&leaf, 0));
            if let Some((row, id)) = first {
                self.open.push(Reverse((id, leaf.offset, row)));
                self.held.insert(leaf.offset, page);
            }
        }
    }
}
