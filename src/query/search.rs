//! The search: plan, candidates, score, collect, with budget and verification. Every query for near
//! documents passes through here: [`SearchSpec::probe`] for one signature, [`SearchSpec::sweep`]
//! for many, [`SearchSpec::scan`] to compare with every document.

use crate::error::Result;
use crate::format::{DOCUMENTS, no_row};
use crate::invariant::{OrBug, at, at_mut, invariant};
use crate::query::bounds::ResolvedBounds;
use crate::query::candidates::{Budget, Candidate, CandidateSource, MAX_IDENTICAL_TRIES, compare};
use crate::query::collect::{Collector, FoundDocuments, ScanKeeps, TopK};
use crate::query::equal_classes::EqualMembers;
use crate::query::gate::{Gate, leaves_out};
use crate::query::plan::{Families, IdenticalLane, ProbePlan};
use crate::query::probe::Probe;
use crate::query::score::{Order, Scored, Scorer};
use crate::query::sweep::{Sweep, for_each_piece, in_threads};
use crate::query::verify::{CallerVerdict, Referee};
use crate::read::ReadView;
use crate::types::{Certainty, CertaintyBasis, Matches, Scope};
use resemblance_sketch::sketch::Signature;

/// The view that is searched, the bounds, and the documents that are kept.
#[derive(Clone, Copy)]
pub(crate) struct SearchSpec<'q> {
    pub(crate) view: &'q dyn ReadView,
    /// Leaves out the documents that do not pass.
    pub(crate) gate: Option<&'q Gate<'q>>,
    /// `None` keeps candidates, however far.
    pub(crate) bounds: Option<&'q ResolvedBounds>,
    /// The families whose lanes are searched where there are no bounds.
    pub(crate) families: Families,
    pub(crate) order: Order,
    pub(crate) collector: Collector,
    pub(crate) budget: Option<Budget>,
    /// A document that is left out.
    pub(crate) exclude: Option<u64>,
    /// The source of the similarities that decide. If these are not estimates, a document with an
    /// identical signature counts as identical only if its similarity is 1 or unknown.
    pub(crate) referee: Referee<'q>,
    /// True if matches get the payloads of their documents.
    pub(crate) with_payloads: bool,
}

impl<'q> SearchSpec<'q> {
    /// A search of all lanes without bounds, for struct updates.
    pub(crate) fn new(view: &'q dyn ReadView, collector: Collector) -> Self {
        Self {
            view,
            gate: None,
            bounds: None,
            families: Families::ALL,
            order: Order::Similarity,
            collector,
            budget: None,
            exclude: None,
            referee: Referee::of(view, None),
            with_payloads: false,
        }
    }

    /// Searches for one signature by probes. `index` is its name to the caller who verifies.
    pub(crate) fn probe(&self, index: usize, signature: &Signature) -> Result<Matches> {
        let mut found = self.find_in_buckets(index, signature)?;
        self.verify_found(index, signature, &mut found)?;
        self.matches(signature, found, Scope::Candidates)
    }

    /// Returns the documents in the buckets of one signature. A caller who verifies is asked, by
    /// `index`, only about identical documents.
    pub(super) fn find_in_buckets(
        &self,
        index: usize,
        signature: &Signature,
    ) -> Result<FoundDocuments> {
        let plan = self.plan([signature])?;
        let lane = plan.identical_lane();
        let mut probe = Probe::new(self.view, &plan, self.budget, self.exclude);
        probe.gate = self.gate;
        // Documents with equal signatures may differ: each is verified.
        probe.folds_equal = !self.referee.verifies();
        let found = self.collect(index, &[signature], lane, probe)?;
        found
            .and_then(|mut found| found.pop())
            .or_bug("what was found for a signature")
    }

    /// Searches for many signatures by sweeps. Returns their answers in their order.
    pub(crate) fn sweep(&self, signatures: &[&Signature]) -> Result<Vec<Matches>> {
        let mut answers = Vec::with_capacity(signatures.len());
        for_each_piece(signatures, |piece| {
            if let [signature] = piece {
                // Probes, unlike sweeps, compare one of equal documents.
                answers.push(self.probe(answers.len(), signature)?);
                return Ok(true);
            }
            let mut plan = self.plan(piece.iter().copied())?;
            let Some(all) = self.sweep_piece(answers.len(), piece, &mut plan)? else {
                return Ok(false);
            };
            for (signature, mut found) in piece.iter().zip(all) {
                let index = answers.len();
                // A sweep counts candidates beyond a budget but cannot choose among them: probes
                // can.
                answers.push(if found.counts.is_over {
                    self.probe(index, signature)?
                } else {
                    self.verify_found(index, signature, &mut found)?;
                    self.matches(signature, found, Scope::Candidates)?
                });
            }
            Ok(true)
        })?;
        let (found, expected) = (answers.len(), signatures.len());
        invariant!(
            found == expected,
            "{found} answers for {expected} signatures"
        );
        Ok(answers)
    }

