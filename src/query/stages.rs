//! The search for the nearest, stage by stage: buckets, then buckets of fewer rows, then all signatures.

use std::cell::Cell;
use std::collections::HashMap;

use crate::error::Result;
use crate::format::Posting;
use crate::index::{CodeRange, ProbeControl};
use crate::invariant::at;
use crate::query::candidates::{Candidate, Gathered};
use crate::query::collect::{FoundDocuments, ScanKeeps, TopK};
use crate::query::plan::{ProbePlan, ProbedLane};
use crate::query::scan::MAX_HELD;
use crate::query::score::{Order, Scored};
use crate::query::search::SearchSpec;
use crate::query::sweep::in_threads;
use crate::query::verify::Referee;
use crate::read::PostingTable;
use crate::types::{Certainty, CertaintyBasis, Matches, Scope};
use resemblance_sketch::lanes::Banding;
use resemblance_sketch::sketch::Signature;

/// If one document in this number must be looked up, looking them up costs less than scanning all.
const SCANNED_PER_LOOKUP: u64 = 16;

/// The number of postings of short buckets that are read in any case.
const MIN_POSTINGS: u64 = 1_024;

/// The part of the documents that may be missing which may be missing because they were not verified.
const UNVERIFIED_SHARE: f64 = 0.01;

/// The minimum number of documents that are verified before the last of the best is examined.
const MIN_VERIFIED: usize = 16;

/// The documents that answer a search.
#[derive(Clone, Copy)]
pub(super) enum NearestGoal {
    /// This number of documents, the nearest ones.
    First(usize),
    /// One within `factor` times the radius.
    Within { radius: f64, factor: f64 },
}

impl NearestGoal {
    pub(super) fn limit(self) -> usize {
        match self {
            Self::First(n) => n,
            Self::Within { .. } => 1,
        }
    }
}

/// The way in which a stage looks for documents.
#[derive(Clone, Copy)]
enum Stage {
    /// Search in buckets without their last rows or blocks; 0 leaves them whole.
    Buckets {
        dropped: u8,
    },
    Scan,
}

impl Stage {
    fn scope(self) -> Scope {
        match self {
            Self::Buckets { dropped: 0 } => Scope::Candidates,
            Self::Buckets { .. } => Scope::ShortBuckets,
            Self::Scan => Scope::Scan,
        }
    }
}

/// The answer for one signature as it is known after some stages.
struct StagedAnswer {
    compared: usize,
    /// The similarities that the caller returned for documents.
    verdicts: HashMap<u64, Option<f64>>,
    found: FoundDocuments,
    stage: Stage,
    recall: f64,
    is_enough: bool,
}

/// A search by stages.
#[derive(Clone, Copy)]
pub(super) struct StagedSearch<'q> {
    /// A search by similarity or by distance, without bounds.
    pub(super) spec: SearchSpec<'q>,
    pub(super) goal: NearestGoal,
    pub(super) min_recall: f64,
    pub(super) scans: bool,
}

