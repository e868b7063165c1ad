//! Verifies every page whenever it is read from the file.
//!
//! The engine stores the checksum of a page in the page above it, and those of the top pages in the
//! head of the file. A reader that descends from the top, as the engine does, therefore knows the
//! checksum of each page. This module records the expected checksum when the page above is read or
//! when the page itself is written. It takes 8 bytes for each 4,096 bytes of the file.
//!
//! Verification writes nothing to the file, so a crash leaves nothing inconsistent. There is one
//! exception: the head has no checksum of its whole, so this module writes one after the head, in
//! the same sector.

use std::io::{ErrorKind, Result};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::sleep;
use std::time::Instant;

use redb::StorageBackend;
use xxhash_rust::xxh3::xxh3_64;

use crate::engine_error::{EngineError, damaged, refuse_partial_pages};
use crate::file_counters::FileCounters;
use crate::files::{JournalLimits, Locked, OpenFile, WRITER_BYTE};
use crate::journaled_file::{FOLLOW_PAUSE, JournaledFile, PageSet, Role, WaitingPages};
use crate::layout::{recognize, unknown_layout};
use crate::page_layout::{
    Child, Geometry, HEAD_BYTES, Head, HeadSeal, PAGE_BYTES, Page, SEALED_HEAD_BYTES, TablePages,
    Widths, check_head, copy, seal_head,
};
use crate::process::{HomeProcess, IgnorePoison};

/// The expected checksum of a page: 56 bits of it, and its kind in the lowest byte.
///
/// Kind 0: nothing is known. Kind 1: the checksum of the whole page as it was written. Kinds from
/// 2: the engine's checksum of a page of the tree kind with that number.
type Expected = u64;

const WRITTEN: u64 = 1;
const FIRST_KIND: u64 = 2;
const KIND_BITS: u64 = 0xff;

/// The shape of the rows of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TreeKind {
    widths: Widths,
    /// True if the rows define tables.
    is_of_tables: bool,
}

const TABLES: TreeKind = TreeKind {
    widths: Widths {
        key: None,
        value: None,
    },
    is_of_tables: true,
};

/// The number of pages whose entries are allocated together: 4 MiB of the file.
const CHUNK_PAGES: usize = 1_024;

type Chunk = Box<[AtomicU64]>;

/// The expected checksum of each page of the file, if it is known.
#[derive(Debug, Default)]
struct Expectations {
    chunks: RwLock<Vec<Option<Chunk>>>,
    /// The kinds of trees, by number. There is one kind for each shape of tables.
    kinds: RwLock<Vec<TreeKind>>,
    /// The length of the file.
    file_bytes: AtomicU64,
    /// True after a page referred to another one outside the file. The file was then truncated, and
    /// may have grown again since.
    leads_outside: AtomicBool,
    /// True if other processes write the file, so that an entry may concern an earlier use of a
    /// page.
    are_of_others: bool,
    /// The pages that this process has written in its turn, if others also write.
    written: Mutex<PageSet>,
}

impl Expectations {
    fn get(&self, page: usize) -> Expected {
        let chunks = self.chunks.read().ignore_poison();
        let chunk = chunks.get(page / CHUNK_PAGES).and_then(Option::as_ref);
        chunk
            .and_then(|chunk| chunk.get(page % CHUNK_PAGES))
            .map_or(0, |expected| expected.load(Ordering::Acquire))
    }

    /// Records the expected checksums of written pages, or 0 for pages that are no longer known.
    fn set(&self, pages: impl Iterator<Item = (usize, Expected)>) {
        self.note(pages, |_, place, expected| {
            place.store(expected, Ordering::Release)
        });
    }

    /// Records the expected checksums of pages. An existing entry stays: it is the same, or this
    /// process has written the page later.
    ///
    /// Another process reuses only pages to which no snapshot of this process refers. At any time,
    /// the snapshots here therefore agree about each page to which they refer, and the latest entry
    /// is right.
    fn learn(&self, pages: impl Iterator<Item = (usize, Expected)>) {
        self.note(pages, |page, place, expected| {
            if self.are_of_others && !self.is_written(page) {
                return place.store(expected, Ordering::Release);
            }
            let _ = place.compare_exchange(0, expected, Ordering::AcqRel, Ordering::Acquire);
        });
    }

