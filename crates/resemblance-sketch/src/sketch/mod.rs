//! Turns features into signatures: all kinds of MinHash, and SimHash. Also computes the exact
//! similarities that signatures estimate.
//!
//! Every module above may import recipes, sketchers, signatures and the layout of stored values.
//! This module imports only `text` and errors; it knows neither stores nor files.

mod b_bit;
mod bottom_k;
mod containment;
mod distinct;
mod draft;
pub mod exact;
mod features;
mod frequencies;
mod hash;
mod hash_functions;
mod min_hash;
mod minhash;
mod one_pass;
mod recipe;
mod self_test;
mod signature;
mod simhash;
mod sketcher;
#[cfg(test)]
mod tests;
mod values;
mod vector;
mod weighted;
mod weighting;

pub use containment::Containment;
pub use containment::{KEPT_HASH_BITS, KeptHashes, KeptShingle};
pub use draft::StreamedText;
pub use frequencies::DocumentFrequencies;
pub use hash::feature_hash;
pub use hash::mix64;
pub use minhash::{Permutations, vector_instructions};
pub use recipe::{EmptyDocuments, MinHashKind};
pub use recipe::{MinHashRecipe, Recipe, RecipeMark};
pub use signature::Signature;
pub use simhash::is_present;
pub use sketcher::Sketcher;
pub use sketcher::values_by_every_kernel;
pub use values::ValueLayout;
pub(crate) use vector::INTERVAL;
#[doc(hidden)]
pub use vector::half_to_single;
pub use vector::{DenseVector, KeptVector, VectorKind, VectorMetric};
