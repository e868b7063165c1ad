//! Finds and reads pages of the last commit beside the engine.
//!
//! The engine finds a page from the top of its tree down, one page after the other, and it tells no page's
//! place. So the way down is gone here as well, over the pages of the last commit that this handle has read
//! or written. What comes of it is a hint, because a page may have moved since:
//!
//! - [`PageFinder::ask`] asks the operating system for pages that are about to be read, all at once: a disk reads many
//!   in the time of one. A page that has moved is asked for in vain.
//! - [`PageFinder::row_from`] reads a row at a place that was found before. The caller must know from the
//!   row itself that it is the wanted one, and has the engine read what is not.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::engine::files::FileOptions;
use crate::engine::page_layout::{Child, Geometry, PAGE_BYTES, Page, TablePages, Widths};
use crate::engine::verified_file::Verification;
use crate::sync::IgnorePoison;

/// No tree of a file is as deep.
const MAX_DEPTH: usize = 64;

/// Pages longer than this are neither asked for nor read.
const MAX_PAGE_BYTES: usize = 1 << 20;

/// The widths of the tree whose rows are definitions of tables.
const TABLE_WIDTHS: Widths = Widths {
    key: None,
    value: None,
};

/// The row at or after a key, in the order of the bytes of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedRow {
    /// The name of its table.
    pub(crate) table: &'static str,
    pub(crate) key: Vec<u8>,
}

/// Where a page of rows is in the file: its offset, and in the lowest bits the logarithm of its length in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PagePlace(u64);

impl PagePlace {
    #[cfg(test)]
    pub(crate) const FIRST: Self = Self(0);

    fn new((offset, length): (u64, usize)) -> Self {
        Self(offset | u64::from((length / PAGE_BYTES).ilog2()))
    }

    fn offset(self) -> u64 {
        self.0 / PAGE_BYTES as u64 * PAGE_BYTES as u64
    }

    fn length(self) -> usize {
        // At most 20, as `Geometry::place` gives it.
        PAGE_BYTES << (self.0 % PAGE_BYTES as u64)
    }
}

/// A row in a copy of its page.
#[derive(Debug)]
pub(crate) struct RowInPage {
    page: Vec<u8>,
    key: Range<usize>,
    value: Range<usize>,
}

impl RowInPage {
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.page.get(self.key.clone())
    }

    pub(crate) fn value(&self) -> Option<&[u8]> {
        self.page.get(self.value.clone())
    }
}

/// The places of pages of rows that one page names.
#[derive(Debug)]
pub(crate) struct LeafPlaces {
    page: Vec<u8>,
    widths: Widths,
    geometry: Geometry,
    after: Option<Vec<u8>>,
    last: Option<Vec<u8>>,
}

impl LeafPlaces {
    /// A key that is not above any of the rows, if there are pages before these.
    pub(crate) fn after(&self) -> Option<&[u8]> {
        self.after.as_deref()
    }

    /// The pages in order, each with the greatest key that it can have; nothing bounds a page without one.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (Option<&[u8]>, PagePlace)> {
        let branch = match Page::parse(&self.page, self.widths) {
            Some(Page::Branch(branch)) => Some(branch),
            _ => None,
        };
        let children = branch.map(|branch| {
            let children = branch.children().enumerate();
            children.filter_map(move |(number, child)| {
                let last = branch.key(number).or(self.last.as_deref());
                Some((last, PagePlace::new(self.geometry.place(&child)?)))
            })
        });
        children.into_iter().flatten()
    }
}

/// Finds and reads pages of an open file.
#[derive(Debug)]
pub(crate) struct PageFinder {
    /// A handle of its own, for reading, beside the engine's.
    file: File,
    verification: Arc<Verification>,
    trees: Mutex<KnownTrees>,
}

/// The tables of a commit, by its root.
#[derive(Debug, Default)]
struct KnownTrees {
    root: Option<Child>,
    trees: Vec<KnownTree>,
}

impl KnownTrees {
    fn tree(&self, table: &str) -> Option<&KnownTree> {
        let mut trees = self.trees.iter();
        trees.find(|tree| tree.name == table.as_bytes())
    }
}

#[derive(Clone, Debug)]
struct KnownTree {
    name: Vec<u8>,
    pages: TablePages,
    /// Number of pages above each of rows, once that is known: all are equally deep.
    depth: Option<usize>,
}

