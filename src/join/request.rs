//! Joins: the settings of a search for pairs or clusters, before it is run.

use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Result;
use crate::invariant::{OrBug, invariant};
use crate::join::clusters::Clusters;
use crate::join::estimate::{JoinEstimate, estimate};
use crate::join::pairs::Pairs;
use crate::join::source::JoinSource;
use crate::join::verify::PairSimilarity;
use crate::query::{Bounds, SearchOptions, gated};
use crate::state::Tombstones;
use crate::types::{DocumentId, Filter, Progress, Record, Watch};
use resemblance_sketch::Schema;

#[cfg(doc)]
use crate::error::Error;

/// A search of a whole snapshot for its near [pairs](Pairs), or for the [clusters](Clusters) that
/// they form. Set its options, then run it. `A` is the type of the answer.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// for key in ["a", "b", "c"] {
///     store.insert(key, &store.sketch_text("the same text under three keys")?)?;
/// }
/// let snapshot = store.snapshot()?;
/// let pairs = snapshot.pairs().min_similarity(0.9).threads(2).run()?;
/// assert_eq!(pairs.count(), 3);
/// let clusters: Vec<_> = snapshot.clusters().run()?.collect();
/// assert_eq!(clusters[0].len(), 3);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "a join does nothing until it is run"]
pub struct Join<'a, A> {
    pub(super) source: Arc<dyn JoinSource>,
    pub(super) options: SearchOptions,
    filter: Option<Filter<'a>>,
    /// Documents that pass the filter and take no part all the same.
    left_out: Vec<DocumentId>,
    pub(super) verify: Option<Arc<PairSimilarity>>,
    on_progress: Option<Box<OnProgress<'a>>>,
    answer: PhantomData<fn() -> A>,
}

/// The documents of a [`Join`], whether or not they pass its filter. Cheap to clone.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # let store = Store::in_memory(schema)?;
/// store.insert("a", &store.sketch_text("some text or other")?)?;
/// let join = store.snapshot()?.pairs();
/// for id in join.ids()? {
///     let record = join.documents().get_id(id)?.expect("it is joined");
///     assert_eq!(record.key(), Some(&b"a"[..]));
/// }
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone)]
pub struct JoinedDocuments(Arc<dyn JoinSource>);

impl fmt::Debug for JoinedDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinedDocuments")
            .field("documents", &self.0.len())
            .finish_non_exhaustive()
    }
}

impl JoinedDocuments {
    /// Returns the document with an id, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// The errors of [`Snapshot::get_id`](crate::Snapshot::get_id).
    pub fn get_id(&self, id: DocumentId) -> Result<Option<Record>> {
        self.0.record(id.get())
    }

    /// Returns the exact similarity of two documents, or `None` unless the schema is
    /// [exact](Schema::is_exact).
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`](crate::Error::Corrupt) and [`Error::Io`](crate::Error::Io) if the file cannot
    /// be read, and [`Error::Bug`](crate::Error::Bug) for an id that is not joined.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).exact().build()?;
    /// let store = Store::in_memory(schema)?;
    /// let a = store.insert("a", &store.sketch_text("to be or not")?)?;
    /// let b = store.insert("b", &store.sketch_text("to be or else")?)?;
    /// let documents = store.snapshot()?.pairs().documents();
    /// assert_eq!(documents.exact_similarity(a, b)?, Some(3.0 / 5.0));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn exact_similarity(&self, a: DocumentId, b: DocumentId) -> Result<Option<f64>> {
        self.0.set_similarity(a.get(), b.get(), 0.0)
    }

    /// Returns the schema of the documents.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let documents = store.snapshot()?.pairs().documents();
    /// assert_eq!(documents.schema(), store.schema());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn schema(&self) -> &Schema {
        &self.0.context().schema
    }
}

type OnProgress<'a> = dyn FnMut(Progress) -> ControlFlow<()> + Send + 'a;

impl<A> fmt::Debug for Join<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Join")
            .field("options", &self.options)
            .field("filter", &self.filter)
            .field("verifies", &self.verify.is_some())
            .finish_non_exhaustive()
    }
}

impl<'a, A> Join<'a, A> {
    pub(crate) fn new(source: Arc<dyn JoinSource>) -> Self {
        Self {
            source,
            options: SearchOptions::default(),
            filter: None,
            left_out: Vec::new(),
            verify: None,
            on_progress: None,
            answer: PhantomData,
        }
    }

    /// Returns the joined documents: see [`JoinedDocuments`].
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let id = store.insert("a", &store.sketch_text("some text or other")?)?;
    /// let documents = store.snapshot()?.pairs().documents();
    /// assert_eq!(documents.get_id(id)?.unwrap().key(), Some(&b"a"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn documents(&self) -> JoinedDocuments {
        JoinedDocuments(Arc::clone(&self.source))
    }

    /// Returns the ids of the documents that take part, ascending: those that pass the filter.
    ///
    /// ```
    /// # use resemblance::{Document, Filter, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let old = store.insert(Document::new("a").stamp(1), &page)?;
    /// let new = store.insert(Document::new("b").stamp(2), &page)?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(snapshot.pairs().ids()?, [old, new]);
    /// assert_eq!(snapshot.pairs().filter(Filter::all().newer_than(2)).ids()?, [new]);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] and [`Error::Io`] if the file cannot be read.
    pub fn ids(&self) -> Result<Vec<DocumentId>> {
        let (live, hidden) = (self.source.live()?, self.hidden()?);
        let joined = live.ids().filter(|id| !hidden.contains(*id));
        Ok(joined.map(DocumentId::new).collect())
    }

