//! Walks over page trees from the top down, in the order of keys.
//!
//! The walk verifies every page against the checksum beside the reference to it. It reports a
//! damaged page, and continues with the pages to which that page still leads.

use std::borrow::Cow;

use crate::journaled_file::PageSet;
use crate::page_layout::{Branch, Child, Leaf, PAGE_BYTES, Page, Widths};
use crate::page_tree::page_file::{PageFile, is_verified};
use crate::page_tree::remains::children;

/// The maximum depth. No tree of a file is deeper, because a branch has at least two children.
const MAX_DEPTH: usize = 64;

/// A tree of pages.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The name of the table.
    pub name: Box<str>,
    /// The root page, or `None` if the table has no rows.
    pub(super) root: Option<Child>,
    /// The widths of its rows.
    pub widths: Widths,
}

/// A range of stored keys: greater than one key, up to and including another. A side without a key
/// is unbounded.
#[derive(Clone, Debug, Default)]
pub struct KeyRange {
    /// The greatest key before the range.
    pub above: Option<Box<[u8]>>,
    /// The last key of the range.
    pub up_to: Option<Box<[u8]>>,
}

/// A damaged page.
#[derive(Clone, Debug)]
pub struct PageDamage {
    /// The offset of its first byte, or `None` if it is outside the file.
    pub offset: Option<u64>,
    /// The range of keys that can be below it.
    pub keys: KeyRange,
    /// The number of pages above it.
    pub depth: usize,
    /// A description of the fault.
    pub detail: Cow<'static, str>,
    /// True if rows below it are lost.
    pub has_lost: bool,
}

/// A page of rows.
#[derive(Debug)]
pub struct LeafPage {
    bytes: Vec<u8>,
    widths: Widths,
    /// The apparent number of rows, if the page is damaged.
    guessed_rows: Option<usize>,
}

impl LeafPage {
    /// Returns the rows of the page, or what appear to be its rows.
    pub fn leaf(&self) -> Option<Leaf<'_>> {
        if let Some(rows) = self.guessed_rows {
            return Leaf::of_rows(&self.bytes, self.widths, rows);
        }
        match Page::parse(&self.bytes, self.widths)? {
            Page::Leaf(leaf) => Some(leaf),
            Page::Branch(_) => None,
        }
    }

    /// Creates a damaged page with this number of recognizable rows.
    pub fn damaged(bytes: Vec<u8>, widths: Widths, rows: usize) -> Self {
        Self {
            bytes,
            widths,
            guessed_rows: Some(rows),
        }
    }

    /// Returns true if the page is not damaged.
    pub fn is_whole(&self) -> bool {
        self.guessed_rows.is_none()
    }

    /// Returns the length of the page.
    pub fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// One step of a walk.
#[derive(Debug)]
pub enum WalkStep {
    /// A page that is not damaged.
    Leaf(LeafPage),
    /// A damaged page, with its bytes if it may be a page of rows.
    Damaged(PageDamage, Option<Vec<u8>>),
}

/// A page that the walk has yet to read.
#[derive(Debug)]
struct PendingPage {
    page: Child,
    keys: KeyRange,
    depth: usize,
    /// True if the page above is damaged, so that this may not be a page at all.
    is_suspect: bool,
}

/// A walk over a tree, in the order of its keys.
#[derive(Debug)]
pub struct Walk {
    widths: Widths,
    /// A stack, whose last entry is the next page.
    steps: Vec<PendingPage>,
    /// The pages visited so far. Damage can make a page refer to one above it, and the walk must
    /// end.
    seen: PageSet,
}

impl Walk {
    /// Begins a walk.
    pub fn new(tree: &Tree) -> Self {
        let root = tree.root.map(|page| PendingPage {
            page,
            keys: KeyRange::default(),
            depth: 0,
            is_suspect: false,
        });
        Self {
            widths: tree.widths,
            steps: root.into_iter().collect(),
            seen: PageSet::default(),
        }
    }

    /// Returns the widths of the rows of the tree.
    pub fn widths(&self) -> Widths {
        self.widths
    }

    /// Returns the next page of rows or the next damaged page.
    pub fn next(&mut self, pages: &PageFile) -> Option<WalkStep> {
        while let Some(step) = self.steps.pop() {
            let Some((offset, length)) = pages.place(&step.page) else {
                let damage = step.damaged(None, "the file ends before it");
                return Some(WalkStep::Damaged(damage, None));
            };
            if step.is_suspect {
                // Nothing shows where the contents of this page belong.
                let detail = "it is damaged, or the damaged page above it describes it wrongly";
                return Some(WalkStep::Damaged(step.damaged(Some(offset), detail), None));
            }
            if step.depth > MAX_DEPTH || !self.seen.insert(offset / PAGE_BYTES as u64) {
                let detail = "it is below two pages, or below itself";
                return Some(WalkStep::Damaged(step.damaged(Some(offset), detail), None));
            }
            let bytes = match pages.read(offset, length) {
                Ok(bytes) => bytes,
                Err(detail) => {
                    let damage = step.damaged(Some(offset), detail);
                    return Some(WalkStep::Damaged(damage, None));
                }
            };
            if !is_verified(&bytes, self.widths, &step.page) {
                return Some(self.go_on_below(pages, step, offset, bytes));
            }
            match Page::parse(&bytes, self.widths) {
                Some(Page::Branch(branch)) => self.push_children(&step, &branch),
                _ => {
                    return Some(WalkStep::Leaf(LeafPage {
                        bytes,
                        widths: self.widths,
                        guessed_rows: None,
                    }));
                }
            }
        }
        None
    }

    fn push_children(&mut self, above: &PendingPage, branch: &Branch<'_>) {
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
            self.steps.push(PendingPage {
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

    /// Reports a damaged page, and queues the pages to which it still leads.
    fn go_on_below(
        &mut self,
        pages: &PageFile,
        step: PendingPage,
        offset: u64,
        bytes: Vec<u8>,
    ) -> WalkStep {
        let remaining = children(pages, &bytes, self.widths);
        let detail = "its checksum is not the expected one";
        let (whole, other) = (remaining.whole.len(), remaining.other.len());
        if whole + other == 0 {
            return WalkStep::Damaged(step.damaged(Some(offset), detail), Some(bytes));
        }
        let pushed = remaining.whole.into_iter().chain(remaining.other);
        let below = |(place, page): (usize, Child)| PendingPage {
            page,
            keys: step.keys.clone(),
            depth: step.depth + 1,
            is_suspect: place >= whole,
        };
        let below: Vec<PendingPage> = pushed.enumerate().map(below).collect();
        self.steps.extend(below.into_iter().rev());
        let detail = format!(
            "{detail}; {whole} of {} pages below it can be reached",
            whole + other
        );
        let has_lost = other > 0;
        let damage = step.damaged(Some(offset), detail);
        WalkStep::Damaged(PageDamage { has_lost, ..damage }, None)
    }
}

impl PendingPage {
    fn damaged(self, offset: Option<u64>, detail: impl Into<Cow<'static, str>>) -> PageDamage {
        PageDamage {
            offset,
            keys: self.keys,
            depth: self.depth,
            detail: detail.into(),
            has_lost: true,
        }
    }
}
