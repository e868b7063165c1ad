//! Shingles of consecutive words.

use std::collections::VecDeque;

use super::Tape;
use super::unicode;

/// Calls `visit` with each shingle of `size` words.
pub(super) fn for_each(size: usize, text: &str, visit: impl FnMut(&str)) {
    let mut window = Window {
        size,
        visit,
        tape: Tape::default(),
        lengths: VecDeque::with_capacity(size),
        begin: 0,
        open: false,
        any: false,
    };
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            window.begin_word();
            window.tape.push(c.to_ascii_lowercase());
        } else if c.is_ascii() {
            window.end_word();
        } else {
            window.push_not_ascii(c);
        }
    }
    window.finish();
}

/// The last words, joined by spaces: the complete ones and, if `open`, the beginning of one more.
struct Window<V> {
    size: usize,
    visit: V,
    tape: Tape,
    /// Bytes of each complete word.
    lengths: VecDeque<usize>,
    /// Where the open word begins in what the tape holds.
    begin: usize,
    open: bool,
    any: bool,
}

impl<V: FnMut(&str)> Window<V> {
    fn push_not_ascii(&mut self, c: char) {
        let (first, second) = unicode::lower_case(c);
        for lower in [Some(first), second].into_iter().flatten() {
            if unicode::is_alphanumeric(lower) {
                self.begin_word();
                self.tape.push(lower);
            } else {
                self.end_word();
            }
        }
    }

    #[inline]
    fn begin_word(&mut self) {
        if !self.open {
            self.open = true;
            if !self.lengths.is_empty() {
                self.tape.push(' ');
            }
            self.begin = self.tape.held().len();
        }
    }

    #[inline]
    fn end_word(&mut self) {
        if !self.open {
            return;
        }
        self.open = false;
        let held = self.tape.held();
        self.lengths.push_back(held.len() - self.begin);
        if self.lengths.len() == self.size {
            (self.visit)(held);
            self.any = true;
            if let Some(length) = self.lengths.pop_front() {
                self.tape.give_up(length + 1);
            }
        }
    }

    fn finish(mut self) {
        self.end_word();
        if !self.any && !self.lengths.is_empty() {
            (self.visit)(self.tape.held());
        }
    }
}
