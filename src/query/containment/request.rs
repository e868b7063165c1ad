//! Queries for documents that share passages with a text: documents that contain it, are contained
//! in it, or overlap it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use crate::error::{Error, Result};
use crate::invariant::{OrBug, at, at_mut};
use crate::query::bounds::SearchOptions;
use crate::query::containment::placed_passages::placed_passages;
use crate::query::containment::shared_hashes::SharedHashes;
use crate::query::gate::gated;
use crate::query::request::check_signatures;
use crate::query::sweep::{for_each_piece, in_threads};
use crate::read::ReadView;
use crate::types::{Document, DocumentId, Filter, FrequentPassage, Overlap, Overlaps};
use resemblance_sketch::sketch::Signature;

/// The default minimum share for queries that contain or are contained.
const DEFAULT_MIN_SHARE: f64 = 0.8;

/// The share that decides whether a document is an answer, and in which order answers are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShareOf {
    /// The share of the query: documents contain it.
    Query,
    /// The share of the document: the query contains documents.
    Document,
    /// No restriction: all documents that share a hash.
    Neither,
}

/// A query about shared passages. It finds the documents that contain the query
/// ([`contained_in`](crate::Snapshot::contained_in)), that the query contains
/// ([`contents_of`](crate::Snapshot::contents_of)), or that share any passage with it
/// ([`overlaps`](crate::Snapshot::overlaps)). Set its options, then run it.
///
/// `A` is the type of the answer: [`Overlaps`], or a `Vec` of them in the order of the signatures.
/// Many signatures together are answered several times faster than one by one. In addition to the
/// answers, a thread takes up to 256 MiB of memory, and more only if a single query shares hashes
/// with more than 16 million documents.
///
/// With hashes kept by [windows](crate::Containment::window), every document that shares a passage
/// of w shingles (w + k − 1 words or characters) with the query shares a kept hash, and is
/// therefore certainly found.
///
/// ```
/// use resemblance::{Containment, Schema, Store, Text};
/// let containment = Containment::new(3).window(2);
/// let schema = Schema::builder().text(Text::words(3)).containment(containment).build()?;
/// let store = Store::in_memory(schema)?;
/// let page = "call me ishmael some years ago never mind how long precisely";
/// store.insert("page", &store.sketch_text(page)?)?;
/// let snapshot = store.snapshot()?;
///
/// let quotation = store.sketch_text("He said: Some years ago - never mind how long!")?;
/// let found = snapshot.overlaps(&quotation).min_shared(2).limit(10).run()?;
/// assert_eq!(found[0].key(), Some(&b"page"[..]));
/// assert!(found[0].query_share() > 0.5 && found[0].document_share() > 0.4);
///
/// let book = store.sketch_text(&format!("chapter one {page} having little or no money"))?;
/// assert_eq!(snapshot.contents_of(&book).run()?[0].document_share(), 1.0);
/// assert!(snapshot.contained_in(&book).run()?.is_empty()); // the page has not 80 % of the book
///
/// let both = [quotation, book];
/// let answers = snapshot.overlaps(&both).max_document_frequency(1_000).threads(2).run()?;
/// assert_eq!((answers[0].len(), answers[1].len()), (1, 1));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "a query does nothing until it is run"]
pub struct ContainmentQuery<'a, A = Overlaps> {
    view: &'a dyn ReadView,
    signatures: Cow<'a, [Signature]>,
    bounds: ContainmentBounds,
    filter: Option<Filter<'a>>,
    answer: PhantomData<A>,
}

impl<A> fmt::Debug for ContainmentQuery<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainmentQuery")
            .field("signatures", &self.signatures.len())
            .field("bounds", &self.bounds)
            .field("filter", &self.filter)
            .finish_non_exhaustive()
    }
}

/// The bounds of an answer.
#[derive(Clone, Copy, Debug)]
struct ContainmentBounds {
    share_of: ShareOf,
    min_share: f64,
    min_shared: u32,
    max_frequency: u64,
    options: SearchOptions,
}

impl<'a, A> ContainmentQuery<'a, A> {
    pub(crate) fn new(
        view: &'a dyn ReadView,
        signatures: Cow<'a, [Signature]>,
        share_of: ShareOf,
    ) -> Self {
        Self {
            view,
            signatures,
            bounds: ContainmentBounds {
                share_of,
                min_share: match share_of {
                    ShareOf::Neither => 0.0,
                    ShareOf::Query | ShareOf::Document => DEFAULT_MIN_SHARE,
                },
                min_shared: 1,
                max_frequency: u64::MAX,
                options: SearchOptions::default(),
            },
            filter: None,
            answer: PhantomData,
        }
    }

