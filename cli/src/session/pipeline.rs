//! One thread reads batches, workers work on them, and the caller takes the results in order.
//!
//! The reader reads a further batch only once the caller has begun an earlier one. Quick batches
//! therefore cannot pile up behind a slow one.

use crate::failure::{Failure, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{thread, vec};

/// Interval between the calls of `on_wait` while the caller waits for a result.
const POLL: Duration = Duration::from_millis(50);

/// Batches that each worker can be ahead by, so that none waits for the reader.
const BATCHES_PER_THREAD: usize = 3;

/// The smallest number of batches that are on their way: few workers must not wait for a caller who takes
/// many results together.
const MIN_BATCHES: usize = 16;

/// The size of a batch, which ends at whichever limit it reaches first.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchLimits {
    /// Maximum number of records in a batch.
    pub(super) records: usize,
    /// Bytes of records at which a batch is complete.
    pub(super) bytes: usize,
}

/// The results of some work, in the order of the input. Dropping it stops the threads after their
/// current batches.
pub(super) struct Pipeline<T> {
    free: Sender<()>,
    /// Hands the records on that have been read, if they are few: the reader waits for more.
    hand_on: Box<dyn Fn() + Send>,
    /// The number of batches handed to the workers, and whether the reader is to stop.
    handed: Arc<ReadState>,
    answers: Receiver<WorkerAnswer<T>>,
    /// Results of later batches, by their sequence numbers.
    waiting: BTreeMap<u64, Result<Vec<T>>>,
    next_sequence: u64,
    end: Option<StreamEnd>,
    current: vec::IntoIter<T>,
}

/// The state that the reader and the caller share.
#[derive(Debug, Default)]
struct ReadState {
    batches: AtomicU64,
    is_stopped: AtomicBool,
}

/// The records that have been read since the last batch. The reader fills it. The reader sends them
/// to the workers when the batch is complete. The caller sends them when no other batch is being
/// processed, so that documents do not wait for a pipe that pauses.
struct OpenBatch<R> {
    records: Vec<R>,
    bytes: usize,
    /// Whether the reader has a slot for this batch. Each batch takes one.
    has_slot: bool,
    jobs: Sender<ReadBatch<R>>,
    state: Arc<ReadState>,
}

impl<R> OpenBatch<R> {
    /// Sends the records to the workers, if there are any. Returns false if no worker receives them
    /// any more.
    fn send(&mut self) -> bool {
        if self.records.is_empty() {
            return true;
        }
        self.bytes = 0;
        self.has_slot = false;
        let batch = ReadBatch {
            sequence: self.state.batches.fetch_add(1, Ordering::SeqCst),
            records: std::mem::take(&mut self.records),
        };
        self.jobs.send(batch).is_ok()
    }
}

struct ReadBatch<R> {
    sequence: u64,
    records: Vec<R>,
}

enum WorkerAnswer<T> {
    Batch(u64, Result<Vec<T>>),
    End(StreamEnd),
}

/// The number of batches read, and the result of reading.
struct StreamEnd {
    batches: u64,
    result: Result<()>,
}

