//! The open redb file: opening, creating and closing it, and its transactions.

use std::io::ErrorKind;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use redb::{
    BackendError, Database, ReadOnlyDatabase, ReadTransaction, StorageBackend, WriteTransaction,
};

use super::errors::EngineResult;
use crate::engine::errors::{io_error, is_without_locks, open_error};
use crate::engine::files::Access;
use crate::engine::files::{FileOptions, open_lockable};
use crate::engine::journaled_file::JournaledFile;
use crate::engine::layout_check::check_engine;
use crate::engine::page_finder::PageFinder;
use crate::engine::page_layout::{ENGINE_MAGIC, HeadSeal, SEALED_HEAD_BYTES, check_head};
use crate::engine::panics::{PanicSafe, catch_engine_panic};
use crate::engine::verified_file::{Verification, VerifiedFile};
use crate::error::{Error, Result};
use crate::invariant::bug;
use crate::observe::SharedCounters;
use crate::types::{Phase, Watch};

/// Less that was never written is not worth the commits that packing takes.
const MIN_UNWRITTEN_BYTES: u64 = 1 << 20;

/// One in so many bytes of the file may be unwritten.
const MIN_UNWRITTEN_PART: u64 = 32;

/// The open file.
pub(crate) struct RedbFile {
    database: PanicSafe<Handle>,
    /// Counters of the reads and writes of the file.
    pub(crate) counters: Arc<SharedCounters>,
    /// `None` where the file can be read through the engine alone.
    pub(crate) page_finder: Option<PageFinder>,
}

enum Handle {
    Writable(Database),
    ReadOnly(ReadOnlyDatabase),
}

impl RedbFile {
    fn new(
        handle: Handle,
        path: &Path,
        options: &dyn FileOptions,
        verification: &Arc<Verification>,
    ) -> Self {
        Self {
            database: PanicSafe::new(handle),
            counters: Arc::clone(&verification.counters),
            page_finder: PageFinder::open(path, options, verification),
        }
    }

