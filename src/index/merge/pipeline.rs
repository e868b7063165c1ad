//! The steps of a merge, one after the other or on two threads: one reads and writes, the other
//! computes.

use std::any::Any;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, scope};

use crate::error::{Error, Result};
use crate::index::merge::lane_merge::{LaneMerge, Ledger, Step};
use crate::index::merge::lane_source::Portion;
use crate::index::run::RunTables;

/// Portions that have been read, and not been written: they bound the memory.
const PORTIONS: u64 = 4;

/// How far a merge is to go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// Postings to be read: steps go on until there are so many.
    pub(crate) postings: u64,
    /// Blocks that a step reads.
    pub(crate) blocks: usize,
    /// Whether it is worth a second thread. The rows that are written are the same.
    pub(crate) is_parallel: bool,
}

impl LaneMerge {
    /// Goes on by a stretch, and on until a pause would leave less to do than there was.
    ///
    /// # Errors
    /// As [`LaneMerge::step`].
    pub(crate) fn advance(
        &mut self,
        tables: &mut RunTables<'_>,
        stretch: Stretch,
        is_dropped: &(impl Fn(u64) -> bool + Sync),
    ) -> Result<Step> {
        if stretch.is_parallel {
            return self.advance_in_parallel(tables, stretch, is_dropped);
        }
        let mut read = 0;
        loop {
            let step = self.step(tables, stretch.blocks, is_dropped)?;
            read += step.postings;
            if step.is_last || (read >= stretch.postings && self.has_progress()) {
                return Ok(Step {
                    postings: read,
                    is_last: step.is_last,
                });
            }
        }
    }

    fn advance_in_parallel(
        &mut self,
        tables: &mut RunTables<'_>,
        stretch: Stretch,
        is_dropped: &(impl Fn(u64) -> bool + Sync),
    ) -> Result<Step> {
        let Self { work, ledger, .. } = self;
        let (portions, to_compute) = channel();
        let (done, computed) = channel();
        let step = scope(|scope| {
            let compute = move |portion: &mut Portion| work.step(portion, is_dropped);
            let serve = move || serve(&to_compute, &done, compute);
            let Ok(thread) = Builder::new()
                .name("merge".into())
                .spawn_scoped(scope, serve)
            else {
                return Ok(None);
            };
            let step = Ends { portions, computed }.run(tables, ledger, stretch);
            thread.join().map_err(|panic| stopped(&*panic))?;
            step.map(Some)
        })?;
        match step {
            Some(step) => Ok(step),
            // There is no second thread to be had.
            None => self.advance(
                tables,
                Stretch {
                    is_parallel: false,
                    ..stretch
                },
                is_dropped,
            ),
        }
    }
}

/// Computes until there are no more portions, nobody waits for what comes of them, or one is bad.
fn serve(
    portions: &Receiver<Portion>,
    computed: &Sender<Result<Portion>>,
    mut compute: impl FnMut(&mut Portion) -> Result<()>,
) {
    for mut portion in portions {
        let outcome = compute(&mut portion);
        let is_good = outcome.is_ok();
        if computed.send(outcome.map(|()| portion)).is_err() || !is_good {
            return;
        }
    }
}

/// The error that a panic of the other thread becomes.
fn stopped(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    Error::corrupt("a merge stopped", text.unwrap_or("no message"))
}

/// Reported in place of a panic only where there was none.
fn alone() -> Error {
    Error::corrupt("a merge stopped", "its other thread is gone")
}

/// The ends of the pipeline that the reading and writing thread holds.
struct Ends {
    portions: Sender<Portion>,
    computed: Receiver<Result<Portion>>,
}

impl Ends {
    fn run(
        self,
        tables: &mut RunTables<'_>,
        ledger: &mut Ledger,
        stretch: Stretch,
    ) -> Result<Step> {
        let (mut under_way, mut spare) = (0, Vec::new());
        let mut read = Step {
            postings: 0,
            is_last: false,
        };
        loop {
            let is_enough = read.is_last || read.postings >= stretch.postings;
            // What has been read before decides whether more is needed, as it does with one thread.
            if is_enough && under_way == 0 && (read.is_last || ledger.has_progress()) {
                return Ok(read);
            }
            if under_way < PORTIONS && (!is_enough || under_way == 0) {
                let mut portion = spare.pop().unwrap_or_default();
                ledger.source.read(tables, stretch.blocks, &mut portion)?;
                read.postings += portion.postings;
                read.is_last = portion.is_last;
                self.portions.send(portion).map_err(|_| alone())?;
                under_way += 1;
                continue;
            }
            let mut portion = self.computed.recv().map_err(|_| alone())??;
            ledger.write(tables, &mut portion)?;
            spare.push(portion);
            under_way -= 1;
        }
    }
}
