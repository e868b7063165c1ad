//! The best of the candidates that a search has scored.

use crate::query::bounds::ResolvedBounds;
use crate::query::candidates::ProbeCounts;
use crate::query::score::{Order, Rank, Scored};
use crate::query::verify::CallerVerdict;
use crate::types::{BudgetExceeded, Document};

/// The rule that selects, among the documents within the bounds, those that a search keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collector {
    /// The best documents, at most this number.
    Top(usize),
    /// The best document. An identical one, which no other can outrank, is searched for first.
    BestOne,
}

impl Collector {
    /// Keeps the best, or all without a limit.
    pub(crate) fn up_to(limit: Option<usize>) -> Self {
        // No list is longer.
        Self::Top(limit.unwrap_or(usize::MAX))
    }

    /// Returns true if an identical document ends the search.
    pub(super) fn seeks_identical(self) -> bool {
        self == Self::BestOne
    }

    pub(super) fn limit(self) -> usize {
        match self {
            Self::Top(limit) => limit,
            Self::BestOne => 1,
        }
    }
}

/// The documents within the bounds that a scan keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanKeeps {
    /// Every document within the bounds.
    Everything,
    /// Only the documents that probes would meet. A scan that only saves time must not change the
    /// answer: bands miss some documents of a similarity that a scan finds, and whether a scan is
    /// cheaper depends on the number of queries.
    WhatProbesMeet,
}

impl ScanKeeps {
    /// A scan that the caller wants keeps everything.
    pub(super) fn of(wanted: Option<bool>) -> Self {
        match wanted {
            Some(true) => Self::Everything,
            _ => Self::WhatProbesMeet,
        }
    }
}

/// The best of the documents pushed, up to a limit.
#[derive(Clone, Debug)]
pub(super) struct TopK {
    limit: usize,
    order: Order,
    held: Vec<Scored>,
    /// A document that ranks below this is not among the best.
    floor: Rank,
}

impl TopK {
    pub(super) fn new(limit: usize, order: Order) -> Self {
        Self {
            limit,
            order,
            held: Vec::new(),
            floor: Rank::LAST,
        }
    }

    pub(super) fn push(&mut self, scored: Scored) {
        if scored.rank_in(self.order) > self.floor {
            return;
        }
        self.held.push(scored);
        // The list is trimmed only when twice the limit is held: a trim costs as much as the pushes
        // since the last.
        if self.held.len() / 2 > self.limit {
            self.trim();
        }
    }

    fn trim(&mut self) {
        if self.held.len() > self.limit {
            let order = self.order;
            let rank = |scored: &Scored| scored.rank_in(order);
            self.held.select_nth_unstable_by_key(self.limit, rank);
            self.held.truncate(self.limit);
            if let Some(floor) = self.held.iter().map(rank).max() {
                self.floor = floor;
            }
        }
    }

    /// Keeps those alone for which `is_kept` holds.
    pub(super) fn retain(&mut self, is_kept: impl FnMut(&Scored) -> bool) {
        self.held.retain(is_kept);
    }

    /// Takes the held documents out, in the order of the pushes as long as nothing was trimmed.
    pub(super) fn take(&mut self) -> Vec<Scored> {
        std::mem::take(&mut self.held)
    }

    /// Returns the best one.
    pub(super) fn best(&self) -> Option<Scored> {
        let held = self.held.iter().copied();
        held.min_by_key(|scored| scored.rank_in(self.order))
    }

    /// Returns the document at a place, from 0 for the best, if that many are held.
    pub(super) fn nth(&mut self, place: usize) -> Option<Scored> {
        self.sort();
        self.held.get(place).copied()
    }

    fn sort(&mut self) {
        self.trim();
        let order = self.order;
        self.held
            .sort_unstable_by_key(|scored| scored.rank_in(order));
    }

    pub(super) fn of_id(&self, id: u64) -> Option<Scored> {
        self.held.iter().find(|scored| scored.id == id).copied()
    }

    /// Returns the best, the best first.
    pub(super) fn into_sorted(mut self) -> Vec<Scored> {
        self.sort();
        self.held
    }
}

/// The documents that were found for one signature.
#[derive(Clone, Debug)]
pub(crate) struct FoundDocuments {
    pub(super) near: TopK,
    /// Number of candidates that were compared.
    pub(super) compared: usize,
    /// True once an identical document is held: no other is looked for.
    pub(crate) is_identical: bool,
    /// Verdicts of the caller on documents with the signature that is searched for.
    pub(super) verdicts: Vec<(u64, CallerVerdict)>,
    /// An identical document, where it was read to see that it lives.
    pub(super) known: Option<(u64, Document<'static>)>,
    /// Counts to compare with the budget.
    pub(crate) counts: ProbeCounts,
    pub(super) beyond: Option<BudgetExceeded>,
    /// True if the caller who verifies did not know some similarity.
    pub(super) has_unknown: bool,
}

impl FoundDocuments {
    pub(super) fn new(limit: usize, order: Order) -> Self {
        Self {
            near: TopK::new(limit, order),
            compared: 0,
            is_identical: false,
            verdicts: Vec::new(),
            known: None,
            counts: ProbeCounts::default(),
            beyond: None,
            has_unknown: false,
        }
    }

    /// Returns a similarity below which a document is not needed if only the best is kept.
    pub(crate) fn floor(&self, bounds: &ResolvedBounds) -> f64 {
        let floor = bounds.similarity_floor();
        let best = self.near.best();
        best.map_or(floor, |best| floor.max(best.similarity))
    }

    /// Adds the documents that were found among others.
    pub(super) fn join(&mut self, other: Self) {
        self.compared += other.compared;
        for scored in other.near.held {
            self.near.push(scored);
        }
    }

    /// Adds a document within the bounds that was found elsewhere.
    pub(crate) fn push(&mut self, scored: Scored) {
        self.near.push(scored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_matches_are_kept_in_any_order() {
        let scored = |number: u64| Scored::exact(number, (number * 7 % 100) as f64 / 100.0);
        let mut sorted: Vec<u64> = (0..100).collect();
        sorted.sort_by_key(|number| scored(*number).rank());
        for limit in [0, 1, 2, 10, 99, 100, usize::MAX] {
            for turn in [0, 13, 77] {
                let mut top = TopK::new(limit, Order::Similarity);
                for number in 0..100 {
                    top.push(scored((number + turn) % 100));
                }
                assert!(top.held.len() <= limit.saturating_mul(2).saturating_add(2));
                let ids = top.into_sorted().into_iter().map(|scored| scored.id);
                assert!(ids.eq(sorted.iter().copied().take(limit)));
            }
        }
    }
}
