//! A document that cannot be used.

use std::fmt;
use std::io;
use std::str::Utf8Error;

use serde::{Deserialize, Serialize};

/// The fault of a record, and advice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BadDocument {
    /// A description of the fault.
    pub reason: String,
    /// Advice, one sentence in each entry.
    pub advice: Vec<String>,
    /// True if the system failed to read the record, false if its content is wrong.
    pub is_unreadable: bool,
    /// True if the text is missing: its field is absent or null.
    #[serde(default)]
    pub lacks_text: bool,
}

impl BadDocument {
    /// Creates the error for a record whose content is wrong.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            ..Self::default()
        }
    }

    /// Creates the error for bytes that are not UTF-8, with advice if they may be of one of the
    /// encodings of a byte for each character.
    pub fn of_utf8(bytes: &[u8], error: &Utf8Error) -> Self {
        let place = error.valid_up_to();
        let bad = Self::new(format!("invalid UTF-8 at byte {}", place + 1));
        let Some(byte) = bytes.get(place).filter(|_| error.error_len().is_some()) else {
            // The last character is cut off.
            return bad;
        };
        let meaning = match byte {
            0xa0.. => format!(" is {:?} in Latin-1 and Windows-1252", char::from(*byte)),
            _ => String::from(" is a character in Windows-1252"),
        };
        bad.with_advice(format!(
            "{byte:02X}{meaning}: if the file is in that encoding, \
             iconv -f WINDOWS-1252 -t UTF-8 FILE > FILE.utf8 converts it"
        ))
    }

    /// Creates the error for a field, or a part of one, with an unexpected value.
    pub(crate) fn field(name: &str, found: impl fmt::Display, expected: impl fmt::Display) -> Self {
        Self::new(format!("field {name:?} is {found}, expected {expected}"))
    }

    /// Creates the error for a record that exceeds the maximum length.
    pub(crate) fn too_long(what: &str, max_bytes: u64) -> Self {
        let bad = Self::new(format!("the {what} is longer than {max_bytes} bytes"));
        bad.with_advice("--max-line SIZE sets the limit")
    }

    /// Creates the error for a source that requires a feature which is not part of this build.
    pub(crate) fn requires(what: &str, feature: &str) -> Self {
        let bad = Self::new(format!(
            "{what} requires the feature `{feature}`, which is not part of this build"
        ));
        bad.with_advice(builds_in(feature))
    }

    /// Creates the error for a dangling link.
    pub(crate) fn of_link(error: &io::Error) -> Self {
        Self {
            is_unreadable: true,
            ..Self::new(match error.kind() {
                io::ErrorKind::NotFound => "a link whose target does not exist".to_owned(),
                _ => format!("cannot be read: {}", io_reason(error)),
            })
        }
    }

    /// Returns the same error with advice on what to do about it.
    #[must_use]
    pub(crate) fn with_advice(mut self, sentence: impl Into<String>) -> Self {
        self.advice.push(sentence.into());
        self
    }
}

/// Returns the advice to build the tool with a feature.
pub(crate) fn builds_in(feature: &str) -> String {
    format!(
        "cargo install --locked --path cli --features {feature} builds it in; \
         add the features that you had"
    )
}

impl From<String> for BadDocument {
    fn from(reason: String) -> Self {
        Self::new(reason)
    }
}

impl fmt::Display for BadDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for BadDocument {}

/// Returns the reason of a system error without its number: "permission denied".
pub fn io_reason(error: &io::Error) -> String {
    let text = error.to_string();
    let Some((reason, _)) = text.split_once(" (os error ") else {
        return text;
    };
    let mut rest = reason.chars();
    let first = rest.next().into_iter().flat_map(char::to_lowercase);
    first.chain(rest.by_ref()).collect()
}
