//! All near pairs of a store, and the clusters that they make.
//!
//! Reads whole lanes of a snapshot; imports `query` for bounds and scores.

mod batch;
mod cluster_questions;
mod clusters;
mod compare;
mod estimate;
mod gather;
mod join_lanes;
mod missed_pairs;
mod pairs;
mod partners;
mod request;
mod settings;
mod signature_batch;
mod source;
#[cfg(test)]
mod tests;
mod verify;

pub use cluster_questions::{GrownCluster, Representative};
pub(crate) use cluster_questions::{
    clusters_since, edges_of, in_clusters, path_between, representative, suspicious,
};
pub use clusters::{Clusters, SuspiciousCluster};
pub use estimate::JoinEstimate;
pub use missed_pairs::{FamilySums, MissedPairs};
pub use pairs::Pairs;
pub use request::{Join, JoinedDocuments};
pub use settings::LeftOut;
pub(crate) use signature_batch::SignatureBatch;
pub(crate) use source::{JoinSource, LanePostings, LiveDocuments, VisitFingerprints, VisitNotes};
pub use verify::Pair;
