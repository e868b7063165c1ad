//! The layout of the storage engine's pages, as far as it determines the checksum of each page.
//!
//! The engine stores the checksum of a page beside each reference to it: in the parent branch, in
//! the table's definition, or in the first bytes of the file. The engine itself checks them only
//! for repair. This crate reads them, so that it can verify every page whenever it is read.

use std::ops::Range;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// The smallest size of a page. The engine's pages have this size times a power of two.
pub const PAGE_BYTES: usize = 4_096;

/// The length of the head that the engine writes at the beginning of the file.
pub(crate) const HEAD_BYTES: usize = 320;

/// The length of the head with the seal that follows it. Both are in one sector, so neither is
/// written without the other.
pub(crate) const SEALED_HEAD_BYTES: usize = HEAD_BYTES + 16;

/// The first bytes of every file of the engine.
pub(crate) const ENGINE_MAGIC: &[u8; 9] = b"redb\x1a\x0a\xa9\x0d\x0a";

/// The magic of the seal that follows the head. Its last byte is the number of the page layout.
pub(crate) const SEAL_MAGIC: &[u8; 8] = b"RESEMBL\x1a";

const LEAF: u8 = 1;
const BRANCH: u8 = 2;

/// The version of the engine's file format that this crate knows.
pub(crate) const ENGINE_VERSION: u8 = 3;

/// The offsets of the two commits in the head, and their length.
pub(crate) const SLOT_OFFSETS: [usize; 2] = [64, 64 + SLOT_BYTES];
pub(crate) const SLOT_BYTES: usize = 128;

const TWO_PHASE: u8 = 4;

/// The engine's code for a table with one value for each key.
const PLAIN_TABLE: u8 = 3;

/// Copies the bytes of `from` over those of `to`, up to the shorter length.
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

/// Returns the head with its seal.
pub(crate) fn seal_head(head: &[u8; HEAD_BYTES]) -> [u8; SEALED_HEAD_BYTES] {
    let mut sealed = [0; SEALED_HEAD_BYTES];
    let checksum = xxh3_64(head).to_le_bytes();
    copy(&mut sealed, &[head, &SEAL_MAGIC[..], &checksum].concat());
    sealed
}

/// The state of the seal that follows the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadSeal {
    Intact,
    Damaged,
    /// This crate never wrote the page.
    Foreign,
}

pub(crate) fn check_head(sealed: &[u8; SEALED_HEAD_BYTES]) -> HeadSeal {
    let (head, seal) = sealed.split_at(HEAD_BYTES);
    if seal.iter().all(|byte| *byte == 0) {
        return HeadSeal::Foreign;
    }
    let Some((magic, checksum)) = seal.split_first_chunk() else {
        return HeadSeal::Damaged;
    };
    if magic == SEAL_MAGIC && checksum == xxh3_64(head).to_le_bytes() {
        HeadSeal::Intact
    } else {
        HeadSeal::Damaged
    }
}

/// The flag of a head whose commit is not synced yet. Other processes then use the commit before
/// it.
const UNFLUSHED: u8 = 8;

/// The offset of the flags in the head.
const FLAGS_OFFSET: usize = 9;

/// Returns true if the head's last commit is not synced yet.
pub(crate) fn is_unflushed(head: &[u8]) -> bool {
    head.get(FLAGS_OFFSET)
        .is_some_and(|flags| flags & UNFLUSHED != 0)
}

/// Returns the sealed head of a page as it will be when its commit is synced.
pub(crate) fn flushed_head(page: &[u8]) -> [u8; SEALED_HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    copy(&mut head, page);
    if let Some(flags) = head.get_mut(FLAGS_OFFSET) {
        *flags &= !UNFLUSHED;
    }
    seal_head(&head)
}

pub(crate) fn array<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk().copied()
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<usize> {
    array(bytes, offset).map(|bytes| u16::from_le_bytes(bytes).into())
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    array(bytes, offset).map(u32::from_le_bytes)
}

fn usize_at(bytes: &[u8], offset: usize) -> Option<usize> {
    usize::try_from(u32_at(bytes, offset)?).ok()
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    array(bytes, offset).map(u64::from_le_bytes)
}

fn u128_at(bytes: &[u8], offset: usize) -> Option<u128> {
    array(bytes, offset).map(u128::from_le_bytes)
}

/// A reference to a page: its number, and the checksum that it must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    pub(super) number: u64,
    pub(super) checksum: u128,
}

