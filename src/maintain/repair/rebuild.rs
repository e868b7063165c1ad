//! Builds a new store from the documents of a damaged one that can still be read.

use std::ops::ControlFlow;
use std::path::Path;

use crate::build::bulk_build;
use crate::build::{BulkBuild, BulkOptions, DuplicateKeys};
use crate::error::Result;
use crate::invariant::invariant;
use crate::maintain::repair::loss_report::IdRange;
use crate::maintain::repair::scanner::DamagedStore;
use crate::types::{Operation, Phase, Problem, ReportSettings, Watch};
use resemblance_sketch::schema::Schema;

#[cfg(doc)]
use crate::error::Error;

/// The assumptions and settings of a repair.
pub struct RepairSettings {
    bulk: BulkOptions,
    schema: Option<Schema>,
    scan: bool,
}

/// Describes the repair of a damaged store into a new one.
pub(crate) fn repair<'a>(path: &Path, target: &Path) -> Operation<'a, RepairReport> {
    let (path, target) = (path.to_path_buf(), target.to_path_buf());
    let settings = RepairSettings {
        bulk: BulkOptions::new(),
        schema: None,
        scan: false,
    };
    Operation::new(
        "the repair",
        settings,
        move |settings: RepairSettings, watch| {
            let bulk = settings.bulk.duplicate_keys(DuplicateKeys::KeepLast);
            let schema = settings.schema.as_ref();
            let old = DamagedStore::open(&path, schema, settings.scan, &bulk.store, watch)?;
            rebuild(old, &path, &target, &bulk, watch)
        },
    )
}

impl Operation<'_, RepairReport> {
    /// Sets the options with which the new store is built. Their rule for duplicate keys has no
    /// effect: the newest document is kept.
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
    pub fn bulk(mut self, options: BulkOptions) -> Self {
        self.settings.bulk = options;
        self
    }

    /// Sets the schema to use if that of the file cannot be read. It must be the schema with which
    /// the store was made. A different threshold and different bands are allowed if values were not
    /// cut.
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
        self.settings.schema = Some(schema);
        self
    }

    /// Sets whether to search all pages of the file for rows, instead of only those to which its
    /// tables lead. This is a last resort if the tables cannot be found. **Removed and replaced
    /// documents may reappear** if their rows have not been overwritten, and documents may have an
    /// earlier stamp or payload. Default: off. The search takes 24 bytes of memory for each page
    /// with rows.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(&path, schema)?;
    /// # store.insert("a", &store.sketch_text("some text or other")?)?;
    /// # drop(store);
    /// # let new = folder.path().join("new.rsm");
    /// let report = Store::repair(&path, &new).scan(true).run()?;
    /// assert_eq!(report.documents, 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn scan(mut self, on: bool) -> Self {
        self.settings.scan = on;
        self
    }
}

/// The result of a repair: which documents were kept and lost. Each list has at most 1,000 entries;
/// [`truncated`](Self::truncated) is true if there were more.
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
    /// The number of documents in the new store.
    pub documents: u64,
    /// The number of documents before the repair, if the file still records it.
    pub documents_before: Option<u64>,
    /// The number of documents that were found in part and are certainly lost. A document of which
    /// nothing remains cannot be counted.
    pub documents_lost: u64,
    /// The number of documents that were left out because a newer one has their key: they had been
    /// replaced, and the record of that is lost.
    pub documents_replaced: u64,
    /// The ids of documents that are lost or may be lost.
    pub lost: Vec<IdRange>,
    /// The ids of documents in the new store that may have been removed from the old one.
    pub may_be_back: Vec<IdRange>,
    /// The damaged places, including those whose damage loses nothing.
    pub damage: Vec<Problem>,
    /// The schema of the new store.
    pub schema: Schema,
    /// True if the schema was read from the file, false if it was taken from the options.
    pub has_own_schema: bool,
    /// True if the new store has, or may have, the state before the last commit, because the last
    /// one could not be read. If one of the two commits that a file records is damaged, it may have
    /// been the last.
    pub is_earlier_commit: bool,
    /// True if lists were cut short.
    pub truncated: bool,
}

impl ReportSettings for RepairReport {
    type Settings = RepairSettings;
}

impl RepairReport {
    /// Returns true if the new store has exactly the documents of the old one, as far as this can
    /// be determined.
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
    if schema.clusters().is_some() && read > 0 {
        old.cluster_rows(&mut |table, rows| build.copy_clusters(table, rows))?;
    }
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
    // Ids are never reused, as far as the file records which ones were used.
    build.skip_to(old.next_id().unwrap_or(0));
    build.begin_feed_after(old.feed_position)?;
    watch.report(Phase::ReadingDocuments, documents, total)?;
    Ok(documents)
}
