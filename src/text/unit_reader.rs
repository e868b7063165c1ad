//! Text to normalised units: Normalization Form KC, lower case, accents, separators.

use super::ascii::{AsciiForm, split_runs};
#[cfg(feature = "languages")]
use super::normal::{Nfkc, strip_accents};
use super::recipe::{ShingleUnit, Text};
use super::unicode;
use super::unit_buffer::UnitBuffer;

/// Shorter runs of ASCII are read character by character: a block has a fixed cost.
const MIN_RUN_BYTES: usize = 8;

/// Reads a text piece by piece into units, and does the steps of a [`Text`] before stop words.
pub(super) struct UnitReader {
    #[cfg(feature = "languages")]
    nfkc: Option<Nfkc>,
    splitter: UnitSplitter,
}

impl UnitReader {
    pub(super) fn new(text: &Text) -> Self {
        Self {
            #[cfg(feature = "languages")]
            nfkc: text.nfkc.then(Nfkc::default),
            splitter: UnitSplitter {
                unit: text.unit,
                #[cfg(feature = "languages")]
                strips_accents: text.strip_accents,
                units: UnitBuffer::new(),
            },
        }
    }

    /// Reads the next piece of the text.
    pub(super) fn read(&mut self, piece: &str) {
        #[cfg(feature = "languages")]
        if let Some(nfkc) = &mut self.nfkc {
            nfkc.push(piece, |normal| self.splitter.split(normal));
            return;
        }
        self.splitter.split(piece);
    }

    /// Ends the text, and completes its last unit.
    pub(super) fn finish(&mut self) {
        #[cfg(feature = "languages")]
        if let Some(nfkc) = &mut self.nfkc {
            nfkc.flush(&mut |normal| self.splitter.split(normal));
        }
        self.splitter.units.separate();
    }

    /// The units read so far.
    pub(super) fn units(&self) -> &UnitBuffer {
        &self.splitter.units
    }

    /// The units read so far, to visit and to release.
    pub(super) fn units_mut(&mut self) -> &mut UnitBuffer {
        &mut self.splitter.units
    }
}

/// Cuts text into units, in lower case.
struct UnitSplitter {
    unit: ShingleUnit,
    #[cfg(feature = "languages")]
    strips_accents: bool,
    units: UnitBuffer,
}

impl UnitSplitter {
    fn split(&mut self, piece: &str) {
        let form = self.ascii_form();
        let mut rest = piece;
        while !rest.is_empty() {
            let (ascii, other, after) = split_runs(rest);
            match form {
                Some(form) if ascii.len() >= MIN_RUN_BYTES => {
                    self.units.push_ascii(form, ascii.as_bytes());
                }
                _ => ascii.chars().for_each(|c| self.push(c)),
            }
            other.chars().for_each(|c| self.push(c));
            rest = after;
        }
    }

    /// Code has none: its case is kept, and its punctuation marks are units.
    fn ascii_form(&self) -> Option<AsciiForm> {
        match self.unit {
            ShingleUnit::Words => Some(AsciiForm::Words),
            ShingleUnit::Characters => Some(AsciiForm::Characters),
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
            ShingleUnit::Words if unicode::is_alphanumeric(c) => self.units.push(c),
            ShingleUnit::Words => self.units.separate(),
            ShingleUnit::Characters if unicode::is_white_space(c) => self.units.separate(),
            ShingleUnit::Characters => self.units.push(c),
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