impl<T: Send + 'static> Pipeline<T> {
    /// Starts the threads: one reads `records`, whose memory `record_bytes` returns, and `threads`
    /// do the work, at least one. Records that were read before an error are processed and returned
    /// before the error is.
    pub(super) fn start<R: Send + 'static>(
        records: impl Iterator<Item = Result<R>> + Send + 'static,
        record_bytes: fn(&R) -> usize,
        threads: usize,
        limits: BatchLimits,
        work: impl Fn(Vec<R>) -> Result<Vec<T>> + Send + Sync + 'static,
    ) -> Self {
        let workers = threads.max(1);
        let (free, slots) = mpsc::channel();
        let batches = workers.saturating_mul(BATCHES_PER_THREAD).saturating_add(1);
        for _ in 0..batches.max(MIN_BATCHES) {
            // The receiver exists, so this cannot fail.
            let _ = free.send(());
        }
        let (jobs, queue) = mpsc::channel();
        let (results, answers) = mpsc::channel();
        let reader_results = results.clone();
        let handed = Arc::new(ReadState::default());
        let open = Arc::new(Mutex::new(OpenBatch {
            records: Vec::new(),
            bytes: 0,
            has_slot: false,
            jobs,
            state: Arc::clone(&handed),
        }));
        // The channel to the workers closes with the reader, which owns the batch.
        let partial = Arc::downgrade(&open);
        let hand_on = Box::new(move || {
            if let Some(open) = partial.upgrade() {
                locked(&open).send();
            }
        });
        // If no thread can be started, none answers, and the caller gets the error of a lost
        // worker.
        let _ = named("rsm-read").spawn(move || {
            let end = read_batches(records, record_bytes, limits, &slots, &open);
            // No one listens once the caller has stopped.
            let _ = reader_results.send(WorkerAnswer::End(end));
        });
        let queue = Arc::new(Mutex::new(queue));
        let work = Arc::new(work);
        for _ in 0..workers {
            let (queue, results, work) = (Arc::clone(&queue), results.clone(), Arc::clone(&work));
            let _ = named("rsm-work").spawn(move || run_worker(&queue, &results, &*work));
        }
        Self {
            free,
            hand_on,
            handed,
            answers,
            waiting: BTreeMap::new(),
            next_sequence: 0,
            end: None,
            current: Vec::new().into_iter(),
        }
    }

    /// Returns the next result, or `None` after the last. `on_wait` is called before each batch and
    /// every 50 milliseconds while the next one is missing; its error is returned.
    pub(super) fn next(&mut self, mut on_wait: impl FnMut() -> Result<()>) -> Result<Option<T>> {
        loop {
            if let Some(result) = self.current.next() {
                return Ok(Some(result));
            }
            on_wait()?;
            if let Some(batch) = self.waiting.remove(&self.next_sequence) {
                self.next_sequence += 1;
                self.current = batch?.into_iter();
                // The reader has ended once it has read everything.
                let _ = self.free.send(());
                continue;
            }
            let is_over = |end: &mut StreamEnd| end.batches == self.next_sequence;
            if let Some(end) = self.end.take_if(is_over) {
                // Every later call must find the end again.
                self.end = Some(StreamEnd {
                    batches: end.batches,
                    result: Ok(()),
                });
                return end.result.map(|()| None);
            }
            match self.answers.recv_timeout(POLL) {
                Ok(WorkerAnswer::Batch(sequence, batch)) => {
                    self.waiting.insert(sequence, batch);
                }
                Ok(WorkerAnswer::End(end)) => self.end = Some(end),
                Err(RecvTimeoutError::Timeout) => {
                    if self.is_drained() {
                        (self.hand_on)();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Failure::internal()),
            }
        }
    }

    /// True if every batch that the workers got has been returned.
    fn is_drained(&self) -> bool {
        self.next_sequence == self.handed.batches.load(Ordering::SeqCst)
    }

    /// Stops the reader after the record that it waits for, and hands on what it has read. From now on
    /// [`Pipeline::next_read`] returns the results.
    pub(super) fn stop_reading(&self) {
        self.handed.is_stopped.store(true, Ordering::SeqCst);
        (self.hand_on)();
    }

    /// Returns the next result of what was read before [`Pipeline::stop_reading`], or `None` after the
    /// last.
    pub(super) fn next_read(&mut self) -> Result<Option<T>> {
        if self.current.len() == 0 && self.is_drained() {
            return Ok(None);
        }
        self.next(|| Ok(()))
    }
}

fn named(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.to_owned())
}

/// Reads batches as slots become free.
fn read_batches<R>(
    mut records: impl Iterator<Item = Result<R>>,
    record_bytes: fn(&R) -> usize,
    limits: BatchLimits,
    slots: &Receiver<()>,
    open: &Mutex<OpenBatch<R>>,
) -> StreamEnd {
    let state = Arc::clone(&locked(open).state);
    let mut result = Ok(());
    loop {
        // A closed channel means that the caller has stopped.
        if !wait_for_slot(open, slots) {
            break;
        }
        let record = match records.next() {
            Some(Ok(record)) => record,
            Some(Err(error)) => {
                result = Err(error);
                break;
            }
            None => break,
        };
        // Meanwhile the caller may have taken the records before this one.
        if !wait_for_slot(open, slots) {
            break;
        }
        let mut open = locked(open);
        if state.is_stopped.load(Ordering::SeqCst) {
            break;
        }
        open.bytes += record_bytes(&record);
        open.records.push(record);
        let is_complete = open.records.len() >= limits.records || open.bytes >= limits.bytes;
        if is_complete && !open.send() {
            break;
        }
    }
    locked(open).send();
    StreamEnd {
        batches: state.batches.load(Ordering::SeqCst),
        result,
    }
}

/// Waits until the open batch has a slot. Returns false if the caller has stopped.
fn wait_for_slot<R>(open: &Mutex<OpenBatch<R>>, slots: &Receiver<()>) -> bool {
    if locked(open).has_slot {
        return true;
    }
    let is_free = slots.recv().is_ok();
    locked(open).has_slot |= is_free;
    is_free
}

fn run_worker<R, T>(
    queue: &Mutex<Receiver<ReadBatch<R>>>,
    results: &Sender<WorkerAnswer<T>>,
    work: &dyn Fn(Vec<R>) -> Result<Vec<T>>,
) {
    loop {
        let Ok(batch) = locked(queue).recv() else {
            return;
        };
        let answer = AnswerOnPanic(results, batch.sequence);
        let worked = work(batch.records);
        drop(answer);
        if results
            .send(WorkerAnswer::Batch(batch.sequence, worked))
            .is_err()
        {
            return;
        }
    }
}

/// Answers for a batch whose worker panics, so that the caller does not wait for it for ever.
struct AnswerOnPanic<'a, T>(&'a Sender<WorkerAnswer<T>>, u64);

impl<T> Drop for AnswerOnPanic<'_, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self
                .0
                .send(WorkerAnswer::Batch(self.1, Err(Failure::internal())));
        }
    }
}

