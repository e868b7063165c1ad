//! Checks invariant 8, and invariant 2 as far as checksums go: every page of the file, and every
//! row in them.

use std::path::Path;

use crate::engine::{Leaf, Tree, WalkStep, open_commit, verify_pages};
use crate::error::{Error, Result};
use crate::maintain::stored_keys::{problem_of, problem_of_head, row_check};
use crate::options::StoreOptions;
use crate::types::{CheckReport, Phase, Watch};

/// Bytes of pages between two calls of the progress callback.
const BYTES_PER_CALL: u64 = 4 << 20;

/// Reads all pages and verifies them and their rows; changes nothing. Returns true if all pages
/// are intact.
pub(super) fn check_pages(
    path: &Path,
    options: &StoreOptions,
    report: &mut CheckReport,
    watch: &mut Watch<'_>,
) -> Result<bool> {
    let commit = open_commit(path, &options.file_options(), false)?;
    let mut is_complete = commit.head.is_empty();
    for damage in &commit.head {
        report.push(problem_of_head(damage));
    }
    let total = commit.pages.length_bytes();
    let (mut done, mut reported) = (0, 0);
    watch.report(Phase::VerifyingPages, 0, total)?;
    commit.walk_all(|tree, found| {
        match found {
            WalkStep::Leaf(page) => {
                if let Some(leaf) = page.leaf() {
                    check_rows(tree, &leaf, report);
                }
                done += page.size_bytes();
            }
            WalkStep::Damaged(page, _) => {
                is_complete = false;
                report.push(problem_of(page, &tree.name));
            }
        }
        if done - reported < BYTES_PER_CALL {
            return Ok(());
        }
        reported = done;
        // A page of a damaged file can be below two trees.
        watch.report(Phase::VerifyingPages, done.min(total), total)
    })?;
    watch.report(Phase::VerifyingPages, total, total)?;
    Ok(is_complete)
}

/// Returns the number of the invariant that a damaged row of a table breaks; `None` if the table is
/// not ours.
fn invariant_of(table: &str) -> Option<u8> {
    match table {
        "meta" | "documents" | "payloads" | "sets" | "lanes" | "runs" | "dead" | "equal"
        | "filters" | "forest" | "members" | "clusters" | "feed" => Some(2),
        "keys" | "bands" | "permuted" => Some(7),
        _ => None,
    }
}

fn check_rows(tree: &Tree, leaf: &Leaf<'_>, report: &mut CheckReport) {
    let Some(invariant) = invariant_of(&tree.name) else {
        return;
    };
    for row in 0..leaf.rows() {
        let checked = match leaf.key(row).zip(leaf.value(row)) {
            Some((key, value)) => row_check(&tree.name, key, value),
            None => Err(Error::corrupt(
                format!("table {}", tree.name),
                "found a page whose rows overlap",
            )),
        };
        if let Err(Error::Corrupt { place, detail }) = checked {
            report.add(invariant, place, detail);
        }
    }
}

/// Lets the engine verify its bookkeeping, and repair it where it is wrong.
pub(super) fn check_bookkeeping(
    path: &Path,
    options: &StoreOptions,
    report: &mut CheckReport,
    watch: &mut Watch<'_>,
) -> Result<()> {
    let notify = |done, total| watch.report(Phase::CheckingFreePages, done, total);
    let pages = verify_pages(path, &options.file_options(), notify).map(|clean| {
        if !clean {
            let detail = "its list of free pages is wrong; no document is affected, and `compact` repairs \
                          it";
            report.add(8, "pages", detail);
        }
    });
    report.note(8, pages)
}