    fn note(
        &self,
        pages: impl Iterator<Item = (usize, Expected)>,
        note: impl Fn(usize, &AtomicU64, Expected),
    ) {
        let mut chunks = self.chunks.read().ignore_poison();
        for (page, expected) in pages {
            if !matches!(chunks.get(page / CHUNK_PAGES), Some(Some(_))) {
                drop(chunks);
                self.make_room(page);
                chunks = self.chunks.read().ignore_poison();
            }
            let chunk = chunks.get(page / CHUNK_PAGES).and_then(Option::as_ref);
            if let Some(place) = chunk.and_then(|chunk| chunk.get(page % CHUNK_PAGES)) {
                note(page, place, expected);
            }
        }
    }

    fn is_written(&self, page: usize) -> bool {
        self.written.lock().ignore_poison().has(page as u64)
    }

    fn make_room(&self, page: usize) {
        let mut chunks = self.chunks.write().ignore_poison();
        if chunks.len() <= page / CHUNK_PAGES {
            chunks.resize_with(page / CHUNK_PAGES + 1, || None);
        }
        if let Some(chunk) = chunks.get_mut(page / CHUNK_PAGES) {
            let empty = || (0..CHUNK_PAGES).map(|_| AtomicU64::new(0)).collect();
            chunk.get_or_insert_with(empty);
        }
    }

    /// Forgets all pages, beginning with this one.
    fn forget_from(&self, page: usize) {
        let mut chunks = self.chunks.write().ignore_poison();
        chunks.truncate(page.div_ceil(CHUNK_PAGES));
        let partial = page % CHUNK_PAGES;
        if let Some(Some(chunk)) = chunks.get(page / CHUNK_PAGES) {
            for place in chunk.iter().skip(partial) {
                place.store(0, Ordering::Release);
            }
        }
    }

    fn kind(&self, number: u64) -> Option<TreeKind> {
        let kinds = self.kinds.read().ignore_poison();
        kinds.get(usize::try_from(number).ok()?).copied()
    }

    /// Returns the number of a kind, or `None` if there are more kinds than numbers.
    fn number_of(&self, kind: TreeKind) -> Option<u64> {
        let kinds = self.kinds.read().ignore_poison();
        let find = |kinds: &[TreeKind]| kinds.iter().position(|known| *known == kind);
        let mut place = find(&kinds);
        drop(kinds);
        if place.is_none() {
            let mut kinds = self.kinds.write().ignore_poison();
            place = find(&kinds).or_else(|| {
                kinds.push(kind);
                Some(kinds.len() - 1)
            });
        }
        let number = u64::try_from(place?).ok()?;
        (number + FIRST_KIND <= KIND_BITS).then_some(number)
    }

    /// Records the checksums that a page states for its children. Ignores pages outside the file,
    /// for which memory would be unbounded.
    fn learn_children(
        &self,
        geometry: &Geometry,
        children: impl Iterator<Item = Child>,
        kind: TreeKind,
    ) {
        let Some(number) = self.number_of(kind) else {
            return;
        };
        let file_bytes = self.file_bytes.load(Ordering::Acquire);
        self.learn(children.filter_map(|child| {
            let is_inside = |(offset, length): &(u64, usize)| {
                offset.saturating_add(*length as u64) <= file_bytes
            };
            let Some((offset, _)) = geometry.place(&child).filter(is_inside) else {
                self.leads_outside.store(true, Ordering::Release);
                return None;
            };
            let expected = expected(low_bits(child.checksum), number + FIRST_KIND);
            Some((page_of(offset)?, expected))
        }));
    }
}

fn expected(checksum: u64, tag: u64) -> Expected {
    checksum & !KIND_BITS | tag
}

/// The engine's checksum has more bits than an entry stores.
fn low_bits(checksum: u128) -> u64 {
    // The mask leaves 64 bits, so the cast loses none.
    (checksum & u128::from(u64::MAX)) as u64
}

fn page_of(offset: u64) -> Option<usize> {
    usize::try_from(offset / PAGE_BYTES as u64).ok()
}

