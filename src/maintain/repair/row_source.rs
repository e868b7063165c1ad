//! Reads the rows of `documents` or `payloads` one by one, ascending by id.

use crate::engine::{LeafPage, PageFile, Tree, Walk};
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
    ahead: Option<ReadRow>,
}

impl RowVersions {
    pub(super) fn new(source: RowSource) -> Self {
        Self {
            source,
            ahead: None,
        }
    }

    /// Returns the id of the next row.
    pub(super) fn next_id(&mut self, pages: &PageFile, losses: &mut LossReport) -> Option<u64> {
        if self.ahead.is_none() {
            self.ahead = self.source.next(pages, losses);
        }
        self.ahead.as_ref().map(|row| row.id)
    }

    /// Returns all rows with this id, if they are the next.
    pub(super) fn take(
        &mut self,
        id: u64,
        pages: &PageFile,
        losses: &mut LossReport,
    ) -> Vec<ReadRow> {
        let mut rows = Vec::new();
        while self.next_id(pages, losses) == Some(id) {
            rows.extend(self.ahead.take());
        }
        rows
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
