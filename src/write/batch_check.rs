//! The duplicate check of a batch: what the store has near each document of a piece.

use crate::error::Result;
use crate::invariant::{OrBug, at, invariant};
use crate::query::{
    Ask, Budget, Collector, Earlier, ExactSimilarity, Found, ProbePlan, ResolvedBounds, Search,
    Subject, find_keys,
};
use crate::read::ReadView;
use crate::sketch::Signature;
use crate::types::{Document, DocumentId, Matches, Novelty};
use crate::write::batch_dedup::{BatchDedup, BatchDocument};

/// Asks the caller how similar a document of the batch, given by its index, is to an earlier one. A
/// similarity below the floor may come out as any number below it.
pub(crate) type AskCaller<'v> = dyn Fn(usize, Earlier, f64) -> ExactSimilarity + 'v;

/// What a batch is inserted into.
pub(crate) trait BatchTarget {
    fn view(&self) -> &dyn ReadView;

    /// Returns the id of the next document.
    fn next_id(&self) -> u64;

    /// Stores a valid document under the next id.
    fn store_document(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId>;
}

/// A batch on its way into the store.
pub(super) struct BatchInsert<'v> {
    bounds: ResolvedBounds,
    budget: Option<Budget>,
    /// The first id that the batch can get: documents below it were stored before.
    first_id: u64,
    ask: Option<&'v AskCaller<'v>>,
    /// Answers for the first documents of the batch, in its order.
    pub(super) novelties: Vec<Novelty>,
    /// Batch indexes of the inserted documents. Their ids are consecutive from `first_id` on.
    inserted: Vec<usize>,
}

impl<'v> BatchInsert<'v> {
    pub(super) fn new(
        bounds: ResolvedBounds,
        budget: Option<Budget>,
        first_id: u64,
        ask: Option<&'v AskCaller<'v>>,
    ) -> Self {
        Self {
            bounds,
            budget,
            first_id,
            ask,
            novelties: Vec::new(),
            inserted: Vec::new(),
        }
    }

    /// Returns true if every document must be looked up by itself: with a budget and a caller who
    /// verifies, a document beyond the budget would make the caller verify some others twice.
    fn looks_up_singly(&self) -> bool {
        self.ask.is_some() && self.budget.is_some()
    }

    /// Returns the search for the nearest stored document. `ask` is how the caller, if it verifies, is
    /// asked about one.
    fn search<'q>(&'q self, view: &'q dyn ReadView, ask: &'q Ask<'q>) -> Search<'q> {
        Search::new(view, Some(&self.bounds), Collector::BestOne)
            .budget(self.budget)
            .verify(self.ask.map(|_| ask))
    }

    /// Asks the caller how similar the document at `index` of the batch is to an earlier one.
    fn ask(&self, index: usize, id: u64, floor: f64) -> ExactSimilarity {
        match self.ask {
            Some(ask) => ask(index, self.earlier(id)?, floor),
            None => Ok(None),
        }
    }

    /// Returns the name by which the caller knows a document: its index in the batch, or its id if it
    /// was stored before the batch.
    fn earlier(&self, id: u64) -> Result<Earlier> {
        let Some(offset) = id.checked_sub(self.first_id) else {
            return Ok(Earlier::Stored(DocumentId::new(id)));
        };
        let offset = usize::try_from(offset).ok();
        let index = offset.and_then(|offset| self.inserted.get(offset));
        let index = index.or_bug_with(|| format!("document {id} is not of the batch"))?;
        Ok(Earlier::OfBatch(*index))
    }

    /// Notes that the next document of the batch was stored under an id.
    fn note_inserted(&mut self, id: u64) -> Result<()> {
        let expected = self.first_id + self.inserted.len() as u64;
        invariant!(
            id == expected,
            "a batch got document {id}, expected {expected}"
        );
        self.inserted.push(self.novelties.len());
        Ok(())
    }
}

/// Answers of the store for the documents of a piece, found before any of them is inserted.
pub(super) struct BatchCheck<'d> {
    documents: &'d [BatchDocument<'d>],
    plan: ProbePlan,
    /// For each document, the id of the stored one with the same key.
    same_key: Vec<Option<u64>>,
    /// For each document, the nearest stored one; `None` if every document is searched for when its turn
    /// has come.
    found: Option<Vec<Found>>,
}

