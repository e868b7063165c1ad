//! Finds the commit that a file holds, and its tables.

use std::convert::Infallible;
use std::path::Path;

use crate::engine_error::{EngineError, PAGE_PLACE, Result};
use crate::files::{FileOptions, OpenFile};
use crate::journaled_file::JournaledFile;
use crate::layout::unknown_layout;
use crate::layout_check::check_engine;
use crate::page_layout::{
    Child, HEAD_BYTES, Head, HeadSeal, SEALED_HEAD_BYTES, Slot, TablePages, Widths, check_head,
    copy, remaining_slots, was_sealed,
};
use crate::page_tree::page_file::PageFile;
use crate::page_tree::remains::{intact_rows, meant};
use crate::page_tree::walk::{LeafPage, PageDamage, Tree, Walk, WalkStep};

/// The pages of the commit in a file.
#[derive(Debug)]
pub struct Commit {
    /// The pages of the file.
    pub pages: PageFile,
    /// The trees that define tables: those of the user, and the engine's own.
    roots: Vec<Tree>,
    /// Problems of the first bytes of the file.
    pub head: Vec<HeadDamage>,
    /// True if this is, or may be, the commit before the last one.
    pub is_earlier: bool,
}

/// Opens a file to read its pages. No process may write it meanwhile. With `any`, the file need not
/// look like a store.
///
/// # Errors
/// [`EngineError::NotFound`], [`EngineError::Foreign`], [`EngineError::UnknownLayout`],
/// [`EngineError::Locked`], [`EngineError::Io`].
pub fn open_commit(path: &Path, options: &FileOptions, any: bool) -> Result<Commit> {
    check_engine()?;
    let file = options.wait_for(|| OpenFile::open_shared(path, options))?;
    let reading = |error| EngineError::io("reading", path, error);
    let (file, lost) = JournaledFile::open_damaged(file).map_err(reading)?;
    let length_bytes = file.len().map_err(reading)?;
    let mut sealed = [0; SEALED_HEAD_BYTES];
    let known =
        usize::try_from(length_bytes).map_or(SEALED_HEAD_BYTES, |n| n.min(SEALED_HEAD_BYTES));
    let (start, _) = sealed.split_at_mut(known);
    file.read(0, start).map_err(reading)?;
    if !any && check_head(&sealed) != HeadSeal::Intact && !was_sealed(&sealed) {
        let reason = "its first bytes are not those of a store";
        return Err(EngineError::foreign(path, reason));
    }
    // Refusing the file is better than reading unknown data and reporting losses.
    if let Some(found) = unknown_layout(&sealed) {
        return Err(EngineError::UnknownLayout { found });
    }
    let mut head = [0; HEAD_BYTES];
    copy(&mut head, &sealed);
    let parsed = Head::parse(&head).filter(|_| check_head(&sealed) == HeadSeal::Intact);
    let damage = parsed
        .is_none()
        .then(|| HeadDamage::of_head("its checksum is not the expected one"));
    // An incomplete head may refer to a commit whose pages were never written.
    let may_be_torn = parsed.is_none_or(|head| head.may_be_torn);
    let (geometry, slots) = match parsed {
        Some(head) => {
            let intact = head.slots.into_iter().filter(|slot| slot.is_intact);
            (head.geometry, intact.collect())
        }
        None => remaining_slots(&head),
    };
    let pages = PageFile {
        file,
        length_bytes,
        geometry,
    };
    let head = damage
        .into_iter()
        .chain(lost.map(HeadDamage::of_journal))
        .collect();
    let mut commit = choose(pages, &slots, may_be_torn, head);
    commit.is_earlier |= lost.is_some();
    Ok(commit)
}

/// A damaged part of the file on the way to its commits.
#[derive(Clone, Debug)]
pub struct HeadDamage {
    /// The part of the file. It begins with [`PAGE_PLACE`].
    pub place: String,
    /// A description of the fault.
    pub detail: &'static str,
}

impl HeadDamage {
    fn of_head(detail: &'static str) -> Self {
        Self {
            place: format!("{PAGE_PLACE}0, the head of the file"),
            detail,
        }
    }

    fn of_journal(offset: u64) -> Self {
        Self {
            place: format!("{PAGE_PLACE}{offset}, the journal"),
            detail: "it is damaged, so its last commits cannot be read",
        }
    }
}

