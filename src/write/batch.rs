//! A batch of documents to be stored: each is inserted if it is new compared with the stored
//! documents and those before it in the batch.

use crate::error::Result;
use crate::invariant::{OrBug, at, invariant};
use crate::query::{
    Ask, Bounds, Budget, Collector, Earlier, ExactSimilarity, FoundDocuments, ProbePlan, Referee,
    ResolvedBounds, Scorer, SearchSpec, find_keys, for_each_piece,
};
use crate::read::ReadView;
use crate::threads::in_shares;
use crate::types::{Document, DocumentId, Matches, Novelty, Scope};
use crate::write::batch_dedup::BatchDedup;
use resemblance_sketch::sketch::Signature;

/// Asks the caller how similar a document of the batch, given by its index, is to an earlier one.
/// For a similarity below the floor, any number below it may be returned.
pub(crate) type AskCaller<'v> = dyn Fn(usize, Earlier, f64) -> ExactSimilarity + 'v;

/// An [`AskCaller`] that any thread may call.
pub(crate) type SyncAskCaller<'v> = dyn Fn(usize, Earlier, f64) -> ExactSimilarity + Sync + 'v;

/// Decides how similar two documents are.
#[derive(Clone, Copy)]
pub(crate) enum Arbiter<'v> {
    Estimate,
    Caller(&'v AskCaller<'v>),
    CallerOfAnyThread(&'v SyncAskCaller<'v>),
}

impl<'v> Arbiter<'v> {
    fn caller(self) -> Option<&'v AskCaller<'v>> {
        match self {
            Self::Estimate => None,
            Self::Caller(ask) => Some(ask),
            Self::CallerOfAnyThread(ask) => Some(ask),
        }
    }
}

/// Fewer documents are not worth a thread.
const MIN_PER_THREAD: usize = if cfg!(test) { 8 } else { 1_024 };

/// The same where a closure compares texts, which takes longer than a look-up.
const MIN_VERIFIED_PER_THREAD: usize = if cfg!(test) { 8 } else { 128 };

/// A place that a batch is inserted into.
pub(crate) trait BatchTarget: ReadView {
    /// Returns the greatest number of threads that look documents up.
    fn threads(&self) -> usize {
        1
    }

    /// Returns the id of the next document.
    fn next_id(&self) -> u64;

