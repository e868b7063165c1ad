//! The files of stores: on disk, or in memory for tests that watch writes.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::ops::{Bound, Deref};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redb::backends::{FileBackend, InMemoryBackend};
use redb::{BackendError, StorageBackend};

use crate::engine_error::EngineError;
use crate::leftovers::{open_regular, probe_name};
use crate::lock_holder::find_holder;
use crate::process::{HomeProcess, IgnorePoison};

/// The purpose for which a file is opened.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// For reading, by any number of processes.
    Read,
    /// For reading and writing.
    Write,
    /// For reading and writing a new file. Fails if the file exists.
    Create,
}

/// A file, and a second handle of it if it is one of the operating system.
type TwoHandles = (Box<dyn StorageBackend>, Option<Arc<File>>);

/// Gives access to files by their names.
///
/// Not part of the stable interface: tests use it to keep files in memory, to watch writes, and to
/// let them fail.
#[doc(hidden)]
pub trait Files: fmt::Debug + Send + Sync {
    /// Opens a regular file. Error kinds are those of the operating system.
    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn StorageBackend>>;

    /// Opens a regular file as [`open`](Self::open) does. If it is a file of the operating system,
    /// also returns a second handle of the same file, even if another file has its name by now.
    fn open_twice(&self, path: &Path, access: Access) -> Result<TwoHandles> {
        Ok((self.open(path, access)?, None))
    }

    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Renames a file durably. If the new name is taken, the kind of the error is `AlreadyExists`.
    fn publish(&self, from: &Path, to: &Path) -> Result<()>;

    /// Returns true if the name is taken.
    fn exists(&self, path: &Path) -> Result<bool>;

    /// Returns the length of a file and its size on disk, in bytes.
    fn size_bytes(&self, path: &Path) -> Result<(u64, u64)>;

    /// Returns the path by which the file is found even after the process has changed its folder.
    fn lasting(&self, path: &Path) -> Result<PathBuf> {
        Ok(path.into())
    }

    /// Changes the mode of a file that only its owner may read to that of new files, or to the mode,
    /// owner and group of another file, as far as the process may set them.
    fn set_mode(&self, _path: &Path, _like: Option<&Path>) -> Result<()> {
        Ok(())
    }

    /// Returns false if another process has opened the file for writing since these files took
    /// their view of it.
    fn are_current(&self) -> Result<bool> {
        Ok(true)
    }

    /// Returns true if other processes can open the files, in which case they must be locked.
    fn are_shared(&self) -> bool {
        false
    }
}

/// When small commits go to a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalLimits {
    /// The size of the journal in bytes. Commits of more than half that size are written directly
    /// to the pages. With 0, all commits are.
    pub bytes: u64,
    /// The number of syncs after opening before the journal is used. A program that opens the file,
    /// makes one change and closes it then pays nothing for the journal.
    pub after_syncs: u32,
}

impl JournalLimits {
    /// The settings for a file that stays open for long.
    pub const USUAL: Self = Self {
        bytes: 1 << 20,
        after_syncs: 4,
    };
    /// The settings for a file without a journal.
    pub const NONE: Self = Self {
        bytes: 0,
        after_syncs: 0,
    };
}

/// How processes share a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// A writer has exclusive access.
    #[default]
    Alone,
    /// One process writes while any number of others read. On systems without locks of byte ranges,
    /// this is the same as [`Alone`](Self::Alone).
    OneWriter,
    /// Any number of processes take turns to write, and any number of others read. The file records
    /// this setting, which applies whenever it is opened to be shared.
    ManyWriters,
}

/// The settings for opening a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// Gives access to the files.
    pub files: FileSource,
    /// The maximum size of redb's page cache, in bytes.
    pub cache_bytes: usize,
    /// When small commits go to a journal.
    pub journal: JournalLimits,
    /// True if a new file is filled at once and then closed.
    pub is_filled_at_once: bool,
    /// True if the file is opened even if it cannot be locked.
    pub is_without_lock: bool,
    /// How this process shares the file with others.
    pub sharing: Sharing,
    /// True if a new file records that several processes may write it, whatever this process does
    /// with it.
    pub notes_many_writers: bool,
    /// How long to wait for a process that has the file open.
    pub wait: Duration,
    /// The name that a file will have once it is complete. Errors show it in place of the temporary
    /// one.
    pub final_path: Option<PathBuf>,
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
            final_path: None,
        }
    }
}

