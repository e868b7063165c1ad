//! The open redb file: opening, creating and closing it, and its transactions.

use std::path::Path;
use std::sync::Arc;

use redb::{
    ConcurrencyMode, Database, ReadOnlyDatabase, ReadTransaction, ReadableDatabase,
    WriteTransaction,
};

use crate::engine_error::{EngineError, PAGE_PLACE, Result};
use crate::file_counters::FileCounters;
use crate::files::{Access, FileOptions, OpenFile, Sharing};
use crate::journal::{PUBLISHED_BYTES, WRITERS_OFFSET, encode_published, parse_published};
use crate::journaled_file::Role;
use crate::layout_check::check_engine;
use crate::page_finder::PageFinder;
use crate::page_layout::{ENGINE_MAGIC, HeadSeal, SEALED_HEAD_BYTES, check_head};
use crate::panics::{PanicSafe, catch_engine_panic};
use crate::verified_file::VerifiedFile;

/// Less that was never written is not worth the commits that packing takes.
const MIN_UNWRITTEN_BYTES: u64 = 1 << 20;

/// The minimum unwritten part of the file, as one in this number of bytes.
const MIN_UNWRITTEN_PART: u64 = 32;

/// An open file whose pages are verified.
pub struct RedbFile {
    database: PanicSafe<Handle>,
    /// Counters of the reads and writes of the file.
    pub counters: Arc<FileCounters>,
    /// True if other processes may commit to the file while this one has it open for writing.
    pub has_peers: bool,
    /// True if the file is noted as one whose writers take turns, also where this handle only reads.
    pub shares_writers: bool,
    /// `None` where the file can be read through the engine alone.
    pub page_finder: Option<PageFinder>,
}

enum Handle {
    Writable(Database),
    ReadOnly(ReadOnlyDatabase),
}

impl RedbFile {
    /// Lets redb open a database in a file, or create one in an empty file that can be written.
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

