//! Documents worked on by all threads, given back in corpus order, in bounded memory.
//!
//! One thread reads records into batches, the workers parse them and do the work (sketching, for
//! the most part), and the caller's thread takes the results in order. A batch may only be read
//! once the caller has taken an earlier one, so that a slow document does not pile up fast ones.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::vec;

use super::Context;
use super::failure::Result;
use super::interrupt::{Interrupt, POLL};
use super::panics;
use super::progress::Progress;
use crate::corpus::{self, Corpus, Document, Record, Records, Totals};

/// How much is read before it is worked on.
#[derive(Clone, Copy)]
struct Limits {
    records: usize,
    bytes: usize,
}

/// So many documents are looked up in a store together: the more, the less each costs.
pub(crate) const DOCUMENTS_TOGETHER: usize = 4096;

const EACH_ALONE: Limits = Limits {
    records: 256,
    bytes: 1 << 20,
};

const TOGETHER: Limits = Limits {
    records: DOCUMENTS_TOGETHER,
    bytes: 4 << 20,
};

/// One record after the work.
pub(crate) struct Item<T> {
    /// The number of the record in the corpus, from 0.
    pub(crate) number: u64,
    /// The number of its source.
    pub(crate) source: usize,
    /// Its line there.
    pub(crate) line: u64,
    /// The document, or a sentence about what is wrong with it.
    pub(crate) document: Result<Worked<T>, String>,
}

/// A document after the work.
pub(crate) struct Worked<T> {
    pub(crate) key: Vec<u8>,
    pub(crate) value: T,
}

struct Batch {
    sequence: u64,
    first_number: u64,
    records: Vec<Record>,
}

enum Message<T> {
    Batch(u64, Result<Vec<Item<T>>>),
    /// How many batches there were, and how the reading ended.
    End(u64, corpus::Result<Totals>),
}

/// The results in corpus order.
pub(crate) struct Pipeline<T> {
    interrupt: Interrupt,
    progress: Progress,
    bytes_read: Arc<AtomicU64>,
    slots: Sender<()>,
    messages: Receiver<Message<T>>,
    waiting: BTreeMap<u64, Result<Vec<Item<T>>>>,
    next_sequence: u64,
    end: Option<(u64, corpus::Result<Totals>)>,
    current: vec::IntoIter<Item<T>>,
    taken: u64,
    totals: Totals,
}