    /// Replaces the limit and the number of threads that were set before: see [`SearchOptions`].
    ///
    /// ```
    /// # use resemblance::{Containment, Schema, SearchOptions, Store, Text};
    /// # let containment = Containment::new(2).window(3);
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).containment(containment).build()?)?;
    /// # let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
    /// # for key in ["a", "b"] {
    /// #     store.insert(key, &page)?;
    /// # }
    /// let mut options = SearchOptions::default();
    /// options.limit = Some(1);
    /// assert_eq!(store.snapshot()?.overlaps(&page).options(options).run()?.len(), 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn options(mut self, options: SearchOptions) -> Self {
        self.bounds.options = options;
        self
    }

    /// Sets the minimum share, 0 to 1, as estimated from the kept hashes. It is the share of the
    /// query that a document contains, or, for [`contents_of`](crate::Snapshot::contents_of), the
    /// share of a document that the query contains. Default: 0.8. For
    /// [`overlaps`](crate::Snapshot::overlaps) it is the share of the query, and the default is 0.
    ///
    /// ```
    /// # use resemblance::{Containment, Schema, Store, Text};
    /// # let containment = Containment::new(2).window(1);
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).containment(containment).build()?)?;
    /// store.insert("page", &store.sketch_text("to be or not to be")?)?;
    /// let query = store.sketch_text("whether to be or not to be tired")?; // has 6 pairs of words, 4 shared
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(snapshot.contained_in(&query).run()?.len(), 0);
    /// assert_eq!(snapshot.contained_in(&query).min_share(0.6).run()?.len(), 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn min_share(mut self, share: f64) -> Self {
        self.bounds.min_share = share;
        self
    }

    /// Sets the minimum number of kept hashes that a document must share with the query.
    /// Default: 1. The hash of an unrelated shingle equals one of a query's hundred hashes with a
    /// probability of 6 × 10⁻¹², so a single shared hash almost always means a shared shingle.
    pub fn min_shared(mut self, hashes: u32) -> Self {
        self.bounds.min_shared = hashes;
        self
    }

    /// Sets the maximum number of documents for each query. Default: all.
    pub fn limit(mut self, limit: usize) -> Self {
        self.bounds.options.limit = Some(limit);
        self
    }

    /// Asks only about documents that pass a filter: see [`Filter`].
    ///
    /// ```
    /// # use resemblance::{Containment, Filter, Schema, Store, Text};
    /// # let containment = Containment::new(2).window(3);
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).containment(containment).build()?)?;
    /// # let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
    /// for key in ["a", "b"] {
    ///     store.insert(key, &page)?;
    /// }
    /// let filter = Filter::all().when(|document| document.key() == Some(&b"b"[..]));
    /// assert_eq!(store.snapshot()?.overlaps(&page).filter(filter).run()?.len(), 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn filter(mut self, filter: Filter<'a>) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Ignores kept hashes that more than this number of documents have, such as those of menus and
    /// licences. [`Overlaps::capped_hashes`] counts the ignored hashes of the query. Default: none
    /// are ignored. Documents that do not pass a [`filter`](Self::filter) do not count.
    pub fn max_document_frequency(mut self, documents: u64) -> Self {
        self.bounds.max_frequency = documents;
        self
    }

    fn answers(&self) -> Result<Vec<Overlaps>> {
        self.ask(self.bounds.max_frequency, ContainmentBounds::add_answers)
    }

    /// Returns the passages of each text that
    /// [`max_document_frequency`](Self::max_document_frequency) leaves out, such as menus and
    /// licences, in the order of the text: runs of consecutive kept shingles each of which more
    /// than that number of documents have. Other bounds have no effect. A run begins and ends with
    /// kept shingles, so the passage may be up to w − 1 shingles longer at both ends.
    ///
    /// # Errors
    ///
    /// The errors of the query, and [`Error::InvalidParameter`] for a signature from a store
    /// without [positions](crate::Containment::positions), which does not keep the order of
    /// shingles.
    ///
    /// ```
    /// # use resemblance::{Containment, Schema, Store, Text};
    /// # let containment = Containment::new(2).window(1);
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).containment(containment).build()?)?;
    /// for (key, page) in [("a", "Cats purr. All rights reserved"), ("b", "Dogs bark. All rights reserved")] {
    ///     store.insert(key, &store.sketch_text(page)?)?;
    /// }
    /// let page = store.sketch_text("Mice squeak. All rights reserved")?;
    /// let passages = store.snapshot()?.overlaps(&page).max_document_frequency(1).frequent_passages()?;
    /// let passage = passages[0][0]; // "all rights", "rights reserved"
    /// assert_eq!((passage.first_shingle, passage.last_shingle, passage.documents), (2, 3, 2));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn frequent_passages(&self) -> Result<Vec<Vec<FrequentPassage>>> {
        let is_unordered = |signature: &Signature| {
            let hashes = signature
                .kept_hashes()
                .is_some_and(|hashes| !hashes.is_empty());
            hashes && signature.kept_shingles().is_empty()
        };
        if let Some(index) = self.signatures.iter().position(is_unordered) {
            let expected = "signatures of texts that were just read, whose order is known";
            return Err(Error::invalid(
                "signature",
                format!("number {index}, from a store without positions"),
                expected,
            ));
        }
        // Without a cap: the documents are counted.
        self.ask(u64::MAX, ContainmentBounds::add_frequent_passages)
    }

    /// Answers by `add`, piece by piece, from the documents that share hashes with the signatures of
    /// a piece. A hash that more than `cap` documents have is capped.
    fn ask<T: Send>(
        &self,
        cap: u64,
        add: impl Fn(
            &ContainmentBounds,
            &dyn ReadView,
            &[&Signature],
            &SharedHashes,
            &mut Vec<T>,
        ) -> Result<()>
        + Sync,
    ) -> Result<Vec<T>> {
        let context = self.view.context();
        if context.schema.containment().is_none() {
            let expected = "containment: the schema keeps no hashes to find shared passages";
            return Err(Error::invalid("containment", "none", expected));
        }
        self.bounds.check()?;
        check_signatures(context, &self.signatures)?;
        let signatures: Vec<&Signature> = self.signatures.iter().collect();
        let bounds = self.bounds;
        let answers = gated(self.filter.as_ref(), |gate| {
            let answer = |view: &dyn ReadView, part: &[&Signature]| {
                let mut answers = Vec::with_capacity(part.len());
                for_each_piece(part, |piece| {
                    let Some(shared) = SharedHashes::find(view, gate, piece, cap)? else {
                        return Ok(false);
                    };
                    add(&bounds, view, piece, &shared, &mut answers)?;
                    Ok(true)
                })?;
                Ok(answers)
            };
            context.run_checked(|| match self.view.shared() {
                Some(view) => in_threads(&signatures, bounds.options.threads, |part| {
                    answer(view, part)
                }),
                None => answer(self.view, &signatures),
            })
        });
        answers.inspect(|_| context.note_queries(signatures.len()))
    }
}

