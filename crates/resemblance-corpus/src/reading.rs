//! The one trait for reading anything, and the counts of what was read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::bad_document::BadDocument;
use super::error::CorpusError;
use super::input::Compression;
use super::record::{CorpusRecord, ReadTotals};
use super::settings::{CorpusSettings, SourceKind};
use super::source::CorpusSource;

/// The progress in one source.
#[derive(Default)]
pub(crate) struct SourceReading {
    /// `None` before the first source.
    pub(crate) source: Option<usize>,
    pub(crate) totals: ReadTotals,
    pub(crate) hasher: crc32fast::Hasher,
    pub(crate) checked_bytes: u64,
    /// The numbers of records that are passed over, by type.
    pub(crate) passed_over: BTreeMap<String, u64>,
}

/// The maximum number of types of one source that are counted separately.
#[cfg(feature = "warc")]
const MAX_PASSED_OVER: usize = 1000;

impl SourceReading {
    /// Adds bytes to the checksum that a second reading must reproduce.
    pub(crate) fn check(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.checked_bytes += bytes.len() as u64;
    }

    /// Counts a file that has been opened.
    pub(crate) fn count_file(&mut self, kind: SourceKind) {
        self.totals.form(kind).files += 1;
    }

    /// Counts a line or row, and adds it to the checksum that a second reading must reproduce.
    pub(crate) fn count_document(&mut self, kind: SourceKind, record: &CorpusRecord) {
        self.totals.form(kind).documents += 1;
        self.count(record);
    }

    /// Counts a record that is passed over because of its type.
    #[cfg(feature = "warc")]
    pub(crate) fn pass_over(&mut self, kind: String) {
        let is_new = !self.passed_over.contains_key(&kind);
        let is_full = is_new && self.passed_over.len() >= MAX_PASSED_OVER;
        let counted = if is_full {
            "other types".to_owned()
        } else {
            kind
        };
        *self.passed_over.entry(counted).or_default() += 1;
    }

    fn count(&mut self, record: &CorpusRecord) {
        match record.table_rows {
            // For a table, its identity shows whether a second reading sees the same.
            Some(rows) => self.totals.records += rows,
            None => {
                self.totals.records += 1;
                record.check_with(|bytes| self.check(bytes));
            }
        }
    }
}

/// A source that is being read. Everything is read through this trait.
pub(crate) trait Source: Send {
    /// Reads and counts the next record. Returns `None` after the last.
    fn next(&mut self, reading: &mut SourceReading) -> Result<Option<CorpusRecord>, CorpusError>;

    /// Returns the row that names the columns of CSV and TSV.
    fn header(&self) -> Option<&CorpusRecord> {
        None
    }

    /// Returns how the source is compressed.
    fn compression(&self) -> Compression {
        Compression::None
    }
}

/// The arguments with which a source is opened.
pub(crate) struct Opening<'a> {
    pub(crate) source: &'a CorpusSource,
    /// Its number in the corpus.
    pub(crate) number: usize,
    pub(crate) settings: &'a CorpusSettings,
    /// True if a table of columns is one record, and a row of a database has all its columns.
    #[cfg_attr(
        not(any(feature = "sqlite", feature = "tables", feature = "warc")),
        expect(dead_code, reason = "every source has lines or is one text")
    )]
    pub(crate) is_whole: bool,
    /// The number of records that an earlier reading of a damaged source returned.
    #[cfg_attr(
        not(feature = "tables"),
        expect(dead_code, reason = "only tables are read as a whole")
    )]
    pub(crate) left_records: Option<u64>,
    pub(crate) bytes_read: &'a Arc<AtomicU64>,
}

impl Opening<'_> {
    /// Returns a source that is one bad document.
    pub(crate) fn problem(&self, problem: BadDocument) -> Box<dyn Source> {
        let record = CorpusRecord::problem(self.number, 0, problem);
        OneRecord::source(record, Compression::None)
    }
}

/// A source with one record: a text, or a description of its fault.
pub(crate) struct OneRecord {
    record: Option<CorpusRecord>,
    compression: Compression,
}

impl OneRecord {
    pub(crate) fn source(record: CorpusRecord, compression: Compression) -> Box<dyn Source> {
        let record = Some(record);
        Box::new(Self {
            record,
            compression,
        })
    }
}

impl Source for OneRecord {
    fn next(&mut self, reading: &mut SourceReading) -> Result<Option<CorpusRecord>, CorpusError> {
        Ok(self.record.take().inspect(|record| reading.count(record)))
    }

    fn compression(&self) -> Compression {
        self.compression
    }
}
