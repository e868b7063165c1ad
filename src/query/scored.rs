//! The score of a candidate: its similarity and distance.

use std::cmp::Reverse;

use crate::query::bounds::ResolvedBounds;
use crate::state::SharedContext;

/// What the best of a search are the best by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Greater similarity, then lesser distance, then lesser id.
    Similarity,
    /// Lesser distance, then greater similarity, then lesser id.
    Distance,
}

/// A compared document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scored {
    pub(crate) id: u64,
    /// 0 to 1; 0 of signatures without MinHash values, unless it is exact.
    pub(crate) similarity: f64,
    pub(crate) is_exact: bool,
    pub(crate) distance: u32,
}

impl Scored {
    /// A document that has a fingerprint alone.
    pub(super) fn of_distance(id: u64, distance: u32) -> Self {
        Self {
            id,
            similarity: 0.0,
            is_exact: false,
            distance,
        }
    }

    /// Returns the rank of a match: the lowest is the best.
    pub(crate) fn rank(&self) -> (Reverse<u64>, u32, u64) {
        // The bits of numbers that are not negative are in their order.
        (Reverse(self.similarity.to_bits()), self.distance, self.id)
    }

    /// Returns the rank in an order: the lowest is the best.
    pub(super) fn rank_in(&self, order: Order) -> (u64, u64, u64) {
        let dissimilarity = !self.similarity.to_bits();
        let distance = u64::from(self.distance);
        match order {
            Order::Similarity => (dissimilarity, distance, self.id),
            Order::Distance => (distance, dissimilarity, self.id),
        }
    }

    pub(crate) fn is_within(&self, bounds: &ResolvedBounds) -> bool {
        bounds.accepts_similarity(self.similarity, self.is_exact, self.distance)
    }

    /// Whether no candidate can be nearer: this similarity is 1, the distance 0.
    pub(crate) fn is_identical(&self, context: &SharedContext) -> bool {
        self.distance == 0 && (context.shape().values.is_none() || self.similarity >= 1.0)
    }

    #[cfg(test)]
    pub(super) fn exact(id: u64, similarity: f64) -> Self {
        Self {
            id,
            similarity,
            is_exact: true,
            distance: 0,
        }
    }

    /// Puts what the caller says in the place of the estimate. Returns `None` if that is not within the
    /// bounds.
    pub(crate) fn verified(
        mut self,
        exact_similarity: Option<f64>,
        bounds: Option<&ResolvedBounds>,
    ) -> Option<Self> {
        if let Some(similarity) = exact_similarity {
            (self.similarity, self.is_exact) = (similarity, true);
        }
        bounds
            .is_none_or(|bounds| self.is_within(bounds))
            .then_some(self)
    }
}
