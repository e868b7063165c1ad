//! What is read from a corpus before it is parsed, and what becomes of it.

use std::borrow::Cow;

/// One document's bytes as they stand in the source, with the line end if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorpusRecord {
    /// The number of the source.
    pub source: usize,
    /// The line, from 1; 0 for a text file.
    pub line: u64,
    /// True if a byte order mark stood before it; the mark is not part of `bytes` of a line.
    pub has_mark: bool,
    /// The line with its end, or the whole text file.
    pub bytes: Vec<u8>,
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTotals {
    /// Non-blank lines and text files.
    pub records: u64,
    /// Blank lines.
    pub blank: u64,
    /// Of all records in order: tells whether a second reading saw the same.
    pub checksum: u32,
}

/// A key and a text.
#[derive(Debug, PartialEq)]
pub struct CorpusDocument<'a> {
    /// The string or the decimal text of the integer in the line; of a text file its relative path.
    pub key: Cow<'a, [u8]>,
    /// The text, decoded.
    pub text: Cow<'a, str>,
}
