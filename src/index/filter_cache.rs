//! A cache of pieces of filters. They exclude runs, so that a probe need not read them.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{RwLock, RwLockReadGuard};

use crate::error::Result;
use crate::format::{FilterPiece, FilterProbe, FilterShape};
use crate::index::clock::{Clock, UsedMark};
use crate::index::mixer::Mixer;
use crate::index::page_places::RunRow;
use crate::invariant::bug;
use crate::sync::IgnorePoison;
use resemblance_sketch::lanes::{BucketBits, index_of_lane};

/// The approximate number of bytes of a piece besides its bits and its slot.
const PIECE_BYTES: usize = 64;

/// Number of pieces of the largest filter that is kept, of some three billion postings: their slots take memory
/// too, and a forged file may claim any number.
const MAX_PIECES: u32 = 1 << 20;

/// The number of questions that wait for memory together: what they read fits the processor's
/// nearest cache.
const ASKED_TOGETHER: usize = 128;

/// Run, lane and piece.
type PieceKey = (u32, u16, u32);

/// Names a complete filter, with its division into pieces and buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilterOf {
    pub(crate) run: u32,
    pub(crate) lane: u16,
    pub(crate) shape: FilterShape,
    pub(crate) buckets: BucketBits,
}

impl FilterOf {
    /// Returns the bucket that all these codes are in; `None` if they are in several.
    #[inline]
    pub(super) fn bucket(&self, low_code: u64, high_code: u64) -> Option<u64> {
        let bucket = self.buckets.bucket(low_code);
        (self.buckets.bucket(high_code) == bucket).then_some(bucket)
    }

    /// Returns the piece that decides about codes; `None` if they are in several buckets.
    pub(crate) fn piece(&self, low_code: u64, high_code: u64) -> Option<RunRow> {
        let bucket = self.bucket(low_code, high_code)?;
        let number = self.shape.piece(bucket);
        Some(RunRow::piece((self.run, self.lane), number))
    }
}

/// Pieces of filters that were read, checked and decoded, within a limit of bytes. The cache drops those
/// first that no probe has used lately (the clock algorithm). Runs never change, so nothing here is ever
/// stale, except pieces that a transaction read of runs that it then rolled back.
#[derive(Debug)]
pub(crate) struct FilterCache {
    pieces: RwLock<FilterPieceRows>,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct FilterPieceRows {
    filters: FiltersByRun,
    /// The pieces that are held.
    clock: Clock<PieceKey>,
    size_bytes: usize,
}

/// Filters by run, and ascending by lane.
type FiltersByRun = HashMap<u32, Vec<HeldFilter>, BuildHasherDefault<Mixer>>;

/// A filter of which at least one piece is held.
#[derive(Debug)]
struct HeldFilter {
    lane: u16,
    pieces: Box<[HeldPiece]>,
    /// Number of pieces held.
    count: u32,
}

impl HeldFilter {
    fn new(lane: u16, pieces: usize) -> Self {
        let pieces = std::iter::repeat_with(HeldPiece::default).take(pieces);
        Self {
            lane,
            pieces: pieces.collect(),
            count: 0,
        }
    }
}

/// The place of a piece.
#[derive(Debug, Default)]
pub(crate) struct HeldPiece {
    piece: Option<FilterPiece>,
    used: UsedMark,
}

/// The cache, locked for several questions: they take one lock, and their waits for memory overlap.
pub(crate) struct FilterReader<'c>(RwLockReadGuard<'c, FilterPieceRows>);

/// The filters of a run, as far as they are held.
#[derive(Clone, Copy)]
pub(crate) struct RunFilters<'r>(&'r [HeldFilter]);

/// A question whether a lane of a run may hold codes, as far as it is answered.
#[derive(Clone, Copy)]
pub(crate) enum FilterQuestion<'r> {
    /// The piece in this slot decides about this bucket, if it is held.
    Piece(&'r HeldPiece, u64),
    /// This block of a piece decides.
    Block(FilterProbe<'r>),
    Decided(FilterVerdict),
}

/// The verdict of the filters in memory on codes of a lane of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterVerdict {
    /// It does not hold them.
    RuledOut,
    /// It may.
    MayHold,
    /// The piece that decides is not in memory.
    NotHeld,
}

