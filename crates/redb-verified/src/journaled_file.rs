//! A file that first writes small commits to a journal.
//!
//! A commit of one document changes several pages at different offsets. A disk takes several times
//! as long for these as for adjacent pages. Written pages therefore wait in memory until the engine
//! syncs. They are then appended to the journal, which follows the engine's pages, with one write
//! and one sync. They are written to their places when the journal is full, before a large commit,
//! and when the file is closed.
//!
//! - A page is written to its place only if the journal contains nothing that could overwrite it
//!   later. A large commit therefore begins with a checkpoint, and then proceeds as without a
//!   journal.
//! - A checkpoint writes the pages, syncs, and advances the number in the head's note, which
//!   empties the journal. A crash before that leaves a journal that is replayed.
//! - A handle that opens a file for reading loads the pages of the journal into memory, and writes
//!   nothing.
//! - Other processes may read the file meanwhile. They read the records up to the number that the
//!   writer has published, which it does after the sync. They look for newer records whenever they
//!   read the head.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::engine_error::damaged;
use crate::file_counters::FileCounters;
use crate::files::{JournalLimits, OpenFile};
use crate::journal::{
    JournalRecords, JournaledPage, NOTE_BYTES, Note, ReadRecords, UnpublishedRecords, encode_mark,
    encode_record, read_published_records, read_records, read_unpublished_records, trimmed,
};
use crate::page_layout::{
    ENGINE_MAGIC, HEAD_BYTES, Head, HeadSeal, PAGE_BYTES, SEALED_HEAD_BYTES, check_head, copy,
    flushed_head, is_unflushed,
};
use crate::process::IgnorePoison;

const PAGE: u64 = PAGE_BYTES as u64;

/// The role of a handle among other processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// No other process has the file open.
    #[default]
    Alone,
    /// This handle writes, and other processes may read.
    Publisher,
    /// This handle reads, and another process may write.
    Follower,
    /// This handle and other processes take turns to write, and all of them read.
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

/// The number of times a follower rereads bytes that are being written. They are complete after
/// some microseconds, unless the writer has ended in between.
const FOLLOW_ATTEMPTS: u32 = 200;
pub(crate) const FOLLOW_PAUSE: Duration = Duration::from_micros(500);

/// The maximum size of adjacent pages that are written to their places at once.
const MAX_WRITE_BYTES: usize = 1 << 20;

/// The most pages ahead of a new one that get room on disk together with it.
const PAGES_AHEAD: u64 = 64;

/// The pages that have not been written to their places.
#[derive(Debug, Default)]
pub(crate) struct WaitingPages {
    /// The pages of commits that are in the journal.
    journaled: BTreeMap<u64, JournaledPage>,
    /// The pages written since the last sync.
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

    /// Replaces a range of bytes from the file by the waiting pages in that range.
    pub(crate) fn cover(&self, offset: u64, out: &mut [u8]) {
        for (place, part) in (offset / PAGE..).zip(out.chunks_mut(PAGE_BYTES)) {
            if let Some(bytes) = self.get(place) {
                part.fill(0);
                copy(part, bytes);
            }
        }
    }
}

/// Returns true if an error means that the disk is full or the file has reached its limit.
fn is_full(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    )
}

/// A set of pages of the file, with one bit for each.
#[derive(Debug, Default)]
pub(crate) struct PageSet(Vec<u64>);

