//! The steps of a merge, one after another or on two threads: one reads and writes, the other
//! computes.

use std::any::Any;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, scope};

use crate::error::{Error, Result};
use crate::index::merge::lane_merge::{LaneMerge, MergeProgress, MergeStep};
use crate::index::merge::lane_source::MergeChunk;
use crate::index::run::RunTables;
use crate::invariant::bug;

/// The number of chunks that are read and not yet written: they bound the memory.
const CHUNKS: u64 = 4;

/// The amount of a merge to do in one slice, and how to do it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergeBudget {
    /// Number of postings to read: steps follow each other until it is reached.
    pub(crate) postings: u64,
    /// Number of blocks that a step reads.
    pub(crate) blocks: usize,
    /// True if a second thread is worth its start. The rows that are written are the same.
    pub(crate) is_parallel: bool,
}

impl LaneMerge {
    /// Merges until the budget is used up, and further until a pause would leave less to do than there was.
    ///
    /// # Errors
    /// Returns the errors of [`LaneMerge::step`].
    pub(crate) fn advance(
        &mut self,
        tables: &mut RunTables<'_>,
        budget: MergeBudget,
        is_dropped: &(impl Fn(u64) -> bool + Sync),
    ) -> Result<MergeStep> {
        if budget.is_parallel {
            return self.advance_in_parallel(tables, budget, is_dropped);
        }
        let mut read = 0;
        loop {
            let step = self.step(tables, budget.blocks, is_dropped)?;
            read += step.postings;
            if step.is_last || (read >= budget.postings && self.progress.has_progress()) {
                return Ok(MergeStep {
                    postings: read,
                    is_last: step.is_last,
                });
            }
        }
    }

    fn advance_in_parallel(
        &mut self,
        tables: &mut RunTables<'_>,
        budget: MergeBudget,
        is_dropped: &(impl Fn(u64) -> bool + Sync),
    ) -> Result<MergeStep> {
        let Self { work, progress, .. } = self;
        let (chunks, to_compute) = channel();
        let (done, computed) = channel();
        let step = scope(|scope| {
            let compute = move |chunk: &mut MergeChunk| work.step(chunk, is_dropped);
            let serve = move || serve(&to_compute, &done, compute);
            let Ok(thread) = Builder::new()
                .name("merge".into())
                .spawn_scoped(scope, serve)
            else {
                return Ok(None);
            };
            let step = ChunkChannels { chunks, computed }.run(tables, progress, budget);
            // A panic of the thread precedes the step's own error, which only reports that the
            // thread has ended.
            thread.join().map_err(|panic| stopped(&*panic))?;
            step.map(Some)
        })?;
        match step {
            Some(step) => Ok(step),
            // No second thread could be started.
            None => self.advance(
                tables,
                MergeBudget {
                    is_parallel: false,
                    ..budget
                },
                is_dropped,
            ),
        }
    }
}

/// Computes until there are no more chunks, no thread waits for results, or a chunk is bad.
fn serve(
    chunks: &Receiver<MergeChunk>,
    computed: &Sender<Result<MergeChunk>>,
    mut compute: impl FnMut(&mut MergeChunk) -> Result<()>,
) {
    for mut chunk in chunks {
        let outcome = compute(&mut chunk);
        let is_good = outcome.is_ok();
        // After a bad chunk the thread must stop: the next one would be merged without its postings.
        if computed.send(outcome.map(|()| chunk)).is_err() || !is_good {
            return;
        }
    }
}

/// Returns the error for a panic of the computing thread. That thread calls nothing of the engine,
/// where a panic would mean damage, so the panic is a bug.
fn stopped(panic: &(dyn Any + Send)) -> Error {
    let formatted = panic.downcast_ref::<String>().map(String::as_str);
    let text = formatted.or_else(|| panic.downcast_ref::<&str>().copied());
    bug(format!(
        "a merge panicked: {}",
        text.unwrap_or("no message")
    ))
}

/// Reported only where the computing thread neither failed nor panicked.
fn alone() -> Error {
    bug("the computing thread of a merge has gone")
}

/// The ends of the pipeline that the reading and writing thread holds.
struct ChunkChannels {
    chunks: Sender<MergeChunk>,
    computed: Receiver<Result<MergeChunk>>,
}

impl ChunkChannels {
    /// Reads and writes chunks until the budget is used up. The channel of chunks closes when
    /// `self` is dropped, which ends the computing thread.
    fn run(
        self,
        tables: &mut RunTables<'_>,
        progress: &mut MergeProgress,
        budget: MergeBudget,
    ) -> Result<MergeStep> {
        let (mut under_way, mut spare) = (0, Vec::new());
        let mut read = MergeStep {
            postings: 0,
            is_last: false,
        };
        loop {
            let is_enough = read.is_last || read.postings >= budget.postings;
            // Chunks under way may still write a block: as with one thread, more is read only if none of them did.
            if is_enough && under_way == 0 && (read.is_last || progress.has_progress()) {
                return Ok(read);
            }
            if under_way < CHUNKS && (!is_enough || under_way == 0) {
                // A new one until the first has returned.
                let mut chunk = spare.pop().unwrap_or_default();
                progress.source.read(tables, budget.blocks, &mut chunk)?;
                read.postings += chunk.postings;
                read.is_last = chunk.is_last;
                if self.chunks.send(chunk).is_err() {
                    return Err(self.failure());
                }
                under_way += 1;
                continue;
            }
            let mut chunk = self.computed.recv().map_err(|_| alone())??;
            progress.write(tables, &mut chunk)?;
            spare.push(chunk);
            under_way -= 1;
        }
    }

    /// Returns the error that ended the computing thread. Chunks that it computed before are
    /// skipped.
    fn failure(&self) -> Error {
        self.computed
            .iter()
            .find_map(Result::err)
            .unwrap_or_else(alone)
    }
}
