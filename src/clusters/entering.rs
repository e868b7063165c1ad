//! A document enters the clusters of a store.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::clusters::cluster_tables::{WrittenClusters, add_members};
use crate::error::{Error, Result};
use crate::format::{ClusterRow, DOCUMENTS, KeptCluster, Link, no_row};
use crate::invariant::OrBug;
use crate::query::{Bounds, PartSearch, ResolvedBounds, Scored};
use crate::read::ReadView;
use crate::state::FullBuckets;
use resemblance_sketch::schema::{Linkage, Schema};
use resemblance_sketch::sketch::Signature;

/// The part of followers: with another linkage than single, all members of clusters but the first
/// ones. Documents that enter are compared with firsts, each of which is a part of its own.
pub(super) const FOLLOWERS: Option<u64> = Some(u64::MAX);

/// Checks that stores with a schema keep clusters.
///
/// # Errors
/// [`Error::InvalidParameter`] if they do not.
pub(crate) fn check_kept(schema: &Schema) -> Result<()> {
    let expected = "one with `clusters`: build a store with it from an export of this one";
    match schema.clusters() {
        Some(_) => Ok(()),
        None => Err(Error::invalid(
            "schema",
            "one without kept clusters",
            expected,
        )),
    }
}

/// Returns the bounds of the clusters that a store with this schema keeps, if it keeps any.
pub(crate) fn cluster_bounds(schema: &Schema) -> Result<Option<ResolvedBounds>> {
    let Some(kept) = schema.clusters() else {
        return Ok(None);
    };
    let bounds = Bounds {
        min_similarity: kept.min_similarity,
        max_distance: kept.max_distance.map(u32::from),
        ..Bounds::new()
    };
    bounds.resolve(schema, false).map(Some)
}

/// Returns the rule by which documents belong to one cluster of a store with this schema.
pub(super) fn linkage(schema: &Schema) -> Linkage {
    let kept = schema.clusters();
    kept.map_or(Linkage::Single, |bounds| bounds.linkage)
}

/// Returns the documents to which a new one with this signature gets edges, the newest first.
pub(crate) fn near_components<'w>(
    view: &dyn ReadView,
    bounds: &ResolvedBounds,
    open: impl Fn() -> Result<WrittenClusters<'w>>,
    full: &mut FullBuckets,
    signature: &Signature,
) -> Result<Vec<Scored>> {
    let linkage = linkage(&view.context().schema);
    // Most documents have no candidates, and need no table.
    let opened = OnceCell::new();
    let tables = || -> Result<&WrittenClusters<'w>> {
        if let Some(tables) = opened.get() {
            return Ok(tables);
        }
        let tables = open()?;
        Ok(opened.get_or_init(|| tables))
    };
    let of = |id| part_of(tables()?, linkage, id);
    let search = PartSearch::new(view, bounds, &of);
    let members = |first| tables()?.connected(first);
    near_linked(&search, linkage, members, full, signature)
}

/// Returns the part of a document for [`near_linked`]: its cluster, or whether it is a follower.
pub(super) fn part_of(
    tables: &WrittenClusters<'_>,
    linkage: Linkage,
    document: u64,
) -> Result<Option<u64>> {
    let kept = tables.cluster_of(document)?;
    Ok(match linkage {
        Linkage::Single => kept.map(|(id, _)| id),
        _ => kept.and_then(|(_, cluster)| FOLLOWERS.filter(|_| cluster.first != document)),
    })
}

/// Returns documents within the bounds of a signature, the newest first: at least one of each
/// component, but not of all if one is identical. With another linkage than single, returns the
/// member to which the document gets an edge if it may join a cluster, of the one with the oldest
/// first member among those that it may join. `members` returns those of a cluster by its first.
pub(super) fn near_linked(
    search: &PartSearch<'_>,
    linkage: Linkage,
    members: impl Fn(u64) -> Result<Vec<u64>>,
    full: &mut FullBuckets,
    signature: &Signature,
) -> Result<Vec<Scored>> {
    if linkage == Linkage::Single {
        return search.near(signature, None, Some(full));
    }
    let firsts = search.near(signature, FOLLOWERS, Some(full))?;
    for first in firsts.into_iter().rev() {
        if linkage == Linkage::Star {
            return Ok(vec![first]);
        }
        let mut newest = Some(first);
        for member in members(first.id)? {
            newest = search.near_document(signature, member)?;
            if newest.is_none() {
                break;
            }
        }
        if let Some(newest) = newest {
            return Ok(vec![newest]);
        }
    }
    Ok(Vec::new())
}

/// Returns the signature of a document that is stored.
pub(crate) fn signature_of(view: &dyn ReadView, document: u64) -> Result<Signature> {
    let signature = view.signature_of(document)?;
    signature.ok_or_else(|| no_row(DOCUMENTS, document, 1))
}

/// Links a document that is in no cluster to those near it, the newest first. Their clusters become
/// one: it gets the id of the largest, and of equally large ones the lowest id. Returns the id.
pub(super) fn unite(
    tables: &mut WrittenClusters<'_>,
    full: &mut FullBuckets,
    document: u64,
    near: &[Scored],
) -> Result<u64> {
    let mut clusters: BTreeMap<u64, KeptCluster> = BTreeMap::new();
    let mut new = vec![document];
    for other in near {
        match tables.shorten(other.id)? {
            None => new.push(other.id),
            Some((id, cluster)) => {
                if clusters.insert(id, cluster).is_some() {
                    continue;
                }
            }
        }
        tables.put_edge(document, other.id, &link_of(other)?)?;
    }
    let largest = clusters.iter().rev().max_by_key(|(_, kept)| kept.documents);
    let label = match largest {
        Some((id, _)) => *id,
        None => tables.next_id()?,
    };
    let mut union = KeptCluster {
        documents: new.len() as u64,
        first: *new.iter().min().or_bug("a document that enters")?,
        is_oldest: true,
    };
    for (id, cluster) in &clusters {
        union.documents = add_members(*id, cluster.documents, union.documents)?;
        union.first = union.first.min(cluster.first);
        union.is_oldest &= cluster.is_oldest;
        if *id != label {
            tables.put_cluster(*id, ClusterRow::Forward(label))?;
            full.unite(*id, label);
        }
    }
    for document in new {
        tables.put_member(document, label)?;
    }
    tables.put_cluster(label, ClusterRow::Kept(union))?;
    Ok(label)
}

pub(super) fn link_of(scored: &Scored) -> Result<Link> {
    let distance = u16::try_from(scored.distance).ok();
    Ok(Link {
        similarity: scored.similarity,
        distance: distance.or_bug("a distance of at most 256 bits")?,
    })
}

/// Notes in the full buckets that a document has entered the store, and its cluster if it has joined
/// one; or that a follower has become a first, as a document in none.
pub(crate) fn note_entered(
    view: &dyn ReadView,
    bounds: &ResolvedBounds,
    full: &mut FullBuckets,
    document: u64,
    signature: &Signature,
    cluster: Option<u64>,
) -> Result<()> {
    let part = match linkage(&view.context().schema) {
        Linkage::Single => cluster,
        _ => cluster.and(FOLLOWERS),
    };
    let search = PartSearch::new(view, bounds, &|_| Ok(None));
    search.add_to(full, document, signature, part)
}