    /// Leaves out some of the documents that take part.
    #[doc(hidden)]
    pub fn without(mut self, ids: impl Iterator<Item = DocumentId>) -> Self {
        self.left_out.extend(ids);
        self
    }

    /// Returns the bounds that were set.
    #[doc(hidden)]
    pub fn given_bounds(&self) -> Bounds {
        self.options.bounds
    }

    /// Returns the minimum similarity of the pairs that the join returns. It is 0 if the bounds do
    /// not limit the similarity, or if they are invalid, which running the join reports.
    #[doc(hidden)]
    pub fn similarity_floor(&self) -> f64 {
        let bounds = self.options.bounds;
        let resolved = bounds.resolve(&self.source.context().schema, false);
        resolved.map_or(0.0, |bounds| bounds.similarity_floor())
    }

    /// Replaces the bounds and the number of threads that were set before: see [`SearchOptions`].
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, SearchOptions, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # for key in ["a", "b"] {
    /// #     store.insert(key, &page)?;
    /// # }
    /// let mut options = SearchOptions::default();
    /// options.threads = Some(2);
    /// assert_eq!(store.snapshot()?.pairs().options(options).run()?.count(), 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn options(mut self, options: SearchOptions) -> Self {
        self.options = options;
        self
    }

    /// Replaces all bounds that were set before.
    ///
    /// ```
    /// # use resemblance::{Bounds, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let bounds = Bounds::new().min_similarity(0.9);
    /// assert_eq!(store.snapshot()?.clusters().bounds(bounds).run()?.count(), 0);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.options.bounds = bounds;
        self
    }

    /// Joins only documents that pass a filter: see [`Filter`]. The others take no part: they are in
    /// no pair and link no cluster. The search first reads the rows of all documents, without their
    /// signatures.
    ///
    /// ```
    /// # use resemblance::{Document, Filter, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// for (key, stamp) in [("a", 1), ("b", 2), ("c", 3)] {
    ///     let signature = store.sketch_text("the same text under three keys")?;
    ///     store.insert(Document::new(key).stamp(stamp), &signature)?;
    /// }
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(snapshot.pairs().filter(Filter::all().newer_than(2)).run()?.count(), 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn filter(mut self, filter: Filter<'a>) -> Self {
        self.filter = Some(filter);
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
    /// # use resemblance::{MinHash, Schema, SimHash, Store, Text};
    /// # let (minhash, simhash) = (MinHash::new(64), SimHash::bits64());
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(minhash).simhash(simhash).build()?;
    /// # let store = Store::in_memory(schema)?;
    /// for key in ["a", "b"] {
    ///     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
    /// }
    /// let mut pairs = store.snapshot()?.pairs().max_distance(2).run()?;
    /// assert_eq!(pairs.next().unwrap()?.distance, Some(0));
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
    /// # for key in ["a", "b"] {
    /// #     store.insert(key, &page)?;
    /// # }
    /// let pairs = store.snapshot()?.pairs().min_similarity(0.5); // the bands were made for 0.8
    /// assert_eq!(pairs.accept_lower_recall().run()?.count(), 1);
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
    /// let pairs = store.snapshot()?.pairs().margin(2.0).run()?;
    /// assert_eq!(pairs.certainty().about(), Some("truth"));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn margin(mut self, deviations: f64) -> Self {
        self.options.bounds.margin = deviations;
        self
    }

    /// Sets the memory for signatures, in bytes. Default: 64 MiB. If the signatures of all
    /// documents that share a bucket with another document fit, each is read once. Otherwise they
    /// are read in batches, some of them repeatedly. A batch takes up to 64 MiB whatever this
    /// setting is. The setting does not change the result.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let join = store.snapshot()?.pairs().memory_bytes(1 << 30);
    /// assert_eq!(join.run()?.count(), 0);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.options.memory_bytes = Some(bytes);
        self
    }

    /// Sets the number of threads that read and compare signatures, 1 to 1,024. Default: one. The
    /// result and its order are the same for any number.
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = Some(threads);
        self
    }

    /// Limits the work on large buckets, and so may miss pairs. Default: no limit.
    ///
    /// A bucket of m documents has m² / 2 pairs, which may be too many if texts share much
    /// boilerplate. `signatures` is the maximum number of different signatures, at least 1. If a
    /// bucket has more, the first `signatures` of them by insertion are compared with all others,
    /// but the others are not compared with each other in this bucket. The pairs that are left out
    /// are counted: see [`LeftOut`](crate::search::LeftOut). Documents with the same signature
    /// count as one, and are always found. If pairs are verified, documents with the same signature
    /// are not assumed to be near-duplicates: each pair of them is verified, and so is each pair of
    /// documents whose signatures are compared.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// for key in ["a", "b"] {
    ///     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
    /// }
    /// let mut pairs = store.snapshot()?.pairs().max_bucket(1_000).run()?;
    /// assert_eq!(pairs.by_ref().count(), 1);
    /// assert!(pairs.left_out().is_empty()); // so no pair is missing for that
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn max_bucket(mut self, signatures: usize) -> Self {
        self.options.max_bucket = Some(signatures);
        self
    }

    /// Verifies every candidate, including those whose estimate is not within the bounds:
    /// `similarity` returns the similarity of two documents, 0 to 1, which is compared with the
    /// bound. The pair reports it as exact. If the closure returns `None`, because one of the
    /// documents is unavailable, the estimate decides. Distances are always exact. A pair is still
    /// found with the probability that its two documents share a bucket: see
    /// [`MinHashSchema::probability`](crate::schema::MinHashSchema::probability).
    ///
    /// The join calls the closure once for each pair of documents that share a bucket, with the
    /// earlier one first, from all of its threads. The pairs and their order are the same for any
    /// number of threads. Equal signatures are not treated as equal documents, so m copies mean m²
    /// / 2 calls for pairs. For clusters they mean only about m calls, because two documents that
    /// are known to be in one cluster are not verified. Candidates take about 2 MB of memory.
    ///
    /// An error of the closure ends the join, and so does [`Error::InvalidParameter`] for a value
    /// outside 0 to 1. A panic of the closure continues through the join.
    ///
    /// ```
    /// # use resemblance::{Document, DocumentId, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?)?;
    /// let texts = ["a b c d e f g h i", "b c d e f g h i a"];
    /// let features = texts.map(|text| store.sketcher().feature_hashes(text).unwrap());
    /// for text in texts {
    ///     store.insert(Document::without_key(), &store.sketch_text(text)?)?; // ids 0 and 1
    /// }
    /// let exact = move |a: DocumentId, b: DocumentId| {
    ///     let (a, b) = (&features[a.get() as usize], &features[b.get() as usize]);
    ///     let both = a.iter().filter(|hash| b.contains(hash)).count();
    ///     Ok(Some(both as f64 / (a.len() + b.len() - both) as f64))
    /// };
    /// let mut pairs = store.snapshot()?.pairs().verify(exact).run()?;
    /// let pair = pairs.next().unwrap()?;
    /// assert_eq!((pair.similarity, pair.is_exact), (Some(1.0), true));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn verify(
        mut self,
        similarity: impl Fn(DocumentId, DocumentId) -> Result<Option<f64>> + Send + Sync + 'static,
    ) -> Self {
        self.verify = Some(Arc::new(similarity));
        self
    }

    /// Estimates the cost of this join without a verification, from the sizes of the lanes and a
    /// sample of their buckets: the first 262,144 postings of the first band and of the first
    /// table. This takes well under a second, and with a filter the time to read all rows.
    ///
    /// # Errors
    ///
    /// The errors of `run`.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # for key in ["a", "b"] {
    /// #     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
    /// # }
    /// let expected = store.snapshot()?.pairs().estimate()?;
    /// assert_eq!((expected.documents, expected.pairs), (2, 1));
    /// assert!(expected.seconds < 1.0);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn estimate(&self) -> Result<JoinEstimate> {
        estimate(&self.source, self.options, self.hidden()?)
    }

    /// Returns the documents that take no part.
    fn hidden(&self) -> Result<Tombstones> {
        let source = &self.source;
        let mut hidden = gated(self.filter.as_ref(), |gate| match gate {
            Some(gate) => source.context().run_checked(|| source.hidden(gate)),
            None => Ok(Tombstones::default()),
        })?;
        for id in &self.left_out {
            invariant!(
                !hidden.contains(id.get()),
                "document {id} is left out twice"
            );
            hidden.insert(id.get());
        }
        Ok(hidden)
    }
}

