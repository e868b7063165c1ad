//! The policy *first*: a document is kept unless it is near a document that was kept before.

use std::cell::RefCell;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use resemblance::invariant::{OrBug, bug};
use resemblance::{
    Bounds, Document, DocumentId, Error, KeptDocuments, LoneDocuments, LookAhead, Match, Novelty,
    Record, Result, Schema, Sketcher, Store, StoreOptions,
};

use crate::dedup::evidence::{ComparedCandidate, FeatureShares, RejectedCandidates};
use crate::verification::{FeatureSets, SetOverlap, SketchedText, signatures_of};

/// Decides which documents of a stream to keep: a document is kept unless it is near one that was
/// kept before. Kept documents are in memory while they fit, and otherwise in a temporary store;
/// with [`in_store`](Self::in_store), they are in a transaction of that store, which is never
/// committed. A deduplicator cannot move to another thread.
///
/// A document whose key has occurred before is not kept. If keys are not unique, pass them as
/// payloads.
///
/// ```
/// use resemblance_corpus::dedup::Deduplicator;
/// use resemblance_corpus::verification::FeatureSets;
/// use resemblance::{Document, MinHash, Schema, StoreOptions, Text};
///
/// let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(128)).build()?;
/// let temporary = std::env::temp_dir();
/// let mut stream = Deduplicator::create(&temporary, schema, &StoreOptions::new())?
///     .verify_exact(FeatureSets::new(&temporary));
///
/// let texts = ["a b c d e f g h i j k", "x y z", "a b c d e f g h i j k l"];
/// let sketched = texts.iter().map(|text| stream.sketch(text));
/// let sketched = sketched.collect::<Result<Vec<_>, _>>()?;
/// let documents = ["first", "second", "third"].map(|name| {
///     Document::without_key().payload(name.as_bytes())
/// });
/// let batch: Vec<_> = documents.into_iter().zip(&sketched).collect();
/// let decisions = stream.decide_many(&batch)?;
/// assert!(decisions[0].is_new() && decisions[1].is_new()); // they are kept
///
/// let survivor = decisions[2].found().expect("it is like the first");
/// assert_eq!((survivor.similarity(), survivor.is_exact()), (Some(11.0 / 12.0), true));
/// assert_eq!(stream.get_id(survivor.id())?.expect("it was kept").payload(), b"first");
/// # Ok::<(), resemblance::Error>(())
/// ```
pub struct Deduplicator {
    kept: KeptDocuments,
    sketcher: Sketcher,
    /// The features of the kept documents, for exact similarities.
    features: Option<FeatureSets>,
    /// The candidates that were rejected since they were last taken, if they are collected.
    rejected: Option<RejectedCandidates>,
}

impl fmt::Debug for Deduplicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deduplicator")
            .field("kept", &self.len())
            .field("is_exact", &self.features.is_some())
            .finish_non_exhaustive()
    }
}

impl Deduplicator {
    /// Creates a deduplicator without documents, with 64 MiB of [memory](Self::memory_bytes).
    /// `folder` holds the temporary store. On systems that allow it, its file has no name, so that
    /// not even a killed process leaves it behind.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the schema cannot be indexed, or an option is out of range.
    pub fn create(folder: &Path, schema: Schema, options: &StoreOptions) -> Result<Self> {
        Ok(Self::begin(KeptDocuments::create(folder, schema, options)?))
    }

