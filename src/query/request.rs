//! Queries: candidates from the lanes, verified from the stored signatures.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use crate::error::{Error, Result};
use crate::invariant::{OrBug, at, at_mut};
use crate::query::bounds::{Bounds, SearchOptions};
use crate::query::candidates::{Budget, Candidate, CandidateSource, compare};
use crate::query::collect::Collector;
use crate::query::gate::{Gate, gated, leaves_out};
use crate::query::probe::Probe;
use crate::query::search::SearchSpec;
use crate::query::sweep::{Sweep, for_each_piece, in_threads};
use crate::query::verify::{Ask, Referee, Verify, asking};
use crate::read::ReadView;
use crate::state::SharedContext;
use crate::types::{DocumentId, Filter, Matches};
use resemblance_sketch::sketch::{EmptyDocuments, Signature};

/// The subject of a query: one signature or many.
///
/// A query for a [`Signature`] returns [`Matches`]. A query for a slice of signatures, or for
/// anything that can be borrowed as one, such as a `Vec` or an array, returns a `Vec` of
/// [`Matches`] in the same order.
///
/// ```
/// # use resemblance::{Matches, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// let snapshot = store.snapshot()?;
/// let one: Matches = snapshot.query(&page).run()?;
/// let many: Vec<Matches> = snapshot.query(&[page.clone(), page]).run()?;
/// assert_eq!(many, [one.clone(), one]);
/// # Ok::<(), resemblance::Error>(())
/// ```
pub trait OneOrMany: sealed::Sealed {
    /// The result type where each signature has one `T`: a `T` for one signature, a `Vec<T>` for
    /// many.
    type Each<T>;

    #[doc(hidden)]
    fn signatures(&self) -> &[Signature];
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Signature {}
    impl Sealed for [super::Signature] {}
    impl<const N: usize> Sealed for [super::Signature; N] {}
    impl Sealed for Vec<super::Signature> {}
    impl<Q: Sealed + ?Sized> Sealed for &Q {}
}

impl OneOrMany for Signature {
    type Each<T> = T;

    fn signatures(&self) -> &[Signature] {
        std::slice::from_ref(self)
    }
}

macro_rules! answered_together {
    ($many:ty $(, const $count:ident)?) => {
        impl$(<const $count: usize>)? OneOrMany for $many {
            type Each<T> = Vec<T>;

            fn signatures(&self) -> &[Signature] {
                self
            }
        }
    };
}
answered_together!([Signature]);
answered_together!([Signature; N], const N);
answered_together!(Vec<Signature>);

impl<Q: OneOrMany + ?Sized> OneOrMany for &Q {
    type Each<T> = Q::Each<T>;

    fn signatures(&self) -> &[Signature] {
        (**self).signatures()
    }
}

/// A query of a snapshot or a transaction for one signature or many. Set its options, then run it.
///
/// `A` is the type of the answer: [`Matches`], or a `Vec` of them in the order of the signatures.
/// Many signatures are answered together: no thread reads a block of a lane or a stored signature
/// twice.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// let store = Store::in_memory(schema)?;
/// let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
/// store.insert("first", &page)?;
/// let matches = store.snapshot()?.query(&page).min_similarity(0.9).limit(10).run()?;
/// assert_eq!(matches[0].key(), Some(&b"first"[..]));
/// assert_eq!(matches[0].similarity(), Some(1.0));
///
/// let more = [page.clone(), page];
/// let answers = store.snapshot()?.query(&more).min_similarity(0.9).run()?;
/// assert_eq!(answers.len(), 2);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "a query does nothing until it is run"]
pub struct Query<'a, A = Matches> {
    view: &'a dyn ReadView,
    signatures: Cow<'a, [Signature]>,
    options: SearchOptions,
    filter: Option<Filter<'a>>,
    verify: Option<Box<Verify<'a>>>,
    answer: PhantomData<A>,
}

impl<A> fmt::Debug for Query<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query")
            .field("signatures", &self.signatures.len())
            .field("options", &self.options)
            .field("filter", &self.filter)
            .field("verifies", &self.verify.is_some())
            .finish_non_exhaustive()
    }
}

impl<'a, A> Query<'a, A> {
    pub(crate) fn new(view: &'a dyn ReadView, signatures: Cow<'a, [Signature]>) -> Self {
        Self {
            view,
            signatures,
            options: SearchOptions::default(),
            filter: None,
            verify: None,
            answer: PhantomData,
        }
    }

