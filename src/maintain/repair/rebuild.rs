//! A new store of the documents that can still be read of a damaged one.

use std::ops::ControlFlow;
use std::path::Path;

use crate::build::bulk_build;
use crate::build::{BulkBuild, BulkEvent, BulkOptions, DuplicateKeys};
use crate::error::Result;
use crate::invariant::invariant;
use crate::maintain::repair::loss_report::IdRange;
use crate::maintain::repair::scanner::DamagedStore;
use crate::schema::Schema;
use crate::types::{Problem, go_on};

/// Documents that are read between two events.
const DOCUMENTS_PER_EVENT: u64 = 4_096;

/// The name of the operation in errors.
const WORK: &str = "repairing the store";

/// The options of [`Store::repair`](crate::Store::repair).
///
/// ```
/// use resemblance::{BulkOptions, RepairOptions};
/// let options = RepairOptions::new().bulk(BulkOptions::new().memory_bytes(64 << 20));
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RepairOptions {
    bulk: BulkOptions,
    schema: Option<Schema>,
    scan: bool,
}

impl RepairOptions {
    /// Makes the options: default [`BulkOptions`], no schema, no scan.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The options by which the new store is built. Their rule for duplicate keys has no effect:
    /// the newest document is kept.
    #[must_use]
    pub fn bulk(mut self, options: BulkOptions) -> Self {
        self.bulk = options;
        self
    }

    /// The schema to use if that of the file cannot be read. It must be the one that the store was
    /// made with; another threshold, and other bands of values that were not cut, do no harm.
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// If on, reads all pages of the file for rows, instead of those that its tables lead to: the
    /// last resort, if the tables cannot be found. **Removed and replaced documents may come
    /// back**, where their rows have not been overwritten, and others with an earlier stamp or
    /// payload. Off by default. It keeps 24 bytes a page
    /// with rows in memory.
    #[must_use]
    pub fn scan(mut self, on: bool) -> Self {
        self.scan = on;
        self
    }
}

/// An event of [`Store::repair_with`](crate::Store::repair_with).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RepairEvent {
    /// Progress of reading the damaged file.
    Read {
        /// Documents kept so far.
        documents: u64,
        /// Documents in the damaged file, if it still says how many.
        total: Option<u64>,
    },
    /// Progress of writing the new store.
    Written {
        /// Postings written so far, in all lanes.
        postings: u64,
        /// Postings to write, in all lanes.
        total: u64,
    },
}

/// The result of a repair: the kept and the lost documents. Lists have at most 1,000 entries;
/// [`truncated`](Self::truncated) says whether there were more.
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

/// Builds a new store at `target` of the documents that can be read at `path`.
pub(crate) fn repair_with(
    path: impl AsRef<Path>,
    target: impl AsRef<Path>,
    options: &RepairOptions,
    mut watch: impl FnMut(RepairEvent) -> ControlFlow<()>,
) -> Result<RepairReport> {
    let bulk = options.bulk.clone().duplicate_keys(DuplicateKeys::KeepLast);
    let (given, store_options) = (options.schema.as_ref(), &bulk.store);
    let mut old = DamagedStore::open(path.as_ref(), given, options.scan, store_options)?;
    let schema = old.schema().clone();
    let mut build = bulk_build(target, schema.clone(), &bulk)?;
    build.set_source(path.as_ref());
    let read = fill(&mut build, &mut old, &mut watch)?;
    let (expected, is_earlier_commit) = (old.expected, old.is_earlier_commit());
    let has_own_schema = old.has_own_schema;
    let losses = old.finish();
    let built = build.finish_with(|event| match event {
        BulkEvent::Merged { postings, total } => watch(RepairEvent::Written { postings, total }),
        BulkEvent::Duplicate { .. } => ControlFlow::Continue(()),
    })?;
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
fn fill(
    build: &mut BulkBuild,
    old: &mut DamagedStore,
    watch: &mut dyn FnMut(RepairEvent) -> ControlFlow<()>,
) -> Result<u64> {
    let total = old.expected;
    let mut documents = 0_u64;
    loop {
        if documents.is_multiple_of(DOCUMENTS_PER_EVENT) {
            go_on(watch(RepairEvent::Read { documents, total }), WORK)?;
        }
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
    go_on(watch(RepairEvent::Read { documents, total }), WORK)?;
    Ok(documents)
}
