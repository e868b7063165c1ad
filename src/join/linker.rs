//! Connects documents by verified pairs, verifying as few as it takes.

use std::sync::Arc;

use crate::error::Result;
use crate::join::compare::Event;
use crate::join::disjoint_sets::DisjointSets;
use crate::join::pair::Pair;
use crate::join::pairs::{EventPairs, Pairs};
use crate::join::verify::{PairSimilarity, ROUND_CANDIDATES, Verifier};
use crate::types::Watch;

/// Finds out which documents are connected: of the candidates those alone are verified that are not
/// known to be connected already.
pub(super) struct Linker {
    verify: Arc<PairSimilarity>,
    sets: DisjointSets,
    round: Vec<Pair>,
}

impl Linker {
    /// Returns the sets of documents that near pairs connect.
    pub(super) fn link(
        pairs: &mut Pairs,
        verify: Arc<PairSimilarity>,
        watch: &mut Watch<'_>,
    ) -> Result<DisjointSets> {
        let mut linker = Self {
            verify,
            sets: DisjointSets::default(),
            round: Vec::new(),
        };
        while let Some(events) = pairs.next_events()? {
            pairs.tell(watch)?;
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
        pairs.tell(watch)?;
        Ok(linker.sets)
    }

    fn take_links(&mut self, pairs: &Pairs, event: Event) -> Result<()> {
        let mut event_pairs = EventPairs::new(event);
        while let Some((a, b)) = event_pairs.next(pairs.batch(), true) {
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
        if a_ids.len() + b_ids.len() == 2 || all.all(|id| self.sets.are_joined(*a_first, *id)) {
            return Ok(());
        }
        let mut event_pairs = EventPairs::new(event);
        while let Some((first, second)) = event_pairs.next(pairs.batch(), false) {
            let is_link = first == *a_first && (a == b || second == *b_first);
            if !is_link {
                self.take(pairs, event, (first, second))?;
            }
        }
        Ok(())
    }

    fn take(&mut self, pairs: &Pairs, event: Event, (a, b): (u64, u64)) -> Result<()> {
        if self.sets.are_joined(a, b) {
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
        let verifier = Verifier::new(&*self.verify, pairs.settings());
        let (verified, ()) = verifier.round(&round, || ());
        for pair in verified {
            let pair = pair?;
            self.sets.join(pair.a.get(), pair.b.get());
        }
        Ok(())
    }
}
