//! Checks invariant 9: filters exclude no existing posting.

use std::collections::BTreeMap;

use crate::engine::{EngineResult, ReadableTable};
use crate::error::{Error, Result};
use crate::format::{
    FILTERS, FilterPiece, FilterShape, LaneSummary, RunDescriptor, filter_key, split_filter_key,
};
use crate::invariant::OrBug;
use crate::read::SnapshotView;
use crate::types::CheckReport;
use resemblance_sketch::lanes::BucketBits;

/// Asks the filter of a lane for each of its postings, in their order.
pub(super) struct FilterCheck<'a> {
    snapshot: &'a SnapshotView,
    run: u32,
    lane: u16,
    buckets: BucketBits,
    /// The shape of the filter; `None` if there is no filter, or a piece could not be read.
    shape: Option<FilterShape>,
    piece: Option<(u32, FilterPiece)>,
}

impl<'a> FilterCheck<'a> {
    pub(crate) fn new(snapshot: &'a SnapshotView, run: &RunDescriptor, lane: &LaneSummary) -> Self {
        Self {
            snapshot,
            run: run.run,
            lane: lane.lane,
            buckets: snapshot.context().lanes.bucket_bits(lane.lane),
            shape: lane.filter.filter(|_| !run.is_growing(lane.lane)),
            piece: None,
        }
    }

    /// Returns an error, the first time, if the filter rules the code out or cannot be read.
    pub(super) fn holds(&mut self, code: u64) -> Result<()> {
        let Some(shape) = self.shape else {
            return Ok(());
        };
        let bucket = self.buckets.bucket(code);
        let number = shape.piece(bucket);
        if self.piece.as_ref().is_none_or(|(held, _)| *held != number) {
            let piece = self.read(shape, number);
            if piece.is_err() {
                self.shape = None;
            }
            self.piece = Some((number, piece?));
        }
        let piece = self
            .piece
            .as_ref()
            .or_bug("the piece that has just been read")?;
        if piece.1.may_hold(bucket)? {
            return Ok(());
        }
        self.shape = None;
        let detail = format!("code {code:#x} is ruled out, but there (invariant 9)");
        Err(Error::corrupt(self.place(), detail))
    }

    fn place(&self) -> String {
        format!("table {FILTERS}, run {}, lane {}", self.run, self.lane)
    }

    fn read(&self, shape: FilterShape, number: u32) -> Result<FilterPiece> {
        let key = filter_key(self.run, self.lane, number);
        let Some(row) = self.snapshot.inner.tables()?.filters.get(&key).engine()? else {
            let detail = format!("piece {number} is missing (invariant 9)");
            return Err(Error::corrupt(self.place(), detail));
        };
        FilterPiece::decode(&key, shape, row.value())
    }
}

/// Checks that the pieces of filters are those of the runs, no more and no fewer, and reports each
/// difference.
pub(super) fn check_pieces(snapshot: &SnapshotView, report: &mut CheckReport) -> Result<()> {
    let mut found: BTreeMap<(u32, u16), u32> = BTreeMap::new();
    let runs = &snapshot.inner.version.runs;
    for entry in snapshot.inner.tables()?.filters.iter().engine()? {
        let (run, lane, piece) = split_filter_key(entry.engine()?.0.value());
        let descriptor = runs.descriptors().find(|descriptor| descriptor.run == run);
        let shape = descriptor.and_then(|run| run.lane(lane)?.filter);
        if shape.is_none_or(|shape| piece >= shape.pieces) {
            let place = format!("table {FILTERS}, run {run}, lane {lane}");
            report.add(9, place, format!("found piece {piece}, expected none"));
            continue;
        }
        *found.entry((run, lane)).or_insert(0) += 1;
    }
    for run in runs.descriptors() {
        for lane in &run.lanes {
            let Some(shape) = lane.filter.filter(|_| !run.is_growing(lane.lane)) else {
                continue;
            };
            let buckets = snapshot.context().lanes.bucket_bits(lane.lane);
            let dropped = lane
                .after
                .map_or(0, |after| shape.piece(buckets.bucket(after.code)));
            // A filter of which no piece is there has no count.
            let pieces = found.get(&(run.run, lane.lane)).copied().unwrap_or(0);
            let expected = shape.pieces.saturating_sub(dropped);
            if pieces != expected {
                let place = format!("table {FILTERS}, run {}, lane {}", run.run, lane.lane);
                let detail = format!("found {pieces} pieces, expected {expected}");
                report.add(9, place, detail);
            }
        }
    }
    Ok(())
}
