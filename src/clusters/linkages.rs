//! Clusters that a chain of near documents does not join: stars and complete clusters.
//!
//! The field `first` of a cluster is its representative, or its oldest member if all are near each
//! other. A document in no cluster is the first of itself. The edges of a star lead to its
//! representative. Those of a complete cluster form a path from the oldest member to the newest, so
//! that neither an insertion nor a removal changes more than two. Clusters never merge.

use std::collections::HashSet;

use crate::clusters::cluster_tables::{WrittenClusters, add_members};
use crate::clusters::entering::{
    FOLLOWERS, link_of, linkage, near_linked, note_entered, part_of, signature_of, unite,
};
use crate::error::Result;
use crate::format::{ClusterRow, KeptCluster};
use crate::invariant::OrBug;
use crate::query::{PartSearch, ResolvedBounds, Scored, Scorer};
use crate::read::ReadView;
use crate::state::FullBuckets;
use resemblance_sketch::schema::{Linkage, Schema};

/// Enters a document that is in no cluster into the clusters of a store with this schema. `near` has
/// the documents that it gets edges to. Returns the cluster that the document is in then.
pub(crate) fn enter(
    tables: &mut WrittenClusters<'_>,
    full: &mut FullBuckets,
    schema: &Schema,
    document: u64,
    near: &[Scored],
) -> Result<u64> {
    match near {
        [other] if linkage(schema) != Linkage::Single => join(tables, document, other),
        near => unite(tables, full, document, near),
    }
}

/// Lets a document that is in no cluster join that of another one, with an edge to this, and returns its
/// id.
fn join(tables: &mut WrittenClusters<'_>, document: u64, other: &Scored) -> Result<u64> {
    let (id, mut cluster) = match tables.cluster_of(other.id)? {
        Some(kept) => kept,
        None => {
            let id = tables.next_id()?;
            tables.put_member(other.id, id)?;
            (id, alone(other.id))
        }
    };
    cluster.documents = add_members(id, cluster.documents, 1)?;
    cluster.is_oldest &= cluster.first < document;
    tables.put_edge(document, other.id, &link_of(other)?)?;
    tables.put_member(document, id)?;
    tables.put_cluster(id, ClusterRow::Kept(cluster))?;
    Ok(id)
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
    pub(super) removed: u64,
    /// The documents to which the removed one had edges, ascending.
    pub(super) neighbours: Vec<u64>,
}

impl Remains {
    /// Takes a removed document, whose edges are gone, out of a cluster that still has members.
    pub(super) fn leave(
        mut self,
        view: &dyn ReadView,
        bounds: &ResolvedBounds,
        tables: &mut WrittenClusters<'_>,
        full: &mut FullBuckets,
    ) -> Result<()> {
        let is_star = linkage(&view.context().schema) == Linkage::Star;
        let was_first = self.cluster.first == self.removed;
        if is_star && was_first {
            return self.join_again(view, bounds, tables, full);
        }
        if let [before, after] = self.neighbours[..]
            && !is_star
        {
            let signature = signature_of(view, before)?;
            let other = Scorer::new(&signature).scored_document(view, after)?;
            tables.put_edge(before, after, &link_of(&other)?)?;
        }
        if was_first {
            let oldest = self.neighbours.first().copied();
            self.cluster.first = oldest.or_bug("another member of the cluster")?;
            let signature = signature_of(view, self.cluster.first)?;
            note_entered(view, bounds, full, self.cluster.first, &signature, None)?;
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
        full: &mut FullBuckets,
    ) -> Result<()> {
        for member in &self.neighbours {
            tables.remove_member(*member)?;
        }
        let mut waiting: HashSet<u64> = self.neighbours.iter().copied().collect();
        let mut is_kept = false;
        for member in self.neighbours {
            let signature = signature_of(view, member)?;
            let shared = &*tables;
            let of = |id| match waiting.contains(&id) {
                true => Ok(FOLLOWERS),
                false => part_of(shared, Linkage::Star, id),
            };
            let search = PartSearch::new(view, bounds, &of);
            let near = near_linked(&search, Linkage::Star, |_| Ok(Vec::new()), full, &signature)?;
            waiting.remove(&member);
            if let Some(other) = near.first() {
                join(tables, member, other)?;
                continue;
            }
            note_entered(view, bounds, full, member, &signature, None)?;
            if !is_kept {
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