impl FilterQuestion<'_> {
    /// Decides questions, and waits for memory for many of them together.
    ///
    /// # Errors
    /// Returns the errors of [`FilterPiece::probe`].
    pub(crate) fn decide_all(questions: &mut [Self]) -> Result<()> {
        for questions in questions.chunks_mut(ASKED_TOGETHER) {
            // This is separate from the computation, so that the processor has as many reads in
            // progress as possible.
            touch_all(questions);
            for question in &mut *questions {
                question.locate()?;
            }
            touch_all(questions);
            let open = questions.iter_mut().filter_map(|question| match *question {
                Self::Block(probe) => Some((probe, question)),
                _ => None,
            });
            FilterProbe::ask_all(open, |question, may_hold| *question = Self::of(may_hold));
        }
        Ok(())
    }

    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) unless it is decided.
    #[inline]
    pub(crate) fn verdict(self) -> Result<FilterVerdict> {
        match self {
            Self::Decided(verdict) => Ok(verdict),
            Self::Piece(..) | Self::Block(_) => Err(bug("a question to a filter is open")),
        }
    }

    /// Finds the block that decides.
    #[inline]
    fn locate(&mut self) -> Result<()> {
        let Self::Piece(held, bucket) = *self else {
            return Ok(());
        };
        let Some(piece) = &held.piece else {
            *self = Self::Decided(FilterVerdict::NotHeld);
            return Ok(());
        };
        held.used.set();
        *self = Self::Block(piece.probe(bucket)?);
        Ok(())
    }

    #[inline]
    fn of(may_hold: bool) -> Self {
        Self::Decided(match may_hold {
            true => FilterVerdict::MayHold,
            false => FilterVerdict::RuledOut,
        })
    }

    /// Reads the memory that the next step needs.
    #[inline]
    fn touch(&self) -> u8 {
        match self {
            Self::Piece(held, _) => held.used.is_set().into(),
            Self::Block(probe) => probe.touch(),
            Self::Decided(_) => 0,
        }
    }
}

#[inline]
fn touch_all(questions: &[FilterQuestion<'_>]) {
    let touched = questions.iter().map(FilterQuestion::touch);
    std::hint::black_box(touched.fold(0, |all, byte| all ^ byte));
}

impl FilterReader<'_> {
    #[inline]
    pub(crate) fn of_run(&self, run: u32) -> RunFilters<'_> {
        RunFilters(self.0.filters.get(&run).map_or(&[], Vec::as_slice))
    }

    /// Answers one question: whether a filter may hold codes of `low_code..=high_code`.
    ///
    /// # Errors
    /// Returns the errors of [`FilterPiece::probe`].
    pub(crate) fn ask(
        &self,
        filter: &FilterOf,
        low_code: u64,
        high_code: u64,
    ) -> Result<FilterVerdict> {
        let mut question = [self
            .of_run(filter.run)
            .question(filter, low_code, high_code)];
        FilterQuestion::decide_all(&mut question)?;
        let [question] = question;
        question.verdict()
    }
}

impl<'r> RunFilters<'r> {
    /// Prepares the question whether a filter of the run may hold codes of `low_code..=high_code`,
    /// without reading the piece. Many questions can then be prepared before the first waits for
    /// memory.
    #[inline]
    pub(crate) fn question(
        self,
        filter: &FilterOf,
        low_code: u64,
        high_code: u64,
    ) -> FilterQuestion<'r> {
        let Some(bucket) = filter.bucket(low_code, high_code) else {
            // They are in several buckets, and it may hold any of these.
            return FilterQuestion::Decided(FilterVerdict::MayHold);
        };
        let index = index_of_lane(self.0, filter.lane, |held| held.lane);
        let held = index.and_then(|index| self.0.get(index));
        let number = filter.shape.piece(bucket) as usize;
        match held.and_then(|held| held.pieces.get(number)) {
            Some(held) => FilterQuestion::Piece(held, bucket),
            None => FilterQuestion::Decided(FilterVerdict::NotHeld),
        }
    }
}

impl FilterCache {
    /// Makes a cache that holds at most about `max_bytes` bytes.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            pieces: RwLock::default(),
            max_bytes,
        }
    }

    pub(crate) fn reader(&self) -> FilterReader<'_> {
        FilterReader(self.pieces.read().ignore_poison())
    }

    /// Keeps a piece that was read, and returns its verdict.
    ///
    /// # Errors
    /// Returns the errors of [`FilterPiece::may_hold`].
    pub(super) fn answer(
        &self,
        filter: &FilterOf,
        bucket: u64,
        piece: FilterPiece,
    ) -> Result<bool> {
        let may_hold = piece.may_hold(bucket)?;
        let number = filter.shape.piece(bucket);
        self.keep((filter.run, filter.lane, number), filter.shape, piece);
        Ok(may_hold)
    }

    /// Forgets all runs but these.
    pub(super) fn retain_runs(&self, is_kept: impl Fn(u32) -> bool) {
        let mut pieces = self.pieces.write().ignore_poison();
        for key in pieces.clock.extract(|(run, ..)| !is_kept(*run)) {
            pieces.forget(key);
        }
    }

    /// Bytes held.
    pub(super) fn size_bytes(&self) -> usize {
        self.reader().0.size_bytes
    }

    fn keep(&self, key: PieceKey, shape: FilterShape, piece: FilterPiece) {
        if shape.pieces <= MAX_PIECES {
            let mut pieces = self.pieces.write().ignore_poison();
            pieces.keep(key, shape, piece, self.max_bytes);
        }
    }
}

