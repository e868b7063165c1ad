//! Normalization Form KC of a text that comes in pieces, and letters without accents.
//!
//! What is assigned in one version of Unicode is normalised in the same way by all later ones (the
//! Normalization Stability Policy); what is not, is never touched here. So the data of any later
//! version give the same texts.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{
    canonical_combining_class, decompose_canonical, decompose_compatible,
};
use unicode_normalization::{IsNormalized, is_nfc_quick, is_nfkc_quick};

use crate::text::data::ASSIGNED;
use crate::text::shingler::ascii_prefix_bytes;
use crate::text::unicode;

/// Held back before it is normalised, where it could be earlier.
const BATCH_BYTES: usize = 256;

/// The most scalar values of a sequence that are normalised together. Frozen.
pub(crate) const LONGEST_SEQUENCE: usize = 1024;

fn is_assigned(c: char) -> bool {
    unicode::is_in(&ASSIGNED, c)
}

/// Whether nothing before `c` is normalised together with it: its decomposition begins with a starter
/// that composes with nothing before (Unicode Standard Annex 15, section 9).
fn begins_sequence(c: char) -> bool {
    let mut first = None;
    decompose_compatible(c, |part| {
        first.get_or_insert(part);
    });
    let first = first.unwrap_or(c);
    canonical_combining_class(first) == 0
        && is_nfc_quick(std::iter::once(first)) == IsNormalized::Yes
}

/// The last sequences of the text, as what follows may belong to them.
#[derive(Default)]
pub(crate) struct Nfkc {
    held: String,
    /// Scalar values since the last one that begins a sequence, that one included.
    sequence: usize,
    normal: String,
}

impl Nfkc {
    /// Calls `visit` with what is normal of the text so far.
    pub(crate) fn push(&mut self, piece: &str, mut visit: impl FnMut(&str)) {
        let mut rest = piece;
        while !rest.is_empty() {
            let (ascii, after) = rest.split_at(ascii_prefix_bytes(rest.as_bytes()));
            // All ASCII begins a sequence; only the last may go on.
            if let Some(last) = ascii.chars().next_back() {
                self.flush(&mut visit);
                visit(ascii.get(..ascii.len() - 1).unwrap_or_default());
                self.held.push(last);
                self.sequence = 1;
            }
            let other_bytes = after.bytes().position(|byte| byte.is_ascii());
            let (other, after) = after.split_at(other_bytes.unwrap_or(after.len()));
            other.chars().for_each(|c| self.push_char(c, &mut visit));
            rest = after;
        }
    }

    fn push_char(&mut self, c: char, visit: &mut impl FnMut(&str)) {
        if !is_assigned(c) {
            self.flush(visit);
            visit(c.encode_utf8(&mut [0; 4]));
            return;
        }
        if begins_sequence(c) {
            self.sequence = 0;
            if self.held.len() >= BATCH_BYTES {
                self.flush(visit);
            }
        } else if self.sequence == LONGEST_SEQUENCE {
            self.flush(visit);
        }
        self.held.push(c);
        self.sequence += 1;
    }

    /// Normalises what is held, as if the text ended here.
    pub(crate) fn flush(&mut self, visit: &mut impl FnMut(&str)) {
        self.sequence = 0;
        if is_nfkc_quick(self.held.chars()) == IsNormalized::Yes {
            visit(&self.held);
        } else {
            self.normal.clear();
            self.normal.extend(self.held.nfkc());
            visit(&self.normal);
        }
        self.held.clear();
    }
}

/// Of the blocks of combining diacritical marks.
fn is_accent(c: char) -> bool {
    matches!(
        c,
        '\u{300}'..='\u{36f}'
            | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{fe20}'..='\u{fe2f}'
    )
}

/// Calls `visit` with `c`, or, if its canonical decomposition has accents, with the rest of that.
pub(crate) fn strip_accents(c: char, mut visit: impl FnMut(char)) {
    let mut has_accent = false;
    if !c.is_ascii() && is_assigned(c) {
        decompose_canonical(c, |part| has_accent |= is_accent(part));
    }
    if !has_accent {
        return visit(c);
    }
    decompose_canonical(c, |part| {
        if !is_accent(part) {
            visit(part);
        }
    });
}
