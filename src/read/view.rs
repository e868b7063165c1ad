//! The view that a search reads: a snapshot, or a write transaction with its own writes. Adjacent
//! rows are read in one pass.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;

use crate::engine::{EngineResult, ReadableTable};
use crate::error::{Error, Result};
use crate::format::{
    ChunkSets, DOCUMENTS, DocumentRow, PAYLOADS, Posting, RowHead, SETS, checksum, decode_payload,
    decode_set, decode_set_body, no_row, open_set, set_count,
};
use crate::index::{CodeRange, ProbeControl, ProbeRange, VisitProbe};
use crate::invariant::{OrBug, at};
use crate::state::{SetPlace, SharedContext};
use crate::types::{Document, DocumentId, Record};
use resemblance_sketch::exact::ExactSet;
use resemblance_sketch::lanes::{LaneRole, hash_key};
use resemblance_sketch::sketch::Signature;

/// The three tables of postings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PostingTable {
    Keys,
    Bands,
    Permuted,
}

impl PostingTable {
    pub(crate) fn of(role: LaneRole) -> Self {
        match role {
            LaneRole::Key => Self::Keys,
            LaneRole::Band(_) | LaneRole::Kept => Self::Bands,
            LaneRole::Table(_) => Self::Permuted,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Bands => "bands",
            Self::Permuted => "permuted",
        }
    }
}

/// Called with the index of a range and a posting found in it.
pub(crate) type Visit<'v> = dyn FnMut(usize, Posting) -> Result<ProbeControl> + 'v;

/// A callback with the row, or `None`.
pub(crate) type VisitRow<'v> = dyn FnMut(Option<&[u8]>) -> Result<()> + 'v;

/// A callback with an id and its row, or `None`.
pub(crate) type VisitRows<'v> = dyn FnMut(u64, Option<&[u8]>) -> Result<()> + 'v;

/// Called with the id and the row of each document of a share.
pub(crate) type VisitShare<'v> = Box<dyn FnMut(u64, &[u8]) -> Result<()> + Send + 'v>;

/// One consistent state of the store.
pub(crate) trait ReadView {
    fn context(&self) -> &SharedContext;

    /// Returns the view if several threads can read it at once, or `None` if it belongs to one
    /// thread.
    fn shared(&self) -> Option<&(dyn ReadView + Sync)> {
        None
    }

    /// Returns the approximate number of documents, from which the cost of a search is estimated.
    fn documents(&self) -> u64;

    /// Documents below this id are in runs.
    fn flushed_below(&self) -> u64;

