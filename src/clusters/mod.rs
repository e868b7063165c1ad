//! Clusters that a store keeps: connected components of the documents within the bounds of its
//! schema, with ids that last.
//!
//! The table `forest` has a spanning tree of each cluster, and not every pair. Each document that
//! enters gets one edge to each component that is near it, to the newest document there: a
//! document among a million equal ones then has few edges, and its removal leaves few parts.
//!
//! Imports `query` and below.

mod cluster_tables;
mod disjoint_sets;
mod entering;
mod leaving;

pub(crate) use cluster_tables::{ReadClusters, WrittenClusters};
pub(crate) use disjoint_sets::{DisjointSets, Sets};
pub(crate) use entering::{check_kept, cluster_bounds, enter, near_components, near_documents};
pub(crate) use leaving::Reconnection;