impl ContainmentQuery<'_> {
    /// Runs the query.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a bound out of range and if the schema has no
    /// [containment](crate::SchemaBuilder::containment), [`Error::SignatureMismatch`] for a
    /// signature of another schema; [`Error::Corrupt`].
    pub fn run(self) -> Result<Overlaps> {
        self.answers()?.pop().or_bug("the answer to a query")
    }
}

impl ContainmentQuery<'_, Vec<Overlaps>> {
    /// Sets the maximum number of threads, 1 to 1,024. Default: the number of threads that the
    /// machine runs at once.
    pub fn threads(mut self, threads: usize) -> Self {
        self.bounds.options.threads = Some(threads);
        self
    }

    /// Runs the query for all signatures together.
    ///
    /// # Errors
    ///
    /// The same as for one signature. The error of one signature contains its index.
    pub fn run(self) -> Result<Vec<Overlaps>> {
        self.answers()
    }
}

impl ContainmentBounds {
    fn check(&self) -> Result<()> {
        if !(0.0..=1.0).contains(&self.min_share) {
            return Err(Error::invalid("min_share", self.min_share, "0 to 1"));
        }
        if self.min_shared == 0 {
            return Err(Error::invalid("min_shared", 0, "at least 1"));
        }
        if self.max_frequency == 0 {
            return Err(Error::invalid("max_document_frequency", 0, "at least 1"));
        }
        self.options.check_threads()
    }