/// Maps page numbers to offsets in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    header_pages: u64,
    region_pages: u64,
}

impl Geometry {
    /// The geometry of every file that the engine makes with pages of this size.
    pub(crate) const USUAL: Self = Self {
        header_pages: 0,
        region_pages: 1 << 20,
    };

    /// Returns the offset of a page and its length in bytes, or `None` if no such page can exist.
    pub(crate) fn place(&self, child: &Child) -> Option<(u64, usize)> {
        let order = u32::try_from(child.number >> 59).ok()?;
        if order > 20 {
            return None;
        }
        let index = child.number & (0xf_ffff >> order);
        let region = (child.number >> 20) & 0xf_ffff;
        let region_pages = self.header_pages + self.region_pages;
        let page = region * region_pages + self.header_pages + (index << order);
        // The first page of the file belongs to no region.
        let offset = (page + 1) * PAGE_BYTES as u64;
        Some((offset, PAGE_BYTES << order))
    }
}

/// One of the two commits that a head refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(super) tables: Option<Child>,
    pub(super) system_tables: Option<Child>,
    pub(super) is_intact: bool,
    pub(super) transaction: u64,
}

/// The first bytes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(super) geometry: Geometry,
    /// The valid commit, and the one before it.
    pub(super) slots: [Slot; 2],
    /// True if the last commit may be incomplete: it was not made in two phases, so only the
    /// checksums of its pages show whether it is complete. Closing a file ends with a commit of two
    /// phases. The engine's mark for recovery does not suffice: while a torn commit is rolled back,
    /// the mark is gone but the head still refers to that commit.
    pub(super) may_be_torn: bool,
    /// True if the newer commit is not synced yet. Processes other than its writer use the older
    /// one.
    pub(super) is_unflushed: bool,
}

impl Head {
    /// Returns true if the other commit is later than the valid one.
    pub(crate) fn has_later_commit(&self) -> bool {
        let [counting, other] = &self.slots;
        other.transaction > counting.transaction
    }

    /// Parses the head. Returns `None` if the engine's format is a different one or the bytes are
    /// not valid.
    pub(crate) fn parse(head: &[u8; HEAD_BYTES]) -> Option<Self> {
        let flags = *head.get(FLAGS_OFFSET)?;
        let geometry = Geometry {
            header_pages: u32_at(head, 16)?.into(),
            region_pages: u32_at(head, 20)?.into(),
        };
        let is_known = head.starts_with(ENGINE_MAGIC)
            && usize_at(head, 12)? == PAGE_BYTES
            && geometry.header_pages <= 1 << 20
            && (1..=1 << 20).contains(&geometry.region_pages);
        let primary = usize::from(flags & 1);
        let slots = [slot(head, primary)?, slot(head, 1 - primary)?];
        is_known.then_some(Self {
            geometry,
            slots,
            may_be_torn: flags & TWO_PHASE == 0,
            is_unflushed: is_unflushed(head),
        })
    }
}

/// Returns those commits of a damaged head that have right checksums, the newer one first. Assumes
/// the usual geometry.
pub(crate) fn remaining_slots(head: &[u8; HEAD_BYTES]) -> (Geometry, Vec<Slot>) {
    let slots = [0, 1].map(|number| slot(head, number).filter(|slot| slot.is_intact));
    let mut slots: Vec<Slot> = slots.into_iter().flatten().collect();
    slots.sort_by_key(|slot| std::cmp::Reverse(slot.transaction));
    (Geometry::USUAL, slots)
}

/// Returns true if the first bytes of a file are those of a store, even a damaged one.
pub(crate) fn was_sealed(sealed: &[u8; SEALED_HEAD_BYTES]) -> bool {
    let (_, seal) = sealed.split_at(HEAD_BYTES);
    seal.starts_with(SEAL_MAGIC)
        || sealed.starts_with(ENGINE_MAGIC) && check_head(sealed) == HeadSeal::Damaged
}

fn slot(head: &[u8; HEAD_BYTES], number: usize) -> Option<Slot> {
    let bytes = head.get(*SLOT_OFFSETS.get(number)?..)?.get(..SLOT_BYTES)?;
    let (body, checksum) = bytes.split_at(112);
    let is_there = |flag: usize| body.get(flag).is_some_and(|flag| *flag != 0);
    let root = |offset| {
        let (number, checksum) = (u64_at(body, offset)?, u128_at(body, offset + 8)?);
        Some(Child { number, checksum })
    };
    let slot = Slot {
        tables: root(8).filter(|_| is_there(1)),
        system_tables: root(40).filter(|_| is_there(2)),
        is_intact: checksum == xxh3_128(body).to_le_bytes(),
        transaction: u64_at(body, 104)?,
    };
    (*body.first()? == ENGINE_VERSION).then_some(slot)
}

