//! Questions about the clusters that a store keeps: what links documents, which one stands for all,
//! what has grown, and what is too large.

use std::collections::HashMap;

use crate::clusters::{ReadClusters, check_kept, damaged_tree, signature_of};
use crate::error::{Error, Result};
use crate::format::{DOCUMENTS, Link, RowHead, no_row};
use crate::id::ClusterId;
use crate::invariant::at;
use crate::join::clusters::{Clusters, SuspiciousCluster};
use crate::join::verify::Pair;
use crate::query::Scorer;
use crate::read::SnapshotView;
use crate::types::DocumentId;

/// The members that are compared to find a medoid.
const MEDOID_MEMBERS: usize = 64;

/// The rule by which a member represents a cluster: see
/// [`Snapshot::representative`](crate::Snapshot::representative).
///
/// ```
/// # use resemblance::{Document, MinHash, Representative, Schema, Store, Text, schema::ClusterBounds};
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
/// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// let first = store.insert(Document::new("a").stamp(20), &page)?;
/// let second = store.insert(Document::new("b").stamp(21), &page)?;
/// let snapshot = store.snapshot()?;
/// let cluster = snapshot.cluster_of("a")?.expect("two documents are in it");
/// assert_eq!(snapshot.representative(cluster, Representative::First)?, Some(first));
/// assert_eq!(snapshot.representative(cluster, Representative::Latest)?, Some(second));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Representative {
    /// The member that was inserted first.
    First,
    /// The member with the latest stamp.
    Latest,
    /// The member with the most features, in a store that keeps them: an exact one, or one with
    /// kept hashes.
    Longest,
    /// The member that is nearest to the others on average. Of a cluster of more than 64 members,
    /// only 64 are compared, evenly spread over its ids.
    Medoid,
}

/// A cluster that has grown lately. Made by
/// [`Snapshot::clusters_since`](crate::Snapshot::clusters_since).
///
/// ```
/// # use resemblance::{Document, MinHash, Schema, Store, Text, schema::ClusterBounds};
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
/// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// for stamp in [20, 21, 22] {
///     store.insert(Document::without_key().stamp(stamp), &page)?;
/// }
/// let grown = store.snapshot()?.clusters_since(21, 10)?;
/// assert_eq!((grown[0].documents, grown[0].new_documents, grown[0].latest), (3, 2, 22));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrownCluster {
    /// The cluster.
    pub cluster: ClusterId,
    /// The number of its members.
    pub documents: u64,
    /// The number of members with a stamp from the given one on.
    pub new_documents: u64,
    /// The latest stamp of a member.
    pub latest: u64,
}

/// Runs a question about the tables of clusters.
pub(crate) fn in_clusters<T>(
    snapshot: &SnapshotView,
    run: impl FnOnce(&ReadClusters) -> Result<T>,
) -> Result<T> {
    check_kept(snapshot.schema())?;
    let tables = || ReadClusters::of(&snapshot.inner.tables()?.read);
    snapshot.context().run_checked(|| run(&tables()?))
}

/// Returns the edges of the tree of a cluster.
pub(crate) fn edges_of(snapshot: &SnapshotView, cluster: u64) -> Result<Vec<Pair>> {
    in_clusters(snapshot, |tables| {
        let Some((_, kept)) = tables.kept(cluster)? else {
            return Ok(Vec::new());
        };
        let found = tables.walk(kept.first, None)?.into_iter();
        let edges = found.map(|(document, (before, link))| pair(snapshot, document, before, link));
        let mut edges: Vec<Pair> = edges.collect();
        edges.sort_unstable_by_key(|edge| (edge.a, edge.b));
        Ok(edges)
    })
}

/// Returns the edges from one document to another, `None` if they are in no common cluster.
pub(crate) fn path_between(snapshot: &SnapshotView, a: u64, b: u64) -> Result<Option<Vec<Pair>>> {
    in_clusters(snapshot, |tables| {
        let [of_a, of_b] = [tables.cluster_of(a)?, tables.cluster_of(b)?];
        if of_a.is_none() || of_a != of_b {
            return Ok(None);
        }
        // From the end, so that the documents before each lead back from the beginning.
        let found = tables.walk(b, Some(a))?;
        let (mut path, mut document) = (Vec::new(), a);
        while document != b {
            let (before, link) = *found.get(&document).ok_or_else(|| {
                let detail = format!("found no path to document {b} of the same cluster");
                damaged_tree(document, detail)
            })?;
            path.push(pair(snapshot, document, before, link));
            document = before;
        }
        Ok(Some(path))
    })
}

