//! The records of a corpus after the work on them, and counts of what became of them.

use std::sync::Arc;

use itertools::Itertools as _;

use resemblance::Document;
use resemblance_corpus::{BadDocument, Corpus, CorpusDocument, ReadTotals};

use super::context::Context;
use crate::failure::{Failure, FailureKind, Result};
use crate::output::{Counted, GroupedNumber};

/// The number of documents after which, if all of them are bad, no good ones are waited for.
const MAX_BAD_AT_FIRST: u64 = 1_000;

/// Counts of the outcomes for the documents of a corpus; printed as one line.
#[derive(Clone, Debug, Default)]
pub(crate) struct DocumentTally {
    /// Documents read, bad ones included.
    pub(crate) read: u64,
    /// Added to a store, or written out.
    pub(crate) kept: u64,
    /// Left out as near-duplicates.
    pub(crate) dropped: u64,
    /// Number of dropped documents that were decided by an estimate although similarities are
    /// exact, because the text of the other document is not available.
    pub(crate) estimated: u64,
    /// Number of dropped documents whose content equals that of their survivor.
    pub(crate) equal: u64,
    /// Left out because the store has the key.
    pub(crate) known: u64,
    /// Replaced a document with the same key.
    pub(crate) replaced: u64,
    /// Left as they are: the store has them under their keys with the same signatures.
    pub(crate) unchanged: u64,
    /// Bad ones, which could not be read as documents.
    bad: u64,
    /// The first of them.
    first_bad: Option<Arc<Failure>>,
    /// Skipped documents: bad ones, and those whose key has already occurred.
    pub(crate) skipped: u64,
    /// Documents without any feature.
    pub(crate) empty: u64,
    /// Documents of which nothing is left without the parts that have appeared before.
    pub(crate) emptied: u64,
    /// Paragraphs or lines that have already appeared.
    pub(crate) dropped_parts: u64,
    /// Documents that were compared with a part of their candidates only.
    pub(crate) budget_exceeded: u64,
}

impl DocumentTally {
    /// Documents that a store holds as they were read.
    pub(crate) fn held(&self) -> u64 {
        self.kept + self.unchanged
    }

    /// Counts a bad document: it is an error, or is skipped.
    pub(super) fn take_bad(
        &mut self,
        context: &Context,
        failure: Failure,
        skip_bad: bool,
    ) -> Result<()> {
        self.bad += 1;
        if !skip_bad {
            // Where no document was good, something else is wrong.
            let is_rare = self.bad < self.read;
            return Err(if is_rare {
                failure.with_note("--skip-bad skips such documents")
            } else {
                failure
            });
        }
        self.skip_over(context, &failure);
        self.first_bad.get_or_insert_with(|| Arc::new(failure));
        if self.bad == MAX_BAD_AT_FIRST && self.bad == self.read {
            return self.must_be_mostly_good();
        }
        Ok(())
    }

    /// An error if more than half of the documents are bad: then the options are wrong, and not the
    /// documents.
    pub(crate) fn must_be_mostly_good(&self) -> Result<()> {
        let Some(first) = &self.first_bad else {
            return Ok(());
        };
        if self.bad <= self.read / 2 {
            return Ok(());
        }
        let Self { bad, read, .. } = self;
        let are = if *bad == 1 { "is" } else { "are" };
        let read = Counted(*read, "document");
        let message = format!("{bad} of {read} {are} bad, which is too many for --skip-bad");
        let failure =
            Failure::bad_input(message).with_note(format!("the first: {}", first.brief()));
        Err(first.notes().iter().fold(failure, Failure::with_note))
    }

    /// Skips one bad document, if that is wanted; any other failure is returned.
    pub(crate) fn skip(
        &mut self,
        context: &Context,
        failure: Failure,
        skip_bad: bool,
    ) -> Result<()> {
        match failure.kind {
            FailureKind::BadInput if skip_bad => {
                self.skip_over(context, &failure);
                Ok(())
            }
            _ => Err(failure),
        }
    }

    fn skip_over(&mut self, context: &Context, failure: &Failure) {
        self.skipped += 1;
        context.detail(format!("skipped {}", failure.brief()));
    }

    /// Returns the line for standard error; `kept` is the verb's word for kept documents.
    pub(crate) fn summary(&self, kept: &str, totals: ReadTotals) -> String {
        let decided = [(kept, self.kept), ("dropped", self.dropped)];
        self.listed(&decided, totals)
    }

    /// The same where nothing is decided about documents.
    pub(crate) fn reading(&self, totals: ReadTotals) -> String {
        self.listed(&[], totals)
    }

    fn listed(&self, decided: &[(&str, u64)], totals: ReadTotals) -> String {
        let read = [("read", self.read)];
        let left_out = [("skipped", self.skipped), ("empty", self.empty)];
        let others = [
            ("dropped as equal", self.equal),
            ("dropped by estimate", self.estimated),
            ("known keys", self.known),
            ("replaced", self.replaced),
            ("unchanged", self.unchanged),
            ("emptied", self.emptied),
            ("repeated parts", self.dropped_parts),
            ("beyond the budget", self.budget_exceeded),
            ("blank lines", totals.blank),
        ];
        let reported = others.into_iter().filter(|(_, count)| *count > 0);
        let always = read
            .into_iter()
            .chain(decided.iter().copied())
            .chain(left_out);
        let counts = always.chain(reported);
        counts
            .map(|(name, count)| format!("{name} {}", GroupedNumber(count)))
            .join(", ")
    }
}

/// One record after the work.
pub(crate) struct ReadDocument<T> {
    /// The number of the record in the corpus, from 0.
    pub(crate) number: u64,
    /// The number of its source.
    pub(crate) source: usize,
    /// Its line there.
    pub(crate) line: u64,
    /// The document, or a description of its fault.
    pub(crate) document: Result<WorkedDocument<T>, BadDocument>,
}

impl<T> ReadDocument<T> {
    /// The document, counted; a bad one is an error, or is skipped.
    pub(crate) fn take(
        self,
        context: &Context,
        corpus: &Corpus,
        tally: &mut DocumentTally,
        skip_bad: bool,
    ) -> Result<Option<WorkedDocument<T>>> {
        tally.read += 1;
        match self.document {
            Ok(document) => Ok(Some(document)),
            Err(bad) => {
                let failure = Failure::from(bad).at(corpus.position(self.source, self.line));
                tally.take_bad(context, failure, skip_bad).map(|()| None)
            }
        }
    }
}

/// A document after the work.
pub(crate) struct WorkedDocument<T> {
    pub(crate) key: Vec<u8>,
    pub(crate) has_own_id: bool,
    pub(crate) stamp: u64,
    pub(crate) payload: Vec<u8>,
    pub(crate) value: T,
}

impl<T> WorkedDocument<T> {
    pub(super) fn new(value: T, document: CorpusDocument<'_>) -> Self {
        Self {
            key: document.key.into_owned(),
            has_own_id: document.has_own_id,
            stamp: document.stamp,
            payload: document.payload.into_owned(),
            value,
        }
    }
}

impl<T> WorkedDocument<T> {
    /// Returns the document as a store is to hold it.
    pub(crate) fn to_store(&self) -> Document<'_> {
        Document::new(&self.key)
            .stamp(self.stamp)
            .payload(&self.payload)
    }
}
