//! The documents that a collection or a store loses when its near-duplicates are removed.

use std::sync::Arc;
use std::vec;

use resemblance::invariant::OrBug;
use resemblance::search::{JoinedDocuments, LeftOut, SuspiciousCluster};
use resemblance::{Clusters, DocumentId, Join, Record, Result};

use crate::dedup::in_order::{Decided, DroppedDocument, InOrder, count_neighbours};
use crate::dedup::policy::{DedupPolicy, Preference};
use crate::verification::{FeatureSets, verify_exact};

/// A document that is removed because another is kept, and their similarity.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// use resemblance_corpus::dedup::{DedupPolicy, Preference, duplicates};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// for key in ["a", "b"] {
///     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
/// }
/// let join = store.snapshot()?.clusters();
/// let mut found = duplicates(join, DedupPolicy::Cluster, &Preference::Earliest, None)?;
/// let duplicate = found.next().expect("one of two is a duplicate")?;
/// assert_eq!(duplicate.document.key(), Some(&b"b"[..]));
/// assert_eq!(duplicate.survivor.key(), Some(&b"a"[..]));
/// assert_eq!((duplicate.similarity, duplicate.is_exact), (Some(1.0), false));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Duplicate {
    /// The document.
    pub document: Record,
    /// The document that is kept.
    pub survivor: Record,
    /// Their Jaccard similarity, 0 to 1, if the schema has MinHash. With [`DedupPolicy::Cluster`] it may
    /// lie below the bound: the two may be linked by others.
    pub similarity: Option<f64>,
    /// True if the similarity is exact, and not an estimate.
    pub is_exact: bool,
    /// Their Hamming distance in bits, if the schema has SimHash.
    pub distance: Option<u32>,
}

/// The documents to remove, in the order of their insertion: see [`duplicates`].
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// use resemblance_corpus::dedup::{DedupPolicy, Preference, duplicates};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// for key in ["a", "b", "c"] {
///     store.insert(key, &store.sketch_text("the same text under three keys")?)?;
/// }
/// let join = store.snapshot()?.clusters().max_bucket(1_000);
/// let found = duplicates(join, DedupPolicy::Cluster, &Preference::Earliest, None)?;
/// assert!(found.left_out().is_empty() && found.suspicious().is_empty());
/// assert_eq!(found.count(), 2);
/// # Ok::<(), resemblance::Error>(())
/// ```
pub struct Duplicates {
    source: JoinedDocuments,
    features: Option<Arc<FeatureSets>>,
    dropped: vec::IntoIter<DroppedDocument>,
    left_out: LeftOut,
    suspicious: Vec<SuspiciousCluster>,
    budget_exceeded: u64,
}

/// Returns the documents that a policy removes, each with the one that is kept for it: what a
/// corpus loses. They are in the order of their insertion, and all are found before this returns.
/// Similarities are exact where `features` has both documents; then it also
/// [verifies](Join::verify) the search.
///
/// Takes 16 bytes of memory for each removed document, which clusters need, and 12 bytes for each
/// document with a policy that decides in an order.
///
/// # Errors
///
/// As [`Join::run`](Join::<Clusters>::run); [`Error::InvalidParameter`](resemblance::Error::InvalidParameter) with the parameter
/// `deduplicator` if one has documents already, or compares exactly without features or the other way
/// round; the iterator yields an error where the file cannot be read.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// use resemblance_corpus::dedup::{DedupPolicy, Preference, duplicates};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// for key in ["a", "b", "c"] {
///     store.insert(key, &store.sketch_text("the same text under three keys")?)?;
/// }
/// let join = store.snapshot()?.clusters();
/// let mut keys = Vec::new();
/// for duplicate in duplicates(join, DedupPolicy::Cluster, &Preference::Latest, None)? {
///     let duplicate = duplicate?;
///     assert_eq!(duplicate.survivor.key(), Some(&b"c"[..]));
///     keys.extend(duplicate.document.key().map(<[u8]>::to_vec));
/// }
/// assert_eq!(keys, [b"a", b"b"]);
/// # Ok::<(), resemblance::Error>(())
/// ```
pub fn duplicates(
    join: Join<'_, Clusters>,
    policy: DedupPolicy,
    preference: &Preference,
    features: Option<Arc<FeatureSets>>,
) -> Result<Duplicates> {
    let source = join.documents();
    Ok(match policy {
        DedupPolicy::Cluster => all_but_one(join, preference, features)?,
        DedupPolicy::First(deduplicator) => {
            let (pairs, watch) = join.into_pairs();
            let found = InOrder::new(&pairs, *deduplicator, features.as_deref())?;
            let dropped = watch.run(|watch| found.decide(preference, &[], watch))?;
            Duplicates::new(source, features, dropped)
        }
        DedupPolicy::Representative(deduplicator) => {
            let (pairs, watch) = join.into_pairs();
            let found = InOrder::new(&pairs, *deduplicator, features.as_deref())?;
            let pairs = verify_exact(pairs, features.clone());
            let mut left_out = LeftOut::default();
            let dropped = watch.run(|watch| {
                let (neighbours, missed) = count_neighbours(pairs.run()?, watch)?;
                left_out = missed;
                found.decide(preference, &neighbours, watch)
            })?;
            Duplicates {
                left_out,
                ..Duplicates::new(source, features, dropped)
            }
        }
    })
}

