//! Builds new bands and tables for the documents of a store from their signatures.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::build::build_estimate::{BuildEstimate, estimate_reband};
use crate::build::bulk_options::BulkOptions;
use crate::build::lane_postings::{LaneWritten, write_lanes};
use crate::build::reband_store::RebandStore;
use crate::build::sort::Sorter;
use crate::error::Result;
use crate::read::{Records, SnapshotView};
use crate::state;
use crate::types::{Operation, Phase, ReportSettings, Watch};
use resemblance_sketch::schema::{Rebanding, Schema};

/// The store to reband, and the changes to its schema.
pub struct RebandRequest {
    path: PathBuf,
    rebanding: Rebanding,
    bulk: BulkOptions,
    pub(crate) sets_from: Option<SnapshotView>,
}

/// Describes the rebanding of a store.
pub(crate) fn reband_file<'a>(path: &Path, rebanding: &Rebanding) -> Operation<'a, RebandReport> {
    let request = RebandRequest {
        path: path.into(),
        rebanding: rebanding.clone(),
        bulk: BulkOptions::new(),
        sets_from: None,
    };
    Operation::new("the rebanding", request, reband)
}

impl Operation<'_, RebandReport> {
    /// Sets the memory, disk space and threads that the rebanding uses. The rule for duplicate keys has
    /// no effect.
    ///
    /// ```
    /// # use resemblance::{BulkOptions, MinHash, Schema, Store, Text, schema::Rebanding};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # Store::create(&path, schema)?;
    /// let report = Store::reband(&path, &Rebanding::new().threshold(0.6))
    ///     .bulk(BulkOptions::new().memory_bytes(1 << 30))
    ///     .run()?;
    /// assert!(report.is_rewritten);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn bulk(mut self, options: BulkOptions) -> Self {
        self.settings.bulk = options;
        self
    }

    /// Estimates the memory and disk that [`run`](Self::run) would need. Opens the store for
    /// reading and writes nothing to it.
    ///
    /// ```
    /// use resemblance::{MinHash, Schema, Store, schema::Rebanding};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
    /// Store::create(&path, schema)?;
    /// let rebanding = Rebanding::new().threshold(0.6);
    /// let reband = Store::reband(&path, &rebanding);
    /// let estimate = reband.estimate()?;
    /// assert!(estimate.disk_bytes > 0 && estimate.temporary_bytes == 0);
    /// reband.run()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Schema::rebanded`] and
    /// [`Store::open_read_only`](crate::Store::open_read_only).
    pub fn estimate(&self) -> Result<BuildEstimate> {
        let request = &self.settings;
        let store = state::open_read_only(&request.path, &request.bulk.store)?;
        let features = request.sets_from.as_ref().map(mean_features).transpose()?;
        estimate_reband(
            &Arc::new(store),
            &request.rebanding,
            &request.bulk,
            features.unwrap_or(0.0),
        )
    }
}

/// Number of documents from whose sets the size of all sets is estimated.
const SAMPLED_SETS: usize = 256;

/// Returns the mean number of features of the first documents of an exact store.
fn mean_features(store: &SnapshotView) -> Result<f64> {
    let (mut features, mut documents) = (0, 0_u32);
    for record in Records::new(store).take(SAMPLED_SETS) {
        let record = record?;
        let set = record.signature.exact_set();
        features += set.map_or(0, |set| set.hashes().len());
        documents += 1;
    }
    Ok(features as f64 / f64::from(documents.max(1)))
}

/// The result of a rebanding.
///
/// ```
/// # use resemblance::{Schema, SimHash, Store, schema::Rebanding};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.rsm");
/// # let schema = Schema::builder().simhash(SimHash::bits64()).build()?;
/// # Store::create(&path, schema)?;
/// let rebanding = Rebanding::new().expected_documents(1_100_000); // a few more: the same tables
/// let report = Store::reband(&path, &rebanding).run()?;
/// assert_eq!((report.is_rewritten, report.postings), (false, 0));
/// assert_eq!(report.schema.expected_documents(), 1_100_000);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RebandReport {
    /// The schema that the store has now.
    pub schema: Schema,
    /// The number of live documents.
    pub documents: u64,
    /// True if postings were rewritten. It is false if the new schema gives all documents the same
    /// codes as the old one; then only a few bytes of the file have changed.
    pub is_rewritten: bool,
    /// The number of postings that were written, in all lanes.
    pub postings: u64,
    /// The number of times that postings filled the memory for sorting and were written to the
    /// temporary file.
    pub spills: u64,
    /// The number of bytes written to the temporary file.
    pub spilled_bytes: u64,
    /// Bytes on disk before.
    pub size_before_bytes: u64,
    /// Bytes on disk afterwards, including the space of the old postings. It is free for later use,
    /// and [`Store::compact`](crate::Store::compact) returns it to the disk.
    pub size_after_bytes: u64,
}

impl ReportSettings for RebandReport {
    type Settings = RebandRequest;
}

/// Replaces the bands and tables of a store, from its stored signatures, in one commit.
fn reband(request: RebandRequest, watch: &mut Watch<'_>) -> Result<RebandReport> {
    let (path, options) = (&request.path, &request.bulk);
    let mut store = RebandStore::open(path, &request.rebanding, &options.store, watch)?;
    let mut report = RebandReport {
        schema: store.schema().clone(),
        documents: store.documents(),
        is_rewritten: !store.keeps_lanes(),
        postings: 0,
        spills: 0,
        spilled_bytes: 0,
        size_before_bytes: store.size_bytes()?,
        size_after_bytes: 0,
    };
    store.begin()?;
    // First, because it may be refused.
    store.write_sets(request.sets_from.as_ref(), watch)?;
    if store.keeps_lanes() {
        report.size_after_bytes = store.commit(None, watch)?;
        return Ok(report);
    }
    let mut sorter = options.sorter(store.schema(), path)?;
    read(&mut store, &mut sorter, watch)?;
    sorter.finish(watch)?;
    let mut equal = store.equal_collector();
    let lanes = write_lanes(&sorter, watch, |lane, postings| {
        Ok(LaneWritten {
            summary: store.write_lane(lane, postings, &mut equal)?,
            left_out: 0,
        })
    })?;
    store.note_equal(equal)?;
    report.postings = sorter.postings();
    report.spills = sorter.spills();
    report.spilled_bytes = sorter.spilled_bytes();
    drop(sorter);
    report.size_after_bytes = store.commit(Some(lanes), watch)?;
    Ok(report)
}

/// Reads the postings of all live documents from their signatures.
fn read(store: &mut RebandStore, sorter: &mut Sorter, watch: &mut Watch<'_>) -> Result<()> {
    let total = store.documents();
    let mut documents = 0_u64;
    store.each_document(|id, codes| {
        watch.step(Phase::ReadingDocuments, documents, total)?;
        documents += 1;
        sorter.push(id, codes)
    })?;
    watch.report(Phase::ReadingDocuments, documents, total)
}
