//! The rules that select the documents of an eviction.

use std::fmt;

use crate::types::StoredDocument;

/// Decides whether a document is evicted.
pub(super) type Judge<'j> = dyn FnMut(&StoredDocument<'_>) -> bool + 'j;

/// Selects the documents that [`Store::evict`](crate::Store::evict) removes.
///
/// ```
/// # use resemblance::{Document, EvictPolicy, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// for day in 0..10 {
///     store.insert(Document::new(&format!("page/{day}")).stamp(day), &page)?;
/// }
/// assert_eq!(store.evict(EvictPolicy::OlderThan(2)).run()?.evicted, 2);
/// assert_eq!(store.evict(EvictPolicy::KeepNewest(5)).run()?.evicted, 3);
/// let is_even = EvictPolicy::matching(|document| document.stamp() % 2 == 0);
/// assert_eq!(store.evict(is_even).run()?.evicted, 2);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[non_exhaustive]
pub enum EvictPolicy<'a> {
    /// Remove documents with a stamp less than this one.
    OlderThan(u64),
    /// Keep this number of documents and remove the others. Documents with the greatest stamps are
    /// kept, and among equal stamps those with the greatest ids.
    ///
    /// The documents are determined exactly, as of the time of the call, in three to nine passes
    /// over all documents, with 4 MiB of memory and an open snapshot. The number of removed
    /// documents never exceeds the excess at that time.
    KeepNewest(u64),
    /// Remove documents for which the closure returns true. [`matching`](Self::matching) makes it.
    Where(Box<Judge<'a>>),
}

impl<'a> EvictPolicy<'a> {
    /// Remove the documents for which `is_evicted` returns true.
    ///
    /// The closure is called in the thread that evicts, outside of a transaction. For a document
    /// that it selects, it is called again within the transaction that removes it, and the second
    /// answer counts. It should be fast, and must not write to the store.
    ///
    /// ```
    /// # use resemblance::{EvictPolicy, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let signature = store.sketch_text("some text or other")?;
    /// store.insert("https://example.org/1", &signature)?;
    /// store.insert("https://example.net/1", &signature)?;
    /// let is_gone = |key: &[u8]| key.starts_with(b"https://example.net/");
    /// let policy = EvictPolicy::matching(|document| document.key().is_some_and(is_gone));
    /// let report = store.evict(policy).run()?;
    /// assert_eq!((report.examined, report.evicted), (2, 1));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn matching(is_evicted: impl FnMut(&StoredDocument<'_>) -> bool + 'a) -> Self {
        Self::Where(Box::new(is_evicted))
    }
}

impl fmt::Debug for EvictPolicy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OlderThan(stamp) => f.debug_tuple("OlderThan").field(stamp).finish(),
            Self::KeepNewest(documents) => f.debug_tuple("KeepNewest").field(documents).finish(),
            Self::Where(_) => f.debug_tuple("Where").finish_non_exhaustive(),
        }
    }
}
