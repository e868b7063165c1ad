//! The view that a search reads: a snapshot, or a write transaction with its own writes.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BinaryHeap;

use crate::error::{Error, Result};
use crate::format::{DocumentRow, Posting, SignatureRow, rows};
use crate::index::{CodeRange, ProbeControl, ProbeRange, VisitProbe};
use crate::invariant::OrBug;
use crate::lanes::{LaneRole, hash_key};
use crate::state::SharedContext;
use crate::types::{Document, DocumentId, Record};

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

/// Called with the row, `None` if there is none.
pub(crate) type VisitRow<'v> = dyn FnMut(Option<&[u8]>) -> Result<()> + 'v;

/// Called with an id and its row, `None` if there is none.
pub(crate) type VisitRows<'v> = dyn FnMut(u64, Option<&[u8]>) -> Result<()> + 'v;

/// Called with the id and the row of each document of a share.
pub(crate) type VisitShare<'v> = Box<dyn FnMut(u64, &[u8]) -> Result<()> + Send + 'v>;

/// One consistent state of the store.
pub(crate) trait ReadView {
    fn context(&self) -> &SharedContext;

    /// Returns the view for several threads to read at once; `None` if it belongs to one.
    fn shared(&self) -> Option<&(dyn ReadView + Sync)> {
        None
    }

    /// The number of documents, more or less: what a search costs is estimated by it.
    fn documents(&self) -> u64;

    /// Documents below this id are in runs.
    fn sealed_below(&self) -> u64;

    /// Visits the postings within `ranges`, all of lanes in `table`: first those in memory, then
    /// run by run those on disk, newest first. After each, `is_enough` may end it. The same document
    /// may come several times.
    fn probe_until(
        &self,
        table: PostingTable,
        ranges: &[CodeRange],
        visit: &mut Visit<'_>,
        is_enough: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<()>;

    /// True if [`sweep`](Self::sweep) takes what is wanted sorted by low code, false if in any order.
    fn sweeps_by_code(&self) -> bool {
        true
    }

    /// Visits what `wanted`, sorted by low code, asks for in a lane of `table`: in memory, then run
    /// by run. The same document may come several times. It ends early if `visit` says so.
    fn sweep(
        &self,
        table: PostingTable,
        lane: u16,
        wanted: &[ProbeRange],
        visit: &mut VisitProbe<'_>,
    ) -> Result<()>;

    /// Shows the row of a live document, `None` if there is none.
    fn document_row(&self, id: u64, visit: &mut VisitRow<'_>) -> Result<()>;

    /// Shows the signature rows of documents in the order given, `None` where one does not live.
    fn signature_rows(&self, ids: &[u64], visit: &mut VisitRows<'_>) -> Result<()>;

    /// True if the rows never left this process's memory: their checksums are not looked at.
    fn holds_rows(&self) -> bool {
        false
    }

    /// Shows all signature rows of live documents, ascending by id.
    fn all_signature_rows(&self, visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()>;

    /// Shows each signature row of a live document to one of the visitors, to each ascending by id. A view
    /// may run the visitors in threads of their own, and need not use all of them.
    fn share_signature_rows(&self, visitors: Vec<VisitShare<'_>>) -> Result<()> {
        let mut first = visitors.into_iter().next().or_bug("a visitor of rows")?;
        self.all_signature_rows(&mut *first)
    }

    /// Shows the row that notes which documents of a chunk of ids have equal signatures, `None` if there
    /// is none. All that are noted are in runs.
    fn equal_row(&self, chunk: u64, visit: &mut VisitRow<'_>) -> Result<()>;

    /// Returns true for a document that was removed and still has postings in a run. It may have rows, too,
    /// which mean nothing.
    fn is_dead(&self, id: u64) -> bool;
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

    /// Shows the signatures of the live documents among `ids`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a document in a run that has neither a row nor a tombstone: its row was lost.
    pub(crate) fn live_signatures(
        &self,
        ids: &[u64],
        visit: &mut dyn FnMut(u64, SignatureRow<'_>) -> Result<()>,
    ) -> Result<()> {
        let (shape, holds_rows) = (self.context().shape(), self.holds_rows());
        self.signature_rows(ids, &mut |id, row| match row {
            Some(bytes) if holds_rows => visit(id, SignatureRow::read(id, bytes, shape)?),
            Some(bytes) => visit(id, SignatureRow::decode(id, bytes, shape)?),
            None => self.expect_gone(id),
        })
    }

    /// Checks that a document which has a posting and no row was removed.
    pub(crate) fn expect_gone(&self, id: u64) -> Result<()> {
        if id >= self.sealed_below() || self.is_dead(id) {
            return Ok(());
        }
        let place = format!("table {}, document {id}", rows::SIGNATURES);
        let detail = "found no row, expected one: its postings are in a run (invariant 4)";
        Err(Error::corrupt(place, detail))
    }

    /// The live document with this key.
    pub(crate) fn find_key(&self, key: &[u8]) -> Result<Option<u64>> {
        let code = hash_key(key);
        let range = CodeRange {
            lane: 0,
            low_code: code,
            high_code: code,
        };
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
        let mut equal = false;
        self.document_row(id, &mut |row| {
            match row {
                Some(bytes) => equal = DocumentRow::decode(id, bytes)?.key == Some(key),
                None => self.expect_gone(id)?,
            }
            Ok(())
        })?;
        Ok(equal)
    }

    pub(crate) fn record(&self, id: u64) -> Result<Option<Record>> {
        let mut record = None;
        self.document_row(id, &mut |row| {
            if let Some(bytes) = row {
                record = Some(self.complete(id, &DocumentRow::decode(id, bytes)?)?);
            }
            Ok(())
        })?;
        Ok(record)
    }

    /// A document row with its signature.
    pub(super) fn complete(&self, id: u64, document: &DocumentRow<'_>) -> Result<Record> {
        let mut signature = None;
        self.live_signatures(&[id], &mut |_, row| {
            signature = Some(row.to_signature(self.context().recipe));
            Ok(())
        })?;
        let Some(signature) = signature else {
            let place = format!("table {}, document {id}", rows::SIGNATURES);
            return Err(Error::corrupt(
                place,
                "found no row, expected one (invariant 1)",
            ));
        };
        Ok(Record {
            id: DocumentId::new(id),
            key: document.key.map(<[u8]>::to_vec),
            signature,
            stamp: document.stamp,
            payload: document.payload.to_vec(),
        })
    }

    /// The key of a live document: the outer `None` if there is no such document.
    pub(crate) fn key_of(&self, id: u64) -> Result<Option<Option<Vec<u8>>>> {
        let document = self.document_of(id, false)?;
        Ok(document.map(|document| document.key.map(Cow::into_owned)))
    }

    /// The key and stamp of a live document, and its payload if that is asked for; `None` if there is no
    /// such document.
    pub(crate) fn document_of(
        &self,
        id: u64,
        with_payload: bool,
    ) -> Result<Option<Document<'static>>> {
        let mut document = None;
        self.document_row(id, &mut |row| {
            if let Some(bytes) = row {
                let row = DocumentRow::decode(id, bytes)?;
                let payload = if with_payload { row.payload } else { &[] };
                document = Some(Document {
                    key: row.key.map(|key| Cow::Owned(key.to_vec())),
                    stamp: row.stamp,
                    payload: Cow::Owned(payload.to_vec()),
                });
            }
            Ok(())
        })?;
        Ok(document)
    }
}