impl FileOptions {
    /// True if other processes may read the file while this one writes it.
    pub(crate) fn is_shared(&self) -> bool {
        let has_ranges = cfg!(any(target_os = "linux", target_vendor = "apple"));
        has_ranges && self.sharing != Sharing::Alone && self.files.0.are_shared()
    }

    /// Returns these options for exclusive access.
    pub(crate) fn alone(&self) -> Self {
        Self {
            sharing: Sharing::Alone,
            ..self.clone()
        }
    }

    /// Calls `attempt` until no other process has the file open, or the waiting time is over.
    ///
    /// # Errors
    /// The errors of `attempt`. [`EngineError::Locked`] names the other process if the system shows
    /// it.
    pub fn wait_for<T>(
        &self,
        mut attempt: impl FnMut() -> std::result::Result<T, EngineError>,
    ) -> std::result::Result<T, EngineError> {
        let began = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            match attempt() {
                Err(EngineError::Locked { .. }) if began.elapsed() < self.wait => {}
                Err(EngineError::Locked { path, holder }) => {
                    let holder = find_holder(&path).unwrap_or(holder);
                    return Err(EngineError::Locked { path, holder });
                }
                outcome => return outcome,
            }
            sleep(pause.min(self.wait.saturating_sub(began.elapsed())));
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

/// An open file that fails if a lock it needs is not available. redb would continue without a lock
/// if the system reports that it has none.
#[derive(Debug)]
pub(crate) struct OpenFile {
    backend: Box<dyn StorageBackend>,
    /// A second handle of the file, to read it without the engine.
    second: Option<Arc<File>>,
    /// The name of the file, for errors.
    path: PathBuf,
    /// True if the file must not be used without locks.
    must_lock: bool,
    /// The process that holds the lock for reading. It releases the lock when it drops the file.
    reader: Option<HomeProcess>,
    /// How long to wait for the turn to write.
    wait: Duration,
    /// When this process began to write, unless others have written since.
    turns_began: Mutex<Option<Instant>>,
}

/// The first byte of the ranges that redb locks to coordinate several processes. A reader without
/// the engine takes and queries the same locks.
const LOCK_BASE: u64 = 1 << 62;
pub(crate) const WRITER_BYTE: u64 = LOCK_BASE;
const SHARED_WRITER_BYTE: u64 = LOCK_BASE + 1;
const WHOLE_FILE_READER_BYTE: u64 = LOCK_BASE + 3;

/// The process that is next in line to write holds the lock of this byte. redb leaves such bytes to
/// its users. Other waiting processes poll the turn as well, because the next one may be stopped.
const WAITING_BYTE: u64 = LOCK_BASE + 900;

/// The maximum time for which a process keeps the turn while others wait. A hand-over costs about
/// as much as a small commit: the next process wakes up and reads what was committed.
const TURNS_TIME: Duration = Duration::from_millis(5);

/// The interval at which the process that is next in line polls the turn. The pause is longer than
/// the gap between two commits of the writing process.
const NEXT_PAUSE: Duration = Duration::from_micros(100);

/// The interval at which the other waiting processes poll. It is long, so that they take little
/// processor time.
const LATER_PAUSE: Duration = Duration::from_millis(1);

/// The maximum time to let a waiting process go first. It takes its turn within some tenths of a
/// millisecond, unless it is stopped.
const MAX_COURTESY: Duration = Duration::from_millis(2);

/// The minimum time to wait for the lock of the head, which is held for microseconds at a time.
const MIN_HEADER_WAIT: Duration = Duration::from_secs(1);
const SHORT_ATTEMPTS: u32 = 50;
const HEADER_PAUSE: Duration = Duration::from_micros(50);

/// The result of an attempt to lock a range of bytes.
pub(crate) type Locked<T> = std::result::Result<T, BackendError>;

impl OpenFile {
    /// Opens a file, or creates it. Fails unless the engine's page layout is known.
    ///
    /// # Errors
    /// The errors of [`EngineError::opening`] or [`EngineError::naming`].
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
        let name = options.final_path.as_deref().unwrap_or(path);
        Ok(Self {
            backend,
            second,
            path: options.files.lasting(name)?,
            must_lock,
            reader: None,
            wait: options.wait,
            turns_began: Mutex::new(None),
        })
    }

    /// Opens a file with any contents for reading. If files can be locked, keeps writers away until
    /// it is dropped.
    pub(crate) fn open_shared(
        path: &Path,
        options: &FileOptions,
    ) -> std::result::Result<Self, EngineError> {
        let mut file = Self::open(path, Access::Read, options)?;
        let byte = |place| (Bound::Included(place), Bound::Included(place));
        let (start, end) = byte(WHOLE_FILE_READER_BYTE);
        let locked = file.try_lock_shared(start, end).and_then(|is_locked| {
            // A writer that shares the file does not check that byte after it has opened the file.
            let (start, end) = byte(SHARED_WRITER_BYTE);
            Ok(is_locked && !file.query_lock(start, end)?)
        });
        let locked = locked.or_else(|_| file.try_lock_shared(Bound::Unbounded, Bound::Unbounded));
        match locked {
            Ok(false) => return Err(EngineError::locked(path)),
            // A failed lock does not prevent reading.
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

    /// Opens a file for reading if no process has it open for writing. Writers may open it later.
    pub(crate) fn open_watched(
        path: &Path,
        options: &FileOptions,
    ) -> std::result::Result<Self, EngineError> {
        let file = Self::open(path, Access::Read, options)?;
        if !options.is_shared() {
            // In that case locks cover the whole file.
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
            // In that case a lock of the whole file kept writers away.
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

    /// Returns whether another process has locked a range of bytes.
    pub(crate) fn query_lock(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<bool> {
        answer(|| self.backend.query_lock_range(start, end))
    }

    /// Locks a range of bytes. Waits for other processes, which hold it only briefly.
    pub(crate) fn lock(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        self.wait_for_header(|| self.try_lock(start, end))
    }

    /// Takes a shared lock of a range of bytes. Waits for other processes, which hold it only
    /// briefly.
    pub(crate) fn lock_shared(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        self.wait_for_header(|| self.try_lock_shared(start, end))
    }

    /// Takes the second handle of the file, which only code outside the engine needs.
    pub(crate) fn take_second(&mut self) -> Option<Arc<File>> {
        self.second.take()
    }

    /// Waits for the turn to write. A process that has had the turn for [`TURNS_TIME`] lets waiting
    /// processes go first.
    pub(crate) fn lock_turn(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        let waiting = Bound::Included(WAITING_BYTE);
        let is_waited_for = || matches!(self.query_lock(waiting, waiting), Ok(true));
        let is_free = || matches!(self.query_lock(start, end), Ok(false));
        let mut turns_began = self.turns_began.lock().ignore_poison();
        let is_over = turns_began.is_some_and(|began| began.elapsed() >= TURNS_TIME);
        if is_over && is_waited_for() {
            let began = Instant::now();
            while began.elapsed() < MAX_COURTESY && is_free() {
                sleep(HEADER_PAUSE);
            }
        }
        if self.try_lock(start, end)? {
            if is_over || turns_began.is_none() {
                *turns_began = Some(Instant::now());
            }
            return Ok(());
        }
        let (mut is_next, mut was_free) = (false, false);
        let locked = self.wait_for_lock(self.wait, || {
            if !is_next {
                is_next = matches!(self.try_lock(waiting, waiting), Ok(true));
            }
            let is_left = was_free;
            was_free = is_free();
            match is_left && was_free && self.try_lock(start, end)? {
                true => Ok(None),
                false if is_next => Ok(Some(NEXT_PAUSE)),
                false => Ok(Some(LATER_PAUSE)),
            }
        });
        if is_next {
            self.backend.unlock_range(waiting, waiting)?;
        }
        locked?;
        *turns_began = Some(Instant::now());
        Ok(())
    }

    /// Waits for a lock that other processes hold for microseconds.
    fn wait_for_header(&self, try_lock: impl Fn() -> Locked<bool>) -> Locked<()> {
        for _ in 0..SHORT_ATTEMPTS {
            if try_lock()? {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        let wait = self.wait.max(MIN_HEADER_WAIT);
        self.wait_for_lock(wait, || Ok((!try_lock()?).then_some(HEADER_PAUSE)))
    }

    /// Calls the function until it returns `None`, once it has the lock, or the waiting time is over. Otherwise the
    /// function returns the time until the next call. It does not block in the system: a process that was stopped while
    /// it holds the lock must not stop this one as well.
    fn wait_for_lock(
        &self,
        wait: Duration,
        mut try_lock: impl FnMut() -> Locked<Option<Duration>>,
    ) -> Locked<()> {
        let began = Instant::now();
        while began.elapsed() <= wait {
            match try_lock()? {
                Some(pause) => sleep(pause),
                None => return Ok(()),
            }
        }
        let path = self.path.clone();
        let locked = match find_holder(&path) {
            Some(holder) => EngineError::Locked { path, holder },
            None => EngineError::locked(&path),
        };
        Err(BackendError::Io(locked.for_redb()))
    }

    /// Fails without a lock of the whole file, which is the last one that redb requests.
    fn insist(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
        try_lock: impl Fn() -> Locked<bool>,
    ) -> Locked<bool> {
        let locked = answer(try_lock);
        let is_whole =
            end == Bound::Unbounded && matches!(start, Bound::Unbounded | Bound::Included(0));
        match locked {
            Err(BackendError::Unsupported) if is_whole && self.must_lock => {
                let path = self.path.clone();
                let refused = EngineError::LocksUnsupported { path };
                Err(BackendError::Io(refused.for_redb()))
            }
            locked => locked,
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

/// Returns true for the errors of a file system that has no locks, or none for a file opened in
/// this way.
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
            path: PathBuf::from(":memory:"),
            must_lock: false,
            reader: None,
            wait: MIN_HEADER_WAIT,
            turns_began: Mutex::new(None),
        }
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // A child that was forked meanwhile shares the lock and must not release it.
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

/// A file of the operating system.
#[derive(Debug)]
struct DiskFile {
    backend: FileBackend,
    second: Arc<File>,
    /// Some file systems count no names.
    had_name: bool,
}

impl DiskFile {
    fn new(file: File) -> Result<Self> {
        let second = Arc::new(file.try_clone()?);
        Ok(Self {
            backend: FileBackend::new(file).map_err(Error::other)?,
            had_name: has_name(&second)?,
            second,
        })
    }
}

/// Returns false if a file has lost its last name, so that nobody else can open it.
#[cfg(unix)]
fn has_name(file: &File) -> Result<bool> {
    Ok(std::os::unix::fs::MetadataExt::nlink(&file.metadata()?) > 0)
}

#[cfg(not(unix))]
fn has_name(_: &File) -> Result<bool> {
    Ok(true)
}

impl StorageBackend for DiskFile {
    fn len(&self) -> Result<u64> {
        self.backend.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.backend.read(offset, out)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.backend.set_len(length)
    }

    fn sync_data(&self) -> Result<()> {
        self.backend.sync_data()?;
        if self.had_name && !has_name(&self.second)? {
            let lost = "the file was removed, or another took its name, while it was open: what is written to it is lost";
            return Err(Error::new(ErrorKind::NotFound, lost));
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.backend.write(offset, data)
    }

    fn close(&self) -> Result<()> {
        self.backend.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<bool> {
        self.backend.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<bool> {
        self.backend.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        self.backend.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        self.backend.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<()> {
        self.backend.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked<bool> {
        self.backend.query_lock_range(start, end)
    }
}

/// The files of the operating system.
#[derive(Debug)]
struct Disk;

impl Files for Disk {
    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn StorageBackend>> {
        Ok(self.open_twice(path, access)?.0)
    }

    fn open_twice(&self, path: &Path, access: Access) -> Result<TwoHandles> {
        // Opening a pipe would block until a process writes to it.
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
        let file = DiskFile::new(file)?;
        let second = Arc::clone(&file.second);
        Ok((Box::new(file), Some(second)))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path)
    }

    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        let folder = folder_of(to);
        // Adds a second name. Unlike a rename, this never replaces an existing file.
        match fs::hard_link(from, to) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
            Err(_) => {
                // Not every file system has hard links.
                rename_over_nothing(from, to)?;
                sync_folder(&folder).inspect_err(|_| {
                    let _ = fs::rename(to, from);
                })
            }
            Ok(()) => {
                sync_folder(&folder).inspect_err(|_| {
                    let _ = fs::remove_file(to);
                })?;
                // A remaining temporary name is harmless.
                let _ = fs::remove_file(from);
                Ok(())
            }
        }
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        // A dangling symbolic link also takes the name.
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

    fn lasting(&self, path: &Path) -> Result<PathBuf> {
        match path.as_os_str().is_empty() {
            true => std::env::current_dir(),
            false => std::path::absolute(path),
        }
    }

    fn set_mode(&self, path: &Path, like: Option<&Path>) -> Result<()> {
        if !cfg!(unix) {
            return Ok(());
        }
        let file = open_regular(path)?;
        let mode = match like {
            Some(like) => kept_permissions(&file, &fs::metadata(like)?)?,
            None => mode_of_new_files(path)?,
        };
        file.set_permissions(mode)
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

/// The files of the operating system, except for one file in memory.
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

    fn open_twice(&self, path: &Path, access: Access) -> Result<TwoHandles> {
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

    fn lasting(&self, path: &Path) -> Result<PathBuf> {
        match path == self.path {
            true => Ok(path.into()),
            false => Disk.lasting(path),
        }
    }

    fn set_mode(&self, path: &Path, like: Option<&Path>) -> Result<()> {
        Disk.set_mode(path, like.filter(|like| **like != self.path))
    }

    fn are_shared(&self) -> bool {
        true
    }
}

/// Creates a file that only its owner may read and write, because its contents may be private.
pub(crate) fn create_private(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Gives a file the owner and the group of the one that it copies or replaces, as far as this process
/// may, and returns the permissions to set: those for a group that it cannot give are left out.
///
/// # Errors
/// Returns the error of reading the file's owner.
#[cfg(unix)]
pub fn kept_permissions(file: &File, like: &fs::Metadata) -> Result<fs::Permissions> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let own = file.metadata()?;
    if own.uid() != like.uid() {
        // Only an administrator may give files away; others keep what they have written.
        let _ = fchown(file, Some(like.uid()), None);
    }
    let gid = like.gid();
    let has_group = own.gid() == gid || fchown(file, None, Some(gid)).is_ok();
    let mode = like.permissions().mode();
    Ok(fs::Permissions::from_mode(match has_group {
        true => mode,
        false => mode & !0o070,
    }))
}

/// Returns the permissions of the other file: there are no owners to give.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn kept_permissions(_file: &File, like: &fs::Metadata) -> Result<fs::Permissions> {
    Ok(like.permissions())
}

/// Returns the mode of files that the process creates. Only creating a file shows it without
/// changing it for all threads.
fn mode_of_new_files(beside: &Path) -> Result<fs::Permissions> {
    let probe = probe_name(beside);
    let made = File::create_new(&probe).and_then(|file| file.metadata());
    // The file is empty. One that a killed process has left would be in the way.
    let _ = fs::remove_file(&probe);
    made.map(|metadata| metadata.permissions())
}

/// Reserves the name with an empty file first, because a rename replaces any file.
fn rename_over_nothing(from: &Path, target: &Path) -> Result<()> {
    File::create_new(target)?;
    fs::rename(from, target).inspect_err(|_| {
        let _ = fs::remove_file(target);
    })
}

/// Syncs the folder, so that a new name is as durable as the file, where a system and the file system can.
///
/// # Errors
/// Returns the error of opening or syncing the folder.
pub fn sync_folder(folder: &Path) -> Result<()> {
    // Other systems cannot open folders.
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(folder)?.sync_all() {
        // Some file systems, mostly those of other machines, sync no folders.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        synced => synced,
    }
}

/// Returns the folder that contains a path.
#[must_use]
pub fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Gives access to files: those of the operating system by default.
#[derive(Clone, Debug)]
pub struct FileSource(pub Arc<dyn Files>);

impl FileSource {
    /// Creates a source with the files of the operating system, except that `path` is a file in
    /// memory, which is empty at first. That file has no locks.
    #[must_use]
    pub fn with_one_in_memory(path: PathBuf) -> Self {
        Self(Arc::new(OneInMemory {
            path,
            file: MemoryFile::default(),
        }))
    }

    /// Returns the path by which a file is found even after the process has changed its folder.
    ///
    /// # Errors
    /// [`EngineError::Io`] if the current folder is unknown.
    pub fn lasting(&self, path: &Path) -> std::result::Result<PathBuf, EngineError> {
        let lasting = self.0.lasting(path);
        lasting.map_err(|error| EngineError::io("looking for", path, error))
    }
}

impl Default for FileSource {
    fn default() -> Self {
        Self(Arc::new(Disk))
    }
}

/// Options are equal if their settings are equal. The source of files is not a setting.
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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_cannot_be_synced_is_no_obstacle() {
        let synced = File::open("/proc").unwrap().sync_all();
        assert_eq!(synced.unwrap_err().kind(), ErrorKind::InvalidInput);
        sync_folder(Path::new("/proc")).unwrap();
        sync_folder(Path::new("/proc/no/such")).unwrap_err();
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
