//! The pages of a file from the top down, without the engine and without changing anything.
//!
//! Every page is verified against the checksum that stands beside what refers to it. One that is
//! not as it must be is told with what lies below it; the walk goes on behind it.

use std::borrow::Cow;

use redb::StorageBackend;

use crate::engine::page_layout::{Branch, Child, Geometry, Leaf, PAGE_BYTES, Page, Widths};

/// The longest page that a row of the greatest length can be in.
const LONGEST_PAGE_BYTES: usize = 128 << 20;

/// No tree of a file is as deep: a branch has at least two pages below it.
const MOST_DEPTH: usize = 64;

/// The pages of an open file.
#[derive(Debug)]
pub(crate) struct PageFile {
    pub(crate) file: Box<dyn StorageBackend>,
    pub(crate) length_bytes: u64,
    pub(crate) geometry: Geometry,
}

impl PageFile {
    /// Where a page is, if it is within the file.
    pub(crate) fn place(&self, page: &Child) -> Option<(u64, usize)> {
        let (offset, length) = self.geometry.place(page)?;
        let end = offset.checked_add(length as u64)?;
        (end <= self.length_bytes && length <= LONGEST_PAGE_BYTES).then_some((offset, length))
    }

    pub(crate) fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// What cannot be read is as good as damaged.
    pub(crate) fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, Cow<'static, str>> {
        let mut bytes = vec![0; length];
        match self.file.read(offset, &mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) => Err(format!("it cannot be read: {error}").into()),
        }
    }

    /// The bytes of a page, if they are those that its checksum is of.
    pub(crate) fn verified(&self, page: &Child, widths: Widths) -> Option<Vec<u8>> {
        let (offset, length) = self.place(page)?;
        let bytes = self.read(offset, length).ok()?;
        is_verified(&bytes, widths, page).then_some(bytes)
    }

    /// Whether a page is as it must be.
    pub(crate) fn is_whole(&self, page: &Child, widths: Widths) -> bool {
        self.verified(page, widths).is_some()
    }
}

fn is_verified(bytes: &[u8], widths: Widths, page: &Child) -> bool {
    Page::parse(bytes, widths).is_some_and(|parsed| parsed.checksum() == page.checksum)
}

/// A tree of pages.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) name: Box<str>,
    /// None if it has no rows.
    pub(crate) root: Option<Child>,
    pub(crate) widths: Widths,
}

/// Keys as they are stored: those above one, up to another; unbounded where there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyRange {
    pub(crate) above: Option<Box<[u8]>>,
    pub(crate) up_to: Option<Box<[u8]>>,
}

/// A page that is not as it must be.
#[derive(Clone, Debug)]
pub(crate) struct DamagedPage {
    /// Of its first byte; none if it would be outside of the file.
    pub(crate) offset: Option<u64>,
    /// What can be below it.
    pub(crate) keys: KeyRange,
    /// How many pages are above it.
    pub(crate) depth: usize,
    pub(crate) detail: Cow<'static, str>,
    /// Whether something below it is out of reach.
    pub(crate) has_lost: bool,
}

/// A page of rows.
#[derive(Debug)]
pub(crate) struct LeafPage {
    bytes: Vec<u8>,
    widths: Widths,
    /// How many rows there seem to be, if the page is damaged.
    guessed_rows: Option<usize>,
}

impl LeafPage {
    pub(crate) fn leaf(&self) -> Option<Leaf<'_>> {
        if let Some(rows) = self.guessed_rows {
            return Leaf::of_rows(&self.bytes, self.widths, rows);
        }
        match Page::parse(&self.bytes, self.widths)? {
            Page::Leaf(leaf) => Some(leaf),
            Page::Branch(_) => None,
        }
    }

    /// A damaged page of which so many rows can be told apart.
    pub(crate) fn damaged(bytes: Vec<u8>, widths: Widths, rows: usize) -> Self {
        Self {
            bytes,
            widths,
            guessed_rows: Some(rows),
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.guessed_rows.is_none()
    }
}

/// What a walk comes to.
#[derive(Debug)]
pub(crate) enum Found {
    Leaf(LeafPage),
    /// With the bytes of the page, if it can be one of rows.
    Damaged(DamagedPage, Option<Vec<u8>>),
}

/// A page to be looked at.
#[derive(Debug)]
struct Step {
    page: Child,
    keys: KeyRange,
    depth: usize,
    /// The page above it is damaged, so that this need not be one.
    is_suspect: bool,
}

/// A walk over a tree, in the order of its keys.
#[derive(Debug)]
pub(crate) struct Walk {
    widths: Widths,
    /// The next one last.
    steps: Vec<Step>,
    seen: SeenPages,
}

