//! The database that `--verdicts` names, and verdicts in a build without SQLite.

#[cfg(not(feature = "sqlite"))]
use resemblance::Store;
#[cfg(not(feature = "sqlite"))]
use resemblance_corpus::ReadTotals;
use resemblance_corpus::{Corpus, CorpusError, CorpusSource, SourceKind};

use crate::failure::{Failure, Result};
#[cfg(not(feature = "sqlite"))]
use crate::output::Survivor;
#[cfg(not(feature = "sqlite"))]
use crate::session::Context;
#[cfg(not(feature = "sqlite"))]
use resemblance::invariant::bug;

/// Returns the database that `--verdicts` is for.
pub(super) fn only_database(corpus: &Corpus) -> Result<&CorpusSource> {
    let [source] = corpus.sources.as_slice() else {
        return Err(Failure::usage(
            "--verdicts needs exactly one SQLite database",
        ));
    };
    let (name, kind) = (source.name(), source.kind.name());
    if source.kind != SourceKind::Sqlite {
        let shown = name.display();
        let usage = format!("--verdicts needs a SQLite database, and {shown} is {kind}");
        return Err(Failure::usage(usage));
    }
    if !cfg!(feature = "sqlite") {
        return Err(CorpusError::requires(&name, kind, "sqlite").into());
    }
    Ok(source)
}

/// The verdicts of a build without SQLite. No value of this type exists.
#[cfg(not(feature = "sqlite"))]
pub(super) enum NoVerdicts {}

#[cfg(not(feature = "sqlite"))]
impl NoVerdicts {
    pub(super) fn new(name: Option<&str>, _: bool, corpus: &Corpus) -> Result<Option<Self>> {
        if name.is_some() {
            only_database(corpus)?;
        }
        Ok(None)
    }

    pub(super) fn write<D>(&self, _: &Context, _: &Corpus, _: ReadTotals, _: &D) -> Result<()> {
        match *self {}
    }

    pub(super) fn open(_: &Context, _: &str, corpus: &mut Corpus, _: &Store) -> Result<Self> {
        only_database(corpus)?;
        Err(bug("a build without SQLite has a database").into())
    }

    pub(super) fn take(&mut self, _: u64, _: &[u8], _: u64, _: Option<&Survivor>) -> Result<()> {
        match *self {}
    }

    pub(super) fn prepare(&mut self) -> Result<()> {
        match *self {}
    }

    pub(super) fn publish(&mut self) -> Result<()> {
        match *self {}
    }

    pub(super) fn finish(self) -> Result<()> {
        match self {}
    }
}
