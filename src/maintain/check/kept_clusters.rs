//! Checks invariant 11: the clusters that a store keeps are the components of its forest, whose
//! edges connect live documents within the bounds and have the form of their linkage, and its feed
//! has led to them.

use std::collections::HashMap;

use crate::clusters::{ReadClusters, cluster_bounds};
use crate::engine::{EngineResult, FEED, ReadableTable};
use crate::error::{Error, Result};
use crate::format::{ClusterRow, KeptCluster, Link, decode_feed, edge_key, split_edge_key};
use crate::id::{ClusterId, DocumentId};
use crate::query::{ResolvedBounds, Scorer};
use crate::read::SnapshotView;
use crate::state::Tombstones;
use crate::types::{CheckReport, ClusterEvent, Phase, Watch};
use resemblance_sketch::schema::Linkage;

/// The number of members of a complete cluster with which each is compared.
const COMPARED_MEMBERS: usize = 64;

/// The greatest difference of two sums of the same numbers in another order.
const ROUNDING: f64 = 1e-9;

/// Checks the tables of clusters; `live` has the readable documents.
pub(super) fn check_clusters(
    snapshot: &SnapshotView,
    live: &Tombstones,
    report: &mut CheckReport,
    watch: &mut Watch<'_>,
) -> Result<()> {
    let Some(bounds) = cluster_bounds(snapshot.schema())? else {
        return Ok(());
    };
    let tables = ReadClusters::of(&snapshot.inner.tables()?.read)?;
    let mut check = ClusterCheck {
        snapshot,
        bounds: &bounds,
        tables: &tables,
        live,
        report,
        named: HashMap::new(),
    };
    let edges = check.forest(watch)?;
    check.members()?;
    check.clusters(edges)?;
    check.feed()
}

struct ClusterCheck<'a> {
    snapshot: &'a SnapshotView,
    bounds: &'a ResolvedBounds,
    tables: &'a ReadClusters,
    live: &'a Tombstones,
    report: &'a mut CheckReport,
    /// The number of rows that lead to each cluster.
    named: HashMap<u64, u64>,
}

