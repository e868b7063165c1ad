//! A disk that records every change of its files and names, and computes the states in which a
//! crash could leave them.

use std::collections::BTreeMap;
use std::io::Result;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use redb::StorageBackend;
use resemblance::Access;

use crate::common::Random;
use crate::common::memory::{Call, FileNumber, MemoryFiles, Watch, WatchedFiles, set_len};

/// Files by their names.
pub(crate) type Image = BTreeMap<PathBuf, Vec<u8>>;

pub(crate) fn files_of(image: &Image) -> MemoryFiles {
    let files = MemoryFiles::default();
    for (path, bytes) in image {
        files.write(path, bytes.clone());
    }
    files
}

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Name(PathBuf, FileNumber),
    Unname(PathBuf),
    SyncNames,
    Write(FileNumber, u64, Arc<[u8]>),
    SetLen(FileNumber, u64),
    Sync(FileNumber),
}

/// Notes every change in the step that makes it.
#[derive(Debug)]
pub(crate) struct Log {
    files: MemoryFiles,
    changes: Mutex<Vec<Change>>,
}

impl Watch for Log {
    fn call(
        &self,
        call: Call<'_>,
        file: Option<(FileNumber, &dyn StorageBackend)>,
        make: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        if matches!(
            call,
            Call::Look | Call::Len | Call::Read(..) | Call::Lock | Call::Close
        ) {
            return make();
        }
        let mut changes = self.changes.lock().unwrap();
        make()?;
        let name = |path: &Path| Change::Name(path.into(), self.files.number(path));
        match (call, file) {
            (Call::Open(path, Access::Create), _) => {
                changes.extend([name(path), Change::SyncNames]);
            }
            (Call::Remove(path), _) => changes.push(Change::Unname(path.into())),
            // A file has both names for a moment.
            (Call::Publish(from, to), _) => {
                changes.extend([name(to), Change::Unname(from.into()), Change::SyncNames]);
            }
            (Call::Write(offset, data), Some((number, _))) => {
                changes.push(Change::Write(number, offset, data.into()));
            }
            (Call::SetLen(len), Some((number, _))) => changes.push(Change::SetLen(number, len)),
            (Call::Sync, Some((number, _))) => changes.push(Change::Sync(number)),
            _ => {}
        }
        Ok(())
    }
}

/// The disk. Clones share it.
pub(crate) type Disk = WatchedFiles<Log>;

impl Disk {
    /// With files that are there already, which no other process can open.
    pub(crate) fn alone(image: &Image) -> Self {
        Self::of(files_of(image).alone())
    }

    /// With files that are there already.
    pub(crate) fn with(image: &Image) -> Self {
        Self::of(files_of(image))
    }

    fn of(files: MemoryFiles) -> Self {
        let log = Log {
            files: files.clone(),
            changes: Mutex::default(),
        };
        Self::new(files, log)
    }

    /// How many changes there were.
    pub(crate) fn position(&self) -> usize {
        self.watch.changes.lock().unwrap().len()
    }

    pub(crate) fn changes(&self) -> Vec<Change> {
        self.watch.changes.lock().unwrap().clone()
    }
}

/// Which changes that were not synced a crash leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Nothing,
    Everything,
    /// The first of them.
    Prefix,
    /// Each with this probability, in percent.
    Share(u64),
    /// All but one.
    AllButOne,
    /// The head of the file, and half of the rest.
    Head,
    /// Only the head of the file, which refers to missing pages.
    HeadAlone,
}

/// Into which pieces a write is torn: all of it, pages, sectors.
const PIECES_BYTES: [Option<u64>; 3] = [None, Some(4_096), Some(512)];

impl Kept {
    pub(crate) fn draw(random: &mut Random) -> Self {
        match random.below(7) {
            0 => Self::Prefix,
            1 => Self::Share(10),
            2 => Self::Share(50),
            3 => Self::Share(90),
            4 => Self::AllButOne,
            5 => Self::HeadAlone,
            _ => Self::Head,
        }
    }

    /// Whether each of some changes is kept.
    fn of(self, changes: &[Change], random: &mut Random) -> Vec<bool> {
        let count = changes.len() as u64;
        let limit = match self {
            Self::Prefix | Self::AllButOne => random.below(count + 1),
            _ => 0,
        };
        let keeps = |(place, change): (u64, &Change)| match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::Prefix => place < limit,
            Self::Share(share) => random.below(100) < share,
            Self::AllButOne => place != limit,
            Self::Head => is_of_head(change) || random.below(2) == 0,
            Self::HeadAlone => is_of_head(change),
        };
        (0..).zip(changes).map(keeps).collect()
    }
}

fn is_of_head(change: &Change) -> bool {
    matches!(change, Change::Write(_, 0, _))
}

/// The state of a disk after some changes: what is certain, and what is not synced yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    files: Vec<Vec<u8>>,
    pending: Vec<Vec<Change>>,
    names: BTreeMap<PathBuf, FileNumber>,
    pending_names: Vec<Change>,
}

impl State {
    pub(crate) fn of(image: &Image) -> Self {
        Self {
            files: image.values().cloned().collect(),
            pending: vec![Vec::new(); image.len()],
            names: image.keys().cloned().zip(0..).collect(),
            pending_names: Vec::new(),
        }
    }

