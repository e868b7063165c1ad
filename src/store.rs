//! The façade of a store: every method calls the module that does the work.

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::build::{self, BulkBuild, BulkOptions, BulkReport, RebandReport};
use crate::error::{Error, Result};
use crate::group_commit::{Closed, GroupCommitHandle, Queue, WriteRequest};
use crate::maintain::{self, CompactReport, EvictPolicy, EvictReport, ImportReport, RepairReport};
use crate::memory::KeptDocuments;
use crate::observe::Metrics;
use crate::options::StoreOptions;
use crate::read::SnapshotView;
use crate::snapshot::Snapshot;
use crate::state::{self, OpenStore};
use crate::types::{CheckReport, Document, DocumentId, Novelty, Operation, Upserted};
use crate::write::WriteTransaction;
use resemblance_sketch::schema::{Rebanding, Schema};
use resemblance_sketch::sketch::{Signature, Sketcher};

#[cfg(doc)]
use crate::maintain::ExistingKeys;

/// A store for near-duplicate search in one file.
///
/// ```
/// use resemblance::{MinHash, Novelty, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("seen.rsm");
/// let schema = Schema::builder()
///     .text(Text::words(2))
///     .minhash(MinHash::new(128).threshold(0.7))
///     .build()?;
/// let store = Store::create(&path, schema)?; // the next time `Store::open(&path)?`
///
/// let page = store.sketch_text("a rose is a rose is a rose, said the rose to the other rose")?;
/// assert!(store.insert_if_new("page/1", &page)?.is_new());
/// let again = store.sketch_text("A rose is a rose is a rose -- said the rose to the other rose!")?;
/// assert!(matches!(store.insert_if_new("page/2", &again)?, Novelty::NearDuplicate(_)));
///
/// store.insert("page/2", &again)?; // all the same
/// let snapshot = store.snapshot()?;
/// assert_eq!(snapshot.query(&again).limit(10).run()?.len(), 2);
/// assert_eq!(snapshot.pairs().run()?.count(), 1);
/// # Ok::<(), resemblance::Error>(())
/// ```
///
/// The methods, most important first:
///
/// - **Open**: [`create`](Self::create), [`open`](Self::open),
///   [`open_or_create`](Self::open_or_create), and with other settings [`options`](Self::options).
/// - **Write**: [`insert_if_new`](Self::insert_if_new), [`insert`](Self::insert),
///   [`upsert`](Self::upsert), [`remove`](Self::remove), [`touch`](Self::touch), each durable when it
///   returns. Many changes together: [`begin_write`](Self::begin_write). Without waiting:
///   [`queue`](Self::queue). Many documents into a new store: [`bulk_build`](Self::bulk_build).
/// - **Read**: [`snapshot`](Self::snapshot), then [`Snapshot::query`], [`Snapshot::pairs`],
///   [`Snapshot::clusters`], [`Snapshot::get`].
/// - **Forget**: [`evict`](Self::evict). **Maintain**: [`metrics`](Self::metrics),
///   [`check`](Self::check), [`compact`](Self::compact), [`reband`](Self::reband),
///   [`repair`](Self::repair), [`Snapshot::stats`], [`Snapshot::backup`].
///
/// A handle is cheap to clone and may be used from any number of threads. One thread writes at a
/// time, any number read, and neither waits for the other. Other processes can read the file
/// meanwhile. Until the last handle, snapshot and transaction is dropped, they cannot write it,
/// except with [`StoreOptions::shared_writers`]. After a fork, all of these return
/// [`Error::Forked`] in the child, which must open the store itself.
#[doc(alias("database", "bloom", "lsh"))]
#[derive(Clone)]
pub struct Store {
    group_commit: GroupCommitHandle,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.store().context.path)
            .finish_non_exhaustive()
    }
}