fn pair(snapshot: &SnapshotView, a: u64, b: u64, link: Link) -> Pair {
    let schema = snapshot.schema();
    Pair {
        a: DocumentId::new(a.min(b)),
        b: DocumentId::new(a.max(b)),
        similarity: schema.minhash().map(|_| link.similarity),
        is_exact: schema.is_exact(),
        distance: schema.simhash().map(|_| link.distance.into()),
    }
}

/// Returns the member that represents a cluster by a rule, `None` if the cluster has no members.
pub(crate) fn representative(
    snapshot: &SnapshotView,
    cluster: u64,
    rule: Representative,
) -> Result<Option<u64>> {
    let schema = snapshot.schema();
    if rule == Representative::Longest && !schema.is_exact() && schema.containment().is_none() {
        let expected = "first, latest or medoid: the store does not keep the features of documents";
        return Err(Error::invalid("representative", "longest", expected));
    }
    in_clusters(snapshot, |tables| {
        let members = tables.members_of(cluster)?;
        if rule == Representative::Medoid {
            return medoid(snapshot, members);
        }
        let mut best = None;
        for member in members {
            let rank = match rule {
                Representative::First | Representative::Medoid => 0,
                Representative::Latest => {
                    let document = snapshot.view().document_of(member, false)?;
                    let document = document.ok_or_else(|| no_row(DOCUMENTS, member, 1))?;
                    document.stamp
                }
                Representative::Longest => {
                    let signature = signature_of(snapshot.view(), member)?;
                    let kept = signature.kept_hashes().map_or(0, <[u64]>::len);
                    signature.exact_set().map_or(kept, |set| set.hashes().len()) as u64
                }
            };
            // Of equal ones the first stays.
            if best.is_none_or(|(most, _)| rank > most) {
                best = Some((rank, member));
            }
        }
        Ok(best.map(|(_, member)| member))
    })
}

/// Returns the member that is nearest to the others, of some members if there are many.
fn medoid(snapshot: &SnapshotView, members: Vec<u64>) -> Result<Option<u64>> {
    let step = members.len().div_ceil(MEDOID_MEMBERS).max(1);
    let compared: Vec<u64> = members.into_iter().step_by(step).collect();
    let mut best: Option<(f64, u64)> = None;
    for member in &compared {
        let signature = signature_of(snapshot.view(), *member)?;
        let scorer = Scorer::new(&signature);
        let mut nearness = 0.0;
        for other in &compared {
            let scored = scorer.scored_document(snapshot.view(), *other)?;
            nearness += match snapshot.schema().minhash() {
                Some(_) => scored.similarity,
                None => -f64::from(scored.distance),
            };
        }
        if best.is_none_or(|(most, _)| nearness > most) {
            best = Some((nearness, *member));
        }
    }
    Ok(best.map(|(_, member)| member))
}

/// Returns the clusters with a member that has a stamp from `since` on, at most `count`, the one
/// with the latest stamp first.
pub(crate) fn clusters_since(
    snapshot: &SnapshotView,
    since: u64,
    count: usize,
) -> Result<Vec<GrownCluster>> {
    in_clusters(snapshot, |tables| {
        let mut grown: HashMap<u64, GrownCluster> = HashMap::new();
        snapshot.view().all_document_rows(&mut |document, row| {
            let stamp = RowHead::decode(document, row)?.stamp;
            if stamp < since {
                return Ok(());
            }
            if let Some((id, kept)) = tables.cluster_of(document)? {
                let cluster = grown.entry(id).or_insert(GrownCluster {
                    cluster: ClusterId::new(id),
                    documents: kept.documents,
                    new_documents: 0,
                    latest: stamp,
                });
                cluster.new_documents += 1;
                cluster.latest = cluster.latest.max(stamp);
            }
            Ok(())
        })?;
        let mut grown: Vec<GrownCluster> = grown.into_values().collect();
        grown.sort_unstable_by_key(|it| std::cmp::Reverse((it.latest, it.cluster)));
        grown.truncate(count);
        Ok(grown)
    })
}

/// Returns the clusters that are too large to be plausible, the largest first.
pub(crate) fn suspicious(snapshot: &SnapshotView) -> Result<Vec<SuspiciousCluster>> {
    let documents = snapshot.len();
    in_clusters(snapshot, |tables| {
        let mut found = Vec::new();
        // Each has a share of all documents.
        let most = (1.0 / Clusters::SUSPICIOUS_SHARE) as usize;
        for (cluster, size) in tables.largest(most)? {
            if let Some(suspicious) = SuspiciousCluster::of(0, size, documents) {
                let members = tables.members_of(cluster.get())?;
                let first = DocumentId::new(*at(&members, 0)?);
                found.push(SuspiciousCluster {
                    first,
                    ..suspicious
                });
            }
        }
        Ok(found)
    })
}
