//! What stands in the place of tables of columns in a build without the feature `tables`: nothing opens.

use std::convert::Infallible;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;

use super::bad_document::BadDocument;
use super::changes::AddedColumn;
use super::error::CorpusError;
use super::settings::CorpusSettings;
use super::source::CorpusSource;

/// Nothing: this build reads none.
pub(super) struct TableFile(Infallible);

impl TableFile {
    pub(super) fn open(source: &CorpusSource) -> Result<Self, CorpusError> {
        let (name, kind) = (source.name(), source.kind.name());
        Err(CorpusError::bad(format!(
            "{} is {kind}, which this build does not read; cargo install --path cli --features tables \
             makes one that does",
            name.display(),
        )))
    }

    pub(super) fn identity(&self) -> Vec<u8> {
        match self.0 {}
    }
}

/// Nothing: this build reads none.
pub(super) struct TableRows(Infallible);

impl TableRows {
    pub(super) fn open(
        file: TableFile,
        _: &CorpusSettings,
        _: Arc<AtomicU64>,
    ) -> Result<Result<Self, BadDocument>, CorpusError> {
        match file.0 {}
    }

    pub(super) fn len(&self) -> u64 {
        match self.0 {}
    }

    pub(super) fn next(&mut self) -> Result<Option<Bytes>, CorpusError> {
        match self.0 {}
    }
}

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

/// Nothing: this build writes none.
pub struct TableWriter<W>(Infallible, PhantomData<W>);

impl<W: Write + Send> TableWriter<W> {
    /// An error.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn create<E>(
        source: &CorpusSource,
        _: W,
        _: Option<Arc<Vec<AddedColumn>>>,
    ) -> Result<Self, TableError<E>> {
        match TableFile::open(source) {
            Ok(file) => match file.0 {},
            Err(error) => Err(TableError::Input(error)),
        }
    }

    /// Nothing.
    ///
    /// # Errors
    ///
    /// None.
    pub fn copy<E>(
        &mut self,
        _: &CorpusSource,
        _: u64,
        _: impl FnMut(u64) -> Result<bool, E>,
    ) -> Result<(), TableError<E>> {
        match self.0 {}
    }

    /// Nothing.
    ///
    /// # Errors
    ///
    /// None.
    pub fn finish(self) -> io::Result<W> {
        match self.0 {}
    }
}

/// Nothing: this build reads none.
#[derive(PartialEq)]
pub(super) struct TableColumns(Infallible);

impl TableColumns {
    pub(super) fn of(file: &TableFile) -> Result<Self, CorpusError> {
        match file.0 {}
    }

    pub(super) fn has(&self, _: &str) -> bool {
        match self.0 {}
    }
}