/// Creates, opens, checks and compacts a store with these options.
impl StoreOptions {
    /// Creates a store.
    ///
    /// # Errors
    ///
    /// The errors of [`Store::create`], and [`Error::InvalidParameter`] for an option out of range.
    ///
    /// ```
    /// # use resemblance::{Error, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// let store = Store::options().flush_after(10_000).create(&path, schema.clone())?;
    /// assert!(matches!(Store::create(&path, schema), Err(Error::AlreadyExists { .. })));
    /// # drop(store);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn create(&self, path: impl AsRef<Path>, schema: Schema) -> Result<Store> {
        state::create(path.as_ref(), schema, self).map(Store::new)
    }

    /// Creates a store in memory: see [`Store::in_memory`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for an option out of range.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// let store = Store::options().flush_after(1_000).create_in_memory(schema)?;
    /// assert!(store.snapshot()?.is_empty());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn create_in_memory(&self, schema: Schema) -> Result<Store> {
        state::create_in_memory(schema, self).map(Store::new)
    }

    /// Opens a store.
    ///
    /// # Errors
    ///
    /// The errors of [`Store::open`], and [`Error::InvalidParameter`] for an option out of range.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # Store::create(&path, schema)?;
    /// let store = Store::options().cache_bytes(1 << 30).open(&path)?;
    /// assert_eq!(store.snapshot()?.len(), 0);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Store> {
        state::open(path.as_ref(), self).map(Store::new)
    }

    /// Opens the store at `path`, or creates it if nothing has that name.
    ///
    /// # Errors
    ///
    /// The errors of [`open`](Self::open) and [`create`](Self::create), and
    /// [`Error::InvalidParameter`] if the store has a different schema: the message shows both.
    ///
    /// ```
    /// # use resemblance::{Error, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// let schema = |words| Schema::builder().text(Text::words(words)).minhash(MinHash::new(64)).build();
    /// drop(Store::options().open_or_create(&path, schema(2)?)?);
    /// assert!(Store::options().open_or_create(&path, schema(2)?).is_ok());
    /// let other = Store::options().open_or_create(&path, schema(3)?);
    /// assert!(matches!(other, Err(Error::InvalidParameter { .. })));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn open_or_create(&self, path: impl AsRef<Path>, schema: Schema) -> Result<Store> {
        let created = match self.open(&path) {
            Err(Error::NotFound { .. }) => self.create(&path, schema.clone()),
            opened => opened,
        };
        let store = match created {
            // Another process has created it in between.
            Err(Error::AlreadyExists { .. }) => self.open(&path)?,
            created => created?,
        };
        if *store.schema() != schema {
            let found = format!("a store with another schema: {}", store.schema());
            return Err(Error::invalid("schema", found, schema));
        }
        Ok(store)
    }

    /// Opens a store for reading.
    ///
    /// # Errors
    ///
    /// The errors of [`Store::open_read_only`], and [`Error::InvalidParameter`] for an option out
    /// of range.
    ///
    /// ```
    /// # use resemblance::{Error, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # Store::create(&path, schema)?;
    /// let store = Store::options().cache_bytes(1 << 30).open_read_only(&path)?;
    /// assert!(matches!(store.begin_write(), Err(Error::ReadOnly)));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn open_read_only(&self, path: impl AsRef<Path>) -> Result<Store> {
        state::open_read_only(path.as_ref(), self).map(Store::new)
    }

    /// Checks a store as [`Store::check`] does.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # Store::create(&path, schema)?;
    /// let check = Store::options().cache_bytes(1 << 30).check(&path);
    /// assert!(check.run()?.is_clean());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn check<'a>(&self, path: impl AsRef<Path>) -> Operation<'a, CheckReport> {
        maintain::check_file(path.as_ref(), self)
    }

    /// Compacts a store as [`Store::compact`] does.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # Store::create(&path, schema)?;
    /// let compaction = Store::options().cache_bytes(1 << 30).compact(&path);
    /// let report = compaction.run()?;
    /// assert!(report.size_after_bytes <= report.size_before_bytes);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn compact<'a>(&self, path: impl AsRef<Path>) -> Operation<'a, CompactReport> {
        maintain::compact(path.as_ref(), self)
    }
}

impl Store {
    fn new(store: OpenStore) -> Self {
        Self {
            group_commit: GroupCommitHandle::new(Arc::new(store)),
        }
    }

    pub(crate) fn store(&self) -> &Arc<OpenStore> {
        self.group_commit.store()
    }

    /// Creates a store with default options.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] if the path exists; nothing there changes. [`Error::Io`] if the
    /// file cannot be created.
    #[doc(alias("new"))]
    pub fn create(path: impl AsRef<Path>, schema: Schema) -> Result<Self> {
        Self::options().create(path, schema)
    }

    /// Creates a store in memory with default options, for tests and temporary work. It disappears
    /// with its last handle, unless a [backup](crate::Snapshot::backup) writes it to a file.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the schema cannot be indexed.
    ///
    /// ```
    /// use resemblance::{MinHash, Schema, Store, Text};
    /// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// let store = Store::in_memory(schema)?;
    /// let page = store.sketch_text("to be or not to be")?;
    /// assert!(store.insert_if_new("page/1", &page)?.is_new());
    /// assert!(!store.insert_if_new("page/2", &page)?.is_new());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[doc(alias("memory", "temporary"))]
    pub fn in_memory(schema: Schema) -> Result<Self> {
        Self::options().create_in_memory(schema)
    }

