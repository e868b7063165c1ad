//! The oracle for clusters that a store keeps: their members, and the ids that they have had.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use resemblance::schema::Linkage;
use resemblance::{ClusterEvent, ClusterId, DocumentId, Signature, Snapshot};

use super::{Model, components};
use crate::common::question::Question;

/// The clusters that have members, and what has become of the ids of others.
#[derive(Clone, Default)]
pub(crate) struct KeptClusters {
    members: BTreeMap<u64, BTreeSet<u64>>,
    /// The representatives of clusters with star linkage.
    representatives: BTreeMap<u64, u64>,
    forwards: BTreeMap<u64, u64>,
    next_id: u64,
}

impl KeptClusters {
    fn id_of(&self, document: u64) -> Option<u64> {
        let mut clusters = self.members.iter();
        let found = clusters.find(|(_, members)| members.contains(&document));
        found.map(|(id, _)| *id)
    }

    fn begin(&mut self, members: BTreeSet<u64>) {
        self.members.insert(self.next_id, members);
        self.next_id += 1;
    }

    /// The id that a former one leads to.
    fn resolve(&self, id: u64) -> u64 {
        self.forwards.get(&id).map_or(id, |to| self.resolve(*to))
    }
}

impl Model {
    /// The question that finds the documents near one in a cluster.
    fn linked(&self) -> Option<Question> {
        let bounds = self.schema.clusters()?;
        Some(Question {
            min_similarity: bounds.min_similarity,
            max_distance: bounds.max_distance.map(u32::from),
            ..Question::default()
        })
    }

    fn are_linked(&self, question: &Question, a: &Signature, b: &Signature) -> bool {
        let families = self.families(question).unwrap();
        let (_, distance) = self.bounds(question, families).unwrap();
        let found = self.compare(0, a, b);
        let meets = families.simhash && found.distance <= distance
            || families.minhash && !families.both && self.shares_band(a, b);
        meets && self.is_near(question, a, b, &found)
    }

    /// Links a document that was inserted last.
    pub(super) fn link(&mut self, id: u64) {
        let Some(question) = self.linked() else {
            return;
        };
        let signature = &self.documents[&id].signature;
        let others = self.documents.range(..id);
        let near = others.filter(|(_, it)| self.are_linked(&question, signature, &it.signature));
        let near: Vec<u64> = near.map(|(id, _)| *id).collect();
        if near.is_empty() {
            return;
        }
        if self.linkage() != Linkage::Single {
            self.join(id, &near.into_iter().collect());
            return;
        }
        let met: BTreeSet<u64> = near.iter().filter_map(|id| self.kept.id_of(*id)).collect();
        let mut union: BTreeSet<u64> = near.into_iter().chain([id]).collect();
        let size = |id: &u64| self.kept.members[id].len();
        let largest = met.iter().copied().rev().max_by_key(size);
        for id in &met {
            union.extend(self.kept.members.remove(id).unwrap());
        }
        let Some(largest) = largest else {
            return self.kept.begin(union);
        };
        for id in met.into_iter().filter(|id| *id != largest) {
            self.kept.forwards.insert(id, largest);
        }
        self.kept.members.insert(largest, union);
    }

    fn linkage(&self) -> Linkage {
        let bounds = self.schema.clusters();
        bounds.map_or(Linkage::Single, |bounds| bounds.linkage)
    }

    /// Lets a document join a cluster or a document in none, by its linkage; whether there was one.
    fn join(&mut self, id: u64, near: &BTreeSet<u64>) -> bool {
        let kept = &self.kept;
        let alone = near.iter().filter(|other| kept.id_of(**other).is_none());
        let alone = alone.map(|other| (*other, None, BTreeSet::from([*other])));
        let clusters = kept
            .members
            .iter()
            .filter(|(_, members)| !members.is_empty());
        let clusters = clusters.map(|(cluster, members)| {
            let oldest = *members.first().unwrap();
            let first = kept.representatives.get(cluster).copied();
            (first.unwrap_or(oldest), Some(*cluster), members.clone())
        });
        let may_join = |first: u64, members: &BTreeSet<u64>| match self.linkage() {
            Linkage::Star => near.contains(&first),
            _ => members.is_subset(near),
        };
        let all = alone.chain(clusters);
        let chosen = all
            .filter(|(first, _, members)| may_join(*first, members))
            .min_by_key(|(first, _, _)| *first);
        let Some((first, cluster, mut members)) = chosen else {
            return false;
        };
        members.insert(id);
        let cluster = cluster.unwrap_or(self.kept.next_id);
        if self.linkage() == Linkage::Star {
            self.kept.representatives.insert(cluster, first);
        }
        match cluster == self.kept.next_id {
            true => self.kept.begin(members),
            false => drop(self.kept.members.insert(cluster, members)),
        }
        true
    }

