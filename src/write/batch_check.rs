//! The duplicate check of a batch: what the store has near each document of a piece.

use crate::error::Result;
use crate::invariant::{OrBug, at, bug, invariant};
use crate::query::{
    Ask, Budget, Collector, Earlier, ExactSimilarity, Found, ProbePlan, ResolvedBounds, Search,
    Subject, find_keys,
};
use crate::read::ReadView;
use crate::sketch::Signature;
use crate::threads::spawn_scoped;
use crate::types::{Document, DocumentId, Matches, Novelty};
use crate::write::batch_dedup::{BatchDedup, BatchDocument};

/// Asks the caller how similar a document of the batch, given by its index, is to an earlier one. A
/// similarity below the floor may come out as any number below it.
pub(crate) type AskCaller<'v> = dyn Fn(usize, Earlier, f64) -> ExactSimilarity + 'v;

/// [`AskCaller`] that any thread may call.
pub(crate) type SyncAskCaller<'v> = dyn Fn(usize, Earlier, f64) -> ExactSimilarity + Sync + 'v;

/// [`AskCaller`], or [`SyncAskCaller`].
pub(crate) trait AskAnyCaller: Fn(usize, Earlier, f64) -> ExactSimilarity {}

impl<F: Fn(usize, Earlier, f64) -> ExactSimilarity + ?Sized> AskAnyCaller for F {}

/// Fewer documents are not worth a thread.
const MIN_PER_THREAD: usize = if cfg!(test) { 8 } else { 128 };

/// What a batch is inserted into, and who is asked how similar two documents are.
pub(crate) trait BatchTarget<A: AskAnyCaller + ?Sized> {
    fn view(&self) -> &dyn ReadView;

    /// Looks up documents of the batch, which begin at `index` in it.
    fn look_up(
        &self,
        insert: &BatchInsert<'_, A>,
        index: usize,
        documents: &[BatchDocument<'_>],
    ) -> Result<LookedUp> {
        insert.look_up(self.view(), index, documents)
    }

    /// Returns the id of the next document.
    fn next_id(&self) -> u64;

    /// Stores a valid document under the next id.
    fn store_document(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId>;
}

/// What is there near some documents before any of them is inserted.
pub(crate) struct LookedUp {
    plan: ProbePlan,
    /// For each document, the id of the stored one with the same key.
    same_key: Vec<Option<u64>>,
    /// For each document, the nearest stored one; `None` if they have so many candidates that they must be
    /// halved, or if each is to be searched for when its turn has come.
    found: Option<Vec<Found>>,
}

/// A batch on its way into the store.
pub(crate) struct BatchInsert<'v, A: ?Sized> {
    bounds: ResolvedBounds,
    budget: Option<Budget>,
    /// The first id that the batch can get: documents below it were stored before.
    first_id: u64,
    ask: Option<&'v A>,
    /// Answers for the first documents of the batch, in its order.
    pub(super) novelties: Vec<Novelty>,
    /// Batch indexes of the inserted documents. Their ids are consecutive from `first_id` on.
    inserted: Vec<usize>,
}

impl<'v, A: AskAnyCaller + ?Sized> BatchInsert<'v, A> {
    pub(super) fn new(
        bounds: ResolvedBounds,
        budget: Option<Budget>,
        first_id: u64,
        ask: Option<&'v A>,
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

    fn look_up(
        &self,
        view: &dyn ReadView,
        index: usize,
        documents: &[BatchDocument<'_>],
    ) -> Result<LookedUp> {
        let keys: Vec<Option<&[u8]>> = documents.iter().map(|(d, _)| d.key()).collect();
        let same_key = find_keys(view, &keys)?;
        let signatures: Vec<&Signature> = documents.iter().map(|(_, s)| *s).collect();
        let ask = |index, id, floor| self.ask(index, id, floor);
        let search = self.search(view, &ask);
        let mut plan = search.plan(signatures.iter().copied())?;
        // A document whose key is taken is answered by its key alone.
        for (query_index, taken) in same_key.iter().enumerate() {
            if taken.is_some() {
                plan.leave_out(query_index)?;
            }
        }
        let mut found = None;
        if !self.looks_up_singly() {
            found = search.piece(index, &signatures, &mut plan)?;
            for (index, found) in (index..).zip(found.iter_mut().flatten()) {
                search.settle(index, found)?;
            }
        }
        Ok(LookedUp {
            plan,
            same_key,
            found,
        })
    }

    /// Does what a target does alone, on several threads. The answers are the same for any number.
    pub(crate) fn look_up_shared<T: BatchTarget<A> + Sync>(
        &self,
        target: &T,
        threads: usize,
        (index, documents): (usize, &[BatchDocument<'_>]),
    ) -> Result<LookedUp>
    where
        A: Sync,
    {
        let share = documents.len().div_ceil(threads.max(1));
        let share = share.max(MIN_PER_THREAD);
        let mut shares = documents.chunks(share).zip((index..).step_by(share));
        let (own, _) = shares.next().or_bug("documents to look up")?;
        let look_up = |documents, index| self.look_up(target.view(), index, documents);
        std::thread::scope(|scope| {
            let others: Vec<_> = shares
                .map(|(share, index)| spawn_scoped(scope, "look-up", move || look_up(share, index)))
                .collect::<Result<_>>()?;
            let mut all = look_up(own, index)?;
            for other in others {
                let other = other.join();
                all.append(other.map_err(|_| bug("a thread of look-ups panicked"))??);
            }
            Ok(all)
        })
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

impl LookedUp {
    /// Appends what was found for the documents that follow.
    fn append(&mut self, other: Self) {
        self.plan.append(other.plan);
        self.same_key.extend(other.same_key);
        self.found = self.found.take().zip(other.found).map(|(mut all, other)| {
            all.extend(other);
            all
        });
    }
}

/// Answers of the store for the documents of a piece, found before any of them is inserted.
pub(super) struct BatchCheck<'d> {
    documents: &'d [BatchDocument<'d>],
    plan: ProbePlan,
    same_key: Vec<Option<u64>>,
    /// `None` if every document is searched for when its turn has come.
    found: Option<Vec<Found>>,
}

impl<'d> BatchCheck<'d> {
    /// Looks the documents of a piece up in the store; returns `None` if they have so many candidates
    /// that the piece must be halved.
    pub(super) fn new<A: AskAnyCaller + ?Sized>(
        target: &impl BatchTarget<A>,
        documents: &'d [BatchDocument<'d>],
        insert: &BatchInsert<'_, A>,
    ) -> Result<Option<Self>> {
        let LookedUp {
            plan,
            same_key,
            found,
        } = target.look_up(insert, insert.novelties.len(), documents)?;
        let must_be_halved = found.is_none() && !insert.looks_up_singly();
        Ok((!must_be_halved).then_some(Self {
            documents,
            plan,
            same_key,
            found,
        }))
    }

    /// Inserts the documents of the piece that are new, one after the other.
    pub(super) fn insert_new<A: AskAnyCaller + ?Sized>(
        mut self,
        target: &mut impl BatchTarget<A>,
        insert: &mut BatchInsert<'_, A>,
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
                insert.novelties.push(Novelty::KeyExists(same));
                continue;
            }
            let best = self.best(target.view(), insert, (query_index, found), &inserted)?;
            let beyond = best.budget_exceeded();
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
    fn best<A: AskAnyCaller + ?Sized>(
        &self,
        view: &dyn ReadView,
        insert: &BatchInsert<'_, A>,
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
