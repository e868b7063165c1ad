//! A copy of a store that is in use.
//!
//! Rows are copied unchanged, because their checksums cover table, key and value, but not the place
//! in the file. Pages are rebuilt and filled.

use std::ops::Bound;
use std::path::Path;

use crate::engine::{
    EngineResult, Key, META, OwnedAccessGuard, PanicSafe, ReadableTableMetadata, RedbFile,
    StorageError, TableDefinition, TableHandle, TemporaryFile, Value, WriteTransaction,
    catch_engine_panic, file_size, folder_of, for_each_table, must_not_exist,
};
use crate::error::{Error, Result};
use crate::format::{FORMAT_VERSION, Header, header};
use crate::invariant::invariant;
use crate::maintain::stored_keys::row_check;
use crate::observe::{UPKEEP, log as events};
use crate::options::StoreOptions;
use crate::read::SnapshotView;
use crate::types::{Operation, Phase, ReportSettings, Watch};

/// The size of the rows that are read together, and then written: many at a time fill whole pages.
const PIECE_BYTES: usize = 4 << 20;

/// Bytes that one transaction of the copy writes. Its pages cannot be reused before it ends, and
/// the engine lists them in memory until then.
const TRANSACTION_BYTES: u64 = 64 << 20;

/// Describes the copy of a snapshot in a new file under `path`.
pub(crate) fn backup<'a>(snapshot: &'a SnapshotView, path: &Path) -> Operation<'a, BackupReport> {
    let target = path.to_path_buf();
    let settings = StoreOptions::new();
    Operation::new("the backup", settings, move |options, watch| {
        back_up(snapshot, &target, &options, watch)
    })
}

impl Operation<'_, BackupReport> {
    /// Sets the options for writing the copy. Only the cache matters. Default: the default
    /// [`StoreOptions`].
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, StoreOptions, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// # let copy = folder.path().join("copy.rsm");
    /// let options = StoreOptions::new().cache_bytes(16 << 20);
    /// store.snapshot()?.backup(&copy).store(options).run()?;
    /// assert!(Store::open(&copy)?.snapshot()?.is_empty());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn store(mut self, options: StoreOptions) -> Self {
        self.settings = options;
        self
    }
}

/// The result of a backup.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// # let page = store.sketch_text("some text or other")?;
/// # store.insert("a", &page)?;
/// # let copy = folder.path().join("copy.rsm");
/// let report = store.snapshot()?.backup(&copy).run()?;
/// assert_eq!(report.documents, 1);
/// println!("{} rows, {} bytes", report.rows, report.size_bytes);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// The number of live documents.
    pub documents: u64,
    /// The number of rows in all tables.
    pub rows: u64,
    /// The size of the copy on disk, in bytes.
    pub size_bytes: u64,
}

impl ReportSettings for BackupReport {
    type Settings = StoreOptions;
}

/// Copies a snapshot into a new file under `path`.
fn back_up(
    snapshot: &SnapshotView,
    path: &Path,
    options: &StoreOptions,
    watch: &mut Watch<'_>,
) -> Result<BackupReport> {
    options.validate()?;
    let files = options.shared_files();
    must_not_exist(path, files)?;
    let path = &*files.lasting(path)?;
    snapshot.context().run_checked(|| check_tables(snapshot))?;
    // The copy has no readers, so all of the cache is for its pages.
    let is_for_many = snapshot.is_for_many();
    let shared_writers = options.wants_shared_writers().unwrap_or(is_for_many);
    let options = &options.written_at_once().shared_writers(shared_writers);
    let make = |file: &Path| RedbFile::create(file, &options.file_options()).engine();
    let made = TemporaryFile::create(&folder_of(path), files, make);
    // The requested name helps the user more than the temporary one.
    let (scratch, engine) = made.map_err(|error| copy_error(path, error))?;
    let mut copy = StoreCopy {
        snapshot,
        path,
        options,
        file: scratch.path(),
        write: None,
        engine,
        written_bytes: 0,
        rows: 0,
        total: snapshot.context().run_checked(|| row_count(snapshot))?,
        watch,
    };
    copy.report()?;
    copy.all_tables()?;
    let rows = copy.finish()?;
    scratch.publish(path, Some(&snapshot.context().path))?;
    let message = format_args!("copied to {}: {rows} rows", path.display());
    events::debug(UPKEEP, &snapshot.context().path, message);
    Ok(BackupReport {
        documents: snapshot.len(),
        rows,
        size_bytes: file_size(path, &options.file_options())?.1,
    })
}

