//! The error type of the crate.

use std::path::{Path, PathBuf};

use redb_verified::EngineError;

use resemblance_sketch::SketchError;
use resemblance_sketch::schema::noun;

use crate::types::DocumentId;

/// An error of this crate. Variants are grouped by what the caller can do about them.
///
/// Errors of the underlying storage engine are boxed, so that its version is not part of this
/// crate's interface.
///
/// ```
/// use resemblance::{Error, MinHash, Schema};
/// let schema = Schema::builder().minhash(MinHash::new(128).threshold(1.5));
/// let refused = schema.build().map_err(Error::from);
/// assert!(matches!(refused, Err(Error::InvalidParameter { parameter: "threshold", .. })));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A broken invariant of this crate: a bug, not a fault of the file or the caller. The
    /// transaction is rolled back and nothing of it is committed. Please report the error.
    #[error(
        "internal error: {what} ({file}:{line}); nothing was committed; please report this as a bug"
    )]
    Bug {
        /// The condition that is broken.
        what: String,
        /// The source file of the check.
        file: &'static str,
        /// Its line.
        line: u32,
    },
    /// A parameter is out of range. Correct the call.
    #[error("{parameter}: found {found}, expected {expected}")]
    InvalidParameter {
        /// The name of the parameter.
        parameter: &'static str,
        /// The value that was given.
        found: String,
        /// The values that are accepted.
        expected: String,
    },
    /// `insert` found the key in the store. Use `upsert` to replace the document.
    #[error(
        "key {:?} is already in the store as document {id}; upsert replaces it",
        String::from_utf8_lossy(key)
    )]
    KeyExists {
        /// The key.
        key: Vec<u8>,
        /// The document with this key.
        id: DocumentId,
    },
    /// An offline build or a sample received a key twice. A build creates no store in this case.
    /// Leave one of the documents out, or build with `DuplicateKeys::KeepFirst`.
    #[error(
        "key {:?} of document {first} is repeated by document {second}; keys must be unique",
        String::from_utf8_lossy(key)
    )]
    KeyTwice {
        /// The key.
        key: Vec<u8>,
        /// The first document with this key.
        first: DocumentId,
        /// The next document with this key.
        second: DocumentId,
    },
    /// A signature does not fit the schema, or two signatures cannot be compared.
    #[error("signature, {part}: found {found}, expected {expected}")]
    SignatureMismatch {
        /// The part of the signature, or of the recipe that made it, in which they differ: "MinHash
        /// values", "SimHash fingerprint", "band codes"; "text", "seed", "MinHash", "SimHash",
        /// "empty documents", "weights"; "recipe" where it cannot be determined.
        part: &'static str,
        /// A description of the signature.
        found: String,
        /// The signature that the schema, or the other signature, requires.
        expected: String,
    },
    /// `create` found a file that exists. The file has not changed.
    #[error("{} already exists; open it, or choose another name", path.display())]
    AlreadyExists {
        /// The file.
        path: PathBuf,
    },
    /// `open` found no file. Opening never creates one.
    #[error("{} does not exist; create it first", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a store. It has not changed.
    #[error("{} is not a resemblance store: {reason}", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// Why it was refused.
        reason: String,
    },
    /// A newer release wrote the store, in a format that this release cannot read.
    #[error(
        "the store has format version {found}, and this release reads up to {supported}; use a newer \
         release"
    )]
    NewerFormat {
        /// The oldest format version that can read the file.
        found: u16,
        /// The newest format version that this release reads.
        supported: u16,
    },
    /// The store requires a feature that this release does not know.
    #[error(
        "the store uses feature flags {flags:#x} that this release does not know; use a newer release"
    )]
    UnknownFeatures {
        /// The unknown flags.
        flags: u64,
    },
    /// The pages of the file have a layout that this release does not know, because a newer release
    /// wrote it. The file was not changed and may be intact. Use a newer release.
    #[error(
        "the pages of the store are laid out in a way that this release does not know: {found}; use a \
         newer release"
    )]
    UnknownLayout {
        /// A description of what was found and what was expected.
        found: String,
    },
    /// This build is linked with a release of redb whose page layout this crate does not know. No
    /// file was changed. Build it with a release of redb with which it was tested, such as the one
    /// in its `Cargo.lock`.
    #[error(
        "the redb of this build lays out pages in a way that this crate does not know: {detail}; build it \
         with the redb of its Cargo.lock"
    )]
    UntriedEngine {
        /// A description of the difference.
        detail: String,
    },
    /// The file is damaged. Run `check`. Restore a copy, or use `repair` to make a new store from
    /// what can be read.
    #[error("damaged: {place}: {detail}")]
    Corrupt {
        /// The table and key, or the part of the file.
        place: String,
        /// A description of what was found there and what was expected.
        detail: String,
    },
    /// This build computes different hashes from the build that made the store, so its matches
    /// would be wrong.
    #[error("self-test: {detail}; this build hashes differently from the one that made the store")]
    SelfTest {
        /// The value that differs.
        detail: String,
    },
    /// A stream to import is damaged or truncated, or is not a stream. Documents before the damage
    /// can be imported. Export the rest again.
    #[error("the stream is damaged after {documents} {}: {detail}", noun(*.documents, "document"))]
    DamagedStream {
        /// The number of complete documents before the damage.
        documents: u64,
        /// A description of what was found and what was expected.
        detail: String,
    },
    /// The documents of an exported stream were made with a different recipe from those of the
    /// store, so their signatures cannot be compared. Import them into a store with the same recipe.
    #[error(
        "the stream was made with a different recipe: {part}: found {found}, expected {expected}, as in \
         the store"
    )]
    OtherRecipe {
        /// The part of the recipe that differs.
        part: &'static str,
        /// Its value in the stream.
        found: String,
        /// Its value in the store.
        expected: String,
    },
    /// An import ended before the end of its stream. Committed documents remain in the store.
    /// Import the rest again.
    #[error("{source}; committed or skipped before it: {documents} {} of the stream", noun(*.documents, "document"))]
    ImportStopped {
        /// The number of documents, from the start of the stream, that have been imported and need
        /// not be sent again.
        documents: u64,
        /// The error that stopped it.
        #[source]
        source: Box<Error>,
    },
    /// The schema requires a feature that is not part of this build. Build the crate with the
    /// feature.
    #[error("{needed_by}: requires the feature `{feature}`, which is not part of this build")]
    MissingFeature {
        /// The part of the schema.
        needed_by: String,
        /// The name of the feature.
        feature: &'static str,
    },
    /// Bytes that should be text are not UTF-8.
    #[error("the text is not UTF-8 at byte {offset_bytes}; convert it, or leave it out")]
    NotUtf8 {
        /// The offset of the first invalid byte, or of the start of a truncated sequence.
        offset_bytes: u64,
    },
    /// Another process, or another handle of this one, kept the file open for longer than
    /// [`StoreOptions::wait`](crate::StoreOptions::wait), in a way that excludes this one.
    #[error("{} is in use by {holder}", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
        /// The process that has the file open: its program and process number, if the system shows
        /// them.
        holder: String,
    },
    /// Another process that was built with another release of this crate or of redb has the file
    /// open, and shares files in a different way. Nothing was read or written.
    #[error(
        "{} is open in a process that was built with another release, which shares files differently; \
         close it first",
        path.display()
    )]
    OtherProtocol {
        /// The file.
        path: PathBuf,
    },
    /// The file system has no locks, so nothing would prevent two processes from writing at once,
    /// which loses documents. Nothing was written. Keep the store on another file system, or see
    /// [`StoreOptions::without_lock`](crate::StoreOptions::without_lock).
    #[error(
        "{} cannot be locked: its file system has no locks, and two writers at once would damage the \
         store; keep it on another file system, or open it without a lock if you are sure that nobody \
         else does",
        path.display()
    )]
    LocksUnsupported {
        /// The file.
        path: PathBuf,
    },
    /// The handle, snapshot, transaction, ticket or iterator was made in another process, of which
    /// this one is a fork. Nothing was read or written. Open the store after the fork, in the
    /// process that uses it. Sketchers work in any process.
    #[error("the store was opened before a fork, in another process; open it in this one")]
    Forked,
    /// The file was not closed properly, and must be opened for writing once before it can be read.
    /// Readers of this release recover such a file in memory and do not return this error.
    #[error("{} was not closed properly; open it once for writing, which repairs it", path.display())]
    NeedsRecovery {
        /// The file.
        path: PathBuf,
    },
    /// The progress callback of a long operation stopped it. Each operation documents which work is
    /// kept. Everything else is undone.
    #[error("{work} was stopped by its progress callback")]
    Stopped {
        /// The operation, such as "the backup".
        work: &'static str,
    },
    /// The handle was opened for reading only.
    #[error("the store was opened read-only")]
    ReadOnly,
    /// A write transaction is open. This thread began or last changed it, so waiting for it would
    /// never end. For `try_begin_write`, it may belong to any thread.
    #[error("a write transaction is open; commit or drop it first")]
    Busy,
    /// The queue of changes that wait for a commit is full. Wait for outstanding tickets, or use a
    /// call that waits.
    #[error("the write queue is full ({waiting_bytes} bytes); wait for outstanding tickets")]
    QueueFull {
        /// The maximum number of bytes of waiting changes.
        waiting_bytes: usize,
    },
    /// An earlier failure closed this handle for writing or for everything, or ended a transaction or
    /// a build. Open the store again, or begin again.
    #[error("{reason}")]
    Closed {
        /// The earlier failure, and what to do.
        reason: String,
    },
    /// The operating system refused an operation on a file.
    #[error("{action}: {source}")]
    Io {
        /// A description of the action that failed, with the file's name where it is known.
        action: String,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// An error of the storage engine that has no variant here.
    #[error("storage: {0}")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Bug { what, file, line } => Self::Bug { what, file, line },
            EngineError::AlreadyExists { path } => Self::AlreadyExists { path },
            EngineError::NotFound { path } => Self::NotFound { path },
            EngineError::Foreign { path, reason } => Self::NotAStore { path, reason },
            EngineError::UnknownLayout { found } => Self::UnknownLayout { found },
            EngineError::UntriedEngine { detail } => Self::UntriedEngine { detail },
            EngineError::Corrupt { place, detail } => Self::Corrupt { place, detail },
            EngineError::Locked { path, holder } => Self::Locked { path, holder },
            EngineError::OtherProtocol { path } => Self::OtherProtocol { path },
            EngineError::LocksUnsupported { path } => Self::LocksUnsupported { path },
            EngineError::Forked => Self::Forked,
            EngineError::NeedsRecovery { path } => Self::NeedsRecovery { path },
            EngineError::ReadOnly => Self::ReadOnly,
            closed @ EngineError::Closed { .. } => Self::Closed {
                reason: closed.to_string(),
            },
            EngineError::Io { action, source } => Self::Io { action, source },
            EngineError::Storage(source) => Self::Storage(source),
            other => Self::Storage(Box::new(other)),
        }
    }
}

