//! Joins of a snapshot with itself: near-duplicate pairs, and the clusters that they form.

use std::sync::Arc;

use crate::error::Result;
use crate::join::clusters::Clusters;
use crate::join::options::JoinOptions;
use crate::join::pairs::Pairs;
use crate::query::Bounds;
use crate::snapshot::Snapshot;
use crate::types::DocumentId;

impl Snapshot {
    /// All pairs of documents within bounds, each pair once.
    ///
    /// The pairs are exactly those that a query for each document would give. They come lane by
    /// lane, each in the first lane in which its two meet; of a lane bucket by bucket, ascending by
    /// code; of a bucket in the order of the later signature, then of the earlier one, signatures
    /// in the order of their first documents (where they fit into memory, else share by share). So
    /// the order is the same in every run over the same store, whatever the number of threads.
    ///
    /// Documents with equal signatures are compared as one. Memory holds at most about 64 MiB of
    /// signatures (of two threads or more, for a moment twice that) and what one bucket takes: 40
    /// bytes a document in it and 56 more a different signature.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`](crate::Error::InvalidParameter) for bounds outside the schema;
    /// the iterator yields an error and ends where the file cannot be read.
    ///
    /// ```
    /// # use resemblance::{Bounds, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// for key in ["a", "b"] {
    ///     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
    /// }
    /// let pairs: Vec<_> = store.snapshot()?.pairs(Bounds::new())?.collect::<Result<_, _>>()?;
    /// assert_eq!(pairs.len(), 1);
    /// assert_eq!(pairs[0].similarity, Some(1.0));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn pairs(&self, bounds: Bounds) -> Result<Pairs> {
        self.pairs_with(bounds, &JoinOptions::new())
    }

    /// As [`pairs`](Self::pairs), with threads, or with large buckets cut short.
    ///
    /// # Errors
    ///
    /// As [`pairs`](Self::pairs), and for an option out of its range.
    ///
    /// ```
    /// # use resemblance::{Bounds, JoinOptions, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// # for key in ["a", "b"] {
    /// #     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
    /// # }
    /// let options = JoinOptions::new().threads(2).max_bucket(1_000);
    /// let mut pairs = store.snapshot()?.pairs_with(Bounds::new(), &options)?;
    /// assert_eq!(pairs.by_ref().count(), 1);
    /// assert!(pairs.left_out().is_empty());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn pairs_with(&self, bounds: Bounds, options: &JoinOptions) -> Result<Pairs> {
        Pairs::new(self.clone(), bounds, *options, false)
    }

    /// As [`pairs_with`](Self::pairs_with), with every candidate verified, those too whose estimate
    /// is not within the bounds: what `similarity` returns for two documents, 0 to 1, decides
    /// against the bound on the similarity and is what the pair reports, which then is exact. Where
    /// it returns `None`, because one of the two is not at hand, the estimate decides. Distances are
    /// exact anyway. A pair is still found with the probability that its two share a bucket: see
    /// [`MinHashSchema::probability`](crate::MinHashSchema::probability).
    ///
    /// The closure is given each two documents that share a bucket, the earlier one first, once,
    /// from as many threads as the options say; the pairs and their order are the same for any
    /// number. Equal signatures are not taken for equal documents, so that m copies mean m² / 2
    /// calls. About 2 MB of memory hold candidates on the way.
    ///
    /// # Errors
    ///
    /// As [`pairs_with`](Self::pairs_with). The iterator yields what the closure returns as an
    /// error, or [`Error::InvalidParameter`](crate::Error::InvalidParameter) for what is not 0 to 1,
    /// and ends. A panic of the closure goes on through the iterator.
    ///
    /// ```
    /// # use resemblance::{Bounds, JoinOptions, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let texts = ["a b c d e f g h i", "b c d e f g h i a"];
    /// let features = texts.map(|text| store.sketcher().feature_hashes(text).unwrap());
    /// for text in texts {
    ///     store.append(&store.sketch_text(text)?)?; // ids 0 and 1
    /// }
    /// let exact = move |a: resemblance::DocumentId, b: resemblance::DocumentId| {
    ///     let (a, b) = (&features[a.get() as usize], &features[b.get() as usize]);
    ///     let both = a.iter().filter(|hash| b.contains(hash)).count();
    ///     Ok(Some(both as f64 / (a.len() + b.len() - both) as f64))
    /// };
    /// let snapshot = store.snapshot()?;
    /// let mut pairs = snapshot.pairs_verified(Bounds::new(), &JoinOptions::new(), exact)?;
    /// let pair = pairs.next().unwrap()?;
    /// assert_eq!((pair.similarity, pair.is_exact), (Some(1.0), true));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn pairs_verified(
        &self,
        bounds: Bounds,
        options: &JoinOptions,
        similarity: impl Fn(DocumentId, DocumentId) -> Result<Option<f64>> + Send + Sync + 'static,
    ) -> Result<Pairs> {
        let pairs = Pairs::new(self.clone(), bounds, *options, false)?;
        Ok(pairs.verified(Arc::new(similarity)))
    }

    /// The connected components of the documents under the pairs within bounds: every link is a
    /// verified pair. Documents without a partner are left out.
    ///
    /// Memory holds what [`pairs`](Self::pairs) needs, one bit a document, and 8 bytes an id in stretches of 256 ids of which any is in a cluster, whatever the
    /// number of pairs. [`Clusters::suspicious`] names clusters that are too large to be believed.
    ///
    /// # Errors
    ///
    /// As [`pairs`](Self::pairs), and [`Error::Corrupt`](crate::Error::Corrupt) and
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read.
    ///
    /// ```
    /// # use resemblance::{Bounds, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// for key in ["a", "b", "c"] {
    ///     store.insert(key, &store.sketch_text("the same text under three keys")?)?;
    /// }
    /// let clusters: Vec<_> = store.snapshot()?.clusters(Bounds::new())?.collect();
    /// assert_eq!(clusters.len(), 1);
    /// assert_eq!(clusters[0].len(), 3);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn clusters(&self, bounds: Bounds) -> Result<Clusters> {
        self.clusters_with(bounds, &JoinOptions::new())
    }

    /// As [`clusters`](Self::clusters), with threads, or with large buckets cut short.
    ///
    /// # Errors
    ///
    /// As [`clusters`](Self::clusters), and for an option out of its range.
    ///
    /// ```
    /// # use resemblance::{Bounds, JoinOptions, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let options = JoinOptions::new().threads(2);
    /// assert_eq!(store.snapshot()?.clusters_with(Bounds::new(), &options)?.count(), 0);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn clusters_with(&self, bounds: Bounds, options: &JoinOptions) -> Result<Clusters> {
        let links = Pairs::new(self.clone(), bounds, *options, true)?;
        Clusters::of(links, self.len())
    }

    /// As [`clusters_with`](Self::clusters_with), of the pairs that
    /// [`pairs_verified`](Self::pairs_verified) gives. Two documents that are known to be in one
    /// cluster are not verified any more, so that m copies take about m calls of the closure.
    ///
    /// # Errors
    ///
    /// As [`clusters_with`](Self::clusters_with), and what the closure returns, or
    /// [`Error::InvalidParameter`](crate::Error::InvalidParameter) for what is not 0 to 1.
    ///
    /// ```
    /// # use resemblance::{Bounds, JoinOptions, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// for key in ["a", "b"] {
    ///     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
    /// }
    /// let (snapshot, options) = (store.snapshot()?, JoinOptions::new());
    /// let unlike = |_, _| Ok(Some(0.0));
    /// assert_eq!(snapshot.clusters_verified(Bounds::new(), &options, unlike)?.count(), 0);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn clusters_verified(
        &self,
        bounds: Bounds,
        options: &JoinOptions,
        similarity: impl Fn(DocumentId, DocumentId) -> Result<Option<f64>> + Send + Sync + 'static,
    ) -> Result<Clusters> {
        let pairs = Pairs::new(self.clone(), bounds, *options, false)?.unverified();
        Clusters::of_verified(pairs, Arc::new(similarity), self.len())
    }
}