impl<'d> BatchCheck<'d> {
    /// Looks the documents of a piece up in the store; returns `None` if they have so many candidates
    /// that the piece must be halved.
    pub(super) fn new<T: BatchTarget>(
        target: &T,
        documents: &'d [BatchDocument<'d>],
        insert: &BatchInsert<'_>,
    ) -> Result<Option<Self>> {
        let view = target.view();
        let keys: Vec<Option<&[u8]>> = documents.iter().map(|(d, _)| d.key()).collect();
        let same_key = find_keys(view, &keys)?;
        let signatures: Vec<&Signature> = documents.iter().map(|(_, s)| *s).collect();
        let ask = |index, id, floor| insert.ask(index, id, floor);
        let search = insert.search(view, &ask);
        let mut plan = search.plan(signatures.iter().copied())?;
        // A document whose key is taken is answered by its key alone.
        for (query_index, taken) in same_key.iter().enumerate() {
            if taken.is_some() {
                plan.leave_out(query_index)?;
            }
        }
        let mut found = None;
        if !insert.looks_up_singly() {
            let Some(mut all) = search.piece(insert.novelties.len(), &signatures, &mut plan)?
            else {
                return Ok(None);
            };
            for (index, found) in (insert.novelties.len()..).zip(&mut all) {
                search.settle(index, found)?;
            }
            found = Some(all);
        }
        Ok(Some(Self {
            documents,
            plan,
            same_key,
            found,
        }))
    }

    /// Inserts the documents of the piece that are new, one after the other.
    pub(super) fn insert_new<T: BatchTarget>(
        mut self,
        target: &mut T,
        insert: &mut BatchInsert<'_>,
    ) -> Result<()> {
        let mut found = self.found.take().map(Vec::into_iter);
        let mut inserted = BatchDedup::new(self.documents, &self.plan);
        for (query_index, (document, signature)) in self.documents.iter().enumerate() {
            let found = match &mut found {
                Some(found) => Some(found.next().or_bug("what was found for a document")?),
                None => None,
            };
            let stored = *at(&self.same_key, query_index)?;
            let in_batch = || document.key().and_then(|key| inserted.id_of_key(key));
            if let Some(id) = stored.or_else(in_batch) {
                let same = Subject::new(signature).compare(target.view(), id)?;
                insert.novelties.push(Novelty::SameKey(same));
                continue;
            }
            let best = self.best(target.view(), insert, (query_index, found), &inserted)?;
            let beyond = best.beyond_budget();
            if let Some(found) = best.into_iter().next() {
                insert.novelties.push(Novelty::NearDuplicate(found));
                continue;
            }
            let id = target.store_document(document, signature)?;
            inserted.push(target.view().context(), query_index, id.get())?;
            insert.note_inserted(id.get())?;
            insert.novelties.push(Novelty::inserted(id, beyond));
        }
        Ok(())
    }

    /// Returns the best match among the stored documents and those of the piece that were inserted.
    fn best(
        &self,
        view: &dyn ReadView,
        insert: &BatchInsert<'_>,
        (query_index, found): (usize, Option<Found>),
        inserted: &BatchDedup<'_>,
    ) -> Result<Matches> {
        let (index, context) = (insert.novelties.len(), view.context());
        let (_, signature) = *at(self.documents, query_index)?;
        let ask = |index, id, floor| insert.ask(index, id, floor);
        let search = insert.search(view, &ask);
        let Some(mut found) = found else {
            return search.one(index, signature);
        };
        let max_postings = insert.budget.map_or(usize::MAX, |b| b.postings());
        let in_batch = inserted.candidates(context, query_index, max_postings)?;
        // With more candidates than the budget allows for, the answer depends on the documents of the
        // batch before it, too.
        if let Some(budget) = insert.budget
            && !found.is_identical
            && !found
                .counts
                .is_within(budget, in_batch.documents.len(), in_batch.postings)
        {
            return search.one(index, signature);
        }
        let subject = Subject::new(signature);
        for (id, other) in in_batch.documents {
            // Documents in one bucket need not be within the bounds of a score.
            let scored = subject.score_signature(context, id, other, &insert.bounds)?;
            if let Some(scored) = scored {
                let exact_similarity = insert.ask(index, id, found.floor(&insert.bounds))?;
                if let Some(scored) = scored.verified(exact_similarity, Some(&insert.bounds)) {
                    found.push(scored);
                }
            }
        }
        search.matches(signature, found)
    }
}
