//! The open redb file: creates, opens and closes it, and begins its transactions.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use redb::{
    ConcurrencyMode, Database, ReadOnlyDatabase, ReadTransaction, ReadableDatabase,
    WriteTransaction,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::engine_error::{EngineError, PAGE_PLACE, Result};
use crate::file_counters::FileCounters;
use crate::files::{Access, FileOptions, OpenFile, Sharing};
use crate::journaled_file::Role;
use crate::layout_check::check_engine;
use crate::page_finder::PageFinder;
use crate::page_layout::{ENGINE_MAGIC, HeadSeal, SEALED_HEAD_BYTES, check_head};
use crate::panics::{PanicSafe, catch_engine_panic};
use crate::verified_file::VerifiedFile;

/// The minimum number of unused bytes for which packing is worth the commits that it takes.
const MIN_UNWRITTEN_BYTES: u64 = 1 << 20;

/// Packing is worth it only if at least one in this number of bytes was never written.
const MIN_UNWRITTEN_PART: u64 = 32;

/// An open file whose pages are verified.
pub struct RedbFile {
    database: PanicSafe<Handle>,
    /// Counters of the reads and writes of the file.
    pub counters: Arc<FileCounters>,
    /// True if other processes may commit while this one has the file open for writing.
    pub has_peers: bool,
    /// True if the file's writers take turns, even if this handle only reads.
    pub shares_writers: bool,
    /// `None` if pages can only be read through the engine.
    pub page_finder: Option<PageFinder>,
}

enum Handle {
    Writable(Database),
    ReadOnly(ReadOnlyDatabase),
}

impl RedbFile {
    /// Opens a database with redb, or creates one if the file is empty and writable.
    fn new(mut file: OpenFile, path: &Path, access: Access, options: &FileOptions) -> Result<Self> {
        let second = file.take_second();
        let is_shared = options.is_shared();
        let (mode, role) = match (options.sharing, access) {
            _ if !is_shared => (ConcurrencyMode::ExclusiveWriter, Role::Alone),
            (Sharing::ManyWriters, Access::Read) => (ConcurrencyMode::MultiWriter, Role::Follower),
            (Sharing::ManyWriters, _) => (ConcurrencyMode::MultiWriter, Role::Peer),
            (_, Access::Read) => (ConcurrencyMode::SingleWriter, Role::Follower),
            (_, _) => (ConcurrencyMode::SingleWriter, Role::Publisher),
        };
        let file = VerifiedFile::new(file, options.journal, role);
        let verification = Arc::clone(&file.verification);
        let mut builder = Database::builder();
        builder.set_cache_size(options.cache_bytes);
        builder.set_concurrency_mode(mode);
        let opened = catch_engine_panic(|| {
            match access {
                Access::Read => builder
                    .open_read_only_with_backend(file)
                    .map(Handle::ReadOnly),
                Access::Write | Access::Create => {
                    builder.create_with_backend(file).map(Handle::Writable)
                }
            }
            .map_err(|error| EngineError::opening_in_redb(path, error))
        })?;
        verification.opened();
        Ok(Self {
            database: PanicSafe::new(opened),
            counters: Arc::clone(&verification.counters),
            has_peers: role == Role::Peer,
            shares_writers: is_shared && options.sharing == Sharing::ManyWriters,
            page_finder: PageFinder::new(second, &verification),
        })
    }

    /// Creates the file. If it exists, returns an error and does not change it.
    ///
    /// The engine begins with 17 pages and doubles the file when it needs room. It then fills the
    /// smallest free areas first, and these include the last 17th of the file. The file could
    /// therefore not be truncated after its contents. A file that is filled at once is first cut to
    /// its first pages, so that the engine fills it from front to end.
    ///
    /// # Errors
    /// [`EngineError::AlreadyExists`], [`EngineError::UntriedEngine`], [`EngineError::LocksUnsupported`],
    /// [`EngineError::Io`].
    pub fn create(path: &Path, options: &FileOptions) -> Result<Self> {
        check_engine()?;
        let file = OpenFile::open(path, Access::Create, options)?;
        let create = || {
            let mut created = match Self::new(file, path, Access::Create, options) {
                Err(EngineError::RangeLocksUnsupported) => {
                    let options = &options.alone();
                    let file = OpenFile::open(path, Access::Write, options)?;
                    Self::new(file, path, Access::Create, options)
                }
                created => created,
            }?;
            if options.is_filled_at_once {
                created.with_writable(|database| Ok(database.compact()?))?;
            }
            if options.notes_many_writers {
                note_writers(path, options, true)?;
            }
            Ok(created)
        };
        create().inspect_err(|_| {
            // The file is ours and empty. If it stayed, a second attempt would fail.
            let _ = options.files.0.remove(path);
        })
    }