    /// Replaces all options that were set before, for callers who keep them as data.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, SearchOptions, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # for key in ["a", "b"] {
    /// #     store.insert(key, &page)?;
    /// # }
    /// let mut options = SearchOptions::default();
    /// options.limit = Some(1);
    /// let matches = store.snapshot()?.query(&page).options(options).run()?;
    /// assert_eq!(matches.len(), 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn options(mut self, options: SearchOptions) -> Self {
        self.options = options;
        self
    }

    /// Replaces all bounds that were set before. [`min_similarity`](Self::min_similarity) and
    /// [`max_distance`](Self::max_distance) set one of them.
    ///
    /// ```
    /// # use resemblance::{Bounds, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # store.insert("a", &page)?;
    /// let bounds = Bounds::new().min_similarity(0.9); // the same ones for all that follows
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(snapshot.query(&page).bounds(bounds).run()?.len(), 1);
    /// assert_eq!(snapshot.pairs().bounds(bounds).run()?.count(), 0);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.options.bounds = bounds;
        self
    }

    /// See [`Bounds::min_similarity`].
    pub fn min_similarity(mut self, similarity: f64) -> Self {
        self.options.bounds.min_similarity = Some(similarity);
        self
    }

    /// See [`Bounds::max_distance`].
    ///
    /// ```
    /// # use resemblance::{Schema, Signature, SimHash, Store};
    /// let schema = Schema::builder().simhash(SimHash::bits64().max_distance(3)).build()?;
    /// let store = Store::in_memory(schema)?;
    /// store.insert("a", &Signature::from_simhash(0b1011))?;
    /// let snapshot = store.snapshot()?;
    /// let page = Signature::from_simhash(0b1000); // two bits differ
    /// assert_eq!(snapshot.query(&page).max_distance(2).run()?.len(), 1);
    /// assert_eq!(snapshot.query(&page).max_distance(1).run()?.len(), 0);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn max_distance(mut self, distance: u32) -> Self {
        self.options.bounds.max_distance = Some(distance);
        self
    }

    /// See [`Bounds::accept_lower_recall`].
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # store.insert("a", &page)?;
    /// let snapshot = store.snapshot()?;
    /// assert!(snapshot.query(&page).min_similarity(0.5).run().is_err()); // the bands were made for 0.8
    /// let matches = snapshot.query(&page).min_similarity(0.5).accept_lower_recall().run()?;
    /// assert!(matches.len() == 1 && matches.recall() < Some(0.95));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn accept_lower_recall(mut self) -> Self {
        self.options.bounds.accept_lower_recall = true;
        self
    }

    /// See [`Bounds::margin`].
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let answer = store.snapshot()?.query(&page).margin(2.0).run()?;
    /// assert_eq!(answer.certainty().about(), Some("truth"));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn margin(mut self, deviations: f64) -> Self {
        self.options.bounds.margin = deviations;
        self
    }

    /// Returns only the best matches for each signature, at most this number. Default: all.
    pub fn limit(mut self, limit: usize) -> Self {
        self.options.limit = Some(limit);
        self
    }

    /// Gives each match the payload of its document, up to 64 MiB each: see
    /// [`Match::payload`](crate::Match::payload). Keys and stamps are always returned.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
    /// store.insert(("first", "a title"), &page)?;
    /// let matches = store.snapshot()?.query(&page).with_payloads().run()?;
    /// assert_eq!(matches[0].payload(), Some(&b"a title"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn with_payloads(mut self) -> Self {
        self.options.with_payloads = true;
        self
    }

    /// Compares at most this number of the documents that share a bucket with the signature: the
    /// documents that share the most buckets with it, and among equals the earliest inserted.
    /// Default: no limit. A budget bounds the cost of a query if buckets are large, and it can
    /// change the answer: [`Matches::budget_exceeded`] then reports it. A query with a budget never
    /// chooses to compare with every document.
    ///
    /// From each run and each piece of the index in memory, a query reads at most as many postings
    /// of a bucket as the budget has documents, but at least 1,024. It reads the postings of the
    /// documents that were inserted first or, in a table, those nearest after the fingerprint's
    /// code. Buckets that were not read to the end count less, because they distinguish the
    /// documents less. Documents that do not pass a [`filter`](Self::filter) do not count.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let page = store.sketch_text("404: there is no such page on this site")?;
    /// for _ in 0..10 {
    ///     store.insert(Document::without_key(), &page)?;
    /// }
    /// let snapshot = store.snapshot()?;
    /// let matches = snapshot.query(&page).probe_budget(3).run()?;
    /// assert_eq!(matches.candidates(), 3);
    /// assert_eq!(matches.budget_exceeded().map(|beyond| beyond.documents), Some(7));
    ///
    /// let all = snapshot.query(&page).probe_budget(10).run()?;
    /// assert_eq!(all.budget_exceeded(), None); // within the budget: as without one
    /// assert_eq!(all, snapshot.query(&page).run()?);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn probe_budget(mut self, documents: u64) -> Self {
        self.options.probe_budget = Some(documents);
        self
    }

    /// Leaves out one document, such as the document of the signature itself if it is stored.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?)?;
    /// for key in ["a", "b"] {
    ///     store.insert(key, &store.sketch_text("one and the same text")?)?;
    /// }
    /// let snapshot = store.snapshot()?;
    /// let record = snapshot.get("a")?.unwrap();
    /// let others = snapshot.query(record.signature()).excluding(record.id()).run()?;
    /// assert_eq!((others.len(), others[0].key()), (1, Some(&b"b"[..])));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn excluding(mut self, id: DocumentId) -> Self {
        self.options.exclude = Some(id);
        self
    }

    /// Asks only about documents that pass a filter: see [`Filter`].
    ///
    /// ```
    /// # use resemblance::{Filter, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// for key in ["a/1", "a/2", "b/1"] {
    ///     store.insert(key, &page)?;
    /// }
    /// let filter = Filter::all().key_prefix("b/");
    /// let matches = store.snapshot()?.query(&page).filter(filter).limit(1).run()?;
    /// assert_eq!(matches[0].key(), Some(&b"b/1"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn filter(mut self, filter: Filter<'a>) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Compares with every document. The answer is complete for any bounds, but the query is slow.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(128)).build()?)?;
    /// store.insert("a", &store.sketch_text("one two three four")?)?;
    /// let page = store.sketch_text("four five six seven eight")?;
    /// let matches = store.snapshot()?.query(&page).min_similarity(0.0).scan().run()?;
    /// assert_eq!((matches.len(), matches.recall()), (1, None)); // none is missed
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn scan(mut self) -> Self {
        self.options.scan = Some(true);
        self
    }

    /// Runs a search that is made of this query, where a panic of the caller is not treated as damage.
    fn search<T>(&self, run: impl FnOnce(&SearchSpec<'_>) -> Result<T>) -> Result<T> {
        let (context, options) = (self.view.context(), &self.options);
        options.check_threads()?;
        check_signatures(context, &self.signatures)?;
        let scans = options.scan == Some(true);
        let bounds = options.bounds.resolve(&context.schema, scans)?;
        let budget = options.probe_budget.map(Budget::new).transpose()?;
        if let Some(budget) = options.probe_budget.filter(|_| scans) {
            let expected = "none: a scan compares with every document";
            return Err(Error::invalid("probe_budget", budget, expected));
        }
        let ask = |gate: Option<&Gate<'_>>, verify: Option<&Ask<'_>>| {
            let spec = SearchSpec {
                gate,
                bounds: Some(&bounds),
                budget,
                exclude: options.exclude.map(DocumentId::get),
                referee: Referee::of(self.view, verify),
                with_payloads: options.with_payloads,
                ..SearchSpec::new(self.view, Collector::up_to(options.limit))
            };
            context.run_checked(|| run(&spec))
        };
        let answer = asking(self.verify.as_deref(), |verify| {
            gated(self.filter.as_ref(), |gate| ask(gate, verify))
        });
        answer.inspect(|_| context.note_queries(self.signatures.len()))
    }

    fn all_candidates(&self) -> Result<Vec<Vec<DocumentId>>> {
        let (context, options) = (self.view.context(), &self.options);
        options.check_threads()?;
        check_signatures(context, &self.signatures)?;
        let signatures: Vec<&Signature> = self.signatures.iter().collect();
        let answers = gated(self.filter.as_ref(), |gate| {
            let find = |view: &dyn ReadView, part: &[&Signature]| {
                let spec = SearchSpec {
                    gate,
                    exclude: options.exclude.map(DocumentId::get),
                    ..SearchSpec::new(view, Collector::up_to(None))
                };
                candidates_of(&spec, part)
            };
            context.run_checked(|| match self.view.shared() {
                Some(view) => in_threads(&signatures, options.threads, |part| find(view, part)),
                None => find(self.view, &signatures),
            })
        });
        answers.inspect(|_| context.note_queries(signatures.len()))
    }
}

