//! Rows in the leaves of page trees, damaged leaves included.

use crate::engine::{Commit, KeyRange, Leaf, LeafPage, Tree, Walk, WalkStep, Widths, intact_rows};
use crate::error::Result;
use crate::maintain::repair::loss_report::LossReport;
use crate::maintain::stored_keys::{problem_of, row_check};

/// A row, intact if its checksum is right.
#[derive(Debug)]
pub(super) struct ReadRow {
    pub(super) id: u64,
    pub(super) value: Vec<u8>,
}

/// Returns the id, key and value of a row.
pub(super) fn row_at<'l>(leaf: &Leaf<'l>, row: usize) -> Option<(u64, &'l [u8], &'l [u8])> {
    let (key, value) = leaf.key(row).zip(leaf.value(row))?;
    let id = u64::from_le_bytes(key.try_into().ok()?);
    Some((id, key, value))
}

/// Walks over a small table and hands every row to `take`, or the error that its checksum is another.
/// `lost` gets the ranges of keys of which rows are out of reach.
pub(super) fn each_row(
    commit: &Commit,
    table: &Tree,
    losses: &mut LossReport,
    mut take: impl FnMut(&[u8], Result<&[u8]>),
    mut lost: impl FnMut(&KeyRange),
) {
    let mut walk = Walk::new(table);
    while let Some(found) = walk.next(&commit.pages) {
        let page = match found {
            WalkStep::Leaf(page) => page,
            WalkStep::Damaged(page, bytes) => {
                losses.problem(problem_of(&page, &table.name));
                let (leaf, has_lost) = remaining(&table.name, bytes, table.widths, page.has_lost);
                if has_lost {
                    lost(&page.keys);
                }
                match leaf {
                    Some(leaf) => leaf,
                    None => continue,
                }
            }
        };
        let Some(leaf) = page.leaf() else {
            continue;
        };
        for row in 0..leaf.rows() {
            let Some((key, value)) = leaf.key(row).zip(leaf.value(row)) else {
                continue;
            };
            match row_check(&table.name, key, value) {
                Ok(()) => take(key, Ok(value)),
                Err(error) if page.is_whole() => take(key, Err(error)),
                Err(_) => {}
            }
        }
    }
}

/// Returns the rows that are left in a damaged page, with true if others are lost.
pub(super) fn remaining(
    table: &str,
    bytes: Option<Vec<u8>>,
    widths: Widths,
    has_lost: bool,
) -> (Option<LeafPage>, bool) {
    let Some(bytes) = bytes else {
        return (None, has_lost);
    };
    let good = |key: &[u8], value: &[u8]| row_check(table, key, value).is_ok();
    match intact_rows(&bytes, widths, good) {
        Some((rows, good)) => (Some(LeafPage::damaged(bytes, widths, rows)), good < rows),
        None => (None, true),
    }
}
