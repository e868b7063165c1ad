//! Progress of long operations, and how a caller stops them.

use std::any::Any;
use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::error::{Error, Result};

/// Work that is done between two calls of a callback, in units of a phase that counts one by one.
const UNITS_PER_CALL: u64 = 4_096;

/// The progress of a long operation. The callback that is set with `on_progress` receives it.
///
/// An operation has one or several phases, one after the other. In each phase the operation calls
/// the callback at the start, at the end, and in between. [`done`](Self::done) never decreases
/// within a phase, and ends at [`total`](Self::total) if that is known, unless the phase documents
/// otherwise.
///
/// The callback runs in the thread of `run`. If it returns
/// [`ControlFlow::Break`](std::ops::ControlFlow::Break), the operation stops and returns
/// [`Error::Stopped`](crate::Error::Stopped); each operation documents which work is kept. A panic
/// of the callback stops the operation in the same way, and then continues through `run`.
///
/// ```
/// use std::ops::ControlFlow;
/// use resemblance::Error;
/// # use resemblance::{MinHash, Schema, Store};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.rsm");
/// # Store::create(&path, Schema::builder().minhash(MinHash::new(64)).build()?)?;
/// let report = Store::check(&path)
///     .on_progress(|progress| {
///         eprintln!("{progress}"); // checking documents: 4096 of 120000 documents
///         ControlFlow::Continue(())
///     })
///     .run()?;
/// assert!(report.is_clean());
///
/// let stopped = Store::check(&path).on_progress(|_| ControlFlow::Break(())).run();
/// assert!(matches!(stopped, Err(Error::Stopped { .. })));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The current phase of the operation.
    pub phase: Phase,
    /// The amount of work that is done, in the unit of the phase.
    pub done: u64,
    /// The total amount in the same unit, or `None` if it is not known in advance.
    pub total: Option<u64>,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (phase, done, unit) = (self.phase, self.done, self.phase.unit());
        match self.total {
            Some(total) => write!(f, "{phase}: {done} of {total} {unit}"),
            None => write!(f, "{phase}: {done} {unit}"),
        }
    }
}

/// A phase of a long operation. It prints in plain words, such as "sorting postings".
///
/// ```
/// use resemblance::Phase;
/// assert_eq!(Phase::SortingPostings.to_string(), "sorting postings");
/// assert_eq!(Phase::SortingPostings.unit(), "postings");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// The pages of the file are read, and their checksums compared. Counts bytes of the file; free
    /// pages are skipped, and count as done at the end. Except in `check`, the engine does it in
    /// one step.
    VerifyingPages,
    /// The engine compares its record of free pages with the pages in use, in one step. Counts
    /// bytes of the file.
    CheckingFreePages,
    /// All pages of a damaged file are searched for rows. Counts bytes of the file.
    ScanningPages,
    /// Documents are read. In a damaged file, the documents that can be kept are counted. There may
    /// be fewer than the file states, or more if the file was scanned.
    ReadingDocuments,
    /// The rows of documents are compared with each other. Counts documents, including removed ones
    /// whose rows still exist.
    CheckingDocuments,
    /// Postings are compared with the rows. Counts postings; those of keys are read twice.
    CheckingPostings,
    /// Postings that are still in memory are sorted, in one step. Counts postings of all lanes.
    SortingPostings,
    /// Postings are written, lane by lane. Counts postings of all lanes.
    WritingPostings,
    /// Rows of documents whose keys other documents have are removed. Counts documents.
    RemovingDuplicates,
    /// Documents are linked to the clusters that the store keeps. Counts documents.
    LinkingClusters,
    /// Rows of all tables are copied. Counts rows.
    CopyingRows,
    /// Documents are written to a stream. Counts documents.
    WritingDocuments,
    /// Documents of a stream are stored or left out, and committed. Counts documents of the stream.
    StoringDocuments,
    /// Documents are examined, and evicted if the policy selects them. Counts the examined
    /// documents, out of those at the beginning. The count ends lower if other threads remove some
    /// meanwhile.
    EvictingDocuments,
    /// Unfinished merges are completed. Counts postings; the total grows if another merge becomes
    /// due.
    FinishingMerges,
    /// All runs are merged into one. Counts postings.
    MergingRuns,
    /// The engine moves pages to the front of the file, which is then truncated. Counts passes over
    /// the file. Their number is not known beforehand, and the first does most of the work.
    MovingPages,
    /// Documents that share buckets are compared, lane by lane. Counts lanes whose buckets have
    /// been read.
    JoiningLanes,
    /// Decisions are made about which documents to keep. Counts documents.
    DecidingDocuments,
    /// Rows are counted, table by table. Counts rows.
    CountingRows,
    /// Postings are counted by buckets, lane by lane. Counts postings, without those of keys.
    CountingPostings,
}

