//! Connected components of verified pairs.

use std::collections::HashMap;
use std::iter::FusedIterator;

use crate::error::Result;
use crate::id::DocumentId;
use crate::join::pairs::Pairs;

/// Clusters of near-duplicates, ordered by their first members; the members of each ascend. Made
/// by [`Snapshot::clusters`](crate::Snapshot::clusters).
#[derive(Clone, Debug)]
#[must_use = "the clusters come by iterating"]
pub struct Clusters {
    /// Root and member, sorted; the root of a cluster is its least id.
    members: std::iter::Peekable<std::vec::IntoIter<(u64, u64)>>,
}

impl Clusters {
    pub(crate) fn of(pairs: Pairs) -> Result<Self> {
        let mut forest = Forest::default();
        for pair in pairs {
            let pair = pair?;
            forest.join(pair.a.get(), pair.b.get());
        }
        Ok(Self {
            members: forest.into_members().into_iter().peekable(),
        })
    }
}

impl Iterator for Clusters {
    type Item = Vec<DocumentId>;

    fn next(&mut self) -> Option<Self::Item> {
        let &(root, _) = self.members.peek()?;
        let mut cluster = Vec::new();
        while let Some((_, id)) = self.members.next_if(|(of, _)| *of == root) {
            cluster.push(DocumentId::new(id));
        }
        Some(cluster)
    }
}

impl FusedIterator for Clusters {}

/// Disjoint sets (Tarjan 1975) with path halving. The least id of a set is its root, so that the
/// result does not depend on the order of the pairs.
#[derive(Debug, Default)]
struct Forest {
    parents: HashMap<u64, u64>,
}

impl Forest {
    fn parent(&self, id: u64) -> u64 {
        self.parents.get(&id).copied().unwrap_or(id)
    }

    fn root(&mut self, mut id: u64) -> u64 {
        loop {
            let parent = self.parent(id);
            if parent == id {
                return id;
            }
            let grandparent = self.parent(parent);
            self.parents.insert(id, grandparent);
            id = grandparent;
        }
    }

    fn join(&mut self, a: u64, b: u64) {
        let (a, b) = (self.root(a), self.root(b));
        let (root, other) = (a.min(b), a.max(b));
        self.parents.insert(root, root);
        self.parents.insert(other, root);
    }

    /// Root and member of every id that was joined, sorted.
    fn into_members(mut self) -> Vec<(u64, u64)> {
        let ids: Vec<u64> = self.parents.keys().copied().collect();
        let mut members: Vec<(u64, u64)> = ids.into_iter().map(|id| (self.root(id), id)).collect();
        members.sort_unstable();
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Components by repeated relabelling, until nothing changes.
    fn by_relabelling(count: u64, pairs: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut labels: Vec<u64> = (0..count).collect();
        loop {
            let before = labels.clone();
            for &(a, b) in pairs {
                let least = labels[a as usize].min(labels[b as usize]);
                labels[a as usize] = least;
                labels[b as usize] = least;
            }
            if labels == before {
                break;
            }
        }
        let joined = |id: &u64| pairs.iter().any(|(a, b)| a == id || b == id);
        let mut members: Vec<_> = (0..count)
            .filter(joined)
            .map(|id| (labels[id as usize], id))
            .collect();
        members.sort_unstable();
        members
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
            for _ in 0..2 {
                let mut forest = Forest::default();
                for &(a, b) in &pairs {
                    forest.join(a, b);
                }
                assert_eq!(forest.into_members(), expected);
                pairs.reverse();
            }
        }
    }
}
