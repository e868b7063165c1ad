//! A file whose small commits are first written to a journal.
//!
//! A commit of one document changes several pages at different places, and a disk takes several
//! times as long for these as for pages side by side. So written pages wait in memory until the
//! engine syncs. Then they are appended to the journal behind the engine's pages, in one write and
//! one sync. They are written to their places when the journal is full, before a large commit, and
//! when the file is closed.
//!
//! - Places of pages are written only when the journal has nothing that could be written over them later: a
//!   large commit begins with a checkpoint, and ends as it would without a journal.
//! - A checkpoint writes the pages, syncs, and then moves the note in the head on to the next number, which
//!   empties the journal. A crash before that leaves a journal that is written to its places once more.
//! - Who opens a file for reading takes the pages of a journal into memory, and writes nothing.
//! - Other processes read the file meanwhile. They read the records up to the one whose number the writer has
//!   published, which it does after the sync, and look for newer ones whenever they read the head.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::engine_error::damaged;
use crate::file_counters::FileCounters;
use crate::files::{JournalLimits, OpenFile};
use crate::journal::{
    JournalRecords, JournaledPage, NOTE_BYTES, Note, PUBLISHED_BYTES, PUBLISHED_OFFSET,
    PublishedRecords, encode_published, encode_record, parse_published, read_published_records,
    read_records, read_unpublished_records, trimmed,
};
use crate::page_layout::{
    ENGINE_MAGIC, HEAD_BYTES, Head, HeadSeal, PAGE_BYTES, SEALED_HEAD_BYTES, check_head, copy,
    flushed_head, is_unflushed,
};
use crate::process::IgnorePoison;

const PAGE: u64 = PAGE_BYTES as u64;

/// The part that a handle plays among those of other processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// Nobody else has the file open.
    #[default]
    Alone,
    /// This handle writes, and other processes may read.
    Publisher,
    /// This handle reads, and another process may write.
    Follower,
    /// This handle and those of other processes take turns in writing, and all of them read.
    Peer,
}

impl Role {
    /// Returns true if other processes read what this handle writes.
    fn publishes(self) -> bool {
        matches!(self, Self::Publisher | Self::Peer)
    }

    /// Returns true if this handle reads what other processes write.
    pub(crate) fn follows(self) -> bool {
        matches!(self, Self::Follower | Self::Peer)
    }
}

/// A follower meets bytes that are being written. They are whole after some microseconds, unless the writer has
/// ended in the midst of them.
const FOLLOW_ATTEMPTS: u32 = 200;
pub(crate) const FOLLOW_PAUSE: Duration = Duration::from_micros(500);

/// Pages that are written to their places at once.
const MAX_WRITE_BYTES: usize = 1 << 20;

/// Pages that are not at their places yet.
#[derive(Debug, Default)]
pub(crate) struct WaitingPages {
    /// Pages of commits, which are in the journal.
    journaled: BTreeMap<u64, JournaledPage>,
    /// Pages written since the last sync.
    unsynced: BTreeMap<u64, JournaledPage>,
}

impl WaitingPages {
    fn get(&self, page: u64) -> Option<&JournaledPage> {
        self.unsynced
            .get(&page)
            .or_else(|| self.journaled.get(&page))
    }

    fn has_any(&self, offset: u64, length: usize) -> bool {
        let pages = offset / PAGE..(offset + length as u64).div_ceil(PAGE);
        [&self.unsynced, &self.journaled]
            .iter()
            .any(|waiting| waiting.range(pages.clone()).next().is_some())
    }

    /// Puts the waiting pages of a range of bytes over the contents of the file.
    pub(crate) fn cover(&self, offset: u64, out: &mut [u8]) {
        for (place, part) in (offset / PAGE..).zip(out.chunks_mut(PAGE_BYTES)) {
            if let Some(bytes) = self.get(place) {
                part.fill(0);
                copy(part, bytes);
            }
        }
    }
}