    /// Creates the file; one that exists is an error and stays as it is.
    ///
    /// The engine begins with 257 pages and doubles a file to have room. What it then fills first are the
    /// smallest pieces of that room, and the last 257th part is among these, so that the file could not be cut
    /// behind what it holds. A file that is filled at once is therefore cut to its first pages before: it is filled
    /// from front to end then.
    pub(crate) fn create(path: &Path, options: &dyn FileOptions) -> Result<Self> {
        check_engine()?;
        let file = open_lockable(path, Access::Create, options);
        let file = file.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Error::AlreadyExists { path: path.into() },
            _ => io_error("creating", path, error),
        })?;
        let file = JournaledFile::new(file, options.journal());
        let (file, verification) = VerifiedFile::new(file);
        let created = open_in(file, &verification, path, options);
        let created = created.and_then(|mut database| match options.is_filled_at_once() {
            true => catch_engine_panic(|| database.compact().engine().map(|_| database)),
            false => Ok(database),
        });
        let database = created.inspect_err(|_| {
            // The file is ours and holds nothing; left behind, it would refuse a second attempt.
            let _ = options.file_source().remove(path);
        })?;
        let handle = Handle::Writable(database);
        Ok(Self::new(handle, path, options, &verification))
    }

    pub(crate) fn open(path: &Path, options: &dyn FileOptions) -> Result<Self> {
        let (file, verification) = open_file(path, Access::Write, options)?;
        let database = open_in(file, &verification, path, options)?;
        let handle = Handle::Writable(database);
        Ok(Self::new(handle, path, options, &verification))
    }

    pub(crate) fn open_read_only(path: &Path, options: &dyn FileOptions) -> Result<Self> {
        let (file, verification) = open_file(path, Access::Read, options)?;
        let mut builder = Database::builder();
        builder.set_cache_size(options.cache_size());
        let opened = catch_engine_panic(|| {
            let opened = builder.open_read_only_with_backend(file);
            opened.map_err(|error| match error {
                redb::DatabaseError::RepairAborted => Error::NeedsRecovery { path: path.into() },
                error => open_error(path, error),
            })
        })?;
        verification.opened();
        let handle = Handle::ReadOnly(opened);
        Ok(Self::new(handle, path, options, &verification))
    }

    /// Closes the file and returns errors, which dropping it would ignore.
    pub(crate) fn close(self) -> Result<()> {
        let database = self.database.into_inner()?;
        catch_engine_panic(|| match database {
            Handle::Writable(database) => Ok(database.close().engine()?),
            Handle::ReadOnly(database) => Ok(database.close().engine()?),
        })
    }

    /// Closes the file, which cuts it behind its last page. If a good part of it was never written all the
    /// same, its last pages are moved to where there is room before them, which costs about as much as was
    /// written.
    pub(crate) fn close_packed(self, path: &Path, options: &dyn FileOptions) -> Result<()> {
        self.close()?;
        if !is_sparse(path, options)? {
            return Ok(());
        }
        match open_database(path, options) {
            Ok(database) => catch_engine_panic(|| pack(database, || Ok(()))),
            // Somebody else has it now, and it is closed well.
            Err(Error::Locked { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn begin_read(&self) -> Result<ReadTransaction> {
        use redb::ReadableDatabase;
        Ok(match self.database.get()? {
            Handle::Writable(database) => database.begin_read().engine()?,
            Handle::ReadOnly(database) => database.begin_read().engine()?,
        })
    }

    pub(crate) fn begin_write(&self) -> Result<WriteTransaction> {
        match self.database.get()? {
            Handle::Writable(database) => Ok(database.begin_write().engine()?),
            Handle::ReadOnly(_) => Err(Error::ReadOnly),
        }
    }
}

/// Commits changes that need not be in the file after a crash. They are once a later commit is durable.
///
/// At a commit the engine computes the checksums of all pages that the transaction has written: it reads
/// again, and writes again, those that were too many for its cache. Commits of less than that save both.
pub(crate) fn commit_without_sync(mut write: WriteTransaction) -> Result<()> {
    let set = write.set_durability(redb::Durability::None);
    set.map_err(|error| bug(format!("a commit must be durable: {error}")))?;
    write.commit().engine()
}

/// Moves pages to the front until none can be moved, cuts the file behind the last one, and closes it.
/// Calls `tell` after each pass; an error ends it.
pub(crate) fn pack(mut database: Database, mut tell: impl FnMut() -> Result<()>) -> Result<()> {
    while database.compact().engine()? {
        tell()?;
    }
    database.close().engine()
}

/// Opens the engine's file for writing, with nothing of the store read yet.
pub(crate) fn open_database(path: &Path, options: &dyn FileOptions) -> Result<Database> {
    let (file, verification) = open_file(path, Access::Write, options)?;
    open_in(file, &verification, path, options)
}

/// Has the engine open what is in a file, or make a database of an empty one.
fn open_in(
    file: VerifiedFile,
    verification: &Verification,
    path: &Path,
    options: &dyn FileOptions,
) -> Result<Database> {
    let mut builder = Database::builder();
    builder.set_cache_size(options.cache_size());
    let opened = catch_engine_panic(|| {
        let opened = builder.create_with_backend(file);
        opened.map_err(|error| open_error(path, error))
    })?;
    verification.opened();
    Ok(opened)
}

/// Verifies the checksums of all pages, and rebuilds the list of free pages. Returns whether that list
/// was right. The engine does it in one step.
pub(crate) fn verify_pages(
    path: &Path,
    options: &dyn FileOptions,
    phase: Phase,
    watch: &mut Watch<'_>,
) -> Result<bool> {
    let (total, _) = file_size(path, options)?;
    watch.tell(phase, 0, total)?;
    let mut database = open_database(path, options)?;
    let pages = catch_engine_panic(|| database.check_integrity().engine());
    catch_engine_panic(|| {
        drop(database);
        Ok(())
    })?;
    let pages = pages?;
    watch.tell(phase, total, total)?;
    Ok(pages)
}

/// Opens a file that exists, and looks at its first bytes before the engine does, which would make a
/// database of an empty file.
fn open_file(
    path: &Path,
    access: Access,
    options: &dyn FileOptions,
) -> Result<(VerifiedFile, Arc<Verification>)> {
    let not_a_store = |reason: &str| Error::NotAStore {
        path: path.into(),
        reason: reason.into(),
    };
    let file = open_bytes(path, access, options)?;
    let reading = |error| io_error("reading", path, error);
    let mut head = [0; SEALED_HEAD_BYTES];
    let length = file.len().map_err(reading)?.min(SEALED_HEAD_BYTES as u64);
    let length = usize::try_from(length).unwrap_or(SEALED_HEAD_BYTES);
    let (start, _) = head.split_at_mut(length);
    file.read(0, start).map_err(reading)?;
    if length < ENGINE_MAGIC.len() {
        return Err(not_a_store("it is shorter than the smallest store"));
    }
    if !head.starts_with(ENGINE_MAGIC) {
        return Err(not_a_store(
            "its first bytes are those of another kind of file",
        ));
    }
    if check_head(&head) == HeadSeal::Foreign {
        return Err(not_a_store("it is a redb database that no store is in"));
    }
    Ok(VerifiedFile::new(JournaledFile::new(
        file,
        options.journal(),
    )))
}

/// Opens a file that exists, whatever is in it.
pub(super) fn open_bytes(
    path: &Path,
    access: Access,
    options: &dyn FileOptions,
) -> Result<Box<dyn redb::StorageBackend>> {
    check_engine()?;
    let file = open_lockable(path, access, options);
    file.map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::NotFound { path: path.into() },
        ErrorKind::IsADirectory => Error::NotAStore {
            path: path.into(),
            reason: "it is no regular file".into(),
        },
        _ => io_error("opening", path, error),
    })
}

/// Keeps writers away while the file is read, where files can be locked.
pub(super) fn lock_shared(file: &dyn StorageBackend, path: &Path) -> Result<()> {
    // Writers lock this byte for themselves, readers share it.
    let first = Bound::Included(0);
    let locked = file.try_lock_shared_range(first, first);
    let locked = locked.or_else(|_| file.try_lock_shared_range(Bound::Unbounded, Bound::Unbounded));
    match locked {
        Ok(false) => Err(Error::Locked { path: path.into() }),
        Err(BackendError::Io(error)) if is_without_locks(&error) => {
            Err(Error::LocksUnsupported { path: path.into() })
        }
        _ => Ok(()),
    }
}

/// Returns true if a good part of a file was never written: the engine has doubled it to have room, and filled
/// it from both ends.
fn is_sparse(path: &Path, options: &dyn FileOptions) -> Result<bool> {
    let (length_bytes, disk_bytes) = file_size(path, options)?;
    let unwritten_bytes = length_bytes.saturating_sub(disk_bytes);
    Ok(unwritten_bytes > MIN_UNWRITTEN_BYTES.max(length_bytes / MIN_UNWRITTEN_PART))
}

/// Returns the length of a file, and its bytes on disk.
pub(crate) fn file_size(path: &std::path::Path, options: &dyn FileOptions) -> Result<(u64, u64)> {
    let size = options.file_source().size_bytes(path);
    size.map_err(|error| io_error("reading", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::DOCUMENTS;
    use crate::options::StoreOptions;

    /// The length of a file in pages, after so many rows of a page each were written at once.
    fn length_pages(rows: u64, options: &StoreOptions) -> u64 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = RedbFile::create(&path, options).unwrap();
        let write = file.begin_write().unwrap();
        let mut documents = write.open_table(DOCUMENTS).unwrap();
        for id in 0..rows {
            documents.insert(id, [7; 4_060].as_slice()).unwrap();
        }
        drop(documents);
        write.commit().unwrap();
        file.close().unwrap();
        file_size(&path, options).unwrap().0 / 4_096
    }

    #[test]
    fn a_file_that_is_filled_at_once_is_as_long_as_what_it_holds() {
        let options = StoreOptions::new();
        for rows in [0, 1, 100, 600, 1_100, 3_000, 5_000] {
            // A page in some eighty names the others.
            let pages = length_pages(rows, &options.written_at_once());
            assert!(pages <= rows + rows / 40 + 30, "{pages} for {rows}");
        }
        // The engine's own way: it has doubled the file beyond 1,028 pages, and filled the last.
        assert!(length_pages(1_100, &options) > 2_000);
    }
}
