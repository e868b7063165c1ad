//! What stands in the place of SQLite in a build without the feature `sqlite`: nothing opens.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;

use super::bad_document::BadDocument;
use super::changes::{AddedColumn, Verdict, WaitingDocument};
use super::documents::Corpus;
use super::error::CorpusError;
use super::record::{CorpusRecord, ReadTotals};
use super::settings::CorpusSettings;
use super::source::CorpusSource;

fn not_read<T>(source: &CorpusSource) -> Result<T, CorpusError> {
    let (name, kind) = (source.name(), source.kind.name());
    Err(CorpusError::bad(format!(
        "{} is {kind}, which this build does not read; cargo install --path cli --features sqlite makes one \
         that does",
        name.display(),
    )))
}

/// A row that nobody gives.
pub(super) struct SqliteRow {
    pub(super) record: CorpusRecord,
    pub(super) whole: Option<Bytes>,
}

/// Nothing: this build reads none.
pub(super) struct SqliteRows(Infallible);

impl SqliteRows {
    pub(super) fn open(
        (source, _): (&CorpusSource, usize),
        _: &CorpusSettings,
        _: bool,
        _: Arc<AtomicU64>,
    ) -> Result<Result<Self, BadDocument>, CorpusError> {
        not_read(source)
    }

    pub(super) fn next(&mut self) -> Result<Option<SqliteRow>, CorpusError> {
        match self.0 {}
    }
}

pub(super) fn column_names(
    source: &CorpusSource,
    _: &CorpusSettings,
) -> Result<Vec<String>, CorpusError> {
    not_read(source)
}

/// Nothing: this build writes none.
pub struct VerdictTable(Infallible);

impl VerdictTable {
    /// An error.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn new(
        source: &CorpusSource,
        _: &CorpusSettings,
        _: &str,
        _: bool,
    ) -> Result<Self, CorpusError> {
        not_read(source)
    }

    /// Nothing.
    ///
    /// # Errors
    ///
    /// None.
    pub fn write<E: From<CorpusError>>(
        &self,
        _: &Corpus,
        _: &[AddedColumn],
        _: ReadTotals,
        _: impl FnMut(u64) -> Result<bool, E>,
    ) -> Result<bool, E> {
        match self.0 {}
    }
}

/// Nothing: this build writes none.
pub struct VerdictLog(Infallible);

impl VerdictLog {
    /// An error.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn open(source: &CorpusSource, _: &CorpusSettings, _: &str) -> Result<Self, CorpusError> {
        not_read(source)
    }

    /// Nothing.
    ///
    /// # Errors
    ///
    /// None.
    pub fn next_row(&self) -> Result<i64, CorpusError> {
        match self.0 {}
    }

    /// Nothing.
    ///
    /// # Errors
    ///
    /// None.
    pub fn waiting(&self) -> Result<Option<Vec<WaitingDocument>>, CorpusError> {
        match self.0 {}
    }

    /// Nothing.
    ///
    /// # Errors
    ///
    /// None.
    pub fn prepare(&mut self, _: &[Verdict]) -> Result<(), CorpusError> {
        match self.0 {}
    }

    /// Nothing.
    ///
    /// # Errors
    ///
    /// None.
    pub fn settle(&mut self) -> Result<(), CorpusError> {
        match self.0 {}
    }

    /// Nothing.
    ///
    /// # Errors
    ///
    /// None.
    pub fn finish(self) -> Result<(), CorpusError> {
        match self.0 {}
    }

    /// Nothing.
    ///
    /// # Errors
    ///
    /// None.
    pub fn is_kept(&self, _: u64) -> Result<bool, CorpusError> {
        match self.0 {}
    }
}
