//! Readers: one state of the store for as long as it is held.

use std::borrow::Cow;
use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;

use redb::{OwnedRange, ReadableTable};

use crate::engine::{Contained, ReadOnlyBlocks, ReadOnlyPieces, ReadTables};
use crate::error::Result;
use crate::format::{DocumentRow, SignatureRow};
use crate::index::{CodeRange, VisitAsked, Wanted};
use crate::observe::LiveSnapshot;
use crate::query::{Query, Subject};
use crate::read::{Plan, PostingTable, ProbeTables, Source, Visit, VisitRow, VisitRows};
use crate::schema::Schema;
use crate::sketch::Signature;
use crate::state::{Committed, Core};
use crate::store::Inner;
use crate::types::{DocumentId, Matches, Record};

/// The store as it was at one commit. It sees no later change, never waits for the writer, and the
/// writer never waits for it. Cheap to make and to clone; any number may live in any threads. It
/// keeps the file open.
///
/// Space that the writer frees is not used again while an older snapshot lives.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// let before = store.snapshot()?;
/// store.insert("key", &store.sketch_text("some text or other")?)?;
/// assert!(!before.contains("key")?);
/// assert!(store.snapshot()?.contains("key")?);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) inner: Arc<SnapshotInner>,
}

pub(crate) struct SnapshotInner {
    // Before the store: the file is closed after its last reader has gone.
    tables: Contained<ReadTables>,
    pub(crate) store: Arc<Inner>,
    pub(crate) committed: Arc<Committed>,
    _is_alive: LiveSnapshot,
}

impl SnapshotInner {
    pub(crate) fn tables(&self) -> Result<&ReadTables> {
        self.tables.get()
    }

    fn probe_tables(
        &self,
        table: PostingTable,
    ) -> Result<ProbeTables<'_, ReadOnlyBlocks, ReadOnlyPieces>> {
        Ok(ProbeTables {
            core: &self.store.core,
            table,
            blocks: self.blocks(table)?,
            filters: &self.tables()?.filters,
        })
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("path", &self.core().path)
            .field("state", &self.inner.committed.state)
            .finish_non_exhaustive()
    }
}

impl Snapshot {
    pub(crate) fn new(store: Arc<Inner>) -> Result<Self> {
        let (read, committed) = store.publication.snapshot(&store.engine)?;
        let tables = Contained::new(ReadTables::open(read)?);
        let inner = SnapshotInner {
            tables,
            _is_alive: store.core.meters.snapshot(),
            store,
            committed,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    pub(crate) fn source(&self) -> &dyn Source {
        &*self.inner
    }

    pub(crate) fn core(&self) -> &Core {
        &self.inner.store.core
    }

    /// The number of documents.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.inner.committed.state.documents
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The schema of the store.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.core().schema
    }

    /// The document under a key.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`](crate::Error::Corrupt) and [`Error::Io`](crate::Error::Io) if the file
    /// cannot be read.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Record>> {
        self.core()
            .guarded(|| match self.source().find_key(key.as_ref())? {
                Some(id) => self.source().record(id),
                None => Ok(None),
            })
    }

    /// The document with an id.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn get_id(&self, id: DocumentId) -> Result<Option<Record>> {
        self.core().guarded(|| self.source().record(id.get()))
    }

    /// Whether there is a document under a key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.core()
            .guarded(|| Ok(self.source().find_key(key.as_ref())?.is_some()))
    }

    /// The key of a document; `None` if there is no such document or it has no key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn key(&self, id: DocumentId) -> Result<Option<Vec<u8>>> {
        self.core()
            .guarded(|| Ok(self.source().key_of(id.get())?.flatten()))
    }

    /// All documents in the order of their insertion. The iterator keeps the snapshot alive.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); the iterator yields an error and ends where reading fails.
    pub fn iter(&self) -> Result<Records> {
        let range = self
            .core()
            .guarded(|| Ok(self.inner.tables()?.documents.range_owned::<u64>(..)?))?;
        Ok(Records {
            range: Some(Contained::new(range)),
            snapshot: self.clone(),
        })
    }

    /// Asks for documents that are near a signature.
    pub fn query<'a>(&'a self, signature: &'a Signature) -> Query<'a> {
        Query::new(self.source(), Cow::Borrowed(signature))
    }

    /// Asks for documents that are near a stored one, which is itself left out; `None` if the key
    /// is not there.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn query_by_key(&self, key: impl AsRef<[u8]>) -> Result<Option<Query<'_>>> {
        let record = self.get(key)?;
        Ok(record.map(|record| {
            let id = record.id.get();
            Query::new(self.source(), Cow::Owned(record.signature)).excluding(id)
        }))
    }

    /// The `n` best among the documents that share a bucket with a signature, however far they
    /// are. A document that shares none is not seen: use [`Query::scan`] for certainty.
    ///
    /// # Errors
    ///
    /// As [`Query::run`].
    pub fn nearest(&self, signature: &Signature, n: usize) -> Result<Matches> {
        self.core().check_signature(signature)?;
        let subject = Subject {
            signature,
            exclude: None,
        };
        self.core()
            .guarded(|| subject.nearest(self.source(), n))
            .inspect(|_| self.core().note_queries(1))
    }

    /// The documents that share a bucket with a signature, not verified, ascending by id.
    ///
    /// # Errors
    ///
    /// As [`Query::run`].
    pub fn candidates(&self, signature: &Signature) -> Result<Vec<DocumentId>> {
        self.core().check_signature(signature)?;
        let subject = Subject {
            signature,
            exclude: None,
        };
        self.core().guarded(|| {
            let ids = subject.candidates(self.source())?;
            let mut live = Vec::with_capacity(ids.len());
            self.source()
                .live_signatures(&ids, &mut |id, row: SignatureRow<'_>| {
                    if row.is_empty() == signature.is_empty() {
                        live.push(DocumentId::new(id));
                    }
                    Ok(())
                })?;
            self.core().note_candidates(live.len());
            self.core().note_queries(1);
            Ok(live)
        })
    }
}

