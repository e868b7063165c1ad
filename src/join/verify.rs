//! Verifying candidates by the caller's own similarities, some thousand at a time.

use std::panic::resume_unwind;
use std::sync::Arc;

use crate::error::Result;
use crate::join::compare::Event;
use crate::join::disjoint_sets::DisjointSets;
use crate::join::pairs::{Pair, Pairs, Spread};
use crate::join::settings::Settings;
use crate::query::{Told, checked};
use crate::types::DocumentId;

/// Says how alike two documents are, or that it cannot tell.
pub(crate) type Verify = dyn Fn(DocumentId, DocumentId) -> Told + Send + Sync;

/// Candidates that are verified together: bounds what is in memory.
pub(crate) const ROUND_CANDIDATES: usize = 1 << 14;

/// Fewer are not worth a thread.
const LEAST_A_THREAD: usize = 1 << 5;

/// The candidates that are within the bounds, in their order whatever the number of threads, up to
/// the first that cannot be verified.
pub(crate) fn verify_round(
    candidates: &[Pair],
    verify: &Verify,
    settings: &Settings,
) -> Vec<Result<Pair>> {
    let threads = settings.options.thread_count();
    let threads = threads.min(candidates.len() / LEAST_A_THREAD).max(1);
    let share = candidates.len().div_ceil(threads).max(1);
    let mut shares = candidates.chunks(share);
    let own = shares.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let others: Vec<_> = shares
            .map(|share| scope.spawn(move || verify_share(share, verify, settings)))
            .collect();
        let mut verified = verify_share(own, verify, settings);
        for other in others {
            // A panic is the caller's own, and goes on where it was called from.
            verified.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        verified
    })
}

fn verify_share(candidates: &[Pair], verify: &Verify, settings: &Settings) -> Vec<Result<Pair>> {
    let mut verified = Vec::new();
    for candidate in candidates {
        match checked(verify(candidate.a, candidate.b)) {
            Ok(told) => {
                let pair = candidate.settled(told);
                let similarity = pair.similarity.unwrap_or_default();
                let distance = pair.distance.unwrap_or_default();
                let bounds = &settings.bounds;
                if bounds.accepts_similarity(similarity, pair.is_exact, distance) {
                    verified.push(Ok(pair));
                }
            }
            Err(error) => {
                verified.push(Err(error));
                break;
            }
        }
    }
    verified
}

/// Finds out which documents are connected: of the candidates those alone are verified that are not
/// known to be connected already.
pub(crate) struct Linker {
    verify: Arc<Verify>,
    forest: DisjointSets,
    round: Vec<Pair>,
}

impl Linker {
    /// The sets of connected documents.
    pub(crate) fn link(pairs: &mut Pairs, verify: Arc<Verify>) -> Result<DisjointSets> {
        let mut linker = Self {
            verify,
            forest: DisjointSets::default(),
            round: Vec::new(),
        };
        while let Some(events) = pairs.next_events()? {
            // Of equal signatures each with the first, and the first ones of two groups: this
            // mostly connects them all. Then what is left.
            for event in &events {
                linker.take_links(pairs, *event)?;
            }
            linker.verify_round(pairs)?;
            for event in &events {
                linker.take_others(pairs, *event)?;
            }
            linker.verify_round(pairs)?;
        }
        Ok(linker.forest)
    }

    fn take_links(&mut self, pairs: &Pairs, event: Event) -> Result<()> {
        let mut spread = Spread::new(event);
        while let Some((a, b)) = spread.next(pairs.batch(), true) {
            self.take(pairs, event, (a, b))?;
        }
        Ok(())
    }

    fn take_others(&mut self, pairs: &Pairs, event: Event) -> Result<()> {
        let (a, b) = event.groups();
        let (a_ids, b_ids) = (pairs.batch().members_of(a), pairs.batch().members_of(b));
        let (Some(a_first), Some(b_first)) = (a_ids.first(), b_ids.first()) else {
            return Ok(());
        };
        let mut all = a_ids.iter().chain(b_ids);
        if a_ids.len() + b_ids.len() == 2 || all.all(|id| self.forest.are_joined(*a_first, *id)) {
            return Ok(());
        }
        let mut spread = Spread::new(event);
        while let Some((first, second)) = spread.next(pairs.batch(), false) {
            let is_link = first == *a_first && (a == b || second == *b_first);
            if !is_link {
                self.take(pairs, event, (first, second))?;
            }
        }
        Ok(())
    }

    fn take(&mut self, pairs: &Pairs, event: Event, (a, b): (u64, u64)) -> Result<()> {
        if self.forest.are_joined(a, b) {
            return Ok(());
        }
        self.round.push(pairs.pair(event, (a, b)));
        if self.round.len() >= ROUND_CANDIDATES {
            self.verify_round(pairs)?;
        }
        Ok(())
    }

    fn verify_round(&mut self, pairs: &Pairs) -> Result<()> {
        let round = std::mem::take(&mut self.round);
        for pair in verify_round(&round, &*self.verify, pairs.settings()) {
            let pair = pair?;
            self.forest.join(pair.a.get(), pair.b.get())?;
        }
        Ok(())
    }
}
