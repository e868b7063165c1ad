//! The results of inserts and upserts.

use crate::id::DocumentId;
use crate::types::matches::{BudgetExceeded, Match};

/// The result of `insert_if_new`.
///
/// With [`StoreOptions::probe_budget`](crate::StoreOptions::probe_budget), a document is compared
/// with only a part of a large bucket; [`budget_exceeded`](Self::budget_exceeded) reports whether
/// that happened.
///
/// Otherwise one number holds for all documents of a store: [`Bounds::certainty`] of
/// `Bounds::new()`, the bounds of the schema. It is the probability that a near-duplicate right at
/// them was missed. The document was then inserted as [`New`](Self::New), or a less similar
/// near-duplicate was returned.
///
/// [`Bounds::certainty`]: crate::Bounds::certainty
///
/// ```
/// # use resemblance::{Bounds, MinHash, Novelty, Schema, Store, Text, search::Certainty};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).exact().build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// let certainty = Bounds::new().certainty(store.schema(), false)?; // of an exact store
/// assert!(matches!(certainty, Certainty::Truth { missed_at_most } if missed_at_most < 0.05));
/// assert!(matches!(store.insert_if_new("a", &page)?, Novelty::New { .. }));
/// match store.insert_if_new("b", &page)? {
///     Novelty::New { id, .. } => println!("inserted as document {id}"),
///     Novelty::NearDuplicate(found) => assert_eq!(found.key(), Some(&b"a"[..])),
///     Novelty::KeyExists(_) => println!("this page was here before"),
///     _ => {}
/// }
/// let same = store.insert_if_new("a", &page)?;
/// assert!(matches!(same, Novelty::KeyExists(_)) && same.budget_exceeded().is_none());
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Novelty {
    /// The document was inserted. The store has no near-duplicate of it, or none among the
    /// candidates that the store's budget allowed to compare.
    New {
        /// The document's id.
        id: DocumentId,
        /// The candidates that it was not compared with; only stores that were opened with a
        /// [budget](crate::StoreOptions::probe_budget) leave any out.
        left_out: Option<BudgetExceeded>,
    },
    /// The store has a near-duplicate, and this is the best one. Nothing was written.
    NearDuplicate(Match),
    /// The store has a document with the same key, similar or not. The match contains their
    /// similarity. Nothing was written.
    KeyExists(Match),
}

impl Novelty {
    /// Returns true if the document was inserted.
    ///
    /// ```
    /// use resemblance::{DocumentId, Novelty};
    /// let id = DocumentId::new(7);
    /// assert!(Novelty::New { id, left_out: None }.is_new());
    /// ```
    #[must_use]
    pub fn is_new(&self) -> bool {
        matches!(self, Self::New { .. })
    }

    /// Returns the id of the document that was inserted, or of the one that was found.
    ///
    /// ```
    /// use resemblance::{DocumentId, Novelty};
    /// let id = DocumentId::new(7);
    /// assert_eq!(Novelty::New { id, left_out: None }.id(), id);
    /// ```
    #[must_use]
    pub fn id(&self) -> DocumentId {
        match self {
            Self::New { id, .. } => *id,
            Self::NearDuplicate(found) | Self::KeyExists(found) => found.id(),
        }
    }

    /// Returns the near-duplicate that was found, or the document with the same key. Returns `None`
    /// if the document was inserted.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// assert_eq!(store.insert_if_new("a", &page)?.found(), None);
    /// let novelty = store.insert_if_new("b", &page)?;
    /// assert_eq!(novelty.found().and_then(|found| found.key()), Some(&b"a"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn found(&self) -> Option<&Match> {
        match self {
            Self::New { .. } => None,
            Self::NearDuplicate(found) | Self::KeyExists(found) => Some(found),
        }
    }

    /// Returns the candidates that the store's budget left out, or `None` if the result is the same
    /// as without a budget.
    #[must_use]
    pub fn budget_exceeded(&self) -> Option<BudgetExceeded> {
        match self {
            Self::New { left_out, .. } => *left_out,
            Self::NearDuplicate(found) | Self::KeyExists(found) => found.budget_exceeded(),
        }
    }
}

/// The result of `upsert`.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// let first = store.upsert("a", &page)?;
/// let second = store.upsert("a", &store.sketch_text("something quite different")?)?;
/// assert_eq!((first.replaced, second.replaced), (None, Some(first.id)));
/// assert!(second.id > first.id);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Upserted {
    /// The document's id. It is new unless the signature is unchanged.
    pub id: DocumentId,
    /// The document that had the key before and was deleted, if any.
    pub replaced: Option<DocumentId>,
    /// The comparison with the document that had the key before.
    pub revision: Revision,
}

/// The comparison of an upserted document with its last version. The last version is a [`Match`],
/// as a query would return it: see [`Match::similarity`] and [`Match::distance`].
///
/// ```
/// use resemblance::{MinHash, Revision, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(128)).build()?)?;
/// let page = store.sketch_text("the text of a page when it was visited first")?;
/// let first = store.upsert("page", &page)?;
/// assert_eq!(first.revision, Revision::First);
///
/// let again = store.upsert("page", &page)?;
/// assert!(matches!(&again.revision, Revision::Unchanged(last) if last.id() == first.id));
/// assert_eq!((again.id, again.replaced), (first.id, None));
///
/// let rewritten = store.sketch_text("nothing that was there on the first visit")?;
/// let upserted = store.upsert("page", &rewritten)?;
/// assert!(matches!(&upserted.revision, Revision::Different(last) if last.similarity() < Some(0.8)));
/// assert_eq!(upserted.replaced, Some(first.id));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Revision {
    /// There was no document with the key, or the document has no key.
    First,
    /// The stored forms of the two signatures are equal, bit by bit. The document keeps its id, and
    /// its postings are not rewritten.
    Unchanged(Match),
    /// The signatures differ, but are within the bounds of the schema, by which `insert_if_new`
    /// decides.
    Near(Match),
    /// The signatures differ by more than the bounds of the schema, or the schema has only
    /// containment.
    Different(Match),
}

impl Revision {
    /// Returns the document's last version, compared with the new one, or `None` if this is the
    /// first.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// assert_eq!(store.upsert("a", &page)?.revision.last(), None);
    /// let again = store.upsert("a", &page)?;
    /// assert_eq!(again.revision.last().and_then(|last| last.similarity()), Some(1.0));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn last(&self) -> Option<&Match> {
        match self {
            Self::First => None,
            Self::Unchanged(last) | Self::Near(last) | Self::Different(last) => Some(last),
        }
    }
}
