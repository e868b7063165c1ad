//! Shingles with their places in the text.

use std::collections::VecDeque;
use std::ops::Range;

use super::ascii::SEPARATOR;
use super::recipe::{ShingleUnit, Text};
use super::shingler::Shingler;
use crate::error::Result;
use crate::invariant::bug;

/// A shingle of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedShingle<'s> {
    pub(crate) utf8: &'s [u8],
    /// The range of bytes from the beginning of its first unit to the end of its last one.
    pub(crate) place: Range<usize>,
}

impl Text {
    /// Calls `visit` with each shingle that [`for_each_shingle`](Self::for_each_shingle) visits,
    /// and its byte range in `document`, on character boundaries. Scalar values that are normalised
    /// together, such as a letter and its marks, have one place, and all units that result from
    /// them share it.
    ///
    /// # Errors
    ///
    /// The same as [`validate`](Self::validate).
    pub(crate) fn for_each_located_shingle(
        &self,
        document: &str,
        visit: impl FnMut(LocatedShingle<'_>),
    ) -> Result<()> {
        let mut shingler = LocatedShingler {
            shingler: self.shingler()?,
            places: UnitPlaces {
                are_characters: self.unit() == ShingleUnit::Characters,
                size: self.length().into(),
                open: None,
                read: VecDeque::new(),
                kept: VecDeque::new(),
            },
            visit,
            outcome: Ok(()),
        };
        let mut start = 0;
        for (end, c) in document.char_indices() {
            if end > start && shingler.shingler.begins_sequence(c) {
                shingler.read(document, start..end)?;
                start = end;
            }
        }
        shingler.read(document, start..document.len())?;
        shingler.finish()
    }
}

/// The places of the units that may still belong to a later shingle.
struct UnitPlaces {
    are_characters: bool,
    /// The number of units in a shingle.
    size: usize,
    /// The place of a unit that may still grow.
    open: Option<Range<usize>>,
    /// The places of complete units that the filter has not yet examined.
    read: VecDeque<Range<usize>>,
    /// The places of units that belong to shingles.
    kept: VecDeque<Range<usize>>,
}

impl UnitPlaces {
    /// Adds the bytes into which the text at `place` was normalised.
    fn add(&mut self, utf8: &[u8], place: &Range<usize>) {
        for &byte in utf8 {
            if self.are_characters {
                if begins_character(byte) {
                    self.read.push_back(place.clone());
                }
            } else if byte == SEPARATOR {
                self.read.extend(self.open.take());
            } else {
                self.open.get_or_insert_with(|| place.clone()).end = place.end;
            }
        }
    }

    /// Returns the shingle with its place, and forgets the place of its first unit.
    fn locate<'s>(&mut self, utf8: &'s [u8]) -> Result<LocatedShingle<'s>> {
        let units = if self.are_characters {
            utf8.iter().filter(|&&byte| begins_character(byte)).count()
        } else {
            self.size.min(self.kept.len())
        };
        let last = units.checked_sub(1).and_then(|last| self.kept.get(last));
        let end = last
            .ok_or_else(|| bug("a shingle of units that were not read"))?
            .end;
        let first = self.kept.pop_front();
        let start = first.ok_or_else(|| bug("a shingle without a unit"))?.start;
        let place = start..end;
        Ok(LocatedShingle { utf8, place })
    }
}

const RELEASED: &str = "a buffer that became shorter while it was read into";

/// All bytes of a character except the first begin with the bits 10.
fn begins_character(byte: u8) -> bool {
    byte >> 6 != 0b10
}

/// Reads sequences that are normalised independently of each other.
struct LocatedShingler<V> {
    shingler: Shingler,
    places: UnitPlaces,
    visit: V,
    /// The first error of a visit, if any.
    outcome: Result<()>,
}

impl<V: FnMut(LocatedShingle<'_>)> LocatedShingler<V> {
    fn read(&mut self, document: &str, place: Range<usize>) -> Result<()> {
        let broken = || bug("a sequence that begins within a scalar value");
        let sequence = document.get(place.clone()).ok_or_else(broken)?;
        let added = self.shingler.read_sequence(sequence);
        self.places.add(added.ok_or_else(|| bug(RELEASED))?, &place);
        self.keep()?;
        let (places, visit, outcome) = (&mut self.places, &mut self.visit, &mut self.outcome);
        self.shingler
            .visit(|utf8: &[u8]| pass_on(places.locate(utf8), visit, outcome));
        std::mem::replace(&mut self.outcome, Ok(()))
    }

    fn finish(mut self) -> Result<()> {
        // A separator may complete the last unit. It has no place.
        let added = self.shingler.read_end();
        self.places
            .add(added.ok_or_else(|| bug(RELEASED))?, &(0..0));
        self.keep()?;
        let (mut places, mut visit, mut outcome) = (self.places, self.visit, self.outcome);
        self.shingler
            .finish(|utf8: &[u8]| pass_on(places.locate(utf8), &mut visit, &mut outcome));
        outcome
    }

    /// Moves the places of complete units to the kept ones, unless the filter drops their units.
    fn keep(&mut self) -> Result<()> {
        let UnitPlaces { read, kept, .. } = &mut self.places;
        let mut are_all_read = true;
        let has_filter = self.shingler.filter_units(|is_kept| {
            let place = read.pop_front();
            are_all_read &= place.is_some();
            kept.extend(place.filter(|_| is_kept));
        });
        if !has_filter {
            kept.append(read);
        }
        are_all_read
            .then_some(())
            .ok_or_else(|| bug("a unit that was not read"))
    }
}

/// Visits a shingle, or keeps the first error.
fn pass_on(
    located: Result<LocatedShingle<'_>>,
    visit: &mut impl FnMut(LocatedShingle<'_>),
    outcome: &mut Result<()>,
) {
    match located {
        Ok(shingle) => visit(shingle),
        Err(error) if outcome.is_ok() => *outcome = Err(error),
        Err(_) => {}
    }
}