    /// Creates a deduplicator that begins with the documents of a store. It writes nothing to the
    /// store: only the deduplicator sees the documents that it keeps.
    ///
    /// # Errors
    ///
    /// The errors of [`Store::begin_write`].
    ///
    /// ```
    /// # use resemblance::{Bounds, Document, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// use resemblance_corpus::dedup::Deduplicator;
    /// store.insert("page/1", &store.sketch_text("a text that is known")?)?;
    /// let mut stream = Deduplicator::in_store(&store)?;
    /// let page = stream.sketch("a text that is known")?;
    /// let decision = stream.decide(Document::without_key(), &page, Bounds::new())?;
    /// assert_eq!(decision.found().unwrap().key(), Some(&b"page/1"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn in_store(store: &Store) -> Result<Self> {
        Ok(Self::begin(store.kept_documents()?))
    }

    fn begin(kept: KeptDocuments) -> Self {
        Self {
            sketcher: kept.schema().sketcher(),
            kept,
            features: None,
            rejected: None,
        }
    }

    /// Sets the memory that kept documents may take, in bytes, before they are moved to a temporary
    /// store. Features count separately: see [`FeatureSets::memory_bytes`].
    ///
    /// ```
    /// use resemblance_corpus::dedup::Deduplicator;
    /// # use resemblance::{MinHash, Schema, StoreOptions, Text};
    ///
    /// # let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
    /// # let temporary = std::env::temp_dir();
    /// let stream = Deduplicator::create(&temporary, schema, &StoreOptions::new())?;
    /// let stream = stream.memory_bytes(4 << 30); // some ten million documents
    /// assert!(stream.is_empty());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.kept.set_memory_bytes(bytes);
        self
    }

    /// Sets the number of threads that look up the documents of a batch while the kept ones are in
    /// memory. Default: 1. The number does not change the decisions.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text};
    /// # use resemblance_corpus::dedup::Deduplicator;
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let threads = std::thread::available_parallelism().unwrap();
    /// let mut stream = Deduplicator::in_store(&store)?.threads(threads);
    /// let pages = [stream.sketch("to be or not to be")?, stream.sketch("to be or not to be")?];
    /// let batch = [(Document::without_key(), &pages[0]), (Document::without_key(), &pages[1])];
    /// let decisions = stream.decide_many(&batch)?;
    /// assert!(decisions[0].is_new() && !decisions[1].is_new());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.kept.set_threads(threads);
        self
    }

    /// Makes similarities exact from now on, and adds the features of kept documents to `features`.
    /// A document that was kept before and has no features there is compared by estimate. `None`,
    /// like not calling this, makes all similarities estimates.
    #[must_use]
    pub fn verify_exact(mut self, features: impl Into<Option<FeatureSets>>) -> Self {
        self.features = features.into();
        self
    }

    /// Looks ahead at the documents that are not yet decided: see
    /// [`KeptDocuments::look_ahead`]. Returns `None` unless the memory of kept documents is nearly
    /// full, or if that does not help.
    ///
    /// # Errors
    ///
    /// The errors of [`KeptDocuments::look_ahead`].
    ///
    /// ```
    /// use resemblance_corpus::dedup::Deduplicator;
    /// # use resemblance::{Document, MinHash, Schema, StoreOptions, Text};
    ///
    /// # let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
    /// # let temporary = std::env::temp_dir();
    /// let mut stream = Deduplicator::create(&temporary, schema, &StoreOptions::new())?.memory_bytes(600);
    /// let texts = ["a b c", "d e f", "a b c"];
    /// let first = stream.sketch(texts[0])?;
    /// stream.decide_many(&[(Document::without_key().stamp(0), &first)])?;
    ///
    /// if let Some(mut ahead) = stream.look_ahead(1 << 20)? {
    ///     for (number, text) in (1..).zip(&texts[1..]) {
    ///         ahead.insert(number, &stream.sketch(text)?.signature)?;
    ///     }
    ///     let lone = ahead.finish()?; // keep these without asking
    ///     stream.forget(&lone)?;
    ///     assert!(lone.contains(1) && !lone.contains(2));
    /// }
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn look_ahead(&self, memory_bytes: u64) -> Result<Option<LookAhead>> {
        match self.kept.is_nearly_full() {
            true => self.kept.look_ahead(memory_bytes),
            false => Ok(None),
        }
    }

    /// Forgets kept documents that are among the `lone` ones, and their features.
    ///
    /// # Errors
    ///
    /// The errors of [`KeptDocuments::forget`].
    pub fn forget(&mut self, lone: &LoneDocuments) -> Result<()> {
        for id in self.kept.forget(lone)? {
            if let Some(features) = &mut self.features {
                features.forget(DocumentId::new(id));
            }
        }
        Ok(())
    }

    /// Collects the candidates that are compared with a document of a batch and are not near it, for
    /// [`take_rejected`](Self::take_rejected). Every comparison then runs to its end.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`](resemblance::Error::InvalidParameter) with the parameter `schema`
    /// if similarities are estimates or decide nothing alone.
    pub fn collect_rejected(mut self) -> Result<Self> {
        let bound = Bounds::new().similarity_floor(self.kept.schema())?;
        if bound == 0.0 || !self.is_exact() {
            let expected = "exact similarities, without which no document is near";
            return Err(Error::invalid("schema", "another rule", expected));
        }
        self.rejected = Some(RejectedCandidates {
            bound,
            found: Vec::new(),
        });
        Ok(self)
    }

    /// Returns the candidates that were rejected in the last batch, in the order of its documents,
    /// if they are [collected](Self::collect_rejected).
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, StoreOptions, Text};
    /// # use resemblance_corpus::dedup::Deduplicator;
    /// # use resemblance_corpus::verification::FeatureSets;
    /// # let minhash = MinHash::new(128).threshold(0.8).recall(0.999);
    /// # let schema = Schema::builder().text(Text::words(1)).minhash(minhash).build()?;
    /// # let temporary = std::env::temp_dir();
    /// let mut stream = Deduplicator::create(&temporary, schema, &StoreOptions::new())?
    ///     .verify_exact(FeatureSets::new(&temporary))
    ///     .collect_rejected()?;
    /// let texts = ["a b c d e f g h i j k l", "a b c d e f g h i x y z"];
    /// let pages = [stream.sketch(texts[0])?, stream.sketch(texts[1])?];
    /// let batch: Vec<_> = pages.iter().map(|page| (Document::without_key(), page)).collect();
    /// assert!(stream.decide_many(&batch)?.iter().all(|decision| decision.is_new()));
    /// for candidate in stream.take_rejected() {
    ///     assert_eq!((candidate.document, candidate.similarity), (1, 9.0 / 15.0));
    /// }
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn take_rejected(&mut self) -> Vec<ComparedCandidate> {
        let rejected = self.rejected.as_mut();
        rejected.map_or_else(Vec::new, |rejected| std::mem::take(&mut rejected.found))
    }

    pub(super) fn is_exact(&self) -> bool {
        self.features.is_some()
    }

    /// Returns the number of kept documents, including those that the store had before.
    ///
    /// ```
    /// # use resemblance::{Bounds, Document, MinHash, Schema, Store, Text};
    /// # use resemblance_corpus::dedup::Deduplicator;
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let mut stream = Deduplicator::in_store(&store)?;
    /// for text in ["to be or not to be", "to be or not to be", "that is the question"] {
    ///     let page = stream.sketch(text)?;
    ///     stream.decide(Document::without_key(), &page, Bounds::new())?;
    /// }
    /// assert_eq!(stream.len(), 2);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> u64 {
        self.kept.len()
    }

    /// Returns true if no document is kept.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # use resemblance_corpus::dedup::Deduplicator;
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// assert!(Deduplicator::in_store(&store)?.is_empty());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sketches a text, and keeps its features if similarities are exact. Other threads can call
    /// [`SketchedText::new`] instead.
    ///
    /// # Errors
    ///
    /// The errors of [`Sketcher::text`](resemblance::Sketcher::text).
    pub fn sketch(&self, text: &str) -> Result<SketchedText> {
        SketchedText::new(&self.sketcher, self.features.is_some(), text)
    }

    /// Decides on documents in their order, by the bounds of the schema. This is much faster than
    /// deciding one by one. A new document is kept; for any other, the answer contains the most
    /// similar kept one.
    ///
    /// # Errors
    ///
    /// The errors of [`WriteTransaction::insert_many`](resemblance::WriteTransaction::insert_many).
    /// If an input is bad, no document of the batch is decided; [`decide`](Self::decide) identifies
    /// the bad one.
    pub fn decide_many(
        &mut self,
        documents: &[(Document<'_>, &SketchedText)],
    ) -> Result<Vec<Novelty>> {
        let kept = &mut self.kept;
        let signed = signatures_of(documents);
        let novelties = match &mut self.features {
            Some(features) => {
                let rejected = self.rejected.as_mut();
                features.keep_new(documents, rejected, |ask| {
                    kept.insert_many_if_new(&signed, Some(ask))
                })
            }
            None => kept.insert_many_if_new(&signed, None),
        }?;
        let (found, expected) = (novelties.len(), documents.len());
        if found != expected {
            return Err(bug(format!("{found} decisions on {expected} documents")));
        }
        Ok(novelties)
    }

    /// Returns the shares of their features that a document and the kept one that was found for it
    /// have in common, or `None` unless the features of both are known.
    ///
    /// # Errors
    ///
    /// The errors of [`get_id`](Self::get_id), and [`Error::Io`](resemblance::Error::Io) if features
    /// cannot be read.
    ///
    /// ```
    /// # use resemblance::{Bounds, Document, MinHash, Schema, StoreOptions, Text};
    /// # use resemblance_corpus::dedup::Deduplicator;
    /// # use resemblance_corpus::verification::FeatureSets;
    /// # let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(128)).build()?;
    /// # let temporary = std::env::temp_dir();
    /// let mut stream = Deduplicator::create(&temporary, schema, &StoreOptions::new())?
    ///     .verify_exact(FeatureSets::new(&temporary));
    /// let short = stream.sketch("a b c d e f g h i j k")?;
    /// let long = stream.sketch("a b c d e f g h i j k l")?;
    /// stream.decide(Document::without_key(), &long, Bounds::new())?;
    /// let decision = stream.decide(Document::without_key(), &short, Bounds::new())?;
    /// let shares = stream.shares(&short, decision.found().unwrap())?.unwrap();
    /// assert_eq!((shares.held, shares.covered), (1.0, 11.0 / 12.0)); // nothing is lost
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn shares(&self, document: &SketchedText, found: &Match) -> Result<Option<FeatureShares>> {
        if let Some(features) = &self.features {
            return features.shares_with(&document.features, found);
        }
        let schema = self.kept.schema();
        if !schema.is_exact() {
            return Ok(None);
        }
        let survivor = self.get_id(found.id())?;
        let survivor = survivor.or_bug("a document was found that was not kept")?;
        Ok(FeatureShares::of_signatures(
            schema,
            &document.signature,
            survivor.signature(),
        ))
    }

    /// Decides on one document, by bounds that may differ from those of the schema.
    ///
    /// # Errors
    ///
    /// The errors of [`Query::run`](resemblance::Query::run) and
    /// [`WriteTransaction::insert`](resemblance::WriteTransaction::insert).
    ///
    /// ```
    /// # use resemblance::{Bounds, Document, MinHash, Schema, Store, Text};
    /// # use resemblance_corpus::dedup::Deduplicator;
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let mut stream = Deduplicator::in_store(&store)?;
    /// let bounds = Bounds::new().min_similarity(0.95);
    /// let page = stream.sketch("to be or not to be")?;
    /// assert!(stream.decide(Document::without_key(), &page, bounds)?.is_new());
    /// assert!(!stream.decide(Document::without_key(), &page, bounds)?.is_new());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn decide<'d>(
        &mut self,
        document: impl Into<Document<'d>>,
        sketched: &SketchedText,
        bounds: Bounds,
    ) -> Result<Novelty> {
        let hashes = &sketched.features;
        let features = self.features.as_ref();
        let below = self.rejected.as_ref().map(|_| RefCell::new(Vec::new()));
        let similarity = features.map(|features| {
            let below = &below;
            move |id, floor| {
                let Some(below) = below else {
                    return features.similarity_to_from(floor, hashes, id);
                };
                let overlap = features.overlap_with(hashes, id)?;
                let rejected = overlap.filter(|overlap| overlap.similarity() < floor);
                below
                    .borrow_mut()
                    .extend(rejected.map(|overlap| (id, overlap)));
                Ok(overlap.map(SetOverlap::similarity))
            }
        });
        let verify = similarity
            .as_ref()
            .map(|verify| verify as &dyn Fn(_, _) -> _);
        let signature = &sketched.signature;
        let novelty = self
            .kept
            .insert_if_new(document, signature, bounds, verify)?;
        if let (Some(rejected), Some(below)) = (&mut self.rejected, below) {
            for (candidate, overlap) in below.into_inner() {
                rejected.found.push(overlap.compared(0, candidate));
            }
            rejected.sort();
        }
        // The next document may be compared with this one, so its features must be readable by
        // then.
        if let (Some(features), true) = (&mut self.features, novelty.is_new()) {
            features.put(novelty.id(), Arc::clone(&sketched.features))?;
            features.flush()?;
        }
        Ok(novelty)
    }

    /// Returns the kept document with this id.
    ///
    /// # Errors
    ///
    /// The errors of [`Snapshot::get_id`](resemblance::Snapshot::get_id).
    pub fn get_id(&self, id: DocumentId) -> Result<Option<Record>> {
        self.kept.get_id(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use resemblance::{MinHash, Text};

    fn schema() -> Schema {
        let schema = Schema::builder().text(Text::words(1));
        schema.minhash(MinHash::new(128)).build().unwrap()
    }

    /// Returns a text of 40 words. Two texts whose numbers differ by one have 38 of 42 shingles in
    /// common.
    fn text(number: u32) -> String {
        let words = (2 * number..2 * number + 40).map(|word| format!("word{word}"));
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn batches_keep_the_documents_that_single_calls_keep() {
        let folder = tempfile::tempdir().unwrap();
        let create = || Deduplicator::create(folder.path(), schema(), &StoreOptions::new());
        // Stays in memory, moves to a store after some batches, or is in a store from the first
        // batch.
        let memories = [1_u64 << 30, 9_000, 0];
        let cases = memories
            .iter()
            .flat_map(|memory| [(false, *memory), (true, *memory)]);
        // Batches of 30 are split into several parts.
        let cases = cases.flat_map(|case| [(case, 1, 7), (case, 3, 30)]);
        for ((is_exact, memory_bytes), threads, together_count) in cases {
            let features = || is_exact.then(|| FeatureSets::new(folder.path()));
            let stream = || create().unwrap().verify_exact(features());
            let (mut alone, mut together) = (stream(), stream().memory_bytes(memory_bytes));
            together = together.threads(NonZeroUsize::new(threads).unwrap());
            let sketched: Vec<_> = (0..60).map(|n| alone.sketch(&text(n)).unwrap()).collect();
            let batch: Vec<_> = sketched
                .iter()
                .map(|s| (Document::without_key(), s))
                .collect();
            let mut decided = Vec::new();
            for part in batch.chunks(together_count) {
                decided.extend(together.decide_many(part).unwrap());
            }
            let one_by_one = batch.iter().map(|(document, sketched)| {
                alone.decide(document, sketched, Bounds::new()).unwrap()
            });
            let one_by_one: Vec<_> = one_by_one.collect();
            for (a, b) in one_by_one.iter().zip(&decided) {
                let found = |n: &Novelty| n.found().map(|m| (m.id(), m.similarity()));
                assert_eq!(found(a), found(b));
                assert!(a.found().iter().all(|found| found.is_exact() == is_exact));
            }
            assert_eq!(alone.len(), together.len());
            assert!((2..60).contains(&alone.len()), "{} kept", alone.len());
        }
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 0, "temporary files stay");
    }

    #[test]
    fn looking_ahead_changes_no_decision() {
        let folder = tempfile::tempdir().unwrap();
        // Runs of four documents that are near each other, and between them one that is like no other.
        let numbers: Vec<u32> = (0..80)
            .map(|n| if n % 5 == 0 { 1_000 * (n + 1) } else { n })
            .collect();
        for is_exact in [false, true] {
            let stream = || {
                let features = is_exact.then(|| FeatureSets::new(folder.path()));
                let created = Deduplicator::create(folder.path(), schema(), &StoreOptions::new());
                created.unwrap().verify_exact(features)
            };
            let (mut whole, mut ahead) = (stream(), stream().memory_bytes(16_000));
            let sketched: Vec<_> = numbers
                .iter()
                .map(|n| whole.sketch(&text(*n)).unwrap())
                .collect();
            let mut lone = None;
            let mut decided_lone = 0;
            for (number, sketched_text) in (0..).zip(&sketched) {
                let document = || Document::without_key().stamp(number);
                let expected = whole
                    .decide(document(), sketched_text, Bounds::new())
                    .unwrap();
                if lone
                    .as_ref()
                    .is_some_and(|lone: &LoneDocuments| lone.contains(number))
                {
                    assert!(expected.is_new(), "document {number}");
                    decided_lone += 1;
                    continue;
                }
                let found = ahead.decide_many(&[(document(), sketched_text)]).unwrap();
                let stamp = |stream: &Deduplicator, novelty: &Novelty| {
                    let found = novelty.found()?;
                    let record = stream.get_id(found.id()).unwrap().unwrap();
                    Some((record.stamp(), found.similarity()))
                };
                assert_eq!(stamp(&ahead, &found[0]), stamp(&whole, &expected));
                if lone.is_none()
                    && let Some(mut looking) = ahead.look_ahead(1 << 20).unwrap()
                {
                    let next = usize::try_from(number).unwrap() + 1;
                    for (number, text) in (number + 1..).zip(&sketched[next..]) {
                        looking.insert(number, &text.signature).unwrap();
                    }
                    let again = looking.insert(number, &sketched_text.signature);
                    assert!(again.is_err(), "numbers ascend");
                    lone = Some(looking.finish().unwrap());
                    ahead.forget(lone.as_ref().unwrap()).unwrap();
                }
            }
            assert!(
                decided_lone > 5,
                "{decided_lone} documents were not compared"
            );
            assert!(ahead.len() + decided_lone >= whole.len());
        }
    }

    #[test]
    fn batch_with_bad_input_decides_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut stream =
            Deduplicator::create(folder.path(), schema(), &StoreOptions::new()).unwrap();
        let other = Schema::builder()
            .text(Text::words(1))
            .minhash(MinHash::new(64));
        let other = other.build().unwrap().sketcher();
        let (good, bad) = (
            stream.sketch("a good text").unwrap(),
            SketchedText::new(&other, false, "another").unwrap(),
        );
        let batch = [
            (Document::without_key(), &good),
            (Document::without_key(), &bad),
        ];
        let refused = stream.decide_many(&batch);
        assert!(matches!(refused, Err(Error::SignatureMismatch { .. })));
        assert!(stream.is_empty());
    }
}
