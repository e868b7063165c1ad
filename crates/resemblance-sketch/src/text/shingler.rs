//! Cuts a text that is read in pieces into shingles.

use super::ascii::SEPARATOR;
#[cfg(feature = "languages")]
use super::filter::WordFilter;
use super::recipe::{ShingleUnit, Text};
use super::unit_buffer::{ShingleView, UnitBuffer};
use super::unit_reader::UnitReader;
use crate::error::Result;

/// The number of bytes of text that are read before their shingles are visited.
const STRIDE_BYTES: usize = 1 << 12;

/// Cuts a text that arrives in pieces into shingles. Pieces may be cut between any two scalar
/// values. The shingles are those that [`Text::for_each_shingle`] visits in the whole text.
///
/// It takes a few kilobytes of memory plus the last shingle. Memory grows with the longest shingle
/// (a text of one endless word is one shingle), not with the text.
pub struct Shingler {
    unit: ShingleUnit,
    /// The number of units in a shingle.
    size: usize,
    reader: UnitReader,
    #[cfg(feature = "languages")]
    filter: Option<WordFilter>,
    sorter: Option<UnitSorter>,
    has_visited: bool,
}

impl Shingler {
    /// Creates the shingler of a validated text.
    fn new(text: &Text) -> Self {
        Self {
            unit: text.unit,
            size: text.length.into(),
            reader: UnitReader::new(text),
            #[cfg(feature = "languages")]
            filter: WordFilter::new(text),
            sorter: text.is_unordered.then(UnitSorter::default),
            has_visited: false,
        }
    }

    /// Returns true if `c` is never normalised together with the character before it.
    pub(super) fn begins_sequence(&self, c: char) -> bool {
        self.reader.begins_sequence(c)
    }

    /// Reads scalar values that are normalised independently of the rest, before any shingle that
    /// contains them is visited. Returns their normalised bytes, in which a separator follows each
    /// unit.
    pub(super) fn read_sequence(&mut self, sequence: &str) -> Option<&[u8]> {
        let before = self.reader.units().length();
        self.reader.read(sequence);
        self.reader.flush();
        self.reader.units().since(before)
    }

    /// Ends the text before [`finish`](Self::finish) does, and returns the normalised bytes that
    /// this adds.
    pub(super) fn read_end(&mut self) -> Option<&[u8]> {
        let before = self.reader.units().length();
        self.reader.finish();
        self.reader.units().since(before)
    }

    /// Calls `decided` for each complete unit with whether it is kept. Returns false, without a
    /// call, if all units are kept.
    pub(super) fn filter_units(&mut self, decided: impl FnMut(bool)) -> bool {
        #[cfg(feature = "languages")]
        if let Some(filter) = &mut self.filter {
            filter.take(self.reader.units_mut(), decided);
            return true;
        }
        let _ = decided;
        false
    }

    /// Reads the next piece, and calls `visit` with each shingle that it completes.
    pub(crate) fn push<V: ShingleView + ?Sized>(&mut self, piece: &str, mut visit: impl FnMut(&V)) {
        let mut rest = piece;
        while !rest.is_empty() {
            let (stride, after) = rest.split_at(rest.floor_char_boundary(STRIDE_BYTES));
            self.reader.read(stride);
            self.visit(&mut visit);
            rest = after;
        }
    }

    /// Ends the text, and calls `visit` with the remaining shingles.
    pub(crate) fn finish<V: ShingleView + ?Sized>(mut self, mut visit: impl FnMut(&V)) {
        self.reader.finish();
        self.visit(&mut visit);
        // A text shorter than a shingle is one shingle. If a shingle has been visited, the rest of
        // the text is the end of the last one.
        if !self.has_visited && !self.units().is_empty() {
            let mut sorter = self.sorter.take();
            let rest: &V = self.units().rest();
            visit(sorter.as_mut().map_or(rest, |sorter| sorter.sorted(rest)));
        }
    }

    /// Calls `visit` with each shingle that is complete.
    pub(super) fn visit<V: ShingleView + ?Sized>(&mut self, mut visit: impl FnMut(&V)) {
        match self.sorter.take() {
            None => self.visit_ordered(visit),
            Some(mut sorter) => {
                self.visit_ordered(|shingle| visit(sorter.sorted(shingle)));
                self.sorter = Some(sorter);
            }
        }
    }

    fn visit_ordered<V: ShingleView + ?Sized>(&mut self, visit: impl FnMut(&V)) {
        let units = self.reader.units_mut();
        #[cfg(feature = "languages")]
        if let Some(filter) = &mut self.filter {
            filter.take(units, |_| {});
            self.has_visited |= filter.units.visit_units(self.size, visit);
            return;
        }
        self.has_visited |= match self.unit {
            ShingleUnit::Characters => units.visit_characters(self.size, visit),
            ShingleUnit::Words | ShingleUnit::CodeTokens | ShingleUnit::Auto => {
                units.visit_units(self.size, visit)
            }
        };
    }

    /// The units of shingles.
    fn units(&self) -> &UnitBuffer {
        #[cfg(feature = "languages")]
        if let Some(filter) = &self.filter {
            return &filter.units;
        }
        self.reader.units()
    }
}

/// Sorts the units of shingles whose order is ignored.
#[derive(Default)]
struct UnitSorter {
    /// The beginning and the end of each unit of a shingle.
    units: Vec<(usize, usize)>,
    sorted: Vec<u8>,
}

impl UnitSorter {
    /// Returns the shingle with its units sorted by their bytes.
    fn sorted<V: ShingleView + ?Sized>(&mut self, shingle: &V) -> &V {
        let bytes = shingle.bytes();
        self.units.clear();
        let mut start = 0;
        // No unit contains a separator.
        for unit in bytes.split(|byte| *byte == SEPARATOR) {
            self.units.push((start, start + unit.len()));
            start += unit.len() + 1;
        }
        let unit = |&(start, end): &(usize, usize)| bytes.get(start..end);
        self.units.sort_unstable_by(|a, b| unit(a).cmp(&unit(b)));
        self.sorted.clear();
        for unit in self.units.iter().filter_map(unit) {
            if !self.sorted.is_empty() {
                self.sorted.push(SEPARATOR);
            }
            self.sorted.extend_from_slice(unit);
        }
        V::new(&self.sorted)
    }
}

impl Text {
    /// Calls `visit` with each shingle, in text order and with repeats.
    ///
    /// Reads the text once, in the memory of a few shingles. Does not visit anything if
    /// [`validate`](Self::validate), and so every schema, refuses these rules.
    ///
    /// ```
    /// use resemblance_sketch::Text;
    ///
    /// let mut shingles = Vec::new();
    /// Text::characters(3).for_each_shingle(" A\t\nBC ", |s| shingles.push(s.to_owned()));
    /// assert_eq!(shingles, ["a b", " bc"]);
    /// ```
    pub fn for_each_shingle(&self, text: &str, mut visit: impl FnMut(&str)) {
        if let Ok(mut shingler) = self.shingler() {
            shingler.push(text, &mut visit);
            shingler.finish(visit);
        }
    }

    /// Begins the shingles of a text that is read in pieces.
    ///
    /// # Errors
    ///
    /// The same as [`validate`](Self::validate).
    pub(crate) fn shingler(&self) -> Result<Shingler> {
        self.validate()?;
        Ok(Shingler::new(self))
    }
}
