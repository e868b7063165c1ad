//! The duplicate check of a batch: what the store has near each document of a piece.

use crate::error::Result;
use crate::format::SignatureRow;
use crate::invariant::{OrBug, at, at_mut, invariant};
use crate::query::{
    Ask, Best, Budget, Candidate, CandidateSweep, Codes, Earlier, Families, MAX_IDENTICAL_TRIES,
    PieceCandidates, ProbeCounts, ResolvedBounds, Scored, Subject, Told, batch,
};
use crate::read::ReadView;
use crate::sketch::Signature;
use crate::state::SharedContext;
use crate::types::{DocumentId, Novelty, Scope};
use crate::write::batch_dedup::{BatchDedup, BatchDocument};
use crate::write::writer::Writer;

/// Number of noted candidates beyond which all but the first of each document are dropped.
const MAX_NOTED: usize = if cfg!(test) { 50 } else { 1 << 18 };

/// Asks the caller how similar a document of the batch, given by its index, is to an earlier one.
pub(super) type AskCaller<'v> = dyn Fn(usize, Earlier) -> Told + 'v;

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

    /// Replaces `nearest` by `scored` if that is within the bounds and nearer.
    fn keep_nearer(&self, nearest: &mut Option<Scored>, scored: Scored) {
        if scored.is_within(&self.bounds)
            && nearest.is_none_or(|nearest| scored.rank() < nearest.rank())
        {
            *nearest = Some(scored);
        }
    }

    /// Lets the caller, if it verifies, replace the estimated similarity of a candidate of the
    /// document at `index` of the batch.
    fn verify(&self, index: usize, scored: &mut Scored) -> Result<()> {
        if let Some(ask) = self.ask {
            scored.settle(ask(index, self.earlier(scored.id)?)?);
        }
        Ok(())
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
    codes: Codes,
    /// For each document, the id of the stored one with the same key.
    same_key: Vec<Option<u64>>,
    nearest: NearestStored,
    /// For each document, its candidates and postings; empty without a budget.
    counts_per_query: Vec<ProbeCounts>,
}

/// The nearest stored document of each document of a piece.
struct NearestStored {
    /// For each document, the nearest one within the bounds so far.
    nearest: Vec<Option<Scored>>,
    /// For each document, true once its nearest one is identical: no other is looked for then.
    is_identical: Vec<bool>,
    /// Candidates that were compared already, ascending.
    compared: Vec<Candidate>,
}

impl NearestStored {
    fn new(documents: usize) -> Self {
        Self {
            nearest: vec![None; documents],
            is_identical: vec![false; documents],
            compared: Vec::new(),
        }
    }

    /// Compares candidates with the documents of the piece that they were found for.
    fn compare(
        &mut self,
        source: &dyn ReadView,
        documents: &[BatchDocument<'_>],
        candidates: &[Candidate],
        insert: &BatchInsert<'_>,
    ) -> Result<()> {
        score_each(
            source,
            documents,
            candidates,
            insert,
            &mut |query_index, scored| {
                insert.keep_nearer(at_mut(&mut self.nearest, query_index)?, scored);
                Ok(())
            },
        )
    }

    /// Marks the documents whose nearest one, after these candidates were compared, is identical.
    fn note_identical(&mut self, context: &SharedContext, compared: &[Candidate]) -> Result<()> {
        for candidate in compared {
            let query_index = candidate.query_index as usize;
            if let Some(nearest) = at(&self.nearest, query_index)? {
                *at_mut(&mut self.is_identical, query_index)? = nearest.is_identical(context);
            }
        }
        Ok(())
    }
}

impl<'d> BatchCheck<'d> {
    /// Looks the documents of a piece up in the store; returns `None` if they have so many candidates
    /// that the piece must be halved.
    pub(super) fn new(
        writer: &Writer,
        documents: &'d [BatchDocument<'d>],
        insert: &BatchInsert<'_>,
    ) -> Result<Option<Self>> {
        let source = writer.view();
        let keys: Vec<Option<&[u8]>> = documents.iter().map(|(d, _)| d.key).collect();
        let same_key = batch::find_keys(source, &keys)?;
        let signatures = documents.iter().map(|(_, signature)| *signature);
        let families = Families::from_bounds(&insert.bounds);
        let mut codes = Codes::of(source.context(), families, signatures)?;
        // A document whose key is taken is answered by its key alone.
        for (query_index, taken) in same_key.iter().enumerate() {
            if taken.is_some() {
                codes.leave_out(query_index);
            }
        }
        let mut nearest = NearestStored::new(documents.len());
        let mut counts_per_query = Vec::new();
        if insert.looks_up_singly() {
            counts_per_query = vec![ProbeCounts::over(); documents.len()];
        } else {
            let gathered = gather(source, documents, &mut codes, insert, &mut nearest)?;
            let Some(mut gathered) = gathered else {
                return Ok(None);
            };
            counts_per_query.append(&mut gathered.counts_per_query);
            if insert.ask.is_some() {
                let candidates = &gathered.candidates;
                verify_each(source, documents, candidates, insert, &mut nearest)?;
            } else {
                let is_compared =
                    |candidate: &Candidate| nearest.compared.binary_search(candidate).is_ok();
                gathered
                    .candidates
                    .retain(|candidate| !is_compared(candidate));
                nearest.compare(source, documents, &gathered.candidates, insert)?;
            }
        }
        Ok(Some(Self {
            documents,
            codes,
            same_key,
            nearest,
            counts_per_query,
        }))
    }

