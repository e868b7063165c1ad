//! A new store of the documents that can still be read of a damaged one.

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::build::bulk_build;
use crate::build::{BulkBuild, BulkOptions, DuplicateKeys};
use crate::error::Result;
use crate::invariant::invariant;
use crate::maintain::repair::loss_report::IdRange;
use crate::maintain::repair::scanner::DamagedStore;
use crate::schema::Schema;
use crate::types::{Phase, Problem, Progress, Watch};

#[cfg(doc)]
use crate::error::Error;

/// A repair that [`run`](Self::run) does. Made by [`Store::repair`](crate::Store::repair).
///
/// ```
/// use resemblance::{BulkOptions, MinHash, Schema, Store};
/// # let folder = tempfile::tempdir().unwrap();
/// # let (path, new) = (folder.path().join("seen.rsm"), folder.path().join("new.rsm"));
/// # Store::create(&path, Schema::builder().minhash(MinHash::new(64)).build()?)?;
/// let report = Store::repair(&path, &new)
///     .bulk(BulkOptions::new().memory_bytes(64 << 20))
///     .run()?;
/// assert!(report.is_complete());
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "a repair does nothing until it is run"]
pub struct Repair<'a> {
    path: PathBuf,
    target: PathBuf,
    bulk: BulkOptions,
    schema: Option<Schema>,
    scan: bool,
    watch: Watch<'a>,
}

impl<'a> Repair<'a> {
    pub(crate) fn new(path: &Path, target: &Path) -> Self {
        Self {
            path: path.into(),
            target: target.into(),
            bulk: BulkOptions::new(),
            schema: None,
            scan: false,
            watch: Watch::new("the repair"),
        }
    }

    /// The options by which the new store is built. Their rule for duplicate keys has no effect:
    /// the newest document is kept.
    pub fn bulk(mut self, options: BulkOptions) -> Self {
        self.bulk = options;
        self
    }

    /// The schema to use if that of the file cannot be read. It must be the one that the store was
    /// made with; another threshold, and other bands of values that were not cut, do no harm.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # Store::create(&path, schema.clone())?;
    /// # let new = folder.path().join("new.rsm");
    /// let report = Store::repair(&path, &new).schema(schema).run()?;
    /// assert!(report.has_own_schema); // that of the file could be read
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// If on, reads all pages of the file for rows, instead of those that its tables lead to: the
    /// last resort, if the tables cannot be found. **Removed and replaced documents may come
    /// back**, where their rows have not been overwritten, and others with an earlier stamp or
    /// payload. Off by default. It keeps 24 bytes a page
    /// with rows in memory.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(&path, schema)?;
    /// # store.insert("a", &store.sketch_text("some text or other")?)?;
    /// # store.close()?;
    /// # let new = folder.path().join("new.rsm");
    /// let report = Store::repair(&path, &new).scan(true).run()?;
    /// assert_eq!(report.documents, 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn scan(mut self, on: bool) -> Self {
        self.scan = on;
        self
    }

    /// Sets what is told of the progress, and may stop the repair: see [`Progress`]. There is no new
    /// store then.
    ///
    /// ```
    /// # use resemblance::{Error, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # Store::create(&path, schema)?;
    /// # let new = folder.path().join("new.rsm");
    /// use std::ops::ControlFlow;
    /// let repair = Store::repair(&path, &new);
    /// let stopped = repair.on_progress(|_| ControlFlow::Break(())).run();
    /// assert!(matches!(stopped, Err(Error::Stopped { .. })));
    /// assert!(!new.exists());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn on_progress(mut self, callback: impl FnMut(Progress) -> ControlFlow<()> + 'a) -> Self {
        self.watch.set(callback);
        self
    }

    /// Makes the new store.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] if something has the name of the new store;
    /// [`Error::NotFound`], [`Error::NotAStore`] and [`Error::Locked`] of the old file;
    /// [`Error::Corrupt`] if its schema cannot be read and none was given;
    /// [`Error::InvalidParameter`] if the one that was given makes other signatures;
    /// [`Error::NewerFormat`], [`Error::UnknownFeatures`] and [`Error::ReadOnly`] if a newer release
    /// must do it; [`Error::SelfTest`] as in [`Store::open`](crate::Store::open);
    /// [`Error::Stopped`] if the progress callback breaks off; [`Error::Io`] if a disk is full, for
    /// one. There is no new store then.
    pub fn run(self) -> Result<RepairReport> {
        let bulk = self.bulk.duplicate_keys(DuplicateKeys::KeepLast);
        let (path, target) = (&self.path, &self.target);
        let (schema, scan) = (self.schema.as_ref(), self.scan);
        self.watch.run(|watch| {
            let old = DamagedStore::open(path, schema, scan, &bulk.store, watch)?;
            rebuild(old, path, target, &bulk, watch)
        })
    }
}

