//! Exact similarities, and the classical forms of the sketches for given hashes.
//!
//! These functions compute exactly, from the features, what a [`Signature`](crate::Signature)
//! estimates. Use them to verify candidates and to check signatures.
//!
//! Two empty sets are equal and have similarity 1; an empty set and a nonempty one have 0.
//! [`Signature::jaccard`](crate::Signature::jaccard) follows the same rule. (A store does not pair
//! empty documents unless its schema says so: see [`EmptyDocuments`](crate::EmptyDocuments).)

mod classical;
mod exact_set;
mod fingerprints;
mod sets;
mod shared;
mod spans;
mod whole_texts;

pub use classical::{modular_minhash, permuted_table, simhash};
pub use exact_set::ExactSet;
pub(crate) use exact_set::SetHash;
pub use fingerprints::{
    angle, fingerprints_within, hamming, jaccard_of_bits, same_bit_probability, sensitivity,
};
pub use sets::{
    FeatureSet, WeightedSet, containment, cosine, dice, jaccard, jaccard_from, jaccard_of_sorted,
    overlap, probability_jaccard, weighted_cosine, weighted_jaccard,
};
pub use shared::shared_from;
pub use spans::{
    SharedPassage, SharedSpans, longest_shared_passage, shared_spans, span_of_shingles,
};
pub use whole_texts::WholeTexts;