impl Walk {
    pub(crate) fn new(tree: &Tree) -> Self {
        let root = tree.root.map(|page| Step {
            page,
            keys: KeyRange::default(),
            depth: 0,
            is_suspect: false,
        });
        Self {
            widths: tree.widths,
            steps: root.into_iter().collect(),
            seen: SeenPages::default(),
        }
    }

    pub(crate) fn widths(&self) -> Widths {
        self.widths
    }

    /// The next page of rows, or the next damaged page.
    pub(crate) fn next(&mut self, pages: &PageFile) -> Option<Found> {
        while let Some(step) = self.steps.pop() {
            let Some((offset, length)) = pages.place(&step.page) else {
                return Some(damaged(step, None, "the file ends before it"));
            };
            if step.is_suspect {
                // Whatever is there, nothing says where it belongs.
                let detail = "it is damaged, or what the damaged page above it says of it";
                return Some(damaged(step, Some(offset), detail));
            }
            if step.depth > MOST_DEPTH || !self.seen.insert(offset) {
                let detail = "it is below two pages, or below itself";
                return Some(damaged(step, Some(offset), detail));
            }
            let bytes = match pages.read(offset, length) {
                Ok(bytes) => bytes,
                Err(detail) => return Some(damaged(step, Some(offset), detail)),
            };
            if !is_verified(&bytes, self.widths, &step.page) {
                return Some(self.go_on_below(pages, step, offset, bytes));
            }
            match Page::parse(&bytes, self.widths) {
                Some(Page::Branch(branch)) => self.push_children(&step, &branch),
                _ => {
                    return Some(Found::Leaf(LeafPage {
                        bytes,
                        widths: self.widths,
                        guessed_rows: None,
                    }));
                }
            }
        }
        None
    }

    fn push_children(&mut self, above: &Step, branch: &Branch<'_>) {
        let first = self.steps.len();
        let mut from = above.keys.above.clone();
        for (place, page) in branch.children().enumerate() {
            let up_to = match branch.key(place) {
                Some(key) => Some(key.into()),
                None => above.keys.up_to.clone(),
            };
            let keys = KeyRange {
                above: from,
                up_to: up_to.clone(),
            };
            from = up_to;
            self.steps.push(Step {
                page,
                keys,
                depth: above.depth + 1,
                is_suspect: false,
            });
        }
        if let Some(children) = self.steps.get_mut(first..) {
            children.reverse();
        }
    }

    /// Tells of a damaged page, and goes on with the pages that it still leads to.
    fn go_on_below(&mut self, pages: &PageFile, step: Step, offset: u64, bytes: Vec<u8>) -> Found {
        let children = super::remains::children(pages, &bytes, self.widths);
        let detail = "its checksum is not the expected one";
        let (whole, other) = (children.whole.len(), children.other.len());
        if whole + other == 0 {
            return damaged_with(step, offset, detail, bytes);
        }
        let pushed = children.whole.into_iter().chain(children.other);
        let below = |(place, page): (usize, Child)| Step {
            page,
            keys: step.keys.clone(),
            depth: step.depth + 1,
            is_suspect: place >= whole,
        };
        let below: Vec<Step> = pushed.enumerate().map(below).collect();
        self.steps.extend(below.into_iter().rev());
        let detail = format!(
            "{detail}; {whole} of {} pages below it can be reached",
            whole + other
        );
        let mut found = DamagedPage::of(step, Some(offset), detail);
        found.has_lost = other > 0;
        Found::Damaged(found, None)
    }
}

impl DamagedPage {
    fn of(step: Step, offset: Option<u64>, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            offset,
            keys: step.keys,
            depth: step.depth,
            detail: detail.into(),
            has_lost: true,
        }
    }
}

fn damaged(step: Step, offset: Option<u64>, detail: impl Into<Cow<'static, str>>) -> Found {
    Found::Damaged(DamagedPage::of(step, offset, detail), None)
}

fn damaged_with(step: Step, offset: u64, detail: &'static str, bytes: Vec<u8>) -> Found {
    Found::Damaged(DamagedPage::of(step, Some(offset), detail), Some(bytes))
}

/// The pages of a tree that were seen: a bit for each of the file.
#[derive(Debug, Default)]
struct SeenPages(Vec<u64>);

impl SeenPages {
    /// Whether it is the first time.
    fn insert(&mut self, offset: u64) -> bool {
        let page = usize::try_from(offset / PAGE_BYTES as u64).unwrap_or(usize::MAX);
        if self.0.len() <= page / 64 {
            self.0.resize(page / 64 + 1, 0);
        }
        let Some(word) = self.0.get_mut(page / 64) else {
            return false;
        };
        let bit = 1 << (page % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}
