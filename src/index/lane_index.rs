//! Finds the blocks of a lane that are in memory, by their last postings.

use crate::format::Posting;

/// Maximum number of blocks in a chunk, which is then cut in two: an insertion moves few rows.
const CHUNK_BLOCKS: usize = if cfg!(test) { 8 } else { 256 };

/// The last posting of a block, and the value that is kept under it.
pub(super) type Row<V> = (Posting, V);

/// The blocks of a lane that are in memory, ascending by their last postings.
///
/// Codes are hashes, so blocks are evenly spread, and interpolation finds one by examining two or
/// three nearby places.
#[derive(Debug)]
pub(super) struct LaneIndex<V> {
    /// Chunks of rows, none of which is empty.
    chunks: Vec<Vec<Row<V>>>,
    /// The last posting of each chunk.
    ends: Vec<Posting>,
}

impl<V> Default for LaneIndex<V> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            ends: Vec::new(),
        }
    }
}

impl<V> LaneIndex<V> {
    /// Returns the first block that ends at or after a posting, with its end.
    #[inline]
    pub(super) fn first_from(&self, target: Posting) -> Option<&Row<V>> {
        self.search(target)?.first()
    }

    /// Begins to search for the first block that ends at or after a posting. Returns `None` after
    /// the last.
    #[inline]
    pub(super) fn search(&self, target: Posting) -> Option<RowSearch<'_, V>> {
        let index = self.chunk_of(target);
        let (rows, end) = (self.chunks.get(index)?, self.ends.get(index)?);
        let before = index.checked_sub(1).and_then(|index| self.ends.get(index));
        let first_code = before.map_or(0, |before| before.code);
        let guess = guess((first_code, end.code), target.code, rows.len());
        Some(RowSearch {
            rows,
            target,
            guess: guess.min(rows.len().saturating_sub(1)),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Adds a block. Returns false if it exists already.
    pub(super) fn insert(&mut self, last: Posting, block: V) -> bool {
        // A posting beyond all ends belongs into the last chunk.
        let index = self.chunk_of(last).min(self.chunks.len().saturating_sub(1));
        let Some(chunk) = self.chunks.get_mut(index) else {
            self.chunks.push(vec![(last, block)]);
            self.ends.push(last);
            return true;
        };
        let position = position_in(chunk, last);
        if chunk.get(position).is_some_and(|(held, _)| *held == last) {
            return false;
        }
        chunk.insert(position, (last, block));
        if chunk.len() > CHUNK_BLOCKS {
            // Blocks are inserted in no order, so both halves need room.
            let upper = chunk.split_off(CHUNK_BLOCKS / 2);
            self.chunks.insert(index + 1, upper);
            self.ends.insert(index, last);
            self.note_end(index + 1);
        }
        self.note_end(index);
        true
    }

    /// Takes a block out, and returns it if it was there.
    pub(super) fn remove(&mut self, last: Posting) -> Option<V> {
        let index = self.chunk_of(last);
        let chunk = self.chunks.get_mut(index)?;
        let position = position_in(chunk, last);
        if chunk.get(position).is_none_or(|(held, _)| *held != last) {
            return None;
        }
        let (_, removed) = chunk.remove(position);
        if chunk.is_empty() {
            self.chunks.remove(index);
            self.ends.remove(index);
        } else {
            self.note_end(index);
        }
        Some(removed)
    }

    /// Returns the index of the first chunk that ends at or after a posting.
    #[inline]
    fn chunk_of(&self, target: Posting) -> usize {
        self.ends.partition_point(|end| *end < target)
    }

    fn note_end(&mut self, index: usize) {
        let last = self.chunks.get(index).and_then(|chunk| chunk.last());
        if let (Some(end), Some((last, _))) = (self.ends.get_mut(index), last) {
            *end = *last;
        }
    }
}

/// A search under way, of which only the beginning has been located.
#[derive(Debug)]
pub(super) struct RowSearch<'i, V> {
    rows: &'i [Row<V>],
    target: Posting,
    guess: usize,
}

impl<'i, V> RowSearch<'i, V> {
    /// Reads where the search begins, and returns something that depends on it. Calling this for
    /// many searches before continuing the first waits once for memory, and not for each.
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        let row = self.rows.get(self.guess);
        row.map_or(0, |(last, _)| last.code)
    }

