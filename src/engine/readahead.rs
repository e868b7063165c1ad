//! Asks the operating system for pages that are about to be read, all at once: the disk reads many in the
//! time of one.
//!
//! The engine finds a page from the top of its tree down, one after the other, and it says no page's place.
//! So the way down is gone here as well, level by level for all rows together, over the pages of the last
//! commit that this handle has read or written. What comes of it is advice: a page that has moved since is
//! asked for in vain, and whoever reads a page for its rows reads and verifies it through the engine.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::engine::files::FileOptions;
use crate::engine::page_layout::{Child, Geometry, Page, TablePages, Widths};
use crate::engine::verified_file::Verification;
use crate::sync::IgnorePoison;

/// No tree of a file is as deep.
const MAX_DEPTH: usize = 64;

/// Pages of rows longer than this are not asked for.
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

/// Asks for pages of an open file.
#[derive(Debug)]
pub(crate) struct Readahead {
    /// A handle of its own, for reading, beside the engine's.
    file: File,
    verification: Arc<Verification>,
}

/// A page on the way down to some rows.
struct Step<'w> {
    page: Child,
    widths: Widths,
    key: &'w [u8],
}

impl Readahead {
    /// `None` where the system takes no such advice, or the file is none of the system's.
    pub(super) fn open(
        path: &Path,
        options: &dyn FileOptions,
        verification: &Arc<Verification>,
    ) -> Option<Self> {
        if !cfg!(target_os = "linux") || !options.file_source().are_shared() {
            return None;
        }
        Some(Self {
            file: File::open(path).ok()?,
            verification: Arc::clone(verification),
        })
    }

    /// Asks for the pages of rows that will be read. Returns the number of pages of rows that it found, for
    /// tests.
    pub(crate) fn ask(&self, wanted: &[WantedRow]) -> usize {
        let Some((geometry, root)) = self.verification.last_tables() else {
            return 0;
        };
        let tables = self.tables(geometry, root);
        let start = |row: &'_ WantedRow| {
            let mut tables = tables.iter();
            let (_, table) = tables.find(|(name, _)| name == row.table.as_bytes())?;
            Some((table.root?, table.widths))
        };
        let steps = wanted.iter().filter_map(|row| {
            let (page, widths) = start(row)?;
            let key = row.key.as_slice();
            Some(Step { page, widths, key })
        });
        self.descend(geometry, steps.collect())
    }

    /// Goes down from pages of one level or of several trees, until rows are reached.
    fn descend(&self, geometry: Geometry, mut steps: Vec<Step<'_>>) -> usize {
        let mut found = 0;
        for _ in 0..MAX_DEPTH {
            steps.sort_by_key(|step| step.page.number);
            let pages = steps.chunk_by(|a, b| a.page.number == b.page.number);
            let pages: Vec<&[Step<'_>]> = pages.collect();
            if pages.is_empty() {
                break;
            }
            for page in &pages {
                self.advise(geometry, page);
            }
            let mut below = Vec::with_capacity(steps.len());
            // All rows of a tree are equally deep, so that the first page tells if others are worth reading.
            let mut leaves: Option<Widths> = None;
            for page in pages {
                let Some(first) = page.first() else { continue };
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
                            let is_before =
                                |place| branch.key(place).is_some_and(|key| key < step.key);
                            let place = (0..).take_while(|place| is_before(*place)).count();
                            if let Some(child) = branch.children().nth(place) {
                                let page = child;
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

    /// The tables of the file by their names.
    fn tables(&self, geometry: Geometry, root: Child) -> Vec<(Vec<u8>, TablePages)> {
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
                    let table = TablePages::parse(leaf.value(row)?)?;
                    Some((leaf.key(row)?.to_vec(), table))
                })),
                None => {}
            }
        }
        tables
    }

    fn advise(&self, geometry: Geometry, page: &[Step<'_>]) {
        let place = page.first().and_then(|step| geometry.place(&step.page));
        if let Some((offset, length)) = place.filter(|(_, length)| *length <= MAX_PAGE_BYTES) {
            will_need(&self.file, offset, length);
        }
    }

    fn read(&self, geometry: Geometry, page: &Child) -> Option<Vec<u8>> {
        let (offset, length) = geometry.place(page)?;
        if length > MAX_PAGE_BYTES {
            return None;
        }
        let mut bytes = vec![0; length];
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
            |file: &RedbFile, wanted: &[WantedRow]| file.readahead.as_ref().unwrap().ask(wanted);
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
}
