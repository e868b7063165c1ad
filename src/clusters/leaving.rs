//! A document leaves the clusters of a store, which may split one.
//!
//! Its neighbours in the tree are compared with each other, which connects them where near documents
//! abound. If some are left unconnected, the parts of the tree are walked in lockstep until all but
//! one have ended, so the largest is never walked to its end. Each of the others is searched for a
//! near document outside of it. If there is one, the pair becomes an edge of the tree. Otherwise the
//! part is a cluster of its own.
//!
//! With d neighbours this takes up to 8 d comparisons. With n members in all parts but the largest, it
//! then costs up to n searches, each of which reads the buckets of its document, and reads of edges for
//! about n documents times the number of parts. Only if the cluster really splits are members given
//! another id: those of the parts without the oldest member. The whole cluster is walked then if an
//! earlier removal has taken its oldest member.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::clusters::cluster_tables::{WrittenClusters, damaged, damaged_tree};
use crate::clusters::disjoint_sets::DisjointSets;
use crate::clusters::entering::{link_of, linkage, signature_of};
use crate::clusters::linkages::Remains;
use crate::error::Result;
use crate::format::{ClusterRow, KeptCluster};
use crate::invariant::{OrBug, at, at_mut};
use crate::query::{PartSearch, ResolvedBounds};
use crate::read::ReadView;
use crate::state::FullBuckets;
use resemblance_sketch::schema::Linkage;

/// The number of neighbours of a removed document that each other one is compared with.
const MAX_COMPARED: usize = 8;

/// Connects the documents that are left when others leave.
pub(crate) struct Reconnection<'a> {
    view: &'a dyn ReadView,
    bounds: &'a ResolvedBounds,
}

impl<'a> Reconnection<'a> {
    /// Connects documents as a view shows them.
    pub(crate) fn new(view: &'a dyn ReadView, bounds: &'a ResolvedBounds) -> Self {
        Self { view, bounds }
    }

    /// Takes a removed document, which the view shows no more, out of its cluster.
    pub(crate) fn leave(
        &self,
        tables: &mut WrittenClusters<'_>,
        full: &mut FullBuckets,
        document: u64,
    ) -> Result<()> {
        full.remove(document);
        let Some((id, mut cluster)) = tables.cluster_of(document)? else {
            return Ok(());
        };
        let neighbours = tables.neighbours(document)?;
        for other in &neighbours {
            tables.remove_edge(document, *other)?;
        }
        tables.remove_member(document)?;
        let left = cluster.documents.checked_sub(1);
        cluster.documents = left
            .filter(|left| (*left == 0) == neighbours.is_empty())
            .ok_or_else(|| {
                let (edges, members) = (neighbours.len(), cluster.documents);
                let detail = format!(
                    "document {document} has {edges} edges, and the cluster {members} members"
                );
                damaged(id, detail)
            })?;
        let Some(first) = neighbours.first() else {
            return tables.put_cluster(id, ClusterRow::Ended);
        };
        if linkage(&self.view.context().schema) != Linkage::Single {
            let remains = Remains {
                id,
                cluster,
                removed: document,
                neighbours,
            };
            return remains.leave(self.view, self.bounds, tables, full);
        }
        if cluster.first == document {
            cluster.first = *first;
            cluster.is_oldest = cluster.documents == 1;
        }
        let starts = self.connect(tables, &neighbours)?;
        if starts.len() == 1 {
            return tables.put_cluster(id, ClusterRow::Kept(cluster));
        }
        let parts = Parts::walk(tables, &starts)?;
        let mut connected = self.reconnect(tables, id, &parts)?;
        let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for part in 0..parts.all.len() {
            let group = groups.entry(connected.root(part as u64)).or_default();
            group.push(part);
        }
        if groups.len() == 1 {
            return tables.put_cluster(id, ClusterRow::Kept(cluster));
        }
        full.forget(id);
        split(tables, id, cluster, parts, groups.into_values().collect())
    }

    /// Connects the neighbours of a removed document that are near each other: each is compared with
    /// a few before it. Returns one of each part that is left.
    fn connect(&self, tables: &mut WrittenClusters<'_>, neighbours: &[u64]) -> Result<Vec<u64>> {
        let search = PartSearch::new(self.view, self.bounds, &|_| Ok(None));
        let mut parts = DisjointSets::default();
        let mut before: VecDeque<u64> = VecDeque::new();
        for document in neighbours {
            let signature = signature_of(self.view, *document)?;
            for other in &before {
                if parts.are_joined(*document, *other) {
                    continue;
                }
                if let Some(near) = search.near_document(&signature, *other)? {
                    parts.join(*document, *other);
                    tables.put_edge(*document, *other, &link_of(&near)?)?;
                }
            }
            before.truncate(MAX_COMPARED - 1);
            before.push_front(*document);
        }
        let roots = neighbours.iter().copied();
        Ok(roots.filter(|id| parts.root(*id) == *id).collect())
    }

