//! Every page is verified whenever it is read from the file.
//!
//! The engine keeps the checksums of its pages in the pages above them, and the first of these in
//! the head of the file. So whoever reads pages from the top down, as the engine does, knows which
//! checksum each must have. The expected checksum is noted when the page above is read, or when the
//! page itself is written, in 8 bytes for each 4,096 of the file.
//!
//! Nothing more is written for it, and a crash leaves nothing behind that disagrees, with one
//! exception: the head has no checksum as a whole, so one is written behind it, in the same sector.

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

/// The expected checksum of a page: 56 bits of it, and in the lowest byte its kind.
///
/// 0: nothing is known. 1: the checksum of the whole page as it was written. From 2 on: the engine's
/// checksum, of a page of the kind of that number.
type Expected = u64;

const WRITTEN: u64 = 1;
const FIRST_KIND: u64 = 2;
const KIND_BITS: u64 = 0xff;

/// The shape of the rows of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TreeKind {
    widths: Widths,
    /// The rows are definitions of tables.
    is_of_tables: bool,
}

const TABLES: TreeKind = TreeKind {
    widths: Widths {
        key: None,
        value: None,
    },
    is_of_tables: true,
};

/// Pages that are noted together: 4 MiB of the file.
const CHUNK_PAGES: usize = 1_024;

type Chunk = Box<[AtomicU64]>;

/// The expected checksum of each page of the file, as far as it is known.
#[derive(Debug, Default)]
struct Expectations {
    chunks: RwLock<Vec<Option<Chunk>>>,
    /// The number of a kind of trees is its place; there is one for each shape of tables.
    kinds: RwLock<Vec<TreeKind>>,
    /// The length of the file.
    file_bytes: AtomicU64,
    /// True once a page referred to one outside of the file: the file was cut, and may have grown again
    /// since.
    leads_outside: AtomicBool,
    /// True if another process writes the file, so that what is noted of a page may be of an earlier use of it.
    are_of_others: bool,
    /// The pages that this process has written in its turn, if others write too.
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

    /// Notes what pages were written as, or 0 where nothing is known any more.
    fn set(&self, pages: impl Iterator<Item = (usize, Expected)>) {
        self.note(pages, |_, place, expected| {
            place.store(expected, Ordering::Release)
        });
    }

    /// Notes what pages must be. A page of which something is known already keeps that: it is the same, or
    /// this process has written it later.
    ///
    /// Another process reuses only pages that no snapshot here refers to. So at any time the snapshots here agree
    /// about each page that they refer to, and what is learned last is right.
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

    /// Forgets all pages from one on.
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

    /// Returns the number of a kind; `None` if there are more kinds than numbers.
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

    /// Notes the checksums that a page has of those below it. A page outside the file is not noted:
    /// the memory for it would have no bound.
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

/// The engine's checksum has more bits than are noted.
fn low_bits(checksum: u128) -> u64 {
    // The mask leaves 64 bits, so the cast drops none.
    (checksum & u128::from(u64::MAX)) as u64
}

fn page_of(offset: u64) -> Option<usize> {
    usize::try_from(offset / PAGE_BYTES as u64).ok()
}

/// State that the engine's file and the handle that opened it share.
#[derive(Debug, Default)]
pub(crate) struct Verification {
    expectations: Expectations,
    geometry: Mutex<Option<Geometry>>,
    /// The root of the tree of tables in the head that was read or written last.
    last_tables: Mutex<Option<(Geometry, Child)>>,
    /// True while the engine finds out how much of the last commit a crash has left: it then gets pages
    /// that are not as expected, too.
    is_lenient: AtomicBool,
    is_open: AtomicBool,
    /// Counters of reads and writes.
    pub(super) counters: Arc<FileCounters>,
    /// Pages that are not at their places in the file.
    pub(super) waiting: Arc<RwLock<WaitingPages>>,
}

impl Verification {
    /// The engine has the file open, and knows its last commit: from now on every page must be right.
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

    /// Returns the root of the tree of tables, of the last commit that was read or written.
    pub(crate) fn last_tables(&self) -> Option<(Geometry, Child)> {
        *self.last_tables.lock().ignore_poison()
    }

    fn note_tables(&self, head: &Head) {
        let tables = head.slots.first().and_then(|slot| slot.tables);
        *self.last_tables.lock().ignore_poison() = tables.map(|root| (head.geometry, root));
    }

