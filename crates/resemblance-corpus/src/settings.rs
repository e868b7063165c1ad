//! Settings that decide how documents are found in the files of a corpus.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use resemblance::schema::{VectorSchema, feature_hash};

use super::content::ContentRule;
use super::error::CorpusError;
use super::fields::FieldPath;

/// How documents in lines and rows get their keys. The key of a text file is its path as it was
/// given.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdRule {
    /// From this field, which every document must have.
    Field(FieldPath),
    /// From this field if a document has it, and otherwise as with [`IdRule::Path`].
    FieldOrPath(FieldPath),
    /// From the number of the line, from 1. With several files, the same as [`IdRule::Path`].
    Line,
    /// `path:line`: the path as it was given, with that of its folder, and the number of the line.
    Path,
}

impl IdRule {
    /// Returns the field that contains the id, if there is one.
    pub fn field(&self) -> Option<&FieldPath> {
        match self {
            Self::Field(path) | Self::FieldOrPath(path) => Some(path),
            Self::Line | Self::Path => None,
        }
    }

    /// Returns true if a document without an id is a bad document.
    pub(crate) fn is_required(&self) -> bool {
        matches!(self, Self::Field(_))
    }
}

/// The format of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceKind {
    /// One JSON object in each line.
    Lines,
    /// The whole file is one text. Its key is the relative path.
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
    /// Pages in the records of a WARC or WET file.
    Warc,
    /// Rows of an array of NumPy, in a file of the extension `.npy`. Each is a vector, whose id is its
    /// index.
    Npy,
}

impl SourceKind {
    /// Lists all kinds in the order in which messages name them.
    pub(crate) const ALL: [Self; 9] = [
        Self::Lines,
        Self::Csv,
        Self::Tsv,
        Self::Parquet,
        Self::Arrow,
        Self::Sqlite,
        Self::Warc,
        Self::Npy,
        Self::Text,
    ];

    /// The name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lines => "JSON Lines",
            Self::Text => "one text each",
            Self::Csv => "CSV",
            Self::Tsv => "TSV",
            Self::Parquet => "Parquet",
            Self::Arrow => "Arrow IPC",
            Self::Sqlite => "SQLite",
            Self::Warc => "WARC",
            Self::Npy => "NumPy",
        }
    }

    /// Returns true if columns are stored separately.
    pub(crate) fn is_columnar(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }

    /// Returns true if the format cannot be read from beginning to end, and so must be in a file.
    pub(crate) fn needs_file(self) -> bool {
        self.is_columnar() || self == Self::Sqlite
    }

    /// Returns the format in which its records are written. Rows of a database, rows of arrays and
    /// pages become lines.
    pub fn written_as(self) -> Self {
        match self {
            Self::Sqlite | Self::Warc | Self::Npy => Self::Lines,
            other => other,
        }
    }
}

/// How documents are found in files.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CorpusSettings {
    /// How documents get their keys.
    pub id: IdRule,
    /// The JSON fields that contain the text. If there are several, those that a document has are
    /// joined.
    pub text_fields: Vec<FieldPath>,
    /// The JSON field that contains the vector, if the schema has vectors.
    pub vector_field: FieldPath,
    /// The content that documents may have instead of a text.
    pub content: ContentRule,
    /// The JSON field that contains the stamp, a number or a time: see
    /// [`parse_stamp`](super::parse_stamp).
    pub stamp_field: Option<FieldPath>,
    /// True if a document without that field is a bad document; otherwise its stamp is `stamp`.
    pub needs_stamp: bool,
    /// The stamp of documents without a field for it.
    pub stamp: u64,
    /// The JSON field that contains the payload.
    pub payload_field: Option<FieldPath>,
    /// The JSON field that contains the document's position in a queue, a string or a number. A
    /// document without it is bad.
    pub position_field: Option<FieldPath>,
    /// The JSON field that contains the score, a number.
    pub score_field: Option<FieldPath>,
    /// The table or view of a SQLite database to read. Without it, the database must have only one
    /// table.
    pub table: Option<String>,
    /// The number of the first row of such a table to read. Rows are then read a few at a time
    /// instead of at one point in time.
    pub rows_from: Option<i64>,
    /// The format of all files. Without it, their content decides.
    pub kind: Option<SourceKind>,
    /// The byte between two values of CSV, if it is not a comma.
    pub separator: Option<u8>,
    /// The names of the columns of CSV and TSV. The first row is then a row like any other.
    pub columns: Vec<String>,
    /// Reads only files in folders whose relative path matches one of these patterns, if there are
    /// any: see [`patterns`](crate::patterns).
    pub include: Vec<glob::Pattern>,
    /// Skips files in folders whose relative path matches one of these patterns.
    pub exclude: Vec<glob::Pattern>,
    /// True to read also hidden files and folders, whose names begin with a dot.
    pub hidden: bool,
    /// The share of documents to read, from 0 to 1. Documents are selected by a hash of their keys.
    pub sample: Option<f64>,
    /// Collects messages about unreadable files and folders, which are then skipped. Without it,
    /// the first such file ends the reading.
    pub unreadable: Option<Arc<Mutex<BTreeSet<String>>>>,
    /// The maximum length of a line or text in bytes. A longer one is a bad document.
    pub max_line_bytes: u64,
    /// The maximum number of bytes that a decompressor may allocate at once: its window, or a batch
    /// or page of a table.
    pub window_bytes: u64,
}

