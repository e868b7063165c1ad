//! Checks invariant 11: the clusters that a store keeps are the components of its forest, whose
//! edges connect live documents within the bounds and have the form of their linkage, and its feed
//! has led to them.

use std::collections::HashMap;

use crate::clusters::{DisjointSets, ReadClusters, cluster_bounds};
use crate::engine::{EngineResult, FEED, ReadableTable};
use crate::error::Result;
use crate::format::{
    ClusterRow, KeptCluster, Link, decode_feed, decode_member, edge_key, split_edge_key,
};
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
        trees: DisjointSets::default(),
        found: HashMap::new(),
    };
    check.forest(watch)?;
    check.members()?;
    check.clusters()?;
    check.feed()
}

struct ClusterCheck<'a> {
    snapshot: &'a SnapshotView,
    bounds: &'a ResolvedBounds,
    tables: &'a ReadClusters,
    live: &'a Tombstones,
    report: &'a mut CheckReport,
    trees: DisjointSets,
    /// The tree, the first member and the number of members of each cluster.
    found: HashMap<u64, Members>,
}

struct Members {
    root: u64,
    first: u64,
    documents: u64,
}

impl ClusterCheck<'_> {
    fn forest(&mut self, watch: &mut Watch<'_>) -> Result<()> {
        let tables = self.tables;
        for (done, entry) in (0..).zip(tables.forest.iter().engine()?) {
            watch.step(Phase::LinkingClusters, done, None)?;
            let (key, row) = entry.engine()?;
            let (a, b) = split_edge_key(key.value());
            let checked = self.edge(a, b, row.value());
            self.report.note(11, checked)?;
        }
        Ok(())
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
        if !self.trees.join(a, b) {
            self.report
                .add(11, place(), "found an edge that closes a circle");
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

    fn members(&mut self) -> Result<()> {
        let tables = self.tables;
        for entry in tables.members.iter().engine()? {
            let (document, row) = entry.engine()?;
            let document = document.value();
            let checked = decode_member(document, row.value())
                .and_then(|label| self.tables.resolve(label))
                .map(|found| self.member(document, found));
            self.report.note(11, checked)?;
        }
        Ok(())
    }

    fn member(&mut self, document: u64, found: Option<(u64, ClusterRow)>) {
        let root = self.trees.root(document);
        let place = format!("table members, document {document}");
        let (Some((id, ClusterRow::Kept(_))), true) = (found, self.live.contains(document)) else {
            let lives = self.live.contains(document);
            let detail = format!("found it in cluster {found:?}; the document lives: {lives}");
            return self.report.add(11, place, detail);
        };
        let members = self.found.entry(id).or_insert(Members {
            root,
            first: document,
            documents: 0,
        });
        members.documents += 1;
        if members.root != root {
            let detail = format!("found it in cluster {id}, with which no edges connect it");
            self.report.add(11, place, detail);
        }
    }

    fn clusters(&mut self) -> Result<()> {
        let mut trees = HashMap::new();
        let tables = self.tables;
        for entry in tables.clusters.iter().engine()? {
            let (id, row) = entry.engine()?;
            let id = id.value();
            let checked = ClusterRow::decode(id, row.value());
            let place = format!("table clusters, cluster {id}");
            if let Ok(ClusterRow::Forward(_)) = &checked {
                self.report.note(11, self.tables.resolve(id).map(drop))?;
                continue;
            }
            let found = self.found.get(&id);
            match (&checked, found) {
                (Ok(ClusterRow::Kept(cluster)), Some(members)) => {
                    if !is_of(cluster, members, &mut self.trees) {
                        let first = members.first;
                        let detail = format!(
                            "found {cluster:?}, expected {} documents from {first} on",
                            members.documents
                        );
                        self.report.add(11, place, detail);
                    } else if trees.insert(members.root, id).is_some() {
                        self.report
                            .add(11, place, "found a second cluster of one tree");
                    }
                }
                (Ok(ClusterRow::Kept(_)), None) | (Ok(ClusterRow::Ended), Some(_)) => {
                    let members = found.map_or(0, |members| members.documents);
                    let detail = format!("found {checked:?}, with {members} members");
                    self.report.add(11, place, detail);
                }
                _ => {}
            }
            self.report.note(11, checked.map(drop))?;
        }
        self.unnamed_trees()?;
        self.linkage()
    }

    /// Checks that the edges of a star lead to its representative, and that those of a complete
    /// cluster are a path, whose members are near the oldest [`COMPARED_MEMBERS`] of them.
    fn linkage(&mut self) -> Result<()> {
        let linkage = self.snapshot.schema().clusters().map(|it| it.linkage);
        let is_star = match linkage {
            None | Some(Linkage::Single) => return Ok(()),
            Some(linkage) => linkage == Linkage::Star,
        };
        let tables = self.tables;
        for entry in tables.clusters.iter().engine()? {
            let (id, row) = entry.engine()?;
            let id = id.value();
            // Other rows, and trees that differ from them, have been reported.
            let Ok(ClusterRow::Kept(cluster)) = ClusterRow::decode(id, row.value()) else {
                continue;
            };
            let Ok(members) = tables.members_of(id) else {
                continue;
            };
            for (place, member) in members.iter().enumerate() {
                let neighbours = tables.neighbours(*member)?;
                let around = [place.checked_sub(1), place.checked_add(1)];
                let expected: Vec<u64> = match is_star {
                    true if *member == cluster.first => members
                        .iter()
                        .copied()
                        .filter(|other| other != member)
                        .collect(),
                    true => vec![cluster.first],
                    false => {
                        let around = around.into_iter().flatten();
                        around
                            .filter_map(|place| members.get(place).copied())
                            .collect()
                    }
                };
                let oldest = members.iter().take(place.min(COMPARED_MEMBERS));
                let is_near = is_star || self.are_near(*member, oldest)?;
                if neighbours != expected || !is_near {
                    let place = format!("table forest, document {member}");
                    let detail = format!(
                        "found edges to {neighbours:?}, expected {expected:?}; near other members: {is_near}"
                    );
                    self.report.add(11, place, detail);
                }
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

    /// Checks that each document with an edge is in a cluster.
    fn unnamed_trees(&mut self) -> Result<()> {
        let tables = self.tables;
        let mut last = None;
        for entry in tables.forest.iter().engine()? {
            let (a, _) = split_edge_key(entry.engine()?.0.value());
            let is_next = last.replace(a) != Some(a);
            if is_next && self.tables.members.get(a).engine()?.is_none() {
                let place = format!("table members, document {a}");
                self.report
                    .add(11, place, "found no row, expected one for its edges");
            }
        }
        Ok(())
    }
}

fn is_of(cluster: &KeptCluster, members: &Members, trees: &mut DisjointSets) -> bool {
    let is_first = match cluster.is_oldest {
        true => cluster.first == members.first,
        false => trees.root(cluster.first) == members.root,
    };
    is_first && cluster.documents == members.documents
}
