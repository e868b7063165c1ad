//! Measures what a near-duplicate search finds, and plans what it should.
//!
//! - [`Sampler`] draws a sample of documents, and [`Evaluation`] asks a store of them for each one:
//!   recall, precision and the errors of estimates, against exact similarities.
//! - [`Background`], [`document_bytes`] and [`near_neighbour_plan`] compare schemas before a store is made.
#![doc = include_str!("../README.md")]

mod background;
mod costs;
mod evaluation;
mod near_neighbour;
mod sample;
mod spread;
mod tally;

pub use background::Background;
pub use costs::{BAND_POSTING_BYTES, TABLE_POSTING_BYTES, document_bytes};
pub use evaluation::Evaluation;
pub use near_neighbour::{NearNeighbourPlan, near_neighbour_plan};
pub use sample::{DocumentSample, Sampler};
pub use spread::RecallSpread;
pub use tally::{
    EstimateErrors, FamilyTally, MinHashTally, MissedPair, ReturnedPairs, SimHashTally,
    SimilarityStep, step_name,
};