impl<T: Send + 'static> Pipeline<T> {
    /// Starts the threads. The first `skip` records are passed over unseen.
    pub(crate) fn start(
        context: &Context,
        what: &'static str,
        corpus: &Arc<Corpus>,
        skip: u64,
        work: impl Fn(&Document<'_>) -> Result<T> + Send + Sync + 'static,
    ) -> Self {
        let work = move |documents: &[Document<'_>]| documents.iter().map(&work).collect();
        Self::start_with(context, what, corpus, skip, EACH_ALONE, work)
    }

    /// The same for work that is done quicker for many documents together: a value for each.
    pub(crate) fn start_together(
        context: &Context,
        what: &'static str,
        corpus: &Arc<Corpus>,
        work: impl Fn(&[Document<'_>]) -> Result<Vec<T>> + Send + Sync + 'static,
    ) -> Self {
        Self::start_with(context, what, corpus, 0, TOGETHER, work)
    }

    fn start_with(
        context: &Context,
        what: &'static str,
        corpus: &Arc<Corpus>,
        skip: u64,
        limits: Limits,
        work: impl Fn(&[Document<'_>]) -> Result<Vec<T>> + Send + Sync + 'static,
    ) -> Self {
        let threads = context.threads;
        let bytes_read = Arc::new(AtomicU64::new(0));
        let (slots, free) = mpsc::channel();
        for _ in 0..threads.saturating_mul(3).saturating_add(1) {
            let _ = slots.send(());
        }
        let (jobs, queue) = mpsc::channel();
        let (results, messages) = mpsc::channel();
        let records = Records::new(Arc::clone(corpus), Arc::clone(&bytes_read));
        let reader_results = results.clone();
        thread::spawn(move || {
            let (count, end) = read(records, skip, limits, &free, &jobs);
            // no one listens after an error elsewhere
            let _ = reader_results.send(Message::End(count, end));
        });
        let queue = Arc::new(Mutex::new(queue));
        let work = Arc::new(work);
        for _ in 0..threads {
            let (queue, results) = (Arc::clone(&queue), results.clone());
            let (corpus, work) = (Arc::clone(corpus), Arc::clone(&work));
            thread::spawn(move || run_worker(&queue, &results, &corpus, &*work));
        }
        Self {
            interrupt: context.interrupt.clone(),
            progress: Progress::of_bytes(what, context.messages.quiet, || corpus.size_bytes()),
            bytes_read,
            slots,
            messages,
            waiting: BTreeMap::new(),
            next_sequence: 0,
            end: None,
            current: Vec::new().into_iter(),
            taken: 0,
            totals: Totals::default(),
        }
    }

    /// The next result, or `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Item<T>>> {
        loop {
            if let Some(item) = self.current.next() {
                self.taken += 1;
                if self.taken.is_multiple_of(64) {
                    self.interrupt.check()?;
                    self.progress.update(self.taken, self.read_bytes());
                }
                return Ok(Some(item));
            }
            self.interrupt.check()?;
            if let Some(batch) = self.waiting.remove(&self.next_sequence) {
                self.next_sequence += 1;
                self.current = batch?.into_iter();
                // the reader is gone at the end
                let _ = self.slots.send(());
                continue;
            }
            if self
                .end
                .as_ref()
                .is_some_and(|(count, _)| *count == self.next_sequence)
            {
                self.progress.clear();
                if let Some((_, end)) = self.end.take() {
                    self.totals = end?;
                }
                return Ok(None);
            }
            match self.messages.recv_timeout(POLL) {
                Ok(Message::Batch(sequence, batch)) => {
                    self.waiting.insert(sequence, batch);
                }
                Ok(Message::End(count, end)) => self.end = Some((count, end)),
                Err(RecvTimeoutError::Timeout) => self.progress.tick(),
                Err(RecvTimeoutError::Disconnected) => return Err(panics::internal_error()),
            }
        }
    }

    /// How many bytes of the sources were read until now.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// What was read, once [`Pipeline::next`] has returned `None`.
    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }
}

/// Reads batches as slots become free; returns their number and how the reading ended.
fn read(
    mut records: Records,
    skip: u64,
    limits: Limits,
    free: &Receiver<()>,
    jobs: &Sender<Batch>,
) -> (u64, corpus::Result<Totals>) {
    let mut sequence = 0;
    let mut number = 0;
    while number < skip {
        match records.next() {
            Some(Ok(_)) => number += 1,
            Some(Err(error)) => return (sequence, Err(error)),
            None => return (sequence, Ok(records.totals())),
        }
    }
    loop {
        if free.recv().is_err() {
            return (sequence, Ok(records.totals()));
        }
        let mut batch = Vec::new();
        let mut bytes = 0;
        let mut failed = None;
        while batch.len() < limits.records && bytes < limits.bytes {
            match records.next() {
                Some(Ok(record)) => {
                    bytes += record.bytes.len();
                    batch.push(record);
                }
                Some(Err(error)) => {
                    failed = Some(error);
                    break;
                }
                None => break,
            }
        }
        if batch.is_empty() {
            return (sequence, failed.map_or_else(|| Ok(records.totals()), Err));
        }
        let first_number = number;
        number += batch.len() as u64;
        let batch = Batch {
            sequence,
            first_number,
            records: batch,
        };
        sequence += 1;
        if jobs.send(batch).is_err() {
            return (sequence, Ok(records.totals()));
        }
        if let Some(error) = failed {
            return (sequence, Err(error));
        }
    }
}

fn run_worker<T>(
    queue: &Mutex<Receiver<Batch>>,
    results: &Sender<Message<T>>,
    corpus: &Corpus,
    work: &dyn Fn(&[Document<'_>]) -> Result<Vec<T>>,
) {
    loop {
        let batch = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(batch) = batch else {
            return;
        };
        let answer = AnswerOnPanic(results, batch.sequence);
        let items = work_on(&batch, corpus, work);
        drop(answer);
        if results.send(Message::Batch(batch.sequence, items)).is_err() {
            return;
        }
    }
}

fn work_on<T>(
    batch: &Batch,
    corpus: &Corpus,
    work: &dyn Fn(&[Document<'_>]) -> Result<Vec<T>>,
) -> Result<Vec<Item<T>>> {
    let mut good = Vec::new();
    let mut bad = Vec::new();
    for record in &batch.records {
        match corpus.parse(record) {
            Ok(document) => {
                good.push(document);
                bad.push(None);
            }
            Err(reason) => bad.push(Some(reason)),
        }
    }
    let values = if good.is_empty() {
        Vec::new()
    } else {
        work(&good)?
    };
    let mut worked = values.into_iter().zip(good);
    let numbered = (batch.first_number..).zip(&batch.records).zip(bad);
    let item = |((number, record), bad): ((u64, &Record), Option<String>)| {
        let document = match bad {
            Some(reason) => Err(reason),
            None => {
                let (value, document) = worked.next().ok_or_else(panics::internal_error)?;
                let key = document.key.into_owned();
                Ok(Worked { key, value })
            }
        };
        Ok(Item {
            number,
            source: record.source,
            line: record.line,
            document,
        })
    };
    numbered.map(item).collect()
}

/// Answers for a batch whose worker panics, so that no one waits for it.
struct AnswerOnPanic<'a, T>(&'a Sender<Message<T>>, u64);

impl<T> Drop for AnswerOnPanic<'_, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self
                .0
                .send(Message::Batch(self.1, Err(panics::internal_error())));
        }
    }
}
