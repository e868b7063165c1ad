//! Sources that are read from beginning to end: lines, rows of CSV and TSV, and texts.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, Bytes, BytesMut};

use super::bad_document::BadDocument;
use super::error::CorpusError;
use super::form::{self, FileStart};
use super::input::{self, Compression, Decoded};
use super::reading::{OneRecord, Opening, Source, SourceReading};
use super::record::CorpusRecord;
use super::separated::{self, ColumnNames};
use super::settings::{CorpusSettings, SourceKind};
use super::source::SourceOrigin;

/// The lines or rows of a file.
struct LineReader {
    input: Decoded,
    lines: input::Lines,
    compression: Compression,
    max_line_bytes: u64,
    /// The name of the file in messages.
    name: PathBuf,
    source: usize,
    /// The last line that was read.
    line: u64,
    kind: SourceKind,
    /// The byte between two values of a CSV or TSV row.
    separator: Option<u8>,
    /// The first row of CSV and TSV. It is empty if the settings name the columns.
    header: Option<CorpusRecord>,
}

/// Opens a source that is read from beginning to end.
pub(crate) fn open(
    opening: &Opening<'_>,
    reading: &mut SourceReading,
) -> Result<Box<dyn Source>, CorpusError> {
    let &Opening {
        source,
        number,
        settings,
        ..
    } = opening;
    let name = source.name();
    let raw = CountedReader::new(source.open()?, opening.bytes_read);
    let (compression, mut input) = input::decode(Box::new(raw), &name, settings)?;
    let is_compressed = compression != Compression::None;
    let failed = |error: io::Error| CorpusError::read(&name, is_compressed, &error);
    let problem =
        |problem| OneRecord::source(CorpusRecord::problem(number, 0, problem), compression);
    // The files of a folder have been examined when it was listed.
    if !matches!(source.origin, SourceOrigin::Folder(_)) {
        let start = FileStart::buffered(&mut input).map_err(failed)?;
        match start.kind(&name, settings, false) {
            Ok(kind) if kind.needs_file() => {
                return Err(CorpusError::not_from_the_end(&name, kind.name()));
            }
            Ok(SourceKind::Warc) => return Ok(problem(not_lines("WARC", "warc"))),
            Ok(SourceKind::Npy) => return Ok(problem(not_lines("NumPy", "npy"))),
            Ok(_) => {}
            Err(bad) => return Ok(problem(bad)),
        }
    }
    reading.count_file(source.kind);
    let max_line_bytes = settings.max_line_bytes;
    if source.kind == SourceKind::Text {
        let text = input::read_all(&mut input, max_line_bytes).map_err(failed)?;
        let Some(text) = text else {
            return Ok(problem(BadDocument::too_long("text", max_line_bytes)));
        };
        return Ok(OneRecord::source(
            CorpusRecord::new(number, 0, text),
            compression,
        ));
    }
    let mut reader = LineReader {
        input,
        lines: input::Lines::default(),
        compression,
        max_line_bytes,
        name: name.into_owned(),
        source: number,
        line: 0,
        kind: source.kind,
        separator: settings.separator(source.kind),
        header: None,
    };
    if let Some(separator) = reader.separator {
        let header = reader.read_header(separator, settings)?;
        if header.problem.is_some() {
            return Ok(OneRecord::source(header, compression));
        }
        reading.check(&header.bytes);
        reader.header = Some(header);
    }
    Ok(Box::new(reader))
}

/// Creates the error for another format where lines are expected.
fn not_lines(name: &str, form: &str) -> BadDocument {
    let bad = BadDocument::new(format!("{name}, expected JSON Lines"));
    bad.with_advice(format!("--as {form} reads it"))
}

impl Source for LineReader {
    fn next(&mut self, reading: &mut SourceReading) -> Result<Option<CorpusRecord>, CorpusError> {
        loop {
            let record = match self.separator {
                Some(separator) => self.row(separator)?,
                None => self.plain_line()?,
            };
            match record {
                Some(record) if record.is_blank() => reading.totals.blank += 1,
                Some(record) => {
                    reading.count_document(self.kind, &record);
                    return Ok(Some(record));
                }
                None => return Ok(None),
            }
        }
    }

    fn header(&self) -> Option<&CorpusRecord> {
        self.header.as_ref()
    }

    fn compression(&self) -> Compression {
        self.compression
    }
}

impl LineReader {
    /// Returns the next line with its end, or an empty one at the end of the file. Returns `None`
    /// for a line that is too long.
    fn line(&mut self) -> Result<Option<Bytes>, CorpusError> {
        self.line += 1;
        let line = self.lines.next(&mut self.input, self.max_line_bytes);
        let is_compressed = self.compression != Compression::None;
        line.map_err(|e| CorpusError::read(&self.name, is_compressed, &e))
    }

