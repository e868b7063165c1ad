//! All near pairs of a store, and the clusters that they make.
//!
//! Reads whole lanes of a snapshot; imports `query` for bounds and scores.

mod api;
mod batch;
mod buckets;
mod clusters;
mod compare;
mod disjoint_sets;
mod estimate;
mod gather;
mod options;
mod pairs;
mod partners;
mod settings;
mod signature_batch;
#[cfg(test)]
mod tests;
mod verify;

pub(crate) use api::{clusters_verified, clusters_with, pairs_verified, pairs_with};
pub use clusters::{Clusters, SuspiciousCluster};
pub use estimate::JoinEstimate;
pub(crate) use estimate::expect_join;
pub use options::{JoinOptions, LeftOut};
pub use pairs::{Pair, Pairs};