impl<'a> Query<'a> {
    /// Verifies every candidate by `similarity`, including those whose estimate is not within the
    /// bounds. The value that it returns, 0 to 1, is compared with the bound on the similarity, and
    /// the match reports it as [exact](crate::Match::is_exact). If it returns `None`, because the
    /// document is unavailable, the estimate decides. Distances are always exact. A pair is still
    /// found with the probability that its two documents share a bucket, [`Matches::recall`] at the
    /// bound.
    ///
    /// The closure is called once for each candidate, ascending by id, after all candidates have
    /// been read. Each candidate takes up to 48 bytes of memory; with a [`scan`](Self::scan), every
    /// document is a candidate.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?)?;
    /// let stored = ["a b c d e f g h", "a b c d e f g h i"];
    /// for text in stored {
    ///     store.insert(Document::without_key(), &store.sketch_text(text)?)?;
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
        self.verify = Some(Box::new(move |_, id| similarity(id)));
        self
    }

    /// Runs the query.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for bounds outside the schema, for a budget of 0 and for one
    /// with a scan; [`Error::SignatureMismatch`] for a signature of another kind;
    /// [`Error::Corrupt`] and [`Error::Io`] if the file cannot be read; any error of the closure of
    /// [`verify`](Self::verify), or [`Error::InvalidParameter`] if it returns a value outside 0 to
    /// 1.
    pub fn run(self) -> Result<Matches> {
        self.search(|spec| spec.answer(self.options.scan, at(&self.signatures, 0)?))
    }

    /// Returns the documents that share a bucket with the signature, ascending by id, without
    /// comparing them with it. Only [`filter`](Self::filter) and [`excluding`](Self::excluding)
    /// have an effect. Without a filter, it reads no row of a document that is in a run.
    ///
    /// The code of a bucket has at most [`code_bits`](crate::schema::MinHashSchema::code_bits)
    /// bits, so documents whose values in a band differ may share a bucket. In a band of more than
    /// two rows, 16 bits are for the rows after the first two. One in 65,536 documents that agree
    /// only in the first two rows is therefore returned too. To get only documents that agree in a
    /// whole band, compare the band's values.
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run).
    ///
    /// ```
    /// # use resemblance::{Filter, MinHash, Schema, Store, Text};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// let store = Store::in_memory(schema)?;
    /// let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
    /// let (a, b) = (store.insert("a", &page)?, store.insert("b", &page)?);
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(snapshot.query(&page).candidates()?, [a, b]);
    /// let filter = Filter::all().key_prefix("b");
    /// assert_eq!(snapshot.query(&page).filter(filter).candidates()?, [b]);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn candidates(self) -> Result<Vec<DocumentId>> {
        let mut all = self.all_candidates()?;
        all.pop().or_bug("what was found for a signature")
    }
}

