//! A document enters the clusters of a store.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::clusters::cluster_tables::WrittenClusters;
use crate::error::{Error, Result};
use crate::format::{ClusterRow, KeptCluster, Link};
use crate::invariant::OrBug;
use crate::query::{Bounds, Collector, ResolvedBounds, Scored, SearchSpec};
use crate::read::ReadView;
use resemblance_sketch::schema::Schema;
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

/// Returns the documents within the bounds of a signature, except one, the newest first.
pub(crate) fn near_documents(
    view: &dyn ReadView,
    bounds: &ResolvedBounds,
    signature: &Signature,
    exclude: Option<u64>,
) -> Result<Vec<Scored>> {
    search(view, bounds, Collector::up_to(None), signature, exclude)
}

/// Returns documents within the bounds of a signature, except one, the newest first. At least one of
/// each component is there, but not every document if one is identical to the signature.
pub(crate) fn near_components(
    view: &dyn ReadView,
    bounds: &ResolvedBounds,
    signature: &Signature,
    exclude: Option<u64>,
) -> Result<Vec<Scored>> {
    let context = view.context();
    let minhash = context.schema.minhash();
    let is_weighted = minhash.is_some_and(|minhash| minhash.kind().is_weighted());
    // Sets of proportional weights can be equally near to others but for rounding.
    let collector = match context.exact.is_some() && is_weighted {
        true => Collector::up_to(None),
        false => Collector::AllOrIdentical,
    };
    search(view, bounds, collector, signature, exclude)
}

fn search(
    view: &dyn ReadView,
    bounds: &ResolvedBounds,
    collector: Collector,
    signature: &Signature,
    exclude: Option<u64>,
) -> Result<Vec<Scored>> {
    let search = SearchSpec {
        bounds: Some(bounds),
        exclude,
        ..SearchSpec::new(view, collector)
    };
    let mut near = search.near(signature)?;
    near.sort_unstable_by_key(|scored| Reverse(scored.id));
    Ok(near)
}

/// Links a document that is in no cluster to those near it, the newest first. Their clusters become
/// one: it gets the id of the largest, and of equally large ones the lowest id.
pub(crate) fn enter(
    tables: &mut WrittenClusters<'_>,
    document: u64,
    near: &[Scored],
) -> Result<()> {
    if near.is_empty() {
        return Ok(());
    }
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
        }
    }
    for document in new {
        tables.put_member(document, label)?;
    }
    tables.put_cluster(label, ClusterRow::Kept(union))
}

pub(super) fn link_of(scored: &Scored) -> Result<Link> {
    let distance = u16::try_from(scored.distance).ok();
    Ok(Link {
        similarity: scored.similarity,
        distance: distance.or_bug("a distance of at most 256 bits")?,
    })
}