impl<A> Join<'_, A> {
    /// Returns the similarity that replaces the estimate: the caller's, or that of the sets of an
    /// exact store if the caller's is unknown. Notes whether both are.
    fn verification(&self, has_unknown: &Arc<AtomicBool>) -> Option<Arc<PairSimilarity>> {
        let (source, verify) = (Arc::clone(&self.source), self.verify.clone());
        if verify.is_none() && source.context().exact.is_none() {
            return None;
        }
        let floor = self.similarity_floor();
        let has_unknown = Arc::clone(has_unknown);
        Some(Arc::new(move |a, b| {
            let known = match verify.as_ref().map_or(Ok(None), |verify| verify(a, b))? {
                Some(similarity) => Some(similarity),
                None => source.set_similarity(a.get(), b.get(), floor)?,
            };
            if known.is_none() {
                has_unknown.store(true, Ordering::Relaxed);
            }
            Ok(known)
        }))
    }
}

impl Join<'_, Pairs> {
    /// Begins the search. The pairs are found while they are iterated over.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for bounds outside the schema and for an option out of its
    /// range; if the file cannot be read, the iterator returns an error and ends.
    pub fn run(self) -> Result<Pairs> {
        let hidden = self.hidden()?;
        let pairs = Pairs::new(Arc::clone(&self.source), self.options, false)?.without(hidden);
        let for_caller = self.verify.is_some();
        let verify = self.verification(&pairs.has_unknown);
        Ok(match verify {
            Some(verify) => pairs.verified(verify, for_caller),
            None => pairs,
        })
    }
}