impl Phase {
    /// Returns the unit that the phase counts, such as "documents".
    #[must_use]
    pub fn unit(self) -> &'static str {
        self.name_and_unit().1
    }

    fn name_and_unit(self) -> (&'static str, &'static str) {
        match self {
            Self::VerifyingPages => ("verifying pages", "bytes"),
            Self::CheckingFreePages => ("checking free pages", "bytes"),
            Self::ScanningPages => ("searching pages for rows", "bytes"),
            Self::ReadingDocuments => ("reading documents", "documents"),
            Self::CheckingDocuments => ("checking documents", "documents"),
            Self::CheckingPostings => ("checking postings", "postings"),
            Self::SortingPostings => ("sorting postings", "postings"),
            Self::WritingPostings => ("writing postings", "postings"),
            Self::RemovingDuplicates => ("removing documents with repeated keys", "documents"),
            Self::LinkingClusters => ("linking clusters", "documents"),
            Self::CopyingRows => ("copying rows", "rows"),
            Self::WritingDocuments => ("writing documents", "documents"),
            Self::StoringDocuments => ("storing documents", "documents"),
            Self::EvictingDocuments => ("evicting documents", "documents"),
            Self::FinishingMerges => ("finishing merges", "postings"),
            Self::MergingRuns => ("merging runs", "postings"),
            Self::MovingPages => ("moving pages", "passes"),
            Self::JoiningLanes => ("comparing documents", "lanes"),
            Self::DecidingDocuments => ("deciding on documents", "documents"),
            Self::CountingRows => ("counting rows", "rows"),
            Self::CountingPostings => ("counting postings", "postings"),
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name_and_unit().0)
    }
}

/// The caller's progress callback, if there is one, and the name of the work that it can stop.
pub struct Watch<'a> {
    work: &'static str,
    callback: Option<Box<dyn FnMut(Progress) -> ControlFlow<()> + 'a>>,
    /// A panic of the caller, held here until the engine has returned, because a panic in the
    /// engine counts as damage.
    panic: Option<Box<dyn Any + Send>>,
}

impl<'a> Watch<'a> {
    /// Creates a value that names the work and has no callback yet.
    #[must_use]
    pub fn new(work: &'static str) -> Self {
        Self {
            work,
            callback: None,
            panic: None,
        }
    }

    /// Sets the callback.
    pub fn set(&mut self, callback: impl FnMut(Progress) -> ControlFlow<()> + 'a) {
        self.callback = Some(Box::new(callback));
    }

    /// Runs the work, and lets a panic of the caller's callback continue.
    pub fn run<T>(mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let result = work(&mut self);
        match self.panic {
            Some(panic) => resume_unwind(panic),
            None => result,
        }
    }

    /// Reports the progress to the caller. An error means that the work must stop.
    pub fn report(&mut self, phase: Phase, done: u64, total: impl Into<Option<u64>>) -> Result<()> {
        let Some(callback) = &mut self.callback else {
            return Ok(());
        };
        let progress = Progress {
            phase,
            done,
            total: total.into(),
        };
        match catch_unwind(AssertUnwindSafe(|| callback(progress))) {
            Ok(answer) => self.obey(answer),
            Err(panic) => {
                self.panic = Some(panic);
                self.obey(ControlFlow::Break(()))
            }
        }
    }

    /// Returns an error if the caller's callback stops the work.
    pub fn obey(&self, answer: ControlFlow<()>) -> Result<()> {
        match answer {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Stopped { work: self.work }),
        }
    }

    /// Reports the progress at some of the steps of a loop. Each step completes one unit.
    pub fn step(&mut self, phase: Phase, done: u64, total: impl Into<Option<u64>>) -> Result<()> {
        if done.is_multiple_of(UNITS_PER_CALL) {
            self.report(phase, done, total)?;
        }
        Ok(())
    }
}
