//! A document enters the clusters of a store.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::clusters::cluster_tables::WrittenClusters;
use crate::error::{Error, Result};
use crate::format::{ClusterRow, KeptCluster, Link};
use crate::invariant::OrBug;
use crate::query::{Bounds, PartSearch, ResolvedBounds, Scored};
use crate::read::ReadView;
use crate::state::FullBuckets;
use resemblance_sketch::schema::{Linkage, Schema};
use resemblance_sketch::sketch::Signature;

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

/// Returns documents within the bounds of a signature, the newest first: at least one of each
/// component, but not of all if one is identical. With another linkage than single, returns all.
pub(crate) fn near_components<'w>(
    view: &dyn ReadView,
    bounds: &ResolvedBounds,
    open: impl Fn() -> Result<WrittenClusters<'w>>,
    full: &mut FullBuckets,
    signature: &Signature,
) -> Result<Vec<Scored>> {
    if linkage(&view.context().schema) != Linkage::Single {
        return near_documents(view, bounds, signature, u64::MAX);
    }
    // Most documents have no candidates, and need no table.
    let opened = OnceCell::new();
    let part_of = |id| {
        let tables = match opened.get() {
            Some(tables) => tables,
            None => {
                let tables = open()?;
                opened.get_or_init(|| tables)
            }
        };
        Ok(tables.cluster_of(id)?.map(|(id, _)| id))
    };
    PartSearch::new(view, bounds, &part_of).near(signature, None, Some(full))
}

/// Returns all documents below an id that are within the bounds of a signature, the newest first.
pub(super) fn near_documents(
    view: &dyn ReadView,
    bounds: &ResolvedBounds,
    signature: &Signature,
    below: u64,
) -> Result<Vec<Scored>> {
    // Each document is a part.
    let search = PartSearch::new(view, bounds, &|_| Ok(None)).below(below);
    search.near(signature, None, None)
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
        union.documents += cluster.documents;
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

/// Notes in the full buckets that a document has entered the store, and its cluster if it is in one.
pub(crate) fn note_entered(
    view: &dyn ReadView,
    bounds: &ResolvedBounds,
    full: &mut FullBuckets,
    document: u64,
    signature: &Signature,
    cluster: Option<u64>,
) -> Result<()> {
    if linkage(&view.context().schema) != Linkage::Single {
        return Ok(());
    }
    let search = PartSearch::new(view, bounds, &|_| Ok(None));
    search.add_to(full, document, signature, cluster)
}
