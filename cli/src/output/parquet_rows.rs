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

use super::destination::{self, CompleteFile, Destination};
use super::escape;
use super::value::{Column, ColumnKind, Value, id_name};
use crate::failure::{Failure, Result};
use resemblance::invariant::bug;

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
    /// The path in messages.
    path: PathBuf,
    schema: Arc<Schema>,
    columns: Vec<PendingValues>,
    pending_rows: usize,
}

impl ParquetRows {
    /// The columns by their names. A document has two: its number and its key.
    pub(super) fn new(columns: &[Column], output: Destination) -> Result<Self> {
        let mut fields = Vec::new();
        let mut pending = Vec::new();
        for Column { name, kind, .. } in columns {
            let (values, data_type) = match kind {
                ColumnKind::Document => {
                    let id = id_name(name);
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
    pub(super) fn row(&mut self, values: &[Value<'_>]) -> Result<()> {
        for (column, value) in self.columns.iter_mut().zip(values) {
            match (column, *value) {
                (PendingValues::Documents(ids, keys), Value::Document { id, key }) => {
                    ids.append_value(id);
                    keys.append_option(key.map(escape::string));
                }
                (PendingValues::Texts(texts), Value::Key(key)) => {
                    texts.append_value(escape::string(key));
                }
                (PendingValues::Texts(texts), Value::Text(value)) => texts.append_value(value),
                (PendingValues::Texts(texts), value @ (Value::NoKey(_) | Value::Bytes(_))) => {
                    texts.append_value(value.text());
                }
                (PendingValues::Texts(texts), Value::OptionalText(value)) => {
                    texts.append_option(value);
                }
                (PendingValues::Counts(counts), Value::Count(count) | Value::Stamp(count)) => {
                    counts.append_value(count)
                }
                (PendingValues::Counts(counts), Value::Distance(bits)) => {
                    counts.append_option(bits.map(u64::from));
                }
                (
                    PendingValues::Numbers(numbers),
                    Value::Number(value) | Value::Significant(value),
                ) => {
                    numbers.append_value(value);
                }
                (PendingValues::Numbers(numbers), Value::Similarity(value)) => {
                    numbers.append_option(value);
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
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|e| failed(&self.path, e.into()))?;
        let written = self.writer.write(&batch);
        written.map_err(|e| failed(&self.path, e))
    }

    /// Completes the file.
    pub(super) fn complete(mut self) -> Result<CompleteFile> {
        self.write()?;
        let output = self.writer.into_inner();
        output.map_err(|e| failed(&self.path, e))?.complete()
    }
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