    /// Takes the next change in.
    pub(crate) fn take(&mut self, change: &Change) {
        match change {
            Change::Name(_, number) => {
                if self.files.len() <= *number {
                    self.files.resize(number + 1, Vec::new());
                    self.pending.resize(number + 1, Vec::new());
                }
                self.pending_names.push(change.clone());
            }
            Change::Unname(_) => self.pending_names.push(change.clone()),
            Change::SyncNames => {
                for change in std::mem::take(&mut self.pending_names) {
                    rename(&mut self.names, &change);
                }
            }
            Change::Write(number, ..) | Change::SetLen(number, _) => {
                self.pending[*number].push(change.clone());
            }
            Change::Sync(number) => {
                for change in std::mem::take(&mut self.pending[*number]) {
                    apply(&mut self.files[*number], &change);
                }
            }
        }
    }

    /// Counts what a crash now would interrupt.
    pub(crate) fn count(&self, journals: &mut Journals) {
        for (bytes, changes) in self.files.iter().zip(&self.pending) {
            let Some(journal) = journal_offset(bytes) else {
                continue;
            };
            let writes = changes.iter().filter_map(|change| match change {
                Change::Write(_, offset, _) => Some(*offset),
                _ => None,
            });
            let (appended, placed): (Vec<u64>, Vec<u64>) =
                writes.partition(|offset| *offset >= journal);
            journals.appends += u64::from(!appended.is_empty());
            journals.checkpoints += u64::from(!placed.is_empty() && has_records(bytes));
        }
    }

    /// Returns the files after a crash. Changes of names and of a file's length become durable in
    /// order. Writes become durable in any order, except those of the same bytes.
    pub(crate) fn image(&self, kept: Kept, random: &mut Random) -> Image {
        let mut names = self.names.clone();
        let first = match kept {
            Kept::Nothing => 0,
            Kept::Everything => self.pending_names.len(),
            _ => random.below(self.pending_names.len() as u64 + 1) as usize,
        };
        for change in &self.pending_names[..first] {
            rename(&mut names, change);
        }
        let file = |(path, number): (PathBuf, FileNumber)| {
            let mut bytes = self.files[number].clone();
            keep_some(&mut bytes, &self.pending[number], kept, random);
            (path, bytes)
        };
        names.into_iter().map(file).collect()
    }
}

/// Where the journal of a file begins, if it has one: format-spec.md, 1.6.
fn journal_offset(bytes: &[u8]) -> Option<u64> {
    let offset = bytes.get(336..344)?.try_into().unwrap();
    Some(u64::from_le_bytes(offset)).filter(|offset| *offset > 0)
}

/// Returns true if a file has a journal with at least one record, or a part of it.
pub(crate) fn has_records(bytes: &[u8]) -> bool {
    let Some(offset) = journal_offset(bytes) else {
        return false;
    };
    let number = offset as usize + 488;
    bytes.get(number..number + 8) == Some(&bytes[352..360])
}

/// Which journal operations of all files were in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Journals {
    /// Records were being appended.
    pub(crate) appends: u64,
    /// Pages of records were being written to their places.
    pub(crate) checkpoints: u64,
    /// Stores were left with records.
    pub(crate) left: u64,
    /// Such stores crashed again while they were opened.
    pub(crate) replays: u64,
}

fn rename(names: &mut BTreeMap<PathBuf, FileNumber>, change: &Change) {
    match change {
        Change::Name(path, number) => names.insert(path.clone(), *number),
        Change::Unname(path) => names.remove(path),
        _ => None,
    };
}

fn keep_some(bytes: &mut Vec<u8>, changes: &[Change], kept: Kept, random: &mut Random) {
    let mut keeps = kept.of(changes, random);
    let is_length = |change: &Change| matches!(change, Change::SetLen(..));
    let lengths = changes.iter().zip(&keeps);
    let mut lengths = lengths.filter(|(c, k)| is_length(c) && **k).count();
    for (keep, _) in keeps.iter_mut().zip(changes).filter(|(_, c)| is_length(c)) {
        *keep = lengths > 0;
        lengths = lengths.saturating_sub(1);
    }
    let is_whole = matches!(kept, Kept::Nothing | Kept::Everything);
    for (change, _) in changes.iter().zip(keeps).filter(|(_, keep)| *keep) {
        let torn = if is_whole {
            None
        } else {
            random.pick(&PIECES_BYTES)
        };
        match (change, torn) {
            (Change::Write(number, offset, data), Some(piece_bytes)) => {
                for (piece, place) in data.chunks(piece_bytes as usize).zip(0..) {
                    let offset = offset + place * piece_bytes;
                    // One piece is never torn.
                    if data.len() as u64 <= piece_bytes || random.below(3) > 0 {
                        apply(bytes, &Change::Write(*number, offset, piece.into()));
                    }
                }
            }
            _ => apply(bytes, change),
        }
    }
}

/// Applies a change of a file. Drops the bytes that are written beyond its end, because the change
/// of its length was lost.
fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::SetLen(_, len) => set_len(bytes, *len as usize),
        Change::Write(_, offset, data) => {
            let to = bytes.get_mut(*offset as usize..).unwrap_or_default();
            let count = to.len().min(data.len());
            to[..count].copy_from_slice(&data[..count]);
        }
        _ => {}
    }
}
