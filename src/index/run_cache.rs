//! The memory for filters and blocks of runs, and for the places of blocks in the file.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::engine::{EngineResult, PageFinder, PagePlace, ReadableTable, RowInPage};
use crate::error::Result;
use crate::format::{FilterKey, FilterPiece, filter_key};
use crate::index::block_cache::BlockCache;
use crate::index::filter_cache::{FilterCache, FilterOf, FilterReader};
use crate::index::filter_writer::missing_piece;
use crate::index::page_places::{PagePlaces, RunRow};
use crate::index::run::Value;

/// Places may take this part of the memory in any case, and half of what filters leave if that is more. A place of 24
/// bytes finds a page of 4 KiB: no other byte saves as much.
const PLACES_SHARE: usize = 10;

/// Filters, blocks and places of blocks, within one limit of bytes. Filters take precedence, up to
/// a separate limit: a byte of them saves more reads. Blocks get the rest.
#[derive(Debug)]
pub(crate) struct RunCache {
    filters: FilterCache,
    blocks: BlockCache,
    places: PagePlaces,
    pass_rate: PassRate,
    max_bytes: usize,
}

/// The sources of blocks that need no engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSources<'c> {
    pub(super) blocks: &'c BlockCache,
    /// Pages of the file, at places that the cache knows.
    pub(super) file: Option<(&'c RunCache, &'c PageFinder)>,
}

/// Reads a row at its known place. If the row is not there, the caller reads it through the engine,
/// and then the place is learned.
#[derive(Debug)]
pub(super) struct RowRead<'c> {
    memory: &'c RunCache,
    finder: &'c PageFinder,
    row: RunRow,
    /// The smallest key that the row can have.
    key: &'c [u8],
    /// The place where the row was not.
    failed: Option<PagePlace>,
}

/// The result of checking the row that was found at a place.
pub(super) enum RowCheck<R> {
    Right(R),
    /// The row is after the requested one, whose page is not known.
    Behind,
    /// The page has moved.
    Wrong,
}

impl RowRead<'_> {
    /// Returns the row with what `check` made of it, if it is where it was.
    pub(super) fn at_place<R>(
        &mut self,
        check: impl FnOnce(&RowInPage) -> RowCheck<R>,
    ) -> Option<(RowInPage, R)> {
        let place = self.memory.places.page_of(&self.row)?;
        self.failed = Some(place);
        let row = self.finder.row_from(place, self.key);
        let checked = row.as_ref().map_or(RowCheck::Wrong, check);
        match checked {
            RowCheck::Right(right) => row.map(|row| (row, right)),
            RowCheck::Behind => None,
            RowCheck::Wrong => {
                self.memory.places.forget(&self.row);
                None
            }
        }
    }

    /// Learns where the page is that has the row, and those around it, unless that is futile.
    pub(super) fn learn(self) {
        let places = &self.memory.places;
        places.learn(self.finder, &self.row, self.failed);
        self.memory.share();
    }
}

fn max_place_bytes(max_bytes: usize, filter_bytes: usize) -> usize {
    let left = max_bytes.saturating_sub(filter_bytes);
    (left / 2).max(max_bytes / PLACES_SHARE)
}

impl RunCache {
    pub(crate) fn new(max_bytes: usize, max_filter_bytes: usize) -> Self {
        Self {
            filters: FilterCache::new(max_filter_bytes.min(max_bytes)),
            blocks: BlockCache::new(max_bytes),
            places: PagePlaces::new(max_place_bytes(max_bytes, 0)),
            pass_rate: PassRate::default(),
            max_bytes,
        }
    }

    /// Returns sources that read from memory, and at known places with a finder.
    pub(crate) fn sources<'c>(&'c self, finder: Option<&'c PageFinder>) -> BlockSources<'c> {
        BlockSources {
            blocks: &self.blocks,
            file: finder.map(|finder| (self, finder)),
        }
    }

