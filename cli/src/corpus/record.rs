//! What is read from a corpus before it is parsed, and what becomes of it.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

use super::bad_document::BadDocument;
use super::content::Content;

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
    pub bytes: Bytes,
    /// Why it was not read: then it has no bytes.
    pub problem: Option<BadDocument>,
}

impl CorpusRecord {
    pub(super) fn problem(source: usize, line: u64, problem: BadDocument) -> Self {
        Self {
            source,
            line,
            problem: Some(problem),
            ..Self::default()
        }
    }

    pub(super) fn is_blank(&self) -> bool {
        self.problem.is_none() && self.bytes.trim_ascii().is_empty()
    }
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTotals {
    /// Non-blank lines and text files.
    pub records: u64,
    /// Blank lines.
    pub blank: u64,
    /// Files read as JSON Lines.
    pub line_files: u64,
    /// The non-blank lines of these.
    pub line_documents: u64,
    /// Files read as one text each.
    pub text_files: u64,
    /// Of all records in order: tells whether a second reading saw the same.
    pub checksum: u32,
}

/// How the files were read: `2 files as JSON Lines (6 documents), 1 file as one text each`.
impl fmt::Display for ReadTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |count: u64, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        if self.line_files > 0 || self.text_files == 0 {
            let files = counted(self.line_files, "file");
            let documents = counted(self.line_documents, "document");
            write!(f, "{files} as JSON Lines ({documents})")?;
        }
        match (self.line_files, self.text_files) {
            (_, 0) => Ok(()),
            (0, texts) => write!(f, "{} as one text each", counted(texts, "file")),
            (_, texts) => write!(f, ", {} as one text each", counted(texts, "file")),
        }
    }
}

/// A key and a text, or what stands in its place, and what is kept beside them.
#[derive(Debug, PartialEq)]
pub struct CorpusDocument<'a> {
    /// The string or the decimal text of the number in the line; else made of the path and the line.
    pub key: Cow<'a, [u8]>,
    /// The key is the id that stands in the line: other files may have it too.
    pub has_own_id: bool,
    /// The text, decoded, or features, or a signature.
    pub content: Content<'a>,
    /// The stamp, 0 if none is asked for.
    pub stamp: u64,
    /// The payload, empty if none is asked for.
    pub payload: Cow<'a, [u8]>,
    /// The score; `None` where none is asked for, or there is none.
    pub score: Option<f64>,
    /// True if nothing with a word in it is left of the text: see [`TextTrims`](super::TextTrims).
    pub is_emptied: bool,
}