/// Returns an error if the store may have tables that this release does not know: a copy without
/// them would be another store.
fn check_tables(snapshot: &SnapshotView) -> Result<()> {
    let read = &snapshot.inner.tables()?.read;
    let row = read
        .open_table(META)
        .engine()?
        .get(header::HEADER)
        .engine()?;
    let row =
        row.ok_or_else(|| Error::corrupt("table meta", "found no row header, expected one"))?;
    let header = Header::decode(row.value())?;
    if header.version > FORMAT_VERSION {
        return Err(Error::NewerFormat {
            found: header.version,
            supported: FORMAT_VERSION,
        });
    }
    let flags = header.unknown_flags();
    if flags != 0 {
        return Err(Error::UnknownFeatures { flags });
    }
    let mut known: Vec<String> = Vec::new();
    for_each_table!(snapshot.schema(), table => known.push(table.name().to_owned()));
    let mut tables = read.list_tables().engine()?;
    match tables.find(|table| known.iter().all(|known| known != table.name())) {
        None => Ok(()),
        Some(table) => {
            let place = format!("table {}", table.name());
            let detail = "found it, but no feature of the store has it";
            Err(Error::corrupt(place, detail))
        }
    }
}

/// Returns the number of rows of all tables.
pub(super) fn row_count(snapshot: &SnapshotView) -> Result<u64> {
    let read = &snapshot.inner.tables()?.read;
    let mut rows = 0_u64;
    for_each_table!(snapshot.schema(), table => {
        let count = read.open_table(table).engine()?.len().engine()?;
        rows = rows.saturating_add(count);
    });
    Ok(rows)
}

/// Adds the path of the copy to an error, because the engine does not name the file.
fn copy_error(path: &Path, error: Error) -> Error {
    match error {
        Error::Io { source, .. } => Error::io("writing", path, source),
        error => error,
    }
}

/// Rows that are copied from one table to the same table of the copy.
#[derive(Default)]
struct CopiedRows {
    /// Key and value of each row, one after the other.
    bytes: Vec<u8>,
    /// The length of each key and value, in bytes.
    lengths: Vec<(usize, usize)>,
}

impl CopiedRows {
    /// Takes the next rows of a table, in the place of those before.
    fn fill<K: Key + 'static>(
        &mut self,
        table: &str,
        rows: &mut impl Iterator<Item = Result<OwnedRow<K>, StorageError>>,
    ) -> Result<()> {
        self.bytes.clear();
        self.lengths.clear();
        while self.bytes.len() < PIECE_BYTES {
            let Some(row) = rows.next() else {
                break;
            };
            let (key, value) = row.engine()?;
            let (typed_key, value) = (key.value(), value.value());
            let key_bytes = K::as_bytes(&typed_key);
            row_check(table, key_bytes.as_ref(), value)?;
            self.bytes.extend_from_slice(key_bytes.as_ref());
            self.bytes.extend_from_slice(value);
            self.lengths.push((key_bytes.as_ref().len(), value.len()));
        }
        Ok(())
    }

    fn rows(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = self.bytes.as_slice();
        self.lengths.iter().map_while(move |(key, value)| {
            let (found, after) = rest.split_at_checked(*key)?;
            let (row, after) = after.split_at_checked(*value)?;
            rest = after;
            Some((found, row))
        })
    }
}

