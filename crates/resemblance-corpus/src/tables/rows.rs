//! Reads the rows of a table as lines of JSON.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Field};
use bytes::Bytes;
use itertools::Itertools;
use parquet::errors::ParquetError;

use super::arrow_ipc::{self, IpcOutline};
use super::json;
use super::parquet_file;
use super::projection::{self, BATCH_BYTES, rows_together};
use super::table_file::TableFile;
use crate::bad_document::BadDocument;
use crate::columns;
use crate::error::CorpusError;
use crate::input::Compression;
use crate::reading::{OneRecord, Opening, Source, SourceReading};
use crate::record::CorpusRecord;
use crate::settings::{CorpusSettings, SourceKind};

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// The rows of one table, in order.
struct TableRows {
    file: TableFile,
    /// The number of the source.
    source: usize,
    /// The maximum length of a line. A longer one is a bad document.
    max_row_bytes: u64,
    batches: Batches,
    /// The rest of the last decoded batch, and the number of its rows to convert together.
    batch: Option<(RecordBatch, usize)>,
    /// Lines that have not been returned yet.
    lines: Bytes,
    rows: u64,
    /// The number of the last row returned.
    row: u64,
    decoded_rows: u64,
    counted_bytes: u64,
    bytes_read: Arc<AtomicU64>,
}

/// Opens a table of columns. Its length and version show whether a second reading sees the same.
pub(crate) fn open(
    opening: &Opening<'_>,
    reading: &mut SourceReading,
) -> Result<Box<dyn Source>, CorpusError> {
    let &Opening {
        number, settings, ..
    } = opening;
    let file = TableFile::open(opening.source, settings.window_bytes)?;
    reading.check(&file.identity());
    reading.count_file(file.kind);
    let opened = match file.kind {
        SourceKind::Parquet => open_parquet(&file, settings)?,
        _ => open_ipc(&file, settings)?,
    };
    let (batches, rows) = match opened {
        Ok(opened) => opened,
        Err(bad) => return Ok(opening.problem(bad)),
    };
    if opening.is_whole {
        let readable_rows = opening.left_records.map_or(rows, |left| left.min(rows));
        reading.totals.form(file.kind).documents += readable_rows;
        let record = CorpusRecord {
            source: number,
            table_rows: Some(readable_rows),
            ..CorpusRecord::default()
        };
        return Ok(OneRecord::source(record, Compression::None));
    }
    Ok(Box::new(TableRows {
        file,
        source: number,
        max_row_bytes: settings.max_line_bytes,
        batches,
        batch: None,
        lines: Bytes::new(),
        rows,
        row: 0,
        decoded_rows: 0,
        counted_bytes: 0,
        bytes_read: Arc::clone(opening.bytes_read),
    }))
}

impl Source for TableRows {
    fn next(&mut self, reading: &mut SourceReading) -> Result<Option<CorpusRecord>, CorpusError> {
        let Some(bytes) = self.next_line()? else {
            return Ok(None);
        };
        reading.totals.records += 1;
        reading.totals.form(self.file.kind).documents += 1;
        self.row += 1;
        if bytes.len() as u64 > self.max_row_bytes {
            let problem = BadDocument::too_long("row", self.max_row_bytes);
            return Ok(Some(CorpusRecord::problem(self.source, self.row, problem)));
        }
        Ok(Some(CorpusRecord::new(self.source, self.row, bytes)))
    }
}

/// The batches of the requested columns, and the number of rows.
type OpenedTable = Result<(Batches, u64), BadDocument>;

fn open_parquet(file: &TableFile, settings: &CorpusSettings) -> Result<OpenedTable, CorpusError> {
    let input = file.pages()?;
    let (metadata, schema) = file.decode(|| parquet_file::load(&input))?;
    if let Err(bad) = projection::check(&schema, settings) {
        return Ok(Err(bad));
    }
    let rows = parquet_file::rows(metadata.metadata());
    let paths = columns::paths(settings);
    let decode = || Ok::<_, ParquetError>(parquet_file::batches(input, metadata, &paths));
    Ok(Ok((Box::new(file.decode(decode)?), rows)))
}

fn open_ipc(file: &TableFile, settings: &CorpusSettings) -> Result<OpenedTable, CorpusError> {
    let outline = IpcOutline::read(file)?;
    let fields = outline.schema.fields();
    if let Err(bad) = projection::check(&outline.schema, settings) {
        return Ok(Err(bad));
    }
    let paths = columns::paths(settings);
    let is_wanted = |field: &Arc<Field>| {
        let first = |path: &str| path.split_once('.').is_some_and(|(n, _)| n == field.name());
        paths
            .iter()
            .any(|path| *path == field.name() || first(path))
    };
    let wanted: Vec<usize> = fields.iter().positions(is_wanted).collect();
    let is_part = wanted.len() < fields.len();
    let batches = arrow_ipc::batches(file, &outline, is_part.then_some(wanted))?;
    Ok(Ok((batches, outline.rows)))
}

impl TableRows {
    /// Returns the line of the next row, or nothing after the last.
    fn next_line(&mut self) -> Result<Option<Bytes>, CorpusError> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.lines) {
                return Ok(Some(self.lines.split_to(end + 1)));
            }
            let Some((batch, together)) = self.next_batch()? else {
                let (found, reported) = (self.decoded_rows, self.rows);
                if found != reported {
                    let message = format!("{found} rows were found, {reported} expected");
                    return Err(self.file.damaged(&message));
                }
                return Ok(None);
            };
            let first = batch.slice(0, together.min(batch.num_rows()));
            // One value of a dictionary may occur in all of them.
            let (lines, rows) = self.file.decode(|| json::lines(&first, BATCH_BYTES))?;
            self.lines = lines.into();
            let left = batch.num_rows() - rows;
            if left > 0 {
                self.batch = Some((batch.slice(rows, left), together));
            }
            self.count(rows);
        }
    }

    /// Returns the rest of the last decoded batch, or the next batch, and the number of rows to
    /// convert to lines together.
    fn next_batch(&mut self) -> Result<Option<(RecordBatch, usize)>, CorpusError> {
        if let Some(left) = self.batch.take() {
            return Ok(Some(left));
        }
        let batches = &mut self.batches;
        let Some(batch) = self.file.decode(|| batches.next().transpose())? else {
            return Ok(None);
        };
        // The parts of a batch share its memory, and each would count all of it.
        let bytes = batch.get_array_memory_size() as u64;
        let together = rows_together(bytes, batch.num_rows() as u64);
        Ok(Some((batch, together)))
    }

    /// Counts as read the share of the file that corresponds to these rows.
    fn count(&mut self, rows: usize) {
        self.decoded_rows += rows as u64;
        // A file may hold more rows than its header states, which is detected only at its end.
        let counted = self.decoded_rows.min(self.rows);
        let share = u128::from(counted) * u128::from(self.file.length);
        // At most the length of the file.
        let bytes = (share / u128::from(self.rows.max(1))) as u64;
        self.bytes_read
            .fetch_add(bytes - self.counted_bytes, Ordering::Relaxed);
        self.counted_bytes = bytes;
    }
}
