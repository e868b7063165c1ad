//! How near a candidate is.

use std::cmp::Reverse;

use crate::error::Result;
use crate::format::SignatureRow;
use crate::lanes::TableDesign;
use crate::query::bounds::ResolvedBounds;
use crate::query::query::Subject;
use crate::query::verify::Ask;
use crate::sketch::Signature;
use crate::state::SharedContext;

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
    /// The least is the best.
    pub(crate) fn rank(&self) -> (Reverse<u64>, u32, u64) {
        // The bits of numbers that are not negative are in their order.
        (Reverse(self.similarity.to_bits()), self.distance, self.id)
    }

    pub(crate) fn is_within(&self, bounds: &ResolvedBounds) -> bool {
        bounds.accepts_similarity(self.similarity, self.is_exact, self.distance)
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

impl Subject<'_> {
    /// `None` if the two cannot be near: one has no features and the other has, or neither has
    /// and the schema says that such documents are distinct; or if they do not meet in a lane that is
    /// read for `bounds`, where candidates were looked for.
    pub(crate) fn score(
        &self,
        context: &SharedContext,
        id: u64,
        row: &SignatureRow<'_>,
        bounds: Option<&ResolvedBounds>,
    ) -> Option<Scored> {
        if row.is_empty() != self.signature.is_empty() || !context.is_filed(self.signature) {
            return None;
        }
        let equal = row.agreement(self.signature);
        let scored = self.scored(context, id, equal, row.fingerprint());
        let codes = |codes: &mut _| context.band_codes(&row.to_signature(context.recipe), codes);
        self.meets(context, bounds, scored.distance, codes)
            .then_some(scored)
    }

    /// [`score`](Self::score) of a document whose signature is in memory.
    pub(crate) fn score_signature(
        &self,
        context: &SharedContext,
        id: u64,
        other: &Signature,
        bounds: &ResolvedBounds,
    ) -> Option<Scored> {
        if other.is_empty() != self.signature.is_empty() || !context.is_filed(self.signature) {
            return None;
        }
        let layout = context.shape().values;
        let equal = layout.map_or(0, |layout| self.signature.agreement(layout, other));
        let scored = self.scored(context, id, equal, other.simhash());
        let codes = |codes: &mut _| context.band_codes(other, codes);
        self.meets(context, Some(bounds), scored.distance, codes)
            .then_some(scored)
    }

    /// Whether a candidate is one. The codes of fingerprints of 128 bits hold a part of them: those
    /// that are near enough may belong to fingerprints that are not, and those meet in a band or not
    /// at all.
    fn meets(
        &self,
        context: &SharedContext,
        bounds: Option<&ResolvedBounds>,
        distance: u32,
        codes: impl FnOnce(&mut Vec<u64>) -> Result<()>,
    ) -> bool {
        let codes_are_exact = context
            .lanes
            .design()
            .is_none_or(TableDesign::codes_are_exact);
        let Some(bounds) = bounds.filter(|_| !codes_are_exact) else {
            return true;
        };
        if bounds.max_distance.is_none_or(|most| distance <= most) {
            return true;
        }
        let (mut own, mut others) = (Vec::new(), Vec::new());
        let are_there = bounds.probes_bands()
            && context.band_codes(self.signature, &mut own).is_ok()
            && codes(&mut others).is_ok();
        are_there && own.iter().zip(&others).any(|(own, other)| own == other)
    }

    pub(crate) fn scored(
        &self,
        context: &SharedContext,
        id: u64,
        equal: usize,
        fingerprint: Option<u128>,
    ) -> Scored {
        let fingerprints = fingerprint.zip(self.signature.simhash());
        let distance = fingerprints.map_or(0, |(a, b)| (a ^ b).count_ones());
        let layout = context.shape().values;
        Scored {
            id,
            similarity: layout.map_or(0.0, |layout| layout.similarity(equal)),
            is_exact: false,
            distance,
        }
    }
}
