//! Reading documents: JSON Lines, tables, folders of text files, standard input, objects of S3 and files of web servers.
//!
//! A corpus is a list of *sources* in a fixed order: the arguments in the order in which they were
//! given, and the files of a folder in the byte order of their relative paths. A source yields
//! *records*: the non-blank lines of a JSON Lines file, the rows of a table (CSV, TSV, Parquet, Arrow IPC, SQLite), or the one
//! text of a text file; which of them a file of a folder is, its content and its name tell. A record becomes a *document* (a key and a text, or what
//! stands in its place) by [`Corpus::parse`], or is a bad one.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::AtomicU64;
//!
//! use resemblance_cli::corpus::{Corpus, CorpusRecords, CorpusSettings};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("corpus.jsonl");
//! std::fs::write(&path, r#"{"id": 7, "text": "It was the best of times"}"#)?;
//!
//! let corpus = Arc::new(Corpus::resolve(&[path], CorpusSettings::default())?);
//! let bytes_read = Arc::new(AtomicU64::new(0));
//! for record in CorpusRecords::new(Arc::clone(&corpus), bytes_read) {
//!     let record = record?;
//!     let document = corpus.parse(&record)?;
//!     assert_eq!(&*document.key, b"7");
//!     assert_eq!(document.content.text(), Some("It was the best of times"));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agreement;
mod argument;
mod bad_document;
mod changes;
mod columns;
mod content;
mod documents;
mod error;
mod fields;
mod folder;
mod form;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod html;
mod input;
mod line;
mod reader;
mod record;
#[cfg(feature = "remote")]
mod remote;
#[cfg(not(feature = "remote"))]
#[path = "absent/remote.rs"]
mod remote;
mod separated;
mod settings;
mod source;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(not(feature = "sqlite"))]
#[path = "absent/sqlite.rs"]
mod sqlite;
mod store_file;
#[cfg(feature = "tables")]
mod tables;
#[cfg(not(feature = "tables"))]
#[path = "absent/tables.rs"]
mod tables;

pub use agreement::{not_for_more_columns, not_for_one_file};
pub use argument::is_remote;
pub use bad_document::BadDocument;
pub use changes::{
    AddedColumn, ColumnValues, TextTrims, Verdict, WaitingDocument, header_with, record_with,
};
pub use content::{Content, ContentRule};
pub use documents::Corpus;
pub use error::CorpusError;
pub use fields::FieldPath;
pub use folder::{JOB_LOCK, JOB_MANIFEST};
pub use form::named_kind;
pub use html::HtmlExtractor;
pub use input::{Compression, Encoder, read_bounded};
pub use line::parse_time;
pub use reader::CorpusRecords;
pub use record::{CorpusDocument, CorpusRecord, ReadTotals, SourceTotals};
pub use remote::RemoteObject;
pub use separated::ColumnNames;
pub use settings::{CorpusSettings, IdRule, SourceKind};
pub use source::{CorpusSource, SourceOrigin};
pub use sqlite::{VerdictLog, VerdictTable};
pub use store_file::{is_store, only_store};
pub use tables::{TableError, TableWriter};

#[cfg(test)]
mod tests;
