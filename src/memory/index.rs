//! Kept documents in memory, as a search reads them.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use crate::error::Result;
use crate::format::Posting;
use crate::index::{BucketMap, CodeRange, ProbeControl, ProbeRange, SweepControl, VisitProbe};
use crate::invariant::{at_mut, bug};
use crate::memory::row_arena::RowArena;
use crate::options::StoreOptions;
use crate::read::{PostingTable, ReadView, Visit, VisitRow, VisitRows};
use crate::state::{SharedContext, document_codes};
use crate::types::{Document, DocumentId};
use crate::write::{BatchTarget, DocumentRows};
use resemblance_sketch::lanes::{LaneCode, hash_key};
use resemblance_sketch::schema::Schema;
use resemblance_sketch::sketch::Signature;

/// Documents with ids from 0, in a hash table for each lane.
pub(super) struct MemoryIndex {
    context: SharedContext,
    documents: RowArena,
    /// Payloads; empty for a document without one.
    payloads: RowArena,
    sets: RowArena,
    lanes: Vec<BucketMap>,
    postings: usize,
    /// The number of threads that look documents up.
    threads: NonZeroUsize,
    row: Vec<LaneCode>,
}

impl MemoryIndex {
    pub(super) fn new(name: PathBuf, schema: Schema, options: &StoreOptions) -> Result<Self> {
        let context = SharedContext::new(name, schema, options.clone())?;
        let lanes = (0..context.lanes.count()).map(|_| BucketMap::default());
        Ok(Self {
            lanes: lanes.collect(),
            context,
            documents: RowArena::default(),
            payloads: RowArena::default(),
            sets: RowArena::default(),
            postings: 0,
            threads: NonZeroUsize::MIN,
            row: Vec::new(),
        })
    }

    pub(super) fn set_threads(&mut self, threads: NonZeroUsize) {
        self.threads = threads;
    }

    pub(super) fn threads(&self) -> NonZeroUsize {
        self.threads
    }

    /// Returns the memory that the documents take, in bytes.
    pub(super) fn size_bytes(&self) -> u64 {
        let parts = [&self.documents, &self.payloads, &self.sets];
        let rows: usize = parts.iter().map(|rows| rows.size_bytes()).sum();
        (rows + self.postings * BucketMap::POSTING_BYTES) as u64
    }

    pub(super) fn len(&self) -> u64 {
        self.documents.len()
    }

    /// Checks that a document fits the schema and the limits of a store.
    pub(super) fn check(&self, document: &Document<'_>, signature: &Signature) -> Result<()> {
        document.validate()?;
        self.context.check_signature(signature)
    }

    /// Forgets the postings of some documents, which no search then finds. Their rows remain.
    pub(super) fn forget(&mut self, forgotten: &HashSet<u64>) {
        let lanes = &self.context.lanes;
        for (lane, map) in (0..).zip(&mut self.lanes) {
            let low_code = |code| lanes.bucket_range(lane, code).0;
            map.retain(|id| !forgotten.contains(&id), low_code);
        }
        self.postings = self.lanes.iter().map(BucketMap::len).sum();
    }

    /// Returns the postings of a bucket, the newest first.
    fn bucket(&self, lane: u16, low_code: u64, high_code: u64) -> impl Iterator<Item = Posting> {
        let lane = self.lanes.get(usize::from(lane));
        lane.into_iter()
            .flat_map(move |lane| lane.bucket(low_code, high_code))
    }
}

impl BatchTarget for MemoryIndex {
    fn threads(&self) -> usize {
        self.threads.get()
    }

    fn next_id(&self) -> u64 {
        self.len()
    }

    fn store_document(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        let id = self.len();
        let key_code = document.key().map(hash_key);
        document_codes(&self.context, key_code, signature, &mut self.row)?;
        let lanes = &self.context.lanes;
        // Nothing here asks for shared passages, so that kept hashes need no postings.
        let asked = |code: &&LaneCode| code.lane < lanes.single_count();
        for &LaneCode { lane, code } in self.row.iter().filter(asked) {
            let map = at_mut(&mut self.lanes, usize::from(lane))?;
            let low_code = |code| lanes.bucket_range(lane, code).0;
            if !map.push(Posting { code, id }, low_code) {
                return Err(bug("a lane in memory holds 2^32 postings"));
            }
            self.postings += 1;
        }
        let rows = DocumentRows::encode(&self.context, id, document, signature)?;
        self.documents.push(&rows.document);
        if let Some(row) = &rows.set {
            self.sets.push(row);
        }
        match &rows.payload {
            Some(row) => self.payloads.push(row),
            // Each document has its place there; no row of a payload is empty.
            None => self.payloads.push(&[]),
        }
        Ok(DocumentId::new(id))
    }
}

impl ReadView for MemoryIndex {
    fn context(&self) -> &SharedContext {
        &self.context
    }

    fn shared(&self) -> Option<&(dyn ReadView + Sync)> {
        Some(self)
    }

    fn documents(&self) -> u64 {
        self.len()
    }

    fn flushed_below(&self) -> u64 {
        0
    }

    fn probe_until(
        &self,
        _: PostingTable,
        ranges: &[CodeRange],
        visit: &mut Visit<'_>,
        is_enough: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<()> {
        for (index, range) in ranges.iter().enumerate() {
            let mut skipped_below = None;
            for posting in self.bucket(range.lane, range.low_code, range.high_code) {
                if skipped_below.is_some_and(|first| posting < first) {
                    continue;
                }
                if let ProbeControl::SkipTo(first) = visit(index, posting)? {
                    skipped_below = Some(first);
                }
                // `End` means that no later posting is needed. Here those are next.
            }
        }
        is_enough().map(drop)
    }

    fn sweeps_by_code(&self) -> bool {
        false
    }

    fn sweep(
        &self,
        _: PostingTable,
        lane: u16,
        wanted: &[ProbeRange],
        visit: &mut VisitProbe<'_>,
    ) -> Result<()> {
        let Some(map) = self.lanes.get(usize::from(lane)) else {
            return Ok(());
        };
        let lasts: Vec<u32> = wanted
            .iter()
            .map(|range| map.last(range.low_code))
            .collect();
        for (range, last) in wanted.iter().zip(lasts) {
            for posting in map.chain(last, range.low_code, range.high_code) {
                match visit(range.query_index, posting)? {
                    SweepControl::GoOn => {}
                    SweepControl::SkipRange => break,
                    SweepControl::End => return Ok(()),
                }
            }
        }
        Ok(())
    }

    fn document_rows(&self, ids: &[u64], visit: &mut VisitRows<'_>) -> Result<()> {
        for &id in ids {
            let row = (id < self.len()).then(|| self.documents.row(id));
            visit(id, row.transpose()?)?;
        }
        Ok(())
    }

    fn payload_row(&self, id: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        let row = self.payloads.row(id)?;
        visit(Some(row).filter(|row| !row.is_empty()))
    }

    fn set_row(&self, id: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        visit(Some(self.sets.row(id)?))
    }

    fn all_document_rows(&self, visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        for id in 0..self.len() {
            visit(id, self.documents.row(id)?)?;
        }
        Ok(())
    }

    fn holds_rows(&self) -> bool {
        true
    }

    fn equal_row(&self, _: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        visit(None)
    }

    fn is_deleted(&self, _: u64) -> bool {
        false
    }
}
