//! The files of stores: on the disk, or in memory for tests that watch writes.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::ops::{Bound, Deref};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redb::backends::{FileBackend, InMemoryBackend};
use redb::{BackendError, StorageBackend};

use crate::engine_error::EngineError;
use crate::leftovers::probe_name;
use crate::lock_holder::find_holder;
use crate::process::HomeProcess;

/// The purpose for which a file is opened.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading, by any number of processes.
    Read,
    /// Reading and writing.
    Write,
    /// Opens the file for writing; it must not exist yet.
    Create,
}

/// The files of stores, by their names.
///
/// Not part of the crate's stable interface: the tests put files in memory with it, watch writes,
/// and let them fail.
#[doc(hidden)]
pub trait Files: fmt::Debug + Send + Sync {
    /// Opens a regular file. The kinds of errors are those of the operating system.
    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn StorageBackend>>;

    /// Opens a regular file like [`open`](Self::open). Also returns a handle of the same file of the system, if it is one,
    /// whatever has its name by now.
    fn open_twice(
        &self,
        path: &Path,
        access: Access,
    ) -> Result<(Box<dyn StorageBackend>, Option<File>)> {
        Ok((self.open(path, access)?, None))
    }

    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Renames a file durably. The kind of the error is `AlreadyExists` if something has the new name.
    fn publish(&self, from: &Path, to: &Path) -> Result<()>;

    /// Returns true if something has the name.
    fn exists(&self, path: &Path) -> Result<bool>;

    /// Returns the length of a file and its size on the disk, in bytes.
    fn size_bytes(&self, path: &Path) -> Result<(u64, u64)>;

    /// Gives a file that only its owner may read the mode of another one, or of a new file.
    fn set_mode(&self, _path: &Path, _like: Option<&Path>) -> Result<()> {
        Ok(())
    }

    /// Returns false once another process has opened for writing what these files show as it was before.
    fn are_current(&self) -> Result<bool> {
        Ok(true)
    }

    /// Returns true if other processes can open the files, so that they must be locked.
    fn are_shared(&self) -> bool {
        false
    }
}

/// The conditions under which a journal is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalLimits {
    /// The size of the journal in bytes. Commits of more than half of that are written to their
    /// places; with 0, all commits are.
    pub bytes: u64,
    /// The number of syncs after which each opening uses the journal. To open, make one change and
    /// close costs no more than without it.
    pub after_syncs: u32,
}

impl JournalLimits {
    /// The settings of a file that is open for long.
    pub const USUAL: Self = Self {
        bytes: 1 << 20,
        after_syncs: 4,
    };
    /// The settings of a file without a journal.
    pub const NONE: Self = Self {
        bytes: 0,
        after_syncs: 0,
    };
}

/// How processes share a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// A writer has the file for itself.
    #[default]
    Alone,
    /// One process writes, and any number of others read beside it. Where the system has no locks of byte ranges,
    /// this is as [`Alone`](Self::Alone).
    OneWriter,
    /// Any number of processes take turns in writing, and any number of others read. The file says so, and is shared
    /// in this way whenever it is opened to be shared.
    ManyWriters,
}

/// The settings that opening a file takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// The source through which files are opened, created and removed.
    pub files: FileSource,
    /// Bytes that redb's cache of pages may take.
    pub cache_bytes: usize,
    /// The conditions under which small commits are written to the journal of a file.
    pub journal: JournalLimits,
    /// True if a new file is filled at once and then closed.
    pub is_filled_at_once: bool,
    /// True if a file that cannot be locked is opened all the same.
    pub is_without_lock: bool,
    /// How this process shares the file with others.
    pub sharing: Sharing,
    /// True if a new file is to say that many processes write it, however this process makes it.
    pub notes_many_writers: bool,
    /// The time to wait for a process that has the file.
    pub wait: Duration,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            files: FileSource::default(),
            cache_bytes: 64 << 20,
            journal: JournalLimits::USUAL,
            is_filled_at_once: false,
            is_without_lock: false,
            sharing: Sharing::Alone,
            notes_many_writers: false,
            wait: Duration::ZERO,
        }
    }
}

impl FileOptions {
    /// True if other processes may read the file while this one writes it.
    pub(crate) fn is_shared(&self) -> bool {
        let has_ranges = cfg!(any(target_os = "linux", target_vendor = "apple"));
        has_ranges && self.sharing != Sharing::Alone && self.files.0.are_shared()
    }