    /// Takes a document out of a star or a complete cluster.
    fn part(&mut self, id: u64, cluster: u64, mut left: BTreeSet<u64>) {
        left.remove(&id);
        let is_representative = self.kept.representatives.get(&cluster) == Some(&id);
        if !is_representative {
            if !left.is_empty() {
                self.kept.members.insert(cluster, left);
            }
            return;
        }
        self.kept.representatives.remove(&cluster);
        let question = self.linked().unwrap();
        let mut waiting = left.clone();
        let mut is_kept = false;
        for member in left {
            waiting.remove(&member);
            let signature = &self.documents[&member].signature;
            let others = self.documents.iter().filter(|(other, it)| {
                **other != member
                    && !waiting.contains(other)
                    && self.are_linked(&question, signature, &it.signature)
            });
            let near = others.map(|(other, _)| *other).collect();
            if !self.join(member, &near) && !is_kept {
                is_kept = true;
                self.kept.members.insert(cluster, BTreeSet::from([member]));
                self.kept.representatives.insert(cluster, member);
            }
        }
    }

    /// Takes out a document that was removed.
    fn unlink(&mut self, id: u64) {
        let Some(cluster) = self.kept.id_of(id) else {
            return;
        };
        if self.linkage() != Linkage::Single {
            let members = self.kept.members.remove(&cluster).unwrap();
            return self.part(id, cluster, members);
        }
        let question = self.linked().unwrap();
        let mut left: Vec<u64> = self
            .kept
            .members
            .remove(&cluster)
            .unwrap()
            .into_iter()
            .collect();
        left.retain(|member| *member != id);
        let signature = |id: &u64| &self.documents[id].signature;
        let mut pairs = Vec::new();
        for (place, a) in left.iter().enumerate() {
            let later = left[place + 1..].iter();
            let near = later.filter(|b| self.are_linked(&question, signature(a), signature(b)));
            pairs.extend(near.map(|b| (*a, *b)));
        }
        let parts = components(&pairs);
        let single = left
            .iter()
            .filter(|id| !parts.iter().any(|part| part.contains(id)));
        let mut all: Vec<Vec<u64>> = single.map(|id| vec![*id]).chain(parts.clone()).collect();
        all.sort_unstable();
        for (place, part) in all.into_iter().enumerate() {
            match (place, part.len()) {
                (0, _) => {
                    self.kept
                        .members
                        .insert(cluster, part.into_iter().collect());
                }
                (_, 1) => {}
                _ => self.kept.begin(part.into_iter().collect()),
            }
        }
    }

    /// Removes a document; whether there was one.
    pub(crate) fn remove(&mut self, id: u64) -> bool {
        let was_there = self.documents.remove(&id).is_some();
        if was_there {
            self.unlink(id);
        }
        was_there
    }

    /// Finds the clusters again, by the schema as it is now.
    pub(crate) fn relink(&mut self) {
        let Some(question) = self.linked() else {
            return;
        };
        let mut pairs = Vec::new();
        for (a, entry) in &self.documents {
            let later = self.documents.range(a + 1..);
            let near =
                later.filter(|(_, b)| self.are_linked(&question, &entry.signature, &b.signature));
            pairs.extend(near.map(|(b, _)| (*a, *b)));
        }
        let mut parts = match self.linkage() {
            Linkage::Single => components(&pairs),
            linkage => self.joined_in_order(linkage, &pairs),
        };
        let linked: BTreeSet<u64> = parts.iter().flatten().copied().collect();
        let single = self.documents.keys().filter(|id| !linked.contains(id));
        parts.extend(single.map(|id| vec![*id]));
        parts.sort_unstable();
        let old = std::mem::take(&mut self.kept.members);
        let mut new = Vec::new();
        for part in parts {
            let part: BTreeSet<u64> = part.into_iter().collect();
            let claims = old
                .iter()
                .filter(|(_, it)| part.contains(it.first().unwrap()));
            let claims = claims.map(|(id, it)| (it.intersection(&part).count(), Reverse(*id)));
            let mut claims: Vec<(usize, Reverse<u64>)> = claims.collect();
            claims.sort_unstable();
            let Some((_, Reverse(id))) = claims.pop() else {
                new.push(part);
                continue;
            };
            let lost = claims.into_iter().map(|(_, Reverse(lost))| (lost, id));
            self.kept.forwards.extend(lost);
            self.kept.members.insert(id, part);
        }
        new.retain(|part| part.len() > 1);
        new.into_iter().for_each(|part| self.kept.begin(part));
        if self.linkage() == Linkage::Star {
            let first = |(id, it): (&u64, &BTreeSet<u64>)| (*id, *it.first().unwrap());
            self.kept.representatives = self.kept.members.iter().map(first).collect();
        }
    }

    /// The stars or complete clusters that documents join in the order of their ids, and documents in none.
    fn joined_in_order(&self, linkage: Linkage, pairs: &[(u64, u64)]) -> Vec<Vec<u64>> {
        let mut parts: Vec<Vec<u64>> = Vec::new();
        for id in self.documents.keys() {
            let near = |other: &u64| pairs.contains(&(*other, *id));
            let joined = parts.iter_mut().find(|part| match linkage {
                Linkage::Star => near(&part[0]),
                _ => part.iter().all(near),
            });
            match joined {
                Some(part) => part.push(*id),
                None => parts.push(vec![*id]),
            }
        }
        parts
    }

