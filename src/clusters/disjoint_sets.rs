//! Disjoint sets of ids.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::index::Mixer;

/// Ids that are given memory together: those around an id that was joined.
const PAGE_IDS: u64 = 256;

/// Disjoint sets (Tarjan 1975) with path splitting. The smallest id of a set is its root, so that the
/// result does not depend on the order of the pairs.
///
/// It takes 8 bytes for each id in every range of 256 ids that contains a joined one, independently
/// of the number of pairs.
#[derive(Clone, Debug, Default)]
pub(crate) struct DisjointSets {
    /// The parents of the ids of each stretch, by its number. An id that is in none is its own.
    pages: HashMap<u64, Box<[u64]>, BuildHasherDefault<Mixer>>,
}

impl DisjointSets {
    /// Unites the sets of two ids, and returns true unless they were one.
    pub(crate) fn join(&mut self, a: u64, b: u64) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            self.set_parent(a.max(b), a.min(b));
        }
        a != b
    }

    /// Returns true if two ids are in the same set.
    pub(crate) fn are_joined(&mut self, a: u64, b: u64) -> bool {
        a == b || self.root(a) == self.root(b)
    }

    fn parent(&self, id: u64) -> u64 {
        let page = self.pages.get(&(id / PAGE_IDS));
        let parent = page.and_then(|page| page.get((id % PAGE_IDS) as usize));
        parent.copied().unwrap_or(id)
    }

    fn set_parent(&mut self, id: u64, parent: u64) {
        let offset = id % PAGE_IDS;
        let single = || (0..PAGE_IDS).map(|other| id - offset + other).collect();
        let page = self.pages.entry(id / PAGE_IDS).or_insert_with(single);
        if let Some(entry) = page.get_mut(offset as usize) {
            *entry = parent;
        }
    }

    /// Returns the smallest id of the set of an id.
    pub(crate) fn root(&mut self, mut id: u64) -> u64 {
        let mut parent = self.parent(id);
        while parent != id {
            let grandparent = self.parent(parent);
            if grandparent != parent {
                self.set_parent(id, grandparent);
            }
            (id, parent) = (parent, grandparent);
        }
        id
    }

    /// Returns the sets of at least two ids. At the end this takes 16 bytes for each id of a set
    /// except the first; all pages have been released.
    pub(crate) fn into_sets(mut self) -> Sets {
        let mut stretches: Vec<u64> = self.pages.keys().copied().collect();
        stretches.sort_unstable();
        let ids = |stretch: u64| (0..PAGE_IDS).map(move |offset| stretch * PAGE_IDS + offset);
        let all = stretches.iter().flat_map(|stretch| ids(*stretch));
        let joined = all.filter(|id| self.parent(*id) != *id).count();
        let mut members = Vec::with_capacity(joined);
        // From the greatest id down: roots are below, so a page can be freed when it has been read.
        for stretch in stretches.into_iter().rev() {
            for id in ids(stretch) {
                let root = self.root(id);
                if root != id {
                    members.push((root, id));
                }
            }
            self.pages.remove(&stretch);
        }
        members.sort_unstable();
        Sets {
            members: members.into_iter(),
        }
    }
}

/// Sets by their smallest ids, each ascending.
#[derive(Clone, Debug)]
pub(crate) struct Sets {
    /// The smallest id of its set with each other one, ascending.
    members: std::vec::IntoIter<(u64, u64)>,
}

impl Sets {
    fn left(&self) -> impl Iterator<Item = &[(u64, u64)]> {
        self.members.as_slice().chunk_by(|a, b| a.0 == b.0)
    }

    /// Returns the smallest id and the number of ids of every set that is left.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (u64, u64)> {
        let sets = self.left().filter_map(|set| Some((set.first()?.0, set)));
        sets.map(|(first, set)| (first, set.len() as u64 + 1))
    }
}

impl Iterator for Sets {
    type Item = Vec<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        let others = self.left().next()?.len();
        let (first, second) = self.members.next()?;
        let mut ids = vec![first, second];
        ids.extend(self.members.by_ref().take(others - 1).map(|(_, id)| id));
        Some(ids)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Components by repeated relabelling, until nothing changes.
    fn by_relabelling(count: u64, pairs: &[(u64, u64)]) -> Vec<Vec<u64>> {
        let mut labels: Vec<u64> = (0..count).collect();
        loop {
            let before = labels.clone();
            for &(a, b) in pairs {
                let smallest = labels[a as usize].min(labels[b as usize]);
                labels[a as usize] = smallest;
                labels[b as usize] = smallest;
            }
            if labels == before {
                break;
            }
        }
        let mut sets: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (id, label) in (0..count).zip(labels) {
            sets.entry(label).or_default().push(id);
        }
        sets.into_values().filter(|set| set.len() > 1).collect()
    }

    #[test]
    fn disjoint_sets_agree_with_relabelling() {
        let mut state = 1u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 33
        };
        for _ in 0..200 {
            let count = 2 + random() % 40;
            let mut pairs = Vec::new();
            for _ in 0..random() % 40 {
                let (a, b) = (random() % count, random() % count);
                if a != b {
                    pairs.push((a, b));
                }
            }
            let expected = by_relabelling(count, &pairs);
            // Close together, and far apart: every id on a separate page.
            for step in [1, 1_000, u64::MAX / 64] {
                let spread: Vec<Vec<u64>> = expected
                    .iter()
                    .map(|set| set.iter().map(|id| id * step).collect())
                    .collect();
                let mut sets = DisjointSets::default();
                for &(a, b) in &pairs {
                    sets.join(a * step, b * step);
                }
                for (a, b) in (0..count).flat_map(|a| (0..count).map(move |b| (a, b))) {
                    let is_in_one = |set: &Vec<u64>| set.contains(&a) && set.contains(&b);
                    let are_joined = a == b || expected.iter().any(is_in_one);
                    assert_eq!(sets.are_joined(a * step, b * step), are_joined);
                }
                let sets = sets.into_sets();
                let sizes: Vec<_> = spread
                    .iter()
                    .map(|set| (set[0], set.len() as u64))
                    .collect();
                assert_eq!(sets.sizes().collect::<Vec<_>>(), sizes);
                assert_eq!(sets.collect::<Vec<_>>(), spread);
                pairs.reverse();
            }
        }
    }
}
