//! The policy *cluster*: of each cluster of near-duplicates the first document is kept.

use std::sync::Arc;
use std::vec;

use crate::corpus::verification::FeatureSets;
use crate::error::Result;
use crate::invariant::OrBug;
use crate::join::{Clusters, Join, JoinSource, LeftOut, SuspiciousCluster};
use crate::types::{DocumentId, Record};

/// A member of a cluster that is not its first document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ClusterMember {
    id: DocumentId,
    first: DocumentId,
}

/// A document that is not the first of its cluster, and how near it is to that one.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// for key in ["a", "b"] {
///     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
/// }
/// let mut duplicates = store.snapshot()?.clusters().duplicates(None)?;
/// let duplicate = duplicates.next().expect("one of two is a duplicate")?;
/// assert_eq!(duplicate.document.key(), Some(&b"b"[..]));
/// assert_eq!(duplicate.survivor.key(), Some(&b"a"[..]));
/// assert_eq!((duplicate.similarity, duplicate.is_exact), (Some(1.0), false));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClusterDuplicate {
    /// The document.
    pub document: Record,
    /// The first document of its cluster.
    pub survivor: Record,
    /// Their Jaccard similarity, 0 to 1, if the schema has MinHash. It may lie below the bound: the two
    /// may be linked by others.
    pub similarity: Option<f64>,
    /// True if the similarity is no estimate.
    pub is_exact: bool,
    /// Their Hamming distance in bits, if the schema has SimHash.
    pub distance: Option<u32>,
}

/// The documents of a snapshot that are not the first of their clusters, in the order of their
/// insertion: see [`Join::duplicates`].
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// for key in ["a", "b", "c"] {
///     store.insert(key, &store.sketch_text("the same text under three keys")?)?;
/// }
/// let duplicates = store.snapshot()?.clusters().max_bucket(1_000).duplicates(None)?;
/// assert!(duplicates.left_out().is_empty() && duplicates.suspicious().is_empty());
/// assert_eq!(duplicates.count(), 2);
/// # Ok::<(), resemblance::Error>(())
/// ```
pub struct ClusterDuplicates {
    source: Arc<dyn JoinSource>,
    features: Option<Arc<FeatureSets>>,
    members: vec::IntoIter<ClusterMember>,
    /// Already drained; kept for its count of what was left out.
    clusters: Clusters,
}

impl Join<'_, Clusters> {
    /// The documents that are not the first of their cluster, each with that one: what a corpus loses
    /// that keeps the first document of each cluster. They come in the order of their insertion, all
    /// found before this returns. Similarities are exact where `features` has both documents, which then
    /// also [verify](Self::verify) the clusters.
    ///
    /// Memory holds what clusters need, and 16 bytes a document that is listed.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run); the iterator yields an error where the file cannot be read.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// for key in ["a", "b", "c"] {
    ///     store.insert(key, &store.sketch_text("the same text under three keys")?)?;
    /// }
    /// let mut keys = Vec::new();
    /// for duplicate in store.snapshot()?.clusters().duplicates(None)? {
    ///     let duplicate = duplicate?;
    ///     assert_eq!(duplicate.survivor.key(), Some(&b"a"[..]));
    ///     keys.extend(duplicate.document.key().map(<[u8]>::to_vec));
    /// }
    /// assert_eq!(keys, [b"b", b"c"]);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn duplicates(self, features: Option<Arc<FeatureSets>>) -> Result<ClusterDuplicates> {
        ClusterDuplicates::find(self, features)
    }
}

impl ClusterDuplicates {
    fn find(join: Join<'_, Clusters>, features: Option<Arc<FeatureSets>>) -> Result<Self> {
        let source = Arc::clone(join.source());
        let join = match features.clone() {
            Some(features) => join.verify_exact(features),
            None => join,
        };
        let mut clusters = join.run()?;
        let mut members = Vec::new();
        for cluster in clusters.by_ref() {
            if let [first, rest @ ..] = cluster.as_slice() {
                let first = *first;
                members.extend(rest.iter().map(|id| ClusterMember { id: *id, first }));
            }
        }
        // Clusters come by their first documents; a report goes through the corpus once.
        members.sort_unstable();
        Ok(Self {
            source,
            features,
            members: members.into_iter(),
            clusters,
        })
    }

    /// Pairs that were not compared, because their buckets were cut short.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.clusters.left_out()
    }

    /// Clusters that are too large to be believed.
    #[must_use]
    pub fn suspicious(&self) -> &[SuspiciousCluster] {
        self.clusters.suspicious()
    }

    fn duplicate(&self, member: ClusterMember) -> Result<ClusterDuplicate> {
        let read = |id: DocumentId| {
            let record = self.source.record(id.get())?;
            record.or_bug("a cluster has a document that is not stored")
        };
        let (document, survivor) = (read(member.id)?, read(member.first)?);
        let exact = match &self.features {
            Some(features) => features.similarity(member.id, member.first)?,
            None => None,
        };
        let (a, b) = (document.signature(), survivor.signature());
        let estimate = a.minhash().map(|_| a.jaccard(b)).transpose()?;
        let distance = a.fingerprint().map(|_| a.hamming(b)).transpose()?;
        Ok(ClusterDuplicate {
            similarity: exact.or(estimate),
            is_exact: exact.is_some(),
            distance,
            document,
            survivor,
        })
    }
}

impl Iterator for ClusterDuplicates {
    type Item = Result<ClusterDuplicate>;

    fn next(&mut self) -> Option<Self::Item> {
        let member = self.members.next()?;
        Some(self.duplicate(member))
    }
}
