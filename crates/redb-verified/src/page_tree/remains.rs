//! Recovers what remains of a damaged page: child pages whose checksums it contains, and rows that
//! carry checksums themselves.

use crate::page_layout::{Branch, Child, Leaf, Page, Widths, is_branch, stated_count};
use crate::page_tree::page_file::PageFile;

/// The maximum number of keys or rows to try if the number of a page must be guessed.
const MAX_GUESSED: usize = 1_024;

/// The maximum number of bits in which two checksums may differ and still count as the same,
/// damaged one. The checksums of two pages differ in about half of their 128 bits.
const MAX_FLIPPED_BITS: u32 = 8;

/// The maximum number of misplaced children of a damaged page that are searched for elsewhere.
const MAX_SEARCHED: usize = 4;

/// The children of a damaged page.
#[derive(Debug, Default)]
pub(crate) struct Children {
    /// The intact children, in ascending order of their keys.
    pub(super) whole: Vec<Child>,
    /// The other children. They are damaged, or the page above describes them wrongly.
    pub(super) other: Vec<Child>,
}

/// Returns the children of a damaged page, if it is a branch.
pub(crate) fn children(pages: &PageFile, bytes: &[u8], widths: Widths) -> Children {
    let count = stated_count(bytes);
    let stated = of_count(pages, bytes, widths, count);
    let is_branch = || is_branch(bytes) && is_plausible(pages, bytes, widths, count);
    if !stated.whole.is_empty() || is_branch() {
        return stated;
    }
    // If the number of keys itself is wrong, few guesses refer to pages within the file.
    let max = MAX_GUESSED.min(bytes.len() / 24);
    let guessed = (1..max)
        .filter(|keys| is_plausible(pages, bytes, widths, *keys))
        .map(|keys| of_count(pages, bytes, widths, keys))
        .max_by_key(|children| children.whole.len());
    // A guess that leads to no intact page is wrong: the bytes are random, or those of a page of
    // rows.
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
    // A search reads up to 64 pages. It pays only for a few children of a page whose other children
    // are intact.
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

/// Finds the page to which a possibly damaged reference refers.
pub(crate) fn meant(pages: &PageFile, child: &Child, widths: Widths) -> Option<Child> {
    let found = of_checksum(pages, child, widths).or_else(|| of_number(pages, child, widths));
    found.map(|(found, _)| found)
}

/// Finds the page of a reference whose checksum has a few wrong bits.
fn of_checksum(pages: &PageFile, child: &Child, widths: Widths) -> Option<(Child, Vec<u8>)> {
    let (offset, length) = pages.place(child)?;
    let bytes = pages.read(offset, length).ok()?;
    let checksum = Page::parse(&bytes, widths)?.checksum();
    let is_meant = (checksum ^ child.checksum).count_ones() <= MAX_FLIPPED_BITS;
    is_meant.then_some((Child { checksum, ..*child }, bytes))
}

/// Finds the page of a reference whose page number has one wrong bit.
fn of_number(pages: &PageFile, child: &Child, widths: Widths) -> Option<(Child, Vec<u8>)> {
    let others = (0..u64::BITS).map(|bit| Child {
        number: child.number ^ 1 << bit,
        ..*child
    });
    let mut found = others.filter_map(|other| Some((other, pages.verified(&other, widths)?)));
    found.next()
}

/// Returns a key that orders the pages of a tree. Keys of fixed width below 16 are numbers.
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

/// Returns the rows of a damaged page that are intact according to `is_good`, and the apparent
/// number of all rows. Returns nothing if no row is intact.
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
