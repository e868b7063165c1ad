//! The remains of a damaged page: pages below it whose checksums are written beside them, and rows
//! that carry their own checksums.

use crate::page_layout::{Branch, Child, Leaf, Page, Widths, is_branch, stated_count};
use crate::page_tree::page_file::PageFile;

/// A page has no more keys or rows than this, where their number must be guessed.
const MAX_GUESSED: usize = 1_024;

/// A checksum that differs from another in no more bits is the same one, damaged: that of another
/// page would differ in half of its 128.
const MAX_FLIPPED_BITS: u32 = 8;

/// The maximum number of misplaced pages below a damaged one that are looked for elsewhere.
const MAX_SEARCHED: usize = 4;

/// The pages below a damaged one.
#[derive(Debug, Default)]
pub(crate) struct Children {
    /// The pages that were found, ascending by their keys.
    pub(super) whole: Vec<Child>,
    /// The other pages: either they are damaged, or the page above describes them wrongly.
    pub(super) other: Vec<Child>,
}

/// The pages that a damaged one refers to, if it is a branch.
pub(crate) fn children(pages: &PageFile, bytes: &[u8], widths: Widths) -> Children {
    let count = stated_count(bytes);
    let stated = of_count(pages, bytes, widths, count);
    let is_branch = || is_branch(bytes) && is_plausible(pages, bytes, widths, count);
    if !stated.whole.is_empty() || is_branch() {
        return stated;
    }
    // Where the number itself is wrong, few others give pages within the file.
    let max = MAX_GUESSED.min(bytes.len() / 24);
    let guessed = (1..max)
        .filter(|keys| is_plausible(pages, bytes, widths, *keys))
        .map(|keys| of_count(pages, bytes, widths, keys))
        .max_by_key(|children| children.whole.len());
    // A guess that leads to no page is wrong: the bytes are noise, or those of a page of rows.
    guessed
        .filter(|children| !children.whole.is_empty())
        .unwrap_or_default()
}

fn is_plausible(pages: &PageFile, bytes: &[u8], widths: Widths, keys: usize) -> bool {
    Branch::of_keys(bytes, widths, keys).is_some_and(|branch| {
        let mut before = None;
        branch.children().all(|child| {
            let is_new = before.replace(child.number) != Some(child.number);
            is_new && pages.place(&child).is_some()
        })
    })
}

fn of_count(pages: &PageFile, bytes: &[u8], widths: Widths, keys: usize) -> Children {
    let Some(branch) = Branch::of_keys(bytes, widths, keys) else {
        return Children::default();
    };
    let mut whole = Vec::new();
    let mut other = Vec::new();
    for child in branch.children() {
        match of_checksum(pages, &child, widths) {
            Some((found, below)) => whole.push((first_key(&below, widths), found)),
            None => other.push(child),
        }
    }
    // A search reads up to 64 pages. It pays only for a few children, of a page whose other children are
    // right.
    if (1..=MAX_SEARCHED).contains(&other.len()) && !whole.is_empty() {
        let sought = std::mem::take(&mut other);
        for child in sought {
            match of_number(pages, &child, widths) {
                Some((found, below)) => whole.push((first_key(&below, widths), found)),
                None => other.push(child),
            }
        }
    }
    whole.sort_by(|(a, _), (b, _)| a.cmp(b));
    Children {
        whole: whole.into_iter().map(|(_, child)| child).collect(),
        other,
    }
}

/// Finds the page that a possibly damaged reference refers to.
pub(crate) fn meant(pages: &PageFile, child: &Child, widths: Widths) -> Option<Child> {
    let found = of_checksum(pages, child, widths).or_else(|| of_number(pages, child, widths));
    found.map(|(found, _)| found)
}

/// Finds the page of a reference whose checksum is right but for a few bits.
fn of_checksum(pages: &PageFile, child: &Child, widths: Widths) -> Option<(Child, Vec<u8>)> {
    let (offset, length) = pages.place(child)?;
    let bytes = pages.read(offset, length).ok()?;
    let checksum = Page::parse(&bytes, widths)?.checksum();
    let is_meant = (checksum ^ child.checksum).count_ones() <= MAX_FLIPPED_BITS;
    is_meant.then_some((Child { checksum, ..*child }, bytes))
}

/// Finds the page of a reference whose number is right but for one bit.
fn of_number(pages: &PageFile, child: &Child, widths: Widths) -> Option<(Child, Vec<u8>)> {
    let others = (0..u64::BITS).map(|bit| Child {
        number: child.number ^ 1 << bit,
        ..*child
    });
    let mut found = others.filter_map(|other| Some((other, pages.verified(&other, widths)?)));
    found.next()
}

/// A key by which pages of a tree are in order. Keys of a fixed width below 16 are numbers.
fn first_key(bytes: &[u8], widths: Widths) -> Option<Vec<u8>> {
    let key = match Page::parse(bytes, widths)? {
        Page::Leaf(leaf) => leaf.key(0),
        Page::Branch(branch) => branch.key(0),
    };
    let mut key = key?.to_vec();
    if matches!(widths.key, Some(2 | 4 | 8)) {
        key.reverse();
    }
    Some(key)
}

/// Returns the rows of a damaged page that are intact according to `is_good`, and how many there
/// seem to be in all; nothing if there are none.
pub fn intact_rows(
    bytes: &[u8],
    widths: Widths,
    is_good: impl Fn(&[u8], &[u8]) -> bool,
) -> Option<(usize, usize)> {
    let good = |rows: usize| {
        let leaf = Leaf::of_rows(bytes, widths, rows)?;
        let row = |row| Some((leaf.key(row)?, leaf.value(row)?));
        let good =
            (0..rows).filter(|place| row(*place).is_some_and(|(key, value)| is_good(key, value)));
        Some(good.count()).filter(|good| *good > 0)
    };
    let stated = stated_count(bytes);
    if let Some(found) = good(stated) {
        return Some((stated, found));
    }
    let max = MAX_GUESSED.min(bytes.len() / 8);
    let guesses = (1..max).filter(|rows| is_consistent(bytes, widths, *rows));
    guesses
        .filter_map(|rows| Some((rows, good(rows)?)))
        .max_by_key(|(_, good)| *good)
}

fn is_consistent(bytes: &[u8], widths: Widths, rows: usize) -> bool {
    Leaf::of_rows(bytes, widths, rows).is_some_and(|leaf| {
        (0..rows).all(|row| leaf.key(row).is_some() && leaf.value(row).is_some())
    })
}