impl<'a> Query<'a, Vec<Matches>> {
    /// Verifies every candidate as [`Query::verify`](Query::<Matches>::verify) does, but the
    /// closure also receives the index of the query's signature.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
    /// store.insert(Document::without_key(), &page)?;
    /// let (snapshot, pages) = (store.snapshot()?, [page.clone(), page]);
    /// let answers = snapshot.query(&pages).verify(|index, _| Ok(Some(index as f64))).run()?;
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

    /// Sets the maximum number of threads that answer, 1 to 1,024; small batches use fewer. The
    /// answers are the same for any number. Queries of a transaction, and queries with
    /// [`verify`](Self::verify), run only on the calling thread. Default: the number of threads
    /// that the machine runs at once.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
    /// let (snapshot, pages) = (store.snapshot()?, vec![page; 2_000]);
    /// let answers = snapshot.query(&pages).threads(4).run()?;
    /// assert_eq!(answers, snapshot.query(&pages).threads(1).run()?);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = Some(threads);
        self
    }

    /// Runs the query for each signature, in their order.
    ///
    /// # Errors
    ///
    /// The same as for [one signature](Query::<Matches>::run). The error for a signature of another
    /// kind contains its index. [`Error::InvalidParameter`] for a number of
    /// [`threads`](Self::threads) out of range.
    pub fn run(self) -> Result<Vec<Matches>> {
        let (scan, threads) = (self.options.scan, self.options.threads);
        let signatures: Vec<&Signature> = self.signatures.iter().collect();
        self.search(|spec| spec.answer_many(scan, &signatures, threads))
    }

    /// Returns the [candidates](Query::<Matches>::candidates) of each signature, in their order.
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
    /// let id = store.insert("a", &page)?;
    /// let pages = [page.clone(), page];
    /// assert_eq!(store.snapshot()?.query(&pages).candidates()?, [[id], [id]]);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn candidates(self) -> Result<Vec<Vec<DocumentId>>> {
        self.all_candidates()
    }
}

