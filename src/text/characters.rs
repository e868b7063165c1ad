//! Shingles of consecutive Unicode scalar values.

use super::Tape;
use super::unicode;

/// Calls `visit` with each shingle of `size` scalar values.
pub(super) fn for_each(size: usize, text: &str, visit: impl FnMut(&str)) {
    let mut window = Window {
        size,
        visit,
        tape: Tape::default(),
        held: 0,
        any: false,
    };
    let mut began = false;
    let mut space = false;
    for c in text.chars() {
        if unicode::is_white_space(c) {
            space = began;
            continue;
        }
        began = true;
        if space {
            space = false;
            window.push(' ');
        }
        let (first, second) = unicode::lower_case(c);
        window.push(first);
        if let Some(second) = second {
            window.push(second);
        }
    }
    window.finish();
}

/// The last `held` scalar values, fewer than `size` between two calls.
struct Window<V> {
    size: usize,
    visit: V,
    tape: Tape,
    held: usize,
    any: bool,
}

impl<V: FnMut(&str)> Window<V> {
    #[inline]
    fn push(&mut self, c: char) {
        self.tape.push(c);
        self.held += 1;
        if self.held == self.size {
            let shingle = self.tape.held();
            (self.visit)(shingle);
            let first = shingle.chars().next().map_or(0, char::len_utf8);
            self.tape.give_up(first);
            self.held -= 1;
            self.any = true;
        }
    }

    fn finish(mut self) {
        if !self.any && self.held > 0 {
            (self.visit)(self.tape.held());
        }
    }
}
