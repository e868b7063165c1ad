//! What a store finds, measured against exact similarities.
//!
//! It knows neither corpora nor options: texts come one by one, and whoever measures is told how far
//! it is, and can stop it, by a closure that returns an error.

mod comparison;
mod evaluation;
mod kinds;
mod sample;
mod tally;

pub(crate) use comparison::{ComparedKind, ComparedPairs, MAX_SIGNATURE_BYTES, compare_kinds};
pub(crate) use evaluation::Evaluation;
pub(crate) use kinds::{SIGNATURE_KINDS, SignatureKind, signature_bytes};
pub(crate) use sample::{Sample, SampleAddition, SampleLimits, Sampler};
pub(crate) use tally::{
    EstimateErrors, MinHashTally, ReturnedPairs, SimHashTally, SimilarityStep, step_name,
};