    fn add_frequent_passages(
        &self,
        _: &dyn ReadView,
        piece: &[&Signature],
        shared: &SharedHashes,
        answers: &mut Vec<Vec<FrequentPassage>>,
    ) -> Result<()> {
        for signature in piece {
            answers.push(self.runs_of(signature, shared)?);
        }
        Ok(())
    }

    fn runs_of(
        &self,
        signature: &Signature,
        shared: &SharedHashes,
    ) -> Result<Vec<FrequentPassage>> {
        let mut passages: Vec<FrequentPassage> = Vec::new();
        let mut is_open = false;
        for &(position, hash) in signature.kept_shingles() {
            let mut documents = 0;
            shared.documents(hash, &mut |_| documents += 1)?;
            let is_frequent = documents > self.max_frequency;
            match passages.last_mut().filter(|_| is_open) {
                Some(last) if is_frequent => {
                    last.last_shingle = position;
                    last.documents = last.documents.min(documents);
                }
                _ if is_frequent => passages.push(FrequentPassage {
                    first_shingle: position,
                    last_shingle: position,
                    documents,
                }),
                _ => {}
            }
            is_open = is_frequent;
        }
        Ok(passages)
    }

    /// Adds the answers to the queries of a piece.
    fn add_answers(
        &self,
        view: &dyn ReadView,
        piece: &[&Signature],
        shared: &SharedHashes,
        answers: &mut Vec<Overlaps>,
    ) -> Result<()> {
        let scale = view
            .context()
            .schema
            .containment()
            .and_then(|it| it.scale());
        let mut found = Vec::with_capacity(piece.len());
        for signature in piece {
            found.push(self.candidates(signature, shared, scale)?);
        }
        let hashes = document_hashes(view, &found)?;
        let mut chosen = Vec::with_capacity(found.len());
        for mut answer in found {
            for overlap in &mut answer.overlaps {
                let count = hashes.get(&overlap.id.get());
                overlap.document_hashes = *count.or_bug("the row of a document that was found")?;
            }
            self.choose(&mut answer.overlaps);
            for overlap in &mut answer.overlaps {
                let document = view.document_of(overlap.id.get(), false)?;
                overlap.document = document.or_bug("a document that was found")?;
            }
            chosen.push(answer);
        }
        add_passages(view, piece, shared, &mut chosen)?;
        answers.append(&mut chosen);
        Ok(())
    }

    /// Finds the documents that share enough of a query, without their own hashes and keys.
    fn candidates(
        &self,
        signature: &Signature,
        shared: &SharedHashes,
        scale: Option<u32>,
    ) -> Result<Overlaps> {
        let hashes = signature.kept_hashes().or_bug("kept hashes of a query")?;
        let (mut hits, mut capped_hashes) = (Vec::new(), 0);
        for (index, hash) in (0_u32..).zip(hashes) {
            if !shared.documents(*hash, &mut |id| hits.push((id, index)))? {
                capped_hashes += 1;
            }
        }
        hits.sort_unstable();
        let asked = count(hashes.len() - capped_hashes)?;
        let order = KeptOrder::new(signature)?;
        let mut overlaps = Vec::new();
        for of_document in hits.chunk_by(|a, b| a.0 == b.0) {
            let overlap = Overlap {
                id: DocumentId::new(at(of_document, 0)?.0),
                document: Document::without_key(),
                shared: count(of_document.len())?,
                query_hashes: asked,
                document_hashes: 0,
                longest_run: None,
                passages: None,
                scale,
            };
            // The share of the document is known once its row is read.
            let decides = self.share_of != ShareOf::Document;
            if overlap.shared >= self.min_shared
                && !(decides && overlap.query_share() < self.min_share)
            {
                let longest_run = order.as_ref().map(|order| order.longest_run(of_document));
                overlaps.push(Overlap {
                    longest_run: longest_run.transpose()?,
                    ..overlap
                });
            }
        }
        Ok(Overlaps {
            overlaps,
            query_hashes: hashes.len(),
            capped_hashes,
        })
    }

    /// Keeps the best documents, in their order.
    fn choose(&self, overlaps: &mut Vec<Overlap>) {
        let of_document = self.share_of == ShareOf::Document;
        if of_document {
            overlaps.retain(|overlap| overlap.document_share() >= self.min_share);
        }
        overlaps.sort_unstable_by(|a, b| {
            let by_count = b.shared.cmp(&a.shared);
            let order = if of_document {
                let by_share = b.document_share().total_cmp(&a.document_share());
                by_share.then(by_count)
            } else {
                by_count.then(b.longest_run.cmp(&a.longest_run))
            };
            order.then(a.id.cmp(&b.id))
        });
        if let Some(limit) = self.options.limit {
            overlaps.truncate(limit);
        }
    }
}

