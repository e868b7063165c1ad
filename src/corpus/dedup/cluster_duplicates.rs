//! The policy *cluster*: of each cluster of near-duplicates the first document is kept.

use std::sync::Arc;
use std::vec;

use crate::corpus::verification::FeatureFiles;
use crate::error::Result;
use crate::invariant::OrBug;
use crate::join::{
    Clusters, JoinOptions, LeftOut, SuspiciousCluster, clusters_verified, clusters_with,
};
use crate::query::Bounds;
use crate::read::SnapshotView;
use crate::types::{DocumentId, Record};

/// A member of a cluster that is not its first document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ClusterMember {
    id: DocumentId,
    first: DocumentId,
}

/// A document that is not the first of its cluster, and how near it is to that one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClusterDuplicate {
    /// The document.
    pub document: Record,
    /// The first document of its cluster.
    pub survivor: Record,
    /// Their Jaccard similarity, 0 to 1, if the schema has MinHash. It may lie below the bound: the two
    /// may be linked by others.
    pub similarity: Option<f64>,
    /// True if the similarity is no estimate.
    pub is_exact: bool,
    /// Their Hamming distance in bits, if the schema has SimHash.
    pub distance: Option<u32>,
}

/// The documents of a snapshot that are not the first of their clusters, in the order of their
/// insertion: see [`Snapshot::cluster_duplicates`](crate::Snapshot::cluster_duplicates).
pub struct ClusterDuplicates {
    snapshot: SnapshotView,
    features: Option<Arc<FeatureFiles>>,
    members: vec::IntoIter<ClusterMember>,
    /// Already drained; kept for its count of what was left out.
    clusters: Clusters,
}

impl ClusterDuplicates {
    /// See [`crate::Snapshot::cluster_duplicates`].
    pub(crate) fn find(
        snapshot: &SnapshotView,
        bounds: Bounds,
        options: &JoinOptions,
        features: Option<Arc<FeatureFiles>>,
    ) -> Result<Self> {
        let mut clusters = match features.clone() {
            Some(features) => {
                let similarity = move |a, b| features.similarity(a, b);
                clusters_verified(snapshot, bounds, options, similarity)?
            }
            None => clusters_with(snapshot, bounds, options)?,
        };
        let mut members = Vec::new();
        for cluster in clusters.by_ref() {
            if let [first, rest @ ..] = cluster.as_slice() {
                let first = *first;
                members.extend(rest.iter().map(|id| ClusterMember { id: *id, first }));
            }
        }
        // Clusters come by their first documents; a report goes through the corpus once.
        members.sort_unstable();
        Ok(Self {
            snapshot: snapshot.clone(),
            features,
            members: members.into_iter(),
            clusters,
        })
    }

    /// Pairs that were not compared, because their buckets were cut short.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.clusters.left_out()
    }

    /// Clusters that are too large to be believed.
    #[must_use]
    pub fn suspicious(&self) -> &[SuspiciousCluster] {
        self.clusters.suspicious()
    }

    fn duplicate(&self, member: ClusterMember) -> Result<ClusterDuplicate> {
        let read = |id| {
            let record = self.snapshot.get_id(id)?;
            record.or_bug("a cluster has a document that is not stored")
        };
        let (document, survivor) = (read(member.id)?, read(member.first)?);
        let exact = match &self.features {
            Some(features) => features.similarity(member.id, member.first)?,
            None => None,
        };
        let (a, b) = (document.signature(), survivor.signature());
        let estimate = a.minhash().map(|_| a.jaccard(b)).transpose()?;
        let distance = a.simhash().map(|_| a.hamming(b)).transpose()?;
        Ok(ClusterDuplicate {
            similarity: exact.or(estimate),
            is_exact: exact.is_some(),
            distance,
            document,
            survivor,
        })
    }
}

impl Iterator for ClusterDuplicates {
    type Item = Result<ClusterDuplicate>;

    fn next(&mut self) -> Option<Self::Item> {
        let member = self.members.next()?;
        Some(self.duplicate(member))
    }
}
