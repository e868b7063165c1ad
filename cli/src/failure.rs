//! The reasons why a verb stops, and their exit codes.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};
use std::{fmt, io};

use resemblance::schema::{SketchError, noun};
use resemblance::{Error, OPENED_SINCE};
use resemblance_corpus::{BadDocument, CorpusError, io_reason};

/// The part of `--help` that documents the exit codes.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    nothing found (query, contain, get, pairs, clusters, cluster, explain) or
       measured (eval), a missing key (remove, touch), damage (check), lost
       documents (repair), more tests found than --fail-above (decontaminate)
  2    a wrong option or value; with --skip-unreadable, skipped files
  3    a bad document, a duplicate key, a damaged compressed file
  4    a file that is missing, exists, or cannot be read or written; a full disk
  5    another process has had the store for longer than --wait
  6    a store that is damaged, is no store, is newer, or needs repair
  130  interrupted (SIGINT); 143 terminated (SIGTERM); 129 hung up (SIGHUP)
If the reader of its output ends early, the tool ends quietly with 0, unless
more was to be written.";

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// The outcome of a verb that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// Nothing was found, or damage was: exit code 1.
    Nothing,
    /// A part of the input could not be read, and was skipped as requested: exit code 2.
    Partial,
}

impl Outcome {
    pub(crate) fn found(found: bool) -> Self {
        if found { Self::Done } else { Self::Nothing }
    }
}

/// The kind of failure, which decides on the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The command line asks for something impossible.
    Usage,
    /// A document, or a file that should hold documents, is not right.
    BadInput,
    /// The system refused something, or a file is missing or in the way.
    Io,
    /// Someone else has the store open.
    Locked,
    /// The store cannot be trusted or read.
    Corrupt,
    /// A signal, by its number.
    Signal(usize),
    /// The reader of the output has closed it. This is not an error, unless more was to be done.
    ClosedPipe,
}

/// The error that stops a verb: its cause, where it occurred, and notes that explain it and advise
/// what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    cause: String,
    place: Option<String>,
    notes: Vec<String>,
    /// True if the cause is damage in a store whose name is not in the message yet.
    lacks_store: bool,
}

/// Ignores that the output was closed, where the exit code is an answer, too.
pub(crate) fn unless_closed(printed: Result<()>) -> Result<()> {
    match printed {
        Err(failure) if failure.kind == FailureKind::ClosedPipe => Ok(()),
        printed => printed,
    }
}

impl Failure {
    /// Creates a failure by its cause, without notes.
    fn new(kind: FailureKind, cause: impl Into<String>) -> Self {
        Self {
            kind,
            cause: cause.into(),
            place: None,
            notes: Vec::new(),
            lacks_store: false,
        }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self.kind {
            FailureKind::ClosedPipe => 0,
            FailureKind::Usage => 2,
            FailureKind::BadInput => 3,
            FailureKind::Io => 4,
            FailureKind::Locked => 5,
            FailureKind::Corrupt => 6,
            FailureKind::Signal(number) => u8::try_from(128 + number).unwrap_or(130),
        }
    }

    /// Returns the failure of a run that stops because its output was closed, and leaves more undone.
    pub(crate) fn or_unfinished(self, undone: &str) -> Self {
        match self.kind {
            FailureKind::ClosedPipe => {
                Self::refused("the output was closed before all of it was written")
                    .with_note(undone)
            }
            _ => self,
        }
    }

