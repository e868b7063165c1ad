//! The parts of a query besides the signature.

use std::cell::RefCell;
use std::collections::BTreeSet;

use resemblance::{Bounds, Family, Filter, Matches, Query};

use super::Random;
use super::oracle::Entry;

/// A query without its signature.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Question {
    pub(crate) by: Option<Family>,
    pub(crate) min_similarity: Option<f64>,
    pub(crate) max_distance: Option<u32>,
    pub(crate) accept_lower_recall: bool,
    pub(crate) scan: bool,
    pub(crate) limit: Option<usize>,
    /// How many documents may be compared.
    pub(crate) budget: Option<u64>,
    /// Reports the similarity of candidates as this asker does: see [`reported`].
    pub(crate) verify: Option<u64>,
    pub(crate) filter: Option<Passing>,
}

/// Conditions that some documents meet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passing {
    newer_than: Option<u64>,
    older_than: Option<u64>,
    prefix: &'static str,
    /// Only ids that are no multiples of this number, and only payloads of even lengths.
    divisor: Option<u64>,
}

impl Passing {
    pub(crate) fn filter(self) -> Filter<'static> {
        let mut filter = Filter::all().key_prefix(self.prefix);
        if let Some(stamp) = self.newer_than {
            filter = filter.newer_than(stamp);
        }
        if let Some(stamp) = self.older_than {
            filter = filter.older_than(stamp);
        }
        if let Some(divisor) = self.divisor {
            filter = filter.when(move |document| {
                document.payload().len().is_multiple_of(2)
                    && !document.id().get().is_multiple_of(divisor)
            });
        }
        filter
    }

    pub(crate) fn passes(self, id: u64, entry: &Entry) -> bool {
        let is_even = entry.payload.len().is_multiple_of(2);
        let key = entry.key.as_deref();
        self.newer_than.is_none_or(|stamp| entry.stamp >= stamp)
            && self.older_than.is_none_or(|stamp| entry.stamp < stamp)
            && self
                .divisor
                .is_none_or(|divisor| is_even && !id.is_multiple_of(divisor))
            && (self.prefix.is_empty()
                || key.is_some_and(|key| key.starts_with(self.prefix.as_bytes())))
    }
}

impl Question {
    pub(crate) fn bounds(&self) -> Bounds {
        let mut bounds = Bounds::new();
        if let Some(by) = self.by {
            bounds = bounds.by(by);
        }
        if let Some(similarity) = self.min_similarity {
            bounds = bounds.min_similarity(similarity);
        }
        if let Some(distance) = self.max_distance {
            bounds = bounds.max_distance(distance);
        }
        if self.accept_lower_recall {
            bounds = bounds.accept_lower_recall();
        }
        bounds
    }

    pub(crate) fn put<'q>(&self, mut query: Query<'q>) -> Query<'q> {
        query = query.bounds(self.bounds());
        if let Some(passing) = self.filter {
            query = query.filter(passing.filter());
        }
        if self.scan {
            query = query.scan();
        }
        if let Some(limit) = self.limit {
            query = query.limit(limit);
        }
        if let Some(budget) = self.budget {
            query = query.probe_budget(budget);
        }
        if let Some(asker) = self.verify {
            let asked = RefCell::new(BTreeSet::new());
            query = query.verify(move |id| {
                assert!(asked.borrow_mut().insert(id), "asked of {id:?} twice");
                Ok(reported(asker, id.get()))
            });
        }
        query
    }

    /// The same about many signatures, each of which asks as its index; such questions do not scan.
    pub(crate) fn put_many<'q>(&self, query: Query<'q, Vec<Matches>>) -> Query<'q, Vec<Matches>> {
        let mut query = query.bounds(self.bounds());
        if let Some(passing) = self.filter {
            query = query.filter(passing.filter());
        }
        if let Some(limit) = self.limit {
            query = query.limit(limit);
        }
        if let Some(budget) = self.budget {
            query = query.probe_budget(budget);
        }
        if self.verify.is_some() {
            let asked = RefCell::new(BTreeSet::new());
            query = query.verify(move |asker, id| {
                assert!(
                    asked.borrow_mut().insert((asker, id)),
                    "asked of {id:?} twice"
                );
                Ok(reported(asker as u64, id.get()))
            });
        }
        query
    }
}

/// Returns the similarity that the caller of a verified query reports for a document. It differs
/// from the estimate, and for some documents it is `None`. It is never 1: among documents that are
/// reported as equal, an insert chooses one with an equal signature, whichever id it has.
pub(crate) fn reported(asker: u64, id: u64) -> Option<f64> {
    let number = Random(asker.wrapping_mul(0x1_0000_0001) ^ id).next();
    let similarity = (number >> 8) % 16;
    (!number.is_multiple_of(4)).then_some(similarity as f64 / 16.0)
}

/// A question that fits the schema or does not.
pub(crate) fn any_question(random: &mut Random) -> Question {
    use Family::{Any, Both, MinHash, SimHash};
    let bys = [None, None, None, Some(MinHash), Some(SimHash), Some(Any)];
    let similarities = [0.0, 0.25, 0.5, 0.8, 0.9375, 1.0, 1.0, 1.01, f64::NAN];
    let distances = [0, 1, 2, 3, 3, 8, 20, 64];
    let mut question = Question {
        by: random.pick(&bys),
        accept_lower_recall: random.below(2) == 0,
        scan: random.below(4) == 0,
        ..Question::default()
    };
    if random.below(6) == 0 {
        question.by = Some(Both);
    }
    if random.below(3) == 0 {
        question.min_similarity = Some(random.pick(&similarities));
    }
    if random.below(3) == 0 {
        question.max_distance = Some(random.pick(&distances));
    }
    if random.below(5) == 0 {
        question.verify = Some(random.below(3));
    }
    if random.below(3) == 0 {
        question.budget = Some(random.pick(&[0, 1, 2, 3, 5, 8, 20, 1_000]));
    }
    if question.verify.is_some() || question.budget.is_some() {
        // Tables answer these, whatever that costs, and beyond this distance they may not.
        question.max_distance = question.max_distance.map(|distance| distance.min(8));
    }
    if random.below(3) == 0 {
        question.limit = Some(random.below(5) as usize);
    }
    question.filter = any_filter(random);
    question
}

/// A filter, or none.
pub(crate) fn any_filter(random: &mut Random) -> Option<Passing> {
    let stamps = [None, None, Some(0), Some(1), Some(1 << 63), Some(u64::MAX)];
    let prefixes = ["", "", "https://", "https://example.org/1", "k", "\0"];
    let passing = Passing {
        newer_than: random.pick(&stamps),
        older_than: random.pick(&stamps),
        prefix: random.pick(&prefixes),
        divisor: random.pick(&[None, Some(1), Some(2), Some(5)]),
    };
    (random.below(2) == 0).then_some(passing)
}
