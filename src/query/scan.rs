//! The scan of a search: all stored documents, compared in threads.

use std::borrow::Cow;

use crate::error::Result;
use crate::format::DocumentRow;
use crate::invariant::{OrBug, at_mut};
use crate::query::bounds::ResolvedBounds;
use crate::query::collect::{FoundDocuments, ScanKeeps};
use crate::query::gate::Gate;
use crate::query::score::{Scored, Scorer};
use crate::query::search::SearchSpec;
use crate::query::verify::Referee;
use crate::read::{ReadView, VisitShare};
use crate::state::SharedContext;
use crate::threads::processors;
use crate::types::{Matches, Scope};
use resemblance_sketch::exact::ExactSet;
use resemblance_sketch::sketch::Signature;

/// The greatest number of threads: more would wait for memory.
const MAX_THREADS: usize = 8;

/// Number of signatures that are compared with a row while it is in the processor's cache.
const SCAN_SIGNATURES: usize = 256;

/// The maximum number of documents that a scan for many signatures may hold at once, 32 bytes each.
pub(super) const MAX_HELD: u64 = 1 << 21;

impl SearchSpec<'_> {
    /// Compares signatures with every stored document, each of which is read once for some hundred of
    /// them. Returns their answers in their order.
    pub(super) fn scan(&self, signatures: &[&Signature], kept: ScanKeeps) -> Result<Vec<Matches>> {
        let context = self.view.context();
        let mut answers = Vec::with_capacity(signatures.len());
        // Sets decide while a row is read. A caller decides afterwards, so every document is held
        // for each signature until then.
        let by_sets = self.referee.by_sets_alone() == Some(true);
        let together = match self.referee {
            Referee::Caller(_) => (MAX_HELD / self.view.documents().max(1)) as usize,
            Referee::Estimate | Referee::Sets => SCAN_SIGNATURES,
        };
        for piece in signatures.chunks(together.clamp(1, SCAN_SIGNATURES)) {
            let filed = piece.iter().copied().filter(|one| context.is_filed(one));
            let filed: Vec<&Signature> = filed.collect();
            let mut all = self.scan_found(&filed, kept, by_sets)?.into_iter();
            for signature in piece {
                if !context.is_filed(signature) {
                    answers.push(Matches::none(Scope::Scan));
                    continue;
                }
                let mut found = all.next().or_bug("what was found for a signature")?;
                if !by_sets {
                    self.verify_found(answers.len(), signature, &mut found)?;
                }
                answers.push(self.matches(signature, found, Scope::Scan)?);
            }
        }
        Ok(answers)
    }

    /// Returns the store's documents for each signature. If `by_sets`, the sets of an exact store
    /// have decided, and only documents of the answer are held. Otherwise, none is verified.
    pub(super) fn scan_found(
        &self,
        signatures: &[&Signature],
        kept: ScanKeeps,
        by_sets: bool,
    ) -> Result<Vec<FoundDocuments>> {
        if signatures.is_empty() {
            return Ok(Vec::new());
        }
        let context = self.view.context();
        let bounds = self.bounds.filter(|_| by_sets || !self.referee.verifies());
        let met = self.bounds.filter(|_| kept == ScanKeeps::WhatProbesMeet);
        let probes_bands = met.is_some_and(ResolvedBounds::probes_bands);
        // Without bands, the bounds alone decide, unless sets do.
        let is_wanted = |_: &&ResolvedBounds| probes_bands || self.referee.verifies();
        let distance_without_band = met.filter(is_wanted).and_then(|bounds| bounds.max_distance);
        let mut encoded = Vec::with_capacity(signatures.len());
        for signature in signatures {
            let (mut values, mut codes) = (Vec::new(), Vec::new());
            if let Some(layout) = context.shape().values {
                signature.encode_values(layout, &mut values);
            }
            if distance_without_band.is_some() && probes_bands {
                context.band_codes(signature, &mut codes)?;
            }
            encoded.push(EncodedSignature {
                signature,
                values,
                codes,
                set: context.set_of(signature)?.filter(|_| by_sets),
            });
        }
        let scan = Scan {
            context,
            gate: self.gate,
            signatures: encoded,
            bounds,
            distance_without_band,
            exclude: self.exclude,
        };
        // Every thread has separate lists, which are joined at the end, so no row needs a lock.
        let mut nothing = self.nothing();
        if by_sets {
            nothing = FoundDocuments::new(self.collector.limit(), self.order);
        }
        let mut shares = vec![vec![nothing; signatures.len()]; processors().min(MAX_THREADS)];
        if let Some(view) = self.view.shared() {
            let visitors = shares.iter_mut().map(|all| {
                let visit = |id, bytes: &[u8]| scan.compare(view, id, bytes, all);
                Box::new(visit) as VisitShare<'_>
            });
            view.share_document_rows(visitors.collect())?;
        } else {
            let (view, all) = (self.view, at_mut(&mut shares, 0)?);
            view.all_document_rows(&mut |id, bytes| scan.compare(view, id, bytes, all))?;
        }
        let mut rest = shares.into_iter();
        let mut all = rest.next().or_bug("the share of a thread")?;
        for share in rest {
            for (found, share) in all.iter_mut().zip(share) {
                found.join(share);
            }
        }
        context.note_candidates(all.iter().map(|found| found.compared).sum());
        // A row is read once for all of them.
        let read = all.first().map_or(0, |found| found.compared);
        context.counters.signatures_read(read);
        Ok(all)
    }
}

