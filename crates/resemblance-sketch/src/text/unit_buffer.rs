//! The normalised units of a text in one buffer, so that a shingle is a slice of it.

use std::cell::Cell;
use std::str::from_utf8;

use super::ascii::{AsciiBlock, AsciiForm, BLOCK_BYTES, COPY_BYTES, SEPARATOR};

/// Visited text is moved out of the buffer only when it is this long and longer than the rest, so
/// that each byte is moved a constant number of times on average.
const SLACK_BYTES: usize = 1 << 13;

/// The maximum size of a buffer that is kept for the next text.
const MAX_SPARE_BYTES: usize = 1 << 16;

thread_local! {
    /// The memory of this thread's last buffer. Allocating it again would cost more than reading a
    /// short text.
    static SPARE: Cell<(Vec<u8>, Vec<usize>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

/// The units of a text, each followed by one separator once it is complete. A unit is a word, a
/// token, or, where shingles are made of characters, a run between white space.
pub(super) struct UnitBuffer {
    /// UTF-8.
    text: Vec<u8>,
    /// The position in `text` from which nothing has been released.
    first: usize,
    /// The ends in `text` of the complete units that have not been released.
    ends: Vec<usize>,
    /// True if the last unit may still grow.
    is_open: bool,
}

/// A visitor's view of a buffer: text, or bytes if the visitor does not need text.
pub(crate) trait ShingleView {
    /// Views bytes that are UTF-8.
    fn new(utf8: &[u8]) -> &Self;

    /// Returns the part from `start` to `end`, both on character boundaries.
    fn slice(&self, start: usize, end: usize) -> &Self;

    /// Its bytes.
    fn bytes(&self) -> &[u8];
}

impl ShingleView for [u8] {
    #[inline]
    fn new(utf8: &[u8]) -> &Self {
        utf8
    }

    #[inline]
    fn slice(&self, start: usize, end: usize) -> &Self {
        known(self.get(start..end))
    }

    fn bytes(&self) -> &[u8] {
        self
    }
}

impl ShingleView for str {
    fn new(utf8: &[u8]) -> &Self {
        known(from_utf8(utf8).ok())
    }

    #[inline]
    fn slice(&self, start: usize, end: usize) -> &Self {
        known(self.get(start..end))
    }

    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// Returns a part of the text, which exists because only whole characters are pushed and released.
/// The inner loops leave no room for an error.
#[inline]
fn known<V: ?Sized>(part: Option<&V>) -> &V
where
    for<'a> &'a V: Default,
{
    debug_assert!(
        part.is_some(),
        "the bounds of a unit are not within the text"
    );
    part.unwrap_or_default()
}

impl UnitBuffer {
    pub(super) fn new() -> Self {
        let (text, ends) = SPARE.take();
        Self {
            text,
            first: 0,
            ends,
            is_open: false,
        }
    }

    /// Appends `c` to the last unit, or begins a unit with it.
    #[inline]
    pub(super) fn push(&mut self, c: char) {
        let mut utf8 = [0; 4];
        self.text
            .extend_from_slice(c.encode_utf8(&mut utf8).as_bytes());
        self.is_open = true;
    }

    /// Appends some characters to the last unit, or begins a unit with them.
    #[inline]
    pub(super) fn push_str(&mut self, part: &str) {
        self.text.extend_from_slice(part.as_bytes());
        self.is_open = true;
    }

    /// Appends a complete unit.
    #[cfg(feature = "languages")]
    pub(super) fn push_unit(&mut self, unit: &str) {
        self.push_str(unit);
        self.separate();
    }

    /// Completes the last unit.
    #[inline]
    pub(super) fn separate(&mut self) {
        if self.is_open {
            self.is_open = false;
            self.ends.push(self.text.len());
            self.text.push(SEPARATOR);
        }
    }

    /// Appends a run of ASCII, normalised.
    pub(super) fn push_ascii(&mut self, form: AsciiForm, run: &[u8]) {
        let mut length = self.text.len();
        // No byte becomes longer, and the last copy may write beyond the end of its unit.
        self.text.resize(length + run.len() + COPY_BYTES, SEPARATOR);
        let (blocks, rest) = run.as_chunks::<BLOCK_BYTES>();
        for block in blocks {
            length = self.write_block(length, &AsciiBlock::new(form, block), BLOCK_BYTES);
        }
        if !rest.is_empty() {
            let mut last = [SEPARATOR; BLOCK_BYTES];
            let (room, _) = last.split_at_mut(rest.len());
            room.copy_from_slice(rest);
            length = self.write_block(length, &AsciiBlock::new(form, &last), rest.len());
        }
        self.text.truncate(length);
    }

    /// Writes the units of a block of `block_bytes` from `length`, and returns where they end.
    #[inline]
    fn write_block(&mut self, mut length: usize, block: &AsciiBlock, block_bytes: usize) -> usize {
        let inside = block.inside;
        if self.is_open && inside & 1 == 0 {
            self.is_open = false;
            self.ends.push(length);
            // Overwrites what the copy of the unit wrote after it.
            if let Some(byte) = self.text.get_mut(length) {
                *byte = SEPARATOR;
            }
            length += 1;
        }
        // Two words of bits, so that the next unit can be found while this one is copied.
        let mut starts = inside & !(inside << 1);
        let mut stops = !inside & (inside << 1);
        while starts != 0 {
            let start = starts.trailing_zeros() as usize;
            // A unit that reaches the end of 64 bytes has no stop: it would be the 65th bit.
            let stop = stops.trailing_zeros() as usize;
            self.is_open = stop == block_bytes;
            self.copy_unit(length, block, start, stop);
            length += stop - start;
            if !self.is_open {
                // The separator was copied with the unit.
                self.ends.push(length);
                length += 1;
            }
            starts &= starts - 1;
            stops &= stops.wrapping_sub(1);
        }
        length
    }

    /// Copies the unit from `start` to `stop`, the byte after it, and possibly more.
    #[inline]
    fn copy_unit(&mut self, mut to: usize, block: &AsciiBlock, mut start: usize, stop: usize) {
        loop {
            let room = self.text.get_mut(to..);
            if let Some(room) = room.and_then(<[u8]>::first_chunk_mut) {
                *room = block.copy_at(start);
            }
            to += COPY_BYTES;
            start += COPY_BYTES;
            if start > stop {
                return;
            }
        }
    }

    /// The number of bytes in the buffer, including released units that have not been removed.
    pub(super) fn length(&self) -> usize {
        self.text.len()
    }

    /// Returns the bytes appended since the buffer had this length, unless shingles were visited
    /// since then.
    pub(super) fn since(&self, length: usize) -> Option<&[u8]> {
        self.text.get(length..)
    }

    /// The position at which the last unit ends, before the separator that may follow it.
    fn end(&self) -> usize {
        self.text.len() - usize::from(!self.is_open && !self.text.is_empty())
    }

    /// Visits each run of `size` complete units, and releases all but the last `size − 1` units.
    /// Returns whether it visited any. `size` is at least 1.
    pub(super) fn visit_units<V: ShingleView + ?Sized>(
        &mut self,
        size: usize,
        mut visit: impl FnMut(&V),
    ) -> bool {
        debug_assert!(size > 0);
        let text = V::new(known(self.text.get(self.first..)));
        let mut start = 0;
        let mut visited = 0;
        for (&first_end, &last_end) in self.ends.iter().zip(self.ends.iter().skip(size - 1)) {
            visit(text.slice(start, last_end - self.first));
            start = first_end + 1 - self.first;
            visited += 1;
        }
        self.ends.drain(..visited);
        self.release(self.first + start);
        visited > 0
    }

    /// Visits each run of `size` characters, the separators between units included, and releases all
    /// but the last `size − 1` characters. Returns whether it visited any.
    pub(super) fn visit_characters<V: ShingleView + ?Sized>(
        &mut self,
        size: usize,
        mut visit: impl FnMut(&V),
    ) -> bool {
        self.ends.clear();
        let bytes = self.rest_bytes();
        let text = V::new(bytes);
        let mut released_bytes = 0;
        if bytes.is_ascii() {
            let visited = (bytes.len() + 1).saturating_sub(size);
            for start in 0..visited {
                visit(text.slice(start, start + size));
            }
            released_bytes = visited;
        } else {
            let positions = bytes.iter().enumerate();
            // All bytes of a character but its first begin with the bits 10.
            let starts = positions.filter_map(|(at, byte)| (byte >> 6 != 0b10).then_some(at));
            let edges = starts.clone().chain([bytes.len()]);
            let ends = edges.clone().skip(size);
            for ((start, next), end) in starts.zip(edges.skip(1)).zip(ends) {
                visit(text.slice(start, end));
                released_bytes = next;
            }
        }
        self.release(self.first + released_bytes);
        released_bytes > 0
    }

    /// Returns true if all text has been released.
    pub(super) fn is_empty(&self) -> bool {
        self.rest_bytes().is_empty()
    }

    /// Returns all text that has not been released, without a separator at its end.
    pub(super) fn rest<V: ShingleView + ?Sized>(&self) -> &V {
        V::new(self.rest_bytes())
    }

    fn rest_bytes(&self) -> &[u8] {
        // If the buffer ends with a released separator, `first` is after it.
        <[u8]>::slice(&self.text, self.first.min(self.end()), self.end())
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

impl Drop for UnitBuffer {
    fn drop(&mut self) {
        let (mut text, mut ends) = (
            std::mem::take(&mut self.text),
            std::mem::take(&mut self.ends),
        );
        if text.capacity() + ends.capacity() * size_of::<usize>() <= MAX_SPARE_BYTES {
            text.clear();
            ends.clear();
            // A thread that ends has no next text.
            let _ = SPARE.try_with(|spare| spare.set((text, ends)));
        }
    }
}