/// Returns true if an error means that the disk is full, or the limit of this file is reached.
fn is_full(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    )
}

/// A bit for each page of the file.
#[derive(Debug, Default)]
pub(crate) struct PageSet(Vec<u64>);

impl PageSet {
    pub(crate) fn has(&self, page: u64) -> bool {
        let word = self.0.get((page / 64) as usize);
        word.is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    /// Returns true if the page is new.
    pub(crate) fn insert(&mut self, page: u64) -> bool {
        let is_new = !self.has(page);
        let index = (page / 64) as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        if let Some(word) = self.0.get_mut(index) {
            *word |= 1 << (page % 64);
        }
        is_new
    }

    fn extend(&mut self, pages: impl IntoIterator<Item = u64>) {
        pages.into_iter().for_each(|page| _ = self.insert(page));
    }
}

/// The state of the writer.
#[derive(Debug, Default)]
struct Writing {
    /// As it is in the file.
    note: Note,
    /// The number of the next record.
    next_number: u64,
    /// Bytes of the journal that have records.
    used_bytes: u64,
    /// Syncs since the file was opened or changed its length.
    syncs: u32,
    /// Pages are written to their places until the next sync.
    is_in_place: bool,
    /// Pages were written to their places before the last sync, and nothing was written since.
    is_after_places: bool,
    /// The head of a commit whose first sync was left out, because a record makes both phases one.
    first_phase: Option<JournaledPage>,
    /// Pages that have room on the disk for certain: they were written to their places.
    placed: PageSet,
    /// The journal was left by a crash: it has to be emptied before anything is written.
    is_left_over: bool,
    /// True while no other process may write.
    has_turn: bool,
    /// True if a write or a sync has failed, so that only opening the file again shows its
    /// contents.
    has_failed: bool,
}

/// The file. It is read and written in whole pages, except for the sealed head.
#[derive(Debug)]
pub(crate) struct JournaledFile {
    pub(super) file: OpenFile,
    limits: JournalLimits,
    role: Role,
    pub(super) waiting: Arc<RwLock<WaitingPages>>,
    writing: Mutex<Writing>,
    is_loaded: AtomicBool,
    /// The length of the engine's part of the file.
    length_bytes: AtomicU64,
    pub(super) counters: Arc<FileCounters>,
}

impl JournaledFile {
    /// Creates the file without reading anything: the engine locks it first.
    pub(crate) fn new(file: OpenFile, limits: JournalLimits, role: Role) -> Self {
        Self {
            file,
            limits,
            role,
            waiting: Arc::default(),
            writing: Mutex::default(),
            is_loaded: AtomicBool::new(false),
            length_bytes: AtomicU64::new(0),
            counters: Arc::default(),
        }
    }

    /// Opens a file that is locked already and may be damaged. Also returns the byte at which the
    /// journal is damaged: the commits from there on cannot be read.
    pub(crate) fn open_damaged(file: OpenFile) -> Result<(Self, Option<u64>)> {
        let journaled = Self::new(file, JournalLimits::NONE, Role::Alone);
        let damage = journaled.load(&mut journaled.writing.lock().ignore_poison())?;
        Ok((journaled, damage))
    }

    /// Reads the journal, unless that is done.
    fn loaded(&self) -> Result<()> {
        if self.is_loaded.load(Ordering::Acquire) {
            return Ok(());
        }
        self.writing().map(drop)
    }

    fn writing(&self) -> Result<MutexGuard<'_, Writing>> {
        let mut writing = self.writing.lock().ignore_poison();
        if self.is_loaded.load(Ordering::Acquire) {
            return Ok(writing);
        }
        if self.role.follows() {
            self.follow(&mut writing)?;
        } else {
            self.load_whole(&mut writing)?;
        }
        Ok(writing)
    }

    /// Reads note and journal, which must not be damaged.
    fn load_whole(&self, writing: &mut Writing) -> Result<()> {
        let Some(place) = self.load(writing)? else {
            return Ok(());
        };
        self.is_loaded.store(false, Ordering::Release);
        let detail = "the journal of the last commits is damaged; `repair` restores the documents of those \
                      before";
        Err(damaged(place, detail))
    }

