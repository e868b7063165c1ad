//! The store: the only owner of the file.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group_commit::{Answer, Call, Group};
use crate::observe::Reads;
use crate::options::StoreOptions;
use crate::schema::Schema;
use crate::sketch::{Signature, Sketcher};
use crate::snapshot::{Snapshot, SnapshotInner};
use crate::state::{Core, Gate, Permit, Publication, Session};
use crate::transaction::WriteTransaction;

/// A store for near-duplicate search in one file.
///
/// A handle is cheap to clone and may be used from any number of threads: one writer at a time,
/// any number of readers, none of whom waits for the other. The file is locked against other
/// processes until the last handle, snapshot and transaction is gone.
///
/// ```
/// use resemblance::{MinHash, Novelty, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("seen.rsm");
/// let schema = Schema::builder()
///     .text(Text::words(2))
///     .minhash(MinHash::new(128).threshold(0.7))
///     .build()?;
/// let store = Store::create(&path, schema)?;
///
/// let first = store.sketch_text("a rose is a rose is a rose, said the rose to the other rose")?;
/// assert!(matches!(store.insert_if_new("1", &first)?, Novelty::New(_)));
/// let again = store.sketch_text("A rose is a rose is a rose -- said the rose to the other rose!")?;
/// assert!(matches!(store.insert_if_new("2", &again)?, Novelty::NearDuplicate(_)));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
    pub(crate) handles: Arc<Handles>,
}

/// What the handles of a store have in common, but not its snapshots and transactions. Dropping the
/// last one waits for what has been queued.
pub(crate) struct Handles {
    store: Arc<Inner>,
}

impl Drop for Handles {
    fn drop(&mut self) {
        // Those who wait in the line would wait for this very thread.
        if !self.store.gate.is_held_here() {
            self.store.group.wait_idle();
        }
    }
}

/// What all handles of an open file share.
pub(crate) struct Inner {
    pub(crate) core: Core,
    pub(crate) engine: Engine,
    pub(crate) publication: Publication,
    pub(crate) gate: Arc<Gate>,
    /// Changes that wait to be made together.
    pub(crate) group: Group<Call<'static>, Result<Answer>>,
    /// The snapshot that was taken last by who looked for duplicates before queueing up.
    pub(crate) shared_snapshot: Mutex<Weak<SnapshotInner>>,
    /// Whether this release, and this handle, may write.
    pub(crate) writable: bool,
    /// After the file, which is closed before that is told.
    pub(crate) session: Option<Session>,
}

impl Inner {
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.writable {
            true => Ok(()),
            false => Err(Error::ReadOnly),
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.inner.core.path)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Creates a store with default options.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] if there is a file of that name: it is left as it is.
    /// [`Error::Io`] if the file cannot be made.
    pub fn create(path: impl AsRef<Path>, schema: Schema) -> Result<Self> {
        Self::create_with(path, schema, &StoreOptions::new())
    }

    /// Creates a store.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create), and [`Error::InvalidParameter`] for an option out of its range.
    pub fn create_with(
        path: impl AsRef<Path>,
        schema: Schema,
        options: &StoreOptions,
    ) -> Result<Self> {
        crate::state::open::create(path.as_ref(), schema, options).map(Self::from_inner)
    }

    /// Opens a store with default options. Never creates one. After a crash it repairs the file.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotAStore`], [`Error::NewerFormat`],
    /// [`Error::UnknownFeatures`], [`Error::Locked`], [`Error::Corrupt`], [`Error::SelfTest`],
    /// [`Error::Io`]: each says what was found.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &StoreOptions::new())
    }

    /// Opens a store.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and [`Error::InvalidParameter`] for an option out of its range.
    pub fn open_with(path: impl AsRef<Path>, options: &StoreOptions) -> Result<Self> {
        crate::state::open::open(path.as_ref(), options).map(Self::from_inner)
    }

    /// Opens a store for reading, with default options. Several processes may do so at a time,
    /// while none has it open for writing.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and [`Error::NeedsRecovery`] after a crash.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_read_only_with(path, &StoreOptions::new())
    }

    /// Opens a store for reading.
    ///
    /// # Errors
    ///
    /// As [`open_read_only`](Self::open_read_only).
    pub fn open_read_only_with(path: impl AsRef<Path>, options: &StoreOptions) -> Result<Self> {
        crate::state::open::open_read_only(path.as_ref(), options).map(Self::from_inner)
    }

    fn from_inner(inner: Inner) -> Self {
        let inner = Arc::new(inner);
        let handles = Arc::new(Handles {
            store: Arc::clone(&inner),
        });
        Self { inner, handles }
    }

    /// The schema, fixed as long as the store is open.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.inner.core.schema
    }

    /// What look-ups and queries through this handle and its clones, snapshots and transactions have
    /// read of the postings on disk.
    #[must_use]
    pub fn reads(&self) -> Reads {
        self.inner.core.reads.get()
    }

    /// Makes signatures for this store.
    #[must_use]
    pub fn sketcher(&self) -> Sketcher {
        self.inner.core.sketcher.clone()
    }

    /// The signature of a text.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the schema does not take texts.
    pub fn sketch_text(&self, text: &str) -> Result<Signature> {
        self.inner.core.sketcher.text(text)
    }

    /// Begins a write transaction, after the one that is open in another thread, if any.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if this thread holds one, [`Error::ReadOnly`] for a handle that only reads,
    /// [`Error::Closed`] after a failed commit.
    pub fn begin_write(&self) -> Result<WriteTransaction> {
        self.begin(Gate::enter)
    }

    /// Begins a write transaction if none is open.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if any thread holds one; otherwise as [`begin_write`](Self::begin_write).
    pub fn try_begin_write(&self) -> Result<WriteTransaction> {
        self.begin(Gate::try_enter)
    }

    fn begin(&self, enter: impl Fn(&Arc<Gate>) -> Result<Permit>) -> Result<WriteTransaction> {
        self.inner.check_writable()?;
        let permit = enter(&self.inner.gate)?;
        WriteTransaction::begin(Arc::clone(&self.inner), permit)
    }

    /// The store as it is now, for reading.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] and [`Error::Io`] if the file cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.inner
            .core
            .guarded(|| Snapshot::new(Arc::clone(&self.inner)))
    }
}
