//! The records of a corpus, one after the other.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, Bytes, BytesMut};

use super::bad_document::BadDocument;
use super::documents::Corpus;
use super::error::CorpusError;
use super::form::{self, FileStart};
use super::input::{self, Compression, Decoded};
use super::record::{CorpusRecord, ReadTotals, SourceTotals};
use super::separated::{self, ColumnNames};
use super::settings::{CorpusSettings, SourceKind};
use super::source::{CorpusSource, SourceOrigin};
use super::sqlite::{SqliteRow, SqliteRows};
use super::tables::{TableFile, TableRows};

/// An iterator over all records in corpus order. After an error it ends.
pub struct CorpusRecords {
    corpus: Arc<Corpus>,
    next_source: usize,
    current: Option<SourceReader>,
    gives_whole_tables: bool,
    /// Of the sources that were read to their end.
    totals: ReadTotals,
    hasher: crc32fast::Hasher,
    /// Of the one that is being read.
    reading: SourceReading,
    /// Sources that are not read, and what they would add to the totals.
    known: BTreeMap<usize, SourceTotals>,
    /// Sources that were read to their end since they were asked for.
    finished: Vec<(usize, SourceTotals)>,
    bytes_read: Arc<AtomicU64>,
    compressions: BTreeMap<usize, Compression>,
    /// The first rows of files of CSV and TSV that were reached.
    headers: BTreeMap<usize, CorpusRecord>,
    has_failed: bool,
}

/// What was read of a source so far.
#[derive(Default)]
struct SourceReading {
    /// `None` before the first.
    source: Option<usize>,
    totals: ReadTotals,
    hasher: crc32fast::Hasher,
    checked_bytes: u64,
}

impl SourceReading {
    fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.checked_bytes += bytes.len() as u64;
    }
}

/// A source with several records.
enum SourceReader {
    Lines(LineReader),
    Table(TableReader),
    Sqlite(SqliteRows),
}

struct TableReader {
    rows: TableRows,
    max_row_bytes: u64,
    source: usize,
    /// The number of the last row that was read.
    row: u64,
    kind: SourceKind,
}

struct LineReader {
    input: Decoded,
    lines: input::Lines,
    is_compressed: bool,
    max_line_bytes: u64,
    /// In messages.
    name: PathBuf,
    source: usize,
    /// The last line that was read.
    line: u64,
    kind: SourceKind,
    /// Of CSV and TSV.
    names: Option<Arc<ColumnNames>>,
}

impl CorpusRecords {
    /// `bytes_read` counts the bytes taken from the files, before decompression.
    pub fn new(corpus: Arc<Corpus>, bytes_read: Arc<AtomicU64>) -> Self {
        Self {
            corpus,
            next_source: 0,
            current: None,
            gives_whole_tables: false,
            totals: ReadTotals::default(),
            hasher: crc32fast::Hasher::new(),
            reading: SourceReading::default(),
            known: BTreeMap::new(),
            finished: Vec::new(),
            bytes_read,
            compressions: BTreeMap::new(),
            headers: BTreeMap::new(),
            has_failed: false,
        }
    }

    /// The same, where a table of columns is one record, which is read and copied by a
    /// [`TableWriter`](super::TableWriter), and a row of a database has all its columns. The totals are the same.
    #[must_use]
    pub fn with_whole_tables(self) -> Self {
        Self {
            gives_whole_tables: true,
            ..self
        }
    }

    /// The same without the records of some sources: the totals and the numbers of the others are as if they were
    /// there.
    #[must_use]
    pub fn without(self, known: BTreeMap<usize, SourceTotals>) -> Self {
        Self { known, ..self }
    }

    /// The sources that were read to their end since this was called last.
    pub fn take_finished(&mut self) -> Vec<(usize, SourceTotals)> {
        std::mem::take(&mut self.finished)
    }

    /// The number of the record that was returned last, from 0, or of the last row of a whole table.
    pub fn last_number(&self) -> u64 {
        (self.totals.records + self.reading.totals.records).saturating_sub(1)
    }

