//! The signature of a search, and how near stored documents are to it.

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::format::{DOCUMENTS, DocumentRow, no_row};
use crate::invariant::{OrBug, invariant};
use crate::lanes::TableDesign;
use crate::query::bounds::ResolvedBounds;
use crate::query::collect::Found;
use crate::query::scored::Scored;
use crate::read::ReadView;
use crate::sketch::Signature;
use crate::state::SharedContext;
use crate::types::{Document, DocumentId, Match, Matches, Scope};

/// The signature of a search, which is compared with the stored documents.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    signature: &'a Signature,
}

impl<'a> Subject<'a> {
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

    /// Returns what was found as matches, the best first, with their documents.
    pub(super) fn matches(
        &self,
        view: &dyn ReadView,
        found: Found,
        scope: Scope,
        with_payloads: bool,
    ) -> Result<Matches> {
        let mut known = found.known;
        let near = found.near.into_sorted();
        let mut matches = Vec::with_capacity(near.len());
        for scored in near {
            let document = match known.take_if(|(id, _)| *id == scored.id) {
                Some((_, document)) => Some(document),
                None => view.document_of(scored.id, with_payloads)?,
            };
            let document = document.ok_or_else(|| no_row(DOCUMENTS, scored.id, 4))?;
            let mut matched = self.matched(view.context(), &scored, document);
            matched.has_payload = with_payloads;
            matches.push(matched);
        }
        Ok(Matches {
            matches,
            scope,
            recall: None,
            candidates: found.compared,
            beyond: None,
        })
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

    /// Compares with the document of an id, however far: for `insert_if_new` of a key that the store
    /// already has.
    pub(crate) fn compare(&self, source: &dyn ReadView, id: u64) -> Result<Match> {
        let mut found = None;
        source.live_documents(&[id], &mut |_, row| {
            let scored = self.compare_row(source.context(), id, &row);
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