/// Chooses the newest commit whose root can be read. After a crash the last commit may be
/// incomplete; then the one before it is chosen if that is complete.
fn choose(pages: PageFile, slots: &[Slot], may_be_torn: bool, head: Vec<HeadDamage>) -> Commit {
    let mut commit = Commit {
        pages,
        roots: Vec::new(),
        head,
        is_earlier: false,
    };
    let readable = |commit: &Commit, slot: &Slot| {
        let root = |root: &Child| commit.pages.is_whole(root, Widths::default());
        slot.tables.is_none_or(|tables| root(&tables))
    };
    let is_whole = |commit: &mut Commit, slot: &Slot| {
        commit.roots = roots(slot);
        let walked = commit.walk_all(|_, found| match found {
            WalkStep::Leaf(_) => Ok(()),
            WalkStep::Damaged(..) => Err(()),
        });
        walked.is_ok()
    };
    let mut chosen = None;
    if may_be_torn {
        // A torn commit may have an intact root and lack any page below it, so every page must be
        // read.
        chosen = (0..slots.len()).find(|place| {
            let slot = slots.get(*place);
            slot.is_some_and(|slot| is_whole(&mut commit, slot))
        });
    }
    // If neither commit is complete there is other damage, and the newest commit with a readable
    // root preserves most.
    let by_root = || slots.iter().position(|slot| readable(&commit, slot));
    // If no root can be read, the walk below the newest root reports what is wrong.
    let place = chosen.or_else(by_root).unwrap_or(0);
    let tables = |place: usize| slots.get(place).map(|slot| slot.tables);
    // The engine makes commits that do not change the user's tables.
    let is_other = place > 0 && tables(place) != tables(0);
    // If one of the two commits is lost, it may have been the last.
    commit.is_earlier = is_other || (!commit.head.is_empty() && slots.len() == 1);
    // A head may have no intact commit at all, which is reported below.
    commit.roots = slots.get(place).map(roots).unwrap_or_default();
    if commit.roots.is_empty() {
        let damage = HeadDamage::of_head("it does not lead to a commit");
        commit.head.push(damage);
    }
    commit
}

fn roots(slot: &Slot) -> Vec<Tree> {
    let tree = |name: &str, root: Child| Tree {
        name: name.into(),
        root: Some(root),
        widths: Widths::default(),
    };
    let tables = slot.tables.map(|root| tree("of tables", root));
    let system = slot
        .system_tables
        .map(|root| tree("of the engine's tables", root));
    tables.into_iter().chain(system).collect()
}

impl Commit {
    /// Walks over all trees, and calls `notify` with each step and its tree. Stops if that returns
    /// an error.
    pub fn walk_all<E>(
        &self,
        mut notify: impl FnMut(&Tree, &WalkStep) -> Result<(), E>,
    ) -> Result<(), E> {
        for root in &self.roots {
            let tables = self.tables(root, true, &mut |found| notify(root, found))?;
            for table in tables {
                let mut walk = Walk::new(&table);
                while let Some(found) = walk.next(&self.pages) {
                    notify(&table, &found)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the user's tables whose definitions can be read.
    pub fn our_tables(&self, damage: &mut Vec<(PageDamage, Box<str>)>) -> Vec<Tree> {
        let Some(root) = self.roots.first() else {
            return Vec::new();
        };
        let Ok(tables) = self.tables(root, false, &mut |found| {
            if let WalkStep::Damaged(page, _) = found {
                damage.push((page.clone(), root.name.clone()));
            }
            Ok::<(), Infallible>(())
        });
        tables
    }

    /// Returns the trees that one tree defines. From damaged definitions it returns those that lead
    /// to a page, or with `any` all that can be recognized.
    fn tables<E>(
        &self,
        root: &Tree,
        any: bool,
        notify: &mut dyn FnMut(&WalkStep) -> Result<(), E>,
    ) -> Result<Vec<Tree>, E> {
        let mut tables: Vec<Tree> = Vec::new();
        let mut walk = Walk::new(root);
        while let Some(found) = walk.next(&self.pages) {
            notify(&found)?;
            let page = match found {
                WalkStep::Leaf(page) => page,
                WalkStep::Damaged(_, Some(bytes)) => {
                    // A definition contains the checksum of its root.
                    let leads = |_: &[u8], row: &[u8]| self.meant_root(row).is_some();
                    let Some((rows, _)) = intact_rows(&bytes, root.widths, leads) else {
                        continue;
                    };
                    LeafPage::damaged(bytes, root.widths, rows)
                }
                WalkStep::Damaged(_, None) => continue,
            };
            let Some(leaf) = page.leaf() else {
                continue;
            };
            let rows = (0..leaf.rows()).filter_map(|row| leaf.key(row).zip(leaf.value(row)));
            for (name, row) in rows {
                let table = self.definition(name, row, page.is_whole(), any);
                // A page that occurs twice must not be walked twice.
                let is_new = |table: &Tree| tables.iter().all(|other| other.name != table.name);
                tables.extend(table.filter(is_new));
            }
        }
        Ok(tables)
    }

    fn definition(&self, name: &[u8], row: &[u8], is_whole: bool, any: bool) -> Option<Tree> {
        let table = TablePages::parse(row)?;
        let root = if is_whole {
            table.root
        } else {
            let root = self.meant_root(row);
            Some(root.or_else(|| table.root.filter(|_| any))?)
        };
        Some(Tree {
            name: std::str::from_utf8(name).ok()?.into(),
            root,
            widths: table.widths,
        })
    }

    /// Returns the root that a definition in a damaged page most probably means.
    fn meant_root(&self, row: &[u8]) -> Option<Child> {
        let table = TablePages::parse(row)?;
        meant(&self.pages, &table.root?, table.widths)
    }
}