/// The widths of keys and values in bytes, if all rows of a tree have the same. The default is that
/// of the tree whose rows define tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Widths {
    /// The width of keys; `None` if they differ.
    pub key: Option<usize>,
    /// The width of values; `None` if they differ.
    pub value: Option<usize>,
}

/// A page of a tree.
#[derive(Clone, Copy, Debug)]
pub enum Page<'a> {
    /// A page of rows.
    Leaf(Leaf<'a>),
    /// A page that refers to the pages below it.
    Branch(Branch<'a>),
}

impl<'a> Page<'a> {
    /// Parses a page, or returns `None` if the bytes cannot be a page of such a tree.
    pub fn parse(bytes: &'a [u8], widths: Widths) -> Option<Self> {
        match *bytes.first()? {
            LEAF => Leaf::parse(bytes, widths).map(Self::Leaf),
            BRANCH => Branch::parse(bytes, widths).map(Self::Branch),
            _ => None,
        }
    }

    /// Returns the engine's checksum of the page. It covers the contents, not the unused room.
    pub(crate) fn checksum(&self) -> u128 {
        let (bytes, end) = match self {
            Self::Leaf(leaf) => (leaf.bytes, leaf.end),
            Self::Branch(branch) => (branch.bytes, branch.end),
        };
        xxh3_128(bytes.get(..end).unwrap_or(bytes))
    }
}

/// Returns true if the type byte of a page is that of a branch.
pub(crate) fn is_branch(bytes: &[u8]) -> bool {
    bytes.first() == Some(&BRANCH)
}

/// Returns the number of rows, or of a branch's keys, that a page states.
pub fn stated_count(bytes: &[u8]) -> usize {
    // A page too short to state a number has no rows.
    u16_at(bytes, 2).unwrap_or(0)
}

/// A page of rows.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'a> {
    bytes: &'a [u8],
    widths: Widths,
    rows: usize,
    end: usize,
}

impl<'a> Leaf<'a> {
    fn parse(bytes: &'a [u8], widths: Widths) -> Option<Self> {
        let rows = u16_at(bytes, 2)?;
        let mut leaf = Self {
            bytes,
            widths,
            rows,
            end: 0,
        };
        leaf.end = leaf.value_end(rows.checked_sub(1)?)?;
        (leaf.end <= bytes.len()).then_some(leaf)
    }

    /// Parses a page that may be damaged. If `rows` is not 0, it replaces the stated number of
    /// rows.
    pub fn of_rows(bytes: &'a [u8], widths: Widths, rows: usize) -> Option<Self> {
        let end = bytes.len();
        (rows > 0).then_some(Self {
            bytes,
            widths,
            rows,
            end,
        })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the stated end of the last row, or `None` unless the ends of all rows ascend.
    pub fn stated_ends(&self) -> Option<usize> {
        let mut end = 0;
        for row in 0..self.rows {
            let next = self.value_end(row)?;
            if next < end {
                return None;
            }
            end = next;
        }
        Some(end)
    }

    fn keys_start(&self) -> Option<usize> {
        let tables =
            usize::from(self.widths.key.is_none()) + usize::from(self.widths.value.is_none());
        self.rows.checked_mul(4 * tables)?.checked_add(4)
    }

    fn key_end(&self, row: usize) -> Option<usize> {
        match self.widths.key {
            Some(width) => width.checked_mul(row + 1)?.checked_add(self.keys_start()?),
            None => usize_at(self.bytes, 4 + 4 * row),
        }
    }

    fn value_end(&self, row: usize) -> Option<usize> {
        match self.widths.value {
            Some(width) => {
                let start = self.key_end(self.rows.checked_sub(1)?)?;
                width.checked_mul(row + 1)?.checked_add(start)
            }
            None if self.widths.key.is_some() => usize_at(self.bytes, 4 + 4 * row),
            None => usize_at(self.bytes, 4 + 4 * (self.rows + row)),
        }
    }

    /// Returns the key of a row.
    pub fn key(&self, row: usize) -> Option<&'a [u8]> {
        self.bytes.get(self.key_range(row)?)
    }