    /// Opens an existing store with default options. After a crash this recovers the file.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotAStore`], [`Error::NewerFormat`],
    /// [`Error::UnknownFeatures`], [`Error::Locked`], [`Error::Corrupt`], [`Error::SelfTest`],
    /// [`Error::Io`]: each describes what was found.
    ///
    /// ```
    /// # use resemblance::{Error, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # Store::create(&path, schema)?;
    /// let store = Store::open(&path)?;
    /// assert_eq!(store.snapshot()?.len(), 0);
    /// let missing = Store::open(path.with_extension("old"));
    /// assert!(matches!(missing, Err(Error::NotFound { .. })));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Opens the store at `path` with default options, or creates it if nothing has that name.
    ///
    /// # Errors
    ///
    /// The errors of [`open`](Self::open) and [`create`](Self::create), and
    /// [`Error::InvalidParameter`] if the store has a different schema: the message shows both.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// let store = Store::open_or_create(&path, schema)?;
    /// assert_eq!(store.snapshot()?.len(), 0);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn open_or_create(path: impl AsRef<Path>, schema: Schema) -> Result<Self> {
        Self::options().open_or_create(path, schema)
    }

    /// Returns the default options. Change them, then create or open a store with them.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// let store = Store::options().cache_bytes(256 << 20).open_or_create(&path, schema)?;
    /// # let _ = store;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn options() -> StoreOptions {
        StoreOptions::new()
    }

    /// Opens a store for reading, with default options. Any number of processes may do so, also while one writes the
    /// store. Nothing is ever written to the file, so it may be on
    /// read-only media. After a crash, each opening reads the file twice and recovers the store in
    /// memory, until a writer opens it.
    ///
    /// # Errors
    ///
    /// The errors of [`open`](Self::open).
    ///
    /// ```
    /// # use resemblance::{Error, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # Store::create(&path, schema)?;
    /// let (one, other) = (Store::open_read_only(&path)?, Store::open_read_only(&path)?);
    /// assert_eq!(one.snapshot()?.len(), other.snapshot()?.len());
    /// assert!(matches!(one.begin_write(), Err(Error::ReadOnly)));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open_read_only(path)
    }

    /// Returns the signature of a text.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the schema does not take texts.
    #[doc(alias("fingerprint", "hash"))]
    pub fn sketch_text(&self, text: &str) -> Result<Signature> {
        Ok(self.store().context.sketcher.text(text)?)
    }

    /// Inserts a document unless its key or a near-duplicate of it is in the store. The document is
    /// durable when this returns. If two threads insert near-duplicates at the same time, exactly
    /// one of the documents is new.
    ///
    /// While other threads write, this first searches the committed documents, and needs no
    /// transaction if it finds a duplicate there.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert).
    #[doc(alias("dedup", "add_if_absent"))]
    pub fn insert_if_new<'d>(
        &self,
        document: impl Into<Document<'d>>,
        signature: &Signature,
    ) -> Result<Novelty> {
        let request = WriteRequest::insert_if_new(document.into(), signature);
        self.group_commit.commit(request)?.novelty()
    }

    /// Returns a snapshot, which reads the store as it is now.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] and [`Error::Io`] if the file cannot be read.
    #[doc(alias("read", "get", "search", "contains"))]
    pub fn snapshot(&self) -> Result<Snapshot> {
        SnapshotView::open(self.store()).map(Snapshot::new)
    }

    /// Inserts a document, under a key that must be free or without one. It is durable when this returns.
    ///
    /// This method and the other one-call forms (`insert_if_new`, `upsert`, `remove`, `touch`) may
    /// be called from any number of threads. Calls made at about the same time share one
    /// transaction and one sync. Each has the result that it would have if the calls were made one
    /// after another. See [`StoreOptions::group_calls`] and [`StoreOptions::group_wait`].
    /// [`queue`](Self::queue) is for callers that do not wait.
    ///
    /// # Errors
    ///
    /// The errors of [`begin_write`](Self::begin_write), [`WriteTransaction::insert`] and
    /// [`WriteTransaction::commit`]. The other one-call forms have the same errors.
    ///
    /// ```
    /// # use resemblance::{Document, Error, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let page = store.sketch_text("some text or other")?;
    /// store.insert("page/1", &page)?;
    /// store.insert(("page/2", "a payload"), &page)?; // near, and inserted all the same
    /// store.insert(Document::without_key(), &page)?;
    /// assert_eq!(store.snapshot()?.len(), 3);
    /// assert!(matches!(store.insert("page/1", &page), Err(Error::KeyExists { .. })));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[doc(alias("put", "add", "set"))]
    pub fn insert<'d>(
        &self,
        document: impl Into<Document<'d>>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        let request = WriteRequest::insert(document.into(), signature);
        self.group_commit.commit(request)?.inserted()
    }

    /// Inserts a document in place of the one with the same key, if there is one, and compares the two: see
    /// [`WriteTransaction::upsert`]. The change is durable when this returns.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert).
    ///
    /// ```
    /// # use resemblance::{MinHash, Revision, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// store.insert("page/1", &store.sketch_text("the first version of a page")?)?;
    /// let upserted = store.upsert("page/1", &store.sketch_text("and what became of it")?)?;
    /// assert!(matches!(upserted.revision, Revision::Different(_)));
    /// assert_eq!(store.snapshot()?.len(), 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[doc(alias("replace", "update"))]
    pub fn upsert<'d>(
        &self,
        document: impl Into<Document<'d>>,
        signature: &Signature,
    ) -> Result<Upserted> {
        let request = WriteRequest::upsert(document.into(), signature);
        self.group_commit.commit(request)?.upserted()
    }

    /// Removes the document with a key, and returns its id if there is one. The change is durable when this
    /// returns.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let id = store.insert("page/1", &page)?;
    /// assert_eq!(store.remove("page/1")?, Some(id));
    /// assert_eq!(store.remove("page/1")?, None);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[doc(alias("delete", "forget"))]
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<Option<DocumentId>> {
        let request = WriteRequest::Remove(key.as_ref().into());
        self.group_commit.commit(request)?.found()
    }

    /// Sets the stamp of the document with a key, and returns its id if there is one. The change is
    /// durable when this returns. If the stamp is the same, nothing is written or synced.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert).
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// store.insert(Document::new("page/1").stamp(20), &page)?;
    /// store.touch("page/1", 21)?; // seen again a day later
    /// let record = store.snapshot()?.get("page/1")?.expect("it is there");
    /// assert_eq!(record.stamp(), 21);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn touch(&self, key: impl AsRef<[u8]>, stamp: u64) -> Result<Option<DocumentId>> {
        let request = WriteRequest::Touch(key.as_ref().into(), stamp);
        self.group_commit.commit(request)?.found()
    }

    /// Sets a named position, or removes it with `None`. It is durable when this returns. Use
    /// [`WriteTransaction::set_position`] to set it in the same commit as documents.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the name is not 1 to 255 bytes long, or the position is longer
    /// than 65,536 bytes, and the errors of [`insert`](Self::insert).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// store.set_position("pages-0", Some(b"41"))?;
    /// assert_eq!(store.snapshot()?.position("pages-0")?, Some(b"41".to_vec()));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn set_position(&self, name: &str, position: Option<&[u8]>) -> Result<()> {
        let request = WriteRequest::set_position(name, position);
        self.group_commit.commit(request)?.done()
    }

    /// Begins a write transaction. If another thread has one open, this waits for its end.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if this thread has a transaction open, [`Error::ReadOnly`] for a read-only
    /// handle, [`Error::Closed`] after a failed commit.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// transaction.insert("page/1", &page)?;
    /// transaction.remove("page/0")?;
    /// transaction.commit()?; // both changes, or none
    /// assert_eq!(store.snapshot()?.len(), 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[doc(alias("transaction", "batch"))]
    pub fn begin_write(&self) -> Result<WriteTransaction> {
        WriteTransaction::begin(self.store())
    }

    /// Begins a write transaction if this process has none open. With
    /// [shared writers](StoreOptions::shared_writers) it waits for other processes, as
    /// [`begin_write`](Self::begin_write) does.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if any thread has one open, and the errors of
    /// [`begin_write`](Self::begin_write).
    ///
    /// ```
    /// # use resemblance::{Error, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let transaction = store.try_begin_write()?;
    /// assert!(matches!(store.try_begin_write(), Err(Error::Busy)));
    /// drop(transaction);
    /// assert!(store.try_begin_write().is_ok());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn try_begin_write(&self) -> Result<WriteTransaction> {
        WriteTransaction::try_begin(self.store())
    }

    /// Returns a queue, which accepts changes without waiting for each of them.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let queue = store.queue();
    /// let page = store.sketch_text("some text or other")?;
    /// let tickets = ["a", "b"].map(|key| queue.insert(key, &page));
    /// for ticket in tickets {
    ///     ticket?.wait()?; // or `.await`
    /// }
    /// assert_eq!(store.snapshot()?.len(), 2);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    #[doc(alias("async"))]
    pub fn queue(&self) -> Queue {
        Queue::new(&self.group_commit)
    }

    /// Waits until all changes that have been [queued](Self::queue) so far are committed. They are
    /// then durable, unless a ticket reports an error.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if this thread holds a write transaction; [`Error::Closed`] after a failed
    /// commit.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let queue = store.queue();
    /// for key in ["a", "b", "c"] {
    ///     queue.insert(key, &page)?; // the tickets are dropped
    /// }
    /// store.flush()?;
    /// assert_eq!(store.snapshot()?.len(), 3);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[doc(alias("sync"))]
    pub fn flush(&self) -> Result<()> {
        self.group_commit.commit(WriteRequest::Flush)?.done()
    }

    /// Waits for queued changes, as [`flush`](Self::flush) does, and drops this handle. This closes
    /// the file unless another handle, a snapshot or a transaction keeps it open. Dropping the last
    /// handle waits too, but cannot return errors, and may leave a file twice as long as its
    /// contents. `close` truncates the file if the file system reports that the rest was never
    /// written.
    ///
    /// # Errors
    ///
    /// The errors of [`flush`](Self::flush), and those of closing the file.
    ///
    /// ```
    /// # use resemblance::{Closed, MinHash, Schema, Store, Text};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// let store = Store::in_memory(schema)?;
    /// let ticket = store.queue().insert("a", &store.sketch_text("some text or other")?)?;
    /// assert_eq!(store.close()?, Closed::File);
    /// assert_eq!(ticket.wait()?.get(), 0);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn close(self) -> Result<Closed> {
        self.group_commit.close()
    }

    /// Returns a sketcher, which makes signatures for this store in any thread.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let sketcher = store.sketcher();
    /// let sketching = std::thread::spawn(move || sketcher.text("a page read in this thread"));
    /// let page = sketching.join().unwrap()?;
    /// assert!(store.insert_if_new("page/1", &page)?.is_new());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn sketcher(&self) -> Sketcher {
        self.store().context.sketcher.clone()
    }

    /// Returns the schema, which is fixed while the store is open.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// assert_eq!(store.schema().text(), Some(Text::words(2)));
    /// println!("{}", store.schema());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.store().context.schema
    }

    /// Returns true if several processes may take turns to write the store; see
    /// [`StoreOptions::shared_writers`].
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, StoreOptions};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
    /// StoreOptions::new().shared_writers(true).create(&path, schema)?;
    /// assert!(StoreOptions::new().open_read_only(&path)?.has_shared_writers());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn has_shared_writers(&self) -> bool {
        self.store().engine.shares_writers
    }

    /// Begins to collect documents that are near no document of this store, and not near each
    /// other. Nothing is written to the store: the collected documents are in a write transaction
    /// that is never committed. See [`KeptDocuments::create`] to begin without a store.
    ///
    /// # Errors
    ///
    /// The errors of [`begin_write`](Self::begin_write).
    ///
    /// ```
    /// # use resemblance::{Bounds, Document, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let page = store.sketch_text("a text that is known")?;
    /// store.insert("page/1", &page)?;
    /// let mut kept = store.kept_documents()?;
    /// let novelty = kept.insert_if_new(Document::without_key(), &page, Bounds::new(), None)?;
    /// assert_eq!(novelty.found().unwrap().key(), Some(&b"page/1"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[doc(alias("dedup", "deduplicator"))]
    pub fn kept_documents(&self) -> Result<KeptDocuments> {
        KeptDocuments::in_store(self.store())
    }

    /// Removes documents by their age, by their number, or by the caller's decision.
    ///
    /// Documents are read without a transaction and removed in short ones, at most
    /// [`slice_documents`](Operation::slice_documents) in each, so that neither readers nor other
    /// writers wait for long. Each document is reread before it is removed: one that was
    /// [touched](WriteTransaction::touch), replaced or removed meanwhile is spared and counted.
    /// Documents that are inserted meanwhile are not examined. After a stop or a crash, the evicted
    /// documents remain evicted, and the same call evicts the rest. The memory does not depend on
    /// the number of documents.
    ///
    /// Merges within later commits free the space for other documents; [`Store::compact`] returns
    /// it to the disk.
    ///
    /// ```
    /// use resemblance::{Document, EvictPolicy};
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let signature = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// for (key, day) in [("a", 18), ("b", 19), ("c", 20)] {
    ///     transaction.insert(Document::new(key).stamp(day), &signature)?;
    /// }
    /// transaction.commit()?;
    /// store.touch("a", 21)?;
    /// let report = store.evict(EvictPolicy::OlderThan(20)).run()?;
    /// assert_eq!((report.evicted, store.snapshot()?.len()), (1, 2));
    /// store.evict(EvictPolicy::KeepNewest(1)).run()?;
    /// assert!(store.snapshot()?.contains("a")?);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for an option out of range; the errors of
    /// [`begin_write`](Self::begin_write), including [`Error::Busy`] if this thread holds a
    /// transaction, and of [`WriteTransaction::commit`]; [`Error::Corrupt`] and [`Error::Io`] if
    /// the file cannot be read; [`Error::Stopped`] if the progress callback, which is called after
    /// each transaction and while no transaction is open, stops the eviction.
    #[doc(alias("expire", "ttl"))]
    pub fn evict<'a>(&'a self, policy: EvictPolicy<'a>) -> Operation<'a, EvictReport> {
        maintain::evict(self.store(), policy)
    }

    /// Inserts the documents of a stream that [`Snapshot::export`] wrote: under new ids, in the order of the
    /// stream, with their keys, stamps, payloads and signatures. The two stores must have the same recipe:
    /// everything that determines signatures (text, seed, kind and number of values, bits of fingerprints).
    /// Thresholds, bands and tables may differ, because documents are indexed with the schema of this store. A
    /// store that keeps few bits of each value cuts wider values, and refuses values with fewer bits.
    ///
    /// The import runs in transactions of bounded size, each durable; other writers may write in
    /// between. Documents committed before an error remain in the store. An interrupted import can
    /// be repeated with [`ExistingKeys::Skip`], which skips the documents that are already there.
    /// **Documents without a key are always inserted**, even a second time, unless near-duplicates
    /// are left out.
    ///
    /// The import needs the memory of one transaction. Damage anywhere in the stream is an error,
    /// and so is a stream that was cut short.
    ///
    /// There is an example at [`Snapshot::export`].
    ///
    /// [`Snapshot::export`]: crate::Snapshot::export
    ///
    /// ```
    /// # use resemblance::{ExistingKeys, MinHash, Schema, Store};
    /// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
    /// # let old = Store::in_memory(schema.clone())?;
    /// # let new = Store::in_memory(schema)?;
    /// # old.insert("a", &old.sketcher().hashes([1])?)?;
    /// let mut stream = Vec::new();
    /// old.snapshot()?.export(&mut stream).run()?;
    /// let report = new.import(&stream[..]).existing_keys(ExistingKeys::Skip).run()?;
    /// assert_eq!((report.inserted, report.skipped), (1, 0));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Before anything is written: [`Error::OtherRecipe`] names the difference between the recipes;
    /// [`Error::DamagedStream`] if the input is not a stream; [`Error::NewerFormat`],
    /// [`Error::SelfTest`] and [`Error::MissingFeature`] as in [`open`](Self::open);
    /// [`Error::InvalidParameter`] for options that contradict each other.
    ///
    /// After that, [`Error::ImportStopped`], which gives the number of documents that have been
    /// imported, and the cause: [`Error::DamagedStream`], [`Error::KeyExists`], [`Error::Io`];
    /// [`Error::Stopped`] if the progress callback, which is called before each transaction and at
    /// the end, stops the import; or an error of [`begin_write`](Self::begin_write) or
    /// [`WriteTransaction::commit`]. If a commit failed, its documents may be in the store as well.
    pub fn import<'a>(&'a self, reader: impl Read + 'a) -> Operation<'a, ImportReport> {
        maintain::import(self.store(), reader)
    }

    /// Returns counts of all operations of this handle and its clones, snapshots and transactions
    /// since the store was opened. This takes a few dozen atomic reads, and a lock that is
    /// otherwise taken only to make snapshots.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store};
    /// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
    /// let store = Store::in_memory(schema)?;
    /// let page = store.sketcher().hashes([1, 2, 3])?;
    /// store.insert_if_new("a", &page)?;
    /// store.insert_if_new("b", &page)?;
    /// let metrics = store.metrics();
    /// assert_eq!((metrics.inserted, metrics.near_duplicates), (1, 1));
    /// eprint!("{metrics}");
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let context = &self.store().context;
        Metrics {
            filter_cache_bytes: context.cache.filter_bytes(),
            block_cache_bytes: context.cache.block_bytes(),
            ..context.counters.get()
        }
    }

    /// Checks a store. It verifies the pages of the file and the checksums of all rows. If all pages are intact, it then
    /// compares rows, runs, filters and counters with each other. Nothing is written to the file, and others may read it
    /// meanwhile. If another process has it open for writing, the last commit is checked; see
    /// [`CheckReport::while_written`].
    ///
    /// The report names every damaged page, with the documents whose rows may be in it or below it, and every
    /// damaged row. A wrong record of free pages affects no document; [`compact`](Self::compact) fixes it. If
    /// pages are damaged, no documents are counted; [`repair`](Self::repair) reports how many can be kept.
    ///
    /// # Errors
    ///
    /// The errors of [`open`](Self::open), but damaged pages and rows are in the report.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// Store::create(&path, Schema::builder().minhash(MinHash::new(64)).build()?)?;
    /// assert!(Store::check(&path).run()?.is_clean());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn check<'a>(path: impl AsRef<Path>) -> Operation<'a, CheckReport> {
        Self::options().check(path)
    }

    /// Merges all runs of a store into one, drops the data of removed documents, and returns free
    /// space to the disk. No other process may have the store open. The merge runs in transactions
    /// of bounded size; then pages are moved one by one. If the compaction is interrupted or
    /// stopped, the store remains intact, and the next compaction continues where this one stopped.
    ///
    /// # Errors
    ///
    /// The errors of [`open`](Self::open) and [`WriteTransaction::commit`], and [`Error::Corrupt`]
    /// if a page is damaged.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// Store::create(&path, Schema::builder().minhash(MinHash::new(64)).build()?)?;
    /// let report = Store::compact(&path).run()?;
    /// assert!(report.size_after_bytes <= report.size_before_bytes);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[doc(alias("vacuum"))]
    pub fn compact<'a>(path: impl AsRef<Path>) -> Operation<'a, CompactReport> {
        Self::options().compact(path)
    }

    /// Rebuilds a damaged store: creates a new store from every document that was not removed and whose row and
    /// payload have correct checksums. Keys, payloads, stamps, signatures and ids are kept; everything else is
    /// rebuilt. The old file is only read, and need not have been closed properly. It is locked against writers
    /// meanwhile.
    ///
    /// The repair follows the tables from their roots, in bounded memory, and continues past damage: below a
    /// damaged page it keeps the rows whose checksums are correct. The report lists what is lost. If a key
    /// occurs twice, because the record that one document replaced another is lost, the newest document is
    /// kept. If the root of the last commit cannot be read, the commit before it is used, and the report
    /// mentions this.
    ///
    /// The new store appears under `target` when it is complete and durable, and takes memory and
    /// temporary files as in a [`bulk_build`](Self::bulk_build).
    ///
    /// ```
    /// use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let (path, new) = (folder.path().join("seen.rsm"), folder.path().join("new.rsm"));
    /// let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
    /// let store = Store::create(&path, schema)?;
    /// store.insert("a", &store.sketch_text("one two three")?)?;
    /// drop(store);
    ///
    /// let report = Store::repair(&path, &new).run()?;
    /// assert!(report.is_complete() && report.documents == 1);
    /// assert!(Store::open(&new)?.snapshot()?.contains("a")?);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] if the new store's path exists; [`Error::NotFound`],
    /// [`Error::NotAStore`] and [`Error::Locked`] of the old file; [`Error::Corrupt`] if its schema
    /// cannot be read and none was given; [`Error::InvalidParameter`] if the given one makes
    /// different signatures; [`Error::NewerFormat`], [`Error::UnknownFeatures`] and
    /// [`Error::ReadOnly`] if the store requires a newer release; [`Error::SelfTest`] as in
    /// [`open`](Self::open); [`Error::Stopped`] if the progress callback stops it; [`Error::Io`]
    /// if, for example, a disk is full. In all these cases, no new store is created.
    pub fn repair<'a>(
        path: impl AsRef<Path>,
        target: impl AsRef<Path>,
    ) -> Operation<'a, RepairReport> {
        maintain::repair(path.as_ref(), target.as_ref())
    }

    /// Merges several stores with the same recipe into one, such as shards of a corpus that many
    /// machines built. Ids follow the order of the shards, and within a shard the order of its
    /// documents. All near-duplicates are kept. The new store has the bands, tables and other
    /// settings of the first shard. The shards are only read, one at a time.
    ///
    /// The new store appears under `target` when it is complete and durable, and takes memory and
    /// temporary files as in a [`bulk_build`](Self::bulk_build).
    ///
    /// ```
    /// use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let file = |name: &str| folder.path().join(name);
    /// let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
    /// for shard in ["a", "b"] {
    ///     let store = Store::create(file(shard), schema.clone())?;
    ///     store.insert(shard, &store.sketch_text("one two three")?)?;
    /// }
    /// let report = Store::merge(file("all"), [file("a"), file("b")]).run()?;
    /// assert_eq!(report.documents, 2);
    /// assert_eq!(Store::open(file("all"))?.snapshot()?.get("b")?.unwrap().id().get(), 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if there are no shards, or one was made with a different recipe
    /// from the first; the errors of [`open_read_only`](Self::open_read_only) for a shard; and
    /// [`Error::AlreadyExists`], [`Error::KeyTwice`], [`Error::Stopped`] and [`Error::Io`] as in a
    /// bulk build. In all these cases, no new store is created.
    pub fn merge<'a, P: AsRef<Path>>(
        target: impl AsRef<Path>,
        shards: impl IntoIterator<Item = P>,
    ) -> Operation<'a, BulkReport> {
        let shards = shards.into_iter().map(|path| path.as_ref().into());
        maintain::merge_shards(target.as_ref(), shards.collect())
    }

    /// Begins to build a new store offline, which is the fastest way to store many documents. The
    /// result answers like a store into which the same documents were inserted one by one.
    ///
    /// The store grows under a temporary name in the folder of `path`, and appears under `path`,
    /// complete and durable, when the build is finished. A killed process leaves a file whose name
    /// begins with `.resemblance-`, which only its owner may read and the next run removes.
    ///
    /// The build takes the memory that the options allow, the cache, and some tens of MiB. It takes disk space
    /// for the store, and temporarily 8 bytes for each posting that does not fit into the memory for sorting
    /// (12 in lanes of keys, of SimHash tables, and of bands with more than 44 bits).
    ///
    /// ```
    /// use resemblance::{BulkOptions, Document, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("corpus.rsm");
    /// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// let mut build = Store::bulk_build(&path, schema.clone(), &BulkOptions::new())?;
    /// let sketcher = schema.sketcher(); // clone it into as many threads as you like
    /// for (key, text) in [("a", "to be or not to be"), ("b", "that is the question")] {
    ///     build.insert(Document::new(key), &sketcher.text(text)?)?;
    /// }
    /// assert_eq!(build.finish()?.documents, 2);
    /// assert_eq!(Store::open(&path)?.snapshot()?.len(), 2);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] if the path exists; nothing there changes. [`Error::Io`] if the
    /// file cannot be created, [`Error::InvalidParameter`] for an option out of range.
    #[doc(alias("load"))]
    pub fn bulk_build<'w>(
        path: impl AsRef<Path>,
        schema: Schema,
        options: &BulkOptions,
    ) -> Result<BulkBuild<'w>> {
        build::bulk_build(path, schema, options)
    }

    /// Reindexes the documents of a store from their signatures, for a different threshold or recall, or with
    /// different bands, codes or SimHash tables. Texts are not needed. Ids, keys, payloads and stamps are kept.
    /// Afterwards the store answers like one that was created with the [new schema](Schema::rebanded).
    ///
    /// This call opens the file itself. No other handle or process may have it open, because
    /// earlier handles and snapshots would continue with the old bands. Everything happens in one
    /// commit, so after a failure, an interruption or a crash the file is still the old store.
    /// Postings of removed documents are dropped, and documents in memory are flushed to runs.
    ///
    /// Before it writes anything, the call reads and verifies all pages of the file.
    ///
    /// The call takes as much memory as [`bulk_build`](Self::bulk_build), whose options it
    /// [accepts](Operation::bulk), and the store's data about unflushed and removed documents. The file grows
    /// by the new postings, because the old ones are kept until the commit, and there is a temporary file as in
    /// a build. [`Operation::estimate`] returns the amounts. If the lanes do not change (because only the
    /// number of expected documents changes, or because the new threshold needs the same bands), one row is
    /// written and nothing is read.
    ///
    /// A store that keeps clusters then finds them again, and keeps their ids: the part with the oldest document of an
    /// old cluster takes its id. If several ids go to one cluster, that of which it has the most documents stays.
    ///
    /// ```
    /// use resemblance::{MinHash, Schema, Store, Text, schema::Rebanding};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(128)).build()?;
    /// let store = Store::create(&path, schema)?;
    /// store.insert("a", &store.sketch_text("one two three four five six seven eight")?)?;
    /// let question = store.sketch_text("one two three four five six nine ten")?;
    /// assert!(store.snapshot()?.query(&question).run()?.is_empty()); // 6 of 10 are below 0.8
    /// drop(store);
    ///
    /// let report = Store::reband(&path, &Rebanding::new().threshold(0.5)).run()?;
    /// assert_eq!(report.documents, 1);
    /// let store = Store::open(&path)?;
    /// assert_eq!(store.snapshot()?.query(&question).run()?.len(), 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`open`](Self::open) and [`Schema::rebanded`]; [`Error::InvalidParameter`] for
    /// an option out of range; [`Error::ReadOnly`] for a store that this release may only read;
    /// [`Error::Corrupt`] if a page or a row is damaged; [`Error::Stopped`] if the progress
    /// callback stops it; [`Error::Io`] if, for example, a disk is full. In all these cases, the
    /// store has not changed. Only if the commit itself fails is the outcome unknown until the
    /// store is opened again: it is then the whole old store or the whole new one.
    pub fn reband<'a>(
        path: impl AsRef<Path>,
        rebanding: &Rebanding,
    ) -> Operation<'a, RebandReport> {
        build::reband_file(path.as_ref(), rebanding)
    }
}