type OwnedRow<K> = (OwnedAccessGuard<K>, OwnedAccessGuard<&'static [u8]>);

/// A copy that is being made.
struct StoreCopy<'a, 'w> {
    snapshot: &'a SnapshotView,
    path: &'a Path,
    options: &'a StoreOptions,
    /// The file's temporary name, which it has until it is complete.
    file: &'a Path,
    // before the file that it is of
    write: Option<PanicSafe<WriteTransaction>>,
    engine: RedbFile,
    /// Bytes that the transaction has written.
    written_bytes: u64,
    rows: u64,
    total: u64,
    watch: &'a mut Watch<'w>,
}

impl StoreCopy<'_, '_> {
    fn report(&mut self) -> Result<()> {
        self.watch.report(Phase::CopyingRows, self.rows, self.total)
    }

    fn all_tables(&mut self) -> Result<()> {
        for_each_table!(self.snapshot.schema(), table => self.table(table)?);
        Ok(())
    }

    /// Copies a table, an empty one too.
    fn table<K: Key + 'static>(
        &mut self,
        table: TableDefinition<'static, K, &'static [u8]>,
    ) -> Result<()> {
        let context = self.snapshot.context();
        let (mut rows, expected) = context.run_checked(|| {
            let opened = self
                .snapshot
                .inner
                .tables()?
                .read
                .open_table(table)
                .engine()?;
            let rows = opened.range_owned::<K::SelfType<'_>>(..).engine()?;
            Ok((PanicSafe::new(rows), opened.len().engine()?))
        })?;
        let before = self.rows;
        let mut piece = CopiedRows::default();
        loop {
            context.run_checked(|| piece.fill::<K>(table.name(), &mut rows))?;
            self.write(table, &piece)?;
            if piece.lengths.is_empty() {
                break;
            }
            self.report()?;
        }
        let found = self.rows - before;
        if found == expected {
            return Ok(());
        }
        let detail = format!("found {found} rows, expected {expected}");
        Err(Error::corrupt(format!("table {}", table.name()), detail))
    }

    /// Writes rows that follow those that are in a table of the copy.
    fn write<K: Key + 'static>(
        &mut self,
        table: TableDefinition<'static, K, &'static [u8]>,
        piece: &CopiedRows,
    ) -> Result<()> {
        let (engine, write) = (&self.engine, &mut self.write);
        let written = catch_engine_panic(|| {
            let write = match write {
                Some(write) => write.get()?,
                none => none.insert(PanicSafe::new(engine.begin_write()?)).get()?,
            };
            let mut table = write.open_table(table).engine()?;
            let mut cursor = table
                .upper_bound_mut(Bound::<K::SelfType<'_>>::Unbounded)
                .engine()?;
            for (key, value) in piece.rows() {
                let key = <K as Value>::from_bytes(key);
                cursor.insert_before(key, value).engine()?;
            }
            cursor.close().engine()
        });
        written.map_err(|error| copy_error(self.path, error))?;
        let bytes = piece.bytes.len() as u64;
        self.rows += piece.lengths.len() as u64;
        self.written_bytes += bytes;
        if self.written_bytes >= TRANSACTION_BYTES {
            self.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.written_bytes = 0;
        let Some(write) = self.write.take() else {
            return Ok(());
        };
        let committed = catch_engine_panic(|| write.into_inner()?.commit().engine());
        committed.map_err(|error| copy_error(self.path, error))
    }

    /// Makes everything durable and closes the file, so that it can be opened under another name. Returns
    /// the number of its rows.
    fn finish(mut self) -> Result<u64> {
        self.commit()?;
        let (path, rows, total) = (self.path, self.rows, self.total);
        invariant!(rows == total, "copied {rows} of {total} rows");
        let closed = self
            .engine
            .close_packed(self.file, &self.options.file_options());
        closed.engine().map_err(|error| copy_error(path, error))?;
        Ok(rows)
    }
}
