//! What goes into a store and what comes out.

use crate::error::{Error, Result};
use crate::id::DocumentId;
use crate::sketch::Signature;
use crate::types::matches::{BeyondBudget, Match};

/// The longest key.
pub(crate) const KEY_LIMIT_BYTES: usize = 4096;
/// The longest payload.
pub(crate) const PAYLOAD_LIMIT_BYTES: usize = 64 << 20;

/// What is stored beside a signature: an optional key, a stamp and a payload of the user's.
///
/// ```
/// use resemblance::Document;
/// let document = Document::new("page/1").stamp(1_700_000_000).payload(b"title");
/// # let _ = document;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) stamp: u64,
    pub(crate) payload: &'a [u8],
}

impl<'a> Document<'a> {
    /// A document under this key: any bytes, up to 4,096 of them.
    #[must_use]
    pub fn new<K: AsRef<[u8]> + ?Sized>(key: &'a K) -> Self {
        Self {
            key: Some(key.as_ref()),
            stamp: 0,
            payload: &[],
        }
    }

    /// A document that is known by its id alone.
    #[must_use]
    pub fn without_key() -> Self {
        Self {
            key: None,
            stamp: 0,
            payload: &[],
        }
    }

    /// A number of the user's, such as the seconds of a clock; 0 if not given.
    #[must_use]
    pub fn stamp(mut self, stamp: u64) -> Self {
        self.stamp = stamp;
        self
    }

    /// Bytes of the user's, up to 64 MiB; none if not given.
    #[must_use]
    pub fn payload(mut self, payload: &'a [u8]) -> Self {
        self.payload = payload;
        self
    }

    pub(crate) fn validate(&self) -> Result<()> {
        let key_bytes = self.key.map_or(0, <[u8]>::len);
        if key_bytes > KEY_LIMIT_BYTES {
            let found = format!("{key_bytes} bytes");
            return Err(Error::invalid("key", found, "at most 4,096 bytes"));
        }
        let payload_bytes = self.payload.len();
        if payload_bytes > PAYLOAD_LIMIT_BYTES {
            let found = format!("{payload_bytes} bytes");
            return Err(Error::invalid("payload", found, "at most 64 MiB"));
        }
        Ok(())
    }
}

/// A stored document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub(crate) id: DocumentId,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) signature: Signature,
    pub(crate) stamp: u64,
    pub(crate) payload: Vec<u8>,
}

impl Record {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> DocumentId {
        self.id
    }

    /// Its key, unless it was appended without one.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    /// Its signature.
    #[must_use]
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The user's number.
    #[must_use]
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// The user's bytes.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// What `insert_if_new` found.
///
/// With [`StoreOptions::probe_budget`](crate::StoreOptions::probe_budget) a document is compared with a
/// part of a hot bucket only. Whether that was so says [`beyond_budget`](Self::beyond_budget).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Novelty {
    /// Nothing like it: the document was inserted under this id.
    New(DocumentId),
    /// A near-duplicate is there, the best one is given, and nothing was written.
    NearDuplicate(Match),
    /// The key is there, whatever the content: how near its content is, is given, and nothing
    /// was written.
    SameKey(Match),
    /// Nothing like it among those that the budget of the store allowed to compare with: the document
    /// was inserted. Only stores that were opened with a budget answer this.
    NewWithinBudget {
        /// The document's id.
        id: DocumentId,
        /// With what it was not compared.
        left_out: BeyondBudget,
    },
}

impl Novelty {
    /// Of an inserted document.
    pub(crate) fn inserted(id: DocumentId, beyond: Option<BeyondBudget>) -> Self {
        match beyond {
            None => Self::New(id),
            Some(left_out) => Self::NewWithinBudget { id, left_out },
        }
    }

    /// Whether the document was inserted.
    ///
    /// ```
    /// use resemblance::{DocumentId, Novelty};
    /// assert!(Novelty::New(DocumentId::new(7)).is_new());
    /// ```
    #[must_use]
    pub fn is_new(&self) -> bool {
        matches!(self, Self::New(_) | Self::NewWithinBudget { .. })
    }

    /// The id of the document that was inserted, or else of the one that was found.
    ///
    /// ```
    /// use resemblance::{DocumentId, Novelty};
    /// assert_eq!(Novelty::New(DocumentId::new(7)).id().get(), 7);
    /// ```
    #[must_use]
    pub fn id(&self) -> DocumentId {
        match self {
            Self::New(id) | Self::NewWithinBudget { id, .. } => *id,
            Self::NearDuplicate(found) | Self::SameKey(found) => found.id(),
        }
    }

    /// What the budget of the store left out; `None` if the answer is the same as without one.
    #[must_use]
    pub fn beyond_budget(&self) -> Option<BeyondBudget> {
        match self {
            Self::New(_) => None,
            Self::NewWithinBudget { left_out, .. } => Some(*left_out),
            Self::NearDuplicate(found) | Self::SameKey(found) => found.beyond_budget(),
        }
    }
}

/// What `upsert` did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Upserted {
    /// The document's id: a new one, unless it is unchanged.
    pub id: DocumentId,
    /// The document that held the key before, and is gone.
    pub replaced: Option<DocumentId>,
    /// What the content is to the one that the key had before.
    pub revision: Revision,
}

/// What the content that `upsert` brought is to the document's own last version, which the match
/// names and compares it with: [`Match::similarity`] and [`Match::distance`] as a query has them.
///
/// ```
/// use resemblance::{Document, MinHash, Revision, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(128)).build()?;
/// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
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
    /// There was no document under the key, or none is given.
    First,
    /// Identical signatures: all that is stored of them is the same, bit by bit. The document keeps
    /// its id, and its postings are not written again.
    Unchanged(Match),
    /// Another signature, within the schema's own bounds: those by which `insert_if_new` calls two
    /// documents near.
    Near(Match),
    /// Any other signature.
    Different(Match),
}

impl Revision {
    /// The document's last version, compared with the new one; `None` of the first.
    #[must_use]
    pub fn last(&self) -> Option<&Match> {
        match self {
            Self::First => None,
            Self::Unchanged(last) | Self::Near(last) | Self::Different(last) => Some(last),
        }
    }
}
