//! The sizes of clusters, and clusters that look wrong.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::fmt;

use resemblance::invariant::{OrBug, at};
use resemblance::{DocumentId, Result};

/// The number of largest clusters to show, and of chains.
const SHOWN: usize = 5;

/// The number of members of a cluster, evenly spread, that are compared with each other.
const COMPARED_MEMBERS: usize = 24;

/// The maximum number of comparisons in all clusters.
const COMPARISONS: u64 = 500_000;

/// How similar two documents are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Likeness {
    /// The similarity of the sets of features, from 0 to 1.
    Similarity(f64),
    /// The distance of the fingerprints, if there are no similarities.
    Distance(u32),
}

impl Likeness {
    /// Takes the similarity, or the distance if there is no similarity.
    ///
    /// # Errors
    ///
    /// Only [`Error::Bug`](resemblance::Error::Bug), if there is neither.
    pub fn of(similarity: Option<f64>, distance: Option<u32>) -> Result<Self> {
        let likeness = similarity
            .map(Self::Similarity)
            .or(distance.map(Self::Distance));
        likeness.or_bug("two documents that were compared")
    }

    /// Returns a number that is greater the less similar the documents are.
    fn unlikeness(self) -> f64 {
        match self {
            Self::Similarity(similarity) => 1.0 - similarity,
            Self::Distance(distance) => f64::from(distance),
        }
    }
}

impl fmt::Display for Likeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Similarity(similarity) => write!(f, "{similarity:.6}"),
            Self::Distance(distance) => write!(f, "{distance}"),
        }
    }
}

/// Orders the least similar first.
pub(super) fn least_alike_first(a: Likeness, b: Likeness) -> Ordering {
    b.unlikeness().total_cmp(&a.unlikeness())
}

/// Two documents, and how similar they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct AlikePair {
    pub(super) likeness: Likeness,
    pub(super) a: DocumentId,
    pub(super) b: DocumentId,
}

impl AlikePair {
    /// Orders the least similar first.
    fn least_alike_first(&self, other: &Self) -> Ordering {
        let order = least_alike_first(self.likeness, other.likeness);
        order.then_with(|| (self.a, self.b).cmp(&(other.a, other.b)))
    }
}

/// A cluster to show.
#[derive(Clone, Debug)]
pub(super) struct ShownCluster {
    pub(super) documents: usize,
    pub(super) first: DocumentId,
    /// The least similar two among the members that were compared.
    pub(super) least_alike: AlikePair,
    /// The members that were compared with each other.
    pub(super) compared: Vec<DocumentId>,
}

/// Figures about all clusters.
#[derive(Debug, Default)]
pub struct ClusterFigures {
    /// Number of clusters.
    pub clusters: u64,
    pub(super) members: u64,
    /// The number of clusters for each number of documents.
    pub(super) sizes: BTreeMap<usize, u64>,
    /// The largest clusters, the largest first.
    pub(super) largest: Vec<ShownCluster>,
    /// Clusters of at least three documents whose members are least similar, the least similar
    /// first.
    pub(super) chains: Vec<ShownCluster>,
    comparisons: u64,
    /// The number of clusters of at least three documents whose members were not compared, because
    /// the comparisons were used up.
    pub(super) uncompared: u64,
}

impl ClusterFigures {
    /// Returns the clusters to show.
    pub(super) fn shown(&self) -> impl Iterator<Item = &ShownCluster> {
        self.largest.iter().chain(&self.chains)
    }

    /// Counts a cluster, and compares some of its members with each other.
    ///
    /// # Errors
    ///
    /// The errors of comparing.
    pub fn add(
        &mut self,
        cluster: &[DocumentId],
        likeness: impl Fn(DocumentId, DocumentId) -> Result<Likeness>,
    ) -> Result<()> {
        let documents = cluster.len();
        self.clusters += 1;
        self.members += documents as u64;
        *self.sizes.entry(documents).or_insert(0) += 1;
        let least = self.largest.last().filter(|_| self.largest.len() == SHOWN);
        let is_large = least.is_none_or(|least| documents > least.documents);
        let is_out_of_reach = self.comparisons >= COMPARISONS;
        if documents > 2 && is_out_of_reach {
            self.uncompared += 1;
        }
        if !is_large && (documents <= 2 || is_out_of_reach) {
            return Ok(());
        }
        let shown = self.compare(cluster, likeness)?;
        if is_large {
            self.largest.push(shown.clone());
            self.largest
                .sort_by_key(|shown| (Reverse(shown.documents), shown.first));
            self.largest.truncate(SHOWN);
        }
        if documents > 2 && !is_out_of_reach {
            self.chains.push(shown);
            self.chains
                .sort_by(|a, b| a.least_alike.least_alike_first(&b.least_alike));
            self.chains.truncate(SHOWN);
        }
        Ok(())
    }

    /// Finds the two least similar members.
    fn compare(
        &mut self,
        cluster: &[DocumentId],
        likeness: impl Fn(DocumentId, DocumentId) -> Result<Likeness>,
    ) -> Result<ShownCluster> {
        let step = cluster.len().div_ceil(COMPARED_MEMBERS).max(1);
        let compared: Vec<DocumentId> = cluster.iter().step_by(step).copied().collect();
        let mut found = Vec::new();
        for (number, &a) in compared.iter().enumerate() {
            for &b in compared.iter().skip(number + 1) {
                let likeness = likeness(a, b)?;
                found.push(AlikePair { likeness, a, b });
                self.comparisons += 1;
            }
        }
        let least = found.into_iter().min_by(AlikePair::least_alike_first);
        Ok(ShownCluster {
            documents: cluster.len(),
            first: *at(cluster, 0)?,
            least_alike: least.or_bug("a cluster of two documents or more")?,
            compared,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_groups_find_chains_and_large_clusters() {
        let ids = |from: u64, count: u64| -> Vec<DocumentId> {
            (from..from + count).map(DocumentId::new).collect()
        };
        // Documents with adjacent numbers are similar.
        let likeness = |a: DocumentId, b: DocumentId| {
            Ok(Likeness::Similarity(
                1.0 / (1 + a.get().abs_diff(b.get())) as f64,
            ))
        };
        let mut figures = ClusterFigures::default();
        for number in 0..8 {
            figures
                .add(&ids(100 * number, 2 + number), likeness)
                .unwrap();
        }
        figures.add(&ids(5_000, 1_000), likeness).unwrap();
        assert_eq!((figures.clusters, figures.members), (9, 44 + 1_000));
        assert_eq!(figures.sizes.get(&9), Some(&1));
        let sizes: Vec<usize> = figures
            .largest
            .iter()
            .map(|shown| shown.documents)
            .collect();
        assert_eq!(sizes, [1_000, 9, 8, 7, 6]);
        let chain = &figures.chains[0];
        assert_eq!((chain.documents, chain.compared.len()), (1_000, 24));
        assert_eq!(chain.least_alike.a, DocumentId::new(5_000));
        assert!(chain.least_alike.likeness.unlikeness() > 0.99);
        let pair = figures.shown().find(|shown| shown.documents == 2);
        assert!(pair.is_none(), "pairs are no chains");
    }
}
