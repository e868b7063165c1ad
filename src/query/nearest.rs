//! Searches for the nearest documents, however far they are.

use std::fmt;
use std::marker::PhantomData;

use crate::error::{Error, Result};
use crate::invariant::OrBug;
use crate::query::bounds::{Family, SearchOptions};
use crate::query::collect::Collector;
use crate::query::gate::{Gate, gated};
use crate::query::plan::Families;
use crate::query::request::check_signatures;
use crate::query::score::Order;
use crate::query::search::SearchSpec;
use crate::query::stages::{NearestGoal, StagedSearch};
use crate::query::verify::{Ask, Referee, Verify, asking};
use crate::read::ReadView;
use crate::types::{DocumentId, Filter, Matches};
use resemblance_sketch::sketch::Signature;

const DEFAULT_MIN_RECALL: f64 = 0.9;

/// A search for the documents that are nearest to a signature, or to each of many.
/// [`Snapshot::nearest`](crate::Snapshot::nearest) and related methods create it; configure it,
/// then run it.
///
/// `A` is the type of the answer: [`Matches`], or a `Vec` of them in the order of the signatures.
/// Many signatures share the scan.
///
/// The search runs stage by stage until documents as near as the last one that it returns are found
/// with the probability [`min_recall`](Self::min_recall):
///
/// 1. the buckets of a [query](crate::Snapshot::query);
/// 2. [short buckets](crate::search::Scope::ShortBuckets): the documents that share the first two
///    rows of a band, or the first blocks of a table's prefix. The stage uses the same lanes, so it
///    takes no space on disk. It is skipped if it would have to look up more than a sixteenth of
///    the store;
/// 3. a [scan](crate::search::Scope::Scan) of all signatures, which finds the `n` nearest by their
///    signatures; in an [exact](crate::SchemaBuilder::exact) store, by their sets.
///
/// Documents without features have no distance from others: they are not returned. For a signature
/// without features nothing is returned or, if the schema makes such documents
/// [alike](crate::schema::EmptyDocuments::Alike), these alone.
///
/// Estimates decide unless the store is exact or you [verify](Self::verify): a document that is truly
/// nearer may have a lower estimate. [`Matches::certainty`] states what is certain.
///
/// ```
/// # use resemblance::{Family, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(128)).build()?)?;
/// for text in ["a b c d e f g h", "a b c d w x y z", "s t u v w x y z"] {
///     store.insert(text, &store.sketch_text(text)?)?;
/// }
/// let page = store.sketch_text("a b c d e f g i")?;
/// let nearest = store.snapshot()?.nearest(&page, 2).run()?;
/// let keys: Vec<_> = nearest.iter().filter_map(|found| found.key_str()).collect();
/// assert_eq!(keys, ["a b c d e f g h", "a b c d w x y z"]);
/// assert!(nearest.recall() >= Some(0.9));
///
/// // Certainly the nearest by their MinHash values.
/// let snapshot = store.snapshot()?;
/// let nearest = snapshot.nearest(&page, 2).by(Family::MinHash).min_recall(1.0).run()?;
/// assert_eq!(nearest.recall(), Some(1.0));
/// // As many as buckets hold, and their payloads.
/// let nearest = snapshot.nearest(&page, 3).without_scan().with_payloads().run()?;
/// assert_eq!(nearest[0].payload(), Some(&[][..]));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "a question does nothing until it is run"]
pub struct Nearest<'a, A = Matches> {
    view: &'a dyn ReadView,
    signatures: &'a [Signature],
    n: usize,
    options: SearchOptions,
    filter: Option<Filter<'a>>,
    verify: Option<Box<Verify<'a>>>,
    answer: PhantomData<A>,
}

impl<A> fmt::Debug for Nearest<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nearest")
            .field("signatures", &self.signatures.len())
            .field("n", &self.n)
            .field("options", &self.options)
            .field("filter", &self.filter)
            .field("verifies", &self.verify.is_some())
            .finish_non_exhaustive()
    }
}

impl<'a, A> Nearest<'a, A> {
    pub(crate) fn new(view: &'a dyn ReadView, signatures: &'a [Signature], n: usize) -> Self {
        Self {
            view,
            signatures,
            n,
            options: SearchOptions::default(),
            filter: None,
            verify: None,
            answer: PhantomData,
        }
    }

