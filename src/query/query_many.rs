//! Queries for many signatures at once.

use std::fmt;

use crate::error::Result;
use crate::invariant::{OrBug, at, at_mut, invariant};
use crate::query::batch;
use crate::query::batch::{Candidate, Codes, PieceCandidates, SignaturePieces};
use crate::query::bounds::{Bounds, By, ResolvedBounds};
use crate::query::budget::Budget;
use crate::query::families::Families;
use crate::query::scored::{Scored, settle};
use crate::query::subject::Subject;
use crate::query::verify::{Ask, Outside, Told};
use crate::read::ReadView;
use crate::read::SnapshotView;
use crate::sketch::Signature;
use crate::state::SharedContext;
use crate::types::{DocumentId, Matches, Scope};

/// One question about many signatures, put together and then [`run`](Self::run). Made by
/// [`Snapshot::query_many`](crate::Snapshot::query_many).
#[must_use = "a query does nothing until it is run"]
pub struct QueryMany<'a> {
    source: &'a dyn ReadView,
    signatures: &'a [Signature],
    bounds: Bounds,
    limit: usize,
    budget: Option<u64>,
    verify: Option<Box<Verify<'a>>>,
}

/// Says how alike the signature at an index and a document are.
type Verify<'v> = dyn Fn(usize, DocumentId) -> Told + 'v;

impl fmt::Debug for QueryMany<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryMany")
            .field("signatures", &self.signatures.len())
            .field("bounds", &self.bounds)
            .field("limit", &self.limit)
            .field("budget", &self.budget)
            .field("verifies", &self.verify.is_some())
            .finish_non_exhaustive()
    }
}

impl<'a> QueryMany<'a> {
    /// All bounds at once.
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// See [`Bounds::min_similarity`].
    pub fn min_similarity(mut self, similarity: f64) -> Self {
        self.bounds = self.bounds.min_similarity(similarity);
        self
    }

    /// See [`Bounds::max_distance`].
    pub fn max_distance(mut self, distance: u32) -> Self {
        self.bounds = self.bounds.max_distance(distance);
        self
    }

    /// See [`Bounds::by`].
    pub fn by(mut self, by: By) -> Self {
        self.bounds = self.bounds.by(by);
        self
    }

    /// See [`Bounds::accept_lower_recall`].
    pub fn accept_lower_recall(mut self) -> Self {
        self.bounds = self.bounds.accept_lower_recall();
        self
    }

    /// At most this many matches for each signature, the best; all if not given.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// See [`Query::probe_budget`](crate::Query::probe_budget): so many documents for each signature.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
    /// for _ in 0..5 {
    ///     store.append(&page)?;
    /// }
    /// let answers = store.snapshot()?.query_many(&[page]).probe_budget(2).run()?;
    /// assert_eq!(answers[0].beyond_budget().map(|beyond| beyond.documents), Some(3));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn probe_budget(mut self, documents: u64) -> Self {
        self.budget = Some(documents);
        self
    }

    /// Verifies every candidate: as [`Query::verify`](crate::Query::verify), the closure is also
    /// given the index of the signature that asks.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
    /// store.append(&page)?;
    /// let (snapshot, pages) = (store.snapshot()?, [page.clone(), page]);
    /// let verified = snapshot.query_many(&pages).verify(|index, _| Ok(Some(index as f64)));
    /// let answers = verified.run()?;
    /// assert!(answers[0].is_empty() && answers[1][0].is_exact());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn verify(
        mut self,
        similarity: impl Fn(usize, DocumentId) -> Result<Option<f64>> + 'a,
    ) -> Self {
        self.verify = Some(Box::new(similarity));
        self
    }

    /// Answers the question for each signature, in their order.
    ///
    /// # Errors
    ///
    /// As [`Query::run`](crate::Query::run); that of a signature of another kind says its index.
    pub fn run(self) -> Result<Vec<Matches>> {
        let context = self.source.context();
        check_signatures(context, self.signatures)?;
        let bounds = self.bounds.resolve(&context.schema, false)?;
        let budget = self.budget.map(Budget::new).transpose()?;
        let outside = Outside::default();
        let answers = context.run_checked(|| {
            let mut answers = Vec::with_capacity(self.signatures.len());
            let families = Families::from_bounds(&bounds);
            each_piece(
                self.source,
                self.signatures,
                families,
                budget,
                |piece, met| {
                    let accept =
                        |scored: &Scored| self.verify.is_some() || scored.is_within(&bounds);
                    let found = score(self.source, piece, &met.candidates, &bounds, accept)?;
                    for (query_index, (signature, mut found)) in piece.iter().zip(found).enumerate()
                    {
                        let (index, outside) = (answers.len(), &outside);
                        let ask = self.verify.as_deref().map(|verify| {
                            move |id| outside.ask(|| verify(index, DocumentId::new(id)))
                        });
                        let ask = ask.as_ref().map(|ask| ask as &Ask<'_>);
                        if met
                            .counts_per_query
                            .get(query_index)
                            .is_some_and(|met| met.is_over)
                        {
                            let (subject, limit) = (Subject::new(signature), self.limit);
                            answers.push(subject.query(
                                self.source,
                                &bounds,
                                limit,
                                ask,
                                budget,
                            )?);
                            continue;
                        }
                        if let Some(ask) = ask {
                            settle(&mut found.near, ask, &bounds)?;
                        }
                        answers.push(self.finish(signature, found, &bounds)?);
                    }
                    Ok(())
                },
            )?;
            Ok(answers)
        });
        outside.leave();
        let answers = answers?;
        let (found, expected) = (answers.len(), self.signatures.len());
        invariant!(
            found == expected,
            "{found} answers for {expected} signatures"
        );
        context.note_queries(found);
        Ok(answers)
    }

    fn finish(
        &self,
        signature: &Signature,
        found: Found,
        bounds: &ResolvedBounds,
    ) -> Result<Matches> {
        if !self.source.context().is_filed(signature) {
            return Ok(Matches::none(Scope::Candidates));
        }
        let Found { near, compared } = found;
        let subject = Subject::new(signature);
        let scope = Scope::Candidates;
        let mut matches = subject.finish(self.source, near, self.limit, scope, compared)?;
        matches.recall = bounds.recall;
        Ok(matches)
    }
}

