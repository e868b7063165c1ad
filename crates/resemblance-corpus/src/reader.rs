//! Reads the records of a corpus, one after another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::documents::Corpus;
use super::error::CorpusError;
use super::form;
use super::input::Compression;
use super::line_source;
use super::npy;
use super::reading::{Opening, Source, SourceReading};
use super::record::{CorpusRecord, ReadTotals, SourceTotals};
use super::settings::SourceKind;
use super::source::CorpusSource;

/// Iterates over all records in corpus order. Ends after an error.
pub struct CorpusRecords {
    corpus: Arc<Corpus>,
    next_source: usize,
    current: Option<Box<dyn Source>>,
    gives_whole_tables: bool,
    /// The totals of the sources that were read to the end, and the checksum of their records.
    totals: ReadTotals,
    hasher: crc32fast::Hasher,
    /// The progress in the source that is being read.
    reading: SourceReading,
    /// Sources that are skipped, and what they add to the totals.
    known: BTreeMap<usize, SourceTotals>,
    /// Sources that were read to the end since the last call of `take_finished`.
    finished: Vec<(usize, SourceTotals)>,
    bytes_read: Arc<AtomicU64>,
    compressions: BTreeMap<usize, Compression>,
    /// The header rows of CSV and TSV files, so far.
    headers: BTreeMap<usize, CorpusRecord>,
    has_failed: bool,
}

impl CorpusRecords {
    /// Creates a reader. `bytes_read` counts the bytes taken from the files, before decompression.
    pub fn new(corpus: Arc<Corpus>, bytes_read: Arc<AtomicU64>) -> Self {
        Self {
            corpus,
            next_source: 0,
            current: None,
            gives_whole_tables: false,
            totals: ReadTotals::default(),
            hasher: crc32fast::Hasher::new(),
            reading: SourceReading::default(),
            known: BTreeMap::new(),
            finished: Vec::new(),
            bytes_read,
            compressions: BTreeMap::new(),
            headers: BTreeMap::new(),
            has_failed: false,
        }
    }

    /// Returns this reader in a mode in which a table of columns is one record, which a
    /// [`TableWriter`](super::TableWriter) reads and copies, and a row of a database has all its
    /// columns. The totals do not change.
    #[must_use]
    pub fn with_whole_tables(self) -> Self {
        Self {
            gives_whole_tables: true,
            ..self
        }
    }

    /// Returns this reader without the records of some sources. The totals and the numbers of other
    /// records do not change.
    #[must_use]
    pub fn without(self, known: BTreeMap<usize, SourceTotals>) -> Self {
        Self { known, ..self }
    }

    /// Returns the sources that were read to the end since the last call.
    pub fn take_finished(&mut self) -> Vec<(usize, SourceTotals)> {
        std::mem::take(&mut self.finished)
    }

    /// Returns the number, from 0, of the last record, or of the last row of a whole table.
    pub fn last_number(&self) -> u64 {
        (self.totals.records + self.reading.totals.records).saturating_sub(1)
    }

    /// Returns the compression of a source that has been reached.
    pub fn compression(&self, source: usize) -> Compression {
        let known = self.compressions.get(&source).copied();
        known.unwrap_or(Compression::None)
    }

    /// Returns the header row of a CSV or TSV source that has been reached.
    pub fn header(&self, source: usize) -> Option<&CorpusRecord> {
        self.headers.get(&source)
    }

    /// Returns the totals so far.
    pub fn totals(&self) -> ReadTotals {
        let mut totals = self.totals;
        totals.add(&self.reading.totals);
        let mut hasher = self.hasher.clone();
        hasher.combine(&self.reading.hasher);
        totals.checksum = hasher.finalize();
        totals
    }

    /// Adds a source that was read to the end to the totals.
    fn finish_source(&mut self) {
        let reading = std::mem::take(&mut self.reading);
        let Some(source) = reading.source else {
            return;
        };
        let mut totals = reading.totals;
        totals.checksum = reading.hasher.clone().finalize();
        self.corpus.pass_over_records(source, reading.passed_over);
        self.totals.add(&totals);
        self.hasher.combine(&reading.hasher);
        let checked_bytes = reading.checked_bytes;
        self.finished.push((
            source,
            SourceTotals {
                totals,
                checked_bytes,
            },
        ));
    }

    /// Skips the rest of an unreadable source if the settings say so. The source does not count as
    /// finished.
    fn leave_source(&mut self, error: CorpusError) -> Result<(), CorpusError> {
        self.corpus.settings.pass_over(error)?;
        if let Some(source) = self.reading.source {
            self.corpus.leave(source, self.reading.totals.records);
        }
        self.finish_source();
        self.finished.pop();
        Ok(())
    }

    /// Skips a source whose totals are known.
    fn pass_over(&mut self, source: &CorpusSource, known: &SourceTotals) {
        self.totals.add(&known.totals);
        let checksum = known.totals.checksum;
        let hasher = crc32fast::Hasher::new_with_initial_len(checksum, known.checked_bytes);
        self.hasher.combine(&hasher);
        if let Some(bytes) = source.size_bytes() {
            self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn read(&mut self) -> Result<Option<CorpusRecord>, CorpusError> {
        loop {
            let corpus = Arc::clone(&self.corpus);
            if let Some(current) = &mut self.current {
                match current.next(&mut self.reading) {
                    Ok(Some(record)) => return Ok(Some(record)),
                    Ok(None) => self.finish_source(),
                    Err(error) => self.leave_source(error)?,
                }
                self.current = None;
            }
            let number = self.next_source;
            let Some(source) = corpus.sources.get(number) else {
                return Ok(None);
            };
            self.next_source += 1;
            if let Some(known) = self.known.remove(&number) {
                self.pass_over(source, &known);
                continue;
            }
            self.reading.source = Some(number);
            let opening = Opening {
                source,
                number,
                settings: &corpus.settings,
                is_whole: self.gives_whole_tables,
                left_records: corpus.left_records(number),
                bytes_read: &self.bytes_read,
            };
            let opened = match open(&opening, &mut self.reading) {
                Ok(opened) => opened,
                Err(error) => {
                    self.leave_source(error)?;
                    continue;
                }
            };
            if opened.compression() != Compression::None {
                self.compressions.insert(number, opened.compression());
            }
            if let Some(header) = opened.header() {
                self.headers.insert(number, header.clone());
            }
            self.current = Some(opened);
        }
    }
}

/// Opens the source. An unusable source is one record with a problem.
fn open(
    opening: &Opening<'_>,
    reading: &mut SourceReading,
) -> Result<Box<dyn Source>, CorpusError> {
    let source = opening.source;
    if let Some(problem) = &source.problem {
        return Ok(opening.problem((**problem).clone()));
    }
    match source.kind {
        #[cfg(feature = "tables")]
        SourceKind::Parquet | SourceKind::Arrow => super::tables::open(opening, reading),
        #[cfg(feature = "sqlite")]
        SourceKind::Sqlite => super::sqlite::open(opening, reading),
        #[cfg(feature = "warc")]
        SourceKind::Warc => super::warc::open(opening, reading),
        SourceKind::Npy => npy::open(opening, reading),
        kind => match form::missing_feature(kind) {
            Some(feature) => Err(CorpusError::requires(&source.name(), kind.name(), feature)),
            None => line_source::open(opening, reading),
        },
    }
}

impl Iterator for CorpusRecords {
    type Item = Result<CorpusRecord, CorpusError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let record = self.read();
        self.has_failed = record.is_err();
        record.transpose()
    }
}
