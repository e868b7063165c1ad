//! Why a verb stopped, and the exit code that tells it.

use std::fmt;
use std::io;

use resemblance::Error;

use crate::corpus::CorpusError;

/// The part of `--help` that documents the exit codes.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    nothing found (query, get, remove, pairs, clusters) or damage found (check),
       or documents lost (repair)
  2    usage: a wrong option or value
  3    bad input: a malformed document, a duplicate key, a damaged compressed file
  4    input or output: a file is missing, exists already, cannot be read or written; disk full
  5    the store is in use by another process
  6    the store is damaged, not a store, of a newer format, or needs repair
  130  interrupted (SIGINT); 143 terminated (SIGTERM); 129 hung up (SIGHUP)
A closed output pipe ends the tool quietly with 0.";

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// How a verb ended when nothing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// Nothing was found, or damage was: exit code 1.
    Nothing,
}

impl Outcome {
    pub(crate) fn found(found: bool) -> Self {
        if found { Self::Done } else { Self::Nothing }
    }
}

/// What stops a verb.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line asks for something impossible.
    Usage(String),
    /// A document, or a file that should hold documents, is not right.
    BadInput(String),
    /// The system refused something, or a file is missing or in the way.
    Io(String),
    /// Someone else has the store open.
    Locked(String),
    /// The store cannot be trusted or read.
    Corrupt(String),
    /// The same, by a sentence that does not name the store yet.
    Damaged(String),
    /// A signal, by its number, and what there is to say about where it came.
    Signal(usize, String),
    /// The reader of our output has gone: not an error.
    ClosedPipe,
}

impl Failure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::ClosedPipe => 0,
            Self::Usage(_) => 2,
            Self::BadInput(_) => 3,
            Self::Io(_) => 4,
            Self::Locked(_) => 5,
            Self::Corrupt(_) | Self::Damaged(_) => 6,
            Self::Signal(number, _) => u8::try_from(128 + number).unwrap_or(130),
        }
    }

    pub(crate) fn is_signal(&self) -> bool {
        matches!(self, Self::Signal(..))
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    pub(crate) fn bad_input(message: impl Into<String>) -> Self {
        Self::BadInput(message.into())
    }

    /// A failed system call; `action` says what was being done.
    pub(crate) fn io(action: impl fmt::Display, error: &io::Error) -> Self {
        Self::Io(format!("{action}: {error}{}", advice(error)))
    }

    /// A failed write to standard output.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::io("cannot write to standard output", error)
        }
    }

    /// A library error about a store that the message should name.
    pub(crate) fn store(name: impl fmt::Display, error: Error) -> Self {
        let name = name.to_string();
        match Self::from(error) {
            Self::Io(message) if !message.contains(&name) => Self::Io(format!("{name}: {message}")),
            other => other.in_store(name),
        }
    }

    /// The same, where a command that can be given again was writing to the store.
    pub(crate) fn unfinished(name: impl fmt::Display, error: Error) -> Self {
        match error {
            error @ Error::Io { .. } => {
                Self::store(name, error).with_note("nothing is lost; give the command again")
            }
            error => Self::store(name, error),
        }
    }

    /// The same failure, with the name of the store if that is still to be said.
    pub(crate) fn in_store(self, name: impl fmt::Display) -> Self {
        match self {
            Self::Damaged(message) => Self::Corrupt(format!("{name}: {message}")),
            other => other,
        }
    }

    /// A library error about one document at `place`: whatever is wrong with it is bad input.
    pub(crate) fn document(
        store: impl fmt::Display,
        place: impl fmt::Display,
        error: Error,
    ) -> Self {
        match error {
            Error::InvalidParameter { .. }
            | Error::KeyExists { .. }
            | Error::NotUtf8 { .. }
            | Error::SignatureMismatch { .. } => Self::BadInput(format!("{place}: {error}")),
            other => Self::store(store, other),
        }
    }

    /// The same failure with more to say.
    pub(crate) fn with_note(self, note: &str) -> Self {
        let add = |message: String| format!("{message}; {note}");
        match self {
            Self::Usage(message) => Self::Usage(add(message)),
            Self::BadInput(message) => Self::BadInput(add(message)),
            Self::Io(message) => Self::Io(add(message)),
            Self::Locked(message) => Self::Locked(add(message)),
            Self::Corrupt(message) => Self::Corrupt(add(message)),
            Self::Damaged(message) => Self::Damaged(add(message)),
            Self::Signal(number, message) => Self::Signal(number, add(message)),
            Self::ClosedPipe => Self::ClosedPipe,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message)
            | Self::BadInput(message)
            | Self::Io(message)
            | Self::Locked(message)
            | Self::Corrupt(message)
            | Self::Damaged(message) => f.write_str(message),
            Self::Signal(2, message) => write!(f, "interrupted{message}"),
            Self::Signal(number, message) => write!(f, "ended by signal {number}{message}"),
            Self::ClosedPipe => f.write_str("the output was closed"),
        }
    }
}

/// What to do about a disk that takes no more.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => "; make room there",
        io::ErrorKind::QuotaExceeded => "; make room there within the quota",
        io::ErrorKind::FileTooLarge => "; raise the limit on the size of files (ulimit -f)",
        _ => "",
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut message = error.to_string();
        if let Error::Io { source, .. } = &error {
            message.push_str(advice(source));
        }
        match error {
            Error::InvalidParameter { .. } => Self::Usage(message),
            Error::ImportStopped { documents, source } => Self::from(*source).with_note(&format!(
                "the first {documents} documents of the stream are dealt with and stay so"
            )),
            Error::KeyExists { .. }
            | Error::SignatureMismatch { .. }
            | Error::NotRebandable { .. }
            | Error::OtherRecipe { .. }
            | Error::DamagedStream { .. }
            | Error::NotUtf8 { .. } => Self::BadInput(message),
            Error::Locked { .. } | Error::Busy => Self::Locked(message),
            Error::NotAStore { .. } | Error::NeedsRecovery { .. } => Self::Corrupt(message),
            // one thread met damage in the storage engine, and another one this
            Error::Closed { .. } => Self::Damaged(message),
            Error::Corrupt { .. }
            | Error::NewerFormat { .. }
            | Error::UnknownLayout { .. }
            | Error::UntriedEngine { .. }
            | Error::UnknownFeatures { .. }
            | Error::SelfTest { .. } => Self::Damaged(message),
            _ => Self::Io(message),
        }
    }
}

impl From<CorpusError> for Failure {
    fn from(error: CorpusError) -> Self {
        match error {
            CorpusError::Bad(message) => Self::BadInput(message),
            CorpusError::Io(message) => Self::Io(message),
        }
    }
}
