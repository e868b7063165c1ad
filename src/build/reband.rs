//! New bands and tables for the documents of a store, from their signatures.

use std::ops::ControlFlow;
use std::path::Path;

use crate::build::estimate::code_bits;
use crate::build::lane_postings::{Postings, Progress};
use crate::build::options::BulkOptions;
use crate::build::reband_store::RebandStore;
use crate::build::sort::{Sorter, merge_lanes};
use crate::engine::folder_of;
use crate::error::Result;
use crate::format::LaneSummary;
use crate::invariant::invariant;
use crate::schema::{Rebanding, Schema};
use crate::types::go_on;
use crate::write::EqualCollector;

/// Documents that are read between two events.
const DOCUMENTS_PER_EVENT: u64 = 4_096;

/// Names the work in errors.
const WORK: &str = "rebanding the store";

/// An event of [`Store::reband_with`](crate::Store::reband_with).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RebandEvent {
    /// Progress of reading signatures.
    Read {
        /// Documents read so far.
        documents: u64,
        /// Documents to read.
        total: u64,
    },
    /// Progress of writing postings.
    Written {
        /// Postings written so far, in all lanes.
        postings: u64,
        /// Postings to write, in all lanes.
        total: u64,
    },
}

/// The result of a rebanding.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RebandReport {
    /// The schema that the store has now.
    pub schema: Schema,
    /// Live documents in the store.
    pub documents: u64,
    /// True if postings were written anew. They are not if the new schema gives all documents the
    /// same codes as the old one: then a few bytes of the file have changed.
    pub is_rewritten: bool,
    /// Postings that were written, in all lanes.
    pub postings: u64,
    /// Number of times that postings filled the memory for sorting and were written to the
    /// temporary file.
    pub spills: u64,
    /// Bytes that were written to the temporary file.
    pub spilled_bytes: u64,
    /// Bytes on disk before.
    pub size_before_bytes: u64,
    /// Bytes on disk after, those of the old postings included: they are free for what comes later,
    /// and [`Store::compact`](crate::Store::compact) gives them back to the disk.
    pub size_after_bytes: u64,
}

/// Replaces the bands and tables of a store, from its stored signatures, in one commit.
pub(crate) fn reband_with(
    path: impl AsRef<Path>,
    rebanding: &Rebanding,
    options: &BulkOptions,
    mut watch: impl FnMut(RebandEvent) -> ControlFlow<()>,
) -> Result<RebandReport> {
    let path = path.as_ref();
    let mut store = RebandStore::open(path, rebanding, &options.store)?;
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
    if store.keeps_lanes() {
        store.begin()?;
        report.size_after_bytes = store.commit(None)?;
        return Ok(report);
    }
    let folder = options.temp_dir.clone();
    let mut sorter = Sorter::new(
        &code_bits(store.schema())?,
        options.memory_bytes,
        options.sorting_threads(),
        &folder.unwrap_or_else(|| folder_of(path)),
    );
    read(&mut store, &mut sorter, &mut watch)?;
    sorter.finish()?;
    store.begin()?;
    let mut equal = store.equal_collector();
    let lanes = write(&store, &sorter, &mut equal, &mut watch)?;
    store.note_equal(equal)?;
    report.postings = sorter.postings();
    report.spills = sorter.spills();
    report.spilled_bytes = sorter.spilled_bytes();
    drop(sorter);
    report.size_after_bytes = store.commit(Some(lanes))?;
    Ok(report)
}

/// Reads the postings of all live documents from their signatures.
fn read(
    store: &mut RebandStore,
    sorter: &mut Sorter,
    watch: &mut dyn FnMut(RebandEvent) -> ControlFlow<()>,
) -> Result<()> {
    let total = store.documents();
    let mut documents = 0_u64;
    store.each_document(|id, codes| {
        if documents.is_multiple_of(DOCUMENTS_PER_EVENT) {
            go_on(watch(RebandEvent::Read { documents, total }), WORK)?;
        }
        documents += 1;
        sorter.push(id, codes)
    })?;
    go_on(watch(RebandEvent::Read { documents, total }), WORK)
}

/// Writes all lanes.
fn write(
    store: &RebandStore,
    sorter: &Sorter,
    equal: &mut EqualCollector,
    watch: &mut dyn FnMut(RebandEvent) -> ControlFlow<()>,
) -> Result<Vec<LaneSummary>> {
    let mut tell = |postings, total| go_on(watch(RebandEvent::Written { postings, total }), WORK);
    let mut progress = Progress::new(sorter.postings(), &mut tell);
    let lanes = sorter.lanes()?;
    let sorted = sorter.sorted();
    let summaries = merge_lanes(&sorted, lanes, sorter.threads(), |merged| {
        let mut summaries = Vec::with_capacity(lanes.into());
        for lane in 0..lanes {
            let postings = Postings::new(merged.lane(lane)?, &mut progress);
            let summary = store.write_lane(lane, postings, equal)?;
            let (written, given) = (summary.postings, sorted.lane_postings(lane.into())?);
            invariant!(
                written == given,
                "lane {lane}: wrote {written} of {given} postings"
            );
            summaries.push(summary);
        }
        Ok(summaries)
    })?;
    progress.finish()?;
    Ok(summaries)
}
