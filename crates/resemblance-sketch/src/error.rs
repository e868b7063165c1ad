//! The errors of this crate.

/// An error of this crate. Variants are grouped by what the caller can do about them.
///
/// ```
/// use resemblance_sketch::{MinHash, Schema, SketchError};
/// let refused = Schema::builder().minhash(MinHash::new(128).threshold(1.5)).build();
/// assert!(matches!(refused, Err(SketchError::InvalidParameter { parameter: "threshold", .. })));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SketchError {
    /// A broken invariant: a bug in this crate, not a mistake of the caller. Please report it.
    #[error("internal error: {what} ({file}:{line}); please report this as a bug")]
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
    /// A signature does not fit the schema, or two signatures cannot be compared.
    #[error("signature, {part}: found {found}, expected {expected}")]
    SignatureMismatch {
        /// The part of the signature, or of the recipe that made it, in which they differ: "MinHash
        /// values", "SimHash fingerprint", "band codes"; "text", "seed", "MinHash", "SimHash",
        /// "empty documents", "weights"; "recipe" where it cannot be determined.
        part: &'static str,
        /// The signature's own value.
        found: String,
        /// The value that the schema, or the other signature, requires.
        expected: String,
    },
    /// A newer release wrote the schema bytes, in a version that this release cannot read.
    #[error(
        "the schema bytes have version {found}, and this release reads up to {supported}; use a newer \
         release"
    )]
    NewerFormat {
        /// The version of the bytes.
        found: u16,
        /// The newest version that this release reads.
        supported: u16,
    },
    /// Bytes that were read, such as saved document frequencies, are damaged.
    #[error("damaged: {place}: {detail}")]
    Corrupt {
        /// The part that is damaged.
        place: String,
        /// The value that was found there and the one that was expected.
        detail: String,
    },
    /// This build computes different hashes from the build that made the schema, so its matches
    /// would be wrong.
    #[error("self-test: {detail}; this build hashes differently from the one that made the store")]
    SelfTest {
        /// The value that differs.
        detail: String,
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
    /// A reader or a writer that the caller passed failed.
    #[error("{action}: {source}")]
    Io {
        /// The action that failed, such as reading a text.
        action: String,
        /// The error of the reader or writer.
        #[source]
        source: std::io::Error,
    },
}

impl SketchError {
    pub(crate) fn invalid(
        parameter: &'static str,
        found: impl ToString,
        expected: impl ToString,
    ) -> Self {
        Self::InvalidParameter {
            parameter,
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }

    /// Returns [`InvalidParameter`](Self::InvalidParameter) unless the condition holds.
    pub(crate) fn require(
        holds: bool,
        parameter: &'static str,
        found: impl ToString,
        expected: impl ToString,
    ) -> Result<()> {
        match holds {
            true => Ok(()),
            false => Err(Self::invalid(parameter, found, expected)),
        }
    }

    pub(crate) fn io(action: &str, source: std::io::Error) -> Self {
        Self::Io {
            action: action.to_owned(),
            source,
        }
    }

    pub(crate) fn corrupt(place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Corrupt {
            place: place.into(),
            detail: detail.into(),
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

/// A result whose error is [`SketchError`].
pub type Result<T, E = SketchError> = std::result::Result<T, E>;