    /// Stores a valid document under the next id.
    fn store_document(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId>;

    /// Stores a valid document, which a complete search has found to be near no other.
    fn store_alone(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        self.store_document(document, signature)
    }
}

/// Inserts each valid document of a batch that is new, and returns one answer a document in the same order.
pub(crate) fn insert_batch(
    target: &mut impl BatchTarget,
    documents: &[(Document<'_>, &Signature)],
    arbiter: Arbiter<'_>,
) -> Result<Vec<Novelty>> {
    let context = target.context();
    let mut insert = BatchInsert {
        bounds: Bounds::new().resolve(&context.schema, false)?,
        budget: Budget::from_options(&context.options)?,
        first_id: target.next_id(),
        novelties: Vec::with_capacity(documents.len()),
        inserted: Vec::new(),
    };
    // The store is asked about a whole piece at a time. A piece with too many candidates for the
    // memory is halved and both halves are asked about again.
    for_each_piece(documents, |piece| {
        let looked_up = insert.look_up(target, arbiter, piece)?;
        if looked_up.found.is_none() && !insert.looks_up_singly(arbiter.caller()) {
            return Ok(false);
        }
        insert.insert_new(target, arbiter.caller(), piece, looked_up)?;
        Ok(true)
    })?;
    let (answers, expected) = (insert.novelties.len(), documents.len());
    invariant!(
        answers == expected,
        "{answers} answers for a batch of {expected} documents"
    );
    Ok(insert.novelties)
}

/// A batch of which the first documents have their answers.
struct BatchInsert {
    bounds: ResolvedBounds,
    budget: Option<Budget>,
    /// The first id that the batch can get: documents below it were stored before.
    first_id: u64,
    /// Answers for the first documents of the batch, in its order.
    novelties: Vec<Novelty>,
    /// Batch indexes of the inserted documents. Their ids are consecutive from `first_id` on.
    inserted: Vec<usize>,
}

/// The stored documents near some of the batch, before any of them is inserted.
struct LookedUp {
    plan: ProbePlan,
    /// The id of the stored document with the same key, for each document.
    same_key: Vec<Option<u64>>,
    /// The nearest stored documents of each document. `None` if there are so many candidates that
    /// the batch must be halved, or if each document must be searched for in its turn.
    found: Option<Vec<FoundDocuments>>,
}

impl BatchInsert {
    /// Returns true if every document must be looked up by itself: with a budget and a caller who
    /// verifies, a document beyond the budget would make the caller verify some others twice.
    fn looks_up_singly(&self, caller: Option<&AskCaller<'_>>) -> bool {
        caller.is_some() && self.budget.is_some()
    }

    /// Looks up the documents that follow those with an answer.
    fn look_up(
        &self,
        target: &impl BatchTarget,
        arbiter: Arbiter<'_>,
        documents: &[(Document<'_>, &Signature)],
    ) -> Result<LookedUp> {
        let threads = target.threads();
        match (target.shared(), arbiter) {
            (Some(view), Arbiter::Estimate) => self.look_up_shared(view, None, threads, documents),
            (Some(view), Arbiter::CallerOfAnyThread(ask)) => {
                self.look_up_shared(view, Some(ask), threads, documents)
            }
            (None, _) | (_, Arbiter::Caller(_)) => {
                self.look_up_share(target, arbiter.caller(), self.novelties.len(), documents)
            }
        }
    }

    /// Looks documents up on several threads. The answers are the same for any number.
    fn look_up_shared(
        &self,
        view: &(dyn ReadView + Sync),
        ask: Option<&SyncAskCaller<'_>>,
        threads: usize,
        documents: &[(Document<'_>, &Signature)],
    ) -> Result<LookedUp> {
        let index = self.novelties.len();
        let least = ask.map_or(MIN_PER_THREAD, |_| MIN_VERIFIED_PER_THREAD);
        let size = documents.len().div_ceil(threads.max(1)).max(least);
        let shares = documents.chunks(size).zip((index..).step_by(size));
        let look_up = |(share, index)| {
            let caller = ask.map(|ask| -> &AskCaller<'_> { ask });
            self.look_up_share(view, caller, index, share)
        };
        let mut parts = in_shares("look-up", shares, look_up)?.into_iter();
        let mut all = parts.next().or_bug("documents to look up")?;
        parts.for_each(|other| all.append(other));
        Ok(all)
    }

    /// Looks up documents, the first of which has this index in the batch.
    fn look_up_share(
        &self,
        view: &dyn ReadView,
        caller: Option<&AskCaller<'_>>,
        index: usize,
        documents: &[(Document<'_>, &Signature)],
    ) -> Result<LookedUp> {
        let keys: Vec<Option<&[u8]>> = documents.iter().map(|(d, _)| d.key()).collect();
        let signatures: Vec<&Signature> = documents.iter().map(|(_, s)| *s).collect();
        let same_key = find_keys(view, &keys)?;
        let ask = |index, id, floor| self.ask(caller, index, id, floor);
        let search = self.search(view, caller.map(|_| &ask as &Ask<'_>));
        let mut plan = search.plan(signatures.iter().copied())?;
        // A document whose key is taken is answered by its key alone.
        for (query_index, taken) in same_key.iter().enumerate() {
            if taken.is_some() {
                plan.leave_out(query_index)?;
            }
        }
        let mut found = None;
        if !self.looks_up_singly(caller) {
            found = search.sweep_piece(index, &signatures, &mut plan)?;
            let found = found.iter_mut().flatten();
            for ((index, signature), found) in (index..).zip(&signatures).zip(found) {
                search.verify_found(index, signature, found)?;
            }
        }
        Ok(LookedUp {
            plan,
            same_key,
            found,
        })
    }

    /// Returns the search for the nearest stored document.
    fn search<'q>(&'q self, view: &'q dyn ReadView, verify: Option<&'q Ask<'q>>) -> SearchSpec<'q> {
        SearchSpec {
            bounds: Some(&self.bounds),
            budget: self.budget,
            referee: Referee::of(view, verify),
            ..SearchSpec::new(view, Collector::BestOne)
        }
    }

    /// Inserts the documents of a piece that are new, one after the other.
    fn insert_new(
        &mut self,
        target: &mut impl BatchTarget,
        caller: Option<&AskCaller<'_>>,
        documents: &[(Document<'_>, &Signature)],
        looked_up: LookedUp,
    ) -> Result<()> {
        let mut found = looked_up.found.map(Vec::into_iter);
        let mut dedup = BatchDedup::new(documents, &looked_up.plan);
        for (query_index, (document, signature)) in documents.iter().enumerate() {
            let found = match &mut found {
                Some(found) => Some(found.next().or_bug("what was found for a document")?),
                None => None,
            };
            let stored = *at(&looked_up.same_key, query_index)?;
            let in_batch = || document.key().and_then(|key| dedup.id_of_key(key));
            let novelty = if let Some(id) = stored.or_else(in_batch) {
                Novelty::KeyExists(Scorer::new(signature).compare(&*target, id)?)
            } else {
                let best = self.best(&*target, caller, &dedup, query_index, found)?;
                let beyond = best.budget_exceeded();
                match best.into_iter().next() {
                    Some(found) => Novelty::NearDuplicate(found),
                    None => {
                        let id = match (caller, beyond) {
                            (None, None) => target.store_alone(document, signature)?,
                            _ => target.store_document(document, signature)?,
                        };
                        dedup.push(target.context(), query_index, id.get())?;
                        self.note_inserted(id.get())?;
                        Novelty::New {
                            id,
                            left_out: beyond,
                        }
                    }
                }
            };
            self.novelties.push(novelty);
        }
        Ok(())
    }

    /// Returns the best match among the stored documents and those of the piece that were inserted.
    fn best(
        &self,
        view: &dyn ReadView,
        caller: Option<&AskCaller<'_>>,
        dedup: &BatchDedup<'_>,
        query_index: usize,
        found: Option<FoundDocuments>,
    ) -> Result<Matches> {
        let (index, context) = (self.novelties.len(), view.context());
        let signature = dedup.signature(query_index)?;
        let ask = |index, id, floor| self.ask(caller, index, id, floor);
        let search = self.search(view, caller.map(|_| &ask as &Ask<'_>));
        let Some(mut found) = found else {
            return search.probe(index, signature);
        };
        let max_postings = self.budget.map_or(usize::MAX, |budget| budget.postings());
        let in_batch = dedup.candidates(context, query_index, max_postings)?;
        // With more candidates than the budget allows for, the answer depends on the documents of the
        // batch before it, too.
        if let Some(budget) = self.budget
            && !found.is_identical
            && !found
                .counts
                .is_within(budget, in_batch.documents.len(), in_batch.postings)
        {
            return search.probe(index, signature);
        }
        let scorer = Scorer::new(signature);
        for (id, other) in in_batch.documents {
            // Documents in one bucket need not be within the bounds of a score.
            let scored = scorer.score_signature(context, id, other, &self.bounds)?;
            if let Some(scored) = scored.filter(|scored| search.accepts(scored)) {
                let floor = found.floor(&self.bounds);
                let exact_similarity = match self.ask(caller, index, id, floor)? {
                    Some(similarity) => Some(similarity),
                    None => context.set_similarity(signature, other, floor)?,
                };
                if let Some(scored) = scored.verified(exact_similarity, Some(&self.bounds)) {
                    found.push(scored);
                }
            }
        }
        search.matches(signature, found, Scope::Candidates)
    }

    /// Asks the caller how similar the document at `index` of the batch is to an earlier one.
    fn ask(
        &self,
        caller: Option<&AskCaller<'_>>,
        index: usize,
        id: u64,
        floor: f64,
    ) -> ExactSimilarity {
        match caller {
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
        let index = offset
            .and_then(|offset| self.inserted.get(offset))
            .or_bug_with(|| format!("document {id} is not of the batch"))?;
        Ok(Earlier::OfBatch(*index))
    }

    /// Records that the next document of the batch was stored under an id.
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
    /// Appends the documents found for the following documents of the batch.
    fn append(&mut self, other: Self) {
        self.plan.append(other.plan);
        self.same_key.extend(other.same_key);
        self.found = self.found.take().zip(other.found).map(|(mut all, other)| {
            all.extend(other);
            all
        });
    }
}
