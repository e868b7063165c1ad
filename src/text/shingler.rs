//! Shingles of a text that comes in pieces.

#[cfg(feature = "languages")]
use crate::text::filter::Filter;
use crate::text::line::{Line, Table};
#[cfg(feature = "languages")]
use crate::text::normal::{Nfkc, strip_accents};
use crate::text::recipe::{ShingleUnit, Text};
use crate::text::{line, unicode};

/// The text that is read before its shingles are visited.
const STRIDE_BYTES: usize = 1 << 12;

/// Shorter runs of ASCII are read one by one.
const LEAST_RUN_BYTES: usize = 8;

/// The shingles of a text that comes in pieces, cut anywhere between two scalar values: the same as
/// [`Text::for_each_shingle`] visits of the whole.
///
/// Memory is a few kilobytes and the last shingle: it grows with the longest shingle (a text of one
/// endless word is one shingle), not with the text.
///
/// ```
/// use resemblance::Text;
///
/// let mut shingles = Vec::new();
/// let mut shingler = Text::words(2).shingler()?;
/// for piece in ["The c", "at ", "s", "at."] {
///     shingler.push(piece, |s| shingles.push(s.to_owned()));
/// }
/// shingler.finish(|s| shingles.push(s.to_owned()));
/// assert_eq!(shingles, ["the cat", "cat sat"]);
/// # Ok::<(), resemblance::Error>(())
/// ```
pub struct Shingler {
    size: usize,
    reader: Reader,
    #[cfg(feature = "languages")]
    nfkc: Option<Nfkc>,
    #[cfg(feature = "languages")]
    filter: Option<Filter>,
    any: bool,
}

impl Shingler {
    pub(crate) fn of_valid(text: Text) -> Self {
        Self {
            size: text.length.into(),
            reader: Reader {
                unit: text.unit,
                #[cfg(feature = "languages")]
                strips_accents: text.strip_accents,
                line: Line::new(),
            },
            #[cfg(feature = "languages")]
            nfkc: text.nfkc.then(Nfkc::default),
            #[cfg(feature = "languages")]
            filter: Filter::new(&text),
            any: false,
        }
    }

    /// Reads the next piece and calls `visit` with each shingle that is complete with it.
    pub fn push(&mut self, piece: &str, mut visit: impl FnMut(&str)) {
        let mut rest = piece;
        while !rest.is_empty() {
            let (stride, after) = rest.split_at(rest.floor_char_boundary(STRIDE_BYTES));
            self.read(stride);
            self.visit(&mut visit);
            rest = after;
        }
    }

    /// Ends the text and calls `visit` with the shingles that are left.
    pub fn finish(mut self, mut visit: impl FnMut(&str)) {
        self.read_end();
        self.reader.line.separate();
        self.visit(&mut visit);
        let rest = self.last_line().rest();
        if !self.any && !rest.is_empty() {
            visit(rest);
        }
    }

    #[cfg(feature = "languages")]
    fn read(&mut self, piece: &str) {
        match &mut self.nfkc {
            Some(nfkc) => nfkc.push(piece, |normal| self.reader.read(normal)),
            None => self.reader.read(piece),
        }
    }

    #[cfg(not(feature = "languages"))]
    fn read(&mut self, piece: &str) {
        self.reader.read(piece);
    }

    fn read_end(&mut self) {
        #[cfg(feature = "languages")]
        if let Some(nfkc) = &mut self.nfkc {
            nfkc.flush(&mut |normal| self.reader.read(normal));
        }
    }

    fn visit(&mut self, visit: impl FnMut(&str)) {
        #[cfg(feature = "languages")]
        if let Some(filter) = &mut self.filter {
            filter.take(&mut self.reader.line);
            self.any |= filter.line.visit_units(self.size, visit);
            return;
        }
        let line = &mut self.reader.line;
        self.any |= match self.reader.unit {
            ShingleUnit::Characters => line.visit_characters(self.size, visit),
            ShingleUnit::Words | ShingleUnit::CodeTokens => line.visit_units(self.size, visit),
        };
    }

    /// The line whose slices are shingles.
    fn last_line(&self) -> &Line {
        #[cfg(feature = "languages")]
        if let Some(filter) = &self.filter {
            return &filter.line;
        }
        &self.reader.line
    }
}

/// Cuts text into units.
struct Reader {
    unit: ShingleUnit,
    #[cfg(feature = "languages")]
    strips_accents: bool,
    line: Line,
}

impl Reader {
    fn read(&mut self, piece: &str) {
        let table = self.table();
        let mut rest = piece;
        while !rest.is_empty() {
            let (ascii, after) = rest.split_at(ascii_prefix_bytes(rest.as_bytes()));
            match table {
                Some(table) if ascii.len() >= LEAST_RUN_BYTES => {
                    self.line.push_ascii(table, ascii.as_bytes());
                }
                _ => ascii.chars().for_each(|c| self.push(c)),
            }
            let other_bytes = after.bytes().position(|byte| byte.is_ascii());
            let (other, after) = after.split_at(other_bytes.unwrap_or(after.len()));
            other.chars().for_each(|c| self.push(c));
            rest = after;
        }
    }

    fn table(&self) -> Option<&'static Table> {
        match self.unit {
            ShingleUnit::Words => Some(&line::WORDS),
            ShingleUnit::Characters => Some(&line::CHARACTERS),
            ShingleUnit::CodeTokens => None,
        }
    }

    #[inline]
    fn push(&mut self, c: char) {
        let (first, second) = match self.unit {
            ShingleUnit::CodeTokens => (c, None),
            ShingleUnit::Words | ShingleUnit::Characters => unicode::lower_case(c),
        };
        self.push_lower(first);
        if let Some(second) = second {
            self.push_lower(second);
        }
    }

    #[inline]
    fn push_lower(&mut self, c: char) {
        #[cfg(feature = "languages")]
        if self.strips_accents {
            strip_accents(c, |c| self.push_normal(c));
            return;
        }
        self.push_normal(c);
    }

    #[inline]
    fn push_normal(&mut self, c: char) {
        match self.unit {
            ShingleUnit::Words if unicode::is_alphanumeric(c) => self.line.push(c),
            ShingleUnit::Words => self.line.separate(),
            ShingleUnit::Characters if unicode::is_white_space(c) => self.line.separate(),
            ShingleUnit::Characters => self.line.push(c),
            ShingleUnit::CodeTokens if c == '_' || unicode::is_alphanumeric(c) => {
                self.line.push(c);
            }
            ShingleUnit::CodeTokens => {
                self.line.separate();
                if !unicode::is_white_space(c) {
                    self.line.push(c);
                    self.line.separate();
                }
            }
        }
    }
}

/// How many bytes at the beginning are ASCII.
pub(crate) fn ascii_prefix_bytes(bytes: &[u8]) -> usize {
    const HIGH: u128 = u128::from_le_bytes([0x80; 16]);
    let (chunks, rest) = bytes.as_chunks::<16>();
    for (number, chunk) in chunks.iter().enumerate() {
        let high = u128::from_le_bytes(*chunk) & HIGH;
        if high != 0 {
            return number * 16 + high.trailing_zeros() as usize / 8;
        }
    }
    let after = rest.iter().position(|byte| !byte.is_ascii());
    bytes.len() - rest.len() + after.unwrap_or(rest.len())
}
