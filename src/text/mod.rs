//! Text to shingles: lower-casing, then n-grams of words or of scalar values. Frozen.

mod characters;
#[cfg(test)]
mod tests;
mod unicode;
mod unicode_17;
mod words;

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

pub use unicode::UNICODE_VERSION;

/// The lengths of shingle that a schema accepts.
const LENGTHS: RangeInclusive<u16> = 1..=256;

/// How a text becomes a set of shingles.
///
/// Both kinds first lower-case the text: every scalar value is replaced by its own full lower-case
/// mapping, one at a time and without context (so a capital sigma is always `σ`). There is no
/// other normalisation: no NFC or NFKC, no stripping of accents or markup. The Unicode data are
/// this crate's own, of version [`UNICODE_VERSION`], whatever the compiler's: a store keeps finding
/// what it found after an upgrade.
///
/// - `Words(n)`: words are the maximal runs of alphanumeric scalar values (as
///   [`char::is_alphanumeric`]); everything else separates, `_` included. A shingle is `n`
///   consecutive words joined by one space. A text of 1 to `n` words has exactly one shingle, all
///   its words joined. A script without spaces between words makes few and long words: prefer
///   characters there.
/// - `Characters(n)`: each maximal run of Unicode White_Space becomes one space and is removed at
///   both ends; punctuation stays. A shingle is `n` consecutive scalar values. A text of 1 to `n`
///   scalar values has exactly one shingle, itself.
///
/// `n` is 1 to 256; a schema refuses any other. Few words make distinct texts share shingles, many
/// words let one changed word spoil many: 5 words or 9 characters are usual for duplicates of pages
/// (Broder, *On the resemblance and containment of documents*, 1997).
///
/// ```
/// use resemblance::Text;
///
/// let mut shingles = Vec::new();
/// Text::words(2).for_each_shingle("The cat -- the CAT!", |s| shingles.push(s.to_owned()));
/// assert_eq!(shingles, ["the cat", "cat the", "the cat"]);
/// assert_eq!(Text::characters(9).to_string(), "characters 9");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Text {
    /// Runs of this many consecutive words, 1 to 256.
    Words(u16),
    /// Runs of this many consecutive Unicode scalar values, 1 to 256.
    Characters(u16),
}

impl Text {
    /// Shingles of `n` consecutive words, 1 to 256.
    #[must_use]
    pub const fn words(n: u16) -> Self {
        Self::Words(n)
    }

    /// Shingles of `n` consecutive Unicode scalar values, 1 to 256.
    #[must_use]
    pub const fn characters(n: u16) -> Self {
        Self::Characters(n)
    }

    /// Calls `visit` with each shingle, in text order and with repeats.
    ///
    /// Reads the text once; memory is a few shingles, whatever the length of the text. A length of
    /// 0, which schemas refuse, has no shingles.
    ///
    /// ```
    /// use resemblance::Text;
    ///
    /// let mut shingles = Vec::new();
    /// Text::characters(3).for_each_shingle(" A\t\nBC ", |s| shingles.push(s.to_owned()));
    /// assert_eq!(shingles, ["a b", " bc"]);
    /// ```
    pub fn for_each_shingle(&self, text: &str, visit: impl FnMut(&str)) {
        match *self {
            Self::Words(0) | Self::Characters(0) => {}
            Self::Words(n) => words::for_each(usize::from(n), text, visit),
            Self::Characters(n) => characters::for_each(usize::from(n), text, visit),
        }
    }

    /// Checks the length.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if it is not 1 to 256.
    ///
    /// ```
    /// use resemblance::Text;
    /// assert!(Text::words(256).validate().is_ok());
    /// assert!(Text::words(0).validate().is_err());
    /// ```
    pub fn validate(&self) -> Result<()> {
        let (Self::Words(n) | Self::Characters(n)) = *self;
        if LENGTHS.contains(&n) {
            return Ok(());
        }
        Err(Error::invalid("text", self, "a length of 1 to 256"))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(n) => write!(f, "words {n}"),
            Self::Characters(n) => write!(f, "characters {n}"),
        }
    }
}

/// Text that is appended at the end and given up at the front; what is given up is moved out of
/// the buffer in large pieces only, so that the cost of a byte stays constant.
#[derive(Default)]
struct Tape {
    buffer: String,
    start: usize,
}

impl Tape {
    /// What is given up before it is moved out, unless what is left is longer.
    const SLACK_BYTES: usize = 4096;

    /// What was appended and not given up.
    #[inline]
    fn held(&self) -> &str {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    #[inline]
    fn push(&mut self, c: char) {
        self.buffer.push(c);
    }

    /// Gives up this many bytes, at most all; they must end where a scalar value does.
    #[inline]
    fn give_up(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.buffer.len());
        if self.start >= Self::SLACK_BYTES && self.start > self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
    }
}
