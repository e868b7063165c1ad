//! Long operations, and the settings that some of them have.

use std::fmt;
use std::ops::ControlFlow;

use crate::error::Result;
use crate::types::progress::{Progress, Watch};

/// The result of a long operation. It also identifies the operation, whose settings depend on it.
///
/// ```
/// use resemblance::{Operation, Store, report::{CheckReport, Report}};
/// fn run_aloud<R: Report>(operation: Operation<'_, R>) -> resemblance::Result<R> {
///     operation
///         .on_progress(|progress| {
///             eprintln!("{progress}");
///             std::ops::ControlFlow::Continue(())
///         })
///         .run()
/// }
/// let checked: resemblance::Result<CheckReport> = run_aloud(Store::check("not-there.rsm"));
/// assert!(checked.is_err());
/// ```
pub trait Report: ReportSettings {}

impl<R: ReportSettings> Report for R {}

/// The settings of the operation with this result. Other crates cannot name this trait, and so cannot
/// implement [`Report`].
pub trait ReportSettings: Sized {
    type Settings;
}

type Work<'a, R> = dyn FnOnce(<R as ReportSettings>::Settings, &mut Watch<'_>) -> Result<R> + 'a;

/// A long operation, such as a check, a repair or a backup. [`run`](Self::run) performs it and
/// returns an `R`. Some operations have special settings, which are listed below.
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
pub struct Operation<'a, R: Report> {
    pub(crate) settings: R::Settings,
    work: Box<Work<'a, R>>,
    watch: Watch<'a>,
}

impl<'a, R: Report> Operation<'a, R> {
    /// `name` is for errors, such as "the check".
    pub(crate) fn new(
        name: &'static str,
        settings: R::Settings,
        work: impl FnOnce(R::Settings, &mut Watch<'_>) -> Result<R> + 'a,
    ) -> Self {
        Self {
            settings,
            work: Box::new(work),
            watch: Watch::new(name),
        }
    }

    /// Sets the callback that receives the progress and may stop the operation: see [`Progress`].
    pub fn on_progress(mut self, callback: impl FnMut(Progress) -> ControlFlow<()> + 'a) -> Self {
        self.watch.set(callback);
        self
    }

    /// Runs the operation.
    ///
    /// # Errors
    ///
    /// The errors of the method that created it, and [`Error::Stopped`](crate::Error::Stopped) if
    /// the progress callback stops the operation.
    pub fn run(self) -> Result<R> {
        let (work, settings) = (self.work, self.settings);
        self.watch.run(|watch| work(settings, watch))
    }
}

impl<R: Report> fmt::Debug for Operation<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").finish_non_exhaustive()
    }
}
