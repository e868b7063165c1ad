//! What was there before the documents of a batch that are inserted if they are new.

use crate::error::Result;
use crate::query::{
    Ask, Best, Candidate, Codes, Families, Gathered, Gathering, LOOKED_AT, Meeting, Scored,
    Subject, batch,
};
use crate::read::ReadView;
use crate::sketch::Signature;
use crate::state::SharedContext;
use crate::types::{Novelty, Scope};
use crate::write::batch_dedup::BatchDedup;
use crate::write::insert_many::{BatchInsert, Pair};
use crate::write::writer::Writer;

/// So many candidates are noted before those are forgotten that will not be looked at.
const MOST_NOTED: usize = if cfg!(test) { 50 } else { 1 << 18 };

/// What was there before the documents of a piece.
pub(crate) struct BatchCheck<'d> {
    documents: &'d [Pair<'d>],
    codes: Codes,
    /// The document with the same key.
    same_key: Vec<Option<u64>>,
    seen: Seen,
    /// What each has met, if there is a budget.
    meetings: Vec<Meeting>,
}

/// What was found for the documents of a piece.
#[derive(Default)]
struct Seen {
    /// The nearest one within the bounds.
    nearest: Vec<Option<Scored>>,
    /// Whether that is identical: then nothing else was looked for.
    is_identical: Vec<bool>,
    /// Candidates that were compared already, in order.
    compared: Vec<Candidate>,
}

impl Seen {
    fn new(documents: usize) -> Self {
        Self {
            nearest: vec![None; documents],
            is_identical: vec![false; documents],
            compared: Vec::new(),
        }
    }

    fn is_identical(&self, asker: u32) -> bool {
        self.is_identical.get(asker as usize) == Some(&true)
    }

    /// Compares candidates with those who ask for them.
    fn compare(
        &mut self,
        source: &dyn ReadView,
        documents: &[Pair<'_>],
        candidates: &[Candidate],
        insertion: &BatchInsert<'_>,
    ) -> Result<()> {
        batch::compare(source, candidates, &mut |candidate, row| {
            let asker = candidate.asker as usize;
            let scored = documents.get(asker).and_then(|(_, signature)| {
                let bounds = Some(&insertion.bounds);
                Subject::new(signature).score(source.context(), candidate.id, row, bounds)
            });
            if let (Some(scored), Some(nearest)) = (scored, self.nearest.get_mut(asker)) {
                insertion.keep_nearer(nearest, scored);
            }
        })
    }
}

impl<'d> BatchCheck<'d> {
    /// `None` if the piece must be halved.
    pub(crate) fn of(
        writer: &Writer,
        documents: &'d [Pair<'d>],
        insertion: &BatchInsert<'_>,
    ) -> Result<Option<Self>> {
        let source = writer.view();
        let keys: Vec<Option<&[u8]>> = documents.iter().map(|(d, _)| d.key).collect();
        let same_key = batch::find_keys(source, &keys)?;
        let signatures = documents.iter().map(|(_, signature)| *signature);
        let families = Families::from_bounds(&insertion.bounds);
        let mut codes = Codes::of(source.context(), families, signatures)?;
        for (asker, known) in same_key.iter().enumerate() {
            if known.is_some() {
                codes.leave_out(asker);
            }
        }
        let mut seen = Seen::new(documents.len());
        let mut meetings = Vec::new();
        if insertion.asks_alone() {
            meetings = vec![Meeting::over(); documents.len()];
        } else {
            let gathered = gather(source, documents, &mut codes, insertion, &mut seen)?;
            let Some(mut gathered) = gathered else {
                return Ok(None);
            };
            meetings.append(&mut gathered.meetings);
            if insertion.ask.is_some() {
                verify(
                    source,
                    documents,
                    &gathered.candidates,
                    insertion,
                    &mut seen,
                )?;
            } else {
                let is_known =
                    |candidate: &Candidate| seen.compared.binary_search(candidate).is_ok();
                gathered.candidates.retain(|candidate| !is_known(candidate));
                seen.compare(source, documents, &gathered.candidates, insertion)?;
            }
        }
        Ok(Some(Self {
            documents,
            codes,
            same_key,
            seen,
            meetings,
        }))
    }