    /// Begins to read a row, whose key is `key` or greater.
    pub(super) fn begin_read<'c>(
        &'c self,
        finder: &'c PageFinder,
        row: RunRow,
        key: &'c [u8],
    ) -> RowRead<'c> {
        RowRead {
            memory: self,
            finder,
            row,
            key,
            failed: None,
        }
    }

    pub(crate) fn blocks(&self) -> &BlockCache {
        &self.blocks
    }

    pub(crate) fn filters(&self) -> FilterReader<'_> {
        self.filters.reader()
    }

    /// Returns the share of questions to filters outside memory that pass.
    pub(crate) fn pass_rate(&self) -> &PassRate {
        &self.pass_rate
    }

    /// Answers as [`FilterReader::ask`] for a piece that is not held: reads it and keeps it, in the place of blocks if need be. `open` gives the table if the engine has to read it.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] if the piece is missing or damaged, and those of `open`.
    pub(crate) fn read_filter<'t, T: ReadableTable<&'static FilterKey, Value> + 't>(
        &self,
        open: impl FnOnce() -> Result<&'t T>,
        finder: Option<&PageFinder>,
        filter: &FilterOf,
        low_code: u64,
        high_code: u64,
    ) -> Result<bool> {
        let Some(bucket) = filter.bucket(low_code, high_code) else {
            return Ok(true);
        };
        let (run, lane, shape) = (filter.run, filter.lane, filter.shape);
        let number = shape.piece(bucket);
        let key = filter_key(run, lane, number);
        let decode = |row: &RowInPage| {
            let value = row.value().filter(|_| row.key() == Some(key.as_slice()));
            FilterPiece::decode(&key, shape, value?).ok()
        };
        let row = RunRow::piece((run, lane), number);
        let mut read = finder.map(|finder| self.begin_read(finder, row, &key));
        let at_place = read.as_mut().and_then(|read| {
            read.at_place(|row| decode(row).map_or(RowCheck::Wrong, RowCheck::Right))
        });
        let piece = match at_place {
            Some((_, piece)) => piece,
            None => {
                let found = open()?.get(&key).engine()?;
                let row = found.ok_or_else(|| missing_piece(run, lane, number))?;
                let piece = FilterPiece::decode(&key, shape, row.value())?;
                read.into_iter().for_each(RowRead::learn);
                piece
            }
        };
        let answer = self.filters.answer(filter, bucket, piece)?;
        self.share();
        Ok(answer)
    }

    /// Requests all pages of rows that will be read at once, and records where they are.
    pub(crate) fn read_ahead(&self, finder: &PageFinder, rows: &[RunRow]) {
        self.places.read_ahead(finder, rows);
        self.share();
    }

    /// Forgets everything: for a transaction that wrote runs and was rolled back. The next one writes other
    /// runs under the same numbers.
    pub(crate) fn clear(&self) {
        self.retain_runs(|_| false);
    }

    /// Forgets all runs but these.
    pub(crate) fn retain_runs(&self, is_kept: impl Fn(u32) -> bool) {
        self.filters.retain_runs(&is_kept);
        self.blocks.retain_runs(&is_kept);
        self.places.retain_runs(&is_kept);
        self.share();
    }

    /// Gives places what filters leave to them, and blocks what both leave.
    fn share(&self) {
        // Blocks have the lowest precedence: a byte of a filter or a place saves more reads than a
        // byte of a block.
        let filter_bytes = self.filters.size_bytes();
        let max_place_bytes = max_place_bytes(self.max_bytes, filter_bytes);
        self.places.set_max_bytes(max_place_bytes);
        let others = filter_bytes + self.places.size_bytes();
        self.blocks
            .set_max_bytes(self.max_bytes.saturating_sub(others));
    }

    /// Bytes of filters held.
    pub(crate) fn filter_bytes(&self) -> u64 {
        self.filters.size_bytes() as u64
    }

    /// Bytes of blocks and of their places held.
    pub(crate) fn block_bytes(&self) -> u64 {
        self.blocks.size_bytes() + self.places.size_bytes() as u64
    }
}

/// A rate of 1.
const ALL: u32 = 1 << 16;

/// An answer counts this part of the rate, and the answers before it the rest.
const WEIGHT: u32 = 32;

/// The share of the latest questions to filters that these let pass. A question about a lane that has the code in
/// question counts as one, whether its filter was asked or not.
///
/// Threads may overwrite each other's counts: the rate is an approximation on which no answer
/// depends.
#[derive(Debug, Default)]
pub(crate) struct PassRate(AtomicU32);

impl PassRate {
    pub(crate) fn note(&self, has_passed: bool) {
        let rate = self.0.load(Ordering::Relaxed);
        let next = match has_passed {
            true => rate + (ALL - rate) / WEIGHT,
            false => rate - rate / WEIGHT,
        };
        self.0.store(next, Ordering::Relaxed);
    }

    /// Returns true if more than three in four pass.
    pub(crate) fn is_high(&self) -> bool {
        self.0.load(Ordering::Relaxed) > ALL / 4 * 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of answers until the rate is high, or low.
    fn until(is_high: bool, rate: &PassRate) -> u32 {
        let mut notes = 0;
        while rate.is_high() != is_high {
            rate.note(is_high);
            notes += 1;
        }
        notes
    }

    #[test]
    fn pass_rate_follows_recent_answers() {
        let rate = PassRate::default();
        // After n answers that pass it is 1 - (31 / 32)ⁿ: beyond 3 / 4 after 44. Each answer is rounded down.
        assert!((44..=46).contains(&until(true, &rate)));
        (0..1_000).for_each(|_| rate.note(true));
        // (31 / 32)ⁿ is below 3 / 4 after 10.
        assert!((8..=10).contains(&until(false, &rate)));
        (0..1_000).for_each(|number| rate.note(number % 2 == 0));
        assert!(!rate.is_high());
    }
}
