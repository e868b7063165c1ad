//! What takes part, behind one face.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use resemblance::{Document, DocumentId, Signature, Snapshot, Store, StoreOptions};

use crate::Result;
use crate::documents::Form;
use crate::report::allocated_bytes;
use crate::sqlite::{Record, Row, Sqlite};

/// Of every engine.
pub const CACHE_BYTES: u64 = 64 << 20;

/// A batch of documents with what each engine takes of them, made before the clock runs.
pub struct Batch {
    /// The number of the first document, from 0.
    pub first: u64,
    keys: Vec<Option<String>>,
    signatures: Vec<Signature>,
    rows: Vec<Row>,
    records: Vec<Record>,
}

impl Batch {
    pub fn new(form: Form, numbers: std::ops::Range<u64>) -> Self {
        Self {
            first: numbers.start,
            keys: numbers.clone().map(|number| form.key(number)).collect(),
            signatures: numbers.map(|number| form.signature(number)).collect(),
            rows: Vec::new(),
            records: Vec::new(),
        }
    }

    /// Adds the postings as rows, and if asked for the records; numbers stand for ids.
    pub fn with_rows(mut self, form: Form, with_records: bool) -> Self {
        let documents = self.keys.iter().zip(&self.signatures);
        for (number, (key, signature)) in (self.first..).zip(documents) {
            let codes = form.codes(signature);
            self.rows
                .extend((0..).zip(codes).map(|(band, code)| (band, code, number)));
            if let (true, Some(key)) = (with_records, key) {
                let values = signature.minhash().unwrap_or_default();
                let bytes = values.iter().flat_map(|value| value.to_le_bytes());
                self.records.push((number, key.clone(), bytes.collect()));
            }
        }
        self
    }
}

/// An engine that documents are loaded into.
pub trait Engine {
    fn name(&self) -> &'static str;

    /// Inserts and commits a batch.
    fn insert(&mut self, batch: &Batch) -> Result<()>;

    /// The numbers of the documents that share a band with a signature, ascending, and how long
    /// the answer took.
    fn candidates(&self, signature: &Signature, codes: &[u64]) -> Result<(Vec<u64>, Duration)>;

    /// Bytes of its file on disk, all logs emptied. Ends it.
    fn close(self: Box<Self>) -> Result<u64>;
}

pub struct Ours {
    pub store: Store,
    pub path: PathBuf,
    /// Made when all is loaded.
    pub snapshot: Option<Snapshot>,
    /// The id of document 0.
    first_id: Option<u64>,
}

impl Ours {
    pub fn create(form: Form, folder: &Path) -> Result<Self> {
        let path = folder.join("store.rsm");
        let settings = StoreOptions::new().cache_bytes(CACHE_BYTES);
        Ok(Self {
            store: Store::create_with(&path, form.schema()?, &settings)?,
            path,
            snapshot: None,
            first_id: None,
        })
    }
}

impl Engine for Ours {
    fn name(&self) -> &'static str {
        "resemblance"
    }

    fn insert(&mut self, batch: &Batch) -> Result<()> {
        let mut transaction = self.store.begin_write()?;
        for (number, (key, signature)) in
            (batch.first..).zip(batch.keys.iter().zip(&batch.signatures))
        {
            let document = match key {
                Some(key) => Document::new(key.as_bytes()),
                None => Document::without_key(),
            };
            let id = transaction.insert_document(document, signature)?.get();
            let first_id = *self.first_id.get_or_insert(id);
            assert_eq!(id, first_id + number, "ids follow each other");
        }
        Ok(transaction.commit()?)
    }

    fn candidates(&self, signature: &Signature, _: &[u64]) -> Result<(Vec<u64>, Duration)> {
        let snapshot = self.snapshot.as_ref().ok_or("no snapshot")?;
        let start = Instant::now();
        let ids = snapshot.candidates(signature)?;
        let time = start.elapsed();
        let first_id = self.first_id.unwrap_or_default();
        let ids = ids.into_iter().map(DocumentId::get);
        Ok((ids.map(|id| id - first_id).collect(), time))
    }

    fn close(self: Box<Self>) -> Result<u64> {
        let path = self.path.clone();
        drop(self);
        allocated_bytes(&path)
    }
}

pub struct Theirs {
    sqlite: Sqlite,
    path: PathBuf,
    sorted: bool,
}

impl Theirs {
    /// `sorted`: whether rows are sorted by the primary key before they are inserted.
    pub fn create(folder: &Path, sorted: bool) -> Result<Self> {
        let path = folder.join(if sorted { "sorted.db" } else { "sqlite.db" });
        Ok(Self {
            sqlite: Sqlite::create(&path, CACHE_BYTES)?,
            path,
            sorted,
        })
    }

    pub fn settings(&self) -> Result<String> {
        self.sqlite.settings()
    }
}

impl Engine for Theirs {
    fn name(&self) -> &'static str {
        if self.sorted {
            "SQLite, sorted"
        } else {
            "SQLite"
        }
    }

    fn insert(&mut self, batch: &Batch) -> Result<()> {
        if !self.sorted {
            return self.sqlite.insert(&batch.rows, &batch.records);
        }
        let mut rows = batch.rows.clone();
        rows.sort_unstable();
        self.sqlite.insert(&rows, &batch.records)
    }

    fn candidates(&self, _: &Signature, codes: &[u64]) -> Result<(Vec<u64>, Duration)> {
        let start = Instant::now();
        let ids = self.sqlite.candidates(codes)?;
        Ok((ids, start.elapsed()))
    }

    fn close(self: Box<Self>) -> Result<u64> {
        self.sqlite.checkpoint()?;
        self.sqlite.close()?;
        let log = self.path.with_extension("db-wal");
        assert!(!log.exists(), "SQLite's log is gone");
        allocated_bytes(&self.path)
    }
}
