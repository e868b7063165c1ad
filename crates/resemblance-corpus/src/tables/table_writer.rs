//! A table of rows of other tables, with all their columns.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::BooleanArray;
use arrow_schema::{ArrowError, Schema};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::TypePtr;

use super::arrow_ipc::{self, IpcBatches, IpcOutline, IpcWriter};
use super::parquet_file::{self, CopyError};
use super::table_file::TableFile;
use super::table_input::TableInput;
use crate::changes::AddedColumn;
use crate::error::CorpusError;
use crate::settings::SourceKind;
use crate::source::CorpusSource;

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
    /// What rows get beside them.
    added: Option<Arc<Vec<AddedColumn>>>,
    inner: Inner<W>,
}

enum Inner<W: Write + Send> {
    Parquet(SerializedFileWriter<W>),
    Arrow(IpcWriter<W>),
}

/// What tables must have in common whose rows go into one.
#[derive(PartialEq)]
pub(crate) enum TableColumns {
    Parquet(Vec<TypePtr>),
    Arrow(Arc<Schema>),
}

impl TableColumns {
    pub(crate) fn of(file: &TableFile) -> Result<Self, CorpusError> {
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

    /// True if there is a column of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            Self::Parquet(columns) => columns.iter().any(|column| column.name() == name),
            Self::Arrow(schema) => schema.fields().iter().any(|field| field.name() == name),
        }
    }
}

impl<W: Write + Send> TableWriter<W> {
    /// A table like this source, without its rows; with more columns, if there are any.
    ///
    /// # Errors
    ///
    /// The source cannot be read, or the output not be written.
    pub fn create<E>(
        source: &CorpusSource,
        output: W,
        added: Option<Arc<Vec<AddedColumn>>>,
    ) -> Result<Self, TableError<E>> {
        let file = TableFile::open(source)?;
        let more = added.as_deref().map(Vec::as_slice);
        let inner = match file.kind {
            SourceKind::Parquet => {
                let input = open_parquet(&file)?;
                let writer = parquet_file::writer(input.metadata(), output, more);
                Inner::Parquet(writer.map_err(|e| TableError::Output(of_parquet(e)))?)
            }
            _ => {
                let is_file = file.begins_with(arrow_ipc::FILE_MAGIC)?;
                let rewound = file.rewound()?;
                let outline = file.decode(|| IpcOutline::read(rewound, is_file))?;
                let input = file.decode(|| IpcBatches::open(&file.file, is_file, |_| true))?;
                let writer = IpcWriter::create(&input, outline.compression, output, more);
                Inner::Arrow(writer.map_err(|e| TableError::Output(of_arrow(e)))?)
            }
        };
        let columns = TableColumns::of(&file)?;
        Ok(Self {
            columns,
            added,
            inner,
        })
    }

    /// Adds the rows of a source for whose numbers, from 0, `is_kept` returns true. `first` is the number of the
    /// first row in the corpus, by which added columns know it.
    ///
    /// # Errors
    ///
    /// The source cannot be read or has other columns, the output cannot be written, or `is_kept` fails.
    pub fn copy<E>(
        &mut self,
        source: &CorpusSource,
        first: u64,
        mut is_kept: impl FnMut(u64) -> Result<bool, E>,
    ) -> Result<(), TableError<E>> {
        let file = TableFile::open(source)?;
        if TableColumns::of(&file)? != self.columns {
            let name = file.name.display();
            let message = format!("{name} has other columns than the table that it is to go into");
            return Err(CorpusError::bad(message).into());
        }
        let added = self.added.as_deref().map(Vec::as_slice);
        match &mut self.inner {
            Inner::Parquet(output) => {
                let input = open_parquet(&file)?;
                let copied = parquet_file::copy(&input, output, added, first, is_kept);
                copied.map_err(|error| match error {
                    CopyError::Input(error) => TableError::Input(file.damaged(&error)),
                    CopyError::Output(error) => TableError::Output(of_parquet(error)),
                    CopyError::Choice(error) => TableError::Choice(error),
                })
            }
            Inner::Arrow(output) => {
                let is_file = file.begins_with(arrow_ipc::FILE_MAGIC)?;
                let input = file.decode(|| IpcBatches::open(&file.file, is_file, |_| true))?;
                let mut row = 0;
                for batch in input {
                    let batch = file.decode(|| batch)?;
                    let rows = row..row + batch.num_rows() as u64;
                    row = rows.end;
                    let numbers = rows.clone().map(|row| first + row);
                    let batch = match added {
                        Some(added) => {
                            file.decode(|| arrow_ipc::with_more(&batch, added, numbers))?
                        }
                        None => batch,
                    };
                    let mut kept = Vec::new();
                    for row in rows {
                        kept.push(is_kept(row).map_err(TableError::Choice)?);
                    }
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

fn open_parquet(file: &TableFile) -> Result<SerializedFileReader<TableInput>, CorpusError> {
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
