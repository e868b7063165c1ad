//! Verdicts on the rows of a database that are added to a store, in a table of the same database.

use std::collections::HashSet;

use resemblance::{Snapshot, Store};

use super::verdicts::only_database;
use crate::failure::Result;
use crate::output::{Evidence, Survivor};
use crate::session::Context;
use resemblance_corpus::{Corpus, Verdict, VerdictLog, WaitingDocument};

/// The verdicts of an addition.
pub(super) struct AdditionVerdicts {
    log: VerdictLog,
    /// Verdicts since the last commit.
    batch: Vec<Verdict>,
    /// The ids of documents that rows of this batch have in the store.
    kept: HashSet<u64>,
}

impl AdditionVerdicts {
    /// Opens the table of verdicts for the only source of a corpus, which is then read from the
    /// first row without a verdict. First repairs the table if an earlier run was killed.
    pub(super) fn open(
        context: &Context,
        name: &str,
        corpus: &mut Corpus,
        store: &Store,
    ) -> Result<Self> {
        let source = only_database(corpus)?;
        let shown = source.name().display().to_string();
        let log = VerdictLog::open(source, &corpus.settings, name)?;
        if let Some(kept) = log.waiting()?
            && has_all(&store.snapshot()?, &kept)?
        {
            log.publish()?;
            let note =
                format!("{shown}: completed the verdicts of a run that was stopped after a commit");
            context.note(note);
        }
        let first = log.next_row()?;
        corpus.settings.rows_from = Some(first);
        Ok(Self {
            log,
            batch: Vec::new(),
            kept: HashSet::new(),
        })
    }

    /// Records the verdict on a row, whose document in the store has this id.
    pub(super) fn take(
        &mut self,
        row: u64,
        key: &[u8],
        document: u64,
        survivor: Option<&Survivor>,
    ) -> Result<()> {
        let verdict = Verdict {
            row: row.cast_signed(),
            key: key.to_vec(),
            is_kept: false,
            document,
            survivor: None,
            similarity: None,
            distance: None,
            evidence: None,
        };
        let verdict = match survivor {
            // The document of this very row, unless the store has it of another one.
            Some(found) if found.evidence == Evidence::Key => {
                let is_of_other = self.kept.contains(&document) || self.log.is_kept(document)?;
                Verdict {
                    is_kept: !is_of_other,
                    survivor: is_of_other.then(|| found.field()),
                    evidence: Some(Evidence::Key.name()),
                    ..verdict
                }
            }
            Some(found) => Verdict {
                survivor: Some(found.field()),
                similarity: found.similarity,
                distance: found.distance,
                evidence: Some(found.evidence.name()),
                ..verdict
            },
            None => Verdict {
                is_kept: true,
                ..verdict
            },
        };
        if verdict.is_kept {
            self.kept.insert(document);
        }
        self.batch.push(verdict);
        Ok(())
    }

    /// Writes the pending verdicts; call this before the commit of the store.
    pub(super) fn prepare(&mut self) -> Result<()> {
        Ok(self.log.prepare(&self.batch)?)
    }

    /// Makes the pending verdicts final; call this after the commit of the store.
    pub(super) fn publish(&mut self) -> Result<()> {
        self.log.publish()?;
        self.batch.clear();
        self.kept.clear();
        Ok(())
    }

    /// Completes the table of verdicts at the end.
    pub(super) fn finish(self) -> Result<()> {
        Ok(self.log.finish()?)
    }
}

/// True if the store has all of these, by their ids and keys.
fn has_all(snapshot: &Snapshot, documents: &[WaitingDocument]) -> Result<bool> {
    for document in documents {
        let found = snapshot.get(&document.key)?;
        if found.is_none_or(|found| found.id().get() != document.id) {
            return Ok(false);
        }
    }
    Ok(true)
}
