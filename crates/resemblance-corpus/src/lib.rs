#![doc = include_str!("../README.md")]

mod agreement;
mod archived_record;
mod argument;
mod bad_document;
mod changes;
mod columns;
mod content;
mod corpus_reader;
pub mod dedup;
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
mod json_line;
mod line;
mod line_source;
mod npy;
mod reader;
mod reading;
mod record;
#[cfg(feature = "remote")]
#[cfg_attr(
    not(feature = "tables"),
    expect(dead_code, unused_imports, reason = "only tables are read in ranges")
)]
mod remote;
#[cfg(test)]
#[path = "../../../tests/common/sample.rs"]
mod sample;
mod score;
mod separated;
mod settings;
mod source;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store_file;
#[cfg(test)]
#[path = "../../../tests/common/survivors.rs"]
mod survivors;
#[cfg(feature = "tables")]
mod tables;
pub mod verification;
mod warc;

pub use agreement::{not_for_more_columns, not_for_one_file};
pub use archived_record::ArchivedRecord;
pub use argument::{is_remote, patterns};
pub use bad_document::{BadDocument, io_reason};
pub use changes::{
    AddedColumn, ColumnValues, TextTrims, Verdict, WaitingDocument, header_with, record_with,
};
pub use content::{Content, ContentRule};
pub use corpus_reader::{CorpusEntry, CorpusReader};
pub use documents::Corpus;
pub use error::CorpusError;
pub use fields::FieldPath;
pub use folder::{JOB_LOCK, JOB_MANIFEST};
pub use form::{is_json_name, named_kind};
pub use html::HtmlExtractor;
pub use input::{Compression, Encoder, read_bounded};
pub use line::{parse_stamp, time_of_stamp};
pub use reader::CorpusRecords;
pub use record::{CorpusDocument, CorpusRecord, ReadTotals, SourceTotals};
#[cfg(feature = "remote")]
pub use remote::RemoteObject;
pub use score::{RepresentativeRule, ScoreRule};
pub use separated::ColumnNames;
pub use settings::{CorpusSettings, IdRule, SourceKind};
pub use source::{CorpusSource, SourceOrigin};
#[cfg(feature = "sqlite")]
pub use sqlite::{VerdictLog, VerdictTable};
pub use store_file::{is_store, only_store};
#[cfg(feature = "tables")]
pub use tables::{TableError, TableWriter, column_keys, column_values};
pub use warc::{ArchiveCopy, ArchiveCounts, PageFate, RevisitTarget};

#[cfg(test)]
mod tests;