    pub(crate) fn is_signal(&self) -> bool {
        matches!(self.kind, FailureKind::Signal(_))
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, message)
    }

    pub(crate) fn bad_input(message: impl Into<String>) -> Self {
        Self::new(FailureKind::BadInput, message)
    }

    /// Something that the system has or has not.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Io, message)
    }

    /// A panic on some thread, which has ended without an answer.
    pub(crate) fn internal() -> Self {
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let detail = last.unwrap_or_else(|| "a thread ended without an answer".into());
        Self::refused(format!("internal error: {detail}"))
    }

    /// Creates the failure of a system call; `action` describes what failed.
    pub(crate) fn io(action: impl fmt::Display, error: &io::Error) -> Self {
        let failure = Self::refused(format!("{action}: {}", io_reason(error)));
        failure.with_notes(advice(error))
    }

    /// A failed write to standard output.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::new(FailureKind::ClosedPipe, "the output was closed")
        } else {
            Self::io("cannot write to standard output", error)
        }
    }

    /// A signal that has arrived.
    pub(crate) fn signal(number: usize) -> Self {
        let message = match number {
            2 => "interrupted".to_owned(),
            number => format!("ended by signal {number}"),
        };
        Self::new(FailureKind::Signal(number), message)
    }

    /// A library error about a store that the message should name.
    pub(crate) fn store(store: impl fmt::Display, error: Error) -> Self {
        let name = store.to_string();
        let mut failure = Self::from(error).in_store(&name);
        if failure.kind == FailureKind::Io && !failure.cause.contains(&name) {
            failure.cause = format!("{name}: {}", failure.cause);
        }
        failure
    }

    /// The same, where a command that can be given again was writing to the store.
    pub(crate) fn unfinished(name: impl fmt::Display, error: Error) -> Self {
        match error {
            error @ Error::Io { .. } => {
                Self::store(name, error).with_note("nothing is lost: give the command again")
            }
            error => Self::store(name, error),
        }
    }

    /// Returns the same failure, with the name of the store if the message lacks it.
    pub(crate) fn in_store(mut self, name: impl fmt::Display) -> Self {
        if self.lacks_store {
            self.cause = format!("{name}: {}", self.cause);
            self.lacks_store = false;
        }
        self
    }

    /// A library error about one document at `place`: whatever is wrong with it is bad input.
    pub(crate) fn document(
        store: impl fmt::Display,
        place: impl Into<String>,
        error: Error,
    ) -> Self {
        match error {
            Error::InvalidParameter { .. }
            | Error::KeyExists { .. }
            | Error::NotUtf8 { .. }
            | Error::SignatureMismatch { .. } => Self::bad_input(error.to_string()).at(place),
            other => Self::store(store, other),
        }
    }

    /// The same failure, met in this place of the input.
    pub(crate) fn at(self, place: impl Into<String>) -> Self {
        Self {
            place: Some(place.into()),
            ..self
        }
    }

    /// Returns the same failure with another note.
    pub(crate) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Returns the same failure with more notes.
    fn with_notes(self, notes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        notes.into_iter().fold(self, Self::with_note)
    }

    /// Returns the cause, then the place and the notes, each to be printed on a separate line.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let place = self.place.iter().map(|place| format!("at {place}"));
        let below = place.chain(self.notes.iter().cloned());
        std::iter::once(self.cause.clone()).chain(below)
    }

    /// Returns the notes that explain the failure and advise what to do.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Creates the failure for a key that has occurred before in the same file, if keys must be
    /// unique.
    pub(crate) fn repeated_key(key: &[u8], place: String) -> Self {
        let key = String::from_utf8_lossy(key);
        let before = place.strip_suffix(&*key);
        let is_place = before.is_some_and(|before| before.is_empty() || before.ends_with('/'));
        Self::bad_input(format!("key {key:?} occurs twice"))
            .at(place)
            .with_note(match is_place {
                true => "the file is in the corpus twice: give it once",
                false => "--id path gives each document a unique key",
            })
            .with_note("--skip-bad keeps the first document with a key and skips the others")
    }

    /// The failure on one line, without notes.
    pub(crate) fn brief(&self) -> String {
        match &self.place {
            Some(place) => format!("{place}: {}", self.cause),
            None => self.cause.clone(),
        }
    }
}

/// Advises what to do about a disk that accepts no more data.
fn advice(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull => Some("make room there"),
        io::ErrorKind::QuotaExceeded => Some("make room there within the quota"),
        io::ErrorKind::FileTooLarge => Some("raise the limit on the size of files (ulimit -f)"),
        _ => None,
    }
}

/// The library's names of what options set.
const OPTIONS: [(&str, &str); 31] = [
    ("text", "--words, --chars or --code"),
    ("minhash values", "--minhash"),
    ("banding", "--bands and --rows"),
    ("bits", "--fingerprints"),
    ("dimensions", "--vector"),
    ("weights", "--tf-idf"),
    ("min_similarity", "--threshold"),
    ("cluster_threshold", "--cluster-threshold"),
    ("cluster_distance", "--cluster-distance"),
    ("max_distance", "--distance"),
    ("threshold", "--threshold"),
    ("distance", "--distance"),
    ("recall", "--recall"),
    ("bands", "--bands"),
    ("rows", "--rows"),
    ("values", "--minhash"),
    ("value_bits", "--value-bits"),
    ("probe_budget", "--budget"),
    ("max_bucket", "--max-bucket"),
    ("slice_documents", "--slice"),
    ("radius", "--within"),
    ("factor", "--factor"),
    ("near", "--nearest"),
    ("far", "--background"),
    ("min_recall", "--min-recall"),
    ("min_share", "--min-share"),
    ("exact", "--exact"),
    ("exact_bits", "--exact-bits"),
    ("since", "--since"),
    ("representative", "--representative"),
    ("sets_from", "--exact"),
];

