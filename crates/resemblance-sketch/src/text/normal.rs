//! Normalises a text that is read in pieces to Form C or KC, and strips accents.
//!
//! Once a scalar value is assigned, all later versions of Unicode normalise it in the same way (the
//! Normalization Stability Policy). Scalar values that Unicode 17 does not assign are never changed
//! here. The data of any later version therefore give the same texts.

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_canonical, decompose_compatible};
use unicode_normalization::{IsNormalized, is_nfc_quick, is_nfkc_quick};

use super::ascii::split_runs;
use super::data::ASSIGNED;
use super::unicode::{self, BasicPlane, is_settled};

/// The number of bytes of complete sequences that are collected and then normalised together.
const BATCH_BYTES: usize = 256;

/// The length of the longest sequence that is normalised as a whole, in scalar values. Frozen.
pub(super) const MAX_SEQUENCE_CHARS: usize = 1024;

/// The scalar values whose NFC_Quick_Check is not Yes. They are computed once in each process.
static PLANE_COMPOSING: LazyLock<Box<BasicPlane>> = LazyLock::new(|| {
    let mut plane = [0; 1024];
    for (page, word) in (0_u32..).zip(&mut plane) {
        for bit in 0..64 {
            let c = char::from_u32(page << 6 | bit).filter(|c| !is_settled(*c));
            let composes = c.is_some_and(|c| !is_composed_alone(c));
            *word |= u64::from(composes) << bit;
        }
    }
    Box::new(plane)
});

fn is_composed_alone(c: char) -> bool {
    is_nfc_quick(std::iter::once(c)) == IsNormalized::Yes
}

fn is_assigned(c: char) -> bool {
    c.is_ascii() || unicode::is_in(&ASSIGNED, c)
}

/// Returns true if a character that may still change can compose with one before it.
pub(super) fn composes(c: char) -> bool {
    let composing = unicode::in_plane(&PLANE_COMPOSING, c);
    composing.unwrap_or_else(|| !is_composed_alone(c))
}

/// The normalization form of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NormalForm {
    /// Normalization Form C.
    Composed,
    /// Normalization Form KC.
    Compatible,
}

impl NormalForm {
    /// Returns true if `c` is never normalised together with the character before it. Its
    /// decomposition begins with a starter that does not compose with anything before it (Unicode
    /// Standard Annex 15, section 9).
    fn begins_sequence(self, c: char) -> bool {
        if self == Self::Composed {
            return is_settled(c);
        }
        let mut first = None;
        decompose_compatible(c, |part| {
            first.get_or_insert(part);
        });
        is_settled(first.unwrap_or(c))
    }
}

/// Normalises a text piece by piece. It holds back the last sequences, because the next piece may
/// continue them.
pub(super) struct Normaliser {
    form: NormalForm,
    held: String,
    /// The length of the last sequence in `held`, in scalar values.
    sequence_chars: usize,
    normal: String,
}

impl Normaliser {
    pub(super) fn new(form: NormalForm) -> Self {
        Self {
            form,
            held: String::new(),
            sequence_chars: 0,
            normal: String::new(),
        }
    }

    /// Adds a piece, and calls `visit` with the text whose normal form is certain.
    pub(super) fn push(&mut self, piece: &str, mut visit: impl FnMut(&str)) {
        let mut rest = piece;
        while !rest.is_empty() {
            let (ascii, other, after) = split_runs(rest);
            // Each ASCII character begins a sequence and is in normal form. Only the last one may
            // compose with a mark that follows.
            let mut certain = ascii.chars();
            if let Some(last) = certain.next_back() {
                self.flush(&mut visit);
                visit(certain.as_str());
                self.held.push(last);
                self.sequence_chars = 1;
            }
            other.chars().for_each(|c| self.push_char(c, &mut visit));
            rest = after;
        }
    }

    /// Returns true if `c` is never normalised together with the character before it.
    pub(super) fn begins_sequence(&self, c: char) -> bool {
        !is_assigned(c) || self.form.begins_sequence(c)
    }

    /// Returns true if no text is held back.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Adds a character, and calls `visit` as [`push`](Self::push) does.
    pub(super) fn push_char(&mut self, c: char, visit: &mut impl FnMut(&str)) {
        if !is_assigned(c) {
            self.flush(visit);
            visit(c.encode_utf8(&mut [0; 4]));
            return;
        }
        if self.form.begins_sequence(c) {
            self.sequence_chars = 0;
            if self.held.len() >= BATCH_BYTES {
                self.flush(visit);
            }
        } else if self.sequence_chars == MAX_SEQUENCE_CHARS {
            self.flush(visit);
        }
        self.held.push(c);
        self.sequence_chars += 1;
    }

    /// Calls `visit` with the normal form of the held-back text, as if the text ended here.
    pub(super) fn flush(&mut self, visit: &mut impl FnMut(&str)) {
        self.sequence_chars = 0;
        if self.held.len() <= 1 || self.is_normal() {
            visit(&self.held);
        } else {
            self.normal.clear();
            match self.form {
                NormalForm::Composed => self.normal.extend(self.held.nfc()),
                NormalForm::Compatible => self.normal.extend(self.held.nfkc()),
            }
            visit(&self.normal);
        }
        self.held.clear();
    }

    fn is_normal(&self) -> bool {
        let held = self.held.chars();
        let quick = match self.form {
            NormalForm::Composed => is_nfc_quick(held),
            NormalForm::Compatible => is_nfkc_quick(held),
        };
        quick == IsNormalized::Yes
    }
}

/// Returns true for characters in the blocks of combining diacritical marks. Frozen.
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

/// Calls `visit` with `c`. If its canonical decomposition contains accents, calls `visit` with the
/// other characters of the decomposition instead.
pub(super) fn strip_accents(c: char, mut visit: impl FnMut(char)) {
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