    /// Opens a file for writing. Recovers the file if it was not closed.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::Foreign`], [`EngineError::Corrupt`],
    /// [`EngineError::UnknownLayout`], [`EngineError::UntriedEngine`], [`EngineError::Locked`],
    /// [`EngineError::LocksUnsupported`], [`EngineError::Io`].
    pub fn open(path: &Path, options: &FileOptions) -> Result<Self> {
        Self::open_for(path, Access::Write, options)
    }

    /// Opens an existing file. Waits for other processes that have it open, and returns
    /// [`EngineError::Locked`] when the waiting time is over.
    fn open_for(path: &Path, access: Access, options: &FileOptions) -> Result<Self> {
        options.wait_for(|| {
            let open = |options: &FileOptions| {
                let (file, sharing) = open_file(path, access, options)?;
                let as_noted = FileOptions {
                    sharing,
                    ..options.clone()
                };
                Self::new(file, path, access, &as_noted)
            };
            match open(options) {
                Err(EngineError::RangeLocksUnsupported) => open(&options.alone()),
                opened => opened,
            }
        })
    }

    /// Changes whether several processes may take turns to write a file. Waits until no other
    /// process has the file open.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn set_many_writers(path: &Path, options: &FileOptions, are_many: bool) -> Result<()> {
        let as_noted = FileOptions {
            sharing: Sharing::OneWriter,
            ..options.clone()
        };
        let (_, sharing) = open_file(path, Access::Read, &as_noted)?;
        if (sharing == Sharing::ManyWriters) == are_many {
            return Ok(());
        }
        let file = Self::open(path, &options.alone())?;
        note_writers(path, options, are_many)?;
        file.close()
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open), and [`EngineError::NeedsRecovery`].
    pub fn open_read_only(path: &Path, options: &FileOptions) -> Result<Self> {
        Self::open_for(path, Access::Read, options)
    }

    /// Closes the file and returns the errors, which dropping the value would ignore.
    ///
    /// # Errors
    /// [`EngineError::Io`] and other errors of redb.
    pub fn close(self) -> Result<()> {
        let database = self.database.into_inner()?;
        catch_engine_panic(|| match database {
            Handle::Writable(database) => Ok(database.close()?),
            Handle::ReadOnly(database) => Ok(database.close()?),
        })
    }

    /// Closes the file, which truncates it after its last page. If a considerable part of the file
    /// was never written, moves the last pages to free room at lower offsets, which costs about as
    /// much as writing them did. Leaves the pages where they are if another handle has the file
    /// open, or if several processes may write it.
    ///
    /// # Errors
    /// The errors of [`close`](Self::close) and [`open`](Self::open).
    pub fn close_packed(self, path: &Path, options: &FileOptions) -> Result<()> {
        let has_peers = self.has_peers;
        self.close()?;
        // Packing needs exclusive access, for which other processes would have to wait. Writers that
        // take turns open the file too often for that.
        if has_peers {
            return Ok(());
        }
        match is_sparse(path, options) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            // It has another name by now.
            Err(EngineError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        let at_once = FileOptions {
            wait: Duration::ZERO,
            ..options.alone()
        };
        match Self::open(path, &at_once) {
            Ok(file) => file.pack(|| Ok(())),
            // Another process has the file open. This handle has closed it properly.
            Err(EngineError::Locked { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Moves pages to lower offsets until no page can move, truncates the file after its last page,
    /// and closes it. Calls `notify` after each pass, and stops if that returns an error.
    ///
    /// # Errors
    /// The errors of [`close`](Self::close), [`EngineError::ReadOnly`], and the error of `notify`.
    pub fn pack<E: From<EngineError>>(
        mut self,
        mut notify: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        while self.with_writable(|database| Ok(database.compact()?))? {
            notify()?;
        }
        Ok(self.close()?)
    }

    /// Begins a transaction that reads the last commit.
    ///
    /// # Errors
    /// The errors of redb.
    pub fn begin_read(&self) -> Result<ReadTransaction> {
        Ok(match self.database.get()? {
            Handle::Writable(database) => database.begin_read()?,
            Handle::ReadOnly(database) => database.begin_read()?,
        })
    }

    /// Begins a write transaction. Waits until no other one is open.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`], and the errors of redb.
    pub fn begin_write(&self) -> Result<WriteTransaction> {
        match self.database.get()? {
            Handle::Writable(database) => Ok(database.begin_write()?),
            Handle::ReadOnly(_) => Err(EngineError::ReadOnly),
        }
    }

    fn with_writable<T>(&mut self, run: impl FnOnce(&mut Database) -> Result<T>) -> Result<T> {
        match self.database.get_mut()? {
            Handle::Writable(database) => catch_engine_panic(|| run(database)),
            Handle::ReadOnly(_) => Err(EngineError::ReadOnly),
        }
    }
}

/// Commits changes without syncing them. A crash may lose them until a later commit is durable.
///
/// A commit computes the checksums of all pages that its transaction has written. If these exceed
/// the cache, the engine rereads and rewrites the rest. Smaller commits avoid that.
///
/// # Errors
/// The errors of redb.
pub fn commit_without_sync(mut write: WriteTransaction) -> Result<()> {
    write
        .set_durability(redb::Durability::None)
        .map_err(|error| EngineError::bug(format!("a commit must be durable: {error}")))?;
    Ok(write.commit()?)
}

/// Verifies the checksums of all pages and rebuilds the list of free pages. Returns true if the
/// list was right. redb does this in one step, so `notify` is called only before and after it, with
/// the number of bytes done and the total.
///
/// # Errors
/// The errors of [`RedbFile::open`], [`EngineError::Corrupt`], and the error of `notify`.
pub fn verify_pages<E: From<EngineError>>(
    path: &Path,
    options: &FileOptions,
    mut notify: impl FnMut(u64, u64) -> Result<(), E>,
) -> Result<bool, E> {
    let (total, _) = file_size(path, options)?;
    notify(0, total)?;
    let is_right =
        RedbFile::open(path, options)?.with_writable(|database| Ok(database.check_integrity()?))?;
    notify(total, total)?;
    Ok(is_right)
}

/// Opens an existing file. Examines its first bytes before the engine sees them, because the engine
/// would turn an empty file into a database.
///
/// Also returns how processes share the file, which the file records.
fn open_file(path: &Path, access: Access, options: &FileOptions) -> Result<(OpenFile, Sharing)> {
    check_engine()?;
    let file = OpenFile::open(path, access, options)?;
    let reading = |error| EngineError::io("reading", path, error);
    let mut head = [0; SEALED_HEAD_BYTES];
    let length = file.len().map_err(reading)?.min(SEALED_HEAD_BYTES as u64);
    let length = usize::try_from(length).unwrap_or(SEALED_HEAD_BYTES);
    let (start, _) = head.split_at_mut(length);
    file.read(0, start).map_err(reading)?;
    let foreign = |reason| Err(EngineError::foreign(path, reason));
    if length < ENGINE_MAGIC.len() {
        return foreign("it is shorter than the smallest store");
    }
    if !head.starts_with(ENGINE_MAGIC) {
        return foreign("its first bytes are those of another kind of file");
    }
    if check_head(&head) == HeadSeal::Foreign {
        return foreign("it is a redb database that no store is in");
    }
    let mut writers = [0; CHECKED_NUMBER_BYTES];
    let is_there = file.len().map_err(reading)? >= (WRITERS_OFFSET + CHECKED_NUMBER_BYTES) as u64;
    if is_there {
        file.read(WRITERS_OFFSET as u64, &mut writers)
            .map_err(reading)?;
    }
    let sharing = match (options.sharing, parse_number(writers)) {
        (Sharing::Alone, _) => Sharing::Alone,
        (_, Some(0)) => Sharing::OneWriter,
        (_, Some(1)) => Sharing::ManyWriters,
        (_, Some(_)) => {
            let found = "a way of sharing that this release does not know".to_owned();
            return Err(EngineError::UnknownLayout { found });
        }
        (_, None) => {
            let place = format!("{PAGE_PLACE}0, byte {WRITERS_OFFSET}");
            return Err(EngineError::corrupt(place, "found a wrong checksum"));
        }
    };
    Ok((file, sharing))
}

/// The offset of the record of whether several processes take turns to write the file. It is
/// written once, and has a sector to itself.
const WRITERS_OFFSET: usize = 1_024;

/// The length of a number with its checksum.
const CHECKED_NUMBER_BYTES: usize = 16;

fn encode_number(number: u64) -> [u8; CHECKED_NUMBER_BYTES] {
    let checksum = xxh3_64(&number.to_le_bytes());
    (u128::from(number) | u128::from(checksum) << 64).to_le_bytes()
}

/// Parses a number with its checksum. Zeros stand for 0. Returns `None` if the checksum is wrong.
fn parse_number(bytes: [u8; CHECKED_NUMBER_BYTES]) -> Option<u64> {
    let number = u128::from_le_bytes(bytes) as u64;
    (bytes == [0; CHECKED_NUMBER_BYTES] || bytes == encode_number(number)).then_some(number)
}

/// Records in a file whether several processes may take turns to write it. No other process may
/// have the file open.
///
/// # Errors
/// [`EngineError::Io`].
fn note_writers(path: &Path, options: &FileOptions, are_many: bool) -> Result<()> {
    let writing = |error| EngineError::io("writing", path, error);
    let file = options.files.0.open(path, Access::Write).map_err(writing)?;
    let noted = encode_number(are_many.into());
    file.write(WRITERS_OFFSET as u64, &noted).map_err(writing)?;
    file.sync_data().map_err(writing)
}

/// Returns true if a considerable part of a file was never written. The engine doubles a file to
/// make room, and fills it from both ends.
fn is_sparse(path: &Path, options: &FileOptions) -> Result<bool> {
    let (length_bytes, disk_bytes) = file_size(path, options)?;
    let unwritten_bytes = length_bytes.saturating_sub(disk_bytes);
    Ok(unwritten_bytes > MIN_UNWRITTEN_BYTES.max(length_bytes / MIN_UNWRITTEN_PART))
}

/// Returns the length of a file and its size on disk, in bytes.
///
/// # Errors
/// [`EngineError::Io`].
pub fn file_size(path: &Path, options: &FileOptions) -> Result<(u64, u64)> {
    let size = options.files.0.size_bytes(path);
    size.map_err(|error| EngineError::io("reading", path, error))
}

#[cfg(test)]
mod tests {
    use redb::TableDefinition;

    use super::*;

    const ROWS: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("rows");

    /// Returns the length in pages of a file into which this number of rows, each a page long, were
    /// written at once.
    fn length_pages(rows: u64, options: &FileOptions) -> u64 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = RedbFile::create(&path, options).unwrap();
        let write = file.begin_write().unwrap();
        let mut table = write.open_table(ROWS).unwrap();
        for id in 0..rows {
            table.insert(id, [7; 4_060].as_slice()).unwrap();
        }
        drop(table);
        write.commit().unwrap();
        file.close().unwrap();
        file_size(&path, options).unwrap().0 / 4_096
    }

    #[test]
    fn file_filled_in_one_commit_is_as_long_as_its_pages() {
        let options = FileOptions::default();
        let at_once = FileOptions {
            is_filled_at_once: true,
            ..options.clone()
        };
        for rows in [0, 1, 100, 600, 1_100, 3_000, 5_000] {
            // One page refers to about eighty others.
            let pages = length_pages(rows, &at_once);
            assert!(pages <= rows + rows / 40 + 30, "{pages} for {rows}");
        }
        // Without it, the engine doubles the file beyond 2,177 pages and fills the last ones.
        assert!(length_pages(3_000, &options) > 4_000);
    }
}
