//! The simplest interface: paths and settings in, documents out.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bad_document::BadDocument;
use super::documents::Corpus;
use super::error::CorpusError;
use super::reader::CorpusRecords;
use super::record::CorpusDocument;
use super::settings::{CorpusSettings, SourceKind};

/// Iterates over the documents of files, folders, patterns and addresses. Ends after an error.
pub struct CorpusReader {
    corpus: Arc<Corpus>,
    records: CorpusRecords,
    bytes_read: Arc<AtomicU64>,
}

/// A document, or a description of its fault, with its place.
#[derive(Debug)]
#[non_exhaustive]
pub struct CorpusEntry {
    /// The file and the line or row, as messages show them: `news.jsonl:7`.
    pub place: String,
    /// The format of the file.
    pub kind: SourceKind,
    /// The document, or what is wrong with it. A caller may report a bad document and continue.
    pub document: Result<CorpusDocument<'static>, BadDocument>,
}

impl CorpusReader {
    /// Checks every path and lists folders. Does not read documents yet.
    ///
    /// # Errors
    ///
    /// An error if a path does not exist, or requires a feature that is not part of this build.
    pub fn open(paths: &[impl AsRef<Path>], settings: CorpusSettings) -> Result<Self, CorpusError> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| path.as_ref().into()).collect();
        let corpus = Arc::new(Corpus::resolve(&paths, settings)?);
        let bytes_read = Arc::new(AtomicU64::new(0));
        let records = CorpusRecords::new(Arc::clone(&corpus), Arc::clone(&bytes_read));
        Ok(Self {
            corpus,
            records,
            bytes_read,
        })
    }

    /// Returns the corpus: its files, and the files that are left out of it.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// Returns the number of bytes read so far, out of [`Corpus::size_bytes`].
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }
}

impl Iterator for CorpusReader {
    type Item = Result<CorpusEntry, CorpusError>;

    fn next(&mut self) -> Option<Self::Item> {
        for record in self.records.by_ref() {
            let record = match record {
                Ok(record) => record,
                Err(error) => return Some(Err(error)),
            };
            let parsed = self.corpus.parse(&record);
            let settings = &self.corpus.settings;
            if parsed
                .as_ref()
                .is_ok_and(|document| !settings.is_sampled(&document.key))
            {
                continue;
            }
            let source = self.corpus.sources.get(record.source);
            return Some(Ok(CorpusEntry {
                kind: source.map_or(SourceKind::Lines, |source| source.kind),
                place: self.corpus.position(record.source, record.line),
                document: parsed.map(CorpusDocument::into_owned),
            }));
        }
        None
    }
}
