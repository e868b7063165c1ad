//! The façade of a snapshot: every method calls the module that does the work.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use crate::build::RebandReport;
use crate::clusters::{ClusterChanges, ReadClusters, check_kept};
use crate::error::Result;
use crate::id::ClusterId;
use crate::join::{
    self, Clusters, GrownCluster, Join, Pair, Pairs, Representative, SuspiciousCluster,
};
use crate::maintain::{self, BackupReport, ExportReport, Stats};
use crate::query::{ContainmentQuery, Nearest, OneOrMany, Query, ShareOf};
use crate::read::{Records, SnapshotView};
use crate::types::{CheckReport, DocumentId, Matches, Operation, Overlaps, Record};
use resemblance_sketch::schema::{DesignReport, Schema};

#[cfg(doc)]
use crate::error::Error;

/// The store as it was at one commit. A snapshot sees no later change. It never waits for the
/// writer, and the writer never waits for it. It is cheap to make and to clone, and any number of
/// snapshots may exist in any threads. It keeps the file open.
///
/// Space that the writer frees is not reused while an older snapshot exists.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// let before = store.snapshot()?;
/// store.insert("key", &store.sketch_text("some text or other")?)?;
/// assert!(!before.contains("key")?);
/// assert!(store.snapshot()?.contains("key")?);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot {
    view: SnapshotView,
}

impl Operation<'_, RebandReport> {
    /// Sets the store that has the sets of features of all documents, for a store that
    /// [becomes exact](crate::schema::Rebanding::exact). The schema of the other store must be the one that this
    /// store gets, apart from bands and tables. It may have more documents.
    ///
    /// Each document of this store must have a key. The other store must have a document with this
    /// key and the same signature, whose set is copied. Otherwise nothing changes, and the error
    /// names documents for which there is none. A text that was edited without any effect on its
    /// signature is not noticed: the set is that of the edited text.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text, schema::Rebanding};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("pages.rsm");
    /// let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
    /// let store = Store::create(&path, schema.clone())?;
    /// store.insert("a", &store.sketch_text("one two three four")?)?;
    /// drop(store);
    ///
    /// let rebanding = Rebanding::new().exact();
    /// let texts = Store::in_memory(schema.rebanded(&rebanding)?)?;
    /// let reband = || Store::reband(&path, &rebanding).sets_from(&texts.snapshot()?).run();
    /// assert!(reband().is_err()); // it does not have "a"
    /// texts.insert("a", &texts.sketch_text("one two three four")?)?;
    /// assert!(reband()?.schema.is_exact());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn sets_from(mut self, store: &Snapshot) -> Self {
        self.settings.sets_from = Some(store.view.clone());
        self
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("path", &self.view.context().path)
            .field("state", &self.view.inner.version.state)
            .finish_non_exhaustive()
    }
}

impl Snapshot {
    pub(crate) fn new(view: SnapshotView) -> Self {
        Self { view }
    }

    #[cfg(test)]
    pub(crate) fn view(&self) -> &SnapshotView {
        &self.view
    }

