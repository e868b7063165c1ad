//! What the engine itself reads of a file: which pages lead to a row, and whether it finds damage.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use redb::{Database, ReadableDatabase, StorageBackend, TableDefinition};

pub(crate) const PAGE_BYTES: usize = 4_096;

type RowTable = TableDefinition<'static, u64, &'static [u8]>;

const DOCUMENTS: RowTable = TableDefinition::new("documents");
const PAYLOADS: RowTable = TableDefinition::new("payloads");

/// Where a page begins, and its length in bytes.
pub(crate) type ReadPage = (usize, usize);

#[derive(Debug, Default)]
struct Recorded {
    bytes: Vec<u8>,
    /// Where pages were read.
    reads: Vec<ReadPage>,
}

/// A file in memory that notes what is read.
#[derive(Clone, Debug)]
struct Recording(Arc<Mutex<Recorded>>);

impl Recording {
    fn new(bytes: Vec<u8>) -> Self {
        let recorded = Recorded {
            bytes,
            reads: Vec::new(),
        };
        Self(Arc::new(Mutex::new(recorded)))
    }

    fn database(&self) -> Database {
        let mut builder = Database::builder();
        builder.set_cache_size(0);
        builder.create_with_backend(self.clone()).unwrap()
    }

    fn take_reads(&self) -> Vec<ReadPage> {
        std::mem::take(&mut self.0.lock().unwrap().reads)
    }
}

impl StorageBackend for Recording {
    fn len(&self) -> Result<u64> {
        Ok(self.0.lock().unwrap().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let mut recorded = self.0.lock().unwrap();
        let offset = offset as usize;
        let from = recorded.bytes.get(offset..offset + out.len());
        out.copy_from_slice(from.ok_or(ErrorKind::UnexpectedEof)?);
        recorded.reads.push((offset, out.len()));
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.0.lock().unwrap().bytes.resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let offset = offset as usize;
        let bytes = &mut self.0.lock().unwrap().bytes;
        bytes[offset..offset + data.len()].copy_from_slice(data);
        Ok(())
    }
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

/// The pages that the engine reads to come to the rows of each document.
pub(crate) fn paths(bytes: &[u8], ids: &BTreeSet<u64>) -> BTreeMap<u64, Paths> {
    let file = Recording::new(bytes.to_vec());
    let database = file.database();
    let read = database.begin_read().unwrap();
    let path = |table: RowTable, id: u64| {
        file.take_reads();
        // An open table keeps its root.
        let table = read.open_table(table).unwrap();
        let is_there = table.get(id).unwrap().is_some();
        let reads = file.take_reads();
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
        let file = Recording::new(bytes.to_vec());
        let mut database = Database::builder().create_with_backend(file).ok()?;
        database.check_integrity().ok()
    }));
    matches!(checked, Ok(Some(true)))
}
