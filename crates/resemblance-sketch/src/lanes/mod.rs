//! MinHash values and SimHash fingerprints become codes, one a lane: bands, permuted tables, and how they
//! are chosen.
//!
//! Every module above may import everything here. This module imports only errors: no signature and
//! no file.

mod bands;
mod lane_set;
mod radii;
mod tables;
mod tuning;

pub use bands::Banding;
pub(crate) use bands::{check_recall, check_threshold};
pub use lane_set::{BucketBits, LaneCode, LaneRole, LaneSet, hash_key};
pub use radii::{HELD_POSTING_BYTES, HELD_ROW_BYTES, POSTING_BYTES, ProbeRadii};
pub use tables::{PermutedTable, TableDesign};
pub use tuning::{choose_design, simhash_probability};

/// Returns the index of what belongs to a lane, among what ascends by lane.
#[inline]
pub fn index_of_lane<T>(of_lanes: &[T], lane: u16, lane_of: impl Fn(&T) -> u16) -> Option<usize> {
    // Mostly they follow each other without a gap.
    let place = usize::from(lane.checked_sub(lane_of(of_lanes.first()?))?);
    match of_lanes.get(place) {
        Some(at_place) if lane_of(at_place) == lane => Some(place),
        _ => of_lanes.binary_search_by_key(&lane, lane_of).ok(),
    }
}