impl<'a> Join<'a, Clusters> {
    /// Sets the callback that receives the progress, and may stop the search: see [`Progress`]. For
    /// pairs, [`Pairs::lanes_read`] reports the progress.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// use std::ops::ControlFlow;
    /// let join = store.snapshot()?.clusters().on_progress(|progress| {
    ///     eprintln!("{progress}");
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(join.run()?.count(), 0);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn on_progress(
        mut self,
        callback: impl FnMut(Progress) -> ControlFlow<()> + Send + 'a,
    ) -> Self {
        self.on_progress = Some(Box::new(callback));
        self
    }

    /// Returns the same join for all pairs, and the progress callback.
    #[doc(hidden)]
    pub fn into_pairs(self) -> (Join<'a, Pairs>, Watch<'a>) {
        let watch = watch("the search for duplicates", self.on_progress);
        let pairs = Join {
            source: self.source,
            options: self.options,
            filter: self.filter,
            left_out: self.left_out,
            verify: self.verify,
            on_progress: None,
            answer: PhantomData,
        };
        (pairs, watch)
    }

    /// Finds the clusters.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for bounds outside the schema and for an option out of its range;
    /// [`Error::Corrupt`] and [`Error::Io`] if the file cannot be read; any error of the closure;
    /// [`Error::Stopped`] if the progress callback stops the search.
    pub fn run(self) -> Result<Clusters> {
        let (has_unknown, hidden) = (Arc::default(), self.hidden()?);
        let for_caller = self.verify.is_some();
        let verify = self.verification(&has_unknown);
        let watch = watch("the search for clusters", self.on_progress);
        let documents = self.source.len().checked_sub(hidden.len());
        let documents = documents.or_bug("more documents are hidden than there are")?;
        let mut pairs = Pairs::new(self.source, self.options, verify.is_none())?.without(hidden);
        pairs.has_unknown = has_unknown;
        watch.run(|watch| match verify {
            Some(verify) => {
                let candidates = pairs.unverified(for_caller);
                Clusters::from_verified(candidates, verify, documents, watch)
            }
            None => Clusters::from_pairs(pairs, documents, watch),
        })
    }
}

fn watch<'a>(work: &'static str, on_progress: Option<Box<OnProgress<'a>>>) -> Watch<'a> {
    let mut watch = Watch::new(work);
    if let Some(callback) = on_progress {
        watch.set(callback);
    }
    watch
}