    /// Inserts those that are new.
    pub(crate) fn insert_new(
        self,
        writer: &mut Writer,
        insertion: &mut BatchInsert<'_>,
    ) -> Result<()> {
        let mut inserted = BatchDedup::new(self.documents, &self.codes);
        for (asker, (document, signature)) in self.documents.iter().enumerate() {
            let index = insertion.novelties.len();
            let subject = Subject::new(signature);
            let same_key = self.same_key.get(asker).copied().flatten();
            let of_batch = || document.key.and_then(|key| inserted.with_key(key));
            if let Some(id) = same_key.or_else(of_batch) {
                let known = subject.compare(writer.view(), id)?;
                insertion.novelties.push(Novelty::SameKey(known));
                continue;
            }
            let best = self.best(writer, insertion, asker, &inserted)?;
            if let Some(found) = best.found {
                insertion.novelties.push(Novelty::NearDuplicate(found));
                continue;
            }
            let id = writer.store_document(document, signature)?;
            inserted.push(&writer.store.context, asker, id.get());
            insertion.inserted.push(index);
            insertion.novelties.push(Novelty::inserted(id, best.beyond));
        }
        Ok(())
    }

    /// The best match among what was there before and what has been inserted of the piece.
    fn best(
        &self,
        writer: &Writer,
        insertion: &BatchInsert<'_>,
        asker: usize,
        inserted: &BatchDedup<'_>,
    ) -> Result<Best> {
        let (index, context) = (insertion.novelties.len(), &writer.store.context);
        let Some((_, signature)) = self.documents.get(asker) else {
            return Ok(Best::default());
        };
        let most = insertion.budget.map_or(usize::MAX, |b| b.postings());
        let of_batch = inserted.candidates(context, asker, most);
        if let Some(budget) = insertion.budget
            && self.seen.is_identical.get(asker) == Some(&false)
        {
            let meeting = self.meetings.get(asker).copied().unwrap_or_default();
            let (more, postings) = (of_batch.documents.len(), of_batch.postings);
            if !meeting.is_within(budget, more, postings) {
                return ask_alone(writer, insertion, signature);
            }
        }
        let subject = Subject::new(signature);
        let mut nearest = self.seen.nearest.get(asker).copied().flatten();
        for (id, other) in of_batch.documents {
            if let Some(mut scored) = subject.score_signature(context, id, other, &insertion.bounds)
            {
                insertion.settle(index, &mut scored)?;
                insertion.keep_nearer(&mut nearest, scored);
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

/// Where a document meets more than the budget allows for, what came before it in the batch is in the
/// way of it too: it is asked about when its turn has come, by itself.
fn ask_alone(writer: &Writer, insertion: &BatchInsert<'_>, signature: &Signature) -> Result<Best> {
    let (bounds, budget) = (&insertion.bounds, insertion.budget);
    let (subject, source) = (Subject::new(signature), writer.view());
    let Some(ask) = insertion.ask else {
        return subject.best(source, bounds, budget);
    };
    let index = insertion.novelties.len();
    let ask = |id| ask(index, insertion.earlier(id));
    let matches = subject.query(source, bounds, 1, Some(&ask as &Ask<'_>), budget)?;
    Ok(Best {
        beyond: matches.beyond_budget(),
        found: matches.into_iter().next(),
    })
}

/// Gathers candidates, of documents for which an identical one is found only the first; `None` if
/// the piece must be halved.
fn gather(
    source: &dyn ReadView,
    documents: &[Pair<'_>],
    codes: &mut Codes,
    insertion: &BatchInsert<'_>,
    seen: &mut Seen,
) -> Result<Option<Gathered>> {
    let first = codes.first_column(source.context());
    let first = first.filter(|_| insertion.ask.is_none());
    let mut gathering = Gathering::new(source, codes, insertion.budget);
    let Some(column) = first else {
        return gathering.finish(None);
    };
    let (mut own, mut room) = (Vec::new(), MOST_NOTED);
    let mut note = |candidate: Candidate| {
        if !source.is_dead(candidate.id) {
            own.push(candidate);
        }
        if own.len() > room {
            keep_first(&mut own);
            room = own.len().saturating_mul(2).max(MOST_NOTED);
        }
    };
    if !gathering.sweep(column, &mut note)? {
        return Ok(None);
    }
    // What was passed over may be the first by id.
    own.retain(|candidate| !gathering.is_over(candidate.asker));
    look_for_identical(source, documents, own, insertion, seen)?;
    for (asker, is_identical) in seen.is_identical.iter().enumerate() {
        if *is_identical {
            gathering.leave_out(asker);
        }
    }
    gathering.finish(Some(column))
}

/// Looks at the first candidates of each document in one bucket until one is identical: 1, then 2, 4
/// and 8, as one after the other would. What is compared is noted.
fn look_for_identical(
    source: &dyn ReadView,
    documents: &[Pair<'_>],
    mut own: Vec<Candidate>,
    insertion: &BatchInsert<'_>,
    seen: &mut Seen,
) -> Result<()> {
    keep_first(&mut own);
    let (mut begin, mut together) = (0, 1);
    while begin < LOOKED_AT {
        let of_askers = own.chunk_by(|a, b| a.asker == b.asker);
        let open = of_askers.filter(|of| of.first().is_some_and(|c| !seen.is_identical(c.asker)));
        let now = open.flat_map(|of| of.iter().skip(begin).take(together));
        let mut now: Vec<Candidate> = now.copied().collect();
        if now.is_empty() {
            break;
        }
        now.sort_unstable();
        seen.compare(source, documents, &now, insertion)?;
        seen.note_identical(source.context(), &now);
        seen.compared.append(&mut now);
        (begin, together) = (begin + together, together * 2);
    }
    seen.compared.sort_unstable();
    Ok(())
}

/// Keeps the candidates that are looked at, in the order of those who ask, and then of their ids.
fn keep_first(own: &mut Vec<Candidate>) {
    own.sort_unstable_by_key(|candidate| (candidate.asker, candidate.id));
    own.dedup();
    let mut of_asker = (u32::MAX, 0);
    own.retain(|candidate| {
        if of_asker.0 != candidate.asker {
            of_asker = (candidate.asker, 0);
        }
        of_asker.1 += 1;
        of_asker.1 <= LOOKED_AT
    });
}

impl Seen {
    fn note_identical(&mut self, context: &SharedContext, compared: &[Candidate]) {
        for candidate in compared {
            let asker = candidate.asker as usize;
            let nearest = self.nearest.get(asker).copied().flatten();
            if let (Some(nearest), Some(is)) = (nearest, self.is_identical.get_mut(asker)) {
                *is = nearest.is_whole(context);
            }
        }
    }
}

/// Has the caller verify candidates: document by document, each against the others in their order.
fn verify(
    source: &dyn ReadView,
    documents: &[Pair<'_>],
    candidates: &[Candidate],
    insertion: &BatchInsert<'_>,
    seen: &mut Seen,
) -> Result<()> {
    let mut to_verify = Vec::new();
    batch::compare(source, candidates, &mut |candidate, row| {
        let asker = candidate.asker as usize;
        let scored = documents.get(asker).and_then(|(_, signature)| {
            let bounds = Some(&insertion.bounds);
            Subject::new(signature).score(source.context(), candidate.id, row, bounds)
        });
        to_verify.extend(scored.map(|scored| (asker, scored)));
    })?;
    to_verify.sort_by_key(|(asker, _)| *asker);
    for (asker, mut scored) in to_verify {
        insertion.settle(insertion.novelties.len() + asker, &mut scored)?;
        if let Some(nearest) = seen.nearest.get_mut(asker) {
            insertion.keep_nearer(nearest, scored);
        }
    }
    Ok(())
}
