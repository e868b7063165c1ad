//! Turns text into normalised units: normalization form, lower case, accents, separators.

use super::ascii::{AsciiForm, split_runs};
use super::normal::{NormalForm, Normaliser, composes, strip_accents};
use super::recipe::{ShingleUnit, Text};
use super::unicode::{self, is_settled};
use super::unit_buffer::UnitBuffer;

/// The minimum length of a run of ASCII to be read in blocks. A block has a fixed cost.
const MIN_RUN_BYTES: usize = 8;

/// Reads a text piece by piece into units, and applies the steps of a [`Text`] that precede stop
/// words.
pub(super) struct UnitReader {
    /// True if texts are normalised to Form C, in which most texts already are.
    composes: bool,
    normaliser: Normaliser,
    splitter: UnitSplitter,
}

impl UnitReader {
    pub(super) fn new(text: &Text) -> Self {
        let form = match text.nfkc {
            true => NormalForm::Compatible,
            false => NormalForm::Composed,
        };
        Self {
            composes: !text.nfkc,
            normaliser: Normaliser::new(form),
            splitter: UnitSplitter::new(text),
        }
    }

    /// Reads the next piece of the text.
    pub(super) fn read(&mut self, piece: &str) {
        if !self.composes {
            let splitter = &mut self.splitter;
            return self.normaliser.push(piece, |normal| splitter.split(normal));
        }
        let mut rest = piece;
        while !rest.is_empty() {
            let (ascii, other, after) = split_runs(rest);
            let is_last = after.is_empty();
            if !is_last && other.chars().all(|c| self.splitter.is_plain(c)) {
                // Most words consist of such letters only.
                self.read_ascii(ascii);
                if !other.is_empty() {
                    self.flush();
                    self.splitter.units.push_str(other);
                }
            } else {
                self.read_doubtful(ascii, other, is_last);
            }
            rest = after;
        }
    }

    /// Reads a run of ASCII and the non-ASCII characters after it, some of which may still compose
    /// with others.
    fn read_doubtful(&mut self, ascii: &str, other: &str, is_last: bool) {
        // A mark may follow the last character, here or in the next piece.
        let may_compose = !other.chars().next().is_some_and(is_settled);
        match ascii.chars().next_back().filter(|_| may_compose) {
            Some(last) => {
                let (certain, _) = ascii.split_at(ascii.len() - 1);
                self.read_ascii(certain);
                self.flush();
                self.hold(last);
            }
            None => self.read_ascii(ascii),
        }
        self.read_other(other, is_last);
    }

    /// Returns true if `c` is never normalised together with the character before it.
    pub(super) fn begins_sequence(&self, c: char) -> bool {
        self.normaliser.begins_sequence(c)
    }

    /// Ends the text, and completes its last unit.
    pub(super) fn finish(&mut self) {
        self.flush();
        self.splitter.units.separate();
    }

    /// Splits the characters that were held back, if any. No mark follows them.
    #[inline]
    pub(super) fn flush(&mut self) {
        if !self.normaliser.is_empty() {
            let splitter = &mut self.splitter;
            self.normaliser.flush(&mut |normal| splitter.split(normal));
        }
    }

    /// Holds a character back.
    fn hold(&mut self, c: char) {
        let splitter = &mut self.splitter;
        self.normaliser
            .push_char(c, &mut |normal| splitter.split(normal));
    }

    fn read_ascii(&mut self, ascii: &str) {
        if !ascii.is_empty() {
            self.flush();
            self.splitter.split_ascii(ascii);
        }
    }

    /// Reads non-ASCII characters, after which the piece ends or an ASCII character follows. A
    /// settled character, and a mark after it that does not compose, are split unchanged once the
    /// next character is known to be settled too.
    fn read_other(&mut self, other: &str, is_end: bool) {
        let (mut last, mut mark) = (None, None);
        for c in other.chars() {
            let is_plain = self.splitter.is_plain(c);
            if is_plain || is_settled(c) {
                self.flush();
                if let Some((before, was_plain)) = last.replace((c, is_plain)) {
                    self.splitter.push_plain(before, was_plain);
                }
                if let Some(mark) = mark.take() {
                    self.splitter.push(mark);
                }
            } else if last.is_some() && mark.is_none() && !composes(c) {
                mark = Some(c);
            } else {
                let before = [last.take().map(|(last, _)| last), mark.take()];
                before
                    .into_iter()
                    .flatten()
                    .chain([c])
                    .for_each(|c| self.hold(c));
            }
        }
        let held = [last.map(|(last, _)| last), mark].into_iter().flatten();
        if is_end {
            held.for_each(|c| self.hold(c));
        } else {
            held.for_each(|c| self.splitter.push(c));
        }
    }