    /// Sweeps for the signatures of a plan and returns the unverified documents found for each, or
    /// `None` if there are so many candidates that the signatures must be halved. `first_index` is
    /// the index of the first signature, for a caller who verifies.
    pub(crate) fn sweep_piece(
        &self,
        first_index: usize,
        signatures: &[&Signature],
        plan: &mut ProbePlan,
    ) -> Result<Option<Vec<FoundDocuments>>> {
        let lane = plan.identical_lane();
        let sweep = Sweep::new(self.view, plan, self.budget, self.exclude);
        self.collect(first_index, signatures, lane, sweep)
    }

    /// Answers one signature by probes, or by a scan if that is requested or costs less.
    pub(super) fn answer(&self, scan: Option<bool>, signature: &Signature) -> Result<Matches> {
        if self.scans(scan, 1) {
            let mut answers = self.scan(&[signature], ScanKeeps::of(scan))?;
            answers.pop().or_bug("the answer for a signature")
        } else {
            self.probe(0, signature)
        }
    }

    /// Answers many signatures by sweeps, or by a scan if that is requested or costs less, on up to
    /// this number of threads. The closure of a caller who verifies runs on this one.
    pub(super) fn answer_many(
        &self,
        scan: Option<bool>,
        signatures: &[&Signature],
        threads: Option<usize>,
    ) -> Result<Vec<Matches>> {
        if self.scans(scan, signatures.len()) {
            return self.scan(signatures, ScanKeeps::of(scan));
        }
        // A transaction is of one thread, and so is the closure of a caller.
        let shared = self.view.shared().zip(self.referee.by_sets_alone());
        let Some((view, by_sets)) = shared else {
            return self.sweep(signatures);
        };
        let spec = *self;
        in_threads(signatures, threads, |part| {
            let shared = SearchSpec {
                view,
                referee: Referee::without_caller(by_sets),
                ..spec
            };
            shared.sweep(part)
        })
    }

    /// Returns true if this number of signatures is compared with every document. This is the case
    /// if the caller requests it, or if their distance is beyond the one that whole buckets
    /// guarantee and nearby buckets would cost more. Without such a request, there is no scan for a
    /// caller who verifies or sets a budget.
    fn scans(&self, wanted: Option<bool>, signatures: usize) -> bool {
        if let Some(wanted) = wanted {
            return wanted;
        }
        let context = self.view.context();
        let distance = self.bounds.and_then(|bounds| bounds.max_distance);
        let (Some(distance), Some(design)) = (distance, context.lanes.design()) else {
            return false;
        };
        let is_bounded = self.referee.by_sets_alone().is_none() || self.budget.is_some();
        if is_bounded || distance <= design.bucket_distance().into() {
            return false;
        }
        let documents = self.view.documents();
        let radii = context.probe_radii(distance, documents);
        radii.is_none_or(|radii| radii.cost_more_than_scan(signatures, documents))
    }