    /// Returns the value of a row.
    pub fn value(&self, row: usize) -> Option<&'a [u8]> {
        self.bytes.get(self.value_range(row)?)
    }

    /// Returns the range of bytes of a row's key in the page.
    pub fn key_range(&self, row: usize) -> Option<Range<usize>> {
        if row >= self.rows {
            return None;
        }
        let start = match row.checked_sub(1) {
            Some(before) => self.key_end(before)?,
            None => self.keys_start()?,
        };
        Some(start..self.key_end(row)?)
    }

    /// Returns the range of bytes of a row's value in the page.
    pub fn value_range(&self, row: usize) -> Option<Range<usize>> {
        if row >= self.rows {
            return None;
        }
        let start = match row.checked_sub(1) {
            Some(before) => self.value_end(before)?,
            None => self.key_end(self.rows - 1)?,
        };
        Some(start..self.value_end(row)?)
    }
}

/// A page that refers to other pages.
#[derive(Clone, Copy, Debug)]
pub struct Branch<'a> {
    bytes: &'a [u8],
    widths: Widths,
    keys: usize,
    end: usize,
}

impl<'a> Branch<'a> {
    fn parse(bytes: &'a [u8], widths: Widths) -> Option<Self> {
        let keys = u16_at(bytes, 2)?;
        let mut branch = Self {
            bytes,
            widths,
            keys,
            end: 0,
        };
        branch.end = branch.key_end(keys.checked_sub(1)?)?;
        (branch.keys_start() <= branch.end && branch.end <= bytes.len()).then_some(branch)
    }

    /// Parses a page that may be damaged. If `keys` is not 0, it replaces the stated number of
    /// keys.
    pub(crate) fn of_keys(bytes: &'a [u8], widths: Widths, keys: usize) -> Option<Self> {
        let end = bytes.len();
        (keys > 0).then_some(Self {
            bytes,
            widths,
            keys,
            end,
        })
    }

    pub(crate) fn children(&self) -> impl Iterator<Item = Child> + use<'a> {
        let (bytes, count) = (self.bytes, self.keys + 1);
        (0..count).filter_map(move |child| {
            Some(Child {
                checksum: u128_at(bytes, 8 + 16 * child)?,
                number: u64_at(bytes, 8 + 16 * count + 8 * child)?,
            })
        })
    }

    fn keys_start(&self) -> usize {
        let tables = usize::from(self.widths.key.is_none());
        8 + 24 * (self.keys + 1) + 4 * tables * self.keys
    }

    fn key_end(&self, key: usize) -> Option<usize> {
        match self.widths.key {
            Some(width) => width.checked_mul(key + 1)?.checked_add(self.keys_start()),
            None => usize_at(self.bytes, 8 + 24 * (self.keys + 1) + 4 * key),
        }
    }

    /// Returns the number of the child that contains a key, if the key exists.
    pub(crate) fn child_for(&self, wanted: &[u8]) -> usize {
        let is_before = |number: &usize| self.key(*number).is_some_and(|key| key < wanted);
        (0..self.keys).take_while(is_before).count()
    }

    /// Returns the greatest key that child number `key` can contain. The last child has no such
    /// key.
    pub(crate) fn key(&self, key: usize) -> Option<&'a [u8]> {
        if key >= self.keys {
            return None;
        }
        let start = match key.checked_sub(1) {
            Some(before) => self.key_end(before)?,
            None => self.keys_start(),
        };
        self.bytes.get(start..self.key_end(key)?)
    }
}

/// A table, as the row with its name describes it: its tree, and the widths of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TablePages {
    pub(super) root: Option<Child>,
    pub(super) widths: Widths,
    pub(super) rows: u64,
}

impl TablePages {
    /// Parses a row. Returns `None` if it cannot describe a table of a store.
    pub(crate) fn parse(row: &[u8]) -> Option<Self> {
        let width = |offset: usize| -> Option<Option<usize>> {
            Some(match *row.get(offset)? {
                0 => None,
                _ => Some(usize_at(row, offset + 1)?),
            })
        };
        let root = Child {
            number: u64_at(row, 10)?,
            checksum: u128_at(row, 18)?,
        };
        let table = Self {
            root: (*row.get(9)? != 0).then_some(root),
            widths: Widths {
                key: width(42)?,
                value: width(47)?,
            },
            rows: u64_at(row, 1)?,
        };
        (*row.first()? == PLAIN_TABLE).then_some(table)
    }
}

#[cfg(test)]
#[path = "page_layout_tests.rs"]
mod tests;
