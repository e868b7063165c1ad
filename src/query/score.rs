//! Scores: how near a stored document is to the signature of a search, and the order of the best.

use crate::error::Result;
use crate::format::{DOCUMENTS, DocumentRow, no_row};
use crate::invariant::{OrBug, invariant};
use crate::query::bounds::ResolvedBounds;
use crate::read::ReadView;
use crate::state::SharedContext;
use crate::types::{Document, DocumentId, Match};
use resemblance_sketch::fingerprint::Fingerprint;
use resemblance_sketch::lanes::TableDesign;
use resemblance_sketch::sketch::Signature;

/// The order by which a search keeps the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Greater similarity, then smaller distance, then lower id.
    Similarity,
    /// Smaller distance, then greater similarity, then lower id.
    Distance,
}

/// The place of a document among others: by the first number, then the second, then its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(u64, u64, u64);

impl Rank {
    pub(super) const LAST: Self = Self(u64::MAX, u64::MAX, u64::MAX);
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

    /// Returns the rank by similarity: the lowest is the best.
    pub(crate) fn rank(&self) -> Rank {
        self.rank_in(Order::Similarity)
    }

    /// Returns the rank in an order: the lowest is the best.
    pub(super) fn rank_in(&self, order: Order) -> Rank {
        // The bits of numbers that are not negative are in their order.
        let dissimilarity = !self.similarity.to_bits();
        let distance = u64::from(self.distance);
        match order {
            Order::Similarity => Rank(dissimilarity, distance, self.id),
            Order::Distance => Rank(distance, dissimilarity, self.id),
        }
    }

    pub(crate) fn is_within(&self, bounds: &ResolvedBounds) -> bool {
        bounds.accepts_similarity(self.similarity, self.is_exact, self.distance)
    }

    /// Returns true if no candidate can be nearer: this similarity is 1, the distance 0.
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

    /// Replaces the estimate by the similarity that the caller returned, if any. Returns `None` if the
    /// result is not within the bounds.
    pub(crate) fn verified(
        self,
        exact_similarity: Option<f64>,
        bounds: Option<&ResolvedBounds>,
    ) -> Option<Self> {
        let verified = self.with_similarity(exact_similarity);
        bounds
            .is_none_or(|bounds| verified.is_within(bounds))
            .then_some(verified)
    }

    /// Replaces the estimate by an exact similarity, if there is one.
    pub(crate) fn with_similarity(mut self, exact_similarity: Option<f64>) -> Self {
        if let Some(similarity) = exact_similarity {
            (self.similarity, self.is_exact) = (similarity, true);
        }
        self
    }
}

/// The signature of a search, which is compared with the stored documents.
#[derive(Clone, Copy)]
pub(crate) struct Scorer<'a> {
    signature: &'a Signature,
}

impl<'a> Scorer<'a> {
    pub(crate) fn new(signature: &'a Signature) -> Self {
        Self { signature }
    }

    /// Compares with a stored signature. Returns `None` if the two cannot be near: only one of them has
    /// features, or neither has and the schema takes such documents for distinct, or they share no bucket
    /// of the lanes that `bounds` probe.
    pub(crate) fn score(
        &self,
        context: &SharedContext,
        id: u64,
        row: &DocumentRow<'_>,
        bounds: Option<&ResolvedBounds>,
    ) -> Result<Option<Scored>> {
        if row.is_empty() != self.signature.is_empty() || !context.is_filed(self.signature) {
            return Ok(None);
        }
        let equal = row.agreement(self.signature);
        let scored = self.scored(context, id, equal, row.fingerprint());
        let codes = |codes: &mut _| context.band_codes(&row.to_signature(context.recipe), codes);
        let is_candidate = self.is_candidate(context, bounds, scored.distance, codes)?;
        Ok(is_candidate.then_some(scored))
    }

    /// Compares as [`score`](Self::score) with a signature in memory.
    pub(crate) fn score_signature(
        &self,
        context: &SharedContext,
        id: u64,
        other: &Signature,
        bounds: &ResolvedBounds,
    ) -> Result<Option<Scored>> {
        if other.is_empty() != self.signature.is_empty() || !context.is_filed(self.signature) {
            return Ok(None);
        }
        let layout = context.shape().values;
        let equal = layout.map_or(0, |layout| self.signature.agreement(layout, other));
        let scored = self.scored(context, id, equal, other.fingerprint());
        let codes = |codes: &mut _| context.band_codes(other, codes);
        let is_candidate = self.is_candidate(context, Some(bounds), scored.distance, codes)?;
        Ok(is_candidate.then_some(scored))
    }