/// A page on the way down to some rows.
struct Step<'w> {
    page: Child,
    widths: Widths,
    key: &'w [u8],
}

impl PageFinder {
    /// `None` where a file cannot be read at any place without its handle, or it is none of the system's.
    pub(super) fn open(
        path: &Path,
        options: &dyn FileOptions,
        verification: &Arc<Verification>,
    ) -> Option<Self> {
        if !cfg!(unix) || !options.file_source().are_shared() {
            return None;
        }
        Some(Self {
            file: File::open(path).ok()?,
            verification: Arc::clone(verification),
            trees: Mutex::default(),
        })
    }

    /// Returns a number that another commit changes.
    pub(crate) fn commit_mark(&self) -> Option<u128> {
        let (_, root) = self.verification.last_tables()?;
        Some(root.checksum)
    }

    /// Finds the pages of rows around a key of a table that one page above them names; `None` if the pages cannot be read, or
    /// there is nothing above a page of rows.
    pub(crate) fn leaves_around(&self, table: &str, key: &[u8]) -> Option<LeafPlaces> {
        let (geometry, trees) = self.trees()?;
        let tree = trees.tree(table)?.clone();
        // Others need not wait until pages are read.
        drop(trees);
        let mut child = tree.pages.root?;
        let (mut lowest, mut after, mut last) = (None, None, None);
        for depth in 0..tree.depth.unwrap_or(MAX_DEPTH) {
            let page = self.read(geometry, &child)?;
            let Page::Branch(branch) = Page::parse(&page, tree.pages.widths)? else {
                self.note_depth(&tree, depth);
                break;
            };
            let number = branch.child_for(key);
            child = branch.children().nth(number)?;
            let bound = |number| branch.key(number).map(<[u8]>::to_vec);
            let before = number.checked_sub(1).and_then(bound);
            let below = (
                before.or_else(|| after.clone()),
                bound(number).or_else(|| last.clone()),
            );
            lowest = Some(LeafPlaces {
                page,
                widths: tree.pages.widths,
                geometry,
                after,
                last,
            });
            (after, last) = below;
        }
        lowest
    }

    /// Notes how many pages are above each of rows, unless another commit has changed the tree.
    fn note_depth(&self, tree: &KnownTree, depth: usize) {
        let mut known = self.trees.lock().ignore_poison();
        let mut trees = known.trees.iter_mut();
        if let Some(same) = trees.find(|known| known.pages == tree.pages) {
            same.depth = Some(depth);
        }
    }

    /// Reads the first row from a key on in a page of rows, if the page has one. The table has keys of this
    /// length.
    pub(crate) fn row_from(&self, place: PagePlace, key: &[u8]) -> Option<RowInPage> {
        let page = self.read_pages(place.offset(), place.length())?;
        let widths = Widths {
            key: Some(key.len()),
            value: None,
        };
        let Page::Leaf(leaf) = Page::parse(&page, widths)? else {
            return None;
        };
        let reaches = |row: &usize| leaf.key(*row).is_some_and(|found| found >= key);
        let row = (0..leaf.rows()).find(reaches)?;
        let (key, value) = (leaf.key_range(row)?, leaf.value_range(row)?);
        Some(RowInPage { page, key, value })
    }

    /// Asks for the pages of rows that will be read, where the system takes such advice. Returns the number of
    /// pages of rows that it found, for tests.
    pub(crate) fn ask(&self, wanted: &[WantedRow]) -> usize {
        if !cfg!(target_os = "linux") {
            return 0;
        }
        let Some((geometry, trees)) = self.trees() else {
            return 0;
        };
        let steps = wanted.iter().filter_map(|row| {
            let tree = trees.tree(row.table)?;
            Some(Step {
                page: tree.pages.root?,
                widths: tree.pages.widths,
                key: row.key.as_slice(),
            })
        });
        let steps = steps.collect();
        drop(trees);
        self.descend(geometry, steps)
    }

