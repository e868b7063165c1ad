//! The records of a corpus, one after the other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Buf;

use super::bad_document::BadDocument;
use super::bounded;
use super::compression::Compression;
use super::documents::Corpus;
use super::error::CorpusError;
use super::form::{self, FileStart};
use super::opened::{self, Decoded};
use super::record::{CorpusRecord, ReadTotals};
use super::settings::SourceKind;
use super::source::{CorpusSource, SourceOrigin};

/// An iterator over all records in corpus order. After an error it ends.
pub struct CorpusRecords {
    corpus: Arc<Corpus>,
    next_source: usize,
    lines: Option<LineReader>,
    totals: ReadTotals,
    hasher: crc32fast::Hasher,
    bytes_read: Arc<AtomicU64>,
    compressions: BTreeMap<usize, Compression>,
    has_failed: bool,
}

struct LineReader {
    input: Decoded,
    lines: bounded::Lines,
    is_compressed: bool,
    max_line_bytes: u64,
    /// In messages.
    name: PathBuf,
    source: usize,
    line: u64,
}

impl CorpusRecords {
    /// `bytes_read` counts the bytes taken from the files, before decompression.
    pub fn new(corpus: Arc<Corpus>, bytes_read: Arc<AtomicU64>) -> Self {
        Self {
            corpus,
            next_source: 0,
            lines: None,
            totals: ReadTotals::default(),
            hasher: crc32fast::Hasher::new(),
            bytes_read,
            compressions: BTreeMap::new(),
            has_failed: false,
        }
    }

    /// How a source that has been reached is compressed.
    pub fn compression(&self, source: usize) -> Compression {
        let known = self.compressions.get(&source).copied();
        known.unwrap_or(Compression::None)
    }

    /// What was read so far.
    pub fn totals(&self) -> ReadTotals {
        ReadTotals {
            checksum: self.hasher.clone().finalize(),
            ..self.totals
        }
    }

    fn read(&mut self) -> Result<Option<CorpusRecord>, CorpusError> {
        loop {
            if let Some(lines) = &mut self.lines {
                match lines.next()? {
                    None => self.lines = None,
                    Some(record) if record.is_blank() => self.totals.blank += 1,
                    Some(record) => {
                        self.totals.line_documents += 1;
                        return Ok(Some(self.count(record)));
                    }
                }
                continue;
            }
            let number = self.next_source;
            let corpus = Arc::clone(&self.corpus);
            let Some(source) = corpus.sources.get(number) else {
                return Ok(None);
            };
            self.next_source += 1;
            if let Some(record) = self.begin(source, number)? {
                return Ok(Some(self.count(record)));
            }
        }
    }

    /// Opens a source; one that is one text, or cannot be read, is one record.
    fn begin(
        &mut self,
        source: &CorpusSource,
        number: usize,
    ) -> Result<Option<CorpusRecord>, CorpusError> {
        if let Some(problem) = &source.problem {
            return Ok(Some(CorpusRecord::problem(number, 0, (**problem).clone())));
        }
        let name = source.name();
        let settings = &self.corpus.settings;
        let (compression, mut input) = opened::decode(self.raw(source)?, &name, settings)?;
        let is_compressed = compression != Compression::None;
        if is_compressed {
            self.compressions.insert(number, compression);
        }
        let failed = |error: io::Error| CorpusError::read(&name, is_compressed, &error);
        // The files of a folder were looked into when it was listed.
        if !matches!(source.origin, SourceOrigin::Folder(_)) {
            let start = FileStart::buffered(&mut input).map_err(failed)?;
            if let Err(problem) = start.kind(&name, settings, false) {
                return Ok(Some(CorpusRecord::problem(number, 0, problem)));
            }
        }
        match source.kind {
            SourceKind::Lines => {
                self.totals.line_files += 1;
                self.lines = Some(LineReader {
                    input,
                    lines: bounded::Lines::default(),
                    is_compressed,
                    max_line_bytes: settings.max_line_bytes,
                    name: name.into_owned(),
                    source: number,
                    line: 0,
                });
                Ok(None)
            }
            SourceKind::Text => {
                self.totals.text_files += 1;
                let text = bounded::read_all(&mut input, settings.max_line_bytes);
                Ok(Some(match text.map_err(failed)? {
                    Some(bytes) => CorpusRecord {
                        source: number,
                        bytes: bytes.into(),
                        ..CorpusRecord::default()
                    },
                    None => {
                        CorpusRecord::problem(number, 0, too_long("text", settings.max_line_bytes))
                    }
                }))
            }
        }
    }

    fn count(&mut self, record: CorpusRecord) -> CorpusRecord {
        self.totals.records += 1;
        self.hasher
            .update(&(record.bytes.len() as u64).to_le_bytes());
        self.hasher.update(&record.bytes);
        record
    }

    fn raw(&self, source: &CorpusSource) -> Result<Box<dyn Read + Send>, CorpusError> {
        let inner: Box<dyn Read + Send> = match &source.origin {
            SourceOrigin::StandardInput => Box::new(io::stdin()),
            SourceOrigin::Path(_) | SourceOrigin::Folder(_) => {
                let path = source.name();
                Box::new(File::open(&path).map_err(|e| CorpusError::open(&path, e))?)
            }
            SourceOrigin::Spool(file, name) => {
                let rewound = file.try_clone().and_then(|mut file| {
                    file.rewind()?;
                    Ok(file)
                });
                Box::new(rewound.map_err(|e| CorpusError::open(name, e))?)
            }
        };
        Ok(Box::new(CountedReader {
            inner,
            bytes_read: Arc::clone(&self.bytes_read),
        }))
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

impl LineReader {
    fn next(&mut self) -> Result<Option<CorpusRecord>, CorpusError> {
        let line = self.lines.next(&mut self.input, self.max_line_bytes);
        let line = line.map_err(|e| CorpusError::read(&self.name, self.is_compressed, &e))?;
        self.line += 1;
        let mut bytes = match line {
            Some(bytes) if bytes.is_empty() => return Ok(None),
            Some(bytes) => bytes,
            None => {
                let problem = too_long("line", self.max_line_bytes);
                return Ok(Some(CorpusRecord::problem(self.source, self.line, problem)));
            }
        };
        let mut has_mark = false;
        if self.line == 1 {
            let mark_bytes = bytes.len() - form::without_mark(&bytes).len();
            has_mark = mark_bytes > 0;
            bytes.advance(mark_bytes);
        }
        Ok(Some(CorpusRecord {
            source: self.source,
            line: self.line,
            has_mark,
            bytes,
            problem: None,
        }))
    }
}

fn too_long(what: &str, max_bytes: u64) -> BadDocument {
    let bad = BadDocument::new(format!("the {what} is longer than {max_bytes} bytes"));
    bad.with_advice("--max-line SIZE sets the limit")
}

struct CountedReader {
    inner: Box<dyn Read + Send>,
    bytes_read: Arc<AtomicU64>,
}

impl Read for CountedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes_read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