impl fmt::Debug for Repair<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repair")
            .field("path", &self.path)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// The result of a repair: the kept and the lost documents. Lists have at most 1,000 entries;
/// [`truncated`](Self::truncated) says whether there were more.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.rsm");
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # Store::create(&path, schema)?;
/// # let new = folder.path().join("new.rsm");
/// let report = Store::repair(&path, &new).run()?;
/// if !report.is_complete() {
///     eprintln!("{} documents are lost for certain", report.documents_lost);
///     report.damage.iter().for_each(|damage| eprintln!("{}: {}", damage.place, damage.detail));
/// }
/// assert_eq!((report.documents_before, report.documents), (Some(0), 0));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RepairReport {
    /// Documents in the new store.
    pub documents: u64,
    /// Documents that there were, as the file says; none if it cannot say so any more.
    pub documents_before: Option<u64>,
    /// Documents of which something was found, but not everything: they are lost for certain.
    /// Of others nothing may be left to be counted.
    pub documents_lost: u64,
    /// Documents that were left out because a newer one has their key: they were replaced, and what
    /// said so is lost.
    pub documents_replaced: u64,
    /// Ids of documents that are lost, or can be.
    pub lost: Vec<IdRange>,
    /// Ids of which documents in the new store may have been removed from the old one.
    pub may_be_back: Vec<IdRange>,
    /// Damaged places, those included without which nothing is lost.
    pub damage: Vec<Problem>,
    /// The schema of the new store.
    pub schema: Schema,
    /// True if the schema was read from the file, false if it was taken from the options.
    pub has_own_schema: bool,
    /// True if the last commit could not be read, and this is, or may be, the state of the one
    /// before: if one of the two commits that a file records is damaged, it may have been the last.
    pub is_earlier_commit: bool,
    /// True if lists were cut short.
    pub truncated: bool,
}

impl RepairReport {
    /// Returns true if the new store has exactly the documents of the old one, as far as can be known.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.documents_before == Some(self.documents)
            && self.lost.is_empty()
            && self.may_be_back.is_empty()
            && self.documents_replaced == 0
            && !self.is_earlier_commit
            && !self.truncated
    }
}

/// Builds a new store of the documents that can be read.
fn rebuild(
    mut old: DamagedStore,
    path: &Path,
    target: &Path,
    bulk: &BulkOptions,
    watch: &mut Watch<'_>,
) -> Result<RepairReport> {
    let schema = old.schema().clone();
    let mut build = bulk_build(target, schema.clone(), bulk)?;
    build.set_source(path);
    let read = fill(&mut build, &mut old, watch)?;
    let (expected, is_earlier_commit) = (old.expected, old.is_earlier_commit());
    let has_own_schema = old.has_own_schema;
    let losses = old.finish();
    let built = build.finish_watched(watch, &mut |_, _| ControlFlow::Continue(()))?;
    let (written, replaced) = (built.documents, built.duplicates);
    invariant!(
        read == written + replaced,
        "read {read} documents, wrote {written} and left out {replaced}"
    );
    Ok(RepairReport {
        documents: built.documents,
        documents_before: expected,
        documents_lost: losses.documents,
        documents_replaced: built.duplicates,
        lost: losses.lost,
        may_be_back: losses.may_be_back,
        damage: losses.damage,
        schema,
        has_own_schema,
        is_earlier_commit,
        truncated: losses.is_truncated,
    })
}

/// Puts the documents that can be read into the new store. Returns how many there were.
fn fill(build: &mut BulkBuild<'_>, old: &mut DamagedStore, watch: &mut Watch<'_>) -> Result<u64> {
    let total = old.expected;
    let mut documents = 0_u64;
    loop {
        watch.step(Phase::ReadingDocuments, documents, total)?;
        let more = old.next_document(&mut |id, document, signature| {
            build.insert_as(id, document, signature)
        })?;
        if !more {
            break;
        }
        documents += 1;
    }
    // Ids that were given are never given again.
    build.skip_to(old.next_id().unwrap_or(0));
    watch.tell(Phase::ReadingDocuments, documents, total)?;
    Ok(documents)
}