    /// Returns true if a document found in a bucket is a candidate. A code holds only a part of a
    /// fingerprint of more than 64 bits: near codes may belong to fingerprints beyond the distance, and such a
    /// document is a candidate only if it shares a band.
    fn is_candidate(
        &self,
        context: &SharedContext,
        bounds: Option<&ResolvedBounds>,
        distance: u32,
        codes: impl FnOnce(&mut Vec<u64>) -> Result<()>,
    ) -> Result<bool> {
        // Codes of 64 bits or fewer are whole fingerprints, whose buckets were compared bit by bit.
        let codes_are_exact = context
            .lanes
            .design()
            .is_none_or(TableDesign::codes_are_exact);
        let Some(bounds) = bounds.filter(|_| !codes_are_exact) else {
            return Ok(true);
        };
        if bounds.max_distance.is_none_or(|most| distance <= most) {
            return Ok(true);
        }
        // Beyond the distance only a shared band makes a candidate.
        if !bounds.probes_bands() {
            return Ok(false);
        }
        let (mut own, mut others) = (Vec::new(), Vec::new());
        context.band_codes(self.signature, &mut own)?;
        codes(&mut others)?;
        invariant!(
            own.len() == others.len(),
            "found {} band codes, expected {}",
            others.len(),
            own.len()
        );
        Ok(own.iter().zip(&others).any(|(own, other)| own == other))
    }

    pub(super) fn scored(
        &self,
        context: &SharedContext,
        id: u64,
        equal: usize,
        fingerprint: Option<Fingerprint>,
    ) -> Scored {
        let fingerprints = fingerprint.zip(self.signature.fingerprint());
        let distance = fingerprints.map_or(0, |(a, b)| a.distance(&b));
        let layout = context.shape().values;
        Scored {
            id,
            similarity: layout.map_or(0.0, |layout| layout.similarity(equal)),
            is_exact: false,
            distance,
        }
    }

    pub(crate) fn matched(
        &self,
        context: &SharedContext,
        scored: &Scored,
        document: Document<'static>,
    ) -> Match {
        let is_known = scored.is_exact || context.shape().values.is_some();
        Match {
            id: DocumentId::new(scored.id),
            document,
            has_payload: false,
            similarity: is_known.then_some(scored.similarity),
            is_exact: scored.is_exact,
            distance: self.signature.fingerprint().map(|_| scored.distance),
            beyond: None,
        }
    }

    /// Scores a live document by its exact set, if there are sets, or else by its signature.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if another row names a document that has none.
    pub(crate) fn scored_document(&self, source: &dyn ReadView, id: u64) -> Result<Scored> {
        let exact = source.set_similarity(self.signature, id, 0.0)?;
        let scored =
            source.with_document(id, |row| Ok(self.compare_row(source.context(), id, row)))?;
        let scored = scored.ok_or_else(|| no_row(DOCUMENTS, id, 1))?;
        Ok(scored.with_similarity(exact))
    }

    /// Compares with the document of an id, however far: for `insert_if_new` of a key that the store
    /// already has.
    pub(crate) fn compare(&self, source: &dyn ReadView, id: u64) -> Result<Match> {
        // Before the visit, which keeps the table of rows open: the set may be in the row.
        let exact = source.set_similarity(self.signature, id, 0.0)?;
        let mut found = None;
        source.live_documents(&[id], &mut |_, row| {
            let scored = self.compare_row(source.context(), id, &row);
            let scored = scored.with_similarity(exact);
            let document = source.to_document(id, &row.head, false)?;
            found = Some(self.matched(source.context(), &scored, document));
            Ok(())
        })?;
        found.or_bug("a document that was found by its key")
    }

    /// Compares with any row, however far.
    pub(crate) fn compare_row(
        &self,
        context: &SharedContext,
        id: u64,
        row: &DocumentRow<'_>,
    ) -> Scored {
        let are_alike = row.is_empty() == self.signature.is_empty();
        let equal = if are_alike {
            row.agreement(self.signature)
        } else {
            0
        };
        self.scored(context, id, equal, row.fingerprint())
    }
}