/// Locks a mutex, poisoned or not: nothing panics while it holds one here, so its value is whole.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of documents that have been read and are not worked on yet. Only large documents are counted:
/// one that fills a batch alone. The small ones are bounded by the sizes of batches.
#[derive(Debug)]
pub(super) struct InFlight {
    budget_bytes: u64,
    held_bytes: Mutex<u64>,
    freed: Condvar,
}

impl InFlight {
    pub(super) fn new(budget_bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            budget_bytes,
            held_bytes: Mutex::new(0),
            freed: Condvar::new(),
        })
    }

    /// Waits until there is room for this number of bytes, or nothing else is held: one document
    /// passes, however large it is.
    pub(super) fn hold(self: &Arc<Self>, bytes: u64) -> HeldBytes {
        let mut held = locked(&self.held_bytes);
        while *held > 0 && held.saturating_add(bytes) > self.budget_bytes {
            let waited = self.freed.wait(held);
            held = waited.unwrap_or_else(PoisonError::into_inner);
        }
        *held = held.saturating_add(bytes);
        HeldBytes {
            bytes,
            of: Arc::clone(self),
        }
    }
}

/// Gives the bytes back when it is dropped.
#[derive(Debug)]
pub(super) struct HeldBytes {
    bytes: u64,
    of: Arc<InFlight>,
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        let mut held = locked(&self.of.held_bytes);
        *held = held.saturating_sub(self.bytes);
        self.of.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    const LIMITS: BatchLimits = BatchLimits {
        records: 3,
        bytes: 100,
    };

    fn all(
        records: Vec<Result<u64>>,
        work: fn(Vec<u64>) -> Result<Vec<u64>>,
    ) -> (Vec<u64>, Option<String>) {
        let mut pipeline = Pipeline::start(records.into_iter(), |_| 40, 3, LIMITS, work);
        let mut results = Vec::new();
        loop {
            match pipeline.next(|| Ok(())) {
                Ok(Some(result)) => results.push(result),
                Ok(None) => return (results, None),
                Err(failure) => return (results, Some(failure.brief())),
            }
        }
    }

    #[test]
    fn pipeline_returns_results_in_order_before_its_error() {
        let slow_first = |batch: Vec<u64>| {
            if batch.contains(&0) {
                thread::sleep(Duration::from_millis(30));
            }
            Ok(batch.iter().map(|number| number * 2).collect())
        };
        let doubled: Vec<u64> = (0..100).map(|number| number * 2).collect();
        assert_eq!(
            all((0..100).map(Ok).collect(), slow_first),
            (doubled.clone(), None)
        );
        let cut = (0..100)
            .map(Ok)
            .chain([Err(Failure::usage("not read"))])
            .collect();
        assert_eq!(all(cut, slow_first), (doubled, Some("not read".into())));
        assert_eq!(all(Vec::new(), slow_first), (Vec::new(), None));
    }

    #[test]
    fn pipeline_reports_failures_and_panics_of_workers_in_order() {
        let failing = |batch: Vec<u64>| {
            if batch.contains(&10) {
                Err(Failure::usage("not worked"))
            } else {
                Ok(batch)
            }
        };
        let (results, error) = all((0..100).map(Ok).collect(), failing);
        assert_eq!(error.as_deref(), Some("not worked"));
        assert_eq!(results, (0..9).collect::<Vec<_>>());
        let panicking = |batch: Vec<u64>| {
            assert!(!batch.contains(&10), "this one is meant");
            Ok(batch)
        };
        let (results, error) = all((0..100).map(Ok).collect(), panicking);
        assert!(error.is_some_and(|error| error.starts_with("internal error: ")));
        assert_eq!(results, (0..9).collect::<Vec<_>>());
    }

    #[test]
    fn pipeline_passes_items_on_while_the_reader_waits() {
        let (sender, records) = mpsc::channel();
        let mut pipeline = Pipeline::start(
            records.into_iter(),
            |_| 40,
            2,
            LIMITS,
            |batch: Vec<u64>| Ok(batch),
        );
        // Far more pauses than there are slots: each batch must give its own back.
        for number in 0..40 {
            sender.send(Ok(number)).unwrap();
            assert_eq!(pipeline.next(|| Ok(())).unwrap(), Some(number));
        }
        sender.send(Ok(40)).unwrap();
        thread::sleep(Duration::from_millis(20));
        pipeline.stop_reading();
        assert_eq!(pipeline.next_read().unwrap(), Some(40));
        assert_eq!(pipeline.next_read().unwrap(), None);
    }

    #[test]
    fn pipeline_waits_for_room_unless_an_item_is_alone() {
        let flight = InFlight::new(100);
        let large = flight.hold(1_000);
        let waiting = Arc::new(AtomicBool::new(true));
        let thread = thread::spawn({
            let (flight, waiting) = (Arc::clone(&flight), Arc::clone(&waiting));
            move || {
                let held = flight.hold(10);
                waiting.store(false, Ordering::SeqCst);
                held
            }
        });
        thread::sleep(Duration::from_millis(50));
        assert!(waiting.load(Ordering::SeqCst));
        drop(large);
        let small = thread.join().unwrap();
        drop(flight.hold(90));
        drop(small);
        assert_eq!(*flight.held_bytes.lock().unwrap(), 0);
    }
}