    /// Reads note and journal, as far as it is not damaged; returns the byte at which it is.
    fn load(&self, writing: &mut Writing) -> Result<Option<u64>> {
        let length = self.file.len()?;
        let mut start = [0; SEALED_HEAD_BYTES + NOTE_BYTES];
        if length >= start.len() as u64 {
            self.read_file(0, &mut start)?;
        }
        let (sealed, note) = start.split_at(SEALED_HEAD_BYTES);
        let is_head = |sealed: &[u8; SEALED_HEAD_BYTES]| {
            sealed.starts_with(ENGINE_MAGIC) && check_head(sealed) == HeadSeal::Intact
        };
        let (note, mut damage) = match note.first_chunk().and_then(Note::parse) {
            Some(note) => (note, None),
            None if sealed.first_chunk().is_some_and(is_head) => {
                (Note::default(), Some(SEALED_HEAD_BYTES as u64))
            }
            // The reader of the head reports what is wrong with it.
            None => (Note::default(), None),
        };
        let mut records = JournalRecords::default();
        if note.offset > 0 {
            let read = |at: u64, out: &mut [u8]| self.read_file(note.offset + at, out);
            let there = length.saturating_sub(note.offset).min(note.bytes);
            records = read_records(there, note.number, &read)?;
            // It had its length before the note.
            let end = (there < note.bytes).then_some(there);
            damage = records.damage.or(end).map(|place| note.offset + place);
        }
        *writing = Writing {
            note,
            // The record behind the last one may have been begun.
            next_number: note.number + records.count + 1,
            is_left_over: note.offset > 0,
            ..Writing::default()
        };
        self.waiting.write().ignore_poison().journaled = records.pages;
        let engine_bytes = match note.offset {
            0 => length,
            offset => offset.min(length),
        };
        self.length_bytes.store(engine_bytes, Ordering::Release);
        self.is_loaded.store(true, Ordering::Release);
        Ok(damage)
    }

    /// Brings a follower up to the last published commit.
    fn follow(&self, known: &mut Writing) -> Result<()> {
        for _ in 0..FOLLOW_ATTEMPTS {
            // Asked before the attempt: a writer that ends meanwhile leaves whole bytes to the next one.
            let is_written = self.has_writer();
            if self.try_follow(known)? {
                self.is_loaded.store(true, Ordering::Release);
                return Ok(());
            }
            if !is_written && !self.has_writer() {
                break;
            }
            sleep(FOLLOW_PAUSE);
        }
        // Nobody is writing these bytes: they are what a crash has left.
        self.load_whole(known)
    }

    /// Reads the head and the records that were published since. Returns false if the writer has changed them
    /// meanwhile.
    fn try_follow(&self, known: &mut Writing) -> Result<bool> {
        let Some(start) = self.read_start()? else {
            return Ok(false);
        };
        let note = start.note;
        let is_known = self.is_loaded.load(Ordering::Acquire) && known.note == note;
        let (at, first) = match is_known {
            true => (known.used_bytes, known.next_number),
            false => (0, note.number),
        };
        let is_journal = note.offset > 0;
        let mut records = PublishedRecords {
            pages: BTreeMap::new(),
            end: at,
        };
        if is_journal && first <= start.published {
            let read = |at: u64, out: &mut [u8]| self.read_file(note.offset + at, out);
            let found = read_published_records(at, note.bytes, first..=start.published, &read);
            match found {
                Ok(Some(found)) => records = found,
                Ok(None) => return Ok(false),
                // The journal has moved, and the file ends before it.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
                Err(error) => return Err(error),
            }
            // It may have been emptied, and written from its beginning, while it was read.
            if self.read_start()?.is_none_or(|again| again.note != note) {
                return Ok(false);
            }
        }
        let engine_bytes = match is_journal {
            true => note.offset,
            false => start.file_bytes,
        };
        self.length_bytes.store(engine_bytes, Ordering::Release);
        if is_known && records.pages.is_empty() {
            return Ok(true);
        }
        let mut waiting = self.waiting.write().ignore_poison();
        if !is_known {
            waiting.journaled.clear();
        }
        waiting.journaled.extend(records.pages);
        drop(waiting);
        *known = Writing {
            note,
            next_number: match is_journal {
                true => first.max(start.published + 1),
                false => first,
            },
            used_bytes: records.end,
            syncs: known.syncs,
            has_turn: known.has_turn,
            has_failed: known.has_failed,
            ..Writing::default()
        };
        Ok(true)
    }

