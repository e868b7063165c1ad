//! Iteration over the documents of a snapshot.

use std::fmt;
use std::iter::FusedIterator;

use crate::engine::{EngineResult, OwnedRange, PanicSafe};
use crate::error::Result;
use crate::format::DocumentRow;
use crate::read::snapshot_view::SnapshotView;
use crate::read::view::ReadView;
use crate::types::{Document, DocumentId, Filter, Record, StoredDocument};

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
    filter: Filter<'static>,
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
            filter: Filter::all(),
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
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn from_id(mut self, id: DocumentId) -> Self {
        (self.first_id, self.position) = (id.get(), Position::Start);
        self
    }

    /// Returns only documents that pass a filter. Reads the rows of all documents, but only the
    /// payloads of those that meet its conditions.
    ///
    /// ```
    /// # use resemblance::{Filter, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// for key in ["a/1", "b/1", "a/2"] {
    ///     store.insert(key, &page)?;
    /// }
    /// let filter = Filter::all().key_prefix("a/");
    /// let records: Vec<_> = store.snapshot()?.iter().passing(filter).collect::<Result<_, _>>()?;
    /// assert_eq!(records[1].key(), Some(&b"a/2"[..]));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn passing(mut self, filter: Filter<'static>) -> Self {
        self.filter = filter;
        self
    }

    fn accepts(&self, record: &Record) -> bool {
        let document = Document::from(record);
        let stored = StoredDocument::new(record.id().get(), &document);
        self.filter.accepts(&stored)
    }

    fn advance(&mut self) -> Result<Option<Record>> {
        let (snapshot, position) = (&self.snapshot, &mut self.position);
        let (first_id, filter) = (self.first_id, &self.filter);
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
                if filter.admits(row.head.key, row.head.stamp) {
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
        loop {
            match self.advance().transpose() {
                // The closure is called here, where its panic is no damage of the store.
                Some(Ok(record)) if !self.accepts(&record) => {}
                Some(Ok(record)) => return Some(Ok(record)),
                end => {
                    self.position = Position::End;
                    return end;
                }
            }
        }
    }
}

/// After an error or the end nothing follows.
impl FusedIterator for Records {}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records")
            .field("path", &self.snapshot.context().path)
            .field("first_id", &self.first_id)
            .field("filter", &self.filter)
            .field("ended", &matches!(self.position, Position::End))
            .finish_non_exhaustive()
    }
}
