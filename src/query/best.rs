//! The best match of a document that may be new: an identical one is looked for first.

use crate::error::Result;
use crate::invariant::{OrBug, at, invariant};
use crate::query::bounds::ResolvedBounds;
use crate::query::buckets::{Begin, Bucket, LaneProbe, read_first, read_whole};
use crate::query::budget::Budget;
use crate::query::families::{Families, exact_codes_are_identical, identical_share_codes};
use crate::query::found_ids::FoundIds;
use crate::query::scored::Scored;
use crate::query::subject::Subject;
use crate::read::{PostingTable, ReadView};
use crate::types::{BeyondBudget, Match, Scope};

/// How many documents are compared at most to find an identical one: 1, then 2, 4 and 8.
pub(crate) const MAX_IDENTICAL_TRIES: usize = 15;

/// A bucket with more postings than this is left before its end when an identical document is looked
/// for.
const FIRST_POSTINGS: usize = if cfg!(test) { 40 } else { 1_024 };

/// The best match, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Best {
    pub(crate) found: Option<Match>,
    pub(crate) beyond: Option<BeyondBudget>,
}

/// The outcome of the search for an identical document.
#[derive(Debug, Default)]
struct First {
    identical: Option<Match>,
    /// The whole bucket, or with a budget what may be read of it.
    bucket: Option<Bucket>,
    /// Documents that were compared, ascending by id.
    compared: Vec<(u64, Option<Scored>)>,
}