    /// Reads the head, and what is noted of the journal behind it. Returns `None` while these are being written.
    fn read_start(&self) -> Result<Option<FileStart>> {
        let file_bytes = self.file.len()?;
        let mut start = [0; PUBLISHED_OFFSET + PUBLISHED_BYTES];
        if file_bytes < start.len() as u64 {
            // Nothing was written yet.
            let file_start = FileStart {
                file_bytes,
                ..FileStart::default()
            };
            return Ok(Some(file_start));
        }
        self.read_file(0, &mut start)?;
        let (sector, published) = start.split_at(PUBLISHED_OFFSET);
        let (head, note) = sector.split_at(SEALED_HEAD_BYTES);
        let parsed = || {
            let head: [u8; SEALED_HEAD_BYTES] = *head.first_chunk()?;
            // The reader of the head reports that of another kind of file.
            (check_head(&head) != HeadSeal::Damaged).then_some(FileStart {
                note: Note::parse(note.first_chunk()?)?,
                published: parse_published(published.first_chunk()?)?,
                file_bytes,
            })
        };
        Ok(parsed())
    }

    fn read_file(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.file.read(offset, out)?;
        self.counters.note_read(out.len());
        Ok(())
    }

    fn write_file(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.file.write(offset, data)?;
        self.counters.note_write(data.len());
        Ok(())
    }

    fn sync_file(&self) -> Result<()> {
        let began = Instant::now();
        self.file.sync_data()?;
        self.counters.syncs.record(began.elapsed());
        Ok(())
    }

    /// Writes the head to its place, and the note behind it in the same sector.
    fn write_head(&self, head: &[u8], note: Note) -> Result<()> {
        let mut sector = [0; SEALED_HEAD_BYTES + NOTE_BYTES];
        let (sealed, behind) = sector.split_at_mut(SEALED_HEAD_BYTES);
        copy(sealed, head);
        copy(behind, &note.encode());
        self.write_file(0, &sector)
    }

    /// Writes pages to their places, neighbours at once.
    fn write_places(&self, pages: &BTreeMap<u64, JournaledPage>, note: Note) -> Result<()> {
        let (mut first, mut bytes) = (0, Vec::new());
        for (&page, content) in pages {
            if page == 0 {
                self.write_head(content, note)?;
                continue;
            }
            let end = first + bytes.len() as u64;
            if page * PAGE != end || bytes.len() >= MAX_WRITE_BYTES {
                if !bytes.is_empty() {
                    self.write_file(first, &bytes)?;
                }
                first = page * PAGE;
                bytes.clear();
            }
            // Of a page of zeros nothing waits.
            let end = bytes.len() + PAGE_BYTES;
            bytes.extend(content);
            bytes.resize(end, 0);
        }
        match bytes.is_empty() {
            true => Ok(()),
            false => self.write_file(first, &bytes),
        }
    }