fn slot_bytes(pieces: usize) -> usize {
    pieces * size_of::<HeldPiece>()
}

fn piece_bytes(piece: &FilterPiece) -> usize {
    piece.size_bytes() + PIECE_BYTES
}

impl FilterPieceRows {
    fn keep(&mut self, key: PieceKey, shape: FilterShape, piece: FilterPiece, max_bytes: usize) {
        let (run, lane, number) = key;
        if Self::slot(&self.filters, key).is_some_and(|slot| slot.piece.is_some()) {
            // The lock is not held while the file is read, so another thread may have read the same
            // piece.
            return;
        }
        let pieces = shape.pieces as usize;
        if number >= shape.pieces || slot_bytes(pieces) + piece_bytes(&piece) > max_bytes {
            return;
        }
        // The dropped piece may be the last one of this filter, and its slots are dropped with it.
        let room = |this: &Self| match this.position(run, lane) {
            Some(_) => piece_bytes(&piece),
            None => slot_bytes(pieces) + piece_bytes(&piece),
        };
        while self.size_bytes + room(self) > max_bytes {
            self.drop_one();
        }
        self.size_bytes += room(self);
        let filters = self.filters.entry(run).or_default();
        let index = match filters.binary_search_by_key(&lane, |held| held.lane) {
            Ok(index) => index,
            Err(index) => {
                filters.insert(index, HeldFilter::new(lane, pieces));
                index
            }
        };
        let Some(filter) = filters.get_mut(index) else {
            return;
        };
        if let Some(slot) = filter.pieces.get_mut(number as usize) {
            slot.used.take();
            slot.piece = Some(piece);
            filter.count += 1;
            self.clock.push(key);
        }
    }

    fn position(&self, run: u32, lane: u16) -> Option<usize> {
        index_of_lane(self.filters.get(&run)?, lane, |held| held.lane)
    }

    fn slot(filters: &FiltersByRun, (run, lane, number): PieceKey) -> Option<&HeldPiece> {
        let of_run = filters.get(&run)?;
        let index = index_of_lane(of_run, lane, |held| held.lane)?;
        of_run.get(index)?.pieces.get(number as usize)
    }

    /// Drops the next piece that no probe has used since the hand passed it last.
    fn drop_one(&mut self) {
        let Self { filters, clock, .. } = self;
        let take_mark =
            |key: &PieceKey| Self::slot(filters, *key).is_some_and(|slot| slot.used.take());
        // The hand may have to pass all of them, from where it is to the end and from the beginning.
        let dropped = (0..3).find_map(|_| clock.pop_unused(take_mark));
        if let Some(key) = dropped {
            self.forget(key);
        }
    }