    /// Creates the file; an existing one is an error and is not changed.
    ///
    /// The engine begins with 17 pages and doubles a file to have room. It then first fills the
    /// smallest pieces of that room, which include the last 17th part, so that the file could not
    /// be cut behind its contents. A file that is filled at once is therefore cut to its first
    /// pages before: then it is filled from front to end.
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
            // The file is ours and holds nothing; left behind, it would refuse a second attempt.
            let _ = options.files.0.remove(path);
        })
    }

    /// Opens a file for writing. One that was not closed is recovered.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::Foreign`], [`EngineError::Corrupt`],
    /// [`EngineError::UnknownLayout`], [`EngineError::UntriedEngine`], [`EngineError::Locked`],
    /// [`EngineError::LocksUnsupported`], [`EngineError::Io`].
    pub fn open(path: &Path, options: &FileOptions) -> Result<Self> {
        Self::open_for(path, Access::Write, options)
    }

    /// Opens a file that exists, once no other process is in the way, or returns the error of that.
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

    /// Changes whether several processes take turns in writing a file. Waits until this process has it alone.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Self::open).
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
    /// Returns the errors of [`open`](Self::open), and [`EngineError::NeedsRecovery`].
    pub fn open_read_only(path: &Path, options: &FileOptions) -> Result<Self> {
        Self::open_for(path, Access::Read, options)
    }

    /// Closes the file and returns errors, which dropping it would ignore.
    ///
    /// # Errors
    /// [`EngineError::Io`] and others of redb.
    pub fn close(self) -> Result<()> {
        let database = self.database.into_inner()?;
        catch_engine_panic(|| match database {
            Handle::Writable(database) => Ok(database.close()?),
            Handle::ReadOnly(database) => Ok(database.close()?),
        })
    }

    /// Closes the file, which cuts it behind its last page. If a good part of it was never written all the
    /// same, its last pages are moved to where there is room before them, which costs about as much as was
    /// written.
    ///
    /// # Errors
    /// Returns the errors of [`close`](Self::close) and [`open`](Self::open).
    pub fn close_packed(self, path: &Path, options: &FileOptions) -> Result<()> {
        let has_peers = self.has_peers;
        self.close()?;
        // Packing has the file alone, and others wait for it.
        if has_peers || !is_sparse(path, options)? {
            return Ok(());
        }
        match Self::open(path, options) {
            Ok(file) => file.pack(|| Ok(())),
            // Somebody else has it now, and it is closed well.
            Err(EngineError::Locked { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Moves pages to the front until none can be moved, cuts the file behind the last one, and
    /// closes it. Calls `notify` after each pass; an error ends it.
    ///
    /// # Errors
    /// Returns the errors of [`close`](Self::close), [`EngineError::ReadOnly`], and those of `notify`.
    pub fn pack<E: From<EngineError>>(
        mut self,
        mut notify: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        while self.with_writable(|database| Ok(database.compact()?))? {
            notify()?;
        }
        Ok(self.close()?)
    }

    /// Begins to read the last commit.
    ///
    /// # Errors
    /// Returns the errors of redb.
    pub fn begin_read(&self) -> Result<ReadTransaction> {
        Ok(match self.database.get()? {
            Handle::Writable(database) => database.begin_read()?,
            Handle::ReadOnly(database) => database.begin_read()?,
        })
    }

    /// Begins to write. Waits for another write transaction to end.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`], and those of redb.
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

/// Commits changes that need not be in the file after a crash. They are once a later commit is durable.
///
/// At a commit the engine computes the checksums of all pages that the transaction has written: it reads
/// again, and writes again, those that were too many for its cache. Commits of less than that save both.
///
/// # Errors
/// Returns the errors of redb.
pub fn commit_without_sync(mut write: WriteTransaction) -> Result<()> {
    write
        .set_durability(redb::Durability::None)
        .map_err(|error| EngineError::bug(format!("a commit must be durable: {error}")))?;
    Ok(write.commit()?)
}

/// Verifies the checksums of all pages, and rebuilds the list of free pages. Returns whether that
/// list was right. redb does it in one step: `notify` is called before and after it, with the number
/// of bytes done and the total.
///
/// # Errors
/// Returns the errors of [`RedbFile::open`], [`EngineError::Corrupt`], and those of `notify`.
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

/// Opens a file that exists, and looks at its first bytes before the engine does, which would make a
/// database of an empty file.
///
/// Also returns how it is shared, which is noted in the file.
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
    let mut writers = [0; PUBLISHED_BYTES];
    let is_there = file.len().map_err(reading)? >= (WRITERS_OFFSET + PUBLISHED_BYTES) as u64;
    if is_there {
        file.read(WRITERS_OFFSET as u64, &mut writers)
            .map_err(reading)?;
    }
    let sharing = match (options.sharing, parse_published(&writers)) {
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

/// Notes in a file that this process alone has open whether several processes take turns in writing it.
///
/// # Errors
/// [`EngineError::Io`].
fn note_writers(path: &Path, options: &FileOptions, are_many: bool) -> Result<()> {
    let writing = |error| EngineError::io("writing", path, error);
    let file = options.files.0.open(path, Access::Write).map_err(writing)?;
    let noted = encode_published(are_many.into());
    file.write(WRITERS_OFFSET as u64, &noted).map_err(writing)?;
    file.sync_data().map_err(writing)
}

/// Returns true if a good part of a file was never written: the engine has doubled it to have room, and filled
/// it from both ends.
fn is_sparse(path: &Path, options: &FileOptions) -> Result<bool> {
    let (length_bytes, disk_bytes) = file_size(path, options)?;
    let unwritten_bytes = length_bytes.saturating_sub(disk_bytes);
    Ok(unwritten_bytes > MIN_UNWRITTEN_BYTES.max(length_bytes / MIN_UNWRITTEN_PART))
}

/// Returns the length of a file, and its bytes on disk.
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

    /// Returns the length of a file in pages, after this number of rows of a page each were written
    /// at once.
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
            // A page in some eighty names the others.
            let pages = length_pages(rows, &at_once);
            assert!(pages <= rows + rows / 40 + 30, "{pages} for {rows}");
        }
        // The engine's own way: it has doubled the file beyond 2,177 pages, and filled the last.
        assert!(length_pages(3_000, &options) > 4_000);
    }
}