impl Error {
    /// Returns the error for a parameter that is out of range.
    #[doc(hidden)]
    pub fn invalid(parameter: &'static str, found: impl ToString, expected: impl ToString) -> Self {
        Self::InvalidParameter {
            parameter,
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }

    pub(crate) fn corrupt(place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Corrupt {
            place: place.into(),
            detail: detail.into(),
        }
    }

    /// The error of an operation on a file, such as "reading".
    pub(crate) fn io(action: &str, path: &Path, source: std::io::Error) -> Self {
        EngineError::io(action, path, source).into()
    }

    /// Returns a copy of the error for another caller that it stopped.
    pub(crate) fn repeated(&self) -> Self {
        match self {
            Self::Corrupt { place, detail } => Self::corrupt(place, detail),
            Self::Bug { what, file, line } => Self::Bug {
                what: what.clone(),
                file,
                line: *line,
            },
            Self::Closed { reason } => Self::Closed {
                reason: reason.clone(),
            },
            Self::Io { action, source } => Self::Io {
                action: action.clone(),
                source: match source.raw_os_error() {
                    Some(code) => std::io::Error::from_raw_os_error(code),
                    None => std::io::Error::new(source.kind(), source.to_string()),
                },
            },
            Self::UnknownLayout { found } => Self::UnknownLayout {
                found: found.clone(),
            },
            Self::UntriedEngine { detail } => Self::UntriedEngine {
                detail: detail.clone(),
            },
            Self::InvalidParameter {
                parameter,
                found,
                expected,
            } => Self::invalid(parameter, found, expected.clone()),
            Self::Locked { path, holder } => Self::Locked {
                path: path.clone(),
                holder: holder.clone(),
            },
            Self::OtherProtocol { path } => Self::OtherProtocol { path: path.clone() },
            Self::LocksUnsupported { path } => Self::LocksUnsupported { path: path.clone() },
            Self::NeedsRecovery { path } => Self::NeedsRecovery { path: path.clone() },
            Self::ReadOnly => Self::ReadOnly,
            Self::Busy => Self::Busy,
            Self::Forked => Self::Forked,
            Self::Storage(source) => Self::Storage(source.to_string().into()),
            other => Self::Storage(other.to_string().into()),
        }
    }

    pub(crate) fn signature(
        part: &'static str,
        found: impl ToString,
        expected: impl ToString,
    ) -> Self {
        Self::SignatureMismatch {
            part,
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }
}

impl From<SketchError> for Error {
    /// Converts each variant to the one with the same name.
    fn from(error: SketchError) -> Self {
        match error {
            SketchError::Bug { what, file, line } => Self::Bug { what, file, line },
            SketchError::InvalidParameter {
                parameter,
                found,
                expected,
            } => Self::invalid(parameter, found, expected),
            SketchError::SignatureMismatch {
                part,
                found,
                expected,
            } => Self::signature(part, found, expected),
            SketchError::NewerFormat { found, supported } => Self::NewerFormat { found, supported },
            SketchError::Corrupt { place, detail } => Self::Corrupt { place, detail },
            SketchError::SelfTest { detail } => Self::SelfTest { detail },
            SketchError::MissingFeature { needed_by, feature } => {
                Self::MissingFeature { needed_by, feature }
            }
            SketchError::NotUtf8 { offset_bytes } => Self::NotUtf8 { offset_bytes },
            SketchError::Io { action, source } => Self::Io { action, source },
            other => Self::Storage(Box::new(other)),
        }
    }
}

/// A result whose error is [`Error`].
///
/// ```
/// use resemblance::{Document, Result, Store};
/// # use resemblance::{MinHash, Schema, Text};
/// fn insert_line(store: &Store, line: &str) -> Result<bool> {
///     let signature = store.sketch_text(line)?;
///     Ok(store.insert_if_new(Document::without_key(), &signature)?.is_new())
/// }
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// assert!(insert_line(&store, "some text or other")?);
/// # Ok::<(), resemblance::Error>(())
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_error_keeps_the_code_of_the_system() {
        let sources = [
            std::io::Error::from_raw_os_error(28),
            std::io::Error::other("not of the system"),
        ];
        for source in sources {
            let (code, text) = (source.raw_os_error(), source.to_string());
            let error = Error::io("writing", Path::new("s.rsm"), source);
            let repeated = error.repeated();
            assert_eq!(repeated.to_string(), error.to_string());
            let Error::Io { source, .. } = repeated else {
                panic!("another error: {repeated}");
            };
            assert_eq!((source.raw_os_error(), source.to_string()), (code, text));
        }
    }
}
