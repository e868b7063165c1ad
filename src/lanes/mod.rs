//! Signatures become codes: bands, tables and how they are chosen.
//!
//! Knows no signature and no file, only values and fingerprints.

mod bands;
mod lanes;
mod tables;
mod tuning;

pub use bands::Banding;
pub(crate) use lanes::{BucketBits, LaneRole, Lanes, hash_key};
pub use tables::TableDesign;
pub use tuning::hamming_ball;
pub(crate) use tuning::{choose_design, simhash_probability};