    /// The units read so far.
    pub(super) fn units(&self) -> &UnitBuffer {
        &self.splitter.units
    }

    /// The units read so far, for a visitor that releases them.
    pub(super) fn units_mut(&mut self) -> &mut UnitBuffer {
        &mut self.splitter.units
    }
}

/// Cuts text into units, and lowers their case unless it is kept.
struct UnitSplitter {
    unit: ShingleUnit,
    keeps_case: bool,
    strips_accents: bool,
    removes_spaces: bool,
    /// The form of ASCII; `None` if punctuation marks are units, or if nothing separates units.
    ascii_form: Option<AsciiForm>,
    units: UnitBuffer,
}

impl UnitSplitter {
    fn new(text: &Text) -> Self {
        let is_simple = text.unit != ShingleUnit::CodeTokens && !text.removes_spaces;
        let ascii_form = AsciiForm {
            are_words: matches!(text.unit, ShingleUnit::Words | ShingleUnit::Auto),
            keeps_case: text.keeps_case,
        };
        Self {
            ascii_form: is_simple.then_some(ascii_form),
            unit: text.unit,
            keeps_case: text.keeps_case || text.unit == ShingleUnit::CodeTokens,
            strips_accents: text.strip_accents,
            removes_spaces: text.removes_spaces,
            units: UnitBuffer::new(),
        }
    }

    fn split(&mut self, piece: &str) {
        let mut rest = piece;
        while !rest.is_empty() {
            let (ascii, other, after) = split_runs(rest);
            self.split_ascii(ascii);
            other.chars().for_each(|c| self.push(c));
            rest = after;
        }
    }

    fn split_ascii(&mut self, ascii: &str) {
        match self.ascii_form {
            Some(form) if ascii.len() >= MIN_RUN_BYTES => {
                self.units.push_ascii(form, ascii.as_bytes());
            }
            _ => ascii.chars().for_each(|c| self.push(c)),
        }
    }

    /// Returns true only if no step changes `c`.
    #[inline]
    fn is_plain(&self, c: char) -> bool {
        unicode::is_plain(c) && !self.strips_accents && !self.is_alone(c)
    }

    /// Returns true if the letter `c` is a unit by itself.
    #[inline]
    fn is_alone(&self, c: char) -> bool {
        self.unit == ShingleUnit::Auto && unicode::is_without_spaces(c)
    }

    #[inline]
    fn push_plain(&mut self, c: char, is_plain: bool) {
        if is_plain {
            self.units.push(c);
        } else {
            self.push(c);
        }
    }

    #[inline]
    fn push(&mut self, c: char) {
        let (first, second) = match self.keeps_case {
            true => (c, None),
            false => unicode::lower_case(c),
        };
        self.push_cased(first);
        if let Some(second) = second {
            self.push_cased(second);
        }
    }

    #[inline]
    fn push_cased(&mut self, c: char) {
        if self.strips_accents {
            strip_accents(c, |c| self.push_normal(c));
        } else {
            self.push_normal(c);
        }
    }

    #[inline]
    fn push_normal(&mut self, c: char) {
        match self.unit {
            ShingleUnit::Auto if unicode::is_alphanumeric(c) && self.is_alone(c) => {
                self.units.separate();
                self.units.push(c);
                self.units.separate();
            }
            ShingleUnit::Words | ShingleUnit::Auto if unicode::is_alphanumeric(c) => {
                self.units.push(c)
            }
            ShingleUnit::Words | ShingleUnit::Auto => self.units.separate(),
            ShingleUnit::Characters if !unicode::is_white_space(c) => self.units.push(c),
            ShingleUnit::Characters if self.removes_spaces => {}
            ShingleUnit::Characters => self.units.separate(),
            ShingleUnit::CodeTokens if c == '_' || unicode::is_alphanumeric(c) => {
                self.units.push(c);
            }
            ShingleUnit::CodeTokens => {
                self.units.separate();
                if !unicode::is_white_space(c) {
                    self.units.push(c);
                    self.units.separate();
                }
            }
        }
    }
}