    /// Returns the first row that ends at or after the posting.
    #[inline]
    pub(super) fn first(&self) -> Option<&'i Row<V>> {
        let position = position_from(self.guess, self.rows, self.target);
        self.rows.get(position)
    }
}

/// Returns the index of the first of some rows, which ascend, that ends at or after a posting: it begins where the code
/// would be if codes were spread evenly.
#[inline]
pub(super) fn position_in<V>(rows: &[Row<V>], target: Posting) -> usize {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
        return 0;
    };
    let guess = guess((first.0.code, last.0.code), target.code, rows.len() - 1);
    position_from(guess, rows, target)
}

/// Returns the index of the first of some rows, which ascend, that ends at or after a posting: it begins with the row at
/// `guess`, and doubles its steps from there.
#[inline]
fn position_from<V>(guess: usize, rows: &[Row<V>], target: Posting) -> usize {
    // Codes are hashes: the guess is mostly a row or two off, and short steps from there stay in one cache line.
    let is_before = |index: usize| rows.get(index).is_some_and(|row| row.0 < target);
    // All before `low` end before the target; `high` and what follows do not.
    let (mut low, mut high, mut step) = (0, rows.len(), 1);
    if is_before(guess) {
        low = guess + 1;
        while is_before(low + step - 1) {
            low += step;
            step *= 2;
        }
        high = high.min(low + step - 1);
    } else {
        high = guess;
        while step <= high && !is_before(high - step) {
            high -= step;
            step *= 2;
        }
        low = (high + 1).saturating_sub(step).max(low);
    }
    let between = rows.get(low..high).unwrap_or(&[]);
    low + between.partition_point(|row| row.0 < target)
}

/// Returns the share of `steps` by which a code has advanced from the first code to the last.
#[inline]
fn guess((first, last): (u64, u64), code: u64, steps: usize) -> usize {
    let span = last.saturating_sub(first).max(1);
    let come = code.clamp(first, last.max(first)) - first;
    // A division of numbers of 128 bits would take several times as long. The share is at most 1, and 0 at least.
    (come as f64 / span as f64 * steps as f64) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::index::testing::{Random, posting};

    /// Against an ordered map: codes of all spreads, and postings before, at and between the blocks.
    #[test]
    fn lane_index_agrees_with_an_ordered_map() {
        let spreads: [fn(&mut Random) -> Posting; 4] = [
            |random| posting(random.next() >> 24, 0),
            |random| posting(random.below(3), random.below(200)),
            |random| posting(random.next() >> random.below(64), random.below(2)),
            |random| posting(u64::MAX - random.below(100), u64::MAX - random.below(2)),
        ];
        for spread in spreads {
            let mut random = Random(5);
            let (mut index, mut expected) = (LaneIndex::default(), BTreeMap::new());
            for number in 0..3_000 {
                let place = spread(&mut random);
                if random.below(3) > 0 {
                    let is_new = !expected.contains_key(&place);
                    assert_eq!(index.insert(place, number), is_new);
                    expected.entry(place).or_insert(number);
                } else {
                    let first = expected.range(place..).next().map(|(place, _)| *place);
                    index.remove(first.unwrap_or(place));
                    expected.remove(&first.unwrap_or(place));
                }
                for target in [place, spread(&mut random), place.next(), posting(0, 0)] {
                    let found = expected.range(target..).next().map(|(_, number)| number);
                    let found_here = index.first_from(target).map(|(_, number)| number);
                    assert_eq!(found_here, found, "{target:?}");
                }
                assert_eq!(index.is_empty(), expected.is_empty());
            }
        }
    }
}
