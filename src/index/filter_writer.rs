//! Packs the filter of a lane while the lane is packed.

use crate::engine::{EngineResult, Table};
use crate::error::{Error, Result};
use crate::format::{FilterKey, FilterPiece, FilterShape, Posting, filter_key};
use crate::index::row_buffer::RowBuffer;
use resemblance_sketch::lanes::BucketBits;

/// A table of pieces of filters, open for writing.
pub(crate) type FilterPieces<'t> = Table<'t, &'static FilterKey, &'static [u8]>;

/// The size and kind of a lane's filter, before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilterPlan {
    pub(crate) shape: FilterShape,
    pub(crate) buckets: BucketBits,
}

/// Packs the pieces of one filter, in order.
pub(super) struct FilterPacker {
    run: u32,
    lane: u16,
    plan: FilterPlan,
    /// The number of the piece that is being filled.
    number: u32,
    piece: FilterPiece,
}

impl FilterPacker {
    pub(crate) fn new(run: u32, lane: u16, plan: FilterPlan) -> Self {
        Self {
            run,
            lane,
            number: 0,
            piece: FilterPiece::new(plan.shape),
            plan,
        }
    }

    /// Continues where the pieces before that of `after` have been written. The codes of that piece
    /// up to `after` have to be pushed again.
    pub(super) fn resume(&mut self, after: Posting) {
        self.number = self.plan.shape.piece(self.plan.buckets.bucket(after.code));
    }

    /// Returns a code that is at most the lowest code in the piece of `code`.
    pub(super) fn first_code(&self, code: u64) -> u64 {
        let buckets = self.plan.buckets;
        let piece = u128::from(self.plan.shape.piece(buckets.bucket(code)));
        let bucket = (piece << 64) / u128::from(self.plan.shape.pieces.max(1));
        // The quotient of a smaller number by a greater one, times 2^64. A lane with one bucket has
        // codes of no bits.
        (bucket as u64).checked_shr(buckets.shift).unwrap_or(0)
    }

    /// Pushes the codes of the piece again where the lane continues.
    pub(super) fn restore(&mut self, codes: impl IntoIterator<Item = u64>) -> Result<()> {
        let FilterPlan { shape, buckets } = self.plan;
        let restored = codes.into_iter().map(|code| buckets.bucket(code));
        let number = self.number;
        self.piece
            .insert_all(restored.filter(|bucket| shape.piece(*bucket) == number))
    }

    /// Takes the next postings of the lane, in order.
    pub(super) fn push_all(
        &mut self,
        postings: &[Posting],
        pieces: &mut RowBuffer<FilterKey>,
    ) -> Result<()> {
        let FilterPlan { shape, buckets } = self.plan;
        let number_of = |posting: &Posting| shape.piece(buckets.bucket(posting.code));
        let mut rest = postings;
        while let Some(number) = rest.first().map(number_of) {
            self.close_until(number, pieces);
            let count = rest.partition_point(|posting| number_of(posting) <= number);
            let (of_piece, after) = rest.split_at(count);
            let codes = of_piece.iter().map(|posting| posting.code);
            self.piece
                .insert_all(codes.map(|code| buckets.bucket(code)))?;
            rest = after;
        }
        Ok(())
    }

    /// Packs the rest.
    pub(crate) fn finish(&mut self, pieces: &mut RowBuffer<FilterKey>) {
        self.close_until(self.plan.shape.pieces, pieces);
    }

    /// Packs the pieces before this one.
    fn close_until(&mut self, number: u32, pieces: &mut RowBuffer<FilterKey>) {
        while self.number < number {
            let key = filter_key(self.run, self.lane, self.number);
            pieces.push(key, &self.piece.encode(&key));
            self.piece.clear();
            self.number += 1;
        }
    }
}

/// Removes the pieces `from..to` of a filter.
///
/// # Errors
/// [`Error::Corrupt`] if one is missing, and those of writing.
pub(super) fn remove_pieces(
    table: &mut FilterPieces<'_>,
    run: u32,
    lane: u16,
    pieces: std::ops::Range<u32>,
) -> Result<()> {
    for piece in pieces {
        let removed = table.remove(&filter_key(run, lane, piece));
        if removed.engine()?.is_none() {
            return Err(missing_piece(run, lane, piece));
        }
    }
    Ok(())
}

pub(super) fn missing_piece(run: u32, lane: u16, piece: u32) -> Error {
    let place = format!("table filters, run {run}, lane {lane}");
    let detail = format!("piece {piece} is missing (invariant 9)");
    Error::corrupt(place, detail)
}
