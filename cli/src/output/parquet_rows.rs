//! Results as Parquet.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::column_kind::{ColumnKind, TypedValue};
use super::destination::{self, Destination};
use crate::bug::bug;
use crate::failure::{Failure, Result};

/// Rows that are written together.
const ROWS_TOGETHER: usize = 64 << 10;

/// Values of a column that are not written yet.
enum PendingValues {
    Documents(UInt64Builder, StringBuilder),
    Texts(StringBuilder),
    Counts(UInt64Builder),
    Numbers(Float64Builder),
}

/// Rows on their way to a destination.
pub(super) struct ParquetRows {
    writer: ArrowWriter<Destination>,
    /// In messages.
    path: PathBuf,
    schema: Arc<Schema>,
    columns: Vec<PendingValues>,
    pending_rows: usize,
}

impl ParquetRows {
    /// The columns by their names. A document has two: its number and its key.
    pub(super) fn new(columns: &[(&'static str, ColumnKind)], output: Destination) -> Result<Self> {
        let mut fields = Vec::new();
        let mut pending = Vec::new();
        for (name, kind) in columns {
            let (values, data_type) = match kind {
                ColumnKind::Document => {
                    let id = name.replacen("key", "id", 1);
                    fields.push(Field::new(id, DataType::UInt64, true));
                    let values = PendingValues::Documents(Default::default(), Default::default());
                    (values, DataType::Utf8)
                }
                ColumnKind::Text => (PendingValues::Texts(Default::default()), DataType::Utf8),
                ColumnKind::Count => (PendingValues::Counts(Default::default()), DataType::UInt64),
                ColumnKind::Number => (
                    PendingValues::Numbers(Default::default()),
                    DataType::Float64,
                ),
            };
            fields.push(Field::new(*name, data_type, true));
            pending.push(values);
        }
        let schema = Arc::new(Schema::new(fields));
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
        let path = output.path.clone();
        let writer = ArrowWriter::try_new(output, Arc::clone(&schema), Some(properties.build()));
        Ok(Self {
            writer: writer.map_err(|e| failed(&path, e))?,
            path,
            schema,
            columns: pending,
            pending_rows: 0,
        })
    }

    /// Takes one result; a value for every column.
    pub(super) fn row<'a>(&mut self, values: impl Iterator<Item = TypedValue<'a>>) -> Result<()> {
        for (column, value) in self.columns.iter_mut().zip(values) {
            match (column, value) {
                (PendingValues::Documents(ids, keys), TypedValue::Document(id, key)) => {
                    ids.append_value(id);
                    keys.append_option(key.map(text).transpose()?);
                }
                (PendingValues::Texts(texts), TypedValue::Text(bytes)) => {
                    texts.append_option(bytes.map(text).transpose()?);
                }
                (PendingValues::Counts(counts), TypedValue::Count(count)) => {
                    counts.append_option(count);
                }
                (PendingValues::Numbers(numbers), TypedValue::Number(number)) => {
                    numbers.append_option(number);
                }
                _ => return Err(bug("a value of another type than its column").into()),
            }
        }
        self.pending_rows += 1;
        if self.pending_rows == ROWS_TOGETHER {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.pending_rows = 0;
        let mut columns: Vec<ArrayRef> = Vec::new();
        for column in &mut self.columns {
            match column {
                PendingValues::Documents(ids, keys) => {
                    columns.extend([Arc::new(ids.finish()) as ArrayRef, Arc::new(keys.finish())]);
                }
                PendingValues::Texts(texts) => columns.push(Arc::new(texts.finish())),
                PendingValues::Counts(counts) => columns.push(Arc::new(counts.finish())),
                PendingValues::Numbers(numbers) => columns.push(Arc::new(numbers.finish())),
            }
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        let batch = batch.map_err(|e| failed(&self.path, e.into()))?;
        let written = self.writer.write(&batch);
        written.map_err(|e| failed(&self.path, e))
    }

    /// Completes the file.
    pub(super) fn finish(mut self) -> Result<()> {
        self.write()?;
        let output = self.writer.into_inner();
        output.map_err(|e| failed(&self.path, e))?.finish()
    }
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| {
        Failure::refused(
            "a key outside UTF-8 is no string of Parquet; --format jsonl has it in hexadecimal",
        )
    })
}

fn failed(path: &Path, error: ParquetError) -> Failure {
    let error = match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    };
    destination::failed(path, &error)
}