    pub(crate) fn plan<'s>(
        &self,
        signatures: impl IntoIterator<Item = &'s Signature>,
    ) -> Result<ProbePlan> {
        let families = self.bounds.map_or(self.families, Families::from_bounds);
        let documents = self.view.documents();
        ProbePlan::new(self.view.context(), families, documents, signatures)
    }

    /// Gathers the candidates of a source and scores them. `None`: the signatures must be halved.
    fn collect(
        &self,
        first_index: usize,
        signatures: &[&Signature],
        lane: Option<IdenticalLane>,
        mut source: impl CandidateSource,
    ) -> Result<Option<Vec<FoundDocuments>>> {
        let mut all = vec![self.nothing(); signatures.len()];
        let mut compared = Vec::new();
        // Nothing outranks an identical document, so if only the best is requested, it ends the
        // search.
        if let Some(lane) = lane.filter(|_| self.collector.seeks_identical()) {
            let Some(exact) = source.exact(lane.column)? else {
                return Ok(None);
            };
            compared = self.find_identical(first_index, signatures, lane, &exact, &mut all)?;
            for (query_index, found) in all.iter().enumerate() {
                if found.is_identical {
                    source.leave_out(query_index)?;
                }
            }
        }
        let Some(mut candidates) = source.all()? else {
            return Ok(None);
        };
        if !compared.is_empty() {
            // Some that were compared to find an identical one may be beyond the budget.
            if self.budget.is_some() {
                forget_left_out(&candidates.list, &mut all);
            }
            let is_new = |candidate: &Candidate| compared.binary_search(candidate).is_err();
            candidates.list.retain(is_new);
        }
        self.score(signatures, &candidates.list, &mut all)?;
        if let ([signature], [found]) = (signatures, all.as_mut_slice()) {
            self.score_equal(signature, &candidates.equal, &compared, found)?;
        }
        for (found, counts) in all.iter_mut().zip(candidates.counts_per_query) {
            found.counts = counts;
        }
        for found in &mut all {
            found.beyond = candidates.beyond;
        }
        Ok(Some(all))
    }

    /// Compares the documents of `exact` until one of them, for each signature, is identical to it: has the
    /// same fingerprint and, where values are stored, the same values. Returns the candidates that were
    /// compared, ascending. `exact` is what [`CandidateSource::exact`] has for the lane.
    fn find_identical(
        &self,
        first_index: usize,
        signatures: &[&Signature],
        lane: IdenticalLane,
        exact: &[Candidate],
        found: &mut [FoundDocuments],
    ) -> Result<Vec<Candidate>> {
        let mut compared = Vec::new();
        if lane.has_whole_signatures && !self.referee.verifies() {
            for of_signature in exact.chunk_by(|a, b| a.query_index == b.query_index) {
                self.take_first_live(signatures, of_signature, found)?;
            }
            return Ok(compared);
        }
        // Usually the first document is identical. If not, reading several at once costs less.
        let (mut begin, mut together) = (0, 1);
        while begin < MAX_IDENTICAL_TRIES {
            let mut now: Vec<Candidate> = Vec::new();
            for of_signature in exact.chunk_by(|a, b| a.query_index == b.query_index) {
                let query_index = at(of_signature, 0)?.query_index as usize;
                if !at(found, query_index)?.is_identical {
                    now.extend(of_signature.iter().skip(begin).take(together));
                }
            }
            if now.is_empty() {
                break;
            }
            now.sort_unstable();
            self.score(signatures, &now, found)?;
            for candidate in &now {
                let query_index = candidate.query_index as usize;
                let found = at_mut(found, query_index)?;
                let signature = at(signatures, query_index)?;
                self.take_identical(first_index + query_index, signature, candidate.id, found)?;
            }
            compared.append(&mut now);
            (begin, together) = (begin + together, together * 2);
        }
        compared.sort_unstable();
        Ok(compared)
    }

    /// Keeps a scored document alone if it is identical to the signature and, where the caller verifies, to
    /// the document as well.
    fn take_identical(
        &self,
        index: usize,
        signature: &Signature,
        id: u64,
        found: &mut FoundDocuments,
    ) -> Result<()> {
        let scored = found.near.of_id(id).filter(|_| !found.is_identical);
        let Some(scored) = scored.filter(|s| s.is_identical(self.view.context())) else {
            return Ok(());
        };
        let verdict = self.verdict(index, signature, id, self.floor())?;
        if verdict != CallerVerdict::NotAsked {
            found.verdicts.push((id, verdict));
            if verdict.similarity().unwrap_or(scored.similarity) < 1.0 {
                return Ok(());
            }
        }
        found.near.retain(|scored| scored.id == id);
        found.is_identical = true;
        Ok(())
    }

    /// Takes the first live document of those that have the exact code of a signature, where the code is
    /// the whole signature: no row of signatures is read.
    fn take_first_live(
        &self,
        signatures: &[&Signature],
        candidates: &[Candidate],
        found: &mut [FoundDocuments],
    ) -> Result<()> {
        for candidate in candidates {
            let (id, query_index) = (candidate.id, candidate.query_index as usize);
            // A posting outlives its document until a flush or a merge drops it.
            let Some(document) = self.view.document_of(id, self.with_payloads)? else {
                self.view.expect_gone(id)?;
                continue;
            };
            let found = at_mut(found, query_index)?;
            let signature = *at(signatures, query_index)?;
            let scorer = Scorer::new(signature);
            found.push(scorer.scored(self.view.context(), id, 0, signature.fingerprint()));
            found.is_identical = true;
            found.known = Some((id, document));
            break;
        }
        Ok(())
    }

    /// Scores candidates, and keeps those within the bounds, or all if they are verified later.
    pub(super) fn score(
        &self,
        signatures: &[&Signature],
        candidates: &[Candidate],
        all: &mut [FoundDocuments],
    ) -> Result<()> {
        let context = self.view.context();
        // A posting in memory may be of a document that was deleted, which only its row shows.
        let is_measured = |candidate: &Candidate| {
            candidate.code_distance.is_some() && candidate.id < self.view.flushed_below()
        };
        let measured = candidates.partition_point(is_measured);
        let (measured, unread) = candidates.split_at(measured);
        self.score_measured(measured, all)?;
        compare(self.view, self.gate, unread, &mut |candidate, row| {
            let query_index = candidate.query_index as usize;
            let scorer = Scorer::new(at(signatures, query_index)?);
            let found = at_mut(all, query_index)?;
            found.compared += 1;
            let score = scorer.score(context, candidate.id, row, self.bounds)?;
            if let Some(scored) = score.filter(|scored| self.accepts(scored)) {
                found.near.push(scored);
            }
            Ok(())
        })
    }

    /// Scores flushed documents by the distances of their codes.
    fn score_measured(&self, candidates: &[Candidate], all: &mut [FoundDocuments]) -> Result<()> {
        let mut compared = 0;
        for candidate in candidates {
            if leaves_out(self.view, self.gate, candidate.id)? {
                continue;
            }
            compared += 1;
            let found = at_mut(all, candidate.query_index as usize)?;
            found.compared += 1;
            let distance = candidate.code_distance.or_bug("a distance")?;
            let scored = Scored::of_distance(candidate.id, distance.into());
            if self.accepts(&scored) {
                found.near.push(scored);
            }
        }
        self.view.context().note_candidates(compared);
        Ok(())
    }

    /// Scores the classes of equal documents among the candidates, except those in `compared`: one
    /// member, whose score all of them have.
    fn score_equal(
        &self,
        signature: &Signature,
        equal: &EqualMembers,
        compared: &[Candidate],
        found: &mut FoundDocuments,
    ) -> Result<()> {
        let (context, limit) = (self.view.context(), self.collector.limit());
        for class in equal.classes() {
            let is_new = |id: &u64| {
                let candidate = Candidate::new(*id, 0);
                Some(*id) != self.exclude && compared.binary_search(&candidate).is_err()
            };
            // Among equal scores, the lowest ids are the best.
            let (mut first, mut count) = (Vec::new(), 0);
            for id in class.filter(is_new) {
                if leaves_out(self.view, self.gate, id)? {
                    continue;
                }
                count += 1;
                if count <= limit.max(1) {
                    first.push(id);
                }
            }
            let Some(one) = first.get(..1) else {
                continue;
            };
            let mut score = None;
            self.view.live_documents(one, &mut |id, row| {
                score = Scorer::new(signature).score(context, id, &row, self.bounds)?;
                Ok(())
            })?;
            found.compared += count;
            context.note_candidates(count);
            if let Some(scored) = score.filter(|scored| self.accepts(scored)) {
                first
                    .iter()
                    .for_each(|id| found.push(Scored { id: *id, ..scored }));
            }
        }
        Ok(())
    }

    /// Returns true if a document with this estimate may be in the answer.
    pub(crate) fn accepts(&self, scored: &Scored) -> bool {
        let wanted = self.referee.wanted();
        self.bounds
            .is_none_or(|bounds| bounds.wants_estimate(wanted, scored.similarity, scored.distance))
    }

    pub(super) fn nothing(&self) -> FoundDocuments {
        // Before it is known which are verified, or within the budget, none can be left out.
        let keeps_all = self.referee.verifies() || self.budget.is_some();
        let limit = match keeps_all {
            true => usize::MAX,
            false => self.collector.limit(),
        };
        FoundDocuments::new(limit, self.order)
    }

    /// Returns the similarity below which no document is needed.
    fn floor(&self) -> f64 {
        self.bounds.map_or(0.0, ResolvedBounds::similarity_floor)
    }

    /// Returns the similarity of a document from the caller, if it verifies, or from the sets of an
    /// exact store.
    pub(super) fn verdict(
        &self,
        index: usize,
        signature: &Signature,
        id: u64,
        floor: f64,
    ) -> Result<CallerVerdict> {
        let asked = match self.referee {
            Referee::Estimate => return Ok(CallerVerdict::NotAsked),
            Referee::Sets => None,
            Referee::Caller(ask) => ask(index, id, floor)?,
        };
        let similarity = match asked {
            Some(similarity) => Some(similarity),
            None => self.view.set_similarity(signature, id, floor)?,
        };
        Ok(similarity.map_or(CallerVerdict::Unknown, CallerVerdict::Similarity))
    }

    /// Replaces estimates by the similarities of a caller who verifies, or of the sets of an exact
    /// store, and keeps the best within the bounds.
    pub(crate) fn verify_found(
        &self,
        index: usize,
        signature: &Signature,
        found: &mut FoundDocuments,
    ) -> Result<()> {
        if !self.referee.verifies() && self.budget.is_none() {
            return Ok(());
        }
        let mut near = TopK::new(self.collector.limit(), self.order);
        let mut held = found.near.take();
        let mut floor = self.floor();
        // If only the best is kept, a less similar one need not be measured exactly. The estimates
        // show which is likely to be the best.
        let raises_floor = self.collector == Collector::BestOne && self.referee.verifies();
        if raises_floor {
            held.sort_unstable_by_key(Scored::rank);
        }
        for scored in held {
            // No document is verified twice: identical ones have their verdicts.
            let known = found.verdicts.iter().find(|(id, _)| *id == scored.id);
            let verdict = match known {
                Some((_, verdict)) => *verdict,
                None => self.verdict(index, signature, scored.id, floor)?,
            };
            found.has_unknown |= verdict == CallerVerdict::Unknown;
            if let Some(scored) = scored.verified(verdict.similarity(), self.bounds) {
                if raises_floor {
                    floor = floor.max(scored.similarity);
                }
                near.push(scored);
            }
        }
        found.near = near;
        Ok(())
    }

    /// Reads the documents that were found for a signature.
    pub(crate) fn matches(
        &self,
        signature: &Signature,
        found: FoundDocuments,
        scope: Scope,
    ) -> Result<Matches> {
        let context = self.view.context();
        if !context.is_filed(signature) {
            return Ok(Matches::none(scope));
        }
        let scorer = Scorer::new(signature);
        let mut known = found.known;
        let near = found.near.into_sorted();
        let mut matches = Vec::with_capacity(near.len());
        for scored in near {
            // The row of an identical document was read to see that it lives.
            let document = match known.take_if(|(id, _)| *id == scored.id) {
                Some((_, document)) => document,
                None => self
                    .view
                    .document_of(scored.id, self.with_payloads)?
                    .ok_or_else(|| no_row(DOCUMENTS, scored.id, 4))?,
            };
            let mut matched = scorer.matched(context, &scored, document);
            matched.has_payload = self.with_payloads;
            matched.beyond = found.beyond;
            matches.push(matched);
        }
        let recall = self.bounds.and_then(|bounds| bounds.recall);
        let is_uncertain = found.beyond.is_some() || found.has_unknown;
        Ok(Matches {
            matches,
            scope,
            recall,
            certainty: match self.bounds.filter(|_| !is_uncertain) {
                Some(bounds) => bounds.basis(&context.schema, self.referee.verifies()),
                None => CertaintyBasis::Known(Certainty::Uncertified),
            },
            candidates: found.compared,
            beyond: found.beyond,
        })
    }
}

/// Removes documents that the budget left out of the candidates: they do not count, even if they
/// have been compared. An identical one, after which nothing else was looked for, is kept.
fn forget_left_out(candidates: &[Candidate], all: &mut [FoundDocuments]) {
    for (query_index, found) in (0..).zip(all) {
        if !found.is_identical {
            found.near.retain(|scored| {
                let candidate = Candidate::new(scored.id, query_index);
                candidates.binary_search(&candidate).is_ok()
            });
        }
    }
}

#[cfg(test)]
#[path = "search_best_tests.rs"]
mod best_tests;
#[cfg(test)]
#[path = "search_equal_tests.rs"]
mod equal_tests;
#[cfg(test)]
#[path = "search_many_tests.rs"]
mod many_tests;
#[cfg(test)]
#[path = "nearest_tests.rs"]
mod nearest_tests;
#[cfg(test)]
#[path = "verify_tests.rs"]
mod verify_tests;