impl Subject<'_> {
    /// What [`query`](Self::query) with a limit of 1 gives, for less where an identical document is
    /// there.
    ///
    /// Candidates are ranked by similarity, distance and id. One with similarity 1 and distance 0 is
    /// in the signature's first bucket: equal fingerprints have equal codes in every table, and equal
    /// values in every band ([`identical_share_codes`]). So the first such one by id in that bucket is the
    /// best match of all. It is within any bounds.
    pub(crate) fn best(
        &self,
        source: &dyn ReadView,
        bounds: &ResolvedBounds,
        budget: Option<Budget>,
    ) -> Result<Best> {
        let context = source.context();
        if !context.is_filed(self.signature) {
            return Ok(Best::default());
        }
        let mut asked = LaneProbe::all(context, self.signature, Families::from_bounds(bounds))?;
        let is_first = |asked: &LaneProbe| asked.table == PostingTable::Permuted;
        let place = asked.iter().position(is_first).unwrap_or(0);
        let mut first = First::default();
        if asked
            .get(place)
            .is_some_and(|a| identical_share_codes(context, a.table))
        {
            // Stays in its table's stretch, of which it is the first.
            asked.rotate_left(place);
            first = self.look_for_identical(source, at(&asked, 0)?, bounds, budget)?;
        }
        if first.identical.is_some() {
            return Ok(Best {
                found: first.identical,
                beyond: None,
            });
        }
        self.best_of_all(source, &asked, bounds, budget, first)
    }

    /// Looks for an identical document among the first ones with the signature's exact code in a bucket.
    fn look_for_identical(
        &self,
        source: &dyn ReadView,
        lane: &LaneProbe,
        bounds: &ResolvedBounds,
        budget: Option<Budget>,
    ) -> Result<First> {
        let (most, begin) = match budget {
            Some(budget) => (budget.postings(), Begin::ExactCode),
            None => (FIRST_POSTINGS, Begin::Start),
        };
        let bucket = read_one(source, lane, most, begin)?;
        let is_in_part = budget.is_none() && bucket.is_cut;
        let own = if is_in_part && !lane.has_one_code() {
            let part = lane.of_exact_code();
            own_ids(lane, &read_one(source, &part, MAX_IDENTICAL_TRIES, begin)?)
        } else {
            own_ids(lane, &bucket)
        };
        let mut first = First {
            bucket: (!is_in_part).then_some(bucket),
            ..First::default()
        };
        if exact_codes_are_identical(source.context(), lane.table) {
            first.identical = self.first_live(source, &own)?;
        } else {
            self.compare_first(source, &own, bounds, &mut first)?;
        }
        Ok(first)
    }

    /// Returns the first of these identical documents that was not removed.
    fn first_live(&self, source: &dyn ReadView, ids: &[u64]) -> Result<Option<Match>> {
        for &id in ids {
            let Some(key) = source.key_of(id)? else {
                source.expect_gone(id)?;
                continue;
            };
            let scored = self.scored(source.context(), id, 0, self.signature.simhash());
            return Ok(Some(self.matched(source.context(), &scored, key)));
        }
        Ok(None)
    }

    /// Compares these documents, which ascend by id, until one is identical.
    fn compare_first(
        &self,
        source: &dyn ReadView,
        mut ids: &[u64],
        bounds: &ResolvedBounds,
        first: &mut First,
    ) -> Result<()> {
        let context = source.context();
        let mut together = 1;
        while !ids.is_empty() {
            let (now, later) = ids.split_at(together.min(ids.len()));
            let mut identical = None;
            source.live_signatures(now, &mut |id, row| {
                let scored = self.score(context, id, &row, Some(bounds))?;
                let whole = scored.filter(|scored| scored.is_identical(context));
                identical = identical.or(whole);
                first.compared.push((id, scored));
                Ok(())
            })?;
            context.note_candidates(now.len());
            if let Some(identical) = identical {
                let matches = self.finish(source, vec![identical], 1, Scope::Candidates, 1)?;
                first.identical = matches.into_iter().next();
                return Ok(());
            }
            // Mostly the first document is identical; if not, reading more at once costs less.
            (ids, together) = (later, together * 2);
        }
        Ok(())
    }

    /// Returns the best of the candidates in all these buckets. What was read of the first one, and what was
    /// compared, is not read or compared again.
    fn best_of_all(
        &self,
        source: &dyn ReadView,
        asked: &[LaneProbe],
        bounds: &ResolvedBounds,
        budget: Option<Budget>,
        first: First,
    ) -> Result<Best> {
        let read = usize::from(first.bucket.is_some());
        let unread = asked.get(read..).or_bug("buckets that were not read")?;
        let mut buckets: Vec<Bucket> = first.bucket.into_iter().collect();
        let mut beyond = None;
        let ids = if let Some(budget) = budget {
            buckets.extend(read_first(
                source,
                unread,
                budget.postings(),
                Begin::ExactCode,
            )?);
            let chosen = budget.choose(source, asked, &buckets, self.exclude)?;
            beyond = chosen.beyond;
            chosen.ids
        } else {
            let mut found = FoundIds::new();
            for (lane, bucket) in asked.iter().zip(buckets) {
                let accepted = bucket.postings.iter().filter(|p| lane.accepts(**p));
                accepted.for_each(|posting| found.push(posting.id));
            }
            read_whole(source, unread, &mut found)?;
            found.into_ascending()
        };
        let place = |id: &u64| first.compared.binary_search_by_key(id, |(id, _)| *id);
        let known = ids
            .iter()
            .filter_map(|id| first.compared.get(place(id).ok()?)?.1);
        let known: Vec<Scored> = known.filter(|scored| scored.is_within(bounds)).collect();
        let unknown = ids.iter().copied().filter(|id| place(id).is_err());
        let accept = |scored: &Scored| scored.is_within(bounds);
        let (mut scored, _) = self.compare_all(source, unknown.collect(), Some(bounds), accept)?;
        scored.extend(known);
        let best = scored.into_iter().min_by_key(Scored::rank);
        let best: Vec<Scored> = best.into_iter().collect();
        let mut matches = self.finish(source, best, 1, Scope::Candidates, ids.len())?;
        matches.set_beyond(beyond);
        Ok(Best {
            found: matches.into_iter().next(),
            beyond,
        })
    }
}

fn read_one(source: &dyn ReadView, lane: &LaneProbe, most: usize, begin: Begin) -> Result<Bucket> {
    let mut buckets = read_first(source, std::slice::from_ref(lane), most, begin)?;
    invariant!(buckets.len() == 1, "read {} buckets for one", buckets.len());
    buckets.pop().or_bug("a bucket")
}

/// Returns the first documents with the signature's exact code, ascending.
fn own_ids(lane: &LaneProbe, bucket: &Bucket) -> Vec<u64> {
    let own = bucket.postings.iter().filter(|p| lane.is_own(**p));
    own.map(|posting| posting.id)
        .take(MAX_IDENTICAL_TRIES)
        .collect()
}

#[cfg(test)]
#[path = "best_tests.rs"]
mod tests;
