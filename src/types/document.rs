//! Documents as callers pass and receive them.

use std::borrow::Cow;
use std::fmt::{self, Write};

use crate::error::{Error, Result};
use crate::id::DocumentId;
use resemblance_sketch::sketch::Signature;

/// Longest key, in bytes.
pub(crate) const KEY_LIMIT_BYTES: usize = 4096;
/// Longest payload, in bytes.
pub(crate) const PAYLOAD_LIMIT_BYTES: usize = 64 << 20;

/// The part of a document that is stored with its signature: an optional key, a stamp and a
/// payload.
///
/// A key alone is also a document, and so is a key with a payload.
///
/// ```
/// use resemblance::Document;
/// let document = Document::new("page/1").payload(b"title");
/// assert_eq!(Document::from(("page/1", "title")), document);
/// assert_eq!(Document::from("page/2"), Document::new("page/2"));
/// let stamped = Document::without_key().stamp(1_700_000_000);
/// assert_ne!(stamped, Document::without_key());
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

/// Borrows the same document: no byte is copied.
impl<'a> From<&'a Document<'_>> for Document<'a> {
    fn from(document: &'a Document<'_>) -> Self {
        Self {
            key: document.key().map(Cow::Borrowed),
            stamp: document.stamp,
            payload: Cow::Borrowed(&document.payload),
        }
    }
}

/// Borrows a stored document, to insert it into another store.
impl<'a> From<&'a Record> for Document<'a> {
    fn from(record: &'a Record) -> Self {
        Self {
            key: record.key().map(Cow::Borrowed),
            stamp: record.stamp,
            payload: Cow::Borrowed(&record.payload),
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
    /// Creates a document with a key of up to 4,096 bytes.
    #[must_use]
    pub fn new<K: AsRef<[u8]> + ?Sized>(key: &'a K) -> Self {
        Self {
            key: Some(Cow::Borrowed(key.as_ref())),
            ..Self::without_key()
        }
    }

    /// Creates a document without a key. Only its id finds it.
    #[must_use]
    pub fn without_key() -> Self {
        Self {
            key: None,
            stamp: 0,
            payload: Cow::Borrowed(&[]),
        }
    }

    /// Sets the stamp, a number that the caller chooses, such as a time in seconds. Default: 0.
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
///
/// ```
/// # use resemblance::{Document, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// store.insert(Document::new("page/1").stamp(20).payload(b"a title"), &page)?;
/// let record = store.snapshot()?.get("page/1")?.expect("it is stored");
/// assert_eq!((record.id().get(), record.stamp()), (0, 20));
/// assert_eq!((record.key(), record.payload()), (Some(&b"page/1"[..]), &b"a title"[..]));
/// assert_eq!(record.key_str().as_deref(), Some("page/1")); // for people
/// assert_eq!(record.signature(), &page);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    pub(crate) id: DocumentId,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) signature: Signature,
    pub(crate) stamp: u64,
    pub(crate) payload: Vec<u8>,
}

/// The key as text and the number of bytes of the payload: short enough for a line of a log.
impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("id", &self.id.get())
            .field("key", &self.key_str())
            .field("signature", &self.signature)
            .field("stamp", &self.stamp)
            .field("payload_bytes", &self.payload.len())
            .finish()
    }
}

impl Record {
    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> DocumentId {
        self.id
    }

    /// Returns the key, or `None` if the document has none.
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

/// A stored document about which a closure decides: that of
/// [`EvictPolicy::matching`](crate::EvictPolicy::matching) or of [`Filter::when`](crate::Filter::when).
///
/// ```
/// # use resemblance::{Document, EvictPolicy, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// store.insert(Document::new("page/1").stamp(20).payload(b"draft"), &page)?;
/// let policy = EvictPolicy::matching(|document| {
///     let is_page = document.key().is_some_and(|key| key.starts_with(b"page/"));
///     is_page && document.stamp() < 30 && document.payload() == b"draft" && document.id().get() < 9
/// });
/// assert_eq!(store.evict(policy).run()?.evicted, 1);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredDocument<'a> {
    id: u64,
    document: &'a Document<'a>,
}

impl<'a> StoredDocument<'a> {
    pub(crate) fn new(id: u64, document: &'a Document<'a>) -> Self {
        Self { id, document }
    }

    /// Returns the id of the document.
    #[must_use]
    pub fn id(&self) -> DocumentId {
        DocumentId::new(self.id)
    }

    /// Returns the key of the document, or `None` if it was inserted without one.
    #[must_use]
    pub fn key(&self) -> Option<&'a [u8]> {
        self.document.key()
    }

    /// Returns the stamp of the document.
    #[must_use]
    pub fn stamp(&self) -> u64 {
        self.document.stamp
    }

    /// Returns the payload of the document.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.document.payload
    }
}

/// Returns a key as text on one line. Every key has exactly one such form.
///
/// Backslashes, control characters, those that change the direction of text and bytes that are not
/// UTF-8 are escaped: `\\`, `\t`, `\n`, `\r`, and `\xHH` for each byte of the others. The
/// command-line tool prints keys in this form, and accepts them with `--escaped`.
///
/// ```
/// use resemblance::key_text;
/// assert_eq!(key_text(b"page/1"), "page/1");
/// assert_eq!(key_text(b"a\tb\xff"), r"a\tb\xFF");
/// ```
#[must_use]
pub fn key_text(key: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(key) {
        Ok(text) if !text.contains(|c| c == '\\' || is_control(c)) => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(key)),
    }
}

fn escaped(key: &[u8]) -> String {
    let mut text = String::with_capacity(key.len() + 8);
    for chunk in key.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '\t' => text.push_str("\\t"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                other if is_control(other) => {
                    push_bytes(&mut text, other.encode_utf8(&mut [0; 4]).as_bytes());
                }
                other => text.push(other),
            }
        }
        push_bytes(&mut text, chunk.invalid());
    }
    text
}

fn push_bytes(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\x{byte:02X}");
    }
}

/// Returns true for characters that can drive a terminal, break a line or change the order of displayed text.
fn is_control(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