    /// Writes the pages of the journal to their places, and empties it; with `offset` 0 the file has none
    /// any more.
    fn checkpoint(&self, writing: &mut Writing, offset: u64) -> Result<()> {
        if writing.note.offset == 0 {
            return Ok(());
        }
        {
            let waiting = self.waiting.read().ignore_poison();
            if !waiting.journaled.is_empty() {
                // With the old note: until all pages are there, the journal counts.
                self.write_places(&waiting.journaled, writing.note)?;
                self.sync_file()?;
            }
        }
        writing.note = Note {
            offset,
            bytes: if offset == 0 { 0 } else { writing.note.bytes },
            number: writing.next_number,
        };
        let mut head = [0; SEALED_HEAD_BYTES];
        self.read_file(0, &mut head)?;
        self.write_head(&head, writing.note)?;
        // A record that is written over the first ones must not meet the old note.
        self.sync_file()?;
        self.waiting.write().ignore_poison().journaled.clear();
        writing.used_bytes = 0;
        writing.is_left_over = false;
        Ok(())
    }

    /// Makes a journal behind the engine's pages. Returns false if there can be none: while a file is being
    /// made it has no head, and the disk may be full.
    fn begin_journal(&self, writing: &mut Writing) -> Result<bool> {
        let mut head = [0; SEALED_HEAD_BYTES];
        self.read_file(0, &mut head)?;
        if !head.starts_with(ENGINE_MAGIC) || check_head(&head) != HeadSeal::Intact {
            return Ok(false);
        }
        let offset = self.length_bytes.load(Ordering::Acquire);
        // A commit of which the disk has no room for the journal must not fail for that. And a file system takes
        // longer for a sync of bytes that the file did not have before.
        // A limit beyond all memory is refused by the allocation, as any that is too large.
        let zeros = vec![0; usize::try_from(self.limits.bytes).unwrap_or(usize::MAX)];
        let room = self.file.set_len(offset + self.limits.bytes);
        match room.and_then(|()| self.write_file(offset, &zeros)) {
            Err(error) if is_full(&error) => {
                self.file.set_len(offset)?;
                writing.syncs = 0;
                return Ok(false);
            }
            made => made?,
        }
        // A note refers to a journal that exists.
        self.sync_file()?;
        writing.note = Note {
            offset,
            bytes: self.limits.bytes,
            number: writing.next_number,
        };
        self.write_head(&head, writing.note)?;
        // A number counts once the file has it: without a sync a crash could leave sectors of two records with
        // the same.
        self.sync_file()?;
        writing.used_bytes = 0;
        Ok(true)
    }

    /// Also writes those pages to their places that were never written there. If the disk is full
    /// this fails, before the commit counts, and not a later checkpoint of pages that the journal
    /// has promised. No commit and no record has these pages yet.
    fn take_places(
        &self,
        writing: &mut Writing,
        pages: &BTreeMap<u64, JournaledPage>,
    ) -> Result<()> {
        let is_new = |page: &u64| *page > 0 && !writing.placed.has(*page);
        let new = pages.iter().filter(|(page, _)| is_new(page));
        let new: BTreeMap<_, _> = new.map(|(page, bytes)| (*page, bytes.clone())).collect();
        self.write_places(&new, writing.note)?;
        writing.placed.extend(new.into_keys());
        Ok(())
    }

    /// Appends the pages written since the last sync to the journal, and syncs.
    fn append(&self, writing: &mut Writing) -> Result<()> {
        let (record, head) = {
            let mut waiting = self.waiting.write().ignore_poison();
            let mut pages = std::mem::take(&mut waiting.unsynced);
            writing.first_phase = None;
            // Nobody else reads the record before it is published, and then its commit is synced.
            if let Some(head) = pages.get_mut(&0).filter(|head| is_unflushed(head)) {
                *head = trimmed(&flushed_head(head));
            }
            self.take_places(writing, &pages)?;
            let record = encode_record(writing.next_number, &pages);
            let end = writing.used_bytes + record.len() as u64;
            if end > writing.note.bytes {
                drop(waiting);
                self.checkpoint(writing, writing.note.offset)?;
                waiting = self.waiting.write().ignore_poison();
            }
            let head = pages.remove(&0);
            waiting.journaled.extend(pages);
            (record, head)
        };
        let offset = writing.note.offset + writing.used_bytes;
        writing.used_bytes += record.len() as u64;
        writing.next_number += 1;
        self.write_file(offset, &record)?;
        self.sync_file()?;
        // Only now: readers of this process take the head from here, too.
        if let Some(head) = head {
            self.waiting
                .write()
                .ignore_poison()
                .journaled
                .insert(0, head);
        }
        self.publish(writing)
    }