    /// Replaces all options that were set before: see [`SearchOptions`].
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, SearchOptions, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # for key in ["a", "b"] {
    /// #     store.insert(key, &page)?;
    /// # }
    /// let mut options = SearchOptions::default();
    /// options.scan = Some(false);
    /// let nearest = store.snapshot()?.nearest(&page, 2).options(options).run()?;
    /// assert_eq!(nearest.len(), 2);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn options(mut self, options: SearchOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the family to compare by: [`Family::MinHash`], the default if the schema has it, or
    /// [`Family::SimHash`].
    pub fn by(mut self, by: Family) -> Self {
        self.options.bounds.by = Some(by);
        self
    }

    /// Sets the probability, 0 to 1, with which a document as near as the last one of the answer
    /// must be found. Default: 0.9. With 1, all signatures are read unless the tables find such
    /// documents for certain.
    pub fn min_recall(mut self, probability: f64) -> Self {
        self.options.min_recall = Some(probability);
        self
    }

    /// Reads only the signatures in buckets, which is useful for large stores. The answer may have
    /// fewer documents than requested, and its [`recall`](Matches::recall) may be less than
    /// [`min_recall`](Self::min_recall).
    pub fn without_scan(mut self) -> Self {
        self.options.scan = Some(false);
        self
    }

    /// Returns the payload of each document too, as
    /// [`Query::with_payloads`](crate::Query::with_payloads) does.
    pub fn with_payloads(mut self) -> Self {
        self.options.with_payloads = true;
        self
    }

    /// Asks only about documents that pass a filter: see [`Filter`]. The search ends once enough
    /// documents that pass are found.
    ///
    /// ```
    /// # use resemblance::{Document, Filter, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
    /// store.insert(Document::new("near").stamp(9), &page)?;
    /// store.insert(Document::new("far").stamp(5), &store.sketch_text("all that glitters is not gold")?)?;
    /// let filter = Filter::all().older_than(9);
    /// let nearest = store.snapshot()?.nearest(&page, 1).filter(filter).run()?;
    /// assert_eq!(nearest[0].key(), Some(&b"far"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn filter(mut self, filter: Filter<'a>) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Answers in stages, where a panic of the caller is not treated as damage.
    fn answer(self, goal: NearestGoal) -> Result<Vec<Matches>> {
        let (families, order) = match self.family()? {
            Family::SimHash => (Families::TABLES, Order::Distance),
            _ => (Families::BANDS, Order::Similarity),
        };
        let context = self.view.context();
        check_signatures(context, self.signatures)?;
        let signatures: Vec<&Signature> = self.signatures.iter().collect();
        let ask = |gate: Option<&Gate<'_>>, verify: Option<&Ask<'_>>| {
            let search = StagedSearch {
                spec: SearchSpec {
                    gate,
                    families,
                    order,
                    exclude: self.options.exclude.map(DocumentId::get),
                    referee: match order {
                        // Distances are exact anyway.
                        Order::Distance => Referee::Estimate,
                        Order::Similarity => Referee::of(self.view, verify),
                    },
                    with_payloads: self.options.with_payloads,
                    ..SearchSpec::new(self.view, Collector::Top(goal.limit()))
                },
                goal,
                min_recall: self.options.min_recall.unwrap_or(DEFAULT_MIN_RECALL),
                scans: self.options.scan != Some(false),
            };
            context.run_checked(|| search.run(&signatures))
        };
        let answers = asking(self.verify.as_deref(), |verify| {
            gated(self.filter.as_ref(), |gate| ask(gate, verify))
        });
        answers.inspect(|answers| context.note_queries(answers.len()))
    }

    /// The documents within `factor` times the radius, where these are in range.
    fn goal_within(&self, radius: f64, factor: f64) -> Result<NearestGoal> {
        // 1 is the distance of documents that share nothing; of bits no bound matters.
        let max_radius = match self.family()? {
            Family::SimHash => f64::MAX,
            _ => 1.0,
        };
        if !(0.0..=max_radius).contains(&radius) {
            let expected = "0 to 1, or 0 bits or more for SimHash";
            return Err(Error::invalid("radius", radius, expected));
        }
        if !(1.0..=f64::MAX).contains(&factor) {
            return Err(Error::invalid("factor", factor, "1 or more"));
        }
        Ok(NearestGoal::Within { radius, factor })
    }

