//! Pieces of filters kept in memory, and the question that they answer.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, PoisonError};

use redb::ReadableTable;

use crate::Result;
use crate::format::engine::engine_error;
use crate::format::filter::{FilterKey, FilterPiece, FilterShape, filter_key};
use crate::lanes::BucketBits;
use crate::sketch::mix64;

use super::filter_writer::missing_piece;
use super::run::Value;

/// Locks apart, so that readers seldom wait for each other. A power of two.
const SHARDS: usize = 16;

/// What a piece costs beside its bits, about.
const ENTRY_BYTES: usize = 96;

/// Run, lane and piece.
type PieceKey = (u32, u16, u32);

/// Pieces that were read, checked and decoded, within a limit of bytes. Those that have not been asked
/// for lately go first (the clock algorithm). Runs never change, so nothing here is ever stale, but
/// for what a transaction has read of runs that it then rolled back: see [`clear`](Self::clear).
#[derive(Debug)]
pub(crate) struct FilterCache {
    shards: [Mutex<Shard>; SHARDS],
    most_bytes: usize,
}

#[derive(Debug, Default)]
struct Shard {
    places: HashMap<PieceKey, usize, BuildHasherDefault<Mixer>>,
    entries: Vec<Entry>,
    size_bytes: usize,
    /// The entry that is looked at next when something has to go.
    hand: usize,
}

#[derive(Debug)]
struct Entry {
    key: PieceKey,
    piece: FilterPiece,
    is_wanted: bool,
}

impl Entry {
    fn size_bytes(&self) -> usize {
        self.piece.size_bytes() + ENTRY_BYTES
    }
}

impl FilterCache {
    /// One that holds at most about so many bytes.
    pub(crate) fn new(most_bytes: u64) -> Self {
        Self {
            shards: Default::default(),
            most_bytes: usize::try_from(most_bytes).unwrap_or(usize::MAX) / SHARDS,
        }
    }

    /// Whether a complete lane of a run may hold codes of `low_code..=high_code`. A range that is more
    /// than a bucket may be anywhere.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] if the piece is missing or damaged.
    pub(crate) fn may_hold<T: ReadableTable<&'static FilterKey, Value>>(
        &self,
        table: &T,
        (run, lane): (u32, u16),
        (shape, buckets): (FilterShape, BucketBits),
        (low_code, high_code): (u64, u64),
    ) -> Result<bool> {
        let bucket = buckets.bucket(low_code);
        if buckets.bucket(high_code) != bucket {
            return Ok(true);
        }
        let number = shape.piece(bucket);
        let key = (run, lane, number);
        if let Some(may_hold) = self.look_up(key, bucket) {
            return Ok(may_hold);
        }
        let row_key = filter_key(run, lane, number);
        let row = table.get(&row_key).map_err(engine_error)?;
        let row = row.ok_or_else(|| missing_piece(run, lane, number))?;
        let piece = FilterPiece::decode(&row_key, shape, row.value())?;
        let may_hold = piece.may_hold(bucket);
        self.keep(key, piece);
        Ok(may_hold)
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            *shard.lock().unwrap_or_else(PoisonError::into_inner) = Shard::default();
        }
    }

    /// Bytes held.
    pub(crate) fn size_bytes(&self) -> u64 {
        let held = |shard: &Mutex<Shard>| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.size_bytes as u64
        };
        self.shards.iter().map(held).sum()
    }

    fn shard(&self, key: PieceKey) -> Option<&Mutex<Shard>> {
        // The map's hash must not depend on the shard alone.
        let mixed = mix64(mixed(key));
        self.shards.get(mixed as usize % SHARDS)
    }

    fn look_up(&self, key: PieceKey, bucket: u64) -> Option<bool> {
        let mut shard = self
            .shard(key)?
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let place = *shard.places.get(&key)?;
        let entry = shard.entries.get_mut(place)?;
        entry.is_wanted = true;
        Some(entry.piece.may_hold(bucket))
    }

    fn keep(&self, key: PieceKey, piece: FilterPiece) {
        let entry = Entry {
            key,
            piece,
            is_wanted: false,
        };
        if let Some(shard) = self.shard(key) {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.keep(entry, self.most_bytes);
        }
    }
}

impl Shard {
    fn keep(&mut self, entry: Entry, most_bytes: usize) {
        let needed = entry.size_bytes();
        if needed > most_bytes || self.places.contains_key(&entry.key) {
            return;
        }
        while self.size_bytes + needed > most_bytes {
            self.drop_one();
        }
        self.size_bytes += needed;
        self.places.insert(entry.key, self.entries.len());
        self.entries.push(entry);
    }

    fn drop_one(&mut self) {
        loop {
            if self.hand >= self.entries.len() {
                self.hand = 0;
            }
            match self.entries.get_mut(self.hand) {
                None => return,
                Some(entry) if entry.is_wanted => {
                    entry.is_wanted = false;
                    self.hand += 1;
                }
                Some(_) => break,
            }
        }
        let dropped = self.entries.swap_remove(self.hand);
        self.places.remove(&dropped.key);
        self.size_bytes = self.size_bytes.saturating_sub(dropped.size_bytes());
        if let Some(moved) = self.entries.get(self.hand) {
            self.places.insert(moved.key, self.hand);
        }
    }
}

fn mixed((run, lane, piece): PieceKey) -> u64 {
    mix64(u64::from(run) << 32 | u64::from(piece)).wrapping_add(u64::from(lane))
}

/// The hash of a piece's key: its numbers, mixed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix64(self.0 ^ number);
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(number.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bucket: u64) -> FilterPiece {
        let mut piece = FilterPiece::new(FilterShape::of(100, 10));
        piece.insert(bucket);
        piece
    }

    #[test]
    fn it_stays_within_its_limit_and_keeps_what_is_wanted() {
        let one = (piece(0).size_bytes() + ENTRY_BYTES) as u64;
        let cache = FilterCache::new(one * 4 * SHARDS as u64);
        for number in 0..1_000u32 {
            cache.keep((7, 1, number), piece(u64::from(number)));
            // Asked for again and again.
            if number >= 3 {
                assert!(cache.look_up((7, 1, number), number.into()).unwrap());
            }
            assert!(cache.size_bytes() <= one * 4 * SHARDS as u64);
        }
        let held = (0..1_000).filter(|n| cache.look_up((7, 1, *n), 0).is_some());
        let held = held.count();
        assert!((SHARDS..=4 * SHARDS).contains(&held), "{held}");
        assert_eq!(cache.look_up((8, 1, 999), 0), None);
        cache.clear();
        assert_eq!(
            (cache.size_bytes(), cache.look_up((7, 1, 999), 0)),
            (0, None)
        );
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let cache = FilterCache::new(0);
        cache.keep((1, 1, 1), piece(5));
        assert_eq!((cache.size_bytes(), cache.look_up((1, 1, 1), 5)), (0, None));
    }
}
