//! The documents that a join reads: a snapshot of a store, or documents in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Result;
use crate::format::{CHUNK_DOCUMENTS, DeletedChunk, DocumentRow, EqualChunk, Posting};
use crate::join::signature_batch::SignatureBatch;
use crate::query::Gate;
use crate::read::{PostingTable, SnapshotView};
use crate::state::{SharedContext, Tombstones};
use crate::types::Record;
use resemblance_sketch::fingerprint::Fingerprint;
use resemblance_sketch::sketch::EmptyDocuments;

/// The postings of a lane, ascending by code and then by id, those of removed documents included.
pub(crate) type LanePostings = Box<dyn Iterator<Item = Result<Posting>> + Send>;

/// Called with the id and the fingerprint of a document.
pub(crate) type VisitFingerprints<'v> = dyn FnMut(u64, &Fingerprint) -> Result<()> + 'v;

/// A callback that receives the records of equal documents in a chunk of ids, or `None`.
pub(crate) type VisitNotes<'v> = dyn FnMut(Option<&EqualChunk>) -> Result<()> + 'v;

/// Documents that can be joined.
pub(crate) trait JoinSource: Send + Sync {
    fn context(&self) -> &SharedContext;

    /// # Errors
    /// [`Error::Forked`](crate::Error::Forked) in a process that must not read the documents.
    fn check_home(&self) -> Result<()> {
        self.context().health.check_home()
    }

    /// The number of documents.
    fn len(&self) -> u64;

    /// Returns the documents that are not removed.
    fn live(&self) -> Result<LiveDocuments>;

