//! A table of rows of other tables, with all their columns.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::BooleanArray;
use arrow_schema::Schema;
use arrow_select::filter::filter_record_batch;
use parquet::file::reader::FileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::TypePtr;

use super::arrow_ipc::{self, IpcWriter};
use super::parquet_file;
use super::table_error::{TableError, of_arrow, of_parquet};
use super::table_file::TableFile;
use crate::changes::AddedColumn;
use crate::error::CorpusError;
use crate::settings::SourceKind;
use crate::source::CorpusSource;

/// A table to which rows of tables with the same columns go.
pub struct TableWriter<W: Write + Send> {
    columns: TableColumns,
    /// The columns that rows get beside their own.
    added: Arc<Vec<AddedColumn>>,
    inner: Inner<W>,
}

enum Inner<W: Write + Send> {
    Parquet(SerializedFileWriter<W>),
    Arrow(IpcWriter<W>),
}

/// The columns that tables must share if their rows go into one table.
#[derive(PartialEq)]
pub(crate) enum TableColumns {
    Parquet(Vec<TypePtr>),
    Arrow(Arc<Schema>),
}

impl TableColumns {
    pub(crate) fn of(file: &TableFile) -> Result<Self, CorpusError> {
        Ok(match file.kind {
            SourceKind::Parquet => {
                let input = parquet_file::open(file)?;
                let schema = input.metadata().file_metadata().schema_descr();
                Self::Parquet(schema.root_schema().get_fields().to_vec())
            }
            _ => Self::Arrow(arrow_ipc::batches(file, None)?.schema()),
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
        // Without any, a table has the columns of its source.
        let more = added.unwrap_or_default();
        let inner = match file.kind {
            SourceKind::Parquet => {
                let input = parquet_file::open(&file)?;
                Inner::Parquet(parquet_file::writer(input.metadata(), output, &more)?)
            }
            _ => Inner::Arrow(IpcWriter::create(&file, output, &more)?),
        };
        Ok(Self {
            columns: TableColumns::of(&file)?,
            added: more,
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
        let output = match &mut self.inner {
            Inner::Parquet(output) => {
                return parquet_file::copy(&file, output, &self.added, first, is_kept);
            }
            Inner::Arrow(output) => output,
        };
        let mut row = 0;
        for batch in arrow_ipc::batches(&file, None)? {
            let decoded = file.decode(|| batch)?;
            let mut kept = Vec::with_capacity(decoded.num_rows());
            let more = match self.added.as_slice() {
                [] => decoded,
                added => file.decode(|| arrow_ipc::with_more(&decoded, added, first + row))?,
            };
            for _ in 0..more.num_rows() {
                kept.push(is_kept(row).map_err(TableError::Choice)?);
                row += 1;
            }
            if kept.contains(&true) {
                let mask = BooleanArray::from(kept);
                output.write(&file.decode(|| filter_record_batch(&more, &mask))?)?;
            }
        }
        Ok(())
    }

    /// Completes the table, and gives the inner writer back.
    ///
    /// # Errors
    ///
    /// Returns the errors of the inner writer.
    pub fn finish(self) -> io::Result<W> {
        match self.inner {
            Inner::Parquet(writer) => writer.into_inner().map_err(of_parquet),
            Inner::Arrow(writer) => writer.finish().map_err(of_arrow),
        }
    }
}
