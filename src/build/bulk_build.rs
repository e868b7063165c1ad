//! An offline build in progress.

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::build::bulk_options::{BulkOptions, DuplicateKeys};
use crate::build::bulk_store::BulkStore;
use crate::build::lane_postings::{LaneWritten, write_lanes};
use crate::build::link_clusters::link_clusters;
use crate::build::repeated::OneOfEachKey;
use crate::build::sort::Sorter;
use crate::engine::folder_of;
use crate::engine::{RowTable, TemporaryFile, must_not_exist};
use crate::error::{Error, Result};
use crate::format::Posting;
use crate::invariant::{OrBug, invariant};
use crate::state::Tombstones;
use crate::types::{Document, DocumentId, Phase, Progress, Watch};
use crate::write::EqualCollector;
use resemblance_sketch::lanes::LaneCode;
use resemblance_sketch::schema::Schema;
use resemblance_sketch::sketch::Signature;

/// Called with a document that is left out because of its key, and the key.
type OnDuplicate<'w> = dyn FnMut(DocumentId, &[u8]) -> ControlFlow<()> + Send + 'w;

/// Callbacks that report to the caller of a build or a collection, which may stop it with them.
#[derive(Default)]
pub(crate) struct BuildCallbacks<'w> {
    pub(crate) on_progress: Option<Box<dyn FnMut(Progress) -> ControlFlow<()> + Send + 'w>>,
    pub(crate) on_duplicate: Option<Box<OnDuplicate<'w>>>,
}

impl BuildCallbacks<'_> {
    /// Runs some work, `what` in errors, with these callbacks.
    pub(crate) fn run<T>(
        self,
        what: &'static str,
        work: impl FnOnce(&mut Watch<'_>, &mut OnDuplicate<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut watch = Watch::new(what);
        if let Some(callback) = self.on_progress {
            watch.set(callback);
        }
        let mut callback = self.on_duplicate;
        watch.run(|watch| {
            work(watch, &mut |id, key| match &mut callback {
                Some(callback) => callback(id, key),
                None => ControlFlow::Continue(()),
            })
        })
    }
}

/// The result of a build.
///
/// ```
/// # use resemblance::{BulkOptions, DuplicateKeys, MinHash, Schema, Store};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.rsm");
/// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
/// let options = BulkOptions::new().duplicate_keys(DuplicateKeys::KeepFirst);
/// let page = schema.sketcher().hashes([1, 2, 3])?;
/// let mut build = Store::bulk_build(path, schema, &options)?;
/// for key in ["a", "b", "a"] {
///     build.insert(key, &page)?;
/// }
/// let report = build.finish()?;
/// assert_eq!((report.documents, report.duplicates, report.spills), (2, 1, 0));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BulkReport {
    /// The number of documents in the store.
    pub documents: u64,
    /// The number of documents that were left out because another one has their key.
    pub duplicates: u64,
    /// The number of sorted runs in the store: one, or none if no document is indexed.
    pub runs: u64,
    /// The number of times that postings filled the memory for sorting and were written to the
    /// temporary file.
    pub spills: u64,
    /// The number of bytes written to the temporary file.
    pub spilled_bytes: u64,
}

/// A store that is being built offline. The inserted documents are not visible until
/// [`finish`](Self::finish) gives the complete store its name. Dropping the build leaves nothing
/// behind.
///
/// See [`Store::bulk_build`](crate::Store::bulk_build). A build can move to another thread, so its
/// callbacks must be `Send`; `'w` is the lifetime of what they borrow.
///
/// ```
/// # use resemblance::{BulkOptions, MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.rsm");
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// let sketcher = schema.sketcher();
/// let mut build = Store::bulk_build(&path, schema, &BulkOptions::new())?;
/// assert!(build.is_empty());
/// for (key, text) in [("a", "to be or not to be"), ("b", "that is the question")] {
///     build.insert(key, &sketcher.text(text)?)?;
/// }
/// assert_eq!(build.len(), 2);
/// build.finish()?; // now there is a store
/// assert!(Store::open(&path)?.snapshot()?.contains("a")?);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "an unfinished build leaves no file"]
pub struct BulkBuild<'w> {
    target: PathBuf,
    duplicate_keys: DuplicateKeys,
    sorter: Sorter,
    /// The codes of one document, kept to be filled again.
    codes: Vec<LaneCode>,
    failure: Option<String>,
    /// True if the file has rows of clusters of another.
    has_old_clusters: bool,
    /// The file that this is a copy of, whose mode the store gets.
    source: Option<PathBuf>,
    callbacks: BuildCallbacks<'w>,
    // in this order: the file is closed before it is removed
    store: BulkStore,
    path: TemporaryFile,
}

