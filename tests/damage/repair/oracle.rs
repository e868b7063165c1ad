//! The engine's own reading of a file: the pages that lead to a row, and whether it finds damage.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Result;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};

use redb::{Database, DatabaseError, ReadableDatabase, TableDefinition};
use resemblance::Access;

use crate::common::memory::{Call, MemoryFiles, Watch, WatchedFiles};

pub(crate) const PAGE_BYTES: usize = 4_096;

type RowTable = TableDefinition<'static, u64, &'static [u8]>;

const DOCUMENTS: RowTable = TableDefinition::new("documents");
const PAYLOADS: RowTable = TableDefinition::new("payloads");

/// Where a page begins, and its length in bytes.
pub(crate) type ReadPage = (usize, usize);

/// Where pages were read.
#[derive(Debug, Default)]
struct Reads(Mutex<Vec<ReadPage>>);

impl Reads {
    fn take(&self) -> Vec<ReadPage> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Watch for Reads {
    fn before(&self, call: &Call<'_>) -> Result<()> {
        if let Call::Read(offset, length) = *call {
            self.0.lock().unwrap().push((offset as usize, length));
        }
        Ok(())
    }
}

/// The file as the engine alone opens it, with nothing cached.
fn open(bytes: &[u8]) -> (std::result::Result<Database, DatabaseError>, Arc<Reads>) {
    let files = MemoryFiles::with("", bytes.to_vec());
    let files = WatchedFiles::new(files, Reads::default());
    let file = files.file(Path::new(""), Access::Write).unwrap();
    let mut builder = Database::builder();
    (
        builder.set_cache_size(0).create_with_backend(file),
        files.watch,
    )
}

/// The pages that lead to the rows of each document, the row's own last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    pub(crate) documents: Vec<ReadPage>,
    /// None of a document without a payload.
    pub(crate) payloads: Vec<ReadPage>,
}

impl Paths {
    /// The page at this place that leads to the document, if there is one.
    pub(crate) fn over(&self, at: usize) -> Option<ReadPage> {
        let mut pages = self.documents.iter().chain(&self.payloads);
        pages.find(|page| holds(page, at)).copied()
    }

    pub(crate) fn lead_over(&self, at: usize) -> bool {
        self.over(at).is_some()
    }

    /// Whether the page at this place has a row of the document.
    pub(crate) fn end_at(&self, at: usize) -> bool {
        let mut ends = self
            .documents
            .last()
            .into_iter()
            .chain(self.payloads.last());
        ends.any(|page| holds(page, at))
    }
}

fn holds((offset, length): &ReadPage, at: usize) -> bool {
    (*offset..offset + length).contains(&at)
}

/// Returns the pages that the engine reads to reach the rows of each document.
pub(crate) fn paths(bytes: &[u8], ids: &BTreeSet<u64>) -> BTreeMap<u64, Paths> {
    let (opened, reads) = open(bytes);
    let database = opened.unwrap();
    let read = database.begin_read().unwrap();
    let path = |table: RowTable, id: u64| {
        reads.take();
        // An open table keeps its root.
        let table = read.open_table(table).unwrap();
        let is_there = table.get(id).unwrap().is_some();
        let reads = reads.take();
        is_there.then(|| {
            assert!(!reads.is_empty(), "nothing is cached");
            reads
        })
    };
    let of = |id: &u64| {
        let paths = Paths {
            documents: path(DOCUMENTS, *id).unwrap(),
            payloads: path(PAYLOADS, *id).unwrap_or_default(),
        };
        (*id, paths)
    };
    ids.iter().map(of).collect()
}

/// Whether the engine finds every page of the file, and its bookkeeping, as they must be.
pub(crate) fn engine_is_content(bytes: &[u8]) -> bool {
    let checked = catch_unwind(AssertUnwindSafe(|| {
        let mut database = open(bytes).0.ok()?;
        database.check_integrity().ok()
    }));
    matches!(checked, Ok(Some(true)))
}