    /// Inserts the documents of the piece that are new, one after the other.
    pub(super) fn insert_new(
        self,
        writer: &mut Writer,
        insert: &mut BatchInsert<'_>,
    ) -> Result<()> {
        let mut inserted = BatchDedup::new(self.documents, &self.codes);
        for (query_index, (document, signature)) in self.documents.iter().enumerate() {
            let stored = *at(&self.same_key, query_index)?;
            let in_batch = || document.key.and_then(|key| inserted.id_of_key(key));
            if let Some(id) = stored.or_else(in_batch) {
                let same = Subject::new(signature).compare(writer.view(), id)?;
                insert.novelties.push(Novelty::SameKey(same));
                continue;
            }
            let best = self.best(writer, insert, query_index, &inserted)?;
            if let Some(found) = best.found {
                insert.novelties.push(Novelty::NearDuplicate(found));
                continue;
            }
            let id = writer.store_document(document, signature)?;
            inserted.push(&writer.store.context, query_index, id.get())?;
            insert.note_inserted(id.get())?;
            insert.novelties.push(Novelty::inserted(id, best.beyond));
        }
        Ok(())
    }

    /// Returns the best match among the stored documents and those of the piece that were inserted.
    fn best(
        &self,
        writer: &Writer,
        insert: &BatchInsert<'_>,
        query_index: usize,
        inserted: &BatchDedup<'_>,
    ) -> Result<Best> {
        let (index, context) = (insert.novelties.len(), &writer.store.context);
        let (_, signature) = *at(self.documents, query_index)?;
        let max_postings = insert.budget.map_or(usize::MAX, |b| b.postings());
        let in_batch = inserted.candidates(context, query_index, max_postings)?;
        if let Some(budget) = insert.budget
            && !*at(&self.nearest.is_identical, query_index)?
        {
            let meeting = *at(&self.counts_per_query, query_index)?;
            let (more, postings) = (in_batch.documents.len(), in_batch.postings);
            if !meeting.is_within(budget, more, postings) {
                return look_up_singly(writer, insert, signature);
            }
        }
        let subject = Subject::new(signature);
        let mut nearest = *at(&self.nearest.nearest, query_index)?;
        for (id, other) in in_batch.documents {
            // Documents in one bucket need not be within the bounds of a score.
            let scored = subject.score_signature(context, id, other, &insert.bounds)?;
            if let Some(mut scored) = scored {
                insert.verify(index, &mut scored)?;
                insert.keep_nearer(&mut nearest, scored);
            }
        }
        let near: Vec<Scored> = nearest.into_iter().collect();
        let matches = subject.finish(writer.view(), near, 1, Scope::Candidates, 1)?;
        Ok(Best {
            found: matches.into_iter().next(),
            beyond: None,
        })
    }
}