    /// Returns the position that [`set_position`](crate::WriteTransaction::set_position) has set
    /// under a name, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`](crate::Error::Corrupt) and [`Error::Io`](crate::Error::Io) if the file
    /// cannot be read.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let mut transaction = store.begin_write()?;
    /// transaction.set_position("pages-0", Some(b"41"))?;
    /// transaction.commit()?;
    /// assert_eq!(store.snapshot()?.position("pages-0")?, Some(b"41".to_vec()));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn position(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.view.position(name)
    }

    /// Begins a query for the documents that are near a signature. Many signatures can be queried
    /// together.
    ///
    /// Many signatures together are answered several times faster than one by one. The time for
    /// each falls with their number, up to about ten thousand. In addition to the answers, the
    /// query uses up to about 100 MB of memory, or more if a single signature has over a million
    /// candidates.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// let store = Store::in_memory(schema)?;
    /// let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
    /// let other = store.sketch_text("a text about something else")?;
    /// store.insert("first", &page)?;
    ///
    /// let snapshot = store.snapshot()?;
    /// let matches = snapshot.query(&page).limit(10).run()?;
    /// assert_eq!(matches[0].key(), Some(&b"first"[..]));
    ///
    /// let answers = snapshot.query(&[page, other]).limit(10).run()?;
    /// assert_eq!(answers[0], matches);
    /// assert!(answers[1].is_empty());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[doc(alias("near", "similar", "lookup", "search"))]
    pub fn query<'a, Q: OneOrMany + ?Sized>(
        &'a self,
        signatures: &'a Q,
    ) -> Query<'a, Q::Each<Matches>> {
        Query::new(self.view.view(), Cow::Borrowed(signatures.signatures()))
    }

    /// Begins a query for the documents that contain a text: *is this paragraph in that page?* The
    /// text is given by its signature, and many texts can be queried together.
    /// [`min_share`](ContainmentQuery::min_share) sets how much of the text a document must
    /// contain.
    ///
    /// ```
    /// # use resemblance::{Containment, Schema, Store, Text};
    /// let containment = Containment::new(2).window(3); // finds each passage of 4 words
    /// let schema = Schema::builder().text(Text::words(2)).containment(containment).build()?;
    /// let store = Store::in_memory(schema)?;
    /// store.insert("page", &store.sketch_text("the quick brown fox jumps over the lazy dog")?)?;
    /// let texts = ["brown fox jumps over", "a text about something else"];
    /// let texts = texts.map(|text| store.sketch_text(text)).into_iter();
    /// let texts = texts.collect::<resemblance::Result<Vec<_>>>()?;
    /// let answers = store.snapshot()?.contained_in(&texts).run()?;
    /// assert_eq!(answers[0][0].key(), Some(&b"page"[..]));
    /// assert!(answers[1].is_empty());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[doc(alias("containment", "superset"))]
    pub fn contained_in<'a, Q: OneOrMany + ?Sized>(
        &'a self,
        signatures: &'a Q,
    ) -> ContainmentQuery<'a, Q::Each<Overlaps>> {
        self.about_passages(signatures, ShareOf::Query)
    }

    /// Begins a query for the documents that a text contains. The text is given by its signature,
    /// and many texts can be queried together. [`min_share`](ContainmentQuery::min_share) sets how
    /// much of a document the text must contain.
    ///
    /// ```
    /// # use resemblance::{Containment, Schema, Store, Text};
    /// # let containment = Containment::new(2).window(3);
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).containment(containment).build()?)?;
    /// store.insert("sentence", &store.sketch_text("the quick brown fox jumps")?)?;
    /// let page = store.sketch_text("yes the quick brown fox jumps over the lazy dog")?;
    /// let found = store.snapshot()?.contents_of(&page).run()?;
    /// assert_eq!((found.len(), found[0].document_share()), (1, 1.0));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn contents_of<'a, Q: OneOrMany + ?Sized>(
        &'a self,
        signatures: &'a Q,
    ) -> ContainmentQuery<'a, Q::Each<Overlaps>> {
        self.about_passages(signatures, ShareOf::Document)
    }

    /// Begins a query for the documents that share any passage with a text. The text is given by
    /// its signature, and many texts can be queried together.
    ///
    /// ```
    /// # use resemblance::{Containment, Schema, Store, Text};
    /// # let containment = Containment::new(2).window(3);
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).containment(containment).build()?)?;
    /// store.insert("sentence", &store.sketch_text("the quick brown fox jumps")?)?;
    /// let page = store.sketch_text("yes the quick brown fox jumps over the lazy dog")?;
    /// let found = store.snapshot()?.overlaps(&page).run()?;
    /// assert_eq!((found.len(), found[0].key()), (1, Some(&b"sentence"[..])));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn overlaps<'a, Q: OneOrMany + ?Sized>(
        &'a self,
        signatures: &'a Q,
    ) -> ContainmentQuery<'a, Q::Each<Overlaps>> {
        self.about_passages(signatures, ShareOf::Neither)
    }

    fn about_passages<'a, Q: OneOrMany + ?Sized>(
        &'a self,
        signatures: &'a Q,
        share_of: ShareOf,
    ) -> ContainmentQuery<'a, Q::Each<Overlaps>> {
        let signatures = Cow::Borrowed(signatures.signatures());
        ContainmentQuery::new(self.view.view(), signatures, share_of)
    }

    /// Begins a query for documents that are near a stored one, which is itself left out; returns `None` if
    /// no document has the key.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// for key in ["a", "b"] {
    ///     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
    /// }
    /// let snapshot = store.snapshot()?;
    /// let query = snapshot.query_by_key("a")?.expect("it is stored");
    /// let matches = query.run()?;
    /// assert_eq!(matches.len(), 1);
    /// assert_eq!(matches[0].key(), Some(&b"b"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn query_by_key(&self, key: impl AsRef<[u8]>) -> Result<Option<Query<'_>>> {
        let record = self.get(key)?;
        Ok(record.map(|record| {
            Query::new(self.view.view(), Cow::Owned(vec![record.signature])).excluding(record.id)
        }))
    }

    /// Begins a search for the `n` documents that are nearest to a signature, however far they are.
    /// [`Nearest::run`] returns `n` documents if the store has that many with features. [`Nearest`]
    /// describes the search.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
    /// let store = Store::in_memory(schema)?;
    /// for text in ["to be or not to be", "all that glitters is not gold"] {
    ///     store.insert(text, &store.sketch_text(text)?)?;
    /// }
    /// let page = store.sketch_text("all that glitters may be gold")?;
    /// let nearest = store.snapshot()?.nearest(&page, 1).run()?;
    /// assert_eq!(nearest[0].key_str().as_deref(), Some("all that glitters is not gold"));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[doc(alias("knn", "top-k", "ann", "neighbors", "neighbours"))]
    pub fn nearest<'a, Q: OneOrMany + ?Sized>(
        &'a self,
        signatures: &'a Q,
        n: usize,
    ) -> Nearest<'a, Q::Each<Matches>> {
        Nearest::new(self.view.view(), signatures.signatures(), n)
    }

    /// Returns the document with a key, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] and [`Error::Io`] if the file
    /// cannot be read.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// store.insert(("page/1", "a title"), &page)?;
    /// let record = store.snapshot()?.get("page/1")?.expect("it is stored");
    /// assert_eq!(record.payload(), b"a title");
    /// assert_eq!(store.snapshot()?.get("page/2")?, None);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Record>> {
        self.view.view().get(key.as_ref())
    }

    /// Returns the document with an id, if there is one.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let id = store.insert(("page/1", "a title"), &page)?;
    /// let record = store.snapshot()?.get_id(id)?.expect("it is stored");
    /// assert_eq!((record.key(), record.payload()), (Some(&b"page/1"[..]), &b"a title"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn get_id(&self, id: DocumentId) -> Result<Option<Record>> {
        self.view.view().get_id(id)
    }

    /// Returns true if there is a document with this key.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.view.view().contains(key.as_ref())
    }

    /// Returns the key of a document, or `None` if there is no such document or it has no key.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get).
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let ids = [store.insert("a", &page)?, store.insert(Document::without_key(), &page)?];
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(snapshot.key(ids[0])?.as_deref(), Some(&b"a"[..]));
    /// assert_eq!(snapshot.key(ids[1])?, None);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn key(&self, id: DocumentId) -> Result<Option<Vec<u8>>> {
        self.view.key(id)
    }

    /// Returns the number of documents.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// store.insert("a", &page)?;
    /// let snapshot = store.snapshot()?;
    /// store.insert("b", &page)?;
    /// assert_eq!((snapshot.len(), store.snapshot()?.len()), (1, 2));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> u64 {
        self.view.len()
    }

    /// Returns the number of commits, up to this one, that have changed anything in the store.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let before = store.snapshot()?.commits();
    /// store.insert("a", &store.sketch_text("some text or other")?)?;
    /// assert_eq!(store.snapshot()?.commits(), before + 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.view.inner.version.state.commit
    }

    /// Returns the id that the next document gets, which is the number of documents ever inserted.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// store.insert("a", &store.sketch_text("some text or other")?)?;
    /// store.remove("a")?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!((snapshot.len(), snapshot.next_id().get()), (0, 1));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn next_id(&self) -> DocumentId {
        DocumentId::new(self.view.inner.version.state.next_id)
    }

    /// Returns true if there are no documents.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// assert!(store.snapshot()?.is_empty());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over all documents in the order of their insertion. [`Records::from_id`] and
    /// [`Records::passing`] select some of them. The iterator keeps the snapshot alive. If
    /// reading fails, it returns an error and ends.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// store.insert(("a", "first"), &page)?;
    /// store.insert(("b", "second"), &page)?;
    /// for record in store.snapshot()?.iter() {
    ///     let record = record?;
    ///     println!("{} {:?}", record.id(), record.key_str());
    /// }
    /// assert_eq!(store.snapshot()?.iter().count(), 2);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn iter(&self) -> Records {
        Records::new(&self.view)
    }

    /// Searches for all pairs of documents within bounds, each pair once. [`Join`] sets bounds, threads and
    /// more, and runs it.
    ///
    /// The pairs are exactly those that a query for each document would return. They are ordered by
    /// lane: each pair is returned in the first lane in which its two documents meet, bucket by
    /// bucket, ascending by code. Within a bucket they are ordered by the later signature, then by
    /// the earlier one. Signatures are ordered by their first documents. If those of a bucket do
    /// not fit into memory, this holds within each part of the bucket. The order is therefore the
    /// same in every run over the same store, whatever the number of threads.
    ///
    /// Documents with equal signatures are compared as one. The search holds at most about 64 MiB
    /// of signatures in memory, and briefly twice that with two threads or more. The largest bucket
    /// takes 64 bytes for each of its documents (88 if the store has noted it as equal to another)
    /// and 72 for each different signature.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// for key in ["a", "b"] {
    ///     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
    /// }
    /// let pairs: Vec<_> = store.snapshot()?.pairs().run()?.collect::<Result<_, _>>()?;
    /// assert_eq!(pairs.len(), 1);
    /// assert_eq!(pairs[0].similarity, Some(1.0));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[doc(alias("self-join", "all-pairs", "similarity join"))]
    pub fn pairs<'a>(&self) -> Join<'a, Pairs> {
        Join::new(Arc::new(self.view.clone()))
    }

    /// Searches for clusters: the groups of documents that pairs within the bounds connect.
    /// Documents without a partner are left out. [`Join`] sets bounds, threads and more, and runs
    /// the search.
    ///
    /// Beyond the memory of [`pairs`](Self::pairs), this takes one bit per document, and 8 bytes
    /// for each id in a range of 256 ids if any of these is in a cluster, whatever the number of
    /// pairs. At the end the clusters replace them, with 16 bytes per document.
    /// [`Clusters::suspicious`] names clusters that are too large to be plausible.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// for key in ["a", "b", "c"] {
    ///     store.insert(key, &store.sketch_text("the same text under three keys")?)?;
    /// }
    /// let clusters: Vec<_> = store.snapshot()?.clusters().run()?.collect();
    /// assert_eq!(clusters.len(), 1);
    /// assert_eq!(clusters[0].len(), 3);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[doc(alias("cluster", "group", "connected components"))]
    pub fn clusters<'a>(&self) -> Join<'a, Clusters> {
        Join::new(Arc::new(self.view.clone()))
    }

    /// Returns the cluster of the document with a key, in a store that [keeps
    /// clusters](crate::SchemaBuilder::clusters), or `None` if there is no such document or it is
    /// in no cluster.
    ///
    /// A cluster begins when a second document comes near a first one. Until then, a document is in
    /// none. It keeps its id while it has members:
    ///
    /// - When clusters meet, the largest keeps its id, and of equally large ones the one with the
    ///   lowest id. The former ids of the others lead to it from then on.
    /// - When a removal splits a cluster, the part with the oldest member keeps the id. Each other
    ///   part of at least two documents gets a new id, and a single one is in no cluster.
    /// - No id is used again, even if all its members are removed.
    ///
    /// The clusters are those that [`clusters`](Self::clusters) finds within the bounds that the
    /// schema sets. A store that was built at once, repaired or merged has the ids that it would
    /// have if its documents had been inserted in the order of their ids.
    ///
    /// ```
    /// use resemblance::{MinHash, Schema, Store, Text, schema::ClusterBounds};
    /// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
    /// let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
    /// let story = store.sketch_text("a story that three papers print on one day")?;
    /// store.insert("monday", &story)?;
    /// assert_eq!(store.snapshot()?.cluster_of("monday")?, None);
    /// store.insert("tuesday", &story)?;
    /// let cluster = store.snapshot()?.cluster_of("monday")?.expect("two documents are in it");
    /// assert_eq!(store.snapshot()?.members(cluster)?.len(), 2);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the store keeps no clusters; [`Error::Corrupt`] and
    /// [`Error::Io`] if the file cannot be read.
    pub fn cluster_of(&self, key: impl AsRef<[u8]>) -> Result<Option<ClusterId>> {
        self.in_clusters(|tables| match self.view.view().find_key(key.as_ref())? {
            Some(id) => Ok(tables.cluster_of(id)?.map(|(id, _)| ClusterId::new(id))),
            None => Ok(None),
        })
    }

    /// Returns the cluster of the document with an id, as [`cluster_of`](Self::cluster_of) does.
    ///
    /// ```
    /// # use resemblance::{ClusterId, MinHash, Schema, Store, Text, schema::ClusterBounds};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
    /// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let ids = [store.insert("a", &page)?, store.insert("b", &page)?];
    /// assert_eq!(store.snapshot()?.cluster_of_id(ids[1])?, Some(ClusterId::new(0)));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`cluster_of`](Self::cluster_of).
    pub fn cluster_of_id(&self, id: DocumentId) -> Result<Option<ClusterId>> {
        self.in_clusters(|tables| {
            let found = tables.cluster_of(id.get())?;
            Ok(found.map(|(id, _)| ClusterId::new(id)))
        })
    }

    /// Returns the members of a cluster, by its id or a former one, in ascending order. There are
    /// none if no cluster has the id, or if all members have been removed. This reads a row for
    /// each edge of the cluster's tree, and takes about 50 bytes of memory for each member.
    ///
    /// ```
    /// # use resemblance::{ClusterId, MinHash, Schema, Store, Text, schema::ClusterBounds};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
    /// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let ids = [store.insert("a", &page)?, store.insert("b", &page)?];
    /// assert_eq!(store.snapshot()?.members(ClusterId::new(0))?, ids);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`cluster_of`](Self::cluster_of).
    pub fn members(&self, cluster: ClusterId) -> Result<Vec<DocumentId>> {
        let members = self.in_clusters(|tables| tables.members_of(cluster.get()))?;
        Ok(members.into_iter().map(DocumentId::new).collect())
    }

    /// Returns the largest clusters and the number of their members, at most `n`, the largest
    /// first. This reads a row for each id that a cluster ever had.
    ///
    /// ```
    /// # use resemblance::{ClusterId, MinHash, Schema, Store, Text, schema::ClusterBounds};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
    /// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # store.insert("a", &page)?;
    /// # store.insert("b", &page)?;
    /// assert_eq!(store.snapshot()?.largest_clusters(10)?, [(ClusterId::new(0), 2)]);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`cluster_of`](Self::cluster_of).
    pub fn largest_clusters(&self, n: usize) -> Result<Vec<(ClusterId, u64)>> {
        self.in_clusters(|tables| tables.largest(n))
    }

    /// Returns the changes of clusters since a position, in the order in which they were made. Each
    /// is in the commit of the documents that made it. The position before the first change is 0,
    /// and each [change](crate::ClusterChange) has the position after it. A program that keeps it,
    /// such as [in the store](crate::WriteTransaction::set_position), continues there after a
    /// restart.
    ///
    /// The store keeps the last 1,048,576 changes at least, which take 5 to 10 bytes each in a
    /// commit of many documents and about 40 in a commit of one. If some after `since` are gone,
    /// the error names the first position that is left. Read all clusters again, from one snapshot,
    /// and continue at its [`cluster_position`](Self::cluster_position). The same holds after a
    /// repair, or a rebanding that finds all clusters again. A store that was built, merged or
    /// imported begins at 0.
    ///
    /// ```
    /// # use resemblance::{ClusterEvent, MinHash, Schema, Store, Text, schema::ClusterBounds};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
    /// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
    /// let story = store.sketch_text("a story that two papers print")?;
    /// let other = store.sketch_text("an advertisement which everybody else prints")?;
    /// for (key, page) in [("a", &story), ("b", &story), ("c", &other), ("d", &other)] {
    ///     store.insert(key, page)?;
    /// }
    /// for change in store.snapshot()?.cluster_changes(2)? {
    ///     let change = change?;
    ///     assert!(matches!(change.event, ClusterEvent::Joined { .. }));
    ///     assert_eq!((change.cluster.get(), change.commit), (1, 4));
    /// }
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the store keeps no clusters, if changes after the position
    /// are gone, or if the position is beyond the last change. The iterator returns
    /// [`Error::Corrupt`] and [`Error::Io`] if the file cannot be read.
    pub fn cluster_changes(&self, since: u64) -> Result<ClusterChanges> {
        check_kept(self.schema())?;
        ClusterChanges::new(&self.view, since)
    }

    /// Returns the position after the last change of a cluster, from which a later snapshot
    /// [continues](Self::cluster_changes).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text, schema::ClusterBounds};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
    /// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # for key in ["a", "b"] { store.insert(key, &page)?; }
    /// let snapshot = store.snapshot()?;
    /// let all = snapshot.largest_clusters(usize::MAX)?; // and their members
    /// assert_eq!((all.len(), snapshot.cluster_position()?), (1, 2));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`cluster_of`](Self::cluster_of).
    pub fn cluster_position(&self) -> Result<u64> {
        check_kept(self.schema())?;
        Ok(ClusterChanges::positions(&self.view)?.1)
    }

    /// Returns the clusters with a member that has a stamp from `stamp` on, at most `n`, the one with
    /// the latest stamp first. This reads the rows of all documents, and takes about 50 bytes of
    /// memory for each cluster that has grown.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text, schema::ClusterBounds};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
    /// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// store.insert(Document::new("yesterday").stamp(20), &page)?;
    /// store.insert(Document::new("today").stamp(21), &page)?;
    /// for story in store.snapshot()?.clusters_since(21, 100)? {
    ///     println!("{}: {} new, {} in all", story.cluster, story.new_documents, story.documents);
    /// }
    /// assert!(store.snapshot()?.clusters_since(22, 100)?.is_empty());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`cluster_of`](Self::cluster_of).
    pub fn clusters_since(&self, stamp: u64, n: usize) -> Result<Vec<GrownCluster>> {
        join::clusters_since(&self.view, stamp, n)
    }

    /// Returns the member that represents a cluster, by its id or a former one; `None` if it has no
    /// members. Of equal ones it is the first. `RepresentativeRule` of `resemblance-corpus` also
    /// compares a number in JSON payloads; for another rule compare the [members](Self::members).
    ///
    /// ```
    /// # use resemblance::{MinHash, Representative, Schema, Store, Text, schema::ClusterBounds};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64).threshold(0.5));
    /// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
    /// for text in ["a b c d e f g h", "b c d e f g h i", "c d e f g h i j"] {
    ///     store.insert(text, &store.sketch_text(text)?)?;
    /// }
    /// let snapshot = store.snapshot()?;
    /// let cluster = snapshot.cluster_of("a b c d e f g h")?.expect("all are linked");
    /// let middle = snapshot.representative(cluster, Representative::Medoid)?.expect("a member");
    /// assert_eq!(snapshot.key(middle)?.as_deref(), Some(&b"b c d e f g h i"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`cluster_of`](Self::cluster_of), and [`Error::InvalidParameter`] for
    /// [`Representative::Longest`] in a store that does not keep features.
    pub fn representative(
        &self,
        cluster: ClusterId,
        rule: Representative,
    ) -> Result<Option<DocumentId>> {
        let found = join::representative(&self.view, cluster.get(), rule)?;
        Ok(found.map(DocumentId::new))
    }

    /// Returns the edges that keep a cluster together, by its id or a former one: one fewer than it
    /// has members, and not all of its near pairs. They are ordered by their documents. This reads
    /// two rows and takes about 100 bytes of memory for each.
    ///
    /// ```
    /// # use resemblance::{ClusterId, MinHash, Schema, Store, Text, schema::ClusterBounds};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
    /// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # for key in ["a", "b", "c"] { store.insert(key, &page)?; }
    /// let edges = store.snapshot()?.cluster_edges(ClusterId::new(0))?;
    /// assert_eq!((edges.len(), edges[0].similarity), (2, Some(1.0)));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`cluster_of`](Self::cluster_of).
    pub fn cluster_edges(&self, cluster: ClusterId) -> Result<Vec<Pair>> {
        join::edges_of(&self.view, cluster.get())
    }

    /// Returns why two documents are in one cluster: the edges that lead from the first to the
    /// second, of which each has a document in common with the next. `None` if they are not in one
    /// cluster. There may be shorter ways over near pairs that are not
    /// [edges](Self::cluster_edges). This reads the edges of up to all members.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text, schema::ClusterBounds};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(128).threshold(0.7)).exact();
    /// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
    /// let insert = |text: &str| store.insert(text, &store.sketch_text(text)?);
    /// let first = insert("a b c d e f g h i j")?;
    /// let second = insert("b c d e f g h i j k")?;
    /// let third = insert("c d e f g h i j k l")?; // its similarity to the first is 0.64
    /// let path = store.snapshot()?.cluster_path(first, third)?.unwrap_or_default();
    /// assert_eq!(path.len(), 2);
    /// assert_eq!((path[0].b, path[1].a), (second, second));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`cluster_of`](Self::cluster_of).
    pub fn cluster_path(&self, from: DocumentId, to: DocumentId) -> Result<Option<Vec<Pair>>> {
        join::path_between(&self.view, from.get(), to.get())
    }

    /// Returns the clusters that are too large to be plausible, as
    /// [`Clusters::suspicious`](crate::Clusters::suspicious) does, the largest first. This reads a
    /// row for each id that a cluster ever had, and one for each edge of these clusters.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text, schema::ClusterBounds};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
    /// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # for key in ["a", "b"] { store.insert(key, &page)?; }
    /// assert!(store.snapshot()?.suspicious_clusters()?.is_empty()); // it is too small
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`cluster_of`](Self::cluster_of).
    pub fn suspicious_clusters(&self) -> Result<Vec<SuspiciousCluster>> {
        join::suspicious(&self.view)
    }

    fn in_clusters<T>(&self, run: impl FnOnce(&ReadClusters) -> Result<T>) -> Result<T> {
        join::in_clusters(&self.view, run)
    }

    /// Returns the schema of the store.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(snapshot.schema(), store.schema());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn schema(&self) -> &Schema {
        self.view.schema()
    }

    /// Reports how well the bands and tables fit the number of documents.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let design = store.snapshot()?.design();
    /// assert_eq!((design.expected_documents, design.advice), (1_000_000, None));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn design(&self) -> DesignReport {
        DesignReport::new(self.schema(), self.len())
    }

    /// Counts the documents, postings, runs and tables of the store. This reads every posting and
    /// all tables, which takes seconds for millions of documents.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] and [`Error::Io`] if the file
    /// cannot be read.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// store.insert("a", &store.sketch_text("a text of a few words")?)?;
    /// let stats = store.snapshot()?.stats().run()?;
    /// assert_eq!((stats.documents, stats.memtable_documents), (1, 1));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn stats(&self) -> Operation<'_, Stats> {
        maintain::stats(&self.view)
    }

    /// Checks all rows and postings of this snapshot, and the pages of the file that contain them.
    /// Other threads may continue to read and write.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store};
    /// # let store = Store::in_memory(Schema::builder().minhash(MinHash::new(64)).build()?)?;
    /// assert!(store.snapshot()?.check().run()?.is_clean());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be read. Damage is in the report.
    pub fn check(&self) -> Operation<'_, CheckReport> {
        maintain::check_snapshot(&self.view)
    }

    /// Copies the store, as this snapshot sees it, into another file, while readers and the writer
    /// continue to use it. The copy is an independent store: it has the same documents with the
    /// same ids, the same runs, unfinished merges and tombstones, and therefore gives the same
    /// answers. It can be opened and written like any other store. A read-only handle suffices to
    /// make it.
    ///
    /// The copy grows under a temporary name in the folder of `path`, and appears under `path` when it
    /// is complete and durable, with the mode, owner and group of the store. A killed process leaves a file whose name
    /// begins with `.resemblance-`, which only its owner may read and the next run removes.
    ///
    /// The copy verifies the checksums of all pages and rows that it reads. It omits free pages, so
    /// it can be smaller than the store. Drop the snapshot after the backup, because space that the
    /// writer frees is not reused while it exists.
    ///
    /// Memory: the cache of the copy, 64 MiB by default, and some MiB more.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let (path, copy) = (folder.path().join("seen.rsm"), folder.path().join("backup.rsm"));
    /// # let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
    /// let store = Store::create(&path, schema)?;
    /// store.insert("a", &store.sketch_text("one two three")?)?;
    ///
    /// let report = store.snapshot()?.backup(&copy).run()?; // other threads may write meanwhile
    /// assert_eq!(report.documents, 1);
    /// assert!(Store::open(&copy)?.snapshot()?.contains("a")?);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] if the copy's path exists: the file there does not change.
    /// [`Error::Corrupt`] if a page or a row of the store is damaged; [`Error::NewerFormat`] and
    /// [`Error::UnknownFeatures`] if the store requires a newer release, because it may have tables
    /// that this one does not know; [`Error::InvalidParameter`] for an option out of range;
    /// [`Error::Stopped`] if the progress callback, which is called about every 4 MiB, stops it;
    /// [`Error::Io`] if, for example, the disk is full. In all these cases, no copy is created.
    pub fn backup(&self, path: impl AsRef<Path>) -> Operation<'_, BackupReport> {
        maintain::backup(&self.view, path.as_ref())
    }

    /// Writes all documents as a stream, in the order of their ids: keys, stamps, payloads and
    /// signatures, but not the index. [`Store::import`] reads it into a store with the same recipe,
    /// whatever its bands. Section 13 of `format-spec.md` describes the stream. It has checksums
    /// and is not compressed.
    ///
    /// The store may be in use meanwhile. The export takes about a MiB of memory, and the memory of
    /// the longest document.
    ///
    /// ```
    /// use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let file = |name: &str| folder.path().join(name);
    /// let schema = |threshold| {
    ///     let builder = Schema::builder().text(Text::words(1));
    ///     builder.minhash(MinHash::new(64).threshold(threshold)).build()
    /// };
    /// let old = Store::create(file("old.rsm"), schema(0.8)?)?;
    /// old.insert("a", &old.sketch_text("one two three")?)?;
    /// let mut stream = Vec::new(); // a file, a pipe, a socket
    /// assert_eq!(old.snapshot()?.export(&mut stream).run()?.documents, 1);
    ///
    /// let new = Store::create(file("new.rsm"), schema(0.6)?)?;
    /// new.import(&stream[..]).run()?;
    /// assert!(new.snapshot()?.contains("a")?);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if a page or a row of the store is damaged, [`Error::Io`] if it cannot be read
    /// or the stream cannot be written, [`Error::Stopped`] if the progress callback stops the
    /// export. The stream then has no end mark, so its import fails.
    ///
    /// [`Store::import`]: crate::Store::import
    pub fn export<'a>(&'a self, writer: impl Write + 'a) -> Operation<'a, ExportReport> {
        maintain::export(&self.view, writer)
    }
}