/// Describes a wrong parameter in the words of the command line.
fn parameter_message(parameter: &str, found: &str, expected: &str) -> String {
    let option = OPTIONS.iter().find(|(name, _)| *name == parameter);
    let name = option.map_or(parameter, |(_, option)| option);
    let expected = expected
        .replace("accept_lower_recall", "--accept-lower-recall")
        .replace("a scan", "--scan");
    format!("{name}: found {found}, expected {expected}")
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = match &error {
            Error::InvalidParameter {
                parameter,
                found,
                expected,
            } => parameter_message(parameter, found, expected),
            error => error.to_string(),
        };
        let kind = match error {
            Error::ImportStopped { documents, source } => {
                return Self::from(*source).with_note(format!(
                    "committed or skipped before it: {documents} {} of the stream",
                    noun(documents, "document")
                ));
            }
            Error::Io { action, source } => return Self::io(action, &source),
            Error::InvalidParameter { .. } => FailureKind::Usage,
            Error::KeyExists { .. }
            | Error::SignatureMismatch { .. }
            | Error::OtherRecipe { .. }
            | Error::DamagedStream { .. }
            | Error::NotUtf8 { .. } => FailureKind::BadInput,
            Error::Locked { .. } | Error::OtherProtocol { .. } | Error::Busy => FailureKind::Locked,
            Error::Closed { ref reason } if reason.starts_with(OPENED_SINCE) => {
                return Self {
                    lacks_store: true,
                    ..Self::new(FailureKind::Locked, reason)
                }
                .with_note("give the command again");
            }
            Error::NotAStore { .. } | Error::NeedsRecovery { .. } => FailureKind::Corrupt,
            // One thread met damage in the storage engine, and another one `Closed`.
            Error::Closed { .. }
            | Error::Corrupt { .. }
            | Error::NewerFormat { .. }
            | Error::UnknownLayout { .. }
            | Error::UntriedEngine { .. }
            | Error::UnknownFeatures { .. }
            | Error::SelfTest { .. } => {
                return Self {
                    lacks_store: true,
                    ..Self::new(FailureKind::Corrupt, message)
                };
            }
            _ => FailureKind::Io,
        };
        Self::new(kind, message)
    }
}

impl From<SketchError> for Failure {
    fn from(error: SketchError) -> Self {
        Error::from(error).into()
    }
}

impl From<BadDocument> for Failure {
    fn from(bad: BadDocument) -> Self {
        let kind = if bad.is_unreadable {
            FailureKind::Io
        } else {
            FailureKind::BadInput
        };
        Self::new(kind, bad.reason).with_notes(bad.advice)
    }
}

impl From<CorpusError> for Failure {
    fn from(error: CorpusError) -> Self {
        match error {
            CorpusError::Bad { reason, advice } => Self::bad_input(reason).with_notes(advice),
            CorpusError::Io { reason, advice } => Self::refused(reason).with_notes(advice),
            other => Self::refused(other.to_string()),
        }
    }
}

/// The last panic. Panics are reported like every other failure: the library returns an error for
/// one of the storage engine, which damaged files can cause, and the panic's own text would only
/// precede that.
static LAST: Mutex<Option<String>> = Mutex::new(None);

/// Prevents panics from writing to standard error from now on; the last one is remembered.
pub(crate) fn silence_panics() {
    panic::set_hook(Box::new(|information| {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        // "panicked at PLACE:\nMESSAGE"
        *last = Some(information.to_string().replace('\n', " "));
    }));
}

/// Runs the tool. A panic that nothing else has handled becomes a failure.
pub(crate) fn contain_panics<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(Failure::internal()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_a_failure_that_names_its_place() {
        let hook = panic::take_hook();
        silence_panics();
        let contained: Result<()> = contain_panics(|| panic!("seven of nine"));
        panic::set_hook(hook);
        let failure = contained.unwrap_err();
        assert_eq!(failure.exit_code(), 4);
        let message = failure.brief();
        assert!(message.starts_with("internal error: "), "{message}");
        assert!(message.contains("failure.rs"), "{message}");
        assert!(message.contains("seven of nine"), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}
