//! Measures recall: the pairs of a sample that a store finds, against exact similarities.
//!
//! Texts come one by one, and a closure that returns an error stops what takes long. Imports
//! `verification`, `query` and below.

mod comparison;
mod evaluation;
mod kinds;
mod sample;
mod spread;
mod tally;

pub use comparison::{ComparedKind, ComparedPairs, MAX_SIGNATURE_BYTES, compare_kinds};
pub use evaluation::Evaluation;
pub use kinds::{SIGNATURE_KINDS, SignatureKind, signature_bytes};
pub use sample::{
    DocumentSample, SampleAddition, SampleLimits, SampleSketch, SampleSketcher, Sampler,
};
pub use spread::{RecallSpread, SeedRecall};
pub use tally::{
    EstimateErrors, FamilyTally, MinHashTally, MissedPair, MissedPairs, ReturnedPairs,
    SimHashTally, SimilarityStep, step_name,
};
