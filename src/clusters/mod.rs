//! Clusters that a store keeps, with ids that last: connected components of the documents within the
//! bounds of its schema, or, with another linkage, stars or complete clusters.
//!
//! The table `forest` has a spanning tree of each cluster, and not every pair. Each document that
//! enters gets one edge to each component that is near it, to one of the newest documents there: a
//! document among a million near ones then has few edges, and its removal leaves few parts.
//!
//! Imports `query` and below.

mod cluster_tables;
mod disjoint_sets;
mod entering;
mod feed;
#[cfg(test)]
mod histories_tests;
mod leaving;
mod linkages;
mod relinking;

pub(crate) use cluster_tables::{ReadClusters, WrittenClusters, damaged_tree};
pub(crate) use disjoint_sets::{DisjointSets, Sets};
pub(crate) use entering::{
    check_kept, cluster_bounds, near_components, note_entered, signature_of,
};
pub use feed::ClusterChanges;
pub(crate) use feed::{ClusterLog, begin_feed_after};
pub(crate) use leaving::Reconnection;
pub(crate) use linkages::enter;
pub(crate) use relinking::Relinking;
