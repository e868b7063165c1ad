//! A corpus without its near-duplicates.
//!
//! A [`Deduplicator`] decides on documents as they come: one is kept unless it is near one that was kept
//! before. Once all documents are in a collection or a store, [`Join::duplicates`](crate::Join::duplicates)
//! lists those that go, by one of three policies and by what the caller prefers. In both, similarities are estimates, or exact where features are kept in
//! [`FeatureSets`](crate::corpus::verification::FeatureSets).
//!
//! Imports `verification`, `join`, `write` and below.

mod deduplicator;
mod duplicates;
mod in_order;
mod kept;
mod memory_index;
mod policy;

pub use deduplicator::{DedupDecision, Deduplicator};
pub use duplicates::{Duplicate, Duplicates};
pub use policy::{DedupPolicy, Preference};