impl fmt::Debug for BulkBuild<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkBuild")
            .field("target", &self.target)
            .field("documents", &self.store.next_id())
            .finish_non_exhaustive()
    }
}

/// Begins an offline build of a store, which gets its name only when the build is finished.
pub(crate) fn bulk_build<'w>(
    path: impl AsRef<Path>,
    schema: Schema,
    options: &BulkOptions,
) -> Result<BulkBuild<'w>> {
    BulkBuild::begin(path.as_ref(), schema, options)
}

impl<'w> BulkBuild<'w> {
    fn begin(target: &Path, schema: Schema, options: &BulkOptions) -> Result<Self> {
        let files = options.store.shared_files();
        must_not_exist(target, files)?;
        let target = files.lasting(target)?;
        let sorter = options.sorter(&schema, &target)?;
        let (path, store) = TemporaryFile::create(&folder_of(&target), files, |path| {
            BulkStore::create(path, schema.clone(), &options.store)
        })?;
        Ok(Self {
            target,
            duplicate_keys: options.duplicate_keys,
            sorter,
            codes: Vec::new(),
            failure: None,
            has_old_clusters: false,
            source: None,
            callbacks: BuildCallbacks::default(),
            store,
            path,
        })
    }

    /// Inserts a document with the next id, starting with 0. Repeated keys are detected only by
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a key of more than 4,096 bytes or a payload of more than 64
    /// MiB, [`Error::SignatureMismatch`] for a signature that does not fit the schema; the build
    /// can continue without the document. [`Error::Io`] if, for example, a disk is full: the build
    /// cannot continue.
    pub fn insert<'d>(
        &mut self,
        document: impl Into<Document<'d>>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        self.check_usable()?;
        let document = document.into();
        self.store.validate(&document, signature)?;
        let inserted = self.insert_valid(&document, signature);
        inserted.inspect_err(|error| self.failure = Some(error.to_string()))
    }

    fn insert_valid(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        let id = self.store.append(document, signature, &mut self.codes)?;
        self.sorter.push(id.get(), &self.codes)?;
        Ok(id)
    }

    /// Inserts a document as [`insert`](Self::insert) does, with an id above all before; ids
    /// between remain unused.
    pub(crate) fn insert_as(
        &mut self,
        id: u64,
        document: Document<'_>,
        signature: &Signature,
    ) -> Result<()> {
        self.store.skip_to(id);
        self.insert(document, signature).map(drop)
    }

    /// Gives the store the mode of the file that it is a copy of.
    pub(crate) fn set_source(&mut self, source: &Path) {
        self.source = Some(source.into());
    }

    /// Copies rows of the clusters of another file with the same documents, as far as they can be read: the clusters
    /// get their ids.
    pub(crate) fn copy_clusters(
        &mut self,
        table: RowTable,
        rows: &mut dyn Iterator<Item = (u64, Vec<u8>)>,
    ) -> Result<()> {
        self.has_old_clusters = true;
        self.store.copy_rows(table, rows)
    }

    /// Sets the minimum id of the next document.
    pub(crate) fn skip_to(&mut self, id: u64) {
        self.store.skip_to(id);
    }

    /// Begins the feed of clusters beyond a position of the store that this is a copy of.
    pub(crate) fn begin_feed_after(&mut self, position: u64) -> Result<()> {
        self.store.begin_feed_after(position)
    }

    fn check_usable(&self) -> Result<()> {
        match &self.failure {
            Some(failure) => Err(Error::Closed {
                reason: format!("the build failed and leaves nothing: {failure}"),
            }),
            None => Ok(()),
        }
    }

    /// Returns the number of documents inserted so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.store.next_id()
    }

    /// Returns true if no document has been inserted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets the callback that receives the progress of [`finish`](Self::finish), and may stop it:
    /// see [`Progress`]. No store is created then.
    ///
    /// ```
    /// # use resemblance::{BulkOptions, Error, MinHash, Schema, Store};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
    /// use std::ops::ControlFlow;
    /// let build = Store::bulk_build(&path, schema, &BulkOptions::new())?;
    /// let stopped = build.on_progress(|_| ControlFlow::Break(())).finish();
    /// assert!(matches!(stopped, Err(Error::Stopped { .. })));
    /// assert!(!path.exists());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn on_progress(
        mut self,
        callback: impl FnMut(Progress) -> ControlFlow<()> + Send + 'w,
    ) -> Self {
        self.callbacks.on_progress = Some(Box::new(callback));
        self
    }

    /// Sets a callback for the documents that [`finish`](Self::finish) leaves out because an
    /// earlier document (or a later one, if the options keep the last) has the same key. It
    /// receives the id that [`insert`](Self::insert) returned, and the key. Documents are reported
    /// in the order of their insertion. The callback may stop the build, as that of
    /// [`on_progress`](Self::on_progress) may.
    ///
    /// ```
    /// # use resemblance::{BulkOptions, DuplicateKeys, MinHash, Schema, Store};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
    /// # let page = schema.sketcher().hashes([1, 2, 3])?;
    /// use std::ops::ControlFlow;
    /// let options = BulkOptions::new().duplicate_keys(DuplicateKeys::KeepLast);
    /// let mut left_out = Vec::new();
    /// let mut build = Store::bulk_build(path, schema, &options)?.on_duplicate(|id, _key| {
    ///     left_out.push(id.get());
    ///     ControlFlow::Continue(())
    /// });
    /// build.insert("a", &page)?;
    /// build.insert("a", &page)?;
    /// build.finish()?;
    /// assert_eq!(left_out, [0]);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn on_duplicate(
        mut self,
        callback: impl FnMut(DocumentId, &[u8]) -> ControlFlow<()> + Send + 'w,
    ) -> Self {
        self.callbacks.on_duplicate = Some(Box::new(callback));
        self
    }

    /// Merges everything into the store, and gives it its name.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use resemblance::{BulkOptions, MinHash, Schema, Store};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("corpus.rsm");
    /// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
    /// let build = Store::bulk_build(&path, schema, &BulkOptions::new())?;
    /// // insert documents
    /// let report = build
    ///     .on_progress(|progress| {
    ///         eprintln!("{progress}");
    ///         ControlFlow::Continue(())
    ///     })
    ///     .finish()?;
    /// assert_eq!(report.documents, 0);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::KeyTwice`] if a key was inserted twice and the options do not choose which to keep;
    /// [`Error::AlreadyExists`] if something has been created at the path meanwhile;
    /// [`Error::Stopped`] if a callback stops it; [`Error::Io`]. In all these cases, no store is
    /// created.
    pub fn finish(mut self) -> Result<BulkReport> {
        let callbacks = std::mem::take(&mut self.callbacks);
        callbacks.run("the build", |watch, on_duplicate| {
            self.finish_watched(watch, on_duplicate)
        })
    }

    /// Finishes a build that is a part of other work.
    pub(crate) fn finish_watched(
        mut self,
        watch: &mut Watch<'_>,
        on_duplicate: &mut OnDuplicate<'_>,
    ) -> Result<BulkReport> {
        self.check_usable()?;
        self.store.flush()?;
        self.sorter.finish(watch)?;
        let mut repeated = Tombstones::default();
        let mut equal = self.store.equal_collector();
        let mut writer = LaneWriter {
            store: &mut self.store,
            repeated: &mut repeated,
            equal: &mut equal,
            duplicate_keys: self.duplicate_keys,
        };
        let lanes = write_lanes(&self.sorter, watch, |lane, postings| {
            // The keys are written first: they decide whose postings are left out of the other
            // lanes.
            let written = match lane {
                0 => writer.write_keys(postings)?,
                lane => writer.write_lane(lane, postings)?,
            };
            writer.store.commit_written()?;
            Ok(written)
        })?;
        self.leave_out(&repeated, watch, on_duplicate)?;
        self.store.note_equal(equal)?;
        let (spills, spilled_bytes) = (self.sorter.spills(), self.sorter.spilled_bytes());
        drop(self.sorter);
        let given = self.store.inserted();
        let (options, has_old) = (self.store.clusters_options(), self.has_old_clusters);
        let (documents, has_run) = self.store.commit(lanes)?;
        if let Some(options) = options.filter(|_| has_run || has_old) {
            link_clusters(self.path.path(), &options, watch)?;
        }
        let duplicates = repeated.len();
        invariant!(
            documents + duplicates == given,
            "wrote {documents} of {given} documents, {duplicates} with repeated keys"
        );
        self.path.publish(&self.target, self.source.as_deref())?;
        Ok(BulkReport {
            documents,
            duplicates,
            runs: u64::from(has_run),
            spills,
            spilled_bytes,
        })
    }

    /// Removes the rows of the documents that are left out because of their keys.
    fn leave_out(
        &mut self,
        repeated: &Tombstones,
        watch: &mut Watch<'_>,
        on_duplicate: &mut OnDuplicate<'_>,
    ) -> Result<()> {
        let total = repeated.len();
        for (done, id) in (0..).zip(repeated.ids()) {
            watch.step(Phase::RemovingDuplicates, done, total)?;
            let key = self
                .store
                .key(id)?
                .or_bug("the key of a repeated document")?;
            self.store.remove(id)?;
            watch.obey(on_duplicate(DocumentId::new(id), &key))?;
        }
        if total > 0 {
            watch.report(Phase::RemovingDuplicates, total, total)?;
        }
        Ok(())
    }
}

