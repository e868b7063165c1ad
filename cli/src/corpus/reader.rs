//! The records of a corpus, one after the other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Compression, Corpus, Error, Kind, Origin, Result, STORE_MAGIC, Source, line};

const BUFFER_BYTES: usize = 256 * 1024;

/// One document's bytes as they stand in the source, with the line end if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The number of the source.
    pub source: usize,
    /// The line, from 1; 0 for a text file.
    pub line: u64,
    /// True if a byte order mark stood before it; the mark is not part of `bytes` of a line.
    pub has_mark: bool,
    /// The line with its end, or the whole text file.
    pub bytes: Vec<u8>,
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Non-blank lines and text files.
    pub records: u64,
    /// Blank lines.
    pub blank: u64,
    /// Of all records in order: tells whether a second reading saw the same.
    pub checksum: u32,
}

/// An iterator over all records in corpus order. After an error it ends.
pub struct Records {
    corpus: Arc<Corpus>,
    next_source: usize,
    lines: Option<Lines>,
    totals: Totals,
    hasher: crc32fast::Hasher,
    bytes_read: Arc<AtomicU64>,
    compressions: BTreeMap<usize, Compression>,
    failed: bool,
}

struct Lines {
    input: BufReader<Box<dyn Read + Send>>,
    compressed: bool,
    source: usize,
    line: u64,
}

impl Records {
    /// `bytes_read` counts the bytes taken from the files, before decompression.
    pub fn new(corpus: Arc<Corpus>, bytes_read: Arc<AtomicU64>) -> Self {
        Self {
            corpus,
            next_source: 0,
            lines: None,
            totals: Totals::default(),
            hasher: crc32fast::Hasher::new(),
            bytes_read,
            compressions: BTreeMap::new(),
            failed: false,
        }
    }

    /// How a source that has been reached is compressed.
    pub fn compression(&self, source: usize) -> Compression {
        let known = self.compressions.get(&source).copied();
        known.unwrap_or(Compression::None)
    }

    /// What was read so far.
    pub fn totals(&self) -> Totals {
        Totals {
            checksum: self.hasher.clone().finalize(),
            ..self.totals
        }
    }

    fn read(&mut self) -> Result<Option<Record>> {
        loop {
            if let Some(lines) = &mut self.lines {
                match lines.next(&self.corpus)? {
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
                Kind::Lines => self.lines = Some(self.open(source, number)?),
                Kind::Text => {
                    let record = self.read_text(source, number)?;
                    return Ok(Some(self.count(record)));
                }
            }
        }
    }

    fn count(&mut self, record: Record) -> Record {
        self.totals.records += 1;
        self.hasher
            .update(&(record.bytes.len() as u64).to_le_bytes());
        self.hasher.update(&record.bytes);
        record
    }

    fn raw(&self, source: &Source) -> Result<Box<dyn Read + Send>> {
        let inner: Box<dyn Read + Send> = match &source.origin {
            Origin::StandardInput => Box::new(io::stdin()),
            Origin::Path(_) | Origin::Folder(_) => {
                let path = source.name();
                Box::new(File::open(&path).map_err(|e| Error::open(&path, e))?)
            }
            Origin::Spool(file, name) => {
                let rewound = file.try_clone().and_then(|mut file| {
                    file.rewind()?;
                    Ok(file)
                });
                Box::new(rewound.map_err(|e| Error::open(name, e))?)
            }
        };
        Ok(Box::new(Counted {
            inner,
            bytes_read: Arc::clone(&self.bytes_read),
        }))
    }

    fn open(&mut self, source: &Source, number: usize) -> Result<Lines> {
        let mut input = BufReader::with_capacity(BUFFER_BYTES, self.raw(source)?);
        let name = source.name();
        let failed = |error: io::Error| Error::read(&name, false, &error);
        let start = first_bytes(&mut input).map_err(failed)?;
        if start.starts_with(STORE_MAGIC) {
            let name = name.display();
            return Err(Error::bad(format!("{name} is a store, not a corpus")));
        }
        let compression = told_compression(&name, &start)?;
        let compressed = compression != Compression::None;
        if compressed {
            self.compressions.insert(number, compression);
        }
        let input: Box<dyn BufRead + Send> = Box::new(BufReader::with_capacity(
            BUFFER_BYTES,
            io::Cursor::new(start).chain(input),
        ));
        let input = compression.decoder(input).map_err(failed)?;
        Ok(Lines {
            input: BufReader::with_capacity(BUFFER_BYTES, input),
            compressed,
            source: number,
            line: 0,
        })
    }

    fn read_text(&self, source: &Source, number: usize) -> Result<Record> {
        let mut bytes = Vec::new();
        self.raw(source)?
            .read_to_end(&mut bytes)
            .map_err(|e| Error::read(&source.name(), false, &e))?;
        Ok(Record {
            source: number,
            line: 0,
            has_mark: false,
            bytes,
        })
    }
}

impl Iterator for Records {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = self.read();
        self.failed = record.is_err();
        record.transpose()
    }
}

impl Lines {
    fn next(&mut self, corpus: &Corpus) -> Result<Option<Record>> {
        let mut bytes = Vec::new();
        let read = self.input.read_until(b'\n', &mut bytes);
        read.map_err(|e| {
            let source = corpus.sources.get(self.source);
            let name = source.map(Source::name).unwrap_or_default();
            Error::read(&name, self.compressed, &e)
        })?;
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
        Ok(Some(Record {
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
fn told_compression(name: &Path, start: &[u8]) -> Result<Compression> {
    let (by_name, by_content) = (Compression::of_name(name), Compression::of_content(start));
    match by_name {
        Compression::Gzip if by_content != by_name => Err(Error::bad(format!(
            "{} is not gzip, as its name says",
            name.display()
        ))),
        // a Zstandard file may begin with a skippable frame
        Compression::Zstd if start.is_empty() || by_content == Compression::Gzip => {
            Err(Error::bad(format!(
                "{} is not Zstandard, as its name says",
                name.display()
            )))
        }
        Compression::Zstd => Ok(by_name),
        _ => Ok(by_content),
    }
}

struct Counted {
    inner: Box<dyn Read + Send>,
    bytes_read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes_read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