impl Source for SnapshotInner {
    fn core(&self) -> &Core {
        &self.store.core
    }

    fn sealed_below(&self) -> u64 {
        self.committed.state.sealed_below
    }

    fn probe_until(
        &self,
        table: PostingTable,
        ranges: &[CodeRange],
        visit: &mut Visit<'_>,
        is_enough: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<()> {
        self.committed.memtable.probe(ranges, visit)?;
        if is_enough()? {
            return Ok(());
        }
        let plan = Plan::of(&self.store.core, &self.committed.runs, ranges);
        if plan.is_empty(&self.store.core) {
            return Ok(());
        }
        self.probe_tables(table)?
            .probe(plan, ranges, visit, is_enough)
    }

    fn sweep(
        &self,
        table: PostingTable,
        lane: u16,
        wanted: &[Wanted],
        visit: &mut VisitAsked<'_>,
    ) -> Result<()> {
        if !self.committed.memtable.sweep(lane, wanted, visit)? {
            return Ok(());
        }
        self.probe_tables(table)?
            .sweep(&self.committed.runs, lane, wanted, visit)
    }

    fn document_row(&self, id: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        if self.is_dead(id) {
            return visit(None);
        }
        self.core().reads.add_documents(1);
        let row = self.tables()?.documents.get(id)?;
        visit(row.as_ref().map(|row| row.value()))
    }

    fn signature_rows(&self, ids: &[u64], visit: &mut VisitRows<'_>) -> Result<()> {
        let signatures = &self.tables()?.signatures;
        self.core().reads.add_signatures(ids.len());
        for &id in ids {
            if self.is_dead(id) {
                visit(id, None)?;
                continue;
            }
            let row = signatures.get(id)?;
            visit(id, row.as_ref().map(|row| row.value()))?;
        }
        Ok(())
    }

    fn all_signature_rows(&self, visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        for entry in self.tables()?.signatures.iter()? {
            let (id, row) = entry?;
            if !self.is_dead(id.value()) {
                visit(id.value(), row.value())?;
            }
        }
        Ok(())
    }

    fn is_dead(&self, id: u64) -> bool {
        self.committed.dead.contains(id)
    }
}

/// The documents of a snapshot in insertion order. Made by [`Snapshot::iter`].
#[must_use = "nothing is read before it is iterated over"]
pub struct Records {
    range: Option<Contained<OwnedRange<u64, &'static [u8]>>>,
    snapshot: Snapshot,
}

impl Records {
    fn advance(&mut self) -> Result<Option<Record>> {
        let Some(range) = self.range.as_mut() else {
            return Ok(None);
        };
        self.snapshot.core().guarded(|| {
            for entry in range {
                let (id, row) = entry?;
                let id = id.value();
                if self.snapshot.inner.is_dead(id) {
                    continue;
                }
                let document = DocumentRow::decode(id, row.value())?;
                return self.snapshot.source().complete(id, &document).map(Some);
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
            self.range = None;
        }
        next
    }
}

/// After an error or the end nothing follows.
impl FusedIterator for Records {}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records")
            .field("snapshot", &self.snapshot)
            .field("ended", &self.range.is_none())
            .finish_non_exhaustive()
    }
}
