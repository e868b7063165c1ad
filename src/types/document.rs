//! Documents as callers give them and get them back, and the results of inserts and upserts.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::id::DocumentId;
use crate::sketch::Signature;
use crate::types::key_text::key_text;
use crate::types::matches::{BeyondBudget, Match};

/// Longest key, in bytes.
pub(crate) const KEY_LIMIT_BYTES: usize = 4096;
/// Longest payload, in bytes.
pub(crate) const PAYLOAD_LIMIT_BYTES: usize = 64 << 20;

/// The part of a document that is stored beside its signature: an optional key, a stamp and a payload.
///
/// A key alone is a document, too, and so is a key with a payload.
///
/// ```
/// use resemblance::Document;
/// let document = Document::new("page/1").payload(b"title");
/// assert_eq!(Document::from(("page/1", "title")), document);
/// assert_eq!(Document::from("page/2"), Document::new("page/2"));
/// let stamped = document.stamp(1_700_000_000);
/// # let _ = stamped;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    pub(crate) key: Option<Cow<'a, [u8]>>,
    pub(crate) stamp: u64,
    pub(crate) payload: Cow<'a, [u8]>,
}

/// Bytes of any kind, borrowed or owned, as keys and payloads are given.
macro_rules! document_from {
    ($($bytes:ty $(, $n:ident)? => |$value:ident| $cow:expr;)+) => {$(
        /// A document with this key, stamp 0 and no payload.
        impl<'a $(, const $n: usize)?> From<$bytes> for Document<'a> {
            fn from($value: $bytes) -> Self {
                Self {
                    key: Some($cow),
                    ..Self::without_key()
                }
            }
        }
    )+};
}

document_from! {
    &'a str => |key| Cow::Borrowed(key.as_bytes());
    &'a String => |key| Cow::Borrowed(key.as_bytes());
    String => |key| Cow::Owned(key.into_bytes());
    &'a [u8] => |key| Cow::Borrowed(key);
    &'a Vec<u8> => |key| Cow::Borrowed(key.as_slice());
    Vec<u8> => |key| Cow::Owned(key);
    Cow<'a, [u8]> => |key| key;
    &'a [u8; N], N => |key| Cow::Borrowed(key.as_slice());
    [u8; N], N => |key| Cow::Owned(key.to_vec());
}

/// The same document, borrowed: no byte is copied.
impl<'a> From<&'a Document<'_>> for Document<'a> {
    fn from(document: &'a Document<'_>) -> Self {
        Self {
            key: document.key().map(Cow::Borrowed),
            stamp: document.stamp,
            payload: Cow::Borrowed(&document.payload),
        }
    }
}

/// A document with a key and a payload, and stamp 0.
impl<'a, K: Into<Document<'a>>, P: AsRef<[u8]> + ?Sized> From<(K, &'a P)> for Document<'a> {
    fn from((key, payload): (K, &'a P)) -> Self {
        key.into().payload(payload.as_ref())
    }
}

impl<'a> Document<'a> {
    /// Makes a document with a key: any bytes, up to 4,096 of them.
    #[must_use]
    pub fn new<K: AsRef<[u8]> + ?Sized>(key: &'a K) -> Self {
        Self {
            key: Some(Cow::Borrowed(key.as_ref())),
            ..Self::without_key()
        }
    }

    /// Makes a document without a key, which is known by its id alone.
    #[must_use]
    pub fn without_key() -> Self {
        Self {
            key: None,
            stamp: 0,
            payload: Cow::Borrowed(&[]),
        }
    }

    /// Sets the stamp: a number of the caller's choice, such as the seconds of a clock. Default: 0.
    #[must_use]
    pub fn stamp(mut self, stamp: u64) -> Self {
        self.stamp = stamp;
        self
    }

    /// Sets the payload: any bytes, up to 64 MiB. Default: none.
    #[must_use]
    pub fn payload(mut self, payload: &'a [u8]) -> Self {
        self.payload = Cow::Borrowed(payload);
        self
    }

    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    pub(crate) fn validate(&self) -> Result<()> {
        let key_bytes = self.key().map_or(0, <[u8]>::len);
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
    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> DocumentId {
        self.id
    }

    /// Returns the key; `None` if the document has none.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    /// Returns the key as text for people, as [`key_text`] does.
    #[must_use]
    pub fn key_str(&self) -> Option<Cow<'_, str>> {
        self.key().map(key_text)
    }

    /// Returns the signature.
    #[must_use]
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Returns the stamp.
    #[must_use]
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Returns the payload.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// The result of `insert_if_new`.
///
/// With [`StoreOptions::probe_budget`](crate::StoreOptions::probe_budget) a document is compared with a
/// part of a hot bucket only; [`beyond_budget`](Self::beyond_budget) says if that was so.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Novelty {
    /// The document was inserted: no near-duplicate of it is in the store, or none among the candidates
    /// that the store's budget allowed to compare.
    New {
        /// The document's id.
        id: DocumentId,
        /// The candidates that it was not compared with; only stores that were opened with a
        /// [budget](crate::StoreOptions::probe_budget) leave any out.
        left_out: Option<BeyondBudget>,
    },
    /// The store has a near-duplicate, of which this is the best one. Nothing was written.
    NearDuplicate(Match),
    /// The store has a document with the same key, near or not, and this is how similar the two are.
    /// Nothing was written.
    SameKey(Match),
}

impl Novelty {
    pub(crate) fn inserted(id: DocumentId, beyond: Option<BeyondBudget>) -> Self {
        Self::New {
            id,
            left_out: beyond,
        }
    }

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
            Self::NearDuplicate(found) | Self::SameKey(found) => found.id(),
        }
    }

    /// Returns the candidates that the store's budget left out; `None` if the result is the same as
    /// without a budget.
    #[must_use]
    pub fn beyond_budget(&self) -> Option<BeyondBudget> {
        match self {
            Self::New { left_out, .. } => *left_out,
            Self::NearDuplicate(found) | Self::SameKey(found) => found.beyond_budget(),
        }
    }
}

/// The result of `upsert`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Upserted {
    /// The document's id: a new one, unless its signature is unchanged.
    pub id: DocumentId,
    /// The document that had the key before and was deleted.
    pub replaced: Option<DocumentId>,
    /// The comparison with the document that had the key before.
    pub revision: Revision,
}

/// The comparison of an upserted document with its own last version, which is given as the match that a
/// query would return: see [`Match::similarity`] and [`Match::distance`].
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
    /// There was no document with the key, or the document has no key.
    First,
    /// The stored forms of the two signatures are the same, bit by bit. The document keeps its id, and its
    /// postings are not written again.
    Unchanged(Match),
    /// The signatures differ, but within the schema's own bounds, by which `insert_if_new` calls two
    /// documents near.
    Near(Match),
    /// The signatures differ by more than the schema's bounds.
    Different(Match),
}

impl Revision {
    /// Returns the document's last version, compared with the new one; `None` if this is the first.
    #[must_use]
    pub fn last(&self) -> Option<&Match> {
        match self {
            Self::First => None,
            Self::Unchanged(last) | Self::Near(last) | Self::Different(last) => Some(last),
        }
    }
}