impl PageSet {
    pub(crate) fn has(&self, page: u64) -> bool {
        let word = self.0.get((page / 64) as usize);
        word.is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    /// Adds a page. Returns true if the set did not contain it.
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
    /// The note in the file.
    note: Note,
    /// The number of the next record.
    next_number: u64,
    /// The number of bytes of the journal that contain records.
    used_bytes: u64,
    /// The number of syncs since the file was opened or changed its length.
    syncs: u32,
    /// True if pages are written to their places until the next sync.
    is_in_place: bool,
    /// True if pages were written to their places before the last sync, and nothing was written
    /// since.
    is_after_places: bool,
    /// The head of a commit whose first sync was left out, because one record makes both phases
    /// one.
    first_phase: Option<JournaledPage>,
    /// The pages that certainly have room on disk, because they were written to their places.
    placed: PageSet,
    /// Pages at the end of the file that it has gained in this turn. Only those that are placed have
    /// been written.
    gained: Range<u64>,
    /// True if a crash has left the journal. It must be emptied before anything is written.
    is_left_over: bool,
    /// True while no other process may write.
    has_turn: bool,
    /// True after a failed write or sync. Only opening the file again shows its contents.
    has_failed: bool,
}

impl Writing {
    /// Returns the pages after this new one that were never written, to which zeros are written with
    /// it. The next commits then write to one place, the journal, and not to a second one as well.
    fn room_after(&self, page: u64) -> impl Iterator<Item = u64> {
        let is_gained = self.gained.contains(&page);
        let most = if is_gained { PAGES_AHEAD } else { 0 };
        let ahead = (page..self.gained.end).skip(1).take(most as usize);
        ahead.take_while(|page| !self.placed.has(*page))
    }
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
    /// Creates the value without reading the file, because the engine locks the file first.
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

    /// Opens a file that is locked and may be damaged. Also returns the byte at which the journal
    /// is damaged, if it is; later commits cannot be read.
    pub(crate) fn open_damaged(file: OpenFile) -> Result<(Self, Option<u64>)> {
        let journaled = Self::new(file, JournalLimits::NONE, Role::Alone);
        let damage = journaled.load(&mut journaled.writing.lock().ignore_poison())?;
        Ok((journaled, damage))
    }

    /// Reads the journal, unless it has been read.
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

    /// Reads the note and the journal. Damage is an error.
    fn load_whole(&self, writing: &mut Writing) -> Result<()> {
        let Some(place) = self.load(writing)? else {
            return Ok(());
        };
        self.is_loaded.store(false, Ordering::Release);
        let detail = "the journal of the last commits is damaged; `repair` restores the documents of those \
                      before";
        Err(damaged(place, detail))
    }

