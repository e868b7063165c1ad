//! Finds and reads pages of the last commit without the engine.
//!
//! redb finds a page by descending its tree, one page after another, and does not expose page
//! offsets. This module therefore walks the tree itself, over pages of the last commit that this
//! handle has read or written. The result is a hint, because a page may have moved since:
//!
//! - [`PageFinder::find`] finds the pages that contain rows. If there are several, it asks the
//!   operating system for all of them at once, and for the pages on the way to them, because a disk
//!   reads many pages in the time of one. A request for a page that has moved has no effect.
//! - [`PageFinder::row_from`] reads a row at a place that was found before. The caller must check
//!   that it is the right row, and otherwise read it through the engine.

use std::fs::File;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use crate::page_layout::{Branch, Child, Geometry, PAGE_BYTES, Page, TablePages, Widths};
use crate::process::IgnorePoison;
use crate::verified_file::Verification;

/// The maximum depth; no tree of a file is deeper.
const MAX_DEPTH: usize = 64;

/// The maximum length of pages that are requested or read.
const MAX_PAGE_BYTES: usize = 1 << 20;

/// Identifies the first row at or after a key, in byte order of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedRow {
    /// The name of its table.
    pub table: &'static str,
    /// The bytes of the key.
    pub key: Vec<u8>,
}

/// The place of a page of rows in the file: its offset, with the logarithm of its length in pages
/// in the lowest bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagePlace(u64);

impl PagePlace {
    fn new((offset, length): (u64, usize)) -> Self {
        Self(offset | u64::from((length / PAGE_BYTES).ilog2()))
    }

    fn offset(self) -> u64 {
        self.0 / PAGE_BYTES as u64 * PAGE_BYTES as u64
    }

    fn length(self) -> usize {
        // At most 20, because `Geometry::place` returns it.
        PAGE_BYTES << (self.0 % PAGE_BYTES as u64)
    }
}

/// A row in a copy of its page.
#[derive(Debug)]
pub struct RowInPage {
    page: Vec<u8>,
    key: Range<usize>,
    value: Range<usize>,
}

impl RowInPage {
    /// Returns the key of the row.
    pub fn key(&self) -> Option<&[u8]> {
        self.page.get(self.key.clone())
    }

    /// Returns the value of the row.
    pub fn value(&self) -> Option<&[u8]> {
        self.page.get(self.value.clone())
    }
}

/// The places of the pages of rows that one page refers to.
#[derive(Debug)]
pub struct LeafPlaces {
    page: Vec<u8>,
    widths: Widths,
    geometry: Geometry,
    after: Option<Vec<u8>>,
    last: Option<Vec<u8>>,
    rows: Vec<usize>,
}

impl LeafPlaces {
    /// The indices of the wanted rows that these pages contain, if the rows exist.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// A key that is not greater than any of the rows, if other pages precede these.
    pub fn after(&self) -> Option<&[u8]> {
        self.after.as_deref()
    }

