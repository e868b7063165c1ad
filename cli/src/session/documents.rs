//! The documents of a corpus, worked on by all threads and returned in corpus order.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::vec;

use resemblance::pipeline::{BatchLimits, Pipeline};
use resemblance::{Signature, Sketcher};

use super::context::Context;
use super::interrupt::Interrupt;
use crate::bug::bug;
use crate::corpus::{Corpus, CorpusDocument, CorpusRecord, CorpusRecords, ReadTotals};
use crate::failure::{Failure, Result};
use crate::options::CorpusOptions;
use crate::output::ProgressDisplay;

/// Documents that are looked up in a store together: the more, the less each costs.
pub(crate) const DOCUMENTS_TOGETHER: usize = 4096;

/// Bytes of memory that the features of documents may take that wait to be decided together.
pub(crate) const MAX_HELD_BYTES: usize = 64 << 20;

const EACH_ALONE: BatchLimits = BatchLimits {
    records: 256,
    bytes: 1 << 20,
};

const TOGETHER: BatchLimits = BatchLimits {
    records: DOCUMENTS_TOGETHER,
    bytes: 4 << 20,
};

/// Progress is shown, and signals are looked for, once in so many documents.
const DOCUMENTS_PER_CHECK: u64 = 64;

/// One record after the work.
pub(crate) struct ReadDocument<T> {
    /// The number of the record in the corpus, from 0.
    pub(crate) number: u64,
    /// The number of its source.
    pub(crate) source: usize,
    /// Its line there.
    pub(crate) line: u64,
    /// The document, or a sentence that says what is wrong with it.
    pub(crate) document: Result<WorkedDocument<T>, String>,
}

/// A document after the work.
pub(crate) struct WorkedDocument<T> {
    pub(crate) key: Vec<u8>,
    pub(crate) value: T,
}

/// The documents of a corpus in its order.
pub(crate) struct CorpusDocuments<T> {
    pipeline: Pipeline<ReadDocument<T>, Failure>,
    interrupt: Interrupt,
    progress: ProgressDisplay,
    bytes_read: Arc<AtomicU64>,
    taken: u64,
    totals: Arc<Mutex<ReadTotals>>,
}