    /// Goes down from pages of one level or of several trees, until rows are reached.
    fn descend(&self, geometry: Geometry, mut steps: Vec<Step<'_>>) -> usize {
        let mut found = 0;
        for _ in 0..MAX_DEPTH {
            steps.sort_by_key(|step| step.page.number);
            let pages = steps.chunk_by(|a, b| a.page.number == b.page.number);
            let pages = pages.filter_map(|page| Some((page.first()?, page)));
            let pages: Vec<(&Step<'_>, &[Step<'_>])> = pages.collect();
            if pages.is_empty() {
                break;
            }
            for (first, _) in &pages {
                self.advise(geometry, &first.page);
            }
            let mut below = Vec::with_capacity(steps.len());
            // All rows of a tree are equally deep, so that the first page tells if others are worth reading.
            let mut leaves: Option<Widths> = None;
            for (first, page) in pages {
                if leaves == Some(first.widths) {
                    found += 1;
                    continue;
                }
                let Some(bytes) = self.read(geometry, &first.page) else {
                    continue;
                };
                match Page::parse(&bytes, first.widths) {
                    Some(Page::Branch(branch)) => {
                        for step in page {
                            if let Some(page) = branch.children().nth(branch.child_for(step.key)) {
                                below.push(Step { page, ..*step });
                            }
                        }
                    }
                    Some(Page::Leaf(_)) => {
                        leaves = Some(first.widths);
                        found += 1;
                    }
                    None => {}
                }
            }
            steps = below;
        }
        found
    }

    /// The trees of the last commit.
    fn trees(&self) -> Option<(Geometry, MutexGuard<'_, KnownTrees>)> {
        let (geometry, root) = self.verification.last_tables()?;
        let mut known = self.trees.lock().ignore_poison();
        if known.root != Some(root) {
            *known = KnownTrees {
                root: Some(root),
                trees: self.tables(geometry, root),
            };
        }
        Some((geometry, known))
    }

    fn tables(&self, geometry: Geometry, root: Child) -> Vec<KnownTree> {
        let mut tables = Vec::new();
        let mut pages = vec![root];
        for _ in 0..MAX_DEPTH {
            let Some(page) = pages.pop() else { break };
            let Some(bytes) = self.read(geometry, &page) else {
                continue;
            };
            match Page::parse(&bytes, TABLE_WIDTHS) {
                Some(Page::Branch(branch)) => pages.extend(branch.children()),
                Some(Page::Leaf(leaf)) => tables.extend((0..leaf.rows()).filter_map(|row| {
                    Some(KnownTree {
                        name: leaf.key(row)?.to_vec(),
                        pages: TablePages::parse(leaf.value(row)?)?,
                        depth: None,
                    })
                })),
                None => {}
            }
        }
        tables
    }

    fn advise(&self, geometry: Geometry, page: &Child) {
        let place = geometry.place(page);
        if let Some((offset, length)) = place.filter(|(_, length)| *length <= MAX_PAGE_BYTES) {
            will_need(&self.file, offset, length);
        }
    }

    fn read(&self, geometry: Geometry, page: &Child) -> Option<Vec<u8>> {
        let (offset, length) = geometry.place(page)?;
        self.read_pages(offset, length)
    }

    fn read_pages(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        if length > MAX_PAGE_BYTES {
            return None;
        }
        let mut bytes = vec![0; length];
        self.verification.counters.file_read(length);
        // While the lock is held no page that waits is taken for one that is at its place.
        let waiting = self.verification.waiting.read().ignore_poison();
        read_at(&self.file, offset, &mut bytes)?;
        waiting.cover(offset, &mut bytes);
        Some(bytes)
    }
}

#[cfg(unix)]
fn read_at(file: &File, offset: u64, bytes: &mut [u8]) -> Option<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset).ok()
}

#[cfg(not(unix))]
fn read_at(_: &File, _: u64, _: &mut [u8]) -> Option<()> {
    None
}

#[cfg(target_os = "linux")]
fn will_need(file: &File, offset: u64, length: usize) {
    use std::num::NonZeroU64;

    let length = NonZeroU64::new(length as u64);
    // Where the system takes no advice, pages are read all the same.
    let _ = rustix::fs::fadvise(file, offset, length, rustix::fs::Advice::WillNeed);
}