/// Writes the lanes of a build.
struct LaneWriter<'a> {
    store: &'a mut BulkStore,
    repeated: &'a mut Tombstones,
    equal: &'a mut EqualCollector,
    duplicate_keys: DuplicateKeys,
}

impl LaneWriter<'_> {
    /// Writes the lane of keys.
    fn write_keys(
        &mut self,
        postings: impl Iterator<Item = Result<Posting>>,
    ) -> Result<LaneWritten> {
        let store = &*self.store;
        let key_of = |id| store.key(id);
        let mut kept = OneOfEachKey::new(postings, self.duplicate_keys, &key_of, self.repeated);
        let summary = store.write_lane(0, &mut kept, self.equal)?;
        kept.check()?;
        Ok(LaneWritten {
            summary,
            left_out: self.repeated.len(),
        })
    }

    /// Writes another lane.
    fn write_lane(
        &mut self,
        lane: u16,
        postings: impl Iterator<Item = Result<Posting>>,
    ) -> Result<LaneWritten> {
        let mut left_out = 0;
        // This looks a document up faster than the tombstones do.
        let repeated = self.repeated.dropped(&(0..=u64::MAX));
        let has_repeated = self.repeated.len() > 0;
        let kept = postings.filter(|posting| {
            let is_repeated = |posting: &Posting| repeated.contains(posting.id);
            let is_left_out = has_repeated && posting.as_ref().is_ok_and(is_repeated);
            left_out += u64::from(is_left_out);
            !is_left_out
        });
        let summary = self.store.write_lane(lane, kept, self.equal)?;
        Ok(LaneWritten { summary, left_out })
    }
}