    /// Lets other processes read the records so far, all of which are synced.
    fn publish(&self, writing: &Writing) -> Result<()> {
        if !self.role.publishes() {
            return Ok(());
        }
        let number = encode_published(writing.next_number - 1);
        self.write_file(PUBLISHED_OFFSET as u64, &number)
    }

    /// Begins a turn of this process: nobody else writes until it ends. What the last writer could not publish before it
    /// ended is published.
    pub(crate) fn begin_turn(&self) -> Result<()> {
        if self.role != Role::Peer {
            return Ok(());
        }
        let mut writing = self.writing.lock().ignore_poison();
        self.follow(&mut writing)?;
        let taken_over = self.publish_rest(&mut writing);
        // Emptying a journal of which a part is not known would lose that part.
        writing.has_failed |= taken_over.is_err();
        writing.has_turn = taken_over.is_ok();
        taken_over
    }

    /// Publishes the records that the last writer could not publish.
    fn publish_rest(&self, writing: &mut Writing) -> Result<()> {
        if writing.note.offset == 0 || writing.is_left_over {
            return Ok(());
        }
        let (offset, bytes) = (writing.note.offset, writing.note.bytes);
        let read = |at: u64, out: &mut [u8]| self.read_file(offset + at, out);
        let (at, first) = (writing.used_bytes, writing.next_number);
        let records = read_unpublished_records(at, bytes, first, &read)?;
        if records.next_number > first {
            self.sync_file()?;
        }
        let mut waiting = self.waiting.write().ignore_poison();
        waiting.journaled.extend(records.pages);
        drop(waiting);
        writing.used_bytes = records.end;
        writing.next_number = records.next_number;
        if records.next_number > first {
            self.publish(writing)?;
        }
        // No two attempts to write a record have the same number.
        writing.next_number += u64::from(records.has_part);
        writing.is_left_over = records.has_part;
        Ok(())
    }

    /// Ends a turn: from now on other processes may write. What a transaction has written without a commit is forgotten,
    /// because others may use its pages.
    pub(crate) fn end_turn(&self) {
        let mut writing = self.writing.lock().ignore_poison();
        writing.has_turn = false;
        if self.role == Role::Peer {
            self.waiting.write().ignore_poison().unsynced.clear();
            writing.first_phase = None;
            writing.is_in_place = false;
            writing.is_after_places = false;
        }
    }

    /// The number of times that a head that looks damaged is read again, because another process may be writing it.
    pub(crate) fn read_attempts(&self) -> u32 {
        match self.role.follows() && self.has_writer() {
            true => FOLLOW_ATTEMPTS,
            false => 0,
        }
    }

    /// Returns true if another process has the file open for writing, as far as the system shows it.
    fn has_writer(&self) -> bool {
        self.file.has_writer().unwrap_or(false)
    }

    /// Returns true if a head differs from that of the file only by stating that its commit is synced. Then other
    /// processes must see it at once.
    fn is_publication(&self, writing: &Writing, data: &[u8]) -> Result<bool> {
        if !self.role.publishes() || writing.is_in_place {
            return Ok(false);
        }
        let waiting = self.waiting.read().ignore_poison();
        let is_waiting = !waiting.unsynced.is_empty() || waiting.journaled.contains_key(&0);
        drop(waiting);
        let mut head = [0; SEALED_HEAD_BYTES];
        if is_waiting || self.file.len()? < SEALED_HEAD_BYTES as u64 {
            return Ok(false);
        }
        self.read_file(0, &mut head)?;
        Ok(is_unflushed(&head) && flushed_head(&head) == data)
    }

