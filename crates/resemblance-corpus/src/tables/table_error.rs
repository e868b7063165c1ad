//! Why rows of a table were not copied.

use std::io;

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;

use crate::error::CorpusError;

/// Why rows were not copied.
#[derive(Debug)]
pub enum TableError<E> {
    /// The input table is wrong.
    Input(CorpusError),
    /// The output could not be written.
    Output(io::Error),
    /// The caller's choice of rows failed.
    Choice(E),
}

impl<E> From<CorpusError> for TableError<E> {
    fn from(error: CorpusError) -> Self {
        Self::Input(error)
    }
}

impl<E> From<ParquetError> for TableError<E> {
    fn from(error: ParquetError) -> Self {
        Self::Output(of_parquet(error))
    }
}

impl<E> From<ArrowError> for TableError<E> {
    fn from(error: ArrowError) -> Self {
        Self::Output(of_arrow(error))
    }
}

/// Returns the error of the inner writer.
pub(super) fn of_parquet(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}

pub(super) fn of_arrow(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => io::Error::other(error),
    }
}
