//! New bands and tables for the documents of a store, from their signatures.

use std::ops::ControlFlow;
use std::path::Path;

use crate::build::estimate::code_bits;
use crate::build::lane_postings::{Postings, Progress};
use crate::build::options::BulkOptions;
use crate::build::reband_store::RebandStore;
use crate::build::sort::{Sorter, merge_lanes};
use crate::error::Result;
use crate::format::LaneSummary;
use crate::schema::{Rebanding, Schema};
use crate::store::Store;
use crate::types::{folder_of, go_on};

/// Documents that are read between two events.
const DOCUMENTS_AN_EVENT: u64 = 4_096;

/// In errors.
const WORK: &str = "rebanding the store";

/// What [`Store::reband_with`] tells while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RebandEvent {
    /// The signatures of so many documents have been read, of so many.
    Read {
        /// Documents read until now.
        documents: u64,
        /// All of them.
        of: u64,
    },
    /// So many postings are written, of so many in all lanes.
    Written {
        /// Postings written until now.
        postings: u64,
        /// All of them.
        of: u64,
    },
}

/// What a finished rebanding did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RebandReport {
    /// The schema that the store has now.
    pub schema: Schema,
    /// Live documents in the store.
    pub documents: u64,
    /// Whether postings were written anew. They are not if the new schema files all documents as
    /// the old one did: then a few bytes of the file have changed.
    pub is_rewritten: bool,
    /// Postings that were written, in all lanes.
    pub postings: u64,
    /// How many times postings filled the memory for sorting and went to the temporary file.
    pub spills: u64,
    /// Bytes that were written to the temporary file.
    pub spilled_bytes: u64,
    /// Bytes on disk before.
    pub size_before_bytes: u64,
    /// Bytes on disk after, those of the old postings included: they are free for what comes later,
    /// and [`Store::compact`] gives them back to the disk.
    pub size_after_bytes: u64,
}

impl Store {
    /// Files the documents of a store in another way, from the signatures that it holds: another
    /// threshold or recall, other bands, codes or SimHash tables. Texts are not needed. Ids, keys,
    /// payloads and stamps stay; afterwards the store answers as one that was made with the
    /// [new schema](Schema::rebanded).
    ///
    /// It opens the file by itself, and nobody else may have it open: handles and snapshots of before
    /// would go on with the old bands. Everything happens in one commit. Until then the file is the
    /// old store, and after a failure, an interruption or a crash it still is. Postings of removed
    /// documents go, and documents that were not sealed are.
    ///
    /// Before anything is written all pages of the file are read and verified.
    ///
    /// Memory: as [`bulk_build`](Self::bulk_build), whose options this takes too (the rule for keys
    /// that come twice has nothing to do here), and what the store keeps of unsealed and of removed
    /// documents. Disk: the file grows by the new postings, as the old ones stay until the commit;
    /// and the temporary file, as in a build. [`estimate_reband`](Self::estimate_reband) says how
    /// much. If the lanes stay as they are, because only the number of expected documents changes or a
    /// threshold without an effect on the bands, one row is written and nothing is read.
    ///
    /// ```
    /// use resemblance::{BulkOptions, MinHash, Rebanding, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(128)).build()?;
    /// let store = Store::create(&path, schema)?;
    /// store.insert("a", &store.sketch_text("one two three four five six seven eight")?)?;
    /// let question = store.sketch_text("one two three four five six nine ten")?;
    /// assert!(store.snapshot()?.query(&question).run()?.is_empty()); // 6 of 10 are below 0.8
    /// drop(store);
    ///
    /// let report = Store::reband(&path, &Rebanding::new().threshold(0.5), &BulkOptions::new())?;
    /// assert_eq!(report.documents, 1);
    /// let store = Store::open(&path)?;
    /// assert_eq!(store.snapshot()?.query(&question).run()?.len(), 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with) and [`Schema::rebanded`];
    /// [`Error::ReadOnly`](crate::Error::ReadOnly) for a store that this release may only read;
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a page or a row is damaged;
    /// [`Error::Io`](crate::Error::Io) if a disk is full, for one. The store is as it was then. Only
    /// if the commit itself fails is the outcome unknown until the store is opened again: it is the
    /// old or the new one as a whole.
    pub fn reband(
        path: impl AsRef<Path>,
        rebanding: &Rebanding,
        options: &BulkOptions,
    ) -> Result<RebandReport> {
        Self::reband_with(path, rebanding, options, |_| ControlFlow::Continue(()))
    }

    /// [`reband`](Self::reband), and `watch` is told how far it is. If it breaks off the store is
    /// as it was.
    ///
    /// # Errors
    ///
    /// As [`reband`](Self::reband); [`Error::Io`](crate::Error::Io) of the kind
    /// [`Interrupted`](std::io::ErrorKind::Interrupted) if `watch` broke off.
    pub fn reband_with(
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
        let lanes = write(&store, &sorter, &mut watch)?;
        report.postings = sorter.postings();
        report.spills = sorter.spills();
        report.spilled_bytes = sorter.spilled_bytes();
        drop(sorter);
        report.size_after_bytes = store.commit(Some(lanes))?;
        Ok(report)
    }
}

/// The postings of all live documents, from their signatures.
fn read(
    store: &mut RebandStore,
    sorter: &mut Sorter,
    watch: &mut dyn FnMut(RebandEvent) -> ControlFlow<()>,
) -> Result<()> {
    let of = store.documents();
    let mut documents = 0_u64;
    store.each_document(|id, codes| {
        if documents.is_multiple_of(DOCUMENTS_AN_EVENT) {
            go_on(watch(RebandEvent::Read { documents, of }), WORK)?;
        }
        documents += 1;
        sorter.push(id, codes)
    })?;
    go_on(watch(RebandEvent::Read { documents, of }), WORK)
}

/// Writes all lanes.
fn write(
    store: &RebandStore,
    sorter: &Sorter,
    watch: &mut dyn FnMut(RebandEvent) -> ControlFlow<()>,
) -> Result<Vec<LaneSummary>> {
    let mut tell = |postings, of| go_on(watch(RebandEvent::Written { postings, of }), WORK);
    let mut progress = Progress::new(sorter.postings(), &mut tell);
    let lanes = sorter.lanes();
    merge_lanes(&sorter.sorted(), lanes, sorter.threads(), |merged| {
        let write = |lane| {
            let postings = Postings::new(merged.lane(lane), &mut progress);
            store.write_lane(lane, postings)
        };
        (0..lanes).map(write).collect()
    })
}