    /// The family that is asked, checked with all other parameters.
    fn family(&self) -> Result<Family> {
        let schema = &self.view.context().schema;
        let min_recall = self.options.min_recall.unwrap_or(DEFAULT_MIN_RECALL);
        if !(0.0..=1.0).contains(&min_recall) {
            return Err(Error::invalid("min_recall", min_recall, "0 to 1"));
        }
        schema.check_families()?;
        let default = match schema.minhash() {
            Some(_) => Family::MinHash,
            None => Family::SimHash,
        };
        match self.options.bounds.by.unwrap_or(default) {
            Family::MinHash if schema.minhash().is_some() => Ok(Family::MinHash),
            Family::SimHash if self.verify.is_some() => {
                let expected = "similarities: distances are exact anyway";
                Err(Error::invalid("verify", "distances of SimHash", expected))
            }
            Family::SimHash if schema.simhash().is_some() => Ok(Family::SimHash),
            by => {
                let expected = "a family that the schema has";
                Err(Error::invalid("by", format!("{by:?}"), expected))
            }
        }
    }
}

impl<'a> Nearest<'a> {
    /// Leaves out one document, such as the document of the signature itself if it is stored.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?)?;
    /// for text in ["a b c d", "a b c e"] {
    ///     store.insert(text, &store.sketch_text(text)?)?;
    /// }
    /// let snapshot = store.snapshot()?;
    /// let record = snapshot.get("a b c d")?.unwrap();
    /// let nearest = snapshot.nearest(record.signature(), 1).excluding(record.id()).run()?;
    /// assert_eq!(nearest[0].key(), Some(&b"a b c e"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn excluding(mut self, id: DocumentId) -> Self {
        self.options.exclude = Some(id);
        self
    }

    /// Verifies candidates by `similarity`: the Jaccard similarity that it returns, 0 to 1, decides
    /// which documents are the `n` nearest, in which order, and whether one is within a radius.
    /// Their matches report it, and [are exact](crate::Match::is_exact). If it returns `None`,
    /// because the document is unavailable, the estimate decides. SimHash cannot be verified: its
    /// distances are exact.
    ///
    /// Estimates from 128 values have a mean error of 0.04 at J = 0.5, so they cannot separate
    /// documents that are almost equally near. Each stage therefore verifies its candidates in the
    /// order of their estimates, each document once. It stops when a document as near as the last
    /// one would have an estimate as low as the remaining ones only with probability (1 −
    /// [`min_recall`](Self::min_recall)) / 100, by Chernoff's bound. [`Matches::recall`] includes
    /// this probability. With `min_recall` 1 all candidates are verified, and after a scan all
    /// documents. Each candidate takes up to 48 bytes of memory.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?)?;
    /// let stored = ["a b c d e f g h", "a b c d e f w x", "a b c d w x y z"];
    /// for text in stored {
    ///     store.insert(text, &store.sketch_text(text)?)?;
    /// }
    /// let page = store.sketch_text("a b c d e f g i")?;
    /// let exact = [7.0 / 9.0, 6.0 / 10.0, 4.0 / 12.0];
    /// let snapshot = store.snapshot()?;
    /// let nearest = snapshot.nearest(&page, 2).verify(|id| Ok(Some(exact[id.get() as usize])));
    /// let nearest = nearest.run()?;
    /// assert_eq!(nearest[1].similarity(), Some(0.6));
    /// assert!(nearest.iter().all(|found| found.is_exact()));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn verify(mut self, similarity: impl Fn(DocumentId) -> Result<Option<f64>> + 'a) -> Self {
        self.verify = Some(Box::new(move |_, id| similarity(id)));
        self
    }

    /// Returns the `n` nearest documents, the nearest first, or all if there are fewer. If the
    /// signature has features, only documents with features count. By SimHash, documents are
    /// ordered by distance first, and then by similarity.
    ///
    /// [`Matches::recall`] is the probability that a document as near as the last one was found, by the
    /// S-curve of the bands or the combinatorics of the tables, and 1 after a scan that is not
    /// [verified](Self::verify).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a family that the schema does not have, a probability
    /// outside 0 to 1, or [`verify`](Self::verify) by SimHash; [`Error::SignatureMismatch`] for a
    /// signature of another kind; [`Error::Corrupt`] and [`Error::Io`] if the file cannot be read;
    /// any error of the closure of [`verify`](Self::verify), or [`Error::InvalidParameter`] if it
    /// returns a value outside 0 to 1.
    pub fn run(self) -> Result<Matches> {
        let goal = NearestGoal::First(self.n);
        self.answer(goal)?.pop().or_bug("the answer to a signature")
    }

    /// Solves the (c, r)-near-neighbour problem (Indyk and Motwani 1998): returns a document within
    /// the distance `factor` · `radius`, or none if there is none within `radius`. Then
    /// [`Matches::recall`] is the probability that one at the distance `radius` would have been
    /// found, at least [`min_recall`](Self::min_recall) unless there is [no
    /// scan](Self::without_scan).
    ///
    /// The distance is 1 − J for MinHash, where J is the estimated similarity, and the number of
    /// differing bits for SimHash. The document is the nearest of those that were compared. The
    /// requested number of documents has no effect.
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run), and [`Error::InvalidParameter`] if the radius is negative,
    /// or above 1 for MinHash, or if the factor is below 1.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(128)).build()?)?;
    /// store.insert("a", &store.sketch_text("a b c d e f g h")?)?;
    /// let (snapshot, page) = (store.snapshot()?, store.sketch_text("a b c d w x y z")?);
    /// assert!(snapshot.nearest(&page, 1).within(0.2, 1.5)?.is_empty());
    /// assert_eq!(snapshot.nearest(&page, 1).within(0.5, 1.9)?[0].key(), Some(&b"a"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn within(self, radius: f64, factor: f64) -> Result<Matches> {
        let goal = self.goal_within(radius, factor)?;
        self.answer(goal)?.pop().or_bug("the answer to a signature")
    }
}

