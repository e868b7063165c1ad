//! MinHash values and SimHash fingerprints become codes, one a lane: bands, permuted tables, and how they
//! are chosen.
//!
//! Every room above may import all that stands here. This room knows errors alone: no signature and no
//! file.

mod bands;
mod lane_set;
mod radii;
mod tables;
mod tuning;

pub use bands::Banding;
pub(crate) use lane_set::{BucketBits, LaneCode, LaneRole, LaneSet, hash_key};
pub(crate) use radii::{POSTING_BYTES, ProbeRadii};
pub use tables::TableDesign;
pub(crate) use tuning::{choose_design, simhash_probability};
