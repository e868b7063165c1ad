//! Iteration over the documents of a snapshot.

use std::fmt;
use std::iter::FusedIterator;

use crate::engine::{EngineResult, OwnedRange, PanicSafe};
use crate::error::Result;
use crate::format::DocumentRow;
use crate::read::snapshot_view::SnapshotView;
use crate::read::view::ReadView;
use crate::types::{DocumentId, Record};

/// The documents of a snapshot in insertion order. Made by [`Snapshot::iter`](crate::Snapshot::iter).
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # store.insert("a", &page)?;
/// let mut records = store.snapshot()?.iter();
/// let record = records.next().expect("a document is stored")?;
/// assert_eq!(record.key(), Some(&b"a"[..]));
/// assert!(records.next().is_none());
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "nothing is read before it is iterated over"]
pub struct Records {
    snapshot: SnapshotView,
    first_id: u64,
    key_prefix: Vec<u8>,
    position: Position,
}

/// The position of an iteration.
enum Position {
    Start,
    Within(Box<PanicSafe<OwnedRange<u64, &'static [u8]>>>),
    End,
}

impl Records {
    pub(crate) fn new(snapshot: &SnapshotView) -> Self {
        Self {
            snapshot: snapshot.clone(),
            first_id: 0,
            key_prefix: Vec::new(),
            position: Position::Start,
        }
    }

    /// Begins with this document, or with the first one after it. Use it to continue where an
    /// earlier iteration ended. An iteration that has begun starts again.
    ///
    /// ```
    /// # use resemblance::{DocumentId, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let page = store.sketch_text("some text or other")?;
    /// for key in ["a/1", "b/1", "a/2"] {
    ///     store.insert(key, &page)?;
    /// }
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(snapshot.iter().from_id(DocumentId::new(1)).count(), 2);
    ///
    /// let records: Vec<_> = snapshot.iter().key_prefix("a/").collect::<Result<_, _>>()?;
    /// assert_eq!(records[1].key(), Some(&b"a/2"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn from_id(mut self, id: DocumentId) -> Self {
        (self.first_id, self.position) = (id.get(), Position::Start);
        self
    }

    /// Returns only documents whose key begins with these bytes. Reads the rows of all documents,
    /// but only the payloads of these.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// for key in ["a/1", "b/1", "a/2"] {
    ///     store.insert(key, &page)?;
    /// }
    /// assert_eq!(store.snapshot()?.iter().key_prefix("a/").count(), 2);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn key_prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.key_prefix = prefix.as_ref().to_vec();
        self
    }

    fn advance(&mut self) -> Result<Option<Record>> {
        let (snapshot, position) = (&self.snapshot, &mut self.position);
        let (first_id, prefix) = (self.first_id, self.key_prefix.as_slice());
        snapshot.context().run_checked(|| {
            // Opened with the first record: until then the start of the iteration may still be
            // changed.
            if let Position::Start = position {
                let documents = &snapshot.inner.tables()?.documents;
                let range = documents.range_owned::<u64>(first_id..).engine()?;
                *position = Position::Within(Box::new(PanicSafe::new(range)));
            }
            let Position::Within(range) = position else {
                return Ok(None);
            };
            for entry in range.as_mut() {
                let (key, row) = entry.engine()?;
                let id = key.value();
                if snapshot.inner.is_deleted(id) {
                    continue;
                }
                let row = DocumentRow::decode(id, row.value(), snapshot.context().shape())?;
                let has_prefix = row.head.key.is_some_and(|key| key.starts_with(prefix));
                if prefix.is_empty() || has_prefix {
                    return snapshot.view().to_record(id, &row).map(Some);
                }
            }
            Ok(None)
        })
    }
}

impl Iterator for Records {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.position = Position::End;
        }
        next
    }
}

/// After an error or the end nothing follows.
impl FusedIterator for Records {}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records")
            .field("path", &self.snapshot.context().path)
            .field("first_id", &self.first_id)
            .field("key_prefix", &self.key_prefix)
            .field("ended", &matches!(self.position, Position::End))
            .finish_non_exhaustive()
    }
}