/// Looks one document up by itself, when its turn has come: with more candidates than the budget
/// allows for, the answer depends on the documents of the batch before it, too.
fn look_up_singly(
    writer: &Writer,
    insert: &BatchInsert<'_>,
    signature: &Signature,
) -> Result<Best> {
    let (bounds, budget) = (&insert.bounds, insert.budget);
    let (subject, source) = (Subject::new(signature), writer.view());
    let Some(ask) = insert.ask else {
        return subject.best(source, bounds, budget);
    };
    let index = insert.novelties.len();
    let ask = |id| ask(index, insert.earlier(id)?);
    let matches = subject.query(source, bounds, 1, Some(&ask as &Ask<'_>), budget)?;
    Ok(Best {
        beyond: matches.beyond_budget(),
        found: matches.into_iter().next(),
    })
}

/// Gathers the candidates of a piece; returns `None` if the piece must be halved. Documents for which
/// an identical one is found in the first lane are not looked up in the others.
fn gather(
    source: &dyn ReadView,
    documents: &[BatchDocument<'_>],
    codes: &mut Codes,
    insert: &BatchInsert<'_>,
    nearest: &mut NearestStored,
) -> Result<Option<PieceCandidates>> {
    // A caller who verifies decides about identical ones, too.
    let first_column = codes
        .first_column(source.context())
        .filter(|_| insert.ask.is_none());
    let mut gathering = CandidateSweep::new(source, codes, insert.budget);
    let Some(column) = first_column else {
        return gathering.finish(None);
    };
    let (mut exact, mut max_noted) = (Vec::new(), MAX_NOTED);
    let mut note = |candidate: Candidate| {
        if !source.is_dead(candidate.id) {
            exact.push(candidate);
        }
        if exact.len() > max_noted {
            keep_first(&mut exact);
            // Where the first of each document are many, a trim frees little: the next one comes
            // after as many again.
            max_noted = MAX_NOTED.max(2 * exact.len());
        }
    };
    if !gathering.sweep(column, &mut note)? {
        return Ok(None);
    }
    // Postings beyond the budget were passed over, and the first by id may be among them: for such a
    // document the candidates that were noted say nothing.
    exact.retain(|candidate| !gathering.is_over(candidate.query_index));
    look_for_identical(source, documents, exact, insert, nearest)?;
    for (query_index, is_identical) in nearest.is_identical.iter().enumerate() {
        if *is_identical {
            gathering.leave_out(query_index);
        }
    }
    gathering.finish(Some(column))
}

/// Compares the first candidates of each document's exact code until one is identical: 1, then 2, 4
/// and 8, as a check of one document does.
fn look_for_identical(
    source: &dyn ReadView,
    documents: &[BatchDocument<'_>],
    mut exact: Vec<Candidate>,
    insert: &BatchInsert<'_>,
    nearest: &mut NearestStored,
) -> Result<()> {
    keep_first(&mut exact);
    let (mut begin, mut together) = (0, 1);
    while begin < MAX_IDENTICAL_TRIES {
        let mut now: Vec<Candidate> = Vec::new();
        for of_document in exact.chunk_by(|a, b| a.query_index == b.query_index) {
            let query_index = at(of_document, 0)?.query_index as usize;
            if !*at(&nearest.is_identical, query_index)? {
                now.extend(of_document.iter().skip(begin).take(together));
            }
        }
        if now.is_empty() {
            break;
        }
        now.sort_unstable();
        nearest.compare(source, documents, &now, insert)?;
        nearest.note_identical(source.context(), &now)?;
        nearest.compared.append(&mut now);
        (begin, together) = (begin + together, together * 2);
    }
    nearest.compared.sort_unstable();
    Ok(())
}

/// Keeps the first candidates of each document, ascending by document and then by candidate id.
fn keep_first(exact: &mut Vec<Candidate>) {
    exact.sort_unstable_by_key(|candidate| (candidate.query_index, candidate.id));
    exact.dedup();
    let (mut query_index, mut kept) = (u32::MAX, 0);
    exact.retain(|candidate| {
        if query_index != candidate.query_index {
            (query_index, kept) = (candidate.query_index, 0);
        }
        kept += 1;
        kept <= MAX_IDENTICAL_TRIES
    });
}

/// Has the caller verify candidates: document by document, those of each in the order of their ids.
fn verify_each(
    source: &dyn ReadView,
    documents: &[BatchDocument<'_>],
    candidates: &[Candidate],
    insert: &BatchInsert<'_>,
    nearest: &mut NearestStored,
) -> Result<()> {
    let mut to_verify = Vec::new();
    score_each(
        source,
        documents,
        candidates,
        insert,
        &mut |query_index, scored| {
            to_verify.push((query_index, scored));
            Ok(())
        },
    )?;
    to_verify.sort_by_key(|(query_index, _)| *query_index);
    for (query_index, mut scored) in to_verify {
        insert.verify(insert.novelties.len() + query_index, &mut scored)?;
        insert.keep_nearer(at_mut(&mut nearest.nearest, query_index)?, scored);
    }
    Ok(())
}

/// Shows the score of each candidate that can be near, ascending by its id, with the index in the
/// piece of the document that it was found for.
fn score_each(
    source: &dyn ReadView,
    documents: &[BatchDocument<'_>],
    candidates: &[Candidate],
    insert: &BatchInsert<'_>,
    visit: &mut dyn FnMut(usize, Scored) -> Result<()>,
) -> Result<()> {
    let context = source.context();
    let mut score = |candidate: Candidate, row: &SignatureRow<'_>| {
        let query_index = candidate.query_index as usize;
        let (_, signature) = at(documents, query_index)?;
        let bounds = Some(&insert.bounds);
        match Subject::new(signature).score(context, candidate.id, row, bounds)? {
            Some(scored) => visit(query_index, scored),
            None => Ok(()),
        }
    };
    batch::compare(source, candidates, &mut score)
}
