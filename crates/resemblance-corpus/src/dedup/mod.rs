//! A corpus without its near-duplicates.
//!
//! A [`Deduplicator`] decides on documents as they arrive: one is kept unless it is near one that
//! was kept before. Once all documents are in a collection or a store, [`duplicates`] lists those
//! to remove, by one of three policies and by the caller's preference. In both, similarities are
//! estimates, or exact where features are kept in
//! [`FeatureSets`](crate::verification::FeatureSets). [`RepeatedParts`] removes paragraphs and
//! lines that have appeared in an earlier text.

mod deduplicator;
mod duplicates;
mod in_order;
mod policy;
mod repeats;

pub use deduplicator::Deduplicator;
pub use duplicates::{Duplicate, Duplicates, duplicates};
pub use policy::{DedupPolicy, Preference};
pub use repeats::{RepeatedParts, TextPart, TextParts, Trimmed};