/// Returns the live documents that share a bucket with each signature, not compared, ascending by
/// id.
fn candidates_of(spec: &SearchSpec<'_>, signatures: &[&Signature]) -> Result<Vec<Vec<DocumentId>>> {
    if let [signature] = signatures {
        let plan = spec.plan([*signature])?;
        let all = Probe::new(spec.view, &plan, None, spec.exclude).all()?;
        let found = all.or_bug("the candidates of a signature")?;
        return live(spec, signatures, &found.list);
    }
    let mut answers = Vec::with_capacity(signatures.len());
    for_each_piece(signatures, |piece| {
        let mut plan = spec.plan(piece.iter().copied())?;
        let Some(all) = Sweep::new(spec.view, &mut plan, None, spec.exclude).all()? else {
            return Ok(false);
        };
        answers.append(&mut live(spec, piece, &all.list)?);
        Ok(true)
    })?;
    Ok(answers)
}

/// Returns the live documents of a list, for each signature. Without a filter, no row is read of a
/// document that has been flushed: its posting shows that it was indexed, and the tombstones
/// whether it is deleted.
fn live(
    spec: &SearchSpec<'_>,
    signatures: &[&Signature],
    list: &[Candidate],
) -> Result<Vec<Vec<DocumentId>>> {
    let (view, gate) = (spec.view, spec.gate);
    let context = view.context();
    let mut live = vec![Vec::new(); signatures.len()];
    let mut add = |candidate: &Candidate, is_empty: bool| {
        let query_index = candidate.query_index as usize;
        if is_empty == at(signatures, query_index)?.is_empty() {
            at_mut(&mut live, query_index)?.push(DocumentId::new(candidate.id));
        }
        Ok(())
    };
    // Where documents without features are indexed, too, only a row shows which has none.
    let flushed_below = match context.schema.empty_documents() == EmptyDocuments::Distinct {
        true => view.flushed_below(),
        false => 0,
    };
    let flushed = list.partition_point(|candidate| candidate.id < flushed_below);
    let (flushed, others) = list.split_at(flushed);
    let mut found = 0;
    for candidate in flushed {
        if !leaves_out(view, gate, candidate.id)? {
            add(candidate, false)?;
            found += 1;
        }
    }
    context.note_candidates(found);
    compare(view, gate, others, &mut |candidate, row| {
        add(&candidate, row.is_empty())
    })?;
    Ok(live)
}

/// Refuses a signature of another kind, by its index if there are several.
pub(super) fn check_signatures(context: &SharedContext, signatures: &[Signature]) -> Result<()> {
    if let [signature] = signatures {
        return context.check_signature(signature);
    }
    let mut checks = signatures.iter().enumerate();
    checks.try_for_each(|(index, signature)| {
        let checked = context.check_signature(signature);
        checked.map_err(|error| in_batch(error, index))
    })
}

/// Adds the index of the wrong document of a batch to an error.
pub(crate) fn in_batch(error: Error, index: usize) -> Error {
    let of = |found| format!("{found}, at index {index} of the batch");
    match error {
        Error::InvalidParameter {
            parameter,
            found,
            expected,
        } => Error::InvalidParameter {
            parameter,
            found: of(found),
            expected,
        },
        Error::SignatureMismatch {
            part,
            found,
            expected,
        } => Error::SignatureMismatch {
            part,
            found: of(found),
            expected,
        },
        other => other,
    }
}