    /// The pages in order, each with the greatest key that it can contain. A page without a key is
    /// unbounded.
    pub fn pages(&self) -> impl Iterator<Item = (Option<&[u8]>, PagePlace)> {
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
pub struct PageFinder {
    /// A separate handle for reading, besides the engine's.
    file: Arc<File>,
    verification: Arc<Verification>,
    trees: Mutex<KnownTrees>,
}

/// The tables of a commit, by its root page.
#[derive(Debug, Default)]
struct KnownTrees {
    root: Option<Child>,
    trees: Vec<Arc<KnownTree>>,
}

#[derive(Debug)]
struct KnownTree {
    name: Vec<u8>,
    pages: TablePages,
    /// The number of pages above each page of rows, once it is known. All are equally deep.
    depth: OnceLock<usize>,
}

/// A page on the path to some rows.
struct Step {
    tree: Arc<KnownTree>,
    page: Child,
    /// The same as in [`LeafPlaces`].
    after: Option<Vec<u8>>,
    last: Option<Vec<u8>>,
    /// The indices of the wanted rows.
    rows: Vec<usize>,
}

impl Step {
    /// Returns the pages below this one that lead to the rows.
    fn below(&self, branch: &Branch<'_>, wanted: &[WantedRow]) -> Vec<Self> {
        let number_of = |row: &usize| {
            let key = &wanted.get(*row)?.key;
            Some((branch.child_for(key), *row))
        };
        let mut rows: Vec<(usize, usize)> = self.rows.iter().filter_map(number_of).collect();
        rows.sort_unstable();
        let bound = |number| branch.key(number).map(<[u8]>::to_vec);
        let below = rows.chunk_by(|a, b| a.0 == b.0).filter_map(|rows| {
            let (number, _) = *rows.first()?;
            Some(Self {
                tree: Arc::clone(&self.tree),
                page: branch.children().nth(number)?,
                after: match number.checked_sub(1) {
                    Some(before) => bound(before),
                    None => self.after.clone(),
                },
                last: bound(number).or_else(|| self.last.clone()),
                rows: rows.iter().map(|(_, row)| *row).collect(),
            })
        });
        below.collect()
    }
}

impl PageFinder {
    /// Creates a finder from a second handle of the file. Returns `None` without a handle, or on
    /// systems that cannot read at an offset.
    pub(crate) fn new(file: Option<Arc<File>>, verification: &Arc<Verification>) -> Option<Self> {
        if !cfg!(unix) {
            return None;
        }
        Some(Self {
            file: file?,
            verification: Arc::clone(verification),
            trees: Mutex::default(),
        })
    }

    /// Returns a number that changes with every commit.
    pub fn commit_mark(&self) -> Option<u128> {
        let (_, root) = self.verification.last_tables()?;
        Some(root.checksum)
    }

    /// Finds the pages of the wanted rows, and the other pages that their parent page refers to.
    /// Does not find rows whose pages cannot be read or have no parent. If there are several rows,
    /// requests their pages from the system, because they will be read.
    pub fn find(&self, wanted: &[WantedRow]) -> Vec<LeafPlaces> {
        let mut found = Vec::new();
        let Some((geometry, mut steps)) = self.roots(wanted) else {
            return found;
        };
        let will_read = wanted.len() > 1;
        for depth in 1..=MAX_DEPTH {
            if will_read {
                self.advise(geometry, &steps);
            }
            for step in std::mem::take(&mut steps) {
                let widths = step.tree.pages.widths;
                let Some(page) = self.read(geometry, &step.page) else {
                    continue;
                };
                let Some(Page::Branch(branch)) = Page::parse(&page, widths) else {
                    continue;
                };
                let below = step.below(&branch, wanted);
                if !self.are_leaves(geometry, &step.tree, &below, depth) {
                    steps.extend(below);
                    continue;
                }
                if will_read {
                    self.advise(geometry, &below);
                }
                found.push(LeafPlaces {
                    page,
                    widths,
                    geometry,
                    after: step.after,
                    last: step.last,
                    rows: step.rows,
                });
            }
        }
        found
    }

    /// Returns the roots of the trees of the last commit that contain the wanted rows.
    fn roots(&self, wanted: &[WantedRow]) -> Option<(Geometry, Vec<Step>)> {
        let (geometry, root) = self.verification.last_tables()?;
        let mut known = self.trees.lock().ignore_poison();
        if known.root != Some(root) {
            *known = KnownTrees {
                root: Some(root),
                trees: self.tables(geometry, root),
            };
        }
        let steps = known.trees.iter().filter_map(|tree| {
            let is_in = |row: &usize| {
                let row = wanted.get(*row);
                row.is_some_and(|row| tree.name == row.table.as_bytes())
            };
            let rows: Vec<usize> = (0..wanted.len()).filter(is_in).collect();
            Some(Step {
                tree: Arc::clone(tree),
                page: tree.pages.root.filter(|_| !rows.is_empty())?,
                after: None,
                last: None,
                rows,
            })
        });
        Some((geometry, steps.collect()))
    }

    /// Returns true if pages at this depth contain rows of a tree. The first call for a tree reads
    /// one of them to find out.
    fn are_leaves(
        &self,
        geometry: Geometry,
        tree: &KnownTree,
        pages: &[Step],
        depth: usize,
    ) -> bool {
        if tree.depth.get().is_none()
            && let Some(page) = pages.first()
            && let Some(page) = self.read(geometry, &page.page)
            && let Some(Page::Leaf(_)) = Page::parse(&page, tree.pages.widths)
        {
            // Another thread can only have found the same.
            let _ = tree.depth.set(depth);
        }
        tree.depth.get() == Some(&depth)
    }

    /// Reads the first row at or after a key from a page of rows, if the page contains one. `key`
    /// has the width of the table's keys.
    pub fn row_from(&self, place: PagePlace, key: &[u8]) -> Option<RowInPage> {
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

    /// Requests pages of rows that will be read, if the system accepts such advice.
    pub fn ask(&self, places: &[PagePlace]) {
        for place in places {
            will_need(&self.file, place.offset(), place.length());
        }
    }

    fn tables(&self, geometry: Geometry, root: Child) -> Vec<Arc<KnownTree>> {
        let mut tables = Vec::new();
        let mut pages = vec![root];
        for _ in 0..MAX_DEPTH {
            let Some(page) = pages.pop() else { break };
            let Some(bytes) = self.read(geometry, &page) else {
                continue;
            };
            match Page::parse(&bytes, Widths::default()) {
                Some(Page::Branch(branch)) => pages.extend(branch.children()),
                Some(Page::Leaf(leaf)) => tables.extend((0..leaf.rows()).filter_map(|row| {
                    Some(Arc::new(KnownTree {
                        name: leaf.key(row)?.to_vec(),
                        pages: TablePages::parse(leaf.value(row)?)?,
                        depth: OnceLock::new(),
                    }))
                })),
                None => {}
            }
        }
        tables
    }

    fn advise(&self, geometry: Geometry, steps: &[Step]) {
        let places = steps.iter().filter_map(|step| geometry.place(&step.page));
        let asked = places.filter(|(_, length)| *length <= MAX_PAGE_BYTES);
        asked.for_each(|(offset, length)| will_need(&self.file, offset, length));
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
        self.verification.counters.note_read(length);
        // While the lock is held, a waiting page is not mistaken for one that is at its place.
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
    // If the system accepts no advice, pages are read without it.
    let _ = rustix::fs::fadvise(file, offset, length, rustix::fs::Advice::WillNeed);
}

#[cfg(not(target_os = "linux"))]
fn will_need(_: &File, _: u64, _: usize) {}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use redb::TableDefinition;

    use crate::database::RedbFile;
    use crate::files::FileOptions;

    const BANDS: TableDefinition<'static, &'static [u8; 22], &[u8]> = TableDefinition::new("bands");
    const FILTERS: TableDefinition<'static, &'static [u8; 10], &[u8]> =
        TableDefinition::new("filters");

    fn block_key(code: u64) -> [u8; 22] {
        let mut key = [1; 22];
        key[6..14].copy_from_slice(&code.to_be_bytes());
        key
    }

    fn filter_key(piece: u64) -> [u8; 10] {
        let mut key = [1; 10];
        key[2..].copy_from_slice(&piece.to_be_bytes());
        key
    }

    const BLOCKS: u64 = 3_000;

    fn wanted(numbers: impl Iterator<Item = u64>) -> Vec<WantedRow> {
        let block = |code| WantedRow {
            table: "bands",
            key: block_key(code).to_vec(),
        };
        numbers.map(block).collect()
    }

    fn write(file: &RedbFile, first: u64) {
        let write = file.begin_write().unwrap();
        let mut bands = write.open_table(BANDS).unwrap();
        for code in (first..BLOCKS).step_by(2) {
            // Each value has the length of a block: one row in each page.
            let key = block_key(code);
            bands.insert(&key, [7; 4_060].as_slice()).unwrap();
        }
        drop(bands);
        let mut filters = write.open_table(FILTERS).unwrap();
        let key = filter_key(first);
        filters.insert(&key, [7; 4_000].as_slice()).unwrap();
        drop(filters);
        write.commit().unwrap();
    }

    /// Pages of rows are found after each commit, by the handle that made it and by others, each
    /// page once.
    #[test]
    fn page_finder_descends_from_the_root_to_each_row() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let options = FileOptions::default();
        let file = RedbFile::create(&path, &options).unwrap();
        // Returns the number of pages that contain the rows.
        let found = |file: &RedbFile, wanted: &[WantedRow]| {
            let finder = file.page_finder.as_ref().unwrap();
            let found = finder.find(wanted);
            let places = found.iter().flat_map(|leaves| {
                leaves.rows().iter().map(|row| {
                    let key = wanted[*row].key.as_slice();
                    let mut pages = leaves.pages();
                    let page = pages.find(|(last, _)| last.is_none_or(|last| last >= key));
                    page.unwrap().1.0
                })
            });
            places.collect::<BTreeSet<u64>>().len()
        };
        write(&file, 0);
        // Only every other row exists; for a missing one, the next is found.
        assert_eq!(found(&file, &wanted(0..199)), 100);
        write(&file, 1);
        assert_eq!(found(&file, &wanted(0..200)), 200);
        assert_eq!(found(&file, &wanted((0..BLOCKS).step_by(100))), 30);
        assert_eq!(found(&file, &wanted(BLOCKS + 5..BLOCKS + 7)), 1);
        let mut both = wanted([5, 2_000].into_iter());
        both.push(WantedRow {
            table: "filters",
            key: filter_key(1).to_vec(),
        });
        assert_eq!(found(&file, &both), 3);
        let unknown = WantedRow {
            table: "no table of a store",
            key: Vec::new(),
        };
        assert_eq!(found(&file, &[unknown]), 0);
        file.close().unwrap();
        let file = RedbFile::open_read_only(&path, &options).unwrap();
        assert_eq!(found(&file, &wanted(0..200)), 200);
        assert_eq!(found(&file, &[]), 0);
    }

    /// Each page of rows is visited together with the other pages of its parent, and rows are read
    /// at their places.
    #[test]
    fn rows_are_read_from_the_pages_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = RedbFile::create(&folder.path().join("file"), &FileOptions::default()).unwrap();
        let finder = file.page_finder.as_ref().unwrap();
        let visited = |wanted: &WantedRow| {
            let leaves = finder.find(std::slice::from_ref(wanted)).pop();
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
            key: filter_key(0).to_vec(),
        };
        // The only page has no parent.
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
        // A page refers to about eighty others, and to at least half that number.
        assert!((BLOCKS / 90..BLOCKS / 40).contains(&calls), "{calls}");
    }
}