    /// Reads the note and the journal up to any damage. Returns the byte at which it is damaged.
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
            // The reader of the head will report what is wrong with it.
            None => (Note::default(), None),
        };
        let mut records = JournalRecords::default();
        if note.offset > 0 {
            let read = |at: u64, out: &mut [u8]| self.read_file(note.offset + at, out);
            let there = length.saturating_sub(note.offset).min(note.bytes);
            records = read_records(there, note.number, &read)?;
            // The file had its full length before the note was written.
            let end = (there < note.bytes).then_some(there);
            damage = records.damage.or(end).map(|place| note.offset + place);
        }
        *writing = Writing {
            note,
            // The next record may have been begun.
            next_number: records.read.next_number.max(note.number) + 1,
            is_left_over: note.offset > 0,
            ..Writing::default()
        };
        self.waiting.write().ignore_poison().journaled = records.read.pages;
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
            // This is queried before the attempt: a writer that ends meanwhile leaves complete
            // bytes to the next one.
            let is_written = self.has_writer();
            if self.try_follow(known, is_written)? {
                self.is_loaded.store(true, Ordering::Release);
                return Ok(());
            }
            if !is_written && !self.has_writer() {
                break;
            }
            sleep(FOLLOW_PAUSE);
        }
        // No process is writing these bytes, so a crash has left them.
        self.load_whole(known)
    }

    /// Reads the head and the records that were published since the last call. Returns false if the
    /// writer has changed them meanwhile.
    ///
    /// Without a writer, a new reader takes all records: a crash leaves the last one without its
    /// mark. A peer takes them when its turn begins.
    fn try_follow(&self, known: &mut Writing, is_written: bool) -> Result<bool> {
        let Some((note, file_bytes)) = self.read_start()? else {
            return Ok(false);
        };
        let is_known = self.is_loaded.load(Ordering::Acquire) && known.note == note;
        let (at, first) = match is_known {
            true => (known.used_bytes, known.next_number),
            false => (0, note.number),
        };
        let is_journal = note.offset > 0;
        let is_left = is_journal && !is_known && !is_written && self.role == Role::Follower;
        let mut records = ReadRecords::before(at, first);
        if is_journal {
            let read = |at: u64, out: &mut [u8]| self.read_file(note.offset + at, out);
            let found = match is_left {
                true => read_records(note.bytes, first, &read)
                    .map(|all| all.damage.is_none().then_some(all.read)),
                false => read_published_records(at, note.bytes, first, !is_known, &read),
            };
            match found {
                Ok(Some(found)) => records = found,
                Ok(None) => return Ok(false),
                // The journal has moved, and the file now ends before it.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        if !is_known || !records.pages.is_empty() {
            // While it was read, the journal may have been emptied and written again from its
            // beginning.
            let is_same = self.read_start()?.is_some_and(|(again, _)| again == note);
            if !is_same || is_left && self.has_writer() {
                return Ok(false);
            }
        }
        let engine_bytes = match is_journal {
            true => note.offset,
            false => file_bytes,
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
            next_number: records.next_number,
            used_bytes: records.end,
            syncs: known.syncs,
            has_turn: known.has_turn,
            has_failed: known.has_failed,
            ..Writing::default()
        };
        Ok(true)
    }

    /// Reads the journal's note, which follows the head, and the length of the file. Returns `None`
    /// while head or note are being written.
    fn read_start(&self) -> Result<Option<(Note, u64)>> {
        let file_bytes = self.file.len()?;
        let mut start = [0; SEALED_HEAD_BYTES + NOTE_BYTES];
        if file_bytes < start.len() as u64 {
            // Nothing has been written yet.
            return Ok(Some((Note::default(), file_bytes)));
        }
        self.read_file(0, &mut start)?;
        let (head, note) = start.split_at(SEALED_HEAD_BYTES);
        let parsed = || {
            let head: [u8; SEALED_HEAD_BYTES] = *head.first_chunk()?;
            // The reader of the head reports a file of another kind.
            let is_damaged = check_head(&head) == HeadSeal::Damaged;
            let note = Note::parse(note.first_chunk()?)?;
            (!is_damaged).then_some((note, file_bytes))
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

    /// Writes the head to its place, followed by the note in the same sector.
    fn write_head(&self, head: &[u8], note: Note) -> Result<()> {
        let mut sector = [0; SEALED_HEAD_BYTES + NOTE_BYTES];
        let (sealed, behind) = sector.split_at_mut(SEALED_HEAD_BYTES);
        copy(sealed, head);
        copy(behind, &note.encode());
        self.write_file(0, &sector)
    }

    /// Writes pages to their places, adjacent pages in one write.
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
            // No page of zeros is waiting.
            let end = bytes.len() + PAGE_BYTES;
            bytes.extend(content);
            bytes.resize(end, 0);
        }
        match bytes.is_empty() {
            true => Ok(()),
            false => self.write_file(first, &bytes),
        }
    }

    /// Writes the pages of the journal to their places, and empties it. With `offset` 0, removes
    /// the journal from the file.
    fn checkpoint(&self, writing: &mut Writing, offset: u64) -> Result<()> {
        if writing.note.offset == 0 {
            return Ok(());
        }
        {
            let waiting = self.waiting.read().ignore_poison();
            if !waiting.journaled.is_empty() {
                // The old note remains: the journal is valid until all pages are written.
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
        // A new record over the first ones must not be found through the old note.
        self.sync_file()?;
        self.waiting.write().ignore_poison().journaled.clear();
        writing.used_bytes = 0;
        writing.is_left_over = false;
        Ok(())
    }

    /// Creates a journal after the engine's pages. Returns false if that is impossible: a file that
    /// is being created has no head, and the disk may be full.
    fn begin_journal(&self, writing: &mut Writing) -> Result<bool> {
        let mut head = [0; SEALED_HEAD_BYTES];
        self.read_file(0, &mut head)?;
        if !head.starts_with(ENGINE_MAGIC) || check_head(&head) != HeadSeal::Intact {
            return Ok(false);
        }
        let offset = self.length_bytes.load(Ordering::Acquire);
        // A commit must not fail because the disk has no room for the journal. The zeros also
        // reserve room, because a sync of bytes that extend the file takes longer. The allocation
        // refuses a limit that exceeds the memory.
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
        // A note must refer to a journal that exists.
        self.sync_file()?;
        writing.note = Note {
            offset,
            bytes: self.limits.bytes,
            number: writing.next_number,
        };
        self.write_head(&head, writing.note)?;
        // A number is valid once the file contains it. Without a sync, a crash could leave sectors
        // of two records with the same number.
        self.sync_file()?;
        writing.used_bytes = 0;
        Ok(true)
    }

    /// Also writes to their places those pages that were never written there, and zeros to those
    /// that follow them. If the disk is full, this fails before the commit is valid, and not in a
    /// later checkpoint of pages that the journal has promised to keep. No commit and no record
    /// contains these pages yet.
    fn take_places(
        &self,
        writing: &mut Writing,
        pages: &BTreeMap<u64, JournaledPage>,
    ) -> Result<()> {
        let is_new = |page: &u64| *page > 0 && !writing.placed.has(*page);
        let new = pages.iter().filter(|(page, _)| is_new(page));
        let new: BTreeMap<_, _> = new.map(|(page, bytes)| (*page, bytes.clone())).collect();
        let mut all = BTreeMap::new();
        for &page in new.keys() {
            let ahead = writing.room_after(page);
            all.extend(ahead.map(|page| (page, JournaledPage::default())));
        }
        all.extend(new.iter().map(|(page, bytes)| (*page, bytes.clone())));
        let written = match self.write_places(&all, writing.note) {
            Err(error) if is_full(&error) => {
                self.write_places(&new, writing.note)?;
                new
            }
            written => written.map(|()| all)?,
        };
        writing.placed.extend(written.into_keys());
        Ok(())
    }

    /// Appends the pages written since the last sync to the journal, and syncs.
    fn append(&self, writing: &mut Writing) -> Result<()> {
        let (record, head) = {
            let mut waiting = self.waiting.write().ignore_poison();
            let mut pages = std::mem::take(&mut waiting.unsynced);
            writing.first_phase = None;
            // No other process reads the record before it is published, and by then its commit is
            // synced.
            if let Some(head) = pages.get_mut(&0).filter(|head| is_unflushed(head)) {
                *head = trimmed(&flushed_head(head));
            }
            self.take_places(writing, &pages)?;
            let record = encode_record(writing.next_number, &pages);
            // The page behind a record is for its mark.
            let end = writing.used_bytes + record.len() as u64 + PAGE;
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
        // Not earlier: readers of this process also take the head from here.
        if let Some(head) = head {
            self.waiting
                .write()
                .ignore_poison()
                .journaled
                .insert(0, head);
        }
        self.publish(writing)
    }

    /// Lets other processes read the last record. All records must be synced.
    fn publish(&self, writing: &Writing) -> Result<()> {
        if !self.role.publishes() {
            return Ok(());
        }
        let behind = writing.note.offset + writing.used_bytes;
        self.write_file(behind, &encode_mark(writing.next_number - 1))
    }

    /// Begins a turn of this process; no other process writes until it ends. Publishes the records
    /// that the last writer had no time to publish.
    pub(crate) fn begin_turn(&self) -> Result<()> {
        if self.role != Role::Peer {
            return Ok(());
        }
        let mut writing = self.writing.lock().ignore_poison();
        self.follow(&mut writing)?;
        let taken_over = self.publish_rest(&mut writing);
        // Emptying a journal without knowing all of it would lose the unknown part.
        writing.has_failed |= taken_over.is_err();
        writing.has_turn = taken_over.is_ok();
        taken_over
    }

    /// Publishes the records that the last writer had no time to publish.
    fn publish_rest(&self, writing: &mut Writing) -> Result<()> {
        if writing.note.offset == 0 || writing.is_left_over {
            return Ok(());
        }
        let (offset, bytes) = (writing.note.offset, writing.note.bytes);
        let read = |at: u64, out: &mut [u8]| self.read_file(offset + at, out);
        let (at, first) = (writing.used_bytes, writing.next_number);
        let UnpublishedRecords {
            read: records,
            has_part,
        } = read_unpublished_records(at, bytes, first, &read)?;
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
        writing.next_number += u64::from(has_part);
        writing.is_left_over = has_part;
        Ok(())
    }

    /// Ends a turn, so that other processes may write. Forgets what a transaction has written
    /// without a commit, because others may use its pages.
    pub(crate) fn end_turn(&self) {
        let mut writing = self.writing.lock().ignore_poison();
        writing.has_turn = false;
        writing.gained = 0..0;
        if self.role == Role::Peer {
            self.waiting.write().ignore_poison().unsynced.clear();
            writing.first_phase = None;
            writing.is_in_place = false;
            writing.is_after_places = false;
        }
    }

    /// The number of times to read a head that looks damaged, because another process may be
    /// writing it.
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

    /// Returns true if a head differs from that of the file only in stating that its commit is
    /// synced. Other processes must then see it at once.
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

    /// Writes the waiting pages to their places, and sets pages to be written directly until the
    /// next sync.
    fn write_in_place(&self, writing: &mut Writing) -> Result<()> {
        self.checkpoint(writing, writing.note.offset)?;
        let mut unsynced = std::mem::take(&mut self.waiting.write().ignore_poison().unsynced);
        writing.is_in_place = true;
        if let Some(first) = writing.first_phase.take()
            && let Some(second) = unsynced.insert(0, first)
        {
            // Without a record, the pages must be synced before the head that makes them valid.
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
            // This is the second phase of a commit whose pages are at their places. A journal would
            // contain only the head.
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

    /// Returns the size of the journal. If another process has created one, it is the size of that
    /// journal.
    fn journal_bytes(&self, writing: &Writing) -> u64 {
        match writing.note.offset {
            0 => self.limits.bytes,
            _ => writing.note.bytes,
        }
    }

    /// Returns the last head written if its commit is not valid yet, because a second head and sync
    /// will make it valid. Both heads go into one record, so a crash leaves both or neither.
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
            // Pages that are cut off lose their room on disk.
            writing.placed = PageSet::default();
            writing.gained = 0..0;
        } else {
            let start = before.div_ceil(PAGE);
            let is_next = writing.gained.end == start && !writing.gained.is_empty();
            let first = if is_next { writing.gained.start } else { start };
            writing.gained = first..length / PAGE;
        }
        self.length_bytes.store(length, Ordering::Release);
        // A later journal must find zeros.
        match length < before {
            true => self.sync_file(),
            false => Ok(()),
        }
    }

    /// Runs a step of the writer. After a failure, only closing is possible.
    fn write_step(&self, step: impl FnOnce(&mut Writing) -> Result<()>) -> Result<()> {
        let mut writing = self.writing()?;
        if writing.has_failed {
            return Err(Error::other("an earlier write of the file failed"));
        }
        let result = step(&mut writing);
        writing.has_failed = result.is_err();
        result
    }

    /// Writes the pages of the journal to their places, if this handle has written them to the
    /// journal.
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

impl JournaledFile {
    pub(crate) fn len(&self) -> Result<u64> {
        self.loaded()?;
        Ok(self.length_bytes.load(Ordering::Acquire))
    }

    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        // A handle that reads the head wants the last commit.
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
            // The old contents at the place of a waiting page no longer matter.
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
