//! Counting what became of the documents.

use std::fmt;

use super::context::Context;
use super::documents::{ReadDocument, WorkedDocument};
use crate::corpus::{Corpus, ReadTotals};
use crate::failure::{Failure, Result};

/// What became of the documents of a corpus; printed as one line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DocumentTally {
    /// Documents read, bad ones included.
    pub(crate) read: u64,
    /// Added to a store, or written out.
    pub(crate) kept: u64,
    /// Left out as near-duplicates.
    pub(crate) dropped: u64,
    /// Of these, where similarities are exact, those that were told by an estimate: the text of the
    /// other document is not at hand.
    pub(crate) estimated: u64,
    /// Left out because the store has the key.
    pub(crate) known: u64,
    /// Replaced a document with the same key.
    pub(crate) replaced: u64,
    /// Left as they are: the store has them under their keys with the same signatures.
    pub(crate) unchanged: u64,
    /// Bad ones skipped.
    pub(crate) skipped: u64,
    /// Documents without any feature.
    pub(crate) empty: u64,
    /// Documents that were compared with a part of their candidates only.
    pub(crate) beyond_budget: u64,
}

impl DocumentTally {
    /// Documents that a store holds as they were read.
    pub(crate) fn held(&self) -> u64 {
        self.kept + self.unchanged
    }

    /// Counts an item; a bad one is an error, or is skipped.
    pub(crate) fn take<T>(
        &mut self,
        context: &Context,
        corpus: &Corpus,
        item: ReadDocument<T>,
        skip_bad: bool,
    ) -> Result<Option<WorkedDocument<T>>> {
        self.read += 1;
        match item.document {
            Ok(document) => Ok(Some(document)),
            Err(reason) => {
                let place = corpus.position(item.source, item.line);
                let failure = Failure::bad_input(format!("{place}: {reason}"));
                self.skip(context, failure, skip_bad).map(|()| None)
            }
        }
    }

    /// Skips one bad document, if that is wanted; any other failure stays one.
    pub(crate) fn skip(
        &mut self,
        context: &Context,
        failure: Failure,
        skip_bad: bool,
    ) -> Result<()> {
        match failure {
            Failure::BadInput(message) if skip_bad => {
                self.skipped += 1;
                context.messages.detail(format!("skipped {message}"));
                Ok(())
            }
            Failure::BadInput(_) => Err(failure.with_note("--skip-bad skips such documents")),
            other => Err(other),
        }
    }

    /// The line for standard error; `kept` is the verb's word for what was kept.
    pub(crate) fn summary(&self, kept: &'static str, totals: ReadTotals) -> TallySummary<'_> {
        TallySummary {
            tally: self,
            kept,
            totals,
        }
    }
}

/// See [`DocumentTally::summary`].
pub(crate) struct TallySummary<'a> {
    tally: &'a DocumentTally,
    kept: &'static str,
    totals: ReadTotals,
}

impl fmt::Display for TallySummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DocumentTally { read, kept, .. } = *self.tally;
        write!(f, "read {read}, {} {kept}", self.kept)?;
        write!(f, ", dropped {}", self.tally.dropped)?;
        write!(
            f,
            ", skipped {}, empty {}",
            self.tally.skipped, self.tally.empty
        )?;
        let others = [
            ("dropped by estimate", self.tally.estimated),
            ("known keys", self.tally.known),
            ("replaced", self.tally.replaced),
            ("unchanged", self.tally.unchanged),
            ("beyond the budget", self.tally.beyond_budget),
            ("blank lines", self.totals.blank),
        ];
        for (name, count) in others {
            if count > 0 {
                write!(f, ", {name} {count}")?;
            }
        }
        Ok(())
    }
}