    /// How a source that has been reached is compressed.
    pub fn compression(&self, source: usize) -> Compression {
        let known = self.compressions.get(&source).copied();
        known.unwrap_or(Compression::None)
    }

    /// The row with the names of the columns, of a source of CSV or TSV that has been reached.
    pub fn header(&self, source: usize) -> Option<&CorpusRecord> {
        self.headers.get(&source)
    }

    /// What was read so far.
    pub fn totals(&self) -> ReadTotals {
        let mut totals = self.totals;
        totals.add(&self.reading.totals);
        let mut hasher = self.hasher.clone();
        hasher.combine(&self.reading.hasher);
        totals.checksum = hasher.finalize();
        totals
    }

    /// Adds a source that was read to its end to the totals.
    fn finish_source(&mut self) {
        let reading = std::mem::take(&mut self.reading);
        let Some(source) = reading.source else {
            return;
        };
        let mut totals = reading.totals;
        totals.checksum = reading.hasher.clone().finalize();
        self.totals.add(&totals);
        self.hasher.combine(&reading.hasher);
        let checked_bytes = reading.checked_bytes;
        let totals = SourceTotals {
            totals,
            checked_bytes,
        };
        self.finished.push((source, totals));
    }

    /// Passes over a source whose totals are known.
    fn pass_over(&mut self, source: &CorpusSource, known: &SourceTotals) {
        self.totals.add(&known.totals);
        let checksum = known.totals.checksum;
        let hasher = crc32fast::Hasher::new_with_initial_len(checksum, known.checked_bytes);
        self.hasher.combine(&hasher);
        if let Some(bytes) = source.size_bytes() {
            self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn read(&mut self) -> Result<Option<CorpusRecord>, CorpusError> {
        loop {
            match &mut self.current {
                Some(SourceReader::Lines(lines)) => {
                    match lines.next()? {
                        None => self.current = None,
                        Some(record) if record.is_blank() => self.reading.totals.blank += 1,
                        Some(record) => {
                            self.reading.totals.form(lines.kind).documents += 1;
                            return Ok(Some(self.count(record)));
                        }
                    }
                    continue;
                }
                Some(SourceReader::Table(table)) => {
                    let kind = table.kind;
                    match table.next()? {
                        None => self.current = None,
                        Some(record) => {
                            self.count_rows(kind, 1);
                            return Ok(Some(record));
                        }
                    }
                    continue;
                }
                Some(SourceReader::Sqlite(rows)) => {
                    match rows.next()? {
                        None => self.current = None,
                        Some(row) => return Ok(Some(self.count_row(row))),
                    }
                    continue;
                }
                None => {}
            }
            self.finish_source();
            let number = self.next_source;
            let corpus = Arc::clone(&self.corpus);
            let Some(source) = corpus.sources.get(number) else {
                return Ok(None);
            };
            self.next_source += 1;
            if let Some(known) = self.known.remove(&number) {
                self.pass_over(source, &known);
                continue;
            }
            self.reading.source = Some(number);
            match self.begin(source, number)? {
                None => {}
                Some(table) if table.table_rows.is_some() => return Ok(Some(table)),
                Some(record) => return Ok(Some(self.count(record))),
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
        if source.kind.is_columnar() {
            return self.begin_table(source, number);
        }
        if source.kind == SourceKind::Sqlite {
            return self.begin_database(source, number);
        }
        self.begin_input(source, number)
    }

    /// Opens what is read from the beginning to the end.
    fn begin_input(
        &mut self,
        source: &CorpusSource,
        number: usize,
    ) -> Result<Option<CorpusRecord>, CorpusError> {
        let name = source.name();
        let settings = &self.corpus.settings;
        let (compression, mut input) = input::decode(self.raw(source)?, &name, settings)?;
        let is_compressed = compression != Compression::None;
        if is_compressed {
            self.compressions.insert(number, compression);
        }
        let failed = |error: io::Error| CorpusError::read(&name, is_compressed, &error);
        // The files of a folder were looked into when it was listed.
        if !matches!(source.origin, SourceOrigin::Folder(_)) {
            let start = FileStart::buffered(&mut input).map_err(failed)?;
            match start.kind(&name, settings, false) {
                Ok(kind) if kind.needs_file() => {
                    return Err(CorpusError::not_from_the_end(&name, kind.name()));
                }
                Ok(_) => {}
                Err(problem) => return Ok(Some(CorpusRecord::problem(number, 0, problem))),
            }
        }
        self.reading.totals.form(source.kind).files += 1;
        if source.kind == SourceKind::Text {
            let text = input::read_all(&mut input, settings.max_line_bytes);
            return Ok(Some(match text.map_err(failed)? {
                Some(bytes) => CorpusRecord {
                    source: number,
                    bytes: bytes.into(),
                    ..CorpusRecord::default()
                },
                None => CorpusRecord::problem(
                    number,
                    0,
                    BadDocument::too_long("text", settings.max_line_bytes),
                ),
            }));
        }
        let mut lines = LineReader {
            input,
            lines: input::Lines::default(),
            is_compressed,
            max_line_bytes: settings.max_line_bytes,
            name: name.into_owned(),
            source: number,
            line: 0,
            kind: source.kind,
            names: None,
        };
        if let Some(separator) = source.kind.separator() {
            match lines.header(separator, settings)? {
                Ok(header) => {
                    self.reading.update(&header.bytes);
                    self.headers.insert(number, header);
                }
                Err(problem) => return Ok(Some(problem)),
            }
        }
        self.current = Some(SourceReader::Lines(lines));
        Ok(None)
    }

    /// Opens a table of columns. It is told by its length and the time of its last change, whether a
    /// second reading sees the same.
    fn begin_table(
        &mut self,
        source: &CorpusSource,
        number: usize,
    ) -> Result<Option<CorpusRecord>, CorpusError> {
        let file = TableFile::open(source)?;
        self.reading.update(&file.identity());
        self.reading.totals.form(source.kind).files += 1;
        let settings = &self.corpus.settings;
        let max_row_bytes = settings.max_line_bytes;
        let rows = match TableRows::open(file, settings, Arc::clone(&self.bytes_read))? {
            Ok(rows) => rows,
            Err(problem) => return Ok(Some(CorpusRecord::problem(number, 0, problem))),
        };
        if self.gives_whole_tables {
            self.count_rows(source.kind, rows.len());
            return Ok(Some(CorpusRecord {
                source: number,
                table_rows: Some(rows.len()),
                ..CorpusRecord::default()
            }));
        }
        self.current = Some(SourceReader::Table(TableReader {
            rows,
            max_row_bytes,
            source: number,
            row: 0,
            kind: source.kind,
        }));
        Ok(None)
    }

    /// Opens a table of a database. What its rows say tells whether a second reading sees the same.
    fn begin_database(
        &mut self,
        source: &CorpusSource,
        number: usize,
    ) -> Result<Option<CorpusRecord>, CorpusError> {
        let (settings, is_whole) = (&self.corpus.settings, self.gives_whole_tables);
        let bytes_read = Arc::clone(&self.bytes_read);
        match SqliteRows::open((source, number), settings, is_whole, bytes_read)? {
            Ok(rows) => {
                self.reading.totals.form(source.kind).files += 1;
                self.current = Some(SourceReader::Sqlite(rows));
                Ok(None)
            }
            Err(problem) => Ok(Some(CorpusRecord::problem(number, 0, problem))),
        }
    }

    /// Counts a row of a database by what is asked for, and gives all of it where that is wanted.
    fn count_row(&mut self, row: SqliteRow) -> CorpusRecord {
        self.reading.totals.form(SourceKind::Sqlite).documents += 1;
        let record = self.count(row.record);
        match row.whole {
            Some(bytes) => CorpusRecord { bytes, ..record },
            None => record,
        }
    }

    fn count_rows(&mut self, kind: SourceKind, rows: u64) {
        self.reading.totals.records += rows;
        self.reading.totals.form(kind).documents += rows;
    }

    fn count(&mut self, record: CorpusRecord) -> CorpusRecord {
        self.reading.totals.records += 1;
        record.check_with(|bytes| self.reading.update(bytes));
        record
    }

    fn raw(&self, source: &CorpusSource) -> Result<Box<dyn Read + Send>, CorpusError> {
        let inner = source.open()?;
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

impl TableReader {
    fn next(&mut self) -> Result<Option<CorpusRecord>, CorpusError> {
        let Some(bytes) = self.rows.next()? else {
            return Ok(None);
        };
        self.row += 1;
        if bytes.len() as u64 > self.max_row_bytes {
            let problem = BadDocument::too_long("row", self.max_row_bytes);
            return Ok(Some(CorpusRecord::problem(self.source, self.row, problem)));
        }
        Ok(Some(CorpusRecord {
            source: self.source,
            line: self.row,
            bytes,
            ..CorpusRecord::default()
        }))
    }
}

impl LineReader {
    /// The next line with its end, and nothing at the end of the file; `None` for one that is too long.
    fn line(&mut self) -> Result<Option<Bytes>, CorpusError> {
        let line = self.lines.next(&mut self.input, self.max_line_bytes);
        let line = line.map_err(|e| CorpusError::read(&self.name, self.is_compressed, &e))?;
        self.line += 1;
        Ok(line)
    }

    fn problem(&self, line: u64, problem: BadDocument) -> CorpusRecord {
        CorpusRecord::problem(self.source, line, problem)
    }

    /// The first row, which names the columns, or what is wrong with it.
    fn header(
        &mut self,
        separator: u8,
        settings: &CorpusSettings,
    ) -> Result<Result<CorpusRecord, CorpusRecord>, CorpusError> {
        let header = loop {
            match self.row(separator)? {
                None => {
                    let reason = "an empty file, expected a row with the names of columns";
                    return Ok(Err(self.problem(0, BadDocument::new(reason))));
                }
                Some(row) if row.is_blank() => {}
                Some(row) => break row,
            }
        };
        if header.problem.is_some() {
            return Ok(Err(header));
        }
        Ok(
            match ColumnNames::parse(&header.bytes, separator, settings) {
                Ok(names) => {
                    self.names = Some(Arc::new(names));
                    Ok(CorpusRecord {
                        names: self.names.clone(),
                        ..header
                    })
                }
                Err(bad) => Err(self.problem(header.line, bad)),
            },
        )
    }

    fn next(&mut self) -> Result<Option<CorpusRecord>, CorpusError> {
        match self.kind.separator() {
            Some(separator) => self.row(separator),
            None => self.plain_line(),
        }
    }

    /// The next row, which goes over several lines if there are line ends within quotes.
    fn row(&mut self, separator: u8) -> Result<Option<CorpusRecord>, CorpusError> {
        let Some(mut row) = self.plain_line()? else {
            return Ok(None);
        };
        if row.problem.is_some() {
            return Err(self.endless(row.line));
        }
        row.names.clone_from(&self.names);
        let mut is_quoted = separated::ends_in_quotes(&row.bytes, separator, false);
        if !is_quoted {
            return Ok(Some(row));
        }
        let mut bytes = BytesMut::from(&*row.bytes);
        while is_quoted {
            let line = self.line()?;
            if line.as_ref().is_some_and(Bytes::is_empty) {
                let bad = BadDocument::new("a value in quotes that does not end");
                return Ok(Some(self.problem(row.line, bad)));
            }
            let length = bytes.len() + line.as_ref().map_or(0, Bytes::len);
            let Some(line) = line.filter(|_| length as u64 <= self.max_line_bytes) else {
                return Err(self.endless(row.line));
            };
            bytes.extend_from_slice(&line);
            is_quoted = separated::ends_in_quotes(&line, separator, true);
        }
        row.bytes = bytes.freeze();
        Ok(Some(row))
    }

    /// Where a row that is too long ends, its quotes would tell, which are passed over: no row behind it
    /// could be told.
    fn endless(&self, line: u64) -> CorpusError {
        let (name, max_bytes) = (self.name.display(), self.max_line_bytes);
        CorpusError::bad(format!(
            "the row at {name}:{line} is longer than {max_bytes} bytes; --max-line SIZE sets the limit, \
             if it is no quote that is missing"
        ))
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
            source: self.source,
            line: self.line,
            has_mark,
            bytes,
            ..CorpusRecord::default()
        }))
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