impl<T: Send + 'static> CorpusDocuments<T> {
    /// Starts the threads. The first `skip` records are passed over unseen.
    pub(crate) fn start(
        context: &Context,
        task: &'static str,
        corpus: &Arc<Corpus>,
        skip: u64,
        work: impl Fn(&CorpusDocument<'_>) -> Result<T> + Send + Sync + 'static,
    ) -> Self {
        let work = move |documents: &[CorpusDocument<'_>]| documents.iter().map(&work).collect();
        Self::start_with(context, task, corpus, skip, EACH_ALONE, work)
    }

    /// The same for work that is quicker for many documents together, and gives a value for each.
    pub(crate) fn start_together(
        context: &Context,
        task: &'static str,
        corpus: &Arc<Corpus>,
        work: impl Fn(&[CorpusDocument<'_>]) -> Result<Vec<T>> + Send + Sync + 'static,
    ) -> Self {
        Self::start_with(context, task, corpus, 0, TOGETHER, work)
    }

    fn start_with(
        context: &Context,
        task: &'static str,
        corpus: &Arc<Corpus>,
        skip: u64,
        limits: BatchLimits,
        work: impl Fn(&[CorpusDocument<'_>]) -> Result<Vec<T>> + Send + Sync + 'static,
    ) -> Self {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let totals = Arc::new(Mutex::new(ReadTotals::default()));
        let records = NumberedRecords {
            records: CorpusRecords::new(Arc::clone(corpus), Arc::clone(&bytes_read)),
            next_number: 0,
            skip,
            totals: Arc::clone(&totals),
        };
        let worked_corpus = Arc::clone(corpus);
        Self {
            pipeline: Pipeline::start(
                records,
                |(_, record)| record.bytes.len(),
                context.threads,
                limits,
                move |records| work_on(&records, &worked_corpus, &work),
            ),
            interrupt: context.interrupt.clone(),
            progress: ProgressDisplay::with_total_bytes(task, context.messages.quiet, || {
                corpus.size_bytes()
            }),
            bytes_read,
            taken: 0,
            totals,
        }
    }

    /// The next document, or `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<ReadDocument<T>>> {
        let next = self.pipeline.next(|| {
            self.interrupt.check()?;
            self.progress.tick();
            Ok(())
        })?;
        if next.is_none() {
            self.progress.clear();
            return Ok(None);
        }
        self.taken += 1;
        if self.taken.is_multiple_of(DOCUMENTS_PER_CHECK) {
            self.interrupt.check()?;
            self.progress.update(self.taken, self.read_bytes());
        }
        Ok(next)
    }

    /// How many bytes of the sources have been read.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Counts of what was read, once [`CorpusDocuments::next`] has returned `None`.
    pub(crate) fn totals(&self) -> ReadTotals {
        // Nothing panics while it holds the lock.
        *self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records with their numbers. The totals are there once the last record has been read.
struct NumberedRecords {
    records: CorpusRecords,
    next_number: u64,
    skip: u64,
    totals: Arc<Mutex<ReadTotals>>,
}

impl Iterator for NumberedRecords {
    type Item = Result<(u64, CorpusRecord)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let record = match self.records.next() {
                Some(Ok(record)) => record,
                Some(Err(error)) => return Some(Err(error.into())),
                None => {
                    let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
                    *totals = self.records.totals();
                    return None;
                }
            };
            let number = self.next_number;
            self.next_number += 1;
            // Skipped records are read all the same: the totals are those of the whole corpus.
            if number >= self.skip {
                return Some(Ok((number, record)));
            }
        }
    }
}

fn work_on<T>(
    records: &[(u64, CorpusRecord)],
    corpus: &Corpus,
    work: &dyn Fn(&[CorpusDocument<'_>]) -> Result<Vec<T>>,
) -> Result<Vec<ReadDocument<T>>> {
    let mut good = Vec::new();
    let mut reasons = Vec::new();
    for (_, record) in records {
        match corpus.parse(record) {
            Ok(document) => {
                good.push(document);
                reasons.push(None);
            }
            Err(reason) => reasons.push(Some(reason)),
        }
    }
    let values = if good.is_empty() {
        Vec::new()
    } else {
        work(&good)?
    };
    if values.len() != good.len() {
        return Err(bug("not every document was worked on").into());
    }
    let mut worked: vec::IntoIter<_> = values
        .into_iter()
        .zip(good)
        .map(|(value, document)| WorkedDocument {
            key: document.key.into_owned(),
            value,
        })
        .collect::<Vec<_>>()
        .into_iter();
    let read = records.iter().zip(reasons);
    let read = read.map(|((number, record), reason)| {
        let document = match reason {
            Some(reason) => Err(reason),
            None => Ok(worked
                .next()
                .ok_or_else(|| bug("a good document is missing"))?),
        };
        Ok(ReadDocument {
            number: *number,
            source: record.source,
            line: record.line,
            document,
        })
    });
    read.collect()
}

/// The corpus of these inputs. An empty one is told, because a pattern with a slip in it would
/// otherwise look like one.
pub(crate) fn resolve_corpus(
    context: &Context,
    inputs: &[PathBuf],
    options: &CorpusOptions,
) -> Result<Corpus> {
    let corpus = Corpus::resolve(inputs, options.settings()?)?;
    if corpus.sources.is_empty() {
        context.messages.note("no file was found in the corpus");
    }
    Ok(corpus)
}

/// The signatures of some documents.
pub(crate) fn sketch_documents(
    sketcher: &Sketcher,
    documents: &[CorpusDocument<'_>],
) -> Result<Vec<Signature>> {
    let signatures = documents
        .iter()
        .map(|document| sketcher.text(&document.text));
    Ok(signatures.collect::<resemblance::Result<_>>()?)
}