    /// Gives the clusters the ids of a store that was built at once.
    pub(crate) fn link_at_once(&mut self) {
        self.kept = KeptClusters::default();
        self.relink();
    }

    /// Compares the clusters that a snapshot keeps.
    pub(crate) fn same_clusters(&self, snapshot: &Snapshot) {
        let Some(question) = self.linked() else {
            assert!(snapshot.largest_clusters(1).is_err());
            return;
        };
        let id = DocumentId::new;
        for (document, entry) in &self.documents {
            let found = snapshot.cluster_of_id(id(*document)).unwrap();
            let expected = self.kept.id_of(*document).map(ClusterId::new);
            assert_eq!(found, expected, "document {document}");
            if let Some(key) = &entry.key {
                assert_eq!(snapshot.cluster_of(key).unwrap(), expected);
            }
        }
        let mut sizes = Vec::new();
        for cluster in 0..self.kept.next_id + 1 {
            let found = snapshot.members(ClusterId::new(cluster)).unwrap();
            let found: Vec<u64> = found.into_iter().map(DocumentId::get).collect();
            let expected = self.kept.members.get(&self.kept.resolve(cluster));
            let expected: Vec<u64> = expected.into_iter().flatten().copied().collect();
            assert_eq!(found, expected, "cluster {cluster}");
            if self.kept.members.contains_key(&cluster) {
                sizes.push((ClusterId::new(cluster), found.len() as u64));
            }
        }
        sizes.sort_by_key(|(id, size)| (Reverse(*size), *id));
        sizes.truncate(5);
        assert_eq!(snapshot.largest_clusters(5).unwrap(), sizes);
        let replayed = Self::replay(snapshot);
        let kept = self.kept.members.iter();
        assert!(
            replayed
                .iter()
                .eq(kept.filter(|(_, members)| !members.is_empty()))
        );
        if self.linkage() != Linkage::Single {
            return;
        }
        let clusters = snapshot.clusters().bounds(question.bounds()).run().unwrap();
        let clusters: Vec<Vec<u64>> = clusters
            .map(|cluster| cluster.into_iter().map(DocumentId::get).collect())
            .collect();
        let kept = self
            .kept
            .members
            .values()
            .filter(|members| members.len() > 1);
        let mut kept: Vec<Vec<u64>> = kept.map(|it| it.iter().copied().collect()).collect();
        kept.sort_unstable();
        assert_eq!(clusters, kept);
    }

    /// The clusters to which the whole feed of a snapshot leads.
    pub(crate) fn replay(snapshot: &Snapshot) -> BTreeMap<u64, BTreeSet<u64>> {
        // A feed that has begun again does so at a multiple of 2^32.
        let mut begins = (0..1_000).map(|begin| snapshot.cluster_changes(begin << 32));
        let changes = begins.find_map(Result::ok).unwrap();
        let (mut clusters, mut of) = (BTreeMap::<u64, BTreeSet<u64>>::new(), BTreeMap::new());
        let (mut position, mut commit, mut ended) = (changes.position(), 0, BTreeSet::new());
        for change in changes {
            let change = change.unwrap();
            assert_eq!(change.position, position + 1);
            assert!((commit..=snapshot.commits()).contains(&change.commit));
            (position, commit) = (change.position, change.commit);
            let id = change.cluster.get();
            assert!(!ended.contains(&id), "{change:?}");
            match change.event {
                ClusterEvent::Joined { document } => {
                    let before = of.insert(document.get(), id);
                    assert_ne!(before, Some(id), "{change:?}");
                    if let Some(members) = before.and_then(|id| clusters.get_mut(&id)) {
                        assert!(members.remove(&document.get()));
                    }
                    clusters.entry(id).or_default().insert(document.get());
                }
                ClusterEvent::Left { document } => {
                    assert_eq!(of.remove(&document.get()), Some(id), "{change:?}");
                    clusters.get_mut(&id).unwrap().remove(&document.get());
                }
                ClusterEvent::United { into } => {
                    let members = clusters.remove(&id).unwrap();
                    members
                        .iter()
                        .for_each(|member| _ = of.insert(*member, into.get()));
                    clusters.get_mut(&into.get()).unwrap().extend(members);
                    ended.insert(id);
                }
                ClusterEvent::SplitFrom { from } => {
                    assert!(clusters.contains_key(&from.get()) && !clusters.contains_key(&id));
                }
                ClusterEvent::Ended => {
                    assert_eq!(clusters.remove(&id), Some(BTreeSet::new()), "{change:?}");
                    ended.insert(id);
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(snapshot.cluster_position().unwrap(), position);
        clusters
    }
}
