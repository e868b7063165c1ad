//! The records of a corpus, one after the other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::compression::Compression;
use super::documents::Corpus;
use super::error::CorpusError;
use super::line;
use super::record::{CorpusRecord, ReadTotals};
use super::source::{CorpusSource, SourceKind, SourceOrigin};
use super::store_file::STORE_MAGIC;

const BUFFER_BYTES: usize = 256 * 1024;

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
    input: BufReader<Box<dyn Read + Send>>,
    is_compressed: bool,
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
                    Some(record) if record.bytes.trim_ascii().is_empty() => self.totals.blank += 1,
                    Some(record) => return Ok(Some(self.count(record))),
                }
                continue;
            }
            let number = self.next_source;
            let corpus = Arc::clone(&self.corpus);
            let Some(source) = corpus.sources.get(number) else {
                return Ok(None);
            };
            self.next_source += 1;
            match source.kind {
                SourceKind::Lines => self.lines = Some(self.open(source, number)?),
                SourceKind::Text => {
                    let record = self.read_text(source, number)?;
                    return Ok(Some(self.count(record)));
                }
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

    fn open(&mut self, source: &CorpusSource, number: usize) -> Result<LineReader, CorpusError> {
        let mut input = BufReader::with_capacity(BUFFER_BYTES, self.raw(source)?);
        let name = source.name();
        let failed = |error: io::Error| CorpusError::read(&name, false, &error);
        let start = first_bytes(&mut input).map_err(failed)?;
        if start.starts_with(STORE_MAGIC) {
            let name = name.display();
            return Err(CorpusError::bad(format!("{name} is a store, not a corpus")));
        }
        let compression = told_compression(&name, &start)?;
        let is_compressed = compression != Compression::None;
        if is_compressed {
            self.compressions.insert(number, compression);
        }
        let input: Box<dyn BufRead + Send> = Box::new(BufReader::with_capacity(
            BUFFER_BYTES,
            io::Cursor::new(start).chain(input),
        ));
        let input = compression.decoder(input).map_err(failed)?;
        Ok(LineReader {
            input: BufReader::with_capacity(BUFFER_BYTES, input),
            is_compressed,
            name: name.into_owned(),
            source: number,
            line: 0,
        })
    }

    fn read_text(&self, source: &CorpusSource, number: usize) -> Result<CorpusRecord, CorpusError> {
        let mut bytes = Vec::new();
        self.raw(source)?
            .read_to_end(&mut bytes)
            .map_err(|e| CorpusError::read(&source.name(), false, &e))?;
        Ok(CorpusRecord {
            source: number,
            line: 0,
            has_mark: false,
            bytes,
        })
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
        let mut bytes = Vec::new();
        let read = self.input.read_until(b'\n', &mut bytes);
        read.map_err(|e| CorpusError::read(&self.name, self.is_compressed, &e))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        let mut has_mark = false;
        if self.line == 1 {
            let mark_bytes = bytes.len() - line::without_mark(&bytes).len();
            has_mark = mark_bytes > 0;
            bytes.drain(..mark_bytes);
        }
        bytes.shrink_to(bytes.len().saturating_mul(2));
        Ok(Some(CorpusRecord {
            source: self.source,
            line: self.line,
            has_mark,
            bytes,
        }))
    }
}

/// Up to four bytes, fewer only at the end of the input.
fn first_bytes(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    input.take(4).read_to_end(&mut start)?;
    Ok(start)
}

/// Content decides, and the name must not say otherwise: a file that only claims to be compressed
/// is more likely cut short or mislabelled than what its owner wants.
fn told_compression(name: &Path, start: &[u8]) -> Result<Compression, CorpusError> {
    let (by_name, by_content) = (
        Compression::from_name(name),
        Compression::from_content(start),
    );
    match by_name {
        Compression::Gzip if by_content != by_name => Err(CorpusError::bad(format!(
            "{} is not gzip, as its name says",
            name.display()
        ))),
        // a Zstandard file may begin with a skippable frame
        Compression::Zstd if start.is_empty() || by_content == Compression::Gzip => {
            Err(CorpusError::bad(format!(
                "{} is not Zstandard, as its name says",
                name.display()
            )))
        }
        Compression::Zstd => Ok(by_name),
        _ => Ok(by_content),
    }
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
