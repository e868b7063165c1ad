//! A table of rows of other tables, with all their columns.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::BooleanArray;
use arrow_schema::{ArrowError, Schema};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::TypePtr;

use super::super::error::CorpusError;
use super::super::settings::SourceKind;
use super::super::source::CorpusSource;
use super::arrow_ipc::{self, IpcBatches, IpcOutline, IpcWriter};
use super::parquet_file::{self, CopyError};
use super::table_file::TableFile;

/// Why rows were not copied.
#[derive(Debug)]
pub enum TableError<E> {
    /// The table is not what it should be.
    Input(CorpusError),
    /// They were not written.
    Output(io::Error),
    /// The caller did not say which.
    Choice(E),
}

impl<E> From<CorpusError> for TableError<E> {
    fn from(error: CorpusError) -> Self {
        Self::Input(error)
    }
}

/// A table to which rows of tables with the same columns go.
pub struct TableWriter<W: Write + Send> {
    columns: TableColumns,
    inner: Inner<W>,
}

enum Inner<W: Write + Send> {
    Parquet(SerializedFileWriter<W>),
    Arrow(IpcWriter<W>),
}

/// What tables must have in common whose rows go into one.
#[derive(PartialEq)]
pub(in crate::corpus) enum TableColumns {
    Parquet(Vec<TypePtr>),
    Arrow(Arc<Schema>),
}

impl TableColumns {
    pub(in crate::corpus) fn of(file: &TableFile) -> Result<Self, CorpusError> {
        Ok(match file.kind {
            SourceKind::Parquet => {
                let input = open_parquet(file)?;
                let schema = input.metadata().file_metadata().schema_descr();
                Self::Parquet(schema.root_schema().get_fields().to_vec())
            }
            _ => {
                let is_file = file.begins_with(arrow_ipc::FILE_MAGIC)?;
                let input = file.decode(|| IpcBatches::open(&file.file, is_file, |_| true))?;
                Self::Arrow(input.schema())
            }
        })
    }
}

impl<W: Write + Send> TableWriter<W> {
    /// A table like this source, without its rows.
    ///
    /// # Errors
    ///
    /// The source cannot be read, or the output not be written.
    pub fn create<E>(source: &CorpusSource, output: W) -> Result<Self, TableError<E>> {
        let file = TableFile::open(source)?;
        let inner = match file.kind {
            SourceKind::Parquet => {
                let input = open_parquet(&file)?;
                let writer = parquet_file::writer(input.metadata(), output);
                Inner::Parquet(writer.map_err(|e| TableError::Output(of_parquet(e)))?)
            }
            _ => {
                let is_file = file.begins_with(arrow_ipc::FILE_MAGIC)?;
                let rewound = file.rewound()?;
                let outline = file.decode(|| IpcOutline::read(rewound, is_file))?;
                let input = file.decode(|| IpcBatches::open(&file.file, is_file, |_| true))?;
                let writer = IpcWriter::create(&input, outline.compression, output);
                Inner::Arrow(writer.map_err(|e| TableError::Output(of_arrow(e)))?)
            }
        };
        let columns = TableColumns::of(&file)?;
        Ok(Self { columns, inner })
    }

    /// Adds the rows of a source for whose numbers, from 0, `is_kept` returns true.
    ///
    /// # Errors
    ///
    /// The source cannot be read or has other columns, the output cannot be written, or `is_kept` fails.
    pub fn copy<E>(
        &mut self,
        source: &CorpusSource,
        mut is_kept: impl FnMut(u64) -> Result<bool, E>,
    ) -> Result<(), TableError<E>> {
        let file = TableFile::open(source)?;
        if TableColumns::of(&file)? != self.columns {
            let name = file.name.display();
            let message = format!("{name} has other columns than the table that it is to go into");
            return Err(CorpusError::bad(message).into());
        }
        match &mut self.inner {
            Inner::Parquet(output) => {
                let input = open_parquet(&file)?;
                let copied = parquet_file::copy(&input, output, is_kept);
                copied.map_err(|error| match error {
                    CopyError::Input(error) => TableError::Input(file.damaged(&error)),
                    CopyError::Output(error) => TableError::Output(of_parquet(error)),
                    CopyError::Choice(error) => TableError::Choice(error),
                })
            }
            Inner::Arrow(output) => {
                let is_file = file.begins_with(arrow_ipc::FILE_MAGIC)?;
                let input = file.decode(|| IpcBatches::open(&file.file, is_file, |_| true))?;
                let mut first = 0;
                for batch in input {
                    let batch = file.decode(|| batch)?;
                    let numbers = first..first + batch.num_rows() as u64;
                    first = numbers.end;
                    let kept: Result<Vec<bool>, E> = numbers.map(&mut is_kept).collect();
                    let kept = kept.map_err(TableError::Choice)?;
                    if kept.contains(&true) {
                        let kept = BooleanArray::from(kept);
                        let filter = || arrow_select::filter::filter_record_batch(&batch, &kept);
                        let rows = file.decode(filter)?;
                        output
                            .write(&rows)
                            .map_err(|e| TableError::Output(of_arrow(e)))?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Completes the table, and gives the inner writer back.
    ///
    /// # Errors
    ///
    /// Those of the inner writer.
    pub fn finish(self) -> io::Result<W> {
        match self.inner {
            Inner::Parquet(writer) => writer.into_inner().map_err(of_parquet),
            Inner::Arrow(writer) => writer.finish().map_err(of_arrow),
        }
    }
}

fn open_parquet(file: &TableFile) -> Result<SerializedFileReader<std::fs::File>, CorpusError> {
    let input = file.rewound()?;
    file.decode(|| parquet_file::open(input))
}

/// The error of the writer below.
fn of_parquet(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}

fn of_arrow(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => io::Error::other(error),
    }
}
