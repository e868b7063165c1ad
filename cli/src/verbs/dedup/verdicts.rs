//! What became of each row of a database, as a table beside it.

use super::decide::DecidedDocuments;
use crate::failure::{Failure, Result};
use crate::session::{Context, corpus_changed};
use crate::verbs::verdicts::only_database;
use resemblance_corpus::{AddedColumn, Corpus, VerdictTable};

/// The table that `--verdicts` asks for.
pub(super) struct DedupVerdicts(VerdictTable);

impl DedupVerdicts {
    /// `None` if none is asked for; an error if it could not be written in the end.
    pub(super) fn new(name: Option<&str>, force: bool, corpus: &Corpus) -> Result<Option<Self>> {
        let Some(name) = name else {
            return Ok(None);
        };
        let source = only_database(corpus)?;
        let table = VerdictTable::new(source, &corpus.settings, name, force)?;
        Ok(Some(Self(table)))
    }

    /// Reads the database once more, and writes the verdicts on its rows.
    pub(super) fn write(
        &self,
        context: &Context,
        corpus: &Corpus,
        decided: &DecidedDocuments,
        columns: &[AddedColumn],
    ) -> Result<()> {
        let (kept, dropped) = (&decided.kept, &decided.dropped);
        let mut progress = context.progress("writing verdicts");
        let is_same = self.0.write(corpus, columns, decided.totals, |number| {
            context.interrupt.check()?;
            progress.update(number, 0);
            // A database that has grown since is told below.
            if number >= kept.len() {
                return Ok::<_, Failure>(false);
            }
            Ok(kept.get(number)? || dropped.get(number)?)
        })?;
        progress.clear();
        if is_same {
            Ok(())
        } else {
            Err(corpus_changed())
        }
    }
}