impl<'a> Nearest<'a, Vec<Matches>> {
    /// Verifies candidates as [`Nearest::verify`](Nearest::<Matches>::verify) does, but the closure
    /// also receives the index of the query's signature. All work except the scan is then done on
    /// the calling thread.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
    /// store.insert(Document::without_key(), &page)?;
    /// let (snapshot, pages) = (store.snapshot()?, [page.clone(), page]);
    /// let answers = snapshot.nearest(&pages, 1).verify(|index, _| Ok(Some(index as f64))).run()?;
    /// assert_eq!(answers[0][0].similarity(), Some(0.0));
    /// assert_eq!(answers[1][0].similarity(), Some(1.0));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn verify(
        mut self,
        similarity: impl Fn(usize, DocumentId) -> Result<Option<f64>> + 'a,
    ) -> Self {
        self.verify = Some(Box::new(similarity));
        self
    }

    /// Returns the `n` nearest documents of each signature, as [for one](Nearest::<Matches>::run).
    /// The signatures are divided among threads. Signatures whose nearest documents are in no
    /// bucket share one scan, if their answers have at most 2 million documents.
    ///
    /// # Errors
    ///
    /// The same as for one signature. The error for a signature of another kind contains its index.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?)?;
    /// for text in ["a b c d", "w x y z"] {
    ///     store.insert(text, &store.sketch_text(text)?)?;
    /// }
    /// let pages = [store.sketch_text("a b c")?, store.sketch_text("x y z")?];
    /// let nearest = store.snapshot()?.nearest(&pages, 1).run()?;
    /// assert_eq!(nearest[0][0].key(), Some(&b"a b c d"[..]));
    /// assert_eq!(nearest[1][0].key(), Some(&b"w x y z"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn run(self) -> Result<Vec<Matches>> {
        let goal = NearestGoal::First(self.n);
        self.answer(goal)
    }

    /// Solves the (c, r)-near-neighbour problem for each signature, as [for
    /// one](Nearest::<Matches>::within).
    ///
    /// # Errors
    ///
    /// The same as for one signature. The error for a signature of another kind contains its index.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(128)).build()?)?;
    /// store.insert("a", &store.sketch_text("a b c d e f g h")?)?;
    /// let pages = [store.sketch_text("a b c d e f g i")?, store.sketch_text("a b c d w x y z")?];
    /// let near = store.snapshot()?.nearest(&pages, 1).within(0.3, 1.5)?;
    /// assert_eq!((near[0].len(), near[1].len()), (1, 0));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn within(self, radius: f64, factor: f64) -> Result<Vec<Matches>> {
        let goal = self.goal_within(radius, factor)?;
        self.answer(goal)
    }
}
