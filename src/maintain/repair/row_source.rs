//! Reads the rows of `documents`, `payloads` or `sets` one by one, ascending by id.

use std::collections::BTreeMap;
use std::collections::btree_map::OccupiedEntry;

use crate::engine::{LeafPage, PageFile, Tree, Walk};
use crate::format::ChunkSets;
use crate::maintain::repair::damaged_rows::{ReadRow, remaining, row_at};
use crate::maintain::repair::loss_report::LossReport;
use crate::maintain::repair::page_scan::ScannedRows;
use crate::maintain::stored_keys::{ids_of, row_check};

/// A source of rows.
pub(super) enum RowSource {
    /// The tree of the table.
    Tree(TreeRows),
    /// Wherever they were found.
    Scan(ScannedRows),
    /// The table cannot be found.
    None,
}

impl RowSource {
    pub(super) fn from_tree(
        name: &'static str,
        table: Option<&Tree>,
        losses: &mut LossReport,
    ) -> Self {
        match table {
            Some(table) => Self::Tree(TreeRows {
                table: name,
                walk: Walk::new(table),
                page: None,
                next_row: 0,
                last: None,
            }),
            None => {
                losses.unreachable(name, (0, u64::MAX));
                Self::None
            }
        }
    }

    pub(crate) fn next(&mut self, pages: &PageFile, losses: &mut LossReport) -> Option<ReadRow> {
        match self {
            Self::Tree(rows) => rows.next(pages, losses),
            Self::Scan(rows) => rows.next(pages),
            Self::None => None,
        }
    }
}

/// The rows of a source by id: a scan can find several of one.
pub(super) struct RowVersions {
    source: RowSource,
    /// True if a row of the table has the exact sets of several documents.
    has_chunks: bool,
    next: Option<ReadRow>,
    /// The rows of the next documents.
    ahead: BTreeMap<u64, Vec<ReadRow>>,
}

impl RowVersions {
    pub(super) fn new(source: RowSource, has_chunks: bool) -> Self {
        Self {
            source,
            has_chunks,
            next: None,
            ahead: BTreeMap::new(),
        }
    }

    /// Returns the id of the next row.
    pub(super) fn next_id(&mut self, pages: &PageFile, losses: &mut LossReport) -> Option<u64> {
        loop {
            if self.next.is_none() {
                self.next = self.source.next(pages, losses);
            }
            // A chunk has no lower ids than its own, but another version of it can.
            let first = self.ahead.keys().next().copied();
            match self.next.take() {
                Some(row) if first.is_none_or(|first| row.id <= first) => self.unpack(row),
                next => {
                    self.next = next;
                    return first;
                }
            }
        }
    }

    fn unpack(&mut self, row: ReadRow) {
        if !self.has_chunks {
            return self.ahead.entry(row.id).or_default().push(row);
        }
        // The sets behind a damaged place are reported together with their documents.
        for (id, set) in ChunkSets::new(row.id, &row.value).map_while(Result::ok) {
            let value = set.to_vec();
            self.ahead
                .entry(id)
                .or_default()
                .push(ReadRow { id, value });
        }
    }

    /// Returns all rows with this id, if they are the next.
    pub(super) fn take(
        &mut self,
        id: u64,
        pages: &PageFile,
        losses: &mut LossReport,
    ) -> Vec<ReadRow> {
        let is_next = self.next_id(pages, losses) == Some(id);
        let rows = self.ahead.first_entry().filter(|_| is_next);
        rows.map_or_else(Vec::new, OccupiedEntry::remove)
    }
}

/// The rows of a tree.
pub(super) struct TreeRows {
    table: &'static str,
    walk: Walk,
    page: Option<LeafPage>,
    next_row: usize,
    /// Rows of a damaged tree that are repeated, or out of order, are skipped.
    last: Option<u64>,
}

impl TreeRows {
    fn next(&mut self, pages: &PageFile, losses: &mut LossReport) -> Option<ReadRow> {
        loop {
            if let Some(row) = self.next_in_page() {
                return Some(row);
            }
            self.next_row = 0;
            let step = self.walk.next(pages)?;
            let (page, lost) = remaining(self.table, step, self.walk.widths(), losses);
            self.page = page;
            if let Some(ids) = lost.and_then(|keys| ids_of(self.table, &keys)) {
                losses.unreachable(self.table, ids);
            }
        }
    }

    fn next_in_page(&mut self) -> Option<ReadRow> {
        let page = self.page.as_ref()?;
        let leaf = page.leaf()?;
        while self.next_row < leaf.rows() {
            let row = self.next_row;
            self.next_row += 1;
            let Some((id, key, value)) = row_at(&leaf, row) else {
                continue;
            };
            // A damaged row of an intact page is reported later, together with its document.
            let is_good = page.is_whole() || row_check(self.table, key, value).is_ok();
            if is_good && self.last.is_none_or(|last| last < id) {
                self.last = Some(id);
                return Some(ReadRow {
                    id,
                    value: value.to_vec(),
                });
            }
        }
        None
    }
}
