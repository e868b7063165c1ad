//! Clusters that a chain of near documents does not join: stars and complete clusters.
//!
//! The field `first` of a cluster is its representative, or its oldest member if all are near each
//! other. A document in no cluster is the first of itself. The edges of a star lead to its
//! representative. Those of a complete cluster form a path from the oldest member to the newest, so
//! that neither an insertion nor a removal changes more than two. Clusters never merge.

use std::collections::{BTreeMap, HashSet};

use crate::clusters::cluster_tables::WrittenClusters;
use crate::clusters::entering::{link_of, linkage, near_documents, unite};
use crate::error::Result;
use crate::format::{ClusterRow, DOCUMENTS, KeptCluster, no_row};
use crate::invariant::OrBug;
use crate::query::{ResolvedBounds, Scored, Scorer};
use crate::read::ReadView;
use crate::state::FullBuckets;
use resemblance_sketch::schema::{Linkage, Schema};

/// The clusters, and documents in none, some of whose members are near another document.
#[derive(Default)]
pub(super) struct NearClusters<'n>(BTreeMap<u64, NearCluster<'n>>);

struct NearCluster<'n> {
    documents: u64,
    /// The members that are near, the newest first.
    near: Vec<&'n Scored>,
}

impl<'n> NearClusters<'n> {
    /// Adds a near document of the cluster with this first member and number of members. The newest
    /// document is added first.
    pub(super) fn add(&mut self, first: u64, documents: u64, other: &'n Scored) {
        let near = Vec::new();
        let cluster = self
            .0
            .entry(first)
            .or_insert(NearCluster { documents, near });
        cluster.near.push(other);
    }

    /// Returns the first member of the cluster that a document joins, and the member that it gets an
    /// edge to.
    pub(super) fn joined(&self, linkage: Linkage) -> Option<(u64, &'n Scored)> {
        self.0.iter().find_map(|(first, cluster)| {
            let mut near = cluster.near.iter().copied();
            let other = match linkage {
                Linkage::Star => near.find(|other| other.id == *first),
                _ => near
                    .next()
                    .filter(|_| cluster.near.len() as u64 == cluster.documents),
            };
            Some((*first, other?))
        })
    }
}

/// Enters a document that is in no cluster into the clusters of a store with this schema. `near` has the
/// documents near it, the newest first. Returns the cluster that the document is in then, if any.
pub(crate) fn enter(
    tables: &mut WrittenClusters<'_>,
    full: &mut FullBuckets,
    schema: &Schema,
    document: u64,
    near: &[Scored],
) -> Result<Option<u64>> {
    match linkage(schema) {
        Linkage::Single => unite(tables, full, document, near).map(Some),
        other => join(tables, other, document, near),
    }
}

/// Lets a document that is in no cluster join the one with the oldest first member among those that it
/// may join, and returns its id. `near` has all documents near it, the newest first.
fn join(
    tables: &mut WrittenClusters<'_>,
    linkage: Linkage,
    document: u64,
    near: &[Scored],
) -> Result<Option<u64>> {
    let mut clusters = NearClusters::default();
    for other in near {
        let kept = tables.cluster_of(other.id)?;
        let (first, documents) = kept.map_or((other.id, 1), |(_, it)| (it.first, it.documents));
        clusters.add(first, documents, other);
    }
    let Some((first, other)) = clusters.joined(linkage) else {
        return Ok(None);
    };
    let (id, mut cluster) = match tables.cluster_of(first)? {
        Some(kept) => kept,
        None => {
            let id = tables.next_id()?;
            tables.put_member(first, id)?;
            (id, alone(first))
        }
    };
    cluster.documents += 1;
    cluster.is_oldest &= first < document;
    tables.put_edge(document, other.id, &link_of(other)?)?;
    tables.put_member(document, id)?;
    tables.put_cluster(id, ClusterRow::Kept(cluster))?;
    Ok(Some(id))
}

/// Returns the row of a cluster of one document.
fn alone(document: u64) -> KeptCluster {
    KeptCluster {
        documents: 1,
        first: document,
        is_oldest: true,
    }
}

/// A cluster that a document has left.
pub(super) struct Remains {
    pub(super) id: u64,
    /// The cluster, already without the document in its number of members.
    pub(super) cluster: KeptCluster,
    /// The documents to which the removed one had edges, ascending.
    pub(super) neighbours: Vec<u64>,
}

impl Remains {
    /// Takes a removed document, whose edges are gone, out of a cluster that still has members.
    pub(super) fn leave(
        self,
        view: &dyn ReadView,
        bounds: &ResolvedBounds,
        tables: &mut WrittenClusters<'_>,
        linkage: Linkage,
        removed: u64,
    ) -> Result<()> {
        match linkage {
            Linkage::Star if self.cluster.first == removed => self.join_again(view, bounds, tables),
            Linkage::Star => tables.put_cluster(self.id, ClusterRow::Kept(self.cluster)),
            _ => self.close_path(view, tables, removed),
        }
    }

    /// Closes the gap in the path of a complete cluster.
    fn close_path(
        mut self,
        view: &dyn ReadView,
        tables: &mut WrittenClusters<'_>,
        removed: u64,
    ) -> Result<()> {
        if let [before, after] = self.neighbours[..] {
            let signature = view.signature_of(before)?;
            let signature = signature.ok_or_else(|| no_row(DOCUMENTS, before, 1))?;
            let other = Scorer::new(&signature).scored_document(view, after)?;
            tables.put_edge(before, after, &link_of(&other)?)?;
        }
        if self.cluster.first == removed {
            let oldest = self.neighbours.first().copied();
            self.cluster.first = oldest.or_bug("another member of the cluster")?;
        }
        tables.put_cluster(self.id, ClusterRow::Kept(self.cluster))
    }

    /// Lets the members of a star whose representative was removed join again, in the order of their
    /// ids. The first that becomes a representative keeps the id.
    fn join_again(
        self,
        view: &dyn ReadView,
        bounds: &ResolvedBounds,
        tables: &mut WrittenClusters<'_>,
    ) -> Result<()> {
        for member in &self.neighbours {
            tables.remove_member(*member)?;
        }
        let mut waiting: HashSet<u64> = self.neighbours.iter().copied().collect();
        let mut is_kept = false;
        for member in self.neighbours {
            waiting.remove(&member);
            let signature = view.signature_of(member)?;
            let signature = signature.ok_or_else(|| no_row(DOCUMENTS, member, 1))?;
            let mut near = near_documents(view, bounds, &signature, u64::MAX)?;
            near.retain(|other| other.id != member && !waiting.contains(&other.id));
            let joined = join(tables, Linkage::Star, member, &near)?;
            if joined.is_none() && !is_kept {
                is_kept = true;
                tables.put_member(member, self.id)?;
                tables.put_cluster(self.id, ClusterRow::Kept(alone(member)))?;
            }
        }
        match is_kept {
            true => Ok(()),
            false => tables.put_cluster(self.id, ClusterRow::Ended),
        }
    }
}