/// Converts a number of kept hashes, of which a signature has fewer than 2^32.
fn count(hashes: usize) -> Result<u32> {
    u32::try_from(hashes).ok().or_bug("a number of kept hashes")
}

/// Reads the numbers of kept hashes of all documents that were found.
fn document_hashes(view: &dyn ReadView, found: &[Overlaps]) -> Result<BTreeMap<u64, u32>> {
    let ids = found.iter().flat_map(|answer| &answer.overlaps);
    let mut ids: Vec<u64> = ids.map(|overlap| overlap.id.get()).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut hashes = BTreeMap::new();
    view.live_documents(&ids, &mut |id, row| {
        hashes.insert(id, row.kept_count());
        Ok(())
    })?;
    Ok(hashes)
}

/// Finds where queries share passages with the documents of their answers, if the schema keeps
/// positions.
fn add_passages(
    view: &dyn ReadView,
    piece: &[&Signature],
    shared: &SharedHashes,
    answers: &mut [Overlaps],
) -> Result<()> {
    let schema = &view.context().schema;
    let containment = schema.containment().or_bug("a schema with containment")?;
    if !containment.has_positions() {
        return Ok(());
    }
    // If two shingles of a text are no further apart than their length, they cover everything
    // between them. With features, nothing is known about those in between.
    let max_gap = match schema.text() {
        Some(_) => u64::from(containment.shingle_units()),
        None => 1,
    };
    let mut asking: BTreeMap<u64, Vec<(&Signature, &mut Overlap)>> = BTreeMap::new();
    for (signature, answer) in piece.iter().zip(answers) {
        for overlap in &mut answer.overlaps {
            let id = overlap.id.get();
            asking.entry(id).or_default().push((*signature, overlap));
        }
    }
    let ids: Vec<u64> = asking.keys().copied().collect();
    view.live_documents(&ids, &mut |id, row| {
        let kept = row.kept_shingles();
        for (signature, overlap) in asking.remove(&id).into_iter().flatten() {
            let begins = |hash| Ok(!shared.is_capped(hash)?);
            let query = signature.kept_shingles();
            overlap.passages = Some(placed_passages(query, &kept, max_gap, begins)?);
        }
        Ok(())
    })
}

/// The kept shingles of a query in their order.
struct KeptOrder {
    /// The place of each kept shingle among all shingles, in order.
    positions: Vec<u64>,
    /// The kept shingles of each hash, by the index of the hash: places in `positions`.
    of_hash: Vec<Vec<usize>>,
}

impl KeptOrder {
    /// Returns `None` if the order is not known.
    fn new(signature: &Signature) -> Result<Option<Self>> {
        let shingles = signature.kept_shingles();
        let hashes = signature.kept_hashes().or_bug("kept hashes of a query")?;
        if shingles.is_empty() {
            return Ok(None);
        }
        let mut of_hash = vec![Vec::new(); hashes.len()];
        for (place, (_, hash)) in shingles.iter().enumerate() {
            let found = hashes.binary_search(hash).ok();
            let index = found.or_bug("a kept shingle without its hash")?;
            at_mut(&mut of_hash, index)?.push(place);
        }
        Ok(Some(Self {
            positions: shingles.iter().map(|(position, _)| *position).collect(),
            of_hash,
        }))
    }

    /// Returns the length of the longest run of consecutive kept shingles among those of `hits`, from the
    /// first to the last of the run, in shingles.
    fn longest_run(&self, hits: &[(u64, u32)]) -> Result<u64> {
        let mut places = Vec::with_capacity(hits.len());
        for (_, index) in hits {
            places.extend_from_slice(at(&self.of_hash, *index as usize)?);
        }
        places.sort_unstable();
        let mut longest = 0;
        for run in places.chunk_by(|a, b| a + 1 == *b) {
            let first = *at(&self.positions, *at(run, 0)?)?;
            let last = *at(&self.positions, *at(run, run.len() - 1)?)?;
            longest = longest.max(last - first + 1);
        }
        Ok(longest)
    }
}