/// All documents of clusters but the preferred one of each.
fn all_but_one(
    join: Join<'_, Clusters>,
    preference: &Preference,
    features: Option<Arc<FeatureSets>>,
) -> Result<Duplicates> {
    let source = join.documents();
    let join = verify_exact(join, features.clone());
    let mut clusters = join.run()?;
    let mut dropped = Vec::new();
    for cluster in clusters.by_ref() {
        let best = cluster.iter().min_by(|a, b| preference.compare(**a, **b));
        let survivor = *best.or_bug("a cluster of no documents")?;
        let others = cluster.iter().filter(|id| **id != survivor);
        dropped.extend(others.map(|&id| DroppedDocument { id, survivor }));
    }
    Ok(Duplicates {
        left_out: clusters.left_out(),
        suspicious: clusters.suspicious().to_vec(),
        ..Duplicates::new(
            source,
            features,
            Decided {
                dropped,
                budget_exceeded: 0,
            },
        )
    })
}

impl Duplicates {
    fn new(
        source: JoinedDocuments,
        features: Option<Arc<FeatureSets>>,
        mut decided: Decided,
    ) -> Self {
        // A report reads the corpus once.
        decided.dropped.sort_unstable();
        Self {
            source,
            features,
            dropped: decided.dropped.into_iter(),
            left_out: LeftOut::default(),
            suspicious: Vec::new(),
            budget_exceeded: decided.budget_exceeded,
        }
    }

    /// Pairs that were not compared, because their buckets were cut short.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Documents that were compared with a part of their candidates only: see
    /// [`StoreOptions::probe_budget`](resemblance::StoreOptions::probe_budget).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// use resemblance_corpus::dedup::{DedupPolicy, Preference, duplicates};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let join = store.snapshot()?.clusters();
    /// let found = duplicates(join, DedupPolicy::Cluster, &Preference::Earliest, None)?;
    /// assert_eq!(found.budget_exceeded(), 0); // clusters know no budget
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn budget_exceeded(&self) -> u64 {
        self.budget_exceeded
    }

    /// Clusters that are too large to be believed; none unless clusters were searched for.
    #[must_use]
    pub fn suspicious(&self) -> &[SuspiciousCluster] {
        &self.suspicious
    }

    fn duplicate(&self, dropped: DroppedDocument) -> Result<Duplicate> {
        let read = |id: DocumentId| {
            let record = self.source.get_id(id)?;
            record.or_bug("a document was compared that is not stored")
        };
        let (document, survivor) = (read(dropped.id)?, read(dropped.survivor)?);
        let exact = match &self.features {
            Some(features) => features.similarity(dropped.id, dropped.survivor)?,
            None => None,
        };
        let (a, b) = (document.signature(), survivor.signature());
        let estimate = a.minhash().map(|_| a.jaccard(b)).transpose()?;
        let distance = a.fingerprint().map(|_| a.hamming(b)).transpose()?;
        Ok(Duplicate {
            similarity: exact.or(estimate),
            is_exact: exact.is_some(),
            distance,
            document,
            survivor,
        })
    }
}

impl Iterator for Duplicates {
    type Item = Result<Duplicate>;

    fn next(&mut self) -> Option<Self::Item> {
        let dropped = self.dropped.next()?;
        Some(self.duplicate(dropped))
    }
}
