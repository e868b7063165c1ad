//! Joins of a snapshot with itself: near-duplicate pairs, and the clusters that they form.

use std::sync::Arc;

use crate::error::Result;
use crate::join::clusters::Clusters;
use crate::join::options::JoinOptions;
use crate::join::pairs::Pairs;
use crate::query::Bounds;
use crate::read::SnapshotView;
use crate::types::DocumentId;

/// See [`crate::Snapshot::pairs_with`](crate::Snapshot::pairs_with).
pub(crate) fn pairs_with(
    snapshot: &SnapshotView,
    bounds: Bounds,
    options: &JoinOptions,
) -> Result<Pairs> {
    Pairs::new(snapshot.clone(), bounds, *options, false)
}

/// See [`crate::Snapshot::pairs_verified`](crate::Snapshot::pairs_verified).
pub(crate) fn pairs_verified(
    snapshot: &SnapshotView,
    bounds: Bounds,
    options: &JoinOptions,
    similarity: impl Fn(DocumentId, DocumentId) -> Result<Option<f64>> + Send + Sync + 'static,
) -> Result<Pairs> {
    let pairs = Pairs::new(snapshot.clone(), bounds, *options, false)?;
    Ok(pairs.verified(Arc::new(similarity)))
}

/// See [`crate::Snapshot::clusters_with`](crate::Snapshot::clusters_with).
pub(crate) fn clusters_with(
    snapshot: &SnapshotView,
    bounds: Bounds,
    options: &JoinOptions,
) -> Result<Clusters> {
    let links = Pairs::new(snapshot.clone(), bounds, *options, true)?;
    Clusters::of(links, snapshot.len())
}

/// See [`crate::Snapshot::clusters_verified`](crate::Snapshot::clusters_verified).
pub(crate) fn clusters_verified(
    snapshot: &SnapshotView,
    bounds: Bounds,
    options: &JoinOptions,
    similarity: impl Fn(DocumentId, DocumentId) -> Result<Option<f64>> + Send + Sync + 'static,
) -> Result<Clusters> {
    let pairs = Pairs::new(snapshot.clone(), bounds, *options, false)?.unverified();
    Clusters::of_verified(pairs, Arc::new(similarity), snapshot.len())
}
