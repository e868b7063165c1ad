//! All near pairs of a store, and the clusters that they make.
//!
//! Reads whole lanes of a snapshot; imports `query` for bounds and scores.

mod batch;
mod buckets;
mod clusters;
mod compare;
mod disjoint_sets;
mod estimate;
mod gather;
mod join_lanes;
mod linker;
mod live;
mod noted;
mod options;
mod pair;
mod pairs;
mod partners;
mod request;
mod resident;
mod settings;
mod signature_batch;
mod source;
#[cfg(test)]
mod tests;
mod verify;

pub use clusters::{Clusters, SuspiciousCluster};
pub(crate) use disjoint_sets::DisjointSets;
pub use estimate::JoinEstimate;
pub(crate) use live::LiveDocuments;
pub use options::LeftOut;
pub use pair::Pair;
pub use pairs::Pairs;
pub use request::Join;
pub(crate) use signature_batch::SignatureBatch;
pub(crate) use source::{JoinSource, LanePostings, VisitFingerprints, VisitNotes};
