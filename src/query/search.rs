//! The search: plan, candidates, score, collect, with budget and verification. Every question about
//! near documents comes through here.

use crate::error::Result;
use crate::invariant::{OrBug, at, at_mut, invariant};
use crate::query::bounds::ResolvedBounds;
use crate::query::budget::Budget;
use crate::query::candidates::{Candidate, CandidateSource, compare};
use crate::query::collect::{Collector, Found, TopK};
use crate::query::equal_classes::EqualMembers;
use crate::query::in_threads::in_threads;
use crate::query::plan::{Families, IdenticalLane, ProbePlan};
use crate::query::probe::Probe;
use crate::query::scan::Scan;
use crate::query::scored::{Order, Scored};
use crate::query::subject::Subject;
use crate::query::sweep::{Sweep, for_each_piece};
use crate::query::verify::Ask;
use crate::read::ReadView;
use crate::sketch::{EmptyDocuments, Signature};
use crate::types::{DocumentId, Matches, Scope};

/// Number of signatures that are compared with a row while it is at hand.
const SCAN_SIGNATURES: usize = 256;

/// What is searched for, in what, and what is kept.
#[derive(Clone, Copy)]
pub(crate) struct Search<'q> {
    view: &'q dyn ReadView,
    /// `None` keeps candidates, however far.
    bounds: Option<&'q ResolvedBounds>,
    /// The families whose lanes are asked where there are no bounds.
    families: Families,
    order: Order,
    collector: Collector,
    budget: Option<Budget>,
    exclude: Option<u64>,
    verify: Option<&'q Ask<'q>>,
    with_payloads: bool,
}

impl<'q> Search<'q> {
    pub(crate) fn new(
        view: &'q dyn ReadView,
        bounds: Option<&'q ResolvedBounds>,
        collector: Collector,
    ) -> Self {
        Self {
            view,
            bounds,
            families: Families::ALL,
            order: Order::Similarity,
            collector,
            budget: None,
            exclude: None,
            verify: None,
            with_payloads: false,
        }
    }