    /// Returns these options for a file that no other process may have open.
    pub(crate) fn alone(&self) -> Self {
        Self {
            sharing: Sharing::Alone,
            ..self.clone()
        }
    }

    /// Calls `attempt` until another process has let go of the file, or the time to wait is over.
    ///
    /// # Errors
    /// Returns the errors of `attempt`. [`EngineError::Locked`] then names the process, where the system shows it.
    pub fn wait_for<T>(
        &self,
        mut attempt: impl FnMut() -> std::result::Result<T, EngineError>,
    ) -> std::result::Result<T, EngineError> {
        let deadline = Instant::now() + self.wait;
        let mut pause = Duration::from_millis(1);
        loop {
            match attempt() {
                Err(EngineError::Locked { .. }) if Instant::now() < deadline => {}
                Err(EngineError::Locked { path, holder }) => {
                    let holder = find_holder(&path).unwrap_or(holder);
                    return Err(EngineError::Locked { path, holder });
                }
                outcome => return outcome,
            }
            sleep(pause.min(deadline.saturating_duration_since(Instant::now())));
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

/// An open file, which refuses to continue without a lock where it needs one: redb does without
/// where the system reports that it has none.
#[derive(Debug)]
pub(crate) struct OpenFile {
    backend: Box<dyn StorageBackend>,
    /// Another handle of the file, to read it beside the engine.
    second: Option<File>,
    /// The name of a file that must be locked.
    locked_path: Option<PathBuf>,
    /// The process that has locked the file for reading, and unlocks it when it drops it.
    reader: Option<HomeProcess>,
    /// The time to wait for a lock that another process holds for a moment.
    wait: Duration,
    /// True if this process was the last to write, as far as it knows.
    had_turn: AtomicBool,
}

/// The bytes of redb's protocol for several processes, whose locks a reader without the engine takes and asks for.
const LOCK_BASE: u64 = 1 << 62;
pub(crate) const WRITER_BYTE: u64 = LOCK_BASE;
const SHARED_WRITER_BYTE: u64 = LOCK_BASE + 1;
const WHOLE_FILE_READER_BYTE: u64 = LOCK_BASE + 3;

/// A process that waits for its turn to write shares the lock of this byte, one of those that redb leaves to its users.
const WAITING_BYTE: u64 = LOCK_BASE + 900;

/// A process that waits takes its turn within some tenths of a millisecond, unless it was stopped.
const MAX_COURTESY: Duration = Duration::from_millis(2);

/// The head is locked for some microseconds at a time.
const MIN_HEADER_WAIT: Duration = Duration::from_secs(1);
const SHORT_ATTEMPTS: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_micros(50);

/// The result of an attempt to lock a range of bytes.
pub(crate) type Locked<T> = std::result::Result<T, BackendError>;

impl OpenFile {
    /// Opens a file that must be there, unless it is created. The engine must be one that was tried.
    ///
    /// # Errors
    /// Returns the errors of [`EngineError::opening`] or [`EngineError::naming`].
    pub(crate) fn open(
        path: &Path,
        access: Access,
        options: &FileOptions,
    ) -> std::result::Result<Self, EngineError> {
        let must_lock = !options.is_without_lock && options.files.0.are_shared();
        let opened = options.files.0.open_twice(path, access);
        let (backend, second) = opened.map_err(|error| match access {
            Access::Create => EngineError::naming("creating", path, error),
            Access::Read | Access::Write => EngineError::opening(path, error),
        })?;
        Ok(Self {
            backend,
            second,
            locked_path: must_lock.then(|| path.into()),
            reader: None,
            wait: options.wait.max(MIN_HEADER_WAIT),
            had_turn: AtomicBool::new(false),
        })
    }

    /// Opens a file for reading, whatever is in it, and keeps writers away until it is dropped, where files can be
    /// locked.
    pub(crate) fn open_shared(
        path: &Path,
        options: &FileOptions,
    ) -> std::result::Result<Self, EngineError> {
        let mut file = Self::open(path, Access::Read, options)?;
        let byte = |place| (Bound::Included(place), Bound::Included(place));
        let (start, end) = byte(WHOLE_FILE_READER_BYTE);
        let locked = file.try_lock_shared(start, end).and_then(|is_locked| {
            // A writer that shares the file does not look at that byte once it has the file open.
            let (start, end) = byte(SHARED_WRITER_BYTE);
            Ok(is_locked && !file.query_lock(start, end)?)
        });
        let locked = locked.or_else(|_| file.try_lock_shared(Bound::Unbounded, Bound::Unbounded));
        match locked {
            Ok(false) => return Err(EngineError::locked(path)),
            // An error of the system about locks is no reason not to read.
            Err(BackendError::Io(error)) => {
                if let Ok(refused) = error.downcast() {
                    return Err(refused);
                }
            }
            _ => {}
        }
        file.reader = Some(HomeProcess::current());
        Ok(file)
    }

    /// Opens a file for reading that nobody has open for writing, and lets writers open it later.
    pub(crate) fn open_watched(
        path: &Path,
        options: &FileOptions,
    ) -> std::result::Result<Self, EngineError> {
        let file = Self::open(path, Access::Read, options)?;
        if !options.is_shared() {
            // Then locks are of the whole file.
            drop(file);
            return Self::open_shared(path, options);
        }
        match file.has_writer() {
            Ok(true) => Err(EngineError::locked(path)),
            Ok(false) => Ok(file),
            Err(_) => Self::open_shared(path, options),
        }
    }

    /// Returns true if another process has the file open for writing.
    pub(crate) fn has_writer(&self) -> Result<bool> {
        let byte = Bound::Included(SHARED_WRITER_BYTE);
        match self.query_lock(byte, byte) {
            Ok(is_locked) => Ok(is_locked),
            Err(BackendError::Io(error)) => Err(error),
            // Then a lock of the whole file kept it away.
            Err(_) => Ok(false),
        }
    }

    /// Locks a range of bytes for a writer.
    pub(crate) fn try_lock(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<bool> {
        self.insist(start, end, || self.backend.try_lock_range(start, end))
    }

    /// Locks a range of bytes for a reader.
    pub(crate) fn try_lock_shared(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<bool> {
        self.insist(start, end, || {
            self.backend.try_lock_shared_range(start, end)
        })
    }

    /// Asks whether somebody else has locked a range of bytes.
    pub(crate) fn query_lock(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<bool> {
        answer(|| self.backend.query_lock_range(start, end))
    }

    /// Waits for the lock of a range of bytes, which others hold for moments.
    pub(crate) fn lock(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        self.wait_for_lock(|| self.try_lock(start, end))
    }

    /// Waits for the shared lock of a range of bytes, which others hold for moments.
    pub(crate) fn lock_shared(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        self.wait_for_lock(|| self.try_lock_shared(start, end))
    }

    /// Returns the other handle of the file, which only the engine's user needs.
    pub(crate) fn take_second(&mut self) -> Option<File> {
        self.second.take()
    }

    /// Waits for the turn to write. A process that has just had it lets those go first that wait.
    pub(crate) fn lock_turn(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        let waiting = Bound::Included(WAITING_BYTE);
        let is_waited_for = || matches!(self.query_lock(waiting, waiting), Ok(true));
        if self.had_turn.swap(false, Ordering::Relaxed) && is_waited_for() {
            let began = Instant::now();
            let is_free = || matches!(self.query_lock(start, end), Ok(false));
            while began.elapsed() < MAX_COURTESY && is_free() {
                sleep(LOCK_PAUSE);
            }
        }
        if !self.try_lock(start, end)? {
            let is_announced = matches!(self.try_lock_shared(waiting, waiting), Ok(true));
            let locked = self.lock(start, end);
            if is_announced {
                self.backend.unlock_range(waiting, waiting)?;
            }
            locked?;
        }
        self.had_turn.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Asks again and again: a process that was stopped while it holds the lock must not stop this one as well.
    fn wait_for_lock(&self, try_lock: impl Fn() -> Locked<bool>) -> Locked<()> {
        let began = Instant::now();
        for attempt in 0u32.. {
            if try_lock()? {
                return Ok(());
            }
            match attempt {
                0..SHORT_ATTEMPTS => std::hint::spin_loop(),
                _ => sleep(LOCK_PAUSE),
            }
            if attempt > SHORT_ATTEMPTS && began.elapsed() > self.wait {
                break;
            }
        }
        let path = self.locked_path.clone().unwrap_or_default();
        let locked = EngineError::locked(&path);
        let named = find_holder(&path).map(|holder| EngineError::Locked { path, holder });
        Err(BackendError::Io(named.unwrap_or(locked).for_redb()))
    }

    /// Refuses to do without a lock of the whole file, the last one that redb asks for.
    fn insist(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
        try_lock: impl Fn() -> Locked<bool>,
    ) -> Locked<bool> {
        let locked = answer(try_lock);
        let is_whole =
            end == Bound::Unbounded && matches!(start, Bound::Unbounded | Bound::Included(0));
        match (locked, &self.locked_path) {
            (Err(BackendError::Unsupported), Some(path)) if is_whole => {
                let refused = EngineError::LocksUnsupported { path: path.clone() };
                Err(BackendError::Io(refused.for_redb()))
            }
            (locked, _) => locked,
        }
    }
}

/// Repeats the request until no signal interrupts it. A file system without locks may report that
/// in several ways.
fn answer(ask: impl Fn() -> Locked<bool>) -> Locked<bool> {
    loop {
        match ask() {
            Err(BackendError::Io(error)) if error.kind() == ErrorKind::Interrupted => {}
            Err(BackendError::Io(error)) if has_no_locks(&error) => {
                return Err(BackendError::Unsupported);
            }
            answer => return answer,
        }
    }
}

/// True if a file system answers so that has no locks, or none for a file that is open in this way.
fn has_no_locks(error: &Error) -> bool {
    const EBADF: i32 = 9;
    const ENOLCK: i32 = if cfg!(any(target_os = "linux", target_os = "android")) {
        37
    } else {
        77
    };
    let is_code = |code| cfg!(unix) && error.raw_os_error() == Some(code);
    error.kind() == ErrorKind::Unsupported || is_code(EBADF) || is_code(ENOLCK)
}

impl<B: StorageBackend> From<B> for OpenFile {
    fn from(backend: B) -> Self {
        Self {
            backend: Box::new(backend),
            second: None,
            locked_path: None,
            reader: None,
            wait: MIN_HEADER_WAIT,
            had_turn: AtomicBool::new(false),
        }
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // A child that was forked meanwhile shares the lock, and must not release it.
        if self.reader.as_ref().is_some_and(HomeProcess::is_current) {
            let _ = self.backend.close();
        }
    }
}

impl Deref for OpenFile {
    type Target = dyn StorageBackend;

    fn deref(&self) -> &Self::Target {
        &*self.backend
    }
}

/// The files of the operating system.
#[derive(Debug)]
struct Disk;

impl Files for Disk {
    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn StorageBackend>> {
        Ok(self.open_twice(path, access)?.0)
    }

    fn open_twice(
        &self,
        path: &Path,
        access: Access,
    ) -> Result<(Box<dyn StorageBackend>, Option<File>)> {
        // Opening a pipe would wait for somebody to write to it.
        if access != Access::Create && !fs::metadata(path)?.is_file() {
            return Err(ErrorKind::IsADirectory.into());
        }
        let file = match access {
            Access::Create => create_private(path)?,
            _ => {
                let mut options = OpenOptions::new();
                options
                    .read(true)
                    .write(access != Access::Read)
                    .open(path)?
            }
        };
        let second = file.try_clone()?;
        let backend = FileBackend::new(file).map_err(Error::other)?;
        Ok((Box::new(backend), Some(second)))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path)
    }

    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        let folder = folder_of(to);
        // A second name instead of a new one: that never replaces an existing file.
        match fs::hard_link(from, to) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
            Err(_) => {
                // Not every file system has links.
                rename_over_nothing(from, to)?;
                sync_folder(&folder).inspect_err(|_| {
                    let _ = fs::rename(to, from);
                })
            }
            Ok(()) => {
                sync_folder(&folder).inspect_err(|_| {
                    let _ = fs::remove_file(to);
                })?;
                // A temporary name that is left over is harmless.
                let _ = fs::remove_file(from);
                Ok(())
            }
        }
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        // A link that leads nowhere has the name, too.
        match fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn size_bytes(&self, path: &Path) -> Result<(u64, u64)> {
        let metadata = fs::metadata(path)?;
        #[cfg(unix)]
        let allocated = std::os::unix::fs::MetadataExt::blocks(&metadata) * 512;
        #[cfg(not(unix))]
        let allocated = metadata.len();
        Ok((metadata.len(), allocated))
    }

    fn set_mode(&self, path: &Path, like: Option<&Path>) -> Result<()> {
        if !cfg!(unix) {
            return Ok(());
        }
        let mode = match like {
            Some(like) => fs::metadata(like)?.permissions(),
            None => mode_of_new_files(path)?,
        };
        fs::set_permissions(path, mode)
    }

    fn are_shared(&self) -> bool {
        true
    }
}

/// A file in memory, which may be opened several times.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryFile(Arc<InMemoryBackend>);

impl StorageBackend for MemoryFile {
    fn len(&self) -> Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.0.write(offset, data)
    }
}

/// The files of the operating system, but for one that is in memory.
#[derive(Debug)]
struct OneInMemory {
    path: PathBuf,
    file: MemoryFile,
}

impl Files for OneInMemory {
    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn StorageBackend>> {
        if path == self.path {
            return Ok(Box::new(self.file.clone()));
        }
        Disk.open(path, access)
    }

    fn open_twice(
        &self,
        path: &Path,
        access: Access,
    ) -> Result<(Box<dyn StorageBackend>, Option<File>)> {
        match path == self.path {
            true => Ok((self.open(path, access)?, None)),
            false => Disk.open_twice(path, access),
        }
    }

    fn remove(&self, path: &Path) -> Result<()> {
        if path == self.path {
            return self.file.set_len(0);
        }
        Disk.remove(path)
    }

    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        Disk.publish(from, to)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(path == self.path || Disk.exists(path)?)
    }

    fn size_bytes(&self, path: &Path) -> Result<(u64, u64)> {
        if path == self.path {
            return Ok((self.file.len()?, 0));
        }
        Disk.size_bytes(path)
    }

    fn set_mode(&self, path: &Path, like: Option<&Path>) -> Result<()> {
        Disk.set_mode(path, like.filter(|like| **like != self.path))
    }

    fn are_shared(&self) -> bool {
        true
    }
}

/// Creates a file that only its owner may read and write: its contents may not be for others.
pub(crate) fn create_private(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Returns the mode that the process gives to new files. Only creating one shows it without
/// changing it for all threads.
fn mode_of_new_files(beside: &Path) -> Result<fs::Permissions> {
    let probe = probe_name(beside);
    let made = File::create_new(&probe).and_then(|file| file.metadata());
    // It holds nothing; one that a killed run has left behind is in the way.
    let _ = fs::remove_file(&probe);
    made.map(|metadata| metadata.permissions())
}

/// Takes the name with an empty file first: a rename would replace anything.
fn rename_over_nothing(from: &Path, target: &Path) -> Result<()> {
    File::create_new(target)?;
    fs::rename(from, target).inspect_err(|_| {
        let _ = fs::remove_file(target);
    })
}

/// Makes a new name as durable as the file.
fn sync_folder(folder: &Path) -> Result<()> {
    // Elsewhere folders cannot be opened.
    if cfg!(unix) {
        File::open(folder)?.sync_all()
    } else {
        Ok(())
    }
}

/// Returns the folder that a path lies in.
#[must_use]
pub fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// The source of the files that options name: those of the operating system by default.
#[derive(Clone, Debug)]
pub struct FileSource(pub Arc<dyn Files>);

impl FileSource {
    /// Makes a source of the files of the operating system, but for the file `path`, which is in memory and is
    /// empty at first. Such a file has no locks.
    #[must_use]
    pub fn with_one_in_memory(path: PathBuf) -> Self {
        Self(Arc::new(OneInMemory {
            path,
            file: MemoryFile::default(),
        }))
    }
}

impl Default for FileSource {
    fn default() -> Self {
        Self(Arc::new(Disk))
    }
}

/// Options are equal if all their settings are: the source of files is not a setting.
impl PartialEq for FileSource {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for FileSource {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rename_keeps_an_existing_file() {
        let folder = tempfile::tempdir().unwrap();
        let (from, target) = (folder.path().join("from"), folder.path().join("target"));
        fs::write(&target, "precious").unwrap();
        fs::write(&from, "mine").unwrap();
        for refused in [
            rename_over_nothing(&from, &target),
            Disk.publish(&from, &target),
        ] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::AlreadyExists);
            assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
            assert_eq!(fs::read_to_string(&from).unwrap(), "mine");
        }
    }

    #[test]
    fn both_ways_to_publish_rename_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let (from, target) = (folder.path().join("from"), folder.path().join("target"));
        fs::write(&from, "mine").unwrap();
        rename_over_nothing(&from, &target).unwrap();
        Disk.publish(&target, &from).unwrap();
        assert_eq!(fs::read_to_string(&from).unwrap(), "mine");
        assert!(!Disk.exists(&target).unwrap());
    }
}
