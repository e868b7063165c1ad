//! Turns MinHash values and SimHash fingerprints into codes, one for each lane. Contains bands,
//! permuted tables, and the functions that choose them.
//!
//! Every module above may import everything here. This module imports only errors; it knows neither
//! signatures nor files.

mod bands;
mod curve;
mod lane_set;
mod radii;
mod tables;
mod tuning;

pub use bands::Banding;
pub(crate) use bands::{binomial_terms, check_recall, check_threshold};
pub use curve::{AgreementCurve, IntervalWidth};
pub(crate) use curve::{distance_at, similarity_at};
pub use lane_set::{BucketBits, LaneCode, LaneRole, LaneSet, hash_key};
pub use radii::{HELD_POSTING_BYTES, HELD_ROW_BYTES, POSTING_BYTES, ProbeRadii};
pub use tables::{PermutedTable, TableDesign};
pub use tuning::{TYPICAL_FEATURES, choose_design, simhash_probability};

/// Returns the index of the entry for a lane in a slice that is sorted by lane.
#[inline]
pub fn index_of_lane<T>(of_lanes: &[T], lane: u16, lane_of: impl Fn(&T) -> u16) -> Option<usize> {
    // Entries usually follow each other without gaps.
    let place = usize::from(lane.checked_sub(lane_of(of_lanes.first()?))?);
    match of_lanes.get(place) {
        Some(at_place) if lane_of(at_place) == lane => Some(place),
        _ => of_lanes.binary_search_by_key(&lane, lane_of).ok(),
    }
}