    /// Forgets a piece that the clock has no more.
    fn forget(&mut self, (run, lane, number): PieceKey) {
        let Some(filters) = self.filters.get_mut(&run) else {
            return;
        };
        let index = index_of_lane(filters, lane, |held| held.lane);
        let Some(filter) = index.and_then(|index| filters.get_mut(index)) else {
            return;
        };
        let slot = filter.pieces.get_mut(number as usize);
        let mut freed_bytes = slot
            .and_then(|slot| slot.piece.take())
            .as_ref()
            .map_or(0, piece_bytes);
        filter.count -= 1;
        if filter.count == 0 {
            freed_bytes += slot_bytes(filter.pieces.len());
            filters.retain(|held| held.count > 0);
        }
        if filters.is_empty() {
            self.filters.remove(&run);
        }
        debug_assert!(self.size_bytes >= freed_bytes);
        self.size_bytes -= freed_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUCKETS: BucketBits = BucketBits {
        shift: 0,
        length: 64,
    };

    /// 1,000 pieces, of one block each.
    const SHAPE: FilterShape = FilterShape {
        pieces: 1_000,
        blocks: 1,
        set_bits: 8,
    };

    #[test]
    fn filter_cache_ignores_an_absurd_piece_count() {
        let (_, piece) = piece(0);
        let shape = |pieces| FilterShape { pieces, ..SHAPE };
        let cache = FilterCache::new(1 << 30);
        cache.keep((7, 1, 0), shape(u32::MAX), piece.clone());
        cache.keep((8, 1, 0), shape(MAX_PIECES + 1), piece.clone());
        assert_eq!(cache.size_bytes(), 0);
        cache.keep((9, 1, 0), shape(MAX_PIECES), piece.clone());
        assert!(cache.size_bytes() > slot_bytes(MAX_PIECES as usize));
        // The slots count.
        let cache = FilterCache::new(slot_bytes(1_000));
        cache.keep((7, 1, 0), SHAPE, piece);
        assert_eq!(cache.size_bytes(), 0);
    }

    fn filter(run: u32) -> FilterOf {
        FilterOf {
            run,
            lane: 1,
            shape: SHAPE,
            buckets: BUCKETS,
        }
    }

    /// A code of a piece, and the piece with it.
    fn piece(number: u32) -> (u64, FilterPiece) {
        let code = u64::MAX / 1_000 * u64::from(number) + 1_000_000;
        let mut piece = FilterPiece::new(SHAPE);
        piece.insert(BUCKETS.bucket(code)).unwrap();
        (code, piece)
    }

    #[test]
    fn filter_cache_stays_within_its_limit_and_keeps_used_pieces() {
        let slots = slot_bytes(1_000);
        let twenty = slots + 20 * piece_bytes(&piece(0).1);
        let cache = FilterCache::new(twenty);
        let ask = |run, code| cache.reader().ask(&filter(run), code, code).unwrap();
        for number in 0..1_000 {
            let (code, piece) = piece(number);
            assert_eq!(ask(7, code), FilterVerdict::NotHeld);
            cache.keep((7, 1, number), SHAPE, piece);
            assert_eq!(ask(8, code), FilterVerdict::NotHeld);
            // The first one is queried repeatedly, so it is kept.
            assert_eq!(ask(7, self::piece(0).0), FilterVerdict::MayHold);
            assert!(cache.size_bytes() <= twenty);
        }
        let held = (0..1_000).filter(|number| ask(7, piece(*number).0) != FilterVerdict::NotHeld);
        assert_eq!(held.count(), 20);
        let of_several_buckets = cache.reader().ask(&filter(7), 0, u64::MAX).unwrap();
        assert_eq!(of_several_buckets, FilterVerdict::MayHold);
        cache.retain_runs(|run| run == 7);
        assert_eq!(cache.size_bytes(), twenty);
        cache.retain_runs(|run| run == 8);
        assert_eq!(cache.size_bytes(), 0);
        assert_eq!(ask(7, piece(0).0), FilterVerdict::NotHeld);
        // A filter without pieces would keep the slots of them all.
        assert!(cache.pieces.read().ignore_poison().filters.is_empty());
    }

    #[test]
    fn filter_cache_batch_agrees_with_single_lookups() {
        let cache = FilterCache::new(1 << 30);
        for number in (0..1_000).filter(|number| number % 3 > 0) {
            cache.keep((7, 1, number), SHAPE, piece(number).1);
        }
        let codes = |number| match number % 7 {
            // In a bucket that no code was inserted of, and in several.
            0 => (piece(number).0 + 1, piece(number).0 + 1),
            1 => (piece(number).0, u64::MAX),
            _ => (piece(number).0, piece(number).0),
        };
        let reader = cache.reader();
        let question = |number| {
            let (low, high) = codes(number);
            reader.of_run(7).question(&filter(7), low, high)
        };
        let mut questions: Vec<FilterQuestion<'_>> = (0..1_000).map(question).collect();
        assert!(questions.len() > 2 * ASKED_TOGETHER);
        FilterQuestion::decide_all(&mut questions).unwrap();
        let mut counts = [0; 3];
        for (number, question) in (0..).zip(questions) {
            let verdict = question.verdict().unwrap();
            let (low, high) = codes(number);
            assert_eq!(verdict, reader.ask(&filter(7), low, high).unwrap());
            counts[verdict as usize] += 1;
        }
        assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
        // An undecided question does not count as decided.
        assert!(question(1).verdict().is_ok() && question(2).verdict().is_err());
    }

    #[test]
    fn filter_cache_without_room_is_empty() {
        let cache = FilterCache::new(0);
        let (code, piece) = piece(5);
        cache.keep((1, 1, 5), SHAPE, piece);
        let asked = cache.reader().ask(&filter(1), code, code).unwrap();
        assert_eq!((cache.size_bytes(), asked), (0, FilterVerdict::NotHeld));
    }
}
