//! A file of records of a corpus: as they stand in the input, below the names of columns if there are any.

#[cfg(feature = "tables")]
use std::path::PathBuf;
use std::sync::Arc;

use super::destination::Destination;
#[cfg(feature = "tables")]
use super::destination::failed;
use crate::bug::bug;
#[cfg(feature = "tables")]
use crate::failure::Failure;
use crate::failure::Result;
#[cfg(not(feature = "tables"))]
use resemblance_corpus::CorpusError;
use resemblance_corpus::{AddedColumn, CorpusRecord, CorpusSource};
#[cfg(feature = "tables")]
use resemblance_corpus::{TableError, TableWriter};

/// An output that is a file, or standard output.
pub(super) struct OutputFile {
    /// Of a table until its first source is known, and of lines.
    lines: Option<Destination>,
    #[cfg(feature = "tables")]
    table: Option<TableWriter<Destination>>,
    has_header: bool,
    /// In messages.
    #[cfg(feature = "tables")]
    path: PathBuf,
}

impl OutputFile {
    pub(super) fn new(destination: Destination) -> Self {
        Self {
            #[cfg(feature = "tables")]
            path: destination.path.clone(),
            lines: Some(destination),
            #[cfg(feature = "tables")]
            table: None,
            has_header: false,
        }
    }

    fn lines(&mut self) -> Result<&mut Destination> {
        let lines = self.lines.as_mut();
        lines.ok_or_else(|| bug("a line was to be written to a table").into())
    }

    /// Writes the names of the columns, unless a source before had the same.
    pub(super) fn header(&mut self, header: &CorpusRecord) -> Result<()> {
        if !self.has_header {
            self.has_header = true;
            self.lines()?.record(header)?;
        }
        Ok(())
    }

    /// Writes a kept record.
    pub(super) fn record(&mut self, record: &CorpusRecord) -> Result<()> {
        self.lines()?.record(record)
    }

    #[cfg(not(feature = "tables"))]
    pub(super) fn table(
        &mut self,
        source: &CorpusSource,
        _: u64,
        _: Option<&Arc<Vec<AddedColumn>>>,
        _: impl FnMut(u64) -> Result<bool>,
    ) -> Result<()> {
        Err(CorpusError::requires(&source.name(), source.kind.name(), "tables").into())
    }

    /// Writes the rows of a table for which `is_kept` returns true, by their numbers from 0, with more columns if
    /// there are any; `first` is the number of the first row in the corpus.
    #[cfg(feature = "tables")]
    pub(super) fn table(
        &mut self,
        source: &CorpusSource,
        first: u64,
        added: Option<&Arc<Vec<AddedColumn>>>,
        is_kept: impl FnMut(u64) -> Result<bool>,
    ) -> Result<()> {
        let path = self.path.clone();
        let failure = |error: TableError<Failure>| match error {
            TableError::Input(error) => error.into(),
            TableError::Output(error) => failed(&path, &error),
            TableError::Choice(failure) => failure,
        };
        let table = match &mut self.table {
            Some(table) => table,
            None => {
                let lines = self
                    .lines
                    .take()
                    .ok_or_else(|| bug("a table has no file to go to"))?;
                if lines.alters_bytes() {
                    return Err(Failure::usage(format!(
                        "{} is written as it is, neither compressed nor to a terminal; give the name of \
                         a file",
                        source.kind.name()
                    )));
                }
                let created =
                    TableWriter::create(source, lines, added.cloned()).map_err(failure)?;
                self.table.insert(created)
            }
        };
        table.copy(source, first, is_kept).map_err(failure)
    }

    /// Completes the file and gives it its name.
    pub(super) fn finish(self) -> Result<()> {
        #[cfg(feature = "tables")]
        if let Some(table) = self.table {
            let finished = table.finish().map_err(|e| failed(&self.path, &e))?;
            return finished.finish();
        }
        match self.lines {
            Some(lines) => lines.finish(),
            None => Err(bug("an output has no file").into()),
        }
    }
}