    /// Returns those of them that a filter does not let pass.
    fn hidden(&self, gate: &Gate<'_>) -> Result<Tombstones>;

    fn lane(&self, table: PostingTable, lane: u16) -> Result<LanePostings>;

    /// Shows the fingerprint of each document that tables index, in any order.
    fn fingerprints(&self, visit: &mut VisitFingerprints<'_>) -> Result<()>;

    /// The number of postings of a lane.
    fn lane_postings(&self, lane: u16) -> u64;

    /// Returns the signatures of all documents, where they are in memory anyway.
    fn held_signatures(&self) -> Option<Arc<SignatureBatch>> {
        None
    }

    /// Passes on at least the signatures of documents with ascending ids, with the codes of their
    /// bands if `with_codes`.
    fn signatures(
        &self,
        ids: &[u64],
        with_codes: bool,
        threads: usize,
    ) -> Result<Arc<SignatureBatch>>;

    /// Returns the similarity of the exact sets of two documents, or `None` unless the schema is
    /// exact. If the similarity is below `floor`, returns any number below `floor`.
    fn set_similarity(&self, a: u64, b: u64, floor: f64) -> Result<Option<f64>>;

    /// Passes on the records of equal documents in a chunk of ids.
    fn notes(&self, chunk: u64, visit: &mut VisitNotes<'_>) -> Result<()>;

    fn record(&self, id: u64) -> Result<Option<Record>>;

    fn key(&self, id: u64) -> Result<Option<Vec<u8>>>;
}

impl JoinSource for SnapshotView {
    fn context(&self) -> &SharedContext {
        self.context()
    }

    fn len(&self) -> u64 {
        self.len()
    }

    fn live(&self) -> Result<LiveDocuments> {
        let version = &self.inner.version;
        let (flushed_below, dropped) = (version.state.flushed_below, version.deleted.clone());
        Ok(LiveDocuments::new(
            flushed_below,
            self.unflushed_ids()?,
            dropped,
        ))
    }

    fn hidden(&self, gate: &Gate<'_>) -> Result<Tombstones> {
        let (view, mut hidden) = (self.view(), Tombstones::default());
        view.all_document_rows(&mut |id, row| {
            let passes = view.read_head(id, row, |head| {
                gate.decide(id, head, || view.payload(id, head))
            })?;
            if !passes {
                hidden.insert(id);
            }
            Ok(())
        })?;
        Ok(hidden)
    }

    fn lane(&self, table: PostingTable, lane: u16) -> Result<LanePostings> {
        Ok(Box::new(self.inner.lane_stream(table, lane)?))
    }

    fn fingerprints(&self, visit: &mut VisitFingerprints<'_>) -> Result<()> {
        let context = self.context();
        let files_empty = context.schema.empty_documents() == EmptyDocuments::Alike;
        self.view().all_document_rows(&mut |id, row| {
            let row = DocumentRow::decode(id, row, context.shape())?;
            match row.fingerprint() {
                Some(fingerprint) if files_empty || !row.is_empty() => visit(id, &fingerprint),
                _ => Ok(()),
            }
        })
    }

    fn lane_postings(&self, lane: u16) -> u64 {
        self.inner.version.lane_postings(lane)
    }

    fn signatures(
        &self,
        ids: &[u64],
        with_codes: bool,
        threads: usize,
    ) -> Result<Arc<SignatureBatch>> {
        SignatureBatch::load(self, ids, with_codes, threads).map(Arc::new)
    }

    fn set_similarity(&self, a: u64, b: u64, floor: f64) -> Result<Option<f64>> {
        let context = self.context();
        context.run_checked(|| self.view().similarity_of_sets(a, b, floor))
    }

    fn notes(&self, chunk: u64, visit: &mut VisitNotes<'_>) -> Result<()> {
        self.view().equal_row(chunk, &mut |row| {
            let notes = row.map(|row| EqualChunk::decode(chunk, row)).transpose()?;
            visit(notes.as_ref())
        })
    }

    fn record(&self, id: u64) -> Result<Option<Record>> {
        self.view().record(id)
    }

    fn key(&self, id: u64) -> Result<Option<Vec<u8>>> {
        Ok(self.view().key_of(id)?.flatten())
    }
}

/// The documents that take part in a join, found without reading their rows. It takes one bit per
/// document in stretches of ids of which any is dropped or hidden, and 8 bytes per document that is
/// in no run yet.
pub(crate) struct LiveDocuments {
    flushed_below: u64,
    /// The ids of documents that are in no run yet, ascending.
    unflushed: Vec<u64>,
    dropped: Tombstones,
    hidden: BTreeMap<u64, DeletedChunk>,
}

impl LiveDocuments {
    /// `unflushed` are the documents that are in no run, ascending; all below `flushed_below` are there that
    /// have postings and no tombstone in `dropped`.
    pub(crate) fn new(flushed_below: u64, unflushed: Vec<u64>, dropped: Tombstones) -> Self {
        Self {
            flushed_below,
            unflushed,
            dropped,
            hidden: BTreeMap::new(),
        }
    }

    /// Returns the ids, ascending.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u64> {
        let ids = (0..self.flushed_below).chain(self.unflushed.iter().copied());
        ids.filter(|id| self.contains(*id))
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        if self.dropped.contains(id) || self.is_hidden(id) {
            return false;
        }
        id < self.flushed_below || self.is_unflushed(id)
    }

    /// Returns the memory that the documents take that are in no run, in bytes.
    pub(super) fn size_bytes(&self) -> u64 {
        (self.unflushed.len() * size_of::<u64>()) as u64
    }

    fn is_hidden(&self, id: u64) -> bool {
        let chunk = self.hidden.get(&(id / CHUNK_DOCUMENTS));
        chunk.is_some_and(|chunk| chunk.contains(id))
    }

    fn is_unflushed(&self, id: u64) -> bool {
        // While no document was dropped, the ids are contiguous, and the index follows from the id.
        let contiguous = self.unflushed.first().and_then(|first| {
            let index = usize::try_from(id.checked_sub(*first)?).ok()?;
            self.unflushed.get(index)
        });
        contiguous == Some(&id) || self.unflushed.binary_search(&id).is_ok()
    }

    /// Takes a document out of all remaining buckets.
    pub(super) fn hide(&mut self, id: u64) {
        let chunk = self.hidden.entry(id / CHUNK_DOCUMENTS);
        chunk.or_insert_with(DeletedChunk::new).set(id);
    }
}