/// What was found for one signature.
#[derive(Clone, Debug, Default)]
struct Found {
    near: Vec<Scored>,
    /// How many candidates were compared.
    compared: usize,
}

/// Compares the signatures of a piece with their candidates.
fn score(
    source: &dyn ReadView,
    piece: &[Signature],
    candidates: &[Candidate],
    bounds: &ResolvedBounds,
    accept: impl Fn(&Scored) -> bool,
) -> Result<Vec<Found>> {
    let mut all = vec![Found::default(); piece.len()];
    batch::compare(source, candidates, &mut |candidate, row| {
        let query_index = candidate.query_index as usize;
        let found = at_mut(&mut all, query_index)?;
        found.compared += 1;
        let subject = Subject::new(at(piece, query_index)?);
        let score = subject.score(source.context(), candidate.id, row, Some(bounds))?;
        found.near.extend(score.filter(&accept));
        Ok(())
    })?;
    Ok(all)
}

/// Shows the signatures piece by piece with their candidates.
fn each_piece(
    source: &dyn ReadView,
    signatures: &[Signature],
    families: Families,
    budget: Option<Budget>,
    mut visit: impl FnMut(&[Signature], &PieceCandidates) -> Result<()>,
) -> Result<()> {
    let mut pieces = SignaturePieces::of(signatures.len());
    while let Some(range) = pieces.next() {
        let piece = signatures.get(range.clone());
        let piece = piece.or_bug("the signatures of a piece")?;
        let mut codes = Codes::of(source.context(), families, piece.iter())?;
        match batch::candidates(source, &mut codes, budget)? {
            Some(met) => visit(piece, &met)?,
            None => pieces.halve(range),
        }
    }
    Ok(())
}

fn check_signatures(context: &SharedContext, signatures: &[Signature]) -> Result<()> {
    let mut checks = signatures.iter().enumerate();
    checks.try_for_each(|(index, signature)| {
        let checked = context.check_signature(signature);
        checked.map_err(|error| batch::in_batch(error, index))
    })
}

/// See [`crate::Snapshot::query_many`](crate::Snapshot::query_many).
pub(crate) fn query_many<'a>(
    snapshot: &'a SnapshotView,
    signatures: &'a [Signature],
) -> QueryMany<'a> {
    QueryMany {
        source: snapshot.view(),
        signatures,
        bounds: Bounds::new(),
        limit: usize::MAX,
        budget: None,
        verify: None,
    }
}

/// See [`crate::Snapshot::candidates_many`](crate::Snapshot::candidates_many).
pub(crate) fn candidates_many(
    snapshot: &SnapshotView,
    signatures: &[Signature],
) -> Result<Vec<Vec<DocumentId>>> {
    check_signatures(snapshot.context(), signatures)?;
    let source = snapshot.view();
    snapshot.context().run_checked(|| {
        let mut all = Vec::with_capacity(signatures.len());
        each_piece(source, signatures, Families::ALL, None, |piece, met| {
            let mut live = vec![Vec::new(); piece.len()];
            let found = &met.candidates;
            batch::compare(source, found, &mut |Candidate { id, query_index }, row| {
                let query_index = query_index as usize;
                if row.is_empty() == at(piece, query_index)?.is_empty() {
                    at_mut(&mut live, query_index)?.push(DocumentId::new(id));
                }
                Ok(())
            })?;
            all.append(&mut live);
            Ok(())
        })?;
        snapshot.context().note_queries(all.len());
        Ok(all)
    })
}
