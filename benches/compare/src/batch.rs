//! The input of engines: batches of documents, or all their rows in sorted order.

use std::ops::Range;
use std::time::{Duration, Instant};

use resemblance::Signature;

use crate::Result;
use crate::documents::{BANDS, Form, batches};
use crate::options::Options;
use crate::process::resident_bytes;

/// A posting: band, code, document.
pub type Row = (u16, u64, u64);

/// A document: id, key, signature.
pub type Record = (u64, String, Vec<u8>);

/// The documents of a batch with what each engine takes of them, made before the clock runs.
pub struct Batch {
    /// The number of the first document, from 0. Numbers serve as ids.
    pub first: u64,
    pub keys: Vec<Option<String>>,
    pub signatures: Vec<Signature>,
    pub rows: Vec<Row>,
    pub records: Vec<Record>,
}

impl Batch {
    pub fn new(form: Form, numbers: Range<u64>) -> Self {
        Self {
            first: numbers.start,
            keys: numbers.clone().map(|number| form.key(number)).collect(),
            signatures: numbers.map(|number| form.signature(number)).collect(),
            rows: Vec::new(),
            records: Vec::new(),
        }
    }

    /// Adds the postings as rows.
    pub fn with_rows(mut self, form: Form) -> Self {
        for (number, signature) in (self.first..).zip(&self.signatures) {
            let codes = (0..).zip(form.codes(signature));
            self.rows
                .extend(codes.map(|(band, code)| (band, code, number)));
        }
        self
    }

    /// Adds the keys and signatures as records.
    pub fn with_records(mut self) -> Self {
        let documents = self.keys.iter().zip(&self.signatures);
        for (number, (key, signature)) in (self.first..).zip(documents) {
            if let Some(key) = key {
                let values = signature.minhash().unwrap_or_default();
                let bytes = values.iter().flat_map(|value| value.to_le_bytes());
                self.records.push((number, key.clone(), bytes.collect()));
            }
        }
        self
    }

    pub fn sorted_rows(&self) -> Vec<Row> {
        let mut rows = self.rows.clone();
        rows.sort_unstable();
        rows
    }
}

/// The input of a bulk load. It is generated piece by piece on demand, so that memory stays small.
/// It measures how long the generation took, and how long the engine worked in between.
pub struct Input {
    pub form: Form,
    pub documents: u64,
    /// True if engines other than the store also need the records.
    pub with_records: bool,
    size: u64,
    limit: Duration,
    memory_limit_bytes: u64,
    next_document: u64,
    next_band: u16,
    pub rows: u64,
    started: Instant,
    making: Duration,
    pub sorting: Duration,
    pub stopped: bool,
}

impl Input {
    /// `limit`: no more is given after the engine has worked for so long, or when memory has
    /// reached its own limit.
    pub fn new(options: &Options, documents: u64, limit: Duration) -> Self {
        Self {
            form: options.form(),
            documents,
            with_records: options.with_records(),
            size: options.batch,
            limit,
            memory_limit_bytes: options.memory_limit_bytes,
            next_document: 0,
            next_band: 0,
            rows: 0,
            started: Instant::now(),
            making: Duration::ZERO,
            sorting: Duration::ZERO,
            stopped: false,
        }
    }

    /// How long the engine has worked: neither the making nor the sorting of what it was given.
    pub fn worked(&self) -> Duration {
        self.started.elapsed() - self.making - self.sorting
    }

    /// If the system does not report the memory, there is no limit.
    fn must_stop(&mut self) -> bool {
        let memory = resident_bytes().unwrap_or(0);
        self.stopped |= self.worked() > self.limit || memory > self.memory_limit_bytes;
        self.stopped
    }

    /// The next documents in the order of their numbers.
    pub fn next_batch(&mut self) -> Option<Batch> {
        let first = self.next_document;
        if first == self.documents || self.must_stop() {
            return None;
        }
        let start = Instant::now();
        let end = first.saturating_add(self.size).min(self.documents);
        self.next_document = end;
        let batch = Batch::new(self.form, first..end);
        self.rows += (end - first) * u64::from(BANDS);
        self.making += start.elapsed();
        Some(batch)
    }

    /// The rows of the next band, sorted by code and document.
    pub fn next_band(&mut self) -> Option<Vec<Row>> {
        let band = self.next_band;
        if band == BANDS || self.must_stop() {
            return None;
        }
        self.next_band += 1;
        let start = Instant::now();
        let row = |number| (band, self.form.code(number, band), number);
        let mut rows: Vec<Row> = (0..self.documents).map(row).collect();
        self.making += start.elapsed();
        let start = Instant::now();
        rows.sort_unstable();
        self.sorting += start.elapsed();
        self.rows += self.documents;
        Some(rows)
    }

    /// Hands out the records of all documents, if they are wanted.
    pub fn for_each_records(
        &mut self,
        mut take: impl FnMut(&[Record]) -> Result<()>,
    ) -> Result<()> {
        if !self.with_records {
            return Ok(());
        }
        for numbers in batches(0..self.documents, self.size) {
            let start = Instant::now();
            let batch = Batch::new(self.form, numbers).with_records();
            self.making += start.elapsed();
            take(&batch.records)?;
        }
        Ok(())
    }
}
