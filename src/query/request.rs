//! Queries: candidates from the lanes, verified from the stored signatures.

use std::borrow::Cow;
use std::fmt;

use crate::error::{Error, Result};
use crate::format::SignatureRow;
use crate::query::bounds::{Bounds, By, ResolvedBounds};
use crate::query::buckets::{Begin, LaneProbe, read_first, read_whole};
use crate::query::budget::{Budget, BudgetedCandidates};
use crate::query::families::Families;
use crate::query::found_ids::FoundIds;
use crate::query::scored::{Scored, settle};
use crate::query::subject::Subject;
use crate::query::verify::{Ask, Outside, Told};
use crate::read::ReadView;
use crate::sketch::Signature;
use crate::types::{DocumentId, Matches, Scope};

/// A question to a snapshot or a transaction, put together and then [`run`](Self::run).
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
/// store.insert("first", &page)?;
/// let matches = store.snapshot()?.query(&page).min_similarity(0.9).limit(10).run()?;
/// assert_eq!(matches[0].key(), Some(&b"first"[..]));
/// assert_eq!(matches[0].similarity(), Some(1.0));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "a query does nothing until it is run"]
pub struct Query<'a> {
    source: &'a dyn ReadView,
    signature: Cow<'a, Signature>,
    bounds: Bounds,
    limit: usize,
    scan: bool,
    budget: Option<u64>,
    exclude: Option<u64>,
    verify: Option<Box<dyn Fn(DocumentId) -> Told + 'a>>,
}

impl fmt::Debug for Query<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query")
            .field("bounds", &self.bounds)
            .field("limit", &self.limit)
            .field("scan", &self.scan)
            .field("budget", &self.budget)
            .field("verifies", &self.verify.is_some())
            .finish_non_exhaustive()
    }
}

impl<'a> Query<'a> {
    pub(crate) fn new(source: &'a dyn ReadView, signature: Cow<'a, Signature>) -> Self {
        Self {
            source,
            signature,
            bounds: Bounds::new(),
            limit: usize::MAX,
            scan: false,
            budget: None,
            exclude: None,
            verify: None,
        }
    }

    /// Leaves one document out.
    pub(crate) fn excluding(mut self, id: u64) -> Self {
        self.exclude = Some(id);
        self
    }

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

    /// At most this many matches, the best; all if not given.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Compares with every document: complete whatever the bounds, and slow.
    pub fn scan(mut self) -> Self {
        self.scan = true;
        self
    }

    /// Compares at most so many of the documents that share a bucket with the signature: those that
    /// share the most buckets with it, of such as share equally many the ones that were inserted first.
    /// No limit if not given. A budget bounds what a query costs where buckets are hot, and it can change
    /// the answer: [`Matches::beyond_budget`] then says so.
    ///
    /// Of each bucket at most as many postings are read as the budget has documents, and 1,024 at
    /// least, of each run and each piece of the index in memory: those of the documents that were
    /// inserted first, or in a table those from the fingerprint's own code on. Buckets that were not read
    /// to their end count less than those that were: they tell the documents apart less.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let page = store.sketch_text("404: there is no such page on this site")?;
    /// for _ in 0..10 {
    ///     store.append(&page)?;
    /// }
    /// let snapshot = store.snapshot()?;
    /// let matches = snapshot.query(&page).probe_budget(3).run()?;
    /// assert_eq!(matches.candidates(), 3);
    /// assert_eq!(matches.beyond_budget().map(|beyond| beyond.documents), Some(7));
    ///
    /// let all = snapshot.query(&page).probe_budget(10).run()?;
    /// assert_eq!(all.beyond_budget(), None); // within the budget: as without one
    /// assert_eq!(all, snapshot.query(&page).run()?);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn probe_budget(mut self, documents: u64) -> Self {
        self.budget = Some(documents);
        self
    }

    /// Verifies every candidate by `similarity`, those too whose estimate is not within the bounds:
    /// what it returns, 0 to 1, decides against the bound on the similarity and is what the match
    /// reports, which then [is exact](crate::Match::is_exact). Where it returns `None`, because the document
    /// is not at hand, the estimate decides. Distances are exact anyway. A pair is still found
    /// with the probability that its two share a bucket, [`Matches::recall`] at the bound.
    ///
    /// It is called once for each candidate, ascending by id, after they have all been read: they
    /// take up to 48 bytes of memory each (with a [`scan`](Self::scan): every document).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let stored = ["a b c d e f g h", "a b c d e f g h i"];
    /// for text in stored {
    ///     store.append(&store.sketch_text(text)?)?;
    /// }
    /// let page = store.sketch_text(stored[0])?;
    /// let snapshot = store.snapshot()?;
    /// let query = snapshot.query(&page).min_similarity(0.88);
    /// let matches = query.verify(|id| Ok(Some(if id.get() == 0 { 1.0 } else { 8.0 / 9.0 })));
    /// let matches = matches.run()?;
    /// assert_eq!(matches[0].similarity(), Some(1.0));
    /// assert!(matches.iter().all(|found| found.is_exact()));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn verify(mut self, similarity: impl Fn(DocumentId) -> Result<Option<f64>> + 'a) -> Self {
        self.verify = Some(Box::new(similarity));
        self
    }

    /// Answers the question.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for bounds outside the schema, for a budget of 0 and for one with a
    /// scan, [`Error::SignatureMismatch`] for a signature of another kind, [`Error::Corrupt`] and
    /// [`Error::Io`] if the file cannot be read; what the closure of [`verify`](Self::verify)
    /// returns, or [`Error::InvalidParameter`] if that is not 0 to 1.
    pub fn run(self) -> Result<Matches> {
        let context = self.source.context();
        context.check_signature(&self.signature)?;
        let bounds = self.bounds.resolve(&context.schema, self.scan)?;
        let budget = self.budget.map(Budget::new).transpose()?;
        if let Some(budget) = self.budget.filter(|_| self.scan) {
            let expected = "none: a scan compares with every document";
            return Err(Error::invalid("probe_budget", budget, expected));
        }
        let outside = Outside::default();
        let ask = self.verify.as_deref();
        let ask = ask.map(|verify| |id| outside.ask(|| verify(DocumentId::new(id))));
        let ask = ask.as_ref().map(|ask| ask as &Ask<'_>);
        let matches = context.run_checked(|| {
            let subject = Subject {
                signature: &self.signature,
                exclude: self.exclude,
            };
            if self.scan {
                subject.scan(self.source, &bounds, self.limit, ask)
            } else {
                subject.query(self.source, &bounds, self.limit, ask, budget)
            }
        });
        outside.leave();
        matches.inspect(|_| context.note_queries(1))
    }
}