#[cfg(not(target_os = "linux"))]
fn will_need(_: &File, _: u64, _: usize) {}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::engine::{BANDS, FILTERS, RedbFile};
    use crate::format::{Posting, block_key, filter_key};
    use crate::options::StoreOptions;

    const BLOCKS: u64 = 3_000;

    fn wanted(numbers: impl Iterator<Item = u64>) -> Vec<WantedRow> {
        let block = |code| WantedRow {
            table: "bands",
            key: block_key(1, 2, Posting { code, id: 0 }).to_vec(),
        };
        numbers.map(block).collect()
    }

    fn write(file: &RedbFile, first: u64) {
        let write = file.begin_write().unwrap();
        let mut bands = write.open_table(BANDS).unwrap();
        for code in (first..BLOCKS).step_by(2) {
            // As long as a block: one row a page.
            let key = block_key(1, 2, Posting { code, id: 0 });
            bands.insert(&key, [7; 4_060].as_slice()).unwrap();
        }
        drop(bands);
        let mut filters = write.open_table(FILTERS).unwrap();
        let key = filter_key(1, 2, first as u32);
        filters.insert(&key, [7; 4_000].as_slice()).unwrap();
        drop(filters);
        write.commit().unwrap();
    }

    /// Pages of rows are found after each commit, by the handle that made it and by others: each page once.
    #[test]
    fn the_pages_of_rows_are_found_from_the_top_of_the_tree() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let options = StoreOptions::new();
        let file = RedbFile::create(&path, &options).unwrap();
        let ask =
            |file: &RedbFile, wanted: &[WantedRow]| file.page_finder.as_ref().unwrap().ask(wanted);
        write(&file, 0);
        // Only every other row is there: the next one is found.
        assert_eq!(ask(&file, &wanted(0..199)), 100);
        write(&file, 1);
        assert_eq!(ask(&file, &wanted(0..200)), 200);
        assert_eq!(ask(&file, &wanted((0..BLOCKS).step_by(100))), 30);
        assert_eq!(ask(&file, &wanted(BLOCKS + 5..BLOCKS + 7)), 1);
        let mut both = wanted([5, 2_000].into_iter());
        both.push(WantedRow {
            table: "filters",
            key: filter_key(1, 2, 1).to_vec(),
        });
        assert_eq!(ask(&file, &both), 3);
        let unknown = WantedRow {
            table: "no table of a store",
            key: Vec::new(),
        };
        assert_eq!(ask(&file, &[unknown]), 0);
        file.close().unwrap();
        let file = RedbFile::open_read_only(&path, &options).unwrap();
        assert_eq!(ask(&file, &wanted(0..200)), 200);
        assert_eq!(ask(&file, &[]), 0);
    }

    /// Each page of rows is visited with the others below the same page, and rows are read at their places.
    #[test]
    fn rows_are_read_at_the_places_of_their_pages() {
        let folder = tempfile::tempdir().unwrap();
        let file = RedbFile::create(&folder.path().join("file"), &StoreOptions::new()).unwrap();
        let finder = file.page_finder.as_ref().unwrap();
        let visited = |wanted: &WantedRow| {
            let leaves = finder.leaves_around(wanted.table, &wanted.key);
            let owned =
                |(last, place): (Option<&[u8]>, PagePlace)| (last.map(<[u8]>::to_vec), place);
            let pages: Vec<_> = leaves
                .iter()
                .flat_map(LeafPlaces::pages)
                .map(owned)
                .collect();
            (leaves.and_then(|leaves| leaves.after), pages)
        };
        let all = wanted(0..BLOCKS);
        assert_eq!(visited(&all[0]), (None, Vec::new()));
        write(&file, 0);
        let filter = WantedRow {
            table: "filters",
            key: filter_key(1, 2, 0).to_vec(),
        };
        // Nothing is above its only page.
        assert_eq!(visited(&filter), (None, Vec::new()));
        let before = finder.commit_mark();
        write(&file, 1);
        assert_ne!(finder.commit_mark(), before);
        let mut calls = 0;
        let mut pages: Vec<(Option<Vec<u8>>, PagePlace)> = Vec::new();
        for row in &all {
            let is_at = |(bound, _): &&(Option<Vec<u8>>, PagePlace)| {
                bound.as_ref().is_none_or(|bound| *bound >= row.key)
            };
            if pages.iter().find(is_at).is_none() {
                calls += 1;
                // The pages before these end where these begin.
                let (after, next) = visited(row);
                assert_eq!(after, pages.pop().and_then(|(last, _)| last));
                pages = next;
            }
            let (_, place) = pages.iter().find(is_at).unwrap();
            let found = finder.row_from(*place, &row.key).unwrap();
            assert_eq!(found.key().unwrap(), row.key);
            assert_eq!(found.value().unwrap(), [7; 4_060]);
        }
        // A page names some eighty others, and at least half of that.
        assert!((BLOCKS / 90..BLOCKS / 40).contains(&calls), "{calls}");
    }
}
