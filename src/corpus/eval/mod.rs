//! Measures recall: the pairs of a sample that a store finds, against exact similarities.
//!
//! Texts come one by one, and a closure that returns an error stops what takes long. Imports
//! `verification`, `query` and below.

mod evaluation;
mod sample;
mod spread;
mod tally;

pub use evaluation::Evaluation;
pub use sample::{DocumentSample, Sampler};
pub use spread::RecallSpread;
pub use tally::{
    EstimateErrors, FamilyTally, MinHashTally, MissedPair, ReturnedPairs, SimHashTally,
    SimilarityStep, step_name,
};