    /// Writes what waits to its place, and what follows until the next sync.
    fn write_in_place(&self, writing: &mut Writing) -> Result<()> {
        self.checkpoint(writing, writing.note.offset)?;
        let mut unsynced = std::mem::take(&mut self.waiting.write().ignore_poison().unsynced);
        writing.is_in_place = true;
        if let Some(first) = writing.first_phase.take()
            && let Some(second) = unsynced.insert(0, first)
        {
            // Without a record the pages must be synced before the head that makes them count.
            self.write_places(&unsynced, writing.note)?;
            self.sync_file()?;
            writing.placed.extend(unsynced.into_keys());
            unsynced = BTreeMap::from([(0, second)]);
        }
        self.write_places(&unsynced, writing.note)?;
        writing.placed.extend(unsynced.into_keys());
        Ok(())
    }

    fn write_pages(&self, writing: &mut Writing, offset: u64, data: &[u8]) -> Result<()> {
        if writing.is_left_over {
            self.checkpoint(writing, 0)?;
            self.file
                .set_len(self.length_bytes.load(Ordering::Acquire))?;
        }
        if offset == 0 {
            let is_journaled = {
                let waiting = self.waiting.read().ignore_poison();
                !waiting.unsynced.contains_key(&0)
                    && waiting.journaled.get(&0) == Some(&trimmed(data))
            };
            if is_journaled && !writing.is_in_place {
                return Ok(());
            }
            if self.is_publication(writing, data)? {
                return self.write_head(data, writing.note);
            }
            // The second phase of a commit whose pages are at their places: a journal would hold the head alone.
            if writing.is_after_places && is_unflushed(data) {
                self.write_in_place(writing)?;
            }
        }
        writing.is_after_places = false;
        let is_early = writing.syncs < self.limits.after_syncs || self.limits.bytes == 0;
        if is_early && !writing.is_in_place {
            self.write_in_place(writing)?;
        }
        if !writing.is_in_place {
            let unsynced_pages = {
                let mut waiting = self.waiting.write().ignore_poison();
                for (page, part) in (offset / PAGE..).zip(data.chunks(PAGE_BYTES)) {
                    waiting.unsynced.insert(page, trimmed(part));
                }
                waiting.unsynced.len() as u64
            };
            if unsynced_pages * PAGE > self.journal_bytes(writing) / 2 {
                self.write_in_place(writing)?;
            }
            return Ok(());
        }
        if offset == 0 {
            return self.write_head(data, writing.note);
        }
        self.write_file(offset, data)?;
        let end = offset + data.len() as u64;
        writing.placed.extend(offset / PAGE..end / PAGE);
        Ok(())
    }

    fn sync_pages(&self, writing: &mut Writing) -> Result<()> {
        if !writing.is_in_place && writing.first_phase.is_none() {
            writing.first_phase = self.first_phase();
            if writing.first_phase.is_some() {
                return Ok(());
            }
        }
        writing.syncs = writing.syncs.saturating_add(1);
        let is_in_place = std::mem::take(&mut writing.is_in_place);
        writing.is_after_places = is_in_place;
        let has_none = self.waiting.read().ignore_poison().unsynced.is_empty();
        if is_in_place || has_none {
            return match writing.note.offset {
                // All commits so far are in the journal, which is synced.
                1.. if !is_in_place => Ok(()),
                _ => self.sync_file(),
            };
        }
        if writing.note.offset == 0 && !self.begin_journal(writing)? {
            self.write_in_place(writing)?;
            writing.is_in_place = false;
            return self.sync_file();
        }
        self.append(writing)
    }

    /// The size of the journal: of the one that another process has made, if there is one.
    fn journal_bytes(&self, writing: &Writing) -> u64 {
        match writing.note.offset {
            0 => self.limits.bytes,
            _ => writing.note.bytes,
        }
    }

