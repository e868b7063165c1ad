//! The documents that a question is about.

use std::fmt;
use std::sync::Arc;

use crate::types::document::StoredDocument;

/// Decides whether a document passes.
type Passes<'a> = dyn Fn(&StoredDocument<'_>) -> bool + Send + Sync + 'a;

/// Restricts a question to some of the documents: by their stamps, by the beginning of their keys,
/// and by a closure. A document must meet every condition that is set.
///
/// These questions take a filter: [`Query::filter`](crate::Query::filter),
/// [`Nearest::filter`](crate::Nearest::filter),
/// [`ContainmentQuery::filter`](crate::ContainmentQuery::filter),
/// [`Join::filter`](crate::Join::filter) and [`Records::passing`](crate::Records::passing). The
/// answer is as if the store held no other documents. A limit, a budget and a cap therefore count
/// only documents that pass: with a limit of ten, ten are returned if ten pass and are near enough.
///
/// The filter is applied while the question is answered, to the documents that share a bucket with
/// the signature. It reads the row of each of them, and no row of the others. A scan, a join and an
/// iteration apply it to all documents.
///
/// ```
/// # use resemblance::{Document, Filter, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
/// for (key, stamp, payload) in [("a/1", 10, b"draft"), ("a/2", 20, b"final"), ("b/1", 20, b"final")] {
///     store.insert(Document::new(key).stamp(stamp).payload(payload), &page)?;
/// }
/// let snapshot = store.snapshot()?;
/// let count = |filter| snapshot.query(&page).filter(filter).run().map(|matches| matches.len());
/// assert_eq!(count(Filter::all())?, 3);
/// assert_eq!(count(Filter::all().newer_than(20).key_prefix("a/"))?, 1);
/// assert_eq!(count(Filter::all().older_than(20))?, 1);
/// assert_eq!(count(Filter::all().when(|document| document.payload() == b"final"))?, 2);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Default)]
#[must_use = "a filter has an effect once a question takes it"]
pub struct Filter<'a> {
    newer_than: Option<u64>,
    older_than: Option<u64>,
    key_prefix: Vec<u8>,
    when: Option<Arc<Passes<'a>>>,
}

impl fmt::Debug for Filter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter")
            .field("newer_than", &self.newer_than)
            .field("older_than", &self.older_than)
            .field("key_prefix", &self.key_prefix)
            .field("has_closure", &self.has_closure())
            .finish()
    }
}

impl<'a> Filter<'a> {
    /// Creates a filter that all documents pass.
    pub fn all() -> Self {
        Self::default()
    }

    /// Lets only documents pass whose stamps are at least this.
    pub fn newer_than(mut self, stamp: u64) -> Self {
        self.newer_than = Some(stamp);
        self
    }

    /// Lets only documents pass whose stamps are smaller than this.
    pub fn older_than(mut self, stamp: u64) -> Self {
        self.older_than = Some(stamp);
        self
    }

    /// Lets only documents pass whose keys begin with these bytes. A document without a key passes
    /// only the empty prefix.
    pub fn key_prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.key_prefix = prefix.as_ref().to_vec();
        self
    }

    /// Lets only documents pass for which the closure returns true. It replaces an earlier one.
    ///
    /// The closure is called for documents that meet the other conditions, from any thread that
    /// answers, and in general once for each. It receives the payload, which is read for it, but no
    /// signature. It must not write to the store. A panic of the closure continues through the
    /// question.
    ///
    /// ```
    /// # use resemblance::{Document, Filter, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// for (key, title) in [("a", "news"), ("b", "sport")] {
    ///     store.insert((key, title), &page)?;
    /// }
    /// let wanted = [b"sport".to_vec()];
    /// let filter = Filter::all().when(|document| wanted.iter().any(|it| it == document.payload()));
    /// let matches = store.snapshot()?.nearest(&page, 1).filter(filter).run()?;
    /// assert_eq!(matches[0].key(), Some(&b"b"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn when(mut self, passes: impl Fn(&StoredDocument<'_>) -> bool + Send + Sync + 'a) -> Self {
        self.when = Some(Arc::new(passes));
        self
    }

    /// Returns true if a closure decides, which must see the payload.
    pub(crate) fn has_closure(&self) -> bool {
        self.when.is_some()
    }

    /// Returns true if a document with this key and this stamp meets all conditions but that of the
    /// closure.
    pub(crate) fn admits(&self, key: Option<&[u8]>, stamp: u64) -> bool {
        self.newer_than.is_none_or(|least| stamp >= least)
            && self.older_than.is_none_or(|least| stamp < least)
            && (self.key_prefix.is_empty()
                || key.is_some_and(|key| key.starts_with(&self.key_prefix)))
    }

    /// Asks the closure.
    pub(crate) fn accepts(&self, document: &StoredDocument<'_>) -> bool {
        self.when.as_ref().is_none_or(|passes| passes(document))
    }
}
