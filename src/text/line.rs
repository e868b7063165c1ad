//! The normalised units of a text, one after the other, so that a shingle is a slice.

/// What a unit's bytes become, or [`SEPARATOR`]; of ASCII only.
pub(crate) type Table = [u8; 256];

/// Stands between units. No unit of a [`Table`] is one.
const SEPARATOR: u8 = b' ';

/// ASCII letters and digits in lower case; everything else separates.
pub(crate) static WORDS: Table = table(false);

/// ASCII in lower case; only White_Space separates.
pub(crate) static CHARACTERS: Table = table(true);

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn table(has_punctuation: bool) -> Table {
    let mut table = [SEPARATOR; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        let is_white_space = matches!(byte, b' ' | 0x09..=0x0d);
        if byte.is_ascii_alphanumeric() || has_punctuation && !is_white_space {
            table[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    table
}

/// What is given up at the front before it is moved out, unless what is left is longer: so that
/// the cost of a byte stays constant.
const SLACK_BYTES: usize = 1 << 13;

/// ASCII that is normalised at once. A place in what it becomes is a byte, a place after it too.
const BLOCK_BYTES: usize = 255;

/// Units, each followed by one space once it is complete. A unit is a word, a token, or, for shingles
/// of scalar values, what stands between white space.
pub(crate) struct Line {
    text: String,
    /// Where in `text` what is not given up begins.
    first: usize,
    /// Where in `text` the complete units that are not given up end.
    ends: Vec<usize>,
    /// Whether the last unit goes on.
    is_open: bool,
    block: Block,
}

/// What a block of ASCII becomes. Kept, as it is larger than many texts.
struct Block {
    bytes: [u8; 256],
    ends: [u8; 256],
}

impl Line {
    pub(crate) fn new() -> Self {
        Self {
            text: String::new(),
            first: 0,
            ends: Vec::new(),
            is_open: false,
            block: Block {
                bytes: [0; 256],
                ends: [0; 256],
            },
        }
    }

    /// Appends to the last unit, or begins one.
    #[inline]
    pub(crate) fn push(&mut self, c: char) {
        self.text.push(c);
        self.is_open = true;
    }

    /// Appends a complete unit.
    #[cfg(feature = "languages")]
    pub(crate) fn push_unit(&mut self, unit: &str) {
        self.text.push_str(unit);
        self.is_open = true;
        self.separate();
    }

    /// Completes the last unit.
    #[inline]
    pub(crate) fn separate(&mut self) {
        if self.is_open {
            self.is_open = false;
            self.ends.push(self.text.len());
            self.text.push(char::from(SEPARATOR));
        }
    }

    /// Appends ASCII as `table` has it.
    pub(crate) fn push_ascii(&mut self, table: &Table, run: &[u8]) {
        for block in run.chunks(BLOCK_BYTES) {
            let mut open = usize::from(self.is_open);
            let (mut length, mut count) = (0_usize, 0_usize);
            // Without a branch that depends on the text: each byte is written, and counts only if
            // it is of a unit or the first that separates.
            for &byte in block {
                let unit = table.get(usize::from(byte)).copied().unwrap_or(SEPARATOR);
                let inside = usize::from(unit != SEPARATOR);
                if let Some(place) = self.block.bytes.get_mut(length & 255) {
                    *place = unit;
                }
                if let Some(end) = self.block.ends.get_mut(count & 255) {
                    *end = length as u8;
                }
                count += open & !inside;
                length += open | inside;
                open = inside;
            }
            self.is_open = open == 1;
            self.append_block(length, count);
        }
    }

    /// Appends the first `length` bytes of the block, with `count` ends of units.
    fn append_block(&mut self, length: usize, count: usize) {
        let bytes = self.block.bytes.get(..length).unwrap_or_default();
        let ends = self.block.ends.get(..count).unwrap_or_default();
        let start = self.text.len();
        self.ends
            .extend(ends.iter().map(|&end| start + usize::from(end)));
        self.text
            .push_str(std::str::from_utf8(bytes).unwrap_or_default());
    }

    /// Where the last unit ends: without the space that may follow.
    fn limit(&self) -> usize {
        self.text.len() - usize::from(!self.is_open && !self.text.is_empty())
    }

    /// Visits each run of `size` complete units and gives up all but the last `size − 1`. False if
    /// there was none.
    pub(crate) fn visit_units(&mut self, size: usize, mut visit: impl FnMut(&str)) -> bool {
        let mut start = self.first;
        let last_ends = self.ends.get(size.saturating_sub(1)..).unwrap_or_default();
        for (&first_end, &last_end) in self.ends.iter().zip(last_ends) {
            visit(self.text.get(start..last_end).unwrap_or_default());
            start = first_end + 1;
        }
        let visited = last_ends.len();
        self.ends.drain(..visited);
        self.give_up(start);
        visited > 0
    }

    /// Visits each run of `size` scalar values, the spaces between units among them, and gives up
    /// all but the last `size − 1`. False if there was none.
    pub(crate) fn visit_characters(&mut self, size: usize, mut visit: impl FnMut(&str)) -> bool {
        self.ends.clear();
        let text = self.text.get(self.first..self.limit()).unwrap_or_default();
        let mut given_up = 0;
        if text.is_ascii() {
            let visited = (text.len() + 1).saturating_sub(size);
            for start in 0..visited {
                visit(text.get(start..start + size).unwrap_or_default());
            }
            given_up = visited;
        } else {
            let mut starts = text.char_indices();
            let ends = text.char_indices().map(|(place, _)| place);
            for end in ends.chain([text.len()]).skip(size) {
                if let Some((start, c)) = starts.next() {
                    visit(text.get(start..end).unwrap_or_default());
                    given_up = start + c.len_utf8();
                }
            }
        }
        self.give_up(self.first + given_up);
        given_up > 0
    }

    /// All that is not given up, its units complete.
    pub(crate) fn rest(&self) -> &str {
        self.text.get(self.first..self.limit()).unwrap_or_default()
    }

    fn give_up(&mut self, first: usize) {
        self.first = first;
        if first >= SLACK_BYTES && first > self.text.len() / 2 {
            self.text.drain(..first);
            self.ends.iter_mut().for_each(|end| *end -= first);
            self.first = 0;
        }
    }
}