impl StagedSearch<'_> {
    /// Answers for each signature: by buckets one by one, then by one scan for all that need it.
    pub(super) fn run(&self, signatures: &[&Signature]) -> Result<Vec<Matches>> {
        let mut all = self.in_all_buckets(signatures)?;
        if self.scans {
            let mut left: Vec<(usize, &mut StagedAnswer)> = all.iter_mut().enumerate().collect();
            left.retain(|(_, answer)| !answer.is_enough);
            for left in left.chunks_mut(self.scanned_together()) {
                self.scan(signatures, left)?;
            }
        }
        let mut answers = Vec::with_capacity(all.len());
        for (signature, mut answer) in signatures.iter().zip(all) {
            answer.found.compared = answer.compared;
            let (stage, has_unknown) = (answer.stage, answer.found.has_unknown);
            let mut matches = self.spec.matches(signature, answer.found, stage.scope())?;
            matches.recall = Some(answer.recall);
            matches.certainty = self.certainty(stage, has_unknown, &matches);
            answers.push(matches);
        }
        Ok(answers)
    }

    /// Runs the stages before the scan, for many signatures in threads. The closure of a caller who
    /// verifies runs on this one.
    fn in_all_buckets(&self, signatures: &[&Signature]) -> Result<Vec<StagedAnswer>> {
        let spec = self.spec;
        let Some((view, by_sets)) = spec.view.shared().zip(spec.referee.by_sets_alone()) else {
            return signatures
                .iter()
                .enumerate()
                .map(|(index, signature)| self.in_buckets(index, signature))
                .collect();
        };
        let (goal, min_recall, scans) = (self.goal, self.min_recall, self.scans);
        in_threads(signatures, None, |part| {
            let shared = StagedSearch {
                spec: SearchSpec {
                    view,
                    referee: Referee::without_caller(by_sets),
                    ..spec
                },
                goal,
                min_recall,
                scans,
            };
            // A search without verification needs no index.
            let answers = part.iter().map(|signature| shared.in_buckets(0, signature));
            answers.collect()
        })
    }

    /// Runs stage by stage until one is good enough, except for the scan.
    fn in_buckets(&self, index: usize, signature: &Signature) -> Result<StagedAnswer> {
        let mut answer = StagedAnswer {
            compared: 0,
            verdicts: HashMap::new(),
            found: self.spec.nothing(),
            stage: Stage::Buckets { dropped: 0 },
            recall: 0.0,
            is_enough: false,
        };
        if !self.spec.view.context().is_filed(signature) {
            (answer.recall, answer.is_enough) = (1.0, true);
            return Ok(answer);
        }
        // Shorter buckets hold the longer ones: each stage replaces the result of the one before.
        for dropped in 0..=self.max_dropped() {
            let found = match dropped {
                0 => Some(self.spec.find_in_buckets(index, signature)?),
                _ => self.in_short_buckets(signature, dropped)?,
            };
            if let Some(found) = found {
                self.take(
                    &mut answer,
                    index,
                    signature,
                    found,
                    Stage::Buckets { dropped },
                )?;
            }
            if answer.is_enough {
                break;
            }
        }
        Ok(answer)
    }

    fn max_dropped(&self) -> u8 {
        let lanes = &self.spec.view.context().lanes;
        match (self.spec.order, lanes.design()) {
            (Order::Distance, Some(design)) => design.max_dropped(),
            _ => u8::from(lanes.leading_banding().is_some()),
        }
    }

    /// Returns the number of signatures that one scan searches for.
    fn scanned_together(&self) -> usize {
        let limit = self.goal.limit() as u64;
        // A list of the best is trimmed at twice its length; who verifies needs all candidates.
        let held = match self.spec.referee.verifies() {
            false => limit.saturating_mul(2).min(self.spec.view.documents()),
            true => self.spec.view.documents(),
        };
        (MAX_HELD / held.max(1)).max(1) as usize
    }

    /// Compares all documents with some of the signatures.
    fn scan(
        &self,
        signatures: &[&Signature],
        left: &mut [(usize, &mut StagedAnswer)],
    ) -> Result<()> {
        let asked = left
            .iter()
            .map(|(index, _)| at(signatures, *index).copied())
            .collect::<Result<Vec<_>>>()?;
        let found = self.spec.scan_found(&asked, ScanKeeps::Everything, false)?;
        for ((index, answer), found) in left.iter_mut().zip(found) {
            let signature = at(signatures, *index)?;
            self.take(answer, *index, signature, found, Stage::Scan)?;
        }
        Ok(())
    }

    /// Takes the result of a stage as the result so far.
    fn take(
        &self,
        answer: &mut StagedAnswer,
        index: usize,
        signature: &Signature,
        mut found: FoundDocuments,
        stage: Stage,
    ) -> Result<()> {
        let first_left = self.verify_best(&mut found, index, signature, &mut answer.verdicts)?;
        let (recall, is_enough) = self.judge(&mut found, stage, first_left);
        answer.compared += found.compared;
        answer.found = found;
        answer.stage = stage;
        (answer.recall, answer.is_enough) = (recall, is_enough);
        Ok(())
    }

    /// Replaces estimates by the similarities of a caller who verifies, or of the sets of an exact
    /// store, and keeps the best. They are asked in the order of the estimates, until a document as near as the last of the best would hardly
    /// have so small an estimate as those that are left. Returns the first of these.
    fn verify_best(
        &self,
        found: &mut FoundDocuments,
        index: usize,
        signature: &Signature,
        verdicts: &mut HashMap<u64, Option<f64>>,
    ) -> Result<Option<Scored>> {
        if !self.spec.referee.verifies() {
            return Ok(None);
        }
        let mut candidates = found.near.take();
        found.near = TopK::new(self.goal.limit(), Order::Similarity);
        let Some(last) = self.goal.limit().checked_sub(1) else {
            return Ok(None);
        };
        candidates.sort_unstable_by_key(Scored::rank);
        let max_missed = (1.0 - self.min_recall) * UNVERIFIED_SHARE;
        for candidates in candidates.chunks(self.goal.limit().max(MIN_VERIFIED)) {
            let (first, last) = (candidates.first().copied(), found.near.nth(last));
            // The list is full, and the remaining candidates have smaller estimates than the first
            // of these.
            if let Some((first, last)) = first.zip(last)
                && self.unverified_probability(last.similarity, &first) <= max_missed
            {
                return Ok(Some(first));
            }
            for scored in candidates {
                let exact = match verdicts.get(&scored.id) {
                    Some(known) => *known,
                    None => {
                        let verdict = self.spec.verdict(index, signature, scored.id, 0.0)?;
                        let exact = verdict.similarity();
                        verdicts.insert(scored.id, exact);
                        exact
                    }
                };
                found.has_unknown |= exact.is_none();
                if let Some(scored) = scored.verified(exact, None) {
                    found.near.push(scored);
                }
            }
        }
        Ok(None)
    }

    /// A bound on the probability that a document of this similarity has an estimate of at most that of
    /// another one: Chernoff's, for values that are independent.
    fn unverified_probability(&self, similarity: f64, left: &Scored) -> f64 {
        let Some(layout) = self.spec.view.context().shape().values else {
            return 1.0;
        };
        let agreement = layout.agreement_probability(similarity);
        let share = layout.agreement_probability(left.similarity);
        if share >= agreement {
            return 1.0;
        }
        let term = |a: f64, b: f64| if a > 0.0 { a * (a / b).ln() } else { 0.0 };
        let divergence = term(share, agreement) + term(1.0 - share, 1.0 - agreement);
        (-f64::from(layout.count()) * divergence).exp()
    }

    /// Returns the probability that a document as near as the answer must have would have been found by a stage
    /// and verified, and whether the answer will do.
    fn judge(
        &self,
        found: &mut FoundDocuments,
        stage: Stage,
        first_left: Option<Scored>,
    ) -> (f64, bool) {
        let recall_at = |scored: &Scored| {
            let unverified = first_left.map_or(0.0, |left| {
                self.unverified_probability(scored.similarity, &left)
            });
            self.probability(stage, scored) * (1.0 - unverified)
        };
        match self.goal {
            NearestGoal::First(n) => {
                let last = n.checked_sub(1).map(|last| found.near.nth(last));
                let recall = match (stage, last) {
                    // None are requested, or all were examined.
                    (_, None) | (Stage::Scan, Some(None)) => 1.0,
                    (_, Some(Some(last))) => recall_at(&last),
                    (_, Some(None)) => 0.0,
                };
                let is_complete = !matches!(last, Some(None));
                (recall, is_complete && recall >= self.min_recall)
            }
            NearestGoal::Within { radius, factor } => {
                let distance = |scored: &Scored| match self.spec.order {
                    Order::Distance => f64::from(scored.distance),
                    Order::Similarity => 1.0 - scored.similarity,
                };
                // A similarity and the bound may differ only by rounding.
                found
                    .near
                    .retain(|scored| distance(scored) <= radius * factor + 1e-12);
                let recall = recall_at(&Scored {
                    id: 0,
                    similarity: 1.0 - radius.min(1.0),
                    is_exact: true,
                    distance: radius as u32,
                });
                let is_found = found.near.nth(0).is_some();
                (recall, is_found || recall >= self.min_recall)
            }
        }
    }

    /// Returns the documents that share a short bucket; `None` if these have so many postings that
    /// a scan costs less.
    fn in_short_buckets(
        &self,
        signature: &Signature,
        dropped: u8,
    ) -> Result<Option<FoundDocuments>> {
        let plan = self.spec.plan([signature])?;
        let Some(mut candidates) = self.candidates_in_short_buckets(&plan, dropped)? else {
            return Ok(None);
        };
        candidates.retain(|candidate| Some(candidate.id) != self.spec.exclude);
        let mut found = self.spec.nothing();
        let all = std::slice::from_mut(&mut found);
        self.spec.score(&[signature], &candidates, all)?;
        Ok(Some(found))
    }

    /// Like [`in_short_buckets`](Self::in_short_buckets), ascending.
    fn candidates_in_short_buckets(
        &self,
        plan: &ProbePlan,
        dropped: u8,
    ) -> Result<Option<Vec<Candidate>>> {
        let view = self.spec.view;
        let max_postings = (self.spec.view.documents() / SCANNED_PER_LOOKUP).max(MIN_POSTINGS);
        let lanes: Vec<(ProbedLane, u64)> = plan.row(0).collect();
        // All lanes of a family are in one table.
        let table = lanes
            .first()
            .map_or(PostingTable::Bands, |(lane, _)| lane.table);
        let ranges: Vec<CodeRange> = lanes
            .iter()
            .map(|(lane, code)| lane.short_range(view.context(), *code, dropped))
            .collect();
        view.context().counters.lanes_probed(ranges.len());
        let (mut found, postings) = (Gathered::new(), Cell::new(0));
        let mut visit = |index, posting: Posting| {
            if view.is_deleted(posting.id) {
                return Ok(ProbeControl::GoOn);
            }
            postings.set(postings.get() + 1);
            if postings.get() > max_postings {
                return Ok(ProbeControl::End);
            }
            let (_, code) = *at(&lanes, index)?;
            found.push(plan.candidate(0, code, posting));
            Ok(ProbeControl::GoOn)
        };
        let is_too_much = || postings.get() > max_postings;
        view.probe_until(table, &ranges, &mut visit, &mut || Ok(is_too_much()))?;
        Ok((!is_too_much()).then(|| found.into_ascending()))
    }

    /// Returns the probability that a stage examines a document as near as this one.
    fn probability(&self, stage: Stage, scored: &Scored) -> f64 {
        let Stage::Buckets { dropped } = stage else {
            return 1.0;
        };
        let context = self.spec.view.context();
        let lanes = &context.lanes;
        if self.spec.order == Order::Distance {
            let design = lanes.design();
            return design.map_or(0.0, |design| {
                design.shortened_probability_at(scored.distance, dropped)
            });
        }
        let similarity = scored.similarity;
        let agreement = context.shape().values.map_or(similarity, |layout| {
            layout.agreement_probability(similarity)
        });
        let banding = self.banding(dropped);
        banding.map_or(0.0, |banding| banding.probability(agreement))
    }

    /// Returns the bands without their last rows. A short bucket represents fewer rows, which more
    /// documents share.
    fn banding(&self, dropped: u8) -> Option<Banding> {
        let context = self.spec.view.context();
        match dropped {
            0 => context.schema.minhash().map(|minhash| minhash.banding()),
            _ => context.lanes.leading_banding(),
        }
    }

    /// Returns how sure it is that no document nearer than the last one, or within the radius, was
    /// missed by the stages up to this one.
    fn certainty(&self, stage: Stage, has_unknown: bool, matches: &Matches) -> CertaintyBasis {
        let missed_at_most = 1.0 - matches.recall.unwrap_or(0.0);
        let known = match (self.spec.order, self.spec.referee.verifies()) {
            (Order::Similarity, true) if has_unknown => Certainty::Uncertified,
            (Order::Similarity, true) => Certainty::Truth { missed_at_most },
            (Order::Similarity, false) => Certainty::Estimate { missed_at_most },
            (Order::Distance, _) => Certainty::Signature { missed_at_most },
        };
        // The recall is that of a true similarity. Where estimates decide, that of the last one counts.
        let bound = match self.goal {
            NearestGoal::First(n) => n
                .checked_sub(1)
                .and_then(|last| matches.get(last)?.similarity),
            NearestGoal::Within { radius, .. } => Some(1.0 - radius.min(1.0)),
        };
        let layout = self.spec.view.context().shape().values;
        match (known, stage, bound.zip(layout)) {
            (
                Certainty::Estimate { .. },
                Stage::Buckets { dropped },
                Some((similarity, layout)),
            ) if missed_at_most > 0.0 => CertaintyBasis::Estimates {
                banding: self.banding(dropped),
                layout,
                similarity,
                accepted_from: None,
            },
            _ => CertaintyBasis::Known(known),
        }
    }
}