    /// Notes the roots of the commits in a head.
    fn read_head(&self, head: &[u8; HEAD_BYTES]) -> Result<()> {
        let mut head =
            recognize(head).map_err(|found| EngineError::UnknownLayout { found }.for_redb())?;
        if head.is_unflushed && self.expectations.are_of_others {
            head.slots.reverse();
        }
        *self.geometry.lock().ignore_poison() = Some(head.geometry);
        self.note_tables(&head);
        // A torn commit looks like this: the head names its roots, but pages below them were never
        // written. The head does not show that. It only records that the commit was made in one
        // phase, which is usual while a file is open for writing.
        let is_torn = head.may_be_torn && !self.is_open.load(Ordering::Acquire);
        if is_torn {
            self.is_lenient.store(true, Ordering::Release);
        }
        // If the last commit is whole, pages of the one before may have been reused, and its roots
        // no longer describe them.
        // Not so while the last one is not synced: readers use the one before, and recovery the last one.
        let count = if is_torn || head.is_unflushed { 2 } else { 1 };
        let slots = head.slots.iter().take(count);
        let roots = slots.flat_map(|slot| [slot.tables, slot.system_tables]);
        self.expectations
            .learn_children(&head.geometry, roots.flatten(), TABLES);
        Ok(())
    }

    fn verify(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        // Nothing is known of a page that memory cannot number, so that it is refused.
        let page = page_of(offset).unwrap_or(usize::MAX);
        let known = self.expectations.get(page);
        let tag = known & KIND_BITS;
        let found = match tag {
            // Where the file was cut, references beyond its end were not noted. If it has grown again, such a
            // page is damage and not a newer layout.
            0 if self.expectations.leads_outside.load(Ordering::Acquire) => {
                Err("found a page that nothing refers to")
            }
            // Damage cannot bring this about: a page that leads to others is verified before it is believed.
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

    /// Returns the checksum of a page, and notes those that it states for other pages.
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
            // Its references are noted. From now on one checksum of the whole page is enough, which also
            // covers the room behind its rows.
            let whole = expected(xxh3_64(bytes), WRITTEN);
            self.expectations
                .set(page_of(offset).map(|page| (page, whole)).into_iter());
        }
        Ok(found)
    }

    /// Notes the checksums that a page states for others. Returns false if it can state none.
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

    /// Bytes as they are in the file.
    fn read_unverified(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.file.read(offset, out).map_err(|error| {
            if error.kind() == ErrorKind::UnexpectedEof {
                return damaged(offset, "the file ends before its end");
            }
            error
        })
    }

    /// The head, or a part of it.
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

    /// Notes a failure: the engine may panic on it later, and that panic is not ours.
    fn note<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|_| self.verification.counters.note_failure())
    }

    fn read_verified(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if offset == 0 && out.len() <= HEAD_BYTES {
            return self.read_head(out);
        }
        refuse_partial_pages(offset, out.len(), "it reads parts of pages")?;
        self.read_unverified(offset, out)?;
        // The check runs even where its outcome is ignored. It notes the checksums that the page
        // has of others, and it notes a failure, on which the engine may panic later.
        let verified = self.note(self.verification.verify(offset, out));
        // After a crash pages of the last commit may be missing: the engine compares checksums
        // itself, and falls back to the commit before. An error here would keep it from that.
        if self.verification.is_lenient() {
            return Ok(());
        }
        verified
    }

    fn write_verified(&self, offset: u64, data: &[u8]) -> Result<()> {
        if offset == 0
            && let Ok(head) = data.try_into()
        {
            // In one write and one sector: a crash leaves both as they were, or both as they are now.
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
            // A long page is noted at its first place. The notes at its other places are of pages that were
            // there before it.
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

    /// The file, in the process that opened it. In any other the engine must do nothing to the file: not
    /// even close it, which would release locks that both processes share.
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
    /// Takes over what others have written, once the engine has locked the byte of the writer.
    fn begin_turn(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        if !is_turn(start, end) {
            return Ok(());
        }
        self.forget_written();
        let begun = self.note(self.file.begin_turn());
        begun.map_err(|error| {
            // Others go on.
            let _ = self.file.file.unlock_range(start, end);
            error.into()
        })
    }

    /// From now on others may write these pages.
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
        self.note(self.at_home()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.at_home()?;
        self.note(self.read_verified(offset, out))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.note(self.at_home()?.set_len(len))?;
        let pages = len.div_ceil(PAGE_BYTES as u64);
        // Pages beyond what memory can number were never noted.
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