    /// Returns the head that was written if it describes a commit that does not count yet, so that another sync follows
    /// the head that makes it count. Both are written in one record: a crash leaves all of it or nothing.
    fn first_phase(&self) -> Option<JournaledPage> {
        let waiting = self.waiting.read().ignore_poison();
        let page = waiting.unsynced.get(&0)?;
        let mut head = [0; HEAD_BYTES];
        copy(&mut head, page);
        let is_first = Head::parse(&head)?.has_later_commit();
        is_first.then(|| page.clone())
    }

    fn change_length(&self, writing: &mut Writing, length: u64) -> Result<()> {
        let before = self.length_bytes.load(Ordering::Acquire);
        if writing.note.offset > 0 {
            self.checkpoint(writing, 0)?;
            self.file.set_len(before)?;
        }
        let mut waiting = self.waiting.write().ignore_poison();
        waiting.unsynced.retain(|page, _| page * PAGE < length);
        drop(waiting);
        self.file.set_len(length)?;
        writing.syncs = 0;
        if length < before {
            // Pages that are cut off lose their room.
            writing.placed = PageSet::default();
        }
        self.length_bytes.store(length, Ordering::Release);
        // A journal that follows must find zeros.
        match length < before {
            true => self.sync_file(),
            false => Ok(()),
        }
    }

    /// Runs a step of the writer, after which a failure leaves only closing.
    fn write_step(&self, step: impl FnOnce(&mut Writing) -> Result<()>) -> Result<()> {
        let mut writing = self.writing()?;
        if writing.has_failed {
            return Err(Error::other("an earlier write of the file failed"));
        }
        let result = step(&mut writing);
        writing.has_failed = result.is_err();
        result
    }

    /// Writes the pages of the journal to their places, if this handle has written it.
    fn empty_journal(&self) -> Result<()> {
        if !self.is_loaded.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut writing = self.writing()?;
        if writing.has_failed || writing.is_left_over || writing.note.offset == 0 {
            return Ok(());
        }
        if self.role == Role::Follower || self.role == Role::Peer && !writing.has_turn {
            return Ok(());
        }
        self.checkpoint(&mut writing, 0)?;
        self.file.set_len(self.length_bytes.load(Ordering::Acquire))
    }
}

/// The first bytes of a file that another process may write.
#[derive(Default)]
struct FileStart {
    note: Note,
    published: u64,
    file_bytes: u64,
}

impl JournaledFile {
    pub(crate) fn len(&self) -> Result<u64> {
        self.loaded()?;
        Ok(self.length_bytes.load(Ordering::Acquire))
    }

    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        // Whoever reads the head wants the last commit.
        if offset == 0 && self.role.follows() {
            let mut writing = self.writing.lock().ignore_poison();
            if !writing.has_turn {
                self.follow(&mut writing)?;
            }
        }
        self.loaded()?;
        let end = offset.checked_add(out.len() as u64);
        if end.is_none_or(|end| end > self.length_bytes.load(Ordering::Acquire)) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let waiting = self.waiting.read().ignore_poison();
        if !waiting.has_any(offset, out.len()) {
            drop(waiting);
            return self.read_file(offset, out);
        }
        for (page, part) in (offset / PAGE..).zip(out.chunks_mut(PAGE_BYTES)) {
            // Nothing depends any more on the contents of the place of a waiting page.
            if waiting.get(page).is_none() {
                self.read_file(page * PAGE, part)?;
            }
        }
        waiting.cover(offset, out);
        Ok(())
    }

    pub(crate) fn set_len(&self, length: u64) -> Result<()> {
        self.write_step(|writing| self.change_length(writing, length))
    }

    pub(crate) fn sync_data(&self) -> Result<()> {
        self.write_step(|writing| self.sync_pages(writing))
    }

    pub(crate) fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write_step(|writing| self.write_pages(writing, offset, data))
    }

    pub(crate) fn close(&self) -> Result<()> {
        let emptied = self.empty_journal();
        let closed = self.file.close();
        emptied.and(closed)
    }
}

#[cfg(test)]
#[path = "journaled_file_tests.rs"]
mod tests;
