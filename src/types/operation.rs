//! Long operations without options of their own.

use std::fmt;
use std::ops::ControlFlow;

use crate::error::Result;
use crate::types::progress::{Progress, Watch};

type Work<'a, R> = dyn FnOnce(&mut Watch<'_>) -> Result<R> + 'a;

/// A long operation that [`run`](Self::run) does, and that returns an `R`: a check, a compaction,
/// an export, statistics.
///
/// Operations with options of their own have builders of the same form:
/// `operation(…).option(…).on_progress(…).run()`.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.rsm");
/// # Store::create(&path, Schema::builder().minhash(MinHash::new(64)).build()?)?;
/// use std::ops::ControlFlow;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// static STOP: AtomicBool = AtomicBool::new(false); // set by a signal, for one
/// let report = Store::compact(&path)
///     .on_progress(|_| match STOP.load(Ordering::Relaxed) {
///         false => ControlFlow::Continue(()),
///         true => ControlFlow::Break(()),
///     })
///     .run()?;
/// assert!(report.size_after_bytes <= report.size_before_bytes);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "an operation does nothing until it is run"]
pub struct Operation<'a, R> {
    work: Box<Work<'a, R>>,
    watch: Watch<'a>,
}

impl<'a, R> Operation<'a, R> {
    /// `name` is for errors, such as "the check".
    pub(crate) fn new(
        name: &'static str,
        work: impl FnOnce(&mut Watch<'_>) -> Result<R> + 'a,
    ) -> Self {
        Self {
            work: Box::new(work),
            watch: Watch::new(name),
        }
    }

    /// Sets what is told of the progress, and may stop the operation: see [`Progress`].
    pub fn on_progress(mut self, callback: impl FnMut(Progress) -> ControlFlow<()> + 'a) -> Self {
        self.watch.set(callback);
        self
    }

    /// Does the operation.
    ///
    /// # Errors
    ///
    /// Those of the method that described it, and [`Error::Stopped`](crate::Error::Stopped) if the
    /// progress callback breaks off.
    pub fn run(self) -> Result<R> {
        self.watch.run(self.work)
    }
}

impl<R> fmt::Debug for Operation<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").finish_non_exhaustive()
    }
}