/// State that the engine's file shares with the handle that opened it.
#[derive(Debug, Default)]
pub(crate) struct Verification {
    expectations: Expectations,
    geometry: Mutex<Option<Geometry>>,
    /// The root of the tree of tables, from the head that was read or written last.
    last_tables: Mutex<Option<(Geometry, Child)>>,
    /// True while the engine determines how much of the last commit a crash has left. It then also
    /// receives pages that do not match.
    is_lenient: AtomicBool,
    is_open: AtomicBool,
    /// The counters of reads and writes.
    pub(super) counters: Arc<FileCounters>,
    /// The pages that are not at their places in the file.
    pub(super) waiting: Arc<RwLock<WaitingPages>>,
}

impl Verification {
    /// Called when the engine has opened the file and knows its last commit. From now on every page
    /// must match.
    pub(crate) fn opened(&self) {
        self.is_open.store(true, Ordering::Release);
        self.is_lenient.store(false, Ordering::Release);
    }

    fn is_lenient(&self) -> bool {
        self.is_lenient.load(Ordering::Acquire)
    }

    fn geometry(&self) -> Option<Geometry> {
        *self.geometry.lock().ignore_poison()
    }

    /// Returns the root of the tree of tables of the last commit that was read or written.
    pub(crate) fn last_tables(&self) -> Option<(Geometry, Child)> {
        *self.last_tables.lock().ignore_poison()
    }

    fn note_tables(&self, head: &Head) {
        let tables = head.slots.first().and_then(|slot| slot.tables);
        *self.last_tables.lock().ignore_poison() = tables.map(|root| (head.geometry, root));
    }

    /// Records the roots of the commits in a head.
    fn read_head(&self, head: &[u8; HEAD_BYTES]) -> Result<()> {
        let mut head =
            recognize(head).map_err(|found| EngineError::UnknownLayout { found }.for_redb())?;
        if head.is_unflushed && self.expectations.are_of_others {
            head.slots.reverse();
        }
        *self.geometry.lock().ignore_poison() = Some(head.geometry);
        self.note_tables(&head);
        // In a torn commit, the head refers to its roots, but pages below them were never written.
        // The head does not show this. It only records that the commit was made in one phase, which
        // is usual while a file is open for writing.
        let is_torn = head.may_be_torn && !self.is_open.load(Ordering::Acquire);
        if is_torn {
            self.is_lenient.store(true, Ordering::Release);
        }
        // If the last commit is complete, pages of the one before may have been reused, and its
        // roots no longer describe them. Until the last commit is synced, both count: readers use
        // the one before, and recovery the last one.
        let count = if is_torn || head.is_unflushed { 2 } else { 1 };
        let slots = head.slots.iter().take(count);
        let roots = slots.flat_map(|slot| [slot.tables, slot.system_tables]);
        self.expectations
            .learn_children(&head.geometry, roots.flatten(), TABLES);
        Ok(())
    }

    fn verify(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        // A page that memory cannot number has no entry and is refused.
        let page = page_of(offset).unwrap_or(usize::MAX);
        let known = self.expectations.get(page);
        let tag = known & KIND_BITS;
        let found = match tag {
            // If the file was truncated, references beyond its end were not recorded. If it has
            // grown again, such a page is damage, not a newer layout.
            0 if self.expectations.leads_outside.load(Ordering::Acquire) => {
                Err("found a page that nothing refers to")
            }
            // Damage cannot cause this: a page that leads to others is verified before its
            // references are used.
            0 => {
                let found = format!("nothing that can be read refers to the page at byte {offset}");
                return Err(EngineError::UnknownLayout { found }.for_redb());
            }
            WRITTEN => Ok(expected(xxh3_64(bytes), WRITTEN)),
            number => self.verify_engine_page(offset, bytes, number - FIRST_KIND, known),
        };
        match found {
            Ok(found) if found == known => Ok(()),
            Ok(_) => Err(damaged(offset, "its checksum is not the expected one")),
            Err(detail) => Err(damaged(offset, detail)),
        }
    }

