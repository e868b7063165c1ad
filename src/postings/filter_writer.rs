//! Writes the filter of a lane while the lane is written.

use redb::Table;

use crate::format::engine::engine_error;
use crate::format::filter::{FilterKey, FilterPiece, FilterShape, filter_key};
use crate::format::posting::Posting;
use crate::lanes::BucketBits;
use crate::{Error, Result};

use super::run::Value;

/// A table of pieces of filters, open for writing.
pub(crate) type FilterTable<'t> = Table<'t, &'static FilterKey, Value>;

/// What the filter of a lane is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilterPlan {
    pub(crate) shape: FilterShape,
    pub(crate) buckets: BucketBits,
}

/// Writes the pieces of one filter, in order.
pub(crate) struct FilterWriter {
    run: u32,
    lane: u16,
    plan: FilterPlan,
    /// The number of the piece that is being filled.
    number: u32,
    piece: FilterPiece,
}

impl FilterWriter {
    pub(crate) fn new(run: u32, lane: u16, plan: FilterPlan) -> Self {
        Self {
            run,
            lane,
            number: 0,
            piece: FilterPiece::new(plan.shape),
            plan,
        }
    }

    /// Goes on where the pieces before that of `after` have been written. What that piece holds up
    /// to `after` has to be pushed again.
    pub(crate) fn resume(&mut self, after: Posting) {
        self.number = self.plan.shape.piece(self.plan.buckets.bucket(after.code));
    }

    /// The least code whose bucket belongs to the piece of `code`, or a lesser one.
    pub(crate) fn first_code(&self, code: u64) -> u64 {
        let buckets = self.plan.buckets;
        let piece = u128::from(self.plan.shape.piece(buckets.bucket(code)));
        let bucket = (piece << 64) / u128::from(self.plan.shape.pieces.max(1));
        // The quotient of a lesser number by a greater one, times 2^64.
        (bucket as u64).checked_shr(buckets.shift).unwrap_or(0)
    }

    /// Pushes again what the piece held where the lane goes on.
    pub(crate) fn restore(&mut self, codes: impl IntoIterator<Item = u64>) {
        for code in codes {
            let bucket = self.plan.buckets.bucket(code);
            if self.plan.shape.piece(bucket) == self.number {
                self.piece.insert(bucket);
            }
        }
    }

    /// Takes the next posting of the lane.
    ///
    /// # Errors
    /// Those of writing.
    #[inline]
    pub(crate) fn push(&mut self, table: &mut FilterTable<'_>, code: u64) -> Result<()> {
        let bucket = self.plan.buckets.bucket(code);
        let number = self.plan.shape.piece(bucket);
        while self.number < number {
            self.write(table)?;
        }
        self.piece.insert(bucket);
        Ok(())
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn finish(&mut self, table: &mut FilterTable<'_>) -> Result<()> {
        while self.number < self.plan.shape.pieces {
            self.write(table)?;
        }
        Ok(())
    }

    fn write(&mut self, table: &mut FilterTable<'_>) -> Result<()> {
        let key = filter_key(self.run, self.lane, self.number);
        table
            .insert(&key, self.piece.encode(&key).as_slice())
            .map_err(engine_error)?;
        self.piece.clear();
        self.number += 1;
        Ok(())
    }
}

/// Removes the pieces `from..to` of a filter.
///
/// # Errors
/// [`Error::Corrupt`] if one is missing, and those of writing.
pub(crate) fn remove_pieces(
    table: &mut FilterTable<'_>,
    run: u32,
    lane: u16,
    pieces: std::ops::Range<u32>,
) -> Result<()> {
    for piece in pieces {
        let removed = table.remove(&filter_key(run, lane, piece));
        if removed.map_err(engine_error)?.is_none() {
            return Err(missing_piece(run, lane, piece));
        }
    }
    Ok(())
}

pub(crate) fn missing_piece(run: u32, lane: u16, piece: u32) -> Error {
    let place = format!("table filters, run {run}, lane {lane}");
    let detail = format!("piece {piece} is missing (invariant 9)");
    Error::corrupt(place, detail)
}
