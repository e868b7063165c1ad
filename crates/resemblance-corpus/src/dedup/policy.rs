//! The policies that decide which of several near-duplicates to keep.

use std::cmp::Ordering;
use std::fmt;
use std::num::NonZeroUsize;

use crate::dedup::deduplicator::Deduplicator;
use resemblance::DocumentId;

/// Decides which documents of a collection to keep when near-duplicates are removed. Two policies
/// decide on documents one by one. They need a [`Deduplicator`] without documents, whose schema and
/// options determine the comparison.
///
/// ```
/// use resemblance_corpus::dedup::{DedupPolicy, Deduplicator, Preference, duplicates};
/// use resemblance::{BulkOptions, Collection, Document, MinHash, Schema, StoreOptions, Text};
///
/// let minhash = MinHash::new(256).threshold(0.6);
/// let schema = Schema::builder().text(Text::words(1)).minhash(minhash).build()?;
/// let (folder, sketcher) = (std::env::temp_dir(), schema.sketcher());
/// let mut collection = Collection::new(&folder, schema.clone(), &BulkOptions::new())?;
/// // Each is like the next, but the first is not like the last.
/// for text in ["a b c d e f g h i j", "c d e f g h i j k", "e f g h i j k l"] {
///     collection.insert(Document::without_key(), &sketcher.text(text)?)?;
/// }
/// let collected = collection.finish()?;
///
/// let deduplicator = || -> resemblance::Result<_> {
///     let made = Deduplicator::create(&folder, schema.clone(), &StoreOptions::new())?;
///     Ok(Box::new(made))
/// };
/// let policies = [
///     (DedupPolicy::Cluster, vec![1, 2]),
///     (DedupPolicy::First(deduplicator()?), vec![1]),
///     (DedupPolicy::Representative(deduplicator()?), vec![0, 2]),
/// ];
/// for (policy, expected) in policies {
///     let found = duplicates(collected.clusters(), policy, &Preference::Earliest, None)?;
///     let dropped = found.map(|duplicate| Ok(duplicate?.document.id().get()));
///     let dropped: Vec<u64> = dropped.collect::<resemblance::Result<_>>()?;
///     assert_eq!(dropped, expected);
/// }
/// # Ok::<(), resemblance::Error>(())
/// ```
#[non_exhaustive]
pub enum DedupPolicy {
    /// Keep one document of each cluster, the preferred one. A removed document may be dissimilar
    /// to the one that is kept, because others link the two.
    Cluster,
    /// Decide on documents in order of preference. A document is kept unless it is near a kept one.
    First(Box<Deduplicator>),
    /// Decide on documents in order of their number of near-duplicates, the most first, then in
    /// order of preference. The kept documents represent many others, each of which is near one of
    /// them.
    Representative(Box<Deduplicator>),
    /// Drop a document only if a kept one, its survivor, has its features: at most the share
    /// `max_lost` of its distinct features is missing from the survivor. Bounds of similarity and
    /// distance play no part, so a short document that is contained in a long one is dropped. A
    /// document is decided once all those are decided that hold it and that it does not hold; apart
    /// from that in order of preference. So the larger one of two is kept if only it holds the
    /// other. Features must be given for all documents, and all holders are found.
    ///
    /// At most the 64 preferred holders of a document are remembered, 12 bytes each. A document
    /// that has more, and that none of their survivors holds, is kept and counted: see
    /// [`Duplicates::budget_exceeded`](super::Duplicates::budget_exceeded). There is none if
    /// `max_lost` is 0.
    Contained {
        /// The share of features that may be lost, at least 0 and below 1.
        max_lost: f64,
        /// Decide on documents that hold the most others first, and only then by preference.
        most_first: bool,
        /// The number of threads that compare.
        threads: NonZeroUsize,
        /// The memory for the index of features, in bytes. If it does not suffice, all features are
        /// read several times.
        memory_bytes: u64,
        /// Collect the kept documents that are compared with a document and do not hold it, for
        /// [`Duplicates::take_rejected`](super::Duplicates::take_rejected). Every comparison then
        /// runs to its end.
        with_rejected: bool,
    },
}

impl fmt::Debug for DedupPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cluster => "Cluster",
            Self::First(_) => "First",
            Self::Representative(_) => "Representative",
            Self::Contained { .. } => "Contained",
        })
    }
}

/// Decides which of two near-duplicates to prefer.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// use resemblance_corpus::dedup::{DedupPolicy, Preference, duplicates};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// for key in ["a", "b"] {
///     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
/// }
/// let snapshot = store.snapshot()?;
/// let dropped = |preference| -> resemblance::Result<_> {
///     let mut found = duplicates(snapshot.clusters(), DedupPolicy::Cluster, &preference, None)?;
///     Ok(found.next().transpose()?.map(|duplicate| duplicate.document.id().get()))
/// };
/// assert_eq!(dropped(Preference::Earliest)?, Some(1));
/// assert_eq!(dropped(Preference::Latest)?, Some(0));
/// let quality = vec![0.2, 0.9]; // of the document with the id 0, and of that with the id 1
/// assert_eq!(dropped(Preference::Highest(quality))?, Some(0));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Preference {
    /// Prefer the document that was inserted first.
    #[default]
    Earliest,
    /// Prefer the document that was inserted last.
    Latest,
    /// Prefer the document with the higher score, and the earlier one if scores are equal. The
    /// index of a score is the id of its document. A document comes last if its score is missing or
    /// not a number.
    Highest(Vec<f64>),
}

impl Preference {
    /// Compares two documents. The preferred one is less.
    pub(super) fn compare(&self, a: DocumentId, b: DocumentId) -> Ordering {
        match self {
            Self::Earliest => a.cmp(&b),
            Self::Latest => b.cmp(&a),
            Self::Highest(scores) => {
                let score = |id: DocumentId| {
                    let index = usize::try_from(id.get()).ok();
                    let score = index.and_then(|index| scores.get(index)).copied();
                    score.filter(|score| !score.is_nan())
                };
                match (score(a), score(b)) {
                    // -0 and 0 are equal.
                    (Some(x), Some(y)) => y.partial_cmp(&x).unwrap_or(Ordering::Equal),
                    (x, y) => y.is_some().cmp(&x.is_some()),
                }
                .then_with(|| a.cmp(&b))
            }
        }
    }
}