impl ClusterCheck<'_> {
    /// Returns the number of rows.
    fn forest(&mut self, watch: &mut Watch<'_>) -> Result<u64> {
        let (tables, mut edges) = (self.tables, 0);
        for entry in tables.forest.iter().engine()? {
            watch.step(Phase::LinkingClusters, edges, None)?;
            edges += 1;
            let (key, row) = entry.engine()?;
            let (a, b) = split_edge_key(key.value());
            let checked = self.edge(a, b, row.value());
            self.report.note(11, checked)?;
        }
        Ok(edges)
    }

    fn edge(&mut self, a: u64, b: u64, row: &[u8]) -> Result<()> {
        let link = Link::decode(&edge_key(a, b), row)?;
        let place = || format!("table forest, documents {a} and {b}");
        let reverse = edge_key(b, a);
        let other = self.tables.forest.get(&reverse).engine()?;
        let other = other
            .map(|row| Link::decode(&reverse, row.value()))
            .transpose()?;
        if other != Some(link) {
            let detail = format!("found {link:?}, in the other direction {other:?}");
            self.report.add(11, place(), detail);
        }
        if a >= b {
            return Ok(());
        }
        if !self.live.contains(a) || !self.live.contains(b) {
            self.report.add(
                11,
                place(),
                "found an edge of a document that does not live",
            );
            return Ok(());
        }
        let view = self.snapshot.view();
        if let Some(signature) = view.signature_of(a)? {
            let found = Scorer::new(&signature).scored_document(view, b)?;
            let is_same = (found.similarity - link.similarity).abs() <= ROUNDING
                && found.distance == u32::from(link.distance);
            if !is_same || !found.is_within(self.bounds) {
                let detail = format!("found {link:?}, expected {found:?} within the bounds");
                self.report.add(11, place(), detail);
            }
        }
        Ok(())
    }

    /// Checks that each member lives, and leads to a cluster.
    fn members(&mut self) -> Result<()> {
        for entry in self.tables.members.iter().engine()? {
            let document = entry.engine()?.0.value();
            let found = self.tables.cluster_of(document);
            if let Ok(Some((id, _))) = found {
                *self.named.entry(id).or_default() += 1;
            }
            if !self.live.contains(document) {
                let place = format!("table members, document {document}");
                let detail = "found a document that does not live";
                self.report.add(11, place, detail);
            }
            self.report.note(11, found.map(drop))?;
        }
        Ok(())
    }

    /// Checks each cluster, and that there is no edge beyond the trees of their members.
    fn clusters(&mut self, edges: u64) -> Result<()> {
        let (tables, mut expected) = (self.tables, 0_u64);
        for entry in tables.clusters.iter().engine()? {
            let (id, row) = entry.engine()?;
            let id = id.value();
            let checked = match ClusterRow::decode(id, row.value()) {
                Ok(ClusterRow::Kept(cluster)) => {
                    let edges = cluster.documents.saturating_sub(1).saturating_mul(2);
                    expected = edges.saturating_add(expected);
                    self.cluster(id, &cluster)
                }
                Ok(ClusterRow::Forward(_)) => tables.resolve(id).map(drop),
                row => row.map(drop),
            };
            self.report.note(11, checked)?;
        }
        self.report.note(11, tables.next_id().map(drop))?;
        if edges != expected {
            let detail = format!("found {edges} rows, expected {expected}, those of trees");
            self.report.add(11, "table forest", detail);
        }
        Ok(())
    }

    fn cluster(&mut self, id: u64, cluster: &KeptCluster) -> Result<()> {
        let members = self.tables.connected(cluster.first)?;
        let (named, connected) = (self.named.get(&id).copied(), members.len() as u64);
        let is_first = !cluster.is_oldest || members.first() == Some(&cluster.first);
        if named != Some(cluster.documents) || connected != cluster.documents || !is_first {
            let detail = format!(
                "found {cluster:?}, with {connected} documents that edges connect and {named:?} members"
            );
            let place = format!("table clusters, cluster {id}");
            self.report.add(11, place, detail);
        }
        for member in &members {
            let found = match self.tables.cluster_of(*member) {
                // It has been reported.
                Err(Error::Corrupt { .. }) => continue,
                found => found?.map(|(id, _)| id),
            };
            if found != Some(id) {
                let place = format!("table members, document {member}");
                let detail = format!("found cluster {found:?}, expected {id} for its edges");
                self.report.add(11, place, detail);
            }
        }
        match self.snapshot.schema().clusters().map(|it| it.linkage) {
            Some(Linkage::Star) => self.form(&members, Some(cluster.first)),
            Some(Linkage::Complete) => self.form(&members, None),
            _ => Ok(()),
        }
    }

    /// Checks that the edges of a star lead to its representative, and that those of a complete
    /// cluster are a path, whose members are near the oldest [`COMPARED_MEMBERS`] of them.
    fn form(&mut self, members: &[u64], representative: Option<u64>) -> Result<()> {
        for (place, member) in members.iter().enumerate() {
            let others = members.iter().copied().filter(|other| other != member);
            let expected: Vec<u64> = match representative {
                Some(first) if first == *member => others.collect(),
                Some(first) => vec![first],
                None => {
                    let around = [place.wrapping_sub(1), place + 1].into_iter();
                    around.filter_map(|it| members.get(it).copied()).collect()
                }
            };
            let neighbours = self.tables.neighbours(*member)?;
            let oldest = members.iter().take(place.min(COMPARED_MEMBERS));
            let is_near = representative.is_some() || self.are_near(*member, oldest)?;
            if neighbours != expected || !is_near {
                let place = format!("table forest, document {member}");
                let detail = format!(
                    "found edges to {neighbours:?}, expected {expected:?}; near other members: {is_near}"
                );
                self.report.add(11, place, detail);
            }
        }
        Ok(())
    }

    /// Returns true if a document is within the bounds of others.
    fn are_near<'m>(&self, document: u64, others: impl Iterator<Item = &'m u64>) -> Result<bool> {
        let view = self.snapshot.view();
        let Some(signature) = view.signature_of(document)? else {
            return Ok(false);
        };
        let scorer = Scorer::new(&signature);
        for other in others {
            if !scorer.scored_document(view, *other)?.is_within(self.bounds) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks that the rows of the feed follow each other, and that its last changes have led to
    /// what the tables have.
    fn feed(&mut self) -> Result<()> {
        let feed = self
            .snapshot
            .inner
            .tables()?
            .read
            .open_table(FEED)
            .engine()?;
        let (mut end, mut is_whole) = (None, true);
        let mut last = HashMap::new();
        for entry in feed.iter().engine()? {
            let (key, row) = entry.engine()?;
            let first = key.value();
            if end.is_some_and(|end| end != first) {
                is_whole = false;
                let detail = format!("found changes from {first} on, expected {end:?}");
                self.report.add(11, "table feed", detail);
            }
            let changes = decode_feed(first, row.value());
            end = changes
                .as_ref()
                .ok()
                .map(|all| all.last().map_or(first, |last| last.position));
            is_whole &= changes.is_ok();
            for change in changes.iter().flatten() {
                match change.event {
                    ClusterEvent::Joined { document } => {
                        last.insert(document, Some(change.cluster))
                    }
                    ClusterEvent::Left { document } => last.insert(document, None),
                    _ => continue,
                };
            }
            self.report.note(11, changes.map(drop))?;
        }
        // Damage can hide later changes.
        for (document, cluster) in last.into_iter().filter(|_| is_whole) {
            let checked = self.is_in(document, cluster);
            self.report.note(11, checked)?;
        }
        Ok(())
    }

    /// Checks that a document is in the cluster that another has become.
    fn is_in(&mut self, document: DocumentId, cluster: Option<ClusterId>) -> Result<()> {
        let found = self.tables.cluster_of(document.get())?.map(|(id, _)| id);
        let expected = match cluster {
            Some(id) => self.tables.resolve(id.get())?.map(|(id, _)| id),
            None => None,
        };
        if found != expected {
            let detail =
                format!("document {document} is in cluster {found:?}, expected {expected:?}");
            self.report.add(11, "table feed", detail);
        }
        Ok(())
    }
}
