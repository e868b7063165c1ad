//! The normalised units of a text in one buffer, so that a shingle is a slice of it.

use super::ascii::{AsciiTable, SEPARATOR};

/// Visited text is moved out of the buffer only once it is this long, and longer than what remains:
/// then each byte is moved a constant number of times on average.
const SLACK_BYTES: usize = 1 << 13;

/// Bytes of ASCII that are normalised at once: few enough that a position within the output, and the
/// position after its last byte, fit a byte.
const BLOCK_BYTES: usize = 255;

/// The units of a text, each followed by one separator once it is complete. A unit is a word, a
/// token, or, where shingles are made of characters, a run between white space.
pub(super) struct UnitBuffer {
    text: String,
    /// Position in `text` from which on nothing has been released.
    first: usize,
    /// Positions in `text` at which the complete units end that have not been released.
    ends: Vec<usize>,
    /// Whether the last unit may still grow.
    is_open: bool,
    block: AsciiBlock,
}

/// The normalised form of one block of ASCII. Kept between calls, because clearing it would cost more
/// than reading a short text.
struct AsciiBlock {
    bytes: [u8; 256],
    ends: [u8; 256],
}

impl UnitBuffer {
    pub(super) fn new() -> Self {
        Self {
            text: String::new(),
            first: 0,
            ends: Vec::new(),
            is_open: false,
            block: AsciiBlock {
                bytes: [0; 256],
                ends: [0; 256],
            },
        }
    }

    /// Appends `c` to the last unit, or begins a unit with it.
    #[inline]
    pub(super) fn push(&mut self, c: char) {
        self.text.push(c);
        self.is_open = true;
    }

    /// Appends a complete unit.
    #[cfg(feature = "languages")]
    pub(super) fn push_unit(&mut self, unit: &str) {
        self.text.push_str(unit);
        self.is_open = true;
        self.separate();
    }

    /// Completes the last unit.
    #[inline]
    pub(super) fn separate(&mut self) {
        if self.is_open {
            self.is_open = false;
            self.ends.push(self.text.len());
            self.text.push(char::from(SEPARATOR));
        }
    }

    /// Appends a run of ASCII, normalised by `table`.
    pub(super) fn push_ascii(&mut self, table: &AsciiTable, run: &[u8]) {
        for block in run.chunks(BLOCK_BYTES) {
            let mut open = usize::from(self.is_open);
            let (mut length, mut count) = (0_usize, 0_usize);
            // No branch depends on the text: every byte is written, and the next one overwrites it
            // unless it belongs to a unit or is the first separator after one.
            for &byte in block {
                // The table has an entry for each byte. Both counts grow by at most one a byte of a
                // block of 255, so the masks change nothing; they let the compiler drop the checks.
                let unit = table.get(usize::from(byte)).copied().unwrap_or(SEPARATOR);
                let is_inside = usize::from(unit != SEPARATOR);
                if let Some(slot) = self.block.bytes.get_mut(length & 255) {
                    *slot = unit;
                }
                if let Some(end) = self.block.ends.get_mut(count & 255) {
                    *end = length as u8;
                }
                count += open & !is_inside;
                length += open | is_inside;
                open = is_inside;
            }
            debug_assert!(count <= length && length <= BLOCK_BYTES);
            self.is_open = open == 1;
            self.append_block(length, count);
        }
    }

    /// Appends the first `length` bytes of the block, and its first `count` ends of units.
    fn append_block(&mut self, length: usize, count: usize) {
        let start = self.text.len();
        let ends = self.block.ends.iter().take(count);
        self.ends.extend(ends.map(|&end| start + usize::from(end)));
        let (bytes, _) = self.block.bytes.split_at(length);
        let text = std::str::from_utf8(bytes);
        debug_assert!(text.is_ok(), "a table maps ASCII to ASCII");
        self.text.push_str(text.unwrap_or_default());
    }

    /// The position at which the last unit ends, before the separator that may follow it.
    fn end(&self) -> usize {
        self.text.len() - usize::from(!self.is_open && !self.text.is_empty())
    }

    /// Visits each run of `size` complete units, and releases all but the last `size − 1` units.
    /// Returns whether it visited any. `size` is at least 1.
    pub(super) fn visit_units(&mut self, size: usize, mut visit: impl FnMut(&str)) -> bool {
        debug_assert!(size > 0);
        let mut start = self.first;
        let mut visited = 0;
        for (&first_end, &last_end) in self.ends.iter().zip(self.ends.iter().skip(size - 1)) {
            visit(slice(&self.text, start, last_end));
            start = first_end + 1;
            visited += 1;
        }
        self.ends.drain(..visited);
        self.release(start);
        visited > 0
    }

    /// Visits each run of `size` characters, the separators between units included, and releases all
    /// but the last `size − 1` characters. Returns whether it visited any.
    pub(super) fn visit_characters(&mut self, size: usize, mut visit: impl FnMut(&str)) -> bool {
        self.ends.clear();
        let text = self.rest();
        let mut released_bytes = 0;
        if text.is_ascii() {
            let visited = (text.len() + 1).saturating_sub(size);
            for start in 0..visited {
                visit(slice(text, start, start + size));
            }
            released_bytes = visited;
        } else {
            let starts = text.char_indices();
            let ends = text.char_indices().map(|(position, _)| position);
            let ends = ends.chain([text.len()]).skip(size);
            for ((start, c), end) in starts.zip(ends) {
                visit(slice(text, start, end));
                released_bytes = start + c.len_utf8();
            }
        }
        self.release(self.first + released_bytes);
        released_bytes > 0
    }

    /// All text that has not been released, without a separator at its end.
    pub(super) fn rest(&self) -> &str {
        slice(&self.text, self.first, self.end())
    }

    /// Releases the text before `first`.
    fn release(&mut self, first: usize) {
        self.first = first;
        if first >= SLACK_BYTES && first > self.text.len() / 2 {
            self.text.drain(..first);
            self.ends.iter_mut().for_each(|end| *end -= first);
            self.first = 0;
        }
    }
}

/// The text from `start` to `end`, both between two characters. Empty where the buffer ends with a
/// released separator, and `start` is after it.
fn slice(text: &str, start: usize, end: usize) -> &str {
    debug_assert!(start <= end || start == text.len(), "{start} to {end}");
    text.get(start..end).unwrap_or_default()
}