    /// Returns the checksum of a page, and records those that it states for other pages.
    fn verify_engine_page(
        &self,
        offset: u64,
        bytes: &[u8],
        number: u64,
        known: Expected,
    ) -> std::result::Result<Expected, &'static str> {
        let unreadable = "found a page of an unknown form";
        let kind = self.expectations.kind(number).ok_or(unreadable)?;
        let page = Page::parse(bytes, kind.widths).ok_or(unreadable)?;
        let found = expected(low_bits(page.checksum()), number + FIRST_KIND);
        if found == known && self.learn_from(&page, kind) {
            // Its references are recorded. From now on, one checksum of the whole page suffices,
            // which also covers the room after its rows.
            let whole = expected(xxh3_64(bytes), WRITTEN);
            self.expectations
                .set(page_of(offset).map(|page| (page, whole)).into_iter());
        }
        Ok(found)
    }

    /// Records the checksums that a page states for others. Returns false if they are invalid.
    fn learn_from(&self, page: &Page<'_>, kind: TreeKind) -> bool {
        let Some(geometry) = self.geometry() else {
            return false;
        };
        match page {
            Page::Branch(branch) => {
                let children = branch.children();
                self.expectations.learn_children(&geometry, children, kind);
                true
            }
            Page::Leaf(leaf) if kind.is_of_tables => {
                for row in 0..leaf.rows() {
                    let Some(table) = leaf.value(row).and_then(TablePages::parse) else {
                        continue;
                    };
                    let kind = TreeKind {
                        widths: table.widths,
                        is_of_tables: false,
                    };
                    let root = table.root.into_iter();
                    self.expectations.learn_children(&geometry, root, kind);
                }
                true
            }
            Page::Leaf(_) => false,
        }
    }
}

/// A file whose pages are verified when they are read.
#[derive(Debug)]
pub(crate) struct VerifiedFile {
    file: JournaledFile,
    home: HomeProcess,
    pub(crate) verification: Arc<Verification>,
}

impl VerifiedFile {
    pub(crate) fn new(file: OpenFile, limits: JournalLimits, role: Role) -> Self {
        let file = JournaledFile::new(file, limits, role);
        let verification = Verification {
            expectations: Expectations {
                are_of_others: role.follows(),
                ..Expectations::default()
            },
            counters: Arc::clone(&file.counters),
            waiting: Arc::clone(&file.waiting),
            ..Verification::default()
        };
        Self {
            file,
            home: HomeProcess::current(),
            verification: Arc::new(verification),
        }
    }

    /// Reads bytes from the file without verification.
    fn read_unverified(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.file.read(offset, out).map_err(|error| {
            if error.kind() == ErrorKind::UnexpectedEof {
                return damaged(offset, "the file ends before its end");
            }
            error
        })
    }

    /// Reads the head, or a part of it.
    fn read_head(&self, out: &mut [u8]) -> Result<()> {
        let mut sealed = [0; SEALED_HEAD_BYTES];
        self.read_unverified(0, &mut sealed)?;
        // Another process may be writing it.
        for _ in 0..self.file.read_attempts() {
            if check_head(&sealed) != HeadSeal::Damaged {
                break;
            }
            sleep(FOLLOW_PAUSE);
            self.read_unverified(0, &mut sealed)?;
        }
        if check_head(&sealed) != HeadSeal::Intact {
            let detail = "the checksum of the file's head is not the expected one: its last write may have \
                          been interrupted; `repair` restores every document of a complete commit";
            return Err(match unknown_layout(&sealed) {
                Some(found) => EngineError::UnknownLayout { found }.for_redb(),
                None => damaged(0, detail),
            });
        }
        let length = self.file.len()?;
        let expectations = &self.verification.expectations;
        expectations.file_bytes.store(length, Ordering::Release);
        if let Some(head) = sealed.first_chunk() {
            self.verification.read_head(head)?;
        }
        copy(out, &sealed);
        Ok(())
    }

