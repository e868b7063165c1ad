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
    while let Some(step) = walk.next(&commit.pages) {
        let (page, unreachable) = remaining(&table.name, step, table.widths, losses);
        unreachable.iter().for_each(&mut lost);
        let Some((page, leaf)) = page.as_ref().and_then(|page| Some((page, page.leaf()?))) else {
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

/// Returns the page of rows that a walk has reached, or its remains, with the range of the keys
/// whose rows are out of reach. Reports a damaged page.
pub(super) fn remaining(
    table: &str,
    step: WalkStep,
    widths: Widths,
    losses: &mut LossReport,
) -> (Option<LeafPage>, Option<KeyRange>) {
    let (page, bytes) = match step {
        WalkStep::Leaf(page) => return (Some(page), None),
        WalkStep::Damaged(page, bytes) => (page, bytes),
    };
    losses.problem(problem_of(&page, table));
    let Some(bytes) = bytes else {
        return (None, page.has_lost.then_some(page.keys));
    };
    let good = |key: &[u8], value: &[u8]| row_check(table, key, value).is_ok();
    match intact_rows(&bytes, widths, good) {
        Some((rows, good)) => {
            let left = LeafPage::damaged(bytes, widths, rows);
            (Some(left), (good < rows).then_some(page.keys))
        }
        None => (None, Some(page.keys)),
    }
}
