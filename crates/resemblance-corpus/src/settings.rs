//! Settings that decide how documents are found in the files of a corpus.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use resemblance::schema::feature_hash;

use super::content::ContentRule;
use super::error::CorpusError;
use super::fields::FieldPath;

/// The origin of the keys of documents in lines and rows. The key of a text file is its path, as it
/// was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdRule {
    /// This field, which every document must have.
    Field(FieldPath),
    /// This field where a document has it; else as [`IdRule::Path`].
    FieldOrPath(FieldPath),
    /// The number of the line, from 1; of several files as [`IdRule::Path`].
    Line,
    /// `path:line`: the path as it was given, with that of the folder, and the number of the line.
    Path,
}

impl IdRule {
    /// The field that holds the id.
    pub fn field(&self) -> Option<&FieldPath> {
        match self {
            Self::Field(path) | Self::FieldOrPath(path) => Some(path),
            Self::Line | Self::Path => None,
        }
    }

    /// True if a document without an id is a bad one.
    pub(crate) fn is_required(&self) -> bool {
        matches!(self, Self::Field(_))
    }
}

/// The form of the records of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// One JSON object a line.
    Lines,
    /// The whole file is one text; its key is the relative path.
    Text,
    /// Comma-separated values; the first row names the columns.
    Csv,
    /// The same, separated by tabs.
    Tsv,
    /// Rows of a Parquet file.
    Parquet,
    /// Rows of an Arrow IPC file or stream.
    Arrow,
    /// Rows of a table or view of a SQLite database.
    Sqlite,
}

impl SourceKind {
    /// Lists all kinds in the order in which messages name them.
    pub(crate) const ALL: [Self; 7] = [
        Self::Lines,
        Self::Csv,
        Self::Tsv,
        Self::Parquet,
        Self::Arrow,
        Self::Sqlite,
        Self::Text,
    ];

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lines => "JSON Lines",
            Self::Text => "one text each",
            Self::Csv => "CSV",
            Self::Tsv => "TSV",
            Self::Parquet => "Parquet",
            Self::Arrow => "Arrow IPC",
            Self::Sqlite => "SQLite",
        }
    }

    /// True if documents are in columns, which are read apart from each other.
    pub(crate) fn is_columnar(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }

    /// True if it is not read from the beginning to the end, so that it must lie in a file.
    pub(crate) fn needs_file(self) -> bool {
        self.is_columnar() || self == Self::Sqlite
    }

    /// The form in which its records are written: rows of a database become lines.
    pub fn written_as(self) -> Self {
        match self {
            Self::Sqlite => Self::Lines,
            other => other,
        }
    }
}

/// How documents are found in the files.
#[derive(Clone, Debug)]
pub struct CorpusSettings {
    /// The origin of keys.
    pub id: IdRule,
    /// The JSON fields that hold the text: of several, those that are there.
    pub text_fields: Vec<FieldPath>,
    /// The content that documents may have in their place.
    pub content: ContentRule,
    /// The JSON field that holds the stamp, a number or a time: see [`parse_stamp`](super::parse_stamp).
    pub stamp_field: Option<FieldPath>,
    /// A document without that field is a bad one; else it has `stamp`.
    pub needs_stamp: bool,
    /// The stamp of documents where no field holds it.
    pub stamp: u64,
    /// The JSON field that holds the payload.
    pub payload_field: Option<FieldPath>,
    /// The JSON field that holds the score, a number.
    pub score_field: Option<FieldPath>,
    /// The table or view that is read of a SQLite database; without it, the only table is.
    pub table: Option<String>,
    /// The number of the first row to read of such a table. Rows are then read some at a time, and
    /// not at one point in time.
    pub rows_from: Option<i64>,
    /// The form of all files; without it, their content decides.
    pub kind: Option<SourceKind>,
    /// The byte between two values of CSV, if it is another than a comma.
    pub separator: Option<u8>,
    /// The names of the columns of CSV and TSV, whose first row is then one like the others.
    pub columns: Vec<String>,
    /// Patterns: only files in folders whose relative path matches one of them are read.
    pub include: Option<globset::GlobSet>,
    /// Patterns: only files in folders whose relative path matches none of them are read.
    pub exclude: Option<globset::GlobSet>,
    /// True to read also files and folders in folders whose name begins with a dot.
    pub hidden: bool,
    /// The share of the documents that are taken, from 0 to 1: those whose keys have the least hashes.
    pub sample: Option<f64>,
    /// The collection of messages about files and folders that cannot be read and are skipped.
    /// Without it, the first such file ends the reading.
    pub unreadable: Option<Arc<Mutex<BTreeSet<String>>>>,
    /// Bytes of the longest line or text; a longer one is a bad document.
    pub max_line_bytes: u64,
    /// Bytes that a decompressor may take at once: its window, or a batch or page of a table.
    pub window_bytes: u64,
}

impl CorpusSettings {
    /// Bytes of the longest line or text, unless another limit is set.
    pub const MAX_LINE_BYTES: u64 = 256 << 20;
    /// Bytes that a decompressor takes at once, unless another limit is set.
    pub const WINDOW_BYTES: u64 = 1 << 30;

    /// Passes over what cannot be read, if that is wanted; else it is an error.
    pub(crate) fn pass_over(&self, error: CorpusError) -> Result<(), CorpusError> {
        let Some(unreadable) = &self.unreadable else {
            return Err(error);
        };
        let mut messages = unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        messages.insert(error.to_string());
        Ok(())
    }

    /// True if a file of a folder is read that has this path below it.
    pub(crate) fn selects(&self, relative: &Path) -> bool {
        let matches = |globs: &globset::GlobSet| globs.is_match(relative);
        self.include.as_ref().is_none_or(matches) && !self.exclude.as_ref().is_some_and(matches)
    }

    /// Returns the byte between two values of a row.
    pub(crate) fn separator(&self, kind: SourceKind) -> Option<u8> {
        match kind {
            SourceKind::Csv => Some(self.separator.unwrap_or(b',')),
            SourceKind::Tsv => Some(b'\t'),
            _ => None,
        }
    }

    /// Returns the fields whose texts are taken: none where the schema has no rule for texts.
    pub(crate) fn taken_texts(&self) -> &[FieldPath] {
        if self.content.takes_texts {
            &self.text_fields
        } else {
            &[]
        }
    }

    /// True if a document with this key is in the sample, which is the same each time. A larger sample has
    /// all documents of a smaller one.
    pub fn is_sampled(&self, key: &[u8]) -> bool {
        let is_in = |share: f64| feature_hash(key) as f64 <= share * u64::MAX as f64;
        self.sample.is_none_or(is_in)
    }
}

impl Default for CorpusSettings {
    /// The fields `id`, if it is there, and `text`; all files of folders but the hidden ones.
    fn default() -> Self {
        let field = |name: &str| FieldPath::from_name(name);
        Self {
            id: IdRule::FieldOrPath(field("id")),
            text_fields: vec![field("text")],
            content: ContentRule::default(),
            stamp_field: None,
            needs_stamp: false,
            stamp: 0,
            payload_field: None,
            score_field: None,
            table: None,
            rows_from: None,
            kind: None,
            separator: None,
            columns: Vec::new(),
            include: None,
            exclude: None,
            hidden: false,
            sample: None,
            unreadable: None,
            max_line_bytes: Self::MAX_LINE_BYTES,
            window_bytes: Self::WINDOW_BYTES,
        }
    }
}