/// The signatures that are compared with every document.
struct Scan<'s> {
    context: &'s SharedContext,
    gate: Option<&'s Gate<'s>>,
    signatures: Vec<EncodedSignature<'s>>,
    /// `None` keeps every document.
    bounds: Option<&'s ResolvedBounds>,
    /// A document at a greater distance must share a band with the signature; `None` if none must.
    distance_without_band: Option<u32>,
    exclude: Option<u64>,
}

/// One signature, with its values as bytes: those are compared by vector instructions.
struct EncodedSignature<'s> {
    signature: &'s Signature,
    values: Vec<u8>,
    /// The codes of its bands, where a document must share one.
    codes: Vec<u64>,
    /// Its exact set, if the sets of documents decide.
    set: Option<Cow<'s, ExactSet>>,
}

impl Scan<'_> {
    /// Compares the row of a document with each signature.
    fn compare(
        &self,
        view: &dyn ReadView,
        id: u64,
        bytes: &[u8],
        all: &mut [FoundDocuments],
    ) -> Result<()> {
        let shape = self.context.shape();
        let row = DocumentRow::decode(id, bytes, shape)?;
        if Some(id) == self.exclude {
            return Ok(());
        }
        if let Some(gate) = self.gate
            && !gate.passes(view, id, &row.head)?
        {
            return Ok(());
        }
        let layout = shape.values;
        let floor = self.bounds.map_or(0.0, ResolvedBounds::similarity_floor);
        // A set is decoded once for all signatures, and only if one needs it.
        let mut own_set: Option<ExactSet> = None;
        for (asked, found) in self.signatures.iter().zip(all) {
            found.compared += 1;
            if row.is_empty() == asked.signature.is_empty() {
                let agreement =
                    layout.map_or(0, |layout| layout.agreement(&asked.values, row.values()));
                let scorer = Scorer::new(asked.signature);
                let scored = scorer.scored(self.context, id, agreement, row.fingerprint());
                if !self.would_meet(asked, &scored, &row)? {
                    continue;
                }
                let similarity = match &asked.set {
                    None => None,
                    Some(set) => {
                        let other = match &mut own_set {
                            Some(known) => known,
                            unknown => unknown.insert(view.set_of_row(id, &row)?),
                        };
                        Some(self.context.compare_sets(set, other, floor)?)
                    }
                };
                if let Some(scored) = scored.verified(similarity, self.bounds) {
                    found.push(scored);
                }
            }
        }
        Ok(())
    }

    /// Returns true if the document counts although it may share no bucket with the signature, or shares one.
    fn would_meet(
        &self,
        asked: &EncodedSignature<'_>,
        scored: &Scored,
        row: &DocumentRow<'_>,
    ) -> Result<bool> {
        // Tables have every document within the distance.
        if self
            .distance_without_band
            .is_none_or(|distance| scored.distance <= distance)
        {
            return Ok(true);
        }
        if asked.codes.is_empty() {
            return Ok(false);
        }
        let mut codes = Vec::with_capacity(asked.codes.len());
        let stored = row.to_signature(self.context.recipe);
        self.context.band_codes(&stored, &mut codes)?;
        let mut pairs = asked.codes.iter().zip(&codes);
        Ok(pairs.any(|(own, other)| own == other))
    }
}
