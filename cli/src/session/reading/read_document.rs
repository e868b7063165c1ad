//! A record of a corpus after the work on it.

use resemblance::Document;

use super::super::context::Context;
use super::super::tally::DocumentTally;
use crate::failure::{Failure, Result};
use resemblance_corpus::{BadDocument, Corpus};

/// One record after the work.
pub(crate) struct ReadDocument<T> {
    /// The number of the record in the corpus, from 0.
    pub(crate) number: u64,
    /// The number of its source.
    pub(crate) source: usize,
    /// Its line there.
    pub(crate) line: u64,
    /// The document, or what is wrong with it.
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
    /// What a store is to hold of it.
    pub(crate) fn to_store(&self) -> Document<'_> {
        Document::new(&self.key)
            .stamp(self.stamp)
            .payload(&self.payload)
    }
}
