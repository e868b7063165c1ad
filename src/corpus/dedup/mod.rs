//! A corpus without its near-duplicates: which documents of a stream are kept, by either policy.
//!
//! *First* keeps a document unless it is near one that was kept before: a [`Deduplicator`] decides as
//! documents come. *Cluster* keeps the first document of each cluster of near-duplicates:
//! [`Join::duplicates`](crate::Join::duplicates) lists the others, once all
//! documents are in a store. In both, similarities are estimates, or exact where features are kept in
//! [`FeatureSets`](crate::corpus::verification::FeatureSets).
//!
//! Imports `verification`, `join`, `write` and below.

mod cluster_duplicates;
mod deduplicator;
mod kept;
mod memory_index;

pub use cluster_duplicates::{ClusterDuplicate, ClusterDuplicates};
pub use deduplicator::{DedupDecision, Deduplicator};
