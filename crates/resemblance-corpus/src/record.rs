//! Records as they are read, their counts, and the documents that they become.

use std::borrow::Cow;
use std::fmt;

use std::sync::Arc;

use bytes::Bytes;
use resemblance::schema::noun;
use serde::{Deserialize, Serialize};

use super::archived_record::ArchivedRecord;
use super::bad_document::BadDocument;
use super::content::Content;
use super::separated::ColumnNames;
use super::settings::SourceKind;

/// The bytes of one document as they are in the source, with the line end if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CorpusRecord {
    /// The number of the source.
    pub source: usize,
    /// The number of the line, from 1; for CSV and TSV, that of the row's first line; for other
    /// tables, the number of the row, which SQLite treats as signed; for WARC, the number of the
    /// record; for NumPy, the index of the row and 1; 0 for a text file.
    pub line: u64,
    /// True if a byte order mark preceded the line. The mark is not part of `bytes`.
    pub has_mark: bool,
    /// The line with its end, or the whole text file. For WARC see [`ArchivedRecord`].
    pub bytes: Bytes,
    /// The names of the columns, for a row of CSV or TSV.
    pub names: Option<Arc<ColumnNames>>,
    /// The number of rows of a table that is one record. Such a record has no bytes.
    pub table_rows: Option<u64>,
    /// Why the record was not read. Such a record has no bytes.
    pub problem: Option<BadDocument>,
    /// The record of a WARC file, as its reader found it.
    pub archived: Option<Arc<ArchivedRecord>>,
}

impl CorpusRecord {
    /// Returns a line or row as it was read.
    pub(crate) fn new(source: usize, line: u64, bytes: impl Into<Bytes>) -> Self {
        Self {
            source,
            line,
            bytes: bytes.into(),
            ..Self::default()
        }
    }

    /// Returns the same record with other bytes.
    pub(crate) fn with_bytes(self, bytes: impl Into<Bytes>) -> Self {
        Self {
            bytes: bytes.into(),
            ..self
        }
    }

    pub(crate) fn problem(source: usize, line: u64, problem: BadDocument) -> Self {
        Self {
            source,
            line,
            problem: Some(problem),
            ..Self::default()
        }
    }

    /// Returns the number of documents: those of a table, and none of a WARC record without a page,
    /// which is only read to be copied.
    pub fn documents(&self) -> u64 {
        let is_page = self.archived.as_ref().is_none_or(|it| it.is_page());
        self.table_rows.unwrap_or(u64::from(is_page))
    }

    /// Passes the bytes on for the checksum.
    pub(crate) fn check_with(&self, mut update: impl FnMut(&[u8])) {
        update(&(self.bytes.len() as u64).to_le_bytes());
        update(&self.bytes);
    }

    pub(crate) fn is_blank(&self) -> bool {
        let is_blank = match &self.names {
            // Tabs and spaces make a row.
            Some(_) => matches!(&*self.bytes, b"\n" | b"\r\n"),
            None => self.bytes.trim_ascii().is_empty(),
        };
        self.problem.is_none() && is_blank
    }
}

/// Counts of the records that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadTotals {
    /// Non-blank lines, rows and text files.
    pub records: u64,
    /// Blank lines.
    pub blank: u64,
    /// Files and their documents for each kind, in the order of [`SourceKind::ALL`].
    forms: [FormTotals; 9],
    /// The checksum of all records in order, to compare with a second reading.
    pub checksum: u32,
}

/// The counts of the records of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SourceTotals {
    /// The counts of this source alone.
    pub totals: ReadTotals,
    /// The number of bytes in its checksum.
    pub checked_bytes: u64,
}

/// The files of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FormTotals {
    pub(crate) files: u64,
    /// The number of nonblank lines and rows.
    pub(crate) documents: u64,
}

impl ReadTotals {
    /// Adds the totals of another source, except for the checksum.
    pub(crate) fn add(&mut self, other: &Self) {
        self.records += other.records;
        self.blank += other.blank;
        for (form, other) in self.forms.iter_mut().zip(&other.forms) {
            form.files += other.files;
            form.documents += other.documents;
        }
    }

    /// Returns the counts of files of this kind.
    pub(crate) fn form(&mut self, kind: SourceKind) -> &mut FormTotals {
        let [lines, csv, tsv, parquet, arrow, sqlite, warc, npy, texts] = &mut self.forms;
        match kind {
            SourceKind::Lines => lines,
            SourceKind::Csv => csv,
            SourceKind::Tsv => tsv,
            SourceKind::Parquet => parquet,
            SourceKind::Arrow => arrow,
            SourceKind::Sqlite => sqlite,
            SourceKind::Warc => warc,
            SourceKind::Npy => npy,
            SourceKind::Text => texts,
        }
    }
}

/// Describes how the files were read: `2 files as JSON Lines (6 documents), 1 file as one text
/// each`.
impl fmt::Display for ReadTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |count: u64, what: &str| format!("{count} {}", noun(count, what));
        let mut forms = Vec::new();
        for (kind, read) in SourceKind::ALL.into_iter().zip(&self.forms) {
            let (files, name) = (counted(read.files, "file"), kind.name());
            let documents = counted(read.documents, "document");
            match kind {
                _ if read.files == 0 => {}
                SourceKind::Text => forms.push(format!("{files} as {name}")),
                _ => forms.push(format!("{files} as {name} ({documents})")),
            }
        }
        if forms.is_empty() {
            forms.push("0 files as JSON Lines (0 documents)".to_owned());
        }
        f.write_str(&forms.join(", "))
    }
}

/// A key, a text or the content that replaces it, and the values that are stored with them.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub struct CorpusDocument<'a> {
    /// The string, or the decimal text of the number, in the line. Without one, a key made of the
    /// path as it was given and the line number.
    pub key: Cow<'a, [u8]>,
    /// True if the key is an id from the line, which other files may have too.
    pub has_own_id: bool,
    /// The decoded text, features, a vector, or a signature.
    pub content: Content<'a>,
    /// The line with its end, or the whole text file, as it is in the corpus.
    pub record: Cow<'a, [u8]>,
    /// The number of its record, from 0, if the caller has set it.
    pub number: u64,
    /// The stamp, or 0 if none is requested.
    pub stamp: u64,
    /// The payload, empty if none is requested.
    pub payload: Cow<'a, [u8]>,
    /// The position in a queue, empty if none is requested.
    pub position: Cow<'a, [u8]>,
    /// The score, as a number and the remainder of an integer of more than 53 bits. `None` if no
    /// score is requested or the document has none.
    pub score: Option<[f64; 2]>,
    /// True if nothing that contains a word remains of the text: see
    /// [`TextTrims`](super::TextTrims).
    pub is_emptied: bool,
}

impl CorpusDocument<'_> {
    /// Returns the document without borrowed data.
    #[must_use]
    pub fn into_owned(self) -> CorpusDocument<'static> {
        CorpusDocument {
            key: self.key.into_owned().into(),
            content: self.content.into_owned(),
            payload: self.payload.into_owned().into(),
            position: self.position.into_owned().into(),
            record: self.record.into_owned().into(),
            has_own_id: self.has_own_id,
            number: self.number,
            stamp: self.stamp,
            score: self.score,
            is_emptied: self.is_emptied,
        }
    }
}
