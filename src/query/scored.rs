//! The score of a candidate: its similarity and distance.

use std::cmp::Reverse;

use crate::error::Result;
use crate::query::bounds::ResolvedBounds;
use crate::query::verify::Ask;
use crate::state::SharedContext;

/// A compared document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scored {
    pub(crate) id: u64,
    /// 0 to 1; 0 of signatures without MinHash values, unless it is exact.
    pub(super) similarity: f64,
    pub(super) is_exact: bool,
    pub(super) distance: u32,
}

impl Scored {
    /// Returns the rank of a match: the lowest is the best.
    pub(crate) fn rank(&self) -> (Reverse<u64>, u32, u64) {
        // The bits of numbers that are not negative are in their order.
        (Reverse(self.similarity.to_bits()), self.distance, self.id)
    }

    pub(crate) fn is_within(&self, bounds: &ResolvedBounds) -> bool {
        bounds.accepts_similarity(self.similarity, self.is_exact, self.distance)
    }

    /// Whether no candidate can be nearer: this similarity is 1, the distance 0.
    pub(crate) fn is_identical(&self, context: &SharedContext) -> bool {
        self.distance == 0 && (context.shape().values.is_none() || self.similarity >= 1.0)
    }

    /// Puts what the caller says in the place of the estimate.
    pub(crate) fn settle(&mut self, told: Option<f64>) {
        if let Some(similarity) = told {
            (self.similarity, self.is_exact) = (similarity, true);
        }
    }
}

/// Verifies those that were not chosen by their estimates, and keeps those within the bounds.
pub(crate) fn settle(
    scored: &mut Vec<Scored>,
    ask: &Ask<'_>,
    bounds: &ResolvedBounds,
) -> Result<()> {
    for scored in scored.iter_mut() {
        scored.settle(ask(scored.id)?);
    }
    scored.retain(|scored| scored.is_within(bounds));
    Ok(())
}