impl CorpusSettings {
    /// The default maximum length of a line or text in bytes.
    pub const MAX_LINE_BYTES: u64 = 256 << 20;
    /// The default maximum number of bytes that a decompressor allocates at once.
    pub const WINDOW_BYTES: u64 = 1 << 30;

    /// Skips what cannot be read if the settings say so, and returns the error otherwise.
    pub(crate) fn pass_over(&self, error: CorpusError) -> Result<(), CorpusError> {
        let Some(unreadable) = &self.unreadable else {
            return Err(error);
        };
        let mut messages = unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        messages.insert(error.to_string());
        Ok(())
    }

    /// Returns true if the settings select the file with this path below a folder.
    pub(crate) fn selects(&self, relative: &Path) -> bool {
        let path = relative.to_string_lossy();
        let matches = |patterns: &[glob::Pattern]| patterns.iter().any(|it| it.matches(&path));
        (self.include.is_empty() || matches(&self.include)) && !matches(&self.exclude)
    }

    /// Returns the byte between two values of a row.
    pub(crate) fn separator(&self, kind: SourceKind) -> Option<u8> {
        match kind {
            SourceKind::Csv => Some(self.separator.unwrap_or(b',')),
            SourceKind::Tsv => Some(b'\t'),
            _ => None,
        }
    }

    /// Returns the fields whose texts are read: none if the schema has no rule for texts.
    pub(crate) fn taken_texts(&self) -> &[FieldPath] {
        if self.content.takes_texts {
            &self.text_fields
        } else {
            &[]
        }
    }

    /// Returns true if a field of vectors is named, and documents have no vectors.
    pub fn has_idle_vector_field(&self) -> bool {
        self.vectors().is_none() && self.vector_field != Self::default().vector_field
    }

    /// Returns the field of the vectors and their schema, if documents have vectors.
    pub(crate) fn vectors(&self) -> Option<(&FieldPath, VectorSchema)> {
        let schema = self.content.vector()?;
        Some((&self.vector_field, schema))
    }

    /// Returns true if a document with this key is in the sample, which is the same each time. A
    /// larger sample contains all documents of a smaller one.
    pub fn is_sampled(&self, key: &[u8]) -> bool {
        let is_in = |share: f64| feature_hash(key) as f64 <= share * u64::MAX as f64;
        self.sample.is_none_or(is_in)
    }
}

impl Default for CorpusSettings {
    /// The fields `id`, if it exists, and `text`; all files of folders except hidden ones.
    fn default() -> Self {
        let field = |name: &str| FieldPath::from_name(name);
        Self {
            id: IdRule::FieldOrPath(field("id")),
            text_fields: vec![field("text")],
            vector_field: field("vector"),
            content: ContentRule::default(),
            stamp_field: None,
            needs_stamp: false,
            stamp: 0,
            payload_field: None,
            position_field: None,
            score_field: None,
            table: None,
            rows_from: None,
            kind: None,
            separator: None,
            columns: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            hidden: false,
            sample: None,
            unreadable: None,
            max_line_bytes: Self::MAX_LINE_BYTES,
            window_bytes: Self::WINDOW_BYTES,
        }
    }
}
