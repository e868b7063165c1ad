//! The policy *cluster*: of each cluster of near-duplicates the first document is kept.

use std::sync::Arc;

use resemblance::{Bounds, Clusters, DocumentId, JoinOptions, Record, Result, Snapshot};

use crate::exact::FeatureFiles;

/// A member of a cluster that is not its first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Follower {
    pub(crate) id: DocumentId,
    pub(crate) first: DocumentId,
}

/// How near two documents are, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Nearness {
    pub(crate) similarity: Option<f64>,
    /// True if the similarity is no estimate.
    pub(crate) is_exact: bool,
    pub(crate) distance: Option<u32>,
}

/// The clusters of a snapshot; by exact similarities if there are features.
pub(crate) fn clusters_of(
    snapshot: &Snapshot,
    bounds: Bounds,
    join: &JoinOptions,
    features: Option<Arc<FeatureFiles>>,
) -> Result<Clusters> {
    match features {
        Some(features) => {
            snapshot.clusters_verified(bounds, join, move |a, b| features.similarity(a, b))
        }
        None => snapshot.clusters_with(bounds, join),
    }
}

/// Takes all clusters: their members but the first ones, in the order of ids.
pub(crate) fn followers_of(clusters: &mut Clusters) -> Vec<Follower> {
    let mut followers = Vec::new();
    for cluster in clusters {
        if let [first, rest @ ..] = cluster.as_slice() {
            let first = *first;
            followers.extend(rest.iter().map(|id| Follower { id: *id, first }));
        }
    }
    // Clusters come by their first documents; whoever reports followers goes through the corpus once.
    followers.sort_unstable();
    followers
}

/// How near two documents are: exactly if both are in `features`, else by their signatures.
pub(crate) fn nearness_of(
    a: &Record,
    b: &Record,
    features: Option<&FeatureFiles>,
) -> Result<Nearness> {
    let exact = match features {
        Some(features) => features.similarity(a.id(), b.id())?,
        None => None,
    };
    let (a, b) = (a.signature(), b.signature());
    let estimate = a.minhash().map(|_| a.jaccard(b)).transpose()?;
    Ok(Nearness {
        similarity: exact.or(estimate),
        is_exact: exact.is_some(),
        distance: a.simhash().map(|_| a.hamming(b)).transpose()?,
    })
}