    pub(super) fn view(&self) -> &'q dyn ReadView {
        self.view
    }

    pub(crate) fn budget(self, budget: Option<Budget>) -> Self {
        Self { budget, ..self }
    }

    /// Asks the lanes of these families alone, where there are no bounds, and keeps the best in an order.
    pub(super) fn ranking(self, families: Families, order: Order) -> Self {
        Self {
            families,
            order,
            ..self
        }
    }

    /// Leaves one document out of a search for a single signature.
    pub(super) fn exclude(self, exclude: Option<u64>) -> Self {
        Self { exclude, ..self }
    }

    /// Lets the caller's similarities decide. An identical signature then stands for an identical document
    /// only if the caller says so, or cannot tell.
    pub(crate) fn verify(self, verify: Option<&'q Ask<'q>>) -> Self {
        Self { verify, ..self }
    }

    /// Gives matches the payloads of their documents.
    pub(super) fn payloads(self, with_payloads: bool) -> Self {
        Self {
            with_payloads,
            ..self
        }
    }

    pub(super) fn verifies(&self) -> bool {
        self.verify.is_some()
    }

    /// Returns what the caller says of a document; `None` if it does not verify.
    pub(super) fn told(&self, index: usize, id: u64, floor: f64) -> Result<Option<Option<f64>>> {
        self.verify.map(|ask| ask(index, id, floor)).transpose()
    }

    /// Returns the similarity below which no document is wanted.
    pub(super) fn floor(&self) -> f64 {
        self.bounds.map_or(0.0, ResolvedBounds::similarity_floor)
    }

    pub(super) fn with_payloads(&self) -> bool {
        self.with_payloads
    }

    pub(crate) fn plan<'s>(
        &self,
        signatures: impl IntoIterator<Item = &'s Signature>,
    ) -> Result<ProbePlan> {
        let families = self.bounds.map_or(self.families, Families::from_bounds);
        let documents = self.view.documents();
        ProbePlan::new(self.view.context(), families, documents, signatures)
    }

    /// Searches for one signature, by probes. `index` is its name to the caller who verifies.
    pub(crate) fn one(&self, index: usize, signature: &Signature) -> Result<Matches> {
        let mut found = self.in_buckets(index, signature)?;
        self.settle(index, &mut found)?;
        self.matches(signature, found)
    }

    /// What is in the buckets of one signature. Where a caller verifies, it is asked by `index` about
    /// identical ones alone.
    pub(super) fn in_buckets(&self, index: usize, signature: &Signature) -> Result<Found> {
        let plan = self.plan([signature])?;
        let lane = plan.identical_lane();
        // A caller who verifies decides about each of equal documents.
        let probe = Probe::new(self.view, &plan, self.budget, self.exclude)
            .folding_equal(self.verify.is_none());
        let found = self.collect(index, &[signature], lane, probe)?;
        let found = found.and_then(|mut found| found.pop());
        found.or_bug("what was found for a signature")
    }

    /// Searches for many signatures, by sweeps. Returns their answers in their order.
    pub(crate) fn many(&self, signatures: &[&Signature]) -> Result<Vec<Matches>> {
        let mut answers = Vec::with_capacity(signatures.len());
        for_each_piece(signatures, |piece| {
            if let [signature] = piece {
                // Probes, unlike sweeps, compare one of equal documents.
                answers.push(self.one(answers.len(), signature)?);
                return Ok(true);
            }
            let mut plan = self.plan(piece.iter().copied())?;
            let Some(all) = self.piece(answers.len(), piece, &mut plan)? else {
                return Ok(false);
            };
            for (signature, mut found) in piece.iter().zip(all) {
                let index = answers.len();
                answers.push(if found.counts.is_over {
                    self.one(index, signature)?
                } else {
                    self.settle(index, &mut found)?;
                    self.matches(signature, found)?
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

    /// As [`many`](Self::many), on up to so many threads. The closure of a caller who verifies stays on this
    /// one.
    pub(super) fn many_in_threads(
        &self,
        signatures: &[&Signature],
        threads: Option<usize>,
    ) -> Result<Vec<Matches>> {
        if self.is_scan_cheaper(signatures.len()) {
            return self.scan_many(signatures);
        }
        let Some(view) = self.view.shared().filter(|_| self.verify.is_none()) else {
            return self.many(signatures);
        };
        let Self {
            bounds,
            families,
            order,
            collector,
            budget,
            exclude,
            with_payloads,
            ..
        } = *self;
        in_threads(signatures, threads, |part| {
            let search = Search {
                view,
                bounds,
                families,
                order,
                collector,
                budget,
                exclude,
                verify: None,
                with_payloads,
            };
            search.many(part)
        })
    }

    /// Sweeps for the signatures of a plan: what was found for each, not verified. Returns `None` if they
    /// have so many candidates that they must be halved. The first one's name to the caller who verifies is
    /// `first_index`.
    pub(crate) fn piece(
        &self,
        first_index: usize,
        signatures: &[&Signature],
        plan: &mut ProbePlan,
    ) -> Result<Option<Vec<Found>>> {
        let lane = plan.identical_lane();
        let sweep = Sweep::new(self.view, plan, self.budget);
        self.collect(first_index, signatures, lane, sweep)
    }

    /// Returns true if so many signatures are better compared with every document: their distance is beyond
    /// the one that whole buckets prove, and the buckets near theirs would cost more. A caller who
    /// verifies is not asked about every document, and a budget is not exceeded.
    fn is_scan_cheaper(&self, signatures: usize) -> bool {
        let context = self.view.context();
        let distance = self.bounds.and_then(|bounds| bounds.max_distance);
        let (Some(distance), Some(design)) = (distance, context.lanes.design()) else {
            return false;
        };
        let is_bounded = self.verify.is_some() || self.budget.is_some();
        if is_bounded || distance <= design.bucket_distance().into() {
            return false;
        }
        let documents = self.view.documents();
        let radii = context.probe_radii(distance, documents);
        radii.is_none_or(|radii| radii.cost_more_than_scan(signatures, documents))
    }

    /// Searches for one signature, by probes or by a scan, whichever costs less.
    pub(super) fn cheapest(&self, signature: &Signature) -> Result<Matches> {
        match self.is_scan_cheaper(1) {
            true => self.scan(signature),
            false => self.one(0, signature),
        }
    }

    /// Compares with every stored document.
    pub(super) fn scan(&self, signature: &Signature) -> Result<Matches> {
        let mut answers = self.scan_many(&[signature])?;
        answers.pop().or_bug("the answer for a signature")
    }

    /// Compares many with every stored document, each of which is read once for some hundred of them.
    fn scan_many(&self, signatures: &[&Signature]) -> Result<Vec<Matches>> {
        let context = self.view.context();
        let mut answers = Vec::with_capacity(signatures.len());
        for piece in signatures.chunks(SCAN_SIGNATURES) {
            let filed = piece.iter().copied().filter(|one| context.is_filed(one));
            let filed: Vec<&Signature> = filed.collect();
            let mut all = match filed.is_empty() {
                true => Vec::new(),
                false => self.everywhere(&filed)?,
            }
            .into_iter();
            for signature in piece {
                if !context.is_filed(signature) {
                    answers.push(Matches::none(Scope::Scan));
                    continue;
                }
                let found = all.next();
                let mut found = found.or_bug("what was found for a signature")?;
                self.settle(answers.len(), &mut found)?;
                let subject = Subject::new(signature);
                let scope = Scope::Scan;
                answers.push(subject.matches(self.view, found, scope, self.with_payloads)?);
            }
        }
        Ok(answers)
    }

    /// What is in the store for each signature, not verified.
    pub(super) fn everywhere(&self, signatures: &[&Signature]) -> Result<Vec<Found>> {
        let scan = Scan {
            signatures,
            bounds: self.bounds.filter(|_| self.verify.is_none()),
            exclude: self.exclude,
        };
        let all = scan.run(self.view, &self.nothing())?;
        let context = self.view.context();
        context.note_candidates(all.iter().map(|found| found.compared).sum());
        // A row is read once for all of them.
        let read = all.first().map_or(0, |found| found.compared);
        context.counters.signatures_read(read);
        Ok(all)
    }

    fn collect(
        &self,
        first_index: usize,
        signatures: &[&Signature],
        lane: Option<IdenticalLane>,
        mut source: impl CandidateSource,
    ) -> Result<Option<Vec<Found>>> {
        let mut all = vec![self.nothing(); signatures.len()];
        let mut compared = Vec::new();
        if let Some(lane) = lane.filter(|_| self.collector == Collector::BestOne) {
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

    /// Scores candidates, and keeps those within the bounds, or all if they are verified later.
    pub(super) fn score(
        &self,
        signatures: &[&Signature],
        candidates: &[Candidate],
        all: &mut [Found],
    ) -> Result<()> {
        let context = self.view.context();
        // In memory a posting may be of a document that was deleted: its row tells.
        let is_told = |candidate: &Candidate| {
            candidate.told_distance.is_some() && candidate.id < self.view.sealed_below()
        };
        let told = candidates.partition_point(is_told);
        let (told, unread) = candidates.split_at(told);
        self.score_told(told, all)?;
        compare(self.view, unread, &mut |candidate, row| {
            let query_index = candidate.query_index as usize;
            let subject = Subject::new(at(signatures, query_index)?);
            let found = at_mut(all, query_index)?;
            found.compared += 1;
            let score = subject.score(context, candidate.id, row, self.bounds)?;
            if let Some(scored) = score.filter(|scored| self.accepts(scored)) {
                found.near.push(scored);
            }
            Ok(())
        })
    }

    /// Scores flushed documents whose distances their codes tell.
    fn score_told(&self, candidates: &[Candidate], all: &mut [Found]) -> Result<()> {
        let mut compared = 0;
        for candidate in candidates {
            let id = candidate.id;
            if self.view.is_dead(id) {
                continue;
            }
            compared += 1;
            let found = at_mut(all, candidate.query_index as usize)?;
            found.compared += 1;
            let distance = candidate.told_distance.or_bug("a distance")?;
            let scored = Scored::of_distance(id, distance.into());
            if self.accepts(&scored) {
                found.near.push(scored);
            }
        }
        self.view.context().note_candidates(compared);
        Ok(())
    }

    /// Scores the classes of equal documents among the candidates, but for those in `compared`: one of
    /// each, which tells the score of all.
    fn score_equal(
        &self,
        signature: &Signature,
        equal: &EqualMembers,
        compared: &[Candidate],
        found: &mut Found,
    ) -> Result<()> {
        let (context, limit) = (self.view.context(), self.collector.limit());
        for class in equal.classes() {
            let is_left = |id: &u64| {
                let candidate = Candidate::new(*id, 0);
                Some(*id) != self.exclude
                    && !self.view.is_dead(*id)
                    && compared.binary_search(&candidate).is_err()
            };
            let mut members = class.filter(is_left);
            // Of equal scores the first by id are the best.
            let first: Vec<u64> = members.by_ref().take(limit.max(1)).collect();
            let count = first.len() + members.count();
            let Some(one) = first.get(..1) else {
                continue;
            };
            let mut score = None;
            self.view.live_documents(one, &mut |id, row| {
                score = Subject::new(signature).score(context, id, &row, self.bounds)?;
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

    fn accepts(&self, scored: &Scored) -> bool {
        self.verify.is_some() || self.bounds.is_none_or(|bounds| scored.is_within(bounds))
    }

    pub(super) fn nothing(&self) -> Found {
        // Before it is known which are verified, or within the budget, none can be left out.
        let keeps_all = self.verify.is_some() || self.budget.is_some();
        let limit = match keeps_all {
            true => usize::MAX,
            false => self.collector.limit(),
        };
        Found::new(limit, self.order)
    }

    /// Puts the caller's similarities, if it verifies, in the place of estimates, and keeps the best of
    /// what is within the bounds.
    pub(crate) fn settle(&self, index: usize, found: &mut Found) -> Result<()> {
        if self.verify.is_none() && self.budget.is_none() {
            return Ok(());
        }
        let mut near = TopK::new(self.collector.limit()).in_order(self.order);
        let mut held = found.near.take();
        let mut floor = self.floor();
        // Where the best alone is kept, what is less similar need not be told exactly. The estimates say
        // which is likely to be the best.
        let raises_floor = self.collector == Collector::BestOne && self.verify.is_some();
        if raises_floor {
            held.sort_unstable_by_key(Scored::rank);
        }
        for scored in held {
            let told_before = found.told.iter().find(|(id, _)| *id == scored.id);
            let exact_similarity = match told_before {
                Some((_, told)) => *told,
                None => self.told(index, scored.id, floor)?.flatten(),
            };
            if let Some(scored) = scored.verified(exact_similarity, self.bounds) {
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
    pub(crate) fn matches(&self, signature: &Signature, found: Found) -> Result<Matches> {
        if !self.view.context().is_filed(signature) {
            return Ok(Matches::none(Scope::Candidates));
        }
        let beyond = found.beyond;
        let subject = Subject::new(signature);
        let mut matches =
            subject.matches(self.view, found, Scope::Candidates, self.with_payloads)?;
        matches.recall = self.bounds.and_then(|bounds| bounds.recall);
        matches.set_beyond(beyond);
        Ok(matches)
    }

    /// As [`candidates`](Self::candidates), on as many threads as the machine runs at once.
    pub(super) fn candidates_in_threads(
        &self,
        signatures: &[&Signature],
    ) -> Result<Vec<Vec<DocumentId>>> {
        let Some(view) = self.view.shared() else {
            return self.candidates(signatures);
        };
        let collector = self.collector;
        in_threads(signatures, None, |part| {
            Search::new(view, None, collector).candidates(part)
        })
    }

    /// Returns the live documents that share a bucket with each signature, not compared, ascending by id.
    pub(super) fn candidates(&self, signatures: &[&Signature]) -> Result<Vec<Vec<DocumentId>>> {
        if let [signature] = signatures {
            let plan = self.plan([*signature])?;
            let all = Probe::new(self.view, &plan, None, None).all()?;
            let all = all.or_bug("the candidates of a signature")?;
            return self.live(signatures, &all.list);
        }
        let mut answers = Vec::with_capacity(signatures.len());
        for_each_piece(signatures, |piece| {
            let mut plan = self.plan(piece.iter().copied())?;
            let Some(all) = Sweep::new(self.view, &mut plan, None).all()? else {
                return Ok(false);
            };
            answers.append(&mut self.live(piece, &all.list)?);
            Ok(true)
        })?;
        Ok(answers)
    }

    /// Returns the documents of a list that live, for each signature. No row is read of one that has been
    /// flushed: its posting says that it was indexed, and the tombstones tell whether it lives.
    fn live(&self, signatures: &[&Signature], list: &[Candidate]) -> Result<Vec<Vec<DocumentId>>> {
        let context = self.view.context();
        let mut live = vec![Vec::new(); signatures.len()];
        let mut add = |candidate: &Candidate, is_empty: bool| {
            let query_index = candidate.query_index as usize;
            if is_empty == at(signatures, query_index)?.is_empty() {
                at_mut(&mut live, query_index)?.push(DocumentId::new(candidate.id));
            }
            Ok(())
        };
        // Where documents without features are indexed, too, only a row tells which has none.
        let sealed_below = match context.schema.empty_documents() {
            EmptyDocuments::Distinct => self.view.sealed_below(),
            EmptyDocuments::Alike => 0,
        };
        let flushed = list.partition_point(|candidate| candidate.id < sealed_below);
        let (flushed, others) = list.split_at_checked(flushed).or_bug("a part of a list")?;
        let mut found = 0;
        for candidate in flushed {
            if !self.view.is_dead(candidate.id) {
                add(candidate, false)?;
                found += 1;
            }
        }
        context.note_candidates(found);
        compare(self.view, others, &mut |candidate, row| {
            add(&candidate, row.is_empty())
        })?;
        Ok(live)
    }
}

/// Takes out documents that the budget left out of the candidates: they do not count, even if they have
/// been compared. An identical one, after which nothing else was looked for, stays.
fn forget_left_out(candidates: &[Candidate], all: &mut [Found]) {
    for (query_index, found) in (0..).zip(all) {
        if !found.is_identical {
            found.near.retain(|scored| {
                let id = scored.id;
                let candidate = Candidate::new(id, query_index);
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