    fn problem(&self, line: u64, problem: BadDocument) -> CorpusRecord {
        CorpusRecord::problem(self.source, line, problem)
    }

    /// Reads the first row, which names the columns, or describes its fault.
    fn read_header(
        &mut self,
        separator: u8,
        settings: &CorpusSettings,
    ) -> Result<CorpusRecord, CorpusError> {
        if !settings.columns.is_empty() {
            let names = ColumnNames::new(settings.columns.clone(), separator, settings);
            return Ok(match names {
                Ok(names) => CorpusRecord {
                    names: Some(Arc::new(names)),
                    ..CorpusRecord::new(self.source, 0, Bytes::new())
                },
                Err(bad) => self.problem(0, bad),
            });
        }
        while let Some(row) = self.row(separator)? {
            // The column names are not known yet, so tabs and spaces do not make a row.
            if row.problem.is_some() {
                return Ok(row);
            } else if !row.is_blank() {
                return Ok(match ColumnNames::parse(&row.bytes, separator, settings) {
                    Ok(names) => CorpusRecord {
                        names: Some(Arc::new(names)),
                        ..row
                    },
                    Err(bad) => self.problem(row.line, bad),
                });
            }
        }
        let reason = "an empty file, expected a header row";
        Ok(self.problem(0, BadDocument::new(reason)))
    }

    /// Returns the next row, which spans several lines if line ends are within quotes.
    fn row(&mut self, separator: u8) -> Result<Option<CorpusRecord>, CorpusError> {
        let Some(mut row) = self.plain_line()? else {
            return Ok(None);
        };
        if row.problem.is_some() {
            return Err(self.endless(row.line, false));
        }
        row.names = self.header.as_ref().and_then(|header| header.names.clone());
        let mut is_quoted = separated::ends_in_quotes(&row.bytes, separator, false);
        if !is_quoted {
            return Ok(Some(row));
        }
        let mut bytes = BytesMut::from(&*row.bytes);
        while is_quoted {
            let line = self.line()?;
            let length = bytes.len() + line.as_ref().map_or(0, Bytes::len);
            let is_end = line.as_ref().is_some_and(Bytes::is_empty);
            let Some(line) = line.filter(|_| !is_end && length as u64 <= self.max_line_bytes)
            else {
                return Err(self.endless(row.line, is_end));
            };
            bytes.extend_from_slice(&line);
            is_quoted = separated::ends_in_quotes(&line, separator, true);
        }
        row.bytes = bytes.freeze();
        Ok(Some(row))
    }

    /// Creates the error for a row whose quotes never end. It is unknown where that row ends and
    /// later rows begin, so the file cannot be read even if bad documents are skipped.
    fn endless(&self, line: u64, is_end: bool) -> CorpusError {
        let (name, max_bytes) = (self.name.display(), self.max_line_bytes);
        match is_end {
            true => CorpusError::bad(format!(
                "the row at {name}:{line} has a quote that is never closed, so the rows after it cannot be recognized"
            ))
            .with_advice("close the quote, or double it if it is part of a value"),
            false => CorpusError::bad(format!(
                "the row at {name}:{line} is longer than {max_bytes} bytes"
            ))
            .with_advice("close its quote if it has one too few; --max-line SIZE sets the limit"),
        }
    }

    fn plain_line(&mut self) -> Result<Option<CorpusRecord>, CorpusError> {
        let mut bytes = match self.line()? {
            Some(bytes) if bytes.is_empty() => return Ok(None),
            Some(bytes) => bytes,
            None => {
                let problem = BadDocument::too_long("line", self.max_line_bytes);
                return Ok(Some(self.problem(self.line, problem)));
            }
        };
        let mut has_mark = false;
        if self.line == 1 {
            let mark_bytes = bytes.len() - form::without_mark(&bytes).len();
            has_mark = mark_bytes > 0;
            bytes.advance(mark_bytes);
        }
        Ok(Some(CorpusRecord {
            has_mark,
            ..CorpusRecord::new(self.source, self.line, bytes)
        }))
    }
}

/// Counts the bytes that are read.
pub(crate) struct CountedReader {
    inner: Box<dyn Read + Send>,
    bytes_read: Arc<AtomicU64>,
}

impl CountedReader {
    pub(crate) fn new(inner: Box<dyn Read + Send>, bytes_read: &Arc<AtomicU64>) -> Self {
        let bytes_read = Arc::clone(bytes_read);
        Self { inner, bytes_read }
    }
}

impl Read for CountedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes_read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