    /// Visits the postings within `ranges`, all of lanes in `table`: first those in memory, then
    /// run by run those on disk, newest first. After each, `is_enough` may end it. The same
    /// document may be visited several times.
    fn probe_until(
        &self,
        table: PostingTable,
        ranges: &[CodeRange],
        visit: &mut Visit<'_>,
        is_enough: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<()>;

    /// Returns true if [`sweep`](Self::sweep) takes its ranges sorted by low code, false if in any
    /// order.
    fn sweeps_by_code(&self) -> bool {
        true
    }

    /// Visits the postings within `wanted`, sorted by low code, in a lane of `table`: in memory,
    /// then run by run. The same document may be visited several times. It ends early if `visit`
    /// directs so.
    fn sweep(
        &self,
        table: PostingTable,
        lane: u16,
        wanted: &[ProbeRange],
        visit: &mut VisitProbe<'_>,
    ) -> Result<()>;

    /// Shows the rows of documents in the order given, `None` where one does not live.
    fn document_rows(&self, ids: &[u64], visit: &mut VisitRows<'_>) -> Result<()>;

    /// Shows the row of a live document's payload, or `None`.
    fn payload_row(&self, id: u64, visit: &mut VisitRow<'_>) -> Result<()>;

    /// Shows the row of a live document's exact set, or `None`. The store must have the table of
    /// exact sets.
    fn set_row(&self, id: u64, visit: &mut VisitRow<'_>) -> Result<()>;

    /// Returns true if the rows never left this process's memory. Their checksums are then not
    /// verified.
    fn holds_rows(&self) -> bool {
        false
    }

    /// Shows the rows of all live documents, ascending by id.
    fn all_document_rows(&self, visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()>;

    /// Shows the row of each live document to one of the visitors, to each ascending by id. A view
    /// may run the visitors in separate threads, and need not use all of them.
    fn share_document_rows(&self, visitors: Vec<VisitShare<'_>>) -> Result<()> {
        let mut first = visitors.into_iter().next().or_bug("a visitor of rows")?;
        self.all_document_rows(&mut *first)
    }

    /// Passes on the row that records which documents of a chunk of ids have equal signatures, or
    /// `None`. All recorded documents are in runs.
    fn equal_row(&self, chunk: u64, visit: &mut VisitRow<'_>) -> Result<()>;

    /// Returns true for a document that was removed and still has postings in a run. It may have rows, too,
    /// which mean nothing.
    fn is_deleted(&self, id: u64) -> bool;
}

/// Reads that all views share.
impl dyn ReadView + '_ {
    /// Visits all postings within `ranges`, all of lanes in `table`.
    pub(crate) fn probe(
        &self,
        table: PostingTable,
        ranges: &[CodeRange],
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        self.context().counters.lanes_probed(ranges.len());
        self.probe_until(table, ranges, visit, &mut || Ok(false))
    }

    /// Shows the live documents among `ids`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a document in a run that has neither a row nor a tombstone: its row was lost.
    pub(crate) fn live_documents(
        &self,
        ids: &[u64],
        visit: &mut dyn FnMut(u64, DocumentRow<'_>) -> Result<()>,
    ) -> Result<()> {
        self.context().counters.signatures_read(ids.len());
        self.document_rows(ids, &mut |id, row| match row {
            Some(bytes) => visit(id, self.decode(id, bytes)?),
            None => self.expect_gone(id),
        })
    }

    fn decode<'r>(&'r self, id: u64, row: &'r [u8]) -> Result<DocumentRow<'r>> {
        let shape = self.context().shape();
        match self.holds_rows() {
            true => DocumentRow::read(id, row, shape),
            false => DocumentRow::decode(id, row, shape),
        }
    }

    /// Returns what `read` makes of a document's row, `None` if it does not live.
    fn with_row<T>(&self, id: u64, read: impl Fn(&[u8]) -> Result<T>) -> Result<Option<T>> {
        let mut found = None;
        self.context().counters.count.documents_read.add(1);
        self.document_rows(&[id], &mut |_, row| {
            found = row.map(&read).transpose()?;
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the result of `read` for the part of a row before a document's signature, `None` if
    /// it does not live.
    pub(crate) fn with_head<T>(
        &self,
        id: u64,
        read: impl Fn(&RowHead<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.with_row(id, |row| self.read_head(id, row, &read))
    }

    /// Returns the result of `read` for the part of a document's row before the signature.
    pub(crate) fn read_head<T>(
        &self,
        id: u64,
        row: &[u8],
        read: impl Fn(&RowHead<'_>) -> Result<T>,
    ) -> Result<T> {
        match self.holds_rows() {
            true => read(&RowHead::split(row).or_bug("a row in memory")?.0),
            false => read(&RowHead::decode(id, row)?),
        }
    }

    /// Returns what `read` makes of a document, `None` if it does not live.
    pub(crate) fn with_document<T>(
        &self,
        id: u64,
        read: impl Fn(&DocumentRow<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.with_row(id, |row| read(&self.decode(id, row)?))
    }

    /// Checks that a document which has a posting and no row was removed.
    pub(crate) fn expect_gone(&self, id: u64) -> Result<()> {
        if id >= self.flushed_below() || self.is_deleted(id) {
            return Ok(());
        }
        let place = format!("table {DOCUMENTS}, document {id}");
        let detail = "found no row, expected one: its postings are in a run (invariant 4)";
        Err(Error::corrupt(place, detail))
    }

    /// The live document with this key.
    pub(crate) fn find_key(&self, key: &[u8]) -> Result<Option<u64>> {
        let code = hash_key(key);
        let range = CodeRange::new(0, code, code);
        // Newest first: a document that replaced another has the greater id. A key that is replaced
        // over and over leaves many, of which mostly the first will do: they are not all sorted.
        let ids = RefCell::new(BinaryHeap::new());
        let mut found = None;
        let mut visit = |_, posting: Posting| {
            ids.borrow_mut().push(posting.id);
            Ok(ProbeControl::GoOn)
        };
        let mut is_enough = || {
            while let Some(id) = ids.borrow_mut().pop() {
                if self.has_key(id, key)? {
                    found = Some(id);
                    return Ok(true);
                }
            }
            Ok(false)
        };
        self.context().counters.lanes_probed(1);
        self.probe_until(PostingTable::Keys, &[range], &mut visit, &mut is_enough)?;
        Ok(found)
    }

    /// Returns true if a document found in the key lane is live and has this very key, not only its hash.
    pub(crate) fn has_key(&self, id: u64, key: &[u8]) -> Result<bool> {
        match self.with_head(id, |head| Ok(head.key == Some(key)))? {
            Some(is_equal) => Ok(is_equal),
            None => self.expect_gone(id).map(|()| false),
        }
    }

    /// Returns the live document with this key, for a caller outside of this crate: a panic of the engine's is caught.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Record>> {
        self.context().run_checked(|| match self.find_key(key)? {
            Some(id) => self.record(id),
            None => Ok(None),
        })
    }

    pub(crate) fn get_id(&self, id: DocumentId) -> Result<Option<Record>> {
        self.context().run_checked(|| self.record(id.get()))
    }

    pub(crate) fn contains(&self, key: &[u8]) -> Result<bool> {
        let found = self.context().run_checked(|| self.find_key(key))?;
        Ok(found.is_some())
    }

    pub(crate) fn record(&self, id: u64) -> Result<Option<Record>> {
        self.with_document(id, |row| self.to_record(id, row))
    }

    /// Returns a document with its signature and its payload.
    pub(super) fn to_record(&self, id: u64, row: &DocumentRow<'_>) -> Result<Record> {
        Ok(Record {
            id: DocumentId::new(id),
            key: row.head.key.map(<[u8]>::to_vec),
            signature: self.to_signature(id, row)?,
            stamp: row.head.stamp,
            payload: self.payload(id, &row.head)?,
        })
    }

    /// Returns the signature of a document with its exact set, or `None` if it does not live.
    pub(crate) fn signature_of(&self, id: u64) -> Result<Option<Signature>> {
        self.with_document(id, |row| self.to_signature(id, row))
    }

    /// Returns the signature of a live document, with its exact set.
    fn to_signature(&self, id: u64, row: &DocumentRow<'_>) -> Result<Signature> {
        let context = self.context();
        let set = match context.exact {
            Some(SetPlace::Table) => Some(self.stored_set(id)?),
            _ => None,
        };
        Ok(row.to_signature(context.recipe).with_set(set))
    }

    /// Shows the row of a live document's exact set.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is not there.
    fn with_set_row(&self, id: u64, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.set_row(id, &mut |row| {
            visit(row.ok_or_else(|| no_row(SETS, id, 1))?)
        })
    }

    /// Shows the body of the row of a live document's exact set. In a stream, it follows the body
    /// of the document's row.
    pub(crate) fn with_set_body(&self, id: u64, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.with_set_row(id, &mut |row| {
            decode_set(id, row, self.context().shape())?;
            let parts = row.split_last_chunk::<{ checksum::CHECKSUM_BYTES }>();
            visit(parts.or_bug("the checksum of a row that was decoded")?.0);
            Ok(())
        })
    }

    /// Returns true if the exact sets of a signature and a live document are equal, or if the store
    /// has no separate exact sets.
    pub(crate) fn has_set_of(&self, signature: &Signature, id: u64) -> Result<bool> {
        let Some(row) = self.context().set_row(id, signature)? else {
            return Ok(true);
        };
        let mut is_same = false;
        self.with_set_row(id, &mut |stored| {
            is_same = stored == row;
            Ok(())
        })?;
        Ok(is_same)
    }

    /// Returns the similarity of the sets of a signature and a live document, or `None` unless the
    /// store is exact. If the similarity is below `floor`, returns any number below `floor`.
    pub(crate) fn set_similarity(
        &self,
        signature: &Signature,
        id: u64,
        floor: f64,
    ) -> Result<Option<f64>> {
        let set = self.context().set_of(signature)?;
        set.map(|set| self.similarity_to_set(&set, id, floor))
            .transpose()
    }

    /// Returns the similarity of the sets of two live documents, as
    /// [`set_similarity`](Self::set_similarity).
    pub(crate) fn similarity_of_sets(&self, a: u64, b: u64, floor: f64) -> Result<Option<f64>> {
        let set = match self.context().exact {
            None => return Ok(None),
            Some(SetPlace::Table) => self.stored_set(a)?,
            Some(SetPlace::KeptHashes) => {
                let kept = self.with_document(a, |row| Ok(row.kept_set()))?;
                kept.ok_or_else(|| no_row(DOCUMENTS, a, 4))?
            }
        };
        self.similarity_to_set(&set, b, floor).map(Some)
    }

    /// Returns the exact set of a live document of an exact store, whose row has been read.
    pub(crate) fn set_of_row(&self, id: u64, row: &DocumentRow<'_>) -> Result<ExactSet> {
        match self.context().exact {
            Some(SetPlace::KeptHashes) => Ok(row.kept_set()),
            _ => self.stored_set(id),
        }
    }

    /// Reads the exact set of a live document from the table.
    fn stored_set(&self, id: u64) -> Result<ExactSet> {
        let mut set = ExactSet::default();
        self.with_set_row(id, &mut |row| {
            set = decode_set(id, row, self.context().shape())?;
            Ok(())
        })?;
        Ok(set)
    }

    fn similarity_to_set(&self, own: &ExactSet, id: u64, floor: f64) -> Result<f64> {
        let context = self.context();
        if context.exact == Some(SetPlace::KeptHashes) {
            let similarity = self.with_document(id, |row| {
                let most = context.max_similarity(own, row.kept_count() as usize)?;
                match most < floor {
                    true => Ok(most),
                    false => context.compare_sets(own, &row.kept_set(), floor),
                }
            })?;
            return similarity.ok_or_else(|| no_row(DOCUMENTS, id, 4));
        }
        let mut similarity = 0.0;
        self.with_set_row(id, &mut |row| {
            // The numbers of features may suffice to decide.
            let body = open_set(id, row)?;
            let most = context.max_similarity(own, set_count(id, body)?)?;
            similarity = match most < floor {
                true => most,
                false => {
                    let other = decode_set_body(id, body, context.shape())?;
                    context.compare_sets(own, &other, floor)?
                }
            };
            Ok(())
        })?;
        Ok(similarity)
    }

    /// Reads the payload of a document.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is missing although the document has one.
    pub(crate) fn payload(&self, id: u64, head: &RowHead<'_>) -> Result<Vec<u8>> {
        let mut payload = Vec::new();
        if !head.has_payload {
            return Ok(payload);
        }
        self.payload_row(id, &mut |bytes| {
            let Some(bytes) = bytes else {
                return Err(no_row(PAYLOADS, id, 1));
            };
            payload = decode_payload(id, bytes)?.to_vec();
            Ok(())
        })?;
        Ok(payload)
    }

    /// The key of a live document: the outer `None` if there is no such document.
    pub(crate) fn key_of(&self, id: u64) -> Result<Option<Option<Vec<u8>>>> {
        self.with_head(id, |head| Ok(head.key.map(<[u8]>::to_vec)))
    }

    /// Returns the key and stamp of a live document, and its payload if requested, or `None` if
    /// there is no such document.
    pub(crate) fn document_of(
        &self,
        id: u64,
        with_payload: bool,
    ) -> Result<Option<Document<'static>>> {
        self.with_head(id, |head| self.to_document(id, head, with_payload))
    }

    pub(crate) fn to_document(
        &self,
        id: u64,
        head: &RowHead<'_>,
        with_payload: bool,
    ) -> Result<Document<'static>> {
        let payload = match with_payload {
            true => self.payload(id, head)?,
            false => Vec::new(),
        };
        Ok(Document {
            key: head.key.map(|key| Cow::Owned(key.to_vec())),
            stamp: head.stamp,
            payload: Cow::Owned(payload),
        })
    }
}

/// Number of documents for which a walk pays.
const MIN_WALKED: usize = 8;

/// Number of rows that a walk passes over rather than to end.
const MAX_PASSED: u64 = 8;

/// Shows the sealed exact set of a document in the table of sets.
pub(crate) fn visit_set(
    sets: &impl ReadableTable<u64, &'static [u8]>,
    id: u64,
    visit: &mut VisitRow<'_>,
) -> Result<()> {
    let mut chunks = sets.range(..=id).engine()?;
    match chunks.next_back().transpose().engine()? {
        Some((first, chunk)) => visit(ChunkSets::new(first.value(), chunk.value()).find(id)?),
        None => visit(None),
    }
}

/// Shows the rows of documents in the order given, `None` for a document without a row or for which
/// `is_deleted` returns true.
///
/// # Errors
/// Returns the errors of reading and of `visit`.
pub(crate) fn visit_rows<T: ReadableTable<u64, &'static [u8]>>(
    table: &T,
    ids: &[u64],
    is_deleted: &dyn Fn(u64) -> bool,
    visit: &mut VisitRows<'_>,
) -> Result<()> {
    let are_near = |a: &u64, b: &u64| {
        b.checked_sub(*a)
            .is_some_and(|gap| (1..=MAX_PASSED).contains(&gap))
    };
    for ids in ids.chunk_by(are_near) {
        // A look-up begins at the root of the tree; a step of a walk mostly remains in the page.
        if ids.len() >= MIN_WALKED {
            let visit = &mut |id, row: Option<&[u8]>| visit(id, row.filter(|_| !is_deleted(id)));
            walk(table, ids, *at(ids, 0)?..=*at(ids, ids.len() - 1)?, visit)?;
            continue;
        }
        for &id in ids {
            // A deleted document may have rows until a merge drops them. They need not even be read.
            if is_deleted(id) {
                visit(id, None)?;
                continue;
            }
            let row = table.get(id).engine()?;
            visit(id, row.as_ref().map(|row| row.value()))?;
        }
    }
    Ok(())
}

/// Shows the rows of documents whose ids ascend within a range.
fn walk<T: ReadableTable<u64, &'static [u8]>>(
    table: &T,
    ids: &[u64],
    range: RangeInclusive<u64>,
    visit: &mut VisitRows<'_>,
) -> Result<()> {
    let mut rows = table.range(range).engine()?;
    let mut row = rows.next().transpose().engine()?;
    for &id in ids {
        while row.as_ref().is_some_and(|(found, _)| found.value() < id) {
            row = rows.next().transpose().engine()?;
        }
        let found = row.as_ref().filter(|(found, _)| found.value() == id);
        visit(id, found.map(|(_, row)| row.value()))?;
    }
    Ok(())
}