    /// Searches each part but the largest for near documents in others, and connects the parts by
    /// them. Returns the sets of connected parts.
    fn reconnect(
        &self,
        tables: &mut WrittenClusters<'_>,
        cluster: u64,
        parts: &Parts,
    ) -> Result<DisjointSets> {
        let connected = RefCell::new(DisjointSets::default());
        let root = |part: usize| connected.borrow_mut().root(part as u64);
        let part_of = |id| Ok(Some(root(parts.part_of(id))));
        let search = PartSearch::new(self.view, self.bounds, &part_of);
        let mut ascending: Vec<usize> = (0..parts.all.len())
            .filter(|it| *it != parts.rest)
            .collect();
        ascending.sort_by_key(|part| parts.all.get(*part).map(|part| part.members.len()));
        for index in ascending {
            for member in &at(&parts.all, index)?.members {
                if root(index) == root(parts.rest) {
                    break;
                }
                let signature = signature_of(self.view, *member)?;
                for other in search.near(&signature, Some(root(index)), None)? {
                    let part = parts.part_of(other.id) as u64;
                    connected.borrow_mut().join(index as u64, part);
                    let found = tables.cluster_of(other.id)?.map(|(id, _)| id);
                    if found != Some(cluster) {
                        let detail =
                            format!("it is near one of cluster {cluster}, and in {found:?}");
                        return Err(damaged_tree(other.id, detail));
                    }
                    tables.put_edge(*member, other.id, &link_of(&other)?)?;
                }
            }
        }
        Ok(connected.into_inner())
    }
}

/// A part of a tree from which a document was removed.
struct Part {
    /// The members that have been found.
    members: Vec<u64>,
    /// The number of members whose edges have been read.
    read: usize,
}

impl Part {
    fn is_walked(&self) -> bool {
        self.read == self.members.len()
    }
}

/// The parts of a tree.
struct Parts {
    all: Vec<Part>,
    owners: HashMap<u64, usize>,
    /// The largest part, of which some members may not have been found.
    rest: usize,
}

impl Parts {
    /// Walks the parts that begin with these documents, until all but one have been walked.
    fn walk(tables: &WrittenClusters<'_>, starts: &[u64]) -> Result<Self> {
        let part = |start: &u64| Part {
            members: vec![*start],
            read: 0,
        };
        let mut parts = Self {
            all: starts.iter().map(part).collect(),
            owners: starts.iter().copied().zip(0..).collect(),
            rest: 0,
        };
        let mut ahead: Vec<usize> = (0..starts.len()).collect();
        while ahead.len() > 1 {
            for part in &ahead {
                if let Some(other) = parts.step(tables, *part)? {
                    return Err(damaged_tree(other, "found a circle of edges"));
                }
            }
            ahead.retain(|part| parts.all.get(*part).is_some_and(|part| !part.is_walked()));
        }
        let size = |part: &Part| (!part.is_walked(), part.members.len());
        let largest = (0..).zip(&parts.all).max_by_key(|(_, part)| size(part));
        parts.rest = largest.or_bug("a part of a cluster")?.0;
        Ok(parts)
    }

    /// Reads the edges of the next member of a part that has one. Returns a document of another part
    /// to which one leads.
    fn step(&mut self, tables: &WrittenClusters<'_>, index: usize) -> Result<Option<u64>> {
        let mut outside = None;
        let part = at_mut(&mut self.all, index)?;
        let member = *at(&part.members, part.read)?;
        part.read += 1;
        for other in tables.neighbours(member)? {
            match self.owners.entry(other) {
                Entry::Vacant(unowned) => {
                    unowned.insert(index);
                    part.members.push(other);
                }
                Entry::Occupied(owner) if *owner.get() != index => outside = Some(other),
                Entry::Occupied(_) => {}
            }
        }
        Ok(outside)
    }

    /// Finds all members of the largest part. The others have been walked by now, so an edge that leads
    /// to one of them is one by which they were connected again.
    fn walk_rest(&mut self, tables: &WrittenClusters<'_>) -> Result<()> {
        while !at(&self.all, self.rest)?.is_walked() {
            self.step(tables, self.rest)?;
        }
        Ok(())
    }

    fn part_of(&self, document: u64) -> usize {
        self.owners.get(&document).copied().unwrap_or(self.rest)
    }

    /// Returns the members of parts that have been walked, ascending.
    fn members(&self, parts: &[usize]) -> Result<Vec<u64>> {
        let mut members = Vec::new();
        for part in parts {
            members.extend(&at(&self.all, *part)?.members);
        }
        members.sort_unstable();
        Ok(members)
    }
}

/// Makes each set of connected parts a cluster. The one with the oldest member keeps the id. The
/// others get the next ids, in the order of their oldest members; a single document is in no
/// cluster.
fn split(
    tables: &mut WrittenClusters<'_>,
    id: u64,
    cluster: KeptCluster,
    mut parts: Parts,
    groups: Vec<Vec<usize>>,
) -> Result<()> {
    let oldest = match cluster.is_oldest {
        true => cluster.first,
        false => {
            parts.walk_rest(tables)?;
            let members = parts.all.iter().flat_map(|part| &part.members);
            *members.min().or_bug("a member of a cluster")?
        }
    };
    let kept = parts.part_of(oldest);
    let (kept, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(|it| it.contains(&kept));
    if !kept.iter().flatten().any(|part| *part == parts.rest) {
        parts.walk_rest(tables)?;
    }
    let members = others.iter().map(|group| parts.members(group));
    let mut others = members.collect::<Result<Vec<_>>>()?;
    others.sort_unstable();
    let mut documents = Some(cluster.documents);
    for members in &others {
        documents = documents.and_then(|left| left.checked_sub(members.len() as u64));
        let first = *at(members, 0)?;
        if members.len() == 1 {
            tables.remove_member(first)?;
            continue;
        }
        tables.put_whole(tables.next_id()?, members)?;
    }
    let kept = KeptCluster {
        documents: documents.ok_or_else(|| {
            let detail = format!(
                "found {} members, fewer than edges connect",
                cluster.documents
            );
            damaged(id, detail)
        })?,
        first: oldest,
        is_oldest: true,
    };
    tables.put_cluster(id, ClusterRow::Kept(kept))
}
