//! Disjoint sets of ids.

use std::collections::HashMap;

use crate::error::{Error, Result};

/// Ids that are given memory together: those around an id that was joined.
const PAGE_IDS: usize = 256;

/// Stands for no node in the chains of members.
const NONE: u32 = u32::MAX;

/// Disjoint sets (Tarjan 1975) with path halving. The smallest id of a set is its root, so that the
/// result does not depend on the order of the pairs.
///
/// Takes 8 bytes an id in stretches of 256 ids of which any was joined, and no more for any number
/// of pairs.
#[derive(Clone, Debug, Default)]
pub(super) struct DisjointSets {
    pages: Vec<NodePage>,
    /// The first node of the page of each stretch of ids, by the number of the stretch.
    first_nodes: HashMap<u64, u32>,
}

/// The nodes of a stretch of ids. A node is numbered by its page and its position there.
#[derive(Clone, Debug)]
struct NodePage {
    first_id: u64,
    parents: Box<[u32]>,
    /// The next member of the same set, once all are joined.
    next: Box<[u32]>,
}

fn split(node: u32) -> (usize, usize) {
    (node as usize / PAGE_IDS, node as usize % PAGE_IDS)
}

impl DisjointSets {
    /// Makes one set of the sets of two ids.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] beyond four billion ids.
    pub(super) fn join(&mut self, a: u64, b: u64) -> Result<()> {
        let (a, b) = (self.node(a)?, self.node(b)?);
        let (a, b) = (self.root(a), self.root(b));
        let (root, other) = if self.id(a) <= self.id(b) {
            (a, b)
        } else {
            (b, a)
        };
        self.set_parent(other, root);
        Ok(())
    }

    /// Returns true if two ids are in the same set.
    pub(super) fn are_joined(&mut self, a: u64, b: u64) -> bool {
        let nodes = self.known_node(a).zip(self.known_node(b));
        a == b || nodes.is_some_and(|(a, b)| self.root(a) == self.root(b))
    }

    fn known_node(&self, id: u64) -> Option<u32> {
        let first = self.first_nodes.get(&(id / PAGE_IDS as u64))?;
        Some(first + (id % PAGE_IDS as u64) as u32)
    }

    fn node(&mut self, id: u64) -> Result<u32> {
        let stretch = id / PAGE_IDS as u64;
        let offset = (id % PAGE_IDS as u64) as u32;
        let first = match self.first_nodes.get(&stretch) {
            Some(first) => *first,
            None => self.push_page(stretch)?,
        };
        Ok(first + offset)
    }

    /// Adds a page for a stretch and returns the number of its first node.
    fn push_page(&mut self, stretch: u64) -> Result<u32> {
        // The last number means no node.
        let first = u32::try_from(self.pages.len() * PAGE_IDS);
        let first = first.ok().filter(|first| NONE - first > PAGE_IDS as u32);
        let Some(first) = first else {
            let found = "more than four billion";
            return Err(Error::invalid("documents in clusters", found, "fewer"));
        };
        self.pages.push(NodePage {
            first_id: stretch * PAGE_IDS as u64,
            parents: (first..first + PAGE_IDS as u32).collect(),
            next: vec![NONE; PAGE_IDS].into(),
        });
        self.first_nodes.insert(stretch, first);
        Ok(first)
    }

    fn id(&self, node: u32) -> u64 {
        let (page, position) = split(node);
        let first = self.pages.get(page).map_or(0, |page| page.first_id);
        first + position as u64
    }

    fn parent(&self, node: u32) -> u32 {
        let (page, position) = split(node);
        let page = self.pages.get(page);
        page.and_then(|page| page.parents.get(position))
            .copied()
            .unwrap_or(node)
    }

    fn set_parent(&mut self, node: u32, parent: u32) {
        let (page, position) = split(node);
        let page = self.pages.get_mut(page);
        if let Some(entry) = page.and_then(|page| page.parents.get_mut(position)) {
            *entry = parent;
        }
    }

    fn root(&mut self, mut node: u32) -> u32 {
        loop {
            let parent = self.parent(node);
            if parent == node {
                return node;
            }
            let grandparent = self.parent(parent);
            self.set_parent(node, grandparent);
            node = grandparent;
        }
    }

    fn next(&self, node: u32) -> u32 {
        let (page, position) = split(node);
        let page = self.pages.get(page);
        page.and_then(|page| page.next.get(position))
            .copied()
            .unwrap_or(NONE)
    }

    fn set_next(&mut self, node: u32, next: u32) {
        let (page, position) = split(node);
        let page = self.pages.get_mut(page);
        if let Some(entry) = page.and_then(|page| page.next.get_mut(position)) {
            *entry = next;
        }
    }

    /// Returns the sets of at least two ids.
    pub(super) fn into_sets(mut self) -> Sets {
        let mut pages: Vec<(u64, u32)> = self.first_nodes.drain().collect();
        pages.sort_unstable();
        let nodes: Vec<u32> = pages.into_iter().map(|(_, first)| first).collect();
        // From the greatest id down, each to the front of its set's chain, behind the root.
        for first in nodes.iter().rev() {
            for node in (*first..*first + PAGE_IDS as u32).rev() {
                let root = self.root(node);
                if root != node {
                    self.set_next(node, self.next(root));
                    self.set_next(root, node);
                }
            }
        }
        Sets {
            sets: self,
            pages: nodes,
            position: 0,
        }
    }
}

/// Sets by their smallest ids, each ascending.
#[derive(Clone, Debug)]
pub(super) struct Sets {
    sets: DisjointSets,
    /// The first node of each page, in the order of the ids.
    pages: Vec<u32>,
    /// Number of nodes that the iterator has passed, over all pages.
    position: usize,
}

impl Sets {
    /// Returns the smallest id and the number of ids of every set.
    pub(super) fn sizes(&self) -> impl Iterator<Item = (u64, u64)> {
        let nodes = self
            .pages
            .iter()
            .flat_map(|first| *first..*first + PAGE_IDS as u32);
        let roots = nodes.filter(|node| self.is_root(*node));
        roots.map(|root| (self.sets.id(root), self.nodes_of(root).count() as u64))
    }

    /// Returns true if the node has the smallest id of a set of at least two.
    fn is_root(&self, node: u32) -> bool {
        self.sets.parent(node) == node && self.sets.next(node) != NONE
    }

    fn nodes_of(&self, root: u32) -> impl Iterator<Item = u32> {
        let nodes = std::iter::successors(Some(root), |node| Some(self.sets.next(*node)));
        nodes.take_while(|node| *node != NONE)
    }
}

impl Iterator for Sets {
    type Item = Vec<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let first = self.pages.get(self.position / PAGE_IDS)?;
            let node = first + (self.position % PAGE_IDS) as u32;
            self.position += 1;
            if self.is_root(node) {
                return Some(self.nodes_of(node).map(|node| self.sets.id(node)).collect());
            }
        }
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
    fn components_are_those_of_relabelling_in_any_order() {
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
            // Close together, and far apart: every id on a page of its own.
            for step in [1, 1_000, u64::MAX / 64] {
                let spread: Vec<Vec<u64>> = expected
                    .iter()
                    .map(|set| set.iter().map(|id| id * step).collect())
                    .collect();
                let mut sets = DisjointSets::default();
                for &(a, b) in &pairs {
                    sets.join(a * step, b * step).unwrap();
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