impl Subject<'_> {
    /// Returns the matches among the candidates of the bounds' families, or among those within the budget.
    pub(crate) fn query(
        &self,
        source: &dyn ReadView,
        bounds: &ResolvedBounds,
        limit: usize,
        ask: Option<&Ask<'_>>,
        budget: Option<Budget>,
    ) -> Result<Matches> {
        let context = source.context();
        if !context.is_filed(self.signature) {
            return Ok(Matches::none(Scope::Candidates));
        }
        let asked = LaneProbe::all(context, self.signature, Families::from_bounds(bounds))?;
        let BudgetedCandidates { ids, beyond } = match budget {
            None => BudgetedCandidates {
                ids: all_of(source, &asked)?,
                beyond: None,
            },
            Some(budget) => {
                let buckets = read_first(source, &asked, budget.postings(), Begin::ExactCode)?;
                budget.choose(source, &asked, &buckets, self.exclude)?
            }
        };
        let accept = |scored: &Scored| ask.is_some() || scored.is_within(bounds);
        let (mut scored, compared) = self.compare_all(source, ids, Some(bounds), accept)?;
        if let Some(ask) = ask {
            settle(&mut scored, ask, bounds)?;
        }
        let mut matches = self.finish(source, scored, limit, Scope::Candidates, compared)?;
        matches.recall = bounds.recall;
        matches.set_beyond(beyond);
        Ok(matches)
    }

    /// Returns the best of the candidates of all families, however far.
    pub(crate) fn nearest(&self, source: &dyn ReadView, limit: usize) -> Result<Matches> {
        if !source.context().is_filed(self.signature) {
            return Ok(Matches::none(Scope::Candidates));
        }
        let (scored, compared) =
            self.compare_all(source, self.candidates(source)?, None, |_| true)?;
        self.finish(source, scored, limit, Scope::Candidates, compared)
    }

    /// Returns the ids of all documents that share a bucket, dead ones too, ascending.
    pub(crate) fn candidates(&self, source: &dyn ReadView) -> Result<Vec<u64>> {
        if !source.context().is_filed(self.signature) {
            return Ok(Vec::new());
        }
        let asked = LaneProbe::all(source.context(), self.signature, Families::ALL)?;
        all_of(source, &asked)
    }

    fn scan(
        &self,
        source: &dyn ReadView,
        bounds: &ResolvedBounds,
        limit: usize,
        ask: Option<&Ask<'_>>,
    ) -> Result<Matches> {
        if !source.context().is_filed(self.signature) {
            return Ok(Matches::none(Scope::Scan));
        }
        let shape = source.context().shape();
        let mut scored = Vec::new();
        let mut compared = 0;
        source.all_signature_rows(&mut |id, bytes| {
            let row = SignatureRow::decode(id, bytes, shape)?;
            if Some(id) != self.exclude {
                compared += 1;
                let score = self.score(source.context(), id, &row, None)?;
                scored.extend(score.filter(|s| ask.is_some() || s.is_within(bounds)));
            }
            Ok(())
        })?;
        if let Some(ask) = ask {
            settle(&mut scored, ask, bounds)?;
        }
        source.context().note_candidates(compared);
        source.context().reads.add_signatures(compared);
        self.finish(source, scored, limit, Scope::Scan, compared)
    }
}

/// Returns the candidates in these buckets, ascending.
fn all_of(source: &dyn ReadView, asked: &[LaneProbe]) -> Result<Vec<u64>> {
    let mut found = FoundIds::new();
    read_whole(source, asked, &mut found)?;
    Ok(found.into_ascending())
}

/// Returns the `limit` best of the documents that share a bucket with a signature, however far they are.
pub(crate) fn nearest(
    source: &dyn ReadView,
    signature: &Signature,
    limit: usize,
) -> Result<Matches> {
    let context = source.context();
    context.check_signature(signature)?;
    context
        .run_checked(|| Subject::new(signature).nearest(source, limit))
        .inspect(|_| context.note_queries(1))
}

/// Returns the live documents that share a bucket with a signature, not verified, ascending by id.
pub(crate) fn candidates(source: &dyn ReadView, signature: &Signature) -> Result<Vec<DocumentId>> {
    let context = source.context();
    context.check_signature(signature)?;
    context.run_checked(|| {
        let ids = Subject::new(signature).candidates(source)?;
        let mut live = Vec::with_capacity(ids.len());
        source.live_signatures(&ids, &mut |id, row: SignatureRow<'_>| {
            if row.is_empty() == signature.is_empty() {
                live.push(DocumentId::new(id));
            }
            Ok(())
        })?;
        context.note_candidates(live.len());
        context.note_queries(1);
        Ok(live)
    })
}