    /// Records a failure. If the engine panics on it later, the panic is not ours.
    fn note<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|_| self.verification.counters.note_failure())
    }

    fn read_verified(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if offset == 0 && out.len() <= HEAD_BYTES {
            return self.read_head(out);
        }
        refuse_partial_pages(offset, out.len(), "it reads parts of pages")?;
        self.read_unverified(offset, out)?;
        // The check runs even if its result is ignored: it records the checksums that the page
        // states for others, and it records a failure, on which the engine may panic later.
        let verified = self.note(self.verification.verify(offset, out));
        // After a crash, pages of the last commit may be missing. The engine then compares
        // checksums itself and falls back to the commit before, which an error here would prevent.
        if self.verification.is_lenient() {
            return Ok(());
        }
        verified
    }

    fn write_verified(&self, offset: u64, data: &[u8]) -> Result<()> {
        if offset == 0
            && let Ok(head) = data.try_into()
        {
            // One write to one sector: a crash leaves both as they were before, or both as they are
            // now.
            self.file.write(0, &seal_head(head))?;
            if let Some(head) = Head::parse(head) {
                self.verification.note_tables(&head);
            }
            return Ok(());
        }
        refuse_partial_pages(offset, data.len(), "it writes parts of pages")?;
        self.file.write(offset, data)?;
        if self.verification.expectations.are_of_others {
            let pages =
                offset / PAGE_BYTES as u64..(offset + data.len() as u64) / PAGE_BYTES as u64;
            let mut written = self
                .verification
                .expectations
                .written
                .lock()
                .ignore_poison();
            pages.for_each(|page| _ = written.insert(page));
        }
        if let Some(first) = page_of(offset) {
            let whole = expected(xxh3_64(data), WRITTEN);
            // A long page has its entry at its first number. Entries at its other numbers concern
            // pages that were there before.
            let behind = (first + 1..).zip(std::iter::repeat_n(
                0,
                data.len().div_ceil(PAGE_BYTES).saturating_sub(1),
            ));
            self.verification
                .expectations
                .set(std::iter::once((first, whole)).chain(behind));
        }
        Ok(())
    }

    /// Checks, without a system call for each page, that this is the process that opened the file. A read changes
    /// nothing, even after a fork that the C library does not know.
    fn check_home(&self) -> Result<()> {
        self.home.check().map_err(EngineError::for_redb)
    }

    /// Returns the file, to change, lock or close it, in the process that opened it. In any other process, the engine
    /// must do none of these: even closing would release locks that both processes share.
    fn at_home(&self) -> Result<&JournaledFile> {
        match self.home.is_current() {
            true => Ok(&self.file),
            false => Err(EngineError::Forked.for_redb()),
        }
    }
}

/// Returns true if a range of bytes is the one that the engine locks while it writes.
fn is_turn(start: Bound<u64>, end: Bound<u64>) -> bool {
    let byte = Bound::Included(WRITER_BYTE);
    start == byte && end == byte
}

impl VerifiedFile {
    /// Takes over what other processes have written, after the engine has locked the writer's byte.
    fn begin_turn(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        if !is_turn(start, end) {
            return Ok(());
        }
        self.forget_written();
        let begun = self.note(self.file.begin_turn());
        begun.map_err(|error| {
            // Other processes can then continue.
            let _ = self.file.file.unlock_range(start, end);
            error.into()
        })
    }

    /// Forgets which pages this process has written, because others may now write them.
    fn forget_written(&self) {
        *self
            .verification
            .expectations
            .written
            .lock()
            .ignore_poison() = PageSet::default();
    }
}

impl StorageBackend for VerifiedFile {
    fn len(&self) -> Result<u64> {
        self.check_home()?;
        self.note(self.file.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.check_home()?;
        self.note(self.read_verified(offset, out))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.note(self.at_home()?.set_len(len))?;
        let pages = len.div_ceil(PAGE_BYTES as u64);
        // Pages whose number exceeds memory never had an entry.
        let pages = usize::try_from(pages).unwrap_or(usize::MAX);
        let expectations = &self.verification.expectations;
        expectations.file_bytes.store(len, Ordering::Release);
        expectations.forget_from(pages);
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        self.note(self.at_home()?.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.at_home()?;
        self.note(self.write_verified(offset, data))
    }

    fn close(&self) -> Result<()> {
        self.at_home()?.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<bool> {
        let is_locked = self.at_home()?.file.try_lock(start, end)?;
        if is_locked {
            self.begin_turn(start, end)?;
        }
        Ok(is_locked)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<bool> {
        self.at_home()?.file.try_lock_shared(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        let file = self.at_home()?;
        match is_turn(start, end) {
            true => {
                let began = Instant::now();
                file.file.lock_turn(start, end)?;
                file.counters.turn_waits.record(began.elapsed());
            }
            false => file.file.lock(start, end)?,
        }
        self.begin_turn(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        self.at_home()?.file.lock_shared(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        let file = self.at_home()?;
        if is_turn(start, end) {
            self.forget_written();
            file.end_turn();
        }
        file.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<bool> {
        self.at_home()?.file.query_lock(start, end)
    }
}

#[cfg(test)]
#[path = "verified_file_tests.rs"]
mod tests;
